//! Chats and messages on the wire.

use serde::Serialize;
use serde_json::Value;
use tale_chat::{Message, Part, Thread, TurnUsage};
use tale_core::ids::{MessageId, ThreadId};
use utoipa::ToSchema;

/// A chat.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadView {
    id: ThreadId,
    title: Option<String>,
    archived: bool,
    archived_at: Option<i64>,
    pinned_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
    unread: bool,
    running: bool,
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
            reasoning_effort: thread.reasoning_effort,
        }
    }
}

/// The versions of a turn.
#[derive(Serialize, ToSchema)]
pub struct VersionsView {
    /// Position of the version on screen, from 0.
    index: usize,
    count: usize,
    /// The first message of each version.
    ids: Vec<MessageId>,
}

/// A message. `parts` is a list of objects with a `type`; unknown types must be tolerated.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageView {
    id: MessageId,
    role: String,
    status: String,
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    usage: Option<TurnUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    context_dropped_count: i32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    step_limit_hit: bool,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_token_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<VersionsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// A part as clients read it.
pub(crate) fn part_view(part: &Part) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            id: message.id,
            role: message.role,
            status: message.status,
            parts: message.parts.iter().map(part_view).collect(),
            model: message.model,
            provider_slug: message.provider_slug,
            usage: message.usage,
            error: message.error,
            error_code: message.error_code,
            finish_reason: message.finish_reason,
            context_dropped_count: message.context_dropped_count,
            step_limit_hit: message.step_limit_hit,
            created_at: message.created_at.timestamp_millis(),
            started_at: message.started_at.map(|at| at.timestamp_millis()),
            first_token_at: message.first_token_at.map(|at| at.timestamp_millis()),
            done_at: message.done_at.map(|at| at.timestamp_millis()),
            versions: message.versions.map(|versions| VersionsView { index: versions.index, count: versions.ids.len(), ids: versions.ids }),
            feedback: message.feedback,
        }
    }
}
