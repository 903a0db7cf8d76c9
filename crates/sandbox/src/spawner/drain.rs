//! Draining for a replacement (5.6 of the specification).

use tokio::time::Instant;

use super::Spawner;
use crate::session::{Phase, StopReason};
use tale_sandbox_wire::names::SessionId;

impl Spawner {
    /// From now on nothing is created or adopted; what runs goes on.
    pub fn drain(&self) {
        let mut state = self.state();
        if state.draining_since.is_none() {
            state.draining_since = Some(Instant::now());
            tracing::info!(event = "sandbox.draining", sessions = state.sessions.len(), "draining");
        }
    }

    /// Whether it drains, and which sessions are left.
    #[must_use]
    pub fn drain_status(&self) -> (bool, Vec<SessionId>) {
        let state = self.state();
        let mut left: Vec<_> = state.sessions.keys().cloned().collect();
        left.sort();
        (state.draining_since.is_some(), left)
    }

    /// Stops everything, once, when the drain has lasted as long as it may. The workspaces stay.
    pub(super) async fn end_linger(&self) {
        let left: Vec<(SessionId, i64)> = {
            let mut state = self.state();
            let over = state.draining_since.is_some_and(|since| since.elapsed() >= self.0.rules.max_linger);
            if !over || state.lingered {
                return;
            }
            state.lingered = true;
            let stoppable = state
                .sessions
                .iter_mut()
                .filter(|(_, entry)| !entry.in_work && matches!(entry.phase, Phase::Ready | Phase::Degraded));
            stoppable
                .map(|(id, entry)| {
                    entry.in_work = true;
                    (id.clone(), entry.created_at_ms)
                })
                .collect()
        };
        tracing::warn!(event = "sandbox.linger_over", sessions = left.len(), "the drain has lasted long enough");
        for (session, created_at_ms) in left {
            self.stop_claimed(&session, created_at_ms, StopReason::Drained).await;
        }
    }
}
