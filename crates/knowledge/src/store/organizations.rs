//! SQL about organizations as such.

use sqlx::PgConnection;
use sqlx::postgres::PgExecutor;
use tale_core::ids::OrgId;

/// The short name of an organization, if it is there. Operational database.
pub(crate) async fn slug(app: impl PgExecutor<'_>, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT slug FROM app.organizations WHERE id = $1").bind(org).fetch_optional(app).await
}

/// Lets everything that organizations which were deleted hold be purged: documents at once, whatever their state, and
/// files of chats. Looks across organizations.
pub(crate) async fn doom_deleted(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.documents d
            SET lifecycle = 'purging', trashed_at = coalesce(d.trashed_at, o.deleted_at)
           FROM app.organizations o
          WHERE o.id = d.org_id AND o.deleted_at IS NOT NULL AND d.lifecycle <> 'purging'",
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE app.files f
            SET state = 'deleting', searchable = false
           FROM app.organizations o
          WHERE o.id = f.org_id AND o.deleted_at IS NOT NULL AND f.state <> 'deleting'",
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Removes organizations that were deleted and hold neither documents nor files nor sandboxes any more, with all other
/// rows of theirs; returns which. Looks across organizations.
pub(crate) async fn remove_deleted(conn: &mut PgConnection) -> Result<Vec<OrgId>, sqlx::Error> {
    sqlx::query_scalar(
        "DELETE FROM app.organizations o
          WHERE o.deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM app.documents d WHERE d.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.files f WHERE f.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.sandbox_sessions s WHERE s.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.sandbox_days s WHERE s.org_id = o.id)
         RETURNING o.id",
    )
    .fetch_all(conn)
    .await
}
