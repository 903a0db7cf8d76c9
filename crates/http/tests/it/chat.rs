//! The browser's chat doors with a scripted model behind them.

use serde_json::{Value, json};
use tale_identity::Role;
use tale_testkit::upstream::{Reply, Step};

use crate::stage::Stage;

async fn stage() -> Stage {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    stage
}

fn ask(text: &str) -> Value {
    json!({ "content": text, "model": "fake-chat" })
}

fn text_of(message: &Value) -> String {
    message["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect()
}

/// Starts a chat with one settled question. Returns the chat, the question and the reply.
async fn asked(stage: &mut Stage, question: &str, reply: &str) -> (String, String, String) {
    stage.upstream.push(Reply::text(reply));
    let sent = stage.post("chat/threads/new/messages", ask(question)).await.expect(202);
    assert_eq!((&sent["model"], &sent["providerSlug"]), (&json!("fake-chat"), &json!("local")));
    let id = |name: &str| sent[name].as_str().unwrap().to_owned();
    let thread = id("threadId");
    stage.settled(&thread).await;
    (thread, id("userMessageId"), id("messageId"))
}

#[tokio::test]
async fn a_question_is_answered_and_listed() {
    let mut stage = stage().await;
    let (thread, question, reply) = asked(&mut stage, "What is the notice period?", "Ninety days.").await;
    let messages = stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200)["messages"].clone();
    let ids: Vec<&str> = messages.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&question, &reply]);
    assert_eq!(
        (text_of(&messages[0]), text_of(&messages[1])),
        ("What is the notice period?".into(), "Ninety days.".into())
    );
    assert_eq!(
        (&messages[1]["status"], &messages[1]["finishReason"], &messages[1]["role"]),
        (&json!("complete"), &json!("stop"), &json!("assistant"))
    );
    assert!(messages[1]["usage"]["inputTokens"].as_u64().unwrap() > 0);
    let row = stage.get(&format!("chat/threads/{thread}")).await.expect(200);
    assert_eq!((&row["running"], &row["archivedAt"], &row["pinnedAt"]), (&json!(false), &Value::Null, &Value::Null));
    let listed = stage.get("chat/threads?limit=5").await.expect(200);
    assert_eq!(
        (&listed["page"][0]["id"], &listed["isDone"], &listed["continueCursor"]),
        (&json!(thread), &json!(true), &json!(""))
    );
}

#[tokio::test]
async fn edits_and_retries_make_versions_to_switch_between() {
    let mut stage = stage().await;
    let (thread, question, reply) = asked(&mut stage, "First", "One.").await;
    let base = format!("chat/threads/{thread}");
    stage.upstream.push(Reply::text("Two."));
    let edited = stage.post(&format!("{base}/messages/{question}/edit"), ask("Second")).await.expect(202);
    let messages = stage.settled(&thread).await;
    assert_eq!(text_of(&messages["messages"][0]), "Second");
    assert_eq!(
        messages["messages"][0]["versions"],
        json!({ "index": 1, "count": 2, "ids": [question, edited["userMessageId"]] })
    );
    stage.upstream.push(Reply::text("Three."));
    stage
        .post(&format!("{base}/messages/{}/retry", edited["messageId"].as_str().unwrap()), json!({}))
        .await
        .expect(202);
    let messages = stage.settled(&thread).await;
    assert_eq!(
        (text_of(&messages["messages"][0]), text_of(&messages["messages"][1])),
        ("Second".into(), "Three.".into())
    );
    let first = stage.post(&format!("{base}/versions"), json!({ "messageId": question })).await.expect(200);
    assert_eq!((text_of(&first["messages"][0]), &first["messages"][1]["id"]), ("First".into(), &json!(reply)));
    for (path, body) in [
        ("versions", json!({ "messageId": "01900000-0000-7000-8000-000000000000" })),
        ("fork", json!({ "messageId": "01900000-0000-7000-8000-000000000000" })),
        ("messages/x/edit", ask("a")),
        ("messages/01900000-0000-7000-8000-000000000000/retry", json!({})),
    ] {
        assert_eq!(
            stage.post(&format!("{base}/{path}"), body).await.refusal(),
            (404, "MESSAGE_NOT_FOUND".into()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_fork_is_a_chat_of_its_own() {
    let mut stage = stage().await;
    let (thread, _, reply) = asked(&mut stage, "Question", "Answer.").await;
    let fork =
        stage.post(&format!("chat/threads/{thread}/fork"), json!({ "messageId": reply })).await.expect(201)["id"]
            .as_str()
            .unwrap()
            .to_owned();
    assert_ne!(fork, thread);
    let copied = stage.get(&format!("chat/threads/{fork}/messages")).await.expect(200);
    assert_eq!(copied["messages"].as_array().unwrap().len(), 2);
    assert_ne!(copied["messages"][1]["id"], reply);
    stage.upstream.push(Reply::text("More."));
    stage.post(&format!("chat/threads/{fork}/messages"), ask("And?")).await.expect(202);
    assert_eq!(stage.settled(&fork).await["messages"].as_array().unwrap().len(), 4);
    assert_eq!(
        stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200)["messages"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_reply_is_rated_found_and_exported() {
    let mut stage = stage().await;
    let (thread, question, reply) = asked(&mut stage, "Where do pelicans sleep?", "On sandbanks, mostly.").await;
    let feedback = stage.app(&format!("chat/threads/{thread}/messages/{reply}/feedback"));
    for rating in ["up", "down"] {
        stage.owner.put(&feedback, json!({ "rating": rating, "comment": "hm" })).await.expect(204);
        let messages = stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200);
        assert_eq!(messages["messages"][1]["feedback"], rating);
    }
    stage.owner.put(&feedback, json!({ "rating": null })).await.expect(204);
    assert!(
        stage.get(&format!("chat/threads/{thread}/messages")).await.expect(200)["messages"][1]
            .get("feedback")
            .is_none()
    );
    assert_eq!(stage.owner.put(&feedback, json!({ "rating": "meh" })).await.status, 400);

    let found = stage.get("search?q=sandbanks").await.expect(200);
    assert_eq!((&found["threads"][0]["id"], &found["threads"][0]["messageId"]), (&json!(thread), &json!(reply)));
    assert!(found["threads"][0]["snippet"].as_str().unwrap().contains("«"));
    assert_eq!(stage.get("search?q=sandbanks&scope=chats").await.expect(200)["documents"], json!([]));
    let mut ben = stage.member(Role::Admin).await;
    let path = stage.app("search?q=sandbanks");
    assert_eq!(ben.get(&path).await.expect(200)["threads"], json!([]), "nobody finds another person's words");
    for (path, code) in [
        ("search?q=a&scope=all&x=1", "INVALID_QUERY"),
        ("search?q=a&scope=mail", "INVALID_QUERY"),
        ("search", "INVALID_QUERY"),
        ("search?q=", "INVALID_QUERY"),
    ] {
        assert_eq!(stage.get(path).await.refusal(), (400, code.into()), "{path}");
    }
    assert_eq!(stage.get(&format!("search?q={}", "a".repeat(201))).await.refusal().0, 400);

    let file = stage.get(&format!("chat/threads/{thread}/export?format=markdown")).await;
    assert_eq!(
        (file.header("content-type"), file.header("content-disposition")),
        ("text/markdown; charset=utf-8", "attachment; filename=\"chat.md\"")
    );
    let text = String::from_utf8(file.bytes).unwrap();
    assert!(text.contains("Where do pelicans sleep?") && text.contains("On sandbanks, mostly."));
    let only = stage.get(&format!("chat/threads/{thread}/export?messages={question}")).await;
    assert!(!String::from_utf8(only.bytes).unwrap().contains("sandbanks"));
    assert_eq!(
        stage.get(&format!("chat/threads/{thread}/export?format=pdf")).await.refusal(),
        (400, "INVALID_QUERY".into())
    );
    assert_eq!(
        stage.get(&format!("chat/threads/{thread}/export?messages=x")).await.refusal(),
        (404, "MESSAGE_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn one_turn_at_a_time() {
    let mut stage = stage().await;
    stage.upstream.push(Reply::steps(vec![Step::Text("Half".into()), Step::Hang]));
    let sent = stage.post("chat/threads/new/messages", ask("Go")).await.expect(202);
    let thread = sent["threadId"].as_str().unwrap().to_owned();
    let base = format!("chat/threads/{thread}");
    let (mid, user) =
        (sent["messageId"].as_str().unwrap().to_owned(), sent["userMessageId"].as_str().unwrap().to_owned());
    for (path, body) in [
        ("messages".to_owned(), ask("And?")),
        (format!("messages/{user}/edit"), ask("Other")),
        (format!("messages/{mid}/retry"), json!({})),
    ] {
        assert_eq!(
            stage.post(&format!("{base}/{path}"), body).await.refusal(),
            (409, "CHAT_TURN_IN_PROGRESS".into()),
            "{path}"
        );
    }
    let path = stage.app(&base);
    for change in [json!({ "archived": true }), json!({ "archived": true, "title": "x" })] {
        assert_eq!(stage.owner.patch(&path, change).await.refusal(), (409, "CHAT_TURN_IN_PROGRESS".into()));
    }
    assert_eq!(stage.owner.delete(&path).await.refusal(), (409, "CHAT_TURN_IN_PROGRESS".into()));
    assert_eq!(stage.get(&base).await.expect(200)["running"], true);
    stage.post(&format!("{base}/stop"), json!({})).await.expect(202);
    let messages = stage.settled(&thread).await;
    assert_eq!(
        (&messages["messages"][1]["status"], &messages["messages"][1]["finishReason"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    stage.owner.patch(&path, json!({ "archived": true })).await.expect(200);
    assert_eq!(stage.post(&format!("{base}/messages"), ask("x")).await.refusal(), (409, "CHAT_THREAD_ARCHIVED".into()));
}

#[tokio::test]
async fn a_failing_model_is_told_with_its_own_words() {
    let mut stage = stage().await;
    stage.upstream.push(Reply::refusal(401, "invalid_api_key", "Incorrect API key provided."));
    let sent = stage.post("chat/threads/new/messages", ask("Go")).await.expect(202);
    let messages = stage.settled(sent["threadId"].as_str().unwrap()).await;
    let reply = &messages["messages"][1];
    assert_eq!(reply["status"], "failed");
    assert!(reply["error"].as_str().unwrap().contains("Incorrect API key provided."), "{reply}");
    assert!(reply["errorCode"].is_string());
    assert!(!reply.to_string().contains("sk-local"));
}

#[tokio::test]
async fn what_may_be_sent() {
    let mut stage = stage().await;
    for (body, status, code) in [
        (json!({ "content": "  \u{200b} ", "model": "fake-chat" }), 400, "INVALID_BODY"),
        (json!({ "content": "a".repeat(100_001), "model": "fake-chat" }), 400, "INVALID_BODY"),
        (json!({ "content": "a" }), 400, "INVALID_BODY"),
        (json!({ "content": "a", "model": "nope" }), 400, "CHAT_MODEL_UNKNOWN"),
        (json!({ "content": "a", "model": "fake-chat", "providerSlug": "nope" }), 400, "CHAT_PROVIDER_UNKNOWN"),
        (json!({ "content": "a", "model": "nope", "providerSlug": "local" }), 400, "CHAT_MODEL_NOT_ON_PROVIDER"),
        (json!({ "content": "a", "model": "fake-chat", "reasoningEffort": "huge" }), 400, "INVALID_BODY"),
        (json!({ "content": "a", "model": "fake-chat", "locale": "not a locale!" }), 400, "INVALID_BODY"),
        (json!({ "content": "a", "model": "fake-chat", "projectId": "x" }), 400, "INVALID_BODY"),
        (json!({ "content": "a", "model": "fake-chat", "attachments": ["x"] }), 400, "INVALID_BODY"),
    ] {
        let answer = stage.post("chat/threads/new/messages", body.clone()).await;
        assert_eq!(answer.refusal(), (status, code.into()), "{}", body.to_string().get(..120).unwrap_or_default());
    }
    assert_eq!(
        stage.get("chat/threads").await.expect(200)["page"],
        json!([]),
        "a refused first message leaves no chat"
    );
    let missing =
        json!({ "content": "a", "model": "fake-chat", "attachments": ["01900000-0000-7000-8000-000000000000"] });
    assert_eq!(
        stage.post("chat/threads/new/messages", missing).await.refusal(),
        (403, "ATTACHMENT_NOT_OWNED".into()),
        "missing and foreign read the same"
    );
}

#[tokio::test]
async fn the_composer_knows_the_models_and_the_pick() {
    let mut stage = stage().await;
    let composer = stage.get("chat/composer").await.expect(200);
    assert_eq!(
        (&composer["models"][0]["id"], &composer["models"][0]["providerName"], &composer["models"][0]["demo"]),
        (&json!("fake-chat"), &json!("Local"), &json!(false))
    );
    assert_eq!(
        (&composer["pick"], &composer["searchMode"], &composer["canManageProviders"]),
        (&Value::Null, &json!("keywords"), &json!(true))
    );
    let pick = stage.app("chat/pick");
    stage.owner.put(&pick, json!({ "model": "fake-chat", "providerSlug": "local" })).await.expect(204);
    assert_eq!(
        stage.get("chat/composer").await.expect(200)["pick"],
        json!({ "model": "fake-chat", "providerSlug": "local" })
    );
    assert_eq!(
        stage.owner.put(&pick, json!({ "model": "nope", "providerSlug": null })).await.refusal(),
        (400, "CHAT_MODEL_UNKNOWN".into())
    );
    stage.owner.put(&pick, json!({ "model": "auto" })).await.expect(204);
    assert_eq!(stage.get("chat/composer").await.expect(200)["pick"], Value::Null);
    let mut ben = stage.member(Role::Member).await;
    let path = stage.app("chat/composer");
    assert_eq!(ben.get(&path).await.expect(200)["canManageProviders"], false);
}

#[tokio::test]
async fn an_attachment_travels_with_its_message() {
    let mut stage = stage().await;
    let content = "The kettle is blue.";
    let slot = stage
        .post(
            "uploads",
            json!({ "fileName": "notes.txt", "contentType": "text/plain", "size": content.len(), "purpose": "chat" }),
        )
        .await
        .expect(201);
    let mut request =
        reqwest::Client::builder().no_proxy().build().unwrap().put(slot["url"].as_str().unwrap()).body(content);
    for (name, value) in slot["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    assert_eq!(request.send().await.unwrap().status(), 200);
    let file = slot["fileId"].as_str().unwrap().to_owned();
    let about = stage.get(&format!("chat/attachments/{file}")).await.expect(200);
    assert_eq!(
        (&about["name"], &about["mediaType"], &about["sizeBytes"]),
        (&json!("notes.txt"), &json!("text/plain"), &json!(content.len()))
    );
    let mut ben = stage.member(Role::Admin).await;
    let foreign = stage.app(&format!("chat/attachments/{file}"));
    assert_eq!(ben.get(&foreign).await.refusal(), (404, "FILE_NOT_FOUND".into()));
    let path = stage.app(&format!("files/{file}/content"));
    assert_eq!(ben.get(&path).await.refusal(), (404, "FILE_NOT_FOUND".into()));
    assert_eq!(stage.owner.get(&path).await.bytes, content.as_bytes());
    // Its text and passages open beside the answer that cites them, for the person who uploaded it.
    let (org, id) = (stage.org.parse().unwrap(), file.parse().unwrap());
    stage.world.knowledge.index_file(org, id, || async { Ok(()) }).await.unwrap();
    let text = stage.get(&format!("files/{file}/text?offset=4&limit=6")).await.expect(200);
    assert_eq!(text, json!({ "text": "kettle", "totalLength": content.len(), "nextOffset": 10 }));
    let nowhere = uuid::Uuid::new_v4();
    assert_eq!(
        stage.get(&format!("files/{file}/passages/{nowhere}")).await.refusal(),
        (404, "PASSAGE_NOT_FOUND".into())
    );
    for path in [format!("files/{file}/text"), format!("files/{file}/passages/{nowhere}")] {
        let path = stage.app(&path);
        assert_eq!(ben.get(&path).await.refusal(), (404, "FILE_NOT_FOUND".into()));
    }
    let mut send = ask("What colour?");
    send["attachments"] = json!([file]);
    let form = stage.app("chat/threads/new/messages");
    assert_eq!(ben.post(&form, send).await.status.as_u16() / 100, 4, "nobody sends another person's file");
}

#[tokio::test]
async fn chats_are_kept_in_order() {
    let mut stage = stage().await;
    let mut ids = Vec::new();
    for title in ["one", "two", "three"] {
        ids.push(
            stage.post("chat/threads", json!({ "title": title })).await.expect(201)["id"].as_str().unwrap().to_owned(),
        );
    }
    let path = stage.app(&format!("chat/threads/{}", ids[0]));
    assert_eq!(stage.owner.patch(&path, json!({ "title": " Renamed " })).await.expect(200)["title"], "Renamed");
    assert_eq!(stage.owner.patch(&path, json!({ "title": "  " })).await.refusal(), (400, "INVALID_BODY".into()));
    assert_eq!(
        stage.owner.patch(&path, json!({ "title": "a".repeat(121) })).await.refusal(),
        (400, "INVALID_BODY".into())
    );
    assert!(stage.owner.patch(&path, json!({ "pinned": true, "unread": true })).await.expect(200)["pinnedAt"].is_i64());
    stage.owner.delete(&path).await.expect(204);
    assert_eq!(stage.owner.get(&path).await.refusal(), (404, "THREAD_NOT_FOUND".into()));
    let restore = stage.app(&format!("chat/threads/{}/restore", ids[0]));
    assert_eq!(stage.owner.post(&restore, json!({})).await.expect(200)["title"], "Renamed");
    assert_eq!(stage.post("chat/threads/archive-all", json!({})).await.expect(200)["changed"], 3);
    assert_eq!(stage.get("chat/threads").await.expect(200)["page"], json!([]));
    assert_eq!(stage.get("chat/threads?archived=true").await.expect(200)["page"].as_array().unwrap().len(), 3);
    assert!(stage.post("chat/threads/delete-all", json!({})).await.expect(200)["changed"].as_u64().is_some());
}

#[tokio::test]
async fn the_door_of_keys_never_chooses_a_model() {
    let mut stage = stage().await;
    let thread = stage.key.post("/api/v1/threads", json!({})).await.expect(201);
    let path = format!("/api/v1/threads/{}/messages", thread["id"].as_str().unwrap());
    let answer = stage.key.post(&path, json!({ "content": "a", "model": "auto" })).await;
    assert_eq!(answer.refusal(), (400, "CHAT_MODEL_UNKNOWN".into()));
    assert!(answer.json()["error"].as_str().unwrap_or_default().contains("GET /api/v1/models"), "{}", answer.json());
}
