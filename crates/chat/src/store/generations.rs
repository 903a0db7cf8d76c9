//! Statements on `app.generations`: the turn in flight of a chat.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Json;
use tale_core::ids::{MessageId, OrgId, ThreadId};
use uuid::Uuid;

use crate::parts::{Part, TurnUsage};

/// A turn in flight as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct GenerationRow {
    pub org_id: OrgId,
    pub thread_id: ThreadId,
    pub message_id: MessageId,
    pub status: String,
    pub cancel_requested: bool,
    pub parts: Json<Vec<Part>>,
    pub usage: Option<Json<TurnUsage>>,
    pub heartbeat_at: DateTime<Utc>,
}

pub(crate) async fn find(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> sqlx::Result<Option<GenerationRow>> {
    sqlx::query_as(
        "SELECT org_id, thread_id, message_id, status, cancel_requested, parts, usage, heartbeat_at
           FROM app.generations WHERE org_id = $1 AND thread_id = $2",
    )
    .bind(org)
    .bind(thread)
    .fetch_optional(conn)
    .await
}

/// Asks the turn to stop. Returns the reply's id, or nothing when no turn runs.
pub(crate) async fn request_cancel(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
) -> sqlx::Result<Option<MessageId>> {
    sqlx::query_scalar(
        "UPDATE app.generations SET cancel_requested = true WHERE org_id = $1 AND thread_id = $2 RETURNING message_id",
    )
    .bind(org)
    .bind(thread)
    .fetch_optional(conn)
    .await
}

/// What a heartbeat writes, one entry a turn.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    pub threads: Vec<Uuid>,
    pub statuses: Vec<&'static str>,
    /// The parts as JSON; nothing when they are stored as they are.
    pub parts: Vec<Option<String>>,
}

/// The heartbeat of turns of one process in one statement, across organizations, with what they
/// have streamed. Returns the chats whose turn shall stop.
pub(crate) async fn beat(conn: &mut PgConnection, owner: Uuid, beats: Beats) -> sqlx::Result<Vec<ThreadId>> {
    let rows: Vec<(ThreadId, bool)> = sqlx::query_as(
        "UPDATE app.generations g
            SET heartbeat_at = clock_timestamp(), status = beat.status, parts = COALESCE(beat.parts::jsonb, g.parts)
           FROM unnest($2::uuid[], $3::text[], $4::text[]) AS beat (thread_id, status, parts)
          WHERE g.thread_id = beat.thread_id AND g.owner = $1
      RETURNING g.thread_id, g.cancel_requested",
    )
    .bind(owner)
    .bind(beats.threads)
    .bind(beats.statuses)
    .bind(beats.parts)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().filter(|(_, cancel)| *cancel).map(|(thread, _)| thread).collect())
}

/// Ends the turn of a process. `false` when it no longer holds the place.
pub(crate) async fn release(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    message: MessageId,
    owner: Uuid,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "DELETE FROM app.generations WHERE org_id = $1 AND thread_id = $2 AND message_id = $3 AND owner = $4",
    )
    .bind(org)
    .bind(thread)
    .bind(message)
    .bind(owner)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Turns of every organization that gave no sign of life for `seconds`, oldest first.
pub(crate) async fn stale(conn: &mut PgConnection, seconds: f64) -> sqlx::Result<Vec<GenerationRow>> {
    sqlx::query_as(
        "SELECT org_id, thread_id, message_id, status, cancel_requested, parts, usage, heartbeat_at
           FROM app.generations
          WHERE heartbeat_at <= clock_timestamp() - make_interval(secs => $1)
          ORDER BY heartbeat_at LIMIT 200",
    )
    .bind(seconds)
    .fetch_all(conn)
    .await
}

/// Turns of every organization, whichever process runs them, with a sign of life in the last `seconds`.
pub(crate) async fn in_flight(conn: &mut PgConnection, seconds: f64) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "SELECT count(*) FROM app.generations WHERE heartbeat_at > clock_timestamp() - make_interval(secs => $1)",
    )
    .bind(seconds)
    .fetch_one(conn)
    .await
}

/// Takes over a turn whose process is gone, if it still shows the heartbeat that was seen.
pub(crate) async fn reap(conn: &mut PgConnection, row: &GenerationRow) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "DELETE FROM app.generations WHERE org_id = $1 AND thread_id = $2 AND message_id = $3 AND heartbeat_at = $4",
    )
    .bind(row.org_id)
    .bind(row.thread_id)
    .bind(row.message_id)
    .bind(row.heartbeat_at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
