//! Chat in the browser: threads, messages, turns.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_chat::{Accepted, BulkResult, ModelChoice, Owner, Rating, SendRequest, SendTo, ThreadPatch, ThreadQuery};
use tale_core::Problem;
use tale_core::ids::{FileId, MessageId, ThreadId};
use tale_identity::Capability;
use tale_models::wire::Effort;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::{Query, page_size};
use crate::state::App;
use crate::wire::chat::{MessageView, ThreadView};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_chats, create_chat))
        .routes(routes!(archive_all_chats))
        .routes(routes!(delete_all_chats))
        .routes(routes!(start_chat))
        .routes(routes!(read_chat, change_chat, delete_chat))
        .routes(routes!(restore_chat))
        .routes(routes!(list_chat_messages, send_chat_message))
        .routes(routes!(stop_chat_turn))
        .routes(routes!(edit_chat_message))
        .routes(routes!(retry_chat_message))
        .routes(routes!(switch_chat_version))
        .routes(routes!(fork_chat))
        .routes(routes!(rate_chat_message))
        .routes(routes!(export_chat))
}

/// The person behind the call, if their role may chat.
pub(crate) fn owner_of(member: &Member) -> Result<Owner, Problem> {
    owner_for(member, Capability::ChatUse)
}

/// The person behind the call, if their role holds `act`.
fn owner_for(member: &Member, act: Capability) -> Result<Owner, Problem> {
    member.0.require(act)?;
    Owner::of(&member.0)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ListParameters {
    /// The archived ones instead.
    archived: Option<bool>,
    /// Words of the title.
    search: Option<String>,
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–100 (50).
    limit: Option<i64>,
}

/// A page of chats.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadPage {
    page: Vec<ThreadView>,
    is_done: bool,
    continue_cursor: String,
}

/// The person's chats, newest activity first.
#[utoipa::path(get, path = "/api/app/chat/threads", tag = "app: chat", params(("orgId" = Option<String>, Query), ListParameters), responses((status = 200, body = ThreadPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 50, "max": 100 }))))]
async fn list_chats(
    State(app): State<App>,
    member: Member,
    Query(query): Query<ListParameters>,
) -> Result<Json<ThreadPage>, HttpProblem> {
    let owner = owner_of(&member)?;
    let query = ThreadQuery {
        archived: query.archived.unwrap_or(false),
        search: query.search,
        cursor: query.cursor,
        limit: page_size(query.limit, 50, 100),
    };
    let page = app.chat.threads(&owner, &query).await?;
    Ok(Json(ThreadPage {
        is_done: page.next.is_none(),
        continue_cursor: page.next.unwrap_or_default(),
        page: page.rows.into_iter().map(ThreadView::from).collect(),
    }))
}

/// A chat to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateThreadRequest)]
pub struct CreateThread {
    title: Option<String>,
}

/// Creates an empty chat.
#[utoipa::path(post, path = "/api/app/chat/threads", tag = "app: chat", params(("orgId" = Option<String>, Query)), request_body = CreateThread, responses((status = 201, body = ThreadView)))]
async fn create_chat(
    State(app): State<App>,
    member: Member,
    body: Body<CreateThread>,
) -> Result<(StatusCode, Json<ThreadView>), HttpProblem> {
    let owner = owner_of(&member)?;
    let thread = app.chat.create_thread(&owner, body.read()?.title.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(thread.into())))
}

/// What an act on all chats reached.
#[derive(Serialize, ToSchema)]
#[schema(as = BulkResult)]
pub struct BulkView {
    changed: u64,
    skipped: u64,
}

impl From<BulkResult> for BulkView {
    fn from(result: BulkResult) -> Self {
        Self { changed: result.changed, skipped: result.skipped }
    }
}

/// Archives all open chats of the person.
#[utoipa::path(post, path = "/api/app/chat/threads/archive-all", tag = "app: chat", params(("orgId" = Option<String>, Query)), responses((status = 200, body = BulkView)))]
async fn archive_all_chats(State(app): State<App>, member: Member) -> Result<Json<BulkView>, HttpProblem> {
    Ok(Json(app.chat.archive_all(&owner_for(&member, Capability::ChatClear)?).await?.into()))
}

/// Moves all chats of the person to the trash.
#[utoipa::path(post, path = "/api/app/chat/threads/delete-all", tag = "app: chat", params(("orgId" = Option<String>, Query)), responses((status = 200, body = BulkView)))]
async fn delete_all_chats(State(app): State<App>, member: Member) -> Result<Json<BulkView>, HttpProblem> {
    Ok(Json(app.chat.delete_all(&owner_for(&member, Capability::ChatClear)?).await?.into()))
}

/// How hard the model shall think.
#[derive(Deserialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
#[schema(as = ReasoningEffort)]
pub enum EffortWord {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    Extra,
    /// As much as it can.
    Max,
}

impl From<EffortWord> for Effort {
    fn from(word: EffortWord) -> Self {
        match word {
            EffortWord::Low => Self::Low,
            EffortWord::Medium => Self::Medium,
            EffortWord::High => Self::High,
            EffortWord::Extra => Self::Extra,
            EffortWord::Max => Self::Max,
        }
    }
}

/// A message to send.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = SendRequest)]
pub struct SendBody {
    content: String,
    /// A model id, or `auto`.
    model: String,
    provider_slug: Option<String>,
    reasoning_effort: Option<EffortWord>,
    #[serde(default)]
    attachments: Vec<FileId>,
    locale: Option<String>,
}

impl SendBody {
    pub(crate) fn request(self) -> Result<SendRequest, Problem> {
        Ok(SendRequest {
            content: self.content,
            model: model_choice(self.model, self.provider_slug),
            effort: self.reasoning_effort.map(Effort::from),
            max_output_tokens: None,
            attachments: self.attachments,
            locale: checked_locale(self.locale)?,
        })
    }
}

fn model_choice(model: String, provider: Option<String>) -> ModelChoice {
    if model == "auto" && provider.is_none() { ModelChoice::Auto } else { ModelChoice::Named { model, provider } }
}

/// A language tag: letters, digits and hyphens, at most 35 characters (RFC 5646).
pub(crate) fn checked_locale(locale: Option<String>) -> Result<Option<String>, Problem> {
    match locale {
        Some(tag)
            if tag.is_empty() || tag.len() > 35 || !tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') =>
        {
            Err(Problem::invalid_field("locale", "must be a language tag such as \"en\" or \"de-AT\""))
        }
        other => Ok(other),
    }
}

/// A turn that was accepted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Accepted)]
pub struct AcceptedView {
    thread_id: ThreadId,
    user_message_id: MessageId,
    message_id: MessageId,
    model: String,
    provider_slug: String,
}

impl From<Accepted> for AcceptedView {
    fn from(accepted: Accepted) -> Self {
        Self {
            thread_id: accepted.thread_id,
            user_message_id: accepted.user_message_id,
            message_id: accepted.message_id,
            model: accepted.model,
            provider_slug: accepted.provider_slug,
        }
    }
}

type AcceptedAnswer = Result<(StatusCode, Json<AcceptedView>), HttpProblem>;

/// Sends the first message of a new chat.
#[utoipa::path(post, path = "/api/app/chat/threads/new/messages", tag = "app: chat", params(("orgId" = Option<String>, Query)), request_body = SendBody, responses((status = 202, body = AcceptedView)))]
async fn start_chat(State(app): State<App>, member: Member, body: Body<SendBody>) -> AcceptedAnswer {
    let owner = owner_of(&member)?;
    let accepted = app.chat.send(&owner, SendTo::New, body.read()?.request()?).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// One chat.
#[utoipa::path(get, path = "/api/app/chat/threads/{id}", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = ThreadView)))]
async fn read_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<ThreadView>, HttpProblem> {
    Ok(Json(app.chat.thread(&owner_of(&member)?, thread_id(&id)?).await?.into()))
}

/// What changes; fields left out stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeThreadRequest)]
pub struct ChangeThread {
    title: Option<String>,
    archived: Option<bool>,
    pinned: Option<bool>,
    unread: Option<bool>,
}

/// Renames, archives, pins or marks a chat.
#[utoipa::path(patch, path = "/api/app/chat/threads/{id}", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = ChangeThread, responses((status = 200, body = ThreadView)))]
async fn change_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<ChangeThread>,
) -> Result<Json<ThreadView>, HttpProblem> {
    let owner = owner_of(&member)?;
    let change = body.read()?;
    let patch =
        ThreadPatch { title: change.title, archived: change.archived, pinned: change.pinned, unread: change.unread };
    Ok(Json(app.chat.change_thread(&owner, thread_id(&id)?, &patch).await?.into()))
}

/// Moves a chat to the trash.
#[utoipa::path(delete, path = "/api/app/chat/threads/{id}", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn delete_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    app.chat.delete_thread(&owner_for(&member, Capability::ChatClear)?, thread_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a chat out of the trash.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/restore", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = ThreadView)))]
async fn restore_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<ThreadView>, HttpProblem> {
    Ok(Json(app.chat.restore_thread(&owner_of(&member)?, thread_id(&id)?).await?.into()))
}

/// The messages of the version on screen.
#[derive(Serialize, ToSchema)]
pub struct MessageList {
    messages: Vec<MessageView>,
}

/// The messages of the version on screen, oldest first.
#[utoipa::path(get, path = "/api/app/chat/threads/{id}/messages", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = MessageList)))]
async fn list_chat_messages(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Json<MessageList>, HttpProblem> {
    let messages = app.chat.messages(&owner_of(&member)?, thread_id(&id)?).await?;
    Ok(Json(MessageList { messages: messages.into_iter().map(MessageView::from).collect() }))
}

/// Sends a message; the reply is written detached from this request.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/messages", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = SendBody, responses((status = 202, body = AcceptedView)))]
async fn send_chat_message(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<SendBody>,
) -> AcceptedAnswer {
    let owner = owner_of(&member)?;
    let accepted = app.chat.send(&owner, SendTo::Thread(thread_id(&id)?), body.read()?.request()?).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// The reply that is being stopped.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Stopping)]
pub struct StoppingView {
    status: &'static str,
    message_id: MessageId,
}

/// Stops the reply that is being written.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/stop", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), responses((status = 202, body = StoppingView)))]
async fn stop_chat_turn(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<StoppingView>), HttpProblem> {
    let message_id = app.chat.stop(&owner_of(&member)?, thread_id(&id)?).await?;
    Ok((StatusCode::ACCEPTED, Json(StoppingView { status: "cancelling", message_id })))
}

/// Asks with other words, as a new version of the turn.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/messages/{mid}/edit", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query), ("mid" = MessageId, Path)), request_body = SendBody, responses((status = 202, body = AcceptedView)))]
async fn edit_chat_message(
    State(app): State<App>,
    member: Member,
    Path((id, message)): Path<(String, String)>,
    body: Body<SendBody>,
) -> AcceptedAnswer {
    let owner = owner_of(&member)?;
    let accepted = app.chat.edit(&owner, thread_id(&id)?, message_id(&message)?, body.read()?.request()?).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// Who shall answer again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RetryRequest)]
pub struct RetryBody {
    model: Option<String>,
    provider_slug: Option<String>,
    reasoning_effort: Option<EffortWord>,
    locale: Option<String>,
}

/// Asks the same again, as a new version of the turn.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/messages/{mid}/retry", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query), ("mid" = MessageId, Path)), request_body = RetryBody, responses((status = 202, body = AcceptedView)))]
async fn retry_chat_message(
    State(app): State<App>,
    member: Member,
    Path((id, message)): Path<(String, String)>,
    body: Body<RetryBody>,
) -> AcceptedAnswer {
    let owner = owner_of(&member)?;
    let body = body.read()?;
    let model = model_choice(body.model.unwrap_or_else(|| "auto".to_owned()), body.provider_slug);
    let effort = body.reasoning_effort.map(Effort::from);
    let accepted = app
        .chat
        .retry(&owner, thread_id(&id)?, message_id(&message)?, model, effort, checked_locale(body.locale)?)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// The message whose version shall be shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamedMessage {
    message_id: MessageId,
}

/// Shows another version of a turn.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/versions", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = NamedMessage, responses((status = 200, body = MessageList)))]
async fn switch_chat_version(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<NamedMessage>,
) -> Result<Json<MessageList>, HttpProblem> {
    let owner = owner_of(&member)?;
    let id = thread_id(&id)?;
    app.chat.switch_version(&owner, id, body.read()?.message_id).await?;
    let messages = app.chat.messages(&owner, id).await?;
    Ok(Json(MessageList { messages: messages.into_iter().map(MessageView::from).collect() }))
}

/// Copies the chat up to a reply into a new one.
#[utoipa::path(post, path = "/api/app/chat/threads/{id}/fork", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query)), request_body = NamedMessage, responses((status = 201, body = ThreadView)))]
async fn fork_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    body: Body<NamedMessage>,
) -> Result<(StatusCode, Json<ThreadView>), HttpProblem> {
    let owner = owner_of(&member)?;
    let thread = app.chat.fork(&owner, thread_id(&id)?, body.read()?.message_id).await?;
    Ok((StatusCode::CREATED, Json(thread.into())))
}

/// A rating.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Rating)]
pub enum RatingWord {
    /// Helpful.
    Up,
    /// Not helpful.
    Down,
}

/// A rating with its comment; `null` withdraws it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FeedbackRequest)]
pub struct FeedbackBody {
    rating: Option<RatingWord>,
    comment: Option<String>,
}

/// Rates a reply.
#[utoipa::path(put, path = "/api/app/chat/threads/{id}/messages/{mid}/feedback", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query), ("mid" = MessageId, Path)), request_body = FeedbackBody, responses((status = 204)))]
async fn rate_chat_message(
    State(app): State<App>,
    member: Member,
    Path((id, message)): Path<(String, String)>,
    body: Body<FeedbackBody>,
) -> Result<StatusCode, HttpProblem> {
    let owner = owner_for(&member, Capability::ChatRate)?;
    let body = body.read()?;
    let rating = body.rating.map(|word| match word {
        RatingWord::Up => Rating::Up,
        RatingWord::Down => Rating::Down,
    });
    app.chat.rate(&owner, thread_id(&id)?, message_id(&message)?, rating, body.comment.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ExportParameters {
    /// `markdown`.
    format: Option<String>,
    /// Only these messages, separated by commas.
    messages: Option<String>,
}

/// The chat as a Markdown file.
#[utoipa::path(get, path = "/api/app/chat/threads/{id}/export", tag = "app: chat", params(("id" = ThreadId, Path), ("orgId" = Option<String>, Query), ExportParameters), responses((status = 200, body = String, content_type = "text/markdown")))]
async fn export_chat(
    State(app): State<App>,
    member: Member,
    Path(id): Path<String>,
    Query(query): Query<ExportParameters>,
) -> Result<Response, HttpProblem> {
    let owner = owner_of(&member)?;
    if query.format.as_deref().is_some_and(|format| format != "markdown") {
        return Err(Problem::invalid_query("format", "must be \"markdown\"").into());
    }
    let only = query
        .messages
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .filter(|id| !id.is_empty())
        .map(message_id)
        .collect::<Result<Vec<_>, _>>()?;
    let text = app.chat.export_markdown(&owner, thread_id(&id)?, &only).await?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"chat.md\""));
    Ok((headers, text).into_response())
}

/// An id in the path; a malformed one names nothing.
pub(crate) fn thread_id(text: &str) -> Result<ThreadId, Problem> {
    text.parse()
        .map_err(|_| Problem::new(tale_core::Code::ThreadNotFound, "This chat does not exist, or it is not yours."))
}

pub(crate) fn message_id(text: &str) -> Result<MessageId, Problem> {
    text.parse()
        .map_err(|_| Problem::new(tale_core::Code::MessageNotFound, "This message does not exist in this chat."))
}
