//! The waiting line (SBX-170 to SBX-174): first come, first served, by session.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use tale_sandbox_wire::names::SessionId;

/// Most sessions that wait.
const LONGEST: usize = 10_000;

/// Pause between two questions, for each place in the line.
const STEP: Duration = Duration::from_secs(5);

/// Longest pause between two questions.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// A slot of the capacity; a session that is still there has one.
    pub slot: bool,
    /// Memory that it will soon use, in bytes.
    pub memory: u64,
}

#[derive(Debug)]
struct Waiter {
    session: SessionId,
    need: Need,
    silent_from: Instant,
    hint: Duration,
    /// Requests that are looking for room at this moment. Such a waiter is not silent.
    asking: u32,
}

/// Where a refused session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub position: usize,
    /// How many wait.
    pub waiting: usize,
}

impl Place {
    /// When to ask again.
    #[must_use]
    pub fn retry_after(self) -> Duration {
        let steps = u32::try_from(self.position).unwrap_or(u32::MAX);
        STEP.saturating_mul(steps).min(LONGEST_PAUSE)
    }
}

/// What stands before a session in the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Waiters.
    pub waiters: usize,
    /// Of them, those that need a slot.
    pub slots: u32,
    /// Memory of those whose need could fit the host at all.
    pub memory: u64,
    /// Waiters that look for room at this moment.
    pub asking: usize,
}

/// The line.
#[derive(Debug, Default)]
pub struct Line {
    next: u64,
    changes: u64,
    waiters: BTreeMap<u64, Waiter>,
    places: BTreeMap<SessionId, u64>,
}

impl Line {
    /// Notes that a request of `session` looks for room, which found none at once. The first such request
    /// decides the place.
    pub fn enter(&mut self, session: &SessionId, need: Need, now: Instant) {
        if let Some(waiter) = self.places.get(session).and_then(|number| self.waiters.get_mut(number)) {
            waiter.asking += 1;
            waiter.need = need;
            return;
        }
        self.append(Waiter { session: session.clone(), need, silent_from: now, hint: STEP, asking: 1 });
    }

    fn append(&mut self, waiter: Waiter) {
        if self.waiters.len() >= LONGEST || self.places.contains_key(&waiter.session) {
            return;
        }
        self.next += 1;
        self.changes += 1;
        self.places.insert(waiter.session.clone(), self.next);
        self.waiters.insert(self.next, waiter);
    }

    /// Who waits and for what, in order, and a number that is another one when the line was another one.
    pub fn waiting(&self) -> (u64, impl Iterator<Item = (&SessionId, Need)>) {
        (self.changes, self.waiters.values().map(|waiter| (&waiter.session, waiter.need)))
    }

    /// Takes over those who waited before a restart. They have to ask again, within the time of the place they had.
    pub fn restore(&mut self, waiting: Vec<(SessionId, Need)>, now: Instant) {
        for (session, need) in waiting {
            self.append(Waiter { session: session.clone(), need, silent_from: now, hint: STEP, asking: 0 });
            let hint = self.place(&session).retry_after();
            if let Some(waiter) = self.places.get(&session).and_then(|number| self.waiters.get_mut(number)) {
                waiter.hint = hint;
            }
        }
    }

    /// A request that entered was refused or given up: from now on the session is silent.
    pub fn refused(&mut self, session: &SessionId, now: Instant) -> Place {
        let place = self.place(session);
        if let Some(waiter) = self.places.get(session).and_then(|number| self.waiters.get_mut(number)) {
            waiter.asking = waiter.asking.saturating_sub(1);
            waiter.silent_from = now;
            waiter.hint = place.retry_after();
        }
        place
    }

    /// The session was admitted, or is destroyed.
    pub fn leave(&mut self, session: &SessionId) {
        if let Some(number) = self.places.remove(session) {
            self.waiters.remove(&number);
            self.changes += 1;
        }
    }

    /// Takes the place of everyone who stayed silent for twice the pause that was named, and 15 s.
    pub fn forget_silent(&mut self, now: Instant) {
        let (places, changes) = (&mut self.places, &mut self.changes);
        self.waiters.retain(|_, waiter| {
            let until = waiter.silent_from + 2 * waiter.hint + Duration::from_secs(15);
            let stays = waiter.asking > 0 || now <= until;
            if !stays {
                places.remove(&waiter.session);
                *changes += 1;
            }
            stays
        });
    }

    /// Where the session stands, or would stand.
    #[must_use]
    pub fn place(&self, session: &SessionId) -> Place {
        let ahead = self.ahead_of(session).count();
        let known = self.places.contains_key(session);
        Place { position: ahead + 1, waiting: self.waiters.len() + usize::from(!known) }
    }

    /// What stands before `session`. Who needs more than `fits` bytes could never start on this host and
    /// holds no memory back from others.
    #[must_use]
    pub fn ahead(&self, session: &SessionId, fits: u64) -> Ahead {
        self.ahead_of(session).fold(Ahead::default(), |sum, waiter| Ahead {
            waiters: sum.waiters + 1,
            slots: sum.slots + u32::from(waiter.need.slot),
            memory: sum.memory.saturating_add(if waiter.need.memory <= fits { waiter.need.memory } else { 0 }),
            asking: sum.asking + usize::from(waiter.asking > 0),
        })
    }

    fn ahead_of(&self, session: &SessionId) -> impl Iterator<Item = &Waiter> {
        let end = self.places.get(session).copied().unwrap_or(u64::MAX);
        self.waiters.range(..end).map(|(_, waiter)| waiter)
    }

    /// Sessions in their order.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.waiters.values().map(|waiter| &waiter.session)
    }
}
