//! How much of large requests is in memory at the same time: they are held until their provider has them,
//! and so also while they wait for a place there. No organization takes it all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};

/// A request up to this size needs no room, in bytes.
const SMALL: usize = 64 << 10;
/// Largest request that does not say its length.
const UNSAID: usize = 8 << 20;
/// Bytes of all larger ones together, and of those of one organization.
const MOST: usize = 256 << 20;
const MOST_OF_ONE: usize = 128 << 20;
/// When to come again.
const RETRY: Duration = Duration::from_secs(2);

/// The room that is taken. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    orgs: HashMap<OrgId, usize>,
}

/// Room for one request, given back when dropped.
#[derive(Debug)]
pub(super) struct Room {
    bodies: Bodies,
    org: OrgId,
    bytes: usize,
}

impl Bodies {
    /// Room for a request with these headers, and how many of `most` bytes it may have. A small one needs
    /// no room.
    ///
    /// # Errors
    /// `MODEL_API_UNAVAILABLE` when there is none now.
    pub(super) fn take(&self, org: OrgId, headers: &HeaderMap, most: usize) -> Result<(Option<Room>, usize), Problem> {
        let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let most = if said.is_some() { most } else { UNSAID.min(most) };
        // One that says too much is refused before it is read.
        let bytes = said.and_then(|text| text.parse().ok()).unwrap_or(most).min(most);
        if bytes <= SMALL {
            return Ok((None, most));
        }
        let mut taken = self.taken();
        let of_org = taken.orgs.get(&org).copied().unwrap_or(0);
        if taken.all + bytes > MOST || of_org + bytes > MOST_OF_ONE {
            return Err(Problem::new(
                Code::ModelApiUnavailable,
                "Too many large requests are on their way at the same time. Try again in a moment.",
            )
            .retry_after(RETRY));
        }
        taken.all += bytes;
        taken.orgs.insert(org, of_org + bytes);
        Ok((Some(Room { bodies: self.clone(), org, bytes }), most))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut taken = self.bodies.taken();
        taken.all -= self.bytes;
        if let Some(of_org) = taken.orgs.get_mut(&self.org) {
            *of_org -= self.bytes;
            if *of_org == 0 {
                taken.orgs.remove(&self.org);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_organization_leaves_room_for_another_and_small_requests_need_none() {
        let (bodies, most) = (Bodies::default(), 64 << 20);
        let of = |bytes: usize| HeaderMap::from_iter([(header::CONTENT_LENGTH, bytes.into())]);
        let (one, other) = (OrgId::new(), OrgId::new());
        let (unsaid, cap) = bodies.take(one, &HeaderMap::new(), most).unwrap();
        assert_eq!((unsaid.map(|room| room.bytes), cap), (Some(UNSAID), UNSAID));
        let mut rooms: Vec<_> = (0..2).map(|_| bodies.take(one, &of(most), most).unwrap()).collect();
        assert!(bodies.take(one, &of(SMALL + 1), most).is_err());
        assert!(bodies.take(one, &of(SMALL), most).unwrap().0.is_none());
        rooms.extend((0..2).map(|_| bodies.take(other, &of(usize::MAX), most).unwrap()));
        assert!(bodies.take(OrgId::new(), &of(SMALL + 1), most).is_err());
        rooms.clear();
        assert!(bodies.take(one, &of(most), most).is_ok());
        let taken = bodies.taken();
        assert_eq!((taken.all, taken.orgs.len()), (0, 0));
    }
}
