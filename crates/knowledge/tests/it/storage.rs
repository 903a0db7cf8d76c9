//! A bucket of an organization's own, and moving its files there.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tale_blobs::connection::Keys;
use tale_blobs::embedded::{self, Running};
use tale_blobs::{BlobKey, Store};
use tale_core::Problem;
use tale_core::ids::{FileId, OrgId};
use tale_identity::{Caller, Role};
use tale_jobs::JobError;
use tale_knowledge::files::Purpose;
use tale_knowledge::storage::{BucketForm, MoveState};

use crate::world::{World, world};

/// A world with a second store, where the bucket `acme-files` is.
struct Place {
    world: World,
    foreign: Running,
    owner: Caller,
}

async fn place() -> Place {
    let world = world().await;
    let service = embedded::service(&world.folder.path().join("foreign"), "acme", &"secret2".into()).unwrap();
    let foreign = Running::start(service).await.unwrap();
    let owner = world.person("acme", Role::Owner).await;
    let place = Place { world, foreign, owner };
    place.bucket("acme-files").ensure_bucket().await.unwrap();
    place
}

impl Place {
    fn form(&self, bucket: &str) -> BucketForm {
        BucketForm {
            region: "eu-central-1".into(),
            endpoint: Some(self.foreign.endpoint.to_string()),
            force_path_style: true,
            bucket: bucket.into(),
            prefix: Some("tale".into()),
            access_key_id: "acme".into(),
            secret_access_key: Some("secret2".into()),
        }
    }

    /// A client of one's own for a bucket of the second store.
    fn bucket(&self, bucket: &str) -> Store {
        let form = self.form(bucket);
        let bucket = tale_blobs::organization::Bucket {
            region: form.region,
            endpoint: Some(self.foreign.endpoint.clone()),
            force_path_style: true,
            bucket: form.bucket,
            prefix: form.prefix,
        };
        let keys = Keys { access_key_id: "acme".into(), secret_access_key: "secret2".into() };
        let organizations = self.world.blobs.organizations().unwrap();
        organizations.open(&bucket, keys).unwrap()
    }

    async fn connect(&self) {
        self.world.knowledge.connect_storage(&self.owner, self.form("acme-files")).await.unwrap();
    }

    async fn key(&self, file: FileId) -> BlobKey {
        let key: String = sqlx::query_scalar("SELECT storage_key FROM app.files WHERE id = $1")
            .bind(file)
            .fetch_one(&self.world.db.app)
            .await
            .unwrap();
        BlobKey::parse(&key).unwrap()
    }

    /// Uploads `count` chat files and returns their names.
    async fn files(&self, count: usize) -> Vec<BlobKey> {
        let mut keys = Vec::new();
        for n in 0..count {
            let name = format!("file-{n}.txt");
            let file = self.world.upload(&self.owner, &name, format!("content of {n}"), Purpose::Chat).await;
            self.world.knowledge.prepare_attachments(&self.owner, &[file]).await.unwrap();
            keys.push(self.key(file).await);
        }
        keys
    }

    async fn start(&self) -> uuid::Uuid {
        self.world.knowledge.start_move(&self.owner).await.unwrap();
        sqlx::query_scalar("SELECT id FROM app.storage_moves WHERE org_id = $1")
            .bind(self.owner.org)
            .fetch_one(&self.world.db.app)
            .await
            .unwrap()
    }

    async fn run(&self, run: uuid::Uuid) {
        self.world.knowledge.move_files(self.owner.org, run, || async { Ok(()) }).await.unwrap();
    }

    /// State, and how many were moved, skipped and failed.
    async fn outcome(&self) -> (MoveState, i64, i64, i64) {
        let last = self.world.knowledge.latest_move(&self.owner).await.unwrap().unwrap();
        (last.state, last.moved, last.skipped, last.failed)
    }

    fn in_default(&self, key: &BlobKey) -> bool {
        self.world.folder.path().join("objects/tale-blobs").join(key.as_str()).exists()
    }

    fn in_own(&self, key: &BlobKey) -> bool {
        self.world.folder.path().join("foreign/acme-files/tale").join(key.as_str()).exists()
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Problem>) -> &'static str {
    result.unwrap_err().code.text()
}

async fn audited(place: &Place, org: OrgId) -> Vec<(String, serde_json::Value)> {
    sqlx::query_as("SELECT action, details FROM app.audit_entries WHERE org_id = $1 AND resource_type = 'object_storage' ORDER BY at, id")
        .bind(org)
        .fetch_all(&place.world.db.app)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_bucket_is_named_after_a_try_and_every_change_is_recorded_without_secrets() {
    let place = place().await;
    let knowledge = &place.world.knowledge;
    for role in [Role::Disabled, Role::Member, Role::Editor, Role::Developer] {
        let other = place.world.colleague(place.owner.org, "acme", role).await;
        assert!(knowledge.storage(&other).await.is_err(), "{role}");
        assert!(knowledge.connect_storage(&other, place.form("acme-files")).await.is_err(), "{role}");
        assert!(knowledge.disconnect_storage(&other).await.is_err(), "{role}");
        assert!(knowledge.start_move(&other).await.is_err(), "{role}");
    }
    let without = BucketForm { secret_access_key: None, ..place.form("acme-files") };
    assert_eq!(code(knowledge.connect_storage(&place.owner, without.clone()).await), "INVALID_BODY");
    let wrong = BucketForm { secret_access_key: Some("x".into()), ..place.form("acme-files") };
    assert_eq!(code(knowledge.connect_storage(&place.owner, wrong).await), "OBJECT_STORE_CHECK_FAILED");
    let refused = knowledge.connect_storage(&place.owner, place.form("missing")).await.unwrap_err();
    assert_eq!(refused.data.unwrap()["reason"], "bucket_missing");
    let metadata = BucketForm { endpoint: Some("http://169.254.169.254/".into()), ..place.form("acme-files") };
    assert_eq!(code(knowledge.try_storage(&place.owner, metadata).await), "PRIVATE_HOST_BLOCKED");
    let default = BucketForm {
        endpoint: Some(format!("http://localhost:{}", place.world.store.endpoint.port().unwrap())),
        access_key_id: "tale".into(),
        secret_access_key: Some("secret".into()),
        ..place.form("tale-blobs")
    };
    assert_eq!(code(knowledge.connect_storage(&place.owner, default).await), "OBJECT_STORE_SAME_BUCKET");
    assert!(knowledge.storage(&place.owner).await.unwrap().own.is_none());

    place.connect().await;
    // The secret is stored now: a form without one changes the rest.
    knowledge.connect_storage(&place.owner, BucketForm { region: "eu-west-1".into(), ..without }).await.unwrap();
    let (bucket, key_id) = knowledge.storage(&place.owner).await.unwrap().own.unwrap();
    assert_eq!((bucket.region.as_str(), key_id.as_str()), ("eu-west-1", "acme"));
    let (id, request) = knowledge.begin_browser_try(&place.owner).await.unwrap();
    let put = place.world.http.put(request.url).header("content-type", "text/plain").body("x");
    assert_eq!(put.send().await.unwrap().status(), 200);
    knowledge.end_browser_try(&place.owner, id).await.unwrap();
    knowledge.disconnect_storage(&place.owner).await.unwrap();
    knowledge.disconnect_storage(&place.owner).await.unwrap();
    assert!(!place.world.folder.path().join("config/acme/object-storage/connection.secrets.json").exists());

    let entries = audited(&place, place.owner.org).await;
    let actions: Vec<&str> = entries.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(actions, ["storage.connect", "storage.connect", "storage.disconnect"]);
    assert!(entries.iter().all(|(_, details)| !details.to_string().contains("secret2")));
}

#[tokio::test]
async fn files_are_moved_once_and_keep_their_names_types_and_bytes() {
    let place = place().await;
    assert_eq!(code(place.world.knowledge.start_move(&place.owner).await), "OBJECT_STORE_NOT_CONNECTED");
    let document = place.world.document(&place.owner, "notes.md", "# Notes").await;
    let mut keys = place.files(2).await;
    keys.push(place.key(document.file.unwrap()).await);
    let foreigner = place.world.person("globex", Role::Owner).await;
    let foreign = place.world.document(&foreigner, "theirs.txt", "theirs").await;
    let theirs = place.key(foreign.file.unwrap()).await;
    let kind = place.world.blobs.head(&keys[2]).await.unwrap().unwrap().content_type;

    place.connect().await;
    let run = place.start().await;
    assert_eq!(code(place.world.knowledge.start_move(&place.owner).await), "OBJECT_STORE_MOVE_RUNNING");
    place.run(run).await;
    assert_eq!(place.outcome().await, (MoveState::Completed, 3, 0, 0));
    for key in &keys {
        assert!(place.in_own(key) && !place.in_default(key), "{key}");
    }
    assert!(place.in_default(&theirs), "another organization's files stay");
    assert_eq!(place.world.blobs.head(&keys[2]).await.unwrap().unwrap().content_type, kind);
    assert_eq!(place.world.blobs.get_bytes(&keys[0], 100).await.unwrap(), "content of 0");

    let again = place.start().await;
    place.run(again).await;
    place.run(run).await; // A late attempt of the first run does nothing.
    assert_eq!(place.outcome().await, (MoveState::Completed, 0, 3, 0));
    let actions: Vec<String> = audited(&place, place.owner.org).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["storage.connect", "storage.move", "storage.moved", "storage.move", "storage.moved"]);
}

#[tokio::test]
async fn a_killed_move_goes_on_where_it_was_and_trusts_no_copy_it_did_not_compare() {
    let place = place().await;
    let keys = place.files(4).await;
    place.connect().await;
    // Left by attempts that were killed: a whole copy that was not yet deleted where it was, and one
    // that is not what it should be.
    let own = place.bucket("acme-files");
    own.put_bytes(&keys[0], "text/plain", Bytes::from_static(b"content of 0")).await.unwrap();
    own.put_bytes(&keys[1], "text/plain", Bytes::from_static(b"content of X")).await.unwrap();
    let run = place.start().await;
    let steps = AtomicUsize::new(0);
    // Two steps a file: stopped before the third is taken up.
    let stopped = place
        .world
        .knowledge
        .move_files(place.owner.org, run, || async {
            if steps.fetch_add(1, Ordering::SeqCst) == 4 { Err(JobError::Interrupted) } else { Ok(()) }
        })
        .await;
    assert!(matches!(stopped, Err(JobError::Interrupted)));
    assert_eq!(place.outcome().await, (MoveState::Running, 2, 0, 0));
    assert_eq!(own.get(&keys[1], None).await.unwrap().length, 12);
    assert_eq!(place.world.blobs.get_bytes(&keys[1], 100).await.unwrap(), "content of 1");

    // The third was purged while its copy was on the way, just before the attempt was killed.
    own.put_bytes(&keys[2], "text/plain", Bytes::from_static(b"content of 2")).await.unwrap();
    sqlx::query("UPDATE app.storage_moves SET at_key = $1")
        .bind(keys[2].as_str())
        .execute(&place.world.db.app)
        .await
        .unwrap();
    place.world.blobs.default_store().unwrap().delete(&keys[2]).await.unwrap();
    sqlx::query("DELETE FROM app.files WHERE storage_key = $1")
        .bind(keys[2].as_str())
        .execute(&place.world.db.app)
        .await
        .unwrap();
    place.run(run).await;
    assert_eq!(place.outcome().await, (MoveState::Completed, 3, 0, 0));
    assert!(!place.in_own(&keys[2]), "nothing of a purged file stays");
    assert!(place.in_own(&keys[3]) && !place.in_default(&keys[3]));
}

#[tokio::test]
async fn a_bucket_that_changes_or_dies_ends_the_move_and_loses_nothing() {
    let place = place().await;
    let keys = place.files(6).await;
    place.connect().await;
    let run = place.start().await;
    place.bucket("elsewhere").ensure_bucket().await.unwrap();
    place.world.knowledge.connect_storage(&place.owner, place.form("elsewhere")).await.unwrap();
    place.run(run).await;
    let last = place.world.knowledge.latest_move(&place.owner).await.unwrap().unwrap();
    assert_eq!((last.state, last.error_code.as_deref()), (MoveState::Failed, Some("OBJECT_STORE_NOT_CONNECTED")));

    place.connect().await;
    let run = place.start().await;
    let Place { world, foreign, owner } = place;
    foreign.stop().await;
    world.knowledge.move_files(owner.org, run, || async { Ok(()) }).await.unwrap();
    let last = world.knowledge.latest_move(&owner).await.unwrap().unwrap();
    assert_eq!((last.state, last.moved, last.failed), (MoveState::Failed, 0, 5));
    for key in &keys {
        assert!(Path::new(&world.folder.path().join("objects/tale-blobs").join(key.as_str())).exists(), "{key}");
    }
}
