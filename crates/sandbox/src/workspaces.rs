//! Workspaces on disk, and what is known about them (1.4 and 4.7 of the specification).
//!
//! `ses-<id>/` is a workspace; `.owners/<id>.org` says whose it is, `.pins/<id>` which incarnation is pinned,
//! `.trash/ses-<id>.<n>…` is what is being deleted, `.line` who waits for room. Only this process writes directly under the root; what lies
//! below a workspace was written by whoever used the session, and is never followed.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use tale_sandbox_wire::names::{OrganizationId, SessionId};

use crate::admission::Need;
use crate::backend::{Deletion, Workspace};

const PREFIX: &str = "ses-";

/// Why a workspace could not be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It is another organization's.
    #[error("the workspace belongs to another organization")]
    Foreign,
    /// The disk refused.
    #[error("{path}: {error}")]
    Disk {
        /// What was touched.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Why a root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Another spawner has it.
    #[error("another spawner uses {0}")]
    Taken(PathBuf),
    /// The disk refused.
    #[error("{path} cannot be used: {error}")]
    Disk {
        /// What was touched.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError + use<> {
    let path = path.to_owned();
    move |error| WorkspaceError::Disk { path, error }
}

/// The directory of all workspaces. It is this process's as long as this value lives (SBX-5).
#[derive(Debug, Clone)]
pub struct Workspaces(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    _lock: File,
    /// Entries of the trash whose deletion failed, with what was said.
    failed: Mutex<BTreeMap<String, String>>,
    /// One round of deletions at a time.
    deleting: Mutex<()>,
}

impl Workspaces {
    /// Takes the root, made if it is not there.
    ///
    /// # Errors
    /// [`RootError`].
    pub fn open(root: &Path) -> Result<Self, RootError> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            move |error| RootError::Disk { path, error }
        };
        let make = |path: &Path, mode| DirBuilder::new().recursive(true).mode(mode).create(path);
        // Sessions have users of their own, which must be able to pass.
        make(root, 0o711).map_err(disk(root))?;
        for part in [".owners", ".pins", ".trash", ".package-caches"] {
            let path = root.join(part);
            make(&path, 0o700).map_err(disk(&path))?;
        }
        let path = root.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(disk(&path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => RootError::Taken(root.to_owned()),
            error => RootError::Disk { path: path.clone(), error: error.into() },
        })?;
        let inner = Inner { root: root.to_owned(), _lock: lock, failed: Mutex::default(), deleting: Mutex::default() };
        Ok(Self(Arc::new(inner)))
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Where the session's files are.
    #[must_use]
    pub fn path(&self, session: &SessionId) -> PathBuf {
        self.0.root.join(format!("{PREFIX}{session}"))
    }

    fn owner_path(&self, session: &SessionId) -> PathBuf {
        self.0.root.join(".owners").join(format!("{session}.org"))
    }

    fn pin_path(&self, session: &SessionId) -> PathBuf {
        self.0.root.join(".pins").join(session.as_str())
    }

    fn line_path(&self) -> PathBuf {
        self.0.root.join(".line")
    }

    /// Who waited for room when it was last written down. What cannot be read waits no longer.
    #[must_use]
    pub fn line(&self) -> Vec<(SessionId, Need)> {
        let read = |line: &str| {
            let mut fields = line.split(' ');
            let session = SessionId::new(fields.next()?).ok()?;
            Some((session, Need { slot: fields.next()? == "1", memory: fields.next()?.parse().ok()? }))
        };
        fs::read_to_string(self.line_path()).unwrap_or_default().lines().filter_map(read).collect()
    }

    /// Writes down who waits.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep_line(&self, waiting: &[(SessionId, Need)]) -> Result<(), WorkspaceError> {
        let lines =
            waiting.iter().map(|(session, need)| format!("{session} {} {}\n", u8::from(need.slot), need.memory));
        let path = self.line_path();
        write_whole(&path, &lines.collect::<String>()).map_err(at(&path))
    }

    fn trash(&self) -> PathBuf {
        self.0.root.join(".trash")
    }

    /// Makes the workspace or finds it, and gives it to `user`. Whose it is is written down first.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn prepare(
        &self,
        session: &SessionId,
        org: &OrganizationId,
        user: (u32, u32),
    ) -> Result<PathBuf, WorkspaceError> {
        let path = self.path(session);
        match self.owner(session)? {
            Some(owner) if owner != *org => return Err(WorkspaceError::Foreign),
            Some(_) => {}
            None => {
                let record = self.owner_path(session);
                write_whole(&record, org.as_str()).map_err(at(&record))?;
            }
        }
        match DirBuilder::new().mode(0o750).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at(&path)(error)),
        }
        let found = fs::symlink_metadata(&path).map_err(at(&path))?;
        if !found.is_dir() {
            return Err(at(&path)(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        if (found.uid(), found.gid()) != user {
            chown(&path, Some(user.0), Some(user.1)).map_err(at(&path))?;
        }
        Ok(path)
    }

    /// Whose the workspace is, as far as is recorded.
    ///
    /// # Errors
    /// When the record cannot be read or is none.
    pub fn owner(&self, session: &SessionId) -> Result<Option<OrganizationId>, WorkspaceError> {
        let path = self.owner_path(session);
        match fs::read_to_string(&path) {
            Ok(text) => OrganizationId::new(text.trim())
                .map(Some)
                .map_err(|error| at(&path)(io::Error::new(io::ErrorKind::InvalidData, error))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Which incarnation is pinned.
    #[must_use]
    pub fn pin(&self, session: &SessionId) -> Option<i64> {
        fs::read_to_string(self.pin_path(session)).ok()?.trim().parse().ok()
    }

    /// Records the pin of an incarnation; that of another one stays.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set_pin(&self, session: &SessionId, created_at_ms: i64, pinned: bool) -> Result<(), WorkspaceError> {
        let path = self.pin_path(session);
        if pinned {
            return write_whole(&path, &created_at_ms.to_string()).map_err(at(&path));
        }
        if self.pin(session) != Some(created_at_ms) {
            return Ok(());
        }
        gone(fs::remove_file(&path)).map_err(at(&path))
    }

    /// Moves the workspace out of reach; its bytes are deleted by [`Workspaces::empty_trash`]. Answers whether there
    /// was one. Where it cannot be moved it is deleted at once.
    ///
    /// # Errors
    /// When it is still there.
    pub fn discard(&self, session: &SessionId) -> Result<bool, WorkspaceError> {
        let path = self.path(session);
        let target = self.trash().join(format!("{PREFIX}{session}.{:032x}", rand::random::<u128>()));
        let was_there = match fs::rename(&path, &target) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) => {
                delete_tree(&path, &self.trash()).map_err(at(&path))?;
                true
            }
        };
        gone(fs::remove_file(self.pin_path(session))).map_err(at(&path))?;
        // Last: as long as there are files, it is known whose they are.
        gone(fs::remove_file(self.owner_path(session))).map_err(at(&path))?;
        Ok(was_there)
    }

    /// How far the deletions of the session are, read from the disk.
    ///
    /// # Errors
    /// When the trash cannot be read.
    pub fn deletion(&self, session: &SessionId) -> Result<Deletion, WorkspaceError> {
        let prefix = format!("{PREFIX}{session}.");
        let left = self.trash_entries(&prefix)?;
        let failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(if left.is_empty() {
            Deletion::Done
        } else if left.iter().any(|name| failed.contains_key(name)) {
            Deletion::Failed
        } else {
            Deletion::Pending
        })
    }

    fn trash_entries(&self, prefix: &str) -> Result<Vec<String>, WorkspaceError> {
        let trash = self.trash();
        let mut names = Vec::new();
        for entry in fs::read_dir(&trash).map_err(at(&trash))? {
            let name = entry.map_err(at(&trash))?.file_name();
            names.extend(name.to_str().filter(|name| name.starts_with(prefix)).map(str::to_owned));
        }
        Ok(names)
    }

    /// Deletes what is in the trash, of one session or of all, one after another. It may take long; it blocks.
    pub fn empty_trash(&self, session: Option<&SessionId>) {
        let _turn = self.0.deleting.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = session.map_or_else(|| PREFIX.to_owned(), |session| format!("{PREFIX}{session}."));
        let names = match self.trash_entries(&prefix) {
            Ok(names) => names,
            Err(error) => {
                tracing::error!(event = "sandbox.trash", %error, "deleted workspaces cannot be listed");
                return;
            }
        };
        for name in names {
            let begun = std::time::Instant::now();
            let outcome = delete_tree(&self.trash().join(&name), &self.trash());
            let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(()) => {
                    failed.remove(&name);
                    let seconds = begun.elapsed().as_secs();
                    if seconds >= 1 {
                        tracing::info!(event = "sandbox.trash", entry = name, seconds, "a workspace was deleted");
                    }
                }
                Err(error) => {
                    tracing::error!(event = "sandbox.trash", entry = name, %error, "a workspace could not be deleted");
                    failed.insert(name, error.to_string());
                }
            }
        }
    }

    /// The workspaces that take most space, with their bytes. It blocks, and looks at a million entries at most.
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<(String, u64)> {
        let mut left = 1_000_000_u32;
        let mut sizes: Vec<(String, u64)> = self
            .list()
            .unwrap_or_default()
            .into_iter()
            .map(|workspace| (workspace.session.to_string(), size(self.path(&workspace.session), &mut left)))
            .collect();
        sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sizes.truncate(count);
        sizes
    }

    /// Every workspace.
    ///
    /// # Errors
    /// When one of them cannot be judged: to leave one out is safe, an empty answer is not (SBX-86).
    pub fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        let root = &self.0.root;
        let mut found = Vec::new();
        for entry in fs::read_dir(root).map_err(at(root))? {
            let entry = entry.map_err(at(root))?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map(SessionId::new);
            let Some(Ok(session)) = id else { continue };
            let Ok(about) = entry.metadata() else { continue };
            let touched = about.mtime().max(about.ctime()).saturating_mul(1_000);
            let (org, pinned) = (self.owner(&session)?, self.pin(&session).is_some());
            found.push(Workspace { session, touched_at_ms: touched, org, pinned });
        }
        found.sort_by(|a, b| a.session.cmp(&b.session));
        Ok(found)
    }
}

/// Bytes on disk below a directory, as far as they can be read.
fn size(tree: PathBuf, left: &mut u32) -> u64 {
    let mut queue = vec![tree];
    let mut bytes = 0_u64;
    while let Some(directory) = queue.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if *left == 0 {
                return bytes;
            }
            *left -= 1;
            let Ok(about) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            if about.is_dir() {
                queue.push(entry.path());
            }
        }
    }
    bytes
}

/// A file that is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, text)?;
    File::open(&temporary)?.sync_all()?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes a tree of any depth without following anything in it: each directory below is moved up into `trash` and
/// deleted from there, so that neither the stack nor the open files grow with it.
fn delete_tree(tree: &Path, trash: &Path) -> io::Result<()> {
    let name = tree.file_name().and_then(|name| name.to_str()).unwrap_or("ses-x.0");
    let name = if name.contains('.') { name.to_owned() } else { format!("{name}.0") };
    let mut queue = vec![tree.to_owned()];
    let mut moved = 0_u64;
    while let Some(directory) = queue.pop() {
        match fs::symlink_metadata(&directory) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => {
                gone(fs::remove_file(&directory))?;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                gone(fs::remove_file(entry.path()))?;
                continue;
            }
            if gone_directory(&entry.path()) {
                continue;
            }
            moved += 1;
            // The name keeps its beginning: whoever counts what is left of a session finds it.
            let up = trash.join(format!("{name}.{moved}-{:016x}", rand::random::<u64>()));
            fs::rename(entry.path(), &up)?;
            queue.push(up);
        }
        gone(fs::remove_dir(&directory))?;
    }
    Ok(())
}

/// Removes a directory that is empty already.
fn gone_directory(path: &Path) -> bool {
    fs::remove_dir(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    fn me() -> (u32, u32) {
        (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
    }

    #[test]
    fn a_root_has_one_spawner_and_a_workspace_one_organization() {
        let place = tempfile::tempdir().unwrap();
        let all = Workspaces::open(place.path()).unwrap();
        assert!(matches!(Workspaces::open(place.path()), Err(RootError::Taken(_))));
        let (a, b) = (OrganizationId::new("a").unwrap(), OrganizationId::new("b").unwrap());
        all.prepare(&id("s"), &a, me()).unwrap();
        all.prepare(&id("s"), &a, me()).unwrap();
        assert!(matches!(all.prepare(&id("s"), &b, me()), Err(WorkspaceError::Foreign)));
        all.set_pin(&id("s"), 7, true).unwrap();
        all.set_pin(&id("s"), 6, false).unwrap();
        assert_eq!(all.pin(&id("s")), Some(7), "an older incarnation cannot unpin");
        let listed = all.list().unwrap();
        assert_eq!((listed.len(), listed[0].org.as_ref(), listed[0].pinned), (1, Some(&a), true));
        drop(all);
        Workspaces::open(place.path()).unwrap();
    }

    #[test]
    fn what_is_destroyed_is_out_of_reach_at_once_and_gone_when_it_says_so() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("keep"), "x").unwrap();
        let all = Workspaces::open(place.path()).unwrap();
        let org = OrganizationId::new("a").unwrap();
        let path = all.prepare(&id("s"), &org, me()).unwrap();
        all.prepare(&id("s-2"), &org, me()).unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("link")).unwrap();
        // Deeper than a path may be long, as programs inside can make it.
        let mut directory = File::open(&path).unwrap();
        for _ in 0..6_000 {
            rustix::fs::mkdirat(&directory, "d", rustix::fs::Mode::RWXU).unwrap();
            let next = rustix::fs::openat(&directory, "d", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty());
            directory = next.unwrap().into();
        }
        drop(directory);
        assert!(all.discard(&id("s")).unwrap());
        assert!(!path.exists());
        assert_eq!(all.deletion(&id("s")).unwrap(), Deletion::Pending);
        assert_eq!(all.deletion(&id("s-2")).unwrap(), Deletion::Done);
        assert!(!all.discard(&id("s")).unwrap());
        // The same id begins anew while the old files go.
        let other = OrganizationId::new("b").unwrap();
        assert_eq!(fs::read_dir(all.prepare(&id("s"), &other, me()).unwrap()).unwrap().count(), 0);
        all.empty_trash(Some(&id("s")));
        assert_eq!(all.deletion(&id("s")).unwrap(), Deletion::Done);
        assert!(outside.path().join("keep").exists());
        assert_eq!(fs::read_dir(place.path().join(".trash")).unwrap().count(), 0);
    }
}
