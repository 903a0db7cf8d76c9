//! SQL of the ledger. The functions of the migrations do the work; each call of them is one
//! round trip and one transaction.

pub(super) mod allowances;
pub(super) mod leases;
pub(super) mod warnings;

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor, Postgres, QueryBuilder};
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_governance::budgets::{Amounts, Holder};
use uuid::Uuid;

use super::report::{Group, GroupBy, Scope, Used};

/// One holder and period that limits something in a batch.
#[derive(Debug, Serialize)]
pub(super) struct Gate {
    /// Its number in the batch, from 1.
    pub gate: usize,
    pub org: OrgId,
    pub holder: String,
    /// The members of this team and its keys together are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    pub first: NaiveDate,
    pub last: NaiveDate,
    /// The holder's running work is meant, not what it has used within the days.
    #[serde(flatten)]
    pub running: Option<Running>,
}

/// The running work of a person or a key.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Running {
    pub source: String,
    pub user: Option<UserId>,
    pub key: Option<ApiKeyId>,
    /// Holds of it that have ended already.
    pub over: Vec<Uuid>,
}

/// A piece of work to admit.
#[derive(Debug, Serialize)]
pub(super) struct ChargeRow<'a> {
    /// Its place in the batch.
    pub n: usize,
    pub id: Uuid,
    pub org: OrgId,
    pub user: Option<UserId>,
    pub key: Option<ApiKeyId>,
    pub source: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    pub at: DateTime<Utc>,
    pub day: NaiveDate,
    pub holders: Vec<String>,
    pub gates: Vec<usize>,
    pub cap_gates: Vec<usize>,
    pub cap_kinds: Vec<u8>,
    pub cap_limits: Vec<u64>,
    pub need: [u64; 3],
    pub want: [u64; 3],
    pub floor: [u64; 5],
}

/// What became of one piece of work: the grant, if it was admitted, and what was taken of each of
/// its limits before.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Judged {
    pub granted: Option<Vec<i64>>,
    pub taken: Vec<i64>,
}

/// Admits a batch. The answers come in the order of `charges`.
pub(super) async fn hold(
    db: impl PgExecutor<'_>,
    (owner, stripe): (Uuid, i16),
    now: DateTime<Utc>,
    gates: &[Gate],
    charges: &[ChargeRow<'_>],
) -> sqlx::Result<Vec<Judged>> {
    // Nobody waits for the disk before a call begins. What the database loses of this with its own end is
    // written again by the end of the work, which is waited for ([`settle_lost`]).
    sqlx::query_as("SELECT h.granted, h.taken FROM set_config('synchronous_commit', 'off', true), app.usage_hold($1, $2, $3, $4, $5) AS h")
        .bind(owner)
        .bind(stripe)
        .bind(now)
        .bind(Json(gates))
        .bind(Json(charges))
        .fetch_all(db)
        .await
}

/// The end of one hold.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ended {
    pub id: Uuid,
    pub org: OrgId,
    pub released: bool,
    /// `reported`, `floor` or `abandoned`.
    pub outcome: &'static str,
    pub silent_since: Option<DateTime<Utc>>,
    pub used: [u64; 5],
    /// What was held, where this process held it.
    #[serde(skip)]
    pub held: Option<Arc<Held>>,
}

/// What a hold stands for. One that an allowance pays for leaves to it whose work it is.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    pub user: Option<UserId>,
    pub key: Option<ApiKeyId>,
    pub source: Option<Arc<str>>,
    pub allowance: Option<Uuid>,
    pub provider: Arc<str>,
    pub model: Arc<str>,
    pub at: DateTime<Utc>,
    pub day: NaiveDate,
    pub requests: u64,
}

/// Ends holds and says how many there were.
pub(super) async fn settle(db: impl PgExecutor<'_>, now: DateTime<Utc>, ended: &[Ended]) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT app.usage_settle($1, $2)").bind(now).bind(Json(ended)).fetch_one(db).await
}

/// Ends holds that the database may have lost with its own end, unless they were booked before. Says how many it had lost.
pub(super) async fn settle_lost(
    db: impl PgExecutor<'_>,
    (owner, stripe): (Uuid, i16),
    now: DateTime<Utc>,
    ended: &[Ended],
) -> sqlx::Result<i64> {
    #[derive(Serialize)]
    struct Lost<'a> {
        #[serde(flatten)]
        ended: &'a Ended,
        #[serde(flatten)]
        held: &'a Held,
    }
    let lost: Vec<Lost<'_>> = ended
        .iter()
        .filter(|ended| !ended.released)
        .filter_map(|ended| Some(Lost { ended, held: ended.held.as_deref()? }))
        .collect();
    sqlx::query_scalar("SELECT app.usage_settle_lost($1, $2, $3, $4)")
        .bind(owner)
        .bind(stripe)
        .bind(now)
        .bind(Json(lost))
        .fetch_one(db)
        .await
}

/// Confirms holds of a process, with what is known of their work.
pub(super) async fn keep(
    db: impl PgExecutor<'_>,
    owner: Uuid,
    now: DateTime<Utc>,
    floors: &[(Uuid, [u64; 5])],
) -> sqlx::Result<()> {
    let rows: Vec<_> = floors.iter().map(|(id, floor)| serde_json::json!({ "id": id, "floor": floor })).collect();
    sqlx::query(
        "UPDATE app.usage_holds h SET kept_at = $1, floor_input = floor[1], floor_output = floor[2], floor_cached = floor[3], \
         floor_units = floor[4], floor_cost = floor[5] \
         FROM jsonb_to_recordset($2) AS x(id uuid, floor bigint[]) WHERE h.id = x.id AND h.owner = $3",
    )
    .bind(now)
    .bind(Json(rows))
    .bind(owner)
    .execute(db)
    .await?;
    Ok(())
}

/// A hold that nobody confirmed for a while.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Silent {
    pub id: Uuid,
    pub org_id: OrgId,
    pub floor: Vec<i64>,
    /// Set aside for an allowance that never came: no work of anybody's.
    pub aside: bool,
}

/// Holds of other processes that were not confirmed since `before`, the longest silent first.
pub(super) async fn silent(
    db: impl PgExecutor<'_>,
    owner: Uuid,
    before: DateTime<Utc>,
    most: i64,
) -> sqlx::Result<Vec<Silent>> {
    sqlx::query_as(
        "SELECT id, org_id, ARRAY[floor_input, floor_output, floor_cached, floor_units, floor_cost] AS floor, \
             provider_slug = '' AS aside \
         FROM app.usage_holds WHERE kept_at < $1 AND owner <> $2 ORDER BY kept_at LIMIT $3",
    )
    .bind(before)
    .bind(owner)
    .bind(most)
    .fetch_all(db)
    .await
}

/// The role of a person in an organization.
pub(super) async fn role(db: impl PgExecutor<'_>, org: OrgId, person: UserId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT role FROM app.memberships WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(person)
        .fetch_optional(db)
        .await
}

/// The team that an API key belongs to.
pub(super) async fn key_team(db: impl PgExecutor<'_>, org: OrgId, key: ApiKeyId) -> sqlx::Result<Option<TeamId>> {
    let team: Option<Option<TeamId>> =
        sqlx::query_scalar("SELECT team_id FROM app.api_keys WHERE org_id = $1 AND id = $2")
            .bind(org)
            .bind(key)
            .fetch_optional(db)
            .await?;
    Ok(team.flatten())
}

/// What a holder has used within some days.
pub(super) async fn used(
    conn: &mut PgConnection,
    org: OrgId,
    holder: &Holder,
    (first, last): (NaiveDate, NaiveDate),
) -> sqlx::Result<Amounts> {
    let (tokens, cost, requests): (i64, i64, i64) = sqlx::query_as(
        "SELECT coalesce(sum(used_tokens), 0)::bigint, coalesce(sum(used_cost_micro_usd), 0)::bigint, \
                coalesce(sum(used_requests), 0)::bigint \
         FROM app.usage_counters WHERE org_id = $1 AND day BETWEEN $3 AND $4 AND holder = ANY (ARRAY( \
             SELECT 'user:' || user_id FROM app.team_members WHERE org_id = $1 AND team_id = $5 UNION ALL \
             SELECT 'key:' || id FROM app.api_keys WHERE org_id = $1 AND team_id = $5) || $2)",
    )
    .bind(org)
    .bind(holder.key())
    .bind(first)
    .bind(last)
    .bind(holder.team())
    .fetch_one(conn)
    .await?;
    let amount = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(Amounts { tokens: amount(tokens), cost_micro_usd: amount(cost), requests: amount(requests) })
}

/// The sums of a report by group and person: `u`. Counting people afterwards needs no sorting of every row.
const BY_PERSON: &str = "sum(d.requests)::bigint AS requests, sum(d.input_tokens)::bigint AS input_tokens, \
     sum(d.output_tokens)::bigint AS output_tokens, sum(d.cached_tokens)::bigint AS cached_tokens, sum(d.units)::bigint AS units, \
     sum(d.cost_micro_usd)::bigint AS cost_micro_usd FROM app.usage_days d";

/// The sums over people.
const SUMS: &str = "coalesce(sum(u.requests), 0)::bigint AS requests, coalesce(sum(u.input_tokens), 0)::bigint AS input_tokens, \
     coalesce(sum(u.output_tokens), 0)::bigint AS output_tokens, coalesce(sum(u.cached_tokens), 0)::bigint AS cached_tokens, \
     coalesce(sum(u.units), 0)::bigint AS units, coalesce(sum(u.cost_micro_usd), 0)::bigint AS cost_micro_usd, \
     count(DISTINCT u.user_id) AS active_users";

/// Which rows a report is about.
fn within(query: &mut QueryBuilder<Postgres>, org: OrgId, scope: &Scope) {
    query.push(" WHERE d.org_id = ").push_bind(org);
    query.push(" AND d.day BETWEEN ").push_bind(scope.from).push(" AND ").push_bind(scope.to);
    if let Some(agent) = &scope.agent {
        query.push(" AND d.source = ").push_bind(agent.clone());
    }
    if let Some(model) = &scope.model {
        query.push(" AND d.provider_slug || '/' || d.model = ").push_bind(model.clone());
    }
    if let Some(person) = scope.person {
        query.push(" AND d.user_id = ").push_bind(person);
    }
    if let Some(key) = scope.key {
        query.push(" AND d.api_key_id = ").push_bind(key);
    }
}

/// Everything that a report is about, together, and by groups, at most `most`. One statement reads the days once.
pub(super) async fn report(
    db: impl PgExecutor<'_>,
    org: OrgId,
    scope: &Scope,
    group_by: GroupBy,
    most: usize,
) -> sqlx::Result<(Used, Vec<Group>)> {
    #[derive(sqlx::FromRow)]
    struct Row {
        of_group: bool,
        #[sqlx(flatten)]
        group: Group,
    }
    let (key, names) = match group_by {
        GroupBy::Day => ("d.day", None),
        GroupBy::Week => ("date_trunc('week', d.day::timestamp)::date", None),
        GroupBy::Month => ("date_trunc('month', d.day::timestamp)::date", None),
        GroupBy::Model => ("d.provider_slug || '/' || d.model", None),
        GroupBy::Agent => ("d.source", None),
        GroupBy::Person => (
            "d.user_id",
            Some((" LEFT JOIN app.users n ON n.id = g.key::uuid", "coalesce(nullif(n.name, ''), n.email)")),
        ),
        GroupBy::Key => ("d.api_key_id", Some((" LEFT JOIN app.api_keys n ON n.id = g.key::uuid", "n.name"))),
    };
    let mut query = QueryBuilder::new("WITH u AS MATERIALIZED (SELECT ");
    query.push(key).push(" AS key, d.user_id, ").push(BY_PERSON);
    within(&mut query, org, scope);
    query.push(" GROUP BY 1, 2), g AS (SELECT u.key::text AS key, ").push(SUMS).push(" FROM u GROUP BY 1 ORDER BY ");
    // By their places: the sums have the names of what they sum.
    query.push(if group_by.is_time() { "1" } else { "7 DESC, 3 DESC, 2 DESC, 1" });
    query.push(" LIMIT ").push_bind(i64::try_from(most).unwrap_or(i64::MAX));
    let (join, name) = names.unwrap_or(("", "NULL::text"));
    query.push(") SELECT false AS of_group, NULL::text AS key, ").push(SUMS).push(", NULL::text AS name FROM u");
    query.push(" UNION ALL SELECT true, g.*, ").push(name).push(" FROM g").push(join).push(" ORDER BY of_group, ");
    query.push(if group_by.is_time() { "key" } else { "cost_micro_usd DESC, input_tokens DESC, requests DESC, key" });
    let mut rows = query.build_query_as::<Row>().fetch_all(db).await?.into_iter();
    // A sum over nothing is a row as well, and it comes first.
    let totals = rows.next().filter(|row| !row.of_group).map(|row| row.group.used).unwrap_or_default();
    Ok((totals, rows.map(|row| row.group).collect()))
}
