//! The index of one organization while it is open in this process: serving, following, rebuilding.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tale_core::ids::OrgId;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::disk::{self, Build, Generation, Writer};
use super::files;
use super::repair::{self, Repair, Step};
use super::view::View;
use super::{KeywordError, PACE};
use crate::corpora::CorpusPool;
use crate::indexing::chain;
use crate::store::keyword as store;

/// Passages read from the corpus at once: about half a megabyte of text.
const PAGE: i64 = 256;

/// How long a search waits for an index that is being opened or built for the first time.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_500);
/// How long it waits for the repair of a small one.
const REPAIR_PATIENCE: Duration = Duration::from_secs(20);
/// Repairs of one index, each less than [`REPAIRS_IN`] after the one before, that are made at once.
const REPAIRS: u32 = 8;
/// After this time without a repair they are counted anew.
const REPAIRS_IN: Duration = Duration::from_secs(10 * 60);
/// How often a process looks whether another one has finished the build that it waits for, and for how
/// long in one round.
const BUILD_LOOK: Duration = Duration::from_millis(100);
const BUILD_PATIENCE: Duration = Duration::from_secs(10);
/// The failures in a row that an outage of the database counts as: it is asked every four seconds.
const OUTAGE: u32 = 2;
/// An index of a database of the organization's own is followed for this long after a search.
const IN_USE: Duration = Duration::from_secs(5 * 60);
/// A search of such an index that was last followed longer ago waits for a round.
const FRESH: Duration = Duration::from_secs(3);
/// Longest time between two rounds that fail.
const LONGEST_RETRY: Duration = Duration::from_secs(5 * 60);

/// What the indexes of this process share: one writer and one builder at a time (a writer costs about
/// 30 MB while it lives) and what is done about damage.
pub(crate) struct Shared {
    pub(crate) writing: Semaphore,
    pub(crate) building: Semaphore,
    pub(crate) repair: Repair,
}

#[derive(Default)]
struct State {
    generation: Option<Arc<Generation>>,
    /// Snapshot up to which the serving view is complete.
    checkpoint: String,
    /// When the latest round that succeeded ended.
    followed: Option<Instant>,
    /// When a search last read it.
    searched: Option<Instant>,
    /// When the latest round that changed something began.
    changed: Option<Instant>,
    /// What is wrong with the files, until they are built anew.
    damage: Option<String>,
    /// A repair is under way, and whether searches wait for it.
    repairing: Option<bool>,
    /// How many repairs followed closely on each other, and when the last one began.
    repairs: (u32, Option<Instant>),
    /// Rounds that failed one after the other, and when the last one did.
    failures: (u32, Option<Instant>),
    /// The latest round did not reach the database.
    away: bool,
}

/// One organization's open index.
pub(crate) struct Organization {
    org: OrgId,
    folder: PathBuf,
    /// The database that it is the index of.
    database: Arc<str>,
    /// Whether that is one that the organization named: such a one is asked while it is in use only.
    own: bool,
    shared: Arc<Shared>,
    /// What queries read; `None` while there is nothing to serve.
    view: watch::Sender<Option<Arc<View>>>,
    state: Mutex<State>,
    /// Held by whoever changes the index, so that rounds of one organization do not overlap.
    work: tokio::sync::Mutex<()>,
    /// Counts the rounds that ended.
    rounds: watch::Sender<u64>,
    /// A round waits to start; it will see everything committed until then.
    awaited: AtomicBool,
}

impl Organization {
    pub(crate) fn new(org: OrgId, folder: PathBuf, database: Arc<str>, own: bool, shared: Arc<Shared>) -> Self {
        Self {
            org,
            folder,
            database,
            own,
            shared,
            view: watch::Sender::new(None),
            state: Mutex::default(),
            work: tokio::sync::Mutex::new(()),
            rounds: watch::Sender::new(0),
            awaited: AtomicBool::new(false),
        }
    }

    pub(crate) fn org(&self) -> OrgId {
        self.org
    }

    /// Whether it is the index of `database`.
    pub(crate) fn is_of(&self, database: &str) -> bool {
        *self.database == *database
    }

    /// Whether its database is one that the organization named.
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// Whether it was searched not long ago.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state().searched.is_some_and(|searched| searched.elapsed() < IN_USE)
    }

    /// Notes a search, and says whether it must wait for a round: nobody followed for a while.
    pub(crate) fn note_search(&self) -> bool {
        let mut state = self.state();
        state.searched = Some(Instant::now());
        self.own && state.followed.is_none_or(|followed| followed.elapsed() > FRESH)
    }

    /// The number of rounds that ended, to wait for the next one.
    pub(crate) fn rounds(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// The serving view, if there is one.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.view.borrow().clone()
    }

    /// The checkpoint of the serving view.
    pub(crate) fn checkpoint(&self) -> Option<String> {
        let state = self.state();
        state.generation.is_some().then(|| state.checkpoint.clone())
    }

    /// Waits until something serves, as long as a search may.
    pub(crate) async fn serving(&self) -> Result<Arc<View>, KeywordError> {
        let (mut views, mut rounds) = (self.view.subscribe(), self.rounds.subscribe());
        let begun = Instant::now();
        loop {
            let patience = match self.state().repairing {
                Some(true) => REPAIR_PATIENCE,
                Some(false) => Duration::ZERO,
                None => PATIENCE,
            };
            let waited = tokio::select! {
                biased;
                waited = tokio::time::timeout_at(begun + patience, views.wait_for(Option::is_some)) => waited,
                _ = rounds.changed() => {
                    if self.state().away {
                        return Err(KeywordError::Away);
                    }
                    continue;
                }
            };
            match waited {
                Ok(Ok(view)) => return view.clone().ok_or(KeywordError::Building),
                Err(_) if self.state().repairing == Some(true) && begun.elapsed() < REPAIR_PATIENCE => {}
                _ if self.state().away => return Err(KeywordError::Away),
                _ => return Err(KeywordError::Building),
            }
        }
    }

    /// Brings the index up to what is committed now: opens it, applies the log, or builds it when
    /// there is none that the log can bridge to.
    pub(crate) async fn catch_up(&self, corpus: &CorpusPool) -> Result<(), KeywordError> {
        let _work = self.work.lock().await;
        self.awaited.store(false, Ordering::SeqCst);
        let done = self.round(corpus).await;
        let mut state = self.state();
        state.failures = match &done {
            Err(KeywordError::Building | KeywordError::Stopped) => return done,
            Ok(()) => (0, None),
            // it costs little to ask once more, and nobody says when it is back
            Err(error) if error.is_outage() => (OUTAGE, Some(Instant::now())),
            Err(_) => (state.failures.0.saturating_add(1), Some(Instant::now())),
        };
        if done.is_ok() {
            state.followed = Some(Instant::now());
        }
        state.away = done.as_ref().is_err_and(KeywordError::is_outage);
        drop(state);
        self.rounds.send_modify(|rounds| *rounds += 1);
        done
    }

    async fn round(&self, corpus: &CorpusPool) -> Result<(), KeywordError> {
        self.open().await?;
        for _ in 0..2 {
            let Some((generation, checkpoint)) = self.serving_state() else { return self.restore(corpus).await };
            if self.is_gone(&generation).await? {
                tracing::warn!(org = %self.org, "the files of a keyword index are gone; it is built anew");
                return self.build(corpus).await.map(drop);
            }
            let window = store::window(corpus.pool(), self.org, &checkpoint).await?;
            if window.lost {
                tracing::info!(org = %self.org, "the keyword log does not reach back far enough; the index is built anew");
                return self.build(corpus).await.map(drop);
            }
            let done = match self.look(&generation).await {
                Ok(()) if window.entries.is_empty() => {
                    self.advance(window.snapshot);
                    return Ok(());
                }
                Ok(()) => self.apply(corpus, &generation, window).await,
                Err(error) => Err(error),
            };
            match done {
                Ok(true) => return Ok(()),
                // another process applies: take over what it has committed and look again
                Ok(false) => self.adopt(&generation).await?,
                Err(error) if error.is_damage() => {
                    self.retire(generation.name(), &chain(&error));
                    return self.restore(corpus).await;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// Looks whether the files are as they were written, and opens them again when some have no name
    /// any more: what is missing shows then.
    async fn look(&self, generation: &Arc<Generation>) -> Result<(), KeywordError> {
        if !self.shared.repair.policy.enabled {
            return Ok(());
        }
        let looking = Arc::clone(generation);
        let view = blocking(move || match looking.check() {
            files::State::Whole => Ok(None),
            files::State::Changed => Err(KeywordError::Damaged),
            files::State::Missing => looking.view().map(Some),
        })
        .await?;
        if let Some(view) = view {
            self.view.send_replace(Some(view));
        }
        Ok(())
    }

    /// Builds what there is none of: a first index, or one in the place of damaged files.
    async fn restore(&self, corpus: &CorpusPool) -> Result<(), KeywordError> {
        let Some(reason) = self.state().damage.clone() else {
            return self.build(corpus).await.map(drop);
        };
        let folder = self.folder.clone();
        let bytes = blocking(move || Ok(repair::size(&folder))).await?;
        let inline = bytes <= self.shared.repair.policy.inline_max_bytes;
        let before = {
            let mut state = self.state();
            let before = state.repairs;
            let (count, last) = before;
            let count = if last.is_some_and(|last| last.elapsed() < REPAIRS_IN) { count } else { 0 };
            if count >= REPAIRS {
                // something damages them again and again; search says meanwhile that the leg is missing
                return Err(KeywordError::Damaged);
            }
            state.repairs = (count + 1, Some(Instant::now()));
            state.repairing = Some(inline);
            before
        };
        tracing::warn!(org = %self.org, bytes, inline, reason, "a keyword index is damaged and is built anew");
        if !inline {
            self.shared.repair.record(self.org, Step::Scheduled, bytes, &reason).await;
        }
        let built = self.build(corpus).await;
        let first_failure = {
            let mut state = self.state();
            state.repairing = None;
            match built {
                Ok(ours) => {
                    state.damage = None;
                    if !ours {
                        state.repairs = before;
                    }
                }
                Err(KeywordError::Building) => state.repairs = before,
                Err(_) => {}
            }
            state.failures.0 == 0
        };
        match &built {
            Ok(true) => self.shared.repair.record(self.org, Step::Repaired, bytes, &reason).await,
            Ok(false) | Err(KeywordError::Building | KeywordError::Stopped) => {}
            Err(error) if first_failure => {
                self.shared.repair.record(self.org, Step::Failed, bytes, &chain(error)).await;
            }
            Err(_) => {}
        }
        built.map(drop)
    }

    /// How long the next background round waits: the one before began too little ago, or failed.
    pub(crate) fn until_due(&self) -> Duration {
        let state = self.state();
        let pace = state.changed.map_or(Duration::ZERO, |changed| PACE.saturating_sub(changed.elapsed()));
        let (failures, last) = state.failures;
        let retry = last.map_or(Duration::ZERO, |last| {
            let pause = PACE.saturating_mul(1 << failures.min(16)).min(LONGEST_RETRY);
            pause.saturating_sub(last.elapsed())
        });
        pace.max(retry)
    }

    /// The claimed round could not begin, because the database is away.
    pub(crate) fn miss_round(&self) {
        {
            let mut state = self.state();
            state.failures = (OUTAGE, Some(Instant::now()));
            state.away = true;
        }
        self.awaited.store(false, Ordering::SeqCst);
        self.rounds.send_modify(|rounds| *rounds += 1);
    }

    /// Whether a round waits to start.
    pub(crate) fn awaits_round(&self) -> bool {
        self.awaited.load(Ordering::SeqCst)
    }

    /// Claims the next background round. False when one waits to start already.
    pub(crate) fn claim_round(&self) -> bool {
        !self.awaited.swap(true, Ordering::SeqCst)
    }

    /// Builds the index anew while the present one, if it is sound, goes on serving.
    pub(crate) async fn rebuild(&self, corpus: &CorpusPool) -> Result<(), KeywordError> {
        let _work = self.work.lock().await;
        self.open().await?;
        self.build(corpus).await.map(drop)
    }

    /// A fault while reading the generation `name`: its files are not to be trusted any more, by no
    /// process. Nothing happens when another one serves already.
    pub(crate) fn retire(&self, name: &str, reason: &str) {
        let mut state = self.state();
        if state.generation.as_ref().is_none_or(|generation| generation.name() != name) {
            return;
        }
        self.put_aside(&mut state, Some(name), reason);
    }

    /// Without repair the files stay as they are, and so does what searches say about them.
    fn put_aside(&self, state: &mut State, name: Option<&str>, reason: &str) {
        if self.shared.repair.policy.enabled {
            disk::disown(&self.folder, name);
            state.damage = Some(reason.to_owned());
        }
        self.view.send_replace(None);
        state.generation = None;
        state.checkpoint.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serving_state(&self) -> Option<(Arc<Generation>, String)> {
        let state = self.state();
        state.generation.clone().map(|generation| (generation, state.checkpoint.clone()))
    }

    fn serving_name(&self) -> Option<String> {
        self.state().generation.as_ref().map(|generation| generation.name().to_owned())
    }

    fn advance(&self, checkpoint: String) {
        self.state().checkpoint = checkpoint;
    }

    fn serve(&self, generation: Arc<Generation>, view: Arc<View>, checkpoint: String) {
        let mut state = self.state();
        state.generation = Some(generation);
        state.checkpoint = checkpoint;
        self.view.send_replace(Some(view));
    }

    /// Opens the current generation unless it is open.
    async fn open(&self) -> Result<(), KeywordError> {
        let verify = self.shared.repair.policy.enabled;
        loop {
            let (name, error) = match self.current().await {
                Ok(None) => return Ok(()),
                Ok(current) if current == self.serving_name() => return Ok(()),
                Ok(Some(current)) => match self.open_named(current.clone(), verify).await {
                    Ok(()) => return Ok(()),
                    Err(error) => (Some(current), error),
                },
                Err(error) => (None, error),
            };
            // another process put one in its place and removed this one under our hands
            if name.is_some() && self.current().await.is_ok_and(|newer| newer.is_some() && newer != name) {
                continue;
            }
            if !(error.is_damage() && verify) {
                return Err(error);
            }
            self.put_aside(&mut self.state(), name.as_deref(), &chain(&error));
            return Ok(());
        }
    }

    async fn current(&self) -> Result<Option<String>, KeywordError> {
        let folder = self.folder.clone();
        blocking(move || disk::current(&folder)).await
    }

    /// Serves the generation `name` unless it is of another version or another database.
    async fn open_named(&self, name: String, verify: bool) -> Result<(), KeywordError> {
        let (folder, database) = (self.folder.clone(), Arc::clone(&self.database));
        let found = blocking(move || {
            let Some((generation, checkpoint)) = Generation::open(&folder, name, &database, verify)? else {
                return Ok(None);
            };
            Ok(Some((generation.view()?, generation, checkpoint)))
        })
        .await?;
        if let Some((view, generation, checkpoint)) = found {
            self.serve(Arc::new(generation), view, checkpoint);
        }
        Ok(())
    }

    async fn is_gone(&self, generation: &Arc<Generation>) -> Result<bool, KeywordError> {
        let (generation, folder) = (Arc::clone(generation), self.folder.clone());
        blocking(move || Ok(generation.is_gone(&folder))).await
    }

    /// Applies a window. False when another process holds the index's writer.
    async fn apply(
        &self,
        corpus: &CorpusPool,
        generation: &Arc<Generation>,
        window: store::Window,
    ) -> Result<bool, KeywordError> {
        let _permit = self.shared.writing.acquire().await.map_err(|_| KeywordError::Stopped)?;
        self.state().changed = Some(Instant::now());
        let opening = Arc::clone(generation);
        let Some(mut writer) = blocking(move || opening.writer()).await? else { return Ok(false) };
        for entry in coalesce(&window.entries) {
            let (first, last) = match entry.range {
                Some(range) => range,
                None => {
                    writer.remove_file(entry.file_id);
                    (0, i32::MAX)
                }
            };
            writer = self.put_file(corpus, writer, entry.file_id, first, last).await?;
        }
        let reading = Arc::clone(generation);
        let snapshot = window.snapshot.clone();
        let (writer, view) = blocking(move || {
            writer.commit(&snapshot)?;
            let view = reading.view()?;
            Ok((writer, view))
        })
        .await?;
        self.serve(Arc::clone(generation), view, window.snapshot);
        // merges, after the new passages are already found
        let reading = Arc::clone(generation);
        let view = blocking(move || {
            writer.finish()?;
            reading.view()
        })
        .await?;
        self.view.send_replace(Some(view));
        Ok(true)
    }

    async fn put_file(
        &self,
        corpus: &CorpusPool,
        mut writer: Writer,
        file: Uuid,
        first: i32,
        last: i32,
    ) -> Result<Writer, KeywordError> {
        let mut from = first;
        loop {
            let page = store::passages_of_file(corpus.pool(), self.org, file, from, last, PAGE).await?;
            let Some(end) = page.last().map(|passage| passage.ordinal) else { return Ok(writer) };
            writer = blocking(move || {
                page.iter().try_for_each(|passage| writer.put(passage))?;
                Ok(writer)
            })
            .await?;
            if end >= last {
                return Ok(writer);
            }
            from = end + 1;
        }
    }

    /// Takes over what another process committed to the same files.
    async fn adopt(&self, generation: &Arc<Generation>) -> Result<(), KeywordError> {
        let reading = Arc::clone(generation);
        let (view, checkpoint) = blocking(move || Ok((reading.view()?, reading.checkpoint()?))).await?;
        match checkpoint {
            Some(checkpoint) => self.serve(Arc::clone(generation), view, checkpoint),
            None => self.retire(generation.name(), "the index has no checkpoint"),
        }
        Ok(())
    }

    /// Reads the whole corpus of the organization into a new generation and serves it. False when
    /// another process did that meanwhile, and its generation serves.
    async fn build(&self, corpus: &CorpusPool) -> Result<bool, KeywordError> {
        let before = self.serving_name();
        let begun = Instant::now();
        let (mut build, _permit) = loop {
            let permit = self.shared.building.acquire().await.map_err(|_| KeywordError::Stopped)?;
            let (folder, database) = (self.folder.clone(), Arc::clone(&self.database));
            let build = blocking(move || Build::start(&folder, &database)).await?;
            // with the lock in hand: what is there now is not replaced by another process
            self.open().await?;
            let now = self.serving_name();
            if now.is_some() && now != before {
                return Ok(false);
            }
            if let Some(build) = build {
                break (build, permit);
            }
            drop(permit);
            if begun.elapsed() >= BUILD_PATIENCE {
                return Err(KeywordError::Building);
            }
            tokio::time::sleep(BUILD_LOOK).await;
        };
        // first the checkpoint, then the passages: what changes in between is in the log
        let snapshot = store::snapshot(corpus.pool()).await?;
        let (mut file, mut ordinal) = (Uuid::nil(), -1);
        let mut passages = 0_usize;
        loop {
            let page = store::passages_after(corpus.pool(), self.org, file, ordinal, PAGE).await?;
            let Some(end) = page.last() else { break };
            (file, ordinal) = (end.file_id, end.ordinal);
            passages += page.len();
            build = blocking(move || {
                build.add(&page)?;
                Ok(build)
            })
            .await?;
        }
        let name = blocking(move || build.publish(&snapshot)).await?;
        // just written by us: not verified
        self.open_named(name, false).await?;
        tracing::info!(org = %self.org, passages, "the keyword index was built");
        Ok(true)
    }
}

/// One entry per file where the whole file is to be read again, otherwise the slices as they are.
fn coalesce(entries: &[store::Entry]) -> Vec<store::Entry> {
    let whole: std::collections::HashSet<Uuid> =
        entries.iter().filter(|entry| entry.range.is_none()).map(|entry| entry.file_id).collect();
    let mut seen = std::collections::HashSet::new();
    entries
        .iter()
        .filter(|entry| {
            if whole.contains(&entry.file_id) {
                seen.insert((entry.file_id, None))
            } else {
                seen.insert((entry.file_id, entry.range))
            }
        })
        .map(|entry| if whole.contains(&entry.file_id) { store::Entry { range: None, ..*entry } } else { *entry })
        .collect()
}

/// Runs tantivy's blocking calls off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeywordError> + Send + 'static,
) -> Result<T, KeywordError> {
    tokio::task::spawn_blocking(work).await.map_err(KeywordError::of_task)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_swallows_its_slices() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let entry = |file_id, range| store::Entry { file_id, range };
        let entries = [
            entry(a, Some((0, 9))),
            entry(b, Some((0, 9))),
            entry(a, None),
            entry(b, Some((0, 9))),
            entry(b, Some((10, 19))),
        ];
        assert_eq!(coalesce(&entries), [entry(a, None), entry(b, Some((0, 9))), entry(b, Some((10, 19)))]);
    }
}
