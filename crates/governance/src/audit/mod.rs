//! The audit log. [`record`] writes one entry with the caller's connection: inside the transaction
//! of the act, the two commit together or not at all.
//!
//! An entry outlives what it names: there are no foreign keys, and names that a reader needs later
//! go into `details`. Growth: one insert, five index entries and two look-ups by key per act.
//!
//! Nothing else is done while a person waits. A worker seals what is committed into one chain of hashes per organization
//! ([`seal`]), in the form that [`chain`] lays down; [`verify`] follows a chain, from an export ([`line`]) or
//! from the database ([`log`]); every chain is checked once a day ([`watch`]).

pub mod chain;
pub mod line;
pub mod log;
pub mod seal;
mod store;
pub mod verify;
pub mod watch;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;

/// One recorded act.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// The organization it happened in; none for acts on the whole deployment.
    pub org: Option<OrgId>,
    /// Who did it.
    pub actor: Actor,
    /// What was done, as `thing.verb` (`document.delete`). Stable, never translated.
    pub action: &'static str,
    /// Its area, for filters: one of [`CATEGORIES`].
    pub category: &'static str,
    /// The kind of thing it was done to.
    pub resource_type: &'static str,
    /// Which one.
    pub resource_id: Option<String>,
    /// What a reader needs to understand it. Never a secret and never content.
    pub details: Value,
    /// When, by the injected clock.
    pub at: DateTime<Utc>,
}

/// The areas of entries. Those that nothing is recorded in yet stand here too, because filters and older files name them.
pub const CATEGORIES: [&str; 11] =
    ["auth", "member", "data", "connector", "automation", "security", "admin", "ai", "skill", "agent", "provider"];

/// Whom a failed sign-in named and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// As they are, without a pepper (DCF-111).
    Plain {
        /// The lower-cased address.
        email: Option<String>,
        /// The network, a /24 or a /64.
        network: String,
    },
    /// Their keyed hashes in hexadecimal; the plain columns stay empty (DCF-110).
    Hashed {
        /// Of the lower-cased address.
        email: Option<String>,
        /// Of the network.
        network: String,
    },
}

/// How an act ended.
enum Outcome<'a> {
    Done,
    Denied,
    Failed(Option<&'a Claimed>),
}

/// Writes `entry` with `conn`. The address and the role of the person who acts are written with it, as they are
/// now.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record(conn: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
    store::insert(conn, entry, Outcome::Done).await
}

/// [`record`] for something that was tried and did not succeed. Why stands in the details as `error`.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record_failed(conn: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
    store::insert(conn, entry, Outcome::Failed(None)).await
}

/// [`record`] for something that was refused to somebody. Why stands in the details as `error`.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record_denied(conn: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
    store::insert(conn, entry, Outcome::Denied).await
}

/// [`record`] for a failed sign-in.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record_failure(conn: &mut PgConnection, entry: &AuditEntry, claimed: &Claimed) -> Result<(), sqlx::Error> {
    store::insert(conn, entry, Outcome::Failed(Some(claimed))).await
}
