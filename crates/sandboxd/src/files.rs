//! Reading, listing and removing files of the workspace. Links are never followed at the end of a path,
//! and nothing that could block (a pipe, a device) is opened for reading.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, FileType, OFlags};
use tale_sandbox_wire::files::{DeleteAnswer, Entry, EntryKind, ListAnswer, WorkspacePath};
use tale_sandbox_wire::limits::{MAX_LIST_ENTRIES, MAX_READ_BYTES, READER_PATIENCE};
use tokio::sync::mpsc::Sender;

use crate::path::{self, Root};

const CHUNK: usize = 128 << 10;

/// Opens a regular file of at most [`MAX_READ_BYTES`] and says how long it is.
///
/// # Errors
/// Anything else there is, or nothing.
pub fn open(root: &Root, path: &WorkspacePath) -> io::Result<(File, u64)> {
    let file = File::from(root.open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_READ_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file within the limit"));
    }
    Ok((file, meta.len()))
}

/// Sends the first `length` bytes of a file. A file that became shorter ends the answer early, which the
/// other side sees by the length it was told.
pub async fn send(file: File, length: u64, out: Sender<Bytes>) {
    let file = Arc::new(file);
    let mut at = 0;
    while at < length {
        let size = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
        let file = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; size];
            file.read_exact_at(&mut chunk, at).map(|()| chunk)
        });
        let Ok(Ok(chunk)) = read.await else { return };
        at += chunk.len() as u64;
        let patience = READER_PATIENCE * 15;
        if !matches!(tokio::time::timeout(patience, out.send(chunk.into())).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Lists a directory by name.
///
/// # Errors
/// When it is none, or not there.
pub fn list(root: &Root, path: &WorkspacePath) -> io::Result<ListAnswer> {
    let dir = root.directory(path.as_str())?;
    let mut names = path::entries(&dir)?;
    names.sort();
    let truncated = names.len() > MAX_LIST_ENTRIES;
    names.truncate(MAX_LIST_ENTRIES);
    let entry = |name: &std::ffi::CString| {
        let stat = rustix::fs::statat(&dir, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Other,
        };
        Some(Entry {
            name: name.to_string_lossy().into_owned(),
            kind,
            size: if kind == EntryKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 },
            modified_at_ms: u64::try_from(stat.st_mtime).unwrap_or(0).saturating_mul(1000)
                + stat.st_mtime_nsec / 1_000_000,
        })
    };
    // What goes away while it is listed is not listed.
    Ok(ListAnswer { entries: names.iter().filter_map(entry).collect(), truncated })
}

/// Removes each path with everything below it.
#[must_use]
pub fn delete(root: &Root, paths: &[WorkspacePath]) -> DeleteAnswer {
    let mut answer = DeleteAnswer { deleted: 0, failed: Vec::new() };
    for path in paths {
        match delete_one(root, path) {
            Ok(was_there) => answer.deleted += usize::from(was_there),
            Err(_) => answer.failed.push(path.as_str().to_owned()),
        }
    }
    answer
}

fn delete_one(root: &Root, path: &WorkspacePath) -> io::Result<bool> {
    let Some((above, name)) = path.split() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the workspace itself"));
    };
    let parent = match root.directory(above) {
        Ok(parent) => parent,
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    path::remove_tree(&parent, &std::ffi::CString::new(name)?)
}
