//! The library of documents.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::ids::ChunkId;
use tale_core::{Code, Problem};
use tale_identity::{Caller, Capability};
use tale_knowledge::contents;
use tale_knowledge::documents::{self as domain, DocumentQuery, NewContent};
use tale_knowledge::order::{DocumentOrder, Position, SortBy};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::documents::{Author, Indexing, Status, document_id, judged, with_bytes};
use crate::problem::HttpProblem;
use crate::query::{Query, page_size};
use crate::state::App;

/// Characters of extracted text in an answer when no limit is given.
const TEXT_CHARS: u64 = 50_000;

/// A document of the library.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[schema(format = Uuid)]
    id: String,
    title: String,
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

/// Which documents to list.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Part of the title or the file's name.
    search: Option<String>,
    /// Only those in this state.
    #[param(inline)]
    status: Option<Status>,
    /// What counts for the order (`added`).
    #[param(inline)]
    sort: Option<Sort>,
    /// `desc`, but `asc` by name, when absent.
    #[param(inline)]
    order: Option<Order>,
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–100 (50).
    limit: Option<i64>,
}

/// What a list is ordered by.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    /// When they were added.
    Added,
    /// The title, without regard to case and accents.
    Name,
    /// The size in bytes.
    Size,
}

/// Which end of the order comes first.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// The oldest, first or smallest.
    Asc,
    /// The newest, last or largest.
    Desc,
}

impl ListQuery {
    fn order(&self) -> DocumentOrder {
        let by = match self.sort {
            None | Some(Sort::Added) => SortBy::Added,
            Some(Sort::Name) => SortBy::Name,
            Some(Sort::Size) => SortBy::Size,
        };
        DocumentOrder { by, ascending: self.order.map_or(by == SortBy::Name, |order| order == Order::Asc) }
    }
}

/// A page of documents, in the order that was asked for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DocumentPage {
    page: Vec<Document>,
    is_done: bool,
    /// Empty on the last page.
    continue_cursor: String,
    /// How many match on all pages.
    total: u64,
    search_mode: SearchMode,
}

/// What the organization's search goes by.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum SearchMode {
    /// By words alone: there is no embedding model.
    Keywords,
    /// By words and by meaning.
    Hybrid,
}

/// An upload to register.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateDocumentRequest {
    /// The caller's own upload.
    file_id: String,
    /// The file's name without its ending when absent.
    title: Option<String>,
}

/// A new title.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RenameRequest {
    title: String,
}

/// What came of a retry.
#[derive(Serialize, ToSchema)]
struct Retried {
    /// `indexing` or `skipped`.
    status: &'static str,
    /// Why nothing was done: `content-only`, `untracked-blob`, `unsupported` or `in-progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'static str>,
}

/// How to deliver the bytes.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContentQuery {
    /// `1`: as a download.
    download: Option<u8>,
}

/// Which stretch of text.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TextQuery {
    /// Where to begin, in Unicode scalar values (0).
    offset: Option<u64>,
    /// How much, 1–200,000 (50,000).
    limit: Option<i64>,
}

/// A stretch of extracted text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextPart {
    text: String,
    /// Length of the whole text in Unicode scalar values.
    total_length: u64,
    /// Where the next stretch begins.
    #[schema(required)]
    next_offset: Option<u64>,
}

/// A passage in its document.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Passage {
    #[schema(format = Uuid)]
    chunk_id: String,
    passage: String,
    /// Title and enclosing headings.
    header: String,
    /// The page it begins on, from 1.
    #[schema(required)]
    page: Option<u32>,
    /// Where it begins in the extracted text, in Unicode scalar values.
    start: u64,
    /// Where it ends, exclusive.
    end: u64,
}

impl TextQuery {
    /// Where to begin and how much, in Unicode scalar values.
    pub(super) fn window(&self) -> (u64, u64) {
        let limit = self.limit.map_or(TEXT_CHARS, |limit| u64::try_from(limit.max(1)).unwrap_or(TEXT_CHARS));
        (self.offset.unwrap_or_default(), limit)
    }
}

impl From<contents::TextPart> for TextPart {
    fn from(part: contents::TextPart) -> Self {
        Self { text: part.text, total_length: part.total_length, next_offset: part.next_offset }
    }
}

impl IntoResponse for TextPart {
    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, "private, no-cache")], Json(self)).into_response()
    }
}

impl From<contents::Passage> for Passage {
    fn from(passage: contents::Passage) -> Self {
        Self {
            chunk_id: passage.chunk_id.to_string(),
            passage: passage.passage,
            header: passage.header,
            page: passage.page,
            start: passage.start,
            end: passage.end,
        }
    }
}

/// Reads a passage's id from a path; anything else names no passage.
pub(super) fn chunk_id(text: &str) -> Result<ChunkId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::PassageNotFound, "There is no such passage in this document."))
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(read, rename, delete))
        .routes(routes!(restore))
        .routes(routes!(retry_indexing))
        .routes(routes!(content))
        .routes(routes!(text))
        .routes(routes!(passage))
}

fn scope(caller: &Caller, query: &DocumentQuery) -> String {
    format!("app.documents:{}:{:?}:{:?}:{:?}", caller.org, query.search, query.status, query.order)
}

/// Documents, newest first unless another order is asked for.
#[utoipa::path(get, path = "/api/app/documents", tag = "documents", params(("orgId" = Option<String>, Query), ListQuery), responses((status = 200, body = DocumentPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 50, "max": 100 }))), operation_id = "list_documents")]
async fn list(
    State(app): State<App>,
    Member(caller): Member,
    Query(query): Query<ListQuery>,
) -> Result<Json<DocumentPage>, HttpProblem> {
    let limit = page_size(query.limit, 50, 100);
    let filter = DocumentQuery {
        order: query.order(),
        search: query.search.map(|text| text.trim().to_owned()),
        status: query.status.map(Into::into),
    };
    let scope = scope(&caller, &filter);
    let after = query.cursor.map(|cursor| app.cursors.open::<Position>(&scope, &cursor)).transpose()?;
    let page = app.knowledge.list_documents(&caller, &filter, after, limit).await?;
    let total = app.knowledge.count_documents(&caller, &filter).await?;
    let search_mode =
        if app.models.embedding(caller.org).await?.is_some() { SearchMode::Hybrid } else { SearchMode::Keywords };
    Ok(Json(DocumentPage {
        is_done: page.next.is_none(),
        continue_cursor: page.next.map(|next| app.cursors.sign(&scope, &next)).unwrap_or_default(),
        page: page.rows.into_iter().map(Document::from).collect(),
        total,
        search_mode,
    }))
}

/// Registers an upload as a document. The same upload again answers 200 with the same document.
#[utoipa::path(post, path = "/api/app/documents", tag = "documents", params(("orgId" = Option<String>, Query)), request_body = CreateDocumentRequest, responses((status = 201, body = Document), (status = 200, body = Document)), operation_id = "create_document")]
async fn create(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<CreateDocumentRequest>,
) -> Result<(StatusCode, Json<Document>), HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    let request = body.read()?;
    let file = request.file_id.parse().map_err(|_| {
        Problem::new(Code::FileNotFound, "There is no such upload, or it was used already. Upload the file again.")
    })?;
    let (document, created) =
        app.knowledge.create_document(&caller, NewContent::File(file), request.title.as_deref()).await?;
    Ok((if created { StatusCode::CREATED } else { StatusCode::OK }, Json(document.into())))
}

/// One document.
#[utoipa::path(get, path = "/api/app/documents/{id}", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Document)), operation_id = "read_document")]
async fn read(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<Document>, HttpProblem> {
    Ok(Json(app.knowledge.document(&caller, document_id(&id)?).await?.into()))
}

/// Gives a document another title.
#[utoipa::path(patch, path = "/api/app/documents/{id}", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = RenameRequest, responses((status = 200, body = Document)), operation_id = "rename_document")]
async fn rename(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<RenameRequest>,
) -> Result<Json<Document>, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    let id = document_id(&id)?;
    let request = body.read()?;
    Ok(Json(app.knowledge.update_document(&caller, id, Some(&request.title), |_| Ok(())).await?.into()))
}

/// Moves a document to the trash: no search shows it from now on. It can be restored for 30 days.
#[utoipa::path(delete, path = "/api/app/documents/{id}", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "delete_document")]
async fn delete(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    app.knowledge.delete_document(&caller, document_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings a document back from the trash.
#[utoipa::path(post, path = "/api/app/documents/{id}/restore", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Document)), operation_id = "restore_document")]
async fn restore(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<Document>, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    Ok(Json(app.knowledge.restore_document(&caller, document_id(&id)?).await?.into()))
}

/// Queues a document for indexing again.
#[utoipa::path(post, path = "/api/app/documents/{id}/retry-indexing", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Retried)), operation_id = "retry_document_indexing")]
async fn retry_indexing(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<Retried>, HttpProblem> {
    caller.require(Capability::KnowledgeWrite)?;
    app.limits.reindex.take(crate::v1::holder(&caller))?;
    let reason = app.knowledge.retry_indexing(&caller, document_id(&id)?).await?.skipped();
    Ok(Json(Retried { status: if reason.is_some() { "skipped" } else { "indexing" }, reason }))
}

/// The bytes of a document; one byte range is honoured.
#[utoipa::path(get, path = "/api/app/documents/{id}/content", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query), ContentQuery), responses((status = 200, content_type = "*/*"), (status = 206), (status = 304), (status = 416)), operation_id = "read_document_content")]
async fn content(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    deliver(&app, &caller, &id, &headers, query.download == Some(1)).await
}

/// Answers a request for a document's bytes; both doors do it alike.
pub(crate) async fn deliver(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    attachment: bool,
) -> Result<Response, HttpProblem> {
    let id = document_id(id)?;
    let about = app.knowledge.content_about(caller, id).await?;
    let range = match judged(headers, &about) {
        Ok(range) => range,
        Err(response) => return Ok(*response),
    };
    Ok(with_bytes(app.knowledge.open_content(caller, id, range.clone()).await?, range, attachment))
}

/// A stretch of a document's extracted text.
#[utoipa::path(get, path = "/api/app/documents/{id}/text", tag = "documents", params(("id" = String, Path), ("orgId" = Option<String>, Query), TextQuery), responses((status = 200, body = TextPart)), operation_id = "read_document_text")]
async fn text(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<TextQuery>,
) -> Result<Response, HttpProblem> {
    let (offset, limit) = query.window();
    let part = app.knowledge.text(&caller, document_id(&id)?, offset, limit).await?;
    Ok(TextPart::from(part).into_response())
}

/// A passage, as a citation opens it.
#[utoipa::path(get, path = "/api/app/documents/{id}/passages/{chunkId}", tag = "documents", params(("id" = String, Path), ("chunkId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = Passage)), operation_id = "read_document_passage")]
async fn passage(
    State(app): State<App>,
    Member(caller): Member,
    Path((id, chunk)): Path<(String, String)>,
) -> Result<Json<Passage>, HttpProblem> {
    let passage = app.knowledge.passage(&caller, document_id(&id)?, chunk_id(&chunk)?).await?;
    Ok(Json(passage.into()))
}
