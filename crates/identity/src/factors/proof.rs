//! Proof that whoever uses a session is its person, asked for anew before what guards an account changes: a session that
//! somebody else got hold of must not be enough to take the guards away (ASVS 3.7.1).

use std::time::Duration;

use sqlx::{PgConnection, PgTransaction};
use tale_core::{Code, Problem};

use super::passkeys::Purpose;
use super::{KnownCredential, PasskeyAnswer, PasskeyQuestion};
use crate::caller::SessionPrincipal;
use crate::service::{Device, Identity};
use crate::store;
use crate::trail::{self, Change};

/// How long a proof counts, and a sign-in as one.
pub const PROOF_TIME: Duration = Duration::from_secs(15 * 60);

fn unproved() -> Problem {
    Problem::new(
        Code::SessionNotFresh,
        "Show once more that it is you: with your password, a code of your authenticator app or a passkey, or by logging in again.",
    )
}

impl Identity {
    /// Notes that the person typed their password.
    ///
    /// # Errors
    /// `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`, `PASSWORD_NOT_SET`, `BUSY`.
    pub async fn prove_with_password(
        &self,
        principal: &SessionPrincipal,
        password: &str,
        device: &Device,
    ) -> Result<(), Problem> {
        let (tx, _) = self.confirmed(principal, password, device).await?;
        self.note_proof(tx, principal, "password").await
    }

    /// Notes that the person typed a code of their authenticator app, which is used up.
    ///
    /// # Errors
    /// `TWO_FACTOR_CODE_INVALID`, also without an app; `SIGN_IN_LOCKED`.
    pub async fn prove_with_totp(
        &self,
        principal: &SessionPrincipal,
        code: &str,
        device: &Device,
    ) -> Result<(), Problem> {
        let attempt = self.charge_code(principal.user, device).await?;
        let mut tx = self.begin().await?;
        if !self.spend_step(&mut tx, principal.user, code).await? {
            drop(tx);
            return Err(self.wrong_factor(principal.user, &attempt, "2fa_verify_failed", device).await?);
        }
        self.clear_attempt(&mut tx, &attempt).await?;
        self.note_proof(tx, principal, "totp").await
    }

    /// The question for a passkey of the person.
    ///
    /// # Errors
    /// `PASSKEY_UNAVAILABLE`.
    pub async fn begin_proof(&self, principal: &SessionPrincipal) -> Result<PasskeyQuestion, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let known = store::passkeys::list(&mut conn, principal.user).await?;
        let allow = known.into_iter().map(KnownCredential::from).collect();
        self.question(Purpose::Prove, principal.session.0.as_bytes(), allow)
    }

    /// Notes that the person used a passkey of theirs.
    ///
    /// # Errors
    /// `PASSKEY_REFUSED`, `PASSKEY_UNAVAILABLE`.
    pub async fn prove_with_passkey(
        &self,
        principal: &SessionPrincipal,
        answer: &PasskeyAnswer,
        device: &Device,
    ) -> Result<(), Problem> {
        let subject = principal.session.0.as_bytes();
        let (key, answered, sign_count) =
            self.judge(Purpose::Prove, subject, answer, Some(principal.user), device).await?;
        let tx = self.spend(&key, &answered, sign_count, device).await?;
        self.note_proof(tx, principal, "passkey").await
    }

    /// Whether the person showed lately that it is them, by a proof or by signing in. Somebody who was vouched for by
    /// another (a reverse proxy, the provider of one of several organizations) showed nothing when the session began.
    pub(crate) async fn is_proved(
        &self,
        conn: &mut PgConnection,
        principal: &SessionPrincipal,
    ) -> Result<bool, Problem> {
        let since = self.now() - PROOF_TIME;
        if !principal.confined && principal.created_at > since {
            return Ok(true);
        }
        Ok(store::sessions::proved_at(conn, principal.session).await?.is_some_and(|at| at > since))
    }

    /// Refuses what guards the account to whoever did not show lately that they are its person.
    ///
    /// # Errors
    /// `SESSION_NOT_FRESH`.
    pub(crate) async fn require_proof(
        &self,
        conn: &mut PgConnection,
        principal: &SessionPrincipal,
    ) -> Result<(), Problem> {
        if self.is_proved(conn, principal).await? { Ok(()) } else { Err(unproved()) }
    }

    async fn note_proof(
        &self,
        mut tx: PgTransaction<'static>,
        principal: &SessionPrincipal,
        method: &'static str,
    ) -> Result<(), Problem> {
        let now = self.now();
        store::sessions::set_proved(&mut tx, principal.session, now).await?;
        let change = Change::account("auth.proved").on("session", principal.session).with("method", method);
        trail::in_every_org(&mut tx, now, principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(())
    }
}
