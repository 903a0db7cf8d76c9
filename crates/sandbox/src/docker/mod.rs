//! Sessions as containers of a Docker engine (21, sections 1 and 2, of the specification).

mod caches;
mod container;
mod engine;
mod image;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::{
    ContainerCreateBody, ContainerCreateResponse, ContainerInspectResponse, ContainerStateStatusEnum,
    NetworkCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, EventsOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use futures::StreamExt;
use tale_core::clock::SharedClock;
use tale_sandbox_wire::names::{Instance, OrganizationId, Profile, SessionId};
use tale_sandbox_wire::sign::Key;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use url::Url;

pub use caches::{CacheNames, Caches};
pub use container::{CacheMount, INSTANCE_LABEL, Plan, SESSION_LABEL, body};
pub use engine::{BadHost, Engine};
pub use image::Image;

use self::container::{compute, is_ours, state_of};
use self::engine::{Patience, refused, status};
use crate::backend::{
    Backend, BackendError, Compute, ComputeState, Deletion, ImageState, Inventory, Launch, LaunchError, Which,
    Workspace,
};
use crate::profile::Limits;
use crate::workspaces::{WorkspaceError, Workspaces};

/// Seconds that a daemon gets to end what runs.
const GRACE: i32 = 3;

/// Longest wait for a removal that another call has begun.
const REMOVAL: Duration = Duration::from_secs(10);

/// Longest that a destroy waits for the deletion of files (SBX-89).
const DELETION: Duration = Duration::from_secs(10);

/// Lines of a container's output in an error.
const LAST_LINES: &str = "5";

/// Most characters of them.
const LAST_CHARS: usize = 600;

/// What the backend is made from.
#[derive(Debug, Clone)]
pub struct DockerConfig {
    /// Names the deployment on an engine that several share.
    pub instance: Instance,
    /// The engine's runtime; its own when unset.
    pub runtime: Option<&'static str>,
    /// The network that sessions join.
    pub network: String,
    /// The only way out of it.
    pub proxy: Url,
    /// Whether programs that know nothing of a proxy are led to it.
    pub redirects: bool,
    /// Hosts that sessions reach without the proxy besides the usual ones.
    pub direct_hosts: Vec<String>,
    /// Limits of agents.
    pub agent_limits: Limits,
    /// Silence after which a command counts as stalled; zero = never.
    pub stall: Duration,
    /// Daemons' tokens follow from it.
    pub key: Key,
    /// Names of the package caches.
    pub caches: CacheNames,
    /// How long unused package caches stay; `None` = until the organization goes.
    pub cache_retention: Option<Duration>,
}

/// What the engine says about its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Processors.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Where the engine keeps its data.
    pub root: String,
    /// Whether sessions survive a restart of the engine.
    pub live_restore: bool,
    /// Whether it is part of a swarm, where they cannot.
    pub in_swarm: bool,
}

/// Containers and workspaces on one host.
#[derive(Debug)]
pub struct DockerBackend {
    engine: Arc<Engine>,
    image: Arc<Image>,
    workspaces: Workspaces,
    config: DockerConfig,
    trash: Arc<Notify>,
    caches: Caches,
    facts: Mutex<Option<Facts>>,
}

impl DockerBackend {
    /// A backend on `engine`. Its image is looked for, and deleted workspaces are removed, for as long as the
    /// futures of [`DockerBackend::tasks`] run.
    #[must_use]
    pub fn new(engine: Arc<Engine>, image: Arc<Image>, workspaces: Workspaces, config: DockerConfig) -> Self {
        let caches = Caches::new(config.caches.clone(), workspaces.root().join(".package-caches"));
        Self { engine, image, workspaces, config, trash: Arc::new(Notify::new()), caches, facts: Mutex::default() }
    }

    /// Fetches the image, and empties the trash whenever something was thrown into it and every five minutes.
    pub async fn tasks(&self, clock: SharedClock) {
        let image = Arc::clone(&self.image).keep(Arc::clone(&self.engine), clock);
        let trash = async {
            loop {
                let workspaces = self.workspaces.clone();
                let _ = tokio::task::spawn_blocking(move || workspaces.empty_trash(None)).await;
                let _ = tokio::time::timeout(Duration::from_secs(300), self.trash.notified()).await;
            }
        };
        let caches = async {
            let Some(retention) = self.config.cache_retention else { return };
            loop {
                sleep(Duration::from_secs(3_600)).await;
                if let Err(error) = self.caches.sweep(&self.engine, retention).await {
                    tracing::warn!(event = "sandbox.caches", %error, "package caches could not be looked at");
                }
            }
        };
        tokio::join!(image, trash, caches);
    }

    /// Asks the engine about its machine.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn look(&self) -> Result<Facts, BackendError> {
        let info = self.engine.call(Patience::Usual, |docker| async move { docker.info().await }).await?;
        let info = info.map_err(|error| refused(&error))?;
        let in_swarm = info.swarm.and_then(|swarm| swarm.node_id).is_some_and(|node| !node.is_empty());
        let facts = Facts {
            cpus: info.ncpu.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(0),
            memory: info.mem_total.and_then(|memory| u64::try_from(memory).ok()).unwrap_or(0),
            kernel: info.kernel_version.unwrap_or_default(),
            root: info.docker_root_dir.unwrap_or_default(),
            live_restore: info.live_restore_enabled == Some(true),
            in_swarm,
        };
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts.clone());
        Ok(facts)
    }

    /// What the engine last said about its machine.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the engine is asked through a socket of this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.engine.is_local()
    }

    /// Organizations that have package caches.
    ///
    /// # Errors
    /// When the engine cannot say.
    pub async fn cache_owners(&self) -> Result<Vec<OrganizationId>, BackendError> {
        self.caches.owners(&self.engine).await
    }

    /// Removes the package caches of an organization. Answers how many there were.
    ///
    /// # Errors
    /// When one of them could not be removed.
    pub async fn remove_caches(&self, org: &OrganizationId) -> Result<u32, BackendError> {
        self.caches.remove(&self.engine, org).await
    }

    /// Names sessions whose container ended, as the engine says so. Ends when the engine stops talking.
    pub async fn ended(&self, mut each: impl FnMut(SessionId)) -> Result<(), BackendError> {
        let client = self.engine.client().await?;
        let filters = HashMap::from([
            ("type", vec!["container"]),
            ("label", vec![SESSION_FILTER]),
            ("event", vec!["die", "destroy", "oom"]),
        ]);
        let mut events = client.events(Some(EventsOptionsBuilder::new().filters(&filters).build()));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| BackendError::Unreachable(error.to_string()))?;
            let labels = event.actor.and_then(|actor| actor.attributes).unwrap_or_default();
            if is_ours(&labels, &self.config.instance)
                && let Some(Ok(session)) = labels.get("tale.session").map(|id| SessionId::new(id.as_str()))
            {
                each(session);
            }
        }
        Ok(())
    }

    /// Makes the network of sessions where there is none, and says what is wrong with one that is there.
    ///
    /// # Errors
    /// When it is neither there nor can be made.
    pub async fn prepare_network(&self) -> Result<(), BackendError> {
        let name = &self.config.network;
        let found = self.engine.call(Patience::Usual, |docker| {
            let name = name.clone();
            async move { docker.inspect_network(&name, None).await }
        });
        match found.await? {
            Ok(network) => {
                if network.internal != Some(true) {
                    tracing::warn!(
                        event = "sandbox.network",
                        network = name,
                        "the network of sessions is not internal: they can go out past the egress proxy"
                    );
                }
                Ok(())
            }
            Err(error) if status(&error) == Some(404) => {
                let request = NetworkCreateRequest {
                    name: name.clone(),
                    driver: Some("bridge".to_owned()),
                    internal: Some(true),
                    labels: Some(HashMap::from([("tale.sandbox-network".to_owned(), "1".to_owned())])),
                    ..NetworkCreateRequest::default()
                };
                let made =
                    self.engine.call(Patience::Usual, |docker| async move { docker.create_network(request).await });
                match made.await? {
                    Ok(_) => Ok(()),
                    Err(error) if status(&error) == Some(409) => Ok(()),
                    Err(error) => Err(refused(&error)),
                }
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// The engine's version.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn version(&self) -> Result<String, BackendError> {
        let version = self.engine.call(Patience::Short, |docker| async move { docker.version().await }).await?;
        Ok(version.map_err(|error| refused(&error))?.version.unwrap_or_default())
    }

    fn limits(&self, profile: Profile) -> Limits {
        match profile {
            Profile::Default => Limits::of(profile),
            Profile::Agent | Profile::AgentLight => self.config.agent_limits.clone(),
        }
    }

    fn plan(&self, launch: &Launch, workspace: PathBuf, caches: Vec<CacheMount>) -> Plan {
        Plan {
            session: launch.session.clone(),
            org: launch.org.clone(),
            profile: launch.profile,
            limits: self.limits(launch.profile),
            created_at_ms: launch.created_at_ms,
            ttl: launch.ttl,
            idle_timeout: launch.idle_timeout,
            instance: self.config.instance.clone(),
            runtime: self.config.runtime,
            image: self.image.name().to_owned(),
            network: self.config.network.clone(),
            proxy: self.config.proxy.clone(),
            redirects: self.config.redirects,
            direct_hosts: self.config.direct_hosts.clone(),
            workspace,
            token: self.config.key.daemon_token(&launch.session),
            stall: self.config.stall,
            caches,
        }
    }

    async fn inspect(&self, name: &str, patience: Patience) -> Result<Option<ContainerInspectResponse>, BackendError> {
        let name = name.to_owned();
        let found = self.engine.call(patience, |docker| async move { docker.inspect_container(&name, None).await });
        match found.await? {
            Ok(found) => Ok(Some(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(refused(&error)),
        }
    }

    /// What the session's container may be called.
    fn names(&self, session: &SessionId) -> [String; 2] {
        [session.container_name(), session.other_container_name(&self.config.instance)]
    }

    async fn create(
        &self,
        name: &str,
        body: &ContainerCreateBody,
    ) -> Result<Result<ContainerCreateResponse, bollard::errors::Error>, BackendError> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let body = body.clone();
        let made = self
            .engine
            .call(Patience::Long, |docker| async move { docker.create_container(Some(options), body).await });
        made.await
    }

    /// What an inspection says about one of our containers.
    fn read(&self, found: ContainerInspectResponse) -> Option<Compute> {
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        if !is_ours(&labels, &self.config.instance) {
            return None;
        }
        let state = found.state.unwrap_or_default();
        let doing = match state.status {
            Some(
                ContainerStateStatusEnum::EXITED | ContainerStateStatusEnum::DEAD | ContainerStateStatusEnum::REMOVING,
            ) => ComputeState::Ended { out_of_memory: state.oom_killed == Some(true) },
            Some(ContainerStateStatusEnum::CREATED | ContainerStateStatusEnum::RESTARTING) => ComputeState::Starting,
            _ => ComputeState::Running,
        };
        let networks = found.network_settings.and_then(|settings| settings.networks);
        let compute = compute(found.id?, &labels, doing, networks.as_ref(), &self.config.network)?;
        Some(self.with_pin(compute))
    }

    fn with_pin(&self, compute: Compute) -> Compute {
        let pinned = self.workspaces.pin(&compute.session) == Some(compute.created_at_ms);
        Compute { pinned, ..compute }
    }

    /// Ends and removes one container by its own name, which nothing else ever gets.
    async fn remove_handle(&self, handle: &str) -> Result<(), BackendError> {
        let stop = StopContainerOptionsBuilder::new().t(GRACE).build();
        let stopped = self.engine.call(Patience::Long, |docker| {
            let handle = handle.to_owned();
            async move { docker.stop_container(&handle, Some(stop)).await }
        });
        match stopped.await? {
            Ok(()) => {}
            Err(error) if status(&error) == Some(404) => return Ok(()),
            // 304: it had ended. Whatever else it says, the removal is what counts.
            Err(error) => tracing::debug!(event = "sandbox.stop", handle, %error, "a container did not stop by itself"),
        }
        let remove = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let removed = self.engine.call(Patience::Long, |docker| {
            let handle = handle.to_owned();
            async move { docker.remove_container(&handle, Some(remove)).await }
        });
        match removed.await? {
            Ok(()) => Ok(()),
            Err(error) if status(&error) == Some(404) => Ok(()),
            Err(error) if status(&error) == Some(409) => self.wait_for_removal(handle).await,
            Err(error) => Err(refused(&error)),
        }
    }

    async fn wait_for_removal(&self, handle: &str) -> Result<(), BackendError> {
        let deadline = Instant::now() + REMOVAL;
        while self.inspect(handle, Patience::Usual).await?.is_some() {
            if Instant::now() >= deadline {
                return Err(BackendError::Unreachable("the container is still being removed".to_owned()));
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

/// Containers of sessions.
const SESSION_FILTER: &str = "tale.sandbox-session=1";

fn disk(error: WorkspaceError) -> BackendError {
    BackendError::Refused(error.to_string())
}

#[async_trait]
impl Backend for DockerBackend {
    async fn list(&self) -> Result<Inventory, BackendError> {
        let filters = HashMap::from([("label", vec![SESSION_FILTER])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed =
            self.engine.call(Patience::Usual, |docker| async move { docker.list_containers(Some(options)).await });
        let listed = listed.await?.map_err(|error| refused(&error))?;
        let mut inventory = Inventory::default();
        for summary in listed {
            let state = state_of(&summary);
            let labels = summary.labels.unwrap_or_default();
            if !is_ours(&labels, &self.config.instance) {
                continue;
            }
            let networks = summary.network_settings.and_then(|settings| settings.networks);
            let read = summary.id.and_then(|id| compute(id, &labels, state, networks.as_ref(), &self.config.network));
            match read {
                Some(compute) => inventory.computes.push(self.with_pin(compute)),
                None if !matches!(state, ComputeState::Ended { .. }) => inventory.unnamed += 1,
                None => {}
            }
        }
        Ok(inventory)
    }

    async fn find(&self, session: &SessionId) -> Result<Option<Compute>, BackendError> {
        for name in self.names(session) {
            // A container of that name may be another deployment's.
            if let Some(found) = self.inspect(&name, Patience::Short).await?
                && let Some(compute) = self.read(found)
                && compute.session == *session
            {
                return Ok(Some(compute));
            }
        }
        Ok(None)
    }

    async fn launch(&self, launch: &Launch) -> Result<Compute, LaunchError> {
        // In one go: a start that is given up has made all of it or nothing.
        let user = self.limits(launch.profile).user;
        let workspace = match self.workspaces.prepare(&launch.session, &launch.org, user) {
            Ok(path) => path,
            Err(WorkspaceError::Foreign) => return Err(LaunchError::Foreign),
            Err(error) => return Err(disk(error).into()),
        };
        // Without its caches a session still starts: it installs what it needs from afar.
        let lease = match self.caches.prepare(&self.engine, self.image.name(), &launch.org).await {
            Ok(lease) => Some(lease),
            Err(error) => {
                tracing::warn!(event = "sandbox.caches", org = %launch.org, %error, "a session starts without package caches");
                None
            }
        };
        let mounts = if lease.is_some() { self.caches.mounts(&launch.org) } else { Vec::new() };
        let body =
            body(&self.plan(launch, workspace, mounts)).map_err(|error| BackendError::Refused(error.to_string()))?;
        let [usual, other] = self.names(&launch.session);
        let mut made = self.create(&usual, &body).await?;
        // Whether it is this deployment's is for [`Backend::find`] to say.
        if made.as_ref().is_err_and(|error| status(error) == Some(409)) && self.find(&launch.session).await?.is_none() {
            made = self.create(&other, &body).await?;
        }
        drop(lease);
        let handle = match made {
            Ok(made) => made.id,
            Err(error) => {
                return Err(match status(&error) {
                    Some(404) if error.to_string().to_lowercase().contains("image") => {
                        self.image.is_missed();
                        LaunchError::ImageMissing
                    }
                    Some(409) => LaunchError::Exists,
                    _ => refused(&error).into(),
                });
            }
        };
        let started = self.engine.call(Patience::Long, |docker| {
            let handle = handle.clone();
            async move { docker.start_container(&handle, None).await }
        });
        started.await?.map_err(|error| refused(&error))?;
        let found = self.inspect(&handle, Patience::Short).await?;
        let compute = found.and_then(|found| self.read(found));
        compute.ok_or_else(|| BackendError::Refused("the container disappeared while it started".to_owned()).into())
    }

    async fn remove(&self, session: &SessionId, which: &Which) -> Result<(), BackendError> {
        let handle = match which {
            Which::Handle(handle) => handle.clone(),
            Which::Incarnation(_) | Which::Any => {
                let Some(found) = self.find(session).await? else { return Ok(()) };
                if *which != Which::Any && *which != Which::Incarnation(found.created_at_ms) {
                    return Ok(());
                }
                found.handle
            }
        };
        self.remove_handle(&handle).await
    }

    async fn set_pin(&self, session: &SessionId, created_at_ms: i64, pinned: bool) -> Result<(), BackendError> {
        self.workspaces.set_pin(session, created_at_ms, pinned).map_err(disk)
    }

    async fn last_words(&self, handle: &str) -> Option<String> {
        let client = self.engine.client().await.ok()?;
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).tail(LAST_LINES).build();
        let reading = async {
            let mut lines = client.logs(handle, Some(options));
            let mut text = String::new();
            while let Some(Ok(line)) = lines.next().await {
                text.push_str(&String::from_utf8_lossy(&line.into_bytes()));
                if text.len() > 4 * LAST_CHARS {
                    break;
                }
            }
            text
        };
        let text = tokio::time::timeout(Duration::from_secs(2), reading).await.ok()?;
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LAST_CHARS).collect();
        let clean = clean.trim();
        (!clean.is_empty()).then(|| clean.to_owned())
    }

    fn image(&self) -> ImageState {
        self.image.state()
    }

    async fn discard_workspace(&self, session: &SessionId) -> Result<bool, BackendError> {
        let (workspaces, session) = (self.workspaces.clone(), session.clone());
        let discarded = tokio::task::spawn_blocking(move || workspaces.discard(&session)).await;
        let discarded = discarded.map_err(|error| BackendError::Unreachable(error.to_string()))?.map_err(disk)?;
        self.trash.notify_one();
        Ok(discarded)
    }

    async fn deletion(&self, session: &SessionId, attempt: bool) -> Result<Deletion, BackendError> {
        if attempt {
            let (workspaces, session) = (self.workspaces.clone(), session.clone());
            let task = tokio::task::spawn_blocking(move || workspaces.empty_trash(Some(&session)));
            // It goes on when the wait is over.
            let _ = tokio::time::timeout(DELETION, task).await;
        }
        self.workspaces.deletion(session).map_err(disk)
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>, BackendError> {
        let workspaces = self.workspaces.clone();
        let listed = tokio::task::spawn_blocking(move || workspaces.list()).await;
        listed.map_err(|error| BackendError::Unreachable(error.to_string()))?.map_err(disk)
    }

    async fn owner(&self, session: &SessionId) -> Result<Option<OrganizationId>, BackendError> {
        self.workspaces.owner(session).map_err(disk)
    }
}
