//! Personal API keys: made and revoked in the app, resolved on every call of `/api/v1` (KEY-1…18).

use std::time::Duration;

use chrono::{DateTime, Utc};
use tale_core::ids::{ApiKeyId, UserId};
use tale_core::{Code, Problem};
use tale_db::hints::Topic;

use crate::caller::{Caller, Via};
use crate::fields;
use crate::keys;
use crate::organizations::OrganizationView;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// Longest name of a key (KEY-1).
const MAX_NAME_CHARS: usize = 100;
/// Longest life of a key, in days: a year, leap day included.
const MAX_DAYS: i64 = 366;
/// Keys of members that are listed for rules.
const MAX_NAMED: i64 = 1_000;
/// How often a use is noted at most (KEY-18).
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// A key as its holder sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyView {
    /// The key.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// Its beginning and end.
    pub fragment: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A key of a member, for rules that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName {
    /// The key.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// Its holder's name.
    pub holder: String,
}

/// A key just made, with the secret that is shown once.
#[derive(Clone)]
pub struct CreatedKey {
    /// The key.
    pub id: ApiKeyId,
    /// The whole secret. Kept nowhere.
    pub secret: String,
    /// Its name.
    pub name: String,
    /// When it ends; `None` is never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Who a caller is, for `GET /api/v1/me`.
#[derive(Debug, Clone)]
pub struct Me {
    /// The person's id.
    pub user: UserId,
    /// The person's display name.
    pub name: String,
    /// The person's address.
    pub email: String,
    /// The organization the call acts in.
    pub organization: OrganizationView,
    /// Every usable organization of the person.
    pub organizations: Vec<OrganizationView>,
}

fn unknown_key() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "This API key is unknown, revoked or expired. Send a valid key as `Authorization: Bearer <key>`.",
    )
}

impl Identity {
    /// Makes a personal key. `expires_in_days`: 1 to 366, or `None` for a key that never ends.
    ///
    /// # Errors
    /// `API_KEY_CREATE_FORBIDDEN` without the right, `INVALID_BODY`.
    pub async fn create_key(
        &self,
        caller: &Caller,
        name: &str,
        expires_in_days: Option<i64>,
    ) -> Result<CreatedKey, Problem> {
        caller.require(Capability::ApiKeysOwn)?;
        let user = person(caller)?;
        let name = fields::short_text("name", name, MAX_NAME_CHARS)?;
        if expires_in_days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
            return Err(Problem::invalid_field(
                "expiresInDays",
                "must be a whole number from 1 to 366, or null for never",
            ));
        }
        let now = self.now();
        let expires_at = expires_in_days.map(|days| now + chrono::Duration::days(days));
        let key = keys::personal();
        let id = ApiKeyId::new();
        let mut tx = self.begin().await?;
        let row = store::keys::NewKeyRow {
            id,
            user,
            hash: &key.hash,
            first: &key.first,
            last: &key.last,
            name: &name,
            at: now,
            expires_at,
        };
        store::keys::insert(&mut tx, &row).await?;
        let change = Change::key("api_key.created")
            .on("api_key", id)
            .named(&name)
            .with("kind", "personal")
            .with("expiresAt", expires_at.map(|at| at.timestamp_millis()));
        trail::in_every_org(&mut tx, now, user, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::ApiKeys, Some(user)).await?;
        tx.commit().await?;
        Ok(CreatedKey { id, secret: key.secret, name, expires_at })
    }

    /// The keys that work in the caller's organization, by name: those of its members (POL-11).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right to write policies.
    pub async fn member_keys(&self, caller: &Caller) -> Result<Vec<KeyName>, Problem> {
        caller.require(Capability::GovernanceManage)?;
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::of_members(&mut conn, caller.org, MAX_NAMED).await?;
        Ok(rows.into_iter().map(|row| KeyName { id: row.id, name: row.name, holder: row.holder }).collect())
    }

    /// The caller's own keys that are not revoked, newest first (KEY-3).
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<KeyView>, Problem> {
        let user = person(caller)?;
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::list(&mut conn, user).await?;
        Ok(rows
            .into_iter()
            .map(|row| KeyView {
                id: row.id,
                name: row.name,
                fragment: format!("{}…{}", row.first_chars, row.last_chars),
                created_at: row.created_at,
                expires_at: row.expires_at,
                last_used_at: row.last_used_at,
            })
            .collect())
    }

    /// Revokes a key of the caller, for good and from the next request on (KEY-7).
    ///
    /// # Errors
    /// `API_KEY_NOT_FOUND` for a key that is not theirs, not there or revoked before.
    pub async fn revoke_key(&self, caller: &Caller, id: ApiKeyId) -> Result<(), Problem> {
        let user = person(caller)?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let Some(name) = store::keys::revoke(&mut tx, user, id, now).await? else {
            return Err(Problem::new(Code::ApiKeyNotFound, "This API key does not exist, or it was revoked before."));
        };
        let change = Change::key("api_key.revoked").on("api_key", id).named(&name);
        trail::in_every_org(&mut tx, now, user, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::ApiKeys, Some(user)).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The caller of a key, in the organization of `org_slug` (any case), or in the holder's only
    /// one. A malformed key is refused without a query; else it is one look-up by index, and a
    /// write at most once a minute.
    ///
    /// # Errors
    /// `UNAUTHORIZED`; `ORG_SLUG_REQUIRED`, `ORG_SLUG_INVALID`, `ORG_FORBIDDEN` (API-3).
    pub async fn authenticate_key(&self, secret: &str, org_slug: Option<&str>) -> Result<Caller, Problem> {
        let hash = keys::digest(secret).ok_or_else(unknown_key)?;
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::resolve(&mut conn, &hash, now).await?;
        let Some(key) = rows.first() else { return Err(unknown_key()) };
        let via = Via::ApiKey { id: key.id, name: key.name.clone(), expires_at: key.expires_at };
        let (user, id, seen) = (key.user_id, key.id, key.last_used_at);
        let memberships: Vec<OrganizationView> = rows
            .into_iter()
            .filter_map(|row| {
                let role = row.role.as_deref().and_then(Role::parse)?;
                Some(OrganizationView { id: row.org_id?, slug: row.org_slug?, name: row.org_name?, role })
            })
            .collect();
        if seen.is_none_or(|seen| now >= seen + NOTE_EVERY) {
            store::keys::touch(&mut conn, id, seen, now).await?;
        }
        let chosen = match org_slug.map(str::trim).filter(|slug| !slug.is_empty()) {
            Some(slug) => {
                let slug = slug.to_lowercase();
                match memberships.into_iter().find(|org| org.slug == slug) {
                    Some(org) => org,
                    None if store::organizations::slug_exists(&mut conn, &slug).await? => return Err(not_a_member()),
                    None => {
                        return Err(Problem::new(
                            Code::OrgSlugInvalid,
                            "The header `X-Organization-Slug` names no organization.",
                        ));
                    }
                }
            }
            None => only_one(memberships)?,
        };
        if chosen.role == Role::Disabled {
            return Err(Problem::new(
                Code::OrgForbidden,
                "Your access to this organization is disabled. Ask an owner or admin of the organization.",
            ));
        }
        Ok(Caller { org: chosen.id, org_slug: chosen.slug, user: Some(user), role: chosen.role, via })
    }

    /// Who the caller is.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn me(&self, caller: &Caller) -> Result<Me, Problem> {
        let user = person(caller)?;
        let mut conn = self.0.db.acquire().await?;
        let account = store::accounts::by_id(&mut conn, user).await?.ok_or_else(unknown_key)?;
        let organizations: Vec<OrganizationView> = store::organizations::of_user(&mut conn, user)
            .await?
            .into_iter()
            .filter(|org| org.role != Role::Disabled)
            .map(OrganizationView::from)
            .collect();
        let organization = organizations.iter().find(|org| org.id == caller.org).cloned().ok_or_else(not_a_member)?;
        Ok(Me { user, name: account.name, email: account.email, organization, organizations })
    }
}

fn not_a_member() -> Problem {
    Problem::new(Code::OrgForbidden, "You are not a member of this organization.")
}

fn person(caller: &Caller) -> Result<UserId, Problem> {
    caller.user.ok_or_else(|| Problem::new(Code::OrgForbidden, "This needs the credential of a person."))
}

/// The holder's only organization, or which ones there are to choose from.
fn only_one(mut memberships: Vec<OrganizationView>) -> Result<OrganizationView, Problem> {
    if memberships.len() > 1 {
        memberships.retain(|org| org.role != Role::Disabled);
    }
    match memberships.len() {
        0 => Err(not_a_member()),
        1 => Ok(memberships.remove(0)),
        _ => {
            let organizations: Vec<_> =
                memberships.iter().map(|org| serde_json::json!({ "slug": org.slug, "name": org.name })).collect();
            Err(Problem::new(
                Code::OrgSlugRequired,
                "You belong to several organizations. Name one in the header `X-Organization-Slug`.",
            )
            .with_data(serde_json::json!({ "organizations": organizations })))
        }
    }
}
