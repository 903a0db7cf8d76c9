//! What there is and how much of it is used.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::StatusCode;
use tale_sandbox_wire::names::{OrganizationId, SessionId};
use tale_sandbox_wire::spawner::{
    Available, BackendKind, CapacityAnswer, CpuMeasure, DevicesAnswer, DisconnectAnswer, DiskMeasure, DiskMeasures,
    DiskState, Disks, ErrorCode, HealthAnswer, ImageHealth, ImageState, LimitsAnswer, MeasureScope, MemoryMeasure,
    Resources, RuntimeSession, RuntimeState, SessionCounts, WorkspaceInfo, WorkspacesAnswer,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Api;
use super::answer::{Refused, json, ok};
use super::route::Call;
use crate::backend::{self, Backend, ComputeState, Inventory};
use crate::host;
use crate::spawner::Host as _;

/// How long an observation is shared.
const FRESH: Duration = Duration::from_secs(5);

/// What was observed last. Who asks while somebody observes waits for that.
#[derive(Default)]
pub(crate) struct Observations {
    inventory: Mutex<Option<(Instant, Arc<Inventory>)>>,
    version: Mutex<Option<(Instant, String)>>,
}

/// Milliseconds of the epoch as the wire has them.
fn ms(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0)
}

impl Api {
    pub(super) async fn health(&self) -> Result<Response, Refused> {
        let mut known = self.observations.version.lock().await;
        let version = match &*known {
            Some((at, version)) if at.elapsed() < FRESH => version.clone(),
            _ => match self.docker.version().await {
                Ok(version) => {
                    *known = Some((Instant::now(), version.clone()));
                    version
                }
                Err(error) => {
                    *known = None;
                    let body = serde_json::json!({"status": "unhealthy", "error": error.to_string()});
                    return Ok(json(StatusCode::SERVICE_UNAVAILABLE, &body));
                }
            },
        };
        drop(known);
        let (state, last_error, next_attempt_at_ms) = match self.docker.image() {
            backend::ImageState::Unchecked => (ImageState::Unchecked, None, None),
            backend::ImageState::Pulling => (ImageState::Pulling, None, None),
            backend::ImageState::Ready => (ImageState::Ready, None, None),
            backend::ImageState::Missing { last_error, next_attempt_at_ms } => {
                (ImageState::Missing, Some(last_error), next_attempt_at_ms.map(ms))
            }
        };
        let disk = |state| match state {
            host::DiskState::Ready => DiskState::Ready,
            host::DiskState::Unavailable => DiskState::Unavailable,
            host::DiskState::Unconfigured => DiskState::Unconfigured,
        };
        let (workspace, docker_data) = self.host.disks();
        Ok(ok(&HealthAnswer {
            status: "ok".to_owned(),
            docker_server_version: Some(version),
            disks: Some(Disks { workspace: disk(workspace), docker_data: disk(docker_data) }),
            runtime_image: ImageHealth { state, last_error, next_attempt_at_ms },
        }))
    }

    pub(super) fn limits(&self, call: &Call) -> Response {
        let device_sessions = call.parameter("organizationId").map(|_| 0);
        ok(&LimitsAnswer { max_sessions: self.spawner.capacity(), device_sessions })
    }

    async fn inventory(&self) -> Result<Arc<Inventory>, Refused> {
        let mut known = self.observations.inventory.lock().await;
        if let Some((at, inventory)) = &*known
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(inventory));
        }
        match self.docker.list().await {
            Ok(inventory) => {
                let inventory = Arc::new(inventory);
                *known = Some((Instant::now(), Arc::clone(&inventory)));
                Ok(inventory)
            }
            Err(error) => {
                tracing::warn!(event = "sandbox.inventory", %error, "the engine could not say what runs");
                let sentence = "what runs cannot be told now";
                Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::CapacityUnavailable, sentence).retry(5))
            }
        }
    }

    pub(super) async fn capacity(&self, call: &Call) -> Result<Response, Refused> {
        let org = call.organization()?.ok_or_else(|| Refused::bad("organizationId is missing"))?;
        let inventory = self.inventory().await?;
        let mut all: Vec<(SessionId, OrganizationId, RuntimeState)> = inventory
            .computes
            .iter()
            .map(|compute| {
                let state = match compute.state {
                    ComputeState::Running => RuntimeState::Running,
                    ComputeState::Starting => RuntimeState::Starting,
                    ComputeState::Ended { .. } => RuntimeState::Stopped,
                };
                (compute.session.clone(), compute.org.clone(), state)
            })
            .collect();
        // One that is being created and has no container yet.
        for info in self.spawner.sessions(None) {
            if !all.iter().any(|(session, ..)| *session == info.session) {
                all.push((info.session, info.org, RuntimeState::Starting));
            }
        }
        let count = |state, mine: bool| {
            let fits = all.iter().filter(|(_, owner, its)| *its == state && (!mine || *owner == org));
            u32::try_from(fits.count()).unwrap_or(u32::MAX)
        };
        let limit = self.spawner.capacity();
        let facts = self.docker.facts();
        let memory = self.host.memory();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to hundredths of a core")]
        let used_cores = match (self.host.cpu_share().await, facts.as_ref()) {
            (Some(share), Some(facts)) => Some((share * f64::from(facts.cpus) * 100.0).round() as u64),
            _ => None,
        };
        #[expect(clippy::cast_precision_loss, reason = "hundredths of a core are few")]
        let used_cores = used_cores.map(|hundredths| hundredths as f64 / 100.0);
        let pressure_percent = self.host.reading().cpu_pressure;
        let [workspace, docker_data] = self.host.spaces().map(|space| {
            space.map(|space| DiskMeasure {
                total_bytes: space.total,
                free_bytes: space.free,
                floor_bytes: space.floor,
            })
        });
        Ok(ok(&CapacityAnswer {
            status: Available::Available,
            observed_at: ms(self.clock.now_ms()),
            backend: BackendKind::Docker,
            scope: MeasureScope::Host,
            sessions: SessionCounts {
                running: count(RuntimeState::Running, false).saturating_add(inventory.unnamed),
                starting: count(RuntimeState::Starting, false),
                limit,
                organization_running: count(RuntimeState::Running, true),
                organization_starting: count(RuntimeState::Starting, true),
                organization_limit: limit,
            },
            resources: Resources {
                cpu: CpuMeasure { total_cores: facts.as_ref().map(|facts| facts.cpus), used_cores, pressure_percent },
                memory: MemoryMeasure {
                    total_bytes: facts.as_ref().map(|facts| facts.memory),
                    used_bytes: memory.map(|memory| memory.total.saturating_sub(memory.available)),
                },
                disks: DiskMeasures { workspace, docker_data },
            },
            runtime_sessions: all
                .into_iter()
                .filter(|(_, owner, _)| *owner == org)
                .map(|(session_id, _, state)| RuntimeSession { session_id, state, device_id: None })
                .collect(),
            placements: None,
        }))
    }

    pub(super) async fn workspaces(&self) -> Result<Response, Refused> {
        let unavailable = |error: backend::BackendError| {
            tracing::warn!(event = "sandbox.inventory", %error, "the workspaces could not be listed");
            let sentence = "the workspaces cannot be listed now";
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InventoryUnavailable, sentence).retry(5)
        };
        let running = self.docker.list().await.map_err(unavailable)?;
        let all = self.docker.workspaces().await.map_err(unavailable)?;
        let organizations = self.docker.cache_owners().await.map_err(unavailable)?;
        let known = self.spawner.sessions(None);
        let workspaces = all.into_iter().map(|workspace| {
            let compute = running.computes.iter().find(|compute| compute.session == workspace.session);
            let runs = compute.is_some_and(|compute| !matches!(compute.state, ComputeState::Ended { .. }));
            WorkspaceInfo {
                active: runs || known.iter().any(|info| info.session == workspace.session),
                organization_id: compute.map(|compute| compute.org.clone()).or(workspace.org),
                session_id: workspace.session,
                touched_at_ms: ms(workspace.touched_at_ms),
                pinned: workspace.pinned,
            }
        });
        Ok(ok(&WorkspacesAnswer { backend: BackendKind::Docker, workspaces: workspaces.collect(), organizations }))
    }

    /// No device can connect to this release.
    #[expect(clippy::unused_self, reason = "a handler like the others")]
    pub(super) fn devices(&self) -> Response {
        ok(&DevicesAnswer { hub: false, devices: Vec::new() })
    }

    #[expect(clippy::unused_self, reason = "a handler like the others")]
    pub(super) fn disconnect(&self) -> Response {
        ok(&DisconnectAnswer { disconnected: false, placements_dropped: 0 })
    }
}
