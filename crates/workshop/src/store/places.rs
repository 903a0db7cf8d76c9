//! `app.sandbox_sessions`: who holds a place; and `app.sandbox_days`.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::{OrgId, UserId};

/// Holds what the organization's places are given out under, until the transaction ends (SBX-30).
pub(crate) async fn lock(conn: &mut PgConnection, org: OrgId) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('tale.sandbox/' || $1::text, 0))")
        .bind(org)
        .execute(conn)
        .await
        .map(drop)
}

/// Makes sure that a person's session has a row. `false` while its files are being deleted.
pub(crate) async fn ensure(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    session: &str,
    profile: &str,
) -> sqlx::Result<bool> {
    let allocation: String = sqlx::query_scalar(
        "INSERT INTO app.sandbox_sessions (id, org_id, user_id, workload, profile) VALUES ($1, $2, $3, 'project', $4)
         ON CONFLICT (id) DO UPDATE SET used_at = CASE WHEN sandbox_sessions.allocation = 'destroying'
             THEN sandbox_sessions.used_at ELSE now() END
         RETURNING allocation",
    )
    .bind(session)
    .bind(org)
    .bind(user)
    .bind(profile)
    .fetch_one(conn)
    .await?;
    Ok(allocation != "destroying")
}

/// How many places of each class are held.
pub(crate) async fn held(db: impl PgExecutor<'_>, org: OrgId) -> sqlx::Result<[i64; 3]> {
    let (project, workflow, render) = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE workload = 'project'), count(*) FILTER (WHERE workload = 'workflow'),
                count(*) FILTER (WHERE workload = 'render')
         FROM app.sandbox_sessions WHERE org_id = $1 AND allocation IN ('creating', 'active')",
    )
    .bind(org)
    .fetch_one(db)
    .await?;
    Ok([project, workflow, render])
}

/// Takes a place.
pub(crate) async fn take(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<bool> {
    sqlx::query(
        "UPDATE app.sandbox_sessions SET allocation = 'creating', used_at = now()
         WHERE org_id = $1 AND id = $2 AND allocation = 'released'",
    )
    .bind(org)
    .bind(session)
    .execute(conn)
    .await
    .map(|done| done.rows_affected() > 0)
}

/// The session runs.
pub(crate) async fn activate(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.sandbox_sessions SET allocation = 'active' WHERE org_id = $1 AND id = $2 AND allocation = 'creating'")
        .bind(org)
        .bind(session)
        .execute(conn)
        .await
        .map(drop)
}

/// Gives a place back, and with a hold the duty to tell the spawner of its end (SBX-111).
pub(crate) async fn give_back(
    conn: &mut PgConnection,
    org: OrgId,
    session: &str,
    generation: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.sandbox_sessions SET allocation = 'released', used_at = now(),
             release_generation = coalesce($3, release_generation),
             release_at = CASE WHEN $3 IS NULL THEN release_at ELSE now() END
         WHERE org_id = $1 AND id = $2 AND allocation IN ('creating', 'active')",
    )
    .bind(org)
    .bind(session)
    .bind(generation)
    .execute(conn)
    .await
    .map(drop)
}

/// Holds that the spawner is to be told of now. Each is moved on first, so that a lost process delays it only.
pub(crate) async fn due_releases(db: impl PgExecutor<'_>, pause: f64) -> sqlx::Result<Vec<(OrgId, String, String)>> {
    sqlx::query_as(
        "UPDATE app.sandbox_sessions SET release_at = now() + make_interval(secs => $1)
         WHERE id IN (SELECT id FROM app.sandbox_sessions WHERE release_at <= now() ORDER BY release_at LIMIT 16 FOR UPDATE SKIP LOCKED)
         RETURNING org_id, id, release_generation",
    )
    .bind(pause)
    .fetch_all(db)
    .await
}

/// The spawner knows.
pub(crate) async fn told(db: impl PgExecutor<'_>, org: OrgId, session: &str, generation: &str) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.sandbox_sessions SET release_generation = NULL, release_at = NULL
         WHERE org_id = $1 AND id = $2 AND release_generation = $3",
    )
    .bind(org)
    .bind(session)
    .bind(generation)
    .execute(db)
    .await
    .map(drop)
}

/// A session with its person.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Session {
    pub id: String,
    pub workload: String,
    pub allocation: String,
    pub person: Option<String>,
    pub used_at: DateTime<Utc>,
    pub running: i64,
    pub ms: i64,
}

/// Sessions of the organization, those used last first.
pub(crate) async fn list(db: impl PgExecutor<'_>, org: OrgId, most: i64) -> sqlx::Result<Vec<Session>> {
    sqlx::query_as(
        "SELECT s.id, s.workload, s.allocation, u.name AS person, s.used_at,
             (SELECT count(*) FROM app.code_runs r WHERE r.org_id = s.org_id AND r.session_id = s.id
                 AND r.state IN ('starting', 'running')) AS running,
             (SELECT coalesce(sum(d.ms), 0)::bigint FROM app.sandbox_days d WHERE d.org_id = s.org_id
                 AND d.user_id = s.user_id AND d.workload = s.workload AND d.day > current_date - 30) AS ms
         FROM app.sandbox_sessions s LEFT JOIN app.users u ON u.id = s.user_id
         WHERE s.org_id = $1 ORDER BY s.used_at DESC LIMIT $2",
    )
    .bind(org)
    .bind(most)
    .fetch_all(db)
    .await
}

/// Marks a session and its files as going away. `None` = there is no such session; else whether it was new.
pub(crate) async fn condemn(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar(
        "UPDATE app.sandbox_sessions s SET allocation = 'destroying', release_generation = NULL, release_at = NULL, used_at = now()
         FROM (SELECT id, allocation FROM app.sandbox_sessions WHERE org_id = $1 AND id = $2 FOR UPDATE) old
         WHERE s.org_id = $1 AND s.id = old.id RETURNING old.allocation <> 'destroying'",
    )
    .bind(org)
    .bind(session)
    .fetch_optional(conn)
    .await
}

/// Adds what ended today.
pub(crate) async fn meter(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    workload: &str,
    ms: i64,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.sandbox_days (org_id, day, user_id, workload, runs, ms)
         VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, 1, $4)
         ON CONFLICT (org_id, day, user_id, workload)
         DO UPDATE SET runs = sandbox_days.runs + 1, ms = sandbox_days.ms + EXCLUDED.ms",
    )
    .bind(org)
    .bind(user)
    .bind(workload)
    .bind(ms)
    .execute(conn)
    .await
    .map(drop)
}

/// Runs and milliseconds of the last 30 days, of one person when one is named.
pub(crate) async fn used(db: impl PgExecutor<'_>, org: OrgId, user: Option<UserId>) -> sqlx::Result<(i64, i64)> {
    sqlx::query_as(
        "SELECT coalesce(sum(runs), 0)::bigint, coalesce(sum(ms), 0)::bigint FROM app.sandbox_days
         WHERE org_id = $1 AND day > (now() AT TIME ZONE 'UTC')::date - 30 AND ($2::uuid IS NULL OR user_id = $2)",
    )
    .bind(org)
    .bind(user)
    .fetch_one(db)
    .await
}

/// Condemned sessions in which nothing goes on any more. Each is moved on first.
pub(crate) async fn due_destroys(db: impl PgExecutor<'_>, pause: f64) -> sqlx::Result<Vec<(OrgId, String)>> {
    sqlx::query_as(
        "UPDATE app.sandbox_sessions s SET used_at = now() + make_interval(secs => $1)
         WHERE s.id IN (
             SELECT c.id FROM app.sandbox_sessions c
             WHERE c.allocation = 'destroying' AND c.used_at <= now()
               AND NOT EXISTS (SELECT FROM app.code_runs r WHERE r.org_id = c.org_id AND r.session_id = c.id AND r.ended_at IS NULL)
             ORDER BY c.used_at LIMIT 4 FOR UPDATE SKIP LOCKED)
         RETURNING s.org_id, s.id",
    )
    .bind(pause)
    .fetch_all(db)
    .await
}

/// Forgets a session that is deleted.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<bool> {
    sqlx::query("DELETE FROM app.sandbox_sessions WHERE org_id = $1 AND id = $2 AND allocation = 'destroying'")
        .bind(org)
        .bind(session)
        .execute(conn)
        .await
        .map(|done| done.rows_affected() > 0)
}

/// Whether the organization has such a session.
pub(crate) async fn exists(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.sandbox_sessions WHERE org_id = $1 AND id = $2)")
        .bind(org)
        .bind(session)
        .fetch_one(conn)
        .await
}

/// Organizations that were deleted and of which the spawner may still have something: whoever used a sandbox has, or
/// had, a session. Looks across organizations.
pub(crate) async fn deleted_orgs(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<OrgId>> {
    sqlx::query_scalar(
        "SELECT o.id FROM app.organizations o
         WHERE o.deleted_at IS NOT NULL
           AND (EXISTS (SELECT FROM app.sandbox_sessions s WHERE s.org_id = o.id)
             OR EXISTS (SELECT FROM app.sandbox_days d WHERE d.org_id = o.id))
         ORDER BY random() LIMIT 16",
    )
    .fetch_all(db)
    .await
}

/// Forgets everything that stands for sandboxes of an organization. Answers which sessions there were.
pub(crate) async fn remove_all(conn: &mut PgConnection, org: OrgId) -> sqlx::Result<Vec<String>> {
    sqlx::query("DELETE FROM app.sandbox_days WHERE org_id = $1").bind(org).execute(&mut *conn).await?;
    sqlx::query_scalar("DELETE FROM app.sandbox_sessions WHERE org_id = $1 RETURNING id")
        .bind(org)
        .fetch_all(conn)
        .await
}
