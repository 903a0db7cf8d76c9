//! The room's SQL. Every statement carries the organization.

pub(crate) mod credentials;
pub(crate) mod embedding;
pub(crate) mod providers;
pub(crate) mod retention;
pub(crate) mod subscriptions;

use sqlx::PgConnection;
use tale_core::ids::OrgId;

/// Takes the organization's row, so that changes to its providers, credentials and embedding
/// model happen one after the other: the rules between them (in use, one default, unique names)
/// are checked against a state that stands still.
pub(crate) async fn lock_org(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT id FROM app.organizations WHERE id = $1 FOR NO KEY UPDATE").bind(org).execute(conn).await?;
    Ok(())
}

/// The name of the organization's folder; `None` for one that is gone.
pub(crate) async fn org_slug(conn: &mut PgConnection, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT slug FROM app.organizations WHERE id = $1 AND deleted_at IS NULL")
        .bind(org)
        .fetch_optional(conn)
        .await
}

/// Whether `error` is a violation of the named constraint.
pub(crate) fn violates(error: &sqlx::Error, constraint: &str) -> bool {
    matches!(error, sqlx::Error::Database(inner) if inner.constraint() == Some(constraint))
}
