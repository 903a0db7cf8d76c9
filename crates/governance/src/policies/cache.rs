//! What one process holds of the policies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tale_core::ids::OrgId;

use super::{MAX_AGE, MAX_ORGS, OrgPolicies};

#[derive(Default)]
pub(super) struct Cache(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Counts what was forgotten, so that what was read before is not kept after it.
    forgotten: u64,
    orgs: HashMap<OrgId, (DateTime<Utc>, Arc<OrgPolicies>)>,
}

/// Taken before reading, given back with what was read.
pub(super) struct Ticket(u64);

impl Cache {
    pub(super) fn get(&self, org: OrgId, now: DateTime<Utc>) -> Option<Arc<OrgPolicies>> {
        let held = self.lock();
        let (read, policies) = held.orgs.get(&org)?;
        // A clock that was set back makes the age negative, which is no age to trust.
        let fresh = (now - read).to_std().is_ok_and(|age| age < MAX_AGE);
        fresh.then(|| policies.clone())
    }

    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.lock().forgotten)
    }

    pub(super) fn put(&self, org: OrgId, ticket: Ticket, read: DateTime<Utc>, policies: Arc<OrgPolicies>) {
        let mut held = self.lock();
        if held.forgotten != ticket.0 {
            return;
        }
        if held.orgs.len() >= MAX_ORGS && !held.orgs.contains_key(&org) {
            held.orgs.clear();
        }
        held.orgs.insert(org, (read, policies));
    }

    pub(super) fn forget(&self, org: OrgId) {
        let mut held = self.lock();
        held.forgotten += 1;
        held.orgs.remove(&org);
    }

    pub(super) fn clear(&self) {
        let mut held = self.lock();
        held.forgotten += 1;
        held.orgs.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
