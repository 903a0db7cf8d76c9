//! Finding sessions: the registry first, the backend where it decides (4.4 of the specification).

use std::time::Duration;

use tokio::time::Instant;

use super::Spawner;
use crate::backend::{Compute, ComputeState};
use crate::daemon::Target;
use crate::session::{Entry, Phase, millis};
use tale_sandbox_wire::names::Profile;
use tale_sandbox_wire::names::{OrganizationId, SessionId};

/// What callers see of a session's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// It starts.
    Creating,
    /// It takes work.
    Ready,
    /// Its daemon does not answer.
    Degraded,
    /// It ends.
    Terminating,
}

impl SessionState {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Terminating => "terminating",
        }
    }
}

/// A session as callers see it (SBX-73).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub org: OrganizationId,
    /// What it may use.
    pub profile: Profile,
    /// Where it is in its life.
    pub state: SessionState,
    /// When it was created; names the incarnation.
    pub created_at_ms: i64,
    /// When it is as old as it may get.
    pub expires_at_ms: i64,
    /// Idle time after which it is stopped.
    pub idle_timeout: Duration,
    /// Whether it is pinned, as last acknowledged.
    pub pinned: bool,
    /// Whether the last change of the pin was acknowledged everywhere.
    pub pin_synchronized: bool,
}

impl SessionInfo {
    pub(super) fn of(session: &SessionId, entry: &Entry) -> Option<Self> {
        let state = match entry.phase {
            Phase::Creating => SessionState::Creating,
            Phase::Ready => SessionState::Ready,
            Phase::Degraded => SessionState::Degraded,
            Phase::Stopping(_) | Phase::Destroying => SessionState::Terminating,
        };
        Some(Self {
            session: session.clone(),
            org: entry.org.clone()?,
            profile: entry.profile,
            state,
            created_at_ms: entry.created_at_ms,
            expires_at_ms: entry.lifetime_from_ms.saturating_add(millis(entry.ttl)),
            idle_timeout: entry.idle_timeout,
            pinned: entry.pinned,
            pin_synchronized: !entry.pin_pending,
        })
    }
}

/// Why a session was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// It is certain that it has no compute.
    #[error("the session has no compute")]
    NotFound,
    /// That cannot be judged now, or the session still starts or ends.
    #[error("the session cannot be reached now")]
    Unavailable,
}

impl Spawner {
    /// Every session of the registry, or those of one organization.
    #[must_use]
    pub fn sessions(&self, org: Option<&OrganizationId>) -> Vec<SessionInfo> {
        let state = self.state();
        let mine = state.sessions.iter().filter(|(_, entry)| org.is_none_or(|org| entry.org.as_ref() == Some(org)));
        mine.filter_map(|(id, entry)| SessionInfo::of(id, entry)).collect()
    }

    /// A session, checked with the backend.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn session(&self, session: &SessionId) -> Result<SessionInfo, LookupError> {
        let known = self.state().sessions.get(session).map(|entry| (entry.phase, entry.created_at_ms));
        match known {
            Some((Phase::Creating | Phase::Stopping(_) | Phase::Destroying, _)) => {}
            Some((_, created_at_ms)) => {
                let found = self.0.backend.find(session).await;
                let is_gone = match &found {
                    Ok(None) => true,
                    Ok(Some(compute)) => {
                        compute.created_at_ms != created_at_ms || matches!(compute.state, ComputeState::Ended { .. })
                    }
                    // It cannot be judged: what is known stays (SBX-79).
                    Err(_) => false,
                };
                if is_gone {
                    self.settle_gone(session, created_at_ms, found.ok().flatten()).await;
                }
            }
            None => self.adopt_one(session).await?,
        }
        let state = self.state();
        state.sessions.get(session).and_then(|entry| SessionInfo::of(session, entry)).ok_or(LookupError::NotFound)
    }

    /// Where the daemon of a session that takes work answers. Finds out whether it is still there only when
    /// the registry does not know it.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn target(&self, session: &SessionId) -> Result<Target, LookupError> {
        for _ in 0..2 {
            {
                let state = self.state();
                if let Some(entry) = state.sessions.get(session) {
                    return match entry.phase {
                        Phase::Ready | Phase::Degraded => entry.target.clone().ok_or(LookupError::Unavailable),
                        Phase::Destroying => Err(LookupError::NotFound),
                        Phase::Creating | Phase::Stopping(_) => Err(LookupError::Unavailable),
                    };
                }
            }
            self.adopt_one(session).await?;
        }
        Err(LookupError::Unavailable)
    }

    /// Whether a call to the daemon failed because its compute is gone: then the session is forgotten.
    pub async fn after_silence(&self, target: &Target) -> LookupError {
        match self.session(&target.session).await {
            Ok(info) if info.created_at_ms == target.incarnation => LookupError::Unavailable,
            Ok(_) => LookupError::NotFound,
            Err(error) => error,
        }
    }

    /// Takes a running session that the registry does not know from the backend (SBX-77).
    pub(super) async fn adopt_one(&self, session: &SessionId) -> Result<(), LookupError> {
        let found = self.0.backend.find(session).await.map_err(|_| LookupError::Unavailable)?;
        // A draining spawner leaves what it does not own to its successor (SBX-142).
        let (Some(compute), false) = (found, self.state().draining_since.is_some()) else {
            return Err(LookupError::NotFound);
        };
        match compute.state {
            ComputeState::Ended { .. } => Err(LookupError::NotFound),
            ComputeState::Starting => Err(LookupError::Unavailable),
            ComputeState::Running => {
                self.adopt(&compute);
                Ok(())
            }
        }
    }

    /// Puts running compute into the registry, unless the session is there already. What a start of this
    /// process has launched is.
    pub(super) fn adopt(&self, compute: &Compute) {
        {
            let mut state = self.state();
            if state.draining_since.is_some() || state.sessions.contains_key(&compute.session) {
                return;
            }
            state.last_stamp = state.last_stamp.max(compute.created_at_ms);
            state.sessions.insert(compute.session.clone(), Entry::adopted(compute, Instant::now()));
        }
        tracing::info!(event = "sandbox.adopted", session = %compute.session, "a running session was found");
        self.changed();
    }

    /// The compute of an incarnation is gone or has ended: it is removed, and its place is free.
    pub(super) async fn settle_gone(&self, session: &SessionId, created_at_ms: i64, ended: Option<Compute>) {
        let leave = ended.filter(|compute| {
            compute.created_at_ms == created_at_ms && matches!(compute.state, ComputeState::Ended { .. })
        });
        if let Some(compute) = leave {
            let which = crate::backend::Which::Handle(compute.handle);
            if let Err(error) = self.0.backend.remove(session, &which).await {
                // It runs no more and takes no memory; the next list finds it again.
                tracing::warn!(event = "sandbox.leftover", %session, %error, "ended compute could not be removed");
            }
        }
        tracing::info!(event = "sandbox.gone", %session, "a session's compute is gone");
        self.forget(session, created_at_ms);
    }
}
