//! The worker: claims, runs, keeps leases alive, drains.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use sqlx::{Connection, PgPool};
use tale_core::ids::JobId;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, debug, error, info, info_span, warn};
use uuid::Uuid;

use crate::job::{EnqueueOptions, Failure, Job, JobError, enqueue};
use crate::lease::Lease;
use crate::registry::{self, Kind, Registry};
use crate::store::{self, Claim, Requeue};
use crate::{AWAY, HEARTBEAT, LEASE, POLL, RELEASE_GRACE};

/// Attempts that a dead worker may cost on top of a kind's own: a job that survives `kill -9` must
/// not be given up for it, one that kills its worker each time must.
const LOST_ALLOWANCE: u32 = 5;
/// How long a drain waits for running jobs unless told otherwise.
const DRAIN: Duration = Duration::from_secs(25);
/// Pause after the database refused a claim.
const FAULT_PAUSE: Duration = Duration::from_secs(1);
/// Shortest pause between two looks at an empty queue.
const SHORTEST_IDLE: Duration = Duration::from_millis(20);
/// How often a drain says what it waits for.
const DRAIN_REPORT: Duration = Duration::from_secs(5);

type Recurring = Arc<dyn Fn(PgPool) -> futures::future::BoxFuture<'static, Result<(), sqlx::Error>> + Send + Sync>;

/// Puts a [`Worker`] together.
pub struct WorkerBuilder {
    kinds: Registry,
    recurring: Vec<Recurring>,
    concurrency: usize,
    drain: Duration,
    heartbeat: Duration,
    holder: String,
    exclusive: bool,
}

impl WorkerBuilder {
    /// Teaches the worker a kind and gives it what the kind's jobs need.
    #[must_use]
    pub fn register<J: Job>(mut self, context: Arc<J::Context>) -> Self {
        self.kinds.insert(J::NAME, registry::kind::<J>(context));
        self
    }

    /// Enqueues `job` (of the deployment, not of an organization) whenever `period` has passed
    /// since the last time, whatever the number of workers; at once on a new database.
    #[must_use]
    pub fn every<J: Job + Clone>(mut self, period: Duration, job: J) -> Self {
        self.recurring.push(Arc::new(move |pool| {
            let job = job.clone();
            Box::pin(async move {
                let mut tx = pool.begin().await?;
                if store::take_turn(&mut tx, J::NAME, period).await? {
                    enqueue(&mut tx, None, &job, EnqueueOptions::keyed(J::NAME)).await?;
                }
                tx.commit().await
            })
        }));
        self
    }

    /// How many jobs run at once. The default is 4.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }

    /// How long running jobs may go on once the worker is told to stop.
    #[must_use]
    pub fn drain(mut self, budget: Duration) -> Self {
        self.drain = budget;
        self
    }

    /// How often leases are extended. The default is [`HEARTBEAT`]; keep it well under [`LEASE`].
    #[must_use]
    pub fn heartbeat(mut self, pause: Duration) -> Self {
        self.heartbeat = pause;
        self
    }

    /// Names a worker that provably runs only once at a time, such as the one that holds the lock
    /// of its data directory. When it starts, leases under the same name are a dead predecessor's
    /// and are taken back at once instead of after [`LEASE`].
    #[must_use]
    pub fn exclusive_identity(mut self, name: impl Into<String>) -> Self {
        self.holder = name.into();
        self.exclusive = true;
        self
    }

    /// The worker, on the application database.
    #[must_use]
    pub fn build(self, pool: PgPool) -> Worker {
        Worker(Arc::new(Inner {
            names: self.kinds.keys().map(|name| (*name).to_owned()).collect(),
            limits: self.kinds.values().map(|kind| i32::try_from(kind.per_org).unwrap_or(i32::MAX)).collect(),
            kinds: self.kinds,
            recurring: self.recurring,
            slots: Arc::new(Semaphore::new(self.concurrency)),
            drain: self.drain,
            heartbeat: self.heartbeat,
            holder: self.holder,
            exclusive: self.exclusive,
            wake: Notify::new(),
            look: AtomicBool::new(false),
            held: Mutex::default(),
            pool,
        }))
    }
}

/// Runs jobs until it is told to stop. See the crate's documentation for the rules.
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

struct Inner {
    pool: PgPool,
    kinds: Registry,
    names: Vec<String>,
    limits: Vec<i32>,
    recurring: Vec<Recurring>,
    slots: Arc<Semaphore>,
    drain: Duration,
    heartbeat: Duration,
    holder: String,
    exclusive: bool,
    wake: Notify,
    /// Something may be due that nobody named: look at everything.
    look: AtomicBool,
    held: Mutex<HashMap<JobId, Held>>,
}

/// What is known here of a running job.
struct Held {
    kind: String,
    place: Uuid,
    token: i64,
    lost: CancellationToken,
    renewed: Instant,
}

/// When the claim loop last did what it does now and then.
struct Upkeep {
    maintained: Option<Instant>,
    recurred: Option<Instant>,
    /// Whether leases under our own name are still a dead predecessor's.
    own_leases: bool,
    /// Whether the last claim failed, which has been said.
    faulty: bool,
}

impl Worker {
    /// A worker that knows no kind yet.
    #[must_use]
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder {
            kinds: Registry::new(),
            recurring: Vec::new(),
            concurrency: 4,
            drain: DRAIN,
            heartbeat: HEARTBEAT,
            holder: format!("worker-{}", Uuid::now_v7()),
            exclusive: false,
        }
    }

    /// Claims and runs jobs until `stop`, then drains: running jobs may finish within the budget,
    /// the rest is interrupted and its leases are given back. Returns when nothing runs any more.
    pub async fn run(self, stop: CancellationToken) {
        let (jobs, interrupt, support) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let helpers = TaskTracker::new();
        let inner = self.0;
        helpers.spawn(support.clone().run_until_cancelled_owned(Arc::clone(&inner).listen()));
        helpers.spawn(support.clone().run_until_cancelled_owned(Arc::clone(&inner).keep_leases()));
        info!(event = "worker.started", worker.id = %inner.holder, "worker started");
        inner.claim_until(&stop, &jobs, &interrupt).await;
        jobs.close();
        if !inner.wait_for(&jobs).await {
            warn!(
                event = "worker.drain_over",
                jobs.running = jobs.len(),
                "the drain budget is used up, interrupting jobs"
            );
            interrupt.cancel();
            let _ = timeout(RELEASE_GRACE * 3, jobs.wait()).await;
        }
        support.cancel();
        helpers.close();
        helpers.wait().await;
        info!(event = "worker.stopped", worker.id = %inner.holder, "worker stopped");
    }
}

impl Inner {
    async fn claim_until(
        self: &Arc<Self>,
        stop: &CancellationToken,
        jobs: &TaskTracker,
        interrupt: &CancellationToken,
    ) {
        let mut last = Uuid::max();
        let mut upkeep = Upkeep { maintained: None, recurred: None, own_leases: self.exclusive, faulty: false };
        while let Some(Ok(slot)) = stop.run_until_cancelled(Arc::clone(&self.slots).acquire_owned()).await {
            if stop.is_cancelled() {
                return;
            }
            // Never cancelled half-way: a claimed row must reach a task.
            let found = match self.maintain(&mut upkeep).await {
                Ok(()) => self.claim(last).await,
                Err(error) => Err(error),
            };
            if found.is_ok() && std::mem::replace(&mut upkeep.faulty, false) {
                info!(event = "worker.claims_again", "jobs are claimed again");
            }
            match found {
                Ok(Some(claim)) => {
                    last = claim.place;
                    let (inner, stop, interrupt) = (Arc::clone(self), stop.clone(), interrupt.clone());
                    let span =
                        info_span!("job", job.id = %claim.id, job.name = %claim.kind, job.attempt = claim.attempts);
                    jobs.spawn(
                        async move {
                            inner.execute(claim, stop, interrupt).await;
                            drop(slot);
                            // An organization at its limit may go on now.
                            inner.wake.notify_one();
                        }
                        .instrument(span),
                    );
                }
                Ok(None) => {
                    drop(slot);
                    let pause = self.until_due().await;
                    let woken = stop.run_until_cancelled(timeout(pause, self.wake.notified())).await;
                    let told = self.look.swap(false, Ordering::SeqCst);
                    if told || matches!(woken, Some(Err(_))) {
                        upkeep.maintained = None;
                    }
                }
                Err(fault) => {
                    drop(slot);
                    if !std::mem::replace(&mut upkeep.faulty, true) {
                        warn!(event = "worker.claims_fail", error = %fault, "jobs cannot be claimed, trying until they can");
                    }
                    let _ = stop.run_until_cancelled(sleep(FAULT_PAUSE)).await;
                }
            }
        }
    }

    /// Moves due jobs and lost leases into the queue, at most once a second while there is work,
    /// and enqueues recurring jobs that are due.
    async fn maintain(&self, upkeep: &mut Upkeep) -> Result<(), sqlx::Error> {
        if upkeep.recurred.is_none_or(|at| at.elapsed() >= POLL) {
            for enqueue_if_due in &self.recurring {
                enqueue_if_due(self.pool.clone()).await?;
            }
            upkeep.recurred = Some(Instant::now());
        }
        if upkeep.maintained.is_some_and(|at| at.elapsed() < Duration::from_secs(1)) {
            return Ok(());
        }
        let mut conn = self.pool.acquire().await?;
        let mut tx = conn.begin().await?;
        let mine = upkeep.own_leases.then_some(self.holder.as_str());
        for (job, token) in store::lost_leases(&mut tx, mine).await? {
            let how = Requeue { delay: Duration::ZERO, refund: false, error: None };
            if store::requeue(&mut tx, job, token, how).await? {
                warn!(event = "job.lost", job.id = %job, "the worker of job {job} is gone, starting the job again");
            }
        }
        tx.commit().await?;
        store::promote(&mut conn).await?;
        upkeep.own_leases = false;
        upkeep.maintained = Some(Instant::now());
        Ok(())
    }

    /// Claims one job: first after the organization served last, then around from the beginning.
    async fn claim(&self, last: Uuid) -> Result<Option<Claim>, sqlx::Error> {
        let mut tx = self.pool.begin_with(store::BEGIN_CLAIM).await?;
        let found = store::claim(&mut tx, &self.holder, &self.names, &self.limits, last).await?;
        tx.commit().await?;
        if let Some(claim) = &found {
            // Not before the commit: a heartbeat that cannot see the claim yet would call it lost.
            let held = Held {
                kind: claim.kind.clone(),
                place: claim.place,
                token: claim.token,
                lost: CancellationToken::new(),
                renewed: Instant::now(),
            };
            self.held().insert(claim.id, held);
        }
        Ok(found)
    }

    async fn execute(self: &Arc<Self>, claim: Claim, stop: CancellationToken, interrupt: CancellationToken) {
        let Some(kind) = self.kinds.get(claim.kind.as_str()) else { return };
        // Asked at once, but not before the drain is over cut off where it has no place to stop.
        let asked = if kind.resumes { stop.clone() } else { interrupt.clone() };
        let lost = self.held().get(&claim.id).map(|held| held.lost.clone()).unwrap_or_default();
        let lease = Arc::new(Lease {
            pool: self.pool.clone(),
            job: claim.id,
            org: claim.org,
            token: claim.token,
            attempt: claim.attempts,
            max_attempts: kind.max_attempts,
            interrupted: asked,
        });
        let outcome = if claim.attempts > kind.max_attempts + LOST_ALLOWANCE {
            Err(JobError::permanent("JOB_LOST_TOO_OFTEN", "the job ended with its worker each time it ran"))
        } else {
            let work = AssertUnwindSafe((kind.run)(claim.payload.clone(), lease)).catch_unwind();
            tokio::select! {
                biased;
                () = lost.cancelled() => Err(JobError::LeaseLost),
                () = async { interrupt.cancelled().await; sleep(RELEASE_GRACE).await } => Err(JobError::Interrupted),
                () = sleep(kind.timeout) => Err(JobError::retry(
                    "JOB_TIMEOUT",
                    format!("the job did not end within {} seconds", kind.timeout.as_secs()),
                )),
                ended = work => ended.unwrap_or_else(|panic| {
                    error!(event = "job.panicked", panic = panic_text(&*panic), "a job panicked");
                    Err(JobError::retry("JOB_PANICKED", "the job stopped because of a fault in Tale"))
                }),
            }
        };
        self.settle(&claim, kind, outcome, &stop).await;
        self.held().remove(&claim.id);
    }

    /// Writes down how an attempt ended, through a database that is away for a while. A worker that
    /// stops does not wait for it: the lease runs out, or the next start takes it back.
    async fn settle(&self, claim: &Claim, kind: &Kind, outcome: Result<(), JobError>, stop: &CancellationToken) {
        let failure = self.verdict(claim, kind, &outcome);
        let started = Instant::now();
        while let Err(fault) = self.write_outcome(claim, kind, &outcome, failure.as_ref()).await {
            let patience = if stop.is_cancelled() { RELEASE_GRACE } else { LEASE };
            if started.elapsed() > patience {
                warn!(error = %fault, "the end of a job could not be stored; it will run again");
                return;
            }
            let _ = stop.run_until_cancelled(sleep(FAULT_PAUSE)).await;
            if stop.is_cancelled() {
                sleep(SHORTEST_IDLE).await;
            }
        }
    }

    /// The failure to give up with, when the outcome is one.
    fn verdict(&self, claim: &Claim, kind: &Kind, outcome: &Result<(), JobError>) -> Option<Failure> {
        let (code, message) = match outcome {
            Err(JobError::Permanent { code, message }) => (code, message),
            Err(JobError::Retry { code, message, .. }) if claim.attempts >= kind.max_attempts => (code, message),
            _ => return None,
        };
        Some(Failure { code: (*code).into(), message: message.to_string(), attempts: claim.attempts })
    }

    async fn write_outcome(
        &self,
        claim: &Claim,
        kind: &Kind,
        outcome: &Result<(), JobError>,
        failure: Option<&Failure>,
    ) -> Result<(), sqlx::Error> {
        let mut conn = self.pool.acquire().await?;
        if let Some(failure) = failure {
            if store::renew(&mut conn, &[(claim.id, claim.token)]).await?.is_empty() {
                info!("another worker has this job now");
                return Ok(());
            }
            drop(conn); // the domain's handler needs a connection too
            let told = (kind.given_up)(claim.payload.clone(), claim.org, failure.clone());
            if AssertUnwindSafe(told).catch_unwind().await.is_err() {
                error!("the handler of a given-up job panicked");
            }
            let mut conn = self.pool.acquire().await?;
            warn!(event = "job.given_up", error.code = %failure.code, "gave a job up after {} attempts: {}", failure.attempts, failure.message);
            store::bury(&mut conn, claim.id, claim.token, &failure.code, &failure.message).await?;
            return Ok(());
        }
        match outcome {
            Ok(()) => {
                store::finish(&mut conn, claim.id, claim.token).await?;
            }
            Err(JobError::LeaseLost) => info!("another worker has this job now"),
            Err(JobError::Interrupted) => {
                let how = Requeue { delay: Duration::ZERO, refund: true, error: None };
                store::requeue(&mut conn, claim.id, claim.token, how).await?;
            }
            Err(JobError::Away { code, message }) => {
                let delay = AWAY.mul_f64(0.5 + rand::random::<f64>() / 2.0);
                info!(error.code = code, delay_ms = delay.as_millis(), "a job waits for what it needs: {message}");
                let how = Requeue { delay, refund: true, error: Some((code, message)) };
                store::requeue(&mut conn, claim.id, claim.token, how).await?;
            }
            Err(JobError::Retry { code, message, after }) => {
                let delay = after.unwrap_or_else(|| kind.backoff.pause(claim.attempts, rand::random()));
                debug!(error.code = code, delay_ms = delay.as_millis(), "a job failed and is tried again: {message}");
                let how = Requeue { delay, refund: false, error: Some((code, message)) };
                store::requeue(&mut conn, claim.id, claim.token, how).await?;
            }
            Err(JobError::Permanent { .. }) => {}
        }
        Ok(())
    }

    /// Extends all leases in one statement; ends the jobs whose lease is gone.
    async fn keep_leases(self: Arc<Self>) {
        let mut pause = self.heartbeat;
        loop {
            sleep(pause).await;
            let leases: Vec<(JobId, i64)> = self.held().iter().map(|(id, held)| (*id, held.token)).collect();
            if leases.is_empty() {
                pause = self.heartbeat;
                continue;
            }
            let renewed = async { store::renew(&mut *self.pool.acquire().await?, &leases).await }.await;
            let mut held = self.held();
            match renewed {
                Ok(kept) => {
                    pause = self.heartbeat;
                    for (id, token) in leases {
                        let Some(entry) = held.get_mut(&id).filter(|entry| entry.token == token) else { continue };
                        if kept.contains(&id) { entry.renewed = Instant::now() } else { entry.lost.cancel() }
                    }
                }
                Err(fault) => {
                    if pause != FAULT_PAUSE {
                        warn!(event = "worker.leases_fail", error = %fault, jobs.running = leases.len(), "leases cannot be extended, trying until they can");
                    }
                    pause = FAULT_PAUSE;
                    for entry in held.values().filter(|entry| entry.renewed.elapsed() >= LEASE) {
                        entry.lost.cancel();
                    }
                }
            }
        }
    }

    /// Wakes the claim loop when somebody enqueued.
    async fn listen(self: Arc<Self>) {
        let mut listener = ChannelListener::new(&self.pool, &["tale_jobs"]);
        loop {
            match listener.next().await {
                ChannelEvent::Notification { payload, .. } if !payload.is_empty() => {
                    if self.has_room(&payload) {
                        self.wake.notify_one();
                    }
                }
                _ => {
                    self.look.store(true, Ordering::SeqCst);
                    self.wake.notify_one();
                }
            }
        }
    }

    /// Whether a job that was announced as `kind place` could run here: this worker knows its kind
    /// and does not hold as many as the organization may have. The end of one of those claims anyway.
    fn has_room(&self, announced: &str) -> bool {
        let Some((kind, place)) = announced.rsplit_once(' ') else { return true };
        let Some(known) = self.kinds.get(kind) else { return false };
        let place = place.parse::<Uuid>().ok();
        let running = self.held().values().filter(|held| held.kind == kind && Some(held.place) == place).count();
        running < usize::try_from(known.per_org).unwrap_or(usize::MAX)
    }

    async fn until_due(&self) -> Duration {
        let due = async { store::until_due(&mut *self.pool.acquire().await?).await }.await;
        due.unwrap_or(POLL).max(SHORTEST_IDLE)
    }

    /// Waits for running jobs within the drain budget, saying now and then what it waits for.
    async fn wait_for(&self, jobs: &TaskTracker) -> bool {
        let deadline = Instant::now() + self.drain;
        while !jobs.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if timeout(left.min(DRAIN_REPORT), jobs.wait()).await.is_err() {
                info!(event = "worker.draining", jobs.running = jobs.len(), "draining, jobs still run");
            }
        }
        true
    }

    fn held(&self) -> MutexGuard<'_, HashMap<JobId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
