//! The files of a generation, in a directory that notices when they are not what was written.
//!
//! tantivy writes a checksum into every file of a segment and does not look at it when it reads.
//! Three looks close the gap: [`Files::verify`] compares all of them when a generation is opened;
//! [`Files::check`] asks before each search whether the open files still have the length and the time
//! they were opened with, since a file is written once and a mapping of one that was cut short ends the
//! process; and the lists that are replaced in one step (`meta.json`) carry a checksum of ours.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tantivy::Index;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

use super::KeywordError;

/// Hexadecimal digits of the checksum at the end of a list, after a line break.
const SEAL: usize = 8;

/// What a file that is never written again keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    written: Option<SystemTime>,
}

impl Mark {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self { inode: metadata.ino(), length: metadata.len(), written: metadata.modified().ok() })
    }
}

/// Whether the open files are as they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Every one.
    Whole,
    /// Some have no name any more, which merging does as well. What is mapped goes on.
    Missing,
    /// One was written to.
    Changed,
}

/// A generation's folder. Clones share what they know.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    inner: MmapDirectory,
    folder: PathBuf,
    marks: Arc<Mutex<HashMap<PathBuf, Mark>>>,
}

impl Files {
    pub(crate) fn open(folder: &Path) -> Result<Self, KeywordError> {
        let inner =
            MmapDirectory::open(folder).map_err(|error: OpenDirectoryError| KeywordError::Index(error.into()))?;
        Ok(Self { inner, folder: folder.to_owned(), marks: Arc::default() })
    }

    /// Compares the checksums of all files of `index`, reading them once.
    pub(crate) fn verify(&self, index: &Index) -> Result<(), KeywordError> {
        // by reading first: where the disk cannot, this fails, and a mapping would end the process
        self.read_all().map_err(|error| KeywordError::Index(error.into()))?;
        if index.validate_checksum()?.is_empty() { Ok(()) } else { Err(KeywordError::Damaged) }
    }

    fn read_all(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                io::copy(&mut File::open(entry.path())?, &mut io::sink())?;
            }
        }
        Ok(())
    }

    /// Compares the open files with what they were, by their names.
    pub(crate) fn check(&self) -> State {
        let (mut missing, mut changed) = (false, false);
        for (path, mark) in self.marks().iter() {
            match Mark::of(&self.folder.join(path)) {
                Ok(now) => changed |= now != *mark,
                Err(_) => missing = true,
            }
        }
        match (changed, missing) {
            (true, _) => State::Changed,
            (false, true) => State::Missing,
            (false, false) => State::Whole,
        }
    }

    /// The open files that have no name any more.
    pub(crate) fn missing(&self) -> Vec<PathBuf> {
        self.marks().keys().filter(|path| Mark::of(&self.folder.join(path)).is_err()).cloned().collect()
    }

    /// Forgets files that nothing reads any more.
    pub(crate) fn forget(&self, paths: &[PathBuf]) {
        let mut marks = self.marks();
        for path in paths {
            marks.remove(path);
        }
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seal(data: &[u8]) -> String {
    format!("\n{:08x}", crc32fast::hash(data))
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let failed = |kind, what| Err(OpenReadError::wrap_io_error(io::Error::new(kind, what), path.to_owned()));
        match Mark::of(&self.folder.join(path)) {
            Ok(now) => {
                if *self.marks().entry(path.to_owned()).or_insert(now) != now {
                    return failed(io::ErrorKind::InvalidData, "the file is not as it was written");
                }
            }
            // what is still mapped would be handed out again
            Err(error) if self.marks().contains_key(path) => return failed(error.kind(), "the file is gone"),
            Err(_) => {}
        }
        self.inner.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.marks().remove(path);
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.marks().remove(path);
        self.inner.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let mut data = self.inner.atomic_read(path)?;
        let end = data.len().saturating_sub(SEAL + 1);
        if data.split_at(end).1 != seal(&data[..end]).as_bytes() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "the list does not have its checksum");
            return Err(OpenReadError::wrap_io_error(error, path.to_owned()));
        }
        data.truncate(end);
        Ok(data)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, &[data, seal(data).as_bytes()].concat())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}
