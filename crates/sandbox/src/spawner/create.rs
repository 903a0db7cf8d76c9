//! Creating a session, or resuming it on its workspace (5.2 of the specification).

use std::time::Duration;

use tokio::time::Instant;

use super::{Env, Refusal, SessionInfo, Spawner, State};
use crate::admission::{Need, UNWILLING};
use crate::backend::{Compute, ComputeState, ImageState, Launch, LaunchError, Which};
use crate::daemon::Target;
use crate::profile::planned_memory;
use crate::session::{Entry, Phase, StopReason};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::{OrganizationId, SessionId};

/// Longest wait for a destroy of the same session (SBX-105).
const DESTROY_WAIT: Duration = Duration::from_secs(120);

/// Longest wait for the end of the same session's compute.
const STOP_WAIT: Duration = Duration::from_secs(30);

/// Pauses between two questions whether a new daemon is ready: short at first, because it usually is.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What is to be created.
#[derive(Debug, Clone)]
pub struct Order {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub org: OrganizationId,
    /// What it may use.
    pub profile: Profile,
    /// Longest life; the operator's when it is missing or longer.
    pub ttl: Option<Duration>,
    /// Idle time; the operator's when it is missing or longer.
    pub idle_timeout: Option<Duration>,
    /// Variables of its commands.
    pub env: Env,
}

/// Why nothing was created (SBX-74).
#[derive(Debug, Clone, thiserror::Error)]
pub enum CreateError {
    /// The spawner is being replaced.
    #[error("the spawner is being replaced")]
    Draining,
    /// The image is on its way.
    #[error("the runtime image is being fetched")]
    ImagePulling,
    /// The image is not there.
    #[error("the runtime image is missing: {detail}")]
    ImageMissing {
        /// Why.
        detail: String,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The session is another organization's.
    #[error("the session belongs to another organization")]
    Foreign,
    /// The session exists, or is being created.
    #[error("the session already exists")]
    Duplicate,
    /// The session is still ending.
    #[error("the session is still ending")]
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// There is no room.
    #[error("there is no room for the session")]
    NoRoom(Refusal),
    /// The start failed. What had been started is being removed; the workspace stays.
    #[error("{0}")]
    Failed(String),
}

/// Ends a start that did not come to its end, whoever gave it up.
struct Unfinished {
    spawner: Spawner,
    session: SessionId,
    created_at_ms: i64,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let (spawner, session, created) = (self.spawner.clone(), self.session.clone(), self.created_at_ms);
        spawner.with_incarnation(&session, created, |entry| {
            if entry.phase != Phase::Destroying {
                entry.in_work = true;
                entry.phase = Phase::Stopping(StopReason::CreateFailed);
            }
        });
        spawner.changed();
        // Outside the budget of the start: its caller may be gone.
        tokio::spawn(async move {
            spawner.stop_claimed(&session, created, StopReason::CreateFailed).await;
        });
    }
}

/// What the registry holds in the way of a create.
enum InTheWay {
    Foreign,
    Present,
    Ending,
}

impl Spawner {
    /// Creates the session. Dropping the future gives the start up; what it had started is removed.
    ///
    /// # Errors
    /// [`CreateError`]; the workspace is kept whatever happens.
    pub async fn create(&self, order: &Order) -> Result<SessionInfo, CreateError> {
        if self.state().draining_since.is_some() {
            return Err(CreateError::Draining);
        }
        self.check_image()?;
        if !self.state().stocked {
            self.take_stock().await.map_err(|error| CreateError::Failed(error.to_string()))?;
        }
        // Judged before anybody waits for room; the start judges it again.
        let owner = self.0.backend.owner(&order.session).await;
        if owner.map_err(|error| CreateError::Failed(error.to_string()))?.is_some_and(|owner| owner != order.org) {
            return Err(CreateError::Foreign);
        }
        let deadline = Instant::now() + self.0.rules.create_timeout;
        let created_at_ms = self.take_place(order, deadline).await?;
        let mut unfinished =
            Unfinished { spawner: self.clone(), session: order.session.clone(), created_at_ms, finished: false };
        let give_up = self.with_incarnation(&order.session, created_at_ms, |entry| entry.give_up.clone());
        let start = self.start(order, created_at_ms);
        let started = async {
            let Some(give_up) = give_up else { return Err(CreateError::Failed("the session was destroyed".into())) };
            tokio::select! {
                biased;
                () = give_up.cancelled() => Err(CreateError::Failed("the session was destroyed".into())),
                started = tokio::time::timeout_at(deadline, start) => match started {
                    Ok(started) => started,
                    Err(_) => Err(CreateError::Failed("the start took longer than its budget".into())),
                },
            }
        };
        started.await?;
        let now = Instant::now();
        let info = self.with_incarnation(&order.session, created_at_ms, |entry| {
            // A destroy that came last goes first.
            (entry.phase == Phase::Creating).then(|| {
                entry.phase = Phase::Ready;
                entry.idle_since = now;
                if let Some(reservation) = &mut entry.reservation {
                    reservation.since = Some(now);
                }
                SessionInfo::of(&order.session, entry)
            })
        });
        let Some(Some(Some(info))) = info else { return Err(CreateError::Failed("the session was destroyed".into())) };
        unfinished.finished = true;
        self.changed();
        tracing::info!(event = "sandbox.created", session = %order.session, org = %order.org, "a session is ready");
        Ok(info)
    }

    fn check_image(&self) -> Result<(), CreateError> {
        match self.0.backend.image() {
            ImageState::Ready | ImageState::Unchecked => Ok(()),
            ImageState::Pulling => Err(CreateError::ImagePulling),
            ImageState::Missing { last_error, next_attempt_at_ms } => {
                let pause = next_attempt_at_ms.map_or(60_000, |at| at.saturating_sub(self.now_ms()));
                let pause = Duration::from_millis(u64::try_from(pause).unwrap_or(0));
                let retry_after = pause.clamp(Duration::from_secs(5), Duration::from_secs(60));
                Err(CreateError::ImageMissing { detail: last_error, retry_after })
            }
        }
    }

    /// Waits for what is ending, then asks for room and takes it. Answers the creation stamp.
    async fn take_place(&self, order: &Order, deadline: Instant) -> Result<i64, CreateError> {
        let session = &order.session;
        let need = Need { slot: true, memory: planned_memory(false) };
        loop {
            self.wait_for_end(order).await?;
            let may = |state: &State| match in_the_way(state, order) {
                _ if state.draining_since.is_some() => Err(Some(CreateError::Draining)),
                Some(InTheWay::Foreign) => Err(Some(CreateError::Foreign)),
                Some(InTheWay::Present) => Err(Some(CreateError::Duplicate)),
                Some(InTheWay::Ending) => Err(None),
                None => Ok(()),
            };
            let enter = |state: &mut State, now: Instant| {
                // No two incarnations have the same, whatever the clock does.
                let created_at_ms = self.now_ms().max(state.last_stamp.saturating_add(1));
                state.last_stamp = created_at_ms;
                let mut entry =
                    Entry::starting(Some(order.org.clone()), order.profile, created_at_ms, need.memory, now);
                entry.ttl = order.ttl.unwrap_or(self.0.rules.max_lifetime).min(self.0.rules.max_lifetime);
                entry.idle_timeout = order.idle_timeout.unwrap_or(self.0.rules.max_idle).min(self.0.rules.max_idle);
                entry.spared_until = Some(now + UNWILLING);
                state.sessions.insert(session.clone(), entry);
                created_at_ms
            };
            match self.admit(session, need, deadline, may, enter).await {
                Ok(Ok(created_at_ms)) => return Ok(created_at_ms),
                Ok(Err(refusal)) => return Err(CreateError::NoRoom(refusal)),
                Err(Some(error)) => return Err(error),
                // An older compute of the session has begun to end.
                Err(None) => {}
            }
        }
    }

    /// Waits until no older compute of the session is on its way out.
    async fn wait_for_end(&self, order: &Order) -> Result<(), CreateError> {
        let session = &order.session;
        let begun = Instant::now();
        let destroying = |state: &State| state.sessions.get(session).is_some_and(|e| e.phase == Phase::Destroying);
        let look = |state: &mut State| match in_the_way(state, order) {
            None => Some(Ok(())),
            Some(InTheWay::Foreign) => Some(Err(CreateError::Foreign)),
            Some(InTheWay::Present) => Some(Err(CreateError::Duplicate)),
            Some(InTheWay::Ending) => None,
        };
        let (wait, retry_after) = if destroying(&self.state()) {
            (DESTROY_WAIT, Duration::from_secs(30))
        } else {
            (STOP_WAIT, Duration::from_secs(10))
        };
        self.wait_until(begun + wait, look).await.unwrap_or(Err(CreateError::Busy { retry_after }))
    }

    /// Launches, waits until the daemon takes work, and hands it the environment.
    async fn start(&self, order: &Order, created_at_ms: i64) -> Result<(), CreateError> {
        let session = &order.session;
        let compute = self.launch(order, created_at_ms).await?;
        let learn = |entry: &mut Entry| {
            entry.learn(&compute);
            entry.target.clone()
        };
        let target = self.with_incarnation(session, created_at_ms, learn).flatten();
        let target = self.wait_for_daemon(session, &compute, target).await?;
        if !order.env.is_empty() {
            let sent = self.0.daemons.set_env(&target, &order.env).await;
            sent.map_err(|error| CreateError::Failed(format!("its environment could not be set: {error}")))?;
        }
        Ok(())
    }

    async fn launch(&self, order: &Order, created_at_ms: i64) -> Result<Compute, CreateError> {
        let session = &order.session;
        let times = self.with_incarnation(session, created_at_ms, |entry| (entry.ttl, entry.idle_timeout));
        let (ttl, idle_timeout) = times.ok_or(CreateError::Duplicate)?;
        let launch = Launch {
            session: session.clone(),
            org: order.org.clone(),
            profile: order.profile,
            created_at_ms,
            ttl,
            idle_timeout,
        };
        let mut cleared = false;
        loop {
            match self.0.backend.launch(&launch).await {
                Ok(compute) => return Ok(compute),
                Err(LaunchError::Foreign) => return Err(CreateError::Foreign),
                Err(LaunchError::ImageMissing) => return Err(CreateError::ImagePulling),
                Err(LaunchError::Backend(error)) => return Err(CreateError::Failed(error.to_string())),
                // Left by an earlier spawner, or by a call that was answered too late.
                Err(LaunchError::Exists) if !cleared => {
                    cleared = true;
                    self.clear_name(session, created_at_ms).await?;
                }
                Err(LaunchError::Exists) => return Err(CreateError::Failed("the session's name is taken".into())),
            }
        }
    }

    /// Another incarnation has the name: what runs is adopted in place of this start, what has ended is removed.
    async fn clear_name(&self, session: &SessionId, created_at_ms: i64) -> Result<(), CreateError> {
        let failed = |error: crate::backend::BackendError| CreateError::Failed(error.to_string());
        let Some(found) = self.0.backend.find(session).await.map_err(failed)? else { return Ok(()) };
        if found.state == ComputeState::Running && found.created_at_ms != created_at_ms {
            let mut state = self.state();
            let ours = state.sessions.get(session).is_some_and(|entry| entry.created_at_ms == created_at_ms);
            if ours {
                state.sessions.insert(session.clone(), Entry::adopted(&found, Instant::now()));
            }
            drop(state);
            self.changed();
            return Err(CreateError::Duplicate);
        }
        self.0.backend.remove(session, &Which::Handle(found.handle)).await.map_err(failed)
    }

    /// Asks until the daemon is ready, and the backend whether it still can be (SBX-108).
    async fn wait_for_daemon(
        &self,
        session: &SessionId,
        compute: &Compute,
        mut target: Option<Target>,
    ) -> Result<Target, CreateError> {
        let mut pause = FIRST_PAUSE;
        let mut looked = Instant::now();
        loop {
            if let Some(target) = &target
                && self.0.daemons.ready(target).await.is_ok()
            {
                return Ok(target.clone());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if target.is_some() && looked.elapsed() < LONGEST_PAUSE {
                continue;
            }
            looked = Instant::now();
            match self.0.backend.find(session).await {
                Ok(Some(found)) if found.handle == compute.handle => {
                    if matches!(found.state, ComputeState::Ended { .. }) {
                        return Err(CreateError::Failed(self.how_it_ended(compute).await));
                    }
                    let learn = |entry: &mut Entry| {
                        entry.learn(&found);
                        entry.target.clone()
                    };
                    target = self.with_incarnation(session, compute.created_at_ms, learn).flatten();
                }
                Ok(_) => return Err(CreateError::Failed("its container disappeared while it started".into())),
                // It cannot be judged now.
                Err(_) => {}
            }
        }
    }

    async fn how_it_ended(&self, compute: &Compute) -> String {
        match self.0.backend.last_words(&compute.handle).await {
            Some(words) => format!("its container ended while it started: {words}"),
            None => "its container ended while it started".to_owned(),
        }
    }
}

fn in_the_way(state: &State, order: &Order) -> Option<InTheWay> {
    state.sessions.get(&order.session).map(|entry| match entry.phase {
        _ if entry.org.as_ref().is_some_and(|org| *org != order.org) => InTheWay::Foreign,
        Phase::Creating | Phase::Ready | Phase::Degraded => InTheWay::Present,
        Phase::Stopping(_) | Phase::Destroying => InTheWay::Ending,
    })
}
