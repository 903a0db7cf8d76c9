//! Damaged files of a keyword index: noticed, never believed, made again.

use std::fs;
use std::path::{Path, PathBuf};

use tale_core::ids::OrgId;
use tale_knowledge::keyword::RepairPolicy;
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{SearchRequest, Searcher};
use tempfile::TempDir;

use super::world::World;

/// Something that happens to a file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    /// One bit of the byte at this share of its length.
    Flip(f64),
    /// Cut to this share of its length.
    Cut(f64),
    Removed,
}

const DAMAGES: [Damage; 4] = [Damage::Flip(0.4), Damage::Flip(0.999_999), Damage::Cut(0.6), Damage::Removed];

impl Damage {
    /// In place, as a disk or an operator does it.
    fn strike(self, path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let at = |share: f64| (bytes.len() as f64 * share) as usize;
        match self {
            Self::Flip(share) => {
                let at = at(share);
                bytes[at] ^= 0x01;
                // the same file, not a new one of its name
                let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).unwrap();
            }
            Self::Cut(share) => {
                fs::OpenOptions::new().write(true).open(path).unwrap().set_len(at(share) as u64).unwrap();
            }
            Self::Removed => fs::remove_file(path).unwrap(),
        }
    }
}

/// An organization whose index has a removed document, two segments and nothing else unusual.
async fn orchard(world: &World) -> OrgId {
    let org = world.org().await;
    for number in 0..20 {
        let tree = format!("The apple tree number {number} in the orchard.");
        world.document(org, &format!("Row {number}"), &[&tree, "And a plum."]).await;
    }
    let felled = world.document(org, "Felled", &["The pear tree was felled."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    world.remove(org, felled.file).await;
    world.document(org, "Cherry", &["A cherry tree."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    org
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn copied(world: &World) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&world.folder.path().join("search"), &folder.path().join("search"));
    folder
}

/// A file of each kind of the index of `org` but the locks.
fn files(folder: &TempDir, org: OrgId) -> Vec<PathBuf> {
    let place = folder.path().join("search").join(org.to_string());
    let generation = place.join(fs::read_to_string(place.join("CURRENT")).unwrap());
    let mut files: Vec<PathBuf> = fs::read_dir(generation)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none_or(|ending| ending != "lock"))
        .filter(|path| fs::metadata(path).unwrap().len() > 0)
        .collect();
    files.sort_by_key(|path| path.extension().unwrap_or(path.as_os_str()).to_owned());
    files.dedup_by_key(|path| path.extension().unwrap_or(path.as_os_str()).to_owned());
    files.push(place.join("CURRENT"));
    assert!(files.len() >= 9, "{files:?}");
    files
}

/// Number of passages found for what is there, and for what was removed, with `bm25`.
async fn found(searcher: &Searcher, org: OrgId) -> (usize, usize, bool) {
    let search = async |query| {
        let request = SearchRequest { limit: 50, ..SearchRequest::new(query) };
        searcher.search(&Reach::library(org, None), &request, None).await.unwrap()
    };
    let (apples, pears, cherries) = (search("apple").await, search("pear").await, search("cherry").await);
    (apples.hits.len() + cherries.hits.len(), pears.hits.len(), cherries.diagnostics.bm25)
}

async fn records(world: &World, org: OrgId) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT action FROM app.audit_entries
          WHERE org_id = $1 AND actor_kind = 'system' AND action LIKE 'knowledge_index%' ORDER BY at, id",
    )
    .bind(org)
    .fetch_all(&world.db.app)
    .await
    .unwrap()
}

#[tokio::test]
async fn any_damage_that_a_start_finds_is_noticed_and_made_good_before_the_first_answer() {
    let world = World::new().await;
    let org = orchard(&world).await;
    for file in 0..files(&world.folder, org).len() {
        for damage in DAMAGES {
            let folder = copied(&world);
            let path = files(&folder, org).swap_remove(file);
            damage.strike(&path);
            let restarted = world.replica(&folder);
            let name = path.file_name().unwrap().display();
            assert_eq!(found(&restarted, org).await, (21, 0, true), "{damage:?} of {name}");
        }
    }
    let records = records(&world, org).await;
    assert!(records.len() >= 32 && records.iter().all(|action| action == "knowledge_index_repaired"), "{records:?}");
}

#[tokio::test]
async fn damage_under_an_open_index_is_noticed_by_the_next_search() {
    let world = World::new().await;
    let org = orchard(&world).await;
    // to the end: rounds in the background may still look at them
    let mut folders = Vec::new();
    for file in 0..files(&world.folder, org).len() {
        for damage in DAMAGES {
            let folder = copied(&world);
            let path = files(&folder, org).swap_remove(file);
            let running = world.replica(&folder);
            assert_eq!(found(&running, org).await, (21, 0, true));
            damage.strike(&path);
            let name = path.file_name().unwrap().display();
            assert_eq!(found(&running, org).await, (21, 0, true), "{damage:?} of {name}");
            // and the next round leaves an index that a restart finds whole; lists are read at a start only
            running.keyword().catch_up(org).await.unwrap();
            let repairs = records(&world, org).await.len();
            assert_eq!(found(&world.replica(&folder), org).await, (21, 0, true), "after {damage:?} of {name}");
            let list = path.ends_with("CURRENT") || path.extension().is_some_and(|ending| ending == "json");
            let made = records(&world, org).await.len() - repairs;
            assert!(list || made == 0, "repaired by the restart after {damage:?} of {name}");
            folders.push(folder);
        }
    }
}

#[tokio::test]
async fn processes_that_find_the_same_damage_all_wait_for_the_one_that_repairs_it() {
    let world = World::new().await;
    let org = orchard(&world).await;
    for file in 0..files(&world.folder, org).len() {
        let folder = copied(&world);
        let path = files(&folder, org).swap_remove(file);
        Damage::Cut(0.6).strike(&path);
        let replicas = [world.replica(&folder), world.replica(&folder), world.replica(&folder)];
        let answers = futures::future::join_all(replicas.iter().map(|replica| found(replica, org))).await;
        assert_eq!(answers, [(21, 0, true); 3], "{}", path.display());
    }
}

#[tokio::test]
async fn a_large_index_is_announced_before_it_is_built_anew() {
    let world = World::new().await;
    let org = orchard(&world).await;
    let folder = copied(&world);
    Damage::Cut(0.5).strike(&files(&folder, org)[0]);
    let restarted = world.replica_with(&folder, RepairPolicy { inline_max_bytes: 0, ..RepairPolicy::default() });
    restarted.keyword().catch_up(org).await.unwrap();
    assert_eq!(found(&restarted, org).await, (21, 0, true));
    assert_eq!(records(&world, org).await, ["knowledge_index_rebuild_scheduled", "knowledge_index_repaired"]);
}

#[tokio::test]
async fn without_repair_the_files_stay_as_they_are() {
    let world = World::new().await;
    let org = orchard(&world).await;
    let folder = copied(&world);
    let place = folder.path().join("search").join(org.to_string());
    let before = fs::read(place.join("CURRENT")).unwrap();
    let list = place.join(std::str::from_utf8(&before).unwrap()).join("meta.json");
    Damage::Cut(0.5).strike(&list);
    let restarted = world.replica_with(&folder, RepairPolicy { enabled: false, ..RepairPolicy::default() });
    assert_eq!(found(&restarted, org).await, (0, 0, false));
    assert_eq!(fs::read(place.join("CURRENT")).unwrap(), before);
    assert!(records(&world, org).await.is_empty());
}

#[tokio::test]
async fn folders_of_organizations_that_are_no_more_are_swept() {
    let world = World::new().await;
    let (kept, gone) = (orchard(&world).await, orchard(&world).await);
    for sql in [
        "DELETE FROM app.documents WHERE org_id = $1",
        "DELETE FROM app.files WHERE org_id = $1",
        "DELETE FROM app.organizations WHERE id = $1",
    ] {
        sqlx::query(sql).bind(gone).execute(&world.db.app).await.unwrap();
    }
    let search = world.folder.path().join("search");
    fs::create_dir(search.join("not-one-of-ours")).unwrap();
    assert_eq!(world.searcher.keyword().sweep_folders().await.unwrap(), 1);
    assert!(search.join(kept.to_string()).exists() && !search.join(gone.to_string()).exists());
    assert!(search.join("not-one-of-ours").exists());
    assert_eq!(found(&world.searcher, kept).await, (21, 0, true));
    assert_eq!(world.searcher.keyword().sweep_folders().await.unwrap(), 0);
}
