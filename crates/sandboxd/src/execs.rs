//! The commands of the session: started, followed, controlled, and kept for a while after their end.

mod exec;
mod link;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use tale_sandbox_wire::event::FailCode;
use tale_sandbox_wire::exec::{DAEMON_ENV_PREFIX, EXEC_ID_ENV, Env, ExecRequest, StdinMode};
use tale_sandbox_wire::files::WORKSPACE_ROOT;
use tale_sandbox_wire::limits::{
    KEPT_EXECS, LEFTOVER_HOLD, MAX_CHECKPOINT_BYTES, MAX_CONSUMERS, MAX_JOURNAL_BYTES, MAX_LIVE_EXECS,
    MAX_UNACKNOWLEDGED_BYTES,
};
use tale_sandbox_wire::names::ExecId;
use tale_sandbox_wire::sign::Key;
use tokio::sync::{Semaphore, mpsc, watch};

use self::exec::Inner;
pub use self::exec::{CALL_PATIENCE, CheckpointError, Ended, Exec, Following, Progress};
use crate::control::{Launch, Order};
use crate::path::{self, Root};
use crate::settings::Settings;
use crate::{journal, log, supervisor};

/// Orders that wait for a supervisor to take them.
const QUEUED_ORDERS: usize = 64;

/// Most bytes that one command which runs has on disk: its budget before the encoding, and the segment
/// that a checkpoint covers in part.
const MOST_OF_ONE: u64 = MAX_UNACKNOWLEDGED_BYTES / 4 * 3 + journal::SEGMENT_BYTES;

/// With less than this free, finished output is removed for the sake of what runs.
const SHORT_DISK: u64 = 16 << 20;

/// How long a command waits while what ended ones left behind is killed, because it takes every process.
const MAKING_ROOM: Duration = Duration::from_secs(20);

/// Directory of the journals, below `.runtime/tmp`.
const SPOOL: &str = ".tale-execs";
const META: &str = "meta";

/// Why a command was not started.
#[derive(Debug)]
pub struct NotStarted {
    /// The code of the contract.
    pub code: FailCode,
    /// For people.
    pub message: String,
    /// Whether the session may have no further process.
    no_process: bool,
}

impl NotStarted {
    fn new(code: FailCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), no_process: false }
    }
}

/// All commands of the session.
#[derive(Debug)]
pub struct Execs {
    root: Arc<Root>,
    spool_path: PathBuf,
    stall_ms: u64,
    key: Key,
    base_env: Vec<(String, String)>,
    table: Mutex<Table>,
    /// Places for readers of output.
    pub consumers: Arc<Semaphore>,
    last_end_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<ExecId, Arc<Exec>>,
    /// In the order of their starts.
    order: VecDeque<ExecId>,
    next_serial: u64,
}

impl Execs {
    /// Opens the journals. With `first`, what a session before left in `.runtime/tmp` is removed.
    ///
    /// # Errors
    /// When the workspace cannot be used.
    pub fn open(root: Arc<Root>, settings: &Settings, first: bool) -> io::Result<Self> {
        let top = root.directory("")?;
        let runtime = path::own_directory(&top, ".runtime", 0o755)?;
        path::own_directory(&runtime, "home", 0o755)?;
        path::own_directory(&top, "workspace", 0o755)?;
        let tmp = path::own_directory(&runtime, "tmp", 0o755)?;
        if first {
            for name in path::entries(&tmp)? {
                path::remove_tree(&tmp, &name)?;
            }
        }
        path::own_directory(&tmp, SPOOL, 0o700)?;
        let spool_path = root.real().join(".runtime/tmp").join(SPOOL);
        let text = |value: &std::ffi::OsString| value.to_str().map(str::to_owned);
        Ok(Self {
            root,
            spool_path,
            stall_ms: settings.stall.map_or(0, |stall| u64::try_from(stall.as_millis()).unwrap_or(u64::MAX)),
            key: Key::new(&settings.token).ok_or_else(|| io::Error::other("there is no token"))?,
            // What is not UTF-8 cannot travel to the supervisor; containers do not have it.
            base_env: settings.base_env.iter().filter_map(|(n, v)| Some((text(n)?, text(v)?))).collect(),
            table: Mutex::default(),
            consumers: Arc::new(Semaphore::new(MAX_CONSUMERS)),
            last_end_ms: AtomicU64::new(0),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command with this name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Exec>> {
        self.table().by_id.get(id).cloned()
    }

    /// When a command last ended, in milliseconds since 1970; 0 when none did.
    #[must_use]
    pub fn last_end_ms(&self) -> u64 {
        self.last_end_ms.load(Ordering::Relaxed)
    }

    /// How many run.
    #[must_use]
    pub fn live(&self) -> usize {
        self.table().by_id.values().filter(|exec| exec.is_live()).count()
    }

    /// Starts a command with the session's environment `env`. Where what ended commands left behind takes every
    /// process that the session may have, that is killed first.
    ///
    /// # Errors
    /// [`NotStarted`]; nothing is left of it then.
    pub async fn start(self: &Arc<Self>, request: &ExecRequest, env: &Env) -> Result<Arc<Exec>, NotStarted> {
        match self.try_start(request, env) {
            Err(refused) if refused.no_process && self.make_room().await => self.try_start(request, env),
            started => started,
        }
    }

    /// Kills what ended commands left behind; says whether all of it is gone.
    async fn make_room(&self) -> bool {
        let ordered = self.sweep(true).await;
        let gone = async {
            for exec in &ordered {
                exec.orders.closed().await;
            }
        };
        !ordered.is_empty() && tokio::time::timeout(MAKING_ROOM, gone).await.is_ok()
    }

    fn try_start(self: &Arc<Self>, request: &ExecRequest, env: &Env) -> Result<Arc<Exec>, NotStarted> {
        let bad = |bad: tale_sandbox_wire::exec::BadRequest| NotStarted::new(FailCode::BadRequest, bad.0);
        let argv = request.argv().map_err(bad)?;
        let stdin = request.stdin().map_err(bad)?;
        let id = request.exec_id.clone();
        if self.table().by_id.contains_key(&id) {
            return Err(NotStarted::new(FailCode::DuplicateExec, "this exec id was used before"));
        }
        if self.live() >= MAX_LIVE_EXECS {
            let message = format!("{MAX_LIVE_EXECS} commands run in this session already");
            return Err(NotStarted::new(FailCode::ExecLimit, message));
        }
        let cwd = self.cwd(request.cwd.as_deref())?;
        let failed = |error: io::Error| {
            let code = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => FailCode::ReplayDiskFull,
                _ => FailCode::RuntimeError,
            };
            let message = format!("the command could not be started: {}", supervisor::reason(&error));
            NotStarted { no_process: error.kind() == io::ErrorKind::WouldBlock, ..NotStarted::new(code, message) }
        };
        let launch = Launch {
            dir: self.spool_path.join(id.as_str()).to_string_lossy().into_owned(),
            exec_id: id.to_string(),
            key: self.supervisor_key(&id),
            started_at_ms: crate::now_ms(),
            argv,
            cwd,
            env: self.environment(env, &request.env, &id),
            stdin_b64: STANDARD.encode(stdin),
            hold: request.stdin_mode == StdinMode::Hold,
            timeout_ms: u64::try_from(request.daemon_timeout().as_millis()).unwrap_or(u64::MAX),
            stall_ms: self.stall_ms,
        };
        self.evict();
        let dir = self.make_dir(&launch).map_err(failed)?;
        let (stream, pid) = link::spawn().map_err(|error| {
            self.remove_dir(id.as_str());
            failed(error)
        })?;
        let exec = self.register(id, launch.started_at_ms, dir, |exec, orders, followers| {
            exec.inner().supervisor = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
            tokio::spawn(link::run(Arc::clone(self), exec, stream, orders, followers));
        });
        // The queue is empty, so this is taken at once.
        let _ = exec.orders.try_send(Order::Start(Box::new(launch)));
        self.forget(KEPT_EXECS);
        Ok(exec)
    }

    fn register(
        &self,
        id: ExecId,
        started_at_ms: u64,
        dir: OwnedFd,
        run: impl FnOnce(Arc<Exec>, mpsc::Receiver<Order>, watch::Receiver<usize>),
    ) -> Arc<Exec> {
        let (orders, taken) = mpsc::channel(QUEUED_ORDERS);
        let (followers, followed) = watch::channel(0);
        let mut table = self.table();
        table.next_serial += 1;
        let exec = Arc::new(Exec {
            id: id.clone(),
            started_at_ms,
            dir,
            serial: table.next_serial,
            progress: watch::channel(Progress::default()).0,
            followers,
            orders,
            inner: Mutex::new(Inner { supervised: true, ..Inner::default() }),
        });
        table.by_id.insert(id.clone(), Arc::clone(&exec));
        table.order.push_back(id);
        drop(table);
        run(Arc::clone(&exec), taken, followed);
        exec
    }

    /// The directory of the journals. A command may have removed it with its temporary files.
    fn spool(&self) -> io::Result<OwnedFd> {
        let runtime = path::own_directory(self.root.directory("")?, ".runtime", 0o755)?;
        path::own_directory(path::own_directory(runtime, "tmp", 0o755)?, SPOOL, 0o700)
    }

    fn supervisor_key(&self, id: &ExecId) -> String {
        self.key.derive("supervisor-v1", id.as_str())
    }

    fn make_dir(&self, launch: &Launch) -> io::Result<OwnedFd> {
        let spool = self.spool()?;
        let made = rustix::fs::mkdirat(&spool, &launch.exec_id, Mode::RWXU);
        if made == Err(rustix::io::Errno::EXIST) {
            // Of a command that was forgotten, and not removed yet.
            self.remove_dir(&launch.exec_id);
            rustix::fs::mkdirat(&spool, &launch.exec_id, Mode::RWXU)?;
        } else {
            made?;
        }
        let dir = Self::open_dir(&spool, &launch.exec_id)?;
        // A link that leads nowhere: a text that takes one step to write.
        rustix::fs::symlinkat(launch.started_at_ms.to_string(), &dir, META)?;
        Ok(dir)
    }

    fn open_dir(spool: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(spool, name, how, Mode::empty())?)
    }

    fn remove_dir(&self, id: &str) {
        let name = std::ffi::CString::new(id).map_err(io::Error::other);
        let removed = name.and_then(|name| path::remove_tree(self.spool()?, &name));
        if let Err(error) = removed {
            log::line(&format!("a journal cannot be removed: {error}"));
        }
    }

    /// The directory a command starts in: links are followed, but not out of the workspace.
    fn cwd(&self, cwd: Option<&str>) -> Result<String, NotStarted> {
        let invalid = |why: &str| NotStarted::new(FailCode::InvalidCwd, format!("cwd {why}"));
        let relative = match cwd {
            None => "workspace",
            Some(cwd) => match cwd.strip_prefix(WORKSPACE_ROOT) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
                _ => cwd,
            },
        };
        let real = self.root.real().join(relative).canonicalize().map_err(|_| invalid("is not there"))?;
        if !real.starts_with(self.root.real()) {
            return Err(invalid("is not below the workspace"));
        }
        if !real.is_dir() {
            return Err(invalid("is not a directory"));
        }
        real.into_os_string().into_string().map_err(|_| invalid("is not UTF-8"))
    }

    fn environment(&self, session: &Env, own: &Env, id: &ExecId) -> Vec<(String, String)> {
        let mut all: Env = self.base_env.iter().cloned().collect();
        all.extend(session.iter().map(|(name, value)| (name.clone(), value.clone())));
        all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        all.retain(|name, _| !name.to_ascii_uppercase().starts_with(DAEMON_ENV_PREFIX));
        all.insert(EXEC_ID_ENV.to_owned(), id.to_string());
        all.into_iter().collect()
    }

    /// Ends a command. Says whether it was running.
    pub async fn cancel(self: &Arc<Self>, exec: &Arc<Exec>, keep: bool) -> bool {
        if !exec.is_live() {
            return false;
        }
        exec.inner().kept = keep;
        if keep {
            let (all, exec) = (Arc::clone(self), Arc::downgrade(exec));
            tokio::spawn(async move {
                tokio::time::sleep(LEFTOVER_HOLD).await;
                if let Some(exec) = exec.upgrade() {
                    exec.inner().kept = false;
                    all.sweep(false).await;
                }
            });
        }
        exec.order(Order::Cancel { keep }).await
    }

    /// What ended commands left behind is ended with the last one that runs: asked to first, or killed `now`.
    /// Answers the commands that were told.
    async fn sweep(&self, now: bool) -> Vec<Arc<Exec>> {
        let mut due: Vec<Arc<Exec>> = self.table().by_id.values().cloned().collect();
        if due.iter().any(|exec| exec.is_live()) {
            return Vec::new();
        }
        due.retain(|exec| {
            let inner = exec.inner();
            inner.supervised && !inner.kept
        });
        for exec in &due {
            exec.order(Order::Sweep { now }).await;
        }
        due
    }

    /// A command ended: what older ones kept for a follower is kept no longer.
    async fn ended(self: &Arc<Self>, ended: &Arc<Exec>) {
        self.last_end_ms.store(crate::now_ms(), Ordering::Relaxed);
        let older: Vec<Arc<Exec>> =
            self.table().by_id.values().filter(|exec| exec.serial < ended.serial).cloned().collect();
        for exec in older {
            if !exec.is_live() {
                exec.inner().kept = false;
            }
        }
        self.sweep(false).await;
        self.forget(KEPT_EXECS + 1);
    }

    fn is_disk_short(&self) -> bool {
        let free = self.spool().and_then(|spool| Ok(rustix::fs::fstatvfs(spool)?));
        free.is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < SHORT_DISK)
    }

    /// Forgets the oldest finished commands until fewer than `keep` are left.
    fn forget(self: &Arc<Self>, keep: usize) {
        let mut table = self.table();
        let done = |exec: &Arc<Exec>| !exec.is_live() && !exec.inner().supervised && !exec.is_followed();
        let finished: Vec<Arc<Exec>> =
            table.order.iter().filter_map(|id| table.by_id.get(id)).filter(|exec| done(exec)).cloned().collect();
        let beyond = finished.len().saturating_sub(keep - 1);
        for exec in &finished[..beyond] {
            table.by_id.remove(&exec.id);
            table.order.retain(|id| *id != exec.id);
        }
        drop(table);
        if beyond > 0 {
            let all = Arc::clone(self);
            let gone: Vec<ExecId> = finished[..beyond].iter().map(|exec| exec.id.clone()).collect();
            // Nobody waits for it.
            tokio::task::spawn_blocking(move || gone.iter().for_each(|id| all.remove_dir(id.as_str())));
        }
    }

    /// Before another command starts: removes output of finished ones, the oldest first, while there is
    /// more than what commands that run leave of the session's share, or the disk is nearly full.
    fn evict(&self) {
        let (finished, live): (Vec<Arc<Exec>>, Vec<Arc<Exec>>) = {
            let table = self.table();
            let all = table.order.iter().filter_map(|id| table.by_id.get(id)).cloned();
            all.partition(|exec| !exec.is_live())
        };
        let running = (live.len() as u64 + 1) * MOST_OF_ONE + KEPT_EXECS as u64 * MAX_CHECKPOINT_BYTES as u64;
        let budget = if self.is_disk_short() { 0 } else { MAX_JOURNAL_BYTES.saturating_sub(running) };
        let mut stored: u64 = finished.iter().map(|exec| exec.stored()).sum();
        for exec in finished.into_iter().filter(|exec| !exec.is_followed()) {
            if stored <= budget {
                break;
            }
            let before = exec.stored();
            if let Err(error) = exec.prune(u64::MAX - 1) {
                log::line(&format!("a journal cannot be shortened: {error}"));
            }
            stored = stored.saturating_sub(before.saturating_sub(exec.stored()));
        }
    }

    /// Finds what a daemon before left: commands that run are taken over, finished ones can be read,
    /// and of the others it is said that their end is not known.
    ///
    /// # Errors
    /// When the journals cannot be listed.
    pub fn recover(self: &Arc<Self>) -> io::Result<()> {
        let mut found: Vec<(u64, ExecId)> = Vec::new();
        for name in path::entries(self.spool()?)? {
            let id = name.to_str().ok().and_then(|name| ExecId::new(name).ok());
            let started = id.as_ref().and_then(|id| self.started_at(id).ok());
            match (id, started) {
                (Some(id), Some(started)) => found.push((started, id)),
                _ => drop(path::remove_tree(self.spool()?, &name)),
            }
        }
        found.sort();
        for (started_at_ms, id) in found {
            let dir = Self::open_dir(&self.spool()?, id.as_str())?;
            let socket = format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), crate::control::SOCKET);
            let connection = std::os::unix::net::UnixStream::connect(socket).and_then(|mut stream| {
                io::Write::write_all(&mut stream, self.supervisor_key(&id).as_bytes())?;
                Ok(stream)
            });
            let recovered = journal::recover(&dir);
            let exec = self.register(id, started_at_ms, dir, |exec, orders, followers| {
                let (reach, end) = recovered.unwrap_or_default();
                exec.progress.send_modify(|progress| progress.reach = reach);
                if let Ok(stream) = connection {
                    exec.inner().found = Some(reach.stored);
                    tokio::spawn(link::run(Arc::clone(self), exec, stream, orders, followers));
                } else {
                    exec.inner().supervised = false;
                    match end.as_deref().map(link::exit_code) {
                        Some(exit_code) => exec.finish(Ended { exit_code, unwritten: None }),
                        None => exec.lose(),
                    }
                }
            });
            exec.take_over_checkpoint();
        }
        Ok(())
    }

    fn started_at(&self, id: &ExecId) -> io::Result<u64> {
        let text = rustix::fs::readlinkat(Self::open_dir(&self.spool()?, id.as_str())?, META, Vec::new())?;
        text.to_str().map_err(io::Error::other)?.parse().map_err(io::Error::other)
    }

    /// The session stops: everything is ended.
    pub async fn stop(&self) {
        let all: Vec<Arc<Exec>> = self.table().by_id.values().cloned().collect();
        let supervised: Vec<Arc<Exec>> = all.into_iter().filter(|exec| exec.inner().supervised).collect();
        for exec in &supervised {
            exec.order(Order::Stop).await;
        }
        for exec in supervised {
            exec.orders.closed().await;
        }
    }
}
