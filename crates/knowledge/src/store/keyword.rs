//! SQL of the keyword leg: its change log and the passages it reads.

use sqlx::postgres::PgExecutor;
use sqlx::{FromRow, PgConnection};
use tale_core::ids::OrgId;
use uuid::Uuid;

use crate::keyword::Passage;

/// Most entries one round reads. An index further behind is built anew, which is cheaper.
pub(crate) const MAX_ENTRIES: usize = 20_000;

/// Appends one entry per file (or slice of it) and wakes the followers of `org` when the caller's
/// transaction commits. The three lists run in parallel.
pub(crate) async fn append(
    conn: &mut PgConnection,
    org: OrgId,
    files: &[Uuid],
    first: &[Option<i32>],
    last: &[Option<i32>],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH logged AS (
              INSERT INTO private_knowledge.keyword_log (org_id, file_id, first_ordinal, last_ordinal)
              SELECT $1, change.file_id, change.first_ordinal, change.last_ordinal
                FROM unnest($2::uuid[], $3::integer[], $4::integer[]) AS change (file_id, first_ordinal, last_ordinal))
         SELECT pg_notify('tale_keyword', $5::text)",
    )
    .bind(org)
    .bind(files)
    .bind(first)
    .bind(last)
    .bind(org.0.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

/// An entry of the log: a file, or the passages from `first_ordinal` to `last_ordinal` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) file_id: Uuid,
    pub(crate) range: Option<(i32, i32)>,
}

/// What happened since a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The new checkpoint: everything that this snapshot saw is in `entries` or was seen before.
    pub(crate) snapshot: String,
    /// The log cannot bridge the gap: it was trimmed, the database was put back, or there is too much.
    pub(crate) lost: bool,
    /// Oldest transaction first.
    pub(crate) entries: Vec<Entry>,
}

#[derive(FromRow)]
struct WindowRow {
    snapshot: String,
    lost: bool,
    file_id: Option<Uuid>,
    first_ordinal: Option<i32>,
    last_ordinal: Option<i32>,
}

/// The entries that the snapshot `since` did not see and the present one does. One statement, hence
/// one snapshot: a transaction that is still running now will be new to the next call, whatever its
/// number.
pub(crate) async fn window(executor: impl PgExecutor<'_>, org: OrgId, since: &str) -> Result<Window, sqlx::Error> {
    let rows: Vec<WindowRow> = sqlx::query_as(
        "SELECT here.snapshot::text AS snapshot,
                pg_snapshot_xmax(here.snapshot) < pg_snapshot_xmax($2::pg_snapshot)
                    OR EXISTS (SELECT 1
                                 FROM private_knowledge.keyword_log_floor AS floor
                                WHERE floor.org_id = $1
                                  AND floor.trimmed_through >= pg_snapshot_xmin($2::pg_snapshot)) AS lost,
                entry.file_id, entry.first_ordinal, entry.last_ordinal
           FROM (SELECT pg_current_snapshot() AS snapshot) AS here
           LEFT JOIN LATERAL (
                SELECT log.file_id, log.first_ordinal, log.last_ordinal
                  FROM private_knowledge.keyword_log AS log
                 WHERE log.org_id = $1
                   AND log.xid >= pg_snapshot_xmin($2::pg_snapshot)
                   AND NOT pg_visible_in_snapshot(log.xid, $2::pg_snapshot)
                 ORDER BY log.xid, log.seq
                 LIMIT $3) AS entry ON true",
    )
    .bind(org)
    .bind(since)
    .bind(i64::try_from(MAX_ENTRIES).unwrap_or(i64::MAX) + 1)
    .fetch_all(executor)
    .await?;
    let Some(first) = rows.first() else {
        return Err(sqlx::Error::RowNotFound);
    };
    Ok(Window {
        snapshot: first.snapshot.clone(),
        lost: first.lost || rows.len() > MAX_ENTRIES,
        entries: rows
            .iter()
            .filter_map(|row| Some(Entry { file_id: row.file_id?, range: row.first_ordinal.zip(row.last_ordinal) }))
            .collect(),
    })
}

/// The present snapshot, the checkpoint from which a new index follows.
pub(crate) async fn snapshot(executor: impl PgExecutor<'_>) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_current_snapshot()::text").fetch_one(executor).await
}

/// Which of `orgs` have entries that their checkpoint in `since` did not see, or lost some.
/// Crosses organizations: it answers for the indexes that this process has open.
pub(crate) async fn behind(
    executor: impl PgExecutor<'_>,
    orgs: &[OrgId],
    since: &[String],
) -> Result<Vec<OrgId>, sqlx::Error> {
    let ids: Vec<Uuid> = orgs.iter().map(|org| org.0).collect();
    sqlx::query_scalar(
        "SELECT open.org_id
           FROM (SELECT asked.org_id, asked.since::pg_snapshot AS since
                   FROM unnest($1::uuid[], $2::text[]) AS asked (org_id, since)) AS open
          WHERE EXISTS (SELECT 1
                          FROM private_knowledge.keyword_log AS log
                         WHERE log.org_id = open.org_id
                           AND log.xid >= pg_snapshot_xmin(open.since)
                           AND NOT pg_visible_in_snapshot(log.xid, open.since))
             OR pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(open.since)",
    )
    .bind(ids)
    .bind(since)
    .fetch_all(executor)
    .await
}

/// Passages of a file from ordinal `first` to `last`, at most `limit`, in order.
pub(crate) async fn passages_of_file(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    file: Uuid,
    first: i32,
    last: i32,
    limit: i64,
) -> Result<Vec<Passage>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, file_id, ordinal, library, header, body
           FROM private_knowledge.chunks
          WHERE org_id = $1
            AND file_id = $2
            AND ordinal BETWEEN $3 AND $4
          ORDER BY ordinal
          LIMIT $5",
    )
    .bind(org)
    .bind(file)
    .bind(first)
    .bind(last)
    .bind(limit)
    .fetch_all(executor)
    .await
}

/// Passages of an organization after `(file, ordinal)`, at most `limit`, in that order.
pub(crate) async fn passages_after(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    file: Uuid,
    ordinal: i32,
    limit: i64,
) -> Result<Vec<Passage>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, file_id, ordinal, library, header, body
           FROM private_knowledge.chunks
          WHERE org_id = $1
            AND (file_id, ordinal) > ($2, $3)
          ORDER BY file_id, ordinal
          LIMIT $4",
    )
    .bind(org)
    .bind(file)
    .bind(ordinal)
    .bind(limit)
    .fetch_all(executor)
    .await
}

/// Removes entries older than `days` and remembers per organization how far. Crosses organizations.
pub(crate) async fn trim(executor: impl PgExecutor<'_>, days: i32) -> Result<u64, sqlx::Error> {
    let removed: Option<i64> = sqlx::query_scalar(
        "WITH gone AS (
             DELETE FROM private_knowledge.keyword_log
              WHERE logged_at < now() - make_interval(days => $1)
             RETURNING org_id, xid),
         floors AS (
             INSERT INTO private_knowledge.keyword_log_floor AS floor (org_id, trimmed_through)
             SELECT org_id, max(xid)
               FROM gone
              GROUP BY org_id
             ON CONFLICT (org_id) DO UPDATE
                SET trimmed_through = greatest(floor.trimmed_through, excluded.trimmed_through))
         SELECT count(*) FROM gone",
    )
    .bind(days)
    .fetch_one(executor)
    .await?;
    Ok(u64::try_from(removed.unwrap_or(0)).unwrap_or(0))
}

/// Which of `orgs` there are in the operational database. Crosses organizations.
pub(crate) async fn organizations(app: impl PgExecutor<'_>, orgs: &[OrgId]) -> Result<Vec<OrgId>, sqlx::Error> {
    let ids: Vec<Uuid> = orgs.iter().map(|org| org.0).collect();
    sqlx::query_scalar("SELECT id FROM app.organizations WHERE id = ANY($1)").bind(ids).fetch_all(app).await
}
