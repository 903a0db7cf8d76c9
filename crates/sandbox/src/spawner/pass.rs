//! The maintenance pass (5.4 of the specification): adopt what runs, stop what is over, finish what was begun.

use futures::StreamExt;
use futures::stream::iter;
use tokio::time::Instant;

use super::admit::claim_id;
use super::{LookupError, Spawner};
use crate::backend::{BackendError, Compute, ComputeState, Which};
use crate::daemon::{Claim, Health, Target};
use crate::session::{self, Hold, Pass, Phase, Probe, Step, StopReason};
use tale_sandbox_wire::names::SessionId;

/// Daemons asked, or compute removed, at the same time.
const AT_ONCE: usize = 8;

impl Spawner {
    /// One pass. Who asks while one runs waits for it and does none of its own.
    ///
    /// # Errors
    /// [`BackendError`] when the backend could not say what it has; the sessions that are known were looked
    /// after.
    pub async fn maintain(&self) -> Result<(), BackendError> {
        let Ok(_running) = self.0.pass.try_lock() else {
            let _over = self.0.pass.lock().await;
            return Ok(());
        };
        let listed = self.take_stock().await;
        self.end_linger().await;
        self.sweep().await;
        listed
    }

    /// Adopts what runs, removes what has ended, and forgets what is not there.
    pub(super) async fn take_stock(&self) -> Result<(), BackendError> {
        let asked_at = self.state().last_stamp;
        let inventory = self.0.backend.list().await?;
        self.state().unnamed = inventory.unnamed;
        let (mut unknown, mut ended, mut unstarted) = (Vec::new(), Vec::new(), Vec::new());
        for compute in &inventory.computes {
            match compute.state {
                ComputeState::Running if !self.state().sessions.contains_key(&compute.session) => {
                    unknown.push(compute.session.clone())
                }
                ComputeState::Ended { .. } => ended.push(compute),
                ComputeState::Starting => unstarted.push(compute),
                ComputeState::Running => {}
            }
        }
        // Asked for by name once more: since the list was made one may have been stopped.
        let mut unsure = false;
        let adopt = |session: SessionId| {
            let spawner = self.clone();
            async move { spawner.adopt_one(&session).await }
        };
        let mut adopted = iter(unknown.into_iter().map(adopt)).buffer_unordered(AT_ONCE);
        while let Some(outcome) = adopted.next().await {
            unsure |= outcome == Err(LookupError::Unavailable);
        }
        self.state().stocked |= !unsure;
        ended.extend(self.strays(unstarted));
        iter(ended).for_each_concurrent(AT_ONCE, |compute| self.clear_ended(compute)).await;
        self.forget_missing(&inventory.computes, asked_at).await;
        Ok(())
    }

    /// Of compute that was made and is not started, what this process does not start and has seen for as long as a
    /// start may take: it comes from a call that was answered too late, or from a spawner that died.
    fn strays<'a>(&self, unstarted: Vec<&'a Compute>) -> Vec<&'a Compute> {
        let now = Instant::now();
        let mut guard = self.state();
        let state = &mut *guard;
        let draining = state.draining_since.is_some();
        let not_ours = unstarted.into_iter().filter(|compute| {
            let known = state.sessions.get(&compute.session);
            !draining && known.is_none_or(|entry| entry.created_at_ms != compute.created_at_ms)
        });
        let not_ours: Vec<_> = not_ours.collect();
        let seen = |compute: &Compute| state.unstarted.get(&compute.handle).copied().unwrap_or(now);
        let first_seen = not_ours.iter().map(|compute| (compute.handle.clone(), seen(compute))).collect();
        state.unstarted = first_seen;
        let limit = self.0.rules.create_timeout;
        let old = |compute: &&Compute| state.unstarted.get(&compute.handle).is_some_and(|at| now - *at >= limit);
        not_ours.into_iter().filter(old).collect()
    }

    async fn clear_ended(&self, compute: &Compute) {
        let session = &compute.session;
        let known = self.with_incarnation(session, compute.created_at_ms, |entry| entry.phase);
        match known {
            // Whoever is at work with it notices by itself.
            Some(Phase::Creating | Phase::Destroying | Phase::Stopping(_)) => {}
            Some(Phase::Ready | Phase::Degraded) => {
                self.settle_gone(session, compute.created_at_ms, Some(compute.clone())).await;
            }
            None => {
                let which = Which::Handle(compute.handle.clone());
                match self.0.backend.remove(session, &which).await {
                    Ok(()) => tracing::info!(event = "sandbox.cleared", %session, "ended compute was removed"),
                    Err(error) => {
                        tracing::warn!(event = "sandbox.leftover", %session, %error, "ended compute could not be removed");
                    }
                }
            }
        }
    }

    /// Sessions that the list does not name, though it began after they had started, are asked for by name.
    async fn forget_missing(&self, computes: &[Compute], asked_at: i64) {
        let listed: std::collections::HashSet<_> = computes.iter().map(|compute| &compute.session).collect();
        let missing: Vec<(SessionId, i64)> = {
            let state = self.state();
            let missing = state.sessions.iter().filter(|(id, entry)| {
                matches!(entry.phase, Phase::Ready | Phase::Degraded)
                    && entry.created_at_ms <= asked_at
                    && !listed.contains(id)
            });
            missing.map(|(id, entry)| (id.clone(), entry.created_at_ms)).collect()
        };
        for (session, created_at_ms) in missing {
            if matches!(self.0.backend.find(&session).await, Ok(None)) {
                self.settle_gone(&session, created_at_ms, None).await;
            }
        }
    }

    async fn sweep(&self) {
        let disk_critical = self.0.host.reading().disk_critical;
        let pass = Pass { now_ms: self.now_ms(), released_idle: self.0.rules.released_idle, disk_critical };
        let all: Vec<SessionId> = self.state().sessions.keys().cloned().collect();
        iter(all).for_each_concurrent(AT_ONCE, |session| async move { self.look_after(&session, pass).await }).await;
    }

    async fn look_after(&self, session: &SessionId, pass: Pass) {
        enum Now {
            Finish(i64, StopReason),
            Confirm(Target, i64),
            Probe(Option<Target>, i64),
        }
        let now = {
            let mut state = self.state();
            let Some(entry) = state.sessions.get_mut(session) else { return };
            if entry.in_work {
                return;
            }
            let created = entry.created_at_ms;
            match entry.phase {
                Phase::Creating | Phase::Destroying => return,
                Phase::Stopping(reason) => {
                    entry.in_work = true;
                    Now::Finish(created, reason)
                }
                Phase::Ready | Phase::Degraded if session::is_spared(entry) => {
                    entry.unanswered = 0;
                    match &entry.target {
                        Some(target) if entry.pin_pending => Now::Confirm(target.clone(), created),
                        _ => return,
                    }
                }
                Phase::Ready | Phase::Degraded => Now::Probe(entry.target.clone(), created),
            }
        };
        match now {
            Now::Finish(created, reason) => {
                self.stop_claimed(session, created, reason).await;
            }
            Now::Confirm(target, created) => self.confirm_pin(&target, created).await,
            Now::Probe(target, created) => self.probe(session, target, created, pass).await,
        }
    }

    /// A pin whose delivery failed is settled when daemon and record turn out to agree.
    async fn confirm_pin(&self, target: &Target, created: i64) {
        let Some(order) = self.with_incarnation(&target.session, created, |entry| entry.pin_order.clone()) else {
            return;
        };
        let Ok(_turn) = order.try_lock() else { return };
        let (Ok(health), Ok(Some(compute))) =
            (self.0.daemons.health(target).await, self.0.backend.find(&target.session).await)
        else {
            return;
        };
        if compute.created_at_ms == created && compute.pinned == health.pinned {
            self.pin_acknowledged(&target.session, created, health.pinned);
        }
    }

    async fn probe(&self, session: &SessionId, target: Option<Target>, created: i64, pass: Pass) {
        let asked_at = Instant::now();
        let answer = match &target {
            Some(target) => self.0.daemons.health(target).await.ok(),
            None => None,
        };
        let probe = match answer {
            Some(health) => Probe::Answered(health),
            None => match self.0.backend.find(session).await {
                Ok(None) => Probe::Gone,
                Ok(Some(found)) if found.created_at_ms != created => Probe::Gone,
                Ok(Some(found)) if matches!(found.state, ComputeState::Ended { .. }) => Probe::Gone,
                Ok(Some(found)) => {
                    // Its address may have changed with a restart of the engine.
                    self.with_incarnation(session, created, |entry| entry.learn(&found));
                    Probe::Silent
                }
                Err(_) => Probe::Silent,
            },
        };
        let step = {
            let mut state = self.state();
            let acquiring = state.acquires.contains_key(session);
            let Some(entry) = state.sessions.get_mut(session).filter(|entry| entry.created_at_ms == created) else {
                return;
            };
            let moved_on = entry.in_work || !matches!(entry.phase, Phase::Ready | Phase::Degraded);
            if moved_on || acquiring || session::is_spared(entry) {
                return;
            }
            if let Probe::Answered(health) = &probe {
                note_activity(entry, health, asked_at);
            }
            let step = session::step(entry, session, probe, pass);
            entry.in_work = matches!(step, Step::Claim { .. } | Step::Stop(_));
            step
        };
        match (step, target) {
            (Step::Leave, _) => {}
            (Step::Evict, _) => {
                let ended = self.0.backend.find(session).await.ok().flatten();
                self.settle_gone(session, created, ended).await;
            }
            (Step::Stop(reason), _) => {
                self.stop_claimed(session, created, reason).await;
            }
            (Step::Claim { reason, generation, idle_before_ms }, Some(target)) => {
                let claim = Claim { id: claim_id(), generation, idle_before_ms };
                if matches!(self.0.daemons.reclaim(&target, &claim).await, Ok(true)) {
                    self.stop_claimed(session, created, reason).await;
                } else {
                    self.with_incarnation(session, created, |entry| entry.in_work = false);
                    self.changed();
                }
            }
            (Step::Claim { .. }, None) => {}
        }
    }
}

/// Takes over what the daemon says, unless something was done through this process since it was asked.
fn note_activity(entry: &mut session::Entry, health: &Health, asked_at: Instant) {
    if entry.idle_since >= asked_at {
        return;
    }
    entry.hold = if health.released { Hold::Released } else { Hold::Held };
    entry.idle_since = asked_at.checked_sub(health.idle).unwrap_or(asked_at);
    if !health.released {
        return;
    }
    let over = entry.reservation.is_some_and(|reservation| reservation.counted(asked_at) == 0);
    if over {
        entry.reservation = None;
    }
}
