//! What chats count.

use std::time::Duration;

use sqlx::PgConnection;
use tale_core::metrics::Histogram;

use crate::store;

/// Time from an accepted message to the first token of the model, tool calls included.
pub static DIALOG_TTFT: Histogram<11> = Histogram::new(&[0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0]);

/// How recent a sign of life must be for a turn to count as in flight.
const ALIVE: Duration = Duration::from_secs(600);

/// Turns in flight of all processes.
///
/// # Errors
/// When the database cannot be reached.
pub async fn generations_in_flight(conn: &mut PgConnection) -> sqlx::Result<i64> {
    store::generations::in_flight(conn, ALIVE.as_secs_f64()).await
}
