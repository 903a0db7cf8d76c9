//! The spawner as a process: everything put together, and what runs beside the interface.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tale_core::clock::SharedClock;
use tale_sandbox_wire::sign::Key;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::api::{self, ApiConfig, ApiParts};
use crate::capacity::{UNMEASURED, default_reserve, sized};
use crate::daemon::DaemonClient;
use crate::docker::{BadHost, DockerBackend, DockerConfig, Engine, Facts, Image};
use crate::host::{self, Floors, LinuxHost};
use crate::spawner::{Rules, Spawner};
use crate::workspaces::{RootError, Workspaces};

/// Pause between two maintenance passes.
const PASS: Duration = Duration::from_secs(60);

/// How long what the engine said about its machine counts.
const FACTS: Duration = Duration::from_secs(600);

/// Pause before an engine that did not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Pause before the engine's events are listened to again.
const LISTEN_AGAIN: Duration = Duration::from_secs(2);

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct RoleConfig {
    /// The engine, as in `DOCKER_HOST`.
    pub docker_host: String,
    /// The image of sessions.
    pub image: String,
    /// Whether it is fetched when it is not there.
    pub pulls_image: bool,
    /// Where workspaces are.
    pub session_root: PathBuf,
    /// Where the engine's data are: its own name for the directory, and ours.
    pub docker_data: Option<(String, PathBuf)>,
    /// Free disk space that is asked for.
    pub floors: Floors,
    /// A fixed capacity, which also switches the memory check off.
    pub capacity: Option<u32>,
    /// Memory that a start leaves free; by the host when unset.
    pub memory_reserve: Option<u64>,
    /// Pressure from which starts go one by one, in percent; `None` = never.
    pub pressure_limit: Option<f64>,
    /// Longest life.
    pub max_lifetime: Duration,
    /// Longest idle time.
    pub max_idle: Duration,
    /// The same for a session that no work holds.
    pub released_idle: Duration,
    /// Longest start.
    pub create_timeout: Duration,
    /// Longest linger of a draining spawner.
    pub max_linger: Duration,
    /// The shared key before the one of `docker`, while it is changed.
    pub previous_key: Option<Key>,
    /// Containers.
    pub docker: DockerConfig,
    /// Requests.
    pub api: ApiConfig,
}

/// Why the spawner does not start.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The engine's address.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// The directory of workspaces.
    #[error(transparent)]
    Root(#[from] RootError),
}

/// The spawner with everything it stands on.
pub struct SpawnerRole {
    spawner: Spawner,
    daemons: DaemonClient,
    docker: Arc<DockerBackend>,
    host: Arc<LinuxHost>,
    workspaces: Workspaces,
    clock: SharedClock,
    config: RoleConfig,
}

impl SpawnerRole {
    /// Takes the directory of workspaces and puts everything together. The engine need not answer yet.
    ///
    /// # Errors
    /// [`RoleError`].
    pub fn open(config: RoleConfig, clock: SharedClock) -> Result<Self, RoleError> {
        let engine = Arc::new(Engine::new(&config.docker_host)?);
        let workspaces = Workspaces::open(&config.session_root)?;
        let image = Image::new(config.image.clone(), config.pulls_image);
        let keys = std::iter::once(config.docker.key.clone()).chain(config.previous_key.clone()).collect();
        let daemons = DaemonClient::new(keys, clock.clone());
        let docker = Arc::new(DockerBackend::new(engine, image, workspaces.clone(), config.docker.clone()));
        let host = LinuxHost::new(&config.session_root, config.floors, config.capacity.is_none());
        let rules = Rules {
            max_lifetime: config.max_lifetime,
            max_idle: config.max_idle,
            released_idle: config.released_idle,
            create_timeout: config.create_timeout,
            max_linger: config.max_linger,
            capacity: config.capacity.unwrap_or(UNMEASURED),
            memory_reserve: config.memory_reserve.unwrap_or(0),
            pressure_limit: config.pressure_limit,
        };
        let waiting = workspaces.line();
        let spawner = Spawner::new(docker.clone(), Arc::new(daemons.clone()), host.clone(), clock.clone(), rules);
        spawner.restore_line(waiting);
        if config.capacity.is_some() && config.memory_reserve.is_some() {
            tracing::warn!(
                event = "sandbox.config",
                "SANDBOX_MIN_FREE_MEMORY has no effect beside a fixed SANDBOX_MAX_SESSIONS"
            );
        }
        if config.pressure_limit.is_some() && !host::has_pressure() {
            tracing::info!(
                event = "sandbox.config",
                "the kernel tells no processor pressure; starts are not held back by it"
            );
        }
        Ok(Self { spawner, daemons, docker, host, workspaces, clock, config })
    }

    /// The signed interface.
    pub fn router(&self) -> Router {
        api::router(ApiParts {
            spawner: self.spawner.clone(),
            daemons: self.daemons.clone(),
            docker: Arc::clone(&self.docker),
            host: Arc::clone(&self.host),
            key: self.config.docker.key.clone(),
            previous_key: self.config.previous_key.clone(),
            clock: self.clock.clone(),
            config: self.config.api.clone(),
        })
    }

    /// Everything that runs beside the interface, until `stop`. Sessions run on when it ends.
    pub async fn run(&self, stop: CancellationToken) {
        let workspaces = self.workspaces.clone();
        let report = move |_: &Path| {
            let workspaces = workspaces.clone();
            tokio::task::spawn_blocking(move || {
                for (session, bytes) in workspaces.largest(3) {
                    tracing::warn!(
                        event = "sandbox.disk",
                        session,
                        bytes,
                        "a disk is nearly full; one of the largest workspaces"
                    );
                }
            });
        };
        let work = async {
            tokio::join!(
                self.docker.tasks(self.clock.clone()),
                Arc::clone(&self.host).watch_disks(report),
                self.keep_facts(),
                self.keep_passes(),
                self.keep_listening(),
                self.keep_line(),
            );
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn keep_passes(&self) {
        loop {
            if let Err(error) = self.spawner.maintain().await {
                tracing::warn!(event = "sandbox.pass", %error, "the engine could not say what runs");
            }
            sleep(PASS).await;
        }
    }

    async fn keep_line(&self) {
        let keep = |waiting: Vec<_>| async move {
            let workspaces = self.workspaces.clone();
            match tokio::task::spawn_blocking(move || workspaces.keep_line(&waiting)).await {
                Ok(Ok(())) => true,
                Ok(Err(error)) => {
                    tracing::warn!(event = "sandbox.line", %error, "the waiting line could not be kept");
                    false
                }
                Err(_) => false,
            }
        };
        self.spawner.keep_line(keep).await;
    }

    async fn keep_listening(&self) {
        let mut was_away = false;
        loop {
            if was_away && self.docker.version().await.is_err() {
                sleep(LISTEN_AGAIN).await;
                continue;
            }
            let spawner = self.spawner.clone();
            let heard = self.docker.ended(move |session| {
                let spawner = spawner.clone();
                // The registry learns at once; the pass would find it within a minute.
                tokio::spawn(async move { spawner.session(&session).await });
            });
            // What the engine could not be told while it was away does not wait for the next pass.
            let catch_up = async {
                if was_away && let Err(error) = self.spawner.maintain().await {
                    tracing::debug!(event = "sandbox.pass", %error, "the engine is back and could not say what runs");
                }
            };
            let (heard, ()) = tokio::join!(heard, catch_up);
            was_away = true;
            if let Err(error) = heard {
                tracing::debug!(event = "sandbox.events", %error, "the engine's events ended");
            }
            sleep(LISTEN_AGAIN).await;
        }
    }

    async fn keep_facts(&self) {
        let (mut known, mut warned) = (None, false);
        loop {
            match self.docker.look().await {
                Ok(facts) => {
                    if known.as_ref() != Some(&facts) {
                        self.settle(&facts);
                        known = Some(facts);
                    }
                    warned = false;
                    if let Err(error) = self.docker.prepare_network().await {
                        tracing::warn!(event = "sandbox.network", %error, "the network of sessions could not be made");
                        sleep(ASK_AGAIN).await;
                        continue;
                    }
                    sleep(FACTS).await;
                }
                Err(error) => {
                    if !warned {
                        tracing::warn!(event = "sandbox.engine", %error, "the container engine does not answer");
                        warned = true;
                    }
                    sleep(if known.is_some() { ASK_AGAIN } else { LISTEN_AGAIN }).await;
                }
            }
        }
    }

    /// Acts on what the engine says about its machine.
    fn settle(&self, facts: &Facts) {
        let is_local = self.docker.is_local() && is_this_machine(facts);
        self.host.set_local(is_local);
        let named = self.config.docker_data.as_ref().map(|(root, place)| (root.as_str(), place.as_path()));
        let disk = host::find_data_disk(&facts.root, named, is_local);
        if disk == host::DataDisk::Refuted {
            tracing::error!(
                event = "sandbox.disk",
                "SANDBOX_DOCKER_DATA_ROOT is not the engine's directory, or not mounted read-only at \
                 SANDBOX_DOCKER_DATA_PATH; nothing starts until it is"
            );
        }
        self.host.set_data_disk(disk);
        let reserve = self.config.memory_reserve.unwrap_or_else(|| default_reserve(facts.memory));
        let (capacity, origin) = match self.config.capacity {
            Some(fixed) => (fixed, "fixed"),
            None if is_local => (sized(facts.memory, facts.cpus, reserve, false), "host"),
            None => (UNMEASURED, "unmeasured"),
        };
        self.spawner.set_size(capacity, reserve);
        tracing::info!(
            event = "sandbox.capacity",
            capacity,
            origin,
            cpus = facts.cpus,
            memory = facts.memory,
            "sessions that may run at the same time"
        );
        if !facts.live_restore {
            let hint = if facts.in_swarm { "; an engine in a swarm cannot have it" } else { "" };
            tracing::warn!(
                event = "sandbox.config",
                "live-restore is off: a restart of the engine stops every session{hint}"
            );
        }
    }
}

/// Whether the engine's machine is the one that this process can look at.
fn is_this_machine(facts: &Facts) -> bool {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = host::total_memory().unwrap_or(0);
    kernel.trim() == facts.kernel && memory == facts.memory
}
