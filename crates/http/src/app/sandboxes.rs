//! Settings > Sandboxes: limits, use, the host, the waiting line, sessions.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use tale_identity::Capability;
use tale_workshop::overview::{self, Overview, Runtime};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_sandboxes)).routes(routes!(stop_sandbox)).routes(routes!(delete_sandbox))
}

/// Use of one class under its limit.
#[derive(Serialize, ToSchema)]
struct SandboxClass {
    /// Places that are held.
    used: u32,
    /// Places that may be held at the same time.
    limit: u32,
}

impl From<overview::Class> for SandboxClass {
    fn from(class: overview::Class) -> Self {
        Self { used: class.used, limit: class.limit }
    }
}

/// Limits and use by class.
#[derive(Serialize, ToSchema)]
struct SandboxClasses {
    /// Standing workspaces, those of people who run code among them.
    project: SandboxClass,
    /// Runs of automations.
    workflow: SandboxClass,
    /// Renderings.
    render: SandboxClass,
}

/// What the host said. What it does not know is `null`, never 0.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxHost {
    /// Epoch milliseconds.
    observed_at: i64,
    /// Sandboxes of the deployment that run or start.
    sessions: u32,
    /// How many it holds.
    capacity: u32,
    /// Sandboxes of the organization that run or start.
    own_sessions: u32,
    #[schema(required)]
    used_cores: Option<f64>,
    #[schema(required)]
    total_cores: Option<u32>,
    /// Share of the last ten seconds in which something waited for a processor, 0 to 100.
    #[schema(required)]
    pressure_percent: Option<f64>,
    #[schema(required)]
    used_memory_bytes: Option<u64>,
    #[schema(required)]
    total_memory_bytes: Option<u64>,
    /// The disk of the sandboxes' files.
    #[schema(required)]
    workspace_disk: Option<SandboxDisk>,
    /// The disk of images and containers.
    #[schema(required)]
    engine_disk: Option<SandboxDisk>,
}

/// A disk of the host.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxDisk {
    total_bytes: u64,
    free_bytes: u64,
    /// Below so much no sandbox starts; 0 = no such floor.
    floor_bytes: u64,
}

impl From<overview::Host> for SandboxHost {
    fn from(host: overview::Host) -> Self {
        let disk = |disk: overview::DiskMeasure| SandboxDisk {
            total_bytes: disk.total_bytes,
            free_bytes: disk.free_bytes,
            floor_bytes: disk.floor_bytes,
        };
        Self {
            observed_at: host.observed_at.timestamp_millis(),
            sessions: host.sessions,
            capacity: host.capacity,
            own_sessions: host.own_sessions,
            used_cores: host.used_cores,
            total_cores: host.total_cores,
            pressure_percent: host.pressure_percent,
            used_memory_bytes: host.used_memory,
            total_memory_bytes: host.total_memory,
            workspace_disk: host.workspace_disk.map(disk),
            engine_disk: host.engine_disk.map(disk),
        }
    }
}

/// Whether a sandbox runs on the host.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum SandboxRuntime {
    Running,
    Starting,
    /// Its files are kept.
    Stopped,
    /// The host could not be asked.
    Unknown,
}

/// A sandbox. Whether it runs and whether it holds a place are two things: one may be kept warm without a place.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Sandbox {
    id: String,
    /// `project`, `workflow` or `render`.
    workload: String,
    /// Whose it is; `null` when the account is gone.
    #[schema(required)]
    person: Option<String>,
    runtime: SandboxRuntime,
    /// `creating` and `active` hold a place, `released` holds none, `destroying` is being deleted.
    allocation: String,
    /// Programs that run in it.
    running: u32,
    /// Milliseconds that its programs ran within 30 days.
    used_ms: u64,
    /// Epoch milliseconds.
    used_at: i64,
    /// When its files are deleted unless it is used again, in epoch milliseconds; `null` while nothing will delete them.
    #[schema(required)]
    deleted_at: Option<i64>,
}

/// Somebody who waits for a place.
#[derive(Serialize, ToSchema)]
struct SandboxWaiter {
    /// `null` when the account is gone.
    #[schema(required)]
    person: Option<String>,
    /// Epoch milliseconds.
    since: i64,
    /// As of a run.
    #[schema(required)]
    reason: Option<String>,
}

/// The organization's sandboxes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Sandboxes {
    /// `null` while the limits cannot be read.
    #[schema(required)]
    classes: Option<SandboxClasses>,
    /// Version of the policy `sandbox_quota`.
    version: i64,
    /// `null` while it cannot be asked.
    #[schema(required)]
    host: Option<SandboxHost>,
    /// Runs that wait.
    waiting: u32,
    /// Programs that ended within 30 days.
    runs: u64,
    /// Milliseconds that they ran.
    used_ms: u64,
    /// Who waits, for those who manage sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<Vec<SandboxWaiter>>,
    /// The latest 100 sandboxes, for those who manage them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sessions: Option<Vec<Sandbox>>,
}

impl From<Overview> for Sandboxes {
    fn from(overview: Overview) -> Self {
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (line, sessions) = overview.people.unzip();
        Self {
            classes: overview.classes.map(|[project, workflow, render]| SandboxClasses {
                project: project.into(),
                workflow: workflow.into(),
                render: render.into(),
            }),
            version: overview.version,
            host: overview.host.map(Into::into),
            waiting: overview.waiting,
            runs: overview.used.0,
            used_ms: ms(overview.used.1),
            line: line.map(|line| {
                let waiters = line.into_iter().map(|one| SandboxWaiter {
                    person: one.person,
                    since: one.since.timestamp_millis(),
                    reason: one.reason,
                });
                waiters.collect()
            }),
            sessions: sessions.map(|sessions| {
                let shown = sessions.into_iter().map(|one| Sandbox {
                    id: one.id,
                    workload: one.workload,
                    person: one.person,
                    runtime: match one.runtime {
                        Runtime::Running => SandboxRuntime::Running,
                        Runtime::Starting => SandboxRuntime::Starting,
                        Runtime::Stopped => SandboxRuntime::Stopped,
                        Runtime::Unknown => SandboxRuntime::Unknown,
                    },
                    allocation: one.allocation,
                    running: one.running,
                    used_ms: ms(one.used),
                    used_at: one.used_at.timestamp_millis(),
                    deleted_at: one.deleted_at.map(|at| at.timestamp_millis()),
                });
                shown.collect()
            }),
        }
    }
}

/// The organization's sandboxes: limits and use, the host, who waits. Names only for those who manage them. The limits
/// are the policy `sandbox_quota`.
#[utoipa::path(get, path = "/api/app/sandboxes", tag = "app: sandboxes", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Sandboxes)))]
async fn read_sandboxes(State(app): State<App>, Member(caller): Member) -> Result<Json<Sandboxes>, HttpProblem> {
    caller.require_read(Capability::SandboxesManage)?;
    let people = caller.can(Capability::WorkspacesManage);
    Ok(Json(app.workshop()?.overview(caller.org, people).await?.into()))
}

/// How many runs were ended.
#[derive(Serialize, ToSchema)]
struct SandboxStopped {
    cancelled: u32,
}

/// Ends everything that goes on or waits in a sandbox. Its files stay.
#[utoipa::path(post, path = "/api/app/sandboxes/{id}/stop", tag = "app: sandboxes", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = SandboxStopped)))]
async fn stop_sandbox(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<SandboxStopped>, HttpProblem> {
    caller.require(Capability::WorkspacesManage)?;
    let cancelled = app.workshop()?.stop_session(caller.org, &caller.actor(), &id).await?;
    Ok(Json(SandboxStopped { cancelled }))
}

/// Deletes a sandbox with its files, whatever goes on in it. It is gone once its files are.
#[utoipa::path(delete, path = "/api/app/sandboxes/{id}", tag = "app: sandboxes", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 202)))]
async fn delete_sandbox(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::WorkspacesManage)?;
    app.workshop()?.delete_session(caller.org, &caller.actor(), &id).await?;
    Ok(StatusCode::ACCEPTED)
}
