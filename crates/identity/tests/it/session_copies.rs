//! Sessions in signed cookies: what they save, how long they are believed, and how they die.

use std::time::Duration;

use tale_core::Code;
use tale_identity::{Identity, IdentityConfig, Role};
use tokio::task::JoinHandle;

use crate::world::{PASSWORD, Person, Statements, World, cheap, code};

fn config(idle_minutes: Option<u64>) -> IdentityConfig {
    IdentityConfig {
        session_cookie_cache: Some(Duration::from_secs(300)),
        session_idle_timeout: idle_minutes.map(|minutes| Duration::from_secs(minutes * 60)),
        session_secret: Some("the secret of this deployment".into()),
        hash_cost: cheap(),
        ..IdentityConfig::default()
    }
}

/// Follows the feed of a process until it is heard.
async fn hear(identity: &Identity, owner: &Person) -> JoinHandle<()> {
    let follower = identity.clone();
    let task = tokio::spawn(async move { follower.follow_ended_sessions().await });
    // A copy from before the feed was heard is not believed, so the first one that is says it is heard.
    until(async || believed(identity, owner).await).await;
    task
}

/// Whether a copy made now is believed now.
async fn believed(identity: &Identity, person: &Person) -> bool {
    let Ok(principal) = identity.authenticate_session(&person.token, true).await else { return false };
    let copy = identity.copy_session(&principal, &person.token).unwrap();
    identity.session_of_copy(&person.token, &copy.value, true, None).is_some()
}

/// Waits for what another connection brings about.
async fn until(condition: impl AsyncFn() -> bool) {
    let all = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("it never happened");
}

#[tokio::test]
async fn a_copy_saves_the_read_of_the_session_and_never_that_of_the_membership() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let feed = hear(&world.identity, &owner).await;
    let copy = world.identity.copy_session(&owner.principal, &owner.token).unwrap();
    assert_eq!(copy.max_age, Duration::from_secs(300));

    let identity = world.telling(config(None)).await;
    let statements = Statements::of_this_thread();
    let count = || statements.since();

    identity.authenticate_session(&owner.token, false).await.unwrap();
    assert_eq!(count(), 1, "a request of a person without a copy");
    let kept = &world.identity;
    let principal = kept.session_of_copy(&owner.token, &copy.value, false, None).unwrap();
    assert_eq!(principal, owner.principal);
    assert_eq!(count(), 0, "with one");

    let (_, caller) = identity.authenticate_member(&owner.token, false, Some(owner.org)).await.unwrap();
    assert_eq!((caller.unwrap().role, count()), (Role::Owner, 1));
    let principal = kept.session_of_copy(&owner.token, &copy.value, false, Some(owner.org)).unwrap();
    let caller = identity.caller_for_session(&principal, Some(owner.org)).await.unwrap();
    assert_eq!((caller.role, count()), (Role::Owner, 1), "the membership");
    drop(statements);
    feed.abort();
}

#[tokio::test]
async fn a_role_that_was_taken_away_is_gone_at_the_next_request() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Editor).await;
    let feed = hear(&world.identity, &member).await;
    let copy = world.identity.copy_session(&member.principal, &member.token).unwrap();
    world.identity.remove_member(&owner.caller, member.id).await.unwrap();
    let principal = world.identity.session_of_copy(&member.token, &copy.value, true, None).unwrap();
    assert_eq!(code(world.identity.caller_for_session(&principal, Some(owner.org)).await), Code::OrgForbidden);
    feed.abort();
}

#[tokio::test]
async fn an_ended_session_dies_in_every_process_at_once() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let replica = world.again(config(None));
    let feeds = [hear(&world.identity, &owner).await, hear(&replica, &owner).await];
    let other = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    let principal = world.identity.authenticate_session(&other.token, false).await.unwrap();
    let copy = world.identity.copy_session(&principal, &other.token).unwrap();
    for process in [&world.identity, &replica] {
        assert!(process.session_of_copy(&other.token, &copy.value, false, None).is_some());
    }
    // The clock stands still: the copy does not die of age.
    world.identity.end_session(&owner.principal, principal.session).await.unwrap();
    for process in [&world.identity, &replica] {
        until(async || process.session_of_copy(&other.token, &copy.value, false, None).is_none()).await;
    }
    world.pass(Duration::from_secs(299));
    assert!(replica.session_of_copy(&other.token, &copy.value, true, None).is_none());

    // Whatever statement ends it.
    let third = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    world.pass(Duration::from_secs(3_600));
    let principal = world.identity.authenticate_session(&third.token, false).await.unwrap();
    let copy = world.identity.copy_session(&principal, &third.token).unwrap();
    assert!(replica.session_of_copy(&third.token, &copy.value, true, None).is_some());
    sqlx::query("DELETE FROM app.users").execute(&world.db.app).await.unwrap();
    until(async || replica.session_of_copy(&third.token, &copy.value, true, None).is_none()).await;
    for feed in feeds {
        feed.abort();
    }
}

#[tokio::test]
async fn a_copy_dies_of_age_and_never_keeps_an_idle_session_alive() {
    let world = World::with(config(Some(4))).await;
    let owner = world.owner().await;
    let feed = hear(&world.identity, &owner).await;
    let copy = world.identity.copy_session(&owner.principal, &owner.token).unwrap();
    let stands = |background| world.identity.session_of_copy(&owner.token, &copy.value, background, None).is_some();
    assert_eq!(copy.max_age, Duration::from_secs(60));
    world.pass(Duration::from_secs(11));
    assert!(stands(false));
    world.pass(Duration::from_secs(1));
    assert!(!stands(false), "a use that is due to be noted reads the session");
    world.pass(Duration::from_secs(47));
    assert!(stands(true));
    world.pass(Duration::from_secs(1));
    assert!(!stands(true));

    // A copy from the last seconds of the window does not reach beyond it.
    world.pass(Duration::from_secs(179));
    let principal = world.identity.authenticate_session(&owner.token, true).await.unwrap();
    let copy = world.identity.copy_session(&principal, &owner.token).unwrap();
    assert!(world.identity.session_of_copy(&owner.token, &copy.value, true, None).is_some());
    world.pass(Duration::from_secs(1));
    assert!(world.identity.session_of_copy(&owner.token, &copy.value, true, None).is_none());
    assert_eq!(code(world.identity.authenticate_session(&owner.token, true).await), Code::Unauthorized);
    feed.abort();
}

#[tokio::test]
async fn a_copy_follows_the_window_of_the_organization() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let feed = hear(&world.identity, &owner).await;
    world.window(&owner, Some(2)).await;
    let principal = world.identity.authenticate_session(&owner.token, true).await.unwrap();
    let copy = world.identity.copy_session(&principal, &owner.token).unwrap();
    assert_eq!(copy.max_age, Duration::from_secs(30));
    let stands = |background| world.identity.session_of_copy(&owner.token, &copy.value, background, None).is_some();
    world.pass(Duration::from_secs(5));
    assert!(stands(false));
    world.pass(Duration::from_secs(1));
    assert!(!stands(false), "a use is noted to a twentieth of the window");
    world.pass(Duration::from_secs(24));
    assert!(!stands(true));
    feed.abort();
}

#[tokio::test]
async fn a_copy_is_worth_nothing_alone_altered_or_without_the_feed() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let copy = world.identity.copy_session(&owner.principal, &owner.token).unwrap().value;
    assert!(
        world.identity.session_of_copy(&owner.token, &copy, false, None).is_none(),
        "nobody would hear that the session ended"
    );
    let feed = hear(&world.identity, &owner).await;
    let copy = world.identity.copy_session(&owner.principal, &owner.token).unwrap().value;
    let read = |token: &str, copy: &str| world.identity.session_of_copy(token, copy, false, None).is_some();
    assert!(read(&owner.token, &copy));
    let other = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    assert!(!read(&other.token, &copy), "it belongs to its token");
    for broken in ["", ".", "a.b", copy.trim_end_matches(|c: char| c != '.'), &copy[1..], &"x".repeat(5_000)] {
        assert!(!read(&owner.token, broken), "{broken}");
    }
    assert!(world.again(IdentityConfig::default()).copy_session(&owner.principal, &owner.token).is_none());
    // Another organization is written down, so the session is read.
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    assert!(world.identity.session_of_copy(&owner.token, &copy, false, Some(second.id)).is_none());
    assert!(world.identity.session_of_copy(&owner.token, &copy, true, Some(second.id)).is_some());
    feed.abort();
}

#[tokio::test]
async fn a_new_name_shows_at_once() {
    let world = World::with(config(None)).await;
    let owner = world.owner().await;
    let feed = hear(&world.identity, &owner).await;
    let copy = world.identity.copy_session(&owner.principal, &owner.token).unwrap().value;
    world.identity.rename_account(&owner.principal, "Ada").await.unwrap();
    until(async || world.identity.session_of_copy(&owner.token, &copy, false, None).is_none()).await;
    feed.abort();
}

#[tokio::test]
async fn the_sweep_ends_idle_sessions_and_writes_that_it_did() {
    let world = World::with(config(Some(4))).await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    world.pass(Duration::from_secs(200));
    world.identity.authenticate_session(&member.token, false).await.unwrap();
    assert_eq!(world.identity.sweep_idle().await.unwrap(), 0);
    world.pass(Duration::from_secs(40));
    assert_eq!(world.identity.sweep_idle().await.unwrap(), 1, "the owner's, not the one that was used");
    assert_eq!(world.identity.sweep_idle().await.unwrap(), 0);
    assert_eq!(world.audited(owner.org, "session.idle_revoked").await, 1);
    assert_eq!(code(world.identity.authenticate_session(&owner.token, false).await), Code::Unauthorized);
    world.identity.authenticate_session(&member.token, false).await.unwrap();
    let unlimited = world.again(IdentityConfig::default());
    world.pass(Duration::from_secs(24 * 3600));
    assert_eq!(unlimited.sweep_idle().await.unwrap(), 0);
}
