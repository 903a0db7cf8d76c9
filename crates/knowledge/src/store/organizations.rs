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

/// Whether organization `o` was deleted and holds neither documents nor files nor sandboxes any more.
macro_rules! empty {
    () => {
        "o.deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM app.documents d WHERE d.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.files f WHERE f.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.sandbox_sessions s WHERE s.org_id = o.id)
            AND NOT EXISTS (SELECT 1 FROM app.sandbox_days s WHERE s.org_id = o.id)"
    };
}

/// The organizations of which nothing is left but rows and files, with their short names. Looks across organizations.
pub(crate) async fn empty(conn: &mut PgConnection) -> Result<Vec<(OrgId, String)>, sqlx::Error> {
    sqlx::query_as(concat!("SELECT o.id, o.slug FROM app.organizations o WHERE ", empty!())).fetch_all(conn).await
}

/// Holds such an organization until the transaction ends, so that nobody writes files of it; `false`: it is none (any
/// more).
pub(crate) async fn hold_empty(conn: &mut PgConnection, org: OrgId) -> Result<bool, sqlx::Error> {
    let held =
        sqlx::query(concat!("SELECT o.id FROM app.organizations o WHERE o.id = $1 AND ", empty!(), " FOR UPDATE"))
            .bind(org)
            .execute(conn)
            .await?;
    Ok(held.rows_affected() == 1)
}

/// Removes an organization with all other rows of its.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.organizations WHERE id = $1").bind(org).execute(conn).await.map(drop)
}
