//! One session in the registry, and what the maintenance pass does with it (SBX-121).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::Reservation;
use crate::backend::{Compute, Which};
use crate::daemon::{Health, Target};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::{Generation, OrganizationId, SessionId};

/// Passes without an answer after which a session is stopped.
const UNANSWERED_PASSES: u32 = 5;

/// Why compute is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It did nothing for its idle time.
    Idle,
    /// It is as old as it may get.
    Lifetime,
    /// No work held it for the shorter idle time.
    Released,
    /// Its daemon does not answer any more.
    Unreachable,
    /// Another session needed the room.
    Pressure,
    /// The disk is nearly full.
    CriticalDisk,
    /// Its start failed.
    CreateFailed,
    /// It had been claimed earlier, and its stop was not finished.
    Reclaiming,
    /// The session is destroyed.
    Destroyed,
    /// The spawner has been draining for as long as it may.
    Drained,
}

impl StopReason {
    /// As it is logged.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Released => "released",
            Self::Unreachable => "unreachable",
            Self::Pressure => "pressure",
            Self::CriticalDisk => "critical_disk",
            Self::CreateFailed => "create_failed",
            Self::Reclaiming => "reclaiming",
            Self::Destroyed => "destroyed",
            Self::Drained => "drained",
        }
    }
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its compute starts.
    Creating,
    /// It takes work.
    Ready,
    /// Its compute is there, its daemon does not answer.
    Degraded,
    /// Its compute goes; its workspace stays.
    Stopping(StopReason),
    /// Compute and workspace go.
    Destroying,
}

/// What is known of the daemon's gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: the session was adopted, or an answer was lost.
    Unknown,
    /// Work holds it.
    Held,
    /// Nobody does.
    Released,
}

/// A session in the registry.
#[derive(Debug)]
pub struct Entry {
    /// Whose it is; `None` for a session of which only files are known.
    pub org: Option<OrganizationId>,
    /// What it may use.
    pub profile: Profile,
    /// Whether it has a container engine of its own.
    pub inner_docker: bool,
    /// When it was created, which names the incarnation.
    pub created_at_ms: i64,
    /// From when its lifetime counts: its creation, or its last unpin.
    pub lifetime_from_ms: i64,
    /// Longest life.
    pub ttl: Duration,
    /// Idle time after which it is stopped.
    pub idle_timeout: Duration,
    /// The backend's name of the incarnation, once known.
    pub handle: Option<String>,
    /// Where its daemon answers, once known.
    pub target: Option<Target>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Whether it has compute, or may have: then it takes a slot. Of a session whose files are destroyed there may be
    /// nothing else.
    pub has_compute: bool,
    /// Whether the last acknowledged pin was on.
    pub pinned: bool,
    /// Whether a change of the pin is not acknowledged everywhere; it counts as pinned then.
    pub pin_pending: bool,
    /// The daemon's gate.
    pub hold: Hold,
    /// When it was last seen doing something.
    pub idle_since: Instant,
    /// Not asked to make room until then.
    pub spared_until: Option<Instant>,
    /// Passes in a row in which its daemon did not answer.
    pub unanswered: u32,
    /// Commands that are followed through this process.
    pub followed: u32,
    /// Memory set aside for it.
    pub reservation: Option<Reservation>,
    /// Someone asks its daemon, or takes its compute away, at this moment.
    pub in_work: bool,
    /// Stops the start when the session is destroyed meanwhile.
    pub give_up: CancellationToken,
    /// Changes of the pin, one after another.
    pub pin_order: Arc<tokio::sync::Mutex<()>>,
}

impl Entry {
    /// A session that starts.
    #[must_use]
    pub fn starting(
        org: Option<OrganizationId>,
        profile: Profile,
        created_at_ms: i64,
        planned: u64,
        now: Instant,
    ) -> Self {
        Self {
            org,
            profile,
            inner_docker: false,
            created_at_ms,
            lifetime_from_ms: created_at_ms,
            ttl: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            handle: None,
            target: None,
            phase: Phase::Creating,
            has_compute: true,
            pinned: false,
            pin_pending: false,
            hold: Hold::Held,
            idle_since: now,
            spared_until: None,
            unanswered: 0,
            followed: 0,
            reservation: Some(Reservation { bytes: planned, since: None }),
            in_work: false,
            give_up: CancellationToken::new(),
            pin_order: Arc::default(),
        }
    }

    /// A session that was found running.
    #[must_use]
    pub fn adopted(compute: &Compute, now: Instant) -> Self {
        let mut entry = Self::starting(Some(compute.org.clone()), compute.profile, compute.created_at_ms, 0, now);
        entry.ttl = compute.ttl;
        entry.idle_timeout = compute.idle_timeout;
        entry.phase = Phase::Ready;
        entry.pinned = compute.pinned;
        entry.hold = Hold::Unknown;
        entry.reservation = None;
        entry.learn(compute);
        entry
    }

    /// Takes over what the backend says about the incarnation.
    pub fn learn(&mut self, compute: &Compute) {
        self.handle = Some(compute.handle.clone());
        self.inner_docker = compute.inner_docker;
        if let Some(address) = compute.address {
            let session = compute.session.clone();
            self.target = Some(Target { session, incarnation: compute.created_at_ms, address });
        }
    }

    /// Whether its pin, or an unfinished change of it, keeps it from being stopped.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.pinned || self.pin_pending
    }

    /// How the backend is told which compute is meant.
    #[must_use]
    pub fn which(&self) -> Which {
        match &self.handle {
            Some(handle) => Which::Handle(handle.clone()),
            None => Which::Incarnation(self.created_at_ms),
        }
    }
}

/// What a probe of the daemon brought.
#[derive(Debug)]
pub enum Probe {
    /// It answered.
    Answered(Health),
    /// It did not; the backend says that the compute is there, or cannot say.
    Silent,
    /// It did not, and the backend says that the compute is gone or has ended.
    Gone,
}

/// What the maintenance pass does with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Leave,
    /// Forget it: nothing runs any more.
    Evict,
    /// Ask the daemon for its end, then stop it.
    Claim {
        /// Why.
        reason: StopReason,
        /// The hold that was seen.
        generation: Generation,
        /// It must have been idle since before then.
        idle_before_ms: Option<i64>,
    },
    /// Stop it without asking.
    Stop(StopReason),
}

/// What a pass knows besides the session.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// The time, in milliseconds of the epoch.
    pub now_ms: i64,
    /// Idle time after which a released session goes.
    pub released_idle: Duration,
    /// Whether the disk is nearly full.
    pub disk_critical: bool,
}

/// Whether the pass leaves the session alone without asking its daemon.
#[must_use]
pub fn is_spared(entry: &Entry) -> bool {
    entry.is_protected() || entry.followed > 0
}

/// Decides after the probe, and counts passes without an answer.
#[must_use]
pub fn step(entry: &mut Entry, session: &SessionId, probe: Probe, pass: Pass) -> Step {
    let too_old = pass.now_ms.saturating_sub(entry.lifetime_from_ms) >= millis(entry.ttl);
    let health = match probe {
        Probe::Answered(health) => health,
        Probe::Gone => return Step::Evict,
        Probe::Silent if too_old => return Step::Stop(StopReason::Lifetime),
        Probe::Silent => {
            entry.unanswered += 1;
            entry.phase = Phase::Degraded;
            tracing::warn!(event = "sandbox.unanswered", %session, passes = entry.unanswered, "a session did not answer");
            let enough = entry.unanswered >= UNANSWERED_PASSES;
            return if enough { Step::Stop(StopReason::Unreachable) } else { Step::Leave };
        }
    };
    entry.unanswered = 0;
    entry.phase = Phase::Ready;
    if health.reclaiming {
        return Step::Stop(StopReason::Reclaiming);
    }
    if health.live_execs > 0 || health.active_operations > 0 {
        return Step::Leave;
    }
    let claim = |reason, window: Duration| Step::Claim {
        reason,
        generation: health.generation.clone(),
        // The window that made it go must also have passed by the daemon's own clock.
        idle_before_ms: Some(pass.now_ms.saturating_sub(millis(window))),
    };
    if too_old {
        return Step::Claim {
            reason: StopReason::Lifetime,
            generation: health.generation.clone(),
            idle_before_ms: Some(pass.now_ms),
        };
    }
    if health.idle >= entry.idle_timeout {
        return claim(StopReason::Idle, entry.idle_timeout);
    }
    if !health.released {
        return Step::Leave;
    }
    if pass.disk_critical && entry.inner_docker {
        return claim(StopReason::CriticalDisk, Duration::ZERO);
    }
    let short = pass.released_idle.min(entry.idle_timeout);
    // A resume would begin with an empty store of images.
    let keeps_full_window = entry.inner_docker && health.inner_docker_used;
    if health.idle >= short && !keeps_full_window {
        return claim(StopReason::Released, short);
    }
    Step::Leave
}

/// Milliseconds of a duration.
#[must_use]
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
