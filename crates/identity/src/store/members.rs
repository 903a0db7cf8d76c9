//! Memberships.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, UserId};

use crate::permissions::Role;

/// A member.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct MemberRow {
    pub(crate) user_id: UserId,
    pub(crate) name: String,
    pub(crate) email: String,
    #[sqlx(try_from = "String")]
    pub(crate) role: Role,
    pub(crate) is_creator: bool,
    pub(crate) created_at: DateTime<Utc>,
}

/// Every member, first come first.
pub(crate) async fn list(conn: &mut PgConnection, org: OrgId) -> Result<Vec<MemberRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT m.user_id, u.name, u.email, m.role, o.creator_user_id IS NOT DISTINCT FROM m.user_id AS is_creator, m.created_at
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
           JOIN app.organizations o ON o.id = m.org_id
          WHERE m.org_id = $1
          ORDER BY m.created_at, m.user_id",
    )
    .bind(org)
    .fetch_all(conn)
    .await
}

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<Option<MemberRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT m.user_id, u.name, u.email, m.role, o.creator_user_id IS NOT DISTINCT FROM m.user_id AS is_creator, m.created_at
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
           JOIN app.organizations o ON o.id = m.org_id
          WHERE m.org_id = $1 AND m.user_id = $2",
    )
    .bind(org)
    .bind(user)
    .fetch_optional(conn)
    .await
}

/// How people of an organization get in without its identity provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub(crate) struct WaysIn {
    /// Owners and admins who have a password or a passkey, or whom a reverse proxy signs in.
    pub(crate) managers: i64,
    /// People who have none of these.
    pub(crate) shut_out: i64,
}

/// The ways in of everybody whose seat is not disabled.
pub(crate) async fn ways_in(conn: &mut PgConnection, org: OrgId) -> Result<WaysIn, sqlx::Error> {
    sqlx::query_as(
        "SELECT count(*) FILTER (WHERE w.has AND m.role IN ('owner', 'admin')) AS managers,
                count(*) FILTER (WHERE NOT w.has) AS shut_out
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
          CROSS JOIN LATERAL (
                SELECT u.password_hash IS NOT NULL
                    OR EXISTS (SELECT 1 FROM app.passkeys p WHERE p.user_id = m.user_id)
                    OR EXISTS (SELECT 1 FROM app.trusted_header_settings t
                                 JOIN app.trusted_header_keys k ON k.org_id = t.org_id AND k.revoked_at IS NULL
                                WHERE t.org_id = m.org_id AND t.enabled)) AS w (has)
          WHERE m.org_id = $1 AND m.role <> 'disabled'",
    )
    .bind(org)
    .fetch_one(conn)
    .await
}

/// Lets changes of an organization's members happen one after another.
pub(crate) async fn lock(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT id FROM app.organizations WHERE id = $1 FOR NO KEY UPDATE")
        .bind(org)
        .execute(conn)
        .await
        .map(drop)
}

/// Adds a member. `false`: already one.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    role: Role,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.memberships (org_id, user_id, role, created_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (org_id, user_id) DO NOTHING",
    )
    .bind(org)
    .bind(user)
    .bind(role.text())
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn set_role(conn: &mut PgConnection, org: OrgId, user: UserId, role: Role) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.memberships SET role = $3 WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .bind(role.text())
        .execute(conn)
        .await
        .map(drop)
}

/// Removes a member and what goes with the membership.
pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.memberships WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .execute(&mut *conn)
        .await?;
    sqlx::query("UPDATE app.sessions SET active_org_id = NULL WHERE active_org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .execute(&mut *conn)
        .await?;
    sqlx::query("UPDATE app.users SET last_org_id = NULL WHERE last_org_id = $1 AND id = $2")
        .bind(org)
        .bind(user)
        .execute(conn)
        .await
        .map(drop)
}

/// How many owners and admins other than `user` the organization has.
pub(crate) async fn other_admins(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(*) FROM app.memberships WHERE org_id = $1 AND user_id <> $2 AND role IN ('owner', 'admin')",
    )
    .bind(org)
    .bind(user)
    .fetch_one(conn)
    .await
}

/// Whether a person belongs to an organization other than `org`. Looks across organizations.
pub(crate) async fn elsewhere(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.memberships WHERE org_id <> $1 AND user_id = $2)")
        .bind(org)
        .bind(user)
        .fetch_one(conn)
        .await
}

/// Every organization of a person, disabled memberships included. Looks across organizations.
pub(crate) async fn orgs_of(conn: &mut PgConnection, user: UserId) -> Result<Vec<OrgId>, sqlx::Error> {
    sqlx::query_scalar("SELECT org_id FROM app.memberships WHERE user_id = $1 ORDER BY org_id")
        .bind(user)
        .fetch_all(conn)
        .await
}
