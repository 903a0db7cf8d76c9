//! Stopping compute: fenced to its incarnation, the workspace kept, the slot held until it is certain.

use super::Spawner;
use crate::session::{Phase, StopReason};
use tale_sandbox_wire::names::SessionId;

impl Spawner {
    /// Stops an incarnation whose gate is closed, or whose daemon is not asked. The entry must be marked as in
    /// work by the caller. Answers whether the compute is certainly gone; if not, it keeps its slot and the next
    /// pass goes on.
    pub(super) async fn stop_claimed(&self, session: &SessionId, created_at_ms: i64, reason: StopReason) -> bool {
        let which = self.with_incarnation(session, created_at_ms, |entry| {
            // A destroy takes the compute away by itself.
            (entry.phase != Phase::Destroying).then(|| {
                entry.phase = Phase::Stopping(reason);
                entry.reservation = None;
                entry.which()
            })
        });
        let Some(Some(which)) = which else { return false };
        self.changed();
        let removed = self.0.backend.remove(session, &which).await;
        match removed {
            Ok(()) => {
                tracing::info!(event = "sandbox.stopped", %session, reason = reason.name(), "a session was stopped");
                self.forget(session, created_at_ms);
                true
            }
            Err(error) => {
                tracing::warn!(
                    event = "sandbox.stop_failed", %session, reason = reason.name(), %error,
                    "a session could not be stopped; it is tried again"
                );
                self.with_incarnation(session, created_at_ms, |entry| entry.in_work = false);
                self.changed();
                false
            }
        }
    }

    /// Takes an incarnation out of the registry: its compute is certainly gone. A session that is being destroyed
    /// stays, for its files.
    pub(super) fn forget(&self, session: &SessionId, created_at_ms: i64) {
        {
            let mut state = self.state();
            let same = |entry: &mut crate::session::Entry| {
                entry.created_at_ms == created_at_ms && entry.phase != Phase::Destroying
            };
            if state.sessions.get_mut(session).is_some_and(same) {
                state.sessions.remove(session);
            }
        }
        self.changed();
    }
}
