//! SQL of this room.

pub(crate) mod output;
pub(crate) mod places;
pub(crate) mod runs;

/// Wakes every process that gives out places, when the transaction commits. The payload names a run that somebody
/// wants stopped, or nothing.
pub(crate) const CHANNEL: &str = "tale_code_runs";

pub(crate) async fn announce(conn: &mut sqlx::PgConnection, payload: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(conn).await.map(drop)
}
