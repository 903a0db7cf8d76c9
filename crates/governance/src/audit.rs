//! The audit log. [`record`] writes one entry with the caller's connection: inside the transaction
//! of the act, the two commit together or not at all.
//!
//! An entry outlives what it names: there are no foreign keys, and names that a reader needs later
//! go into `details`. Growth: one insert and one index entry per act.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::{AuditId, OrgId};

/// One recorded act.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// The organization it happened in; none for acts on the whole deployment.
    pub org: Option<OrgId>,
    /// Who did it.
    pub actor: Actor,
    /// What was done, as `thing.verb` (`document.delete`). Stable, never translated.
    pub action: &'static str,
    /// Its area, for filters: `account`, `organization`, `members`, `api_keys`, `models`,
    /// `knowledge`, `chat` or `admin`.
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

/// Writes `entry` with `conn`.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record(conn: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
    insert(conn, entry, [None; 4]).await
}

/// [`record`] for a failed sign-in.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn record_failure(conn: &mut PgConnection, entry: &AuditEntry, claimed: &Claimed) -> Result<(), sqlx::Error> {
    let columns = match claimed {
        Claimed::Plain { email, network } => [email.as_deref(), None, Some(network.as_str()), None],
        Claimed::Hashed { email, network } => [None, email.as_deref(), None, Some(network.as_str())],
    };
    insert(conn, entry, columns).await
}

/// `claimed`: address, its hash, network, its hash.
async fn insert(conn: &mut PgConnection, entry: &AuditEntry, claimed: [Option<&str>; 4]) -> Result<(), sqlx::Error> {
    let key = match &entry.actor {
        Actor::Api { key, .. } => Some(*key),
        Actor::User { .. } | Actor::System => None,
    };
    sqlx::query(
        "INSERT INTO app.audit_entries
                (id, org_id, actor_kind, actor_user_id, actor_key_id, action, category,
                 resource_type, resource_id, details, at, actor_email, actor_email_hash, ip_address, ip_address_hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .bind(AuditId::new())
    .bind(entry.org)
    .bind(entry.actor.kind())
    .bind(entry.actor.user())
    .bind(key)
    .bind(entry.action)
    .bind(entry.category)
    .bind(entry.resource_type)
    .bind(&entry.resource_id)
    .bind(&entry.details)
    .bind(entry.at)
    .bind(claimed[0])
    .bind(claimed[1])
    .bind(claimed[2])
    .bind(claimed[3])
    .execute(conn)
    .await?;
    Ok(())
}
