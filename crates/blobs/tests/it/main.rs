//! The client against the embedded store, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests fail loudly")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod connection;
mod foreign;
mod organization;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tale_blobs::embedded::{self, Running};
use tale_blobs::{BlobError, BlobKey, Blobs, Store, StoreConfig};
use tale_core::clock::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct World {
    folder: tempfile::TempDir,
    running: Running,
    blobs: Blobs,
    /// The client of the process that runs the store.
    own: Blobs,
    http: reqwest::Client,
}

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = embedded::service(folder.path(), "tale", &"secret".into()).unwrap();
    let running = Running::start(store.clone()).await.unwrap();
    let config = StoreConfig {
        endpoint: running.endpoint.clone(),
        public_endpoint: None,
        site_origins: vec![],
        region: "us-east-1".into(),
        bucket: "tale-blobs".into(),
        prefix: "one/two".into(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "secret".into(),
    };
    let own = Blobs::beside(config.clone(), Arc::new(SystemClock), &store).unwrap();
    let blobs = Blobs::new(config, Arc::new(SystemClock)).unwrap();
    blobs.ensure_bucket().await.unwrap();
    blobs.ensure_bucket().await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    World { folder, running, blobs, own, http }
}

fn leftovers(world: &World) -> usize {
    std::fs::read_dir(world.folder.path().join(".tmp")).unwrap().count()
}

#[tokio::test]
async fn objects_are_put_read_in_ranges_checked_and_deleted() {
    let world = world().await;
    // More than is read in one step, and not a multiple of it.
    let content: Vec<u8> = (0..2_500_000u32).map(|n| (n % 251) as u8).collect();
    for blobs in [&world.blobs, &world.own] {
        let key = BlobKey::fresh("acme").unwrap();
        assert_eq!(blobs.head(&key).await.unwrap(), None);
        assert!(matches!(blobs.get(&key, None).await, Err(BlobError::NotFound)));

        blobs.put_bytes(&key, "text/plain; charset=utf-8", Bytes::from(content.clone())).await.unwrap();
        let meta = blobs.head(&key).await.unwrap().unwrap();
        assert_eq!(meta.size, 2_500_000);
        assert_eq!(meta.content_type.as_deref(), Some("text/plain; charset=utf-8"));
        assert_eq!(Some(meta), world.blobs.head(&key).await.unwrap());

        assert!(blobs.get_bytes(&key, 2_500_000).await.unwrap() == content);
        assert!(matches!(blobs.get_bytes(&key, 2_499_999).await, Err(BlobError::TooLarge { .. })));
        for (asked, given) in [(100..250, 100..250), (2_499_990..2_600_000, 2_499_990..2_500_000)] {
            let mut part = blobs.get(&key, Some(asked)).await.unwrap();
            assert_eq!((part.length, part.meta.size), (given.len() as u64, 2_500_000));
            let mut bytes = Vec::new();
            while let Some(piece) = part.bytes.next().await {
                bytes.extend_from_slice(&piece.unwrap());
            }
            assert_eq!(bytes, content[given]);
        }
        let behind = blobs.get(&key, Some(2_500_000..2_500_001)).await;
        assert!(matches!(behind, Err(BlobError::RangeNotSatisfiable)));

        blobs.delete(&key).await.unwrap();
        blobs.delete(&key).await.unwrap();
        assert_eq!(blobs.head(&key).await.unwrap(), None);
    }
    assert_eq!(leftovers(&world), 0);
    world.running.stop().await;
}

#[tokio::test]
async fn an_empty_object_is_an_object() {
    let world = world().await;
    let key = BlobKey::fresh("acme").unwrap();
    world.blobs.put_bytes(&key, "text/plain", Bytes::new()).await.unwrap();
    for blobs in [&world.blobs, &world.own] {
        assert_eq!(blobs.head(&key).await.unwrap().unwrap().size, 0);
        assert!(blobs.get_bytes(&key, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_damaged_object_is_no_object() {
    let world = world().await;
    let key = BlobKey::fresh("acme").unwrap();
    world.own.put_bytes(&key, "text/plain", Bytes::from_static(b"hello")).await.unwrap();
    let path = world.folder.path().join(format!("tale-blobs/one/two/{key}"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[1..]).unwrap();
    for blobs in [&world.blobs, &world.own] {
        assert!(matches!(blobs.get_bytes(&key, 10).await, Err(BlobError::Refused { status: 500, .. })));
    }
}

#[tokio::test]
async fn an_upload_url_admits_exactly_the_declared_size_and_type() {
    let world = world().await;
    let key = BlobKey::fresh("acme").unwrap();
    let signed = world.blobs.presign_put(&key, "text/plain", 5, None, Duration::from_secs(60)).await.unwrap();
    let put = |body: &'static str, content_type: &'static str| {
        world.http.put(signed.url.clone()).header("content-type", content_type).body(body).send()
    };
    assert_eq!(put("hello!", "text/plain").await.unwrap().status(), 403, "one byte more");
    assert_eq!(put("hello", "text/html").await.unwrap().status(), 403, "another type");
    assert_eq!(world.blobs.head(&key).await.unwrap(), None);
    assert_eq!(put("hello", "text/plain").await.unwrap().status(), 200);
    assert_eq!(world.blobs.get_bytes(&key, 10).await.unwrap(), "hello");

    // The URL admits this object only, and only to be put.
    assert_eq!(world.http.get(signed.url.clone()).send().await.unwrap().status(), 403);
    let mut other = signed.url.clone();
    other.set_path(&format!("/tale-blobs/one/two/{}", BlobKey::fresh("acme").unwrap()));
    assert_eq!(
        world.http.put(other).header("content-type", "text/plain").body("hello").send().await.unwrap().status(),
        403
    );
    let mut bare = signed.url.clone();
    bare.set_query(None);
    assert_eq!(world.http.get(bare).send().await.unwrap().status(), 403);
    assert_eq!(leftovers(&world), 0);
}

#[tokio::test]
async fn a_read_url_serves_ranges_and_never_a_page_of_the_site() {
    let world = world().await;
    let key = BlobKey::fresh("acme").unwrap();
    world.blobs.put_bytes(&key, "text/html", Bytes::from_static(b"<script>1</script>")).await.unwrap();
    let url = world.blobs.presign_get(&key, None, Duration::from_secs(60)).await.unwrap();
    let answer = world.http.get(url).header("range", "bytes=1-6").send().await.unwrap();
    assert_eq!(answer.status(), 206);
    assert_eq!(answer.headers()["content-range"], "bytes 1-6/18");
    assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(answer.text().await.unwrap(), "script");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let world = world().await;
    let key = BlobKey::fresh("acme").unwrap();
    let signed = world.blobs.presign_put(&key, "text/plain", 1_000_000, None, Duration::from_secs(60)).await.unwrap();
    let url = &signed.url;
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT {}?{} HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n",
        url.path(),
        url.query().unwrap()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&[b'x'; 500_000]).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.running.stop().await;
    assert_eq!(std::fs::read_dir(world.folder.path().join(".tmp")).unwrap().count(), 0);
    assert!(!world.folder.path().join("tale-blobs/one").exists());
}

#[tokio::test]
async fn keys_cannot_leave_the_bucket() {
    let world = world().await;
    std::fs::write(world.folder.path().join("outside"), "x").unwrap();
    // `url` resolves dot segments, so the request is written by hand; the signature does not matter
    // before the path does, so a refusal of any kind is right and a file is not.
    for path in ["/tale-blobs/../outside", "/tale-blobs/%2e%2e/outside", "/tale-blobs/a%2f..%2f..%2foutside"] {
        let address =
            format!("{}:{}", world.running.endpoint.host_str().unwrap(), world.running.endpoint.port().unwrap());
        let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        socket
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_wrong_secret_and_an_absent_store_are_told_apart() {
    let world = world().await;
    let with = |endpoint: &url::Url, secret: &str| {
        Blobs::new(
            StoreConfig {
                endpoint: endpoint.clone(),
                public_endpoint: None,
                site_origins: vec![],
                region: "us-east-1".into(),
                bucket: "tale-blobs".into(),
                prefix: String::new(),
                path_style: true,
                access_key: "tale".into(),
                secret_key: secret.to_owned().into(),
            },
            Arc::new(SystemClock),
        )
        .unwrap()
    };
    let key = BlobKey::fresh("acme").unwrap();
    let refused = with(&world.running.endpoint, "other").get_bytes(&key, 1).await.unwrap_err();
    assert!(
        matches!(&refused, BlobError::Refused { status: 403, detail } if detail.starts_with("SignatureDoesNotMatch")),
        "{refused:?}"
    );
    let endpoint = world.running.endpoint.clone();
    world.running.stop().await;
    let absent = with(&endpoint, "secret").head(&key).await.unwrap_err();
    assert!(matches!(absent, BlobError::Unreachable(_)));
    let problem = tale_core::Problem::from(absent);
    assert_eq!(problem.code.text(), "OBJECT_STORE_UNAVAILABLE");
    assert!(matches!(Blobs::unconfigured().head(&key).await, Err(BlobError::Unconfigured)));
}

#[tokio::test]
async fn upload_urls_are_signed_for_the_origin_the_browser_is_on() {
    let config = |public: &str| StoreConfig {
        endpoint: "http://store:9000".parse().unwrap(),
        public_endpoint: Some(public.parse().unwrap()),
        site_origins: vec!["https://tale.example".parse().unwrap(), "https://intern.example:8443".parse().unwrap()],
        region: "us-east-1".into(),
        bucket: "tale-blobs".into(),
        prefix: String::new(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "secret".into(),
    };
    let key = BlobKey::fresh("acme").unwrap();
    let host = |public: &str, origin: Option<&str>| {
        let store = Store::new(config(public), Arc::new(SystemClock)).unwrap();
        store.presign_put(&key, "text/plain", 1, origin, Duration::from_secs(60)).url.origin().ascii_serialization()
    };
    assert_eq!(host("https://tale.example", Some("https://intern.example:8443")), "https://intern.example:8443");
    assert_eq!(host("https://tale.example", Some("https://evil.example")), "https://tale.example");
    assert_eq!(host("https://tale.example", None), "https://tale.example");
    assert_eq!(host("https://s3.example", Some("https://intern.example:8443")), "https://s3.example");
}
