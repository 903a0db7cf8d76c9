//! Who is calling, in which organization and with which role: the only source of an organization
//! and of rights for everything above this room.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tale_core::ids::{ApiKeyId, OrgId, SessionId, TeamId, UserId};
use tale_core::{Actor, Problem};
use tale_governance::policies::Person;

use crate::competences::{self, Competences};
use crate::keys::KeyKind;
use crate::password::Due;
use crate::permissions::{Capability, Role};

/// How the caller proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// A browser session.
    Session(SessionId),
    /// An API key.
    ApiKey {
        /// The key.
        id: ApiKeyId,
        /// Its name, as its maker wrote it.
        name: String,
        /// When it ends; `None` is never.
        expires_at: Option<DateTime<Utc>>,
        /// To whom it belongs.
        kind: KeyKind,
        /// Who made it, while they have an account.
        maker: Option<UserId>,
        /// The team it belongs to.
        team: Option<TeamId>,
    },
    /// Nothing now: what the person asked for earlier is carried out, with the rights they have today.
    Earlier,
}

/// An authenticated caller inside one organization. The membership and the role were read for
/// this request (ROLE-7), and the role is never [`Role::Disabled`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The organization the call acts in.
    pub org: OrgId,
    /// Its slug.
    pub org_slug: String,
    /// The person, when the credential belongs to one.
    pub user: Option<UserId>,
    /// The role at the time of this request.
    pub role: Role,
    /// What the person holds by competence.
    pub competences: Competences,
    /// The credential.
    pub via: Via,
}

impl Caller {
    /// Whether the caller holds `capability`, by role or by competence.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        competences::may(self.role, self.competences, capability)
    }

    /// What the caller may do, in the order of the matrix: acts that have a door.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        Capability::ALL.iter().copied().filter(|one| one.door().is_some() && self.can(*one)).collect()
    }

    /// Refuses callers who do not hold `capability`. Runs before the body is read (ERR-4).
    ///
    /// # Errors
    /// The 403 of the capability's area (ROLE-5).
    pub fn require(&self, capability: Capability) -> Result<(), Problem> {
        if self.can(capability) { Ok(()) } else { Err(capability.refusal(self.role, self.by_key())) }
    }

    /// Like [`Caller::require`] for what of `capability` is reading.
    ///
    /// # Errors
    /// As there.
    pub fn require_read(&self, capability: Capability) -> Result<(), Problem> {
        if self.role.can_read(capability) { Ok(()) } else { Err(capability.refusal(self.role, self.by_key())) }
    }

    /// The API key that the call came in with, if it did.
    #[must_use]
    pub fn api_key(&self) -> Option<ApiKeyId> {
        match &self.via {
            Via::ApiKey { id, .. } => Some(*id),
            Via::Session(_) | Via::Earlier => None,
        }
    }

    /// Whether the call came in with an API key.
    #[must_use]
    pub fn by_key(&self) -> bool {
        matches!(self.via, Via::ApiKey { .. })
    }

    /// Who asks, for policies that differ by person and role.
    #[must_use]
    pub fn person(&self) -> Person {
        let team = match self.via {
            Via::ApiKey { team, .. } => team,
            Via::Session(_) | Via::Earlier => None,
        };
        Person { user: self.user, role: self.role.text(), team }
    }

    /// The author of what this call changes; of a key its maker (KEY-11).
    #[must_use]
    pub fn actor(&self) -> Actor {
        match (&self.via, self.user) {
            (Via::ApiKey { id, maker, .. }, subject) => Actor::Api { key: *id, user: *maker, subject },
            (Via::Session(_) | Via::Earlier, Some(id)) => Actor::User { id },
            (Via::Session(_) | Via::Earlier, None) => Actor::System,
        }
    }
}

/// A live browser session and the person it belongs to, before an organization is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPrincipal {
    /// The session.
    pub session: SessionId,
    /// The person.
    pub user: UserId,
    /// The person's display name.
    pub name: String,
    /// The person's address, lower-case.
    pub email: String,
    /// The organization the session acts in when a call names none.
    pub active_org: Option<OrgId>,
    /// When the session began.
    pub created_at: DateTime<Utc>,
    /// When the session was used last, as far as it was noted.
    pub last_used_at: DateTime<Utc>,
    /// When the session ends if it is not used again.
    pub expires_at: DateTime<Utc>,
    /// Whether a tab made this request by itself (SES-7).
    pub background: bool,
    /// How long the session may be idle: the shortest of what the deployment and the person's organizations
    /// allow; `None` = as long as it lives.
    pub idle_window: Option<Duration>,
    /// Whether the session acts in `active_org` only: the key of a reverse proxy opened it, which vouches
    /// for people in its own organization and nowhere else.
    pub confined: bool,
    /// Why the person has to choose another password before anything else, when they have to. A session that was read
    /// from a copy says so as late as the copy lives.
    pub password_due: Option<Due>,
}

impl SessionPrincipal {
    /// Refuses a person who has to choose another password first (PWD-7).
    ///
    /// # Errors
    /// `PASSWORD_CHANGE_REQUIRED`.
    pub fn released(&self) -> Result<(), Problem> {
        self.password_due.map_or(Ok(()), |due| Err(due.refusal()))
    }

    /// The author of what this person changes outside any organization.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::User { id: self.user }
    }
}
