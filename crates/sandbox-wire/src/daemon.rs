//! The daemon's own interface (port [`crate::limits::DAEMON_PORT`]): activity, health, environment.
//! Commands are in [`crate::exec`], files in [`crate::files`].
//!
//! | Route | Body → answer |
//! |---|---|
//! | `GET /livez`, `GET /readyz` | open, no session data |
//! | `GET /healthz` | [`Health`] |
//! | `POST /acquire`, `GET /release` | [`GenerationAnswer`] |
//! | `POST /release` | [`ReleaseRequest`] → [`ReleaseAnswer`] |
//! | `POST /reclaim` | [`ReclaimRequest`] → [`ReclaimAnswer`] |
//! | `POST /pin` | [`PinRequest`] → [`PinAnswer`] |
//! | `POST /execs` | [`crate::exec::ExecRequest`] → lines of [`crate::event`] |
//! | `GET /execs/:id`, `GET /execs/:id/attach?sinceSeq=` | [`crate::exec::ExecStatus`], lines |
//! | `POST /execs/:id/cancel[?leftovers=keep]`, `…/stdin` | [`crate::exec::CancelAnswer`], [`crate::exec::StdinAnswer`] |
//! | `GET`/`PUT /execs/:id/checkpoint` | [`crate::exec::CheckpointAnswer`] |
//! | `POST /env` | [`EnvPatch`] → [`EnvAnswer`] |
//! | `POST /files/stage`, `POST /files/delete`, `GET /fs/list?path=`, `GET /fs/read?path=` | [`crate::files`] |

use serde::{Deserialize, Serialize};

use crate::exec::{BadRequest, Env, check_env, check_env_name, is_denied_env};
use crate::limits::MAX_ENV_ENTRIES;
use crate::names::{ClaimId, Generation};

/// The daemon's token ([`crate::sign::Key::daemon_token`]).
pub const TOKEN_HEADER: &str = "x-tale-runnerd-token";
/// The incarnation a call about activity is meant for.
pub const INCARNATION_HEADER: &str = "x-tale-runnerd-incarnation";

/// Refusals of the daemon; `error` of [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonError {
    /// 401: no token, or another one.
    Unauthorized,
    /// 404: no such route, exec or file.
    NotFound,
    /// 405: the route has another method.
    MethodNotAllowed,
    /// 400: the request does not follow the contract.
    BadRequest,
    /// 413: the body is larger than may be.
    PayloadTooLarge,
    /// 408: the request did not arrive in time.
    RequestTimeout,
    /// 409: meant for another life of the session.
    IncarnationMismatch,
    /// 409: a newer checkpoint is stored.
    Stale,
    /// 503: the session is about to be stopped.
    Reclaiming,
    /// 503: as many readers follow as may.
    Busy,
    /// 429: the session's memory is nearly used up.
    SessionMemoryBusy,
    /// 503: as many stage requests run as may.
    StagingBusy,
    /// 507: the disk is full.
    ReplayDiskFull,
    /// 500: the daemon's fault.
    Internal,
}

/// Body of every refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The stable code.
    pub error: DaemonError,
    /// For people.
    pub message: String,
    /// The code in the platform's spelling, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// The present hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationAnswer {
    /// Changes with every acquire.
    pub generation: Generation,
    /// Which life of the session answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// No work holds the session any more, unless it was acquired since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The hold that ends.
    pub generation: Generation,
}

/// Answer to [`ReleaseRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAnswer {
    /// Whether that was the present hold.
    pub released: bool,
    /// Which life of the session answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// Asks for the right to stop the session: from then on it takes no work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReclaimRequest {
    /// Names the attempt; the same one may ask again.
    pub claim_id: ClaimId,
    /// The hold that was observed.
    pub generation: Generation,
    /// The session must have been idle since. Without it, it must be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_before_ms: Option<u64>,
}

/// Answer to [`ReclaimRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimAnswer {
    /// Whether the session may be stopped now.
    pub claimed: bool,
    /// Which life of the session answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// Protects the session from every clean-up, or stops doing so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// Whether it is protected.
    pub pinned: bool,
}

/// Answer to [`PinRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinAnswer {
    /// As it is now.
    pub pinned: bool,
    /// Which life of the session answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// What holds the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// The present hold.
    pub generation: Generation,
    /// Requests that are being answered, streams included.
    pub active_operations: usize,
    /// Whether no work holds it.
    pub released: bool,
    /// Whether it is protected from clean-up.
    pub pinned: bool,
    /// Whether it is about to be stopped.
    pub reclaiming: bool,
    /// Whether it understands [`ReclaimRequest`].
    #[serde(default)]
    pub idle_reclaim: bool,
}

/// The session's memory as its control group counts it; `None` where that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// All of it, page cache included.
    pub current_bytes: Option<u64>,
    /// Without what the kernel can drop at once.
    pub working_set_bytes: Option<u64>,
    /// `None` when unlimited.
    pub limit_bytes: Option<u64>,
    /// Most there ever was.
    pub peak_bytes: Option<u64>,
    /// Processes the kernel ended for it.
    pub oom_kills: Option<u64>,
}

/// State of the engine inside a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineState {
    /// Never started.
    Cold,
    /// Runs.
    Running,
    /// Stopped after use.
    Stopped,
}

/// The engine inside a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Whether it runs.
    pub engine: EngineState,
    /// Whether it ran at least once, so that a stop loses its images.
    pub used: bool,
}

/// Answer of `/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// The daemon answers, so this is true.
    pub ok: bool,
    /// When this life of the session began.
    pub booted_at_ms: u64,
    /// When work last touched it; reads do not count.
    pub last_activity_at_ms: u64,
    /// Commands that run.
    pub live_execs: usize,
    /// What holds it.
    pub activity: Activity,
    /// Whether the engine inside answers; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker_ready: Option<bool>,
    /// Whether only a new session can bring the engine back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker_recovery_required: Option<bool>,
    /// The engine inside; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<Engine>,
    /// What else the session stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<serde_json::Value>,
    /// Its memory.
    #[serde(default)]
    pub memory: Memory,
    /// Which life of the session answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// Changes the environment that every later command starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvPatch {
    /// Variables to set.
    #[serde(default, skip_serializing_if = "Env::is_empty")]
    pub set: Env,
    /// Variables to remove, before the others are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

/// Answer to [`EnvPatch`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvAnswer {
    /// The rest was done.
    pub ok: bool,
    /// Names that may not be touched.
    pub denied: Vec<String>,
}

impl EnvPatch {
    /// Changes `env` and returns the names that may not be touched.
    ///
    /// # Errors
    /// What cannot be an environment, or would be too large; nothing is changed then.
    pub fn apply(self, env: &mut Env) -> Result<Vec<String>, BadRequest> {
        check_env(&self.set)?;
        if self.unset.len() > MAX_ENV_ENTRIES {
            return Err(BadRequest::new(format!("unset has more than {MAX_ENV_ENTRIES} entries")));
        }
        self.unset.iter().try_for_each(|name| check_env_name(name))?;
        let mut next = env.clone();
        let mut denied = Vec::new();
        for name in self.unset {
            if is_denied_env(&name) {
                denied.push(name);
            } else {
                next.remove(&name);
            }
        }
        for (name, value) in self.set {
            if is_denied_env(&name) {
                denied.push(name);
            } else {
                next.insert(name, value);
            }
        }
        check_env(&next)?;
        *env = next;
        Ok(denied)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_applied_whole_or_not_at_all() {
        let mut env = Env::from([("A".into(), "1".into()), ("B".into(), "2".into())]);
        let patch = |set: serde_json::Value, unset: serde_json::Value| {
            serde_json::from_value::<EnvPatch>(json!({"set": set, "unset": unset})).unwrap()
        };
        let denied =
            patch(json!({"C": "3", "Path": "/evil"}), json!(["A", "HOME", "missing"])).apply(&mut env).unwrap();
        assert_eq!(denied, ["HOME", "Path"]);
        let after = Env::from([("B".into(), "2".into()), ("C".into(), "3".into())]);
        assert_eq!(env, after);
        let many: serde_json::Map<_, _> = (0..127).map(|n| (format!("V{n}"), json!(""))).collect();
        for bad in [
            patch(json!({"D": "1", "x=y": ""}), json!([])),
            patch(json!({"D": "x".repeat(32 * 1024 + 1)}), json!([])),
            patch(json!(many), json!([])),
            patch(json!({}), json!([""])),
        ] {
            assert!(bad.apply(&mut env).is_err());
            assert_eq!(env, after);
        }
        assert!(serde_json::from_value::<EnvPatch>(json!({"set": {"A": 1}})).is_err());
    }

    #[test]
    fn health_has_the_fields_of_the_contract() {
        let health = json!({"ok": true, "bootedAtMs": 1, "lastActivityAtMs": 2, "liveExecs": 0, "activity": {
            "generation": "g", "activeOperations": 1, "released": false, "pinned": false, "reclaiming": false,
            "idleReclaim": true}, "memory": {"currentBytes": 5, "workingSetBytes": 4, "limitBytes": null,
            "peakBytes": 6, "oomKills": 0}, "incarnation": "i"});
        let read: Health = serde_json::from_value(health.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), health);
    }
}
