//! Bounded connection pools.
//!
//! Every connection carries a statement timeout, so that a lost plan or a lock that nobody
//! releases ends as an error instead of a request that hangs. A pool opens connections when they
//! are needed and closes them again when they idle: an idle process holds one or none.
//!
//! Connections need session semantics: LISTEN, advisory locks and prepared statements. A pooler in
//! session mode gives them, one in transaction mode loses them without a word, so
//! [`refuse_transaction_pooler`] looks for one at the start. Only startup parameters that poolers
//! know are sent; the rest of a session is set once it is open.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Row};
use tokio::time::Instant;
use tracing::{info, warn};

/// How long a request waits for a free connection before it answers that the database is busy.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that did not answer is asked once more for the reason.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);
/// What every pooled session starts with. A statement may run for 30 seconds: longer work belongs
/// into steps of a job. A transaction may wait for its client for 60 seconds.
pub(crate) const SESSION: &str = "SET statement_timeout = 30000; SET idle_in_transaction_session_timeout = 60000";
/// How long the start waits for a server that is not there yet.
pub const START_PATIENCE: Duration = Duration::from_secs(60);
/// First pause between two tries of [`connect_when_up`]; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Rounds of [`refuse_transaction_pooler`]. In each, one more server connection of a pooler is
/// taken away from the session under test.
const POOLER_ROUNDS: usize = 3;
/// A connection that stood unused for this long is asked whether it still lives before it is used.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// Connections that stay open: to open one takes as long as a dozen short statements, and a request that
/// finds none free would wait for that.
const KEPT_OPEN: u32 = 4;
/// How long a connection beyond [`KEPT_OPEN`] may stand unused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Where a database is and how many connections this process may hold to it.
#[derive(Clone)]
pub struct PoolConfig {
    /// `postgres://USER:PASSWORD@HOST:PORT/NAME`, with the usual query parameters.
    pub url: String,
    /// Upper bound of open connections.
    pub max_connections: u32,
    /// PEM bundle of certificate authorities that are trusted besides the public ones. Whether a
    /// certificate is asked for and checked is up to `sslmode` in the address.
    pub ca_file: Option<PathBuf>,
    /// Shown in `pg_stat_activity`.
    pub application_name: &'static str,
}

impl std::fmt::Debug for PoolConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolConfig")
            .field("max_connections", &self.max_connections)
            .field("application_name", &self.application_name)
            .finish_non_exhaustive()
    }
}

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The address does not parse. The text itself is not shown: it holds a password.
    #[error(
        "the address of the {0} database cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/NAME, with sslmode disable, require, verify-ca or verify-full if any"
    )]
    BadUrl(&'static str),
    /// The bundle of certificate authorities cannot be used.
    #[error("the bundle of certificate authorities {} cannot be used: {reason}", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No encrypted connection came about, and none without encryption was tried.
    #[error(
        "no encrypted connection to the {name} database at {place}. Its certificate must be valid for that name and come from an authority that is trusted: a public one, or one in POSTGRES_CA_FILE"
    )]
    Tls {
        /// Which database.
        name: &'static str,
        /// Host, port and database name, without the password.
        place: String,
        /// What the handshake said.
        #[source]
        source: sqlx::Error,
    },
    /// Statements of one session run on different connections.
    #[error(
        "the {name} database at {place} is reached through a connection pooler in transaction mode, which loses notifications, advisory locks and prepared statements. Connect to Postgres itself, or put the pooler into session mode (PgBouncer: pool_mode = session)"
    )]
    TransactionPooler {
        /// Which database.
        name: &'static str,
        /// Host, port and database name, without the password.
        place: String,
    },
    /// The server did not answer.
    #[error(
        "the {name} database at {place} cannot be reached. See that it runs and that its address, user and password are right"
    )]
    Unreachable {
        /// Which database.
        name: &'static str,
        /// Host, port and database name, without the password.
        place: String,
        /// What the driver said.
        #[source]
        source: sqlx::Error,
    },
}

/// The connect options of `config`, for a pool or a single connection.
///
/// # Errors
/// [`PoolError::BadUrl`] when the address does not parse.
pub fn connect_options(name: &'static str, config: &PoolConfig) -> Result<PgConnectOptions, PoolError> {
    let mut options = PgConnectOptions::from_str(&config.url)
        .map_err(|_| PoolError::BadUrl(name))?
        .application_name(config.application_name)
        .extra_float_digits(None);
    if let Some(file) = &config.ca_file {
        options = options.ssl_root_cert(file);
    }
    Ok(options)
}

/// A pool that connects on first use. Nothing is sent to the server yet.
///
/// # Errors
/// [`PoolError::BadUrl`] when the address does not parse.
pub fn connect_lazy(name: &'static str, config: &PoolConfig) -> Result<PgPool, PoolError> {
    Ok(configured(config).connect_lazy_with(connect_options(name, config)?))
}

/// Opens a pool and one connection in it, so that a wrong address or password shows at start.
///
/// # Errors
/// [`PoolError::BadUrl`] for an address that does not parse, [`PoolError::CaFile`] for a bundle
/// that does not, [`PoolError::Tls`] when encryption was asked for and failed,
/// [`PoolError::Unreachable`] when the server does not accept the connection within
/// [`ACQUIRE_TIMEOUT`].
pub async fn connect(name: &'static str, config: &PoolConfig) -> Result<PgPool, PoolError> {
    let options = connect_options(name, config)?;
    check_ca_file(config.ca_file.as_deref()).await?;
    match configured(config).connect_with(options.clone()).await {
        Ok(pool) => Ok(pool),
        // The pool waits for a server that refuses connections; one connection says why it could not.
        Err(sqlx::Error::PoolTimedOut) => {
            let attempt = PgConnection::connect_with(&options);
            let source = match tokio::time::timeout(REASON_TIMEOUT, attempt).await {
                Ok(Ok(_late)) => return Ok(configured(config).connect_lazy_with(options)),
                Ok(Err(reason)) => reason,
                Err(_silent) => sqlx::Error::PoolTimedOut,
            };
            Err(refusal(name, &options, source))
        }
        Err(source) => Err(refusal(name, &options, source)),
    }
}

/// [`connect`], again and again while the server is not there yet: its name does not resolve, it
/// refuses connections or is still starting. A wrong password or certificate is told at once.
///
/// # Errors
/// As [`connect`], the last one of them when `patience` is over.
pub async fn connect_when_up(name: &'static str, config: &PoolConfig, patience: Duration) -> Result<PgPool, PoolError> {
    let started = Instant::now();
    let mut pause = RETRY_MIN;
    loop {
        match connect(name, config).await {
            Err(PoolError::Unreachable { place, source, .. })
                if may_come_up(&source) && started.elapsed() + pause < patience =>
            {
                let seconds = patience.as_secs();
                warn!(event = "database.waiting", error = %source, "waiting for the {name} database at {place}, for up to {seconds} seconds");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Ok(pool) => {
                if pause > RETRY_MIN {
                    info!(event = "database.available", "the {name} database is there");
                }
                return Ok(pool);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Refuses a pooler that gives the statements of one session to different server connections.
///
/// A session under test notes its server process and a setting. Then other sessions hold
/// transactions open, one more in each round: behind such a pooler, one of them gets the server
/// process that the first session had, or the first session comes back to another one. Sessions
/// that are really sessions never share a process and never lose a setting.
///
/// # Errors
/// [`PoolError::TransactionPooler`] when one stands between, otherwise as [`connect`].
pub async fn refuse_transaction_pooler(name: &'static str, config: &PoolConfig) -> Result<(), PoolError> {
    let options = connect_options(name, config)?;
    let looking = tokio::time::timeout(ACQUIRE_TIMEOUT, is_transaction_pooler(&options));
    match looking.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
        Ok(false) => Ok(()),
        Ok(true) => Err(PoolError::TransactionPooler { name, place: place(&options) }),
        Err(source) => Err(refusal(name, &options, source)),
    }
}

/// Whether a pooler stands between that [`refuse_transaction_pooler`] refuses.
pub(crate) async fn is_transaction_pooler(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let open = || async { PgConnection::connect_with(options).await };
    let mut session = open().await?;
    session.execute("SET tale.session_check = 'here'").await?;
    let mut holders = Vec::with_capacity(POOLER_ROUNDS);
    let (own, _) = backend(&mut session).await?;
    for _ in 0..POOLER_ROUNDS {
        let mut holder = open().await?;
        holder.execute("BEGIN").await?;
        let (theirs, _) = backend(&mut holder).await?;
        holders.push(holder);
        // Asked before the session itself, which such a pooler might let wait for the holders.
        if theirs == own || backend(&mut session).await? != (own, true) {
            return Ok(true);
        }
    }
    for holder in holders {
        holder.close().await?;
    }
    session.close().await?;
    Ok(false)
}

/// The server process behind a connection and whether the setting of the check holds in it, asked
/// without a prepared statement.
async fn backend(conn: &mut PgConnection) -> Result<(i32, bool), sqlx::Error> {
    let row = conn
        .fetch_one("SELECT pg_backend_pid(), coalesce(current_setting('tale.session_check', true), '') = 'here'")
        .await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// A bundle that holds no certificate would only be noticed by the first handshake.
async fn check_ca_file(path: Option<&Path>) -> Result<(), PoolError> {
    let Some(path) = path else { return Ok(()) };
    let reason = match tokio::fs::read_to_string(path).await {
        Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => return Ok(()),
        Ok(_) => "it holds no certificate in PEM form".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(PoolError::CaFile { path: path.to_owned(), reason })
}

fn refusal(name: &'static str, options: &PgConnectOptions, source: sqlx::Error) -> PoolError {
    let place = place(options);
    let handshake = match &source {
        sqlx::Error::Tls(_) => true,
        // what rustls makes of a certificate it does not trust
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    };
    if handshake { PoolError::Tls { name, place, source } } else { PoolError::Unreachable { name, place, source } }
}

/// Whether a server that answers like this may be on its way up.
fn may_come_up(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        // cannot_connect_now: it starts or recovers; too_many_connections
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

fn configured(config: &PoolConfig) -> PgPoolOptions {
    let max = config.max_connections.max(1);
    pool_options(max, KEPT_OPEN.min(max), IDLE_TIMEOUT)
        .after_connect(|connection, _| Box::pin(async move { connection.execute(SESSION).await.map(drop) }))
}

/// A pool of at most `max` connections that keeps `kept` of them open. What a session starts with is up to
/// the caller: [`SESSION`] at least.
pub(crate) fn pool_options(max: u32, kept: u32, idle: Duration) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(max.max(1))
        .min_connections(kept)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(idle)
        // a round trip before every statement would double the cost of the short ones
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for >= ASK_AFTER {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// Host, port and name of a database, safe to show.
fn place(options: &PgConnectOptions) -> String {
    let host =
        options.get_socket().map_or_else(|| options.get_host().to_owned(), |socket| socket.display().to_string());
    format!("{host}:{}/{}", options.get_port(), options.get_database().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> PoolConfig {
        PoolConfig { url: url.into(), max_connections: 2, ca_file: None, application_name: "tale" }
    }

    #[test]
    fn a_password_shows_in_no_message() {
        let good = config("postgres://tale:hunter2@db.example:5433/tale_app");
        assert!(!format!("{good:?}").contains("hunter2"));
        assert_eq!(place(&connect_options("application", &good).unwrap()), "db.example:5433/tale_app");
        let error = connect_options("application", &config("hunter2 is not a url")).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }
}
