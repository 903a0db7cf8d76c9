//! A storm of notifications is no storm of mails.

use std::time::Duration;

use serde_json::json;
use tale_notices::Kind;
use tale_notices::mail::{MAX_BY_STRANGERS, MAX_PER_HOUR};

use crate::world::World;

#[tokio::test]
async fn what_strangers_cause_is_gathered_and_hides_nothing() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", None, acme, "owner").await;
    for number in 0..40 {
        let network = format!("10.0.{number}.0/24");
        world.tell(ada, Some(acme), Kind::MemberBlocked, json!({ "email": "bob@acme.test", "network": network })).await;
        world.deliver(Some(acme), ada).await.unwrap();
    }
    assert_eq!(world.received().len(), MAX_BY_STRANGERS);
    assert_eq!(world.jobs().await.len(), 1, "the rest comes later");
    // What matters comes at once, and first.
    world.tell(ada, Some(acme), Kind::RoleChanged, json!({ "role": "owner" })).await;
    world.deliver(Some(acme), ada).await.unwrap();
    let got = world.received();
    let last = got.last().unwrap();
    assert_eq!((got.len(), last.header("Subject")), (MAX_BY_STRANGERS + 1, "38 notifications from Tale"));
    assert!(last.text.starts_with("Your role is now Owner"), "{}", last.text);
    assert!(last.text.contains("and 28 more") && last.html.contains("and 28 more"), "{}", last.text);
    assert_eq!(world.due().await, 0);
}

#[tokio::test]
async fn nobody_gets_more_mails_an_hour_than_the_limit_and_nothing_is_lost() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", None, acme, "member").await;
    let bob = world.person("bob@acme.test", None, acme, "member").await;
    for _ in 0..MAX_PER_HOUR + 5 {
        world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
        world.deliver(None, ada).await.unwrap();
    }
    assert_eq!((world.received().len(), world.due().await), (MAX_PER_HOUR, 5));
    // The limit is the person's, wherever it happens, and nobody else's.
    world.tell(ada, Some(acme), Kind::RoleChanged, json!({ "role": "editor" })).await;
    world.deliver(Some(acme), ada).await.unwrap();
    assert_eq!(world.received().len(), MAX_PER_HOUR);
    world.tell(bob, None, Kind::PasswordChanged, json!({})).await;
    world.deliver(None, bob).await.unwrap();
    assert_eq!(world.received().len(), MAX_PER_HOUR + 1);
    world.clock.advance(Duration::from_secs(3_601));
    world.deliver(None, ada).await.unwrap();
    world.deliver(Some(acme), ada).await.unwrap();
    let got = world.received();
    assert_eq!((got.len(), world.due().await), (MAX_PER_HOUR + 3, 0));
    assert_eq!(got[MAX_PER_HOUR + 1].header("Subject"), "5 notifications from Tale");
}
