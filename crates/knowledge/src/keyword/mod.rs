//! The keyword leg: a BM25 index of our own, derived from the corpus (SRCH-5).
//!
//! **Truth** is `private_knowledge.chunks`. Whoever changes passages logs it in the same transaction
//! ([`log_changes`]); every process that searches keeps an index per organization under
//! `<data folder>/search/` and follows the log. An index is opened at the first search or change and
//! closed when many others were used since; it may be deleted at any time and is then built anew.
//!
//! **Nothing is lost, nothing is applied in halves.** A follower's checkpoint is a database snapshot:
//! it asks for entries which that snapshot did not see, so commit order does not matter. Entries name
//! passages and the follower reads their current rows, so applying one twice changes nothing.
//! Checkpoint and entries are one tantivy commit.
//!
//! **Costs.** An open index maps its files and holds a few hundred kilobytes; at most [`MAX_OPEN`]
//! are open. A writer lives only while changes are applied (at most about 45 MB, one at a time, plus
//! one while an index is built), and rounds of one organization begin at least [`PACE`] apart: what
//! many files add in a second becomes one segment instead of many that must be merged again. Waiting costs one small statement a second while any index is open.
//! A question of one to eight words takes about 0.3 ms over 100,000 passages: its rare words decide,
//! block-max pruning skips most matches of the others (`bench/search.md`).

mod analysis;
mod disk;
mod entry;
mod error;
mod files;
mod language;
mod log;
mod organization;
mod query;
mod repair;
mod schema;
mod view;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use error::KeywordError;
pub use log::{Change, log_changes};
pub use query::Found;
pub use repair::RepairPolicy;
pub(crate) use schema::Passage;

use crate::corpora::{Corpora, CorpusPool};
use crate::store::keyword as store;
use files::State;
use organization::{Organization, Shared};
use repair::Repair;

/// Indexes that one process keeps open.
pub const MAX_OPEN: usize = 64;
/// Shortest time between the beginnings of two rounds of changes to one index.
const PACE: Duration = Duration::from_millis(1_000);
/// How often the log is looked at when no notification came.
const POLL: Duration = Duration::from_secs(1);
/// Days for which the log is kept. A follower that was away longer builds anew.
pub(crate) const LOG_DAYS: i32 = 7;
/// How often old entries are removed, and folders of organizations that are no more.
const TRIM: Duration = Duration::from_secs(3_600);
/// Where writers announce that an organization's log has new entries.
const CHANNEL: &str = "tale_keyword";

/// What a [`Keyword`] is made of.
#[derive(Debug)]
pub struct KeywordParts {
    /// The operational database, which knows the organizations and keeps the record of repairs.
    pub app: PgPool,
    /// The corpus databases.
    pub corpora: Corpora,
    /// The indexes are kept in a folder `search` of this one.
    pub data_dir: PathBuf,
    /// The time of records.
    pub clock: SharedClock,
    /// What is done about damage.
    pub repair: RepairPolicy,
}

/// The keyword indexes of this process.
#[derive(Clone)]
pub struct Keyword {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    corpora: Corpora,
    shared: Arc<Shared>,
    open: Mutex<Open>,
    tasks: TaskTracker,
    /// Cancelled: rounds in the background end where they are and are made again at the next start.
    stop: CancellationToken,
}

#[derive(Default)]
struct Open {
    /// Organization and when it was last used, in uses.
    organizations: HashMap<OrgId, (Arc<Organization>, u64)>,
    uses: u64,
}

impl std::fmt::Debug for Keyword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyword").field("folder", &self.inner.folder).finish_non_exhaustive()
    }
}

impl Keyword {
    /// Indexes of the corpora `parts.corpora`, kept below `parts.data_dir/search`. Nothing is opened
    /// yet.
    #[must_use]
    pub fn new(parts: KeywordParts) -> Self {
        if !parts.repair.enabled {
            tracing::warn!(
                "KNOWLEDGE_INDEX_REPAIR_DISABLED is set: damaged keyword indexes are neither noticed nor repaired"
            );
        }
        Self {
            inner: Arc::new(Inner {
                folder: parts.data_dir.join("search"),
                corpora: parts.corpora,
                shared: Arc::new(Shared {
                    writing: Semaphore::new(1),
                    building: Semaphore::new(1),
                    repair: Repair { app: parts.app, clock: parts.clock, policy: parts.repair },
                }),
                open: Mutex::default(),
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
            }),
        }
    }

    /// Follows the log until `stop`: woken by notifications, with polling as the truth. Run one per
    /// process that searches. Without it searches still work and see what [`Keyword::catch_up`] did.
    pub async fn run(&self, stop: CancellationToken) {
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut trim = tokio::time::interval(TRIM);
        let mut listener = ChannelListener::new(self.inner.corpora.deployment().pool(), &[CHANNEL]);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = poll.tick() => self.follow_open().await,
                _ = trim.tick() => {
                    if let Err(error) = self.trim_log().await {
                        tracing::warn!(%error, "the keyword log could not be trimmed; tried again in an hour");
                    }
                    if let Err(error) = self.sweep_folders().await {
                        tracing::warn!(error = %crate::indexing::chain(&error), "folders of keyword indexes could not be swept; tried again in an hour");
                    }
                }
                event = listener.next() => match event {
                    ChannelEvent::Resync => self.follow_open().await,
                    ChannelEvent::Notification { payload, .. } => {
                        if let Ok(org) = payload.parse() {
                            self.follow_in_deployment(org);
                        }
                    }
                },
            }
        }
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// The `pool` best passages of `org` for `query`: of the library, and of the chat uploads `files`.
    /// Any text is a valid query.
    ///
    /// # Errors
    /// [`KeywordError::Building`] while the index cannot serve; faults of its files or of the database.
    pub async fn search(
        &self,
        org: OrgId,
        corpus: &CorpusPool,
        query: &str,
        files: &[Uuid],
        pool: usize,
    ) -> Result<Vec<Found>, KeywordError> {
        let organization = self.organization(org, corpus).await?;
        if organization.note_search() && organization.view().is_some() {
            // it may lag as far behind as it was left alone
            let mut rounds = organization.rounds();
            self.follow(&organization);
            let _ = tokio::time::timeout(organization::PATIENCE, rounds.changed()).await;
        }
        let check = self.inner.shared.repair.policy.enabled;
        let mut again = check;
        loop {
            let view = match organization.view() {
                Some(view) => view,
                None => {
                    self.follow(&organization);
                    organization.serving().await?
                }
            };
            let (query, files, reading) = (query.to_owned(), files.to_vec(), Arc::clone(&view));
            let found = tokio::task::spawn_blocking(move || {
                let state = if check { reading.check() } else { State::Whole };
                match state {
                    State::Changed => Err(KeywordError::Damaged),
                    State::Whole | State::Missing => Ok((query::run(&reading, &query, &files, pool)?, state)),
                }
            });
            match found.await.unwrap_or_else(|error| Err(KeywordError::of_task(error))) {
                Ok((found, state)) => {
                    if state == State::Missing {
                        self.follow(&organization);
                    }
                    return Ok(found);
                }
                Err(error) if error.is_damage() => {
                    organization.retire(view.generation(), &crate::indexing::chain(&error));
                    self.follow(&organization);
                    if !std::mem::take(&mut again) {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings the index of `org` up to what is committed now.
    ///
    /// # Errors
    /// Faults of its files or of the database.
    pub async fn catch_up(&self, org: OrgId) -> Result<(), KeywordError> {
        let corpus = self.corpus_of(org).await?;
        self.organization(org, &corpus).await?.catch_up(&corpus).await
    }

    /// Builds the index of `org` anew; the present one serves until then.
    ///
    /// # Errors
    /// Faults of its files or of the database.
    pub async fn rebuild(&self, org: OrgId) -> Result<(), KeywordError> {
        let corpus = self.corpus_of(org).await?;
        self.organization(org, &corpus).await?.rebuild(&corpus).await
    }

    /// Removes entries of the log that are older than it is kept, in the deployment's database and in those of
    /// organizations that are open here; how many. Several processes may do so at once. Crosses
    /// organizations.
    ///
    /// # Errors
    /// Those of the deployment's database. One of an organization that fails is trimmed when it is opened.
    pub async fn trim_log(&self) -> Result<u64, KeywordError> {
        let mut trimmed = store::trim(self.inner.corpora.deployment().pool(), LOG_DAYS).await?;
        let own = self.inner.corpora.open_now();
        let own = own.iter().map(|corpus| store::trim(corpus.pool(), LOG_DAYS));
        for done in futures::future::join_all(own).await {
            trimmed += done.unwrap_or_default();
        }
        Ok(trimmed)
    }

    /// Removes the folders of organizations that are no more; how many. Several processes may do so at
    /// once. Crosses organizations.
    ///
    /// # Errors
    /// Those of the database; [`KeywordError::Folder`] when a folder cannot be removed.
    pub async fn sweep_folders(&self) -> Result<usize, KeywordError> {
        let folder = self.inner.folder.clone();
        // first the folders, then who is there: an organization is older than its folder
        let found = tokio::task::spawn_blocking(move || repair::folders(&folder));
        let folders = found.await.map_err(KeywordError::of_task)??;
        let known = store::organizations(&self.inner.shared.repair.app, &folders).await?;
        let gone: Vec<OrgId> = folders.into_iter().filter(|org| !known.contains(org)).collect();
        for org in &gone {
            self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).organizations.remove(org);
            let folder = self.inner.folder.join(org.to_string());
            let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder));
            match removed.await.map_err(KeywordError::of_task)? {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => tracing::info!(%org, "removed the keyword index of an organization that is no more"),
            }
        }
        Ok(gone.len())
    }

    async fn corpus_of(&self, org: OrgId) -> Result<CorpusPool, KeywordError> {
        self.inner.corpora.of(org).await.map_err(KeywordError::NoCorpus)
    }

    /// The open index of what `org` has in `corpus`, opened if need be; the least recently used one is
    /// closed for it, and so is the index of another database of the same organization.
    async fn organization(&self, org: OrgId, corpus: &CorpusPool) -> Result<Arc<Organization>, KeywordError> {
        let database = corpus.identity().await?;
        let mut open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let uses = open.uses;
        if let Some((organization, used)) = open.organizations.get_mut(&org)
            && organization.is_of(&database)
        {
            *used = uses;
            return Ok(Arc::clone(organization));
        }
        open.organizations.remove(&org);
        if open.organizations.len() >= MAX_OPEN {
            let oldest = open.organizations.iter().min_by_key(|(_, (_, used))| *used).map(|(org, _)| *org);
            if let Some(oldest) = oldest {
                open.organizations.remove(&oldest);
            }
        }
        let organization = Arc::new(Organization::new(
            org,
            self.inner.folder.join(org.to_string()),
            database,
            corpus.is_own(),
            Arc::clone(&self.inner.shared),
        ));
        open.organizations.insert(org, (Arc::clone(&organization), uses));
        Ok(organization)
    }

    /// Follows what `org` has in the deployment's database, whose log has new entries of it.
    fn follow_in_deployment(&self, org: OrgId) {
        let open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).organizations.get(&org).cloned();
        if open.is_some_and(|(organization, _)| organization.is_own() || organization.awaits_round()) {
            return;
        }
        let keyword = self.clone();
        let stop = self.inner.stop.clone();
        self.inner.tasks.spawn(stop.run_until_cancelled_owned(async move {
            if let Ok(corpus) = keyword.corpus_of(org).await
                && !corpus.is_own()
                && let Ok(organization) = keyword.organization(org, &corpus).await
            {
                keyword.follow(&organization);
            }
        }));
    }

    /// A round of `organization`, unless its passages are in another database by now.
    async fn round(&self, organization: &Organization) -> Result<(), KeywordError> {
        let asked = async {
            let corpus = self.corpus_of(organization.org()).await?;
            let database = corpus.identity().await?;
            Ok::<_, KeywordError>((corpus, database))
        };
        let (corpus, database) = asked.await.inspect_err(|_| organization.miss_round())?;
        if organization.is_of(&database) {
            return organization.catch_up(&corpus).await;
        }
        organization.miss_round();
        let mut open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.organizations.get(&organization.org()).is_some_and(|(open, _)| std::ptr::eq(&**open, organization)) {
            open.organizations.remove(&organization.org());
        }
        Ok(())
    }

    /// Catches up in the background.
    fn follow(&self, organization: &Arc<Organization>) {
        if !organization.claim_round() {
            return;
        }
        let (keyword, organization) = (self.clone(), Arc::clone(organization));
        let stop = self.inner.stop.clone();
        self.inner.tasks.spawn(stop.run_until_cancelled_owned(async move {
            tokio::time::sleep(organization.until_due()).await;
            match keyword.round(&organization).await {
                Ok(()) | Err(KeywordError::Building | KeywordError::Stopped) => {}
                // said already, by whoever looks after the databases
                Err(KeywordError::NoCorpus(_)) => {}
                Err(error) => {
                    let org = organization.org();
                    tracing::warn!(%org, error = %crate::indexing::chain(&error), "a keyword index could not follow; tried again in a second");
                }
            }
        }));
    }

    /// Looks which open indexes are behind and lets them catch up. Databases of organizations are asked
    /// one by one, each in a round of its own, and only while somebody searches there.
    async fn follow_open(&self) {
        let organizations: Vec<Arc<Organization>> = {
            let open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.organizations.values().map(|(organization, _)| Arc::clone(organization)).collect()
        };
        let (mut orgs, mut since) = (Vec::new(), Vec::new());
        for organization in &organizations {
            match organization.checkpoint() {
                _ if organization.is_own() => {
                    if organization.is_in_use() {
                        self.follow(organization);
                    }
                }
                Some(checkpoint) => {
                    orgs.push(organization.org());
                    since.push(checkpoint);
                }
                None => self.follow(organization),
            }
        }
        if orgs.is_empty() {
            return;
        }
        match store::behind(self.inner.corpora.deployment().pool(), &orgs, &since).await {
            Ok(behind) => {
                for organization in organizations.iter().filter(|organization| behind.contains(&organization.org())) {
                    self.follow(organization);
                }
            }
            Err(error) => tracing::debug!(%error, "the keyword log could not be read; tried again in a second"),
        }
    }
}
