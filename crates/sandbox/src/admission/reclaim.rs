//! Which idle session is asked to make room (SBX-180 to SBX-182).

use std::time::Duration;

use tokio::time::Instant;

/// Most runtimes that one search asks.
pub const MOST_ASKED: usize = 8;

/// Pause before a runtime that would not go, or that has just got work, is asked again.
pub const UNWILLING: Duration = Duration::from_secs(15);

/// Pause before a runtime that did not answer is asked again.
pub const UNANSWERED: Duration = Duration::from_secs(10);

/// How long nobody searches again after a search that found nothing.
pub const NOTHING_FOUND: Duration = Duration::from_secs(3);

/// A session that could go, as far as is known here: it runs, is not pinned and does nothing through
/// this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<T> {
    /// What the caller knows it by.
    pub key: T,
    /// Whether it was seen released.
    pub released: bool,
    /// When it was last seen doing something.
    pub idle_since: Instant,
    /// It is left alone until then.
    pub spared_until: Option<Instant>,
}

/// The candidates to ask, first the one that is idle longest; those never seen released come after all that
/// were.
#[must_use]
pub fn order<T>(mut candidates: Vec<Candidate<T>>, now: Instant) -> Vec<T> {
    candidates.retain(|candidate| candidate.spared_until.is_none_or(|until| until <= now));
    candidates.sort_by_key(|candidate| (!candidate.released, candidate.idle_since));
    candidates.into_iter().map(|candidate| candidate.key).collect()
}
