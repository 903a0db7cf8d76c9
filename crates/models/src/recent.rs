//! Providers as they were a moment ago, so that a call of a model reads nothing.
//!
//! What one process has read of a provider is kept for [`MAX_AGE`] and forgotten at once when its
//! organization's providers or credentials change: here with the change, elsewhere with its
//! announcement. Nothing is kept while nobody listens to announcements ([`Models::follow`]), so a process
//! that cannot hear asks each time. Growth: [`MOST`] providers of a process, whatever is configured.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, Transaction};
use tale_core::ids::OrgId;
use tale_core::problem::Problem;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tale_db::hints::{self, Hint, Topic};

use crate::Models;
use crate::available::Loaded;

/// Changes of an organization's providers and credentials, by its id.
const CHANNEL: &str = "tale_models";

/// Oldest state of a provider that a call acts on, should an announcement be lost with the connection
/// that listens.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Providers that are kept.
const MOST: usize = 1_024;

/// What this process has read.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Kept>);

/// When a provider was read, and what was read.
type Read = (DateTime<Utc>, Arc<Loaded>);

#[derive(Default)]
struct Kept {
    following: bool,
    /// Counts what was forgotten, so that what was read before is not kept after it.
    forgotten: u64,
    orgs: HashMap<OrgId, HashMap<String, Read>>,
    len: usize,
}

/// Taken before reading, given back with what was read.
pub(crate) struct Ticket(u64, DateTime<Utc>);

impl Recent {
    pub(crate) fn get(&self, org: OrgId, slug: &str, now: DateTime<Utc>) -> Option<Arc<Loaded>> {
        let kept = self.kept();
        let (read, loaded) = kept.orgs.get(&org)?.get(slug)?;
        // A clock that was set back makes the age negative, which is no age to trust.
        (now - read).to_std().is_ok_and(|age| age < MAX_AGE).then(|| loaded.clone())
    }

    pub(crate) fn ticket(&self, now: DateTime<Utc>) -> Ticket {
        Ticket(self.kept().forgotten, now)
    }

    pub(crate) fn put(&self, org: OrgId, Ticket(forgotten, read): Ticket, loaded: Arc<Loaded>) {
        let mut kept = self.kept();
        if !kept.following || kept.forgotten != forgotten {
            return;
        }
        if kept.len >= MOST {
            kept.orgs.clear();
            kept.len = 0;
        }
        let slug = loaded.provider.slug.clone();
        if kept.orgs.entry(org).or_default().insert(slug, (read, loaded)).is_none() {
            kept.len += 1;
        }
    }

    pub(crate) fn forget(&self, org: OrgId) {
        let mut kept = self.kept();
        kept.forgotten += 1;
        if let Some(providers) = kept.orgs.remove(&org) {
            kept.len -= providers.len();
        }
    }

    /// Those of one name, of every organization.
    pub(crate) fn forget_provider(&self, slug: &str) {
        let mut kept = self.kept();
        kept.forgotten += 1;
        let gone: usize = kept.orgs.values_mut().map(|providers| usize::from(providers.remove(slug).is_some())).sum();
        kept.len -= gone;
    }

    fn clear(&self, following: bool) {
        let forgotten = self.kept().forgotten + 1;
        *self.kept() = Kept { following, forgotten, ..Kept::default() };
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps nothing any more once nobody listens.
struct Following<'a>(&'a Recent);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.clear(false);
    }
}

impl Models {
    /// Hears of changes by other processes for as long as it is polled. While it is, a call of a model
    /// finds in memory what was read of its provider shortly before.
    pub async fn follow(&self) {
        let recent = &self.inner.recent;
        let _following = Following(recent);
        let mut listener = ChannelListener::new(&self.inner.pool, &[CHANNEL]);
        loop {
            match listener.next().await {
                ChannelEvent::Resync => recent.clear(true),
                ChannelEvent::Notification { payload, .. } => match payload.parse() {
                    Ok(org) => recent.forget(org),
                    Err(_) => recent.clear(true),
                },
            }
        }
    }

    /// Reads the providers of `org` anew when they are next called.
    pub fn forget(&self, org: OrgId) {
        self.inner.recent.forget(org);
    }

    /// Commits a change of an organization's providers or credentials.
    pub(crate) async fn commit(&self, tx: Transaction<'_, Postgres>, org: OrgId) -> Result<(), Problem> {
        tx.commit().await?;
        self.inner.recent.forget(org);
        Ok(())
    }
}

/// Tells open browsers and every process that calls models.
pub(crate) async fn announce(conn: &mut PgConnection, org: OrgId) -> Result<(), Problem> {
    hints::notify(conn, &Hint::new(org, Topic::Providers)).await?;
    sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(org.to_string()).execute(conn).await?;
    Ok(())
}
