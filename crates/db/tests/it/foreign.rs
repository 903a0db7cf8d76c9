//! A database that an organization names, through the relay that judges its host.

use tale_core::net::HostPolicy;
use tale_db::foreign::{Encryption, FOREIGN_POOL_MAX, Foreign, ForeignConfig, ForeignError};
use tale_testkit::ForeignDb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn config(db: &ForeignDb) -> ForeignConfig {
    ForeignConfig {
        host: db.host.clone(),
        port: db.port,
        database: db.database.clone(),
        user: db.user.clone(),
        password: db.password.clone().into(),
        encryption: Encryption::Disable,
        ca_file: None,
        policy: HostPolicy::PrivateAllowed,
        max_connections: 100,
    }
}

#[tokio::test]
async fn a_host_that_may_not_be_called_gets_no_connection_however_it_is_written() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let db = ForeignDb::new().await;
    for host in ["127.0.0.1", "localhost", "::1", "2130706433", "0x7f000001"] {
        let config = ForeignConfig { host: host.into(), port, policy: HostPolicy::PublicOnly, ..config(&db) };
        let refused = Foreign::look(&config).await.unwrap_err();
        assert!(matches!(refused, ForeignError::Host(_)), "{host}: {refused:?}");
    }
    for host in ["169.254.169.254", "metadata.google.internal"] {
        let refused = Foreign::look(&ForeignConfig { host: host.into(), port, ..config(&db) }).await.unwrap_err();
        assert!(matches!(refused, ForeignError::Host(_)), "{host}: {refused:?}");
    }
    tokio::select! {
        biased;
        _ = listener.accept() => panic!("something was sent"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn the_stage_that_fails_is_named_and_nothing_is_made_before_everything_is_well() {
    let db = ForeignDb::without_vector().await;
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    for (case, reason) in [
        (ForeignConfig { host: "nowhere.invalid".into(), ..config(&db) }, "unresolved"),
        (ForeignConfig { port: gone, ..config(&db) }, "unreachable"),
        (ForeignConfig { password: "wrong".into(), ..config(&db) }, "login_refused"),
        (ForeignConfig { database: "nowhere".into(), ..config(&db) }, "database_missing"),
        (config(&db), "vector_missing"),
    ] {
        let failed = Foreign::open(&case).await.unwrap_err();
        assert_eq!(failed.reason(), reason, "{failed}");
        assert!(!format!("{failed:?} {case:?}").contains(&db.password), "{failed:?}");
    }
    assert!(Foreign::open(&config(&db)).await.unwrap_err().to_string().contains("CREATE EXTENSION vector;"));
    db.create_vector().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "ALTER DATABASE {} OWNER TO CURRENT_USER; REVOKE CREATE ON DATABASE {} FROM {}",
        db.database, db.database, db.user
    )))
    .execute(&db.rows)
    .await
    .unwrap();
    assert_eq!(Foreign::open(&config(&db)).await.unwrap_err().reason(), "not_allowed");
    let schemas: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_namespace WHERE nspname = 'private_knowledge'")
        .fetch_one(&db.rows)
        .await
        .unwrap();
    assert_eq!(schemas, 0);
}

#[tokio::test]
async fn an_open_database_holds_few_connections_and_is_the_one_that_was_opened() {
    let db = ForeignDb::new().await;
    let (one, two) = tokio::join!(async { Foreign::open(&config(&db)).await.unwrap() }, async {
        Foreign::open(&config(&db)).await.unwrap()
    });
    assert_eq!(one.identity(), two.identity());
    assert_eq!(one.pool().options().get_max_connections(), FOREIGN_POOL_MAX);
    assert_eq!(one.report().pg_search, None);
    sqlx::query("SELECT count(*) FROM private_knowledge.chunks").execute(one.pool()).await.unwrap();

    // The same address and another database: an operator has restored it, say.
    let other = ForeignDb::new().await;
    one.pool().set_connect_options(
        one.pool().connect_options().as_ref().clone().database(&other.database).username(&other.user),
    );
    db.cut().await;
    // Each connection that was open fails once.
    for _ in 0..=FOREIGN_POOL_MAX {
        sqlx::query("SELECT 1").execute(one.pool()).await.unwrap_err();
    }
    assert!(one.is_distrusted());
}

/// Reads a message of the driver; the first one has no kind before its length.
async fn message(client: &mut TcpStream, first: bool) -> Vec<u8> {
    if !first {
        client.read_u8().await.unwrap();
    }
    let mut body = vec![0; client.read_u32().await.unwrap() as usize - 4];
    client.read_exact(&mut body).await.unwrap();
    body
}

fn server(listener: &TcpListener) -> ForeignConfig {
    ForeignConfig {
        host: "127.0.0.1".into(),
        port: listener.local_addr().unwrap().port(),
        database: "tale".into(),
        user: "tale".into(),
        password: "a-long-secret".into(),
        encryption: Encryption::Disable,
        ca_file: None,
        policy: HostPolicy::PrivateAllowed,
        max_connections: 1,
    }
}

#[tokio::test]
async fn what_a_server_says_is_cut_and_does_not_repeat_the_password() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let config = server(&listener);
    let answering = async {
        let (mut client, _) = listener.accept().await.unwrap();
        message(&mut client, true).await;
        client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).await.unwrap();
        let mut password = message(&mut client, false).await;
        assert_eq!(password.pop(), Some(0));
        let password = String::from_utf8(password).unwrap();
        let said = format!("no entry for {password}\nanywhere {}{password}", "x".repeat(5_000));
        let body = format!("SFATAL\0VFATAL\0C28P01\0M{said}\0\0");
        client.write_u8(b'E').await.unwrap();
        client.write_u32(u32::try_from(body.len()).unwrap() + 4).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        password
    };
    let (looked, password) = tokio::join!(Foreign::look(&config), answering);
    assert_eq!(password, "a-long-secret");
    let failed = looked.unwrap_err();
    let detail = failed.detail().unwrap();
    assert!(detail.starts_with("no entry for ••• anywhere xx") && detail.chars().count() <= 301, "{detail}");
    assert!(!format!("{failed:?} {failed}").contains(&password), "{failed:?}");
}

#[tokio::test]
async fn a_server_that_sends_without_end_is_left_before_it_fills_the_memory() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let config = server(&listener);
    let streaming = async {
        let (mut client, _) = listener.accept().await.unwrap();
        message(&mut client, true).await;
        client.write_all(&[b'R', 0x7f, 0xff, 0xff, 0xf0]).await.unwrap();
        while client.write_all(&[0; 65_536]).await.is_ok() {}
    };
    let (looked, ()) = tokio::join!(Foreign::look(&config), streaming);
    let failed = looked.unwrap_err();
    assert_eq!((failed.stage(), failed.reason()), ("login", "server_refused"), "{failed}");
    assert!(failed.to_string().contains("it sent more than"), "{failed}");
}
