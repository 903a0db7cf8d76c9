//! SQL of the ledger. The two functions of the migration do the work; each call of them is one
//! round trip and one transaction.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use sqlx::types::Json;
use tale_core::ids::{ApiKeyId, OrgId, UserId};
use uuid::Uuid;

/// One holder and period that limits something in a batch.
#[derive(Debug, Serialize)]
pub(super) struct Gate {
    /// Its number in the batch, from 1.
    pub gate: usize,
    pub org: OrgId,
    pub holder: String,
    pub first: NaiveDate,
    pub last: NaiveDate,
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
    sqlx::query_as("SELECT granted, taken FROM app.usage_hold($1, $2, $3, $4, $5)")
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
}

/// Ends holds and says how many there were.
pub(super) async fn settle(db: impl PgExecutor<'_>, now: DateTime<Utc>, ended: &[Ended]) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT app.usage_settle($1, $2)").bind(now).bind(Json(ended)).fetch_one(db).await
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
}

/// Holds of other processes that were not confirmed since `before`, the longest silent first.
pub(super) async fn silent(
    db: impl PgExecutor<'_>,
    owner: Uuid,
    before: DateTime<Utc>,
    most: i64,
) -> sqlx::Result<Vec<Silent>> {
    sqlx::query_as(
        "SELECT id, org_id, ARRAY[floor_input, floor_output, floor_cached, floor_units, floor_cost] AS floor \
         FROM app.usage_holds WHERE kept_at < $1 AND owner <> $2 ORDER BY kept_at LIMIT $3",
    )
    .bind(before)
    .bind(owner)
    .bind(most)
    .fetch_all(db)
    .await
}
