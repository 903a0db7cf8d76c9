//! How many connections there may be, of everybody and of each client.
//!
//! Counted here and not by the kernel, so that the limits hold everywhere.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Connections beyond the limit of everybody that clients without a connection may have.
pub(crate) const RESERVE: usize = 256;

/// Counts connections.
#[derive(Debug)]
pub(crate) struct Limits {
    max: usize,
    per_client: Option<u32>,
    counts: Mutex<Counts>,
    /// Told when the last connection ends.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    clients: HashMap<IpAddr, u32>,
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are as many as there may be.
    Everybody,
    /// The client has as many as it may have.
    Client,
}

/// What is open at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub connections: usize,
    pub clients: usize,
}

/// The place of one connection; dropped, it is free.
#[derive(Debug)]
pub(crate) struct Place {
    limits: Arc<Limits>,
    client: IpAddr,
}

impl Limits {
    pub(crate) fn new(max: usize, per_client: Option<u32>) -> Arc<Self> {
        Arc::new(Self { max, per_client, counts: Mutex::default(), empty: Notify::new() })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more connection of `client`.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Result<Place, Full> {
        let mut counts = self.counts();
        let own = counts.clients.get(&client).copied().unwrap_or(0);
        if self.per_client.is_some_and(|most| own >= most) {
            return Err(Full::Client);
        }
        if counts.total >= self.max && !(own == 0 && self.has_reserve(&counts)) {
            return Err(Full::Everybody);
        }
        counts.total += 1;
        *counts.clients.entry(client).or_insert(0) += 1;
        Ok(Place { limits: Arc::clone(self), client })
    }

    /// Whether a client without a connection may have one beyond the limit: somebody has more than a fair
    /// share, and must not keep others out.
    fn has_reserve(&self, counts: &Counts) -> bool {
        let fair = self.max / (counts.clients.len() + 1);
        counts.total < self.max.saturating_add(RESERVE) && counts.clients.values().any(|held| *held as usize > fair)
    }

    pub(crate) fn held(&self) -> Held {
        let counts = self.counts();
        Held { connections: counts.total, clients: counts.clients.len() }
    }

    /// Waits until no connection is open.
    pub(crate) async fn emptied(&self) {
        loop {
            let told = self.empty.notified();
            if self.counts().total == 0 {
                return;
            }
            told.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.limits.counts();
        counts.total -= 1;
        if let Some(held) = counts.clients.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                counts.clients.remove(&self.client);
            }
        }
        if counts.total == 0 {
            self.limits.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn a_client_at_its_limit_keeps_nobody_else_out() {
        let limits = Limits::new(100, Some(2));
        let _held: Vec<Place> = (0..2).map(|_| limits.admit(client(1)).unwrap()).collect();
        assert_eq!(limits.admit(client(1)).unwrap_err(), Full::Client);
        let other = limits.admit(client(2)).unwrap();
        assert_eq!(limits.held(), Held { connections: 3, clients: 2 });
        drop(other);
        assert_eq!(limits.held(), Held { connections: 2, clients: 1 });
    }

    #[test]
    fn whoever_takes_every_place_leaves_one_to_each_newcomer() {
        let limits = Limits::new(10, None);
        let mut greedy: Vec<Place> = (0..10).map(|_| limits.admit(client(1)).unwrap()).collect();
        assert_eq!(limits.admit(client(1)).unwrap_err(), Full::Everybody);
        let _one = limits.admit(client(2)).unwrap();
        assert_eq!(limits.admit(client(2)).unwrap_err(), Full::Everybody);
        greedy.truncate(8);
        assert!(limits.admit(client(1)).is_ok());
    }

    #[test]
    fn when_nobody_has_more_than_a_fair_share_the_limit_is_the_limit() {
        let limits = Limits::new(3, None);
        let _held: Vec<Place> = (1..=3).map(|n| limits.admit(client(n)).unwrap()).collect();
        // Everyone holds one; a fair share among four is none, so the reserve opens, up to its end.
        let more = (4..=255).map_while(|n| limits.admit(client(n)).ok()).collect::<Vec<_>>();
        assert!(more.len() <= RESERVE);
    }
}
