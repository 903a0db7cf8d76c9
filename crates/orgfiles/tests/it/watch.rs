//! Changes of an organization's files reach whoever listens to it, and nobody else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tale_orgfiles::{AgeKeys, ChangeKind, ConfigStore, FileChange, FileChanges, FileWatch, Heard};
use tempfile::TempDir;

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

async fn next(changes: &mut FileChanges) -> Heard {
    tokio::time::timeout(Duration::from_secs(30), changes.next()).await.unwrap()
}

fn change(path: &str, change: ChangeKind) -> Heard {
    Heard::Change(FileChange { path: path.to_owned(), change })
}

fn watched() -> (TempDir, FileWatch) {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "acme/governance/budgets.yml", "enabled: true");
    let watch = FileWatch::new(ConfigStore::new(root.path(), AgeKeys::default())).every(Duration::from_millis(5));
    (root, watch)
}

#[tokio::test]
async fn a_listener_hears_of_new_changed_and_removed_files_of_its_organization() {
    let (root, watch) = watched();
    let mut changes = watch.listen("acme").await;
    write(root.path(), "globex/governance/budgets.yml", "enabled: true");
    write(root.path(), "acme/object-storage/.connection.json.draft", "{}");
    write(root.path(), "acme/object-storage/connection.json", "{}");
    assert_eq!(next(&mut changes).await, change("object-storage/connection.json", ChangeKind::Created));
    write(root.path(), "acme/governance/budgets.yml", "enabled: false");
    assert_eq!(next(&mut changes).await, change("governance/budgets.yml", ChangeKind::Changed));
    fs::remove_file(root.path().join("acme/governance/budgets.yml")).unwrap();
    // a second listener joins and hears what comes from now on
    let mut second = watch.listen("acme").await;
    assert_eq!(next(&mut changes).await, change("governance/budgets.yml", ChangeKind::Removed));
    assert_eq!(next(&mut second).await, change("governance/budgets.yml", ChangeKind::Removed));
}

#[tokio::test]
async fn secrets_go_by_the_name_of_what_they_belong_to() {
    let (root, watch) = watched();
    let mut changes = watch.listen("acme").await;
    write(root.path(), "acme/object-storage/connection.secrets.json", "{}");
    write(root.path(), "acme/object-storage/connection.json", "{}");
    assert_eq!(next(&mut changes).await, change("object-storage/connection.json", ChangeKind::Created));
    fs::remove_dir_all(root.path().join("acme")).unwrap();
    assert_eq!(next(&mut changes).await, change("governance/budgets.yml", ChangeKind::Removed));
    assert_eq!(next(&mut changes).await, change("object-storage/connection.json", ChangeKind::Removed));
}

#[tokio::test]
async fn who_hears_too_little_reads_everything_and_who_leaves_may_come_back() {
    let (root, watch) = watched();
    let mut changes = watch.listen("acme").await;
    for number in 0..200 {
        write(root.path(), &format!("acme/agents/{number}.json"), "{}");
    }
    assert_eq!(next(&mut changes).await, Heard::Everything);
    drop(changes);
    let mut again = watch.listen("acme").await;
    write(root.path(), "acme/governance/budgets.yml", "");
    assert_eq!(next(&mut again).await, change("governance/budgets.yml", ChangeKind::Changed));
}

#[tokio::test]
async fn a_link_out_of_the_folder_tells_nothing_of_where_it_leads() {
    let (root, watch) = watched();
    write(root.path(), "globex/governance/budgets.yml", "{}");
    write(root.path(), "acme/..data/model-access.yml", "{}");
    fs::create_dir_all(root.path().join("acme/governance")).unwrap();
    std::os::unix::fs::symlink("../../globex", root.path().join("acme/governance/others")).unwrap();
    std::os::unix::fs::symlink("../../globex/governance/budgets.yml", root.path().join("acme/governance/spend.yml"))
        .unwrap();
    std::os::unix::fs::symlink("../..data/model-access.yml", root.path().join("acme/governance/model-access.yml"))
        .unwrap();
    let mut changes = watch.listen("acme").await;
    write(root.path(), "globex/governance/budgets.yml", "{\"enabled\": false}");
    write(root.path(), "globex/governance/new.yml", "{}");
    write(root.path(), "acme/..data/model-access.yml", "{\"enabled\": true}");
    assert_eq!(next(&mut changes).await, change("governance/model-access.yml", ChangeKind::Changed));
    write(root.path(), "acme/last.json", "{}");
    assert_eq!(next(&mut changes).await, change("last.json", ChangeKind::Created));
}
