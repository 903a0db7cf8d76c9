//! What a directory says about members and teams, and the token it comes with.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, TeamId, UserId};
use uuid::Uuid;

use crate::permissions::Role;

/// The settings of an organization.
#[derive(Debug, FromRow)]
pub(crate) struct SettingsRow {
    pub(crate) enabled: bool,
    pub(crate) first_chars: Option<String>,
    pub(crate) token_made_at: Option<DateTime<Utc>>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
}

/// What a presented token stands for.
#[derive(Debug, FromRow)]
pub(crate) struct TokenRow {
    pub(crate) org_id: OrgId,
    pub(crate) enabled: bool,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
    #[sqlx(try_from = "String")]
    pub(crate) default_role: Role,
}

/// A member, with what the directory says about them.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct UserRow {
    pub(crate) user_id: UserId,
    pub(crate) email: String,
    pub(crate) name: String,
    #[sqlx(try_from = "String")]
    pub(crate) role: Role,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) user_name: Option<String>,
    pub(crate) external_id: Option<String>,
    /// `None`: the directory has said nothing.
    pub(crate) attributes: Option<Json<Map<String, Value>>>,
    pub(crate) previous_role: Option<String>,
}

/// What is kept of what a directory says about a member.
pub(crate) struct Said<'a> {
    pub(crate) user: UserId,
    pub(crate) user_name: &'a str,
    pub(crate) external_id: Option<&'a str>,
    pub(crate) attributes: &'a Map<String, Value>,
    pub(crate) previous_role: Option<Role>,
}

/// A team.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct GroupRow {
    pub(crate) id: TeamId,
    pub(crate) name: String,
    pub(crate) external_id: Option<String>,
    pub(crate) source: String,
}

pub(crate) async fn settings(conn: &mut PgConnection, org: OrgId) -> Result<Option<SettingsRow>, sqlx::Error> {
    sqlx::query_as("SELECT enabled, first_chars, token_made_at, last_used_at FROM app.scim_settings WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await
}

/// Switches on or off. `false`: nothing changed.
pub(crate) async fn set_enabled(conn: &mut PgConnection, org: OrgId, enabled: bool) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.scim_settings AS s (org_id, enabled) SELECT $1, $2
          WHERE $2 OR EXISTS (SELECT 1 FROM app.scim_settings WHERE org_id = $1)
         ON CONFLICT (org_id) DO UPDATE SET enabled = $2 WHERE s.enabled <> $2",
    )
    .bind(org)
    .bind(enabled)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Stores a token in the place of the one before. Returns whether there was one.
pub(crate) async fn set_token(
    conn: &mut PgConnection,
    org: OrgId,
    hash: &[u8; 32],
    first: &str,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let before: Option<bool> =
        sqlx::query_scalar("SELECT token_hash IS NOT NULL FROM app.scim_settings WHERE org_id = $1 FOR UPDATE")
            .bind(org)
            .fetch_optional(&mut *conn)
            .await?;
    sqlx::query(
        "INSERT INTO app.scim_settings (org_id, enabled, token_hash, first_chars, token_made_at)
         VALUES ($1, false, $2, $3, $4)
         ON CONFLICT (org_id) DO UPDATE
            SET token_hash = $2, first_chars = $3, token_made_at = $4, last_used_at = NULL",
    )
    .bind(org)
    .bind(hash.as_slice())
    .bind(first)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(before == Some(true))
}

/// The organization of a token. The token tells it.
pub(crate) async fn by_token(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<TokenRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT s.org_id, s.enabled, s.last_used_at, coalesce(c.default_role, 'member') AS default_role
           FROM app.scim_settings s
           JOIN app.organizations o ON o.id = s.org_id AND o.deleted_at IS NULL
           LEFT JOIN app.sso_connections c ON c.org_id = s.org_id
          WHERE s.token_hash = $1",
    )
    .bind(hash.as_slice())
    .fetch_optional(conn)
    .await
}

/// Notes a use. Of simultaneous requests one writes.
pub(crate) async fn touch(
    conn: &mut PgConnection,
    org: OrgId,
    seen: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.scim_settings SET last_used_at = $3 WHERE org_id = $1 AND last_used_at IS NOT DISTINCT FROM $2",
    )
    .bind(org)
    .bind(seen)
    .bind(now)
    .execute(conn)
    .await
    .map(drop)
}

macro_rules! user_rows {
    ($($rest:literal),+) => {
        concat!(
            "SELECT m.user_id, u.email, u.name, m.role, m.created_at, s.user_name, s.external_id, s.attributes, s.previous_role
               FROM app.memberships m
               JOIN app.users u ON u.id = m.user_id
               LEFT JOIN app.scim_users s ON s.org_id = m.org_id AND s.user_id = m.user_id
              WHERE m.org_id = $1 ",
            $($rest),+
        )
    };
}

/// A member.
pub(crate) async fn user(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<Option<UserRow>, sqlx::Error> {
    sqlx::query_as(user_rows!("AND m.user_id = $2")).bind(org).bind(user).fetch_optional(conn).await
}

/// Members of these ids, first come first.
pub(crate) async fn users_among(
    conn: &mut PgConnection,
    org: OrgId,
    ids: &[Uuid],
) -> Result<Vec<UserRow>, sqlx::Error> {
    sqlx::query_as(user_rows!("AND m.user_id = ANY ($2) ORDER BY m.created_at, m.user_id"))
        .bind(org)
        .bind(ids)
        .fetch_all(conn)
        .await
}

/// Members behind `skip` others, first come first.
pub(crate) async fn users_page(
    conn: &mut PgConnection,
    org: OrgId,
    skip: i64,
    limit: i64,
) -> Result<Vec<UserRow>, sqlx::Error> {
    sqlx::query_as(user_rows!("ORDER BY m.created_at, m.user_id OFFSET $2 LIMIT $3"))
        .bind(org)
        .bind(skip)
        .bind(limit)
        .fetch_all(conn)
        .await
}

/// Members behind another one, first come first.
pub(crate) async fn users_after(
    conn: &mut PgConnection,
    org: OrgId,
    after: Option<(DateTime<Utc>, UserId)>,
    limit: i64,
) -> Result<Vec<UserRow>, sqlx::Error> {
    let (at, id) = after.unzip();
    sqlx::query_as(user_rows!(
        "AND ($2::timestamptz IS NULL OR (m.created_at, m.user_id) > ($2, $3)) ORDER BY m.created_at, m.user_id LIMIT $4"
    ))
    .bind(org)
    .bind(at)
    .bind(id)
    .bind(limit)
    .fetch_all(conn)
    .await
}

pub(crate) async fn count_users(conn: &mut PgConnection, org: OrgId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM app.memberships WHERE org_id = $1").bind(org).fetch_one(conn).await
}

/// Whom a user name or an address may belong to.
pub(crate) async fn ids_by_name(conn: &mut PgConnection, org: OrgId, key: &str) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT user_id FROM app.scim_users WHERE org_id = $1 AND user_name_key = $2
          UNION
         SELECT id FROM app.users WHERE email = $2",
    )
    .bind(org)
    .bind(key)
    .fetch_all(conn)
    .await
}

/// Whom the directory calls so.
pub(crate) async fn ids_by_external_id(
    conn: &mut PgConnection,
    org: OrgId,
    id: &str,
) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_scalar("SELECT user_id FROM app.scim_users WHERE org_id = $1 AND external_id = $2")
        .bind(org)
        .bind(id)
        .fetch_all(conn)
        .await
}

/// Keeps what the directory says about a member. `false`: another member has that user name.
pub(crate) async fn keep(
    conn: &mut PgConnection,
    org: OrgId,
    said: &Said<'_>,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let key = said.user_name.to_lowercase();
    let done = sqlx::query(
        "INSERT INTO app.scim_users (org_id, user_id, user_name, user_name_key, external_id, attributes, previous_role, updated_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8
          WHERE NOT EXISTS (SELECT 1 FROM app.scim_users WHERE org_id = $1 AND user_name_key = $4 AND user_id <> $2)
         ON CONFLICT (org_id, user_id) DO UPDATE
            SET user_name = $3, user_name_key = $4, external_id = $5, attributes = $6, previous_role = $7, updated_at = $8",
    )
    .bind(org)
    .bind(said.user)
    .bind(said.user_name)
    .bind(key)
    .bind(said.external_id)
    .bind(Json(said.attributes))
    .bind(said.previous_role.map(Role::text))
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives an account another address. `false`: another account has it, and the transaction is over when it got it at
/// this moment.
pub(crate) async fn set_email(conn: &mut PgConnection, user: UserId, email: &str) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.users SET email = $2, email_verified = false
          WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM app.users WHERE email = $2)",
    )
    .bind(user)
    .bind(email)
    .execute(conn)
    .await;
    match done {
        Ok(done) => Ok(done.rows_affected() == 1),
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a person can use an organization other than `org`. Looks across organizations.
pub(crate) async fn usable_elsewhere(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM app.memberships WHERE org_id <> $1 AND user_id = $2 AND role <> 'disabled')",
    )
    .bind(org)
    .bind(user)
    .fetch_one(conn)
    .await
}

/// Takes an organization away from the sessions of a person.
pub(crate) async fn leave(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.sessions SET active_org_id = NULL WHERE active_org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .execute(conn)
        .await
        .map(drop)
}

/// The teams of these members: member, team, its name.
pub(crate) async fn teams_of(
    conn: &mut PgConnection,
    org: OrgId,
    users: &[UserId],
) -> Result<Vec<(UserId, TeamId, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT m.user_id, t.id, t.name
           FROM app.team_members m
           JOIN app.teams t ON t.org_id = m.org_id AND t.id = m.team_id
          WHERE m.org_id = $1 AND m.user_id = ANY ($2)
          ORDER BY t.name_key, t.id",
    )
    .bind(org)
    .bind(users)
    .fetch_all(conn)
    .await
}

macro_rules! group_rows {
    ($rest:literal) => {
        concat!("SELECT id, name, external_id, source FROM app.teams WHERE org_id = $1 ", $rest)
    };
}

/// A team.
pub(crate) async fn group(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<Option<GroupRow>, sqlx::Error> {
    sqlx::query_as(group_rows!("AND id = $2")).bind(org).bind(team).fetch_optional(conn).await
}

/// Every team, first come first; there are at most [`crate::teams::MAX_TEAMS`].
pub(crate) async fn groups(conn: &mut PgConnection, org: OrgId) -> Result<Vec<GroupRow>, sqlx::Error> {
    sqlx::query_as(group_rows!("ORDER BY created_at, id")).bind(org).fetch_all(conn).await
}

/// Who is in these teams.
pub(crate) async fn members_of(
    conn: &mut PgConnection,
    org: OrgId,
    teams: &[TeamId],
) -> Result<Vec<(TeamId, UserId)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT team_id, user_id FROM app.team_members
          WHERE org_id = $1 AND team_id = ANY ($2)
          ORDER BY team_id, created_at, user_id",
    )
    .bind(org)
    .bind(teams)
    .fetch_all(conn)
    .await
}

/// The teams that somebody is in.
pub(crate) async fn teams_with(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<Vec<TeamId>, sqlx::Error> {
    sqlx::query_scalar("SELECT team_id FROM app.team_members WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .fetch_all(conn)
        .await
}

/// Marks a team as the directory's, under the directory's id.
pub(crate) async fn adopt(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    external_id: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.teams SET source = 'scim', external_id = $3 WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(team)
        .bind(external_id)
        .execute(conn)
        .await
        .map(drop)
}

/// Puts people into a team in the directory's name.
pub(crate) async fn put_in(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    people: &[UserId],
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.team_members (org_id, team_id, user_id, created_at, source)
         SELECT $1, $2, person, $4, 'scim' FROM unnest($3::uuid[]) AS person
         ON CONFLICT DO NOTHING",
    )
    .bind(org)
    .bind(team)
    .bind(people)
    .bind(at)
    .execute(conn)
    .await
    .map(drop)
}

/// Takes people out of a team.
pub(crate) async fn take_out(
    conn: &mut PgConnection,
    org: OrgId,
    team: TeamId,
    people: &[UserId],
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.team_members WHERE org_id = $1 AND team_id = $2 AND user_id = ANY ($3)")
        .bind(org)
        .bind(team)
        .bind(people)
        .execute(conn)
        .await
        .map(drop)
}

/// Whether a team is the directory's to change.
pub(crate) async fn manages(conn: &mut PgConnection, org: OrgId, team: TeamId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM app.teams t JOIN app.scim_settings s ON s.org_id = t.org_id
                         WHERE t.org_id = $1 AND t.id = $2 AND t.source = 'scim' AND s.enabled)",
    )
    .bind(org)
    .bind(team)
    .fetch_one(conn)
    .await
}
