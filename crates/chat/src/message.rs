//! Messages as clients see them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use tale_core::ids::MessageId;
use tale_core::{Code, Problem};

use crate::parts::{Part, TurnUsage};
use crate::store::feedback::RatingRow;
use crate::store::messages::MessageRow;

/// A message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// `user` or `assistant`.
    pub role: String,
    /// `pending`, `complete`, `cancelled` or `failed`.
    pub status: String,
    /// The content; empty while the reply is being made.
    pub parts: Vec<Part>,
    /// The model that answered.
    pub model: Option<String>,
    /// Its provider.
    pub provider_slug: Option<String>,
    /// Tokens of the turn.
    pub usage: Option<TurnUsage>,
    /// Why it failed, in readable English.
    pub error: Option<String>,
    /// Why it failed, for branching (spec 50, section 15).
    pub error_code: Option<String>,
    /// Why the model stopped.
    pub finish_reason: Option<String>,
    /// Older messages that did not fit into the window.
    pub context_dropped_count: i32,
    /// Whether the turn ended at its step limit without an answer.
    pub step_limit_hit: bool,
    /// Whether a restart or a lost process of ours cut the reply. Its error code is `provider_error`,
    /// although no provider failed (CHT-78).
    pub interrupted: bool,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When the model was called.
    pub started_at: Option<DateTime<Utc>>,
    /// When the first word came.
    pub first_token_at: Option<DateTime<Utc>>,
    /// When it was settled.
    pub done_at: Option<DateTime<Utc>>,
    /// The versions of the turn this user message begins, when there is more than one.
    pub versions: Option<Versions>,
    /// The reader's own rating, `up` or `down`.
    pub feedback: Option<String>,
    /// Whether the reader left a comment with it. Its text is for owners and admins (CHT-139).
    pub commented: bool,
}

/// The versions of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Position of this one, from 0.
    pub index: usize,
    /// The first message of each version, in order of creation.
    pub ids: Vec<MessageId>,
}

/// The answer for absent and foreign messages alike.
pub(crate) fn not_found() -> Problem {
    Problem::new(Code::MessageNotFound, "This message does not exist in this chat.")
}

/// Rows of a path as messages. `turns`: every user message of the chat with its parent.
pub(crate) fn view(
    rows: Vec<MessageRow>,
    turns: &[(MessageId, Option<MessageId>)],
    ratings: &[RatingRow],
) -> Vec<Message> {
    let mut versions: HashMap<Option<MessageId>, Vec<MessageId>> = HashMap::new();
    for (id, parent) in turns {
        versions.entry(*parent).or_default().push(*id);
    }
    rows.into_iter()
        .map(|row| {
            let siblings = versions.get(&row.parent_id).filter(|ids| row.role == "user" && ids.len() > 1);
            let rating = ratings.iter().find(|rating| rating.message_id == row.id);
            let versions = siblings
                .and_then(|ids| Some(Versions { index: ids.iter().position(|id| *id == row.id)?, ids: ids.clone() }));
            Message {
                id: row.id,
                status: row.status,
                parts: row.parts.0.into_iter().map(Part::public).collect(),
                model: row.model,
                provider_slug: row.provider_slug,
                usage: row.usage.map(|usage| usage.0),
                error: row.error,
                error_code: row.error_code,
                finish_reason: row.finish_reason,
                context_dropped_count: row.context_dropped_count,
                step_limit_hit: row.step_limit_hit,
                interrupted: row.interrupted,
                created_at: row.created_at,
                started_at: row.started_at,
                first_token_at: row.first_token_at,
                done_at: row.done_at,
                versions,
                feedback: rating.map(|rating| rating.rating.clone()),
                commented: rating.is_some_and(|rating| rating.commented),
                role: row.role,
            }
        })
        .collect()
}
