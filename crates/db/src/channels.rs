//! Listening on notification channels, through lost connections.
//!
//! A listener holds one connection of its own, outside every pool. Notifications sent while it is
//! disconnected are gone, so each new connection starts with [`ChannelEvent::Resync`]: whoever
//! listens re-reads what it follows. That makes "subscribe, then query" the natural order, and a
//! notification a mere wake-up whose loss costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tracing::{debug, warn};

/// First pause after a lost connection; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries to connect.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A connection silent for this long is asked whether it still lives.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What a listener reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelEvent {
    /// The connection is new: anything may have changed while nobody listened.
    Resync,
    /// Someone sent a notification in a transaction that has committed.
    Notification {
        /// The channel it was sent on.
        channel: String,
        /// Its text, possibly empty.
        payload: String,
    },
}

/// Listens on a fixed set of channels of one database. Growth: one connection, whatever the number
/// of channels.
#[derive(Debug)]
pub struct ChannelListener {
    pool: PgPool,
    channels: Vec<&'static str>,
    listener: Option<PgListener>,
    retry: Duration,
    live: Arc<AtomicBool>,
}

impl ChannelListener {
    /// A listener on `channels` of the database behind `pool`. It connects in [`Self::next`].
    #[must_use]
    pub fn new(pool: &PgPool, channels: &[&'static str]) -> Self {
        let options = pool.connect_options().as_ref().clone();
        let own = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(Duration::from_secs(5))
            .connect_lazy_with(options);
        Self { pool: own, channels: channels.to_vec(), listener: None, retry: RETRY_MIN, live: Arc::default() }
    }

    /// Whether there is a connection, as far as is known: `false` from the moment that it is found to be lost until
    /// [`ChannelEvent::Resync`] is reported.
    #[must_use]
    pub fn live(&self) -> Arc<AtomicBool> {
        self.live.clone()
    }

    /// The next event. The first one is always [`ChannelEvent::Resync`], reported once the
    /// channels are open. Waits as long as the database is away; never fails.
    ///
    /// Safe to drop at any await: a notification is either returned or still to come.
    pub async fn next(&mut self) -> ChannelEvent {
        loop {
            let Some(listener) = &mut self.listener else {
                match self.open().await {
                    Ok(listener) => {
                        self.listener = Some(listener);
                        self.live.store(true, Ordering::Release);
                        self.retry = RETRY_MIN;
                        return ChannelEvent::Resync;
                    }
                    Err(error) => {
                        if self.retry == RETRY_MIN {
                            warn!(event = "database.listen_fails", channels = ?self.channels, error = %error, "cannot listen for notifications, trying until it can; what they announce is noticed later");
                        }
                        let pause = self.retry;
                        self.retry = (pause * 2).min(RETRY_MAX);
                        tokio::time::sleep(pause).await;
                        continue;
                    }
                }
            };
            let lost = match tokio::time::timeout(KEEPALIVE, listener.try_recv()).await {
                Ok(Ok(Some(message))) => {
                    return ChannelEvent::Notification {
                        channel: message.channel().to_owned(),
                        payload: message.payload().to_owned(),
                    };
                }
                Ok(Ok(None)) => true,
                Ok(Err(error)) => {
                    debug!(error = %error, "the listening connection ended");
                    true
                }
                Err(_quiet) => sqlx::query("SELECT 1").execute(listener).await.is_err(),
            };
            if lost {
                self.listener = None;
                self.live.store(false, Ordering::Release);
            }
        }
    }

    async fn open(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen_all(self.channels.iter().copied()).await?;
        Ok(listener)
    }
}
