//! The counters of wrong passwords. They are kept per address, whether it has an account or not,
//! so nothing here has an organization condition.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::lockout::{Charge, LoginPolicy, remaining};

/// The network of the counter over all networks.
pub(crate) const EVERYWHERE: &str = "*";

/// How the name of a known device begins, which stands in the place of a network.
pub(crate) const DEVICE: &str = "device ";

/// The name of the counter over all known devices: whoever knows a password may make as many devices known as they like,
/// and shall not have guesses at the second factor with each of them.
pub(crate) const DEVICES: &str = "device *";

/// The counters of an attempt from `network`, in the order in which they are locked: its own, and that of all networks
/// together, or of all known devices, which strangers cannot use up.
pub(crate) fn counters(network: &str) -> [&str; 2] {
    [network, if network.starts_with(DEVICE) { DEVICES } else { EVERYWHERE }]
}

/// Whether a counter counts what others count as well.
pub(crate) fn is_of_all(network: &str) -> bool {
    matches!(network, EVERYWHERE | DEVICES)
}

/// Until when the address is blocked for this network, whichever of its counters says so.
pub(crate) async fn blocked_until(
    conn: &mut PgConnection,
    key: &[u8; 32],
    network: &str,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT max(blocked_until)
           FROM app.login_attempts
          WHERE key_hash = $1 AND network = ANY ($2) AND blocked_until > $3",
    )
    .bind(key.as_slice())
    .bind(counters(network))
    .bind(now)
    .fetch_one(conn)
    .await
}

/// [`crate::lockout::Counter::charge`] in one statement, so that all replicas agree. During a
/// block the guard leaves the row as it is.
pub(crate) async fn charge(
    conn: &mut PgConnection,
    key: &[u8; 32],
    network: &str,
    policy: &LoginPolicy,
    now: DateTime<Utc>,
) -> Result<Charge, sqlx::Error> {
    let schedule: Vec<i64> =
        policy.backoff.iter().map(|block| i64::try_from(block.as_millis()).unwrap_or(i64::MAX)).collect();
    let max = i32::try_from(policy.max_attempts).unwrap_or(i32::MAX);
    let charged: Option<(i32, Option<DateTime<Utc>>)> = sqlx::query_as(
        "INSERT INTO app.login_attempts AS a (key_hash, network, failures, blocked_until, last_at)
         VALUES ($1, $2, 1, CASE WHEN 1 >= $4 THEN $3 + ($5::bigint[])[1] * interval '1 millisecond' END, $3)
         ON CONFLICT (key_hash, network) DO UPDATE
            SET failures = LEAST(a.failures, 1000000000) + 1,
                blocked_until = CASE
                    WHEN a.failures + 1 >= $4
                    THEN $3 + ($5::bigint[])[LEAST(a.failures + 1 - $4 + 1, cardinality($5::bigint[]))] * interval '1 millisecond'
                END,
                last_at = $3
          WHERE a.blocked_until IS NULL OR a.blocked_until <= $3
         RETURNING failures, blocked_until",
    )
    .bind(key.as_slice())
    .bind(network)
    .bind(now)
    .bind(max)
    .bind(schedule)
    .fetch_optional(&mut *conn)
    .await?;
    match charged {
        Some((_, until)) => Ok(Charge::Admitted { blocked: remaining(until, now) }),
        None => {
            let until = blocked_until(conn, key, network, now).await?;
            Ok(Charge::Refused { wait: remaining(until, now).unwrap_or(Duration::from_millis(1)) })
        }
    }
}

/// A counter as a row: the address's key, the network, failures, the end of the block, the last attempt.
pub(crate) type Row = (Vec<u8>, String, i32, Option<DateTime<Utc>>, DateTime<Utc>);

/// The counters of these addresses, the latest first.
pub(crate) async fn of_keys(conn: &mut PgConnection, keys: &[Vec<u8>], limit: i64) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as(
        "SELECT key_hash, network, failures, blocked_until, last_at
           FROM app.login_attempts
          WHERE key_hash = ANY($1)
          ORDER BY last_at DESC, network
          LIMIT $2",
    )
    .bind(keys)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Forgets the failures of this network, of all networks together and of all devices, locked in the order in which they
/// are charged: simultaneous sign-ins would wait for each other otherwise.
pub(crate) async fn clear(conn: &mut PgConnection, key: &[u8; 32], network: &str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH held AS MATERIALIZED (
             SELECT network FROM app.login_attempts
              WHERE key_hash = $1 AND network IN ($2, '*', 'device *')
              ORDER BY network IN ('*', 'device *'), network
                FOR UPDATE
         )
         DELETE FROM app.login_attempts a USING held WHERE a.key_hash = $1 AND a.network = held.network",
    )
    .bind(key.as_slice())
    .bind(network)
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets every failure of an address. Returns the most that one of its counters had.
pub(crate) async fn forget(conn: &mut PgConnection, key: &[u8; 32]) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar(
        "WITH held AS MATERIALIZED (
             SELECT network, failures FROM app.login_attempts WHERE key_hash = $1
              ORDER BY network IN ('*', 'device *'), network FOR UPDATE
         ),
         gone AS (
             DELETE FROM app.login_attempts a USING held WHERE a.key_hash = $1 AND a.network = held.network
         )
         SELECT COALESCE(max(failures), 0) FROM held",
    )
    .bind(key.as_slice())
    .fetch_one(conn)
    .await
}

/// Removes counters untouched since `before`. Returns how many.
pub(crate) async fn sweep(conn: &mut PgConnection, before: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.login_attempts WHERE last_at < $1").bind(before).execute(conn).await?;
    Ok(done.rows_affected())
}
