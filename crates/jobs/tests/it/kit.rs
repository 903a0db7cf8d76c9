//! A job whose behaviour the test decides, and what it did.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tale_core::ids::OrgId;
use tale_jobs::{Backoff, EnqueueOptions, Failure, Job, JobError, Lease, RELEASE_GRACE, Worker, enqueue};
use tale_testkit::TestDb;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A bound on waiting, not a measure of speed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What a [`Probe`] reports.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Started { label: String, attempt: u32 },
    Ended { label: String },
    Interrupted { label: String },
    GivenUp { label: String, code: String, attempts: u32 },
}

/// What the test holds of the jobs' world.
#[derive(Debug)]
pub struct World {
    seen: mpsc::UnboundedSender<Seen>,
    /// Jobs of the kind `Step::Gate` take one permit each.
    pub gate: Semaphore,
}

impl World {
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Seen>) {
        let (seen, reports) = mpsc::unbounded_channel();
        (Arc::new(Self { seen, gate: Semaphore::new(0) }), reports)
    }

    fn report(&self, seen: Seen) {
        let _ = self.seen.send(seen);
    }
}

/// What a probe does when it runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Step {
    Succeed,
    Fail,
    /// Finds that something it needs is away.
    Miss,
    Refuse,
    Panic,
    /// Waits for a permit of the gate, then completes through its lease.
    Gate,
    /// Waits for a permit and returns early when interrupted.
    Listen,
    /// Is at something that must not be cut when it is interrupted, for longer than a release takes.
    Finish,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probe {
    pub label: String,
    pub step: Step,
}

impl Job for Probe {
    const NAME: &'static str = "test.probe";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = PATIENCE;
    const PER_ORG: u32 = 2;
    const BACKOFF: Backoff = Backoff { first: Duration::from_millis(1), cap: Duration::from_millis(4) };
    type Context = World;

    async fn run(&self, world: &World, lease: &Lease) -> Result<(), JobError> {
        world.report(Seen::Started { label: self.label.clone(), attempt: lease.attempt() });
        match self.step {
            Step::Succeed => {}
            Step::Fail => return Err(JobError::retry("TEST_FAILED", "it failed")),
            Step::Miss => return Err(JobError::Away { code: "TEST_AWAY", message: "it is away".into() }),
            Step::Refuse => return Err(JobError::permanent("TEST_REFUSED", "it cannot work")),
            Step::Panic => panic!("a test panic"),
            Step::Gate => world.gate.acquire().await.unwrap().forget(),
            Step::Finish => {
                lease.interrupted().cancelled().await;
                tokio::time::sleep(RELEASE_GRACE.mul_f64(1.2)).await;
            }
            Step::Listen => {
                tokio::select! {
                    permit = world.gate.acquire() => permit.unwrap().forget(),
                    () = lease.interrupted().cancelled() => {
                        world.report(Seen::Interrupted { label: self.label.clone() });
                        return Err(JobError::Interrupted);
                    }
                }
            }
        }
        world.report(Seen::Ended { label: self.label.clone() });
        Ok(())
    }

    async fn given_up(&self, world: &World, _: Option<OrgId>, failure: &Failure) {
        world.report(Seen::GivenUp {
            label: self.label.clone(),
            code: failure.code.to_string(),
            attempts: failure.attempts,
        });
    }
}

/// A probe of a kind that goes on later where it stopped.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resuming(pub Probe);

impl Job for Resuming {
    const NAME: &'static str = "test.resuming";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = PATIENCE;
    const RESUMES: bool = true;
    type Context = World;

    async fn run(&self, world: &World, lease: &Lease) -> Result<(), JobError> {
        self.0.run(world, lease).await
    }
}

pub fn probe(label: &str, step: Step) -> Probe {
    Probe { label: label.to_owned(), step }
}

pub async fn put(db: &TestDb, org: OrgId, job: &Probe) {
    enqueue(&mut db.app.acquire().await.unwrap(), Some(org), job, EnqueueOptions::default()).await.unwrap();
}

pub async fn put_keyed(db: &TestDb, org: OrgId, job: &Probe, key: &str) {
    enqueue(&mut db.app.acquire().await.unwrap(), Some(org), job, EnqueueOptions::keyed(key)).await.unwrap();
}

/// A worker under test.
pub struct Running {
    pub stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub fn start(worker: Worker) -> Self {
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(worker.run(stop.clone())), stop }
    }

    pub async fn stopped(self) {
        self.stop.cancel();
        within(self.task).await.unwrap();
    }
}

pub fn worker(db: &TestDb, world: &Arc<World>, concurrency: usize) -> Worker {
    Worker::builder().register::<Probe>(Arc::clone(world)).concurrency(concurrency).build(db.app.clone())
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound on waiting")
}

pub async fn next(reports: &mut mpsc::UnboundedReceiver<Seen>) -> Seen {
    within(reports.recv()).await.unwrap()
}

/// The next start, by label.
pub async fn next_start(reports: &mut mpsc::UnboundedReceiver<Seen>) -> String {
    loop {
        if let Seen::Started { label, .. } = next(reports).await {
            return label;
        }
    }
}

/// Waits until `count` jobs are left in `state`.
pub async fn settled(db: &TestDb, state: &str, count: i64) {
    within(async {
        loop {
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM app.jobs WHERE state = $1")
                .bind(state)
                .fetch_one(&db.app)
                .await
                .unwrap();
            if left == count {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub async fn rows(db: &TestDb) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM app.jobs").fetch_one(&db.app).await.unwrap()
}

/// Waits until the queue is empty.
pub async fn emptied(db: &TestDb) {
    within(async {
        while rows(db).await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
