//! What owners and admins do about the factors of their members (MFA-8, PSK-6).

use serde_json::{Value, json};
use sqlx::PgTransaction;
use tale_core::ids::{PasskeyId, UserId};
use tale_core::{Code, Problem};
use tale_db::hints::Topic;
use tale_notices::{Kind, News};

use super::Passkey;
use super::passkeys::no_passkey;
use crate::caller::Caller;
use crate::members::not_a_member;
use crate::permissions::{Capability, Role};
use crate::service::Identity;
use crate::store;
use crate::store::members::MemberRow;
use crate::trail::{self, Change};

/// A member's factors, as owners and admins see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFactors {
    /// Whether an authenticator app is on.
    pub totp: bool,
    /// How many backup codes are left.
    pub backup_codes_left: u32,
    /// The passkeys, the oldest first.
    pub passkeys: Vec<Passkey>,
}

/// Refuses callers who may not reset factors. For doors, before they look at anything else.
///
/// # Errors
/// `FORBIDDEN`.
pub(crate) fn may_reset(role: Role) -> Result<(), Problem> {
    if role.can(Capability::MembersManage) {
        return Ok(());
    }
    Err(Problem::new(Code::Forbidden, "Only owners and admins reset the factors of members (`members.manage`)."))
}

impl Identity {
    /// The factors of a member.
    ///
    /// # Errors
    /// `FORBIDDEN`, `MEMBER_NOT_FOUND`.
    pub async fn member_factors(&self, caller: &Caller, user: UserId) -> Result<MemberFactors, Problem> {
        may_reset(caller.role)?;
        let mut conn = self.0.db.acquire().await?;
        store::members::get(&mut conn, caller.org, user).await?.ok_or_else(not_a_member)?;
        let (totp, _) = store::factors::held(&mut conn, user).await?;
        let left = store::factors::codes_left(&mut conn, user).await?;
        let passkeys = store::passkeys::list(&mut conn, user).await?;
        Ok(MemberFactors {
            totp,
            backup_codes_left: u32::try_from(left).unwrap_or(0),
            passkeys: passkeys.into_iter().map(Passkey::from).collect(),
        })
    }

    /// Takes a member's authenticator app and backup codes away and ends all their sessions.
    ///
    /// # Errors
    /// `FORBIDDEN` without the right and for an owner unless the caller is one, `MEMBER_ACCOUNT_SHARED`,
    /// `MEMBER_NOT_FOUND`, `TOTP_NOT_ENABLED`.
    pub async fn reset_member_totp(&self, caller: &Caller, user: UserId) -> Result<(), Problem> {
        let (mut tx, target) = self.resetting(caller, user).await?;
        if !store::factors::delete_totp(&mut tx, user).await? {
            return Err(Problem::new(Code::TotpNotEnabled, "This person has no authenticator app."));
        }
        let change = Change::members("2fa_reset_by_admin").on("member", user).named(&target.email);
        self.settle_reset(tx, caller, user, &change, json!({ "method": "totp" })).await
    }

    /// Takes a passkey of a member away and ends all their sessions.
    ///
    /// # Errors
    /// Those of [`Identity::reset_member_totp`], `PASSKEY_NOT_FOUND`.
    pub async fn revoke_member_passkey(&self, caller: &Caller, user: UserId, id: PasskeyId) -> Result<(), Problem> {
        let (mut tx, target) = self.resetting(caller, user).await?;
        let name = store::passkeys::delete(&mut tx, user, id).await?.ok_or_else(no_passkey)?;
        let details = json!({ "method": "passkey", "name": name });
        let change =
            Change::members("passkey.revoked_by_admin").on("member", user).named(&target.email).with("passkey", name);
        self.settle_reset(tx, caller, user, &change, details).await
    }

    async fn resetting(&self, caller: &Caller, user: UserId) -> Result<(PgTransaction<'static>, MemberRow), Problem> {
        may_reset(caller.role)?;
        let mut tx = self.begin().await?;
        store::members::lock(&mut tx, caller.org).await?;
        let role = self.role_now(&mut tx, caller).await?;
        may_reset(role)?;
        let target = store::members::get(&mut tx, caller.org, user).await?.ok_or_else(not_a_member)?;
        if target.role == Role::Owner && role != Role::Owner {
            return Err(Problem::new(Code::Forbidden, "Only an owner resets the factors of an owner."));
        }
        if caller.user != Some(user) && store::members::elsewhere(&mut tx, caller.org, user).await? {
            return Err(Problem::new(
                Code::MemberAccountShared,
                "This person belongs to another organization too, so nobody resets their factors from here. They can remove them in their account, or the other organization removes them as a member first.",
            ));
        }
        Ok((tx, target))
    }

    async fn settle_reset(
        &self,
        mut tx: PgTransaction<'static>,
        caller: &Caller,
        user: UserId,
        change: &Change,
        details: Value,
    ) -> Result<(), Problem> {
        store::factors::end_all_pending(&mut tx, user).await?;
        store::sessions::delete_all(&mut tx, user, None).await?;
        trail::record(&mut tx, self.now(), caller.org, &caller.actor(), change).await?;
        let news = News { org: None, kind: Kind::FactorReset, details, at: self.now() };
        tale_notices::tell(&mut tx, user, &news).await?;
        trail::hint(&mut tx, caller.org, Topic::Members, None).await?;
        tx.commit().await?;
        Ok(())
    }
}
