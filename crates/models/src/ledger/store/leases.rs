//! SQL of leases.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::ledger::allowance::Allowance;

/// The channel that says of which allowance leases shall be given back.
pub(crate) const CHANNEL: &str = "tale_allowances";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub allowance: Allowance,
    pub lease: Uuid,
    /// The lease does not exist yet.
    pub new: bool,
    pub wanted: [u64; 3],
    pub least: [u64; 3],
}

/// What was given.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Granted {
    pub granted: Option<Vec<i64>>,
    pub limited: Vec<bool>,
    pub expires_at: DateTime<Utc>,
}

/// Leases a part of an allowance, or adds to a lease. `None` when no call may begin.
pub(crate) async fn lease(
    db: impl PgExecutor<'_>,
    owner: Uuid,
    now: DateTime<Utc>,
    asked: &Asked,
) -> sqlx::Result<Option<Granted>> {
    let amounts = |amounts: [u64; 3]| amounts.map(amount).to_vec();
    sqlx::query_as("SELECT granted, limited, expires_at FROM app.usage_lease($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(owner)
        .bind(now)
        .bind(asked.allowance.org)
        .bind(asked.allowance.id)
        .bind(asked.lease)
        .bind(asked.new)
        .bind(amounts(asked.wanted))
        .bind(amounts(asked.least))
        .fetch_optional(db)
        .await
}

/// Ends leases; one with a beat only if that still stands there. Says how many ended.
pub(crate) async fn end(
    db: impl PgExecutor<'_>,
    now: DateTime<Utc>,
    leases: &[(Uuid, Option<i64>)],
) -> sqlx::Result<i64> {
    let (ids, beats): (Vec<Uuid>, Vec<Option<i64>>) = leases.iter().copied().unzip();
    sqlx::query_scalar("SELECT app.usage_lease_end($1, $2, $3)").bind(now).bind(ids).bind(beats).fetch_one(db).await
}

/// Says that the owner lives, and which of its leases there are. Those that somebody works on are left for the
/// next time.
pub(crate) async fn beat(db: impl PgExecutor<'_>, owner: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "UPDATE app.usage_leases SET beat = beat + 1 WHERE id IN \
         (SELECT id FROM app.usage_leases WHERE owner = $1 ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id",
    )
    .bind(owner)
    .fetch_all(db)
    .await
}

/// Leases of one process.
pub(crate) async fn own(db: impl PgExecutor<'_>, owner: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar("SELECT id FROM app.usage_leases WHERE owner = $1").bind(owner).fetch_all(db).await
}

/// Leases of every other process, and where their beats stand.
pub(crate) async fn others(db: impl PgExecutor<'_>, owner: Uuid, most: i64) -> sqlx::Result<Vec<(Uuid, i64)>> {
    sqlx::query_as("SELECT id, beat FROM app.usage_leases WHERE owner <> $1 ORDER BY id LIMIT $2")
        .bind(owner)
        .bind(most)
        .fetch_all(db)
        .await
}

/// Which allowances have leases; their owners are told to give them back when `recall`.
pub(crate) async fn leased(db: impl PgExecutor<'_>, allowances: &[Uuid], recall: bool) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "SELECT id FROM (SELECT id, CASE WHEN $2 THEN pg_notify($3, id::text) END FROM app.usage_allowances \
         WHERE id = ANY ($1) AND leases > 0) AS leased",
    )
    .bind(allowances)
    .bind(recall)
    .bind(CHANNEL)
    .fetch_all(db)
    .await
}

/// A call that a lease pays for, as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub id: Uuid,
    pub allowance: Allowance,
    pub lease: Uuid,
    pub provider: std::sync::Arc<str>,
    pub model: std::sync::Arc<str>,
    /// What it may use.
    pub need: [u64; 3],
    /// How it ended, when it has.
    pub outcome: Option<&'static str>,
    /// What it used, or is booked for at least.
    pub used: [u64; 5],
}

/// Writes calls down, and says from which of their leases more may be paid.
pub(crate) async fn journal(
    db: impl PgExecutor<'_>,
    (owner, stripe): (Uuid, i16),
    now: DateTime<Utc>,
    entries: &[Entry],
) -> sqlx::Result<Vec<Uuid>> {
    let (mut leases, mut payers) = (Vec::<Uuid>::new(), Vec::<Uuid>::new());
    let mut places = std::collections::HashMap::new();
    let of: Vec<i32> = entries
        .iter()
        .map(|entry| {
            *places.entry(entry.lease).or_insert_with(|| {
                leases.push(entry.lease);
                payers.push(entry.allowance.id);
                i32::try_from(leases.len()).unwrap_or(i32::MAX)
            })
        })
        .collect();
    let ids: Vec<Uuid> = entries.iter().map(|entry| entry.id).collect();
    let providers: Vec<&str> = entries.iter().map(|entry| &*entry.provider).collect();
    let models: Vec<&str> = entries.iter().map(|entry| &*entry.model).collect();
    let outcomes: Vec<Option<&str>> = entries.iter().map(|entry| entry.outcome).collect();
    let need = |kind: usize| entries.iter().map(|entry| amount(entry.need[kind])).collect::<Vec<i64>>();
    let used = |part: usize| entries.iter().map(|entry| amount(entry.used[part])).collect::<Vec<i64>>();
    // A hold is not waited for until it is on the disk, a booking is.
    let durable = entries.iter().any(|entry| entry.outcome.is_some());
    sqlx::query_scalar(
        "SELECT j FROM set_config('synchronous_commit', CASE WHEN $18 THEN current_setting('synchronous_commit') ELSE 'off' END, true), \
         app.usage_journal($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $19) AS j",
    )
    .bind(owner)
    .bind(stripe)
    .bind(now)
    .bind(leases)
    .bind(payers)
    .bind(ids)
    .bind(of)
    .bind(providers)
    .bind(models)
    .bind(outcomes)
    .bind(need(0))
    .bind(need(1))
    .bind(need(2))
    .bind(used(0))
    .bind(used(1))
    .bind(used(2))
    .bind(used(3))
    .bind(durable)
    .bind(used(4))
    .fetch_all(db)
    .await
}

fn amount(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
