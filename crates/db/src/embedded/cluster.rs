//! The files of a private Postgres: where they are, how they begin, what an earlier run left.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tale_core::crypto::random_hex;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::binaries::Binaries;
use super::error::{EmbeddedError, says_disk_full};
use super::privileges::User;
use super::{READY_POLL, ROLE, SOCKET_DIRECTORY_MAX};

/// How long an earlier server may take to stop by itself before it is asked to.
const LEFTOVER_GRACE: Duration = Duration::from_secs(3);
/// How long it may take after that.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(60);

/// Length of a password before it is written in hexadecimal digits.
const PASSWORD_BYTES: usize = 24;

/// The directory's parts.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
}

/// The passwords of a cluster, in hexadecimal digits.
#[derive(Clone)]
pub(super) struct Passwords {
    pub(super) superuser: String,
    pub(super) role: String,
    /// Whether the cluster does not know them yet.
    pub(super) renewed: bool,
}

impl Passwords {
    /// What the file holds, when it holds both whole.
    fn read(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
            let whole = value.len() == PASSWORD_BYTES * 2 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            whole.then(|| value.to_owned())
        };
        Some(Self { superuser: value("superuser")?, role: value("role")?, renewed: false })
    }
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords")
    }
}

impl Layout {
    /// Makes the directory and its socket directory.
    pub(super) fn create(root: &Path) -> Result<Self, EmbeddedError> {
        let make = |path: &Path, mode: u32| {
            std::fs::create_dir_all(path)
                .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(mode)))
                .map_err(|source| EmbeddedError::io(path, source))
        };
        // Others may pass through, to what is theirs; what is ours is closed file by file.
        make(root, 0o711)?;
        let layout = Self { root: root.canonicalize().map_err(|source| EmbeddedError::io(root, source))? };
        make(&layout.run(), 0o700)?;
        Ok(layout)
    }

    pub(super) fn cluster(&self) -> PathBuf {
        self.root.join("cluster")
    }

    pub(super) fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    pub(super) fn prepared(&self) -> PathBuf {
        self.root.join("prepared")
    }

    /// The socket directory, unless its path is too long for a socket.
    pub(super) fn socket_directory(&self) -> Option<PathBuf> {
        Some(self.run()).filter(|path| path.as_os_str().len() <= SOCKET_DIRECTORY_MAX)
    }

    /// Takes the directory for this process.
    pub(super) fn lock(&self) -> Result<File, EmbeddedError> {
        let path = self.root.join("lock");
        let file = private_file(&path, false)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => Err(EmbeddedError::InUse(self.root.clone())),
            Err(std::fs::TryLockError::Error(source)) => Err(EmbeddedError::io(&path, source)),
        }
    }

    /// The passwords; new ones when there are none or the file is damaged.
    pub(super) fn passwords(&self) -> Result<Passwords, EmbeddedError> {
        let path = self.password_file();
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(known) = Passwords::read(&text) {
                    return Ok(known);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {}
            Err(source) => return Err(EmbeddedError::io(&path, source)),
        }
        Ok(Passwords { superuser: random_hex(PASSWORD_BYTES), role: random_hex(PASSWORD_BYTES), renewed: true })
    }

    pub(super) fn password_file(&self) -> PathBuf {
        self.root.join("passwords")
    }

    /// Keeps new passwords, whole or not at all.
    fn keep(&self, passwords: &Passwords) -> Result<(), EmbeddedError> {
        let (path, draft) = (self.password_file(), self.root.join("passwords.new"));
        let mut file = private_file(&draft, true)?;
        write!(file, "superuser={}\nrole={}\n", passwords.superuser, passwords.role)
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&draft, &path))
            .map_err(|source| EmbeddedError::io(&path, source))
    }

    /// The status an open or former server wrote: its process and the last word of the file.
    pub(super) fn status(&self) -> Option<(i32, String)> {
        let text = std::fs::read_to_string(self.cluster().join("postmaster.pid")).ok()?;
        let pid = text.lines().next()?.trim().parse().ok()?;
        Some((pid, text.lines().nth(7).unwrap_or_default().trim().to_owned()))
    }

    /// Clears away what an earlier run left: waits for a server that is still stopping, asks one
    /// that is not to stop, and removes a stale pid file and stale sockets. Postgres itself would
    /// take the pid file of a process number that somebody else has by now for a running server.
    pub(super) async fn clear_remains(&self) -> Result<(), EmbeddedError> {
        if self.status().is_some() {
            self.wait_for_leftovers().await?;
            let file = self.cluster().join("postmaster.pid");
            if file.exists() {
                warn!("the private database was not stopped cleanly, it recovers now");
                std::fs::remove_file(&file).map_err(|source| EmbeddedError::io(&file, source))?;
            }
        }
        for entry in std::fs::read_dir(self.run()).map_err(|source| EmbeddedError::io(&self.run(), source))?.flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        Ok(())
    }

    /// Waits until no process of an earlier server is left: one that still wrote beside a new
    /// server would damage the cluster.
    async fn wait_for_leftovers(&self) -> Result<(), EmbeddedError> {
        let started = Instant::now();
        let mut asked = false;
        while let Some(pid) = self.processes().first().copied() {
            if !asked && started.elapsed() > LEFTOVER_GRACE {
                info!("stopping the private database of an earlier run (process {pid})");
                let main = self.status().map(|(pid, _)| pid);
                for pid in self.processes() {
                    // A fast shutdown for the server, the end for one of its children left alone.
                    let signal = if Some(pid) == main { Signal::INT } else { Signal::TERM };
                    let _ = Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, signal));
                }
                asked = true;
            }
            if started.elapsed() > LEFTOVER_LIMIT {
                return Err(EmbeddedError::StillRunning { pid, directory: self.cluster() });
            }
            sleep(READY_POLL).await;
        }
        Ok(())
    }

    /// The processes of a server of this cluster: their working directory is the cluster.
    pub(super) fn processes(&self) -> Vec<i32> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == self.cluster())
            })
            .collect()
    }

    /// The last lines of the server's log.
    pub(super) fn log_tail(&self) -> String {
        let text =
            std::fs::read(self.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        end_of(&text)
    }
}

/// The last lines of a server's log; before them the one that names a full disk, when the latest start
/// said so further up: what follows from it fills the end.
fn end_of(log: &str) -> String {
    let latest = log.rsplit_once("starting PostgreSQL").map_or(log, |(_, rest)| rest);
    let mut lines: Vec<&str> = log.lines().rev().take(5).collect();
    if !lines.iter().any(|line| says_disk_full(line)) {
        lines.extend(latest.lines().rfind(|line| says_disk_full(line)));
    }
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

/// Opens a file that only we may read.
fn private_file(path: &Path, empty: bool) -> Result<File, EmbeddedError> {
    OpenOptions::new()
        .create(true)
        .truncate(empty)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| EmbeddedError::io(path, source))
}

/// Refuses a cluster that the binaries cannot read.
pub(super) fn check_version(layout: &Layout, binaries: &Binaries) -> Result<(), EmbeddedError> {
    let (path, ours) = (layout.cluster().join("PG_VERSION"), binaries.major);
    let text = std::fs::read_to_string(&path).map_err(|source| EmbeddedError::io(&path, source))?;
    let found = text.trim().parse::<u32>().unwrap_or(0);
    let directory = layout.cluster();
    match found.cmp(&ours) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(EmbeddedError::ClusterNewer { directory, found, ours }),
        std::cmp::Ordering::Less => Err(EmbeddedError::ClusterOlder { directory, found, ours }),
    }
}

/// Makes the cluster: beside its place first, so that a half-made one is never taken for whole.
pub(super) fn initialize(
    layout: &Layout,
    binaries: &Binaries,
    user: &User,
    passwords: &Passwords,
) -> Result<(), EmbeddedError> {
    let draft = layout.root.join("cluster.new");
    let password_file = layout.run().join("password");
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| EmbeddedError::io(&path, source)
    };
    if draft.exists() {
        std::fs::remove_dir_all(&draft).map_err(at(&draft))?;
    }
    std::fs::create_dir(&draft).map_err(at(&draft))?;
    std::fs::set_permissions(&draft, Permissions::from_mode(0o700)).map_err(at(&draft))?;
    private_file(&password_file, true)?.write_all(passwords.superuser.as_bytes()).map_err(at(&password_file))?;
    user.take_over(&layout.run())?;
    user.take_over(&password_file)?;
    user.take_over(&draft)?;
    let mut command = user.command(&binaries.program("initdb"));
    command
        .arg("--pgdata")
        .arg(&draft)
        .args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"])
        .arg("--pwfile")
        .arg(&password_file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if binaries.major >= 17 {
        command.args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]);
    }
    let output = command.output().map_err(at(&binaries.program("initdb")))?;
    let _ = std::fs::remove_file(&password_file);
    if output.status.success() {
        layout.keep(passwords)?;
        return std::fs::rename(&draft, layout.cluster()).map_err(at(&layout.cluster()));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let _ = std::fs::remove_dir_all(&draft);
    if says_disk_full(&said) {
        Err(EmbeddedError::DiskFull(layout.root.clone()))
    } else {
        Err(EmbeddedError::InitFailed(
            said.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" | "),
        ))
    }
}

/// Gives the roles of a stopped cluster new passwords: its owner may, through the server's
/// single-user mode, which asks for none.
pub(super) fn set_passwords(
    layout: &Layout,
    binaries: &Binaries,
    user: &User,
    passwords: &Passwords,
) -> Result<(), EmbeddedError> {
    let program = binaries.program("postgres");
    let failed = |source| EmbeddedError::io(&program, source);
    let mut server = user
        .command(&program)
        .arg("--single")
        .arg("-D")
        .arg(layout.cluster())
        .args(["-c", "password_encryption=scram-sha-256", "postgres"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // The names and the passwords are ours: constants and hexadecimal digits. One line is one
    // statement. A role that was never created is created with its password later.
    let statements = format!(
        "ALTER ROLE postgres PASSWORD '{}'\nALTER ROLE {ROLE} PASSWORD '{}'\n",
        passwords.superuser, passwords.role
    );
    if let Some(mut input) = server.stdin.take() {
        input.write_all(statements.as_bytes()).map_err(failed)?;
    }
    let output = server.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return layout.keep(passwords);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if says_disk_full(&said) {
        Err(EmbeddedError::DiskFull(layout.root.clone()))
    } else {
        Err(EmbeddedError::PasswordsLost { file: layout.password_file(), said: said.trim().replace('\n', " | ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_whatever_follows_from_it() {
        let failed = "LOG:  starting PostgreSQL 18\nERROR:  could not write blocks: No space left on device\nHINT:  Check.\n\
                      CONTEXT:  writing\nFATAL:  checkpoint request failed\nLOG:  one\nLOG:  two\nLOG:  three\n";
        assert!(end_of(failed).starts_with("ERROR:  could not write blocks: No space left on device | CONTEXT"));
        let later = format!("{failed}LOG:  starting PostgreSQL 18\nFATAL:  something else\n");
        assert!(!says_disk_full(&end_of(&format!("{later}a\nb\nc\nd\n"))), "an earlier start's trouble is over");
    }

    #[test]
    fn passwords_are_taken_whole_or_not_at_all() {
        let (one, two) = ("a".repeat(48), "b".repeat(48));
        let read = Passwords::read(&format!("superuser={one}\r\nrole={two}\r\n")).unwrap();
        assert_eq!((read.superuser, read.role), (one.clone(), two.clone()));
        for damaged in [String::new(), format!("superuser={one}\n"), format!("superuser={one}\nrole={}", &two[..40])] {
            assert!(Passwords::read(&damaged).is_none(), "{damaged:?}");
        }
    }
}
