use std::sync::Arc;
use std::time::Duration;

use tale_core::ids::OrgId;
use tale_jobs::{EnqueueOptions, Worker, enqueue};
use tale_testkit::TestDb;

use crate::kit::*;

#[tokio::test]
async fn a_drain_lets_a_running_job_end_and_claims_nothing_new() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("running", Step::Gate)).await;
    let running = Running::start(worker(&db, &world, 1));
    next_start(&mut reports).await;
    running.stop.cancel();
    put(&db, OrgId::new(), &probe("new", Step::Succeed)).await;
    world.gate.add_permits(1);
    running.stopped().await;
    assert_eq!(next(&mut reports).await, Seen::Ended { label: "running".into() });
    assert!(reports.try_recv().is_err());
    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn a_drain_does_not_wait_for_a_job_that_goes_on_where_it_stopped() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let job = Resuming(probe("long", Step::Listen));
    enqueue(&mut db.app.acquire().await.unwrap(), None, &job, EnqueueOptions::default()).await.unwrap();
    let worker = Worker::builder().register::<Resuming>(Arc::clone(&world)).drain(PATIENCE * 2).build(db.app.clone());
    let running = Running::start(worker);
    next_start(&mut reports).await;
    // Well before the budget is used up.
    running.stopped().await;
    assert_eq!(next(&mut reports).await, Seen::Interrupted { label: "long".into() });
    let left: Vec<(String, i32)> =
        sqlx::query_as("SELECT state, attempts FROM app.jobs").fetch_all(&db.app).await.unwrap();
    assert_eq!(left, [("ready".to_owned(), 0)]);
}

#[tokio::test]
async fn a_drain_lets_a_costly_step_end_within_its_budget() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let job = Resuming(probe("paid", Step::Finish));
    enqueue(&mut db.app.acquire().await.unwrap(), None, &job, EnqueueOptions::default()).await.unwrap();
    let worker = Worker::builder().register::<Resuming>(Arc::clone(&world)).drain(PATIENCE).build(db.app.clone());
    let running = Running::start(worker);
    next_start(&mut reports).await;
    running.stopped().await;
    assert_eq!(next(&mut reports).await, Seen::Ended { label: "paid".into() });
    assert_eq!(rows(&db).await, 0);
}

/// What is left after a drain without budget: state and attempts.
async fn after_a_drain_without_budget(step: Step) -> (Vec<(String, i32)>, bool) {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", step)).await;
    let running = Running::start(
        Worker::builder()
            .register::<Probe>(Arc::clone(&world))
            .drain(Duration::ZERO)
            .concurrency(1)
            .build(db.app.clone()),
    );
    next_start(&mut reports).await;
    running.stopped().await;
    let left = sqlx::query_as("SELECT state, attempts FROM app.jobs").fetch_all(&db.app).await.unwrap();
    (left, matches!(reports.try_recv(), Ok(Seen::Interrupted { .. })))
}

#[tokio::test]
async fn a_job_that_listens_is_interrupted_and_keeps_its_attempt() {
    assert_eq!(after_a_drain_without_budget(Step::Listen).await, (vec![("ready".to_owned(), 0)], true));
}

#[tokio::test]
async fn a_job_that_does_not_listen_is_dropped_and_goes_back_too() {
    assert_eq!(after_a_drain_without_budget(Step::Gate).await, (vec![("ready".to_owned(), 0)], false));
}
