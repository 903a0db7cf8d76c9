//! Files that are put into the workspace: each is written beside its place and moved there when it is
//! whole, so whatever goes wrong leaves the file that was there before.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use sha2::{Digest, Sha256};
use tale_sandbox_wire::daemon::DaemonError;
use tale_sandbox_wire::files::{StageAnswer, StageFile, StageRequest, StageResult, StageStatus, WorkspacePath};
use tale_sandbox_wire::limits::{
    MAX_STAGE_FETCHES, MAX_STAGE_REQUESTS, MAX_STAGED_FILES, MAX_STAGED_INLINE_BYTES, MAX_STAGED_URL_BYTES,
    STAGE_BUDGET,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::fetch::Fetch;
use crate::http::Answer;
use crate::path::{self, Root};
use crate::random_token;

/// Bytes that are written at a time.
const CHUNK: usize = 256 << 10;

/// Files that are being put into the workspace, and what is known of those that were.
#[derive(Debug)]
pub struct Stage {
    root: Arc<Root>,
    requests: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    /// By path: the name of the content, and what it hashes to. Only says which hash to expect; the file
    /// itself is hashed each time.
    known: Arc<Mutex<HashMap<String, (String, String)>>>,
}

/// Why a file is not there.
#[derive(Debug)]
pub struct NotStaged {
    status: StageStatus,
    message: String,
}

impl NotStaged {
    /// With a sentence.
    #[must_use]
    pub fn new(status: StageStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<io::Error> for NotStaged {
    fn from(error: io::Error) -> Self {
        let status = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(
                rustix::io::Errno::XDEV
                | rustix::io::Errno::LOOP
                | rustix::io::Errno::NOTDIR
                | rustix::io::Errno::ISDIR
                | rustix::io::Errno::EXIST
                | rustix::io::Errno::NOTEMPTY
                | rustix::io::Errno::NAMETOOLONG,
            ) => StageStatus::BadPath,
            _ => StageStatus::WriteFailed,
        };
        Self::new(status, error.to_string())
    }
}

impl From<rustix::io::Errno> for NotStaged {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl Stage {
    /// For this workspace.
    #[must_use]
    pub fn new(root: Arc<Root>) -> Self {
        Self {
            root,
            requests: Arc::new(Semaphore::new(MAX_STAGE_REQUESTS)),
            fetches: Arc::new(Semaphore::new(MAX_STAGE_FETCHES)),
            known: Arc::default(),
        }
    }

    /// A place for one request, its body included.
    #[must_use]
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// Stages the files, or reconciles the roots.
    ///
    /// # Errors
    /// A refusal of the whole request; what went wrong with single files is in the answer.
    pub async fn run(&self, request: StageRequest) -> Result<StageAnswer, Answer> {
        let deadline = Instant::now() + STAGE_BUDGET;
        let mut work = Vec::with_capacity(request.files.len());
        for file in request.files {
            let path = file.path.clone();
            let task = One { root: Arc::clone(&self.root), known: Arc::clone(&self.known), file };
            // Dropping the set ends what is under way, and its guard removes the part that was written.
            let mut set = tokio::task::JoinSet::new();
            set.spawn(task.run(Arc::clone(&self.fetches)));
            work.push((path, set));
        }
        let mut files = Vec::with_capacity(work.len());
        for (path, mut set) in work {
            let staged = match tokio::time::timeout_at(deadline, set.join_next()).await {
                Ok(Some(Ok(staged))) => staged,
                Ok(_) => Err(NotStaged::new(StageStatus::WriteFailed, "staging failed")),
                Err(_) => Err(NotStaged::new(StageStatus::TimedOut, "the time of the request is up")),
            };
            files.push(match staged {
                Ok(()) => StageResult { path, status: StageStatus::Staged, message: None },
                Err(not) => StageResult { path, status: not.status, message: Some(not.message) },
            });
        }
        let mut reconciled = false;
        if !request.replace_roots.is_empty() {
            let root = Arc::clone(&self.root);
            let (roots, keep) = (request.replace_roots, request.keep_paths);
            let work = tokio::task::spawn_blocking(move || reconcile(&root, &roots, &keep));
            match tokio::time::timeout_at(deadline, work).await {
                Ok(Ok(Ok(()))) => reconciled = true,
                _ => return Err(Answer::refuse(DaemonError::Internal, "the directories could not be reconciled")),
            }
        }
        Ok(StageAnswer { files, reconciled })
    }
}

/// One file on its way.
struct One {
    root: Arc<Root>,
    known: Arc<Mutex<HashMap<String, (String, String)>>>,
    file: StageFile,
}

impl One {
    async fn run(self, fetches: Arc<Semaphore>) -> Result<(), NotStaged> {
        let bad = |bad: tale_sandbox_wire::exec::BadRequest| NotStaged::new(StageStatus::BadPath, bad.0);
        let path = WorkspacePath::new(&self.file.path).map_err(bad)?;
        if self.is_there(&path).await {
            return Ok(());
        }
        let hash = if let Some(content) = self.file.content().map_err(bad)? {
            if content.len() > MAX_STAGED_INLINE_BYTES {
                return Err(NotStaged::new(StageStatus::TooLarge, "a file inside the request has at most 1 MiB"));
            }
            let (root, path, expected) = (Arc::clone(&self.root), path.clone(), self.file.sha256.clone());
            on_disk(move || {
                let mut part = Part::create(&root, &path)?;
                part.write(&content)?;
                part.keep(expected.as_deref())
            })
            .await?
        } else if let Some(url) = &self.file.url {
            let _place =
                fetches.acquire_owned().await.map_err(|_| NotStaged::new(StageStatus::FetchFailed, "stopped"))?;
            self.fetch(url, &path).await?
        } else {
            return Err(NotStaged::new(StageStatus::NoSource, "no verified copy of this content is there"));
        };
        if let Some(source) = self.file.source() {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_STAGED_FILES {
                known.clear();
            }
            known.insert(path.as_str().to_owned(), (source.to_owned(), hash));
        }
        Ok(())
    }

    async fn fetch(&self, url: &str, path: &WorkspacePath) -> Result<String, NotStaged> {
        let mut fetch = Fetch::start(url).await?;
        let (root, at, expected) = (Arc::clone(&self.root), path.clone(), self.file.sha256.clone());
        let mut part = on_disk(move || Part::create(&root, &at)).await?;
        let mut total = 0;
        let mut waiting = Vec::with_capacity(CHUNK);
        loop {
            let chunk = fetch.chunk().await?;
            let last = chunk.is_none();
            if let Some(chunk) = chunk {
                total += chunk.len() as u64;
                if total > MAX_STAGED_URL_BYTES {
                    return Err(NotStaged::new(StageStatus::TooLarge, "a fetched file has at most 100 MiB"));
                }
                waiting.extend_from_slice(&chunk);
            }
            if last || waiting.len() >= CHUNK {
                let bytes = std::mem::take(&mut waiting);
                part = on_disk(move || {
                    part.write(&bytes)?;
                    Ok(part)
                })
                .await?;
            }
            if last {
                return on_disk(move || part.keep(expected.as_deref())).await;
            }
        }
    }

    /// Whether the file that is there is the one that is wanted, by its own bytes.
    async fn is_there(&self, path: &WorkspacePath) -> bool {
        let known = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(path.as_str()).filter(|(source, _)| Some(source.as_str()) == self.file.source()).cloned()
        };
        let Some(expected) = self.file.sha256.clone().or(known.map(|(_, hash)| hash)) else { return false };
        let (root, path) = (Arc::clone(&self.root), path.clone());
        let hashed = on_disk(move || Ok(hash_of(&root, &path)?)).await;
        hashed.is_ok_and(|hash| hash == expected)
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotStaged> + Send + 'static,
) -> Result<T, NotStaged> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(NotStaged::new(StageStatus::WriteFailed, "staging failed")))
}

/// Hashes the file at a path, and makes sure that the path still names that very file, unchanged.
fn hash_of(root: &Root, path: &WorkspacePath) -> io::Result<String> {
    let open = || root.open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK).map(File::from);
    let mut file = open()?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_STAGED_URL_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file within the limit"));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let named = |meta: &std::fs::Metadata| {
        (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
    };
    if named(&open()?.metadata()?) != named(&meta) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file changed meanwhile"));
    }
    Ok(hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file that is not whole yet. Goes away when it is dropped.
struct Part {
    dir: OwnedFd,
    part: Option<String>,
    name: String,
    file: File,
    hash: Sha256,
}

impl Part {
    fn create(root: &Root, path: &WorkspacePath) -> Result<Self, NotStaged> {
        let (above, name) = path.split().ok_or_else(|| NotStaged::new(StageStatus::BadPath, "the workspace itself"))?;
        let dir = root.make_directory(above)?;
        let part = format!(".tale-stage-{}", random_token()?);
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::openat(&dir, &part, how, Mode::from_raw_mode(0o644))?);
        Ok(Self { dir, part: Some(part), name: name.to_owned(), file, hash: Sha256::new() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), NotStaged> {
        self.hash.update(bytes);
        Ok(self.file.write_all(bytes)?)
    }

    /// Moves the file to its place and says what it hashes to.
    fn keep(mut self, expected: Option<&str>) -> Result<String, NotStaged> {
        let hash = hex(&self.hash.clone().finalize());
        if expected.is_some_and(|expected| expected != hash) {
            return Err(NotStaged::new(StageStatus::HashMismatch, "these are not the bytes that were announced"));
        }
        let before = rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if let Ok(stat) = before
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        {
            // Neither set-user-id nor set-group-id passes to bytes that came from outside.
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        }
        if let Some(part) = self.part.take()
            && let Err(error) = rustix::fs::renameat(&self.dir, &part, &self.dir, &self.name)
        {
            self.part = Some(part);
            return Err(error.into());
        }
        Ok(hash)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = rustix::fs::unlinkat(&self.dir, part, AtFlags::empty());
        }
    }
}

/// Removes from each root what is not to be kept.
fn reconcile(root: &Root, roots: &[String], keep: &[String]) -> io::Result<()> {
    let path = |text: &String| WorkspacePath::new(text).map_err(io::Error::other);
    let keep: BTreeSet<String> =
        keep.iter().map(|text| path(text).map(|path| path.as_str().to_owned())).collect::<io::Result<_>>()?;
    for text in roots {
        let at = path(text)?;
        match root.open_at(at.as_str(), OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(dir) => clear(&dir, at.as_str(), &keep)?,
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn clear(dir: &OwnedFd, at: &str, keep: &BTreeSet<String>) -> io::Result<()> {
    for name in path::entries(dir)? {
        let text = name.to_str().ok().map(|name| format!("{at}/{name}"));
        if text.as_ref().is_some_and(|text| keep.contains(text)) {
            continue;
        }
        let above = text.as_ref().map(|text| format!("{text}/"));
        let holds = above
            .as_ref()
            .is_some_and(|above| keep.range(above.clone()..).next().is_some_and(|k| k.starts_with(above)));
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match (holds, text) {
            (true, Some(text)) => match rustix::fs::openat(dir, name.as_c_str(), how, Mode::empty()) {
                Ok(inner) => clear(&inner, &text, keep)?,
                Err(_) => drop(path::remove_tree(dir, &name)?),
            },
            _ => drop(path::remove_tree(dir, &name)?),
        }
    }
    Ok(())
}
