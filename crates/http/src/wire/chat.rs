//! Chats and messages on the wire.

use serde::Serialize;
use serde_json::Value;
use tale_chat::{Message, Part, Thread, TurnUsage};
use tale_core::ids::{ChunkId, DocumentId, FileId, MessageId, ThreadId};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

use crate::wire::one_of;

fn role_words() -> Object {
    one_of(&["user", "assistant"])
}

fn status_words() -> Object {
    one_of(&["pending", "complete", "cancelled", "failed"])
}

fn finish_words() -> Object {
    one_of(&["stop", "length", "tool-calls", "content-filter", "cancelled", "other"])
}

fn rating_words() -> Object {
    one_of(&["up", "down"])
}

fn effort_words() -> Object {
    let words = ["low", "medium", "high", "extra", "max"];
    let values = words.iter().map(|word| Value::from(*word)).chain([Value::Null]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(values))
        .build()
}

/// A chat. Times are epoch milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Thread)]
pub struct ThreadView {
    id: ThreadId,
    /// `null` until it has one.
    #[schema(required)]
    title: Option<String>,
    archived: bool,
    #[schema(required)]
    archived_at: Option<i64>,
    #[schema(required)]
    pinned_at: Option<i64>,
    created_at: i64,
    /// Last message activity.
    updated_at: i64,
    /// Whether a reply landed that its owner has not looked at.
    unread: bool,
    /// Whether a reply is being written.
    running: bool,
    /// Whether a link publishes a snapshot of it for the organization.
    shared: bool,
    /// Effort of the last turn.
    #[schema(required, schema_with = effort_words)]
    reasoning_effort: Option<String>,
}

impl From<Thread> for ThreadView {
    fn from(thread: Thread) -> Self {
        Self {
            id: thread.id,
            title: thread.title,
            archived: thread.archived_at.is_some(),
            archived_at: thread.archived_at.map(|at| at.timestamp_millis()),
            pinned_at: thread.pinned_at.map(|at| at.timestamp_millis()),
            created_at: thread.created_at.timestamp_millis(),
            updated_at: thread.updated_at.timestamp_millis(),
            unread: thread.unread,
            running: thread.running,
            shared: thread.shared,
            reasoning_effort: thread.reasoning_effort,
        }
    }
}

/// The versions of a turn.
#[derive(Serialize, ToSchema)]
#[schema(as = Versions)]
pub struct VersionsView {
    /// Position of the version on screen, from 0.
    index: usize,
    count: usize,
    /// The first message of each version.
    ids: Vec<MessageId>,
}

/// A piece of a message. More types may come; clients show unknown ones as opaque.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[schema(as = Part)]
pub(crate) enum PartView {
    /// Prose in GitHub-flavoured Markdown. Marks such as `[1]` point to citation parts.
    Text { text: String },
    /// The model's thinking, never the answer.
    Reasoning { text: String },
    /// A file on a user message.
    #[serde(rename_all = "camelCase")]
    Attachment { name: String, media_type: String, file_id: FileId, size_bytes: u64 },
    /// A call of a tool.
    ToolCall {
        id: String,
        name: String,
        /// Parsed arguments, or the raw text when they were no JSON.
        input: Value,
    },
    /// What a tool answered.
    #[serde(rename_all = "camelCase")]
    ToolResult { id: String, name: String, output: Value, is_error: bool },
    /// What a mark in the text points to.
    #[serde(rename_all = "camelCase")]
    Citation {
        /// The number of the mark.
        number: u32,
        /// The cited document; absent for a file that belongs to this chat only.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        document_id: Option<DocumentId>,
        file_id: FileId,
        title: String,
        /// The cited passage, whole.
        passage: String,
        chunk_id: ChunkId,
        /// The page it begins on, from 1, when the format has pages.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        page: Option<u32>,
    },
}

impl From<Part> for PartView {
    fn from(part: Part) -> Self {
        match part {
            Part::Text { text } => Self::Text { text },
            Part::Reasoning { text, blocks: _ } => Self::Reasoning { text },
            Part::Attachment { name, media_type, file_id, size_bytes } => {
                Self::Attachment { name, media_type, file_id, size_bytes }
            }
            Part::ToolCall { id, name, input, vendor: _ } => Self::ToolCall { id, name, input },
            Part::ToolResult { id, name, output, is_error } => Self::ToolResult { id, name, output, is_error },
            Part::Citation { number, document_id, file_id, title, passage, chunk_id, page } => {
                Self::Citation { number, document_id, file_id, title, passage, chunk_id, page }
            }
        }
    }
}

/// Tokens of a whole turn.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub(crate) struct UsageView {
    /// Tokens of all requests, cached ones included.
    input_tokens: u64,
    /// Tokens of all answers, reasoning included.
    output_tokens: u64,
    total_tokens: u64,
    /// The part of the output spent on reasoning, when told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reasoning_tokens: Option<u64>,
    /// The part of the input read from the provider's cache, when told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cached_input_tokens: Option<u64>,
    /// Present when the figures are our estimate because the provider told none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    estimated: bool,
}

impl From<TurnUsage> for UsageView {
    fn from(usage: TurnUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            estimated: usage.estimated,
        }
    }
}

/// A message. Times are epoch milliseconds.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Message)]
pub struct MessageView {
    id: MessageId,
    #[schema(schema_with = role_words)]
    role: String,
    #[schema(schema_with = status_words)]
    status: String,
    /// Empty while the reply is being made.
    parts: Vec<PartView>,
    /// The model that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    provider_slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage: Option<UsageView>,
    /// Why it failed, in readable English.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Why it failed, for branching.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error_code: Option<String>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = finish_words)]
    finish_reason: Option<String>,
    /// Older messages that did not fit into the model's window; absent = none.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    context_dropped_count: i32,
    /// Present when the turn ended at its step limit without an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    step_limit_hit: bool,
    /// Present when a restart of the server cut the reply. `errorCode` is `provider_error` then, although
    /// no provider failed; asking again helps.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    interrupted: bool,
    created_at: i64,
    /// When the model was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    started_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    first_token_at: Option<i64>,
    /// When it was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    done_at: Option<i64>,
    /// On the user message of a turn with more than one version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    versions: Option<VersionsView>,
    /// The reader's own rating.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, schema_with = rating_words)]
    feedback: Option<String>,
    /// Present when the reader left a comment with their rating.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    commented: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// A part as clients read it.
pub(crate) fn part_view(part: &Part) -> Value {
    serde_json::to_value(PartView::from(part.clone())).unwrap_or_default()
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            id: message.id,
            role: message.role,
            status: message.status,
            parts: message.parts.into_iter().map(PartView::from).collect(),
            model: message.model,
            provider_slug: message.provider_slug,
            usage: message.usage.map(UsageView::from),
            error: message.error,
            error_code: message.error_code,
            finish_reason: message.finish_reason,
            context_dropped_count: message.context_dropped_count,
            step_limit_hit: message.step_limit_hit,
            interrupted: message.interrupted,
            created_at: message.created_at.timestamp_millis(),
            started_at: message.started_at.map(|at| at.timestamp_millis()),
            first_token_at: message.first_token_at.map(|at| at.timestamp_millis()),
            done_at: message.done_at.map(|at| at.timestamp_millis()),
            versions: message.versions.map(|versions| VersionsView {
                index: versions.index,
                count: versions.ids.len(),
                ids: versions.ids,
            }),
            feedback: message.feedback,
            commented: message.commented,
        }
    }
}
