//! Time as a dependency. Whatever schedules, expires, limits or admits asks a [`Clock`], so a test
//! drives hours in microseconds and never sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// A source of the current time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time.
    fn now(&self) -> DateTime<Utc>;

    /// Milliseconds since the Unix epoch, the unit of every timestamp on the wire.
    fn now_ms(&self) -> i64 {
        self.now().timestamp_millis()
    }
}

/// A clock that several owners share.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that moves only when told to, for tests of everything that has time in it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Starts at `start`.
    #[must_use]
    pub fn new(start: DateTime<Utc>) -> Self {
        Self(AtomicI64::new(start.timestamp_micros()))
    }

    /// Moves forward by `step`.
    pub fn advance(&self, step: Duration) {
        let micros = i64::try_from(step.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Jumps to `at`, backwards included.
    pub fn set(&self, at: DateTime<Utc>) {
        self.0.store(at.timestamp_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0.load(Ordering::SeqCst)).unwrap_or_default()
    }
}
