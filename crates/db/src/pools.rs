//! Bounded connection pools.
//!
//! Every connection carries a statement timeout, so that a lost plan or a lock that nobody
//! releases ends as an error instead of a request that hangs. A pool opens connections when they
//! are needed and closes them again when they idle: an idle process holds one or none.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection, PgConnection, PgPool};

/// How long a request waits for a free connection before it answers that the database is busy.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that did not answer is asked once more for the reason.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one statement may run. Longer work belongs into steps of a job.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a transaction may wait for its client before the server ends it.
pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);
/// A connection that stood unused for this long is asked whether it still lives before it is used.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// How long a connection may stand unused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Where a database is and how many connections this process may hold to it.
#[derive(Clone)]
pub struct PoolConfig {
    /// `postgres://USER:PASSWORD@HOST:PORT/NAME`, with the usual query parameters.
    pub url: String,
    /// Upper bound of open connections.
    pub max_connections: u32,
    /// PEM file with the certificate authority of the server, when it is not a public one.
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
    #[error("the address of the {0} database cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/NAME")]
    BadUrl(&'static str),
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
        .options([
            ("statement_timeout", STATEMENT_TIMEOUT.as_millis().to_string()),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT.as_millis().to_string()),
        ]);
    if let Some(file) = &config.ca_file {
        options = options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert(file);
    }
    Ok(options)
}

/// A pool that connects on first use. Nothing is sent to the server yet.
///
/// # Errors
/// [`PoolError::BadUrl`] when the address does not parse.
pub fn connect_lazy(name: &'static str, config: &PoolConfig) -> Result<PgPool, PoolError> {
    Ok(pool_options(config).connect_lazy_with(connect_options(name, config)?))
}

/// Opens a pool and one connection in it, so that a wrong address or password shows at start.
///
/// # Errors
/// [`PoolError::BadUrl`] for an address that does not parse, [`PoolError::Unreachable`] when the
/// server does not accept the connection within [`ACQUIRE_TIMEOUT`].
pub async fn connect(name: &'static str, config: &PoolConfig) -> Result<PgPool, PoolError> {
    let options = connect_options(name, config)?;
    let place = place(&options);
    match pool_options(config).connect_with(options.clone()).await {
        Ok(pool) => Ok(pool),
        // The pool waits for a server that refuses connections; one connection says why it could not.
        Err(sqlx::Error::PoolTimedOut) => {
            let attempt = PgConnection::connect_with(&options);
            let source = match tokio::time::timeout(REASON_TIMEOUT, attempt).await {
                Ok(Ok(_late)) => return Ok(pool_options(config).connect_lazy_with(options)),
                Ok(Err(reason)) => reason,
                Err(_silent) => sqlx::Error::PoolTimedOut,
            };
            Err(PoolError::Unreachable { name, place, source })
        }
        Err(source) => Err(PoolError::Unreachable { name, place, source }),
    }
}

fn pool_options(config: &PoolConfig) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(config.max_connections.max(1))
        .min_connections(0)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
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
