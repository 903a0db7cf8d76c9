//! The seam to the daemon inside a session: its activity gate, its readiness, its environment.

mod client;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;

pub use client::{Answer, DaemonClient};
use tale_sandbox_wire::names::{Generation, SessionId};

/// Which daemon is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its session, from which its token follows.
    pub session: SessionId,
    /// The incarnation; a daemon of another one refuses.
    pub incarnation: i64,
    /// Where it answers.
    pub address: SocketAddr,
}

/// Why a daemon did not do something.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DaemonError {
    /// It did not answer in time, or not sensibly: what was asked may have happened.
    #[error("the session's daemon did not answer: {0}")]
    Unreachable(String),
    /// It takes no new work: its compute is about to be stopped.
    #[error("the session is being stopped")]
    Reclaiming,
    /// It refused with a status that has no meaning here.
    #[error("the session's daemon refused with status {0}")]
    Refused(u16),
}

/// What a daemon says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// How long nothing has happened.
    pub idle: Duration,
    /// When something last happened, by its own clock, in milliseconds of the epoch.
    pub last_activity_at_ms: i64,
    /// Commands that run.
    pub live_execs: u32,
    /// Requests, transfers and followers at this moment.
    pub active_operations: u32,
    /// Its present hold.
    pub generation: Generation,
    /// Whether no work holds it.
    pub released: bool,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it has been claimed and waits for its end.
    pub reclaiming: bool,
    /// Whether it understands the claim at all.
    pub can_be_claimed: bool,
    /// Whether its inner engine ever ran, so that a stop would cost its images.
    pub inner_docker_used: bool,
}

/// A claim on an idle session (SBX-122).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Names the claim, so that a repetition is recognized.
    pub id: String,
    /// The hold that was seen.
    pub generation: Generation,
    /// It must have been idle since before this time, in milliseconds of the epoch.
    pub idle_before_ms: Option<i64>,
}

/// Calls to daemons. Each ends within a bound of its own.
#[async_trait]
pub trait Daemons: Send + Sync + 'static {
    /// What it says about itself.
    async fn health(&self, target: &Target) -> Result<Health, DaemonError>;

    /// Whether it takes work.
    async fn ready(&self, target: &Target) -> Result<(), DaemonError>;

    /// New work holds it.
    async fn acquire(&self, target: &Target) -> Result<Generation, DaemonError>;

    /// Its present hold.
    async fn ticket(&self, target: &Target) -> Result<Generation, DaemonError>;

    /// Ends the hold of `generation`, if that is the present one.
    async fn release(&self, target: &Target, generation: &Generation) -> Result<bool, DaemonError>;

    /// Closes the gate for good, if nothing happens in it.
    async fn reclaim(&self, target: &Target, claim: &Claim) -> Result<bool, DaemonError>;

    /// Exempts it from claims, or no longer.
    async fn pin(&self, target: &Target, pinned: bool) -> Result<(), DaemonError>;

    /// Sets variables for its commands.
    async fn set_env(&self, target: &Target, env: &BTreeMap<String, String>) -> Result<(), DaemonError>;
}
