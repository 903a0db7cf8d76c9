//! How much stands in the queue, for the people who run it.

use sqlx::PgConnection;

/// Every state that a job can be in. A finished job is gone.
pub const STATES: [&str; 4] = ["waiting", "ready", "running", "dead"];

/// Most kinds that are told apart; a release has a dozen.
const KINDS: i64 = 100;

/// The jobs of one kind in one state, across organizations.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Depth {
    /// The kind: [`crate::Job::NAME`].
    pub kind: String,
    /// One of [`STATES`].
    pub state: String,
    /// How many.
    pub jobs: i64,
    /// Seconds since the oldest of them was queued.
    pub oldest_seconds: f64,
}

/// What stands in the queue. Kinds and states without jobs are absent.
///
/// # Errors
/// When the database cannot be reached.
pub async fn depths(conn: &mut PgConnection) -> sqlx::Result<Vec<Depth>> {
    sqlx::query_as(
        "SELECT kind, state, count(*) AS jobs,
                greatest(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS oldest_seconds
           FROM app.jobs GROUP BY kind, state ORDER BY kind, state LIMIT $1",
    )
    .bind(KINDS * STATES.len() as i64)
    .fetch_all(conn)
    .await
}
