//! Brings the databases to this release's schema.
//!
//! Migrations are forward only and embedded in the binary. Replicas that start together take turns
//! on an advisory lock by *polling* `pg_try_advisory_lock`: one that waited inside
//! `pg_advisory_lock` would hold a snapshot, and `CREATE INDEX CONCURRENTLY` in the replica that
//! migrates would then deadlock with it. The bookkeeping tables are `app.schema_migrations` and
//! `private_knowledge.schema_migrations`, so that both schemas may share one database.

use std::time::Duration;

use sqlx::migrate::{MigrateError as SqlxMigrateError, Migrator};
use sqlx::{Connection, PgConnection, PgPool};

/// How long a replica waits for another one's migration.
pub const LOCK_WAIT: Duration = Duration::from_secs(10 * 60);
/// Pause between two tries to take the migration lock.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// Why a database could not be brought to this release's schema.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The data was written by a newer release.
    #[error(
        "the {database} database has migration {version}, which this release of Tale does not know: it was last used by a newer release. Start that release or a later one, or restore a backup from before the update"
    )]
    Newer {
        /// Which database.
        database: &'static str,
        /// The unknown migration.
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

/// The application database's migrations.
#[must_use]
pub fn app_migrator() -> Migrator {
    let mut migrator = sqlx::migrate!("../../migrations/app");
    migrator.set_locking(false);
    migrator.dangerous_set_table_name("app.schema_migrations");
    migrator.create_schema("app");
    migrator
}

/// The knowledge database's migrations.
#[must_use]
pub fn knowledge_migrator() -> Migrator {
    let mut migrator = sqlx::migrate!("../../migrations/knowledge");
    migrator.set_locking(false);
    migrator.dangerous_set_table_name("private_knowledge.schema_migrations");
    migrator.create_schema("private_knowledge");
    migrator
}

/// Applies what the application database lacks. Safe to call from several replicas at once.
///
/// # Errors
/// See [`MigrateError`]; nothing of a failed migration stays behind.
pub async fn app(pool: &PgPool) -> Result<(), MigrateError> {
    let mut conn = dedicated(pool, "application").await?;
    run(&mut conn, "application", &app_migrator()).await
}

/// Applies what the knowledge database lacks, creating the extension `vector` when we may.
///
/// # Errors
/// See [`MigrateError`]; nothing of a failed migration stays behind.
pub async fn knowledge(pool: &PgPool) -> Result<(), MigrateError> {
    let mut conn = dedicated(pool, "knowledge").await?;
    ensure_vector(&mut conn).await?;
    run(&mut conn, "knowledge", &knowledge_migrator()).await
}

/// A connection of its own: a migration may take longer than the pool's statement timeout allows,
/// and its session lock must end with it.
async fn dedicated(pool: &PgPool, database: &'static str) -> Result<PgConnection, MigrateError> {
    let failed = |source: sqlx::Error| MigrateError::Failed { database, source: source.into() };
    let options = pool.connect_options();
    let mut conn = PgConnection::connect_with(&options).await.map_err(failed)?;
    sqlx::query("SET statement_timeout = 0").execute(&mut conn).await.map_err(failed)?;
    Ok(conn)
}

async fn run(conn: &mut PgConnection, database: &'static str, migrator: &Migrator) -> Result<(), MigrateError> {
    let failed = |source: sqlx::Error| MigrateError::Failed { database, source: source.into() };
    lock(conn, database).await?;
    let result = migrator.run_direct(None, conn, false).await;
    sqlx::query("SELECT pg_advisory_unlock(hashtextextended('tale.migrate.' || $1, 0))")
        .bind(database)
        .execute(conn)
        .await
        .map_err(failed)?;
    result.map_err(|error| match error {
        SqlxMigrateError::VersionMissing(version) => MigrateError::Newer { database, version },
        SqlxMigrateError::VersionMismatch(version) => MigrateError::Changed { database, version },
        other => MigrateError::Failed { database, source: other.into() },
    })
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
    let numbers: Vec<u32> = found.split('.').map_while(|piece| piece.parse().ok()).collect();
    if numbers.as_slice() < [0, 7].as_slice() { Err(MigrateError::VectorTooOld { found }) } else { Ok(()) }
}
