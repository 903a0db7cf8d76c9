//! `app.code_runs`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::{CodeRunId, OrgId, UserId};
use uuid::Uuid;

use crate::attend::{Deferral, Outcome};

/// A run as its owner sees it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Row {
    pub id: CodeRunId,
    pub language: String,
    pub code: String,
    pub state: String,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub host_position: Option<i32>,
    pub queued_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub cancel_requested: bool,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub last_seq: i64,
    pub output_bytes: i64,
    pub output_complete: Option<bool>,
    /// Runs of the organization that wait before this one, when it waits.
    pub before: Option<i64>,
}

const COLUMNS: &str = "r.id, r.language, r.state, r.reason, r.message, r.host_position, r.queued_at, \
     r.started_at, r.ended_at, r.cancel_requested, r.exit_code, r.duration_ms, r.last_seq, r.output_bytes, \
     r.output_complete, \
     CASE WHEN r.state = 'waiting' THEN (SELECT count(*) FROM app.code_runs o WHERE o.org_id = r.org_id \
         AND o.state = 'waiting' AND (o.queued_at, o.id) < (r.queued_at, r.id)) END AS before";

/// A run that a process attends to from now on.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Held {
    pub id: CodeRunId,
    pub org_id: OrgId,
    pub user_id: UserId,
    pub session_id: String,
    pub language: String,
    pub code: String,
    pub state: String,
    pub last_seq: i64,
    pub output_bytes: i64,
    pub profile: String,
}

const HELD: &str = "r.id, r.org_id, r.user_id, r.session_id, r.language, r.code, r.state, r.last_seq, \
     r.output_bytes, s.profile";

pub(crate) struct New<'a> {
    pub id: CodeRunId,
    pub org: OrgId,
    pub user: UserId,
    pub session: &'a str,
    pub language: &'a str,
    pub code: &'a str,
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &New<'_>) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.code_runs (id, org_id, user_id, session_id, language, code) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(new.id)
    .bind(new.org)
    .bind(new.user)
    .bind(new.session)
    .bind(new.language)
    .bind(new.code)
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets what ended before the newest `kept` ended runs of a person.
pub(crate) async fn forget(conn: &mut PgConnection, org: OrgId, user: UserId, kept: i64) -> sqlx::Result<()> {
    sqlx::query(
        "DELETE FROM app.code_runs WHERE org_id = $1 AND user_id = $2 AND ended_at IS NOT NULL AND id IN (
             SELECT id FROM app.code_runs WHERE org_id = $1 AND user_id = $2 AND ended_at IS NOT NULL
             ORDER BY id DESC OFFSET $3)",
    )
    .bind(org)
    .bind(user)
    .bind(kept)
    .execute(conn)
    .await
    .map(drop)
}

/// Runs of a person that have not ended.
pub(crate) async fn open_of(conn: &mut PgConnection, org: OrgId, user: UserId) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM app.code_runs WHERE org_id = $1 AND user_id = $2 AND ended_at IS NULL")
        .bind(org)
        .bind(user)
        .fetch_one(conn)
        .await
}

pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    org: OrgId,
    user: UserId,
    id: CodeRunId,
) -> sqlx::Result<Option<Row>> {
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT r.code, {COLUMNS} FROM app.code_runs r WHERE r.org_id = $1 AND r.user_id = $2 AND r.id = $3"
    )))
    .bind(org)
    .bind(user)
    .bind(id)
    .fetch_optional(db)
    .await
}

/// The newest runs of a person, those before `before` when it is given; only with the beginning of their programs.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
    org: OrgId,
    user: UserId,
    before: Option<CodeRunId>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT left(r.code, 400) AS code, {COLUMNS} FROM app.code_runs r WHERE r.org_id = $1 AND r.user_id = $2 AND ($3::uuid IS NULL OR r.id < $3)
         ORDER BY r.id DESC LIMIT $4"
    )))
    .bind(org)
    .bind(user)
    .bind(before)
    .bind(limit)
    .fetch_all(db)
    .await
}

/// Something about each of these runs that changes whenever a follower would be told anything new. Looks across
/// organizations.
pub(crate) async fn marks(db: impl PgExecutor<'_>, ids: &[CodeRunId]) -> sqlx::Result<HashMap<CodeRunId, String>> {
    let rows: Vec<(CodeRunId, String)> = sqlx::query_as(
        "SELECT r.id, concat_ws('/', r.state, r.reason, r.host_position, r.cancel_requested, r.last_seq,
             CASE WHEN r.state = 'waiting' THEN (SELECT count(*) FROM app.code_runs o WHERE o.org_id = r.org_id
                 AND o.state = 'waiting' AND (o.queued_at, o.id) < (r.queued_at, r.id)) END)
         FROM app.code_runs r WHERE r.id = ANY($1)",
    )
    .bind(ids)
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Asks for the end of a run: one that waits has ended with it. `None` when there is none that goes on; else whether
/// it ended.
pub(crate) async fn cancel(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    id: CodeRunId,
) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar(
        "UPDATE app.code_runs SET cancel_requested = true,
             state = CASE WHEN state = 'waiting' THEN 'cancelled' ELSE state END,
             ended_at = CASE WHEN state = 'waiting' THEN now() END,
             output_complete = CASE WHEN state = 'waiting' THEN true END
         WHERE org_id = $1 AND user_id = $2 AND id = $3 AND ended_at IS NULL AND NOT cancel_requested
         RETURNING ended_at IS NOT NULL",
    )
    .bind(org)
    .bind(user)
    .bind(id)
    .fetch_optional(conn)
    .await
}

/// [`cancel`] for everything that goes on or waits in a session. Answers which runs.
pub(crate) async fn cancel_session(
    conn: &mut PgConnection,
    org: OrgId,
    session: &str,
) -> sqlx::Result<Vec<(CodeRunId, UserId)>> {
    sqlx::query_as(
        "UPDATE app.code_runs SET cancel_requested = true,
             state = CASE WHEN state = 'waiting' THEN 'cancelled' ELSE state END,
             ended_at = CASE WHEN state = 'waiting' THEN now() END,
             output_complete = CASE WHEN state = 'waiting' THEN true END
         WHERE org_id = $1 AND session_id = $2 AND ended_at IS NULL AND NOT cancel_requested
         RETURNING id, user_id",
    )
    .bind(org)
    .bind(session)
    .fetch_all(conn)
    .await
}

/// [`cancel`] for everything of an organization.
pub(crate) async fn cancel_all(conn: &mut PgConnection, org: OrgId) -> sqlx::Result<Vec<(CodeRunId, UserId)>> {
    sqlx::query_as(
        "UPDATE app.code_runs SET cancel_requested = true,
             state = CASE WHEN state = 'waiting' THEN 'cancelled' ELSE state END,
             ended_at = CASE WHEN state = 'waiting' THEN now() END,
             output_complete = CASE WHEN state = 'waiting' THEN true END
         WHERE org_id = $1 AND ended_at IS NULL AND NOT cancel_requested
         RETURNING id, user_id",
    )
    .bind(org)
    .fetch_all(conn)
    .await
}

/// Whether anything of the organization waits or goes on.
pub(crate) async fn any_open(db: impl PgExecutor<'_>, org: OrgId) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.code_runs WHERE org_id = $1 AND ended_at IS NULL)")
        .bind(org)
        .fetch_one(db)
        .await
}

/// Takes over runs whose process fell silent.
pub(crate) async fn adopt(db: impl PgExecutor<'_>, me: Uuid, lease: f64, most: i64) -> sqlx::Result<Vec<Held>> {
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "UPDATE app.code_runs r SET holder = $1, held_until = now() + make_interval(secs => $2)
         FROM app.sandbox_sessions s
         WHERE s.id = r.session_id AND r.id IN (
             SELECT id FROM app.code_runs WHERE held_until <= now() ORDER BY held_until LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING {HELD}"
    )))
    .bind(me)
    .bind(lease)
    .bind(most)
    .fetch_all(db)
    .await
}

/// Frees everything that any process attends to, for one that knows it is alone.
pub(crate) async fn orphan_all(db: impl PgExecutor<'_>) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.code_runs SET held_until = now() WHERE held_until IS NOT NULL").execute(db).await.map(drop)
}

/// Organizations whose runs wait, in any order, so that none is always last.
pub(crate) async fn waiting_orgs(db: impl PgExecutor<'_>, most: i64) -> sqlx::Result<Vec<OrgId>> {
    sqlx::query_scalar(
        "SELECT org_id FROM (SELECT DISTINCT org_id FROM app.code_runs WHERE state = 'waiting') waiting
         ORDER BY random() LIMIT $1",
    )
    .bind(most)
    .fetch_all(db)
    .await
}

/// A waiting run, as the one who gives places out looks at it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Waiting {
    pub id: CodeRunId,
    pub session_id: String,
    /// Whether it may be tried now.
    pub due: bool,
    /// Whether its session runs something already, or is being deleted.
    pub busy: bool,
}

/// The organization's line, first come first.
pub(crate) async fn line(conn: &mut PgConnection, org: OrgId, most: i64) -> sqlx::Result<Vec<Waiting>> {
    sqlx::query_as(
        "SELECT r.id, r.session_id, r.look_at <= now() AS due, s.allocation <> 'released' AS busy
         FROM app.code_runs r JOIN app.sandbox_sessions s ON s.org_id = r.org_id AND s.id = r.session_id
         WHERE r.org_id = $1 AND r.state = 'waiting' ORDER BY r.queued_at, r.id LIMIT $2 FOR UPDATE OF r",
    )
    .bind(org)
    .bind(most)
    .fetch_all(conn)
    .await
}

/// Ends what people wait for who may not run code any more.
pub(crate) async fn dismiss(conn: &mut PgConnection, org: OrgId) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.code_runs r SET state = 'cancelled', ended_at = now(), output_complete = true
         WHERE r.org_id = $1 AND r.state = 'waiting' AND NOT EXISTS (
             SELECT FROM app.memberships m WHERE m.org_id = r.org_id AND m.user_id = r.user_id
                AND m.role IN ('developer', 'admin', 'owner'))",
    )
    .bind(org)
    .execute(conn)
    .await
    .map(drop)
}

/// Gives a waiting run to this process.
pub(crate) async fn begin(
    conn: &mut PgConnection,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    lease: f64,
) -> sqlx::Result<Option<Held>> {
    sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "UPDATE app.code_runs r SET state = 'starting', holder = $3, held_until = now() + make_interval(secs => $4),
             reason = NULL, message = NULL, host_position = NULL
         FROM app.sandbox_sessions s
         WHERE r.org_id = $1 AND r.id = $2 AND r.state = 'waiting' AND s.org_id = r.org_id AND s.id = r.session_id
         RETURNING {HELD}"
    )))
    .bind(org)
    .bind(id)
    .bind(me)
    .bind(lease)
    .fetch_optional(conn)
    .await
}

/// What the one who attends to a run must know.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(crate) struct Beat {
    pub cancel_requested: bool,
    /// Seconds since the command was started.
    pub running_for: Option<f64>,
}

/// Says that this process still attends to a run; `None` when another one does, or it ended.
pub(crate) async fn beat(
    db: impl PgExecutor<'_>,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    lease: f64,
) -> sqlx::Result<Option<Beat>> {
    sqlx::query_as(
        "UPDATE app.code_runs SET held_until = now() + make_interval(secs => $4)
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND held_until IS NOT NULL
         RETURNING cancel_requested, extract(epoch FROM now() - started_at)::float8 AS running_for",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .bind(lease)
    .fetch_optional(db)
    .await
}

/// Hands a run back, for another process to go on with at once.
pub(crate) async fn hand_back(db: impl PgExecutor<'_>, org: OrgId, id: CodeRunId, me: Uuid) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.code_runs SET holder = NULL, held_until = now()
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND held_until IS NOT NULL",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .execute(db)
    .await
    .map(drop)
}

/// The session is awake and held by `generation`.
pub(crate) async fn note_hold(
    conn: &mut PgConnection,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    generation: &str,
) -> sqlx::Result<bool> {
    sqlx::query("UPDATE app.code_runs SET generation = $4 WHERE org_id = $1 AND id = $2 AND holder = $3 AND held_until IS NOT NULL")
        .bind(org)
        .bind(id)
        .bind(me)
        .bind(generation)
        .execute(conn)
        .await
        .map(|done| done.rows_affected() > 0)
}

/// The command was started.
pub(crate) async fn started(conn: &mut PgConnection, org: OrgId, id: CodeRunId, me: Uuid) -> sqlx::Result<bool> {
    sqlx::query(
        "UPDATE app.code_runs SET state = 'running', started_at = coalesce(started_at, now())
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND held_until IS NOT NULL",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .execute(conn)
    .await
    .map(|done| done.rows_affected() > 0)
}

/// Everything up to `seq` is stored.
pub(crate) async fn advance(
    conn: &mut PgConnection,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    seq: i64,
    bytes: i64,
) -> sqlx::Result<bool> {
    sqlx::query(
        "UPDATE app.code_runs SET last_seq = $4, output_bytes = output_bytes + $5
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND state = 'running' AND last_seq < $4",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .bind(seq)
    .bind(bytes)
    .execute(conn)
    .await
    .map(|done| done.rows_affected() > 0)
}

/// The run ended. Answers the milliseconds it ran; `None` when another process attends to it.
pub(crate) async fn settle(
    conn: &mut PgConnection,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    outcome: &Outcome,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar(
        "UPDATE app.code_runs SET state = $4, reason = $5, message = $6, exit_code = $7,
             output_complete = $8, ended_at = now(), holder = NULL, held_until = NULL, host_position = NULL,
             duration_ms = (extract(epoch FROM now() - started_at) * 1000)::bigint
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND held_until IS NOT NULL
         RETURNING coalesce(duration_ms, 0)",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .bind(outcome.state.text())
    .bind(outcome.reason.as_deref())
    .bind(outcome.message.as_deref())
    .bind(outcome.exit_code)
    .bind(outcome.complete)
    .fetch_optional(conn)
    .await
}

/// The run waits again, in its old place. `None` when another process attends to it, else whether it was cancelled
/// meanwhile and has ended with that.
pub(crate) async fn defer(
    conn: &mut PgConnection,
    org: OrgId,
    id: CodeRunId,
    me: Uuid,
    why: &Deferral,
) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar(
        "UPDATE app.code_runs SET
             state = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'waiting' END,
             ended_at = CASE WHEN cancel_requested THEN now() END,
             output_complete = CASE WHEN cancel_requested THEN true END,
             reason = CASE WHEN cancel_requested THEN NULL ELSE $4 END, message = NULL,
             host_position = $5, look_at = now() + make_interval(secs => $6),
             holder = NULL, held_until = NULL, generation = NULL
         WHERE org_id = $1 AND id = $2 AND holder = $3 AND state = 'starting'
         RETURNING cancel_requested",
    )
    .bind(org)
    .bind(id)
    .bind(me)
    .bind(&why.reason)
    .bind(why.position)
    .bind(why.pause.as_secs_f64())
    .fetch_optional(conn)
    .await
}

/// Runs of the organization that wait.
pub(crate) async fn count_waiting(db: impl PgExecutor<'_>, org: OrgId) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM app.code_runs WHERE org_id = $1 AND state = 'waiting'")
        .bind(org)
        .fetch_one(db)
        .await
}

/// A waiting run, for administrators.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct InLine {
    pub person: Option<String>,
    pub queued_at: DateTime<Utc>,
    pub reason: Option<String>,
}

pub(crate) async fn in_line(db: impl PgExecutor<'_>, org: OrgId, most: i64) -> sqlx::Result<Vec<InLine>> {
    sqlx::query_as(
        "SELECT u.name AS person, r.queued_at, r.reason FROM app.code_runs r
         LEFT JOIN app.users u ON u.id = r.user_id
         WHERE r.org_id = $1 AND r.state = 'waiting' ORDER BY r.queued_at, r.id LIMIT $2",
    )
    .bind(org)
    .bind(most)
    .fetch_all(db)
    .await
}

/// The hold under which a run goes on.
pub(crate) async fn generation(db: impl PgExecutor<'_>, org: OrgId, id: CodeRunId) -> sqlx::Result<Option<String>> {
    let found: Option<Option<String>> =
        sqlx::query_scalar("SELECT generation FROM app.code_runs WHERE org_id = $1 AND id = $2")
            .bind(org)
            .bind(id)
            .fetch_optional(db)
            .await?;
    Ok(found.flatten())
}
