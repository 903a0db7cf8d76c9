//! The server process. One thread owns it from start to end: the kernel's promise to stop a child
//! with its parent is bound to the parent's *thread*, so no thread of a pool may spawn it.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, error, info, warn};

use super::READY_POLL;
use super::binaries::Binaries;
use super::cluster::Layout;
use super::error::{EmbeddedError, says_disk_full};
use super::privileges::User;

/// Ports tried before giving up: another program may take the free one we found.
const PORT_TRIES: u32 = 3;
/// How long a fast shutdown may take before it becomes an immediate one.
const STOP_BUDGET: Duration = Duration::from_secs(30);
/// First pause before a server that died alone is started again; doubles up to [`RESTART_MAX`].
const RESTART_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries: a full disk may be freed at any time.
const RESTART_MAX: Duration = Duration::from_secs(5);
/// A server that served for this long had recovered: the next death begins with the first pause.
const RECOVERED: Duration = Duration::from_secs(60);
/// How often a pause looks whether the program stops.
const STOP_POLL: Duration = Duration::from_millis(50);
/// A start slower than this is worth a line: the server replays its log after an unclean stop.
const SLOW_START: Duration = Duration::from_secs(5);
/// A log longer than this begins anew at the next start.
const LOG_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// A running server and the thread that owns it.
#[derive(Debug)]
pub(super) struct Server {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<String>>,
    port: u16,
}

#[derive(Debug, Default)]
struct Shared {
    /// The process, 0 while there is none.
    pid: AtomicI32,
    /// Whether the server has been ready: only then is it restarted.
    serving: AtomicBool,
    /// Whether we want it to end.
    stopping: AtomicBool,
}

/// What one process is started with.
#[derive(Debug, Clone)]
struct Launch {
    layout: Layout,
    binaries: Binaries,
    user: User,
    port: u16,
}

impl Server {
    /// Starts the server and returns when it accepts connections.
    pub(super) async fn start(layout: &Layout, binaries: &Binaries, user: &User) -> Result<Self, EmbeddedError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let port = free_port().map_err(|source| EmbeddedError::io(&layout.run(), source))?;
            let launch = Launch { layout: layout.clone(), binaries: binaries.clone(), user: *user, port };
            match Self::launch(launch).await {
                Err(EmbeddedError::StartFailed { tail, .. })
                    if tail.contains("could not bind") && tries < PORT_TRIES =>
                {
                    debug!("port {port} was taken meanwhile, trying another one");
                }
                result => return result,
            }
        }
    }

    async fn launch(launch: Launch) -> Result<Self, EmbeddedError> {
        let shared = Arc::new(Shared::default());
        let (report, ended) = watch::channel(None);
        let (layout, port) = (launch.layout.clone(), launch.port);
        let owner = Arc::clone(&shared);
        let log = layout.log();
        std::thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || {
                let last_words = own(&launch, &owner);
                owner.pid.store(0, Ordering::SeqCst);
                report.send_replace(Some(last_words));
            })
            .map_err(|source| EmbeddedError::io(&log, source))?;
        let server = Self { shared, ended, port };
        server.wait_until_ready(&layout).await?;
        server.shared.serving.store(true, Ordering::SeqCst);
        Ok(server)
    }

    /// The server's status file says `ready` at the moment it accepts connections, as `pg_ctl`
    /// knows too. A start takes as long as recovery takes; it ends early when the process does.
    async fn wait_until_ready(&self, layout: &Layout) -> Result<(), EmbeddedError> {
        let started = Instant::now();
        let mut told = false;
        loop {
            let tail = self.ended.borrow().clone();
            if let Some(tail) = tail {
                return Err(if says_disk_full(&tail) {
                    EmbeddedError::DiskFull(layout.cluster())
                } else {
                    EmbeddedError::StartFailed { log: layout.log(), tail }
                });
            }
            let ours = self.shared.pid.load(Ordering::SeqCst);
            if ours != 0 && layout.status().is_some_and(|(pid, status)| pid == ours && status == "ready") {
                return Ok(());
            }
            if !told && started.elapsed() > SLOW_START {
                info!("the private database is still starting; after an unclean stop it replays its log");
                told = true;
            }
            sleep(READY_POLL).await;
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Fast shutdown, then immediate, then the end.
    pub(super) async fn stop(&self) {
        let mut ended = self.ended.clone();
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            self.signal(signal);
            if timeout(STOP_BUDGET, ended.wait_for(Option::is_some)).await.is_ok() {
                return;
            }
            warn!("the private database has not stopped within {} seconds", STOP_BUDGET.as_secs());
        }
    }

    fn signal(&self, signal: Signal) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(self.shared.pid.load(Ordering::SeqCst)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::INT);
    }
}

/// The thread: starts the server, waits for it, starts it again when it dies alone, for as long as
/// that takes. Returns the end of its log.
fn own(launch: &Launch, shared: &Shared) -> String {
    let mut pause = RESTART_MIN;
    let mut told = String::new();
    loop {
        let started = std::time::Instant::now();
        let ended = match launch.spawn() {
            Ok(mut child) => {
                shared.pid.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
                if shared.stopping.load(Ordering::SeqCst) {
                    // Asked to stop between two starts, when there was no process to tell.
                    let _ = Pid::from_raw(shared.pid.load(Ordering::SeqCst))
                        .map(|pid| rustix::process::kill_process(pid, Signal::INT));
                }
                let status = child.wait();
                shared.pid.store(0, Ordering::SeqCst);
                status.map_or_else(|error| error.to_string(), |status| status.to_string())
            }
            Err(error) => format!("{} cannot be started: {error}", launch.binaries.program("postgres").display()),
        };
        if shared.stopping.load(Ordering::SeqCst) {
            return launch.layout.log_tail();
        }
        if !shared.serving.load(Ordering::SeqCst) {
            let tail = launch.layout.log_tail();
            return if tail.is_empty() { ended } else { tail };
        }
        if started.elapsed() > RECOVERED {
            pause = RESTART_MIN;
            told.clear();
        }
        if told != ended {
            // Once per reason: a disk that stays full must not fill the log as well.
            error!(
                ended, log = %launch.layout.log().display(), tail = launch.layout.log_tail(),
                "the private database ended by itself and is started again until it stays"
            );
            told = ended;
        }
        if wait_unless_stopping(shared, pause) {
            return launch.layout.log_tail();
        }
        pause = (pause * 2).min(RESTART_MAX);
        // Its children notice that it is gone and leave. As long as one still writes, the pid file
        // makes a new server refuse to start, and we try again.
        if launch.layout.processes().is_empty() {
            let _ = std::fs::remove_file(launch.layout.cluster().join("postmaster.pid"));
        }
    }
}

/// Waits; `true` when the program stops meanwhile.
fn wait_unless_stopping(shared: &Shared, pause: Duration) -> bool {
    let started = std::time::Instant::now();
    while started.elapsed() < pause {
        if shared.stopping.load(Ordering::SeqCst) {
            return true;
        }
        std::thread::sleep(STOP_POLL.min(pause));
    }
    shared.stopping.load(Ordering::SeqCst)
}

impl Launch {
    fn spawn(&self) -> std::io::Result<Child> {
        let path = self.layout.log();
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG_MAX_BYTES) {
            let _ = std::fs::remove_file(&path);
        }
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        let mut command = self.user.command(&self.binaries.program("postgres"));
        command.arg("-D").arg(self.layout.cluster());
        for (name, value) in self.settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdout(Stdio::null()).stderr(log).spawn()
    }

    /// Small, safe and quiet: one machine, one program, data that must survive a power cut.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let sockets = self.layout.socket_directory().map(|path| path.display().to_string()).unwrap_or_default();
        let mut settings: Vec<(&'static str, String)> =
            vec![("port", self.port.to_string()), ("unix_socket_directories", sockets)];
        let fixed = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_permissions", "0700"),
            ("password_encryption", "scram-sha-256"),
            ("max_connections", "64"),
            ("shared_buffers", "128MB"),
            ("huge_pages", "off"),
            ("effective_cache_size", "1GB"),
            ("work_mem", "8MB"),
            ("maintenance_work_mem", "128MB"),
            // One small machine: parallel plans cost more there than they give, and their shared
            // memory does not fit the 64 MB that containers have.
            ("max_parallel_workers_per_gather", "0"),
            ("max_parallel_maintenance_workers", "0"),
            ("autovacuum_max_workers", "2"),
            ("random_page_cost", "1.1"),
            ("jit", "off"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            // Nobody replicates it.
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("max_logical_replication_workers", "0"),
            ("min_wal_size", "32MB"),
            ("max_wal_size", "512MB"),
            ("checkpoint_timeout", "15min"),
            ("log_checkpoints", "off"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            ("lc_messages", "C"),
        ];
        settings.extend(fixed.map(|(name, value)| (name, value.to_owned())));
        if self.binaries.major >= 18 {
            settings.push(("io_method", "sync".to_owned()));
        }
        settings
    }
}

/// A port on loopback that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
