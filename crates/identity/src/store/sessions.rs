//! Sessions. They belong to a person, not to an organization, so nothing here has an organization
//! condition.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, SessionId, TrustedKeyId, UserId};

/// The shortest window, in minutes, of the organizations that the person of session `s` belongs to; NULL
/// when none has one: their policies `session_idle_timeout`, whose fields are always there. Reads a row per
/// membership, by index.
macro_rules! idle_minutes {
    () => {
        "(SELECT min((p.value ->> 'idleTimeoutMinutes')::integer)
            FROM app.memberships m
            JOIN app.policies p ON p.org_id = m.org_id AND p.key = 'session_idle_timeout'
           WHERE m.user_id = s.user_id AND m.role <> 'disabled' AND (p.value ->> 'enabled')::boolean)"
    };
}

/// Whether session `s` of the person `u` opens one organization only, because somebody of that organization vouched for
/// the person: its reverse proxy, or its identity provider for an account that is not only there. Reads a row of the
/// other memberships, by index, and only for the latter.
macro_rules! confined {
    () => {
        "(s.method = 'trusted-headers' OR s.method = 'sso' AND (
             u.password_hash IS NOT NULL OR EXISTS (
                 SELECT 1 FROM app.memberships c
                  WHERE c.user_id = s.user_id AND c.org_id IS DISTINCT FROM s.active_org_id)))"
    };
}

/// A session with the person it belongs to.
#[derive(Debug, FromRow)]
pub(crate) struct SessionRow {
    pub(crate) id: SessionId,
    pub(crate) user_id: UserId,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) active_org_id: Option<OrgId>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: DateTime<Utc>,
    pub(crate) renewed_at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
    /// What the person's organizations allow.
    pub(crate) idle_minutes: Option<i32>,
    /// Whether the session opens its active organization only.
    pub(crate) confined: bool,
    /// Why another password has to be chosen: [`super::accounts::password_due`].
    pub(crate) password_due: Option<String>,
}

/// A new session.
pub(crate) struct NewSession<'a> {
    pub(crate) id: SessionId,
    pub(crate) token_hash: &'a [u8; 32],
    pub(crate) user: UserId,
    pub(crate) active_org: Option<OrgId>,
    pub(crate) method: &'a str,
    /// The key of the reverse proxy that began it.
    pub(crate) trusted_key: Option<TrustedKeyId>,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) network: &'a str,
    pub(crate) at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
}

/// A session as its owner sees it.
#[derive(Debug, FromRow)]
pub(crate) struct ListedRow {
    pub(crate) id: SessionId,
    pub(crate) user_agent: Option<String>,
    pub(crate) network: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: DateTime<Utc>,
}

/// Adds a session. Returns when its person's password was set.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    new: &NewSession<'_>,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO app.sessions
             (id, token_hash, user_id, active_org_id, method, user_agent, network, created_at, last_used_at, renewed_at, expires_at,
              trusted_key_id)
         VALUES ($1, $2, $3, $4, $9, $5, $6, $7, $7, $7, $8, $10)
         RETURNING (SELECT u.password_changed_at FROM app.users u WHERE u.id = $3)",
    )
    .bind(new.id)
    .bind(new.token_hash.as_slice())
    .bind(new.user)
    .bind(new.active_org)
    .bind(new.user_agent)
    .bind(new.network)
    .bind(new.at)
    .bind(new.expires_at)
    .bind(new.method)
    .bind(new.trusted_key)
    .fetch_one(conn)
    .await
}

/// The session of a token, by the unique index over its hash.
pub(crate) async fn by_token(
    conn: &mut PgConnection,
    token_hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Option<SessionRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT s.id, s.user_id, u.name, u.email, s.active_org_id, s.created_at, s.last_used_at, s.renewed_at, s.expires_at, ",
        confined!(),
        " AS confined, ",
        idle_minutes!(),
        " AS idle_minutes, ",
        super::accounts::password_due!("$2"),
        " AS password_due
           FROM app.sessions s
           JOIN app.users u ON u.id = s.user_id
          WHERE s.token_hash = $1",
    ))
    .bind(token_hash.as_slice())
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Whether a session opens its active organization only.
pub(crate) async fn confined(conn: &mut PgConnection, session: SessionId) -> Result<bool, sqlx::Error> {
    let found: Option<bool> = sqlx::query_scalar(concat!(
        "SELECT ",
        confined!(),
        " FROM app.sessions s JOIN app.users u ON u.id = s.user_id WHERE s.id = $1",
    ))
    .bind(session)
    .fetch_optional(conn)
    .await?;
    Ok(found.unwrap_or(true))
}

/// When the person of a session last proved who they are inside of it.
pub(crate) async fn proved_at(
    conn: &mut PgConnection,
    session: SessionId,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    let found: Option<Option<DateTime<Utc>>> = sqlx::query_scalar("SELECT proved_at FROM app.sessions WHERE id = $1")
        .bind(session)
        .fetch_optional(conn)
        .await?;
    Ok(found.flatten())
}

pub(crate) async fn set_proved(
    conn: &mut PgConnection,
    session: SessionId,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.sessions SET proved_at = $2 WHERE id = $1")
        .bind(session)
        .bind(at)
        .execute(conn)
        .await
        .map(drop)
}

/// A membership beside the session that asks for it.
#[derive(Debug, FromRow)]
pub(crate) struct SessionMemberRow {
    #[sqlx(flatten)]
    pub(crate) session: SessionRow,
    pub(crate) org_id: Option<OrgId>,
    pub(crate) org_slug: Option<String>,
    pub(crate) org_role: Option<String>,
    pub(crate) walled: Option<bool>,
    pub(crate) competences: Option<Vec<String>>,
}

/// The session of a token and its person's membership in `org`, or in the session's active
/// organization.
pub(crate) async fn member_by_token(
    conn: &mut PgConnection,
    token_hash: &[u8; 32],
    org: Option<OrgId>,
    now: DateTime<Utc>,
) -> Result<Option<SessionMemberRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT s.id, s.user_id, u.name, u.email, s.active_org_id, s.created_at, s.last_used_at, s.renewed_at, s.expires_at,
                o.id AS org_id, o.slug AS org_slug, m.role AS org_role, ",
        confined!(),
        " AS confined, ",
        idle_minutes!(),
        " AS idle_minutes, ",
        super::factors::walled!("$3"),
        " AS walled, ",
        super::accounts::password_due!("$3"),
        " AS password_due, ",
        super::competences::held_competences!("$3"),
        " AS competences
           FROM app.sessions s
           JOIN app.users u ON u.id = s.user_id
           LEFT JOIN app.memberships m ON m.org_id = COALESCE($2, s.active_org_id) AND m.user_id = s.user_id
           LEFT JOIN app.organizations o ON o.id = m.org_id
          WHERE s.token_hash = $1",
    ))
    .bind(token_hash.as_slice())
    .bind(org)
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Which of these pairs of session and organization still stand: the session has neither ended nor
/// been idle since `used_after`, and its person is a member that is not disabled. Crosses
/// organizations: it asks for those of every listener at once.
pub(crate) async fn standing(
    conn: &mut PgConnection,
    sessions: &[SessionId],
    orgs: &[OrgId],
    now: DateTime<Utc>,
    used_after: Option<DateTime<Utc>>,
) -> Result<Vec<(SessionId, OrgId)>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT s.id, m.org_id
           FROM unnest($1::uuid[], $2::uuid[]) AS asked (session_id, org_id)
           JOIN app.sessions s ON s.id = asked.session_id
           JOIN app.memberships m ON m.org_id = asked.org_id AND m.user_id = s.user_id
           JOIN app.users u ON u.id = s.user_id
          WHERE s.expires_at > $3
            AND ($4::timestamptz IS NULL OR s.last_used_at > $4)
            AND COALESCE(s.last_used_at > $3 - make_interval(mins => ",
        idle_minutes!(),
        "), true)
            AND m.role <> 'disabled'
            AND ",
        super::factors::walled!("$3"),
        " IS NOT TRUE AND ",
        super::accounts::password_due!("$3"),
        " IS NULL",
    ))
    .bind(sessions.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(orgs.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(now)
    .bind(used_after)
    .fetch_all(conn)
    .await
}

/// Moves the session's use, and with `expires_at` its end, forward. Of simultaneous requests the
/// first one writes.
pub(crate) async fn slide(
    conn: &mut PgConnection,
    id: SessionId,
    seen_last_used: DateTime<Utc>,
    now: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.sessions
            SET last_used_at = $3,
                renewed_at = CASE WHEN $4::timestamptz IS NULL THEN renewed_at ELSE $3 END,
                expires_at = COALESCE($4, expires_at)
          WHERE id = $1 AND last_used_at = $2",
    )
    .bind(id)
    .bind(seen_last_used)
    .bind(now)
    .bind(expires_at)
    .execute(conn)
    .await
    .map(drop)
}

pub(crate) async fn set_active_org(conn: &mut PgConnection, id: SessionId, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.sessions SET active_org_id = $2 WHERE id = $1")
        .bind(id)
        .bind(org)
        .execute(conn)
        .await
        .map(drop)
}

/// Ends one session of a person. Returns whether it was there.
pub(crate) async fn delete(conn: &mut PgConnection, user: UserId, id: SessionId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.sessions WHERE user_id = $1 AND id = $2")
        .bind(user)
        .bind(id)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends the sessions of a person, all of them or all but one.
pub(crate) async fn delete_all(
    conn: &mut PgConnection,
    user: UserId,
    keep: Option<SessionId>,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.sessions WHERE user_id = $1 AND id IS DISTINCT FROM $2")
        .bind(user)
        .bind(keep)
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

/// Ends the sessions that a key of the organization's reverse proxy began. Returns how many had not expired.
pub(crate) async fn delete_of_trusted_key(
    conn: &mut PgConnection,
    org: OrgId,
    key: TrustedKeyId,
    now: DateTime<Utc>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "WITH ended AS (
             DELETE FROM app.sessions s
              USING app.trusted_header_keys k
              WHERE k.org_id = $1 AND k.id = $2 AND s.trusted_key_id = k.id
             RETURNING s.expires_at)
         SELECT count(*) FROM ended WHERE expires_at > $3",
    )
    .bind(org)
    .bind(key)
    .bind(now)
    .fetch_one(conn)
    .await
}

/// The live sessions of a person, last used first.
pub(crate) async fn list(
    conn: &mut PgConnection,
    user: UserId,
    now: DateTime<Utc>,
    used_after: Option<DateTime<Utc>>,
) -> Result<Vec<ListedRow>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT s.id, s.user_agent, s.network, s.created_at, s.last_used_at
           FROM app.sessions s
          WHERE s.user_id = $1 AND s.expires_at > $2 AND ($3::timestamptz IS NULL OR s.last_used_at > $3)
            AND COALESCE(s.last_used_at > $2 - make_interval(mins => ",
        idle_minutes!(),
        "), true)
          ORDER BY s.last_used_at DESC, s.id",
    ))
    .bind(user)
    .bind(now)
    .bind(used_after)
    .fetch_all(conn)
    .await
}

/// Removes sessions that ended before `now`. Returns how many.
pub(crate) async fn sweep(conn: &mut PgConnection, now: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.sessions WHERE expires_at <= $1").bind(now).execute(conn).await?;
    Ok(done.rows_affected())
}

/// Most idle sessions that end in one transaction.
pub(crate) const IDLE_SLICE: usize = 500;

/// Ends up to [`IDLE_SLICE`] sessions that were not used after `used_before`, or not within the window of
/// one of their person's organizations, and have not expired. There is no index over the last use,
/// because every use would have to keep it: this reads the table, which has a row for each signed-in
/// browser.
pub(crate) async fn end_idle(
    conn: &mut PgConnection,
    used_before: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Vec<(SessionId, UserId)>, sqlx::Error> {
    sqlx::query_as(
        "WITH windows AS (
             SELECT m.user_id, min((p.value ->> 'idleTimeoutMinutes')::integer) AS minutes
               FROM app.policies p
               JOIN app.memberships m ON m.org_id = p.org_id
              WHERE p.key = 'session_idle_timeout' AND (p.value ->> 'enabled')::boolean AND m.role <> 'disabled'
              GROUP BY m.user_id),
         idle AS (
             SELECT s.id FROM app.sessions s
               LEFT JOIN windows w ON w.user_id = s.user_id
              WHERE (s.last_used_at <= $1 OR s.last_used_at <= $2 - make_interval(mins => w.minutes))
                AND s.expires_at > $2
              LIMIT $3
                FOR UPDATE OF s SKIP LOCKED)
         DELETE FROM app.sessions s USING idle WHERE s.id = idle.id
         RETURNING s.id, s.user_id",
    )
    .bind(used_before)
    .bind(now)
    .bind(IDLE_SLICE as i64)
    .fetch_all(conn)
    .await
}
