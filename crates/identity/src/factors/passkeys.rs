//! Passkeys: added to an account, used to sign in alone or as a second factor, renamed, removed (PSK-1…7).
//!
//! A challenge is not stored when it is made: it carries its purpose, its end and a signature of ours. What was
//! answered is stored until then, so that no challenge counts twice.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use sqlx::PgConnection;
use tale_core::crypto::{constant_time_eq, hmac_sha256, sha256};
use tale_core::ids::{PasskeyId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_notices::Kind;

use super::webauthn::{Ceremony, Flaw, MAX_CREDENTIAL_ID};
use super::{Passkey, RelyingParty, account_of};
use crate::caller::SessionPrincipal;
use crate::fields;
use crate::service::{Device, Identity};
use crate::sessions::{Method, SignedIn};
use crate::store;
use crate::store::passkeys::KeyRow;
use crate::trail::{self, Change};

/// How long a question to an authenticator counts.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(5 * 60);
/// How long a session is fresh after its sign-in (SES-5).
const FRESH: Duration = Duration::from_secs(24 * 3600);
/// Most passkeys of one account.
pub(crate) const MAX_PASSKEYS: usize = 20;
/// Longest name (PSK-1).
const MAX_NAME_CHARS: usize = 64;
/// Longest answer of a browser or an authenticator that is read, in bytes.
const MAX_PART: usize = 8 * 1024;
/// The ways to an authenticator that are known.
const TRANSPORTS: [&str; 6] = ["ble", "hybrid", "internal", "nfc", "smart-card", "usb"];

/// A passkey that a browser may use or must not make again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCredential {
    /// The authenticator's name for it.
    pub id: Vec<u8>,
    /// The ways to it.
    pub transports: Vec<String>,
}

impl From<store::passkeys::ListedRow> for KnownCredential {
    fn from(row: store::passkeys::ListedRow) -> Self {
        Self { id: row.credential_id, transports: row.transports }
    }
}

/// The question to an authenticator that is to make a passkey.
#[derive(Debug, Clone)]
pub struct Registration {
    /// What is to be signed.
    pub challenge: String,
    /// The site.
    pub party: String,
    /// The person, as the authenticator keeps them.
    pub user: UserId,
    /// The person's address.
    pub email: String,
    /// The person's name.
    pub name: String,
    /// The algorithms that may be used, the preferred one first (COSE).
    pub algorithms: [i64; 3],
    /// The passkeys that are there.
    pub exclude: Vec<KnownCredential>,
    /// How long the answer counts.
    pub lasts: Duration,
}

/// A passkey that an authenticator made.
#[derive(Clone)]
pub struct NewPasskey {
    /// What the person calls it.
    pub name: String,
    /// The browser's words.
    pub client_data: Vec<u8>,
    /// The authenticator's words.
    pub attestation: Vec<u8>,
    /// The ways to it, as the browser told.
    pub transports: Vec<String>,
}

/// The question to an authenticator that has a passkey.
#[derive(Debug, Clone)]
pub struct PasskeyQuestion {
    /// What is to be signed.
    pub challenge: String,
    /// The site.
    pub party: String,
    /// The passkeys that may answer; empty: any of the site.
    pub allow: Vec<KnownCredential>,
    /// How long the answer counts.
    pub lasts: Duration,
}

/// What an authenticator answered.
#[derive(Clone)]
pub struct PasskeyAnswer {
    /// The passkey.
    pub credential: Vec<u8>,
    /// The browser's words.
    pub client_data: Vec<u8>,
    /// The authenticator's words.
    pub authenticator_data: Vec<u8>,
    /// The signature over both.
    pub signature: Vec<u8>,
    /// The person, when the passkey names one.
    pub user: Option<Vec<u8>>,
}

/// For what a challenge is.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// To add a passkey in a session.
    Register,
    /// To show in a session who uses it.
    Prove,
    /// To sign in with a passkey alone.
    SignIn,
    /// To finish a sign-in.
    Second,
}

/// A challenge that was answered.
pub(super) struct Answered {
    hash: [u8; 32],
    until: DateTime<Utc>,
}

/// The one answer to an unknown passkey, a wrong signature and an answer that came late or twice.
fn refused() -> Problem {
    Problem::new(Code::PasskeyRefused, "This passkey could not be used. Try again, or log in another way.")
}

fn invalid(flaw: Flaw) -> Problem {
    tracing::info!(reason = %flaw, "a new passkey was refused");
    Problem::new(Code::PasskeyInvalid, "The passkey could not be added. Begin again.")
}

fn late() -> Problem {
    Problem::new(Code::PasskeyInvalid, "This took longer than 5 minutes, or was sent before. Begin again.")
}

pub(super) fn no_passkey() -> Problem {
    Problem::new(Code::PasskeyNotFound, "This passkey does not exist any more.")
}

fn named(name: &str) -> Result<String, Problem> {
    fields::short_text("name", name, MAX_NAME_CHARS)
}

impl Identity {
    /// Whether passkeys can be made and used on pages of `origin`.
    #[must_use]
    pub fn passkeys_at(&self, origin: &str) -> bool {
        self.0.config.relying_party.as_ref().is_some_and(|party| party.serves(origin))
    }

    fn party(&self) -> Result<&RelyingParty, Problem> {
        self.0.config.relying_party.as_ref().ok_or_else(|| {
            Problem::new(
                Code::PasskeyUnavailable,
                "Passkeys need a site whose address is a name. This one's SITE_URL is a number.",
            )
        })
    }

    /// Whether a session began less than a day ago (SES-5), or its person showed lately that it is them. One that a
    /// reverse proxy opened is not fresh by its beginning: the proxy vouches for people in its own organization, and a
    /// passkey would open all of theirs.
    pub(crate) async fn is_fresh(
        &self,
        conn: &mut PgConnection,
        principal: &SessionPrincipal,
    ) -> Result<bool, Problem> {
        Ok(!principal.confined && self.now() < principal.created_at + FRESH || self.is_proved(conn, principal).await?)
    }

    /// The question for a new passkey, once the session is known to be its owner's: it is fresh, or the password is
    /// given.
    ///
    /// # Errors
    /// `SESSION_NOT_FRESH` without a password in a session that is not fresh, `INVALID_CREDENTIALS`, `SIGN_IN_LOCKED`,
    /// `PASSKEY_LIMIT`, `PASSKEY_UNAVAILABLE`, `BUSY`.
    pub async fn begin_passkey(
        &self,
        principal: &SessionPrincipal,
        password: Option<&str>,
        device: &Device,
    ) -> Result<Registration, Problem> {
        let party = self.party()?;
        if !self.is_fresh(&mut *self.0.db.acquire().await?, principal).await? {
            let Some(password) = password else {
                return Err(Problem::new(
                    Code::SessionNotFresh,
                    "You logged in more than a day ago, or somebody else did it for you. Enter your password, or log in again.",
                ));
            };
            let (tx, _) = self.confirmed(principal, password, device).await?;
            tx.commit().await?;
        }
        let mut conn = self.0.db.acquire().await?;
        let account = account_of(&mut conn, principal.user).await?;
        let known = store::passkeys::list(&mut conn, principal.user).await?;
        if known.len() >= MAX_PASSKEYS {
            return Err(too_many());
        }
        Ok(Registration {
            challenge: self.challenge(Purpose::Register, principal.session.0.as_bytes()),
            party: party.id.clone(),
            user: account.id,
            email: account.email,
            name: account.name,
            algorithms: super::webauthn::ALGORITHMS,
            exclude: known.into_iter().map(KnownCredential::from).collect(),
            lasts: ANSWER_TIME,
        })
    }

    /// Adds the passkey that an authenticator made for this session.
    ///
    /// # Errors
    /// `PASSKEY_INVALID`, `PASSKEY_ALREADY_REGISTERED`, `PASSKEY_LIMIT`, `PASSKEY_UNAVAILABLE`, `INVALID_BODY`.
    pub async fn add_passkey(&self, principal: &SessionPrincipal, new: &NewPasskey) -> Result<Passkey, Problem> {
        let name = named(&new.name)?;
        if new.client_data.len() > MAX_PART || new.attestation.len() > MAX_PART {
            return Err(invalid(Flaw::AuthenticatorData));
        }
        let ceremony = Ceremony { party: self.party()?, kind: "webauthn.create" };
        let challenge = ceremony.challenge(&new.client_data).map_err(invalid)?;
        let session = principal.session.0.as_bytes();
        let answered = self.answered(Purpose::Register, session, &challenge).ok_or_else(late)?;
        let made = ceremony.registered(&new.attestation).map_err(invalid)?;
        let transports: Vec<String> = TRANSPORTS
            .iter()
            .filter(|way| new.transports.iter().any(|told| told == *way))
            .map(|way| (*way).to_owned())
            .collect();
        let now = self.now();
        let mut tx = self.begin().await?;
        // Locks the account, so that two tabs cannot go over the limit.
        store::accounts::locked_hash(&mut tx, principal.user).await?;
        if !store::factors::spend_challenge(&mut tx, &answered.hash, answered.until).await? {
            return Err(late());
        }
        if store::passkeys::list(&mut tx, principal.user).await?.len() >= MAX_PASSKEYS {
            return Err(too_many());
        }
        let id = PasskeyId::new();
        let row = store::passkeys::NewPasskey {
            id,
            user: principal.user,
            name: &name,
            credential_id: &made.id,
            public_key: &made.public_key,
            sign_count: made.sign_count,
            transports: &transports,
            aaguid: made.aaguid,
            at: now,
        };
        if !store::passkeys::insert(&mut tx, &row).await? {
            return Err(Problem::new(Code::PasskeyAlreadyRegistered, "This passkey is registered already."));
        }
        let change = Change::account("2fa_enrolled")
            .on("passkey", id)
            .named(&name)
            .with("method", "passkey")
            .told(principal.user, Kind::FactorAdded);
        trail::in_every_org(&mut tx, now, principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(Passkey { id, name, created_at: now, last_used_at: None })
    }

    /// Gives a passkey another name.
    ///
    /// # Errors
    /// `PASSKEY_NOT_FOUND`, `INVALID_BODY`.
    pub async fn rename_passkey(&self, principal: &SessionPrincipal, id: PasskeyId, name: &str) -> Result<(), Problem> {
        let name = named(name)?;
        let mut tx = self.begin().await?;
        let before = store::passkeys::rename(&mut tx, principal.user, id, &name).await?.ok_or_else(no_passkey)?;
        if before != name {
            let change = Change::account("passkey.renamed").on("passkey", id).changed("name", before, name);
            trail::in_every_org(&mut tx, self.now(), principal.user, &principal.actor(), &change).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Removes a passkey.
    ///
    /// # Errors
    /// `PASSKEY_NOT_FOUND`; `SESSION_NOT_FRESH` for whoever did not show lately that it is them.
    pub async fn remove_passkey(&self, principal: &SessionPrincipal, id: PasskeyId) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        self.require_proof(&mut tx, principal).await?;
        let name = store::passkeys::delete(&mut tx, principal.user, id).await?.ok_or_else(no_passkey)?;
        let change = Change::account("2fa_disabled")
            .on("passkey", id)
            .named(&name)
            .with("method", "passkey")
            .told(principal.user, Kind::FactorRemoved);
        trail::in_every_org(&mut tx, self.now(), principal.user, &principal.actor(), &change).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The question for a sign-in with a passkey alone.
    ///
    /// # Errors
    /// `PASSKEY_UNAVAILABLE`.
    pub fn begin_passkey_sign_in(&self) -> Result<PasskeyQuestion, Problem> {
        self.question(Purpose::SignIn, b"", Vec::new())
    }

    /// A question to an authenticator that has one of `allow`.
    pub(super) fn question(
        &self,
        purpose: Purpose,
        subject: &[u8],
        allow: Vec<KnownCredential>,
    ) -> Result<PasskeyQuestion, Problem> {
        Ok(PasskeyQuestion {
            challenge: self.challenge(purpose, subject),
            party: self.party()?.id.clone(),
            allow,
            lasts: ANSWER_TIME,
        })
    }

    /// Signs in whoever a passkey belongs to. Blocks of passwords do not concern it (LCK-11).
    ///
    /// # Errors
    /// `PASSKEY_REFUSED`, `PASSKEY_UNAVAILABLE`.
    pub async fn sign_in_with_passkey(&self, answer: &PasskeyAnswer, device: &Device) -> Result<SignedIn, Problem> {
        let (key, answered, sign_count) = self.judge(Purpose::SignIn, b"", answer, None, device).await?;
        let tx = self.spend(&key, &answered, sign_count, device).await?;
        self.enter(tx, key.user_id, Method::Passkey, true, device).await
    }

    /// The question for a passkey as the second factor of the sign-in that waits under `token`.
    ///
    /// # Errors
    /// `TWO_FACTOR_NOT_PENDING`, `PASSKEY_UNAVAILABLE`.
    pub async fn begin_second_passkey(&self, token: &str) -> Result<PasskeyQuestion, Problem> {
        let pending = self.waiting(token).await?;
        let mut conn = self.0.db.acquire().await?;
        let known = store::passkeys::list(&mut conn, pending.user_id).await?;
        let allow = known.into_iter().map(KnownCredential::from).collect();
        self.question(Purpose::Second, pending.id.as_bytes(), allow)
    }

    /// Finishes a sign-in with a passkey of the same person.
    ///
    /// # Errors
    /// `TWO_FACTOR_NOT_PENDING`, `PASSKEY_REFUSED`, `PASSKEY_UNAVAILABLE`.
    pub async fn finish_with_passkey(
        &self,
        token: &str,
        answer: &PasskeyAnswer,
        device: &Device,
    ) -> Result<SignedIn, Problem> {
        let pending = self.waiting(token).await?;
        let subject = pending.id.as_bytes();
        let (key, answered, sign_count) =
            self.judge(Purpose::Second, subject, answer, Some(pending.user_id), device).await?;
        let tx = self.spend(&key, &answered, sign_count, device).await?;
        let verified = Change::account("2fa_verified").on("user", pending.user_id).with("method", "passkey");
        self.finish(tx, &pending, &verified, device).await
    }

    /// Judges an answer; `of`: whose passkey it must be.
    pub(super) async fn judge(
        &self,
        purpose: Purpose,
        subject: &[u8],
        answer: &PasskeyAnswer,
        of: Option<UserId>,
        device: &Device,
    ) -> Result<(KeyRow, Answered, u32), Problem> {
        let ceremony = Ceremony { party: self.party()?, kind: "webauthn.get" };
        let parts = [&answer.client_data, &answer.authenticator_data, &answer.signature];
        if parts.iter().any(|part| part.len() > MAX_PART) || answer.credential.len() > MAX_CREDENTIAL_ID {
            return Err(refused());
        }
        let challenge = ceremony.challenge(&answer.client_data).map_err(|flaw| {
            tracing::info!(reason = %flaw, "the answer of a passkey was refused");
            refused()
        })?;
        let answered = self.answered(purpose, subject, &challenge).ok_or_else(refused)?;
        let key = {
            let mut conn = self.0.db.acquire().await?;
            store::passkeys::by_credential(&mut conn, &answer.credential).await?.ok_or_else(refused)?
        };
        let names = |user: &Vec<u8>| user.as_slice() == key.user_id.0.as_bytes();
        if of.is_some_and(|user| user != key.user_id) || !answer.user.as_ref().is_none_or(names) {
            return Err(refused());
        }
        let asserted =
            ceremony.asserted(&key.public_key, &answer.authenticator_data, &answer.client_data, &answer.signature);
        match asserted {
            Ok(sign_count) => Ok((key, answered, sign_count)),
            Err(flaw) => {
                let failed = Change::account("2fa_verify_failed").with("reason", flaw.to_string());
                self.note_passkey(&key, failed, device).await?;
                Err(refused())
            }
        }
    }

    /// Begins the transaction of a sign-in in which the challenge is spent and the passkey's counter moves on.
    pub(super) async fn spend(
        &self,
        key: &KeyRow,
        answered: &Answered,
        sign_count: u32,
        device: &Device,
    ) -> Result<sqlx::PgTransaction<'static>, Problem> {
        let mut tx = self.begin().await?;
        if !store::factors::spend_challenge(&mut tx, &answered.hash, answered.until).await? {
            return Err(refused());
        }
        if !store::passkeys::used(&mut tx, key.id, sign_count, self.now()).await? {
            drop(tx);
            self.note_passkey(key, Change::lockout("passkey.counter_went_back"), device).await?;
            return Err(refused());
        }
        Ok(tx)
    }

    /// Writes down that a passkey was refused.
    async fn note_passkey(&self, key: &KeyRow, change: Change, device: &Device) -> Result<(), Problem> {
        let mut tx = self.begin().await?;
        let account = account_of(&mut tx, key.user_id).await?;
        let change = change.on("passkey", key.id).failed(self.claimed(Some(&account.email), device));
        trail::in_every_org(&mut tx, self.now(), key.user_id, &Actor::System, &change).await?;
        tx.commit().await?;
        Ok(())
    }

    fn challenge_signature(&self, purpose: Purpose, subject: &[u8], front: &[u8]) -> [u8; 32] {
        let purpose: &[u8] = match purpose {
            Purpose::Register => b"register",
            Purpose::Prove => b"prove",
            Purpose::SignIn => b"sign-in",
            Purpose::Second => b"second",
        };
        let secret = self.0.assertion_secret.expose_secret().as_bytes();
        let key = hmac_sha256(secret, b"tale: challenges of passkeys");
        hmac_sha256(&key, &[front, purpose, subject].concat())
    }

    /// Sixteen random bytes, the end in seconds, and our signature over both, the purpose and whom it is for.
    fn challenge(&self, purpose: Purpose, subject: &[u8]) -> String {
        let until = (self.now() + ANSWER_TIME).timestamp();
        let front = [&rand::random::<[u8; 16]>()[..], &until.to_be_bytes()].concat();
        URL_SAFE_NO_PAD.encode([&front[..], &self.challenge_signature(purpose, subject, &front)].concat())
    }

    /// A challenge of ours for this purpose that counts now.
    fn answered(&self, purpose: Purpose, subject: &[u8], challenge: &str) -> Option<Answered> {
        let bytes = URL_SAFE_NO_PAD.decode(challenge).ok()?;
        let (front, signature) = bytes.split_at_checked(24)?;
        if !constant_time_eq(signature, &self.challenge_signature(purpose, subject, front)) {
            return None;
        }
        let until = DateTime::from_timestamp(i64::from_be_bytes(front[16..].try_into().ok()?), 0)?;
        (self.now() < until).then(|| Answered { hash: sha256(&bytes), until })
    }
}

fn too_many() -> Problem {
    Problem::new(
        Code::PasskeyLimit,
        format!("An account has at most {MAX_PASSKEYS} passkeys. Remove one that you do not use."),
    )
}
