//! `tale serve object-store`: the real program, our client and a foreign one.

use std::process::{Command, Output};
use std::sync::Arc;

use axum::body::Bytes;
use tale_blobs::{BlobKey, Blobs, StoreConfig};
use tale_core::clock::SystemClock;
use tokio::io::AsyncWriteExt;

use crate::roles::{PATIENCE, PAUSE, Process, healthcheck};

fn start(folder: &tempfile::TempDir) -> Process {
    let pairs = [
        ("ROLE", "object-store".to_owned()),
        ("OBJECT_STORE_ACCESS_KEY", "tale".to_owned()),
        ("OBJECT_STORE_SECRET_KEY", "a-secret-of-ours".to_owned()),
        ("TALE_DATA_DIR", folder.path().join("data").display().to_string()),
    ];
    Process::start(&folder.path().join("log"), &pairs)
}

fn ours(store: &Process) -> Blobs {
    let config = StoreConfig {
        endpoint: store.address().parse().unwrap(),
        public_endpoint: None,
        site_origins: vec![],
        region: "us-east-1".into(),
        bucket: "tale-blobs".into(),
        prefix: String::new(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "a-secret-of-ours".into(),
    };
    Blobs::new(config, Arc::new(SystemClock)).unwrap()
}

/// A client that knows S3 and nothing of us; the status it got, after the body.
fn foreign(store: &Process, user: &str, path: &str, more: &[&str]) -> String {
    let Output { stdout, stderr, status } = Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "*", "--write-out", " %{http_code}"])
        .args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", user])
        .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
        .args(more)
        .arg(format!("{}/{path}", store.address()))
        .output()
        .unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_client_with_the_key_stores_objects_that_outlive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = start(&folder);
    assert_eq!(store.said, "ready object-store");
    for path in ["/ping", "/ready"] {
        assert_eq!(store.status(path).await.unwrap(), 200, "{path}");
    }
    assert_eq!(healthcheck(&["object-store", "--port", &store.port.to_string()]), Some(0));

    let blobs = ours(&store);
    let key = BlobKey::fresh("acme").unwrap();
    // The bucket is there from the start.
    blobs.put_bytes(&key, "text/plain", Bytes::from_static(b"the violet kettle")).await.unwrap();
    assert_eq!(
        store.status(&format!("/tale-blobs/{}", key.as_str())).await.unwrap(),
        403,
        "nothing without a signature"
    );
    if Command::new("curl").arg("--version").output().is_ok() {
        let path = format!("tale-blobs/{}", key.as_str());
        assert_eq!(foreign(&store, "tale:a-secret-of-ours", &path, &[]), "the violet kettle 200");
        assert!(foreign(&store, "tale:another", &path, &[]).ends_with(" 403"));
        let put = ["--request", "PUT", "--data-binary", "of theirs"];
        assert_eq!(foreign(&store, "tale:a-secret-of-ours", "tale-blobs/theirs", &put), " 200");
        assert_eq!(foreign(&store, "tale:a-secret-of-ours", "tale-blobs/theirs", &[]), "of theirs 200");
    }

    // Dropped is killed.
    drop(store);
    let again = start(&folder);
    assert_eq!(ours(&again).get_bytes(&key, 100).await.unwrap(), "the violet kettle");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_the_upload_that_runs_and_a_second_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = start(&folder);
    let second = Command::new(env!("CARGO_BIN_EXE_tale"))
        .args(["serve", "object-store", "--port", "0"])
        .env_clear()
        .env("MINIO_ROOT_USER", "tale")
        .env("MINIO_ROOT_PASSWORD", "x")
        .env("TALE_DATA_DIR", folder.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("another tale is running on"), "{said}");

    let key = BlobKey::fresh("acme").unwrap();
    let slot = ours(&store).presign_put(&key, "text/plain", 20, None, PATIENCE).await.unwrap();
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", store.port)).await.unwrap();
    let path = &slot.url[url::Position::BeforePath..];
    let headers: String = slot.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = if headers.to_lowercase().contains("content-length") { "" } else { "content-length: 20\r\n" };
    let head = format!("PUT {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n{headers}{length}\r\n0123456789", store.port);
    socket.write_all(head.as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, async {
        let unfinished = || std::fs::read_dir(folder.path().join("data/objects/.tmp")).unwrap().count();
        while unfinished() == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await
    .expect("the upload runs");
    store.signal();
    tokio::time::timeout(PATIENCE, async {
        while store.status("/ready").await.is_none_or(|status| status != 503) {
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await
    .expect("it says that it stops");
    socket.write_all(b"0123456789").await.unwrap();
    assert_eq!(store.code().await, Some(0), "{}", store.log());
    let again = start(&folder);
    assert_eq!(ours(&again).get_bytes(&key, 100).await.unwrap(), "01234567890123456789");
}
