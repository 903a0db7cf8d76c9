//! SQL about organizations as such.

use sqlx::postgres::PgExecutor;
use tale_core::ids::OrgId;

/// The short name of an organization, if it is there. Operational database.
pub(crate) async fn slug(app: impl PgExecutor<'_>, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT slug FROM app.organizations WHERE id = $1").bind(org).fetch_optional(app).await
}
