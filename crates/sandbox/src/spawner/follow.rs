//! Commands that are followed through this process: their sessions are left alone.

use tokio::time::Instant;

use super::Spawner;
use crate::daemon::Target;

/// Counts as one command until it is dropped.
pub struct Followed {
    spawner: Spawner,
    target: Target,
}

impl Spawner {
    /// A command of the session is followed from now on. `None` when the incarnation is not known any more.
    #[must_use]
    pub fn follow(&self, target: &Target) -> Option<Followed> {
        self.with_incarnation(&target.session, target.incarnation, |entry| entry.followed += 1)?;
        Some(Followed { spawner: self.clone(), target: target.clone() })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.spawner.with_incarnation(&self.target.session, self.target.incarnation, |entry| {
            entry.followed = entry.followed.saturating_sub(1);
            entry.idle_since = Instant::now();
        });
    }
}
