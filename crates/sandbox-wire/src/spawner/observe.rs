//! What can be looked at: limits, capacity, workspaces, health.

use serde::{Deserialize, Serialize};

use super::BackendKind;
use crate::names::{DeviceId, OrganizationId, SessionId};

/// `GET /v1/limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsAnswer {
    /// Sessions this deployment holds at once.
    pub max_sessions: u32,
    /// Sessions the organization's connected devices hold besides; only when an organization was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_sessions: Option<u32>,
}

/// Whether a session's compute runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeState {
    /// It does, or is in a state that counts as such.
    Running,
    /// It is about to.
    Starting,
    /// Only its remains are there.
    Stopped,
}

/// One session of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSession {
    /// Which.
    pub session_id: SessionId,
    /// Whether it runs.
    pub state: RuntimeState,
    /// On which device, when not on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
}

/// Counts of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCounts {
    /// Of the deployment.
    pub running: u32,
    /// Of the deployment.
    pub starting: u32,
    /// How many it holds.
    pub limit: u32,
    /// Of the organization.
    pub organization_running: u32,
    /// Of the organization.
    pub organization_starting: u32,
    /// The deployment's limit again, for older readers.
    pub organization_limit: u32,
}

/// Processors of the host; `None` = unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuMeasure {
    /// How many.
    pub total_cores: Option<u32>,
    /// How many are in use, as a fraction.
    pub used_cores: Option<f64>,
    /// Share of the last ten seconds in which something waited for one, in percent: what starts are held back by.
    #[serde(default)]
    pub pressure_percent: Option<f64>,
}

/// Memory of the host; `None` = unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryMeasure {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// All without what is available.
    pub used_bytes: Option<u64>,
}

/// A disk of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskMeasure {
    /// Its size.
    pub total_bytes: u64,
    /// What is free for programs without special rights.
    pub free_bytes: u64,
    /// Below so much nothing starts; zero = never.
    pub floor_bytes: u64,
}

/// Disks of the host; `None` = unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskMeasures {
    /// Of the workspaces.
    pub workspace: Option<DiskMeasure>,
    /// Of the engine.
    pub docker_data: Option<DiskMeasure>,
}

/// Measures of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Processors.
    pub cpu: CpuMeasure,
    /// Memory.
    pub memory: MemoryMeasure,
    /// Disks.
    #[serde(default)]
    pub disks: DiskMeasures,
}

/// What the measures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasureScope {
    /// One machine.
    Host,
    /// A part of a cluster.
    Namespace,
}

/// The only status of [`CapacityAnswer`]; what is not available is a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Available {
    /// The counts are of a whole inventory.
    Available,
}

/// A session and the device it belongs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedSession {
    /// Which session.
    pub session_id: SessionId,
    /// Which device.
    pub device_id: DeviceId,
}

/// `GET /v1/capacity?organizationId=`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityAnswer {
    /// Always the same word.
    pub status: Available,
    /// When it was looked at, in milliseconds since 1970.
    pub observed_at: u64,
    /// What the sessions run on.
    pub backend: BackendKind,
    /// What the measures are of.
    pub scope: MeasureScope,
    /// Counts.
    pub sessions: SessionCounts,
    /// Measures.
    pub resources: Resources,
    /// The organization's own.
    pub runtime_sessions: Vec<RuntimeSession>,
    /// Where the organization's sessions belong, when devices are connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placements: Option<Vec<PlacedSession>>,
}

/// One workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceInfo {
    /// Whose.
    pub session_id: SessionId,
    /// When its directory last changed.
    pub touched_at_ms: u64,
    /// Whether compute runs on it or is being started.
    pub active: bool,
    /// Whether it is protected from clean-up.
    pub pinned: bool,
    /// Its organization, where that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<OrganizationId>,
}

/// `GET /v1/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacesAnswer {
    /// What keeps them.
    pub backend: BackendKind,
    /// All of them; none is left out.
    pub workspaces: Vec<WorkspaceInfo>,
    /// Organizations with build helpers or package caches.
    pub organizations: Vec<OrganizationId>,
}

/// State of the image that sessions start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageState {
    /// Not looked at yet.
    Unchecked,
    /// Being fetched.
    Pulling,
    /// There.
    Ready,
    /// Not there.
    Missing,
}

/// The image that sessions start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageHealth {
    /// Whether it is there.
    pub state: ImageState,
    /// What the last attempt to fetch it said.
    pub last_error: Option<String>,
    /// When it is tried again.
    pub next_attempt_at_ms: Option<u64>,
}

/// Whether a disk can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskState {
    /// It is.
    Ready,
    /// It cannot be.
    Unavailable,
    /// Nobody said where it is.
    Unconfigured,
}

/// The disks that admission looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disks {
    /// Of the workspaces.
    pub workspace: DiskState,
    /// Of the engine.
    pub docker_data: DiskState,
}

/// `GET /health` when the engine answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthAnswer {
    /// `ok`.
    pub status: String,
    /// The engine's version.
    pub docker_server_version: Option<String>,
    /// Disks; `None` where none is looked at.
    pub disks: Option<Disks>,
    /// The image.
    pub runtime_image: ImageHealth,
}
