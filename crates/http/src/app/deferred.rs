//! Messages of a chat that wait for their attachments.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use tale_chat::{Abandoned, DeferredSend, SendTo};
use tale_core::ids::{DeferredSendId, FileId, ThreadId};
use tale_core::{Code, Problem};
use utoipa::ToSchema;
use utoipa::openapi::schema::Object;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::chat::{SendBody, owner_of, thread_id};
use crate::app::composer::AttachmentView;
use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;
use crate::wire::one_of;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(start_deferred_chat))
        .routes(routes!(list_deferred_sends, defer_send))
        .routes(routes!(abandon_deferred_send))
        .routes(routes!(drop_deferred_attachment))
        .routes(routes!(retry_deferred_attachment))
}

fn state_words() -> Object {
    one_of(&["waiting", "held", "refused"])
}

/// Why a parked message was not accepted at its turn.
#[derive(Serialize, ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    /// For branching; a code as of any other refused send.
    code: String,
    /// In readable English.
    message: String,
}

/// A message that waits for its attachments. Times are epoch milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeferredSend)]
pub struct DeferredView {
    id: DeferredSendId,
    thread_id: ThreadId,
    /// `waiting` goes by itself; `held` has an attachment that could not be read; `refused` was not
    /// accepted at its turn.
    #[schema(schema_with = state_words)]
    state: &'static str,
    /// Place in the queue of the chat, from 1.
    position: usize,
    content: String,
    attachments: Vec<AttachmentView>,
    /// The attachments that are not ready.
    waiting_for: Vec<FileId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    refusal: Option<RefusalView>,
    created_at: i64,
}

impl From<DeferredSend> for DeferredView {
    fn from(parked: DeferredSend) -> Self {
        Self {
            id: parked.id,
            thread_id: parked.thread,
            state: parked.state.text(),
            position: parked.position,
            content: parked.content,
            attachments: parked.attachments.into_iter().map(AttachmentView::from).collect(),
            waiting_for: parked.waiting_for,
            refusal: parked.refusal.map(|(code, message)| RefusalView { code, message }),
            created_at: parked.created_at.timestamp_millis(),
        }
    }
}

/// The messages of a chat that wait.
#[derive(Serialize, ToSchema)]
#[schema(as = DeferredSends)]
pub struct DeferredList {
    sends: Vec<DeferredView>,
}

/// What the composer gets back.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AbandonedSend)]
pub struct AbandonedView {
    content: String,
    /// They can go with another message for an hour.
    attachments: Vec<AttachmentView>,
    /// Whether the chat is gone: it was made for this message and held nothing else.
    thread_deleted: bool,
}

impl From<Abandoned> for AbandonedView {
    fn from(abandoned: Abandoned) -> Self {
        Self {
            content: abandoned.content,
            attachments: abandoned.attachments.into_iter().map(AttachmentView::from).collect(),
            thread_deleted: abandoned.thread_deleted,
        }
    }
}

type ParkedAnswer = Result<(StatusCode, Json<DeferredView>), HttpProblem>;

/// Parks the first message of a new chat until its attachments are ready.
#[utoipa::path(post, path = "/api/app/chat/threads/new/deferred-sends", tag = "app: chat", params(("orgId" = Option<String>, Query)), request_body = SendBody, responses((status = 202, body = DeferredView)))]
async fn start_deferred_chat(State(app): State<App>, member: Member, body: Body<SendBody>) -> ParkedAnswer {
    let owner = owner_of(&member)?;
    let parked = app.chat.park(&owner, SendTo::New, body.read()?.request()?).await?;
    Ok((StatusCode::ACCEPTED, Json(parked.into())))
}

/// The messages that wait for their attachments, in the order in which they will go.
#[utoipa::path(get, path = "/api/app/chat/threads/{id}/deferred-sends", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = DeferredList)))]
async fn list_deferred_sends(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<DeferredList>, HttpProblem> {
    let parked = app.chat.parked(&owner_of(&member)?, thread_id(&id)?).await?;
    Ok(Json(DeferredList { sends: parked.into_iter().map(DeferredView::from).collect() }))
}

/// Parks a message until its attachments are ready and the messages parked before it are sent. At
/// most 10 wait in a chat, each with at most 20 attachments.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/deferred-sends", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = SendBody, responses((status = 202, body = DeferredView)))]
async fn defer_send(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<SendBody>,
) -> ParkedAnswer {
    let owner = owner_of(&member)?;
    let id = thread_id(&id)?;
    let parked = app.chat.park(&owner, SendTo::Thread(id), body.read()?.request()?).await?;
    Ok((StatusCode::ACCEPTED, Json(parked.into())))
}

/// Takes a parked message back.
#[utoipa::path(delete, path = "/api/app/chat/threads/{id}/deferred-sends/{sendId}", tag = "app: chat", params(("id" = ThreadId, Path), ("sendId" = DeferredSendId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = AbandonedView)))]
async fn abandon_deferred_send(
    State(app): State<App>,
    member: Member,
    Path((id, parked)): Path<(String, String)>,
) -> Result<Json<AbandonedView>, HttpProblem> {
    let owner = owner_of(&member)?;
    Ok(Json(app.chat.abandon(&owner, thread_id(&id)?, deferred_id(&parked)?).await?.into()))
}

/// Takes an attachment off a parked message.
#[utoipa::path(delete, path = "/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}", tag = "app: chat", params(("id" = ThreadId, Path), ("sendId" = DeferredSendId, Path), ("fileId" = FileId, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn drop_deferred_attachment(
    State(app): State<App>,
    member: Member,
    Path((id, parked, file)): Path<(String, String, String)>,
) -> Result<StatusCode, HttpProblem> {
    let owner = owner_of(&member)?;
    app.chat.drop_attachment(&owner, thread_id(&id)?, deferred_id(&parked)?, file_id(&file)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Has an attachment of a parked message read again.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}/retry", tag = "app: chat", params(("id" = ThreadId, Path), ("sendId" = DeferredSendId, Path), ("fileId" = FileId, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn retry_deferred_attachment(
    State(app): State<App>,
    member: Member,
    Path((id, parked, file)): Path<(String, String, String)>,
) -> Result<StatusCode, HttpProblem> {
    let owner = owner_of(&member)?;
    app.chat.retry_attachment(&owner, thread_id(&id)?, deferred_id(&parked)?, file_id(&file)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An id in the path; a malformed one names nothing.
fn deferred_id(text: &str) -> Result<DeferredSendId, Problem> {
    text.parse().map_err(|_| tale_chat::deferred::gone())
}

pub(crate) fn file_id(text: &str) -> Result<FileId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::FileNotFound, "There is no such file."))
}
