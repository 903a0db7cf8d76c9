//! Who follows live updates in this process, and the one look at their sessions that serves them all.
//!
//! A stream must not outlive its session or membership for long (15 s, deployment acceptance 28). Each
//! stream asking by itself would be thousands of statements; here one statement every [`EVERY`] asks
//! for all of them. An open stream costs an entry in a map and a token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tale_core::ids::{OrgId, SessionId};
use tale_identity::Identity;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// Time until a look that something asks for, which is one for everything that asks until then.
const SOON: Duration = Duration::from_millis(100);

/// The open streams of this process. Cheap to clone.
#[derive(Clone, Default)]
pub struct Listeners {
    open: Arc<Mutex<Open>>,
    soon: Arc<Notify>,
}

#[derive(Default)]
struct Open {
    last: u64,
    streams: HashMap<u64, Stream>,
    /// Whether a task looks after them; it ends with the last stream.
    watched: bool,
}

struct Stream {
    session: SessionId,
    org: OrgId,
    ended: CancellationToken,
}

/// A stream's place. Dropping it leaves.
pub struct Listener {
    number: u64,
    ended: CancellationToken,
    listeners: Listeners,
}

impl Listener {
    /// Returns once the session or its membership is gone.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Asks for a look: the members of an organization changed, and somebody may have lost it.
    pub fn look_soon(&self) {
        self.listeners.soon.notify_one();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listeners.open().streams.remove(&self.number);
    }
}

impl Listeners {
    /// How many streams are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open().streams.len()
    }

    /// Takes a place.
    pub fn enter(&self, identity: &Identity, session: SessionId, org: OrgId) -> Listener {
        let ended = CancellationToken::new();
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.streams.insert(number, Stream { session, org, ended: ended.clone() });
        if !open.watched {
            open.watched = true;
            tokio::spawn(self.clone().watch(identity.clone()));
        }
        drop(open);
        Listener { number, ended, listeners: self.clone() }
    }

    /// Ends the streams whose session or membership is gone. A database that is away ends nothing.
    pub async fn look(&self, identity: &Identity) {
        let mut asked: Vec<(SessionId, OrgId)> =
            self.open().streams.values().map(|stream| (stream.session, stream.org)).collect();
        asked.sort_unstable_by_key(|(session, org)| (session.0, org.0));
        asked.dedup();
        match identity.standing(&asked).await {
            Ok(standing) => {
                for stream in self.open().streams.values() {
                    let pair = (stream.session, stream.org);
                    // Who came in after the question is asked for next time.
                    if asked.binary_search_by_key(&(pair.0.0, pair.1.0), |(session, org)| (session.0, org.0)).is_ok()
                        && !standing.contains(&pair)
                    {
                        stream.ended.cancel();
                    }
                }
            }
            Err(problem) => {
                tracing::debug!(code = problem.code.text(), "the sessions of live streams could not be looked at")
            }
        }
    }

    async fn watch(self, identity: Identity) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.soon.notified() => tokio::time::sleep(SOON).await,
            }
            {
                let mut open = self.open();
                if open.streams.is_empty() {
                    open.watched = false;
                    open.streams.shrink_to_fit();
                    return;
                }
            }
            self.look(&identity).await;
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
