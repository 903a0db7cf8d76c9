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
    pub pinned: bool,
    pub pinned_at: Option<DateTime<Utc>>,
    pub running: i64,
    /// Runs that have not ended, those that wait among them.
    pub open: i64,
    pub ms: i64,
}

/// Sessions of the organization, those used last first.
pub(crate) async fn list(db: impl PgExecutor<'_>, org: OrgId, most: i64) -> sqlx::Result<Vec<Session>> {
    sqlx::query_as(
        "SELECT s.id, s.workload, s.allocation, u.name AS person, s.used_at, s.pinned, s.pinned_at,
             (SELECT count(*) FROM app.code_runs r WHERE r.org_id = s.org_id AND r.session_id = s.id
                 AND r.ended_at IS NULL) AS open,
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

/// Marks a session and its files as going away, because somebody asked for it. `None` = there is no such session; else
/// whether nobody had asked for it yet.
pub(crate) async fn condemn(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar(
        "UPDATE app.sandbox_sessions s SET allocation = 'destroying', destroy_reason = 'requested', last_used_at = NULL,
             release_generation = NULL, release_at = NULL, used_at = now()
         FROM (SELECT id, allocation, destroy_reason FROM app.sandbox_sessions WHERE org_id = $1 AND id = $2 FOR UPDATE) old
         WHERE s.org_id = $1 AND s.id = old.id
         RETURNING old.allocation <> 'destroying' OR old.destroy_reason IN ('unused', 'orphaned')",
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

/// A session that is being deleted.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Condemned {
    pub org_id: OrgId,
    pub id: String,
    /// `requested`, `unused` or `orphaned`.
    pub reason: String,
}

/// Condemned sessions in which nothing goes on any more. Each is moved on first.
pub(crate) async fn due_destroys(db: impl PgExecutor<'_>, pause: f64) -> sqlx::Result<Vec<Condemned>> {
    sqlx::query_as(
        "UPDATE app.sandbox_sessions s SET used_at = now() + make_interval(secs => $1)
         WHERE s.id IN (
             SELECT c.id FROM app.sandbox_sessions c
             WHERE c.allocation = 'destroying' AND c.used_at <= now()
               AND NOT EXISTS (SELECT FROM app.code_runs r WHERE r.org_id = c.org_id AND r.session_id = c.id AND r.ended_at IS NULL)
             ORDER BY c.used_at LIMIT 4 FOR UPDATE SKIP LOCKED)
         RETURNING s.org_id, s.id, coalesce(s.destroy_reason, 'requested') AS reason",
    )
    .bind(pause)
    .fetch_all(db)
    .await
}

/// Forgets a session that is deleted. Answers why it was, as far as anybody is to be told: `None` when it is gone already.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar(
        "DELETE FROM app.sandbox_sessions WHERE org_id = $1 AND id = $2 AND allocation = 'destroying'
         RETURNING coalesce(destroy_reason, 'requested')",
    )
    .bind(org)
    .bind(session)
    .fetch_optional(conn)
    .await
}

/// Keeps a session that was to be deleted although nobody asked for it. `false` when somebody has meanwhile, or it is
/// gone.
pub(crate) async fn keep(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<bool> {
    let orphans = sqlx::query(
        "DELETE FROM app.sandbox_sessions
         WHERE org_id = $1 AND id = $2 AND allocation = 'destroying' AND destroy_reason = 'orphaned'",
    )
    .bind(org)
    .bind(session)
    .execute(&mut *conn)
    .await?;
    let unused = sqlx::query(
        "UPDATE app.sandbox_sessions SET allocation = 'released', destroy_reason = NULL,
             used_at = coalesce(last_used_at, used_at), last_used_at = NULL
         WHERE org_id = $1 AND id = $2 AND allocation = 'destroying' AND destroy_reason = 'unused'",
    )
    .bind(org)
    .bind(session)
    .execute(conn)
    .await?;
    Ok(orphans.rows_affected() + unused.rows_affected() > 0)
}

/// Writes down which workspaces the spawner says are pinned, of all organizations.
pub(crate) async fn note_pins(db: impl PgExecutor<'_>, pinned: &[&str]) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.sandbox_sessions SET pinned = id = ANY ($1),
             pinned_at = CASE WHEN id = ANY ($1) THEN now() ELSE pinned_at END
         WHERE pinned OR id = ANY ($1)",
    )
    .bind(pinned)
    .execute(db)
    .await
    .map(drop)
}

/// Organizations with a workspace that nobody has used for a day. Looks across organizations.
pub(crate) async fn orgs_with_unused(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<OrgId>> {
    sqlx::query_scalar(
        "SELECT DISTINCT s.org_id FROM app.sandbox_sessions s JOIN app.organizations o ON o.id = s.org_id
         WHERE o.deleted_at IS NULL AND s.allocation = 'released' AND s.used_at <= now() - interval '1 day'",
    )
    .fetch_all(db)
    .await
}

/// What is known of when a workspace was used.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Unused {
    pub id: String,
    pub allocation: String,
    pub used_at: DateTime<Utc>,
    pub pinned: bool,
    pub pinned_at: Option<DateTime<Utc>>,
    /// Runs that have not ended.
    pub open: i64,
}

/// Standing workspaces of the organization, or the one that is named, which nobody has used since `until`, which are not
/// pinned and of which nothing is given out: longest unused first.
pub(crate) async fn unused(
    conn: &mut PgConnection,
    org: OrgId,
    session: Option<&str>,
    until: DateTime<Utc>,
    most: i64,
) -> sqlx::Result<Vec<Unused>> {
    sqlx::query_as(
        "SELECT s.id, s.allocation, s.used_at, s.pinned, s.pinned_at,
             (SELECT count(*) FROM app.code_runs r WHERE r.org_id = s.org_id AND r.session_id = s.id
                 AND r.ended_at IS NULL) AS open
         FROM app.sandbox_sessions s
         WHERE s.org_id = $1 AND s.workload = 'project' AND s.allocation = 'released' AND NOT s.pinned
           AND greatest(s.used_at, s.pinned_at) <= $3 AND ($2::text IS NULL OR s.id = $2)
         ORDER BY s.used_at, s.id LIMIT $4",
    )
    .bind(org)
    .bind(session)
    .bind(until)
    .bind(most)
    .fetch_all(conn)
    .await
}

/// Has an unused workspace deleted.
pub(crate) async fn condemn_unused(conn: &mut PgConnection, org: OrgId, session: &str) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.sandbox_sessions SET allocation = 'destroying', destroy_reason = 'unused', last_used_at = used_at,
             used_at = now()
         WHERE org_id = $1 AND id = $2 AND allocation = 'released'",
    )
    .bind(org)
    .bind(session)
    .execute(conn)
    .await
    .map(drop)
}

/// Which of these workspaces have an organization of this deployment and no row.
pub(crate) async fn unnamed(
    db: impl PgExecutor<'_>,
    sessions: &[&str],
    orgs: &[OrgId],
) -> sqlx::Result<Vec<(OrgId, String)>> {
    let orgs: Vec<uuid::Uuid> = orgs.iter().map(|org| org.0).collect();
    sqlx::query_as(
        "SELECT w.org_id, w.id FROM unnest($1::text[], $2::uuid[]) AS w (id, org_id)
         JOIN app.organizations o ON o.id = w.org_id
         WHERE NOT EXISTS (SELECT FROM app.sandbox_sessions s WHERE s.id = w.id)",
    )
    .bind(sessions)
    .bind(orgs)
    .fetch_all(db)
    .await
}

/// Gives a workspace that nothing names a row, so that nothing can begin in it, and has it deleted. `false` when something
/// names it after all.
pub(crate) async fn condemn_orphan(
    conn: &mut PgConnection,
    org: OrgId,
    session: &str,
    profile: &str,
) -> sqlx::Result<bool> {
    sqlx::query(
        "INSERT INTO app.sandbox_sessions (id, org_id, user_id, workload, profile, allocation, destroy_reason)
         VALUES ($1, $2, $3, 'project', $4, 'destroying', 'orphaned') ON CONFLICT (id) DO NOTHING",
    )
    .bind(session)
    .bind(org)
    .bind(uuid::Uuid::nil())
    .bind(profile)
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
