//! Connections with identity providers, and who is who there.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, PgConnection, PgPool};
use tale_core::ids::{OrgId, SsoConnectionId, TeamId, UserId};

use crate::permissions::Role;

/// The identities and memberships that sign-ins of this kind give.
const SOURCE: &str = "sso";

/// A connection as it is stored.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct ConnectionRow {
    pub(crate) org_id: OrgId,
    pub(crate) id: SsoConnectionId,
    pub(crate) display_name: String,
    pub(crate) enabled: bool,
    #[sqlx(try_from = "String")]
    pub(crate) default_role: Role,
    pub(crate) domains: Vec<String>,
    pub(crate) config: Value,
    pub(crate) secret: Option<String>,
}

/// A connection to write.
pub(crate) struct NewConnection<'a> {
    pub(crate) id: SsoConnectionId,
    pub(crate) protocol: &'a str,
    pub(crate) display_name: &'a str,
    pub(crate) enabled: bool,
    pub(crate) default_role: Role,
    pub(crate) domains: &'a [String],
    pub(crate) config: &'a Value,
    pub(crate) secret: Option<&'a str>,
    pub(crate) at: DateTime<Utc>,
}

/// A connection as the sign-in page names it.
#[derive(Debug, FromRow)]
pub(crate) struct OfferedRow {
    pub(crate) id: SsoConnectionId,
    pub(crate) display_name: String,
}

macro_rules! columns {
    () => {
        "SELECT org_id, id, display_name, enabled, default_role, domains, config, secret FROM app.sso_connections "
    };
}

pub(crate) async fn of_org(conn: &mut PgConnection, org: OrgId) -> Result<Option<ConnectionRow>, sqlx::Error> {
    sqlx::query_as(concat!(columns!(), "WHERE org_id = $1")).bind(org).fetch_optional(conn).await
}

/// The connection tells the organization.
pub(crate) async fn by_id(conn: &mut PgConnection, id: SsoConnectionId) -> Result<Option<ConnectionRow>, sqlx::Error> {
    sqlx::query_as(concat!(columns!(), "WHERE id = $1")).bind(id).fetch_optional(conn).await
}

/// The connections that sign people in: those for addresses of `domain`, else those for any address. Looks across
/// organizations.
pub(crate) async fn offered(
    conn: &mut PgConnection,
    domain: Option<&str>,
    limit: i64,
) -> Result<Vec<OfferedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, display_name FROM app.sso_connections
          WHERE enabled AND CASE WHEN $1::text IS NULL THEN domains = '{}' ELSE $1 = ANY (domains) END
          ORDER BY lower(display_name), id
          LIMIT $2",
    )
    .bind(domain)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Whether people sign in with any connection, and with any that is found by an address only. Looks across
/// organizations.
pub(crate) async fn any_enabled(conn: &mut PgConnection) -> Result<(bool, bool), sqlx::Error> {
    sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM app.sso_connections WHERE enabled),
                EXISTS (SELECT 1 FROM app.sso_connections WHERE enabled AND domains <> '{}')",
    )
    .fetch_one(conn)
    .await
}

pub(crate) async fn put(conn: &mut PgConnection, org: OrgId, new: &NewConnection<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.sso_connections
             (org_id, id, protocol, display_name, enabled, default_role, domains, config, secret, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
         ON CONFLICT (org_id) DO UPDATE
            SET id = $2, protocol = $3, display_name = $4, enabled = $5, default_role = $6, domains = $7, config = $8,
                secret = $9, updated_at = $10",
    )
    .bind(org)
    .bind(new.id)
    .bind(new.protocol)
    .bind(new.display_name)
    .bind(new.enabled)
    .bind(new.default_role.text())
    .bind(new.domains)
    .bind(new.config)
    .bind(new.secret)
    .bind(new.at)
    .execute(conn)
    .await
    .map(drop)
}

/// Removes the connection; returns its name.
pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("DELETE FROM app.sso_connections WHERE org_id = $1 RETURNING display_name")
        .bind(org)
        .fetch_optional(conn)
        .await
}

/// Whose identity this is.
pub(crate) async fn holder(
    conn: &mut PgConnection,
    org: OrgId,
    issuer: &str,
    subject: &str,
) -> Result<Option<UserId>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT user_id FROM app.external_identities
          WHERE org_id = $1 AND source = $2 AND issuer = $3 AND subject = $4",
    )
    .bind(org)
    .bind(SOURCE)
    .bind(issuer)
    .bind(subject)
    .fetch_optional(conn)
    .await
}

/// Fixes whose identity this is. `false`: the person has another one at this provider, or it is somebody else's.
pub(crate) async fn link(
    conn: &mut PgConnection,
    org: OrgId,
    issuer: &str,
    subject: &str,
    user: UserId,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.external_identities (org_id, source, issuer, subject, user_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT DO NOTHING",
    )
    .bind(org)
    .bind(SOURCE)
    .bind(issuer)
    .bind(subject)
    .bind(user)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A team as the synchronization sees it for one person.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct TeamRow {
    pub(crate) id: TeamId,
    pub(crate) name: String,
    pub(crate) name_key: String,
    /// Whether the synchronization made it.
    pub(crate) ours: bool,
    /// Who put the person there; none: nobody.
    pub(crate) member_source: Option<String>,
}

/// The teams of the organization that are called like one of `keys`, and those in which the synchronization put the
/// person.
pub(crate) async fn teams(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    keys: &[String],
) -> Result<Vec<TeamRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT t.id, t.name, t.name_key, t.source = $4 AS ours, m.source AS member_source
           FROM app.teams t
           LEFT JOIN app.team_members m ON m.org_id = t.org_id AND m.team_id = t.id AND m.user_id = $2
          WHERE t.org_id = $1 AND (t.name_key = ANY ($3) OR m.source = $4)
          ORDER BY t.name_key",
    )
    .bind(org)
    .bind(user)
    .bind(keys)
    .bind(SOURCE)
    .fetch_all(conn)
    .await
}

/// Marks a team, or somebody's place in it, as given by the synchronization.
pub(crate) async fn mark_team(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.teams SET source = $3 WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(team)
        .bind(SOURCE)
        .execute(conn)
        .await
        .map(drop)
}

/// Marks somebody's place in a team as given by the synchronization.
pub(crate) async fn mark_place(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    user: UserId,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.team_members SET source = $4 WHERE org_id = $1 AND team_id = $2 AND user_id = $3")
        .bind(org)
        .bind(team)
        .bind(user)
        .bind(SOURCE)
        .execute(conn)
        .await
        .map(drop)
}

/// Whether nobody is in a team.
pub(crate) async fn is_empty(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM app.team_members WHERE org_id = $1 AND team_id = $2)")
        .bind(org)
        .bind(team)
        .fetch_one(conn)
        .await
}

/// A stored secret for the change of keys.
#[derive(Debug, FromRow)]
pub(crate) struct SealedRow {
    pub(crate) org_id: OrgId,
    pub(crate) secret: String,
}

/// The next stored secrets after `after`. Looks across organizations.
pub(crate) async fn sealed_after(
    pool: &PgPool,
    after: Option<OrgId>,
    limit: i64,
) -> Result<Vec<SealedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT org_id, secret FROM app.sso_connections
          WHERE secret IS NOT NULL AND ($1::uuid IS NULL OR org_id > $1)
          ORDER BY org_id
          LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(pool)
    .await
}

/// Replaces a secret that is still what was read. `false`: it is another one.
pub(crate) async fn reseal(pool: &PgPool, row: &SealedRow, sealed: &str) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("UPDATE app.sso_connections SET secret = $3 WHERE org_id = $1 AND secret = $2")
        .bind(row.org_id)
        .bind(&row.secret)
        .bind(sealed)
        .execute(pool)
        .await?;
    Ok(done.rows_affected() == 1)
}
