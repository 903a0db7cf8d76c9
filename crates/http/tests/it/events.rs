//! `/events` and the stream of a generation: what arrives, in which order, and when it ends.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use serde_json::{Value, json};
use tale_core::Actor;
use tale_governance::policies::{Key, Policies};
use tale_orgfiles::{AgeKeys, ConfigStore};
use tale_testkit::upstream::{Reply, Step};

use crate::client::Client;
use crate::stage::Stage;

/// A live stream, read event by event.
pub struct Live {
    body: axum::body::BodyDataStream,
    held: String,
}

impl Live {
    pub async fn open(client: &Client, path: &str) -> Self {
        let response = client.open("GET", path, Body::empty()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        assert!(response.headers().get("content-encoding").is_none());
        Self { body: response.into_body().into_data_stream(), held: String::new() }
    }

    /// The next event, without comments; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((block, rest)) =
                self.held.split_once("\n\n").map(|(block, rest)| (block.to_owned(), rest.to_owned()))
            {
                self.held = rest;
                let field = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).map(str::to_owned)
                };
                if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
                    return Some((event, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.body.next())
                .await
                .expect("an event within 30 seconds");
            self.held.push_str(std::str::from_utf8(&chunk?.unwrap()).unwrap());
        }
    }

    /// The next event that is no hint.
    async fn turn(&mut self) -> (String, Value) {
        loop {
            let (event, data) = self.next().await.expect("the stream goes on");
            if event != "hint" {
                return (event, data);
            }
        }
    }

    /// Reads until a hint about a topic.
    pub async fn hint(&mut self, topic: &str) -> Value {
        loop {
            let (event, data) = self.next().await.expect("the stream goes on");
            if event == "hint" && data["topic"] == topic {
                return data;
            }
        }
    }
}

/// A chat in which nothing was said.
async fn empty_chat(stage: &mut Stage) -> String {
    stage.post("chat/threads", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned()
}

fn events(stage: &Stage, thread: &str) -> String {
    format!("/events?orgId={}&threadId={thread}", stage.org)
}

#[tokio::test]
async fn a_tab_hears_hello_and_hints_of_its_organization_only() {
    let mut stage = Stage::new().await;
    let (mut eve, other, _) = stage.outsider().await;
    let mut live = Live::open(&stage.owner, &format!("/events?orgId={}", stage.org)).await;
    assert_eq!(live.next().await.unwrap(), ("hello".into(), json!({})));
    eve.post(&crate::stage::within(&other, "chat/threads"), json!({})).await.expect(201);
    let thread = empty_chat(&mut stage).await;
    let (event, first) = live.next().await.unwrap();
    assert_eq!(event, "hint");
    assert_eq!(
        first,
        json!({ "topic": "thread", "id": thread }),
        "the other organization's chat came first and is not told"
    );
    let ben = stage.member(tale_identity::Role::Member).await;
    live.hint("members").await;
    let mut bens = Live::open(&ben, &format!("/events?orgId={}", stage.org)).await;
    assert_eq!(bens.next().await.unwrap().0, "hello");
    stage.post("chat/threads", json!({})).await.expect(201);
    stage
        .post(
            "members",
            json!({ "email": "c@acme.test", "name": "C", "role": "member", "password": crate::stage::PASSWORD }),
        )
        .await
        .expect(201);
    let (_, heard) = bens.next().await.unwrap();
    assert_eq!(heard["topic"], "members", "another person's chats are not hinted at: {heard}");
}

#[tokio::test]
async fn who_follows_a_hint_is_not_answered_from_what_was_held_before_it() {
    let mut stage = Stage::new().await;
    let endpoints = stage.app("model-endpoints");
    assert_eq!(stage.owner.get(&endpoints).await.expect(200)["enabled"], false, "which is held from now on");
    let mut live = Live::open(&stage.owner, &format!("/events?orgId={}", stage.org)).await;
    assert_eq!(live.next().await.unwrap().0, "hello");
    let world = &stage.world;
    let files = ConfigStore::new(&world.folder.path().join("config"), AgeKeys::load(None, None).unwrap());
    let another_process = Policies::new(world.app.database.clone(), world.clock.clone(), files);
    let on = json!({ "modelApi": { "enabled": true } });
    let org = stage.org.parse().unwrap();
    another_process.set(org, &Actor::System, Key::ModelAccess, on, None).await.unwrap();
    live.hint("policies").await;
    assert_eq!(stage.owner.get(&endpoints).await.expect(200)["enabled"], true);
}

#[tokio::test]
async fn a_turn_is_told_from_its_start_to_its_end() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let thread = empty_chat(&mut stage).await;
    let mut live = Live::open(&stage.owner, &events(&stage, &thread)).await;
    assert_eq!(live.next().await.unwrap().0, "hello");
    stage.upstream.push(Reply::text("The notice period is ninety days."));
    let sent = stage
        .post(&format!("chat/threads/{thread}/messages"), json!({ "content": "How long?", "model": "fake-chat" }))
        .await
        .expect(202);
    let (mut text, mut started) = (String::new(), false);
    loop {
        let (event, data) = live.turn().await;
        assert_eq!((&data["threadId"], &data["messageId"]), (&json!(thread), &sent["messageId"]), "{event}");
        match event.as_str() {
            "turn" => {
                started = true;
                assert!(["queued", "streaming"].contains(&data["status"].as_str().unwrap()));
                text = data["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
            }
            "delta" => {
                assert!(started, "deltas follow a snapshot");
                assert_eq!(data["kind"], "text");
                text.push_str(data["text"].as_str().unwrap());
            }
            "part" => {}
            "settled" => {
                assert_eq!(data["status"], "complete");
                break;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(text, "The notice period is ninety days.");
    let messages = stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200);
    assert_eq!(messages["messages"][1]["parts"][0], json!({ "type": "text", "text": text }));
}

#[tokio::test]
async fn a_late_tab_gets_the_text_so_far_and_stop_ends_the_turn() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let thread = empty_chat(&mut stage).await;
    stage.upstream.push(Reply::steps(vec![Step::Text("First half. ".into()), Step::Hang]));
    let mut early = Live::open(&stage.owner, &events(&stage, &thread)).await;
    let sent = stage
        .post(&format!("chat/threads/{thread}/messages"), json!({ "content": "Go", "model": "fake-chat" }))
        .await
        .expect(202);
    while early.turn().await.0 != "delta" {}
    let mut late = Live::open(&stage.owner, &events(&stage, &thread)).await;
    assert_eq!(late.next().await.unwrap().0, "hello");
    let (event, snapshot) = late.turn().await;
    assert_eq!(
        (event.as_str(), &snapshot["status"], &snapshot["messageId"]),
        ("turn", &json!("streaming"), &sent["messageId"])
    );
    assert_eq!(snapshot["parts"][0], json!({ "type": "text", "text": "First half. " }));
    let stopped = stage.post(&format!("chat/threads/{thread}/stop"), json!({})).await.expect(202);
    assert_eq!((&stopped["status"], &stopped["messageId"]), (&json!("cancelling"), &sent["messageId"]));
    for live in [&mut early, &mut late] {
        loop {
            let (event, data) = live.turn().await;
            if event == "settled" {
                assert_eq!(data["status"], "cancelled");
                break;
            }
        }
    }
    stage.upstream.wait_for_disconnects(1).await;
    let again = stage.post(&format!("chat/threads/{thread}/stop"), json!({})).await;
    assert_eq!(again.refusal(), (404, "CHAT_TURN_NOT_RUNNING".into()));
}

#[tokio::test]
async fn a_key_holder_follows_a_generation() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let thread = empty_chat(&mut stage).await;
    let path = format!("/api/v1/threads/{thread}/generation");
    assert_eq!(stage.key.get(&path).await.expect(200), json!({ "status": "idle" }));
    assert_eq!(stage.key.get(&format!("{path}?stream=2")).await.refusal(), (400, "INVALID_QUERY".into()));
    stage.upstream.push(Reply::steps(vec![
        Step::Reasoning("Let me see. ".into()),
        Step::Text("Grüße 😀".into()),
        Step::Text(" und mehr".into()),
    ]));
    let sent = stage
        .key
        .post(&format!("/api/v1/threads/{thread}/messages"), json!({ "content": "Hi", "model": "fake-chat" }))
        .await
        .expect(202);
    let mut live = Live::open(&stage.key, &format!("{path}?stream=1")).await;
    let mut held: Vec<u16> = Vec::new();
    let last = loop {
        let (event, state) = live.next().await.unwrap();
        assert_eq!(event, "generation");
        match state["status"].as_str().unwrap() {
            "queued" => assert_eq!(state["messageId"], sent["messageId"]),
            "streaming" => {
                held.truncate(usize::try_from(state["textOffset"].as_u64().unwrap()).unwrap());
                held.extend(state["text"].as_str().unwrap().encode_utf16());
                assert_eq!(held.len() as u64, state["textLength"].as_u64().unwrap());
            }
            _ => break state,
        }
    };
    assert_eq!(last, json!({ "status": "idle", "lastMessageId": sent["messageId"], "lastStatus": "complete" }));
    assert!(live.next().await.is_none(), "the stream ends with the turn");
    let message = stage
        .key
        .get(&format!("/api/v1/threads/{thread}/messages/{}", sent["messageId"].as_str().unwrap()))
        .await
        .expect(200);
    let whole: String = message["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "text")
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert_eq!(whole, "Grüße 😀 und mehr");
    assert!(held.is_empty() || whole.encode_utf16().collect::<Vec<_>>().starts_with(&held));
    assert_eq!(stage.key.get(&path).await.expect(200), last);
}

#[tokio::test]
async fn foreign_and_missing_chats_cannot_be_followed() {
    let mut stage = Stage::new().await;
    let (mut eve, other, _) = stage.outsider().await;
    let thread = empty_chat(&mut stage).await;
    let mut ben = stage.member(tale_identity::Role::Admin).await;
    assert_eq!(
        ben.get(&events(&stage, &thread)).await.refusal(),
        (404, "THREAD_NOT_FOUND".into()),
        "not even an admin reads another person's chat"
    );
    assert_eq!(eve.get(&events(&stage, &thread)).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    assert_eq!(
        eve.get(&format!("/events?orgId={other}&threadId={thread}")).await.refusal(),
        (404, "THREAD_NOT_FOUND".into())
    );
    for id in ["x", "01900000-0000-7000-8000-000000000000"] {
        assert_eq!(stage.owner.clone().get(&events(&stage, id)).await.refusal(), (404, "THREAD_NOT_FOUND".into()));
    }
    let mut nobody = stage.world.browser();
    assert_eq!(nobody.get(&events(&stage, &thread)).await.refusal(), (401, "UNAUTHORIZED".into()));
}

#[tokio::test]
async fn draining_ends_the_streams() {
    let stage = Stage::new().await;
    let mut live = Live::open(&stage.owner, &format!("/events?orgId={}", stage.org)).await;
    assert_eq!(live.next().await.unwrap().0, "hello");
    let mut key = stage.key.clone();
    assert_eq!(key.get("/ready").await.status, 200);
    stage.world.stopping.cancel();
    while live.next().await.is_some() {}
    assert_eq!(key.get("/ready").await.status, 503);
    assert_eq!(key.get("/ping").await.status, 200);
}

#[tokio::test]
async fn administrators_hear_which_configuration_files_of_their_organization_change() {
    let mut stage = Stage::new().await;
    let path = format!("/events/file?orgId={}", stage.org);
    let mut live = Live::open(&stage.owner, &path).await;
    assert_eq!(live.next().await.unwrap().0, "hello");
    for slug in ["globex", "acme"] {
        let folder = stage.world.folder.path().join("config").join(slug).join("object-storage");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("connection.json"), "by hand").unwrap();
    }
    let told = json!({ "path": "object-storage/connection.json", "change": "created" });
    assert_eq!(live.next().await.unwrap(), ("file".into(), told));
    let mut nobody = stage.world.browser();
    assert_eq!(nobody.get(&path).await.refusal(), (401, "UNAUTHORIZED".into()));
    let mut ben = stage.member(tale_identity::Role::Developer).await;
    assert_eq!(ben.get(&path).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    let foreign = "/events/file?orgId=01900000-0000-7000-8000-000000000000";
    assert_eq!(stage.owner.clone().get(foreign).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    stage.world.stopping.cancel();
    while live.next().await.is_some() {}
}

#[tokio::test]
async fn a_stream_ends_with_its_session_or_its_membership() {
    let mut stage = Stage::new().await;
    let app = stage.world.app.clone();
    let path = format!("/events?orgId={}", stage.org);
    let mut ben = stage.member(tale_identity::Role::Editor).await;
    let members = stage.get("members").await.expect(200);
    let id = members["members"].as_array().unwrap().iter().find(|m| m["role"] == "editor").unwrap()["userId"]
        .as_str()
        .unwrap()
        .to_owned();
    let (mut adas, mut bens) = (Live::open(&stage.owner, &path).await, Live::open(&ben, &path).await);
    app.listeners().look(&app.identity).await;
    assert_eq!(app.listeners().count(), 2);
    assert_eq!((adas.next().await.unwrap().0, bens.next().await.unwrap().0), ("hello".into(), "hello".into()));

    ben.post("/api/auth/sign-out", json!({})).await.expect(204);
    app.listeners().look(&app.identity).await;
    while bens.next().await.is_some() {}

    ben.post("/api/auth/sign-in/email", json!({ "email": "editor@acme.test", "password": crate::stage::PASSWORD }))
        .await
        .expect(200);
    let mut bens = Live::open(&ben, &path).await;
    let member = stage.app(&format!("members/{id}"));
    stage.owner.patch(&member, json!({ "role": "disabled" })).await.expect(200);
    app.listeners().look(&app.identity).await;
    while bens.next().await.is_some() {}

    stage.world.clock.advance(Duration::from_secs(400 * 24 * 3600));
    app.listeners().look(&app.identity).await;
    while adas.next().await.is_some() {}
    assert_eq!(app.listeners().count(), 0, "an ended stream leaves no place behind");
}
