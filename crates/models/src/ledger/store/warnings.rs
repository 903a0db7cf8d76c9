//! SQL of warnings: whose use has passed a threshold, and who was told.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_governance::budgets::Amounts;

/// The organizations in whose rules there is a threshold, in order.
pub(in crate::ledger) async fn organizations(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<OrgId>> {
    sqlx::query_scalar(
        "SELECT p.org_id FROM app.policies p JOIN app.organizations o ON o.id = p.org_id AND o.deleted_at IS NULL \
         WHERE p.key = 'budgets' AND p.value @? '$.rules[*].warningThresholdPercent' ORDER BY p.org_id",
    )
    .fetch_all(db)
    .await
}

/// Forgets warnings of periods that began before a day.
pub(in crate::ledger) async fn forget(db: impl PgExecutor<'_>, before: NaiveDate) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM app.budget_warnings WHERE first_day < $1").bind(before).execute(db).await.map(drop)
}

/// What each holder has used since each of three days, until `last`.
pub(in crate::ledger) async fn used(
    db: impl PgExecutor<'_>,
    org: OrgId,
    firsts: [NaiveDate; 3],
    last: NaiveDate,
) -> sqlx::Result<HashMap<String, [Amounts; 3]>> {
    type Row = (String, Vec<i64>, Vec<i64>, Vec<i64>);
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT holder, ARRAY[coalesce(sum(used_tokens) FILTER (WHERE day >= $2), 0), \
                coalesce(sum(used_tokens) FILTER (WHERE day >= $3), 0), \
                coalesce(sum(used_tokens) FILTER (WHERE day >= $4), 0)]::bigint[], \
                ARRAY[coalesce(sum(used_cost_micro_usd) FILTER (WHERE day >= $2), 0), \
                coalesce(sum(used_cost_micro_usd) FILTER (WHERE day >= $3), 0), \
                coalesce(sum(used_cost_micro_usd) FILTER (WHERE day >= $4), 0)]::bigint[], \
                ARRAY[coalesce(sum(used_requests) FILTER (WHERE day >= $2), 0), \
                coalesce(sum(used_requests) FILTER (WHERE day >= $3), 0), \
                coalesce(sum(used_requests) FILTER (WHERE day >= $4), 0)]::bigint[] \
         FROM app.usage_counters WHERE org_id = $1 AND day BETWEEN least($2, $3, $4) AND $5 GROUP BY holder",
    )
    .bind(org)
    .bind(firsts[0])
    .bind(firsts[1])
    .bind(firsts[2])
    .bind(last)
    .fetch_all(db)
    .await?;
    let amount = |sums: &[i64], at: usize| sums.get(at).and_then(|sum| u64::try_from(*sum).ok()).unwrap_or(0);
    let read = |(holder, tokens, cost, requests): Row| {
        let of = |at| Amounts {
            tokens: amount(&tokens, at),
            cost_micro_usd: amount(&cost, at),
            requests: amount(&requests, at),
        };
        (holder, [of(0), of(1), of(2)])
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The people of an organization whose seat is not disabled, with their roles.
pub(in crate::ledger) async fn members(db: impl PgExecutor<'_>, org: OrgId) -> sqlx::Result<Vec<(UserId, String)>> {
    sqlx::query_as("SELECT user_id, role FROM app.memberships WHERE org_id = $1 AND role <> 'disabled'")
        .bind(org)
        .fetch_all(db)
        .await
}

/// Which warnings of periods since `first` were given: holder, rule and first day.
pub(in crate::ledger) async fn told(
    db: impl PgExecutor<'_>,
    org: OrgId,
    first: NaiveDate,
) -> sqlx::Result<Vec<(String, Vec<u8>, NaiveDate)>> {
    sqlx::query_as("SELECT holder, rule, first_day FROM app.budget_warnings WHERE org_id = $1 AND first_day >= $2")
        .bind(org)
        .bind(first)
        .fetch_all(db)
        .await
}

/// Notes that a warning is given; `false`: somebody did so before.
pub(in crate::ledger) async fn note(
    conn: &mut PgConnection,
    org: OrgId,
    holder: &str,
    rule: &[u8],
    first: NaiveDate,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "INSERT INTO app.budget_warnings (org_id, holder, rule, first_day, told_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT DO NOTHING",
    )
    .bind(org)
    .bind(holder)
    .bind(rule)
    .bind(first)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The name of a team.
pub(in crate::ledger) async fn team(db: impl PgExecutor<'_>, org: OrgId, team: TeamId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT name FROM app.teams WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(team)
        .fetch_optional(db)
        .await
}

/// The name of a key that works in the organization, and the member whom it acts as.
pub(in crate::ledger) async fn key(
    db: impl PgExecutor<'_>,
    org: OrgId,
    key: ApiKeyId,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<(String, Option<UserId>)>> {
    sqlx::query_as(
        "SELECT k.name, k.user_id FROM app.api_keys k \
         LEFT JOIN app.memberships m ON m.org_id = $1 AND m.user_id = k.user_id AND m.role <> 'disabled' \
         WHERE k.id = $2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $3) \
           AND CASE WHEN k.user_id IS NULL THEN k.org_id = $1 ELSE m.user_id IS NOT NULL AND coalesce(k.org_id, $1) = $1 END",
    )
    .bind(org)
    .bind(key)
    .bind(now)
    .fetch_optional(db)
    .await
}
