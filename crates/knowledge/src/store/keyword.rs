//! SQL of the keyword leg's change log and of the passages it reads.

use sqlx::PgConnection;
use tale_core::ids::OrgId;
use uuid::Uuid;

/// Appends one entry per file (or slice of it). The three lists run in parallel.
pub(crate) async fn append(
    conn: &mut PgConnection,
    org: OrgId,
    files: &[Uuid],
    first: &[Option<i32>],
    last: &[Option<i32>],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO private_knowledge.keyword_log (org_id, file_id, first_ordinal, last_ordinal)
         SELECT $1, change.file_id, change.first_ordinal, change.last_ordinal
           FROM unnest($2::uuid[], $3::integer[], $4::integer[]) AS change (file_id, first_ordinal, last_ordinal)",
    )
    .bind(org)
    .bind(files)
    .bind(first)
    .bind(last)
    .execute(conn)
    .await?;
    Ok(())
}

/// Wakes the followers of `org` when the caller's transaction commits.
pub(crate) async fn wake(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_notify('tale_keyword', $1::text)").bind(org.0.to_string()).execute(conn).await?;
    Ok(())
}
