//! What the gateway counts in this process.

use tale_core::metrics::Counter;

/// Calls that a provider's queue had no room for.
pub static QUEUE_FULL: Counter = Counter::new();
/// Rows of the request log that were dropped because the database did not keep up.
pub static LOG_DROPPED: Counter = Counter::new();

pub(crate) static STARTED: Counter = Counter::new();
pub(crate) static ENDED: Counter = Counter::new();
pub(crate) static QUEUED: Counter = Counter::new();
pub(crate) static UNQUEUED: Counter = Counter::new();

/// Calls that have got to a provider since the process started.
#[must_use]
pub fn calls() -> u64 {
    STARTED.get()
}

/// Calls that providers are at now.
#[must_use]
pub fn running() -> u64 {
    STARTED.get().saturating_sub(ENDED.get())
}

/// Calls that wait for a place at a provider.
#[must_use]
pub fn waiting() -> u64 {
    QUEUED.get().saturating_sub(UNQUEUED.get())
}
