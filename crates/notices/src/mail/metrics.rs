//! What became of mail, since the process started.

use std::sync::atomic::{AtomicBool, Ordering};

use tale_core::metrics::Counter;

/// Mails that the mail server took.
pub static SENT: Counter = Counter::new();
/// Mails that it refused for good, or that were given up.
pub static FAILED: Counter = Counter::new();
/// Attempts that are repeated later.
pub static DEFERRED: Counter = Counter::new();

static FAILING: AtomicBool = AtomicBool::new(false);

/// Whether the mail server could not be used at the last attempt.
#[must_use]
pub fn failing() -> bool {
    FAILING.load(Ordering::Relaxed)
}

pub(super) fn set_failing(failing: bool) {
    FAILING.store(failing, Ordering::Relaxed);
}
