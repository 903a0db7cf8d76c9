//! Files below the workspace root, reached from an opened directory so that nothing leads out of it:
//! `openat2` with `RESOLVE_BENEATH` where the kernel has it, else one part at a time without any
//! symbolic link.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The workspace root.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    real: PathBuf,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    /// Opens it.
    ///
    /// # Errors
    /// When it is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        let fd = rustix::fs::open(&real, DIRECTORY, Mode::empty())?;
        Ok(Self { fd, real })
    }

    /// Its path without symbolic links.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Opens what stands at `relative`. The last part is never followed when it is a link; links on the
    /// way are, as long as they stay below the root.
    ///
    /// # Errors
    /// What the kernel says; `EXDEV` and `ELOOP` for a way out.
    pub fn open_at(&self, relative: &str, how: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if relative.is_empty() { "." } else { relative };
        let how = how | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, path, how, Mode::empty(), resolve) {
            Err(Errno::NOSYS) => self.walk(relative, how),
            // A rename somewhere on the way makes the kernel give up; the caller may see that as absent.
            answer => answer,
        }
    }

    fn walk(&self, relative: &str, how: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut at = rustix::fs::openat(&self.fd, ".", DIRECTORY, Mode::empty())?;
        let mut parts = relative.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let how = if parts.peek().is_some() { DIRECTORY | OFlags::NOFOLLOW } else { how };
            at = rustix::fs::openat(&at, part, how, Mode::empty())?;
        }
        Ok(at)
    }

    /// Opens the directory at `relative`.
    ///
    /// # Errors
    /// As [`Root::open_at`].
    pub fn directory(&self, relative: &str) -> rustix::io::Result<OwnedFd> {
        // The last part may be a link here: a directory is entered, not replaced.
        let path = if relative.is_empty() { "." } else { relative };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, path, DIRECTORY, Mode::empty(), resolve) {
            Err(Errno::NOSYS) => self.walk(relative, DIRECTORY | OFlags::NOFOLLOW),
            answer => answer,
        }
    }

    /// Opens the directory at `relative` and makes what is missing of it.
    ///
    /// # Errors
    /// As [`Root::open_at`]; `ENOTDIR` when a part is something else.
    pub fn make_directory(&self, relative: &str) -> rustix::io::Result<OwnedFd> {
        match self.directory(relative) {
            Err(Errno::NOENT) if !relative.is_empty() => {}
            answer => return answer,
        }
        let (above, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let parent = self.make_directory(above)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => self.directory(relative),
            Err(error) => Err(error),
        }
    }
}

/// Opens the directory `name` in `parent`, made if it is missing. A link is refused.
///
/// # Errors
/// What the kernel says.
pub fn own_directory(parent: impl AsFd, name: &str, mode: u32) -> io::Result<OwnedFd> {
    let parent = parent.as_fd();
    let open = || rustix::fs::openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
    match open() {
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(open()?),
        Err(error) => Err(error.into()),
    }
}

/// Entries of a directory, without `.` and `..`.
///
/// # Errors
/// What the kernel says.
pub fn entries(dir: impl AsFd) -> io::Result<Vec<std::ffi::CString>> {
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Removes what stands at `name` in `parent`, with everything below it, following no link. Says whether
/// anything was there.
///
/// Subdirectories are moved up beside it before they are emptied, so that neither depth nor a rename by
/// others makes it lose its way, and two descriptors are enough for any tree.
///
/// # Errors
/// What the kernel says; what could be removed is gone.
pub fn remove_tree(parent: impl AsFd, name: &CStr) -> io::Result<bool> {
    let parent = parent.as_fd();
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    // Whoever fills the tree faster than it is emptied wins in the end.
    let mut tries = 100;
    let mut queue = vec![name.to_owned()];
    while let Some(name) = queue.pop() {
        empty_directory(parent, &name, &mut queue)?;
        match rustix::fs::unlinkat(parent, name.as_c_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) if tries > 0 => {
                tries -= 1;
                queue.push(name);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn empty_directory(parent: impl AsFd, name: &CStr, queue: &mut Vec<std::ffi::CString>) -> io::Result<()> {
    let parent = parent.as_fd();
    let open = || rustix::fs::openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
    let mut dir = open();
    if matches!(dir, Err(Errno::ACCESS)) {
        let _ = rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty());
        dir = open();
    }
    let dir = dir?;
    let mut writable = false;
    for entry in entries(&dir)? {
        loop {
            match remove_entry(parent, &dir, &entry, queue) {
                Err(Errno::ACCESS) if !writable => {
                    writable = true;
                    rustix::fs::fchmod(&dir, Mode::RWXU)?;
                }
                Ok(()) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn remove_entry(
    parent: impl AsFd,
    dir: &OwnedFd,
    entry: &CStr,
    queue: &mut Vec<std::ffi::CString>,
) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(dir, entry, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    match rustix::fs::unlinkat(dir, entry, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let moved = format!(".tale-removed-{}-{number}", std::process::id());
    let moved = std::ffi::CString::new(moved).map_err(|_| Errno::INVAL)?;
    // Moving a directory needs the right to write into it.
    if rustix::fs::renameat(dir, entry, &parent, moved.as_c_str()) == Err(Errno::ACCESS) {
        rustix::fs::chmodat(dir, entry, Mode::RWXU, AtFlags::empty())?;
        rustix::fs::renameat(dir, entry, &parent, moved.as_c_str())?;
    }
    queue.push(moved);
    Ok(())
}
