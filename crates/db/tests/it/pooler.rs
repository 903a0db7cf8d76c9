//! A real PgBouncer between us and the server. Skipped, with a line that says so, where it is not
//! installed.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tale_core::net::HostPolicy;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tale_db::foreign::{Encryption, Foreign, ForeignConfig, ForeignError};
use tale_db::migrate;
use tale_db::pools::{self, PoolConfig, PoolError};
use tale_testkit::TestDb;

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(30);
/// PgBouncer refuses to run as root.
const NOBODY: u32 = 65534;

/// A running PgBouncer, ended with this value.
struct PgBouncer {
    process: Child,
    url: String,
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// `None` where the program is not installed.
async fn pgbouncer(directory: &Path, db: &TestDb, mode: &str, servers: u32) -> Option<PgBouncer> {
    let found = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| Path::new(path).exists());
    let Some(program) = found else {
        eprintln!("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)");
        return None;
    };
    let url = db.app_url();
    let server = PgConnectOptions::from_str(&url).unwrap();
    let (credentials, _) = url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (user, password) = credentials.split_once(':').unwrap();
    let port = free_port();
    let file = directory.join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={} user={user} password={password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = {mode}\ndefault_pool_size = {servers}\n",
        server.get_port()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    if rustix::process::getuid().is_root() {
        for path in [directory, &file] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let process = command.arg(&file).spawn().unwrap();
    let name = server.get_database().unwrap();
    let started = PgBouncer { process, url: format!("postgres://any:any@127.0.0.1:{port}/{name}") };
    tokio::time::timeout(PATIENCE, async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("PgBouncer listens");
    Some(started)
}

fn foreign(url: &str) -> ForeignConfig {
    let options = PgConnectOptions::from_str(url).unwrap();
    ForeignConfig {
        host: options.get_host().to_owned(),
        port: options.get_port(),
        database: options.get_database().unwrap().to_owned(),
        user: "any".to_owned(),
        password: "any".into(),
        encryption: Encryption::Disable,
        ca_file: None,
        policy: HostPolicy::PrivateAllowed,
        max_connections: 4,
    }
}

fn config(url: &str) -> PoolConfig {
    PoolConfig { url: url.to_owned(), max_connections: 4, ca_file: None, application_name: "tale" }
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_is_refused_with_the_reason() {
    let db = TestDb::new().await;
    for servers in [1, 2, 20] {
        let directory = tempfile::tempdir().unwrap();
        let Some(bouncer) = pgbouncer(directory.path(), &db, "transaction", servers).await else { return };
        let error = pools::refuse_transaction_pooler("operational", &config(&bouncer.url)).await.unwrap_err();
        assert!(matches!(error, PoolError::TransactionPooler { .. }), "{servers} servers: {error:?}");
        assert!(error.to_string().contains("pool_mode = session"), "{error}");
        let looked = Foreign::look(&foreign(&bouncer.url)).await;
        assert!(matches!(looked, Err(ForeignError::Pooler)), "{servers} servers: {looked:?}");
    }
}

#[tokio::test]
async fn a_pooler_in_session_mode_works_with_notifications_and_migrations() {
    let db = TestDb::new().await;
    let directory = tempfile::tempdir().unwrap();
    let Some(bouncer) = pgbouncer(directory.path(), &db, "session", 20).await else { return };
    let config = config(&bouncer.url);
    pools::refuse_transaction_pooler("operational", &config).await.unwrap();
    let pool = pools::connect("operational", &config).await.unwrap();
    migrate::app(&pool).await.unwrap();
    let mut listener = ChannelListener::new(&pool, &["tale_pooler_test"]);
    assert_eq!(listener.next().await, ChannelEvent::Resync);
    sqlx::query("SELECT pg_notify('tale_pooler_test', 'here')").execute(&pool).await.unwrap();
    let event = tokio::time::timeout(PATIENCE, listener.next()).await.unwrap();
    assert!(matches!(event, ChannelEvent::Notification { payload, .. } if payload == "here"));
}

#[tokio::test]
async fn a_direct_connection_is_no_pooler() {
    let db = TestDb::new().await;
    pools::refuse_transaction_pooler("operational", &config(&db.app_url())).await.unwrap();
}

#[tokio::test]
async fn a_server_that_comes_up_later_is_waited_for_and_a_wrong_password_is_not() {
    let db = TestDb::new().await;
    let port = free_port();
    let url = db.app_url();
    let server = PgConnectOptions::from_str(&url).unwrap();
    let (before, after) = url.split_once(&format!(":{}/", server.get_port())).unwrap();
    let waiting = config(&format!("{before}:{port}/{after}"));
    let upstream = format!("127.0.0.1:{}", server.get_port());
    let late = tokio::spawn(async move { pools::connect_when_up("operational", &waiting, PATIENCE).await });
    // Nothing listens before the first try has failed; then a relay to the server does.
    tokio::task::yield_now().await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let relay = tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = tokio::net::TcpStream::connect(&upstream).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    late.await.unwrap().unwrap();
    relay.abort();

    let (_, place) = url.split_once('@').unwrap();
    let wrong = config(&format!("postgres://postgres:wrong@{place}"));
    let refused = tokio::time::timeout(PATIENCE, pools::connect_when_up("operational", &wrong, 10 * PATIENCE)).await;
    assert!(matches!(refused.unwrap(), Err(PoolError::Unreachable { .. })));
}
