//! Files that are whole or not there, and secrets that never become plain by accident.

use std::os::unix::fs::PermissionsExt;

use serde::{Deserialize, Serialize};
use tale_orgfiles::sops::is_encrypted;
use tale_orgfiles::{AgeKeys, ConfigError, ConfigStore, FilePath, Scope};

use crate::{from_file, inline, key};

const FILE: FilePath = FilePath("object-storage/connection.json");
const SECRETS: FilePath = FilePath("object-storage/connection.secrets.json");
const ACME: Scope<'static> = Scope::Organization("acme");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    bucket: String,
}

fn settings(bucket: &str) -> Settings {
    Settings { bucket: bucket.to_owned() }
}

#[tokio::test]
async fn each_scope_has_its_own_files_and_a_missing_one_is_no_error() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    assert_eq!(store.read::<Settings>(ACME, FILE).await.unwrap(), None);
    store.write(ACME, FILE, &settings("a")).await.unwrap();
    store.write(Scope::Deployment, FILE, &settings("d")).await.unwrap();
    assert_eq!(store.read(ACME, FILE).await.unwrap(), Some(settings("a")));
    assert_eq!(store.read(Scope::Deployment, FILE).await.unwrap(), Some(settings("d")));
    store.remove(ACME, FILE).await.unwrap();
    store.remove(ACME, FILE).await.unwrap();
    assert_eq!(store.read::<Settings>(ACME, FILE).await.unwrap(), None);
}

#[tokio::test]
async fn a_stamp_changes_with_every_save() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    assert_eq!(store.stamp(ACME, FILE).await.unwrap(), None);
    store.write(ACME, FILE, &settings("a")).await.unwrap();
    let first = store.stamp(ACME, FILE).await.unwrap();
    store.write(ACME, FILE, &settings("b")).await.unwrap();
    assert_ne!(store.stamp(ACME, FILE).await.unwrap(), first);
}

#[tokio::test]
async fn what_leads_nowhere_is_no_missing_file() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    let (organization, folder, path) = {
        let path = store.path(ACME, FILE);
        (place.path().join("acme"), path.parent().unwrap().to_owned(), path)
    };
    let refused = async |what: &str| {
        assert!(store.stamp(ACME, FILE).await.is_err(), "{what}");
        assert!(store.read::<Settings>(ACME, FILE).await.is_err(), "{what}");
    };
    symlink("/nonexistent", &organization).unwrap();
    refused("a dangling link for the organization").await;
    std::fs::remove_file(&organization).unwrap();
    std::fs::create_dir(&organization).unwrap();
    assert_eq!(store.stamp(ACME, FILE).await.unwrap(), None, "an organization without settings");
    std::fs::write(&folder, "").unwrap();
    refused("a file in the place of the folder").await;
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(store.stamp(ACME, FILE).await.unwrap(), None);
    symlink("/nonexistent/x", &path).unwrap();
    refused("a dangling link").await;
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(store.read::<Settings>(ACME, FILE).await.is_err(), "a folder");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_and_its_content_is_not_shown() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    let path = store.path(ACME, FILE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let too_large = vec![b' '; (1 << 20) + 1];
    let cases: [&[u8]; 5] =
        [b"{\"bucket\": \"hunter2\"", b"{\"bucket\": [\"hunter2\"]}", b"{\"hunter2\": 1}", b"\xff\xfe", &too_large];
    for broken in cases {
        std::fs::write(&path, broken).unwrap();
        let error = store.read::<Settings>(ACME, FILE).await.unwrap_err();
        assert!(matches!(error, ConfigError::Invalid { .. }), "{error:?}");
        assert!(error.to_string().contains("acme/object-storage/connection.json"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn secrets_without_a_key_are_for_the_owner_only() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    store.write_secrets(ACME, SECRETS, &settings("s")).await.unwrap();
    let mode = std::fs::metadata(store.path(ACME, SECRETS)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(store.read_secrets(ACME, SECRETS).await.unwrap(), Some(settings("s")));
}

#[tokio::test]
async fn an_encrypted_file_is_never_overwritten_with_plain_text() {
    let place = tempfile::tempdir().unwrap();
    let with_key = ConfigStore::new(place.path(), inline(&key()));
    with_key.write_secrets(ACME, SECRETS, &settings("s")).await.unwrap();
    let path = with_key.path(ACME, SECRETS);
    let before = std::fs::read_to_string(&path).unwrap();
    assert!(is_encrypted(&before));

    let without = ConfigStore::new(place.path(), AgeKeys::default());
    let error = without.write_secrets(ACME, SECRETS, &settings("t")).await.unwrap_err();
    assert!(matches!(error, ConfigError::WouldBecomePlain(_)), "{error:?}");
    assert!(without.read_secrets::<Settings>(ACME, SECRETS).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[tokio::test]
async fn a_plain_file_becomes_encrypted_when_it_is_saved_with_a_key() {
    let place = tempfile::tempdir().unwrap();
    ConfigStore::new(place.path(), AgeKeys::default()).write_secrets(ACME, SECRETS, &settings("s")).await.unwrap();
    let store = ConfigStore::new(place.path(), inline(&key()));
    assert_eq!(store.read_secrets(ACME, SECRETS).await.unwrap(), Some(settings("s")));
    store.write_secrets(ACME, SECRETS, &settings("s")).await.unwrap();
    assert!(is_encrypted(&std::fs::read_to_string(store.path(ACME, SECRETS)).unwrap()));
}

#[tokio::test]
async fn rotation_moves_every_file_to_the_present_keys_and_reports_what_it_cannot_open() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (key(), key());
    let before = ConfigStore::new(place.path(), inline(&old));
    before.write_secrets(ACME, SECRETS, &settings("s")).await.unwrap();
    ConfigStore::new(place.path(), AgeKeys::default())
        .write_secrets(Scope::Deployment, SECRETS, &settings("d"))
        .await
        .unwrap();
    let foreign = ConfigStore::new(place.path(), inline(&key()));
    foreign.write_secrets(Scope::Organization("other"), SECRETS, &settings("o")).await.unwrap();

    // As an operator does it: both keys, rotate, then only the new one.
    let both = ConfigStore::new(place.path(), from_file(&[&old, &new])).rotate().await.unwrap();
    assert_eq!((both.rewritten.len(), both.failed.len()), (2, 1));
    assert!(both.failed[0].0.ends_with("other/object-storage/connection.secrets.json"));
    let after = ConfigStore::new(place.path(), inline(&new));
    assert_eq!(after.read_secrets(ACME, SECRETS).await.unwrap(), Some(settings("s")));
    assert_eq!(after.read_secrets(Scope::Deployment, SECRETS).await.unwrap(), Some(settings("d")));
    assert_eq!(after.rotate().await.unwrap().rewritten.len(), 2);
    let again = after.rotate().await.unwrap();
    assert_eq!((again.rewritten.len(), again.current.len()), (0, 2));
    assert!(ConfigStore::new(place.path(), inline(&old)).read_secrets::<Settings>(ACME, SECRETS).await.is_err());
}

#[tokio::test]
async fn two_writers_at_once_leave_one_whole_file_and_no_drafts() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    let writers = (0..16).map(|at| {
        let store = store.clone();
        tokio::spawn(async move { store.write(ACME, FILE, &settings(&format!("bucket-{at}"))).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    store.read::<Settings>(ACME, FILE).await.unwrap().unwrap();
    assert_eq!(std::fs::read_dir(store.path(ACME, FILE).parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_key_that_cannot_be_used_is_told_by_its_line_and_never_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "# comment\nAGE-SECRET-KEY-1HUNTER2\n").unwrap();
    let error = AgeKeys::load(None, Some(file.path())).unwrap_err().to_string();
    assert!(error.starts_with("line 2 of") && !error.contains("HUNTER2"), "{error}");
    let inline = AgeKeys::load(Some(&"AGE-SECRET-KEY-1HUNTER2".to_owned().into()), None).unwrap_err().to_string();
    assert!(inline.contains("SOPS_AGE_KEY") && !inline.contains("HUNTER2"), "{inline}");
    std::fs::write(file.path(), "# nothing\n").unwrap();
    assert!(AgeKeys::load(None, Some(file.path())).is_err());
}

#[tokio::test]
async fn an_organization_that_goes_takes_its_own_folder_along_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let store = ConfigStore::new(place.path(), AgeKeys::default());
    for scope in [ACME, Scope::Organization("acme-two"), Scope::Deployment] {
        store.write(scope, FILE, &settings("a")).await.unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("kept"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join("acme/elsewhere")).unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join("linked")).unwrap();
    for name in ["acme", "acme", "never-there", "linked"] {
        store.remove_organization(name).await.unwrap();
        assert!(place.path().join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(outside.path().join("kept").is_file(), "what links lead to stays");
    for name in ["", ".", "..", "default", ".hidden", "acme-two/object-storage", "../acme-two", "/", "acme-two/"] {
        let refused = store.remove_organization(name).await;
        assert!(matches!(refused, Err(ConfigError::Invalid { .. })), "{name}: {refused:?}");
    }
    for scope in [Scope::Organization("acme-two"), Scope::Deployment] {
        assert_eq!(store.read(scope, FILE).await.unwrap(), Some(settings("a")));
    }
}
