//! The private Postgres, started for real in a temporary directory. As root, that directory is
//! closed to the user the server runs as, so these tests go through the kept capability as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sqlx::PgPool;
use tale_db::embedded::{EmbeddedError, EmbeddedPostgres, candidates};
use tale_db::migrate;

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn installations() -> Vec<PathBuf> {
    let bundled = tale_testkit::workspace().join(".cache/postgres/18.6.3");
    if bundled.exists() { vec![bundled] } else { candidates(None) }
}

async fn start(directory: &Path) -> EmbeddedPostgres {
    EmbeddedPostgres::start(directory, &installations()).await.unwrap()
}

async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    tokio::time::timeout(PATIENCE, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("within the bound on waiting");
}

fn server_pid(directory: &Path) -> Option<i32> {
    std::fs::read_to_string(directory.join("cluster/postmaster.pid")).ok()?.lines().next()?.parse().ok()
}

fn kill(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_new_directory_becomes_two_databases_that_are_still_there_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path()).await;
    let (app, knowledge) =
        (PgPool::connect(&server.app_url()).await.unwrap(), PgPool::connect(&server.knowledge_url()).await.unwrap());
    migrate::app(&app).await.unwrap();
    migrate::knowledge(&knowledge).await.unwrap();
    sqlx::query("CREATE TABLE app.kept (id int)").execute(&app).await.unwrap();
    let superuser: bool =
        sqlx::query_scalar("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetch_one(&app).await.unwrap();
    assert!(!superuser, "the application must not be a superuser");
    let encoding: String = sqlx::query_scalar("SHOW server_encoding").fetch_one(&app).await.unwrap();
    assert_eq!(encoding, "UTF8");
    app.close().await;
    knowledge.close().await;
    server.stop().await;
    assert_eq!(server_pid(place.path()), None);

    let again = start(place.path()).await;
    let app = PgPool::connect(&again.app_url()).await.unwrap();
    sqlx::query("SELECT FROM app.kept").execute(&app).await.unwrap();
    app.close().await;
    again.stop().await;
}

#[tokio::test]
async fn a_password_is_needed_and_only_loopback_listens() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path()).await;
    let wrong = format!("postgres://postgres:wrong@127.0.0.1:{}/postgres", server.port());
    let Err(sqlx::Error::Database(refused)) = PgPool::connect(&wrong).await else {
        panic!("a wrong password was accepted")
    };
    assert_eq!(refused.code().as_deref(), Some("28P01"));
    let app = PgPool::connect(&server.app_url()).await.unwrap();
    let listens: String = sqlx::query_scalar("SHOW listen_addresses").fetch_one(&app).await.unwrap();
    assert_eq!(listens, "127.0.0.1");
    app.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_alone_comes_back_where_the_pools_find_it() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path()).await;
    let app = PgPool::connect(&server.app_url()).await.unwrap();
    sqlx::query("CREATE TABLE kept AS SELECT 1 AS id").execute(&app).await.unwrap();
    // Killed, and stopped by a stranger.
    for round in 0..3 {
        let first = server_pid(place.path()).unwrap();
        kill(first, if round % 2 == 0 { rustix::process::Signal::KILL } else { rustix::process::Signal::INT });
        eventually(async || {
            server_pid(place.path()).is_some_and(|pid| pid != first)
                && sqlx::query("SELECT FROM kept").execute(&app).await.is_ok()
        })
        .await;
    }
    app.close().await;
    server.stop().await;
}

#[tokio::test]
async fn lost_or_damaged_passwords_are_set_anew_and_the_data_is_still_there() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path()).await;
    let app = PgPool::connect(&server.app_url()).await.unwrap();
    sqlx::query("CREATE TABLE kept (id int)").execute(&app).await.unwrap();
    app.close().await;
    let before = server.app_url();
    server.stop().await;
    let file = place.path().join("passwords");
    for damage in [None, Some("superuser=abc")] {
        match damage {
            None => std::fs::remove_file(&file).unwrap(),
            Some(text) => std::fs::write(&file, text).unwrap(),
        }
        let server = start(place.path()).await;
        assert_ne!(server.app_url(), before);
        let app = PgPool::connect(&server.app_url()).await.unwrap();
        sqlx::query("SELECT FROM kept").execute(&app).await.unwrap();
        app.close().await;
        server.stop().await;
    }
}

#[tokio::test]
async fn a_stale_pid_file_with_a_foreign_process_is_cleared_away() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await.stop().await;
    // A container restarts with the same small process numbers: ours belongs to somebody else now.
    let foreign = std::process::id();
    std::fs::write(place.path().join("cluster/postmaster.pid"), format!("{foreign}\n")).unwrap();
    std::fs::write(place.path().join("run/.s.PGSQL.1.lock"), format!("{foreign}\n")).unwrap();
    start(place.path()).await.stop().await;
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path()).await;
    let error = EmbeddedPostgres::start(place.path(), &installations()).await.unwrap_err();
    assert!(matches!(error, EmbeddedError::InUse(_)), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn a_cluster_of_another_major_version_is_refused_with_a_way_out() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await.stop().await;
    for (version, newer) in [("99", true), ("9", false)] {
        std::fs::write(place.path().join("cluster/PG_VERSION"), format!("{version}\n")).unwrap();
        let error = EmbeddedPostgres::start(place.path(), &installations()).await.unwrap_err();
        assert_eq!(matches!(error, EmbeddedError::ClusterNewer { found: 99, .. }), newer, "{error}");
        assert!(error.to_string().contains("TALE_EMBEDDED_POSTGRES_DIR"), "{error}");
    }
}

#[tokio::test]
async fn a_broken_cluster_ends_the_start_with_the_servers_own_words() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await.stop().await;
    std::fs::remove_dir_all(place.path().join("cluster/global")).unwrap();
    let error = EmbeddedPostgres::start(place.path(), &installations()).await.unwrap_err();
    assert!(matches!(&error, EmbeddedError::StartFailed { tail, .. } if tail.contains("global")), "{error}");
}

#[tokio::test]
async fn a_killed_program_takes_its_server_along_and_the_next_one_starts() {
    let place = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::the_program_that_is_killed", "--ignored", "--nocapture"])
        .env("TEST_EMBEDDED_DIRECTORY", place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(async || place.path().join("prepared").exists()).await;
    let server = server_pid(place.path()).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    start(place.path()).await.stop().await;
    eventually(async || !Path::new(&format!("/proc/{server}")).exists()).await;
}

/// Not a test by itself: the process that the test above kills.
#[tokio::test]
#[ignore = "started by a_killed_program_takes_its_server_along_and_the_next_one_starts"]
async fn the_program_that_is_killed() {
    let Ok(directory) = std::env::var("TEST_EMBEDDED_DIRECTORY") else { return };
    let _server = start(Path::new(&directory)).await;
    tokio::time::sleep(PATIENCE).await;
}
