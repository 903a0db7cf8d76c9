//! Changes of an organization's files, for whoever shows them.
//!
//! Noticed by looking, not by the kernel's notifications: configuration often lies on a network volume
//! or in a mount that is replaced as a whole, where those do not arrive. An organization is looked at
//! once every [`EVERY`] while somebody listens and never otherwise; a look reads directory entries and
//! no content, of at most [`MOST_FILES`] files, [`DEEPEST`] folders deep. A listener that falls more
//! than [`EVENT_BUFFER`] changes behind is told to read everything anew.

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;
use tokio::time::MissedTickBehavior;

use crate::store::{ConfigStore, SECRETS_SUFFIX, Scope, Stamp};

/// Time between two looks at one organization.
const EVERY: Duration = Duration::from_secs(1);
/// Files of one organization that are looked at; the rest is passed over.
const MOST_FILES: usize = 2_000;
/// Folders below each other that are looked into.
const DEEPEST: usize = 4;
/// Changes kept for a slow listener.
const EVENT_BUFFER: usize = 64;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It was written.
    Changed,
    /// It is gone.
    Removed,
}

/// A change of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileChange {
    /// The file inside the organization's folder, such as `object-storage/connection.json`. A file of
    /// secrets goes by the name of the file it belongs to.
    pub path: String,
    /// What happened to it.
    pub change: ChangeKind,
}

/// What a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// One file changed.
    Change(FileChange),
    /// More changed than was kept: anything may have.
    Everything,
}

/// The organizations somebody listens to. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileWatch {
    files: ConfigStore,
    every: Duration,
    folders: Arc<Mutex<HashMap<String, broadcast::Sender<FileChange>>>>,
}

/// One listener's place. Dropping it leaves.
#[derive(Debug)]
pub struct FileChanges(broadcast::Receiver<FileChange>);

impl FileChanges {
    /// The next change.
    pub async fn next(&mut self) -> Heard {
        match self.0.recv().await {
            Ok(change) => Heard::Change(change),
            Err(broadcast::error::RecvError::Lagged(_)) => Heard::Everything,
            // the look ends only after its last listener
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl FileWatch {
    /// Watches the folders of `files`. Nothing is looked at yet.
    #[must_use]
    pub fn new(files: ConfigStore) -> Self {
        Self { files, every: EVERY, folders: Arc::default() }
    }

    /// The same with another time between two looks.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Listens to the organization with `slug`: every change after this returns is told.
    pub async fn listen(&self, slug: &str) -> FileChanges {
        if let Some(sender) = self.folders().get(slug) {
            return FileChanges(sender.subscribe());
        }
        let known = self.look(slug).await;
        let mut folders = self.folders();
        match folders.entry(slug.to_owned()) {
            // somebody else was faster
            Entry::Occupied(found) => FileChanges(found.get().subscribe()),
            Entry::Vacant(place) => {
                let (sender, receiver) = broadcast::channel(EVENT_BUFFER);
                place.insert(sender.clone());
                tokio::spawn(self.clone().follow(slug.to_owned(), sender, known));
                FileChanges(receiver)
            }
        }
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<FileChange>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks until nobody listens any more.
    async fn follow(self, slug: String, sender: broadcast::Sender<FileChange>, mut known: Files) {
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            {
                // under the lock, so that nobody joins a look that ends
                let mut folders = self.folders();
                if sender.receiver_count() == 0 {
                    folders.remove(&slug);
                    return;
                }
            }
            let now = self.look(&slug).await;
            for change in changes(&known, &now) {
                let _ = sender.send(change);
            }
            known = now;
        }
    }

    async fn look(&self, slug: &str) -> Files {
        let folder = self.files.folder(Scope::Organization(slug));
        let looked = tokio::task::spawn_blocking(move || {
            let mut files = Files::new();
            if let Ok(root) = fs::canonicalize(&folder) {
                look_into(&root, &root, "", DEEPEST, &mut files);
            }
            files
        });
        looked.await.unwrap_or_default()
    }
}

/// The files of an organization by their place in its folder.
type Files = BTreeMap<String, Stamp>;

/// Adds the files of `folder` below `root`. Names that begin with a dot are drafts, history and the inside of
/// mounts; what cannot be read is passed over, as if it were not there. A link is what it leads to only where that
/// is a file inside `root`, which mounted configuration is made of; of any other the link itself is looked at.
fn look_into(root: &Path, folder: &Path, prefix: &str, deeper: usize, files: &mut Files) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || files.len() >= MOST_FILES {
            continue;
        }
        let Ok(mut metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            if deeper > 0 {
                look_into(root, &entry.path(), &format!("{prefix}{name}/"), deeper - 1, files);
            }
            continue;
        }
        if metadata.is_symlink()
            && let Ok(target) = fs::canonicalize(entry.path())
            && target.starts_with(root)
            && let Ok(found) = fs::symlink_metadata(target)
            && found.is_file()
        {
            metadata = found;
        }
        files.insert(format!("{prefix}{name}"), Stamp::of(&metadata));
    }
}

/// What is different, each file once.
fn changes(before: &Files, now: &Files) -> Vec<FileChange> {
    let told = |path: &str, change| FileChange {
        path: match path.strip_suffix(SECRETS_SUFFIX) {
            Some(name) => format!("{name}.json"),
            None => path.to_owned(),
        },
        change,
    };
    let mut changes: Vec<FileChange> = now
        .iter()
        .filter_map(|(path, stamp)| match before.get(path) {
            None => Some(told(path, ChangeKind::Created)),
            Some(known) if known != stamp => Some(told(path, ChangeKind::Changed)),
            Some(_) => None,
        })
        .chain(before.keys().filter(|path| !now.contains_key(*path)).map(|path| told(path, ChangeKind::Removed)))
        .collect();
    changes.sort();
    changes.dedup();
    changes
}
