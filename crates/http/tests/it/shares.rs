//! The doors of share links: the owner's, the reader's, and what neither hears.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tale_identity::Role;
use tale_testkit::upstream::Reply;
use tracing_subscriber::fmt::MakeWriter;

use crate::events::Live;
use crate::stage::Stage;

/// A stage with one chat of one question.
async fn chat() -> (Stage, String) {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let thread = asked(&mut stage, "threads/new", "Where do pelicans sleep?", "On sandbanks.").await;
    (stage, thread)
}

async fn asked(stage: &mut Stage, place: &str, question: &str, answer: &str) -> String {
    stage.upstream.push(Reply::text(answer));
    let sent =
        stage.post(&format!("chat/{place}/messages"), json!({ "content": question, "model": "fake-chat" })).await;
    let thread = sent.expect(202)["threadId"].as_str().unwrap().to_owned();
    stage.settled(&thread).await;
    thread
}

async fn share(stage: &mut Stage, thread: &str) -> String {
    let made = stage.post(&format!("chat/threads/{thread}/share"), json!({})).await.expect(200);
    made["token"].as_str().unwrap().to_owned()
}

fn texts(shared: &Value) -> Vec<&str> {
    let parts = |message: &'_ Value| message["parts"][0]["text"].as_str().is_some();
    let messages = shared["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| parts(message))
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn every_member_reads_what_was_shared_and_only_that() {
    let (mut stage, thread) = chat().await;
    let base = format!("chat/threads/{thread}");
    assert_eq!(stage.get(&format!("{base}/share-status")).await.expect(200), json!({ "share": null }));
    assert_eq!(stage.get(&base).await.expect(200)["shared"], false);
    let token = share(&mut stage, &thread).await;
    let path = stage.app(&format!("chat/shared/{token}"));
    asked(&mut stage, &format!("threads/{thread}"), "And otters?", "In the water.").await;
    for role in [Role::Member, Role::Editor, Role::Developer, Role::Admin, Role::Owner] {
        let shared = stage.member(role).await.get(&path).await.expect(200);
        assert_eq!(texts(&shared), ["Where do pelicans sleep?", "On sandbanks."], "{role}");
        assert_eq!((&shared["sharedBy"], shared["takenAt"].is_i64()), (&json!("Ada"), true));
        let keys: Vec<&String> = shared["messages"][1].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["createdAt", "parts", "role", "status"], "neither usage nor model nor ids");
    }
    assert_eq!(stage.member(Role::Disabled).await.get(&path).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    let status = stage.get(&format!("{base}/share-status")).await.expect(200)["share"].clone();
    assert_eq!((&status["token"], &status["newer"]), (&json!(token), &json!(true)));
    let again = stage.post(&format!("{base}/share"), json!({ "includeNewer": true })).await.expect(200);
    assert_eq!((&again["token"], &again["newer"]), (&json!(token), &json!(false)));
    let shared = stage.owner.get(&path).await.expect(200);
    assert_eq!(texts(&shared).len(), 4);
    assert_eq!(stage.get("chat/threads").await.expect(200)["page"][0]["shared"], true);
    assert_eq!(
        stage.post(&format!("{base}/share"), json!({ "messageId": "x" })).await.refusal(),
        (400, "INVALID_BODY".into()),
        "nobody names another version"
    );
}

#[tokio::test]
async fn nobody_else_opens_a_link_or_ends_it() {
    let (mut stage, thread) = chat().await;
    let token = share(&mut stage, &thread).await;
    let path = stage.app(&format!("chat/shared/{token}"));
    assert_eq!(stage.world.browser().get(&path).await.refusal(), (401, "UNAUTHORIZED".into()));
    let mut ben = stage.member(Role::Admin).await;
    let (mut eve, other, _) = stage.outsider().await;
    assert_eq!(eve.get(&path).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    let foreign = crate::stage::within(&other, &format!("chat/shared/{token}"));
    let refused = eve.get(&foreign).await;
    assert!(!String::from_utf8_lossy(&refused.bytes).contains(&token));
    assert_eq!(refused.refusal(), (404, "SHARE_NOT_FOUND".into()));
    for (method, act) in [("GET", "share-status"), ("POST", "share"), ("POST", "unshare")] {
        let path = stage.app(&format!("chat/threads/{thread}/{act}"));
        let body = if method == "GET" { "" } else { "{}" };
        assert_eq!(ben.raw(method, &path, body).await.refusal(), (404, "THREAD_NOT_FOUND".into()), "{act}");
    }
    assert_eq!(ben.get(&path).await.status, 200);
    let unshare = format!("chat/threads/{thread}/unshare");
    assert_eq!(stage.post(&unshare, json!({})).await.expect(200), json!({ "ok": true }));
    assert_eq!(stage.post(&unshare, json!({})).await.expect(200), json!({ "ok": false }));
    for reader in [&mut ben, &mut stage.owner] {
        assert_eq!(reader.get(&path).await.refusal(), (404, "SHARE_NOT_FOUND".into()));
    }
    let anew = share(&mut stage, &thread).await;
    assert_ne!(anew, token);
    let chat = stage.app(&format!("chat/threads/{thread}"));
    let path = stage.app(&format!("chat/shared/{anew}"));
    stage.owner.delete(&chat).await.expect(204);
    assert_eq!(ben.get(&path).await.refusal(), (404, "SHARE_NOT_FOUND".into()));
    assert_eq!(stage.post(&unshare, json!({})).await.expect(200), json!({ "ok": true }), "also from the trash");
}

#[tokio::test]
async fn open_tabs_hear_of_it() {
    let (mut stage, thread) = chat().await;
    let ben = stage.member(Role::Member).await;
    let stream = format!("/events?orgId={}", stage.org);
    let (mut mine, mut theirs) = (Live::open(&stage.owner, &stream).await, Live::open(&ben, &stream).await);
    for live in [&mut mine, &mut theirs] {
        assert_eq!(live.next().await.unwrap().0, "hello");
    }
    share(&mut stage, &thread).await;
    assert_eq!(mine.hint("thread").await["id"], json!(thread));
    stage.post(&format!("chat/threads/{thread}/unshare"), json!({})).await.expect(200);
    assert_eq!(mine.hint("thread").await["id"], json!(thread));
    let (event, hint) = theirs.next().await.unwrap();
    assert_eq!(event, "hint");
    assert_eq!((&hint["topic"], &hint["id"]), (&json!("sharedChats"), &Value::Null), "a reader is not told which chat");
}

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_log_line_tells_a_token() {
    let log = Log::default();
    let logger = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(logger);
    let (mut stage, thread) = chat().await;
    let token = share(&mut stage, &thread).await;
    let door = stage.app(&format!("chat/shared/{token}"));
    stage.owner.get(&door).await.expect(200);
    stage.owner.get(&format!("/dashboard/{}/chat/shared/{token}", stage.org)).await;
    stage.post(&format!("chat/threads/{thread}/unshare"), json!({})).await.expect(200);
    stage.owner.get(&door).await.expect(404);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("/api/app/chat/shared/…"), "the requests were logged");
    assert!(!text.contains(&token));
}
