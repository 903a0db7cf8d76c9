//! Acquire and release: work begins to hold a session, and ends to (5.3 of the specification).

use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;

use super::{LookupError, Refusal, Spawner, State, young};
use crate::admission::{Need, UNWILLING};
use crate::daemon::{DaemonError, Target};
use crate::profile::planned_memory;
use crate::session::{Hold, Phase};
use tale_sandbox_wire::names::{Generation, SessionId};

/// Longest wait for a stop that has begun (SBX-112).
const STOP_WAIT: Duration = Duration::from_secs(30);

/// Longest that one acquire looks for room.
const ACQUIRE_WAIT: Duration = Duration::from_secs(30);

/// Why a hold was not taken or given back.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HoldError {
    /// The session has no compute, or cannot be judged.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no room for more work.
    #[error("there is no room for more work")]
    NoRoom(Refusal),
}

impl Spawner {
    /// New work holds the session. Callers at the same time share one hold.
    ///
    /// # Errors
    /// [`HoldError`]; the session stays as it is.
    pub async fn acquire(&self, session: &SessionId) -> Result<Generation, HoldError> {
        self.wait_for_start_or_end(session).await?;
        let target = self.target(session).await?;
        let shared = {
            let mut state = self.state();
            if let Some(running) = state.acquires.get(session) {
                running.clone()
            } else {
                let (spawner, target) = (self.clone(), target);
                let task = tokio::spawn(async move {
                    let outcome = spawner.acquire_once(&target).await;
                    spawner.state().acquires.remove(&target.session);
                    spawner.changed();
                    outcome
                });
                let lost = Err(HoldError::Lookup(LookupError::Unavailable));
                let shared = task.map(move |outcome| outcome.unwrap_or(lost)).boxed().shared();
                state.acquires.insert(session.clone(), shared.clone());
                shared
            }
        };
        shared.await
    }

    /// A create in flight is waited for, and so is a stop, after which there is nothing to acquire.
    async fn wait_for_start_or_end(&self, session: &SessionId) -> Result<(), LookupError> {
        let begun = Instant::now();
        let phase = |state: &State| state.sessions.get(session).map(|entry| entry.phase);
        let first = phase(&self.state());
        match first {
            Some(Phase::Creating) => {
                let started = |state: &mut State| (phase(state) != Some(Phase::Creating)).then_some(());
                let deadline = begun + self.0.rules.create_timeout;
                self.wait_until(deadline, started).await.ok_or(LookupError::Unavailable)?;
                match phase(&self.state()) {
                    Some(Phase::Ready | Phase::Degraded) => Ok(()),
                    _ => Err(LookupError::NotFound),
                }
            }
            Some(Phase::Stopping(_) | Phase::Destroying) => {
                let ended = |state: &mut State| {
                    (!matches!(phase(state), Some(Phase::Stopping(_) | Phase::Destroying))).then_some(())
                };
                self.wait_until(begun + STOP_WAIT, ended).await.ok_or(LookupError::Unavailable)?;
                Err(LookupError::NotFound)
            }
            Some(Phase::Ready | Phase::Degraded) | None => Ok(()),
        }
    }

    async fn acquire_once(&self, target: &Target) -> Result<Generation, HoldError> {
        let admitted = self.admit_warm(target).await?;
        match self.0.daemons.acquire(target).await {
            Ok(generation) => {
                let now = Instant::now();
                self.with_incarnation(&target.session, target.incarnation, |entry| {
                    entry.hold = Hold::Held;
                    entry.idle_since = now;
                    entry.spared_until = Some(now + UNWILLING);
                    if let Some(reservation) = &mut entry.reservation {
                        reservation.since = Some(now);
                    }
                });
                Ok(generation)
            }
            Err(error) => {
                self.with_incarnation(&target.session, target.incarnation, |entry| {
                    // It may have taken the work.
                    entry.hold = Hold::Unknown;
                    if admitted {
                        entry.reservation = None;
                    }
                });
                Err(self.judge(target, &error).await.into())
            }
        }
    }

    /// An idle session gets work: it needs room as a new one does, but no slot (SBX-165). Answers whether it was
    /// idle.
    ///
    /// # Errors
    /// [`HoldError`].
    pub async fn admit_warm(&self, target: &Target) -> Result<bool, HoldError> {
        let session = &target.session;
        let hold = self.with_incarnation(session, target.incarnation, |entry| (entry.hold.clone(), entry.followed));
        let (hold, followed) = hold.ok_or(LookupError::NotFound)?;
        let is_active = match hold {
            Hold::Held => true,
            _ if followed > 0 => true,
            Hold::Released => false,
            Hold::Unknown => match self.0.daemons.health(target).await {
                Ok(health) if health.reclaiming => {
                    return Err(self.judge(target, &DaemonError::Reclaiming).await.into());
                }
                Ok(health) => !health.released || health.live_execs > 0,
                Err(error) => return Err(self.judge(target, &error).await.into()),
            },
        };
        if is_active {
            return Ok(false);
        }
        let inner = self.with_incarnation(session, target.incarnation, |entry| entry.inner_docker).unwrap_or(false);
        let need = Need { slot: false, memory: planned_memory(inner) };
        let may = |state: &State| {
            let entry = state.sessions.get(session).filter(|entry| {
                entry.created_at_ms == target.incarnation && matches!(entry.phase, Phase::Ready | Phase::Degraded)
            });
            entry.map(|_| ()).ok_or(LookupError::NotFound)
        };
        let enter = |state: &mut State, now: Instant| {
            if let Some(entry) = state.sessions.get_mut(session) {
                entry.reservation = young(need.memory, now);
            }
        };
        let deadline = Instant::now() + ACQUIRE_WAIT;
        let admitted: Result<_, LookupError> = self.admit(session, need, deadline, may, enter).await;
        admitted?.map_err(HoldError::NoRoom)?;
        Ok(true)
    }

    /// The present hold, for a later release.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn release_ticket(&self, session: &SessionId) -> Result<Generation, LookupError> {
        let target = self.target(session).await?;
        match self.0.daemons.ticket(&target).await {
            Ok(generation) => Ok(generation),
            Err(error) => Err(self.judge(&target, &error).await),
        }
    }

    /// Ends the hold of `generation`. An old one changes nothing and answers `false` (SBX-111).
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn release(&self, session: &SessionId, generation: &Generation) -> Result<bool, LookupError> {
        let target = self.target(session).await?;
        match self.0.daemons.release(&target, generation).await {
            Ok(true) => {
                let now = Instant::now();
                let mut state = self.state();
                state.nothing_until = None;
                // An acquire that runs at this moment has the last word.
                let acquiring = state.acquires.contains_key(session);
                if let Some(entry) = state.sessions.get_mut(session)
                    && entry.created_at_ms == target.incarnation
                    && !acquiring
                {
                    entry.hold = Hold::Released;
                    entry.idle_since = now;
                    entry.spared_until = None;
                    entry.reservation = None;
                }
                drop(state);
                self.changed();
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                self.with_incarnation(session, target.incarnation, |entry| entry.hold = Hold::Unknown);
                Err(self.judge(&target, &error).await)
            }
        }
    }

    /// What an error of a daemon means for whoever asked for the session.
    pub async fn judge(&self, target: &Target, error: &DaemonError) -> LookupError {
        match error {
            DaemonError::Unreachable(_) => self.after_silence(target).await,
            DaemonError::Reclaiming => {
                self.finish_reclaim(target).await;
                LookupError::NotFound
            }
            DaemonError::Refused(_) => LookupError::Unavailable,
        }
    }

    /// The gate is closed: only the stop can follow. It is waited for.
    async fn finish_reclaim(&self, target: &Target) {
        let mine = self.with_incarnation(&target.session, target.incarnation, |entry| {
            let free = !entry.in_work;
            entry.in_work = true;
            free
        });
        match mine {
            Some(true) => {
                let (spawner, target) = (self.clone(), target.clone());
                let reason = crate::session::StopReason::Reclaiming;
                let stop =
                    tokio::spawn(
                        async move { spawner.stop_claimed(&target.session, target.incarnation, reason).await },
                    );
                let _ = stop.await;
            }
            Some(false) => {
                let gone = |state: &mut State| {
                    let entry = state.sessions.get(&target.session);
                    entry.is_none_or(|entry| entry.created_at_ms != target.incarnation || !entry.in_work).then_some(())
                };
                self.wait_until(Instant::now() + STOP_WAIT, gone).await;
            }
            None => {}
        }
    }
}
