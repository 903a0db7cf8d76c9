//! Second factors: authenticator apps with backup codes, passkeys, and what policies want of them.

mod authenticator;
mod cbor;
mod labels;
mod passkeys;
mod pending;
mod proof;
mod reset;
pub mod rotation;
mod totp;
mod wall;
mod webauthn;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{PasskeyId, UserId};
use tale_core::{Code, Problem};

pub use authenticator::{BackupCodes, TotpSetup};
pub use labels::FactorLabels;
pub use passkeys::{KnownCredential, NewPasskey, PasskeyAnswer, PasskeyQuestion, Registration};
pub use pending::{Methods, Waiting};
pub use proof::PROOF_TIME;
pub use reset::MemberFactors;
pub use wall::Wanting;
pub use webauthn::RelyingParty;

use crate::caller::SessionPrincipal;
use crate::service::{Device, Identity};
use crate::store;
use crate::store::accounts::AccountRow;

/// The factors of a person, as they see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factors {
    /// Whether an authenticator app is on.
    pub totp: bool,
    /// How many backup codes are left.
    pub backup_codes_left: u32,
    /// The passkeys, the oldest first.
    pub passkeys: Vec<Passkey>,
    /// Whether the account has a password, which an authenticator app needs.
    pub has_password: bool,
    /// Whether adding a passkey asks for the password, because this session is not fresh (SES-5).
    pub password_needed: bool,
    /// Whether removing a passkey asks the person to show first that it is them.
    pub proof_needed: bool,
}

/// A passkey as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    /// The passkey.
    pub id: PasskeyId,
    /// What its owner calls it.
    pub name: String,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When somebody signed in with it last.
    pub last_used_at: Option<DateTime<Utc>>,
}

impl From<store::passkeys::ListedRow> for Passkey {
    fn from(row: store::passkeys::ListedRow) -> Self {
        Self { id: row.id, name: row.name, created_at: row.created_at, last_used_at: row.last_used_at }
    }
}

impl Identity {
    /// The person's own factors.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn factors(&self, principal: &SessionPrincipal) -> Result<Factors, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let account = account_of(&mut conn, principal.user).await?;
        let (totp, _) = store::factors::held(&mut conn, principal.user).await?;
        let left = store::factors::codes_left(&mut conn, principal.user).await?;
        let passkeys = store::passkeys::list(&mut conn, principal.user).await?;
        Ok(Factors {
            totp,
            backup_codes_left: u32::try_from(left).unwrap_or(0),
            passkeys: passkeys.into_iter().map(Passkey::from).collect(),
            has_password: account.password_hash.is_some(),
            password_needed: !self.is_fresh(&mut conn, principal).await?,
            proof_needed: !self.is_proved(&mut conn, principal).await?,
        })
    }

    /// The names of authenticator entries and files.
    #[must_use]
    pub fn factor_labels(&self) -> &FactorLabels {
        &self.0.config.factor_labels
    }

    /// Begins a transaction in which the person's password has been confirmed (LCK-5).
    async fn confirmed(
        &self,
        principal: &SessionPrincipal,
        password: &str,
        device: &Device,
    ) -> Result<(sqlx::PgTransaction<'static>, AccountRow), Problem> {
        let account = {
            let mut conn = self.0.db.acquire().await?;
            account_of(&mut conn, principal.user).await?
        };
        if account.password_hash.is_none() {
            return Err(Problem::new(
                Code::PasswordNotSet,
                "This account has no password, which this needs. Use a passkey instead.",
            ));
        }
        let attempt = self.confirm_password(&account, password, device).await?;
        let mut tx = self.begin().await?;
        self.settle_confirmation(&mut tx, &account, &attempt).await?;
        Ok((tx, account))
    }

    /// The counter of wrong codes of a person: one of its own, beside that of wrong passwords (LCK-5).
    pub(crate) fn code_counter(&self, user: UserId) -> [u8; 32] {
        self.attempt_key(&format!("second factor of {user}"))
    }
}

async fn account_of(conn: &mut PgConnection, user: UserId) -> Result<AccountRow, Problem> {
    store::accounts::by_id(conn, user)
        .await?
        .ok_or_else(|| Problem::new(Code::Unauthorized, "This account does not exist any more."))
}
