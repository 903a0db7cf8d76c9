//! Chat for key holders (spec 91, section 3). A chat over REST is the same chat as in the app.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tale_chat::{
    DeltaKind, Generation, IdempotencyKey, ModelChoice, Owner, Part, SendRequest, SendTo, ThreadPatch, ThreadQuery,
    TurnEvent,
};
use tale_core::crypto::sha256;
use tale_core::ids::{MessageId, ThreadId};
use tale_core::{Code, Problem};
use tale_identity::Capability;
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::chat::{EffortWord, checked_locale, message_id, thread_id};
use crate::body::Body;
use crate::caller::KeyCaller;
use crate::problem::HttpProblem;
use crate::query::{NoQuery, Query, page_size};
use crate::state::App;
use crate::v1::holder;
use crate::wire::chat::{MessageView, ThreadView};
use crate::wire::one_of;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_threads, create_thread))
        .routes(routes!(get_thread, update_thread, delete_thread))
        .routes(routes!(list_messages, send_message))
        .routes(routes!(get_message))
        .routes(routes!(get_generation, cancel_generation))
}

fn order_words() -> Object {
    one_of(&["asc", "desc"])
}

fn effort_words() -> Object {
    one_of(&["low", "medium", "high", "extra", "max"])
}

fn owner_of(caller: &KeyCaller) -> Result<Owner, Problem> {
    caller.0.require(Capability::ChatUse)?;
    Owner::of(&caller.0)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ListParameters {
    /// The archived ones instead.
    archived: Option<bool>,
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–100 (50).
    limit: Option<i64>,
}

/// A page of threads.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadsPage {
    page: Vec<ThreadView>,
    is_done: bool,
    continue_cursor: String,
}

/// The key holder's threads, newest activity first.
#[utoipa::path(get, path = "/threads", tag = "chat", security(("key" = [])), params(ListParameters), responses((status = 200, body = ThreadsPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 50, "max": 100 }))))]
async fn list_threads(
    State(app): State<App>,
    caller: KeyCaller,
    Query(query): Query<ListParameters>,
) -> Result<Json<ThreadsPage>, HttpProblem> {
    let owner = owner_of(&caller)?;
    let query = ThreadQuery {
        archived: query.archived.unwrap_or(false),
        search: None,
        cursor: query.cursor,
        limit: page_size(query.limit, 50, 100),
    };
    let page = app.chat.threads(&owner, &query).await?;
    Ok(Json(ThreadsPage {
        is_done: page.next.is_none(),
        continue_cursor: page.next.unwrap_or_default(),
        page: page.rows.into_iter().map(ThreadView::from).collect(),
    }))
}

/// A thread to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewThread {
    /// 1–120 characters.
    title: Option<String>,
}

/// The id of a new thread.
#[derive(Serialize, ToSchema)]
pub struct ThreadCreated {
    id: ThreadId,
}

/// Creates a thread.
#[utoipa::path(post, path = "/threads", tag = "chat", security(("key" = [])), request_body = NewThread, responses((status = 201, body = ThreadCreated)))]
async fn create_thread(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    body: Body<NewThread>,
) -> Result<Response, HttpProblem> {
    let owner = owner_of(&caller)?;
    let thread = app.chat.create_thread(&owner, body.read()?.title.as_deref()).await?;
    let location = app.site.path(&format!("/api/v1/threads/{}", thread.id));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(ThreadCreated { id: thread.id })).into_response())
}

/// One thread.
#[utoipa::path(get, path = "/threads/{threadId}", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path)), responses((status = 200, body = ThreadView)))]
async fn get_thread(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<Json<ThreadView>, HttpProblem> {
    Ok(Json(app.chat.thread(&owner_of(&caller)?, thread_id(&id)?).await?.into()))
}

/// What changes; at least one field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateThread {
    /// 1–120 characters.
    title: Option<String>,
    archived: Option<bool>,
}

/// Renames or archives a thread.
#[utoipa::path(patch, path = "/threads/{threadId}", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path)), request_body = UpdateThread, responses((status = 200, body = ThreadView)))]
async fn update_thread(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
    body: Body<UpdateThread>,
) -> Result<Json<ThreadView>, HttpProblem> {
    let owner = owner_of(&caller)?;
    let id = thread_id(&id)?;
    app.chat.thread(&owner, id).await?;
    let change = body.read()?;
    if change.title.is_none() && change.archived.is_none() {
        return Err(Problem::invalid_field("", "must name at least one of `title`, `archived`").into());
    }
    let patch = ThreadPatch { title: change.title, archived: change.archived, ..ThreadPatch::default() };
    Ok(Json(app.chat.change_thread(&owner, id, &patch).await?.into()))
}

/// Moves a thread to the trash.
#[utoipa::path(delete, path = "/threads/{threadId}", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path)), responses((status = 204)))]
async fn delete_thread(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.0.require(Capability::ChatClear)?;
    app.chat.delete_thread(&owner_of(&caller)?, thread_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct MessageParameters {
    /// `asc` (the default) or `desc`.
    #[param(schema_with = order_words)]
    order: Option<String>,
    /// Continues a list.
    cursor: Option<String>,
    /// Rows per page, 1–200 (100).
    limit: Option<i64>,
}

/// A page of messages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagesPage {
    page: Vec<MessageView>,
    is_done: bool,
    continue_cursor: String,
}

/// The messages of a thread, oldest first unless `order=desc`.
#[utoipa::path(get, path = "/threads/{threadId}/messages", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path), MessageParameters), responses((status = 200, body = MessagesPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 100, "max": 200 }))))]
async fn list_messages(
    State(app): State<App>,
    caller: KeyCaller,
    Path(id): Path<String>,
    Query(query): Query<MessageParameters>,
) -> Result<Json<MessagesPage>, HttpProblem> {
    let owner = owner_of(&caller)?;
    let id = thread_id(&id)?;
    let newest_first = match query.order.as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(Problem::invalid_query("order", "must be one of \"asc\", \"desc\"").into()),
    };
    let scope = format!("messages:{}:{id}:{newest_first}", owner.org);
    let after = query.cursor.as_deref().map(|cursor| app.cursors.open::<MessageId>(&scope, cursor)).transpose()?;
    let limit = page_size(query.limit, 100, 200) as usize;
    let mut messages = app.chat.messages(&owner, id).await?;
    if newest_first {
        messages.reverse();
    }
    let first = match after {
        Some(last) => messages.iter().position(|message| message.id == last).map_or(messages.len(), |at| at + 1),
        None => 0,
    };
    let more = messages.len() > first + limit;
    let page: Vec<_> = messages.into_iter().skip(first).take(limit).collect();
    let next = page.last().filter(|_| more).map(|message| app.cursors.sign(&scope, &message.id));
    Ok(Json(MessagesPage {
        is_done: next.is_none(),
        continue_cursor: next.unwrap_or_default(),
        page: page.into_iter().map(MessageView::from).collect(),
    }))
}

/// A message to send. The model is never chosen for you: `auto`, which the web app offers, is no model here.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SendMessage {
    /// 1–100,000 characters.
    content: String,
    /// An id of `GET /api/v1/models`.
    model: String,
    /// Needed when two providers serve the model.
    provider_slug: Option<String>,
    /// How hard the model shall think.
    #[schema(required = false, schema_with = effort_words)]
    reasoning_effort: Option<String>,
    /// For the whole turn; at most the model's own ceiling.
    max_output_tokens: Option<u32>,
    /// Language of the answer (BCP 47).
    locale: Option<String>,
}

/// An accepted turn.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageAccepted {
    thread_id: ThreadId,
    /// `accepted`.
    status: &'static str,
    model: String,
    provider_slug: String,
    /// The reply, found in the message list once it is written.
    message_id: MessageId,
    /// Where to follow it.
    poll: String,
    /// Whether this is the remembered answer of an earlier equal request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    duplicate: bool,
}

/// Sends a message; the reply is written detached from this request.
#[utoipa::path(post, path = "/threads/{threadId}/messages", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path), ("Idempotency-Key" = Option<String>, Header)), request_body = SendMessage, responses((status = 202, body = MessageAccepted)))]
async fn send_message(
    State(app): State<App>,
    caller: KeyCaller,
    headers: HeaderMap,
    _: NoQuery,
    Path(id): Path<String>,
    body: Body<SendMessage>,
) -> Result<(StatusCode, Json<MessageAccepted>), HttpProblem> {
    let owner = owner_of(&caller)?;
    app.limits.starting_work.take(holder(&caller.0))?;
    let id = thread_id(&id)?;
    app.chat.thread(&owner, id).await?;
    let body = body.read()?;
    let key = idempotency_key(&headers, &body)?;
    let auto = body.model == "auto";
    let request = SendRequest {
        content: body.content,
        model: ModelChoice::Named { model: body.model, provider: body.provider_slug },
        effort: body.reasoning_effort.as_deref().map(effort).transpose()?,
        max_output_tokens: body.max_output_tokens,
        attachments: Vec::new(),
        locale: checked_locale(body.locale)?,
    };
    let sent = match key {
        Some(key) => app.chat.send_once(&owner, id, request, &key).await,
        None => app.chat.send(&owner, SendTo::Thread(id), request).await.map(|accepted| (accepted, false)),
    };
    let (accepted, duplicate) = sent.map_err(|problem| match problem.code {
        Code::ChatModelUnknown if auto => Problem::new(
            Code::ChatModelUnknown,
            "No model is chosen for you here, so there is no \u{201c}auto\u{201d}. Name a model of GET /api/v1/models.",
        ),
        _ => problem,
    })?;
    Ok((
        StatusCode::ACCEPTED,
        Json(MessageAccepted {
            thread_id: accepted.thread_id,
            status: "accepted",
            model: accepted.model,
            provider_slug: accepted.provider_slug,
            message_id: accepted.message_id,
            poll: format!("/api/v1/threads/{}/generation", accepted.thread_id),
            duplicate,
        }),
    ))
}

fn effort(word: &str) -> Result<tale_models::wire::Effort, Problem> {
    serde_json::from_value::<EffortWord>(json!(word)).map(Into::into).map_err(|_| {
        Problem::invalid_field("reasoningEffort", "must be one of \"low\", \"medium\", \"high\", \"extra\", \"max\"")
    })
}

/// The key of an idempotent send: 1–255 printable ASCII characters after trimming (API-70).
fn idempotency_key(headers: &HeaderMap, body: &SendMessage) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().map(str::trim).unwrap_or_default();
    if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(Problem::new(
            Code::InvalidHeader,
            "The header `Idempotency-Key` must have 1 to 255 printable ASCII characters.",
        ));
    }
    let canonical = serde_json::to_vec(body).map_err(Problem::internal)?;
    Ok(Some(IdempotencyKey { key: key.to_owned(), body_hash: sha256(&canonical) }))
}

/// One message.
#[utoipa::path(get, path = "/threads/{threadId}/messages/{messageId}", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path), ("messageId" = MessageId, Path)), responses((status = 200, body = MessageView)))]
async fn get_message(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    Path((id, message)): Path<(String, String)>,
) -> Result<Json<MessageView>, HttpProblem> {
    Ok(Json(app.chat.message(&owner_of(&caller)?, thread_id(&id)?, message_id(&message)?).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GenerationParameters {
    /// How much of the text the client holds, in UTF-16 code units.
    since: Option<u64>,
    /// How much of the reasoning the client holds, in UTF-16 code units.
    reasoning_since: Option<u64>,
    /// `1`: as server-sent events.
    stream: Option<String>,
}

/// What a thread is doing. A client follows the text with `held = held[..textOffset] + text`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
#[schema(as = Generation)]
enum GenerationView {
    /// Accepted; waits for its turn.
    #[serde(rename_all = "camelCase")]
    Queued { message_id: MessageId },
    /// The reply is being written. Offsets and lengths count UTF-16 code units.
    #[serde(rename_all = "camelCase")]
    Streaming {
        message_id: MessageId,
        /// The text from `textOffset` on.
        text: String,
        text_offset: u64,
        text_length: u64,
        reasoning: String,
        reasoning_offset: u64,
        reasoning_length: u64,
        cancel_requested: bool,
        updated_at: i64,
    },
    /// Nothing runs.
    #[serde(rename_all = "camelCase")]
    Idle {
        /// The reply that ended last.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        last_message_id: Option<MessageId>,
        /// How it ended: `complete`, `cancelled` or `failed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        last_status: Option<String>,
    },
}

/// What the thread is doing: `queued`, `streaming` with the text from `since` on, or `idle`. With
/// `stream=1` the same objects follow as server-sent events until the turn is over.
#[utoipa::path(get, path = "/threads/{threadId}/generation", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path), GenerationParameters), responses((status = 200, content((GenerationView = "application/json"), (String = "text/event-stream")))))]
async fn get_generation(
    State(app): State<App>,
    caller: KeyCaller,
    Path(id): Path<String>,
    Query(query): Query<GenerationParameters>,
) -> Result<Response, HttpProblem> {
    let owner = owner_of(&caller)?;
    let id = thread_id(&id)?;
    let now = app.clock.now_ms();
    let state = generation_view(
        app.chat.generation(&owner, id).await?,
        query.since.unwrap_or(0),
        query.reasoning_since.unwrap_or(0),
        now,
    );
    match query.stream.as_deref() {
        None | Some("0") => Ok(Json(state).into_response()),
        Some("1") => Ok(stream_generation(app, owner, id)),
        Some(_) => Err(Problem::invalid_query("stream", "must be 1").into()),
    }
}

/// The generation as events named `generation`, each with only what is new since the last.
fn stream_generation(app: App, owner: Owner, id: ThreadId) -> Response {
    let event = |state: &GenerationView| {
        let data = serde_json::to_string(state).unwrap_or_default();
        Ok::<_, std::convert::Infallible>(Event::default().event("generation").data(data))
    };
    let events = async_stream::stream! {
        let mut watch = Watched::default();
        let mut turn = Box::pin(app.chat.follow(owner.org, id));
        while let Some(happened) = turn.next().await {
            if let Some(state) = watch.next(&happened, app.clock.now_ms()) {
                yield event(&state);
            }
        }
        if let Ok(state) = app.chat.generation(&owner, id).await {
            yield event(&generation_view(state, 0, 0, app.clock.now_ms()));
        }
    };
    Sse::new(events).keep_alive(axum::response::sse::KeepAlive::new()).into_response()
}

/// Follows a turn's events in the offsets of the poll.
#[derive(Default)]
struct Watched {
    parts: Vec<Part>,
    text: u64,
    reasoning: u64,
}

impl Watched {
    fn next(&mut self, event: &TurnEvent, now: i64) -> Option<GenerationView> {
        let message = match event {
            TurnEvent::Snapshot { message, status, parts } => {
                if *status == tale_chat::TurnStatus::Queued {
                    return Some(GenerationView::Queued { message_id: *message });
                }
                self.parts = parts.to_vec();
                message
            }
            TurnEvent::Delta { message, kind, index, text } => {
                self.parts.resize(self.parts.len().max(*index + 1), Part::text(""));
                match (&mut self.parts[*index], kind) {
                    (Part::Text { text: held }, DeltaKind::Text)
                    | (Part::Reasoning { text: held, .. }, DeltaKind::Reasoning) => held.push_str(text),
                    (slot, DeltaKind::Text) => *slot = Part::text(&**text),
                    (slot, DeltaKind::Reasoning) => {
                        *slot = Part::Reasoning { text: text.to_string(), blocks: Vec::new() }
                    }
                }
                message
            }
            TurnEvent::Part { message, index, part } => {
                self.parts.resize(self.parts.len().max(*index + 1), Part::text(""));
                self.parts[*index] = Part::clone(part);
                message
            }
            TurnEvent::Settled { .. } => return None,
        };
        let view = streaming_view(*message, &self.parts, false, (self.text, self.reasoning), now);
        if let GenerationView::Streaming { text_length, reasoning_length, .. } = &view {
            (self.text, self.reasoning) = (*text_length, *reasoning_length);
        }
        Some(view)
    }
}

/// The state as it is polled. Offsets count UTF-16 code units (RES-33).
fn generation_view(state: Generation, since: u64, reasoning_since: u64, now: i64) -> GenerationView {
    match state {
        Generation::Idle { last } => {
            let (last_message_id, last_status) = last.unzip();
            GenerationView::Idle { last_message_id, last_status }
        }
        Generation::Queued { message } => GenerationView::Queued { message_id: message },
        Generation::Streaming { message, parts, cancel_requested } => {
            streaming_view(message, &parts, cancel_requested, (since, reasoning_since), now)
        }
    }
}

/// A running reply, from the two offsets on.
fn streaming_view(
    message_id: MessageId,
    parts: &[Part],
    cancel_requested: bool,
    since: (u64, u64),
    updated_at: i64,
) -> GenerationView {
    let joined = |wanted: fn(&Part) -> Option<&str>| parts.iter().filter_map(wanted).collect::<Vec<_>>().join("\n\n");
    let text = joined(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    let reasoning = joined(|part| match part {
        Part::Reasoning { text, .. } => Some(text),
        _ => None,
    });
    let (text, text_offset, text_length) = from_offset(&text, since.0);
    let (reasoning, reasoning_offset, reasoning_length) = from_offset(&reasoning, since.1);
    GenerationView::Streaming {
        message_id,
        text: text.to_owned(),
        text_offset,
        text_length,
        reasoning: reasoning.to_owned(),
        reasoning_offset,
        reasoning_length,
        cancel_requested,
        updated_at,
    }
}

/// The text from `since` UTF-16 code units on, the offset it really starts at and the whole length:
/// one lower when it would split a surrogate pair, 0 when the text is shorter (it was reset).
fn from_offset(text: &str, since: u64) -> (&str, u64, u64) {
    let length: u64 = text.chars().map(|c| c.len_utf16() as u64).sum();
    if since > length {
        return (text, 0, length);
    }
    let mut units = 0u64;
    for (at, c) in text.char_indices() {
        let next = units + c.len_utf16() as u64;
        if next > since {
            return (&text[at..], units, length);
        }
        units = next;
    }
    ("", length, length)
}

/// A reply that is being stopped.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Stopping)]
pub struct Cancelling {
    status: &'static str,
    message_id: MessageId,
}

/// Stops the reply that is being written.
#[utoipa::path(delete, path = "/threads/{threadId}/generation", tag = "chat", security(("key" = [])), params(("threadId" = ThreadId, Path)), responses((status = 202, body = Cancelling)))]
async fn cancel_generation(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    Path(id): Path<String>,
) -> Result<Response, HttpProblem> {
    let message_id = app.chat.stop(&owner_of(&caller)?, thread_id(&id)?).await?;
    let mut response = (StatusCode::ACCEPTED, Json(Cancelling { status: "cancelling", message_id })).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_utf16_and_never_split_a_pair() {
        assert_eq!(from_offset("a😀b", 0), ("a😀b", 0, 4));
        assert_eq!(from_offset("a😀b", 1), ("😀b", 1, 4));
        assert_eq!(from_offset("a😀b", 2), ("😀b", 1, 4));
        assert_eq!(from_offset("a😀b", 3), ("b", 3, 4));
        assert_eq!(from_offset("a😀b", 4), ("", 4, 4));
        assert_eq!(from_offset("a😀b", 9), ("a😀b", 0, 4));
    }
}
