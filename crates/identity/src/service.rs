//! The service that the rooms above hold.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};
use tale_core::clock::SharedClock;
use tale_core::crypto::{CryptoError, FieldCipher, hex_of, hmac_sha256, random_hex, random_token, sha256};
use tale_core::{Actor, Problem};
use tale_governance::audit::Claimed;
use tale_notices::Notices;

use crate::config::IdentityConfig;
use crate::fields::normalize_email;
use crate::network::{ClientAddress, Hops};
use crate::password::{HashingError, PasswordHasher};
use crate::session_copy::Copies;
use crate::sso::Providers;
use crate::store;
use crate::trail::{self, Change};

/// How long a counter of wrong passwords is kept after its last use (LCK-9).
const ATTEMPTS_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// Accounts, sessions, organizations, members, keys and preferences. Cheap to clone.
#[derive(Clone)]
pub struct Identity(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) db: PgPool,
    pub(crate) clock: SharedClock,
    pub(crate) config: IdentityConfig,
    pub(crate) hasher: PasswordHasher,
    pub(crate) setup_token: secrecy::SecretString,
    pub(crate) assertion_secret: secrecy::SecretString,
    pub(crate) cipher: FieldCipher,
    pub(crate) copies: Copies,
    pub(crate) notices: Notices,
    pub(crate) providers: Providers,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// Settings that the service cannot be made with.
#[derive(Debug, thiserror::Error)]
pub enum BadConfig {
    /// Argon2 does not allow the cost.
    #[error(transparent)]
    Hashing(#[from] HashingError),
    /// There is no usable key.
    #[error(transparent)]
    Cipher(#[from] CryptoError),
}

/// Where a sign-in comes from.
#[derive(Debug, Clone)]
pub struct Device {
    /// The client's address.
    pub client: ClientAddress,
    /// The browser's own words, cut to what is kept.
    pub user_agent: Option<String>,
    /// Whether the request was made on this machine, where setup needs no token.
    pub local: bool,
    /// The way of the request, when it came through a proxy.
    pub hops: Option<Hops>,
    /// What its cookie of an earlier sign-in says, see [`crate::known_device`].
    pub mark: Option<SecretString>,
}

impl Device {
    /// From the client's address and its `User-Agent`; more than 400 characters are cut.
    #[must_use]
    pub fn new(client: ClientAddress, user_agent: Option<&str>) -> Self {
        let user_agent = user_agent
            .map(|text| text.chars().filter(|c| !c.is_control()).take(400).collect::<String>())
            .filter(|text| !text.trim().is_empty());
        Self { client, user_agent, local: client.is_loopback(), hops: None, mark: None }
    }

    /// The same with the way of the request, which organizations may read otherwise than the deployment does (LCK-7).
    #[must_use]
    pub fn by(self, hops: Option<Hops>) -> Self {
        Self { hops, ..self }
    }

    /// The same with the cookie of an earlier sign-in.
    #[must_use]
    pub fn bearing(self, mark: Option<&str>) -> Self {
        Self { mark: mark.map(SecretString::from), ..self }
    }

    /// Marks a request that comes from this machine but not from a page of this machine, such as
    /// one through a proxy that names nobody.
    #[must_use]
    pub fn not_local(mut self) -> Self {
        self.local = false;
        self
    }
}

impl Identity {
    /// The service on the operational database. Warns about settings that make it weaker.
    ///
    /// # Errors
    /// When Argon2 does not allow the configured cost.
    pub fn new(db: PgPool, clock: SharedClock, config: IdentityConfig) -> Result<Self, BadConfig> {
        if config.audit_pepper.is_none() {
            tracing::warn!(
                "[SECURITY] TALE_AUDIT_PEPPER is not set or shorter than 16 characters: failed sign-ins are recorded with plain addresses and networks"
            );
        }
        if config.allow_open_sign_up {
            tracing::warn!(
                "[SECURITY] TALE_ALLOW_OPEN_SIGN_UP=true: anybody who reaches this Tale can make an account"
            );
        }
        let hasher = PasswordHasher::new(config.hash_cost)?;
        let setup_token = config.setup_token.clone().unwrap_or_else(|| random_token(18).into());
        let assertion_secret = config.assertion_secret.clone().unwrap_or_else(|| random_token(32).into());
        let cipher = match &config.cipher {
            Some(cipher) => cipher.clone(),
            None => FieldCipher::from_hex(&random_hex(32), [])?,
        };
        let copies = Copies::new(&config);
        let notices = Notices::new(db.clone());
        let providers = Providers::new(config.provider_hosts);
        Ok(Self(Arc::new(Parts {
            db,
            clock,
            config,
            hasher,
            setup_token,
            assertion_secret,
            cipher,
            copies,
            notices,
            providers,
        })))
    }

    /// Ends sessions that were idle too long and writes that it did (SES-6). A request of such a session is refused whether this ran or not.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep_idle(&self) -> Result<u64, Problem> {
        let window = self.0.config.session_idle_timeout;
        let mut ended = 0;
        loop {
            let now = self.now();
            let mut tx = self.begin().await?;
            let slice = store::sessions::end_idle(&mut tx, window.map(|window| now - window), now).await?;
            for (session, user) in &slice {
                let change = Change::account("session.idle_revoked").on("session", session);
                trail::in_every_org(&mut tx, now, *user, &Actor::System, &change).await?;
            }
            tx.commit().await?;
            ended += slice.len() as u64;
            if slice.len() < store::sessions::IDLE_SLICE {
                return Ok(ended);
            }
        }
    }

    /// Removes sessions and half-finished sign-ins that ended, assertions that are over counters of wrong passwords that nobody touched for 90 days, and old notifications.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep(&self) -> Result<u64, Problem> {
        let now = self.now();
        let notices = self.0.notices.sweep(now).await?;
        let mut conn = self.0.db.acquire().await?;
        let sessions = notices + store::sessions::sweep(&mut conn, now).await?;
        let sessions = sessions + store::trusted_headers::sweep(&mut conn, now).await?;
        let sessions = sessions + store::factors::sweep(&mut conn, now).await?;
        Ok(sessions + store::attempts::sweep(&mut conn, now - ATTEMPTS_KEPT).await?)
    }

    /// What people are told.
    #[must_use]
    pub fn notices(&self) -> &Notices {
        &self.0.notices
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        // Postgres keeps microseconds; what is compared with a stored time must not keep more.
        let now = self.0.clock.now();
        DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }

    pub(crate) async fn begin(&self) -> Result<PgTransaction<'static>, Problem> {
        Ok(self.0.db.begin().await?)
    }

    /// An address or a network as it is kept: its keyed hash when there is a pepper, else itself (SIN-8).
    pub(crate) fn pseudonym(&self, plain: &str) -> String {
        match &self.0.config.audit_pepper {
            Some(pepper) => hex_of(&hmac_sha256(pepper.expose_secret().as_bytes(), plain.as_bytes())),
            None => plain.to_owned(),
        }
    }

    /// What the log keeps of a failed sign-in (DCF-110, DCF-111).
    pub(crate) fn claimed(&self, email: Option<&str>, device: &Device) -> Claimed {
        let email = email.map(|email| self.pseudonym(&normalize_email(email)));
        let network = self.pseudonym(&device.client.network());
        match &self.0.config.audit_pepper {
            Some(_) => Claimed::Hashed { email, network },
            None => Claimed::Plain { email, network },
        }
    }

    /// The key of an address in the counters of wrong passwords.
    pub(crate) fn attempt_key(&self, email: &str) -> [u8; 32] {
        match &self.0.config.audit_pepper {
            Some(pepper) => hmac_sha256(pepper.expose_secret().as_bytes(), email.as_bytes()),
            None => sha256(email.as_bytes()),
        }
    }
}
