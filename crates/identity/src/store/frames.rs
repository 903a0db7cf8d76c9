//! The origins that may frame pages of organizations.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::OrgId;

pub(crate) async fn of(conn: &mut PgConnection, org: OrgId) -> Result<Vec<String>, sqlx::Error> {
    let found = sqlx::query_scalar("SELECT frame_origins FROM app.trusted_header_settings WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await?;
    Ok(found.unwrap_or_default())
}

pub(crate) async fn set(
    conn: &mut PgConnection,
    org: OrgId,
    origins: &[String],
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.trusted_header_settings (org_id, enabled, max_role, frame_origins, updated_at)
         VALUES ($1, false, 'member', $2, $3)
         ON CONFLICT (org_id) DO UPDATE SET frame_origins = $2, updated_at = $3",
    )
    .bind(org)
    .bind(origins)
    .bind(at)
    .execute(conn)
    .await
    .map(drop)
}

/// How many different origins the deployment lists. Looks across organizations.
pub(crate) async fn in_all(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(DISTINCT origin) FROM app.trusted_header_settings, unnest(frame_origins) AS origin",
    )
    .fetch_one(conn)
    .await
}

/// The lists that are not empty. Looks across organizations; the table has a row for each that ever
/// used one of its settings.
pub(crate) async fn all(conn: &mut PgConnection) -> Result<Vec<(OrgId, Vec<String>)>, sqlx::Error> {
    sqlx::query_as("SELECT org_id, frame_origins FROM app.trusted_header_settings WHERE frame_origins <> '{}'")
        .fetch_all(conn)
        .await
}
