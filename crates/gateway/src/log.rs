//! The request log of the gateway (MOD-149): who called what and how it went, never what was said. It is
//! for operators who look for the reason of something; budgets and usage do not know it.
//!
//! A call leaves its row to a writer, which stores what has come once a second in one statement. Neither a
//! call nor the database waits for the other: what does not fit the queue is dropped and counted.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{PgExecutor, PgPool};
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_governance::budgets::Cost;
use tale_models::ledger::Consumption;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use uuid::Uuid;

use crate::metrics::LOG_DROPPED;

/// Rows that wait for the writer.
const QUEUE: usize = 16_384;
/// Rows in one statement.
const BATCH: usize = 1_000;
/// How long rows are collected.
const COLLECT: Duration = Duration::from_secs(1);
/// How often it is looked for more of them meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// How often old rows are looked for when nothing changes.
const DAY: Duration = Duration::from_secs(86_400);
/// Rows that are deleted in one statement.
const DELETED_AT_ONCE: i64 = 5_000;
/// Longest page of the log.
pub const MAX_PAGE: i64 = 500;
/// The status of a call whose client hung up.
const HUNG_UP: u16 = 499;

/// One row.
#[derive(Debug)]
struct Row {
    at: DateTime<Utc>,
    org: OrgId,
    key: Uuid,
    provider: String,
    model: String,
    input: u64,
    output: u64,
    cached: u64,
    cost: u64,
    first: Option<u64>,
    took: u64,
    status: u16,
}

/// The way to the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Log(mpsc::Sender<Row>);

/// The writer's end.
pub struct Writer {
    rows: mpsc::Receiver<Row>,
    pool: PgPool,
    clock: SharedClock,
}

/// A call under way. Dropped, it leaves its row.
#[derive(Debug)]
pub(crate) struct Record {
    log: Log,
    began: Instant,
    row: Option<Row>,
}

impl Log {
    /// A log in `pool`.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock) -> (Self, Writer) {
        let (log, rows) = mpsc::channel(QUEUE);
        (Self(log), Writer { rows, pool, clock })
    }

    /// A call that begins `at`.
    pub(crate) fn begin(
        &self,
        at: DateTime<Utc>,
        (org, key): (OrgId, Uuid),
        (provider, model): (&str, &str),
    ) -> Record {
        let row = Row {
            at,
            org,
            key,
            provider: provider.to_owned(),
            model: model.to_owned(),
            input: 0,
            output: 0,
            cached: 0,
            cost: 0,
            first: None,
            took: 0,
            status: HUNG_UP,
        };
        Record { log: self.clone(), began: Instant::now(), row: Some(row) }
    }
}

impl Record {
    /// Something came from the provider.
    pub(crate) fn heard(&mut self) {
        if let Some(row) = self.row.as_mut().filter(|row| row.first.is_none()) {
            row.first = Some(millis(self.began));
        }
    }

    /// What the client is told.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(row) = &mut self.row {
            row.status = status;
        }
    }

    /// What is booked.
    pub(crate) fn used(&mut self, used: &Consumption) {
        if let Some(row) = &mut self.row {
            (row.input, row.output, row.cached) = (used.input_tokens, used.output_tokens, used.cached_tokens);
            row.cost = used.cost_micro_usd;
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(mut row) = self.row.take() else { return };
        row.took = millis(self.began);
        if self.log.0.try_send(row).is_err() {
            LOG_DROPPED.increment();
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Writer {
    /// Stores rows until nobody writes any more, and deletes those that are older than the days that
    /// `retention` says: at once when it says others, and once a day.
    pub async fn run(mut self, mut retention: watch::Receiver<u32>) {
        let (mut rows, mut next_look, mut told) = (Vec::with_capacity(BATCH), Instant::now(), true);
        loop {
            tokio::select! {
                received = self.rows.recv_many(&mut rows, BATCH) => {
                    if received == 0 {
                        return;
                    }
                    self.collect(&mut rows).await;
                    self.store(&rows).await;
                    rows.clear();
                }
                () = tokio::time::sleep_until(next_look) => {}
                changed = retention.changed(), if told => match changed {
                    Ok(()) => next_look = Instant::now(),
                    // Nobody can say others any more; the daily look remains.
                    Err(_) => told = false,
                },
            }
            if Instant::now() >= next_look {
                let days = *retention.borrow_and_update();
                self.delete(days).await;
                next_look = Instant::now() + DAY;
            }
        }
    }

    /// What else comes within a moment. Looked for now and again instead of waited for, so that no call wakes
    /// anybody.
    async fn collect(&mut self, rows: &mut Vec<Row>) {
        let deadline = Instant::now() + COLLECT;
        while rows.len() < BATCH && Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
            while rows.len() < BATCH {
                match self.rows.try_recv() {
                    Ok(row) => rows.push(row),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
    }

    async fn store(&self, rows: &[Row]) {
        if let Err(error) = insert(&self.pool, rows).await {
            rows.iter().for_each(|_| LOG_DROPPED.increment());
            tracing::warn!(%error, rows = rows.len(), "rows of the gateway's request log could not be stored and are gone");
        }
    }

    async fn delete(&self, days: u32) {
        let before = self.clock.now() - TimeDelta::days(days.into());
        loop {
            match delete_before(&self.pool, before).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "old rows of the gateway's request log could not be deleted, trying again tomorrow");
                    return;
                }
            }
        }
    }
}

/// Stores rows; those of an organization that is gone are left out.
async fn insert(db: impl PgExecutor<'_>, rows: &[Row]) -> sqlx::Result<()> {
    fn of<'a, T>(rows: &'a [Row], part: impl FnMut(&'a Row) -> T) -> Vec<T> {
        rows.iter().map(part).collect()
    }
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let orgs = of(rows, |row| row.org.0);
    sqlx::query(
        "WITH known AS MATERIALIZED (SELECT id FROM app.organizations WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE) \
         INSERT INTO app.gateway_log (org_id, at, key_id, provider_slug, model, input_tokens, output_tokens, cached_tokens, \
             cost_micro_usd, first_byte_ms, duration_ms, status) \
         SELECT x.* FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS x(org, at, key, provider, model, input, \
             output, cached, cost, first, took, status) \
         JOIN known ON known.id = x.org",
    )
    .bind(orgs)
    .bind(of(rows, |row| row.at))
    .bind(of(rows, |row| row.key))
    .bind(of(rows, |row| &*row.provider))
    .bind(of(rows, |row| &*row.model))
    .bind(of(rows, |row| number(row.input)))
    .bind(of(rows, |row| number(row.output)))
    .bind(of(rows, |row| number(row.cached)))
    .bind(of(rows, |row| number(row.cost)))
    .bind(of(rows, |row| row.first.map(number)))
    .bind(of(rows, |row| number(row.took)))
    .bind(of(rows, |row| i32::from(row.status)))
    .execute(db)
    .await?;
    Ok(())
}

async fn delete_before(db: impl PgExecutor<'_>, before: DateTime<Utc>) -> sqlx::Result<u64> {
    let deleted = sqlx::query(
        "DELETE FROM app.gateway_log WHERE id IN (SELECT id FROM app.gateway_log WHERE at < $1 ORDER BY at LIMIT $2)",
    )
    .bind(before)
    .bind(DELETED_AT_ONCE)
    .execute(db)
    .await?;
    Ok(deleted.rows_affected())
}

/// A row as it is read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its number; later rows have larger ones.
    pub id: i64,
    /// When the call began.
    pub at: DateTime<Utc>,
    /// The key's id.
    pub key: Uuid,
    /// The provider.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Tokens of the request.
    pub input_tokens: i64,
    /// Tokens of the answer.
    pub output_tokens: i64,
    /// Tokens of the request that came from a cache.
    pub cached_tokens: i64,
    /// What was booked, in cents.
    pub cost_cents: Cost,
    /// How long the provider took to its first byte.
    pub first_byte_ms: Option<i64>,
    /// How long the call took.
    pub duration_ms: i64,
    /// What the client was told; 499 when it had hung up.
    pub status: i32,
}

#[derive(sqlx::FromRow)]
struct Stored {
    id: i64,
    at: DateTime<Utc>,
    key_id: Uuid,
    provider_slug: String,
    model: String,
    input_tokens: i64,
    output_tokens: i64,
    cached_tokens: i64,
    cost_micro_usd: i64,
    first_byte_ms: Option<i64>,
    duration_ms: i64,
    status: i32,
}

/// The latest rows of an organization, the last one first; those before the row `before`, when one is named.
///
/// # Errors
/// When the database cannot be read.
pub async fn page(db: impl PgExecutor<'_>, org: OrgId, before: Option<i64>, limit: i64) -> sqlx::Result<Vec<Entry>> {
    let rows: Vec<Stored> = sqlx::query_as(
        "SELECT id, at, key_id, provider_slug, model, input_tokens, output_tokens, cached_tokens, cost_micro_usd, first_byte_ms, \
             duration_ms, status FROM app.gateway_log WHERE org_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
    )
    .bind(org)
    .bind(before.unwrap_or(i64::MAX))
    .bind(limit.clamp(1, MAX_PAGE))
    .fetch_all(db)
    .await?;
    let entry = |row: Stored| Entry {
        id: row.id,
        at: row.at,
        key: row.key_id,
        provider: row.provider_slug,
        model: row.model,
        input_tokens: row.input_tokens,
        output_tokens: row.output_tokens,
        cached_tokens: row.cached_tokens,
        cost_cents: Cost(u64::try_from(row.cost_micro_usd).unwrap_or(0)),
        first_byte_ms: row.first_byte_ms,
        duration_ms: row.duration_ms,
        status: row.status,
    };
    Ok(rows.into_iter().map(entry).collect())
}
