//! How many calls somebody has running (MOD-116).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tale_core::ids::OrgId;
use uuid::Uuid;

/// Calls of a person, and of a key, in an organization at the same time.
pub(crate) const MAX_RUNNING: u32 = 8;

/// Counts running calls. Cheap to clone. Holds an entry only for whoever has one running.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<HashMap<(OrgId, Uuid), u32>>>);

/// A running call of some holders, until it is dropped.
#[derive(Debug)]
pub(crate) struct Run {
    running: Running,
    holders: Vec<(OrgId, Uuid)>,
}

impl Running {
    /// One more call for each of the holders; none when one of them has as many as may be.
    pub(crate) fn begin(&self, holders: Vec<(OrgId, Uuid)>) -> Option<Run> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.iter().any(|holder| counts.get(holder).is_some_and(|count| *count >= MAX_RUNNING)) {
            return None;
        }
        for holder in &holders {
            *counts.entry(*holder).or_default() += 1;
        }
        Some(Run { running: self.clone(), holders })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut counts = self.running.0.lock().unwrap_or_else(PoisonError::into_inner);
        for holder in &self.holders {
            if let Some(count) = counts.get_mut(holder) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_call_of_a_person_or_a_key_is_refused() {
        let running = Running::default();
        let org = OrgId::new();
        let (person, key, other) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let mut runs: Vec<Run> = (0..8).map(|_| running.begin(vec![(org, person), (org, key)]).unwrap()).collect();
        assert!(running.begin(vec![(org, person), (org, other)]).is_none(), "the person has eight");
        assert!(running.begin(vec![(org, other), (org, key)]).is_none(), "the key has eight");
        assert!(running.begin(vec![(OrgId::new(), person)]).is_some(), "another organization counts for itself");
        runs.pop();
        assert!(running.begin(vec![(org, person), (org, key)]).is_some());
        runs.clear();
        assert!(running.0.lock().unwrap().is_empty());
    }
}
