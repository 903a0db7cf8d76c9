//! Documents for key holders (spec 91, section 4).

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_knowledge::documents::{self as domain, DocumentQuery, MAX_INLINE_BYTES, NewContent};
use tale_knowledge::order::Position;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::documents::deliver;
use crate::body::{self, Body};
use crate::caller::KeyCaller;
use crate::documents::{Author, Indexing, document_id};
use crate::problem::HttpProblem;
use crate::query::{NoQuery, Query, page_size};
use crate::state::App;
use crate::v1::etag_of;

/// A document of the library.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiDocument)]
struct Document {
    #[schema(format = Uuid)]
    id: String,
    title: String,
    /// Inline text; `null` for a stored file.
    #[schema(required)]
    content: Option<String>,
    /// The file's own name.
    file_name: String,
    /// Lower-case, without the dot; may be empty.
    extension: String,
    mime_type: String,
    /// In bytes.
    size: u64,
    created_at: i64,
    updated_at: i64,
    #[schema(required)]
    created_by: Option<Author>,
    /// SHA-256 of the bytes in hexadecimal, once they were read.
    #[schema(required)]
    content_hash: Option<String>,
    indexing: Indexing,
}

impl From<domain::Document> for Document {
    fn from(document: domain::Document) -> Self {
        Self {
            id: document.id.to_string(),
            title: document.title,
            content: document.content,
            file_name: document.file_name,
            extension: document.extension,
            mime_type: document.mime_type,
            size: document.size,
            created_at: document.created_at.timestamp_millis(),
            updated_at: document.updated_at.timestamp_millis(),
            created_by: document.created_by.map(Author::from),
            content_hash: document.content_hash,
            indexing: document.indexing.into(),
        }
    }
}

/// Where to continue.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–100 (50).
    limit: Option<i64>,
}

/// A page of documents, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiDocumentPage)]
struct DocumentPage {
    page: Vec<Document>,
    is_done: bool,
    /// Empty on the last page.
    continue_cursor: String,
}

/// A new document: either `fileId` or `content`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ApiCreateDocumentRequest)]
struct CreateDocumentRequest {
    /// The key holder's own unused upload.
    file_id: Option<String>,
    /// Inline text, at most 32 MiB: readable, never indexed.
    content: Option<String>,
    /// Required for inline text; else the file's name without its ending.
    title: Option<String>,
    /// Media type of inline text (`text/plain`).
    mime_type: Option<String>,
    /// Extension of inline text (`txt`).
    extension: Option<String>,
}

/// What changes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateDocumentRequest {
    /// Another title.
    title: Option<String>,
    /// The `updatedAt` the change was made from.
    expected_updated_at: Option<i64>,
}

/// What came of a retry.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiRetried)]
struct Retried {
    /// `indexing` or `skipped`.
    status: &'static str,
    /// Why nothing was done: `content-only`, `untracked-blob`, `unsupported` or `in-progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'static str>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(read, update, delete))
        .routes(routes!(content))
        .routes(routes!(retry_indexing))
}

/// Documents, newest first.
#[utoipa::path(get, path = "/documents", tag = "documents", security(("key" = [])), params(ListQuery), responses((status = 200, body = DocumentPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 50, "max": 100 }))), operation_id = "list_documents")]
async fn list(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    Query(query): Query<ListQuery>,
) -> Result<Json<DocumentPage>, HttpProblem> {
    let limit = page_size(query.limit, 50, 100);
    let scope = format!("v1.documents:{}", caller.org);
    let after = query.cursor.map(|cursor| app.cursors.open::<Position>(&scope, &cursor)).transpose()?;
    let page = app.knowledge.list_documents(&caller, &DocumentQuery::default(), after, limit).await?;
    Ok(Json(DocumentPage {
        is_done: page.next.is_none(),
        continue_cursor: page.next.map(|next| app.cursors.sign(&scope, &next)).unwrap_or_default(),
        // A list carries no inline text: a page of it could be gigabytes.
        page: page.rows.into_iter().map(|row| Document { content: None, ..row.into() }).collect(),
    }))
}

/// Creates a document from an upload or from inline text.
#[utoipa::path(post, path = "/documents", tag = "documents", security(("key" = [])), request_body = CreateDocumentRequest, responses((status = 201, body = Document), (status = 200, body = Document)), extensions(("x-tale-body-cap" = json!(33_554_432))), operation_id = "create_document")]
async fn create(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    request: Request,
) -> Result<Response, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    // Escapes may make the JSON longer than the text it carries.
    let bytes = body::read_limited(request, MAX_INLINE_BYTES).await?;
    let request: CreateDocumentRequest = body::parse(&bytes)?;
    let content = match (request.file_id, request.content) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid_field("content", "must not be given together with `fileId`").into());
        }
        (None, None) => return Err(Problem::invalid_field("fileId", "is required, or `content`").into()),
        (Some(_), None) if request.mime_type.is_some() => {
            return Err(Problem::invalid_field("mimeType", "belongs to inline text only").into());
        }
        (Some(_), None) if request.extension.is_some() => {
            return Err(Problem::invalid_field("extension", "belongs to inline text only").into());
        }
        (Some(file), None) => NewContent::File(file.parse().map_err(|_| {
            Problem::new(Code::FileNotFound, "There is no such upload, or it was used already. Upload the file again.")
        })?),
        (None, Some(text)) => NewContent::Inline { text, mime_type: request.mime_type, extension: request.extension },
    };
    let (document, created) = app.knowledge.create_document(&caller, content, request.title.as_deref()).await?;
    let location = app.site.path(&format!("/api/v1/documents/{}", document.id));
    let mut response = tagged(&document.into())?;
    if created {
        *response.status_mut() = StatusCode::CREATED;
    }
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&location).map_err(Problem::internal)?);
    Ok(response)
}

/// One document.
#[utoipa::path(get, path = "/documents/{id}", tag = "documents", security(("key" = [])), params(("id" = String, Path)), responses((status = 200, body = Document)), operation_id = "get_document")]
async fn read(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<Json<Document>, HttpProblem> {
    Ok(Json(app.knowledge.document(&caller, document_id(&id)?).await?.into()))
}

/// Changes the title. `If-Match` and `expectedUpdatedAt` guard against changing what one has not
/// seen; both are judged before anything else.
#[utoipa::path(patch, path = "/documents/{id}", tag = "documents", security(("key" = [])), params(("id" = String, Path)), request_body = UpdateDocumentRequest, responses((status = 200, body = Document), (status = 412)), operation_id = "update_document")]
async fn update(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body<UpdateDocumentRequest>,
) -> Result<Response, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    let id = document_id(&id)?;
    let request = body.read()?;
    let if_match = headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
    let guard = |current: &domain::Document| {
        if let Some(list) = if_match {
            let etag = etag_of(&serde_json::to_vec(&Document::from(current.clone())).map_err(Problem::internal)?);
            if !matches_strongly(list, &etag) {
                return Err(Problem::new(
                    Code::PreconditionFailed,
                    "The document has changed since it was read. Read it again, then repeat the change.",
                )
                .with_data(serde_json::json!({ "etag": format!("\"{etag}\"") })));
            }
        }
        match request.expected_updated_at {
            Some(expected) if expected != current.updated_at.timestamp_millis() => Err(Problem::new(
                Code::DocumentStale,
                "The document has changed since it was read. Read it again, then repeat the change.",
            )
            .with_data(serde_json::json!({ "updatedAt": current.updated_at.timestamp_millis() }))),
            _ => Ok(()),
        }
    };
    let document = app.knowledge.update_document(&caller, id, request.title.as_deref(), guard).await?;
    Ok(tagged(&document.into())?)
}

/// Moves a document to the trash: no search shows it from now on.
#[utoipa::path(delete, path = "/documents/{id}", tag = "documents", security(("key" = [])), params(("id" = String, Path)), responses((status = 204)), operation_id = "delete_document")]
async fn delete(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    app.knowledge.delete_document(&caller, document_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The bytes of a document; one byte range is honoured.
#[utoipa::path(get, path = "/documents/{id}/content", tag = "documents", security(("key" = [])), params(("id" = String, Path)), responses((status = 200, content_type = "*/*"), (status = 206), (status = 304), (status = 416)), operation_id = "get_document_content")]
async fn content(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    deliver(&app, &caller, &id, &headers, true).await
}

/// Queues a document for indexing again.
#[utoipa::path(post, path = "/documents/{id}/retry-indexing", tag = "documents", security(("key" = [])), params(("id" = String, Path)), responses((status = 200, body = Retried)), operation_id = "retry_document_indexing")]
async fn retry_indexing(
    State(app): State<App>,
    KeyCaller(caller): KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<Json<Retried>, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    let id = document_id(&id)?;
    app.limits.reindex.take(crate::v1::holder(&caller))?;
    let reason = app.knowledge.retry_indexing(&caller, id).await?.skipped();
    Ok(Json(Retried { status: if reason.is_some() { "skipped" } else { "indexing" }, reason }))
}

/// The document with the tag that a read of it would carry.
fn tagged(document: &Document) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(document).map_err(Problem::internal)?;
    let etag = HeaderValue::from_str(&format!("\"{}\"", etag_of(&bytes))).map_err(Problem::internal)?;
    let mut response = ([(header::CONTENT_TYPE, "application/json")], bytes).into_response();
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

/// Whether an `If-Match` list names the tag; `*` does, a weak tag never.
fn matches_strongly(list: &str, etag: &str) -> bool {
    list.split(',')
        .map(str::trim)
        .any(|entry| entry == "*" || entry.strip_prefix('"').and_then(|entry| entry.strip_suffix('"')) == Some(etag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_tags_never_match() {
        assert!(matches_strongly("\"x\", \"abc\"", "abc") && matches_strongly("*", "abc"));
        assert!(!matches_strongly("W/\"abc\"", "abc") && !matches_strongly("abc", "abc"));
    }
}
