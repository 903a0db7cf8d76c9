//! The audit entries and hints of this room, written inside the transaction of the change.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Problem};
use tale_db::hints::{Hint, Topic, notify};
use tale_governance::audit::{self, AuditEntry, Claimed};
use tale_notices::{Kind, News};

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
    denied: bool,
    told: Option<(UserId, Kind)>,
}

impl Change {
    fn new(category: &'static str, action: &'static str, resource_type: &'static str) -> Self {
        Self {
            action,
            category,
            resource_type,
            resource_id: None,
            details: Map::new(),
            claimed: None,
            denied: false,
            told: None,
        }
    }

    /// About a person's account or session.
    pub(crate) fn account(action: &'static str) -> Self {
        Self::new("auth", action, "user")
    }

    /// About an account that is blocked.
    pub(crate) fn lockout(action: &'static str) -> Self {
        Self::new("security", action, "user")
    }

    /// About an organization itself.
    pub(crate) fn organization(action: &'static str) -> Self {
        Self::new("admin", action, "organization")
    }

    /// About the members of an organization.
    pub(crate) fn members(action: &'static str) -> Self {
        Self::new("member", action, "member")
    }

    /// About an API key.
    pub(crate) fn key(action: &'static str) -> Self {
        Self::new("security", action, "api_key")
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
        self
    }

    /// Says that this was tried and refused.
    pub(crate) fn denied(mut self) -> Self {
        self.denied = true;
        self
    }

    /// Tells `person` of it, with its details.
    pub(crate) fn told(mut self, person: UserId, kind: Kind) -> Self {
        self.told = Some((person, kind));
        self
    }

    /// What is told of it in `org`; none is the account.
    fn news(&self, org: Option<OrgId>, kind: Kind, at: DateTime<Utc>) -> News {
        News { org, kind, details: Value::Object(self.details.clone()), at }
    }
}

/// Writes a change of one organization; `None` is the whole deployment. Whom it concerns is told there.
pub(crate) async fn record(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    org: impl Into<Option<OrgId>>,
    actor: &Actor,
    change: &Change,
) -> Result<(), Problem> {
    let org = org.into();
    if let Some((person, kind)) = change.told {
        tale_notices::tell(conn, person, &change.news(org, kind, at)).await?;
    }
    enter(conn, at, org, actor, change).await
}

async fn enter(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    org: Option<OrgId>,
    actor: &Actor,
    change: &Change,
) -> Result<(), Problem> {
    let entry = AuditEntry {
        org,
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
        None if change.denied => audit::record_denied(conn, &entry).await?,
        None => audit::record(conn, &entry).await?,
    }
    Ok(())
}

/// Writes a change of a person into the log of every organization of theirs; without any, into the
/// log of the deployment. Whom it concerns is told once, as something about the account.
pub(crate) async fn in_every_org(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    person: UserId,
    actor: &Actor,
    change: &Change,
) -> Result<(), Problem> {
    if let Some((told, kind)) = change.told {
        tale_notices::tell(conn, told, &change.news(None, kind, at)).await?;
    }
    let orgs = store::members::orgs_of(conn, person).await?;
    if orgs.is_empty() {
        return enter(conn, at, None, actor, change).await;
    }
    for org in orgs {
        enter(conn, at, Some(org), actor, change).await?;
    }
    Ok(())
}

/// Writes that sign-ins to an account are refused for a while; tells its owner, and the owners and admins of their
/// organizations (LCK-8).
pub(crate) async fn locked_out(
    conn: &mut PgConnection,
    at: DateTime<Utc>,
    person: UserId,
    claimed: Claimed,
) -> Result<(), Problem> {
    let (Claimed::Plain { email, network } | Claimed::Hashed { email, network }) = claimed.clone();
    let details = serde_json::json!({ "email": email, "network": network });
    let change = Change::lockout("auth.locked_out").on("user", person).failed(claimed);
    in_every_org(conn, at, person, &Actor::System, &change).await?;
    let news = |org, kind| News { org, kind, details: details.clone(), at };
    tale_notices::tell(conn, person, &news(None, Kind::SignInBlocked)).await?;
    for org in store::members::orgs_of(conn, person).await? {
        tale_notices::tell_admins(conn, org, Some(person), &news(Some(org), Kind::MemberBlocked)).await?;
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
