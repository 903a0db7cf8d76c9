//! Token buckets of the doors (spec 91, 1.8): continuous refill, bounded memory, injected clock.
//!
//! Buckets live in the process, sharded by nothing more than one mutex per lane: an operation is
//! a hash lookup and a few additions, never an await. A lane holds at most [`MAX_HOLDERS`] keys;
//! full buckets carry no information and are dropped first.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tale_core::clock::SharedClock;
use tale_core::{Code, Problem};
use uuid::Uuid;

use crate::v1::presumed::Holders;

/// Most holders a lane remembers.
const MAX_HOLDERS: usize = 100_000;

/// Most keys of a generation of [`KnownKeys`]: half a megabyte.
const MAX_KNOWN: usize = 10_000;

/// One lane: `per_minute` tokens a minute, at most `burst` saved up.
pub struct Lane<K> {
    per_ms: f64,
    burst: f64,
    clock: SharedClock,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

impl<K: Eq + Hash> Lane<K> {
    /// A lane with full buckets.
    pub fn new(per_minute: u32, burst: u32, clock: SharedClock) -> Self {
        Self { per_ms: f64::from(per_minute) / 60_000.0, burst: f64::from(burst), clock, buckets: Mutex::default() }
    }

    /// The same by the hour.
    pub fn hourly(per_hour: u32, clock: SharedClock) -> Self {
        let per_ms = f64::from(per_hour) / 3_600_000.0;
        Self { per_ms, burst: f64::from(per_hour), clock, buckets: Mutex::default() }
    }

    /// Whether `holder` has a token left, without taking it.
    ///
    /// # Errors
    /// As [`Lane::take`].
    pub fn check(&self, holder: &K) -> Result<(), Problem> {
        let now = self.clock.now_ms();
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = buckets.get(holder).map_or(self.burst, |bucket| refilled(*bucket, now, self.burst, self.per_ms));
        if tokens < 1.0 { Err(self.refusal(tokens)) } else { Ok(()) }
    }

    /// Takes one token for `holder`.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn take(&self, holder: K) -> Result<(), Problem> {
        let now = self.clock.now_ms();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_HOLDERS && !buckets.contains_key(&holder) {
            let (burst, per_ms) = (self.burst, self.per_ms);
            buckets.retain(|_, bucket| refilled(*bucket, now, burst, per_ms) < burst);
            if buckets.len() >= MAX_HOLDERS {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(holder).or_insert(Bucket { tokens: self.burst, at_ms: now });
        let tokens = refilled(*bucket, now, self.burst, self.per_ms);
        if tokens < 1.0 {
            *bucket = Bucket { tokens, at_ms: now };
            return Err(self.refusal(tokens));
        }
        *bucket = Bucket { tokens: tokens - 1.0, at_ms: now };
        Ok(())
    }

    fn refusal(&self, tokens: f64) -> Problem {
        // At most minutes for every lane below; the cast cannot lose anything.
        let wait_ms = ((1.0 - tokens) / self.per_ms).ceil() as u64;
        Problem::new(Code::RateLimited, format!("Too many requests — retry after {wait_ms} ms"))
            .retry_after(Duration::from_millis(wait_ms))
    }
}

/// Tokens at `now`; a clock that jumps back refills nothing.
fn refilled(bucket: Bucket, now: i64, burst: f64, per_ms: f64) -> f64 {
    let elapsed = (now - bucket.at_ms).max(0) as f64;
    (bucket.tokens + elapsed * per_ms).min(burst)
}

/// Keys that were good lately, by digest. While a network's failed attempts are used up, its other
/// keys are not looked up at all, and those that are known go on working.
///
/// Two generations of at most [`MAX_KNOWN`] each: when the younger is full, the older is forgotten.
#[derive(Default)]
pub struct KnownKeys(Mutex<[HashSet<[u8; 32]>; 2]>);

impl KnownKeys {
    /// Remembers a key that was just found good.
    pub fn remember(&self, digest: [u8; 32]) {
        let [young, old] = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if young.len() >= MAX_KNOWN && !young.contains(&digest) {
            *old = std::mem::take(young);
        }
        young.insert(digest);
    }

    /// Whether the key was good lately. It may have been revoked since.
    pub fn contains(&self, digest: &[u8; 32]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|generation| generation.contains(digest))
    }
}

/// The lanes of this process.
pub struct Limits {
    /// Every `/api/v1` request, per key holder.
    pub door: Lane<Uuid>,
    /// Starting work: thread messages, per key holder.
    pub starting_work: Lane<Uuid>,
    /// Re-indexing, per person.
    pub reindex: Lane<Uuid>,
    /// Checks and exports of the audit log, per person.
    pub audit_scans: Lane<Uuid>,
    /// Questions whether an address has an account, per person (MEM-2).
    pub account_lookups: Lane<Uuid>,
    /// Failed key authentication, per source network.
    pub failed_keys: Lane<String>,
    /// Refused keys of reverse proxies, per source network.
    pub failed_hand_offs: Lane<String>,
    /// Requests of directories, per organization.
    pub directories: Lane<Uuid>,
    /// Sign-ins at identity providers, their beginning and their end, per source network.
    pub sso: Lane<String>,
    /// Keys that pass while their network's failed attempts are used up.
    pub known_keys: KnownKeys,
    /// Who held the keys that called models lately.
    pub holders: Holders,
}

impl Limits {
    /// The rates of the specification.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self {
            door: Lane::new(120, 200, clock.clone()),
            starting_work: Lane::new(20, 40, clock.clone()),
            reindex: Lane::new(10, 10, clock.clone()),
            audit_scans: Lane::new(60, 60, clock.clone()),
            account_lookups: Lane::hourly(30, clock.clone()),
            failed_keys: Lane::new(20, 40, clock.clone()),
            directories: Lane::new(3_000, 600, clock.clone()),
            failed_hand_offs: Lane::new(20, 40, clock.clone()),
            sso: Lane::new(120, 600, clock),
            known_keys: KnownKeys::default(),
            holders: Holders::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tale_core::ManualClock;

    use super::*;

    #[test]
    fn a_bucket_empties_refills_and_belongs_to_one_holder() {
        let clock = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH));
        let lane = Lane::new(60, 3, clock.clone());
        for _ in 0..3 {
            lane.take(1).unwrap();
        }
        let refused = lane.take(1).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_millis(1000)));
        lane.take(2).unwrap();
        clock.advance(Duration::from_millis(999));
        assert!(lane.take(1).is_err());
        clock.advance(Duration::from_millis(1));
        lane.take(1).unwrap();
        clock.set(chrono::DateTime::UNIX_EPOCH);
        assert!(lane.take(1).is_err(), "a clock that jumps back gives nothing");
    }

    #[test]
    fn looking_takes_nothing() {
        let clock = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH));
        let lane = Lane::new(60, 1, clock.clone());
        lane.check(&1).unwrap();
        lane.check(&1).unwrap();
        lane.take(1).unwrap();
        assert_eq!(lane.check(&1).unwrap_err().retry_after, Some(Duration::from_millis(1000)));
        clock.advance(Duration::from_millis(1000));
        lane.check(&1).unwrap();
    }

    #[test]
    fn the_keys_used_last_are_known_and_their_number_is_bounded() {
        let known = KnownKeys::default();
        let digest = |n: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(n as u64).to_le_bytes());
            digest
        };
        for n in 0..3 * MAX_KNOWN {
            known.remember(digest(n));
        }
        assert!(known.contains(&digest(3 * MAX_KNOWN - 1)) && known.contains(&digest(2 * MAX_KNOWN)));
        assert!(!known.contains(&digest(0)));
    }
}
