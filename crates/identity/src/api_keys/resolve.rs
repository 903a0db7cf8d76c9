//! The caller behind an API key, on every call of `/api/v1` (KEY-4, KEY-16…18).

use std::time::Duration;

use tale_core::ids::{OrgId, UserId};
use tale_core::{Code, Problem};

use crate::caller::{Caller, Via};
use crate::competences::Competences;
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

/// The caller of a key, and who that is: both are read at once.
#[derive(Debug, Clone)]
pub struct KeyHolder {
    /// The caller.
    pub caller: Caller,
    /// Who the caller is.
    pub me: Me,
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
    pub async fn authenticate_key(&self, secret: &str, org_slug: Option<&str>) -> Result<KeyHolder, Problem> {
        let holder = self.key_holder(secret, org_slug).await?;
        if holder.caller.role == Role::Disabled {
            return Err(Problem::new(
                Code::OrgForbidden,
                "Your access to this organization is disabled. Ask an owner or admin of the organization.",
            ));
        }
        Ok(holder)
    }

    /// The same for a door that says in its own words what a disabled seat must not do: such a caller holds no
    /// capability.
    ///
    /// # Errors
    /// As there, but not for a disabled seat.
    pub async fn key_holder(&self, secret: &str, org_slug: Option<&str>) -> Result<KeyHolder, Problem> {
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
        let person = (user.zip(key.user_name.clone()).zip(key.user_email.clone()))
            .map(|((id, name), email)| MePerson { id, name, email });
        let held: Vec<(OrgId, Competences)> = rows
            .iter()
            .filter_map(|row| {
                let names = row.competences.as_ref()?.iter().map(String::as_str);
                Some((row.org_id?, Competences::named(names)))
            })
            .collect();
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
            (keys::KeyKind::Personal, Some(slug)) => match orgs.iter().find(|org| org.slug == slug) {
                Some(org) => org.clone(),
                None if store::organizations::slug_exists(&mut conn, &slug).await? => return Err(not_a_member()),
                None => {
                    return Err(Problem::new(
                        Code::OrgSlugInvalid,
                        "The header `X-Organization-Slug` names no organization.",
                    ));
                }
            },
            (keys::KeyKind::Personal, None) => only_one(&orgs)?,
            (_, slug) => {
                let org = orgs.last().cloned().ok_or_else(unknown_key)?;
                if slug.is_some_and(|slug| slug != org.slug) {
                    return Err(Problem::new(
                        Code::OrgForbidden,
                        "This API key works in its own organization only. Leave the header `X-Organization-Slug` out.",
                    ));
                }
                org
            }
        };
        let (org, org_slug, role) = (chosen.id, chosen.slug.clone(), chosen.role);
        orgs.retain(|org| org.role != Role::Disabled);
        let me = Me { person, organization: chosen, organizations: orgs };
        let competences = held.into_iter().find(|(of, _)| *of == org).map(|(_, held)| held).unwrap_or_default();
        Ok(KeyHolder { caller: Caller { org, org_slug, user, role, competences, via }, me })
    }
}

fn not_a_member() -> Problem {
    Problem::new(Code::OrgForbidden, "You are not a member of this organization.")
}

/// The holder's only organization, or which ones there are to choose from.
fn only_one(memberships: &[OrganizationView]) -> Result<OrganizationView, Problem> {
    let open: Vec<&OrganizationView> =
        memberships.iter().filter(|org| memberships.len() == 1 || org.role != Role::Disabled).collect();
    match open.as_slice() {
        [] => Err(not_a_member()),
        [one] => Ok((*one).clone()),
        several => {
            let organizations: Vec<_> =
                several.iter().map(|org| serde_json::json!({ "slug": org.slug, "name": org.name })).collect();
            Err(Problem::new(
                Code::OrgSlugRequired,
                "You belong to several organizations. Name one in the header `X-Organization-Slug`.",
            )
            .with_data(serde_json::json!({ "organizations": organizations })))
        }
    }
}
