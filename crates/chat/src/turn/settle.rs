//! The end of a turn, in one transaction: the reply, the chat's state, the audit entry, the hint,
//! and the place for the next turn.

use std::time::Duration;

use serde_json::json;
use tale_core::Actor;
use tale_core::ids::UserId;
use tale_db::hints::{self, Hint, Topic};
use tale_governance::audit::{self, AuditEntry};
use tale_models::wire::ModelErrorCode;

use super::live::LiveTurn;
use super::run::Book;
use crate::parts::{Part, Status, readable};
use crate::service::Inner;
use crate::store::{generations, messages, threads};

/// First pause between attempts to store an end; doubles up to [`RETRY_MAX`]. A database that is
/// away is waited for as long as the process lives: until then the text is only in memory.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// Longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Attempts when the database answers, but refuses: trying again for ever would not help.
const REFUSALS_MAX: u32 = 5;

/// How a turn ended.
pub(crate) struct Ending {
    pub status: Status,
    pub finish_reason: Option<&'static str>,
    pub error_code: Option<ModelErrorCode>,
    pub error: Option<String>,
    pub step_limit_hit: bool,
    /// Whether we cut it ourselves, by a restart.
    pub interrupted: bool,
}

impl Ending {
    pub(crate) fn complete(reason: &'static str, step_limit_hit: bool) -> Self {
        Self {
            status: Status::Complete,
            finish_reason: Some(reason),
            error_code: None,
            error: None,
            step_limit_hit,
            interrupted: false,
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self {
            status: Status::Cancelled,
            finish_reason: Some("cancelled"),
            error_code: None,
            error: None,
            step_limit_hit: false,
            interrupted: false,
        }
    }

    /// Cut by the end of this process. The code is the one that CHT-78 gives lost turns.
    pub(crate) fn interrupted() -> Self {
        Self {
            interrupted: true,
            ..Self::failed(ModelErrorCode::ProviderError, super::heartbeat::RESTARTED.to_owned())
        }
    }

    pub(crate) fn failed(code: ModelErrorCode, message: String) -> Self {
        Self {
            status: Status::Failed,
            finish_reason: None,
            error_code: Some(code),
            error: Some(message),
            step_limit_hit: false,
            interrupted: false,
        }
    }
}

/// Stores the end and tells everybody. A database that is away is waited for.
pub(crate) async fn settle(chat: &Inner, turn: &LiveTurn, user: UserId, ending: Ending, book: &Book) {
    let (mut pause, mut refusals) = (RETRY_MIN, 0);
    while let Err(error) = store(chat, turn, user, &ending, book).await {
        if pause == RETRY_MIN {
            tracing::warn!(thread = %turn.thread, message = %turn.message, %error, "the end of a turn could not be stored, trying until it can");
        }
        refusals += u32::from(refuses(&error));
        if refusals == REFUSALS_MAX {
            // Its row is left to the look for lost turns, which has what the last beat wrote.
            tracing::error!(thread = %turn.thread, message = %turn.message, %error, "the end of a turn could not be stored");
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
    chat.live.remove(turn);
    turn.settled(ending.status);
}

/// The parts of the reply as they stay.
fn final_parts(turn: &LiveTurn, book: &Book) -> Vec<Part> {
    let mut parts = turn.parts();
    // A call that was announced but never completed says nothing.
    parts.retain(|part| !matches!(part, Part::ToolCall { input: serde_json::Value::Null, .. }));
    let citations = book.citations.lock().unwrap_or_else(std::sync::PoisonError::into_inner).resolve(&parts);
    parts.extend(citations);
    parts
}

/// Whether the database understood and said no. Lost connections, shutdowns, full disks and
/// conflicts pass.
fn refuses(error: &sqlx::Error) -> bool {
    let passing = ["08", "40", "53", "55", "57", "58", "XX"];
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| !passing.iter().any(|class| code.starts_with(class)))
}

async fn store(chat: &Inner, turn: &LiveTurn, user: UserId, ending: &Ending, book: &Book) -> sqlx::Result<bool> {
    let now = chat.clock.now();
    let timing = turn.timing();
    let mut tx = chat.db.begin().await?;
    if !generations::release(&mut tx, turn.org, turn.thread, turn.message, chat.owner).await? {
        // Somebody else settled it while we could not be heard.
        return Ok(false);
    }
    // Copied only now: of turns that wait for a connection nothing is held twice.
    let parts = &final_parts(turn, book);
    messages::settle(
        &mut tx,
        turn.org,
        turn.message,
        &messages::Settlement {
            status: ending.status.text(),
            parts,
            search_text: &readable(parts),
            usage: book.usage,
            error: ending.error.as_deref(),
            error_code: ending.error_code.map(ModelErrorCode::text),
            finish_reason: ending.finish_reason,
            context_dropped: i32::try_from(book.dropped).unwrap_or(i32::MAX),
            step_limit_hit: ending.step_limit_hit,
            interrupted: ending.interrupted,
            started_at: timing.started_at,
            first_token_at: timing.first_token_at,
            now,
        },
    )
    .await?;
    threads::mark_answered(&mut tx, turn.org, turn.thread, ending.status != Status::Cancelled, now).await?;
    if !book.tools.is_empty() {
        let calls: Vec<_> =
            book.tools.iter().map(|(name, subject)| json!({ "tool": name, "subject": subject })).collect();
        audit::record(
            &mut tx,
            &AuditEntry {
                org: Some(turn.org),
                actor: Actor::User { id: user },
                action: "chat.tools_called",
                category: "data",
                resource_type: "thread",
                resource_id: Some(turn.thread.to_string()),
                details: json!({ "messageId": turn.message, "calls": calls }),
                at: now,
            },
        )
        .await?;
    }
    announce(&mut tx, turn, user).await?;
    tx.commit().await?;
    chat.parked.notify_one();
    Ok(true)
}

async fn announce(conn: &mut sqlx::PgConnection, turn: &LiveTurn, user: UserId) -> sqlx::Result<()> {
    let hint = |topic| Hint { org: turn.org, topic, id: Some(turn.thread.0), user: Some(user) };
    hints::notify_all(conn, &[hint(Topic::Thread), hint(Topic::Threads)]).await
}
