//! A knowledge database that an organization names for itself: reaching it, judging it, preparing it.
//!
//! It is reached through a [relay](crate::relay), so that its host is judged at every connection. Looking
//! at it goes by [stages](ForeignError::stage), and each has its own reason to fail: a person who enters
//! a connection is told what to do. Opening it applies this release's migrations as for the deployment's
//! own database, except that extensions are never created. Every connection of its pool makes sure
//! that it leads to the database that was opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Connection, Executor, PgConnection, PgPool};
use tale_core::net::{HostPolicy, HostRefused};

use crate::migrate::{self, MigrateError};
use crate::pools;
use crate::relay::{Relay, RelayFailure};

/// Connections that one process holds to one database of an organization at most.
pub const FOREIGN_POOL_MAX: u32 = 5;
/// How long a connection may stand unused before it is closed. None is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take for its greeting.
const PATIENCE: Duration = Duration::from_secs(8);

/// How much of a foreign text is kept, in characters.
const SAID_MAX: usize = 300;

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    Disable,
    /// Encrypted, whoever the server is.
    Require,
    /// With a certificate of a trusted authority.
    VerifyCa,
    /// With such a certificate for the host's name.
    VerifyFull,
}

/// Where a database of an organization is.
#[derive(Debug, Clone)]
pub struct ForeignConfig {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// The role.
    pub user: String,
    /// Its password.
    pub password: SecretString,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// Authorities that are trusted besides the public ones, in PEM form.
    pub ca_file: Option<PathBuf>,
    /// Which hosts are admitted.
    pub policy: HostPolicy,
    /// Upper bound of pooled connections; at most [`FOREIGN_POOL_MAX`] count.
    pub max_connections: u32,
}

/// What a look at a database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The server's version as it says it.
    pub server_version: String,
    /// Version of the extension `vector`, when it is created in the database.
    pub vector: Option<String>,
    /// Version of the extension `pg_search`, when it is created in the database.
    pub pg_search: Option<String>,
    /// Tells this database apart from every other one.
    pub identity: String,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The host may not be called.
    #[error("{0}")]
    Host(HostRefused),
    /// The host's name has no address.
    #[error("the name of the host cannot be resolved: {0}")]
    Unresolved(String),
    /// The server does not answer.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection could not be encrypted as asked.
    #[error("no encrypted connection: {0}")]
    Tls(String),
    /// User or password are not accepted.
    #[error("the server refuses the user or the password: {0}")]
    Login(String),
    /// There is no database of that name.
    #[error("the server has no such database: {0}")]
    NoDatabase(String),
    /// The server refuses for another reason.
    #[error("the server refuses: {0}")]
    Server(String),
    /// Statements of one session run on different connections.
    #[error(
        "a connection pooler in transaction mode stands before the server; connect to Postgres itself, or put the pooler into session mode"
    )]
    Pooler,
    /// The extension `vector` is not there.
    #[error("the extension `vector` is missing; run this in the database as a superuser: CREATE EXTENSION vector;")]
    VectorMissing(Report),
    /// The extension `vector` is too old.
    #[error("the extension `vector` {} is too old, 0.7 or newer is needed; install it and run this in the database as a superuser: ALTER EXTENSION vector UPDATE;", .0.vector.as_deref().unwrap_or_default())]
    VectorTooOld(Report),
    /// The role may not create schemas.
    #[error(
        "the user may not create schemas in the database; run this in it as its owner: GRANT CREATE ON DATABASE … TO …;"
    )]
    NotAllowed(Report),
    /// The tables could not be made or brought up to date.
    #[error("the tables could not be prepared: {said}")]
    Migrate {
        /// The reason in short words.
        said: String,
        /// Whether waiting may help.
        may_pass: bool,
    },
}

impl ForeignError {
    /// The stage that failed: `address`, `connect`, `encryption`, `login`, `session`, `extension`,
    /// `rights` or `tables`.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Host(_) | Self::Unresolved(_) => "address",
            Self::Unreachable(_) => "connect",
            Self::Tls(_) => "encryption",
            Self::Login(_) | Self::NoDatabase(_) | Self::Server(_) => "login",
            Self::Pooler => "session",
            Self::VectorMissing(_) | Self::VectorTooOld(_) => "extension",
            Self::NotAllowed(_) => "rights",
            Self::Migrate { .. } => "tables",
        }
    }

    /// The reason as a stable word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Host(_) => "host_refused",
            Self::Unresolved(_) => "unresolved",
            Self::Unreachable(_) => "unreachable",
            Self::Tls(_) => "not_encrypted",
            Self::Login(_) => "login_refused",
            Self::NoDatabase(_) => "database_missing",
            Self::Server(_) => "server_refused",
            Self::Pooler => "transaction_pooler",
            Self::VectorMissing(_) => "vector_missing",
            Self::VectorTooOld(_) => "vector_too_old",
            Self::NotAllowed(_) => "not_allowed",
            Self::Migrate { .. } => "not_prepared",
        }
    }

    /// What the server or the network said, when they said something; short, and without the password.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Unresolved(said)
            | Self::Unreachable(said)
            | Self::Tls(said)
            | Self::Login(said)
            | Self::NoDatabase(said)
            | Self::Server(said)
            | Self::Migrate { said, .. } => Some(said.clone()),
            Self::Host(refused) => Some(refused.to_string()),
            _ => None,
        }
    }

    /// What was found before it failed.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::VectorMissing(report) | Self::VectorTooOld(report) | Self::NotAllowed(report) => Some(report),
            _ => None,
        }
    }

    /// Whether waiting may help without anybody changing the settings or the database.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unresolved(_) | Self::Unreachable(_) | Self::Migrate { may_pass: true, .. })
    }
}

/// An open database of an organization.
#[derive(Debug)]
pub struct Foreign {
    pool: PgPool,
    identity: Arc<str>,
    report: Report,
    distrusted: Arc<AtomicBool>,
    _relay: Relay,
}

impl Foreign {
    /// Looks at the database, brings its tables up to date and opens a pool. Several processes may do so at
    /// once. Must run inside a Tokio runtime, where its connections live.
    ///
    /// # Errors
    /// [`ForeignError`].
    pub async fn open(config: &ForeignConfig) -> Result<Self, ForeignError> {
        let (relay, options, report) = look(config).await?;
        relay.trust();
        let identity: Arc<str> = report.identity.as_str().into();
        let distrusted = Arc::new(AtomicBool::new(false));
        let (expected, place, flag) = (Arc::clone(&identity), place(config), Arc::clone(&distrusted));
        let pool = pools::pool_options(config.max_connections.min(FOREIGN_POOL_MAX), 0, IDLE_TIMEOUT)
            .after_connect(move |connection, _| {
                let (expected, place, flag) = (Arc::clone(&expected), place.clone(), Arc::clone(&flag));
                Box::pin(async move {
                    connection.execute(pools::SESSION).await?;
                    if identity_of(connection, &place).await? == *expected {
                        return Ok(());
                    }
                    flag.store(true, Ordering::Relaxed);
                    Err(std::io::Error::other("the address leads to another database than before").into())
                })
            })
            .connect_lazy_with(options);
        migrate::foreign_knowledge(&pool).await.map_err(|error| ForeignError::Migrate {
            said: brief(&error.in_words(), &config.password),
            may_pass: matches!(error, MigrateError::LockTimeout { .. }),
        })?;
        Ok(Self { pool, identity, report, distrusted, _relay: relay })
    }

    /// Looks at the database and changes nothing in it.
    ///
    /// # Errors
    /// [`ForeignError`].
    pub async fn look(config: &ForeignConfig) -> Result<Report, ForeignError> {
        look(config).await.map(|(_, _, report)| report)
    }

    /// Its connections.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// What was found when it was opened.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Tells this database apart from every other one.
    #[must_use]
    pub fn identity(&self) -> &Arc<str> {
        &self.identity
    }

    /// Says that this is of no more use, because the server answers as if it had never been opened.
    pub fn distrust(&self) {
        self.distrusted.store(true, Ordering::Relaxed);
    }

    /// Whether it must be opened anew: it was distrusted, or its address leads elsewhere by now.
    #[must_use]
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Relaxed)
    }
}

fn place(config: &ForeignConfig) -> String {
    format!("{}:{}", config.host, config.port)
}

async fn look(config: &ForeignConfig) -> Result<(Relay, PgConnectOptions, Report), ForeignError> {
    let relay = Relay::start(&config.host, config.port, config.policy)
        .map_err(|error| ForeignError::Unreachable(error.to_string()))?;
    let mut options = PgConnectOptions::new_without_pgpass()
        .host(&config.host)
        .port(config.port)
        .socket(relay.folder())
        .database(&config.database)
        .username(&config.user)
        .password(config.password.expose_secret())
        .ssl_mode(match config.encryption {
            Encryption::Disable => PgSslMode::Disable,
            Encryption::Require => PgSslMode::Require,
            Encryption::VerifyCa => PgSslMode::VerifyCa,
            Encryption::VerifyFull => PgSslMode::VerifyFull,
        })
        .application_name("tale")
        .extra_float_digits(None);
    if let Some(file) = &config.ca_file {
        options = options.ssl_root_cert(file);
    }
    let looking = async {
        let mut conn = PgConnection::connect_with(&options).await?;
        let report = report(&mut conn, config).await?;
        let allowed: bool = sqlx::query_scalar("SELECT has_database_privilege(current_database(), 'CREATE')")
            .fetch_one(&mut conn)
            .await?;
        conn.close().await?;
        Ok::<_, sqlx::Error>((report, allowed, pools::is_transaction_pooler(&options).await?))
    };
    let looked = tokio::time::timeout(PATIENCE, looking).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    let (report, allowed, pooler) = looked.map_err(|error| reason(error, relay.failure(), &config.password))?;
    if pooler {
        return Err(ForeignError::Pooler);
    }
    match &report.vector {
        None => return Err(ForeignError::VectorMissing(report)),
        Some(found) if migrate::is_too_old(found) => return Err(ForeignError::VectorTooOld(report)),
        Some(_) if !allowed => return Err(ForeignError::NotAllowed(report)),
        Some(_) => {}
    }
    Ok((relay, options, report))
}

async fn report(conn: &mut PgConnection, config: &ForeignConfig) -> Result<Report, sqlx::Error> {
    let (server_version, vector, pg_search): (String, Option<String>, Option<String>) = sqlx::query_as(
        "SELECT current_setting('server_version'),
                (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
                (SELECT extversion FROM pg_extension WHERE extname = 'pg_search')",
    )
    .fetch_one(&mut *conn)
    .await?;
    let brief = |said: String| brief(&said, &config.password);
    Ok(Report {
        server_version: brief(server_version),
        vector: vector.map(brief),
        pg_search: pg_search.map(brief),
        identity: identity_of(conn, &place(config)).await?,
    })
}

/// Tells the database of `conn` apart from every other one: the server's own number and the database's
/// in it, which a copy made by dump and restore does not share. Where the server keeps its number to
/// itself, `place` stands for it.
///
/// # Errors
/// The database's.
pub async fn identity_of(conn: &mut PgConnection, place: &str) -> Result<String, sqlx::Error> {
    let database: i64 = sqlx::query_scalar("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
        .fetch_one(&mut *conn)
        .await?;
    let server =
        sqlx::query_scalar::<_, i64>("SELECT system_identifier FROM pg_control_system()").fetch_one(conn).await;
    match server {
        Ok(server) => Ok(format!("{server}/{database}")),
        Err(sqlx::Error::Database(_)) => Ok(format!("{place}/{database}")),
        Err(other) => Err(other),
    }
}

/// What a foreign server said, as it may be shown and logged: one short line that does not repeat `password`.
fn brief(said: &str, password: &SecretString) -> String {
    let password = password.expose_secret();
    let said = if password.is_empty() { said.to_owned() } else { said.replace(password, "•••") };
    let mut kept: String = said.chars().take(SAID_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if said.chars().nth(SAID_MAX).is_some() {
        kept.push('…');
    }
    kept
}

fn reason(error: sqlx::Error, failure: Option<RelayFailure>, password: &SecretString) -> ForeignError {
    let brief = |said: &str| brief(said, password);
    match failure {
        Some(RelayFailure::Refused(refused)) => return ForeignError::Host(refused),
        Some(RelayFailure::Unresolved(said)) => return ForeignError::Unresolved(said),
        Some(RelayFailure::Unreachable(said)) => return ForeignError::Unreachable(said),
        Some(failure @ RelayFailure::TooMuch) => return ForeignError::Server(failure.to_string()),
        None => {}
    }
    match error {
        sqlx::Error::Tls(error) => ForeignError::Tls(brief(&error.to_string())),
        // what rustls makes of a certificate that it does not trust
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            ForeignError::Tls(brief(&error.to_string()))
        }
        sqlx::Error::PoolTimedOut => ForeignError::Unreachable(format!(
            "it accepts connections and does not answer within {} seconds",
            PATIENCE.as_secs()
        )),
        sqlx::Error::Io(error) => ForeignError::Unreachable(brief(&error.to_string())),
        sqlx::Error::Database(error) => {
            let said = brief(error.message());
            match error.code().as_deref() {
                Some("28P01" | "28000") => ForeignError::Login(said),
                Some("3D000") => ForeignError::NoDatabase(said),
                // too many connections, starting up, shutting down
                Some("53300" | "57P01" | "57P02" | "57P03") => ForeignError::Unreachable(said),
                _ => ForeignError::Server(said),
            }
        }
        other => ForeignError::Server(brief(&other.to_string())),
    }
}
