use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::Connection;
use tale_core::ids::OrgId;
use tale_jobs::{EnqueueOptions, Job, JobError, Lease, Worker, enqueue};
use tale_testkit::TestDb;

use crate::kit::*;

/// Lets every lease run out, as if the time had passed without a heartbeat.
async fn expire_leases(db: &TestDb) {
    sqlx::query("UPDATE app.jobs SET lease_expires_at = now() - interval '1 second' WHERE state = 'running'")
        .execute(&db.app)
        .await
        .unwrap();
    sqlx::query("SELECT pg_notify('tale_jobs', '')").execute(&db.app).await.unwrap();
}

/// Starts `worker` on a runtime of its own and returns how to kill it: every task stops where it
/// waits, nothing is written, as after `kill -9`. The worker's only slot should be taken by then,
/// or a claim that is under way may still go through.
fn mortal(worker: Worker) -> impl FnOnce() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(worker.run(tokio_util::sync::CancellationToken::new()));
    move || runtime.shutdown_background()
}

/// Waits for the gate, then writes through its lease, and reports whether it was let.
#[derive(Debug, Serialize, Deserialize)]
struct Writer {
    guard: bool,
}

struct WriterWorld {
    db: sqlx::PgPool,
    started: tokio::sync::Semaphore,
    gate: tokio::sync::Semaphore,
    results: tokio::sync::mpsc::UnboundedSender<(u32, bool)>,
}

impl Job for Writer {
    const NAME: &'static str = "test.writer";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = PATIENCE;
    type Context = WriterWorld;

    async fn run(&self, world: &WriterWorld, lease: &Lease) -> Result<(), JobError> {
        world.started.add_permits(1);
        world.gate.acquire().await.map_err(|_| JobError::Interrupted)?.forget();
        let mut conn = world.db.acquire().await?;
        let mut tx = conn.begin().await?;
        let allowed = if self.guard { lease.guard(&mut tx).await } else { lease.complete(&mut tx).await };
        let _ = world.results.send((lease.attempt(), allowed.is_ok()));
        allowed?;
        tx.commit().await?;
        Ok(())
    }
}

async fn the_late_writer_is_refused(guard: bool) {
    let db = TestDb::new().await;
    let (results, mut written) = tokio::sync::mpsc::unbounded_channel();
    let world = |gate| {
        Arc::new(WriterWorld {
            db: db.app.clone(),
            started: tokio::sync::Semaphore::new(0),
            gate: tokio::sync::Semaphore::new(gate),
            results: results.clone(),
        })
    };
    let (slow, fast) = (world(0), world(1));
    let job = Writer { guard };
    enqueue(&mut db.app.acquire().await.unwrap(), Some(OrgId::new()), &job, EnqueueOptions::default()).await.unwrap();
    // Its only slot is taken, so the second worker gets the job.
    let first =
        Running::start(Worker::builder().register::<Writer>(Arc::clone(&slow)).concurrency(1).build(db.app.clone()));
    within(slow.started.acquire()).await.unwrap().forget();
    expire_leases(&db).await;
    let second = Running::start(Worker::builder().register::<Writer>(Arc::clone(&fast)).build(db.app.clone()));
    assert_eq!(within(written.recv()).await, Some((2, true)));
    slow.gate.add_permits(1);
    assert_eq!(within(written.recv()).await, Some((1, false)));
    emptied(&db).await;
    first.stopped().await;
    second.stopped().await;
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_cannot_write_under_its_guard() {
    the_late_writer_is_refused(true).await;
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_cannot_complete_the_job() {
    the_late_writer_is_refused(false).await;
}

#[tokio::test]
async fn a_killed_workers_job_starts_again_once_its_lease_has_run_out() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Gate)).await;
    // A pool of its own: the killed runtime takes its connections along.
    let pool = sqlx::PgPool::connect_lazy(&db.app_url()).unwrap();
    let kill = mortal(Worker::builder().register::<Probe>(Arc::clone(&world)).concurrency(1).build(pool));
    assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 1 });
    kill();
    let running = Running::start(worker(&db, &world, 1));
    expire_leases(&db).await;
    assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 2 });
    world.gate.add_permits(1);
    emptied(&db).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_worker_that_restarts_under_its_exclusive_name_goes_on_at_once() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Gate)).await;
    let named = |pool| {
        Worker::builder().register::<Probe>(Arc::clone(&world)).exclusive_identity("dir-1").concurrency(1).build(pool)
    };
    let kill = mortal(named(sqlx::PgPool::connect_lazy(&db.app_url()).unwrap()));
    assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 1 });
    kill();
    let running = Running::start(named(db.app.clone()));
    assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 2 });
    world.gate.add_permits(1);
    emptied(&db).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_heartbeat_keeps_a_lease_and_notices_a_lost_one() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Gate)).await;
    let running = Running::start(
        Worker::builder()
            .register::<Probe>(Arc::clone(&world))
            .concurrency(1)
            .heartbeat(Duration::from_millis(20))
            .build(db.app.clone()),
    );
    next_start(&mut reports).await;
    sqlx::query("UPDATE app.jobs SET lease_expires_at = now() + interval '1 second'").execute(&db.app).await.unwrap();
    within(async {
        while !sqlx::query_scalar::<_, bool>("SELECT lease_expires_at > now() + interval '30 seconds' FROM app.jobs")
            .fetch_one(&db.app)
            .await
            .unwrap()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Somebody else claims it: the only slot becomes free although the gate stays shut.
    sqlx::query("UPDATE app.jobs SET lease_holder = 'other', lease_token = nextval('app.job_lease_token')")
        .execute(&db.app)
        .await
        .unwrap();
    put(&db, OrgId::new(), &probe("next", Step::Succeed)).await;
    assert_eq!(next_start(&mut reports).await, "next");
    running.stopped().await;
}

#[tokio::test]
async fn a_job_that_takes_its_worker_down_each_time_is_given_up() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("bomb", Step::Succeed)).await;
    sqlx::query("UPDATE app.jobs SET attempts = 8").execute(&db.app).await.unwrap();
    let running = Running::start(worker(&db, &world, 1));
    assert_eq!(
        next(&mut reports).await,
        Seen::GivenUp { label: "bomb".into(), code: "JOB_LOST_TOO_OFTEN".into(), attempts: 9 }
    );
    settled(&db, "dead", 1).await;
    running.stopped().await;
}
