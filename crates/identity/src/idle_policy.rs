//! How long an organization lets sessions of its members be idle (SES-4). It can shorten what the
//! deployment allows (`SESSION_IDLE_TIMEOUT_MINUTES`), never lengthen it, and it counts for the whole
//! session: a person of several organizations has the shortest of their windows.

use std::time::Duration;

use tale_core::Problem;
use tale_db::hints::Topic;

use crate::caller::Caller;
use crate::permissions::Capability;
use crate::service::Identity;
use crate::store;
use crate::trail::{self, Change};

/// Longest window that can be set, in minutes: a day.
const MAX_MINUTES: u16 = 1_440;

/// What holds for the sessions of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdlePolicy {
    /// The organization's own window, in minutes; `None` = it sets none.
    pub minutes: Option<u16>,
    /// What the deployment allows at most.
    pub deployment: Option<Duration>,
}

impl Identity {
    /// The policy of the caller's organization.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right.
    pub async fn idle_policy(&self, caller: &Caller) -> Result<IdlePolicy, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut conn = self.0.db.acquire().await?;
        let minutes = store::organizations::idle_minutes(&mut conn, caller.org).await?;
        Ok(IdlePolicy {
            minutes: minutes.and_then(|minutes| u16::try_from(minutes).ok()),
            deployment: self.0.config.session_idle_timeout,
        })
    }

    /// Sets the window of the caller's organization, or takes it away. It counts from the next request of
    /// every member, for sessions that are there already too.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `INVALID_BODY` outside 1 to 1440.
    pub async fn set_idle_policy(&self, caller: &Caller, minutes: Option<u16>) -> Result<(), Problem> {
        caller.require(Capability::OrganizationManage)?;
        if minutes.is_some_and(|minutes| !(1..=MAX_MINUTES).contains(&minutes)) {
            return Err(Problem::invalid_field("idleTimeoutMinutes", "must be a whole number from 1 to 1440"));
        }
        let minutes = minutes.map(i32::from);
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let before = store::organizations::idle_minutes(&mut tx, caller.org).await?;
        if before == minutes {
            return Ok(());
        }
        store::organizations::set_idle_minutes(&mut tx, caller.org, minutes).await?;
        let change = Change::organization("governance_policy.updated").on("policy", "session_idle_timeout").changed(
            "idleTimeoutMinutes",
            before,
            minutes,
        );
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        trail::hint(&mut tx, caller.org, Topic::Organization, None).await?;
        tx.commit().await?;
        Ok(())
    }
}
