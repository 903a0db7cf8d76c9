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

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<LaneKey, Lane>,
    next: u64,
}

/// The lanes of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    state: Arc<Mutex<State>>,
    built_in: usize,
    custom: usize,
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

impl Drop for Place {
    fn drop(&mut self) {
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
        Self { state: Arc::default(), built_in: built_in.max(1), custom: custom.max(1) }
    }

    /// A place in the lane `key` for `org`, at once or when it is its turn.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) async fn place(&self, key: LaneKey, org: OrgId) -> Result<Place, Full> {
        let Some(mut waiting) = self.enter(&key, org)? else {
            return Ok(Place { lanes: self.clone(), key });
        };
        // The sender is dropped only with the turn given.
        let _ = (&mut waiting.turn).await;
        waiting.taken = true;
        Ok(Place { lanes: self.clone(), key })
    }

    fn enter(&self, key: &LaneKey, org: OrgId) -> Result<Option<Waiting>, Full> {
        let limit = match key {
            LaneKey::BuiltIn(_) => self.built_in,
            LaneKey::Custom(..) => self.custom,
        };
        let mut state = self.state();
        state.next += 1;
        let id = state.next;
        let lane = state.lanes.entry(key.clone()).or_default();
        if lane.running < limit {
            lane.running += 1;
            return Ok(None);
        }
        if lane.waiting.len >= limit * WAITING_PER_PLACE {
            return Err(Full);
        }
        let (give, turn) = oneshot::channel();
        lane.waiting.push(org, (id, give));
        Ok(Some(Waiting { lanes: self.clone(), key: key.clone(), org, id, turn, taken: false }))
    }

    /// Gives a place to the next in the queue, or back.
    fn leave(&self, key: &LaneKey) {
        let mut state = self.state();
        let Some(lane) = state.lanes.get_mut(key) else { return };
        while let Some((_, give)) = lane.waiting.pop() {
            if give.send(()).is_ok() {
                return;
            }
        }
        lane.running -= 1;
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
