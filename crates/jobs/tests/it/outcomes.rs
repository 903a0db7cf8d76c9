use sqlx::Connection;
use tale_core::ids::OrgId;
use tale_jobs::{EnqueueOptions, enqueue};
use tale_testkit::TestDb;

use crate::kit::*;

#[tokio::test]
async fn a_job_exists_only_when_its_transaction_commits_and_leaves_no_row_behind() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let running = Running::start(worker(&db, &world, 2));
    let mut conn = db.app.acquire().await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    enqueue(&mut tx, None, &probe("undone", Step::Succeed), EnqueueOptions::default()).await.unwrap();
    tx.rollback().await.unwrap();
    put(&db, OrgId::new(), &probe("done", Step::Succeed)).await;
    assert_eq!(next(&mut reports).await, Seen::Started { label: "done".into(), attempt: 1 });
    assert_eq!(next(&mut reports).await, Seen::Ended { label: "done".into() });
    emptied(&db).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_failing_job_is_tried_again_and_then_kept_as_dead() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Fail)).await;
    let running = Running::start(worker(&db, &world, 2));
    for attempt in 1..=3 {
        assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt });
    }
    assert_eq!(
        next(&mut reports).await,
        Seen::GivenUp { label: "job".into(), code: "TEST_FAILED".into(), attempts: 3 }
    );
    settled(&db, "dead", 1).await;
    running.stopped().await;
}

#[tokio::test]
async fn something_that_is_away_costs_no_attempt() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Miss)).await;
    let running = Running::start(worker(&db, &world, 2));
    for _ in 0..4 {
        assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 1 });
        settled(&db, "waiting", 1).await;
        // The pause is over.
        sqlx::query("UPDATE app.jobs SET run_at = clock_timestamp() - interval '1 second', state = 'ready'")
            .execute(&db.app)
            .await
            .unwrap();
        sqlx::query("SELECT pg_notify('tale_jobs', '')").execute(&db.app).await.unwrap();
    }
    next_start(&mut reports).await;
    settled(&db, "waiting", 1).await;
    running.stopped().await;
    let left: Vec<(i32, String)> =
        sqlx::query_as("SELECT attempts, error_code FROM app.jobs").fetch_all(&db.app).await.unwrap();
    assert_eq!(left, [(0, "TEST_AWAY".to_owned())]);
}

#[tokio::test]
async fn a_refused_job_is_given_up_at_once() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Refuse)).await;
    let running = Running::start(worker(&db, &world, 2));
    assert_eq!(next(&mut reports).await, Seen::Started { label: "job".into(), attempt: 1 });
    assert_eq!(
        next(&mut reports).await,
        Seen::GivenUp { label: "job".into(), code: "TEST_REFUSED".into(), attempts: 1 }
    );
    settled(&db, "dead", 1).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_panic_costs_an_attempt_and_not_the_worker() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("bad", Step::Panic)).await;
    let running = Running::start(worker(&db, &world, 1));
    for attempt in 1..=3 {
        assert_eq!(next(&mut reports).await, Seen::Started { label: "bad".into(), attempt });
    }
    assert_eq!(
        next(&mut reports).await,
        Seen::GivenUp { label: "bad".into(), code: "JOB_PANICKED".into(), attempts: 3 }
    );
    put(&db, OrgId::new(), &probe("good", Step::Succeed)).await;
    assert_eq!(next_start(&mut reports).await, "good");
    running.stopped().await;
}

#[tokio::test]
async fn a_payload_that_this_release_cannot_read_is_kept_as_dead() {
    let db = TestDb::new().await;
    let (world, _reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Succeed)).await;
    sqlx::query("UPDATE app.jobs SET payload = '{\"shape\": \"unknown\"}'").execute(&db.app).await.unwrap();
    let running = Running::start(worker(&db, &world, 1));
    settled(&db, "dead", 1).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_kind_that_nobody_here_knows_stays_queued() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("later", Step::Succeed)).await;
    sqlx::query("UPDATE app.jobs SET kind = 'of.a.newer.release'").execute(&db.app).await.unwrap();
    put(&db, OrgId::new(), &probe("now", Step::Succeed)).await;
    let running = Running::start(worker(&db, &world, 1));
    assert_eq!(next_start(&mut reports).await, "now");
    settled(&db, "running", 0).await;
    settled(&db, "ready", 1).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_job_outlives_a_database_that_cuts_every_connection() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    put(&db, OrgId::new(), &probe("job", Step::Gate)).await;
    let running = Running::start(worker(&db, &world, 1));
    next_start(&mut reports).await;
    let mut killer = sqlx::PgConnection::connect(&db.app_url()).await.unwrap();
    sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .execute(&mut killer)
        .await
        .unwrap();
    world.gate.add_permits(1);
    within(async {
        while sqlx::query_scalar::<_, i64>("SELECT count(*) FROM app.jobs").fetch_one(&mut killer).await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    running.stopped().await;
}
