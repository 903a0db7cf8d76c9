//! Brings the databases to this release's schema.
//!
//! Migrations are forward only and embedded in the binary. Replicas that start together take turns
//! on an advisory lock by *polling* `pg_try_advisory_lock`: one that waited inside
//! `pg_advisory_lock` would hold a snapshot, and `CREATE INDEX CONCURRENTLY` in the replica that
//! migrates would then deadlock with it. The bookkeeping tables are `app.schema_migrations` and
//! `private_knowledge.schema_migrations`, so that both schemas may share one database.
//!
//! **Two releases side by side.** During a rollout the previous release goes on serving, and its
//! replicas may restart, on a database that the new one has migrated. So every migration keeps the
//! previous release working (expand), and what takes something away (contract) comes a release
//! later. Such a file says so in a line of its own:
//!
//! ```sql
//! -- oldest: 12
//! ```
//!
//! "Programs that do not have migration 12 no longer work with this database." The highest of these
//! is kept in `schema_floor`; a program that finds migrations it does not know starts if its own
//! reach up to there, and refuses otherwise.

use std::time::Duration;

use sqlx::migrate::{Migrate, Migration, Migrator};
use sqlx::{Connection, PgConnection, PgPool};
use tracing::{info, warn};

/// How long a replica waits for another one's migration.
pub const LOCK_WAIT: Duration = Duration::from_secs(10 * 60);
/// Pause between two tries to take the migration lock.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// Why a database could not be brought to this release's schema.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A newer release has changed the data in a way that this one cannot work with.
    #[error(
        "the {database} database needs migration {version}, which this release of Tale does not have: it was last used by a newer release. Start that release or a later one, or restore a backup from before the update"
    )]
    Newer {
        /// Which database.
        database: &'static str,
        /// What a program must have at least.
        version: i64,
    },
    /// An applied migration is not the one this release has under the same number.
    #[error(
        "migration {version} of the {database} database differs from the one in this release; the database belongs to another build of Tale"
    )]
    Changed {
        /// Which database.
        database: &'static str,
        /// The differing migration.
        version: i64,
    },
    /// pgvector is not there and we may not create it.
    #[error(
        "the knowledge database needs the extension `vector` (pgvector 0.7 or newer). Connect to it as a superuser and run: CREATE EXTENSION vector;"
    )]
    VectorMissing(#[source] sqlx::Error),
    /// pgvector is older than what the schema uses.
    #[error(
        "the knowledge database has pgvector {found}, Tale needs 0.7 or newer. Install a newer pgvector on the server, then connect as a superuser and run: ALTER EXTENSION vector UPDATE;"
    )]
    VectorTooOld {
        /// The installed version.
        found: String,
    },
    /// Another replica has been migrating for longer than [`LOCK_WAIT`].
    #[error("another process has held the migration lock of the {database} database for {} minutes", LOCK_WAIT.as_secs() / 60)]
    LockTimeout {
        /// Which database.
        database: &'static str,
    },
    /// A statement failed.
    #[error("the {database} database could not be migrated")]
    Failed {
        /// Which database.
        database: &'static str,
        /// What the server or the driver said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl MigrateError {
    /// With its cause, in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Failed { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }
}

/// One of the two databases, as the migrator sees it.
struct Database {
    /// What people call it.
    name: &'static str,
    schema: &'static str,
    ledger: &'static str,
    create_floor: &'static str,
    read_floor: &'static str,
    raise_floor: &'static str,
}

const APP: Database = Database {
    name: "application",
    schema: "app",
    ledger: "app.schema_migrations",
    create_floor: "DO $$ BEGIN IF to_regclass('app.schema_floor') IS NULL THEN
         CREATE TABLE app.schema_floor (version bigint NOT NULL);
         COMMENT ON TABLE app.schema_floor IS 'Oldest migration that a program must have to work with this database';
         END IF; END $$",
    read_floor: "SELECT coalesce(max(version), 0) FROM app.schema_floor",
    raise_floor: "INSERT INTO app.schema_floor (version) VALUES ($1)",
};

const KNOWLEDGE: Database = Database {
    name: "knowledge",
    schema: "private_knowledge",
    ledger: "private_knowledge.schema_migrations",
    create_floor: "DO $$ BEGIN IF to_regclass('private_knowledge.schema_floor') IS NULL THEN
         CREATE TABLE private_knowledge.schema_floor (version bigint NOT NULL);
         COMMENT ON TABLE private_knowledge.schema_floor IS 'Oldest migration that a program must have to work with this database';
         END IF; END $$",
    read_floor: "SELECT coalesce(max(version), 0) FROM private_knowledge.schema_floor",
    raise_floor: "INSERT INTO private_knowledge.schema_floor (version) VALUES ($1)",
};

/// The application database's migrations.
#[must_use]
pub fn app_migrator() -> Migrator {
    sqlx::migrate!("../../migrations/app")
}

/// The knowledge database's migrations.
#[must_use]
pub fn knowledge_migrator() -> Migrator {
    sqlx::migrate!("../../migrations/knowledge")
}

/// Applies what the application database lacks. Safe to call from several replicas at once.
///
/// # Errors
/// See [`MigrateError`]; nothing of a failed migration stays behind.
pub async fn app(pool: &PgPool) -> Result<(), MigrateError> {
    let mut conn = dedicated(pool, APP.name).await?;
    run(&mut conn, &APP, &app_migrator()).await
}

/// Applies what the knowledge database lacks, creating the extension `vector` when we may.
///
/// # Errors
/// See [`MigrateError`]; nothing of a failed migration stays behind.
pub async fn knowledge(pool: &PgPool) -> Result<(), MigrateError> {
    let mut conn = dedicated(pool, KNOWLEDGE.name).await?;
    ensure_vector(&mut conn).await?;
    run(&mut conn, &KNOWLEDGE, &knowledge_migrator()).await
}

/// [`knowledge`] for a database that is not ours to change beyond our schema: extensions are up to
/// whoever it belongs to.
pub(crate) async fn foreign_knowledge(pool: &PgPool) -> Result<(), MigrateError> {
    let mut conn = dedicated(pool, KNOWLEDGE.name).await?;
    run(&mut conn, &KNOWLEDGE, &knowledge_migrator()).await
}

/// A connection of its own, without the pool's statement timeout: a migration may take longer, and
/// its session lock must end with it.
async fn dedicated(pool: &PgPool, database: &'static str) -> Result<PgConnection, MigrateError> {
    let options = pool.connect_options();
    PgConnection::connect_with(&options)
        .await
        .map_err(|source| MigrateError::Failed { database, source: source.into() })
}

async fn run(conn: &mut PgConnection, database: &'static Database, migrator: &Migrator) -> Result<(), MigrateError> {
    let name = database.name;
    lock(conn, name).await?;
    let result = apply(conn, database, migrator).await;
    let unlocked = sqlx::query("SELECT pg_advisory_unlock(hashtextextended('tale.migrate.' || $1, 0))")
        .bind(name)
        .execute(conn)
        .await;
    result?;
    unlocked.map(drop).map_err(|source| MigrateError::Failed { database: name, source: source.into() })
}

/// Applies what is missing, in order, one transaction each.
async fn apply(conn: &mut PgConnection, database: &Database, migrator: &Migrator) -> Result<(), MigrateError> {
    let name = database.name;
    let step = |source: sqlx::migrate::MigrateError| MigrateError::Failed { database: name, source: source.into() };
    let failed = |source: sqlx::Error| MigrateError::Failed { database: name, source: source.into() };
    conn.create_schema_if_not_exists(database.schema).await.map_err(step)?;
    conn.ensure_migrations_table(database.ledger).await.map_err(step)?;
    sqlx::query(database.create_floor).execute(&mut *conn).await.map_err(failed)?;
    let applied = conn.list_applied_migrations(database.ledger).await.map_err(step)?;

    let own = migrator.iter().map(|migration| migration.version).max().unwrap_or(0);
    let floor: i64 = sqlx::query_scalar(database.read_floor).fetch_one(&mut *conn).await.map_err(failed)?;
    if floor > own {
        return Err(MigrateError::Newer { database: name, version: floor });
    }
    if let Some(ahead) = applied.iter().map(|migration| migration.version).max().filter(|ahead| *ahead > own) {
        warn!(
            event = "database.newer",
            "the {name} database is used by a newer release as well (migration {ahead}, this program has {own})"
        );
    }
    for migration in migrator.iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            Some(applied) if applied.checksum != migration.checksum => {
                return Err(MigrateError::Changed { database: name, version: migration.version });
            }
            Some(_) => {}
            None => {
                info!(
                    event = "database.migrating",
                    "applying {} migration {:04}_{}", database.schema, migration.version, migration.description
                );
                // First the floor: a crash in between must not let an old program in too long.
                if let Some(oldest) = oldest_program(migration) {
                    sqlx::query(database.raise_floor).bind(oldest).execute(&mut *conn).await.map_err(failed)?;
                }
                conn.apply(database.ledger, migration).await.map_err(step)?;
            }
        }
    }
    Ok(())
}

/// The `-- oldest: N` line of a migration.
fn oldest_program(migration: &Migration) -> Option<i64> {
    migration.sql.as_str().lines().find_map(|line| line.trim().strip_prefix("-- oldest:")?.trim().parse().ok())
}

async fn lock(conn: &mut PgConnection, database: &'static str) -> Result<(), MigrateError> {
    let attempt = async {
        loop {
            let taken: bool =
                sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended('tale.migrate.' || $1, 0))")
                    .bind(database)
                    .fetch_one(&mut *conn)
                    .await
                    .map_err(|source| MigrateError::Failed { database, source: source.into() })?;
            if taken {
                return Ok(());
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
    };
    tokio::time::timeout(LOCK_WAIT, attempt).await.unwrap_or(Err(MigrateError::LockTimeout { database }))
}

async fn ensure_vector(conn: &mut PgConnection) -> Result<(), MigrateError> {
    let failed = |source: sqlx::Error| MigrateError::Failed { database: "knowledge", source: source.into() };
    let version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'";
    let mut found: Option<String> = sqlx::query_scalar(version).fetch_optional(&mut *conn).await.map_err(failed)?;
    if found.is_none() {
        let created = sqlx::query("CREATE EXTENSION IF NOT EXISTS vector").execute(&mut *conn).await;
        found = sqlx::query_scalar(version).fetch_optional(&mut *conn).await.map_err(failed)?;
        if let (Err(source), None) = (created, &found) {
            return Err(MigrateError::VectorMissing(source));
        }
    }
    let found = found.unwrap_or_default();
    if is_too_old(&found) { Err(MigrateError::VectorTooOld { found }) } else { Ok(()) }
}

/// Whether a version of pgvector lacks what the schema uses.
pub(crate) fn is_too_old(vector: &str) -> bool {
    let numbers: Vec<u32> = vector.split('.').map_while(|piece| piece.parse().ok()).collect();
    numbers.as_slice() < [0, 7].as_slice()
}
