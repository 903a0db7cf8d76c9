//! Organizations.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, UserId};

use crate::permissions::Role;

/// An organization of a person, with the role there.
#[derive(Debug, FromRow)]
pub(crate) struct OrgOfUser {
    pub(crate) id: OrgId,
    pub(crate) slug: String,
    pub(crate) name: String,
    #[sqlx(try_from = "String")]
    pub(crate) role: Role,
}

/// Whether any organization exists. Looks across organizations.
pub(crate) async fn any(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.organizations WHERE deleted_at IS NULL)").fetch_one(conn).await
}

/// Adds an organization. `false`: the slug is taken.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    id: OrgId,
    slug: &str,
    name: &str,
    creator: UserId,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.organizations (id, slug, name, creator_user_id, created_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (slug) DO NOTHING",
    )
    .bind(id)
    .bind(slug)
    .bind(name)
    .bind(creator)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Renames; returns the name before.
pub(crate) async fn rename(
    conn: &mut PgConnection,
    org: OrgId,
    name: &str,
) -> Result<Option<(String, String)>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.organizations o
            SET name = $2
           FROM (SELECT id, name FROM app.organizations WHERE id = $1 FOR UPDATE) before
          WHERE o.id = before.id
         RETURNING o.slug, before.name",
    )
    .bind(org)
    .bind(name)
    .fetch_optional(conn)
    .await
}

/// The name of an organization that is not deleted, and how many people belong to it.
pub(crate) async fn name_and_size(conn: &mut PgConnection, org: OrgId) -> Result<Option<(String, i64)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT o.name, (SELECT count(*) FROM app.memberships m WHERE m.org_id = o.id)
           FROM app.organizations o
          WHERE o.id = $1 AND o.deleted_at IS NULL",
    )
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// Takes everybody out of an organization and marks it deleted.
pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, at: DateTime<Utc>) -> Result<(), sqlx::Error> {
    for statement in [
        "DELETE FROM app.memberships WHERE org_id = $1",
        "UPDATE app.sessions SET active_org_id = NULL WHERE active_org_id = $1",
        "UPDATE app.users SET last_org_id = NULL WHERE last_org_id = $1",
    ] {
        sqlx::query(statement).bind(org).execute(&mut *conn).await?;
    }
    sqlx::query("UPDATE app.organizations SET deleted_at = $2 WHERE id = $1")
        .bind(org)
        .bind(at)
        .execute(conn)
        .await
        .map(drop)
}

/// The organization of a slug, unless it is deleted.
pub(crate) async fn by_slug(conn: &mut PgConnection, slug: &str) -> Result<Option<OrgId>, sqlx::Error> {
    sqlx::query_scalar("SELECT id FROM app.organizations WHERE slug = $1 AND deleted_at IS NULL")
        .bind(slug)
        .fetch_optional(conn)
        .await
}

/// Whether a slug names an organization, whoever asks. Looks across organizations.
pub(crate) async fn slug_exists(conn: &mut PgConnection, slug: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.organizations WHERE slug = $1)")
        .bind(slug)
        .fetch_one(conn)
        .await
}

/// Every organization of a person, disabled memberships included, by name.
pub(crate) async fn of_user(conn: &mut PgConnection, user: UserId) -> Result<Vec<OrgOfUser>, sqlx::Error> {
    sqlx::query_as(
        "SELECT o.id, o.slug, o.name, m.role
           FROM app.memberships m
           JOIN app.organizations o ON o.id = m.org_id
          WHERE m.user_id = $1
          ORDER BY lower(o.name), o.id",
    )
    .bind(user)
    .fetch_all(conn)
    .await
}

/// A membership with what policies say about second factors and passwords: [`super::factors::walled`],
/// [`super::accounts::password_due`].
#[derive(Debug, FromRow)]
pub(crate) struct Held {
    #[sqlx(rename = "id")]
    pub(crate) org: OrgId,
    #[sqlx(rename = "slug")]
    pub(crate) org_slug: String,
    #[sqlx(try_from = "String")]
    pub(crate) role: Role,
    pub(crate) walled: Option<bool>,
    pub(crate) password_due: Option<String>,
    /// The platform's capabilities that are held by competence.
    pub(crate) competences: Option<Vec<String>>,
}

/// The membership in which a session acts.
pub(crate) async fn held(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<Option<Held>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT o.id, o.slug, m.role, ",
        super::factors::walled!("$3"),
        " AS walled, ",
        super::accounts::password_due!("$3"),
        " AS password_due, ",
        super::competences::held_competences!("$3"),
        " AS competences
           FROM app.memberships m
           JOIN app.organizations o ON o.id = m.org_id
           JOIN app.users u ON u.id = m.user_id
          WHERE m.org_id = $1 AND m.user_id = $2",
    ))
    .bind(org)
    .bind(user)
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// The membership of a person in one organization, with the organization's slug.
pub(crate) async fn membership(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
) -> Result<Option<OrgOfUser>, sqlx::Error> {
    sqlx::query_as(
        "SELECT o.id, o.slug, o.name, m.role
           FROM app.memberships m
           JOIN app.organizations o ON o.id = m.org_id
          WHERE m.org_id = $1 AND m.user_id = $2",
    )
    .bind(org)
    .bind(user)
    .fetch_optional(conn)
    .await
}
