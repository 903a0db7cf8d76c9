//! The queue's SQL. Every write after a claim carries the fencing token and reports whether it
//! still counted.

use std::time::Duration;

use serde_json::Value;
use sqlx::{PgConnection, Row};
use tale_core::ids::{JobId, OrgId};
use uuid::Uuid;

use crate::job::EnqueueOptions;
use crate::{LEASE, POLL};

/// Rows one maintenance statement moves at most.
const BATCH: i64 = 500;

/// A job this worker holds from now on.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) id: JobId,
    pub(crate) org: Option<OrgId>,
    pub(crate) kind: String,
    pub(crate) payload: Value,
    pub(crate) attempts: u32,
    pub(crate) token: i64,
    /// Its organization as a place in the queue.
    pub(crate) place: Uuid,
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// Queues a job; a queued one under the same key is replaced. Workers are told its kind and place; of
/// one that waits for its time, only that something is new.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    kind: &str,
    payload: &Value,
    options: &EnqueueOptions,
) -> sqlx::Result<JobId> {
    let row = sqlx::query(
        "WITH entered AS (
         INSERT INTO app.jobs AS queued (id, org_id, kind, dedupe_key, payload, state, run_at)
         SELECT $1, $2, $3, $4, $5,
                CASE WHEN $6 > 0 THEN 'waiting' ELSE 'ready' END,
                clock_timestamp() + make_interval(secs => $6)
         ON CONFLICT (kind, dedupe_key) WHERE dedupe_key IS NOT NULL AND state IN ('waiting', 'ready')
         DO UPDATE SET payload = EXCLUDED.payload,
                       run_at = least(queued.run_at, EXCLUDED.run_at),
                       state = CASE WHEN EXCLUDED.state = 'ready' THEN 'ready' ELSE queued.state END,
                       updated_at = now()
         RETURNING id)
         SELECT id, pg_notify('tale_jobs', CASE WHEN $6 > 0 THEN '' ELSE $3 || ' ' || coalesce($2, $7)::text END)
           FROM entered",
    )
    .bind(JobId::new())
    .bind(org)
    .bind(kind)
    .bind(&options.dedupe_key)
    .bind(payload)
    .bind(seconds(options.delay))
    .bind(Uuid::nil())
    .fetch_one(conn)
    .await?;
    row.try_get("id")
}

/// Begins a transaction that makes claims serial until it ends, so that limits hold exactly. Held for
/// the milliseconds of one claim, never during a migration. A claim that a power cut takes back was
/// not made: its worker is gone too.
pub(crate) const BEGIN_CLAIM: &str = "BEGIN;
    SET LOCAL synchronous_commit = off;
    SELECT pg_advisory_xact_lock(hashtextextended('tale.jobs.claim', 0))";

/// Claims the oldest claimable job of the first organization that has one: first of those after
/// `last`, then around from the beginning. `kinds` are the worker's, each with its limit per
/// organization. Crosses organizations.
///
/// The job is updated by its id alone: claims are serial and nothing else takes a job out of `ready`,
/// while a planner that may look for ready jobs there walks the whole queue.
pub(crate) async fn claim(
    conn: &mut PgConnection,
    holder: &str,
    kinds: &[String],
    limits: &[i32],
    last: Uuid,
) -> sqlx::Result<Option<Claim>> {
    let row = sqlx::query(
        "WITH RECURSIVE places AS (
             (SELECT beginning.queue_org, beginning.around
                FROM ((SELECT j.queue_org, false AS around
                         FROM app.jobs j
                        WHERE j.state = 'ready' AND j.queue_org > $4
                        ORDER BY j.queue_org
                        LIMIT 1)
                      UNION ALL
                      (SELECT j.queue_org, true
                         FROM app.jobs j
                        WHERE j.state = 'ready' AND j.queue_org <= $4
                        ORDER BY j.queue_org
                        LIMIT 1)) AS beginning
               LIMIT 1)
             UNION ALL
             SELECT following.queue_org, following.around
               FROM places
              CROSS JOIN LATERAL (
                    (SELECT j.queue_org, places.around
                       FROM app.jobs j
                      WHERE j.state = 'ready' AND j.queue_org > places.queue_org
                        AND j.queue_org <= CASE WHEN places.around THEN $4 ELSE $5 END
                      ORDER BY j.queue_org
                      LIMIT 1)
                    UNION ALL
                    (SELECT j.queue_org, true
                       FROM app.jobs j
                      WHERE NOT places.around AND j.state = 'ready' AND j.queue_org <= $4
                      ORDER BY j.queue_org
                      LIMIT 1)
                    LIMIT 1) following
         ),
         pick AS (
             SELECT oldest.id
               FROM places
              CROSS JOIN LATERAL (
                    SELECT head.id
                      FROM unnest($2::text[], $3::int[]) AS known (kind, per_org)
                     CROSS JOIN LATERAL (
                           SELECT j.id, j.seq
                             FROM app.jobs j
                            WHERE j.state = 'ready' AND j.queue_org = places.queue_org AND j.kind = known.kind
                              AND (j.dedupe_key IS NULL OR NOT EXISTS (
                                   SELECT FROM app.jobs r
                                    WHERE r.state = 'running' AND r.kind = j.kind AND r.dedupe_key = j.dedupe_key))
                            ORDER BY j.seq
                            LIMIT 1) head
                     WHERE (SELECT count(*)
                              FROM app.jobs r
                             WHERE r.state = 'running' AND r.queue_org = places.queue_org AND r.kind = known.kind
                           ) < known.per_org
                     ORDER BY head.seq
                     LIMIT 1) oldest
              LIMIT 1
         )
         UPDATE app.jobs claimed
            SET state = 'running',
                attempts = claimed.attempts + 1,
                lease_holder = $1,
                lease_token = nextval('app.job_lease_token'),
                lease_expires_at = clock_timestamp() + make_interval(secs => $6),
                updated_at = now()
          WHERE claimed.id = (SELECT pick.id FROM pick)
         RETURNING claimed.id, claimed.org_id, claimed.kind, claimed.payload, claimed.attempts,
                   claimed.lease_token, claimed.queue_org",
    )
    .bind(holder)
    .bind(kinds)
    .bind(limits)
    .bind(last)
    .bind(Uuid::max())
    .bind(seconds(LEASE))
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Claim {
        id: row.try_get("id")?,
        org: row.try_get("org_id")?,
        kind: row.try_get("kind")?,
        payload: row.try_get("payload")?,
        attempts: u32::try_from(row.try_get::<i32, _>("attempts")?).unwrap_or(0),
        token: row.try_get("lease_token")?,
        place: row.try_get("queue_org")?,
    }))
}

/// Extends leases; returns those that are still held.
pub(crate) async fn renew(conn: &mut PgConnection, leases: &[(JobId, i64)]) -> sqlx::Result<Vec<JobId>> {
    let (ids, tokens): (Vec<JobId>, Vec<i64>) = leases.iter().copied().unzip();
    sqlx::query_scalar(
        "UPDATE app.jobs j
            SET lease_expires_at = clock_timestamp() + make_interval(secs => $3)
           FROM unnest($1::uuid[], $2::bigint[]) AS held (id, token)
          WHERE j.id = held.id AND j.lease_token = held.token AND j.state = 'running'
         RETURNING j.id",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .bind(tokens)
    .bind(seconds(LEASE))
    .fetch_all(conn)
    .await
}

/// Whether the lease is held, and keeps it so until the transaction ends.
pub(crate) async fn lock_if_held(conn: &mut PgConnection, id: JobId, token: i64) -> sqlx::Result<bool> {
    let held: Option<i32> =
        sqlx::query_scalar("SELECT 1 FROM app.jobs WHERE id = $1 AND lease_token = $2 AND state = 'running' FOR SHARE")
            .bind(id)
            .bind(token)
            .fetch_optional(conn)
            .await?;
    Ok(held.is_some())
}

/// Removes a finished job. `false`: the lease was lost, or the job completed itself.
pub(crate) async fn finish(conn: &mut PgConnection, id: JobId, token: i64) -> sqlx::Result<bool> {
    let done = sqlx::query("DELETE FROM app.jobs WHERE id = $1 AND lease_token = $2 AND state = 'running'")
        .bind(id)
        .bind(token)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// What a job that goes back into the queue carries along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requeue<'a> {
    /// How long it waits.
    pub(crate) delay: Duration,
    /// Whether the attempt is given back.
    pub(crate) refund: bool,
    /// Code and message of the failure.
    pub(crate) error: Option<(&'a str, &'a str)>,
}

/// Puts a held job back. When its key has been queued again meanwhile, that newer job stands for
/// it and this one goes.
pub(crate) async fn requeue(conn: &mut PgConnection, id: JobId, token: i64, how: Requeue<'_>) -> sqlx::Result<bool> {
    let moved = sqlx::query(
        "WITH mine AS (
             SELECT j.id,
                    EXISTS (SELECT FROM app.jobs q
                             WHERE q.kind = j.kind AND q.dedupe_key = j.dedupe_key AND q.state IN ('waiting', 'ready')
                           ) AS replaced
               FROM app.jobs j
              WHERE j.id = $1 AND j.lease_token = $2 AND j.state = 'running'
         ),
         gone AS (
             DELETE FROM app.jobs j USING mine WHERE j.id = mine.id AND mine.replaced RETURNING j.id
         ),
         kept AS (
             UPDATE app.jobs j
                SET state = CASE WHEN $3 > 0 THEN 'waiting' ELSE 'ready' END,
                    run_at = clock_timestamp() + make_interval(secs => $3),
                    attempts = j.attempts - CASE WHEN $4 THEN 1 ELSE 0 END,
                    lease_holder = NULL, lease_token = NULL, lease_expires_at = NULL,
                    error_code = coalesce($5, j.error_code),
                    error_message = coalesce($6, j.error_message),
                    updated_at = now()
               FROM mine
              WHERE j.id = mine.id AND NOT mine.replaced
             RETURNING j.id
         )
         SELECT count(*) FROM (SELECT id FROM gone UNION ALL SELECT id FROM kept) AS moved",
    )
    .bind(id)
    .bind(token)
    .bind(seconds(how.delay))
    .bind(how.refund)
    .bind(how.error.map(|(code, _)| code))
    .bind(how.error.map(|(_, message)| message))
    .fetch_one(conn)
    .await?;
    Ok(moved.try_get::<i64, _>(0)? == 1)
}

/// Keeps a held job as given up.
pub(crate) async fn bury(
    conn: &mut PgConnection,
    id: JobId,
    token: i64,
    code: &str,
    message: &str,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.jobs
            SET state = 'dead', error_code = $3, error_message = $4,
                lease_holder = NULL, lease_token = NULL, lease_expires_at = NULL, updated_at = now()
          WHERE id = $1 AND lease_token = $2 AND state = 'running'",
    )
    .bind(id)
    .bind(token)
    .bind(code)
    .bind(message)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Moves jobs whose time has come from `waiting` to `ready`. Crosses organizations.
pub(crate) async fn promote(conn: &mut PgConnection) -> sqlx::Result<u64> {
    let moved = sqlx::query(
        "UPDATE app.jobs
            SET state = 'ready', updated_at = now()
          WHERE id IN (SELECT id FROM app.jobs
                        WHERE state = 'waiting' AND run_at <= clock_timestamp()
                        ORDER BY run_at
                        LIMIT $1
                          FOR UPDATE SKIP LOCKED)",
    )
    .bind(BATCH)
    .execute(conn)
    .await?;
    Ok(moved.rows_affected())
}

/// The leases that nobody renews: run out, or of `holder` from before it started again. Crosses
/// organizations.
pub(crate) async fn lost_leases(conn: &mut PgConnection, holder: Option<&str>) -> sqlx::Result<Vec<(JobId, i64)>> {
    sqlx::query_as(
        "SELECT id, lease_token
           FROM app.jobs
          WHERE state = 'running' AND (lease_expires_at < clock_timestamp() OR lease_holder = $1)
          ORDER BY lease_expires_at
          LIMIT $2
            FOR UPDATE SKIP LOCKED",
    )
    .bind(holder)
    .bind(BATCH)
    .fetch_all(conn)
    .await
}

/// How long until a waiting job is due or a lease runs out, at most the polling interval.
pub(crate) async fn until_due(conn: &mut PgConnection) -> sqlx::Result<Duration> {
    let next: Option<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM least(
                    (SELECT min(run_at) FROM app.jobs WHERE state = 'waiting'),
                    (SELECT min(lease_expires_at) FROM app.jobs WHERE state = 'running')
                ) - clock_timestamp())::float8",
    )
    .fetch_one(conn)
    .await?;
    Ok(next.map_or(POLL, |secs| Duration::try_from_secs_f64(secs).unwrap_or_default().min(POLL)))
}

/// Takes the turn of a recurring kind when it is due and sets the next one.
pub(crate) async fn take_turn(conn: &mut PgConnection, kind: &str, every: Duration) -> sqlx::Result<bool> {
    let taken = sqlx::query(
        "INSERT INTO app.job_schedules AS due (kind, next_at)
         VALUES ($1, clock_timestamp() + make_interval(secs => $2))
         ON CONFLICT (kind)
         DO UPDATE SET next_at = EXCLUDED.next_at
            WHERE due.next_at <= clock_timestamp()",
    )
    .bind(kind)
    .bind(seconds(every))
    .execute(conn)
    .await?;
    Ok(taken.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use tale_testkit::TestDb;

    use super::*;

    #[tokio::test]
    async fn a_claim_reads_a_few_rows_of_a_long_queue() {
        let db = TestDb::new().await;
        let org = OrgId::new();
        let mut tx = db.app.begin().await.unwrap();
        for _ in 0..500 {
            insert(&mut tx, Some(org), "kind", &Value::Null, &EnqueueOptions::default()).await.unwrap();
        }
        tx.commit().await.unwrap();
        let mut tx = db.app.begin_with(BEGIN_CLAIM).await.unwrap();
        for last in [Uuid::max(), org.0, Uuid::nil()] {
            let claimed = claim(&mut tx, "me", &["kind".to_owned()], &[3], last).await.unwrap();
            assert_eq!(claimed.unwrap().place, org.0);
        }
        assert!(claim(&mut tx, "me", &["kind".to_owned()], &[3], org.0).await.unwrap().is_none());
        let read: i64 = sqlx::query_scalar(
            "SELECT (seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_user_tables WHERE relid = 'app.jobs'::regclass",
        )
        .fetch_one(&mut *tx)
        .await
        .unwrap();
        assert!(read < 100, "{read} rows were read for four claims");
    }
}
