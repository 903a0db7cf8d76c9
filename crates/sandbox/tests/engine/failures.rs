//! The spawner, the engine's containers and the daemon end in the middle of work.

use hyper::{Method, StatusCode};
use serde_json::Value;
use tale_sandbox_wire::sign::Key;
use tale_sandbox_wire::sse::{ErrorCode, ResultStatus};

use crate::place::Place;

#[tokio::test]
async fn a_killed_spawner_loses_neither_the_command_nor_a_byte() {
    let Some(place) = Place::find("kill") else { return };
    let first = place.spawner().await;
    first.caller.create("s1").await;
    let mut following = first.caller.exec("s1", "long", "for i in 1 2 3 4 5 6; do echo line$i; sleep 0.5; done").await;
    let seq = following.until("line2").await;
    drop(following);
    drop(first);
    let second = place.spawner().await;
    let path = format!("/v1/sessions/s1/exec/long/attach?sinceSeq={seq}");
    let (result, text) = second.caller.stream(Method::GET, &path, Value::Null).await.end().await;
    assert_eq!((result.status, result.exit_code), (ResultStatus::Completed, Some(0)), "{result:?}");
    assert_eq!(text, "line3\nline4\nline5\nline6\n");
    assert_eq!(second.caller.get("/v1/sessions").await.1["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_changed_key_loses_no_session() {
    let Some(place) = Place::find("rekey") else { return };
    let first = place.spawner().await;
    first.caller.create("s1").await;
    drop(first);
    let change = |config: &mut tale_sandbox::role::RoleConfig| {
        let before = std::mem::replace(&mut config.docker.key, Key::new("another token").unwrap());
        config.previous_key = Some(before);
    };
    // Its callers have not heard of it yet.
    let second = place.spawner_with(change).await;
    assert_eq!(second.caller.run("s1", "echo on").await.1, "on\n");
    assert_eq!(second.caller.create("s2").await.0, StatusCode::CREATED);
    drop(second);
    let mut third = place.spawner_with(|config| config.docker.key = Key::new("another token").unwrap()).await;
    assert_eq!(third.caller.get("/v1/limits").await.1["reason"], "bad_signature");
    third.caller.token = "another token";
    assert_eq!(third.caller.run("s2", "echo on").await.1, "on\n");
}

#[tokio::test]
async fn a_killed_container_is_noticed_and_its_files_stay() {
    let Some(place) = Place::find("gone") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    caller.create("s1").await;
    let mut following = caller.exec("s1", "long", "echo begun > file; echo go; sleep 60").await;
    following.until("go").await;
    place.docker(&["kill", &place.containers()[0]]);
    let (result, _) = following.end().await;
    assert_eq!((result.status, result.error_code), (ResultStatus::Failed, Some(ErrorCode::SessionLost)));
    assert_eq!(caller.get("/v1/sessions/s1").await.0, StatusCode::NOT_FOUND);
    assert_eq!(caller.create("s1").await.0, StatusCode::CREATED);
    assert_eq!(caller.run("s1", "cat file").await.1, "begun\n");
}

#[tokio::test]
async fn a_start_that_cannot_succeed_fails_at_once_and_leaves_nothing_running() {
    let Some(place) = Place::find("broken") else { return };
    // An image without the daemon: its container ends as soon as it starts.
    let spawner = place.spawner_with(|config| config.image = "debian:trixie-slim".to_owned()).await;
    let begun = std::time::Instant::now();
    let (status, refused) = spawner.caller.create("s1").await;
    assert_eq!((status, &refused["error"]), (StatusCode::BAD_GATEWAY, &Value::from("create_failed")), "{refused}");
    assert!(begun.elapsed().as_secs() < 30, "it waited for its whole budget");
    for _ in 0..100 {
        if place.containers().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(place.containers().is_empty());
    assert!(
        place.root.path().join("sessions").join(format!("ses-{}", spawner.caller.id("s1"))).exists(),
        "the workspace stays"
    );
}

#[tokio::test]
async fn whoever_hangs_up_ends_the_start() {
    let Some(place) = Place::find("hangup") else { return };
    let spawner = place.spawner().await;
    let caller = spawner.caller.clone();
    let create = tokio::spawn(async move { caller.create("s1").await });
    // Until its container is there.
    for _ in 0..200 {
        if !place.containers().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    create.abort();
    let was_done = create.await.is_ok();
    for _ in 0..150 {
        if was_done || place.containers().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(was_done || place.containers().is_empty());
    if !was_done {
        assert_eq!(spawner.caller.create("s1").await.0, StatusCode::CREATED);
    }
}
