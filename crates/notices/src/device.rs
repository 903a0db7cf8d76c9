//! Devices that a person signed in from before.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::crypto::sha256;
use tale_core::ids::UserId;

use crate::store;

/// What is known of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was used before, or it is the first one of the account.
    Known,
    /// Others were used before, and not this one.
    New,
}

/// Browser and system of a `User-Agent`, as people call them; empty when neither is known.
#[must_use]
pub fn device_name(user_agent: Option<&str>) -> String {
    let agent = user_agent.unwrap_or_default();
    let first = |names: &[(&str, &'static str)]| {
        names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name).unwrap_or_default()
    };
    let browser = first(&[
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("FxiOS", "Firefox"),
        ("Chrome/", "Chrome"),
        ("CriOS", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Windows", "Windows"),
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    [browser, system].into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Notes that `person` signed in from a device, which is its browser, its system and its network.
///
/// # Errors
/// The database's.
pub async fn see_device(
    conn: &mut PgConnection,
    person: UserId,
    user_agent: Option<&str>,
    network: &str,
    at: DateTime<Utc>,
) -> Result<Seen, sqlx::Error> {
    let device = sha256(format!("{}\n{network}", device_name(user_agent)).as_bytes());
    store::see_device(conn, person, &device, at).await
}
