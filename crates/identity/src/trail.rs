//! The audit entries and hints of this room, written inside the transaction of the change.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Problem};
use tale_db::hints::{Hint, Topic, notify};
use tale_governance::audit::{self, AuditEntry, Claimed};

use crate::store;

/// What is written about a change, without the organization, the author and the time.
#[derive(Clone)]
pub(crate) struct Change {
    action: &'static str,
    category: &'static str,
    resource_type: &'static str,
    resource_id: Option<String>,
    details: Map<String, Value>,
    claimed: Option<Claimed>,
}

impl Change {
    fn new(category: &'static str, action: &'static str, resource_type: &'static str) -> Self {
        Self { action, category, resource_type, resource_id: None, details: Map::new(), claimed: None }
    }

    /// About a person's account or session.
    pub(crate) fn account(action: &'static str) -> Self {
        Self::new("account", action, "user")
    }

    /// About an organization itself.
    pub(crate) fn organization(action: &'static str) -> Self {
        Self::new("organization", action, "organization")
    }

    /// About the members of an organization.
    pub(crate) fn members(action: &'static str) -> Self {
        Self::new("members", action, "member")
    }

    /// About an API key.
    pub(crate) fn key(action: &'static str) -> Self {
        Self::new("api_keys", action, "api_key")
    }

    /// Names the thing.
    pub(crate) fn on(mut self, resource_type: &'static str, id: impl ToString) -> Self {
        self.resource_type = resource_type;
        self.resource_id = Some(id.to_string());
        self
    }

    /// The name that a reader needs when the thing is gone.
    pub(crate) fn named(self, name: &str) -> Self {
        self.with("name", name)
    }

    /// Adds a detail.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// What was there and what is there now.
    pub(crate) fn changed(self, field: &str, before: impl Into<Value>, after: impl Into<Value>) -> Self {
        let pair = |value: Value| Value::Object(Map::from_iter([(field.to_owned(), value)]));
        self.with("previous", pair(before.into())).with("new", pair(after.into()))
    }

    /// Says that this is a failed attempt, by whom and where from.
    pub(crate) fn failed(mut self, claimed: Claimed) -> Self {
        self.claimed = Some(claimed);
        self.with("status", "failure")
    }
}

/// Writes a change of one organization; `None` is the whole deployment.
pub(crate) async fn record(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    org: impl Into<Option<OrgId>>,
    actor: &Actor,
    change: &Change,
) -> Result<(), Problem> {
    let entry = AuditEntry {
        org: org.into(),
        actor: actor.clone(),
        action: change.action,
        category: change.category,
        resource_type: change.resource_type,
        resource_id: change.resource_id.clone(),
        details: Value::Object(change.details.clone()),
        at,
    };
    match &change.claimed {
        Some(claimed) => audit::record_failure(conn, &entry, claimed).await?,
        None => audit::record(conn, &entry).await?,
    }
    Ok(())
}

/// Writes a change of a person into the log of every organization of theirs; without any, into the
/// log of the deployment.
pub(crate) async fn in_every_org(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    person: UserId,
    actor: &Actor,
    change: &Change,
) -> Result<(), Problem> {
    let orgs = store::members::orgs_of(conn, person).await?;
    if orgs.is_empty() {
        return record(conn, at, None, actor, change).await;
    }
    for org in orgs {
        record(conn, at, org, actor, change).await?;
    }
    Ok(())
}

/// Tells open browsers that something may have changed.
pub(crate) async fn hint(
    conn: &mut PgConnection,
    org: OrgId,
    topic: Topic,
    user: Option<UserId>,
) -> Result<(), Problem> {
    notify(conn, &Hint { org, topic, id: None, user }).await?;
    Ok(())
}
