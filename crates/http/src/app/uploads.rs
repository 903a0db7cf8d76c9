//! Upload slots: where the browser puts bytes before it registers them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_knowledge::files::{NewUpload, Purpose};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
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

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Opens an upload slot: put the bytes to `url`, then register the file.
#[utoipa::path(post, path = "/api/app/uploads", tag = "documents", params(("orgId" = Option<String>, Query)), request_body = CreateUploadRequest, responses((status = 201, body = UploadSlot)))]
async fn create(
    State(app): State<App>,
    Member(caller): Member,
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
        Some(_) => return Err(Problem::new(Code::FileSizeInvalid, "The size of the file must be given in bytes, as a whole number.").into()),
    };
    let origin = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok()).map(str::to_owned);
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
