//! What an organization's policy `two_factor_policy` wants of people without a second factor (MFA-15…18).

use chrono::{DateTime, Utc};
use tale_core::ids::{OrgId, UserId};
use tale_core::{Code, Problem};

use crate::caller::SessionPrincipal;
use crate::service::Identity;
use crate::store;

/// An organization that wants a second factor of somebody who has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanting {
    /// The organization.
    pub org: OrgId,
    /// Until when the person may go without.
    pub until: DateTime<Utc>,
    /// Whether that is over.
    pub over: bool,
}

fn required() -> Problem {
    Problem::new(
        Code::TwoFactorRequired,
        "This organization needs a second factor. Set up an authenticator app or a passkey to go on.",
    )
}

impl Identity {
    /// Refuses a session whose person has no second factor where the policy wants one and the grace is over. `walled`
    /// is what was read with the membership; nothing was: the grace begins now.
    pub(crate) async fn check_wall(&self, user: UserId, walled: Option<bool>) -> Result<(), Problem> {
        match walled {
            Some(false) => Ok(()),
            Some(true) => Err(required()),
            None => {
                let now = self.now();
                let mut conn = self.0.db.acquire().await?;
                let until = store::factors::begin_grace(&mut conn, user, now).await?;
                if until.is_some_and(|until| now >= until) { Err(required()) } else { Ok(()) }
            }
        }
    }

    /// The organizations of the person that want a second factor, which the person does not have. Their grace begins
    /// with it, if it has not.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn factor_wanted(&self, principal: &SessionPrincipal) -> Result<Vec<Wanting>, Problem> {
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let orgs = store::factors::wanting(&mut conn, principal.user).await?;
        if orgs.is_empty() {
            return Ok(Vec::new());
        }
        let until = store::factors::begin_grace(&mut conn, principal.user, now).await?.unwrap_or(now);
        Ok(orgs.into_iter().map(|org| Wanting { org, until, over: now >= until }).collect())
    }
}
