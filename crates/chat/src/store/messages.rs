//! Statements on `app.messages`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Json;
use tale_core::ids::{MessageId, OrgId, ThreadId};

use crate::parts::{Part, TurnUsage};

/// A message as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct MessageRow {
    pub id: MessageId,
    pub parent_id: Option<MessageId>,
    pub role: String,
    pub status: String,
    pub parts: Json<Vec<Part>>,
    pub model: Option<String>,
    pub provider_slug: Option<String>,
    pub usage: Option<Json<TurnUsage>>,
    pub error: Option<String>,
    pub error_code: Option<String>,
    pub finish_reason: Option<String>,
    pub context_dropped_count: i32,
    pub step_limit_hit: bool,
    pub interrupted: bool,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub first_token_at: Option<DateTime<Utc>>,
    pub done_at: Option<DateTime<Utc>>,
}

/// The messages from the first one to `leaf`, oldest first.
pub(crate) async fn path(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    leaf: MessageId,
) -> sqlx::Result<Vec<MessageRow>> {
    sqlx::query_as(
        "WITH RECURSIVE path AS (
             SELECT m.id, m.parent_id, 0 AS depth FROM app.messages m
              WHERE m.org_id = $1 AND m.thread_id = $2 AND m.id = $3
             UNION ALL
             SELECT m.id, m.parent_id, path.depth + 1
               FROM app.messages m JOIN path ON m.id = path.parent_id
              WHERE m.org_id = $1 AND m.thread_id = $2
         )
         SELECT m.id, m.parent_id, m.role, m.status, m.parts, m.model, m.provider_slug, m.usage, m.error, m.error_code,
                m.finish_reason, m.context_dropped_count, m.step_limit_hit, m.interrupted, m.created_at, m.started_at, m.first_token_at, m.done_at
           FROM path JOIN app.messages m ON m.id = path.id
          ORDER BY path.depth DESC",
    )
    .bind(org)
    .bind(thread)
    .bind(leaf)
    .fetch_all(conn)
    .await
}

pub(crate) async fn find(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    id: MessageId,
) -> sqlx::Result<Option<MessageRow>> {
    sqlx::query_as(
        "SELECT id, parent_id, role, status, parts, model, provider_slug, usage, error, error_code,
                finish_reason, context_dropped_count, step_limit_hit, interrupted, created_at, started_at, first_token_at, done_at
           FROM app.messages WHERE org_id = $1 AND thread_id = $2 AND id = $3",
    )
    .bind(org)
    .bind(thread)
    .bind(id)
    .fetch_optional(conn)
    .await
}

/// Every user message of a chat with its parent, in order of creation: the versions of its turns.
pub(crate) async fn user_messages(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
) -> sqlx::Result<Vec<(MessageId, Option<MessageId>)>> {
    sqlx::query_as("SELECT id, parent_id FROM app.messages WHERE org_id = $1 AND thread_id = $2 AND role = 'user' ORDER BY created_at, id")
        .bind(org)
        .bind(thread)
        .fetch_all(conn)
        .await
}

/// The newest message below `id`, following the newest child each time; `id` itself when it has none.
pub(crate) async fn newest_leaf(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    id: MessageId,
) -> sqlx::Result<MessageId> {
    sqlx::query_scalar(
        "WITH RECURSIVE down AS (
             SELECT $3::uuid AS id, 0 AS depth
             UNION ALL
             SELECT child.id, down.depth + 1 FROM down CROSS JOIN LATERAL (
                 SELECT m.id FROM app.messages m
                  WHERE m.org_id = $1 AND m.thread_id = $2 AND m.parent_id = down.id
                  ORDER BY m.created_at DESC, m.id DESC LIMIT 1
             ) child
         )
         SELECT id FROM down ORDER BY depth DESC LIMIT 1",
    )
    .bind(org)
    .bind(thread)
    .bind(id)
    .fetch_one(conn)
    .await
}

/// The end of a reply.
pub(crate) struct Settlement<'a> {
    pub status: &'a str,
    pub parts: &'a [Part],
    pub search_text: &'a str,
    pub usage: Option<TurnUsage>,
    pub error: Option<&'a str>,
    pub error_code: Option<&'a str>,
    pub finish_reason: Option<&'a str>,
    pub context_dropped: i32,
    pub step_limit_hit: bool,
    /// Whether a restart or a lost process cut it.
    pub interrupted: bool,
    pub started_at: Option<DateTime<Utc>>,
    pub first_token_at: Option<DateTime<Utc>>,
    pub now: DateTime<Utc>,
}

pub(crate) async fn settle(
    conn: &mut PgConnection,
    org: OrgId,
    id: MessageId,
    end: &Settlement<'_>,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.messages
            SET status = $3, parts = $4, search_text = $5, usage = $6, error = $7, error_code = $8, finish_reason = $9,
                context_dropped_count = $10, step_limit_hit = $11, started_at = COALESCE($12, started_at),
                first_token_at = COALESCE($13, first_token_at), done_at = $14, interrupted = $15
          WHERE org_id = $1 AND id = $2 AND status = 'pending'",
    )
    .bind(org)
    .bind(id)
    .bind(end.status)
    .bind(Json(end.parts))
    .bind(end.search_text)
    .bind(end.usage.map(Json))
    .bind(end.error)
    .bind(end.error_code)
    .bind(end.finish_reason)
    .bind(end.context_dropped)
    .bind(end.step_limit_hit)
    .bind(end.started_at)
    .bind(end.first_token_at)
    .bind(end.now)
    .bind(end.interrupted)
    .execute(conn)
    .await?;
    Ok(())
}

/// Copies the path that ends in `leaf` into another chat. Returns the copy of `leaf`.
pub(crate) async fn copy_path(
    conn: &mut PgConnection,
    org: OrgId,
    from: ThreadId,
    leaf: MessageId,
    to: ThreadId,
) -> sqlx::Result<Option<MessageId>> {
    let rows = path(&mut *conn, org, from, leaf).await?;
    let mut parent = None;
    for row in rows {
        let id = MessageId::new();
        sqlx::query(
            "INSERT INTO app.messages (id, org_id, thread_id, parent_id, role, status, parts, search_text, model, provider_slug, usage,
                                       error, error_code, finish_reason, context_dropped_count, step_limit_hit, interrupted,
                                       created_at, started_at, first_token_at, done_at)
             SELECT $4, org_id, $3, $5, role, status, parts, search_text, model, provider_slug, usage,
                    error, error_code, finish_reason, context_dropped_count, step_limit_hit, interrupted,
                    created_at, started_at, first_token_at, done_at
               FROM app.messages WHERE org_id = $1 AND id = $2",
        )
        .bind(org)
        .bind(row.id)
        .bind(to)
        .bind(id)
        .bind(parent)
        .execute(&mut *conn)
        .await?;
        parent = Some(id);
    }
    Ok(parent)
}
