//! Counters of failed sign-ins: listed for an organization's administrators, and cleared by them (LCK-8).

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use tale_core::ids::UserId;
use tale_core::{Code, Problem};

use crate::caller::Caller;
use crate::members::not_a_member;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::store::attempts::{DEVICE, DEVICES, EVERYWHERE};
use crate::trail::{self, Change};

/// Most counters that are listed.
const MAX_BLOCKS: i64 = 200;

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Passwords, at a sign-in or where one is asked for again.
    Password,
    /// Codes of an authenticator app, or backup codes.
    SecondFactor,
}

impl BlockKind {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Password, Self::SecondFactor];

    /// The word of the interface and of the log.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::SecondFactor => "secondFactor",
        }
    }
}

/// A counter of failed sign-ins to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInBlock {
    /// The person.
    pub user: UserId,
    /// The account's address.
    pub email: String,
    /// What was wrong.
    pub kind: BlockKind,
    /// The network the attempts came from, or its keyed hash; none: all networks together, or a known device.
    pub network: Option<String>,
    /// Whether the attempts came from a device that the person signed in on before.
    pub known_device: bool,
    /// Failures since the last success.
    pub failures: u32,
    /// Until when attempts are refused.
    pub blocked_until: Option<DateTime<Utc>>,
    /// The last attempt.
    pub last_at: DateTime<Utc>,
}

impl Identity {
    fn counter_of(&self, kind: BlockKind, user: UserId, email: &str) -> [u8; 32] {
        match kind {
            BlockKind::Password => self.attempt_key(email),
            BlockKind::SecondFactor => self.code_counter(user),
        }
    }

    /// The counters of failed sign-ins to accounts of the caller's organization, 200 at most, the latest first (LCK-8).
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right to read the audit log.
    pub async fn sign_in_blocks(&self, caller: &Caller) -> Result<Vec<SignInBlock>, Problem> {
        caller.require(Capability::AuditRead)?;
        let now = self.now();
        let mut conn = self.0.db.acquire().await?;
        let members = store::members::list(&mut conn, caller.org).await?;
        let mut counters = HashMap::with_capacity(members.len() * BlockKind::ALL.len());
        for member in &members {
            for kind in BlockKind::ALL {
                let key = self.counter_of(kind, member.user_id, &member.email).to_vec();
                counters.insert(key, (kind, member));
            }
        }
        let keys: Vec<Vec<u8>> = counters.keys().cloned().collect();
        let rows = store::attempts::of_keys(&mut conn, &keys, MAX_BLOCKS).await?;
        let block = |(key, network, failures, blocked_until, last_at): store::attempts::Row| {
            let (kind, member) = counters.get(&key)?;
            let blocked_until = blocked_until.filter(|until| *until > now);
            // What all known devices have together says nothing new before it blocks.
            if network == DEVICES && blocked_until.is_none() {
                return None;
            }
            Some(SignInBlock {
                user: member.user_id,
                email: member.email.clone(),
                kind: *kind,
                known_device: network.starts_with(DEVICE),
                network: (network != EVERYWHERE && !network.starts_with(DEVICE)).then_some(network),
                failures: failures.unsigned_abs(),
                blocked_until,
                last_at,
            })
        };
        Ok(rows.into_iter().filter_map(block).collect())
    }

    /// Forgets a member's failures of one kind, so that a block of theirs ends now. Nobody does it for themselves, which
    /// would be guessing without end in a session that was left open, nor for somebody whom another organization
    /// relies on to be slowed down.
    ///
    /// # Errors
    /// `ORG_FORBIDDEN` without the right, `FORBIDDEN` for oneself and for an owner unless the caller is one,
    /// `MEMBER_ACCOUNT_SHARED`, `MEMBER_NOT_FOUND`.
    pub async fn clear_sign_in_blocks(&self, caller: &Caller, user: UserId, kind: BlockKind) -> Result<(), Problem> {
        caller.require(Capability::MembersManage)?;
        let mut tx = self.begin().await?;
        self.relock(&mut tx, caller, Capability::MembersManage).await?;
        let role = self.role_now(&mut tx, caller).await?;
        let target = store::members::get(&mut tx, caller.org, user).await?.ok_or_else(not_a_member)?;
        if caller.user == Some(user) {
            return Err(Problem::new(Code::Forbidden, "Another owner or admin clears your failed sign-ins."));
        }
        if target.role == Role::Owner && role != Role::Owner {
            return Err(Problem::new(Code::Forbidden, "Only an owner clears the failed sign-ins of an owner."));
        }
        if store::members::elsewhere(&mut tx, caller.org, user).await? {
            return Err(Problem::new(
                Code::MemberAccountShared,
                "This person belongs to another organization too, so nobody clears their failed sign-ins. The block ends by itself.",
            ));
        }
        let failures = store::attempts::forget(&mut tx, &self.counter_of(kind, user, &target.email)).await?;
        if failures > 0 {
            let change = Change::lockout("auth.block_cleared")
                .on("user", user)
                .named(&target.email)
                .with("kind", kind.text())
                .with("failures", failures);
            trail::record(&mut tx, self.now(), caller.org, &caller.actor(), &change).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
