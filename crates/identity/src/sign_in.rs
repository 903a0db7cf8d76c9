//! Sign-in with a password (SIN-1…8), slowed down for guessers (LCK-2…8).

use sqlx::PgConnection;
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};

use crate::factors::Waiting;
use crate::fields::normalize_email;
use crate::lockout::{Charge, LoginPolicy, locked, remaining};
use crate::password::{InLine, MAX_BYTES, Verdict};
use crate::permissions::Role;
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn};
use crate::store;
use crate::store::accounts::AccountRow;
use crate::trail::{self, Change};

/// What the sign-in form sends.
#[derive(Clone)]
pub struct Credentials {
    /// The address as typed.
    pub email: String,
    /// The password as typed.
    pub password: String,
    /// Whether the cookie outlives the browser.
    pub remember: bool,
}

/// The one answer to a wrong password, an unknown address and an account without password (SIN-2).
fn wrong() -> Problem {
    Problem::new(Code::InvalidCredentials, "Wrong email or password.")
}

fn wrong_current() -> Problem {
    Problem::new(Code::InvalidCredentials, "The current password is wrong.")
}

/// A charged attempt at a password or a code.
pub(crate) struct Attempt {
    pub(crate) key: [u8; 32],
    pub(crate) network: String,
    /// Whether its failure starts a block.
    pub(crate) blocks: bool,
}

/// What a right password leads to.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A session.
    SignedIn(SignedIn),
    /// The person has a second factor, which is asked for next.
    SecondFactor(Waiting),
}

impl Identity {
    /// Signs a person in, or asks for their second factor.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`; `SIGN_IN_LOCKED` during a block, before the password is looked at;
    /// `BUSY` when too many people sign in at once.
    pub async fn sign_in(&self, credentials: &Credentials, device: &Device) -> Result<Entry, Problem> {
        let place = self.0.hasher.line_up()?;
        let email = normalize_email(&credentials.email);
        let (account, device) = {
            let mut conn = self.0.db.acquire().await?;
            let account = store::accounts::by_email(&mut conn, &email).await?;
            (account, &self.placed(&mut conn, &email, device).await?)
        };
        let stored = account.as_ref().and_then(|account| account.password_hash.as_deref());
        let (attempt, verdict) = self.attempt(place, &email, &credentials.password, account.as_ref(), device).await?;
        let (Some(account), Verdict::Right { rehash }) = (&account, verdict) else {
            self.note_failure(account.as_ref().map(|account| account.id), &email, device, &attempt).await?;
            return Err(wrong());
        };
        let mut tx = self.begin().await?;
        // The password may have been changed while the old one was being checked.
        if store::accounts::locked_hash(&mut tx, account.id).await?.as_deref() != stored {
            return Err(wrong());
        }
        store::attempts::clear(&mut tx, &attempt.key, &attempt.network).await?;
        if let Some(stronger) = rehash {
            store::accounts::set_rehash(&mut tx, account.id, &stronger).await?;
        }
        if let (false, false) = store::factors::held(&mut tx, account.id).await? {
            let entered = self.enter(tx, account.id, Method::Password, credentials.remember, device).await?;
            return Ok(Entry::SignedIn(entered));
        }
        let waiting = self.wait_for_factor(&mut tx, account.id, credentials.remember).await?;
        tx.commit().await?;
        Ok(Entry::SecondFactor(waiting))
    }

    /// Checks one password under the lockout rule: refused during a block, else charged as failed
    /// before it is looked at. The caller clears the charge after success.
    pub(crate) async fn attempt(
        &self,
        place: InLine,
        email: &str,
        password: &str,
        account: Option<&AccountRow>,
        device: &Device,
    ) -> Result<(Attempt, Verdict), Problem> {
        let key = self.attempt_key(email);
        let network = self.counted_under(account, device);
        let stored = account.and_then(|account| account.password_hash.as_deref());
        let policy = {
            let mut conn = self.0.db.acquire().await?;
            let now = self.now();
            if let Some(wait) = remaining(store::attempts::blocked_until(&mut conn, &key, &network, now).await?, now) {
                return Err(locked(wait));
            }
            self.login_rules(&mut conn, email).await?
        };
        // A turn at the hash pool comes first, so that nobody is charged for a busy server.
        let turn = place.turn().await?;
        let blocks = self.charge(&policy, &key, &network).await?;
        // More bytes than a password may have cannot match, and must not cost more.
        let candidate = if password.len() > MAX_BYTES { ("", None) } else { (password, stored) };
        let verdict = self.0.hasher.verify(turn, candidate.0, candidate.1).await?;
        Ok((Attempt { key, network, blocks }, verdict))
    }

    /// Charges the counters of `network`; returns whether this failure starts a block.
    pub(crate) async fn charge(&self, policy: &LoginPolicy, key: &[u8; 32], network: &str) -> Result<bool, Problem> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let mut blocks = false;
        for network in store::attempts::counters(network) {
            let policy = if store::attempts::is_of_all(network) { &policy.account_wide() } else { policy };
            match store::attempts::charge(&mut tx, key, network, policy, now).await? {
                Charge::Refused { wait } => return Err(locked(wait)), // rolls the first charge back
                Charge::Admitted { blocked } => blocks |= blocked.is_some(),
            }
        }
        tx.commit().await?;
        Ok(blocks)
    }

    /// Asks a signed-in person for their password once more (LCK-5). [`Identity::settle_confirmation`] follows in the
    /// transaction of what it is asked for.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `BUSY`.
    pub(crate) async fn confirm_password(
        &self,
        account: &AccountRow,
        password: &str,
        device: &Device,
    ) -> Result<Attempt, Problem> {
        let place = self.0.hasher.line_up()?;
        let (attempt, verdict) = self.attempt(place, &account.email, password, Some(account), device).await?;
        if verdict == Verdict::Wrong {
            self.note_failure(Some(account.id), &account.email, device, &attempt).await?;
            return Err(wrong_current());
        }
        Ok(attempt)
    }

    /// Drops the charge of a confirmation, unless the password was changed meanwhile. Locks the account.
    pub(crate) async fn settle_confirmation(
        &self,
        conn: &mut PgConnection,
        account: &AccountRow,
        attempt: &Attempt,
    ) -> Result<(), Problem> {
        if store::accounts::locked_hash(conn, account.id).await? != account.password_hash {
            return Err(wrong_current());
        }
        self.clear_attempt(conn, attempt).await
    }

    /// Drops the charge of an attempt that was right.
    pub(crate) async fn clear_attempt(&self, conn: &mut PgConnection, attempt: &Attempt) -> Result<(), Problem> {
        Ok(store::attempts::clear(conn, &attempt.key, &attempt.network).await?)
    }

    /// Writes a failed sign-in into the log of every organization of the account. A failure for an
    /// address without account stays in the counters (SIN-7).
    pub(crate) async fn note_failure(
        &self,
        user: Option<UserId>,
        email: &str,
        device: &Device,
        attempt: &Attempt,
    ) -> Result<(), Problem> {
        let Some(user) = user else { return Ok(()) };
        let now = self.now();
        let claimed = self.claimed(Some(email), device);
        let mut tx = self.begin().await?;
        let failed = Change::account("auth.sign_in_failed").on("user", user).failed(claimed.clone());
        trail::in_every_org(&mut tx, now, user, &Actor::System, &failed).await?;
        if attempt.blocks {
            trail::locked_out(&mut tx, now, user, claimed).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// The organization used last, else the first usable one, else the first one at all, whose
/// access-denied screen says why nothing can be done (SIN-4, SIN-9).
pub(crate) async fn landing_org(
    conn: &mut PgConnection,
    user: UserId,
    last: Option<OrgId>,
) -> Result<Option<OrgId>, Problem> {
    let orgs = store::organizations::of_user(conn, user).await?;
    let usable = |org: &&store::organizations::OrgOfUser| org.role != Role::Disabled;
    let landing = orgs
        .iter()
        .filter(usable)
        .find(|org| Some(org.id) == last)
        .or_else(|| orgs.iter().find(usable))
        .or_else(|| orgs.first());
    Ok(landing.map(|org| org.id))
}
