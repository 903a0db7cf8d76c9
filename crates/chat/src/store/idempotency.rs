//! Statements on `app.idempotency_keys`.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::ids::OrgId;

/// How long an answer is remembered (API-71).
fn horizon(now: DateTime<Utc>) -> DateTime<Utc> {
    now - TimeDelta::hours(24)
}

pub(crate) async fn find(
    conn: &mut PgConnection,
    org: OrgId,
    scope: &str,
    key: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<(Vec<u8>, Value)>> {
    sqlx::query_as("SELECT body_hash, answer FROM app.idempotency_keys WHERE org_id = $1 AND scope = $2 AND key = $3 AND created_at > $4")
        .bind(org)
        .bind(scope)
        .bind(key)
        .bind(horizon(now))
        .fetch_optional(conn)
        .await
}

/// Remembers an answer; what is older than the memory gives way.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    scope: &str,
    key: &str,
    body_hash: &[u8],
    answer: &Value,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.idempotency_keys (org_id, scope, key, body_hash, answer, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (org_id, scope, key)
         DO UPDATE SET body_hash = EXCLUDED.body_hash, answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
          WHERE idempotency_keys.created_at <= $7",
    )
    .bind(org)
    .bind(scope)
    .bind(key)
    .bind(body_hash)
    .bind(answer)
    .bind(now)
    .bind(horizon(now))
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets what is older than the memory, across organizations.
pub(crate) async fn sweep(conn: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<u64> {
    let done =
        sqlx::query("DELETE FROM app.idempotency_keys WHERE created_at <= $1").bind(horizon(now)).execute(conn).await?;
    Ok(done.rows_affected())
}
