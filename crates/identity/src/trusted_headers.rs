//! Sign-in by the headers of a reverse proxy (spec 10, 14): an application that has signed its people in
//! hands them to one organization. The key that the proxy sends decides the organization; the headers
//! beside it say who the person is, plainly or in an assertion that the proxy signed.
//!
//! Teams are not known here: what the proxy says about them is ignored.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{OrgId, TrustedKeyId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::Topic;

use crate::assertion;
use crate::caller::Caller;
use crate::fields;
use crate::keys;
use crate::permissions::{Capability, Role};
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn, SignedInPerson};
use crate::store;
use crate::store::trusted_headers::{PresentedRow, SettingsRow};
use crate::trail::{self, Change};

/// Most live keys of an organization.
pub const MAX_KEYS: usize = 10;
/// Longest name of a key.
const MAX_NAME_CHARS: usize = 64;
/// How sign-ins of this kind are named in the log.
const SOURCE: &str = "trusted-headers";

/// What an organization allows a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedHeaders {
    /// Whether its keys work.
    pub enabled: bool,
    /// The highest role that a header can give: member to admin.
    pub max_role: Role,
    /// The live keys, newest first.
    pub keys: Vec<TrustedKey>,
}

/// A key as admins see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// The key.
    pub id: TrustedKeyId,
    /// Its name.
    pub name: String,
    /// Its first characters.
    pub prefix: String,
    /// Who made it, while they have an account.
    pub created_by: Option<UserId>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it signed somebody in last.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Whether it takes signed assertions only.
    pub signed_only: bool,
}

/// A key just made, with the secret that is shown once.
#[derive(Clone)]
pub struct CreatedTrustedKey {
    /// The key.
    pub id: TrustedKeyId,
    /// The whole secret. Kept nowhere.
    pub secret: String,
    /// Its first characters.
    pub prefix: String,
    /// What its assertions are signed with.
    pub signing_secret: String,
}

/// What a request of the proxy carries. A header that came more than once counts as absent: one of the
/// two may be the visitor's own.
#[derive(Clone, Default)]
pub struct Assertion {
    /// The key.
    pub key: Option<String>,
    /// The person's address.
    pub email: Option<String>,
    /// The person's display name.
    pub name: Option<String>,
    /// The person's role.
    pub role: Option<String>,
    /// A signed assertion, which then says all three.
    pub signed: Option<String>,
}

/// What became of a hand-off. Whoever is refused is not told why.
#[derive(Debug, Clone)]
pub enum HandOff {
    /// The person has a session.
    SignedIn(SignedIn),
    /// The key is missing, unknown, revoked or switched off.
    KeyRefused,
    /// The key is good, the person is not: no usable address, or an account without an enabled seat.
    Refused,
}

/// The role that a header gives under a ceiling: what is no assertable role counts as member.
fn given_role(asserted: Option<&str>, ceiling: Role) -> Role {
    let asserted = asserted.and_then(|text| Role::parse(&text.trim().to_lowercase()));
    asserted.filter(|role| assertable(*role)).unwrap_or(Role::Member).min(ceiling)
}

fn no_key() -> Problem {
    Problem::new(Code::TrustedKeyNotFound, "This key does not exist, or it was revoked before.")
}

fn assertable(role: Role) -> bool {
    !matches!(role, Role::Owner | Role::Disabled)
}

impl Identity {
    /// The settings and the live keys.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn trusted_headers(&self, caller: &Caller) -> Result<TrustedHeaders, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut conn = self.0.db.acquire().await?;
        let settings = settings_of(&mut conn, caller.org).await?;
        let keys = store::trusted_headers::keys(&mut conn, caller.org).await?;
        let keys = keys
            .into_iter()
            .map(|key| TrustedKey {
                id: key.id,
                name: key.name,
                prefix: key.prefix,
                created_by: key.created_by,
                created_at: key.created_at,
                last_used_at: key.last_used_at,
                signed_only: key.signed_only,
            })
            .collect();
        Ok(TrustedHeaders { enabled: settings.enabled, max_role: settings.max_role, keys })
    }

    /// Switches the sign-in on or off and sets its ceiling. Off refuses every key and revokes none.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` for a role that cannot be asserted.
    pub async fn set_trusted_headers(&self, caller: &Caller, enabled: bool, max_role: Role) -> Result<(), Problem> {
        caller.require(Capability::SignInManage)?;
        if !assertable(max_role) {
            return Err(Problem::invalid_field(
                "maxAssertedRole",
                "must be one of \"member\", \"editor\", \"developer\", \"admin\"",
            ));
        }
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let before = settings_of(&mut tx, caller.org).await?;
        let now = self.now();
        store::trusted_headers::set(&mut tx, caller.org, SettingsRow { enabled, max_role }, now).await?;
        let state =
            |row: SettingsRow| serde_json::json!({ "enabled": row.enabled, "maxAssertedRole": row.max_role.text() });
        let change = Change::organization("trusted_headers.updated")
            .on("organization", caller.org)
            .with("previous", state(before))
            .with("new", state(SettingsRow { enabled, max_role }));
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a key.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY`, `TRUSTED_KEY_LIMIT` for an eleventh one.
    pub async fn create_trusted_key(
        &self,
        caller: &Caller,
        name: &str,
        signed_only: bool,
    ) -> Result<CreatedTrustedKey, Problem> {
        caller.require(Capability::SignInManage)?;
        let name = fields::short_text("name", name, MAX_NAME_CHARS)?;
        let key = keys::trusted_headers();
        let id = TrustedKeyId::new();
        let now = self.now();
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        if store::trusted_headers::keys(&mut tx, caller.org).await?.len() >= MAX_KEYS {
            return Err(Problem::new(
                Code::TrustedKeyLimit,
                format!("An organization has at most {MAX_KEYS} keys. Revoke one that is not used any more."),
            ));
        }
        let row = store::trusted_headers::NewKey {
            id,
            name: &name,
            hash: &key.hash,
            prefix: &key.first,
            by: caller.user,
            at: now,
            signed_only,
        };
        store::trusted_headers::insert(&mut tx, caller.org, &row).await?;
        let change = Change::organization("trusted_headers.key_created")
            .on("trusted_key", id)
            .named(&name)
            .with("signedOnly", signed_only);
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        let signing_secret = assertion::secret_of(&self.0.assertion_secret, id);
        Ok(CreatedTrustedKey { id, secret: key.secret, prefix: key.first, signing_secret })
    }

    /// Sets whether a key takes signed assertions only. Returns what they are signed with.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `TRUSTED_KEY_NOT_FOUND`.
    pub async fn set_signed_only(
        &self,
        caller: &Caller,
        id: TrustedKeyId,
        signed_only: bool,
    ) -> Result<String, Problem> {
        caller.require(Capability::SignInManage)?;
        let mut tx = self.begin().await?;
        let set = store::trusted_headers::set_signed_only(&mut tx, caller.org, id, signed_only).await?;
        let (name, before) = set.ok_or_else(no_key)?;
        if before != signed_only {
            let change = Change::organization("trusted_headers.key_updated")
                .on("trusted_key", id)
                .named(&name)
                .changed("signedOnly", before, signed_only);
            trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
            trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        }
        tx.commit().await?;
        Ok(assertion::secret_of(&self.0.assertion_secret, id))
    }

    /// Revokes a key for good. Sessions that it began go on, unless `end_sessions` (TRH-12), which can be said later too.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `TRUSTED_KEY_NOT_FOUND`.
    pub async fn revoke_trusted_key(
        &self,
        caller: &Caller,
        id: TrustedKeyId,
        end_sessions: bool,
    ) -> Result<(), Problem> {
        caller.require(Capability::SignInManage)?;
        let mut tx = self.begin().await?;
        let now = self.now();
        let name =
            store::trusted_headers::revoke(&mut tx, caller.org, id, now, end_sessions).await?.ok_or_else(no_key)?;
        let mut change = Change::organization("trusted_headers.key_revoked").on("trusted_key", id).named(&name);
        if end_sessions {
            change = change
                .with("endedSessions", store::sessions::delete_of_trusted_key(&mut tx, caller.org, id, now).await?);
        }
        trail::record(&mut tx, now, caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Whether any organization of the deployment lets a proxy sign people in.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn trusts_headers(&self) -> Result<bool, Problem> {
        let mut conn = self.0.db.acquire().await?;
        Ok(store::trusted_headers::any_enabled(&mut conn).await?)
    }

    /// Signs in whom a proxy names (DCF-170, DCF-171). An address that the deployment does not know gets
    /// an account and a seat; a member's role becomes the asserted one. Refusals are written to the log as
    /// failed sign-ins.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn hand_off(&self, assertion: &Assertion, device: &Device) -> Result<HandOff, Problem> {
        let email = assertion.email.as_deref().and_then(|text| fields::email(text).ok());
        let presented = match assertion.key.as_deref().and_then(keys::trusted_headers_digest) {
            Some(hash) => {
                let mut conn = self.0.db.acquire().await?;
                store::trusted_headers::presented(&mut conn, &hash).await?
            }
            None => None,
        };
        let Some(key) = presented else {
            self.note_refusal(None, email.as_deref(), device, "key").await?;
            return Ok(HandOff::KeyRefused);
        };
        if !key.live || !key.enabled {
            let why = if key.live { "switched-off" } else { "revoked-key" };
            self.note_refusal(Some(&key), email.as_deref(), device, why).await?;
            return Ok(HandOff::KeyRefused);
        }
        let signed = match &assertion.signed {
            Some(token) => match self.named(&key, token).await? {
                Ok(named) => Some(named),
                Err(why) => {
                    self.note_refusal(Some(&key), None, device, why).await?;
                    return Ok(HandOff::KeyRefused);
                }
            },
            None if key.signed_only => {
                self.note_refusal(Some(&key), email.as_deref(), device, "unsigned").await?;
                return Ok(HandOff::KeyRefused);
            }
            None => None,
        };
        let assertion = signed.as_ref().unwrap_or(assertion);
        let email = assertion.email.as_deref().and_then(|text| fields::email(text).ok());
        let Some(email) = email else {
            self.note_refusal(Some(&key), None, device, "email").await?;
            return Ok(HandOff::Refused);
        };
        match self.seat(&key, &email, assertion, device).await? {
            Some(signed_in) => Ok(HandOff::SignedIn(signed_in)),
            None => {
                self.note_refusal(Some(&key), Some(&email), device, "no-seat").await?;
                Ok(HandOff::Refused)
            }
        }
    }

    /// What a signed assertion says, once: whoever sends it again is refused, by every process.
    async fn named(&self, key: &PresentedRow, token: &str) -> Result<Result<Assertion, &'static str>, Problem> {
        let secret = assertion::secret_of(&self.0.assertion_secret, key.id);
        let named = match assertion::read(token, &secret, self.now()) {
            Ok(named) => named,
            Err(why) => return Ok(Err(why)),
        };
        let mut conn = self.0.db.acquire().await?;
        if !store::trusted_headers::spend(&mut conn, key.org_id, key.id, &named.nonce, named.expires_at).await? {
            return Ok(Err("assertion-replayed"));
        }
        let said = Assertion { email: Some(named.email), name: named.name, role: named.role, ..Assertion::default() };
        Ok(Ok(said))
    }

    /// Gives the person a session in the key's organization; `None` when they have no seat there.
    async fn seat(
        &self,
        key: &PresentedRow,
        email: &str,
        assertion: &Assertion,
        device: &Device,
    ) -> Result<Option<SignedIn>, Problem> {
        let role = given_role(assertion.role.as_deref(), key.max_role);
        let now = self.now();
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, key.org_id).await?;
        let (user, name) = match store::accounts::by_email(&mut tx, email).await? {
            Some(account) => {
                let change =
                    Change::members("member.role_changed").with("source", SOURCE).with("key", key.name.as_str());
                if !self.move_member(&mut tx, key.org_id, account.id, role, change).await? {
                    return Ok(None);
                }
                (account.id, account.name)
            }
            None => {
                let local = || email.split('@').next().unwrap_or(email).to_owned();
                let name = assertion.name.as_deref().and_then(|name| fields::person_name(name).ok());
                let name = name.unwrap_or_else(local);
                // Somebody who made the account at this moment has no seat here.
                let Some(user) = self.insert_account(&mut tx, email, &name, None, false).await? else {
                    return Ok(None);
                };
                store::members::insert(&mut tx, key.org_id, user, role, now).await?;
                let change = Change::members("member.added")
                    .on("member", user)
                    .named(email)
                    .with("role", role.text())
                    .with("accountCreated", true)
                    .with("source", SOURCE)
                    .with("key", key.name.as_str());
                trail::record(&mut tx, now, key.org_id, &Actor::System, &change).await?;
                trail::hint(&mut tx, key.org_id, Topic::Members, None).await?;
                (user, name)
            }
        };
        let person = SignedInPerson { id: user, name: &name, email };
        let signed_in =
            self.make_session(&mut tx, person, Some(key.org_id), Method::TrustedHeaders(key.id), false, device).await?;
        store::accounts::set_last_org(&mut tx, user, key.org_id).await?;
        // Whoever revokes the key at this moment comes before, and it signs nobody in, or after, and sees the session.
        if !store::trusted_headers::touch(&mut tx, key.org_id, key.id, now).await? {
            return Ok(None);
        }
        let change =
            Change::account("auth.signed_in").on("user", user).with("method", SOURCE).with("key", key.name.as_str());
        trail::in_every_org(&mut tx, now, user, &Actor::User { id: user }, &change).await?;
        tx.commit().await?;
        Ok(Some(signed_in))
    }

    /// Writes a refused hand-off into the log of the key's organization, else of the deployment.
    async fn note_refusal(
        &self,
        key: Option<&PresentedRow>,
        email: Option<&str>,
        device: &Device,
        why: &'static str,
    ) -> Result<(), Problem> {
        let mut change = Change::account("auth.sign_in_failed")
            .with("method", SOURCE)
            .with("reason", why)
            .failed(self.claimed(email, device));
        if let Some(key) = key {
            change = change.on("trusted_key", key.id).named(&key.name);
        }
        let mut conn = self.0.db.acquire().await?;
        trail::record(&mut conn, self.now(), key.map(|key| key.org_id), &Actor::System, &change).await
    }
}

async fn settings_of(conn: &mut PgConnection, org: OrgId) -> Result<SettingsRow, Problem> {
    let stored = store::trusted_headers::settings(conn, org).await?;
    Ok(stored.unwrap_or(SettingsRow { enabled: false, max_role: Role::Member }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_no_more_than_the_ceiling_and_never_ownership() {
        for (asserted, ceiling, given) in [
            (Some("owner"), Role::Admin, Role::Member),
            (Some("disabled"), Role::Admin, Role::Member),
            (Some("admin"), Role::Editor, Role::Editor),
            (Some(" Admin "), Role::Admin, Role::Admin),
            (Some("editor"), Role::Admin, Role::Editor),
            (Some("root"), Role::Admin, Role::Member),
            (Some(""), Role::Admin, Role::Member),
            (None, Role::Admin, Role::Member),
            (Some("developer"), Role::Member, Role::Member),
        ] {
            assert_eq!(given_role(asserted, ceiling), given, "{asserted:?} under {ceiling}");
        }
    }
}
