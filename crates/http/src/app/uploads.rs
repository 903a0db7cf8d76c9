//! Upload slots: where the browser puts bytes before it registers them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::ids::FileId;
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_knowledge::files::{NewUpload, Purpose};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::documents::{Passage, TextPart, TextQuery, chunk_id};
use crate::body::Body;
use crate::caller::Member;
use crate::documents::{judged, with_bytes};
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

/// What an upload is for.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UploadPurpose {
    /// The library.
    #[default]
    Document,
    /// One chat.
    Chat,
}

/// A file to upload.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateUploadRequest {
    /// Its name.
    file_name: String,
    /// Its media type; may be empty.
    #[serde(default)]
    content_type: String,
    /// Its size in bytes, at most 104,857,600.
    #[schema(value_type = u64)]
    size: Option<serde_json::Value>,
    #[serde(default)]
    purpose: UploadPurpose,
}

/// Where to put the bytes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UploadSlot {
    /// Names the upload when it is registered.
    #[schema(format = Uuid)]
    file_id: String,
    /// Send the bytes here, within an hour.
    url: String,
    /// `PUT`.
    method: &'static str,
    /// Headers to send exactly as given.
    headers: BTreeMap<&'static str, String>,
}

/// How to deliver the bytes.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContentQuery {
    /// `1`: as a download.
    download: Option<u8>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(content)).routes(routes!(text)).routes(routes!(passage))
}

/// Opens an upload slot: put the bytes to `url`, then register the file.
#[utoipa::path(post, path = "/api/app/uploads", tag = "documents", params(("orgId" = Option<String>, Query)), request_body = CreateUploadRequest, responses((status = 201, body = UploadSlot)), operation_id = "create_upload")]
async fn create(
    State(app): State<App>,
    Member(caller): Member,
    RequestOrigin(entry): RequestOrigin,
    headers: HeaderMap,
    body: Body<CreateUploadRequest>,
) -> Result<(StatusCode, Json<UploadSlot>), HttpProblem> {
    caller.require(Capability::ChatUse)?;
    let request = body.read()?;
    let purpose = match request.purpose {
        UploadPurpose::Document => Purpose::Document,
        UploadPurpose::Chat => Purpose::Chat,
    };
    let size = match &request.size {
        None => None,
        Some(size) if size.is_number() => size.as_i64(),
        Some(_) => {
            return Err(Problem::new(
                Code::FileSizeInvalid,
                "The size of the file must be given in bytes, as a whole number.",
            )
            .into());
        }
    };
    // The page names its own origin, also behind a proxy that keeps the scheme to itself.
    let page = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
    let origin = Some(page.map_or_else(|| entry.origin().ascii_serialization(), str::to_owned));
    let upload = NewUpload { file_name: request.file_name, content_type: request.content_type, size, purpose, origin };
    let slot = app.knowledge.create_upload(&caller, upload).await?;
    let slot = UploadSlot {
        file_id: slot.file_id.to_string(),
        url: slot.request.url.into(),
        method: slot.request.method,
        headers: slot.request.headers.into_iter().collect(),
    };
    Ok((StatusCode::CREATED, Json(slot)))
}

/// The bytes of one's own upload or of a document's file; one byte range is honoured.
#[utoipa::path(get, path = "/api/app/files/{fileId}/content", tag = "documents", params(("fileId" = String, Path), ("orgId" = Option<String>, Query), ContentQuery), responses((status = 200, content_type = "*/*"), (status = 206), (status = 304), (status = 416)), operation_id = "read_file_content")]
async fn content(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let id = file_id(&id)?;
    let about = app.knowledge.file_about(&caller, id).await?;
    let range = match judged(&headers, &about) {
        Ok(range) => range,
        Err(response) => return Ok(*response),
    };
    Ok(with_bytes(app.knowledge.open_file(&caller, id, range.clone()).await?, range, query.download == Some(1)))
}

/// A stretch of the text extracted from one's own upload or from a document's file.
#[utoipa::path(get, path = "/api/app/files/{fileId}/text", tag = "documents", params(("fileId" = String, Path), ("orgId" = Option<String>, Query), TextQuery), responses((status = 200, body = TextPart)), operation_id = "read_file_text")]
async fn text(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<TextQuery>,
) -> Result<Response, HttpProblem> {
    let (offset, limit) = query.window();
    Ok(TextPart::from(app.knowledge.file_text(&caller, file_id(&id)?, offset, limit).await?).into_response())
}

/// A passage of one's own upload or of a document's file, as a citation opens it.
#[utoipa::path(get, path = "/api/app/files/{fileId}/passages/{chunkId}", tag = "documents", params(("fileId" = String, Path), ("chunkId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Passage)), operation_id = "read_file_passage")]
async fn passage(
    State(app): State<App>,
    Member(caller): Member,
    Path((id, chunk)): Path<(String, String)>,
) -> Result<Json<Passage>, HttpProblem> {
    Ok(Json(app.knowledge.file_passage(&caller, file_id(&id)?, chunk_id(&chunk)?).await?.into()))
}

/// Reads a file's id from a path; anything else names no file.
fn file_id(text: &str) -> Result<FileId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::FileNotFound, "There is no such file, or you may not read it."))
}
