//! A sign-in whose password was right and whose second factor is open. It is a state of its own with a cookie of its
//! own, lives for ten minutes, and grants nothing but attempts at the second factor (SIN-1).

use std::time::Duration;

use sqlx::{PgConnection, PgTransaction};
use tale_core::crypto::{random_token, sha256};
use tale_core::ids::UserId;
use tale_core::{Actor, Code, Problem};
use tale_notices::Kind;
use uuid::Uuid;

use super::authenticator::{code_hash, plain, wrong_code};
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn, SignedInPerson};
use crate::sign_in::{Attempt, landing_org};
use crate::store;
use crate::store::factors::PendingRow;
use crate::trail::{self, Change};

/// How long a sign-in waits for its second factor.
pub(crate) const WAIT: Duration = Duration::from_secs(10 * 60);

/// What a sign-in that waits hands to the browser.
#[derive(Clone)]
pub struct Waiting {
    /// The cookie's value. Kept nowhere.
    pub token: String,
    /// How long it counts.
    pub lasts: Duration,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

/// By what a sign-in that waits can be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods {
    /// A code of an authenticator app.
    pub totp: bool,
    /// A backup code.
    pub backup_code: bool,
    /// A passkey.
    pub passkey: bool,
}

fn not_waiting() -> Problem {
    Problem::new(
        Code::TwoFactorNotPending,
        "This sign-in is over or took longer than 10 minutes. Begin again with your password.",
    )
}

impl Identity {
    /// Lets a sign-in wait whose password was right.
    pub(crate) async fn wait_for_factor(
        &self,
        tx: &mut PgTransaction<'static>,
        user: UserId,
        persistent: bool,
    ) -> Result<Waiting, Problem> {
        let (token, now) = (random_token(32), self.now());
        let row = PendingRow { id: Uuid::now_v7(), user_id: user, persistent };
        store::factors::insert_pending(tx, &row, &sha256(token.as_bytes()), now, now + WAIT).await?;
        Ok(Waiting { token, lasts: WAIT })
    }

    /// The sign-in that waits under `token`.
    pub(super) async fn waiting(&self, token: &str) -> Result<PendingRow, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let row = store::factors::pending(&mut conn, &sha256(token.as_bytes()), self.now()).await?;
        row.ok_or_else(not_waiting)
    }

    /// How the sign-in that waits under `token` can be finished.
    ///
    /// # Errors
    /// `TWO_FACTOR_NOT_PENDING`.
    pub async fn second_factor_methods(&self, token: &str) -> Result<Methods, Problem> {
        let pending = self.waiting(token).await?;
        let mut conn = self.0.db.acquire().await?;
        let (totp, passkey) = store::factors::held(&mut conn, pending.user_id).await?;
        let left = store::factors::codes_left(&mut conn, pending.user_id).await?;
        Ok(Methods { totp, backup_code: left > 0, passkey })
    }

    /// Finishes a sign-in with a code of the person's authenticator app.
    ///
    /// # Errors
    /// `TWO_FACTOR_NOT_PENDING`, `SIGN_IN_LOCKED`, `TWO_FACTOR_CODE_INVALID`.
    pub async fn finish_with_totp(&self, token: &str, code: &str, device: &Device) -> Result<SignedIn, Problem> {
        let pending = self.waiting(token).await?;
        let attempt = self.charge_code(pending.user_id, device).await?;
        let mut tx = self.begin().await?;
        if !self.spend_step(&mut tx, pending.user_id, code).await? {
            drop(tx);
            return Err(self.wrong_factor(pending.user_id, &attempt, "2fa_verify_failed", device).await?);
        }
        self.clear_attempt(&mut tx, &attempt).await?;
        let verified = Change::account("2fa_verified").on("user", pending.user_id).with("method", "totp");
        self.finish(tx, &pending, &verified, device).await
    }

    /// Finishes a sign-in with a backup code, which is used up.
    ///
    /// # Errors
    /// `TWO_FACTOR_NOT_PENDING`, `SIGN_IN_LOCKED`, `TWO_FACTOR_CODE_INVALID`.
    pub async fn finish_with_backup_code(&self, token: &str, code: &str, device: &Device) -> Result<SignedIn, Problem> {
        let pending = self.waiting(token).await?;
        let attempt = self.charge_code(pending.user_id, device).await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let row = store::factors::totp(&mut tx, pending.user_id).await?.filter(|row| row.confirmed_at.is_some());
        let right = match &row {
            Some(row) => {
                let secret = self.open_secret(pending.user_id, &row.secret)?;
                store::factors::use_code(&mut tx, pending.user_id, &code_hash(&secret, &plain(code)), now).await?
            }
            None => false,
        };
        if !right {
            drop(tx);
            return Err(self.wrong_factor(pending.user_id, &attempt, "2fa_backup_code_failed", device).await?);
        }
        self.clear_attempt(&mut tx, &attempt).await?;
        let left = store::factors::codes_left(&mut tx, pending.user_id).await?;
        let used = Change::account("2fa_backup_code_used")
            .on("user", pending.user_id)
            .with("left", left)
            .told(pending.user_id, Kind::BackupCodeUsed);
        self.finish(tx, &pending, &used, device).await
    }

    /// Ends the waiting and makes the session, with an entry about the factor and one about the sign-in.
    pub(super) async fn finish(
        &self,
        mut tx: PgTransaction<'static>,
        pending: &PendingRow,
        verified: &Change,
        device: &Device,
    ) -> Result<SignedIn, Problem> {
        if !store::factors::end_pending(&mut tx, pending.id).await? {
            return Err(not_waiting());
        }
        let actor = Actor::User { id: pending.user_id };
        trail::in_every_org(&mut tx, self.now(), pending.user_id, &actor, verified).await?;
        self.enter(tx, pending.user_id, Method::Password, pending.persistent, device).await
    }

    /// Makes the session of a person who proved everything that is asked of them.
    pub(crate) async fn enter(
        &self,
        mut tx: PgTransaction<'static>,
        user: UserId,
        method: Method,
        persistent: bool,
        device: &Device,
    ) -> Result<SignedIn, Problem> {
        let account = super::account_of(&mut tx, user).await?;
        let org = landing_org(&mut tx, user, account.last_org_id).await?;
        let device = &self.placed(&mut tx, &account.email, device).await?;
        let person = SignedInPerson { id: user, name: &account.name, email: &account.email };
        let signed_in = self.make_session(&mut tx, person, org, method, persistent, device).await?;
        let change = Change::account("auth.signed_in").on("user", user).with("method", method.text());
        trail::in_every_org(&mut tx, self.now(), user, &Actor::User { id: user }, &change).await?;
        tx.commit().await?;
        Ok(signed_in)
    }

    /// Counts an attempt at a code, as failed until it is right.
    pub(super) async fn charge_code(&self, user: UserId, device: &Device) -> Result<Attempt, Problem> {
        let key = self.code_counter(user);
        let (network, policy) = {
            let mut conn = self.0.db.acquire().await?;
            let account = super::account_of(&mut conn, user).await?;
            (self.counted_under(Some(&account), device), self.login_rules(&mut conn, &account.email).await?)
        };
        // A password may be guessed at without end where an organization wants that; six digits may not.
        let open = policy.max_attempts == u32::MAX;
        let policy = if open { &self.0.config.login_policy } else { &policy };
        let blocks = self.charge(policy, &key, &network).await?;
        Ok(Attempt { key, network, blocks })
    }

    /// Uses up a code of the person's authenticator app; `false`: it is wrong, was used before, or there is no app.
    pub(super) async fn spend_step(&self, conn: &mut PgConnection, user: UserId, code: &str) -> Result<bool, Problem> {
        let row = store::factors::totp(conn, user).await?.filter(|row| row.confirmed_at.is_some());
        let step = match &row {
            Some(row) => self.step_now(user, row, code, self.now())?,
            None => None,
        };
        match step {
            // Of simultaneous attempts with one code, one is the first.
            Some(step) => Ok(store::factors::use_step(conn, user, step).await?),
            None => Ok(false),
        }
    }

    /// Writes down that a code was wrong; answers what the person is told.
    pub(super) async fn wrong_factor(
        &self,
        user: UserId,
        attempt: &Attempt,
        action: &'static str,
        device: &Device,
    ) -> Result<Problem, Problem> {
        let mut tx = self.begin().await?;
        let account = super::account_of(&mut tx, user).await?;
        let claimed = self.claimed(Some(&account.email), device);
        let failed = Change::account(action).on("user", account.id).failed(claimed.clone());
        trail::in_every_org(&mut tx, self.now(), account.id, &Actor::System, &failed).await?;
        if attempt.blocks {
            trail::locked_out(&mut tx, self.now(), account.id, claimed).await?;
        }
        tx.commit().await?;
        Ok(wrong_code())
    }
}
