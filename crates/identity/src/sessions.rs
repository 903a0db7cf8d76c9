//! Sessions: made at sign-in, resolved on every request, ended by their owner or by time (SES-1…10).

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tale_core::crypto::{hmac_sha256, random_token, sha256};
use tale_core::ids::{OrgId, SessionId, TrustedKeyId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_notices::{Kind, News, Seen};

use crate::caller::{Caller, SessionPrincipal, Via};
use crate::competences::Competences;
use crate::password::Due;
use crate::permissions::Role;
use crate::service::{Device, Identity};
use crate::store;
use crate::store::organizations::Held;
use crate::store::sessions::SessionRow;
use crate::trail::{self, Change};

/// How long a session lives without being renewed (SES-2).
pub const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often its end moves at most (SES-2).
const RENEW_EVERY: Duration = Duration::from_secs(24 * 3600);
/// How often its use is noted at most.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What a sign-in hands to the browser.
#[derive(Clone)]
pub struct SignedIn {
    /// The cookie's value. Kept nowhere.
    pub token: String,
    /// Whether the cookie outlives the browser.
    pub persistent: bool,
    /// The person.
    pub user: UserId,
    /// The person's display name.
    pub name: String,
    /// The person's address.
    pub email: String,
    /// The organization to land in, when there is one.
    pub active_org: Option<OrgId>,
    /// What makes this device known, see [`crate::known_device`].
    pub mark: Option<String>,
}

impl std::fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedIn").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A session as its owner sees it (SES-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// Whether it is the one that asks.
    pub current: bool,
    /// The browser's words.
    pub user_agent: Option<String>,
    /// The network it was made from.
    pub network: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was used last, to the minute.
    pub last_used_at: DateTime<Utc>,
}

/// How a session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Password,
    /// By the key of a reverse proxy.
    TrustedHeaders(TrustedKeyId),
    Passkey,
    Sso,
}

impl Method {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::TrustedHeaders(_) => "trusted-headers",
            Self::Passkey => "passkey",
            Self::Sso => "sso",
        }
    }

    fn trusted_key(self) -> Option<TrustedKeyId> {
        match self {
            Self::TrustedHeaders(key) => Some(key),
            Self::Password | Self::Passkey | Self::Sso => None,
        }
    }
}

/// The person a new session is for.
pub(crate) struct SignedInPerson<'a> {
    pub(crate) id: UserId,
    pub(crate) name: &'a str,
    pub(crate) email: &'a str,
}

fn ended() -> Problem {
    Problem::new(Code::Unauthorized, "You are not signed in, or the session has ended. Sign in and try again.")
}

fn no_membership() -> Problem {
    Problem::new(Code::OrgForbidden, "You are not a member of this organization.")
}

impl Identity {
    /// What is stored of a session's token: no copy of the database opens a session, and none opens
    /// one under another secret.
    fn session_digest(&self, token: &str) -> [u8; 32] {
        match &self.0.config.session_secret {
            Some(secret) => hmac_sha256(secret.expose_secret().as_bytes(), token.as_bytes()),
            None => sha256(token.as_bytes()),
        }
    }

    /// The session of a cookie's token. `background`: a tab made the request by itself, which does
    /// not keep the session alive (SES-7). One look-up by index; a write at most once a minute.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an unknown, ended or idle session.
    pub async fn authenticate_session(&self, token: &str, background: bool) -> Result<SessionPrincipal, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let row =
            store::sessions::by_token(&mut conn, &self.session_digest(token), self.now()).await?.ok_or_else(ended)?;
        self.alive(conn, row, background).await
    }

    /// [`Identity::authenticate_session`] and [`Identity::caller_for_session`] in one look-up.
    ///
    /// # Errors
    /// Theirs, in this order.
    pub async fn authenticate_member(
        &self,
        token: &str,
        background: bool,
        org: Option<OrgId>,
    ) -> Result<(SessionPrincipal, Result<Caller, Problem>), Problem> {
        let mut conn = self.0.db.acquire().await?;
        let row = store::sessions::member_by_token(&mut conn, &self.session_digest(token), org, self.now())
            .await?
            .ok_or_else(ended)?;
        let membership = match (row.org_id, row.org_slug, row.org_role) {
            (Some(id), Some(slug), Some(role)) => {
                let role = Role::try_from(role).map_err(Problem::internal)?;
                let (competences, password_due) = (row.competences, row.session.password_due.clone());
                Some(Held { org: id, org_slug: slug, role, walled: row.walled, password_due, competences })
            }
            _ => None,
        };
        let principal = self.alive(conn, row.session, background).await?;
        let caller = self.admit(&principal, org.or(principal.active_org), membership).await;
        Ok((principal, caller))
    }

    /// Judges a session that was found, and notes its use.
    async fn alive(
        &self,
        mut conn: PoolConnection<Postgres>,
        row: SessionRow,
        background: bool,
    ) -> Result<SessionPrincipal, Problem> {
        let now = self.now();
        if now >= row.expires_at {
            return Err(ended());
        }
        let idle_window = self.idle_window(row.idle_minutes);
        if idle_window.is_some_and(|window| now >= row.last_used_at + window) {
            drop(conn);
            self.end_idle(row.user_id, row.id).await?;
            return Err(ended());
        }
        let mut principal = SessionPrincipal {
            session: row.id,
            user: row.user_id,
            name: row.name,
            email: row.email,
            active_org: row.active_org_id,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
            background,
            idle_window,
            confined: row.confined,
            password_due: Due::read(row.password_due.as_deref()),
        };
        if !background && now >= row.last_used_at + note_every(idle_window) {
            let renewed = (now >= row.renewed_at + RENEW_EVERY).then(|| now + LIFETIME);
            store::sessions::slide(&mut conn, row.id, row.last_used_at, now, renewed).await?;
            principal.last_used_at = now;
        }
        Ok(principal)
    }

    /// How long a session may be idle at most, whatever organizations lay down; `None` = as long as it lives.
    #[must_use]
    pub fn idle_cap(&self) -> Option<Duration> {
        self.0.config.session_idle_timeout
    }

    /// The window of a session: an organization can shorten what the deployment allows, never lengthen it
    /// (SES-4).
    fn idle_window(&self, minutes: Option<i32>) -> Option<Duration> {
        let policy =
            minutes.and_then(|minutes| u64::try_from(minutes).ok()).map(|minutes| Duration::from_secs(minutes * 60));
        self.0.config.session_idle_timeout.into_iter().chain(policy).min()
    }

    /// The caller of a session in `org`, or in the session's active organization. The membership
    /// and the role are read now (ROLE-7).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without a usable membership, also for an organization that does not exist.
    pub async fn caller_for_session(
        &self,
        principal: &SessionPrincipal,
        org: Option<OrgId>,
    ) -> Result<Caller, Problem> {
        let org = org.or(principal.active_org);
        let membership = match org {
            Some(org) => {
                let mut conn = self.0.db.acquire().await?;
                store::organizations::held(&mut conn, org, principal.user, self.now()).await?
            }
            None => None,
        };
        self.admit(principal, org, membership).await
    }

    async fn admit(
        &self,
        principal: &SessionPrincipal,
        org: Option<OrgId>,
        membership: Option<Held>,
    ) -> Result<Caller, Problem> {
        principal.released()?;
        if org.is_none() {
            return Err(Problem::new(Code::OrgForbidden, "No organization is chosen. Name one with `orgId`."));
        }
        let Held { org, org_slug, role, walled, password_due, competences } = membership.ok_or_else(no_membership)?;
        if let Some(due) = Due::read(password_due.as_deref()) {
            return Err(due.refusal());
        }
        if principal.confined && principal.active_org != Some(org) {
            return Err(Problem::new(
                Code::OrgForbidden,
                "You were signed in by another organization, which opens that one only. Log in with your password or a passkey to use this one.",
            ));
        }
        if role == Role::Disabled {
            return Err(Problem::new(
                Code::OrgForbidden,
                "Your access to this organization is disabled. Ask an owner or admin of the organization.",
            ));
        }
        self.check_wall(principal.user, walled).await?;
        if principal.active_org != Some(org) && !principal.background {
            let mut conn = self.0.db.acquire().await?;
            store::sessions::set_active_org(&mut conn, principal.session, org).await?;
            store::accounts::set_last_org(&mut conn, principal.user, org).await?;
        }
        let competences = Competences::named(competences.iter().flatten().map(String::as_str));
        let via = Via::Session(principal.session);
        Ok(Caller { org, org_slug, user: Some(principal.user), role, competences, via })
    }

    /// The person as the caller of what they asked for earlier, with today's role; `None` when they are
    /// no usable member any more. The membership is read now (ROLE-7).
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn caller_for_earlier(&self, org: OrgId, user: UserId) -> Result<Option<Caller>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let membership = store::organizations::membership(&mut conn, org, user).await?;
        Ok(membership.filter(|membership| membership.role != Role::Disabled).map(|membership| Caller {
            org,
            org_slug: membership.slug,
            user: Some(user),
            role: membership.role,
            // Nothing that waits needs one.
            competences: Competences::default(),
            via: Via::Earlier,
        }))
    }

    /// Which of these sessions still have access to their organizations. One question for all live
    /// streams of a process, so that ten thousand of them cost one statement.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn standing(&self, asked: &[(SessionId, OrgId)]) -> Result<HashSet<(SessionId, OrgId)>, Problem> {
        let (sessions, orgs): (Vec<_>, Vec<_>) = asked.iter().copied().unzip();
        let now = self.now();
        let used_after = self.0.config.session_idle_timeout.map(|window| now - window);
        let mut conn = self.0.db.acquire().await?;
        Ok(store::sessions::standing(&mut conn, &sessions, &orgs, now, used_after).await?.into_iter().collect())
    }

    /// Ends the session that asks.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sign_out(&self, principal: &SessionPrincipal) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        if store::sessions::delete(&mut tx, principal.user, principal.session).await? {
            trail::in_every_org(
                &mut tx,
                self.now(),
                principal.user,
                &principal.actor(),
                &Change::account("auth.signed_out").on("user", principal.user),
            )
            .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// The live sessions of the person, last used first.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sessions(&self, principal: &SessionPrincipal) -> Result<Vec<SessionView>, Problem> {
        let now = self.now();
        let used_after = self.0.config.session_idle_timeout.map(|window| now - window);
        let mut conn = self.0.db.acquire().await?;
        let rows = store::sessions::list(&mut conn, principal.user, now, used_after).await?;
        Ok(rows
            .into_iter()
            .map(|row| SessionView {
                current: row.id == principal.session,
                id: row.id,
                user_agent: row.user_agent,
                network: row.network,
                created_at: row.created_at,
                last_used_at: row.last_used_at,
            })
            .collect())
    }

    /// Ends one session of the person.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` for a session that is not theirs or not there.
    pub async fn end_session(&self, principal: &SessionPrincipal, id: SessionId) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        if !store::sessions::delete(&mut tx, principal.user, id).await? {
            return Err(Problem::new(Code::SessionNotFound, "This session does not exist any more."));
        }
        trail::in_every_org(
            &mut tx,
            self.now(),
            principal.user,
            &principal.actor(),
            &Change::account("session.ended").on("session", id),
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Ends every session of the person except the one that asks.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn end_other_sessions(&self, principal: &SessionPrincipal) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        let ended = store::sessions::delete_all(&mut tx, principal.user, Some(principal.session)).await?;
        if ended > 0 {
            let change = Change::account("session.others_ended").on("user", principal.user).with("count", ended);
            trail::in_every_org(&mut tx, self.now(), principal.user, &principal.actor(), &change).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Makes a session inside the caller's transaction.
    pub(crate) async fn make_session(
        &self,
        conn: &mut PgConnection,
        person: SignedInPerson<'_>,
        active_org: Option<OrgId>,
        method: Method,
        persistent: bool,
        device: &Device,
    ) -> Result<SignedIn, Problem> {
        let token = random_token(32);
        let now = self.now();
        let password_set = store::sessions::insert(
            conn,
            &store::sessions::NewSession {
                id: SessionId::new(),
                token_hash: &self.session_digest(&token),
                user: person.id,
                active_org,
                method: method.text(),
                trusted_key: method.trusted_key(),
                user_agent: device.user_agent.as_deref(),
                network: &device.client.network(),
                at: now,
                expires_at: now + LIFETIME,
            },
        )
        .await?;
        self.see_device(conn, person.id, device).await?;
        Ok(SignedIn {
            mark: self.mark_for(person.id, password_set, method, device),
            token,
            persistent,
            user: person.id,
            name: person.name.to_owned(),
            email: person.email.to_owned(),
            active_org,
        })
    }

    /// Tells a person of a sign-in from where they never signed in before.
    async fn see_device(&self, conn: &mut PgConnection, user: UserId, device: &Device) -> Result<(), Problem> {
        let (agent, network, at) = (device.user_agent.as_deref(), device.client.network(), self.now());
        if tale_notices::see_device(conn, user, agent, &network, at).await? == Seen::New {
            let details = serde_json::json!({ "device": tale_notices::device_name(agent), "network": network });
            tale_notices::tell(conn, user, &News { org: None, kind: Kind::NewDevice, details, at }).await?;
        }
        Ok(())
    }

    /// Ends an idle session and writes that it did (SES-6), once among simultaneous requests.
    async fn end_idle(&self, user: UserId, session: SessionId) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        if store::sessions::delete(&mut tx, user, session).await? {
            let change = Change::account("session.idle_revoked").on("session", session);
            trail::in_every_org(&mut tx, self.now(), user, &Actor::System, &change).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// How often a use is noted: once a minute, or more often under a short idle window, so that the
/// window stays exact to a twentieth.
pub(crate) fn note_every(idle_window: Option<Duration>) -> Duration {
    idle_window.map_or(NOTE_EVERY, |window| (window / 20).clamp(Duration::from_secs(1), NOTE_EVERY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_noted_at_most_once_a_minute() {
        assert_eq!(note_every(None), Duration::from_secs(60));
        assert_eq!(note_every(Some(Duration::from_secs(60))), Duration::from_secs(3));
        assert_eq!(note_every(Some(Duration::from_secs(1440 * 60))), Duration::from_secs(60));
    }
}
