//! Pins (5.5 of the specification): acknowledged by the daemon and recorded durably, or not changed.

use super::{LookupError, Spawner};
use crate::daemon::DaemonError;
use tale_sandbox_wire::names::SessionId;

/// Why a pin was not changed everywhere.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PinError {
    /// The session has no compute, or cannot be judged.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The daemon or the durable record did not acknowledge; the session is protected until they do.
    #[error("the pin could not be delivered everywhere: {0}")]
    NotDelivered(String),
}

impl Spawner {
    /// Pins or unpins. Changes of one session follow each other.
    ///
    /// # Errors
    /// [`PinError`]; the last acknowledged pin stays visible, and nothing stops the session meanwhile.
    pub async fn pin(&self, session: &SessionId, pinned: bool) -> Result<(), PinError> {
        let (spawner, session) = (self.clone(), session.clone());
        // A change that has begun is brought to its end even when its caller goes away.
        let change = tokio::spawn(async move { spawner.pin_in_order(&session, pinned).await });
        change.await.unwrap_or(Err(PinError::Lookup(LookupError::Unavailable)))
    }

    async fn pin_in_order(&self, session: &SessionId, pinned: bool) -> Result<(), PinError> {
        let target = self.target(session).await?;
        let incarnation = target.incarnation;
        let order = self.with_incarnation(session, incarnation, |entry| entry.pin_order.clone());
        let order = order.ok_or(LookupError::NotFound)?;
        let _turn = order.lock().await;
        self.with_incarnation(session, incarnation, |entry| entry.pin_pending = true).ok_or(LookupError::NotFound)?;
        match self.0.daemons.pin(&target, pinned).await {
            Ok(()) => {}
            Err(DaemonError::Reclaiming) => {
                self.with_incarnation(session, incarnation, |entry| entry.pin_pending = false);
                return Err(self.judge(&target, &DaemonError::Reclaiming).await.into());
            }
            Err(error) => return Err(PinError::NotDelivered(error.to_string())),
        }
        if let Err(error) = self.0.backend.set_pin(session, incarnation, pinned).await {
            return Err(PinError::NotDelivered(error.to_string()));
        }
        self.pin_acknowledged(session, incarnation, pinned);
        Ok(())
    }

    /// Daemon and record agree.
    pub(super) fn pin_acknowledged(&self, session: &SessionId, incarnation: i64, pinned: bool) {
        let now_ms = self.now_ms();
        self.with_incarnation(session, incarnation, |entry| {
            if entry.pinned && !pinned {
                entry.lifetime_from_ms = now_ms;
            }
            entry.pinned = pinned;
            entry.pin_pending = false;
        });
    }
}
