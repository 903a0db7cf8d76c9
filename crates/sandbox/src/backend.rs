//! The seam to what runs sessions: a container engine, or whatever comes later. Everything a session
//! leaves behind, its compute and its workspace, is behind this trait; who may start, when something stops and
//! who waits is decided in front of it.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;

use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::{OrganizationId, SessionId};

/// Why the backend did not do something. The text is for the log and for `create_failed`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BackendError {
    /// It did not answer in time, or not at all: what was asked may have happened.
    #[error("the backend did not answer: {0}")]
    Unreachable(String),
    /// It answered that it will not.
    #[error("{0}")]
    Refused(String),
}

/// One lifetime of compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compute {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub org: OrganizationId,
    /// What it may use.
    pub profile: Profile,
    /// Whether it has a container engine of its own.
    pub inner_docker: bool,
    /// What the backend names this lifetime by. Whatever stops it names it by this, so that a successor
    /// is never touched.
    pub handle: String,
    /// When the session was created, which also names the incarnation.
    pub created_at_ms: i64,
    /// Longest life.
    pub ttl: Duration,
    /// Idle time after which it is stopped.
    pub idle_timeout: Duration,
    /// What it does.
    pub state: ComputeState,
    /// Where its daemon answers, once that is known.
    pub address: Option<SocketAddr>,
    /// Whether a durable pin names this incarnation.
    pub pinned: bool,
}

/// What compute does (SBX-81).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeState {
    /// It is being started.
    Starting,
    /// It runs, or does something unknown.
    Running,
    /// It will never run again.
    Ended {
        /// Whether the kernel ended it for its memory.
        out_of_memory: bool,
    },
}

/// Everything of this deployment that the backend has.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// Compute with sound labels.
    pub computes: Vec<Compute>,
    /// Compute that runs but whose labels cannot be read (SBX-82): it takes a slot and has no name.
    pub unnamed: u32,
}

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub org: OrganizationId,
    /// What it may use.
    pub profile: Profile,
    /// Names the incarnation.
    pub created_at_ms: i64,
    /// Longest life.
    pub ttl: Duration,
    /// Idle time after which it is stopped.
    pub idle_timeout: Duration,
}

/// Why nothing was started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LaunchError {
    /// The image is not there, and is being fetched where that can be done.
    #[error("the runtime image is missing")]
    ImageMissing,
    /// Something else of that name exists.
    #[error("the session already has compute")]
    Exists,
    /// The workspace is another organization's.
    #[error("the session belongs to another organization")]
    Foreign,
    /// Anything else.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Which compute of a session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one with this handle.
    Handle(String),
    /// The one that was created at this time, when the answer that would have named it was lost.
    Incarnation(i64),
    /// Whatever there is.
    Any,
}

/// State of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageState {
    /// Nobody has looked, and nobody needs to.
    Unchecked,
    /// It is being fetched.
    Pulling,
    /// It is there.
    Ready,
    /// It is not there.
    Missing {
        /// Why it could not be fetched.
        last_error: String,
        /// When that is tried again.
        next_attempt_at_ms: Option<i64>,
    },
}

/// How far the deletion of a workspace is (SBX-87).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing is left.
    Done,
    /// Its bytes are being removed.
    Pending,
    /// The last attempt failed; another one follows.
    Failed,
}

/// One workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its session.
    pub session: SessionId,
    /// Last change of its directory.
    pub touched_at_ms: i64,
    /// Whose it is, as far as is recorded.
    pub org: Option<OrganizationId>,
    /// Whether a pin names it.
    pub pinned: bool,
}

/// What runs sessions and keeps their files.
///
/// Every call ends by itself within a bound of its own. An error is never an answer: what was asked may or may not have
/// happened.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Everything of this deployment.
    async fn list(&self) -> Result<Inventory, BackendError>;

    /// The compute of one session; `Ok(None)` only where it is certain that there is none.
    async fn find(&self, session: &SessionId) -> Result<Option<Compute>, BackendError>;

    /// Makes the workspace, or finds it, and starts compute on it. `address` of the answer may be missing.
    async fn launch(&self, launch: &Launch) -> Result<Compute, LaunchError>;

    /// Stops and removes compute. `Ok` when the one that was meant is certainly gone; the workspace stays.
    async fn remove(&self, session: &SessionId, which: &Which) -> Result<(), BackendError>;

    /// Records durably whether this incarnation is pinned; the record of another one is not touched.
    async fn set_pin(&self, session: &SessionId, created_at_ms: i64, pinned: bool) -> Result<(), BackendError>;

    /// The last lines that compute wrote, for an error that a person reads.
    async fn last_words(&self, handle: &str) -> Option<String>;

    /// Whether starts can succeed.
    fn image(&self) -> ImageState;

    /// Takes the workspace away and starts to delete it. Answers whether there was one. Call it only when the
    /// session has no compute.
    async fn discard_workspace(&self, session: &SessionId) -> Result<bool, BackendError>;

    /// How far the deletions of the session's workspaces are; with `attempt` they are tried now, for at most ten seconds.
    async fn deletion(&self, session: &SessionId, attempt: bool) -> Result<Deletion, BackendError>;

    /// Whose the session's workspace is, as far as is recorded.
    async fn owner(&self, session: &SessionId) -> Result<Option<OrganizationId>, BackendError>;

    /// Every workspace.
    async fn workspaces(&self) -> Result<Vec<Workspace>, BackendError>;
}
