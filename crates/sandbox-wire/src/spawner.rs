//! The spawner's signed interface: bodies and answers of every route. Commands are in [`crate::exec`],
//! their stream in [`crate::sse`], files in [`crate::files`], the environment in [`crate::daemon`].
//!
//! Answers may grow; requests are read to the letter.

mod observe;
mod refusal;

use serde::{Deserialize, Serialize};

pub use self::observe::*;
pub use self::refusal::*;

use crate::exec::{BadRequest, Env, check_env};
use crate::names::{DeviceId, OrganizationId, Profile, SessionId, Workload};

/// Header of [`ErrorCode::DeviceOffline`]: which device.
pub const DEVICE_HEADER: &str = "x-tale-sandbox-device";

/// Where a new session may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// A connected device of the organization.
    Device,
    /// The deployment's own host.
    Server,
}

/// `POST /v1/sessions`: starts a session, or its compute anew on the workspace that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRequest {
    /// The session; the same id finds the same workspace.
    pub session_id: SessionId,
    /// Whose it is.
    pub organization_id: OrganizationId,
    /// What the compute is shaped for.
    #[serde(default)]
    pub profile: Profile,
    /// Longest life of the compute; the configured one when absent, invalid or larger.
    #[serde(default, deserialize_with = "crate::lenient::milliseconds", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long it may be idle; the configured time when absent, invalid or larger.
    #[serde(default, deserialize_with = "crate::lenient::milliseconds", skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// The environment of its commands; names that may not be set are left out.
    #[serde(default, skip_serializing_if = "Env::is_empty")]
    pub env: Env,
    /// Whose work it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// `false` asks for no engine inside; `true` never adds one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<bool>,
    /// Where it may go; decided by the hub when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

impl CreateRequest {
    /// A request with everything at its default.
    #[must_use]
    pub fn new(session_id: SessionId, organization_id: OrganizationId, profile: Profile) -> Self {
        Self {
            session_id,
            organization_id,
            profile,
            ttl_ms: None,
            idle_timeout_ms: None,
            env: Env::new(),
            workload: None,
            docker: None,
            placement: None,
        }
    }

    /// Checks what its types do not say.
    ///
    /// # Errors
    /// An environment that is too large or cannot be one.
    pub fn check(&self) -> Result<(), BadRequest> {
        check_env(&self.env)
    }
}

/// What the compute of a session runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// A Docker engine.
    Docker,
    /// A cluster.
    Kubernetes,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// Its compute was launched; the daemon is not ready.
    Creating,
    /// It takes commands.
    Ready,
    /// Its compute is there; the daemon does not answer.
    Degraded,
    /// It is being ended.
    Terminating,
    /// It was ended.
    Terminated,
    /// Its time was up.
    Expired,
}

/// One session as the spawner knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Which.
    pub session_id: SessionId,
    /// Whose.
    pub organization_id: OrganizationId,
    /// What it is shaped for.
    pub profile: Profile,
    /// Where it stands.
    pub state: SessionState,
    /// What it runs on.
    pub backend: BackendKind,
    /// Names this life of the compute.
    pub created_at_ms: u64,
    /// When its longest life ends.
    pub expires_at_ms: u64,
    /// How long it may be idle.
    pub idle_timeout_ms: u64,
    /// Whether it is protected from clean-up, as last confirmed.
    pub pinned: bool,
    /// `false` while a change of the pin is not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_synchronized: Option<bool>,
}

/// `{session}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAnswer {
    /// The session.
    pub session: SessionInfo,
}

/// `{sessions}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsAnswer {
    /// Those the spawner has in its registry.
    pub sessions: Vec<SessionInfo>,
}

/// What became of a workspace's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletion {
    /// None is left.
    Done,
    /// They are out of reach and being deleted.
    Pending,
    /// They are out of reach; deleting them failed and is tried again.
    Failed,
    /// The storage behind the cluster deletes them.
    HandedOff,
}

/// `DELETE /v1/sessions/:id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DestroyAnswer {
    /// Nothing was changed, because the condition of the request does not hold.
    Busy {
        /// Always `true`.
        busy: True,
    },
    /// Nothing of the session can be reached any more.
    Ended {
        /// Whether there was anything.
        destroyed: bool,
        /// What became of the bytes.
        deletion: Deletion,
    },
}

impl DestroyAnswer {
    /// The answer of a condition that does not hold.
    pub const BUSY: Self = Self::Busy { busy: True };
}

/// The value `true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;
    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("must be true") }
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

/// `DELETE /v1/organizations/:id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeardownAnswer {
    /// Sessions and workspaces that were destroyed.
    pub sessions: u32,
    /// What became of their bytes, all taken together: `done` only when each is.
    pub deletion: Deletion,
    /// Package caches that were removed.
    #[serde(default)]
    pub package_caches: u32,
}

/// `POST /v1/drain`, `GET /v1/drain-status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainAnswer {
    /// Whether new sessions are refused.
    pub draining: bool,
    /// How many are still there.
    pub sessions: u32,
    /// Which.
    pub session_ids: Vec<SessionId>,
}

/// `PATCH /v1/sessions/:id/pin`: as last confirmed, 200 or 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinAnswer {
    /// As last confirmed.
    pub pinned: bool,
    /// `false` when the change is not confirmed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_synchronized: Option<bool>,
}

/// One connected device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// Which.
    pub device_id: DeviceId,
    /// Sessions it holds at once.
    pub max_sessions: u32,
    /// Whether its release may serve this deployment.
    pub compatible: bool,
}

/// `GET /v1/devices`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicesAnswer {
    /// Whether devices can connect at all.
    pub hub: bool,
    /// Those of the organization that are connected.
    pub devices: Vec<DeviceInfo>,
}

/// `POST /v1/devices/:id/disconnect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisconnectAnswer {
    /// Whether it was connected.
    pub disconnected: bool,
    /// Sessions that belonged on it.
    pub placements_dropped: u32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_create_is_read_to_the_letter() {
        let read = |body| serde_json::from_value::<CreateRequest>(body);
        let plain =
            read(json!({"sessionId": "s", "organizationId": "o", "ttlMs": "soon", "idleTimeoutMs": 5})).unwrap();
        assert_eq!((plain.profile, plain.ttl_ms, plain.idle_timeout_ms), (Profile::Default, None, Some(5)));
        assert_eq!(
            serde_json::to_value(CreateRequest { idle_timeout_ms: None, ..plain }).unwrap(),
            json!({"sessionId": "s", "organizationId": "o", "profile": "default"})
        );
        for bad in [
            json!({"sessionId": "s"}),
            json!({"sessionId": "s/", "organizationId": "o"}),
            json!({"sessionId": "s", "organizationId": "o", "profile": "root"}),
            json!({"sessionId": "s", "organizationId": "o", "workload": "chat"}),
            json!({"sessionId": "s", "organizationId": "o", "env": {"A": 1}}),
            json!({"sessionId": "s", "organizationId": "o", "privileged": true}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_have_the_fields_of_the_contract() {
        assert_eq!(serde_json::to_value(DestroyAnswer::BUSY).unwrap(), json!({"busy": true}));
        let ended = DestroyAnswer::Ended { destroyed: false, deletion: Deletion::HandedOff };
        assert_eq!(serde_json::to_value(ended).unwrap(), json!({"destroyed": false, "deletion": "handed_off"}));
        for answer in [DestroyAnswer::BUSY, ended] {
            let back: DestroyAnswer = serde_json::from_value(serde_json::to_value(answer).unwrap()).unwrap();
            assert_eq!(back, answer);
        }
        assert!(serde_json::from_value::<DestroyAnswer>(json!({"busy": false})).is_err());
        let refusal =
            ErrorAnswer { queue: Some(Queue { position: 1, waiting: 2 }), ..ErrorAnswer::new(ErrorCode::HostCpu, "m") };
        assert_eq!(
            serde_json::to_value(refusal).unwrap(),
            json!({"error": "host_cpu", "message": "m", "queue": {"position": 1, "waiting": 2}})
        );
        let limits = LimitsAnswer { max_sessions: 8, device_sessions: None };
        assert_eq!(serde_json::to_value(limits).unwrap(), json!({"maxSessions": 8}));
    }
}
