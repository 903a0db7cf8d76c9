//! What a session can do, and what is left of it.

use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tale_sandbox_wire::sse::{ErrorCode, ResultStatus};

use crate::place::{Place, decoded, nonce};

#[tokio::test]
async fn a_session_runs_commands_and_keeps_its_files() {
    let Some(place) = Place::find("life") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    let (status, created) = caller.create("s1").await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    assert_eq!((&created["session"]["state"], &created["session"]["backend"]), (&json!("ready"), &json!("docker")));
    assert_eq!(caller.create("s1").await.0, StatusCode::CONFLICT);

    let (result, text) = caller.run("s1", "echo out; echo err >&2; echo $GREETING; pwd; echo kept > kept").await;
    assert_eq!((result.status, result.exit_code), (ResultStatus::Completed, Some(0)), "{result:?}");
    assert_eq!(decoded(&result.stdout_base64), "out\nhi\n/agent/workspace\n");
    assert_eq!((decoded(&result.stderr_base64).as_str(), text.contains("out\n")), ("err\n", true));
    let (result, _) = caller.run("s1", "exit 7").await;
    assert_eq!((result.status, result.exit_code, result.error_code), (ResultStatus::Failed, Some(7), None));

    // Files, both ways.
    let staged = json!({"files": [{"path": "inputs/a.txt", "contentBase64": "aGVsbG8="}]});
    let staged = caller.post("/v1/sessions/s1/files/stage", staged).await;
    assert_eq!(staged.0, StatusCode::OK, "{staged:?}");
    assert_eq!(caller.get("/v1/sessions/s1/files/content?path=inputs/a.txt").await.1, "hello");
    let listed = caller.get("/v1/sessions/s1/files?path=workspace").await.1;
    assert_eq!(listed["entries"][0]["name"], "kept");
    assert_eq!(caller.get("/v1/sessions/s1/files/content?path=../../etc/passwd").await.0, StatusCode::BAD_REQUEST);

    // Another organization cannot have the id, running or stopped.
    let foreign = json!({"sessionId": caller.id("s1"), "organizationId": "other"});
    assert_eq!(caller.post("/v1/sessions", foreign.clone()).await.1["error"], "placement_conflict");
    caller.release("s1").await;
    let stopped = place.said(&["rm", "-f", &place.containers()[0]]);
    assert!(!stopped.is_empty());
    assert_eq!(caller.get("/v1/sessions/s1").await.0, StatusCode::NOT_FOUND);
    assert_eq!(caller.post("/v1/sessions", foreign).await.1["error"], "placement_conflict");

    // Resumed on the same files, destroyed with them.
    assert_eq!(caller.create("s1").await.0, StatusCode::CREATED);
    assert_eq!(caller.run("s1", "cat kept").await.1, "kept\n");
    let workspaces = caller.get("/v1/workspaces").await.1;
    assert_eq!(workspaces["workspaces"][0]["organizationId"], "acme");
    assert_eq!(
        (&workspaces["workspaces"][0]["active"], &workspaces["organizations"]),
        (&json!(true), &json!(["acme"]))
    );
    let capacity = caller.get("/v1/capacity?organizationId=acme").await.1;
    assert_eq!(
        (&capacity["sessions"]["running"], &capacity["sessions"]["limit"]),
        (&json!(1), &json!(8)),
        "{capacity}"
    );
    let destroyed = caller.call(Method::DELETE, "/v1/sessions/s1?await_deletion=1", Value::Null).await;
    assert_eq!(destroyed.1, json!({"destroyed": true, "deletion": "done"}));
    assert!(place.containers().is_empty());
    assert!(!place.root.path().join("sessions").join(format!("ses-{}", caller.id("s1"))).exists());
    let torn_down = caller.call(Method::DELETE, "/v1/organizations/acme", Value::Null).await;
    assert_eq!(torn_down.1["packageCaches"], 3, "{torn_down:?}");
}

#[tokio::test]
async fn the_interface_takes_signed_requests_once() {
    let Some(place) = Place::find("sign") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    assert_eq!(caller.unsigned("/nothing").await.0, StatusCode::NOT_FOUND);
    assert_eq!(caller.unsigned("/v1/limits").await.1["reason"], "missing_signature");
    let request = |nonce: &str, skew| caller.signed(&Method::GET, "/v1/limits", b"", nonce, skew);
    let first = request("n1", 0);
    let copy = first.clone();
    assert_eq!(caller.send(first).await, (StatusCode::OK, json!({"maxSessions": 8})));
    assert_eq!(caller.send(copy).await.1["reason"], "replay");
    assert_eq!(caller.send(request("n2", -31_000)).await.1["reason"], "timestamp_skew");
    let mut moved = request("n3", 0);
    *moved.uri_mut() = format!("{}?organizationId=acme", moved.uri()).parse().unwrap();
    assert_eq!(caller.send(moved).await.1["reason"], "bad_signature");
    let huge = vec![b' '; (8 << 20) + 1];
    let refused = caller.send(caller.signed(&Method::POST, "/v1/sessions", &huge, &nonce(), 0)).await;
    assert_eq!((refused.0, &refused.1["error"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
    for (path, body) in [
        ("/v1/sessions", json!({"sessionId": "../x", "organizationId": "acme"})),
        ("/v1/sessions", json!({"sessionId": "x", "organizationId": "acme", "profile": "root"})),
        ("/v1/sessions/..%2f/exec", json!({"execId": "a", "shell": "true"})),
    ] {
        assert_eq!(caller.post(path, body).await.0, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(caller.get("/v1/sessions/none").await.1["error"], "not_found");
    assert_eq!(caller.get("/v1/capacity").await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn commands_are_cancelled_fed_and_followed_again() {
    let Some(place) = Place::find("exec") else { return };
    let spawner = place.spawner().await;
    let caller = &spawner.caller;
    caller.create("s1").await;
    let body = json!({"execId": "cat", "command": ["cat"], "stdinMode": "hold", "collectOutput": false});
    let mut cat = caller.stream(Method::POST, "/v1/sessions/s1/exec", body).await;
    let line = json!({"b64": "eyJhIjoxfQo="});
    assert_eq!(caller.post("/v1/sessions/s1/exec/cat/stdin", line).await.1["ok"], true);
    let seq = cat.until("{\"a\":1}").await;
    drop(cat);
    assert_eq!(caller.get("/v1/sessions/s1/exec/cat").await.1["state"], "running");
    let checkpoint = json!({"seq": seq, "state": {"line": 1}});
    let stored = caller.call(Method::PUT, "/v1/sessions/s1/exec/cat/checkpoint", checkpoint).await;
    assert_eq!(stored.0, StatusCode::OK, "{stored:?}");
    let back = caller.get("/v1/sessions/s1/exec/cat/checkpoint").await.1;
    assert_eq!(back["checkpoint"]["state"], json!({"line": 1}));
    let again =
        caller.stream(Method::GET, &format!("/v1/sessions/s1/exec/cat/attach?sinceSeq={seq}"), Value::Null).await;
    assert_eq!(caller.post("/v1/sessions/s1/exec/cat/cancel", Value::Null).await.1["killed"], true);
    let (result, _) = again.end().await;
    assert_eq!((result.status, result.error_code), (ResultStatus::Cancelled, Some(ErrorCode::Cancelled)));
    assert_eq!(caller.get("/v1/sessions/s1/exec/none").await.1["error"], "gone");
    let (result, _) = caller.exec("s1", "cat", "true").await.end().await;
    assert_eq!(result.status, ResultStatus::Failed, "an id is used once");
}

#[tokio::test]
async fn idle_sessions_make_room_and_a_full_deployment_has_a_line() {
    let Some(place) = Place::find("room") else { return };
    let spawner = place.spawner_with(|config| config.capacity = Some(1)).await;
    let caller = &spawner.caller;
    caller.create("s1").await;
    caller.run("s1", "echo 1 > mine").await;
    let (status, refused) = caller.create("s2").await;
    assert_eq!((status, &refused["error"]), (StatusCode::TOO_MANY_REQUESTS, &json!("session_quota")));
    assert_eq!(refused["queue"], json!({"position": 1, "waiting": 1}));
    assert_eq!(caller.create("s3").await.1["queue"]["position"], 2);
    // A spawner after this one knows who came first.
    let kept = place.root.path().join("sessions/.line");
    while std::fs::read_to_string(&kept).unwrap_or_default().lines().count() < 2 {
        tokio::task::yield_now().await;
    }
    drop(spawner);
    let spawner = place.spawner_with(|config| config.capacity = Some(1)).await;
    let caller = &spawner.caller;
    assert_eq!(caller.create("s3").await.1["queue"], json!({"position": 2, "waiting": 2}));
    caller.release("s1").await;
    assert_eq!(caller.create("s3").await.0, StatusCode::TOO_MANY_REQUESTS, "the room is for who came first");
    assert_eq!(caller.create("s2").await.0, StatusCode::CREATED);
    assert_eq!(place.containers().len(), 1);
    assert_eq!(caller.get("/v1/sessions/s1").await.0, StatusCode::NOT_FOUND);
    assert!(place.root.path().join("sessions").join(format!("ses-{}/workspace/mine", caller.id("s1"))).exists());
    // Pinned, nothing takes it.
    let pinned = caller.call(Method::PATCH, "/v1/sessions/s2/pin", json!({"pinned": true})).await;
    assert_eq!(pinned.1, json!({"pinned": true}), "{pinned:?}");
    caller.release("s2").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(caller.create("s1").await.0, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn deployments_on_one_engine_may_have_sessions_of_one_name() {
    let (Some(first), Some(second)) = (Place::find("one"), Place::find("two")) else { return };
    let (mut one, mut two) = (first.spawner().await, second.spawner().await);
    one.caller.prefix = format!("same{}-", std::process::id());
    two.caller.prefix.clone_from(&one.caller.prefix);
    for (running, word) in [(&one, "one"), (&two, "two")] {
        assert_eq!(running.caller.create("s").await.0, StatusCode::CREATED);
        running.caller.run("s", &format!("echo {word} > mine")).await;
    }
    assert_eq!(one.caller.run("s", "cat mine").await.1, "one\n");
    // Found again by a spawner that knows nothing yet, and gone without the other one.
    drop(two);
    let mut two = second.spawner().await;
    two.caller.prefix.clone_from(&one.caller.prefix);
    assert_eq!(two.caller.run("s", "cat mine").await.1, "two\n");
    assert_eq!(two.caller.create("s").await.0, StatusCode::CONFLICT);
    let destroyed = one.caller.call(Method::DELETE, "/v1/sessions/s?await_deletion=1", Value::Null).await;
    assert_eq!(destroyed.1["deletion"], "done");
    assert_eq!((first.containers().len(), second.containers().len()), (0, 1));
    assert_eq!(two.caller.run("s", "cat mine").await.1, "two\n");
}
