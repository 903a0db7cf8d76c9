//! Why the private Postgres does not run, in words that say what to do.

use std::path::{Path, PathBuf};

/// A start that failed.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No installation was found.
    #[error(
        "no Postgres to start was found. Looked in: {}. Run `scripts/setup` in a checkout, install PostgreSQL 15 or newer with pgvector (Debian: apt-get install postgresql postgresql-18-pgvector), name an installation in TALE_EMBEDDED_POSTGRES_DIR, or set DATABASE_URL and KNOWLEDGE_DATABASE_URL to a server of your own",
        list(.looked_in)
    )]
    NotFound {
        /// The places looked at, with what was missing there.
        looked_in: Vec<String>,
    },
    /// Another program uses the directory.
    #[error("{} is in use by another running tale. Stop that one, or choose another --data-dir", .0.display())]
    InUse(PathBuf),
    /// The cluster is of a newer Postgres.
    #[error("{} was written by PostgreSQL {found}, the one here is {ours}. Start the newer Tale that created it, or name a PostgreSQL {found} in TALE_EMBEDDED_POSTGRES_DIR", .directory.display())]
    ClusterNewer {
        /// The cluster.
        directory: PathBuf,
        /// Its major version.
        found: u32,
        /// The major version of the binaries.
        ours: u32,
    },
    /// The cluster is of an older Postgres.
    #[error("{} was written by PostgreSQL {found}, the one here is {ours}, which cannot read it. Name a PostgreSQL {found} with pgvector in TALE_EMBEDDED_POSTGRES_DIR, or move the data with pg_dump", .directory.display())]
    ClusterOlder {
        /// The cluster.
        directory: PathBuf,
        /// Its major version.
        found: u32,
        /// The major version of the binaries.
        ours: u32,
    },
    /// The passwords of an existing cluster are gone and it does not take new ones.
    #[error("{} is lost, and the database beside it did not take new passwords: {said}. Restore the file from a backup", .file.display())]
    PasswordsLost {
        /// The file.
        file: PathBuf,
        /// What Postgres said.
        said: String,
    },
    /// The disk is full.
    #[error("the disk that holds {} is full. Free some space there, then start again; nothing is lost", .0.display())]
    DiskFull(PathBuf),
    /// No user to run Postgres as.
    #[error(
        "Postgres refuses to run as root, and {reason}. Start tale as an ordinary user, or keep its data outside of private directories"
    )]
    NoUser {
        /// What is in the way.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// `initdb` failed.
    #[error("the private database could not be created: {0}")]
    InitFailed(String),
    /// The server ended while it started.
    #[error("the private database did not start. The end of {}: {tail}", .log.display())]
    StartFailed {
        /// The server's log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// An earlier server of the directory does not stop.
    #[error("an earlier Postgres (process {pid}) still uses {} and does not stop. End it with: kill -INT {pid}", .directory.display())]
    StillRunning {
        /// Its process.
        pid: i32,
        /// The cluster.
        directory: PathBuf,
    },
    /// The server runs, but its databases could not be created.
    #[error("the private database runs, but could not be prepared")]
    Prepare(#[source] sqlx::Error),
    /// The program is stopping.
    #[error("the start was interrupted")]
    Interrupted,
}

impl EmbeddedError {
    /// An I/O error at `path`, or [`EmbeddedError::DiskFull`].
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::StorageFull {
            Self::DiskFull(path.to_owned())
        } else {
            Self::Io { path: path.to_owned(), source }
        }
    }
}

/// Whether the output of a Postgres program says that the disk is full.
#[must_use]
pub fn says_disk_full(output: &str) -> bool {
    ["No space left on device", "Disk quota exceeded", "Check free disk space"]
        .iter()
        .any(|words| output.contains(words))
}

fn list(places: &[String]) -> String {
    if places.is_empty() { "nowhere".to_owned() } else { places.join("; ") }
}
