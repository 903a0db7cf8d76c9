//! Statements on `app.message_feedback`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{MessageId, OrgId, ThreadId, UserId};

/// A person's rating of a reply.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct RatingRow {
    pub message_id: MessageId,
    pub rating: String,
    pub commented: bool,
}

/// The person's ratings of the messages of a chat.
pub(crate) async fn ratings(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    user: UserId,
) -> sqlx::Result<Vec<RatingRow>> {
    sqlx::query_as(
        "SELECT f.message_id, f.rating, f.comment IS NOT NULL AS commented FROM app.message_feedback f JOIN app.messages m ON m.id = f.message_id
          WHERE m.org_id = $1 AND m.thread_id = $2 AND f.user_id = $3",
    )
    .bind(org)
    .bind(thread)
    .bind(user)
    .fetch_all(conn)
    .await
}

pub(crate) struct Feedback<'a> {
    pub message: MessageId,
    pub user: UserId,
    pub rating: &'a str,
    pub comment: Option<&'a str>,
}

/// Stores a rating; model and provider are read from the reply itself (CHT-138).
pub(crate) async fn rate(
    conn: &mut PgConnection,
    org: OrgId,
    feedback: &Feedback<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.message_feedback (message_id, user_id, org_id, rating, comment, model, provider_slug, created_at)
         SELECT m.id, $3, m.org_id, $4, $5, m.model, m.provider_slug, $6
           FROM app.messages m WHERE m.org_id = $1 AND m.id = $2
         ON CONFLICT (message_id, user_id) DO UPDATE SET rating = EXCLUDED.rating, comment = EXCLUDED.comment, created_at = EXCLUDED.created_at",
    )
    .bind(org)
    .bind(feedback.message)
    .bind(feedback.user)
    .bind(feedback.rating)
    .bind(feedback.comment)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn unrate(conn: &mut PgConnection, org: OrgId, message: MessageId, user: UserId) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM app.message_feedback WHERE org_id = $1 AND message_id = $2 AND user_id = $3")
        .bind(org)
        .bind(message)
        .bind(user)
        .execute(conn)
        .await?;
    Ok(())
}
