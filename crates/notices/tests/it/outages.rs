//! What becomes of mail that the server does not take.

use std::time::Duration;

use serde_json::json;
use tale_jobs::JobError;
use tale_notices::Kind;
use tale_notices::mail::{MAX_AGE, Standing, metrics, standing};

use crate::world::World;

fn retried(result: Result<(), JobError>) -> &'static str {
    match result {
        Err(JobError::Retry { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_mail_that_is_sent_again_is_the_same_mail() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("lost@acme.test", None, acme, "member").await;
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    assert_eq!(retried(world.deliver(None, ada).await), "MAIL_SERVER_UNAVAILABLE", "it was taken, and nobody knows");
    world.clock.advance(Duration::from_secs(60));
    world.tell(ada, None, Kind::BackupCodesRenewed, json!({})).await;
    // Another process, after this one was killed.
    assert_eq!(retried(world.process(Some(world.server.port)).deliver(None, ada).await), "MAIL_SERVER_UNAVAILABLE");
    let [one, two] = &world.received()[..] else { panic!("two copies") };
    for name in ["Message-ID", "Date", "Subject"] {
        assert_eq!(one.header(name), two.header(name));
    }
    assert_eq!((&one.text, one.html.len()), (&two.text, two.html.len()));
    let [(state, reason)] = &world.mails().await[..] else { panic!("one mail") };
    assert_eq!(state, "open");
    assert!(reason.as_deref().unwrap().starts_with("MAIL_SERVER_UNAVAILABLE: "), "{reason:?}");
}

#[tokio::test]
async fn what_is_put_off_is_tried_again_and_what_is_refused_is_given_up_with_the_reason() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let once = world.person("once@acme.test", None, acme, "member").await;
    let refused = world.person("refused@acme.test", None, acme, "member").await;
    for person in [once, refused] {
        world.tell(person, None, Kind::PasswordChanged, json!({})).await;
    }
    assert_eq!(retried(world.deliver(None, once).await), "MAIL_DEFERRED");
    world.deliver(None, once).await.unwrap();
    world.deliver(None, refused).await.unwrap();
    world.deliver(None, refused).await.unwrap();
    let got: Vec<String> = world.received().into_iter().flat_map(|got| got.to).collect();
    assert_eq!(got, ["once@acme.test"]);
    let [sent, (state, reason)] = &world.mails().await[..] else { panic!("two mails") };
    assert_eq!((sent, state.as_str()), (&("sent".to_owned(), None), "failed"));
    let reason = reason.as_deref().unwrap();
    assert!(reason.starts_with("MAIL_REFUSED: ") && reason.contains("No such mailbox"), "{reason}");
}

#[tokio::test]
async fn a_server_that_is_away_is_left_alone_for_a_while_and_nothing_old_is_sent_when_it_is_back() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", None, acme, "member").await;
    let bob = world.person("bob@acme.test", None, acme, "member").await;
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    world.tell(bob, None, Kind::NewDevice, json!({})).await;
    let away = world.process(Some(1));
    for (after, attempts) in [(0, 1), (1, 1), (30, 2)] {
        world.clock.advance(Duration::from_secs(after));
        assert_eq!(retried(away.deliver(None, ada).await), "MAIL_SERVER_UNAVAILABLE");
        assert_eq!(metrics::DEFERRED.get(), attempts, "after {after} s");
    }
    assert!(metrics::failing());
    world.clock.advance(MAX_AGE - Duration::from_secs(40));
    world.tell(ada, None, Kind::FactorAdded, json!({})).await;
    world.clock.advance(Duration::from_secs(60));
    for person in [ada, bob] {
        world.deliver(None, person).await.unwrap();
    }
    let [got] = &world.received()[..] else { panic!("one mail: {:?}", world.received()) };
    assert!(!got.text.contains("Your password") && got.header("Subject").contains("factor"), "{}", got.text);
    let dropped = ("dropped".to_owned(), Some("MAIL_TOO_OLD".to_owned()));
    assert_eq!(world.mails().await, [dropped, ("sent".to_owned(), None)]);
    assert!(!metrics::failing());

    // A deployment that has no mail server any more drops what waits.
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    world.process(None).deliver(None, ada).await.unwrap();
    assert_eq!((world.due().await, world.received().len()), (0, 1));
}

#[tokio::test]
async fn the_status_tells_what_waits_and_what_failed_without_naming_anybody() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let refused = world.person("refused@acme.test", None, acme, "member").await;
    let once = world.person("once@acme.test", None, acme, "member").await;
    let now = tale_core::Clock::now(&*world.clock);
    let fresh = Standing { since: Some(now), waiting: 0, waits_because: None, last_sent: None, last_failed: None };
    assert_eq!(standing(&world.db.app).await.unwrap(), fresh);
    for person in [refused, once] {
        world.tell(person, None, Kind::PasswordChanged, json!({})).await;
        let _ = world.deliver(None, person).await;
    }
    let ailing = Standing {
        waiting: 1,
        waits_because: Some("MAIL_DEFERRED".to_owned()),
        last_failed: Some((now, "MAIL_REFUSED".to_owned())),
        ..fresh
    };
    assert_eq!(standing(&world.db.app).await.unwrap(), ailing);
    world.deliver(None, once).await.unwrap();
    world.process(None).announce().await.unwrap();
    let off = Standing { since: None, waiting: 0, waits_because: None, last_sent: Some(now), ..ailing };
    assert_eq!(standing(&world.db.app).await.unwrap(), off);
}
