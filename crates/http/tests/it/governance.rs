//! The doors of policies, and what they do to the other doors.

use serde_json::json;
use tale_identity::Role;

use crate::client::Answer;
use crate::stage::Stage;

#[track_caller]
fn assert_refused(answer: Answer, status: u16, code: &str) {
    assert_eq!(answer.refusal(), (status, code.to_owned()));
}

#[tokio::test]
async fn an_admin_lays_a_policy_down_and_members_feel_it_at_every_door() {
    let mut stage = Stage::new().await;
    stage.connect_model().await;
    let mut member = stage.member(Role::Developer).await;
    let policy = stage.app("governance/policies/model_access");
    let composer = stage.app("chat/composer");
    let models = |answer: &serde_json::Value| answer["models"].as_array().unwrap().len();
    assert_eq!(models(&member.get(&composer).await.expect(200)), 1);

    let fresh = stage.owner.get(&policy).await.expect(200);
    assert_eq!([&fresh["version"], &fresh["value"]["modelApi"]["enabled"]], [&json!(0), &json!(false)]);
    let rule = json!({ "enabled": true, "rules": [{ "scope": "role", "scopeId": "developer", "blockedModels": ["local/fake-chat"] }] });
    let saved = stage.owner.put(&policy, json!({ "value": rule, "version": 0 })).await.expect(200);
    assert_eq!(saved["version"], 1);
    let switched = stage.owner.put(&policy, json!({ "value": { "modelApi": { "enabled": true } } })).await.expect(200);
    assert_eq!([&switched["version"], &switched["value"]["enabled"]], [&json!(2), &json!(true)]);
    assert_refused(
        stage.owner.put(&policy, json!({ "value": rule, "version": 1 })).await,
        409,
        "CONFIG_VERSION_CONFLICT",
    );

    let tag = stage.owner.get(&policy).await.header("etag").to_owned();
    assert_eq!(tag, "\"2\"");
    let named = json!({ "value": { "mode": "blocklist" } });
    let mut page = stage.owner.clone().with("if-match", "\"1\"");
    assert_refused(page.put(&policy, named.clone()).await, 409, "CONFIG_VERSION_CONFLICT");
    page = stage.owner.clone().with("if-match", &tag);
    let both = json!({ "value": { "mode": "blocklist" }, "version": 1 });
    assert_refused(page.put(&policy, both).await, 409, "CONFIG_VERSION_CONFLICT");
    assert_eq!(page.put(&policy, named).await.expect(200)["version"], 2, "nothing changed");

    let denied = member.get(&composer).await.expect(200);
    assert_eq!((models(&denied), &denied["modelsDenied"]), (0, &json!(true)));
    assert_eq!(models(&stage.owner.get(&composer).await.expect(200)), 1);
    let pick = json!({ "model": "fake-chat", "providerSlug": "local" });
    assert_refused(member.put(&stage.app("chat/pick"), pick).await, 403, "CHAT_MODEL_FORBIDDEN");
    let all = stage.owner.get(&stage.app("governance/models")).await.expect(200);
    assert_eq!(models(&all), 1, "who writes rules sees what they are about");
    // The owner is not meant by the rule: their key still answers.
    let listed = stage.key.get("/api/v1/models").await.expect(200);
    assert_eq!(models(&listed), 1);
}

#[tokio::test]
async fn rules_can_name_the_keys_of_members_and_of_nobody_else() {
    let mut stage = Stage::new().await;
    stage.outsider().await;
    stage
        .member(Role::Developer)
        .await
        .post(&stage.app("api-keys"), json!({ "name": "Ben's", "expiresInDays": null }))
        .await
        .expect(201);
    let keys = stage.owner.get(&stage.app("governance/api-keys")).await.expect(200)["keys"].take();
    let names: Vec<[&str; 2]> = keys
        .as_array()
        .unwrap()
        .iter()
        .map(|key| ["holder", "name"].map(|field| key[field].as_str().unwrap()))
        .collect();
    assert_eq!(names, [["Ada", "test"], ["Ben", "Ben's"]]);
    let rule = json!({ "value": { "rules": [{ "scope": "apiKey", "apiKeyId": keys[0]["id"], "period": "daily", "maxRequests": 5 }] } });
    stage.owner.put(&stage.app("governance/policies/budgets"), rule).await.expect(200);
}

#[tokio::test]
async fn policies_are_read_by_role_and_refused_by_name() {
    let mut stage = Stage::new().await;
    let mut member = stage.member(Role::Member).await;
    let at = |stage: &Stage, key: &str| stage.app(&format!("governance/policies/{key}"));
    assert_eq!(member.get(&at(&stage, "default_models")).await.expect(200)["value"]["enabled"], false);
    for key in ["model_access", "transcription_model", "nonsense"] {
        assert_refused(member.get(&at(&stage, key)).await, 403, "ORG_FORBIDDEN");
    }
    assert_refused(member.put(&at(&stage, "default_models"), json!({ "value": {} })).await, 403, "ORG_FORBIDDEN");
    assert_refused(stage.owner.get(&at(&stage, "nonsense")).await, 404, "POLICY_UNKNOWN");
    assert_refused(stage.owner.put(&at(&stage, "nonsense"), json!({ "value": {} })).await, 404, "POLICY_UNKNOWN");
    let long = json!({ "value": { "enabled": true, "idleTimeoutMinutes": 1441 } });
    let refused = stage.owner.put(&at(&stage, "session_idle_timeout"), long).await;
    assert_eq!(refused.json()["data"]["issues"][0]["path"], "value.idleTimeoutMinutes");
    let half = json!({ "value": { "modelId": "whisper-1" } });
    let refused = stage.owner.put(&at(&stage, "transcription_model"), half).await;
    assert_eq!(refused.json()["data"]["issues"][0]["path"], "value.providerSlug");
    assert_refused(refused, 400, "INVALID_BODY");
    assert_refused(stage.owner.put(&at(&stage, "model_access"), json!({ "value": [] })).await, 400, "INVALID_BODY");
    assert_refused(stage.owner.put(&at(&stage, "model_access"), json!({ "version": 1 })).await, 400, "INVALID_BODY");
}
