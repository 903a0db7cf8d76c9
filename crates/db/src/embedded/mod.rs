//! The private Postgres of `tale dev`: initialized once, started and stopped with the program.
//!
//! Everything lies in one directory:
//!
//! ```text
//! cluster/    the Postgres data directory, owned by the user Postgres runs as
//! run/        its socket directory, 0700
//! passwords   superuser and application role, 0600
//! log         what the server says
//! prepared    written once databases, role and extension exist
//! lock        held as long as a program uses the directory
//! ```
//!
//! Postgres refuses to run as root, so root hands over to an unprivileged user (see
//! [`privileges`]). Connections need a SCRAM password and come through the socket or loopback. The
//! application uses a role without superuser rights that owns its two databases.
//!
//! **Stopping.** [`EmbeddedPostgres::stop`] is a fast shutdown. When the program is killed, the
//! kernel sends the server the same signal. When the server dies alone, it is started again on the
//! same port, where the pools find it, for as long as that takes. A leftover `postmaster.pid`,
//! sockets and an unclean stop are cleared up by the next start: Postgres replays its log. Never is
//! a server started while a process of an earlier one still holds the cluster. Passwords that were
//! lost are set anew: whoever owns the cluster's files may do so.
//!
//! **Cost.** An existing directory is ready a few milliseconds after the server says so: its status
//! is polled every [`READY_POLL`], and nothing is executed in between. The server itself holds
//! about 40 MiB.

mod binaries;
mod cluster;
mod error;
mod privileges;
mod server;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tracing::{info, warn};

pub use binaries::{Binaries, candidates};
pub use error::{EmbeddedError, says_disk_full};

use cluster::{Layout, Passwords};
use server::Server;

/// How often the server's status is looked at while it starts.
const READY_POLL: Duration = Duration::from_millis(5);
/// Names of the two databases.
const APP_DATABASE: &str = "tale_app";
const KNOWLEDGE_DATABASE: &str = "tale_knowledge";
/// The application's role.
const ROLE: &str = "tale";
/// Longest path a socket address can hold on every system, less what Postgres appends.
const SOCKET_DIRECTORY_MAX: usize = 80;

/// A running private Postgres. Dropping it asks the server to stop without waiting for it.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    server: Server,
    layout: Layout,
    passwords: Passwords,
    // Held until the server has stopped: the fields drop in this order.
    _lock: File,
}

impl EmbeddedPostgres {
    /// Starts the server of `directory`, creating it when it is empty, and returns when it accepts
    /// connections and both databases exist. `candidates` are the installations to look at, the
    /// first usable one wins; see [`candidates`].
    ///
    /// # Errors
    /// See [`EmbeddedError`]; every message says what to do.
    pub async fn start(directory: &Path, candidates: &[PathBuf]) -> Result<Self, EmbeddedError> {
        let layout = Layout::create(directory)?;
        let lock = layout.lock()?;
        let binaries = Binaries::find(candidates)?;
        let user = privileges::User::for_server(&layout.cluster(), &[directory, &binaries.directory])?;
        let fresh = !layout.cluster().join("PG_VERSION").exists();
        let passwords = layout.passwords()?;
        if fresh {
            info!("creating a private database in {}", directory.display());
            let (layout, binaries, user, passwords) = (layout.clone(), binaries.clone(), user, passwords.clone());
            blocking(move || cluster::initialize(&layout, &binaries, &user, &passwords)).await?;
        } else {
            cluster::check_version(&layout, &binaries)?;
            user.take_over(&layout.cluster())?;
        }
        user.take_over(&layout.run())?;
        layout.clear_remains().await?;
        if passwords.renewed && !fresh {
            warn!("{} was lost; the private database gets new passwords", layout.password_file().display());
            let (layout, binaries, passwords) = (layout.clone(), binaries.clone(), passwords.clone());
            blocking(move || cluster::set_passwords(&layout, &binaries, &user, &passwords)).await?;
        }
        let server = Server::start(&layout, &binaries, &user).await?;
        let started = Self { server, layout, passwords, _lock: lock };
        if !started.layout.prepared().exists() {
            started.prepare().await?;
        }
        Ok(started)
    }

    /// Address of the application database. Holds a password.
    #[must_use]
    pub fn app_url(&self) -> String {
        self.url(APP_DATABASE)
    }

    /// Address of the knowledge database. Holds a password.
    #[must_use]
    pub fn knowledge_url(&self) -> String {
        self.url(KNOWLEDGE_DATABASE)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Stops the server: no new connections, open ones are cut, everything is on disk. Close the
    /// pools first.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    fn url(&self, database: &str) -> String {
        let place = format!(
            "postgres://{ROLE}:{}@127.0.0.1:{}/{database}?sslmode=disable",
            self.passwords.role,
            self.server.port()
        );
        match self.layout.socket_directory() {
            Some(directory) => format!("{place}&host={}", percent_encoded(&directory)),
            None => place,
        }
    }

    /// Creates role, databases and extension. Safe to repeat after a crash half-way.
    async fn prepare(&self) -> Result<(), EmbeddedError> {
        let mut options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.server.port())
            .username("postgres")
            .password(&self.passwords.superuser)
            .database("postgres")
            .ssl_mode(PgSslMode::Disable)
            .disable_statement_logging();
        if let Some(directory) = self.layout.socket_directory() {
            options = options.socket(directory);
        }
        let mut admin = PgConnection::connect_with(&options).await.map_err(EmbeddedError::Prepare)?;
        let missing = |kind: bool| {
            if kind {
                "SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
            } else {
                "SELECT NOT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
            }
        };
        if query_flag(&mut admin, missing(true), ROLE).await? {
            // The name and the password are ours: a constant and hexadecimal digits.
            run(&mut admin, format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{}'", self.passwords.role)).await?;
        }
        for database in [APP_DATABASE, KNOWLEDGE_DATABASE] {
            if query_flag(&mut admin, missing(false), database).await? {
                run(&mut admin, format!("CREATE DATABASE {database} OWNER {ROLE}")).await?;
            }
        }
        let _ = admin.close().await;
        let mut knowledge =
            PgConnection::connect_with(&options.database(KNOWLEDGE_DATABASE)).await.map_err(EmbeddedError::Prepare)?;
        run(&mut knowledge, "CREATE EXTENSION IF NOT EXISTS vector".to_owned()).await?;
        let _ = knowledge.close().await;
        std::fs::write(self.layout.prepared(), "1\n")
            .map_err(|source| EmbeddedError::io(&self.layout.prepared(), source))
    }
}

async fn query_flag(conn: &mut PgConnection, statement: &'static str, name: &str) -> Result<bool, EmbeddedError> {
    sqlx::query_scalar(statement).bind(name).fetch_one(conn).await.map_err(EmbeddedError::Prepare)
}

async fn run(conn: &mut PgConnection, statement: String) -> Result<(), EmbeddedError> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.map_err(EmbeddedError::Prepare)?;
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EmbeddedError> + Send + 'static,
) -> Result<T, EmbeddedError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(EmbeddedError::Interrupted))
}

/// A path as a query value.
fn percent_encoded(path: &Path) -> String {
    path.to_string_lossy().bytes().fold(String::new(), |mut text, byte| {
        use std::fmt::Write;
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
