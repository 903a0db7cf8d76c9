//! Refusals: their codes and their body.

use serde::{Deserialize, Serialize};

use crate::names::SessionId;

/// Every refusal of the spawner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 401, with a reason ([`crate::sign::Refusal`]).
    Unauthorized,
    /// 400.
    BadRequest,
    /// 404: no such route, or its compute is positively not there.
    NotFound,
    /// 404: the exec is unknown.
    Gone,
    /// 405.
    MethodNotAllowed,
    /// 413.
    PayloadTooLarge,
    /// 408.
    RequestTimeout,
    /// 403: the id belongs to another organization.
    PlacementConflict,
    /// 409: the id is registered or being created.
    Duplicate,
    /// 409: the checkpoint is older than the stored one.
    Stale,
    /// 429: the deployment is full.
    SessionQuota,
    /// 429.
    HostMemory,
    /// 429.
    HostCpu,
    /// 429.
    HostDisk,
    /// 429: the image is not there yet.
    RuntimeImage,
    /// 429, 503 or 409: something else works on the same thing; ask again.
    Busy,
    /// 429: the session's memory is nearly used up.
    SessionMemoryBusy,
    /// 503: as many stage requests run as may.
    StagingBusy,
    /// 502.
    CreateFailed,
    /// 502.
    DestroyFailed,
    /// 502.
    TeardownFailed,
    /// 502: the daemon's answer was none.
    RuntimeFailed,
    /// 503.
    Draining,
    /// 503: its device is away.
    DeviceOffline,
    /// 503: whether it is there cannot be told now.
    SessionUnavailable,
    /// 503: it is about to be stopped.
    Reclaiming,
    /// 503.
    CapacityUnavailable,
    /// 503.
    InventoryUnavailable,
    /// 503: the engine inside the session does not answer.
    DockerUnavailable,
    /// 507: the session's disk is full.
    ReplayDiskFull,
    /// 500.
    Internal,
}

impl ErrorCode {
    /// Whether it says "no room now", so that the request waits in line.
    #[must_use]
    pub const fn is_room(self) -> bool {
        matches!(self, Self::SessionQuota | Self::HostMemory | Self::HostCpu | Self::HostDisk)
    }
}

/// A place in the waiting line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// 1 = next.
    pub position: u32,
    /// How many wait.
    pub waiting: u32,
}

/// Body of every refusal. Its retry time is the header `retry-after`, in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorAnswer {
    /// The stable code.
    pub error: ErrorCode,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why a signature was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The code in the platform's spelling, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is known about the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The place in the line, when there is no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Which session a refusal for an organization is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

impl ErrorAnswer {
    /// A refusal with a sentence.
    #[must_use]
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            error,
            message: Some(message.into()),
            reason: None,
            code: None,
            detail: None,
            queue: None,
            session_id: None,
        }
    }
}
