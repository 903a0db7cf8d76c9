//! Hints: "this may have changed, read it again", from any process to every open browser.
//!
//! A change sends its hint with [`notify`] inside its own transaction, so a hint for something
//! that was rolled back does not exist. Each process runs one [`HintHub`]: one LISTEN connection,
//! fanned out to subscribers by organization. A subscriber that falls behind, and every subscriber
//! after a lost connection, gets [`HintEvent::Resync`] instead of what it missed.
//!
//! Growth: one connection per process, one bounded ring of [`BACKLOG`] hints per organization that
//! somebody watches (about 4 KiB), a cursor per subscriber. Postgres takes commits with a
//! notification one after the other, so hints are for changes, not for the tokens of an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};
use tale_core::ids::{OrgId, UserId};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use crate::channels::{ChannelEvent, ChannelListener};

/// The notification channel that carries hints.
pub const CHANNEL: &str = "tale_hints";
/// Hints one subscriber may lag behind before it is told to resync.
pub const BACKLOG: usize = 64;

/// What kind of thing a hint is about. The wire name is part of the live-update contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Topic {
    /// The list of chats.
    Threads,
    /// One chat.
    Thread,
    /// Snapshots of chats that members read; which one is not said.
    SharedChats,
    /// The list of documents.
    Documents,
    /// One document.
    Document,
    /// The members of the organization.
    Members,
    /// The teams of the organization, and who is in them.
    Teams,
    /// The model providers.
    Providers,
    /// The embedding model and the state of the corpus under it.
    Embedding,
    /// Where files and passages are stored, and the move of files.
    Storage,
    /// API keys.
    ApiKeys,
    /// The organization itself.
    Organization,
    /// The organization's policies.
    Policies,
    /// One's own runs of code.
    CodeRuns,
    /// Sandboxes of the organization, their places and who waits for one.
    Sandboxes,
    /// A person's preferences.
    Preferences,
    /// What a person is told.
    Notifications,
}

/// One hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The organization whose members may hear of it.
    pub org: OrgId,
    /// What kind of thing changed.
    pub topic: Topic,
    /// Which one, when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The only person it concerns, when it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
}

impl Hint {
    /// A hint for everyone in `org`.
    #[must_use]
    pub fn new(org: OrgId, topic: Topic) -> Self {
        Self { org, topic, id: None, user: None }
    }

    /// Names the thing that changed.
    #[must_use]
    pub fn id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }

    /// Limits the hint to one person.
    #[must_use]
    pub fn user(mut self, user: UserId) -> Self {
        self.user = Some(user);
        self
    }
}

/// Sends `hint` when the surrounding transaction commits; at once when there is none.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn notify(conn: &mut PgConnection, hint: &Hint) -> Result<(), sqlx::Error> {
    let payload = serde_json::to_string(hint).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(conn).await?;
    Ok(())
}

/// Like [`notify`] for several hints, in one statement.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn notify_all(conn: &mut PgConnection, hints: &[Hint]) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload")
        .bind(CHANNEL)
        .bind(payloads(hints)?)
        .execute(conn)
        .await?;
    Ok(())
}

/// The payloads of several hints, for a statement that sends them on [`CHANNEL`] beside other work.
///
/// # Errors
/// When a hint cannot be written as JSON.
pub fn payloads(hints: &[Hint]) -> Result<Vec<String>, sqlx::Error> {
    hints.iter().map(serde_json::to_string).collect::<Result<_, _>>().map_err(|error| sqlx::Error::Encode(error.into()))
}

/// What a subscriber sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintEvent {
    /// Something changed.
    Hint(Hint),
    /// Hints may have been missed: read everything again.
    Resync,
}

type Rings = Mutex<HashMap<OrgId, broadcast::Sender<HintEvent>>>;

/// Fans the hints of one database out to the subscribers in this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct HintHub {
    rings: Arc<Rings>,
}

impl HintHub {
    /// A hub without subscribers. It delivers once [`HintHub::run`] is polled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens on the database behind `pool` and delivers until `stop`. `before` hears of each hint ahead of all
    /// subscribers: what this process holds in memory is forgotten there, or whoever follows the hint would be
    /// answered from it.
    pub async fn run(self, pool: PgPool, stop: CancellationToken, before: impl Fn(&Hint) + Send) {
        let mut listener = ChannelListener::new(&pool, &[CHANNEL]);
        while let Some(event) = stop.run_until_cancelled(listener.next()).await {
            match event {
                ChannelEvent::Resync => self.resync(),
                ChannelEvent::Notification { payload, .. } => match serde_json::from_str(&payload) {
                    Ok(hint) => {
                        before(&hint);
                        self.deliver(hint);
                    }
                    // A newer release may send topics that this one does not know.
                    Err(error) => warn!(error = %error, "a hint could not be read"),
                },
            }
        }
    }

    /// Hears of changes in `org` from now on.
    #[must_use]
    pub fn subscribe(&self, org: OrgId) -> HintSubscription {
        let receiver = self.lock().entry(org).or_insert_with(|| broadcast::channel(BACKLOG).0).subscribe();
        HintSubscription { org, receiver: Some(receiver), rings: Arc::clone(&self.rings) }
    }

    /// How many organizations somebody watches in this process.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.lock().len()
    }

    fn deliver(&self, hint: Hint) {
        if let Some(ring) = self.lock().get(&hint.org) {
            let _ = ring.send(HintEvent::Hint(hint));
        }
    }

    fn resync(&self) {
        for ring in self.lock().values() {
            let _ = ring.send(HintEvent::Resync);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<OrgId, broadcast::Sender<HintEvent>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One subscriber's place in its organization's ring. Dropping it unsubscribes.
#[derive(Debug)]
pub struct HintSubscription {
    org: OrgId,
    receiver: Option<broadcast::Receiver<HintEvent>>,
    rings: Arc<Rings>,
}

impl HintSubscription {
    /// The next event. Safe to drop at any await.
    pub async fn next(&mut self) -> HintEvent {
        let Some(receiver) = &mut self.receiver else { return std::future::pending().await };
        match receiver.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(_)) => HintEvent::Resync,
            // The ring lives as long as a subscriber does, so it cannot close under one.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// The next event that concerns `user`: theirs, everybody's and resyncs. Safe to drop at any
    /// await.
    pub async fn next_for(&mut self, user: UserId) -> HintEvent {
        loop {
            match self.next().await {
                HintEvent::Hint(hint) if hint.user.is_some_and(|only| only != user) => {}
                event => return event,
            }
        }
    }
}

impl Drop for HintSubscription {
    fn drop(&mut self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        self.receiver = None;
        if rings.get(&self.org).is_some_and(|ring| ring.receiver_count() == 0) {
            rings.remove(&self.org);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_subscriber_that_lags_is_told_to_resync_and_then_goes_on() {
        let hub = HintHub::new();
        let org = OrgId::new();
        let mut slow = hub.subscribe(org);
        for _ in 0..=BACKLOG {
            hub.deliver(Hint::new(org, Topic::Threads));
        }
        assert_eq!(slow.next().await, HintEvent::Resync);
        assert_eq!(slow.next().await, HintEvent::Hint(Hint::new(org, Topic::Threads)));
    }

    #[tokio::test]
    async fn hints_stay_inside_their_organization_and_with_their_person() {
        let hub = HintHub::new();
        let (org, other, anna, ben) = (OrgId::new(), OrgId::new(), UserId::new(), UserId::new());
        let mut subscription = hub.subscribe(org);
        hub.deliver(Hint::new(other, Topic::Threads));
        hub.deliver(Hint::new(org, Topic::Preferences).user(ben));
        hub.deliver(Hint::new(org, Topic::Preferences).user(anna));
        assert_eq!(subscription.next_for(anna).await, HintEvent::Hint(Hint::new(org, Topic::Preferences).user(anna)));
    }

    #[test]
    fn the_last_subscriber_takes_the_ring_along() {
        let hub = HintHub::new();
        let org = OrgId::new();
        let (one, two) = (hub.subscribe(org), hub.subscribe(org));
        drop(one);
        assert_eq!(hub.watched(), 1);
        drop(two);
        assert_eq!(hub.watched(), 0);
    }

    #[test]
    fn topics_keep_their_wire_names() {
        assert_eq!(serde_json::to_string(&Topic::ApiKeys).unwrap(), "\"apiKeys\"");
        let hint = Hint::new(OrgId::new(), Topic::Document).id(Uuid::nil());
        assert_eq!(serde_json::from_str::<Hint>(&serde_json::to_string(&hint).unwrap()).unwrap(), hint);
    }
}
