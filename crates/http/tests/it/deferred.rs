//! The doors of messages that wait for their attachments.

use serde_json::{Value, json};
use tale_core::ids::{FileId, OrgId};
use tale_testkit::upstream::Reply;

use crate::stage::Stage;

async fn stage() -> Stage {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    stage
}

impl Stage {
    async fn chat_upload(&mut self, content: &str) -> String {
        let wish = json!({ "fileName": "note.txt", "contentType": "", "size": content.len(), "purpose": "chat" });
        let slot = self.post("uploads", wish).await.expect(201);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = http.put(slot["url"].as_str().unwrap()).body(content.to_owned());
        for (name, value) in slot["headers"].as_object().unwrap() {
            request = request.header(name, value.as_str().unwrap());
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
        slot["fileId"].as_str().unwrap().to_owned()
    }

    async fn read(&self, file: &str) {
        let (org, file): (OrgId, FileId) = (self.org.parse().unwrap(), file.parse().unwrap());
        self.world.knowledge.index_file(org, file, || async { Ok(()) }).await.unwrap();
    }
}

fn with(text: &str, file: &str) -> Value {
    json!({ "content": text, "model": "fake-chat", "attachments": [file] })
}

#[tokio::test]
async fn a_parked_message_is_listed_until_it_goes() {
    let mut stage = stage().await;
    let file = stage.chat_upload("The code word is heron.").await;
    assert_eq!(
        stage.post("chat/threads/new/messages", with("Code word?", &file)).await.refusal(),
        (409, "ATTACHMENT_NOT_READY".into())
    );
    let parked = stage.post("chat/threads/new/deferred-sends", with("Code word?", &file)).await.expect(202);
    let (thread, id) = (parked["threadId"].as_str().unwrap().to_owned(), parked["id"].clone());
    let created = parked["createdAt"].clone();
    let wanted = json!({
        "id": id, "threadId": thread, "state": "waiting", "position": 1, "content": "Code word?", "waitingFor": [file],
        "attachments": [{
            "fileId": file, "name": "note.txt", "mediaType": "text/plain", "sizeBytes": 23, "recording": false,
            "state": "processing",
        }],
        "createdAt": created,
    });
    assert_eq!(parked, wanted);
    let list = format!("chat/threads/{thread}/deferred-sends");
    assert_eq!(stage.get(&list).await.expect(200), json!({ "sends": [wanted] }));
    assert_eq!(stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200), json!({ "messages": [] }));

    stage.read(&file).await;
    assert_eq!(stage.get(&list).await.expect(200)["sends"][0]["attachments"][0]["state"], "ready");
    stage.upstream.push(Reply::text("Heron."));
    assert_eq!(stage.world.app.chat.send_parked().await.unwrap(), 1);
    assert_eq!(stage.get(&list).await.expect(200), json!({ "sends": [] }));
    let messages = stage.settled(&thread).await["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2);
    let late = stage.app(&format!("{list}/{}", id.as_str().unwrap()));
    assert_eq!(stage.owner.delete(&late).await.refusal(), (404, "DEFERRED_SEND_NOT_FOUND".into()), "it was sent");
}

#[tokio::test]
async fn a_parked_message_can_be_taken_back_and_changed() {
    let mut stage = stage().await;
    let (one, two) = (stage.chat_upload("one").await, stage.chat_upload("two").await);
    let body = json!({ "content": "Compare", "model": "auto", "attachments": [one, two], "locale": "de" });
    let parked = stage.post("chat/threads/new/deferred-sends", body).await.expect(202);
    let base = format!(
        "chat/threads/{}/deferred-sends/{}",
        parked["threadId"].as_str().unwrap(),
        parked["id"].as_str().unwrap()
    );
    stage.post(&format!("{base}/attachments/{two}/retry"), json!({})).await.expect(204);
    let path = stage.app(&format!("{base}/attachments/{two}"));
    stage.owner.delete(&path).await.expect(204);
    assert_eq!(stage.owner.delete(&path).await.refusal(), (404, "FILE_NOT_FOUND".into()));
    let path = stage.app(&base);
    let (mut eve, other, _) = stage.outsider().await;
    let foreign = path.replace(&stage.org, &other);
    assert_eq!(eve.delete(&foreign).await.refusal(), (404, "THREAD_NOT_FOUND".into()));
    let back = stage.owner.delete(&path).await.expect(200);
    assert_eq!(
        (&back["content"], &back["threadDeleted"], back["attachments"].as_array().unwrap().len()),
        (&json!("Compare"), &json!(true), 1)
    );
    assert_eq!(stage.owner.delete(&path).await.refusal(), (404, "THREAD_NOT_FOUND".into()));
}

#[tokio::test]
async fn a_message_over_the_api_goes_at_once_past_what_waits() {
    let mut stage = stage().await;
    let file = stage.chat_upload("one").await;
    let parked = stage.post("chat/threads/new/deferred-sends", with("Wait", &file)).await.expect(202);
    let thread = parked["threadId"].as_str().unwrap().to_owned();
    stage.upstream.push(Reply::text("Now."));
    let path = format!("/api/v1/threads/{thread}/messages");
    let body = json!({ "content": "Now?", "model": "fake-chat" });
    assert_eq!(stage.key.post(&path, body).await.expect(202)["status"], "accepted");
    assert_eq!(stage.settled(&thread).await["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        stage.key.post(&path, with("a", &file)).await.refusal(),
        (400, "INVALID_BODY".into()),
        "a message over the API is text"
    );
}
