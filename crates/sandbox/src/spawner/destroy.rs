//! Destroying a session: compute, then workspace (4.7 of the specification).

use std::time::Duration;

use tokio::time::Instant;

use super::{Spawner, State};
use crate::backend::{BackendError, ComputeState, Deletion, Which};
use crate::session::{Entry, Phase};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::SessionId;

/// Longest wait for an earlier destroy of the same session.
const EARLIER: Duration = Duration::from_secs(120);

/// What a destroy may not disturb.
#[derive(Debug, Clone, Copy, Default)]
pub struct Destroy {
    /// Not while a command runs.
    pub if_idle: bool,
    /// Not while there is compute.
    pub if_stopped: bool,
    /// Wait for the deletion of the files, for at most ten seconds.
    pub await_deletion: bool,
}

/// How a destroy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroyed {
    /// Something it may not disturb is there; nothing was changed.
    Busy,
    /// The session is gone.
    Done {
        /// Whether there was anything to destroy.
        destroyed: bool,
        /// How far the deletion of its files is.
        deletion: Deletion,
    },
}

/// Why nothing was destroyed, or not everything.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DestroyError {
    /// Another destroy of the session does not come to its end.
    #[error("an earlier destroy of the session still runs")]
    Busy,
    /// The backend failed. What is left is found by the next destroy.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl Spawner {
    /// Destroys the session: its compute, then its workspace. It goes on when the caller goes away.
    ///
    /// # Errors
    /// [`DestroyError`]; it may be repeated.
    pub async fn destroy(&self, session: &SessionId, how: Destroy) -> Result<Destroyed, DestroyError> {
        let (spawner, session) = (self.clone(), session.clone());
        let task = tokio::spawn(async move { spawner.destroy_in_order(&session, how).await });
        task.await.unwrap_or_else(|error| Err(BackendError::Unreachable(error.to_string()).into()))
    }

    async fn destroy_in_order(&self, session: &SessionId, how: Destroy) -> Result<Destroyed, DestroyError> {
        if self.is_busy(session, how).await? {
            return Ok(Destroyed::Busy);
        }
        let Some(stamp) = self.begin_destroy(session, how).await? else { return Ok(Destroyed::Busy) };
        let outcome = self.take_away(session).await;
        {
            let mut state = self.state();
            let mine = state.sessions.get(session).is_some_and(|entry| entry.created_at_ms == stamp);
            if mine && outcome.is_ok() {
                state.sessions.remove(session);
                state.line.leave(session);
            } else if mine && let Some(entry) = state.sessions.get_mut(session) {
                // Whether its compute is gone is not known: the next pass finds that out, and keeps the files.
                entry.phase = Phase::Stopping(crate::session::StopReason::Destroyed);
                entry.handle = None;
                entry.in_work = false;
            }
        }
        self.changed();
        let destroyed = outcome?;
        let deletion = self.0.backend.deletion(session, how.await_deletion).await?;
        tracing::info!(event = "sandbox.destroyed", %session, destroyed, "a session was destroyed");
        Ok(Destroyed::Done { destroyed, deletion })
    }

    /// Looks for what the destroy may not disturb. What cannot be judged counts as busy.
    async fn is_busy(&self, session: &SessionId, how: Destroy) -> Result<bool, DestroyError> {
        if !how.if_idle && !how.if_stopped {
            return Ok(false);
        }
        let known = self.state().sessions.get(session).map(|entry| (entry.followed, entry.target.clone()));
        if how.if_stopped && known.is_some() {
            return Ok(true);
        }
        if known.as_ref().is_some_and(|(followed, _)| *followed > 0) {
            return Ok(true);
        }
        let Some(compute) = self.0.backend.find(session).await? else { return Ok(false) };
        if matches!(compute.state, ComputeState::Ended { .. }) {
            return Ok(false);
        }
        if how.if_stopped {
            return Ok(true);
        }
        self.adopt(&compute);
        let target = self.state().sessions.get(session).and_then(|entry| entry.target.clone());
        let Some(target) = target else { return Ok(true) };
        Ok(self.0.daemons.health(&target).await.map_or(true, |health| health.live_execs > 0))
    }

    /// Puts the session into its last phase, or makes an entry for one that only has files. `None`: busy after
    /// all.
    async fn begin_destroy(&self, session: &SessionId, how: Destroy) -> Result<Option<i64>, DestroyError> {
        let begin = |state: &mut State| {
            let stamp = self.now_ms().max(state.last_stamp.saturating_add(1));
            match state.sessions.get_mut(session) {
                // One after another.
                Some(entry) if entry.phase == Phase::Destroying => None,
                Some(_) if how.if_stopped => Some(None),
                Some(entry) if how.if_idle && entry.followed > 0 => Some(None),
                Some(entry) => {
                    entry.phase = Phase::Destroying;
                    entry.reservation = None;
                    entry.give_up.cancel();
                    Some(Some(entry.created_at_ms))
                }
                None => {
                    let mut entry = Entry::starting(None, Profile::Default, stamp, 0, Instant::now());
                    entry.phase = Phase::Destroying;
                    entry.has_compute = false;
                    entry.reservation = None;
                    state.last_stamp = stamp;
                    state.sessions.insert(session.clone(), entry);
                    Some(Some(stamp))
                }
            }
        };
        let begun = self.wait_until(Instant::now() + EARLIER, begin).await.ok_or(DestroyError::Busy)?;
        self.changed();
        Ok(begun)
    }

    async fn take_away(&self, session: &SessionId) -> Result<bool, BackendError> {
        let had_compute = self.0.backend.find(session).await?.is_some();
        // Also when none was found: one that is being started at this moment has the name already.
        self.0.backend.remove(session, &Which::Any).await?;
        let had_files = self.0.backend.discard_workspace(session).await?;
        Ok(had_compute || had_files)
    }
}
