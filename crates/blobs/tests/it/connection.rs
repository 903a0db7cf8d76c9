//! The file of the deployment's store, start by start.

use std::path::Path;

use serde_json::{Value, json};
use tale_blobs::connection::{CONNECTION, Connection, Keys, Outcome, SECRETS, reconcile};
use tale_orgfiles::{AgeKeys, ConfigStore, FilePath, Scope};

fn environment(bucket: &str, endpoint: &str) -> (Connection, Keys) {
    let connection = Connection {
        region: "us-east-1".into(),
        endpoint: Some(endpoint.parse().unwrap()),
        force_path_style: true,
        bucket: bucket.into(),
        prefix: None,
        public_endpoint: None,
        managed_by: None,
    };
    (connection, Keys { access_key_id: "tale".into(), secret_access_key: "secret".into() })
}

fn files(place: &Path) -> ConfigStore {
    ConfigStore::new(place, AgeKeys::default())
}

async fn start(place: &Path, bucket: &str) -> (Outcome, Option<String>) {
    let (outcome, used) = reconcile(&files(place), Some(environment(bucket, "http://store:9000"))).await.unwrap();
    (outcome, used.map(|(connection, _)| connection.bucket))
}

fn on_disk(place: &Path, file: FilePath) -> String {
    std::fs::read_to_string(files(place).path(Scope::Deployment, file)).unwrap()
}

/// Changes the connection file by hand.
fn edit(place: &Path, change: impl FnOnce(&mut Value)) {
    let path = files(place).path(Scope::Deployment, CONNECTION);
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(path, value.to_string()).unwrap();
}

#[tokio::test]
async fn the_file_is_seeded_follows_the_environment_and_is_left_alone_when_equal() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(start(place.path(), "one").await, (Outcome::Seeded, Some("one".into())));
    assert_eq!(start(place.path(), "one").await.0, Outcome::Unchanged);
    assert_eq!(start(place.path(), "two").await, (Outcome::Reconciled, Some("two".into())));
    assert_eq!(start(place.path(), "two").await.0, Outcome::Unchanged);
    let written: Value = serde_json::from_str(&on_disk(place.path(), CONNECTION)).unwrap();
    assert_eq!(
        written,
        json!({"region":"us-east-1","endpoint":"http://store:9000/","forcePathStyle":true,"bucket":"two","managedBy":"environment"})
    );
    assert!(!on_disk(place.path(), CONNECTION).contains("secret"));

    // New keys alone are a difference as well.
    let (connection, _) = environment("two", "http://store:9000");
    let keys = Keys { access_key_id: "tale".into(), secret_access_key: "rotated".into() };
    let (outcome, _) = reconcile(&files(place.path()), Some((connection, keys))).await.unwrap();
    assert_eq!(outcome, Outcome::Reconciled);
    assert!(on_disk(place.path(), SECRETS).contains("rotated"));
}

#[tokio::test]
async fn an_operators_file_is_never_touched() {
    let place = tempfile::tempdir().unwrap();
    start(place.path(), "one").await;
    edit(place.path(), |file| {
        file["managedBy"] = "operator".into();
        file["bucket"] = "mine".into();
    });
    let before = on_disk(place.path(), CONNECTION);
    assert_eq!(start(place.path(), "two").await, (Outcome::Ignored, Some("mine".into())));
    let (outcome, used) = reconcile(&files(place.path()), None).await.unwrap();
    assert_eq!((outcome, used.map(|(connection, _)| connection.bucket)), (Outcome::Ignored, Some("mine".into())));
    assert_eq!(on_disk(place.path(), CONNECTION), before);
}

#[tokio::test]
async fn a_file_of_an_older_release_is_adopted_when_it_names_the_same_store_and_kept_otherwise() {
    let place = tempfile::tempdir().unwrap();
    start(place.path(), "one").await;
    let release = |file: &mut Value| drop(file.as_object_mut().unwrap().remove("managedBy"));
    edit(place.path(), release);
    assert_eq!(start(place.path(), "one").await.0, Outcome::Adopted);
    assert!(on_disk(place.path(), CONNECTION).contains("environment"));

    edit(place.path(), release);
    let before = on_disk(place.path(), CONNECTION);
    assert_eq!(start(place.path(), "two").await, (Outcome::Kept, Some("one".into())));
    let moved = reconcile(&files(place.path()), Some(environment("one", "http://elsewhere:9000"))).await.unwrap();
    assert_eq!(moved.0, Outcome::Kept);
    assert_eq!(on_disk(place.path(), CONNECTION), before);
}

#[tokio::test]
async fn without_keys_nothing_is_written_and_a_file_that_exists_stays_in_use() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(reconcile(&files(place.path()), None).await.unwrap(), (Outcome::Skipped, None));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    start(place.path(), "one").await;
    let (outcome, used) = reconcile(&files(place.path()), None).await.unwrap();
    assert_eq!((outcome, used.map(|(connection, _)| connection.bucket)), (Outcome::Skipped, Some("one".into())));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_stops_the_start() {
    let place = tempfile::tempdir().unwrap();
    start(place.path(), "one").await;
    for broken in ["{", r#"{"bucket":"x"}"#, r#"{"region":"r","forcePathStyle":true,"bucket":"b","surprise":1}"#] {
        std::fs::write(files(place.path()).path(Scope::Deployment, CONNECTION), broken).unwrap();
        let result = reconcile(&files(place.path()), Some(environment("one", "http://store:9000"))).await;
        assert!(result.is_err(), "{broken}");
        assert_eq!(on_disk(place.path(), CONNECTION), broken, "an unusable file is not replaced");
    }
}

#[tokio::test]
async fn a_connection_whose_keys_are_missing_is_named() {
    let place = tempfile::tempdir().unwrap();
    start(place.path(), "one").await;
    std::fs::remove_file(files(place.path()).path(Scope::Deployment, SECRETS)).unwrap();
    let error = reconcile(&files(place.path()), None).await.unwrap_err().to_string();
    assert!(error.contains("connection.secrets.json"), "{error}");
}

#[tokio::test]
async fn processes_that_start_at_once_write_the_same() {
    let place = tempfile::tempdir().unwrap();
    let starts = (0..8).map(|_| {
        let files = files(place.path());
        tokio::spawn(async move { reconcile(&files, Some(environment("one", "http://store:9000"))).await })
    });
    for start in starts.collect::<Vec<_>>() {
        assert_eq!(start.await.unwrap().unwrap().1, reconcile(&files(place.path()), None).await.unwrap().1);
    }
    assert_eq!(start(place.path(), "one").await.0, Outcome::Unchanged);
}

#[test]
fn without_an_endpoint_the_store_is_aws_in_its_region() {
    let (connection, keys) = environment("b", "http://store:9000");
    let aws = Connection { endpoint: None, region: "eu-central-1".into(), ..connection.clone() };
    let config = aws.store_config(keys.clone(), vec![]).unwrap();
    assert_eq!(config.endpoint.as_str(), "https://s3.eu-central-1.amazonaws.com/");
    let strange = Connection { endpoint: None, region: "evil.example/".into(), ..connection };
    assert!(strange.store_config(keys, vec![]).is_none());
}
