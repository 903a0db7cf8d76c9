//! SQL of allowances.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use sqlx::types::Json;
use tale_core::ids::OrgId;
use uuid::Uuid;

use crate::ledger::allowance::{Allowance, AllowanceState};

/// An allowance of a batch.
#[derive(Debug, Serialize)]
pub(crate) struct AllowanceRow {
    /// Its number in the batch, from 1.
    pub a: usize,
    pub org: OrgId,
    pub id: Uuid,
}

/// A call of a batch.
#[derive(Debug, Serialize)]
pub(crate) struct CallRow<'a> {
    /// Its place in the batch.
    pub n: usize,
    pub id: Uuid,
    pub a: usize,
    pub provider: &'a str,
    pub model: &'a str,
    pub need: [u64; 3],
    pub floor: [u64; 5],
}

/// What became of one call.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Verdict {
    pub verdict: String,
    pub left_tokens: Option<i64>,
    pub left_cost: Option<i64>,
    pub left_requests: Option<i64>,
    /// A part of the allowance is leased; asked for only where there was no room.
    #[sqlx(default)]
    pub leased: bool,
}

/// Admits a batch. The answers come in the order of `calls`.
pub(crate) async fn draw(
    db: impl PgExecutor<'_>,
    (owner, stripe): (Uuid, i16),
    now: DateTime<Utc>,
    allowances: &[AllowanceRow],
    calls: &[CallRow<'_>],
) -> sqlx::Result<Vec<Verdict>> {
    // As with other holds, nobody waits for the disk before a call begins.
    sqlx::query_as(
        "SELECT d.verdict, d.left_tokens, d.left_cost, d.left_requests \
         FROM set_config('synchronous_commit', 'off', true), app.usage_draw($1, $2, $3, $4, $5) AS d",
    )
    .bind(owner)
    .bind(stripe)
    .bind(now)
    .bind(Json(allowances))
    .bind(Json(calls))
    .fetch_all(db)
    .await
}

/// Makes the hold `hold` of `org` an allowance. `false` when the hold is gone.
pub(crate) async fn keep(
    db: impl PgExecutor<'_>,
    (org, hold): (OrgId, Uuid),
    id: Uuid,
    expires_at: DateTime<Utc>,
    tokens: Option<u64>,
    requests: Option<u64>,
) -> sqlx::Result<bool> {
    let amount = |amount: Option<u64>| amount.map(|amount| i64::try_from(amount).unwrap_or(i64::MAX));
    let kept = sqlx::query(
        "WITH held AS (DELETE FROM app.usage_holds WHERE org_id = $1 AND id = $2 RETURNING *) \
         INSERT INTO app.usage_allowances (id, org_id, user_id, api_key_id, source, admitted_at, day, stripe, \
             cost_micro_usd, tokens, requests, expires_at) \
         SELECT $3, org_id, user_id, api_key_id, source, admitted_at, day, stripe, cost_micro_usd, $4, $5, $6 FROM held",
    )
    .bind(org)
    .bind(hold)
    .bind(id)
    .bind(amount(tokens))
    .bind(amount(requests))
    .bind(expires_at)
    .execute(db)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// Ends allowances and says how many were open.
pub(crate) async fn end(db: impl PgExecutor<'_>, now: DateTime<Utc>, allowances: &[Allowance]) -> sqlx::Result<u64> {
    let entries: Vec<_> = allowances.iter().map(|one| serde_json::json!({ "org": one.org, "id": one.id })).collect();
    let ended: i64 = sqlx::query_scalar("SELECT app.usage_allowance_end($1, $2)")
        .bind(now)
        .bind(Json(entries))
        .fetch_one(db)
        .await?;
    Ok(u64::try_from(ended).unwrap_or(0))
}

pub(crate) async fn state(db: impl PgExecutor<'_>, allowance: Allowance) -> sqlx::Result<Option<AllowanceState>> {
    sqlx::query_as(
        "SELECT cost_micro_usd, tokens, requests, spent_cost, spent_tokens, spent_requests, greatest(held_cost - coalesce(( \
             SELECT sum(l.cost_micro_usd) FROM app.usage_leases l WHERE l.allowance_id = a.id), 0), 0)::bigint AS held_cost, \
             calls, expires_at, ended_at, settled_at \
         FROM app.usage_allowances a WHERE org_id = $1 AND id = $2",
    )
    .bind(allowance.org)
    .bind(allowance.id)
    .fetch_optional(db)
    .await
}

/// Allowances of every organization that have expired, or whose organization was deleted, and that are open all the same.
pub(crate) async fn expired(db: impl PgExecutor<'_>, now: DateTime<Utc>, most: i64) -> sqlx::Result<Vec<Allowance>> {
    let found: Vec<(OrgId, Uuid)> = sqlx::query_as(
        "(SELECT org_id, id FROM app.usage_allowances WHERE ended_at IS NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2) \
         UNION \
         (SELECT a.org_id, a.id FROM app.organizations o JOIN app.usage_allowances a ON a.org_id = o.id \
           WHERE o.deleted_at IS NOT NULL AND a.ended_at IS NULL LIMIT $2)",
    )
    .bind(now)
    .bind(most)
    .fetch_all(db)
    .await?;
    Ok(found.into_iter().map(|(org, id)| Allowance { org, id }).collect())
}

/// Forgets allowances of every organization that were settled before `before`, and says how many.
pub(crate) async fn forget(db: impl PgExecutor<'_>, before: DateTime<Utc>, most: i64) -> sqlx::Result<u64> {
    let gone = sqlx::query(
        "DELETE FROM app.usage_allowances WHERE id IN \
         (SELECT id FROM app.usage_allowances WHERE settled_at < $1 ORDER BY settled_at LIMIT $2)",
    )
    .bind(before)
    .bind(most)
    .execute(db)
    .await?;
    Ok(gone.rows_affected())
}
