//! Records of usage that go for their age.

use chrono::NaiveDate;
use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::OrgId;

/// Every organization that is not being deleted.
pub(crate) async fn organizations(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<OrgId>> {
    sqlx::query_scalar("SELECT id FROM app.organizations WHERE deleted_at IS NULL ORDER BY id").fetch_all(db).await
}

/// Deletes bookings of days before `first`, at most so many.
pub(crate) async fn bookings(conn: &mut PgConnection, org: OrgId, first: NaiveDate, most: i64) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "DELETE FROM app.usage_bookings WHERE org_id = $1 AND reservation_id = ANY (ARRAY( \
             SELECT reservation_id FROM app.usage_bookings \
             WHERE org_id = $1 AND admitted_at < $2::date::timestamp AT TIME ZONE 'UTC' ORDER BY admitted_at LIMIT $3))",
    )
    .bind(org)
    .bind(first)
    .bind(most)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes sums of days before `first`, at most so many.
pub(crate) async fn days(conn: &mut PgConnection, org: OrgId, first: NaiveDate, most: i64) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "DELETE FROM app.usage_days WHERE ctid = ANY (ARRAY( \
             SELECT ctid FROM app.usage_days WHERE org_id = $1 AND day < $2 LIMIT $3)) AND org_id = $1 AND day < $2",
    )
    .bind(org)
    .bind(first)
    .bind(most)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes what limits of days before `first` were judged by, at most so many.
pub(crate) async fn counters(conn: &mut PgConnection, org: OrgId, first: NaiveDate, most: i64) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "DELETE FROM app.usage_counters WHERE ctid = ANY (ARRAY( \
             SELECT ctid FROM app.usage_counters WHERE org_id = $1 AND day < $2 LIMIT $3)) AND org_id = $1 AND day < $2",
    )
    .bind(org)
    .bind(first)
    .bind(most)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
