//! A fresh pair of migrated databases for one test.
//!
//! The pair is cloned from templates that are migrated once per state of the migrations, so a test
//! pays for two `CREATE DATABASE … TEMPLATE` (some tens of milliseconds) and nothing else. The
//! server is the one of `scripts/test-services`, started here when it does not run; set
//! `TEST_DATABASE_URL` to a superuser of another server to use that one.

use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tale_core::crypto::{hex_of, sha256};
use tale_db::migrate;

/// Connections one test may hold to each of its databases.
const TEST_POOL: u32 = 8;
/// Numbers the databases of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A migrated application database and a migrated knowledge database, both empty and both dropped
/// with this value.
#[derive(Debug)]
pub struct TestDb {
    /// The application database.
    pub app: PgPool,
    /// The knowledge database.
    pub knowledge: PgPool,
    app_name: String,
    knowledge_name: String,
    server: PgConnectOptions,
    server_url: String,
}

impl TestDb {
    /// Makes the pair.
    ///
    /// # Panics
    /// When no test server can be reached or started; the message says what to do.
    pub async fn new() -> Self {
        let (mut admin, server, server_url) = connect().await;
        let template = ensure_templates(&mut admin, &server).await;
        Self::from_templates(admin, server, server_url, [&format!("{template}_app"), &format!("{template}_knowledge")])
            .await
    }

    /// Two databases without any table, for tests of what makes the tables.
    ///
    /// # Panics
    /// As [`TestDb::new`].
    pub async fn empty() -> Self {
        let (admin, server, server_url) = connect().await;
        Self::from_templates(admin, server, server_url, ["template1", "template1"]).await
    }

    async fn from_templates(
        mut admin: PgConnection,
        server: PgConnectOptions,
        server_url: String,
        templates: [&str; 2],
    ) -> Self {
        sweep(&mut admin).await;
        let stem = name();
        let (app_name, knowledge_name) = (format!("{stem}_app"), format!("{stem}_knowledge"));
        for (name, template) in [&app_name, &knowledge_name].into_iter().zip(templates) {
            run(&mut admin, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
            run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        }
        let _ = admin.close().await;
        Self {
            app: pool(&server, &app_name),
            knowledge: pool(&server, &knowledge_name),
            app_name,
            knowledge_name,
            server,
            server_url,
        }
    }

    /// The application database's address, for a process or a connection of its own.
    #[must_use]
    pub fn app_url(&self) -> String {
        self.url_of(&self.app_name)
    }

    /// The knowledge database's address, for a process or a connection of its own.
    #[must_use]
    pub fn knowledge_url(&self) -> String {
        self.url_of(&self.knowledge_name)
    }

    fn url_of(&self, name: &str) -> String {
        let (place, _) = self.server_url.rsplit_once('/').unwrap_or((&self.server_url, ""));
        format!("{place}/{name}")
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let (server, names) = (self.server.clone(), [self.app_name.clone(), self.knowledge_name.clone()]);
        // A thread with a runtime of its own: the test's runtime cannot block here.
        let dropped = std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let Ok(mut admin) = PgConnection::connect_with(&server).await else { return };
                for name in names {
                    let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
                    let _ = sqlx::raw_sql(drop).execute(&mut admin).await;
                }
            });
        });
        let _ = dropped.join();
    }
}

/// What a database or a role of this process starts with.
pub(crate) fn name() -> String {
    format!("tale_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn pool(server: &PgConnectOptions, name: &str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(TEST_POOL)
        .acquire_timeout(Duration::from_secs(20))
        .test_before_acquire(false)
        .connect_lazy_with(server.clone().database(name))
}

/// The workspace this crate was built in.
#[must_use]
pub fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A connection to the test server, which is started when it does not run, and its address.
pub(crate) async fn connect() -> (PgConnection, PgConnectOptions, String) {
    if let Some(url) = std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty()) {
        return open(url)
            .await
            .unwrap_or_else(|error| panic!("the server of TEST_DATABASE_URL does not answer: {error}"));
    }
    if let Some(url) = shared_server_url()
        && let Ok(opened) = open(url).await
    {
        return opened;
    }
    let started = Command::new(workspace().join("scripts/test-services")).arg("start").status();
    assert!(started.is_ok_and(|status| status.success()), "scripts/test-services start failed; its output says why");
    let url = shared_server_url().expect("target/test-services/env names no TEST_DATABASE_URL");
    open(url).await.unwrap_or_else(|error| panic!("the test server does not answer: {error}"))
}

async fn open(url: String) -> Result<(PgConnection, PgConnectOptions, String), sqlx::Error> {
    let options = PgConnectOptions::from_str(&url)?;
    Ok((PgConnection::connect_with(&options).await?, options, url))
}

/// The address that `scripts/test-services` wrote.
fn shared_server_url() -> Option<String> {
    let text = std::fs::read_to_string(workspace().join("target/test-services/env")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("TEST_DATABASE_URL=")).map(str::to_owned)
}

/// Counts the states of the tables that the migrator keeps for itself.
const BOOKKEEPING: u8 = 3;

/// Makes the templates of the present migrations unless they exist; returns their common stem.
async fn ensure_templates(admin: &mut PgConnection, server: &PgConnectOptions) -> String {
    let mut digest: Vec<u8> = [migrate::app_migrator(), migrate::knowledge_migrator()]
        .iter()
        .flat_map(|migrator| {
            migrator
                .iter()
                .flat_map(|migration| [&migration.version.to_be_bytes(), &migration.checksum[..]].concat())
                .collect::<Vec<u8>>()
        })
        .collect();
    digest.push(BOOKKEEPING);
    let stem = format!("tale_template_{}", &hex_of(&sha256(&digest))[..16]);
    if exists(admin, &format!("{stem}_knowledge")).await {
        return stem;
    }
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock(hashtext('tale_testkit_template'))")
        .fetch_one(&mut *admin)
        .await
        .expect("the template lock")
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The knowledge template comes last, so its name says that both are whole.
    for kind in ["app", "knowledge"] {
        let (name, draft) = (format!("{stem}_{kind}"), format!("{stem}_{kind}_draft"));
        if exists(admin, &name).await {
            continue;
        }
        run(admin, format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)")).await;
        run(admin, format!("CREATE DATABASE {draft}")).await;
        let pool = pool(server, &draft);
        let migrated = if kind == "app" { migrate::app(&pool).await } else { migrate::knowledge(&pool).await };
        pool.close().await;
        if let Err(error) = migrated {
            panic!("the migrations of the {kind} database fail: {}", chain(&error));
        }
        run(admin, format!("ALTER DATABASE {draft} RENAME TO {name}")).await;
    }
    run(admin, "SELECT pg_advisory_unlock(hashtext('tale_testkit_template'))".to_owned()).await;
    stem
}

async fn exists(admin: &mut PgConnection, name: &str) -> bool {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(admin)
        .await
        .expect("the list of databases")
}

/// Drops what tests left that were killed: databases named after a process that is gone.
async fn sweep(admin: &mut PgConnection) {
    let names: Vec<String> =
        sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE datname LIKE 'tale\\_test\\_%' LIMIT 64")
            .fetch_all(&mut *admin)
            .await
            .unwrap_or_default();
    for name in names {
        let owner = name.split('_').nth(2).unwrap_or_default();
        let gone = owner.parse::<u32>().is_ok() && !PathBuf::from("/proc").join(owner).exists();
        if gone {
            let _ = sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
                .execute(&mut *admin)
                .await;
            if let Some(stem) = name.strip_suffix("_own") {
                let role = AssertSqlSafe(format!("DROP ROLE IF EXISTS {stem}_role"));
                let _ = sqlx::raw_sql(role).execute(&mut *admin).await;
            }
        }
    }
}

pub(crate) async fn run(admin: &mut PgConnection, statement: String) {
    let shown = statement.clone();
    if let Err(error) = sqlx::raw_sql(AssertSqlSafe(statement)).execute(admin).await {
        panic!("{shown}: {error}");
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
