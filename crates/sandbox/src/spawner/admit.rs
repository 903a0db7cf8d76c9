//! Getting room: the decision, the place in the line, and asking idle sessions to go.

use tokio::time::Instant;

use super::{Refusal, Spawner, State};
use crate::admission::{
    self, Candidate, MOST_ASKED, NOTHING_FOUND, Need, Place, Shortage, Snapshot, UNANSWERED, UNWILLING, order,
};
use crate::daemon::Claim;
use crate::session::{Hold, Phase, StopReason};
use tale_sandbox_wire::names::SessionId;

/// How a search for an idle session ended.
enum Search {
    /// One was stopped.
    Freed,
    /// None would go.
    Nothing,
}

/// Stands for a request in the line while it looks for room. A request that is given up is refused.
struct Asking<'a> {
    spawner: &'a Spawner,
    session: &'a SessionId,
    entered: bool,
}

impl Asking<'_> {
    fn enter(&mut self, state: &mut State, need: Need) {
        if !self.entered {
            state.line.enter(self.session, need, Instant::now());
            self.entered = true;
        }
    }

    fn refused(mut self) -> Place {
        let place = self.leave_off();
        self.entered = false;
        place
    }

    fn leave_off(&self) -> Place {
        let place = self.spawner.state().line.refused(self.session, Instant::now());
        self.spawner.changed();
        place
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.entered {
            self.leave_off();
        }
    }
}

impl Spawner {
    /// Waits for nobody but the sessions that it asks to go. `may` says whether the question still makes sense, and
    /// `enter` puts what was admitted into the registry, both under the same lock as the decision.
    pub(super) async fn admit<T, E>(
        &self,
        session: &SessionId,
        need: Need,
        deadline: Instant,
        may: impl Fn(&State) -> Result<(), E>,
        enter: impl FnOnce(&mut State, Instant) -> T,
    ) -> Result<Result<T, Refusal>, E> {
        let mut asking = Asking { spawner: self, session, entered: false };
        let mut left_to_ask = MOST_ASKED;
        let mut memory_short = false;
        let mut host = self.0.host.reading();
        loop {
            // `Some`: others look for room, who stand before this session; what they find may be enough for both.
            let others_look = {
                let now = Instant::now();
                let mut guard = self.state();
                let state = &mut *guard;
                may(state)?;
                state.line.forget_silent(now);
                let snapshot = Snapshot {
                    capacity: state.capacity,
                    occupied: state.occupied(),
                    host,
                    reserve: state.memory_reserve,
                    reserved: state.reserved(now),
                    pressure_limit: self.0.rules.pressure_limit,
                    last_start: state.last_start,
                    line: &state.line,
                };
                let shortage = match admission::decide(&snapshot, session, need, now) {
                    Ok(()) => {
                        let entered = enter(state, now);
                        state.line.leave(session);
                        state.last_start = Some(now);
                        asking.entered = false;
                        drop(guard);
                        self.changed();
                        return Ok(Ok(entered));
                    }
                    Err(shortage) => shortage,
                };
                asking.enter(state, need);
                let ahead = state.line.ahead(session, u64::MAX);
                let just_searched = state.nothing_until.is_some_and(|until| now < until);
                // Who stands ahead and looks for nothing at this moment keeps what a stop would free.
                let useless = ahead.waiters > ahead.asking;
                if !shortage.is_helped_by_stopping() || useless || now >= deadline {
                    drop(guard);
                    return Ok(Err(Refusal { shortage, place: asking.refused() }));
                }
                if left_to_ask == 0 || just_searched {
                    if ahead.asking == 0 {
                        drop(guard);
                        return Ok(Err(Refusal { shortage, place: asking.refused() }));
                    }
                    Some(looking(state, session))
                } else {
                    memory_short = shortage == Shortage::Memory;
                    None
                }
            };
            if let Some(before) = others_look {
                self.wait_until(deadline, |state| (looking(state, session) != before).then_some(())).await;
            } else {
                let found = self.make_room(session, &mut left_to_ask).await;
                // What a stopped session had shows in the host's memory only after a while.
                if memory_short || matches!(found, Search::Nothing) {
                    left_to_ask = 0;
                }
            }
            host = self.0.host.fresh_reading();
        }
    }

    /// Asks idle sessions, the one that is idle longest first, until one has gone.
    async fn make_room(&self, for_session: &SessionId, left: &mut usize) -> Search {
        while *left > 0 {
            let Some(candidate) = self.next_candidate(for_session) else { break };
            *left -= 1;
            let spawner = self.clone();
            // In a task: a claim whose caller has gone must still be followed by the stop.
            let asked = tokio::spawn(async move { spawner.ask_to_go(&candidate).await });
            if asked.await.unwrap_or(false) {
                return Search::Freed;
            }
        }
        self.state().nothing_until = Some(Instant::now() + NOTHING_FOUND);
        Search::Nothing
    }

    /// Chooses a session to ask, and marks it so that nobody else does.
    fn next_candidate(&self, not: &SessionId) -> Option<SessionId> {
        let now = Instant::now();
        let mut state = self.state();
        let candidates = state.sessions.iter().filter(|(id, entry)| {
            *id != not
                && entry.phase == Phase::Ready
                && !entry.is_protected()
                && !entry.in_work
                && entry.followed == 0
                && entry.target.is_some()
                && !state.acquires.contains_key(*id)
        });
        let candidates = candidates.map(|(id, entry)| Candidate {
            key: id,
            released: entry.hold == Hold::Released,
            idle_since: entry.idle_since,
            spared_until: entry.spared_until,
        });
        let chosen = order(candidates.collect(), now).first().map(|id| (*id).clone())?;
        state.sessions.get_mut(&chosen)?.in_work = true;
        Some(chosen)
    }

    /// Asks the daemon, and stops the session when it agrees. Answers whether the slot is free.
    async fn ask_to_go(&self, session: &SessionId) -> bool {
        let (target, created) = {
            let mut state = self.state();
            let Some(entry) = state.sessions.get_mut(session) else { return false };
            let Some(target) = entry.target.clone() else {
                entry.in_work = false;
                return false;
            };
            (target, entry.created_at_ms)
        };
        let claimed = async {
            let health = self.0.daemons.health(&target).await.map_err(|_| UNANSWERED)?;
            if health.reclaiming {
                return Ok(());
            }
            let busy = health.live_execs > 0 || health.active_operations > 0;
            if busy || !health.released || health.pinned || !health.can_be_claimed {
                return Err(UNWILLING);
            }
            let claim = Claim { id: claim_id(), generation: health.generation, idle_before_ms: None };
            match self.0.daemons.reclaim(&target, &claim).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(UNWILLING),
                // It may have agreed: the next pass sees that.
                Err(_) => Err(UNANSWERED),
            }
        };
        match claimed.await {
            Ok(()) => self.stop_claimed(session, created, StopReason::Pressure).await,
            Err(pause) => {
                self.with_incarnation(session, created, |entry| {
                    entry.in_work = false;
                    entry.spared_until = Some(Instant::now() + pause);
                });
                self.changed();
                false
            }
        }
    }
}

/// What the outcome of others' searches shows in: how many look before `session`, and how many sessions there are.
fn looking(state: &State, session: &SessionId) -> (usize, usize) {
    (state.line.ahead(session, u64::MAX).asking, state.sessions.len())
}

/// A name that no other claim has.
pub(super) fn claim_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
