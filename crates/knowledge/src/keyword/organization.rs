//! The index of one organization while it is open in this process: serving, following, rebuilding.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tale_core::ids::OrgId;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::disk::{self, Build, Generation, Writer};
use super::view::View;
use super::{KeywordError, PACE};
use crate::indexing::chain;
use crate::store::keyword as store;

/// Passages read from the corpus at once: about half a megabyte of text.
const PAGE: i64 = 256;

/// Writers and builders of this process, each bounded to one: a writer costs about 30 MB while it lives.
pub(crate) struct Permits {
    pub(crate) writing: Semaphore,
    pub(crate) building: Semaphore,
}

struct State {
    generation: Option<Arc<Generation>>,
    /// Snapshot up to which the serving view is complete.
    checkpoint: String,
    /// When the latest round that changed something began.
    changed: Option<Instant>,
}

/// One organization's open index.
pub(crate) struct Organization {
    org: OrgId,
    folder: PathBuf,
    corpus: PgPool,
    permits: Arc<Permits>,
    /// What queries read; `None` while there is nothing to serve.
    view: watch::Sender<Option<Arc<View>>>,
    state: Mutex<State>,
    /// Held by whoever changes the index, so that rounds of one organization do not overlap.
    work: tokio::sync::Mutex<()>,
    /// A round waits to start; it will see everything committed until then.
    awaited: AtomicBool,
}

impl Organization {
    pub(crate) fn new(org: OrgId, folder: PathBuf, corpus: PgPool, permits: Arc<Permits>) -> Self {
        Self {
            org,
            folder,
            corpus,
            permits,
            view: watch::Sender::new(None),
            state: Mutex::new(State { generation: None, checkpoint: String::new(), changed: None }),
            work: tokio::sync::Mutex::new(()),
            awaited: AtomicBool::new(false),
        }
    }

    pub(crate) fn org(&self) -> OrgId {
        self.org
    }

    /// The serving view, if there is one.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.view.borrow().clone()
    }

    /// The checkpoint of the serving view.
    pub(crate) fn checkpoint(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation.is_some().then(|| state.checkpoint.clone())
    }

    /// Waits until something serves, at most `patience`.
    pub(crate) async fn serving(&self, patience: Duration) -> Result<Arc<View>, KeywordError> {
        let mut views = self.view.subscribe();
        let ready = tokio::time::timeout(patience, views.wait_for(Option::is_some)).await;
        match ready {
            Ok(Ok(view)) => view.clone().ok_or(KeywordError::Building),
            _ => Err(KeywordError::Building),
        }
    }

    /// Brings the index up to what is committed now: opens it, applies the log, or builds it when
    /// there is none that the log can bridge to.
    pub(crate) async fn catch_up(&self) -> Result<(), KeywordError> {
        let _work = self.work.lock().await;
        self.awaited.store(false, Ordering::SeqCst);
        self.open().await?;
        for _ in 0..2 {
            let Some((generation, checkpoint)) = self.serving_state() else {
                return self.build().await;
            };
            if self.is_gone(&generation).await? {
                tracing::warn!(org = %self.org, "the files of a keyword index are gone; it is built anew");
                return self.build().await;
            }
            let window = store::window(&self.corpus, self.org, &checkpoint).await?;
            if window.lost {
                tracing::info!(org = %self.org, "the keyword log does not reach back far enough; the index is built anew");
                return self.build().await;
            }
            if window.entries.is_empty() {
                self.advance(window.snapshot);
                return Ok(());
            }
            match self.apply(&generation, window).await {
                Ok(true) => return Ok(()),
                // another process applies: take over what it has committed and look again
                Ok(false) => self.adopt(&generation).await?,
                Err(error @ (KeywordError::Index(_) | KeywordError::Damaged)) => {
                    tracing::warn!(org = %self.org, error = %chain(&error), "a keyword index is damaged and is built anew");
                    self.retire();
                    return self.build().await;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// How long the next background round waits: the one before began too little ago.
    pub(crate) fn until_due(&self) -> Duration {
        let changed = self.state.lock().unwrap_or_else(PoisonError::into_inner).changed;
        changed.map_or(Duration::ZERO, |changed| PACE.saturating_sub(changed.elapsed()))
    }

    /// Claims the next background round. False when one waits to start already.
    pub(crate) fn claim_round(&self) -> bool {
        !self.awaited.swap(true, Ordering::SeqCst)
    }

    /// Builds the index anew while the present one, if it is sound, goes on serving.
    pub(crate) async fn rebuild(&self) -> Result<(), KeywordError> {
        let _work = self.work.lock().await;
        self.open().await?;
        self.build().await
    }

    /// A fault while reading: the files are not to be trusted any more, by no process.
    pub(crate) fn retire(&self) {
        disk::disown(&self.folder);
        self.view.send_replace(None);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation = None;
        state.checkpoint.clear();
    }

    fn serving_state(&self) -> Option<(Arc<Generation>, String)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation.clone().map(|generation| (generation, state.checkpoint.clone()))
    }

    fn advance(&self, checkpoint: String) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).checkpoint = checkpoint;
    }

    fn serve(&self, generation: Arc<Generation>, view: Arc<View>, checkpoint: String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation = Some(generation);
        state.checkpoint = checkpoint;
        self.view.send_replace(Some(view));
    }

    /// Opens the current generation unless it is open.
    async fn open(&self) -> Result<(), KeywordError> {
        let open = self.serving_state().map(|(generation, _)| generation);
        let folder = self.folder.clone();
        let found = blocking(move || {
            if open.is_some_and(|generation| !generation.is_replaced(&folder)) {
                return Ok(None);
            }
            let Some((generation, checkpoint)) = Generation::open_current(&folder) else { return Ok(None) };
            let view = generation.view()?;
            Ok(Some((generation, view, checkpoint)))
        })
        .await;
        match found {
            Ok(Some((generation, view, checkpoint))) => self.serve(Arc::new(generation), view, checkpoint),
            Ok(None) => {}
            Err(error @ (KeywordError::Index(_) | KeywordError::Damaged)) => {
                tracing::warn!(org = %self.org, error = %chain(&error), "a keyword index cannot be read and is built anew");
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    async fn is_gone(&self, generation: &Arc<Generation>) -> Result<bool, KeywordError> {
        let (generation, folder) = (Arc::clone(generation), self.folder.clone());
        blocking(move || Ok(generation.is_gone(&folder))).await
    }

    /// Applies a window. False when another process holds the index's writer.
    async fn apply(&self, generation: &Arc<Generation>, window: store::Window) -> Result<bool, KeywordError> {
        let _permit = self.permits.writing.acquire().await.map_err(|_| KeywordError::Stopped)?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).changed = Some(Instant::now());
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
            writer = self.put_file(writer, entry.file_id, first, last).await?;
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

    async fn put_file(&self, mut writer: Writer, file: Uuid, first: i32, last: i32) -> Result<Writer, KeywordError> {
        let mut from = first;
        loop {
            let page = store::passages_of_file(&self.corpus, self.org, file, from, last, PAGE).await?;
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
            None => self.retire(),
        }
        Ok(())
    }

    /// Reads the whole corpus of the organization into a new generation and serves it.
    async fn build(&self) -> Result<(), KeywordError> {
        let _permit = self.permits.building.acquire().await.map_err(|_| KeywordError::Stopped)?;
        let folder = self.folder.clone();
        let Some(mut build) = blocking(move || Build::start(&folder)).await? else {
            // another process builds into the same folder; the next round finds its result
            return Err(KeywordError::Building);
        };
        // first the checkpoint, then the passages: what changes in between is in the log
        let snapshot = store::snapshot(&self.corpus).await?;
        let (mut file, mut ordinal) = (Uuid::nil(), -1);
        let mut passages = 0_usize;
        loop {
            let page = store::passages_after(&self.corpus, self.org, file, ordinal, PAGE).await?;
            let Some(end) = page.last() else { break };
            (file, ordinal) = (end.file_id, end.ordinal);
            passages += page.len();
            build = blocking(move || {
                build.add(&page)?;
                Ok(build)
            })
            .await?;
        }
        let publishing = snapshot.clone();
        let folder = self.folder.clone();
        let opened = blocking(move || {
            build.publish(&publishing)?;
            let Some((generation, checkpoint)) = Generation::open_current(&folder) else {
                return Err(KeywordError::Building);
            };
            let view = generation.view()?;
            Ok((generation, view, checkpoint))
        })
        .await?;
        let (generation, view, checkpoint) = opened;
        tracing::info!(org = %self.org, passages, "the keyword index was built");
        self.serve(Arc::new(generation), view, checkpoint);
        Ok(())
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
