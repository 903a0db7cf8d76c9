//! SQL of moves of files to an organization's own bucket.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{FileId, OrgId};
use uuid::Uuid;

use crate::storage::{Move, MoveState};

/// A run as it goes on.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Running {
    pub(crate) target: String,
    pub(crate) after_id: Option<FileId>,
    pub(crate) at_key: Option<String>,
}

/// Begins a run unless one is under way; `false` then.
pub(crate) async fn begin(
    conn: &mut PgConnection,
    org: OrgId,
    run: Uuid,
    target: &str,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.storage_moves AS old (org_id, id, state, target, total, started_at)
         VALUES ($1, $2, 'running', $3, (SELECT count(*) FROM app.files WHERE org_id = $1 AND state <> 'deleting'), $4)
         ON CONFLICT (org_id) DO UPDATE
            SET id = EXCLUDED.id, state = 'running', target = EXCLUDED.target, total = EXCLUDED.total, moved = 0,
                skipped = 0, failed = 0, bytes = 0, after_id = NULL, error_code = NULL, error = NULL,
                started_at = EXCLUDED.started_at, ended_at = NULL
          WHERE old.state <> 'running'",
    )
    .bind(org)
    .bind(run)
    .bind(target)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The latest run.
pub(crate) async fn latest(conn: &mut PgConnection, org: OrgId) -> Result<Option<Move>, sqlx::Error> {
    sqlx::query_as(
        "SELECT state, target, total, moved, skipped, failed, bytes, error_code, error, started_at, ended_at
           FROM app.storage_moves WHERE org_id = $1",
    )
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// The run, while it goes on.
pub(crate) async fn running(conn: &mut PgConnection, org: OrgId, run: Uuid) -> Result<Option<Running>, sqlx::Error> {
    sqlx::query_as(
        "SELECT target, after_id, at_key FROM app.storage_moves WHERE org_id = $1 AND id = $2 AND state = 'running'",
    )
    .bind(org)
    .bind(run)
    .fetch_optional(conn)
    .await
}

/// Files after `after`, in the order of a run.
pub(crate) async fn files(
    conn: &mut PgConnection,
    org: OrgId,
    after: Option<FileId>,
    limit: i64,
) -> Result<Vec<(FileId, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, storage_key FROM app.files
          WHERE org_id = $1 AND id > $2 AND state <> 'deleting' ORDER BY id LIMIT $3",
    )
    .bind(org)
    .bind(after.map_or(Uuid::nil(), |after| after.0))
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Whether a file still needs the bytes under `key`.
pub(crate) async fn is_kept(conn: &mut PgConnection, org: OrgId, key: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (
             SELECT 1 FROM app.files f
              WHERE f.org_id = $1 AND f.storage_key = $2 AND f.state <> 'deleting'
                AND NOT EXISTS (SELECT 1 FROM app.documents d
                                 WHERE d.org_id = f.org_id AND d.file_id = f.id AND d.lifecycle = 'purging'))",
    )
    .bind(org)
    .bind(key)
    .fetch_one(conn)
    .await
}

/// Notes what is being moved; `false` when the run is over.
pub(crate) async fn take_up(conn: &mut PgConnection, org: OrgId, run: Uuid, key: &str) -> Result<bool, sqlx::Error> {
    let done =
        sqlx::query("UPDATE app.storage_moves SET at_key = $3 WHERE org_id = $1 AND id = $2 AND state = 'running'")
            .bind(org)
            .bind(run)
            .bind(key)
            .execute(conn)
            .await?;
    Ok(done.rows_affected() == 1)
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Moved { bytes: i64 },
    Skipped,
    Failed,
}

/// Notes that a file was dealt with.
pub(crate) async fn settle(
    conn: &mut PgConnection,
    org: OrgId,
    run: Uuid,
    file: FileId,
    how: Settled,
) -> Result<(), sqlx::Error> {
    let bytes = if let Settled::Moved { bytes } = how { bytes } else { 0 };
    sqlx::query(
        "UPDATE app.storage_moves
            SET at_key = NULL, after_id = $3, moved = moved + $4, skipped = skipped + $5, failed = failed + $6,
                bytes = bytes + $7
          WHERE org_id = $1 AND id = $2 AND state = 'running'",
    )
    .bind(org)
    .bind(run)
    .bind(file)
    .bind(i64::from(matches!(how, Settled::Moved { .. })))
    .bind(i64::from(how == Settled::Skipped))
    .bind(i64::from(how == Settled::Failed))
    .bind(bytes)
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the run; `None` when it is over already.
pub(crate) async fn end(
    conn: &mut PgConnection,
    org: OrgId,
    run: Uuid,
    state: MoveState,
    error: Option<(&str, &str)>,
    now: DateTime<Utc>,
) -> Result<Option<Move>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.storage_moves SET state = $3, error_code = $4, error = $5, ended_at = $6
          WHERE org_id = $1 AND id = $2 AND state = 'running'
         RETURNING state, target, total, moved, skipped, failed, bytes, error_code, error, started_at, ended_at",
    )
    .bind(org)
    .bind(run)
    .bind(state)
    .bind(error.map(|(code, _)| code))
    .bind(error.map(|(_, sentence)| sentence))
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Keeps others from changing the organization's connection until the transaction ends.
pub(crate) async fn lock_organization(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1 FROM app.organizations WHERE id = $1 FOR NO KEY UPDATE").bind(org).execute(conn).await?;
    Ok(())
}
