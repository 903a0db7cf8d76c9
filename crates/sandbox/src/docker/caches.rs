//! Package caches that the sessions of an organization share (21 §7 of the specification).
//!
//! A volume for each package manager and organization, writable for every user of a session. A create holds a lease from
//! before it looks at the volumes until its container has them; a removal waits for nobody and takes only what no
//! lease names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures::StreamExt;
use tale_sandbox_wire::names::OrganizationId;
use tokio::time::Instant;

use super::container::CacheMount;
use super::engine::{Engine, Patience, refused, status};
use crate::backend::BackendError;

/// Marks volumes that are ours.
const LABEL: &str = "tale.sandbox-cache";

/// Names the organization of a volume.
const ORG_LABEL: &str = "tale.org";

/// How long it counts that the volumes were found prepared: somebody may remove them with the engine's own tools.
const PREPARED: Duration = Duration::from_secs(300);

/// Longest that making a volume writable may take.
const WRITABLE: Duration = Duration::from_secs(20);

/// Names of the volumes.
#[derive(Debug, Clone)]
pub struct CacheNames {
    /// Beginning of the Python caches' names.
    pub pip: String,
    /// Beginning of the npm caches' names.
    pub npm: String,
    /// Beginning of the bun caches' names.
    pub bun: String,
}

/// The caches of all organizations.
#[derive(Debug)]
pub struct Caches {
    names: CacheNames,
    /// Where the last use of each organization's caches is written down.
    records: PathBuf,
    state: Mutex<State>,
    /// Preparations and removals, one after another.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    prepared: BTreeMap<OrganizationId, Instant>,
    leases: BTreeMap<OrganizationId, u32>,
}

/// Keeps an organization's caches while a container is made that has them.
#[derive(Debug)]
pub struct Lease<'a> {
    caches: &'a Caches,
    org: OrganizationId,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.caches.state();
        if let Some(count) = state.leases.get_mut(&self.org) {
            *count -= 1;
            if *count == 0 {
                state.leases.remove(&self.org);
            }
        }
    }
}

impl Caches {
    /// Caches with these names, whose uses are written down in `records`.
    #[must_use]
    pub fn new(names: CacheNames, records: PathBuf) -> Self {
        Self { names, records, state: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the organization's caches are mounted.
    #[must_use]
    pub fn mounts(&self, org: &OrganizationId) -> Vec<CacheMount> {
        let mount = |prefix: &str, place, variables| CacheMount { volume: format!("{prefix}-{org}"), place, variables };
        vec![
            mount(&self.names.pip, "/cache/pip", &["PIP_CACHE_DIR", "UV_CACHE_DIR"]),
            mount(&self.names.npm, "/cache/npm", &["NPM_CONFIG_CACHE"]),
            mount(&self.names.bun, "/cache/bun", &["BUN_INSTALL_CACHE_DIR"]),
        ]
    }

    /// Makes the organization's volumes, or finds them, and keeps them while the lease lives.
    ///
    /// # Errors
    /// When the engine refuses; a volume that could not be made writable is gone then.
    pub async fn prepare(&self, engine: &Engine, image: &str, org: &OrganizationId) -> Result<Lease<'_>, BackendError> {
        let lease = {
            let mut state = self.state();
            *state.leases.entry(org.clone()).or_default() += 1;
            Lease { caches: self, org: org.clone() }
        };
        self.note_use(org);
        let is_known = |state: &State| state.prepared.get(org).is_some_and(|at| at.elapsed() < PREPARED);
        if is_known(&self.state()) {
            return Ok(lease);
        }
        let _turn = self.turn.lock().await;
        if is_known(&self.state()) {
            return Ok(lease);
        }
        let mut fresh = Vec::new();
        for mount in self.mounts(org) {
            if self.make(engine, org, &mount.volume).await? {
                fresh.push(mount);
            }
        }
        if !fresh.is_empty()
            && let Err(error) = make_writable(engine, image, &fresh).await
        {
            for mount in &fresh {
                remove_volume(engine, &mount.volume).await.ok();
            }
            return Err(error);
        }
        self.state().prepared.insert(org.clone(), Instant::now());
        Ok(lease)
    }

    /// Whether the volume had to be made.
    async fn make(&self, engine: &Engine, org: &OrganizationId, volume: &str) -> Result<bool, BackendError> {
        let name = volume.to_owned();
        let found = engine.call(Patience::Usual, |docker| async move { docker.inspect_volume(&name).await }).await?;
        match found {
            Ok(found) if found.labels.get(LABEL).is_some_and(|value| value == "1") => return Ok(false),
            Ok(_) => return Err(BackendError::Refused(format!("the volume {volume} is not one of ours"))),
            Err(error) if status(&error) == Some(404) => {}
            Err(error) => return Err(refused(&error)),
        }
        let labels = HashMap::from([(LABEL.to_owned(), "1".to_owned()), (ORG_LABEL.to_owned(), org.to_string())]);
        let request = VolumeCreateRequest {
            name: Some(volume.to_owned()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        let made = engine.call(Patience::Usual, |docker| async move { docker.create_volume(request).await }).await?;
        made.map_err(|error| refused(&error))?;
        Ok(true)
    }

    fn record(&self, org: &OrganizationId) -> PathBuf {
        self.records.join(format!("{org}.used"))
    }

    /// Its time of change is the last use.
    fn note_use(&self, org: &OrganizationId) {
        if let Err(error) = fs::write(self.record(org), "") {
            tracing::warn!(event = "sandbox.caches", %org, %error, "the use of package caches could not be written down");
        }
    }

    /// Organizations that have caches.
    ///
    /// # Errors
    /// When the engine cannot say.
    pub async fn owners(&self, engine: &Engine) -> Result<Vec<OrganizationId>, BackendError> {
        let filters = HashMap::from([("label", vec!["tale.sandbox-cache=1"])]);
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let listed = engine.call(Patience::Usual, |docker| async move { docker.list_volumes(Some(options)).await });
        let listed = listed.await?.map_err(|error| refused(&error))?;
        let volumes = listed.volumes.unwrap_or_default().into_iter();
        let owners: BTreeSet<_> = volumes
            .filter_map(|volume| {
                let org = OrganizationId::new(volume.labels.get(ORG_LABEL)?.as_str()).ok()?;
                // Several deployments may share an engine under other names.
                self.mounts(&org).iter().any(|mount| mount.volume == volume.name).then_some(org)
            })
            .collect();
        Ok(owners.into_iter().collect())
    }

    /// Removes the organization's caches. Answers how many there were.
    ///
    /// # Errors
    /// When one of them is used, or is not ours.
    pub async fn remove(&self, engine: &Engine, org: &OrganizationId) -> Result<u32, BackendError> {
        let _turn = self.turn.lock().await;
        if self.state().leases.contains_key(org) {
            return Err(BackendError::Refused("a session of the organization is being created".to_owned()));
        }
        self.state().prepared.remove(org);
        let mut removed = 0;
        for mount in self.mounts(org) {
            let name = mount.volume.clone();
            let found =
                engine.call(Patience::Usual, |docker| async move { docker.inspect_volume(&name).await }).await?;
            match found {
                Ok(found) if found.labels.contains_key(LABEL) => {
                    remove_volume(engine, &mount.volume).await?;
                    removed += 1;
                }
                Ok(_) => return Err(BackendError::Refused(format!("the volume {} is not one of ours", mount.volume))),
                Err(error) if status(&error) == Some(404) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        fs::remove_file(self.record(org)).ok();
        Ok(removed)
    }

    /// Removes the caches of organizations that have no container and were not used for `retention`.
    ///
    /// # Errors
    /// When the engine cannot say what there is.
    pub async fn sweep(&self, engine: &Engine, retention: Duration) -> Result<(), BackendError> {
        let owners = self.owners(engine).await?;
        let filters = HashMap::from([("label", vec![super::SESSION_FILTER])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = engine.call(Patience::Usual, |docker| async move { docker.list_containers(Some(options)).await });
        let listed = listed.await?.map_err(|error| refused(&error))?;
        let busy: BTreeSet<String> =
            listed.into_iter().filter_map(|container| container.labels?.remove(ORG_LABEL)).collect();
        for org in owners {
            let record = self.record(&org);
            let used = fs::metadata(&record).and_then(|about| about.modified());
            if busy.contains(org.as_str()) || used.is_err() {
                self.note_use(&org);
                continue;
            }
            let idle = used.ok().and_then(|at| at.elapsed().ok());
            if idle.is_none_or(|idle| idle < retention) {
                continue;
            }
            match self.remove(engine, &org).await {
                Ok(count) => {
                    tracing::info!(event = "sandbox.caches", %org, count, "unused package caches were removed")
                }
                Err(error) => {
                    tracing::warn!(event = "sandbox.caches", %org, %error, "unused package caches could not be removed");
                }
            }
        }
        Ok(())
    }
}

async fn remove_volume(engine: &Engine, volume: &str) -> Result<(), BackendError> {
    let name = volume.to_owned();
    let options = RemoveVolumeOptionsBuilder::new().build();
    match engine.call(Patience::Usual, |docker| async move { docker.remove_volume(&name, Some(options)).await }).await?
    {
        Ok(()) => Ok(()),
        Err(error) if status(&error) == Some(404) => Ok(()),
        Err(error) => Err(refused(&error)),
    }
}

/// Lets every user write into new volumes, by a short run of the runtime's own image that has no network.
async fn make_writable(engine: &Engine, image: &str, mounts: &[CacheMount]) -> Result<(), BackendError> {
    let places = mounts.iter().map(|mount| mount.place);
    let host = HostConfig {
        binds: Some(mounts.iter().map(|mount| format!("{}:{}", mount.volume, mount.place)).collect()),
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
        memory: Some(64 << 20),
        pids_limit: Some(16),
        ..HostConfig::default()
    };
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec!["/bin/chmod".to_owned(), "1777".to_owned()]),
        cmd: Some(places.map(str::to_owned).collect()),
        labels: Some(HashMap::from([("tale.sandbox-helper".to_owned(), "1".to_owned())])),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().build();
    let made = engine.call(Patience::Long, |docker| async move { docker.create_container(Some(options), body).await });
    let id = made.await?.map_err(|error| refused(&error))?.id;
    let run = async {
        let started = engine.call(Patience::Long, |docker| {
            let id = id.clone();
            async move { docker.start_container(&id, None).await }
        });
        started.await?.map_err(|error| refused(&error))?;
        let client = engine.client().await?;
        let mut waiting = client.wait_container(&id, Some(WaitContainerOptionsBuilder::new().build()));
        match waiting.next().await {
            Some(Ok(ended)) if ended.status_code == 0 => Ok(()),
            Some(Ok(ended)) => Err(BackendError::Refused(format!("chmod ended with {}", ended.status_code))),
            Some(Err(error)) => Err(BackendError::Refused(error.to_string())),
            None => Err(BackendError::Unreachable("the engine did not say how chmod ended".to_owned())),
        }
    };
    let late = |_| BackendError::Unreachable("package caches could not be made writable in time".to_owned());
    let outcome = tokio::time::timeout(WRITABLE, run).await.map_err(late).and_then(|ran| ran);
    let remove = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    let removed =
        engine.call(Patience::Long, |docker| async move { docker.remove_container(&id, Some(remove)).await }).await;
    if let Err(error) = removed {
        tracing::warn!(event = "sandbox.caches", %error, "a helper container could not be removed");
    }
    outcome
}
