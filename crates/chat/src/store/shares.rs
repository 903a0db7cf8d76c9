//! Statements on `app.thread_shares`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{MessageId, OrgId, ThreadId, UserId};

/// A share link as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct ShareRow {
    pub token: String,
    pub leaf_id: MessageId,
    pub shared_at: DateTime<Utc>,
    pub taken_at: DateTime<Utc>,
}

/// A shared chat as a reader finds it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct SharedRow {
    pub thread_id: ThreadId,
    pub leaf_id: MessageId,
    pub title: Option<String>,
    pub shared_by: String,
    pub taken_at: DateTime<Utc>,
}

pub(crate) async fn find(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> sqlx::Result<Option<ShareRow>> {
    sqlx::query_as(
        "SELECT token, leaf_id, shared_at, taken_at FROM app.thread_shares WHERE org_id = $1 AND thread_id = $2",
    )
    .bind(org)
    .bind(thread)
    .fetch_optional(conn)
    .await
}

/// The chat behind a link, unless it is in the trash.
pub(crate) async fn by_token(conn: &mut PgConnection, org: OrgId, token: &str) -> sqlx::Result<Option<SharedRow>> {
    sqlx::query_as(
        "SELECT s.thread_id, s.leaf_id, s.title, u.name AS shared_by, s.taken_at
           FROM app.thread_shares s
           JOIN app.threads t ON t.org_id = s.org_id AND t.id = s.thread_id
           JOIN app.users u ON u.id = t.owner_user_id
          WHERE s.org_id = $1 AND s.token = $2 AND t.trashed_at IS NULL",
    )
    .bind(org)
    .bind(token)
    .fetch_optional(conn)
    .await
}

/// The last message of the version on screen that is settled, and the chat's title. A turn in
/// flight stays out as a whole.
pub(crate) async fn publishable(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
) -> sqlx::Result<Option<(MessageId, Option<String>)>> {
    sqlx::query_as(
        "SELECT CASE WHEN leaf.status = 'pending' THEN question.parent_id ELSE leaf.id END AS leaf_id, t.title
           FROM app.threads t
           JOIN app.messages leaf ON leaf.org_id = t.org_id AND leaf.thread_id = t.id AND leaf.id = t.active_leaf
           LEFT JOIN app.messages question ON question.org_id = t.org_id AND question.id = leaf.parent_id
          WHERE t.org_id = $1 AND t.id = $2 AND (leaf.status <> 'pending' OR question.parent_id IS NOT NULL)",
    )
    .bind(org)
    .bind(thread)
    .fetch_optional(conn)
    .await
}

/// What a link publishes.
pub(crate) struct Snapshot<'a> {
    pub thread: ThreadId,
    pub leaf: MessageId,
    pub title: Option<&'a str>,
    pub now: DateTime<Utc>,
}

pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    token: &str,
    snapshot: &Snapshot<'_>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.thread_shares (org_id, thread_id, token, title, leaf_id, shared_at, taken_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)",
    )
    .bind(org)
    .bind(snapshot.thread)
    .bind(token)
    .bind(snapshot.title)
    .bind(snapshot.leaf)
    .bind(snapshot.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes the snapshot anew; the token stays.
pub(crate) async fn retake(conn: &mut PgConnection, org: OrgId, snapshot: &Snapshot<'_>) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.thread_shares SET title = $3, leaf_id = $4, taken_at = $5 WHERE org_id = $1 AND thread_id = $2",
    )
    .bind(org)
    .bind(snapshot.thread)
    .bind(snapshot.title)
    .bind(snapshot.leaf)
    .bind(snapshot.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the link. `false` when there was none.
pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> sqlx::Result<bool> {
    let done = sqlx::query("DELETE FROM app.thread_shares WHERE org_id = $1 AND thread_id = $2")
        .bind(org)
        .bind(thread)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Locks the owner's chat, in the trash or not. `None` when it is somebody else's or absent.
pub(crate) async fn lock_owned(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    thread: ThreadId,
) -> sqlx::Result<Option<ThreadId>> {
    sqlx::query_scalar("SELECT id FROM app.threads WHERE org_id = $1 AND id = $2 AND owner_user_id = $3 FOR UPDATE")
        .bind(org)
        .bind(thread)
        .bind(owner)
        .fetch_optional(conn)
        .await
}

/// Whether one of these chats has a link.
pub(crate) async fn any(conn: &mut PgConnection, org: OrgId, threads: &[ThreadId]) -> sqlx::Result<bool> {
    let threads: Vec<uuid::Uuid> = threads.iter().map(|id| id.0).collect();
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.thread_shares WHERE org_id = $1 AND thread_id = ANY($2))")
        .bind(org)
        .bind(threads)
        .fetch_one(conn)
        .await
}
