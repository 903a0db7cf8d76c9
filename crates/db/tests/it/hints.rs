use std::time::Duration;

use sqlx::{Acquire, Connection};
use tale_core::ids::OrgId;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tale_db::hints::{Hint, HintEvent, HintHub, Topic, notify};
use tale_testkit::TestDb;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("an event in time")
}

#[tokio::test]
async fn a_hint_arrives_when_its_transaction_commits_and_not_when_it_rolls_back() {
    let db = TestDb::new().await;
    let (hub, stop, org) = (HintHub::new(), CancellationToken::new(), OrgId::new());
    let mut subscription = hub.subscribe(org);
    let running = tokio::spawn(hub.clone().run(db.app.clone(), stop.clone(), |_| {}));
    assert_eq!(within(subscription.next()).await, HintEvent::Resync);

    let mut conn = db.app.acquire().await.unwrap();
    let mut rolled_back = conn.begin().await.unwrap();
    notify(&mut rolled_back, &Hint::new(org, Topic::Members)).await.unwrap();
    rolled_back.rollback().await.unwrap();
    let mut committed = conn.begin().await.unwrap();
    let hint = Hint::new(org, Topic::Document).id(Uuid::now_v7());
    notify(&mut committed, &hint).await.unwrap();
    committed.commit().await.unwrap();

    assert_eq!(within(subscription.next()).await, HintEvent::Hint(hint));
    stop.cancel();
    within(running).await.unwrap();
}

#[tokio::test]
async fn a_cut_connection_is_reopened_and_says_so() {
    let db = TestDb::new().await;
    let mut listener = ChannelListener::new(&db.app, &["tale_jobs"]);
    assert_eq!(within(listener.next()).await, ChannelEvent::Resync);
    let mut killer = sqlx::PgConnection::connect(&db.app_url()).await.unwrap();
    sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()")
        .execute(&mut killer)
        .await
        .unwrap();
    assert_eq!(within(listener.next()).await, ChannelEvent::Resync);
    sqlx::query("SELECT pg_notify('tale_jobs', 'x')").execute(&mut killer).await.unwrap();
    assert_eq!(
        within(listener.next()).await,
        ChannelEvent::Notification { channel: "tale_jobs".into(), payload: "x".into() }
    );
}
