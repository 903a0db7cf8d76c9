//! The user that Postgres runs as.
//!
//! An ordinary user runs it as themselves. Root hands over to the owner of an existing cluster,
//! else to `postgres` or `nobody`. That user may lack the right to enter the directories above the
//! data (`/root`, say); the server then keeps one capability, the weakest that lets it in. The
//! server also asks the kernel to be stopped when our process ends.

#![allow(unsafe_code, reason = "the one place that acts between fork and exec; see `Launch::command`")]

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Gid, Signal, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::error::EmbeddedError;

/// Who runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    /// The user and group to become; none: stay who we are.
    switch: Option<(u32, u32)>,
    /// A capability to keep, so that directories above the data can be entered.
    keep: Option<CapabilitySet>,
}

impl User {
    /// Chooses the user for the server of `cluster`, who must be able to enter `directories`.
    pub(super) fn for_server(cluster: &Path, directories: &[&Path]) -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { switch: None, keep: None });
        }
        let owner = std::fs::metadata(cluster).ok().map(|meta| (meta.uid(), meta.gid())).filter(|(uid, _)| *uid != 0);
        let (uid, gid) = owner.or_else(unprivileged_account).ok_or_else(|| EmbeddedError::NoUser {
            reason: "this system has neither a user `postgres` nor a user `nobody`".to_owned(),
        })?;
        let blocked = directories.iter().find_map(|directory| first_closed(directory, uid, gid));
        let keep = blocked.as_deref().map(capability_to_enter).transpose()?;
        Ok(Self { switch: Some((uid, gid)), keep })
    }

    /// Gives `path` and everything in it to the user, when it is not theirs already.
    pub(super) fn take_over(&self, path: &Path) -> Result<(), EmbeddedError> {
        let Some((uid, gid)) = self.switch else { return Ok(()) };
        let meta = std::fs::symlink_metadata(path).map_err(|source| EmbeddedError::io(path, source))?;
        if meta.uid() == uid {
            return Ok(());
        }
        // Children first: a half-done change is seen again at the directory itself.
        if meta.is_dir() {
            for entry in std::fs::read_dir(path).map_err(|source| EmbeddedError::io(path, source))? {
                self.take_over(&entry.map_err(|source| EmbeddedError::io(path, source))?.path())?;
            }
        }
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).map_err(|source| EmbeddedError::io(path, source))
    }

    /// A command that runs `program` as the user, with a clean environment, away from our terminal,
    /// and stopped with a fast shutdown when the *thread* that spawned it ends.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("LC_ALL", "C").env("TZ", "UTC").current_dir("/").stdin(Stdio::null()).process_group(0);
        let (user, parent) = (*self, rustix::process::getpid());
        // SAFETY: the closure runs in the child between fork and exec, where only
        // async-signal-safe calls are allowed. It allocates nothing, takes no lock and only makes
        // system calls on plain values, through wrappers that do nothing else.
        unsafe {
            command.pre_exec(move || user.become_it(parent));
        }
        command
    }

    /// In the child: drops to the user and ties its life to ours.
    fn become_it(self, parent: rustix::process::Pid) -> std::io::Result<()> {
        if let Some((uid, gid)) = self.switch {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::thread::set_keep_capabilities(self.keep.is_some())?;
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
            if let Some(kept) = self.keep {
                rustix::thread::set_capabilities(
                    None,
                    CapabilitySets { effective: kept, permitted: kept, inheritable: kept },
                )?;
                rustix::thread::configure_capability_in_ambient_set(kept, true)?;
            }
        }
        // After the change of user, which would clear it.
        rustix::process::set_parent_process_death_signal(Some(Signal::INT))?;
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
    }
}

/// User and group of `postgres`, else of `nobody`. `initdb` needs a user with a name.
fn unprivileged_account() -> Option<(u32, u32)> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let find = |name: &str| {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then_some(())?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            (uid != 0).then_some((uid, gid))
        })
    };
    find("postgres").or_else(|| find("nobody"))
}

/// The first directory on the way to `path`, from the top, that the user may not enter.
fn first_closed(path: &Path, uid: u32, gid: u32) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let above: Vec<&Path> = path.ancestors().collect();
    above.into_iter().rev().find(|directory| !may_enter(directory, uid, gid)).map(Path::to_owned)
}

fn may_enter(directory: &Path, uid: u32, gid: u32) -> bool {
    let Ok(meta) = std::fs::metadata(directory) else { return false };
    let bit = if meta.uid() == uid {
        0o100
    } else if meta.gid() == gid {
        0o010
    } else {
        0o001
    };
    meta.mode() & bit != 0
}

/// The weakest capability we have that lets another user enter `blocked`.
fn capability_to_enter(blocked: &Path) -> Result<CapabilitySet, EmbeddedError> {
    let ours = rustix::thread::capabilities(None).map(|sets| sets.permitted).unwrap_or(CapabilitySet::empty());
    [CapabilitySet::DAC_READ_SEARCH, CapabilitySet::DAC_OVERRIDE]
        .into_iter()
        .find(|capability| ours.contains(*capability))
        .ok_or_else(|| EmbeddedError::NoUser { reason: format!("no other user may enter {}", blocked.display()) })
}
