//! A store that is not ours: SeaweedFS over its S3 door. Skipped, with a line that says so, where
//! the program is not there.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tale_blobs::check::CheckError;
use tale_blobs::{BlobError, BlobKey, Blobs, StoreConfig};
use tale_core::clock::SystemClock;
use url::Url;

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two people: one may do everything, the other only use objects of the bucket `there`.
const IDENTITIES: &str = r#"{"identities":[
    {"name":"admin","credentials":[{"accessKey":"tale","secretKey":"secret"}],"actions":["Admin","Read","Write","List"]},
    {"name":"limited","credentials":[{"accessKey":"limited","secretKey":"secret2"}],"actions":["Read:there","Write:there"]}
]}"#;

/// A running store, ended with this value.
struct Seaweed {
    process: Child,
    endpoint: Url,
    _folder: tempfile::TempDir,
}

impl Drop for Seaweed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    let ours = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/tools/weed/bin/weed"));
    if ours.exists() {
        return Some(ours.to_owned());
    }
    let found = Command::new("weed").arg("version").output().is_ok().then(|| PathBuf::from("weed"));
    if found.is_none() {
        eprintln!("skipped: the program `weed` is not there (scripts/setup test fetches it)");
    }
    found
}

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let taken: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|listener| listener.local_addr().unwrap().port())
}

async fn seaweed() -> Option<Seaweed> {
    let program = program()?;
    let folder = tempfile::tempdir().unwrap();
    let identities = folder.path().join("identities.json");
    std::fs::write(&identities, IDENTITIES).unwrap();
    let [master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc] = free_ports();
    let process = Command::new(program)
        .arg("server")
        .arg(format!("-dir={}", folder.path().display()))
        .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-filer", "-s3"])
        .args(["-master.volumeSizeLimitMB=64", "-volume.max=16", "-s3.port.iceberg=0", "-s3.port.lance=0"])
        .args([format!("-master.port={master}"), format!("-master.port.grpc={master_grpc}")])
        .args([format!("-volume.port={volume}"), format!("-volume.port.grpc={volume_grpc}")])
        .args([format!("-filer.port={filer}"), format!("-filer.port.grpc={filer_grpc}")])
        .args([format!("-s3.port={s3}"), format!("-s3.port.grpc={s3_grpc}")])
        .arg(format!("-s3.config={}", identities.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let endpoint: Url = format!("http://127.0.0.1:{s3}").parse().unwrap();
    let store = Seaweed { process, endpoint, _folder: folder };
    let blobs = store.blobs("probe", "tale", "secret");
    // It answers before it can store: the first bucket and object mark the end of its start.
    tokio::time::timeout(PATIENCE, async {
        let key = BlobKey::fresh("probe").unwrap();
        while blobs.ensure_bucket().await.is_err()
            || blobs.put_bytes(&key, "text/plain", Bytes::from_static(b"x")).await.is_err()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("SeaweedFS starts");
    Some(store)
}

impl Seaweed {
    fn blobs(&self, bucket: &str, access_key: &str, secret_key: &str) -> Blobs {
        let config = StoreConfig {
            endpoint: self.endpoint.clone(),
            public_endpoint: None,
            site_origins: vec![],
            region: "us-east-1".into(),
            bucket: bucket.into(),
            prefix: "tale".into(),
            path_style: true,
            access_key: access_key.into(),
            secret_key: secret_key.to_owned().into(),
        };
        Blobs::new(config, Arc::new(SystemClock)).unwrap()
    }
}

#[tokio::test]
async fn objects_and_signed_uploads_work_on_a_store_that_is_not_ours() {
    let Some(store) = seaweed().await else { return };
    let blobs = store.blobs("there", "tale", "secret");
    assert!(blobs.ping().await.is_err(), "the bucket does not exist yet");
    blobs.ensure_bucket().await.unwrap();
    blobs.ensure_bucket().await.unwrap();

    let key = BlobKey::fresh("acme").unwrap();
    let content = Bytes::from(vec![7u8; 3_000_000]);
    blobs.put_bytes(&key, "application/pdf", content.clone()).await.unwrap();
    let meta = blobs.head(&key).await.unwrap().unwrap();
    assert_eq!((meta.size, meta.content_type.as_deref()), (3_000_000, Some("application/pdf")));
    assert_eq!(blobs.get_bytes(&key, 3_000_000).await.unwrap(), content);
    assert_eq!(blobs.get(&key, Some(100..250)).await.unwrap().length, 150);

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let upload = BlobKey::fresh("acme").unwrap();
    let signed = blobs.presign_put(&upload, "text/plain", 5, None, Duration::from_secs(60)).await.unwrap();
    let put = |body: &'static str| http.put(signed.url.clone()).header("content-type", "text/plain").body(body).send();
    assert!(!put("hello!").await.unwrap().status().is_success(), "one byte more than signed");
    assert!(put("hello").await.unwrap().status().is_success());
    let link = blobs.presign_get(&upload, None, Duration::from_secs(60)).await.unwrap();
    assert_eq!(http.get(link).send().await.unwrap().text().await.unwrap(), "hello");

    blobs.delete(&key).await.unwrap();
    blobs.delete(&key).await.unwrap();
    assert_eq!(blobs.head(&key).await.unwrap(), None);

    // A key that may use objects of a bucket, but not look at the bucket or create one (DCF-84).
    let limited = store.blobs("there", "limited", "secret2");
    limited.ensure_bucket().await.unwrap();
    limited.put_bytes(&key, "text/plain", Bytes::from_static(b"ours")).await.unwrap();
    assert_eq!(limited.get_bytes(&key, 10).await.unwrap(), "ours");
    // As the bucket of an organization: tried out with no more rights than that, and told from the
    // deployment's own, which other keys open.
    let default = store.blobs("deployment", "tale", "secret");
    default.ensure_bucket().await.unwrap();
    let own = limited.default_store().unwrap();
    own.check("acme", default.default_store()).await.unwrap();
    let same = own.check("acme", blobs.default_store()).await;
    assert!(matches!(same, Err(CheckError::SameBucket)), "{same:?}");
    let elsewhere = store.blobs("missing", "limited", "secret2");
    let refused = match elsewhere.ensure_bucket().await {
        // What a store tells somebody without rights about a bucket that is absent differs.
        Ok(()) => elsewhere.put_bytes(&key, "text/plain", Bytes::from_static(b"x")).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(refused, BlobError::Refused { status: 403, .. }), "{refused:?}");
}
