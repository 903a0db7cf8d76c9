use std::sync::Arc;
use std::time::Duration;

use tale_core::ids::OrgId;
use tale_jobs::{EnqueueOptions, Worker, enqueue};
use tale_testkit::TestDb;

use crate::kit::*;

#[tokio::test]
async fn organizations_take_turns_and_inside_one_the_oldest_goes_first() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let (first, second) = (OrgId::new(), OrgId::new());
    for label in ["a1", "a2", "a3", "a4"] {
        put(&db, first, &probe(label, Step::Succeed)).await;
    }
    for label in ["b1", "b2"] {
        put(&db, second, &probe(label, Step::Succeed)).await;
    }
    let running = Running::start(worker(&db, &world, 1));
    let mut order = Vec::new();
    while order.len() < 6 {
        order.push(next_start(&mut reports).await);
    }
    assert_eq!(order, ["a1", "b1", "a2", "b2", "a3", "a4"]);
    running.stopped().await;
}

#[tokio::test]
async fn an_organization_holds_no_more_than_its_limit_over_all_workers() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let (busy, other) = (OrgId::new(), OrgId::new());
    for label in ["1", "2", "3", "4"] {
        put(&db, busy, &probe(label, Step::Gate)).await;
    }
    let workers = [Running::start(worker(&db, &world, 4)), Running::start(worker(&db, &world, 4))];
    let mut begun = vec![next_start(&mut reports).await, next_start(&mut reports).await];
    begun.sort();
    assert_eq!(begun, ["1", "2"]);
    // The other organization passes the waiting ones.
    put(&db, other, &probe("other", Step::Succeed)).await;
    assert_eq!(next_start(&mut reports).await, "other");
    settled(&db, "running", 2).await;
    settled(&db, "ready", 2).await;
    world.gate.add_permits(4);
    emptied(&db).await;
    for worker in workers {
        worker.stopped().await;
    }
}

#[tokio::test]
async fn two_workers_run_each_of_many_jobs_exactly_once() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let orgs: Vec<OrgId> = (0..7).map(|_| OrgId::new()).collect();
    for number in 0..120 {
        put(&db, orgs[number % orgs.len()], &probe(&number.to_string(), Step::Succeed)).await;
    }
    let workers = [Running::start(worker(&db, &world, 4)), Running::start(worker(&db, &world, 4))];
    emptied(&db).await;
    for worker in workers {
        worker.stopped().await;
    }
    let mut started = Vec::new();
    while let Ok(seen) = reports.try_recv() {
        if let Seen::Started { label, .. } = seen {
            started.push(label.parse::<u32>().unwrap());
        }
    }
    started.sort_unstable();
    assert_eq!(started, (0..120).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_key_is_queued_once_with_its_newest_payload_and_never_runs_beside_itself() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let org = OrgId::new();
    put_keyed(&db, org, &probe("old", Step::Gate), "k").await;
    put_keyed(&db, org, &probe("new", Step::Gate), "k").await;
    assert_eq!(rows(&db).await, 1);
    let running = Running::start(worker(&db, &world, 4));
    assert_eq!(next_start(&mut reports).await, "new");
    // The running one may have read the old state, so another one waits for it.
    put_keyed(&db, org, &probe("again", Step::Gate), "k").await;
    put(&db, org, &probe("beside", Step::Succeed)).await;
    assert_eq!(next_start(&mut reports).await, "beside");
    settled(&db, "ready", 1).await;
    world.gate.add_permits(1);
    assert_eq!(next_start(&mut reports).await, "again");
    world.gate.add_permits(1);
    emptied(&db).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_failed_job_makes_room_for_the_same_key_queued_meanwhile() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let org = OrgId::new();
    put_keyed(&db, org, &probe("first", Step::Listen), "k").await;
    let running = Running::start(
        Worker::builder()
            .register::<Probe>(Arc::clone(&world))
            .drain(Duration::ZERO)
            .concurrency(1)
            .build(db.app.clone()),
    );
    next_start(&mut reports).await;
    put_keyed(&db, org, &probe("second", Step::Succeed), "k").await;
    running.stopped().await;
    let left: Vec<String> =
        sqlx::query_scalar("SELECT payload->>'label' FROM app.jobs").fetch_all(&db.app).await.unwrap();
    assert_eq!(left, ["second"]);
}

#[tokio::test]
async fn a_delayed_job_waits_until_it_is_due() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let later = EnqueueOptions::default().after(Duration::from_secs(3600));
    enqueue(&mut db.app.acquire().await.unwrap(), None, &probe("later", Step::Succeed), later).await.unwrap();
    put(&db, OrgId::new(), &probe("now", Step::Succeed)).await;
    let running = Running::start(worker(&db, &world, 2));
    assert_eq!(next_start(&mut reports).await, "now");
    settled(&db, "waiting", 1).await;
    sqlx::query("UPDATE app.jobs SET run_at = now()").execute(&db.app).await.unwrap();
    sqlx::query("SELECT pg_notify('tale_jobs', '')").execute(&db.app).await.unwrap();
    assert_eq!(next_start(&mut reports).await, "later");
    running.stopped().await;
}

#[tokio::test]
async fn a_recurring_job_is_enqueued_once_per_period_whatever_the_number_of_workers() {
    let db = TestDb::new().await;
    let (world, mut reports) = World::new();
    let recurring = || {
        Worker::builder()
            .register::<Probe>(Arc::clone(&world))
            .every(Duration::from_secs(3600), probe("hourly", Step::Succeed))
            .build(db.app.clone())
    };
    let workers = [Running::start(recurring()), Running::start(recurring())];
    assert_eq!(next_start(&mut reports).await, "hourly");
    emptied(&db).await;
    for worker in workers {
        worker.stopped().await;
    }
    while let Ok(seen) = reports.try_recv() {
        assert!(!matches!(seen, Seen::Started { .. }), "{seen:?}");
    }
}
