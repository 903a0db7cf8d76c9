//! The caller behind an API key, on every call of `/api/v1` (KEY-4, KEY-16…18).

use std::time::Duration;

use tale_core::ids::UserId;
use tale_core::{Code, Problem};

use crate::caller::{Caller, Via};
use crate::keys;
use crate::organizations::OrganizationView;
use crate::permissions::Role;
use crate::service::Identity;
use crate::store;

/// How often a use is noted at most (KEY-18).
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// Who a caller is, for `GET /api/v1/me`.
#[derive(Debug, Clone)]
pub struct Me {
    /// The person the key acts as; `None` for a key of a team or an organization.
    pub person: Option<MePerson>,
    /// The organization the call acts in, with the role that counts there.
    pub organization: OrganizationView,
    /// Every organization that the key can act in.
    pub organizations: Vec<OrganizationView>,
}

/// The person a key acts as.
#[derive(Debug, Clone)]
pub struct MePerson {
    /// The person's id.
    pub id: UserId,
    /// The person's display name.
    pub name: String,
    /// The person's address.
    pub email: String,
}

fn unknown_key() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "This API key is unknown, revoked or expired. Send a valid key as `Authorization: Bearer <key>`.",
    )
}

impl Identity {
    /// The caller of a key. A personal one acts in the organization of `org_slug` (any case), or in the holder's only
    /// one; every other kind in its own, and nowhere else. A malformed key is refused without a query; else it is one
    /// look-up by index, and a write at most once a minute.
    ///
    /// # Errors
    /// `UNAUTHORIZED`; `ORG_SLUG_REQUIRED`, `ORG_SLUG_INVALID`, `ORG_FORBIDDEN` (API-3, KEY-4).
    pub async fn authenticate_key(&self, secret: &str, org_slug: Option<&str>) -> Result<Caller, Problem> {
        let caller = self.key_holder(secret, org_slug).await?;
        if caller.role == Role::Disabled {
            return Err(Problem::new(
                Code::OrgForbidden,
                "Your access to this organization is disabled. Ask an owner or admin of the organization.",
            ));
        }
        Ok(caller)
    }

    /// The same for a door that says in its own words what a disabled seat must not do: such a caller holds no
    /// capability.
    ///
    /// # Errors
    /// As there, but not for a disabled seat.
    pub async fn key_holder(&self, secret: &str, org_slug: Option<&str>) -> Result<Caller, Problem> {
        let hash = keys::digest(secret).ok_or_else(unknown_key)?;
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let rows = store::keys::resolve(&mut conn, &hash, now).await?;
        let Some(key) = rows.first() else { return Err(unknown_key()) };
        let via = Via::ApiKey {
            id: key.id,
            name: key.name.clone(),
            expires_at: key.expires_at,
            kind: key.kind,
            maker: if key.kind == keys::KeyKind::Personal { key.user_id } else { key.maker_id },
            team: key.team_id,
        };
        let (user, id, kind, seen) = (key.user_id, key.id, key.kind, key.last_used_at);
        let mut orgs: Vec<OrganizationView> = rows
            .into_iter()
            .filter_map(|row| {
                let role = row.role.as_deref().and_then(Role::parse)?;
                Some(OrganizationView { id: row.org_id?, slug: row.org_slug?, name: row.org_name?, role })
            })
            .collect();
        if seen.is_none_or(|seen| now >= seen + NOTE_EVERY) {
            store::keys::touch(&mut conn, id, seen, now).await?;
        }
        let slug = org_slug.map(|slug| slug.trim().to_lowercase()).filter(|slug| !slug.is_empty());
        let chosen = match (kind, slug) {
            (keys::KeyKind::Personal, Some(slug)) => match orgs.into_iter().find(|org| org.slug == slug) {
                Some(org) => org,
                None if store::organizations::slug_exists(&mut conn, &slug).await? => return Err(not_a_member()),
                None => {
                    return Err(Problem::new(
                        Code::OrgSlugInvalid,
                        "The header `X-Organization-Slug` names no organization.",
                    ));
                }
            },
            (keys::KeyKind::Personal, None) => only_one(orgs)?,
            (_, slug) => {
                let org = orgs.pop().ok_or_else(unknown_key)?;
                if slug.is_some_and(|slug| slug != org.slug) {
                    return Err(Problem::new(
                        Code::OrgForbidden,
                        "This API key works in its own organization only. Leave the header `X-Organization-Slug` out.",
                    ));
                }
                org
            }
        };
        Ok(Caller { org: chosen.id, org_slug: chosen.slug, user, role: chosen.role, via })
    }

    /// Who the caller is.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn me(&self, caller: &Caller) -> Result<Me, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let (person, all) = match caller.user {
            Some(user) => {
                let account = store::accounts::by_id(&mut conn, user).await?.ok_or_else(unknown_key)?;
                let all = store::organizations::of_user(&mut conn, user).await?;
                (Some(MePerson { id: user, name: account.name, email: account.email }), all)
            }
            None => (None, store::organizations::alone(&mut conn, caller.org, caller.role).await?),
        };
        // Only a personal key acts in more than one organization.
        let everywhere = !matches!(caller.via, Via::ApiKey { kind, .. } if kind != keys::KeyKind::Personal);
        let organizations: Vec<OrganizationView> = all
            .into_iter()
            .filter(|org| org.role != Role::Disabled && (everywhere || org.id == caller.org))
            .map(OrganizationView::from)
            .collect();
        let organization = organizations.iter().find(|org| org.id == caller.org).cloned().ok_or_else(not_a_member)?;
        Ok(Me { person, organization, organizations })
    }
}

fn not_a_member() -> Problem {
    Problem::new(Code::OrgForbidden, "You are not a member of this organization.")
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
