//! `app.transcripts`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::OrgId;

/// What `target` heard in a recording with these bytes.
pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    content_hash: &str,
    target: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT text FROM app.transcripts WHERE org_id = $1 AND content_hash = $2 AND target = $3")
        .bind(org)
        .bind(content_hash)
        .bind(target)
        .fetch_optional(conn)
        .await
}

pub(crate) async fn put(
    conn: &mut PgConnection,
    org: OrgId,
    content_hash: &str,
    (target, text, seconds): (&str, &str, Option<f64>),
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.transcripts (org_id, content_hash, target, text, seconds, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (org_id, content_hash, target) DO UPDATE
            SET text = EXCLUDED.text, seconds = EXCLUDED.seconds, created_at = EXCLUDED.created_at",
    )
    .bind(org)
    .bind(content_hash)
    .bind(target)
    .bind(text)
    .bind(seconds)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets transcripts of every organization that are older than `before` and whose bytes none of
/// its files has any more, at most `limit`. Returns how many.
pub(crate) async fn forget_orphans(
    conn: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "DELETE FROM app.transcripts AS t
          WHERE (t.org_id, t.content_hash, t.target) IN (
                SELECT o.org_id, o.content_hash, o.target
                  FROM app.transcripts AS o
                 WHERE o.created_at < $1
                   AND NOT EXISTS (SELECT FROM app.files AS f
                                    WHERE f.org_id = o.org_id AND f.purpose = 'chat' AND f.content_hash = o.content_hash)
                 LIMIT $2)",
    )
    .bind(before)
    .bind(limit)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
