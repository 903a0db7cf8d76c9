//! How many calls a provider gets at the same time, and who is next (MOD-140 … MOD-142).
//!
//! A lane exists while calls run or wait in it, so ten thousand configured providers cost nothing.
//! The next call of a full lane is the oldest one of the organization whose turn it is, so that one
//! organization's burst does not hold up the others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tale_core::ids::OrgId;
use tokio::sync::oneshot;

use crate::metrics;

/// Waiting calls for each one that may run.
const WAITING_PER_PLACE: usize = 16;

/// What shares a limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey {
    /// A built-in provider, for every organization.
    BuiltIn(String),
    /// A model of an organization's own provider.
    Custom(OrgId, String, String),
}

/// Takes from several queues in turn.
#[derive(Debug)]
struct Turns<K, T> {
    order: VecDeque<K>,
    queues: HashMap<K, VecDeque<T>>,
    len: usize,
}

impl<K, T> Default for Turns<K, T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queues: HashMap::new(), len: 0 }
    }
}

impl<K: Eq + Hash + Copy, T> Turns<K, T> {
    fn push(&mut self, key: K, item: T) {
        let queue = self.queues.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            VecDeque::new()
        });
        queue.push_back(item);
        self.len += 1;
    }

    /// Whether something of this key waits.
    fn has(&self, key: &K) -> bool {
        self.queues.contains_key(key)
    }

    /// The oldest item of the key whose turn it is.
    fn pop(&mut self) -> Option<T> {
        let key = self.order.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&key);
        } else {
            self.order.push_back(key);
        }
        self.len -= usize::from(item.is_some());
        item
    }

    fn remove(&mut self, key: K, wanted: impl Fn(&T) -> bool) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        let before = queue.len();
        queue.retain(|item| !wanted(item));
        self.len -= before - queue.len();
        if queue.is_empty() {
            self.queues.remove(&key);
            self.order.retain(|other| *other != key);
        }
    }
}

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    waiting: Turns<OrgId, (u64, oneshot::Sender<()>)>,
}

#[derive(Debug)]
struct State {
    lanes: HashMap<LaneKey, Lane>,
    next: u64,
    built_in: usize,
    custom: usize,
}

impl State {
    fn limit(&self, key: &LaneKey) -> usize {
        match key {
            LaneKey::BuiltIn(_) => self.built_in,
            LaneKey::Custom(..) => self.custom,
        }
    }
}

impl Lane {
    /// Gives free places to those whose turn it is.
    fn admit(&mut self, limit: usize) {
        while self.running < limit {
            let Some((_, give)) = self.waiting.pop() else { return };
            // Whoever gave up meanwhile takes none.
            self.running += usize::from(give.send(()).is_ok());
        }
    }
}

/// The lanes of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    state: Arc<Mutex<State>>,
}

/// Every place is taken and so is every place in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A place in a lane, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    lanes: Lanes,
    key: LaneKey,
}

impl Place {
    fn new(lanes: Lanes, key: LaneKey) -> Self {
        metrics::STARTED.increment();
        Self { lanes, key }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::ENDED.increment();
        self.lanes.leave(&self.key);
    }
}

/// A call in the queue; dropped, it was never there.
struct Waiting {
    lanes: Lanes,
    key: LaneKey,
    org: OrgId,
    id: u64,
    turn: oneshot::Receiver<()>,
    taken: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        metrics::UNQUEUED.increment();
        if self.taken {
            return;
        }
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            self.lanes.leave(&self.key);
        } else {
            self.lanes.forget(&self.key, self.org, self.id);
        }
    }
}

impl Lanes {
    /// Lanes for this many calls at once of a built-in and of an own provider.
    pub(crate) fn new(built_in: usize, custom: usize) -> Self {
        let state = State { lanes: HashMap::new(), next: 0, built_in: built_in.max(1), custom: custom.max(1) };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Other numbers from now on, and how many lanes are open under them. Those who wait go at once where
    /// there is more room; where there is less, nobody follows until enough have left.
    pub(crate) fn resize(&self, built_in: usize, custom: usize) -> usize {
        let state = &mut *self.state();
        (state.built_in, state.custom) = (built_in.max(1), custom.max(1));
        for (key, lane) in &mut state.lanes {
            lane.admit(match key {
                LaneKey::BuiltIn(_) => state.built_in,
                LaneKey::Custom(..) => state.custom,
            });
        }
        state.lanes.len()
    }

    /// A place in the lane `key` for `org`, at once or when it is its turn.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) async fn place(&self, key: LaneKey, org: OrgId) -> Result<Place, Full> {
        let Some(mut waiting) = self.enter(&key, org)? else {
            return Ok(Place::new(self.clone(), key));
        };
        // The sender is dropped only with the turn given.
        let _ = (&mut waiting.turn).await;
        waiting.taken = true;
        Ok(Place::new(self.clone(), key))
    }

    fn enter(&self, key: &LaneKey, org: OrgId) -> Result<Option<Waiting>, Full> {
        let mut state = self.state();
        let limit = state.limit(key);
        state.next += 1;
        let id = state.next;
        let lane = state.lanes.entry(key.clone()).or_default();
        if lane.running < limit {
            lane.running += 1;
            return Ok(None);
        }
        // A full queue of others is no reason to refuse the first call of an organization.
        let full = limit * WAITING_PER_PLACE;
        if lane.waiting.len >= full && (lane.waiting.has(&org) || lane.waiting.len >= 2 * full) {
            metrics::QUEUE_FULL.increment();
            return Err(Full);
        }
        metrics::QUEUED.increment();
        let (give, turn) = oneshot::channel();
        lane.waiting.push(org, (id, give));
        Ok(Some(Waiting { lanes: self.clone(), key: key.clone(), org, id, turn, taken: false }))
    }

    /// Gives a place to the next in the queue, or back.
    fn leave(&self, key: &LaneKey) {
        let mut state = self.state();
        let limit = state.limit(key);
        let Some(lane) = state.lanes.get_mut(key) else { return };
        lane.running -= 1;
        lane.admit(limit);
        if lane.running == 0 {
            state.lanes.remove(key);
        }
    }

    fn forget(&self, key: &LaneKey, org: OrgId, id: u64) {
        if let Some(lane) = self.state().lanes.get_mut(key) {
            lane.waiting.remove(org, |(other, _)| *other == id);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn key() -> LaneKey {
        LaneKey::BuiltIn("p".into())
    }

    #[test]
    fn a_burst_of_one_organization_does_not_hold_up_another() {
        let mut turns = Turns::default();
        (0..5).for_each(|at| turns.push('a', ('a', at)));
        (0..2).for_each(|at| turns.push('b', ('b', at)));
        let order: Vec<(char, i32)> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [('a', 0), ('b', 0), ('a', 1), ('b', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!((turns.len, turns.queues.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_an_empty_lane_is_gone() {
        let lanes = Lanes::new(1, 1);
        let org = OrgId::new();
        let running = lanes.place(key(), org).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_PER_PLACE).map(|_| Box::pin(lanes.place(key(), org))).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        assert_eq!(lanes.place(key(), org).await.err(), Some(Full));
        // Of whom nothing waits yet, the first call may.
        let other = OrgId::new();
        let mut first = Box::pin(lanes.place(key(), other));
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(lanes.place(key(), other).await.err(), Some(Full));
        drop(first);
        // One that gives up makes room, wherever it stood.
        drop(waiting.remove(3));
        waiting.push(Box::pin(lanes.place(key(), org)));
        assert!(waiting.last_mut().unwrap().now_or_never().is_none());
        drop(running);
        for one in waiting {
            drop(one.now_or_never().unwrap().unwrap());
        }
        assert!(lanes.state().lanes.is_empty());
    }

    #[tokio::test]
    async fn other_numbers_count_at_once_in_both_directions() {
        let lanes = Lanes::new(1, 1);
        let org = OrgId::new();
        let first = lanes.place(key(), org).await.unwrap();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(lanes.place(key(), org))).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        assert_eq!(lanes.resize(3, 1), 1);
        let places: Vec<_> = waiting.drain(..2).map(|one| one.now_or_never().unwrap().unwrap()).collect();
        assert!((&mut waiting[0]).now_or_never().is_none());
        lanes.resize(1, 1);
        let mut running = vec![first];
        running.extend(places);
        for left in [2, 1] {
            drop(running.pop());
            assert!((&mut waiting[0]).now_or_never().is_none(), "{left} run where one may");
        }
        drop(running.pop());
        assert!((&mut waiting[0]).now_or_never().is_some());
    }

    proptest! {
        #[test]
        fn no_place_is_lost_or_given_twice(steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 0..60)) {
            let lanes = Lanes::new(2, 2);
            let orgs = [OrgId::new(), OrgId::new()];
            let (mut running, mut waiting) = (Vec::new(), Vec::new());
            for (step, at) in steps {
                match step {
                    0 | 1 => waiting.push(Box::pin(lanes.place(key(), orgs[usize::from(step)]))),
                    2 if !running.is_empty() => drop(running.swap_remove(at.index(running.len()))),
                    3 if !waiting.is_empty() => drop(waiting.swap_remove(at.index(waiting.len()))),
                    _ => {}
                }
                // A turn that was given may be taken later, or never.
                let mut at = 0;
                while at < waiting.len() {
                    match (&mut waiting[at]).now_or_never() {
                        Some(place) => {
                            running.push(place.unwrap());
                            drop(waiting.remove(at));
                        }
                        None => at += 1,
                    }
                }
                prop_assert!(running.len() <= 2);
                prop_assert!(waiting.is_empty() || running.len() == 2);
            }
            drop((running, waiting));
            prop_assert!(lanes.state().lanes.is_empty());
        }
    }
}
