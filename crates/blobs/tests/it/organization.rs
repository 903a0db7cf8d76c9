//! Buckets of organizations: what their files say is what happens, at once and without a way around.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tale_blobs::check::{CheckError, Step};
use tale_blobs::connection::Keys;
use tale_blobs::embedded::{self, Running};
use tale_blobs::organization::{Bucket, Organizations};
use tale_blobs::{BlobError, BlobKey, Blobs, Store, StoreConfig};
use tale_core::Problem;
use tale_core::clock::SystemClock;
use tale_core::net::HostPolicy;
use tale_orgfiles::{AgeKeys, ConfigStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

struct World {
    folder: tempfile::TempDir,
    deployment: Running,
    foreign: Running,
    organizations: Organizations,
    blobs: Blobs,
}

fn config(endpoint: &Url, bucket: &str) -> StoreConfig {
    StoreConfig {
        endpoint: endpoint.clone(),
        public_endpoint: None,
        site_origins: vec![],
        region: "us-east-1".into(),
        bucket: bucket.into(),
        prefix: String::new(),
        path_style: true,
        access_key: "tale".into(),
        secret_key: "secret".into(),
    }
}

fn keys() -> Keys {
    Keys { access_key_id: "tale".into(), secret_access_key: "secret".into() }
}

fn bucket(endpoint: &Url, name: &str) -> Bucket {
    Bucket {
        region: "us-east-1".into(),
        endpoint: Some(endpoint.clone()),
        force_path_style: true,
        bucket: name.into(),
        prefix: Some("tale/files".into()),
    }
}

async fn running(folder: &Path) -> Running {
    Running::start(embedded::service(folder, "tale", &"secret".into()).unwrap()).await.unwrap()
}

async fn world(policy: HostPolicy) -> World {
    let folder = tempfile::tempdir().unwrap();
    let (deployment, foreign) =
        (running(&folder.path().join("deployment")).await, running(&folder.path().join("foreign")).await);
    let clock = Arc::new(SystemClock);
    Store::new(config(&foreign.endpoint, "acme-files"), clock.clone()).unwrap().ensure_bucket().await.unwrap();
    let files = ConfigStore::new(&folder.path().join("config"), AgeKeys::load(None, None).unwrap());
    let organizations = Organizations::new(files, policy, clock.clone()).unwrap();
    let blobs = Blobs::new(config(&deployment.endpoint, "tale-blobs"), clock).unwrap();
    blobs.ensure_bucket().await.unwrap();
    let blobs = blobs.with_organizations(organizations.clone());
    World { folder, deployment, foreign, organizations, blobs }
}

impl World {
    async fn put(&self, org: &str, content: &'static str) -> BlobKey {
        let key = BlobKey::fresh(org).unwrap();
        self.blobs.put_bytes(&key, "text/plain", Bytes::from_static(content.as_bytes())).await.unwrap();
        key
    }

    fn is_in(&self, place: &str, key: &BlobKey) -> bool {
        self.folder.path().join(place).join(key.as_str()).exists()
    }

    fn edit(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join("config/acme/object-storage").join(file), text).unwrap();
    }
}

const OWN: &str = "foreign/acme-files/tale/files";
const DEFAULT: &str = "deployment/tale-blobs";

#[tokio::test]
async fn new_objects_go_to_the_own_bucket_and_older_ones_stay_readable() {
    let world = world(HostPolicy::PrivateAllowed).await;
    let older = world.put("acme", "older").await;
    world.organizations.save("acme", &bucket(&world.foreign.endpoint, "acme-files"), &keys()).await.unwrap();
    let newer = world.put("acme", "newer").await;
    let other = world.put("globex", "other").await;
    assert!(world.is_in(OWN, &newer) && !world.is_in(DEFAULT, &newer));
    assert!(world.is_in(DEFAULT, &other), "no other organization is sent there");
    assert_eq!(world.blobs.get_bytes(&older, 10).await.unwrap(), "older");
    assert_eq!(world.blobs.get(&older, Some(0..2)).await.unwrap().length, 2);
    assert_eq!(world.blobs.get_bytes(&newer, 10).await.unwrap(), "newer");

    world.organizations.remove("acme").await.unwrap();
    assert_eq!(world.blobs.head(&newer).await.unwrap(), None, "out of reach until it is connected again");
    let later = world.put("acme", "later").await;
    assert!(world.is_in(DEFAULT, &later));
    world.organizations.save("acme", &bucket(&world.foreign.endpoint, "acme-files"), &keys()).await.unwrap();
    assert_eq!(world.blobs.get_bytes(&newer, 10).await.unwrap(), "newer");

    for key in [&older, &newer] {
        world.blobs.delete(key).await.unwrap();
        assert_eq!(world.blobs.head(key).await.unwrap(), None);
    }
    assert!(matches!(world.blobs.get(&newer, None).await, Err(BlobError::NotFound)));
}

#[tokio::test]
async fn files_that_cannot_be_used_make_the_store_unavailable_and_count_at_once_when_mended() {
    let world = world(HostPolicy::PrivateAllowed).await;
    world.organizations.save("acme", &bucket(&world.foreign.endpoint, "acme-files"), &keys()).await.unwrap();
    let key = world.put("acme", "kept").await;
    let good = std::fs::read_to_string(world.folder.path().join("config/acme/object-storage/connection.json")).unwrap();
    for bad in [
        "{".to_owned(),
        good.replace("region", "regoin"),
        good.replace("acme-files", "../x"),
        good.replace("}", ", \"managedBy\": \"operator\"}"),
        String::new(),
    ] {
        world.edit("connection.json", &bad);
        for refused in [
            world.blobs.get(&key, None).await.err(),
            world.blobs.put_bytes(&key, "text/plain", Bytes::new()).await.err(),
            world.blobs.delete(&key).await.err(),
        ] {
            let refused = refused.unwrap();
            assert!(matches!(refused, BlobError::Misconfigured(_)), "{bad}: {refused:?}");
            assert_eq!(Problem::from(refused).code.text(), "OBJECT_STORE_MISCONFIGURED");
        }
        assert!(world.is_in(OWN, &key) && !world.is_in(DEFAULT, &key));
        world.put("globex", "unconcerned").await;
        world.edit("connection.json", &good);
        assert_eq!(world.blobs.get_bytes(&key, 10).await.unwrap(), "kept", "after {bad}");
    }
    // Secrets that nobody here can open, and none at all.
    world.edit("connection.secrets.json", r#"{"accessKeyId":"ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]","sops":{}}"#);
    assert!(matches!(world.blobs.head(&key).await, Err(BlobError::Misconfigured(_))));
    std::fs::remove_file(world.folder.path().join("config/acme/object-storage/connection.secrets.json")).unwrap();
    assert!(matches!(world.blobs.head(&key).await, Err(BlobError::Misconfigured(_))));
    world.edit("connection.secrets.json", r#"{"accessKeyId":"tale","secretAccessKey":"secret"}"#);
    assert!(world.blobs.head(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn one_store_that_is_away_leaves_the_other_alone() {
    let world = world(HostPolicy::PrivateAllowed).await;
    world.organizations.save("acme", &bucket(&world.foreign.endpoint, "acme-files"), &keys()).await.unwrap();
    let nowhere = Blobs::unconfigured().with_organizations(world.organizations.clone());
    let key = BlobKey::fresh("acme").unwrap();
    nowhere.put_bytes(&key, "text/plain", Bytes::from_static(b"mine")).await.unwrap();
    assert!(matches!(nowhere.head(&BlobKey::fresh("globex").unwrap()).await, Err(BlobError::Unconfigured)));

    let World { deployment, blobs, .. } = world;
    deployment.stop().await;
    assert_eq!(blobs.get_bytes(&key, 10).await.unwrap(), "mine");
    blobs.put_bytes(&BlobKey::fresh("acme").unwrap(), "text/plain", Bytes::new()).await.unwrap();
    assert!(matches!(blobs.head(&BlobKey::fresh("acme").unwrap()).await, Err(BlobError::Unreachable(_))));
}

#[tokio::test]
async fn addresses_are_judged_at_every_connection_whoever_wrote_them_down() {
    let world = world(HostPolicy::PublicOnly).await;
    let port = world.foreign.endpoint.port().unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let endpoint: Url = format!("http://{host}:{port}").parse().unwrap();
        world.organizations.save("acme", &bucket(&endpoint, "acme-files"), &keys()).await.unwrap();
        let key = BlobKey::fresh("acme").unwrap();
        let refused = world.blobs.put_bytes(&key, "text/plain", Bytes::new()).await;
        assert!(matches!(refused, Err(BlobError::Misconfigured(_))), "{host}: {refused:?}");
        let opened = world.organizations.open(&bucket(&endpoint, "acme-files"), keys()).unwrap();
        let refused = opened.put_bytes(&key, "text/plain", Bytes::new()).await;
        assert!(matches!(refused, Err(BlobError::Forbidden(_))), "{host}: {refused:?}");
        let entered = world.organizations.judge(&bucket(&endpoint, "acme-files")).unwrap_err();
        assert_eq!(entered.code.text(), "PRIVATE_HOST_BLOCKED");
    }
}

#[tokio::test]
async fn a_try_says_what_does_not_work_and_knows_the_deployments_bucket_by_any_name() {
    let world = world(HostPolicy::PrivateAllowed).await;
    let default = world.blobs.default_store();
    let check = async |bucket: Bucket, keys: Keys| {
        world.organizations.open(&bucket, keys).unwrap().check("acme", default).await
    };
    let good = bucket(&world.foreign.endpoint, "acme-files");
    check(good.clone(), keys()).await.unwrap();
    let wrong = Keys { secret_access_key: "other".into(), ..keys() };
    let failed = check(good.clone(), wrong).await;
    assert!(
        matches!(failed, Err(CheckError::Failed { step: Step::Put, error: BlobError::Refused { status: 403, .. } })),
        "{failed:?}"
    );
    let missing = check(bucket(&world.foreign.endpoint, "not-there"), keys()).await;
    assert!(matches!(missing, Err(CheckError::Failed { step: Step::Put, error: BlobError::NotFound })), "{missing:?}");

    let port = world.deployment.endpoint.port().unwrap();
    for host in ["127.0.0.1", "localhost", "127.0.0.2"] {
        let endpoint: Url = format!("http://{host}:{port}").parse().unwrap();
        let relay = if host == "127.0.0.2" { relayed(port).await } else { endpoint };
        let same = check(bucket(&relay, "tale-blobs"), keys()).await;
        assert!(matches!(same, Err(CheckError::SameBucket)), "{host}: {same:?}");
    }
    // The deployment's bucket and prefix, spelled as a path and a bucket.
    let shared = StoreConfig { prefix: "tale-blobs".into(), ..config(&world.foreign.endpoint, "acme-files") };
    let shared = Store::new(shared, Arc::new(SystemClock)).unwrap();
    let nested = bucket(&world.foreign.endpoint.join("acme-files").unwrap(), "tale-blobs");
    let nested = Bucket { prefix: None, ..nested };
    let same = world.organizations.open(&nested, keys()).unwrap().check("acme", Some(&shared)).await;
    assert!(matches!(same, Err(CheckError::SameBucket)), "{same:?}");
    let left = |place: &str| walk(&world.folder.path().join(place));
    assert_eq!((left("deployment/tale-blobs"), left("foreign/acme-files")), (0, 0), "nothing stays behind");
}

#[tokio::test]
async fn a_key_that_may_not_list_hides_no_older_object() {
    let world = world(HostPolicy::PrivateAllowed).await;
    let older = world.put("acme", "older").await;
    // What stores answer such a key about what is not there.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await;
            let _ = socket.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        }
    });
    world.organizations.save("acme", &bucket(&endpoint, "acme-files"), &keys()).await.unwrap();
    assert_eq!(world.blobs.get_bytes(&older, 10).await.unwrap(), "older");
    let nowhere = world.blobs.head(&BlobKey::fresh("acme").unwrap()).await;
    assert!(matches!(nowhere, Err(BlobError::Refused { status: 403, .. })), "{nowhere:?}");
}

/// Another address of the store on `port`.
async fn relayed(port: u16) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    format!("http://{address}").parse().unwrap()
}

/// Files below `folder`.
fn walk(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}
