//! The statement that opens a turn.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Json;
use tale_core::ids::{MessageId, OrgId, ThreadId};
use tale_db::hints::{self, Hint};
use uuid::Uuid;

use crate::parts::Part;

/// A question and the reply that will answer it.
pub(crate) struct Opening<'a> {
    pub question: MessageId,
    pub reply: MessageId,
    pub org: OrgId,
    pub thread: ThreadId,
    pub parent: Option<MessageId>,
    pub parts: &'a [Part],
    pub search_text: &'a str,
    pub model: &'a str,
    pub provider_slug: &'a str,
    pub effort: Option<&'a str>,
    /// The process that runs the turn.
    pub owner: Uuid,
    /// Who hears of it once the transaction commits.
    pub hints: &'a [Hint],
    pub now: DateTime<Utc>,
}

/// Stores the question and its pending reply, takes the chat's one place for a turn, moves the chat
/// on and tells who listens: one statement, because each round trip delays the first token. `false`
/// when another turn holds the place; the transaction must not be committed then.
pub(crate) async fn open(conn: &mut PgConnection, opening: &Opening<'_>) -> sqlx::Result<bool> {
    let (claimed, _told): (i64, i64) = sqlx::query_as(
        "WITH pair AS (
             INSERT INTO app.messages (id, org_id, thread_id, parent_id, role, status, parts, search_text, model,
                                       provider_slug, created_at, done_at)
             VALUES ($3, $1, $2, $5, 'user', 'complete', $6, $7, NULL, NULL, $10, $10),
                    ($4, $1, $2, $3, 'assistant', 'pending', '[]'::jsonb, '', $8, $9, $10, NULL)
         ), place AS (
             INSERT INTO app.generations (thread_id, org_id, message_id, owner, status, created_at, heartbeat_at)
             VALUES ($2, $1, $4, $11, 'queued', $10, clock_timestamp())
             ON CONFLICT (thread_id) DO NOTHING
             RETURNING thread_id
         ), moved AS (
             UPDATE app.threads
                SET active_leaf = $4, reasoning_effort = $12, updated_at = $10, unread = false
              WHERE org_id = $1 AND id = $2
         )
         SELECT (SELECT count(*) FROM place),
                (SELECT count(pg_notify($13, payload)) FROM unnest($14::text[]) AS payload)",
    )
    .bind(opening.org)
    .bind(opening.thread)
    .bind(opening.question)
    .bind(opening.reply)
    .bind(opening.parent)
    .bind(Json(opening.parts))
    .bind(opening.search_text)
    .bind(opening.model)
    .bind(opening.provider_slug)
    .bind(opening.now)
    .bind(opening.owner)
    .bind(opening.effort)
    .bind(hints::CHANNEL)
    .bind(hints::payloads(opening.hints)?)
    .fetch_one(conn)
    .await?;
    Ok(claimed == 1)
}
