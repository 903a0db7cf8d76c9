//! Following a run: its state, its output, its end.
//!
//! Whoever attends to a run wakes the followers in its own process. A run may be attended to elsewhere, so each process
//! looks at everything that is followed in it, twice a second in one statement however many follow, and wakes those
//! whose run has moved on; only they read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::Stream;
use tale_core::ids::{CodeRunId, UserId};
use tale_core::{Code, Problem};
use tokio::sync::Notify;

use crate::runs::{Owner, Run, RunEvent, RunState, not_found};
use crate::service::{Workshop, held};
use crate::store::output::{self, Piece};
use crate::store::runs;

/// Streams that one person may have open in one process.
pub const MAX_FOLLOWERS: usize = 32;

/// Pieces of output that a follower is given at once.
const PIECES: i64 = 32;
/// Time between two looks at everything that is followed.
const LOOK: Duration = Duration::from_millis(500);
/// How long a follower believes that it would have been woken.
const PATIENCE: Duration = Duration::from_secs(15);

/// What followers wait on.
#[derive(Debug, Default)]
pub(crate) struct News {
    runs: HashMap<CodeRunId, Weak<Notify>>,
    /// Somebody looks.
    is_watched: bool,
    people: HashMap<UserId, usize>,
}

/// One follower of a person, until this is dropped.
struct Place {
    workshop: Workshop,
    user: UserId,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = held(&self.workshop.0.news).people.entry(self.user) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Workshop {
    /// Follows a run: its state, its output after the event `since`, and its end. The stream ends with
    /// [`RunEvent::End`], or early when the run is forgotten meanwhile.
    ///
    /// # Errors
    /// `CODE_RUN_NOT_FOUND`; `RATE_LIMITED` for a person who follows [`MAX_FOLLOWERS`] already.
    pub async fn follow_run(
        &self,
        owner: Owner,
        id: CodeRunId,
        since: u64,
    ) -> Result<impl Stream<Item = RunEvent> + Send + use<>, Problem> {
        let first = Run::from(runs::find(&self.0.db, owner.org, owner.user, id).await?.ok_or_else(not_found)?);
        let place = self.place(owner.user)?;
        let follower = Follower {
            workshop: self.clone(),
            owner,
            id,
            since,
            said: None,
            ready: Vec::new(),
            over: false,
            _place: place,
        };
        Ok(futures::stream::unfold((follower, Some(first)), |(mut follower, first)| async move {
            if let Some(run) = first {
                follower.said = Some(mark(&run));
                return Some((RunEvent::State(Box::new(run)), (follower, None)));
            }
            follower.next().await.map(|event| (event, (follower, None)))
        }))
    }

    fn place(&self, user: UserId) -> Result<Place, Problem> {
        let mut news = held(&self.0.news);
        let count = news.people.entry(user).or_insert(0);
        if *count >= MAX_FOLLOWERS {
            let sentence =
                format!("You follow {MAX_FOLLOWERS} runs already. Close a page that shows one, then try again.");
            return Err(Problem::new(Code::RateLimited, sentence).retry_after(PATIENCE));
        }
        *count += 1;
        Ok(Place { workshop: self.clone(), user })
    }

    /// Tells followers in this process that there is more of `run`.
    pub(crate) fn tell(&self, run: CodeRunId) {
        if let Some(listeners) = held(&self.0.news).runs.get(&run).and_then(Weak::upgrade) {
            listeners.notify_waiters();
        }
    }

    /// What a follower of `run` waits on.
    fn listen(&self, run: CodeRunId) -> Arc<Notify> {
        let mut news = held(&self.0.news);
        let listeners = news.runs.get(&run).and_then(Weak::upgrade).unwrap_or_default();
        news.runs.insert(run, Arc::downgrade(&listeners));
        if !std::mem::replace(&mut news.is_watched, true) {
            tokio::spawn(watch(self.clone()));
        }
        listeners
    }

    /// What is followed here; nothing ends the watch.
    fn followed(&self) -> Vec<CodeRunId> {
        let mut news = held(&self.0.news);
        news.runs.retain(|_, listeners| listeners.strong_count() > 0);
        news.is_watched = !news.runs.is_empty();
        news.runs.keys().copied().collect()
    }
}

/// Wakes followers of runs that move on elsewhere, for as long as anybody follows.
async fn watch(workshop: Workshop) {
    let mut known: HashMap<CodeRunId, Option<String>> = HashMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let followed = workshop.followed();
        if followed.is_empty() {
            return;
        }
        let mut seen = match runs::marks(&workshop.0.db, &followed).await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::debug!(%error, "runs that are followed cannot be looked at now");
                continue;
            }
        };
        // One that is not there any more has moved on, too.
        let now: HashMap<_, _> = followed.into_iter().map(|run| (run, seen.remove(&run))).collect();
        for (run, mark) in &now {
            if known.get(run) != Some(mark) {
                workshop.tell(*run);
            }
        }
        known = now;
    }
}

/// What of a run a follower is told about.
type Mark = (RunState, Option<u64>, Option<u32>, Option<String>, bool);

fn mark(run: &Run) -> Mark {
    (run.state, run.position, run.host_position, run.reason.clone(), run.stopping)
}

struct Follower {
    workshop: Workshop,
    owner: Owner,
    id: CodeRunId,
    since: u64,
    said: Option<Mark>,
    /// Pieces that were read and not said yet, the last one first.
    ready: Vec<Piece>,
    over: bool,
    _place: Place,
}

impl Follower {
    async fn next(&mut self) -> Option<RunEvent> {
        loop {
            if let Some(piece) = self.ready.pop() {
                self.since = u64::try_from(piece.seq).unwrap_or(self.since);
                return Some(RunEvent::Output { seq: self.since, stream: piece.stream, bytes: piece.bytes });
            }
            if self.over {
                return None;
            }
            let news = self.workshop.listen(self.id);
            let told = news.notified();
            tokio::pin!(told);
            // Listening begins before anything is read, so nothing falls between.
            told.as_mut().enable();
            let patience = match self.look().await {
                // A database that is away delays; the reader's connection stays.
                Err(problem) => {
                    tracing::debug!(%problem, "a run cannot be looked at now");
                    LOOK
                }
                Ok(Some(event)) => return Some(event),
                Ok(None) if self.over || !self.ready.is_empty() => continue,
                Ok(None) => PATIENCE,
            };
            let _ = tokio::time::timeout(patience, told).await;
        }
    }

    /// Reads what is new. The run first: what it printed before its end is then there too.
    async fn look(&mut self) -> Result<Option<RunEvent>, Problem> {
        let db = &self.workshop.0.db;
        let Some(row) = runs::find(db, self.owner.org, self.owner.user, self.id).await? else {
            self.over = true;
            return Ok(None);
        };
        let run = Run::from(row);
        if run.last_seq > self.since {
            let since = i64::try_from(self.since).unwrap_or(i64::MAX);
            self.ready = output::after(db, self.owner.org, self.id, since, PIECES).await?;
            self.ready.reverse();
        }
        if !self.ready.is_empty() {
            return Ok(None);
        }
        if run.state.is_over() {
            self.over = true;
            return Ok(Some(RunEvent::End(Box::new(run))));
        }
        let mark = mark(&run);
        if self.said.as_ref() == Some(&mark) {
            return Ok(None);
        }
        self.said = Some(mark);
        Ok(Some(RunEvent::State(Box::new(run))))
    }
}
