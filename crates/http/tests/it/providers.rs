//! The doors of providers, the embedding model and the list of callable models.

use serde_json::{Value, json};
use tale_testkit::upstream::{FakeUpstream, Reply};

use crate::client::Client;
use crate::world::World;

const PASSWORD: &str = "Blue-Kettle-42";

struct Scene {
    world: World,
    browser: Client,
    org: String,
    upstream: FakeUpstream,
}

async fn scene() -> Scene {
    let world = World::new().await;
    let mut browser = world.browser();
    let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
    let done = browser.post("/api/app/setup", form).await.expect(200);
    let org = done["organization"]["id"].as_str().unwrap().to_owned();
    Scene { world, browser, org, upstream: FakeUpstream::start().await }
}

impl Scene {
    fn path(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("/api/app/{path}{sign}orgId={}", self.org)
    }

    fn local(&self) -> Value {
        json!({
            "name": "local", "displayName": "Local", "apiFormat": "openai", "baseUrl": self.upstream.openai_base(), "apiKey": "sk-local-0123456789",
            "models": [
                { "id": "fake-chat", "contextWindow": 32000, "maxOutputTokens": 2000, "purposes": ["chat"], "capabilities": { "tools": true, "vision": false, "reasoning": false } },
                { "id": "fake-embedding", "contextWindow": 8000, "purposes": ["embedding"], "capabilities": { "tools": false, "vision": false, "reasoning": false }, "dimensions": 8 },
            ],
        })
    }

    /// A browser signed in as a new member with `role`.
    async fn colleague(&mut self, role: &str) -> Client {
        let email = format!("{role}@acme.test");
        let path = self.path("members");
        self.browser
            .post(&path, json!({ "email": email, "name": role, "role": role, "password": PASSWORD }))
            .await
            .expect(201);
        let mut browser = self.world.browser();
        browser.post("/api/auth/sign-in/email", json!({ "email": email, "password": PASSWORD })).await.expect(200);
        browser
    }
}

#[tokio::test]
async fn a_provider_is_added_tested_changed_and_deleted() {
    let mut scene = scene().await;
    let (providers, local) = (scene.path("providers"), scene.local());
    let added = scene.browser.post(&providers, local).await.expect(201);
    assert_eq!(added["slug"], "local");
    assert_eq!(added["kind"], "custom");
    assert_eq!(added["credentials"][0]["masked"], "sk-l…89");
    assert_eq!(added["credentials"][0]["authMethod"], "api-key");
    assert_eq!(added["models"][1]["dimensions"], 8);
    assert!(!added.to_string().contains("sk-local-0123456789"));

    let list = scene.browser.get(&providers).await.expect(200);
    let openai =
        list["providers"].as_array().unwrap().iter().find(|provider| provider["slug"] == "openai").unwrap().clone();
    assert_eq!(
        (openai["kind"].as_str(), openai["baseUrl"].as_str()),
        (Some("shipped"), Some("https://api.openai.com/v1"))
    );

    let test = scene.path("providers/local/test");
    scene.upstream.push(Reply::text("OK"));
    let outcome = scene.browser.post(&test, json!({})).await.expect(200);
    assert_eq!(
        (outcome["ok"].as_bool(), outcome["reply"].as_str(), outcome["model"].as_str()),
        (Some(true), Some("OK"), Some("fake-chat"))
    );
    scene.upstream.push(Reply::refusal(401, "invalid_api_key", "Not this key."));
    let outcome = scene.browser.post(&test, json!({ "model": "fake-chat" })).await.expect(200);
    assert_eq!(outcome["error"], json!({ "code": "auth_error", "message": "Not this key.", "status": 401 }));

    let one = scene.path("providers/local");
    let changed = scene.browser.patch(&one, json!({ "version": 1, "displayName": "Renamed" })).await.expect(200);
    assert_eq!((changed["displayName"].as_str(), changed["version"].as_i64()), (Some("Renamed"), Some(2)));
    assert_eq!(
        scene.browser.patch(&one, json!({ "version": 1, "displayName": "Late" })).await.refusal(),
        (409, "PROVIDER_VERSION_CONFLICT".into())
    );
    let gone = scene.path("providers/local?version=2");
    scene.browser.delete(&gone).await.expect(204);
    assert_eq!(scene.browser.delete(&gone).await.refusal(), (404, "PROVIDER_UNKNOWN".into()));
}

#[tokio::test]
async fn an_unknown_field_is_refused_by_path_without_its_value() {
    let mut scene = scene().await;
    let providers = scene.path("providers");
    let mut body = scene.local();
    body["token"] = json!("sk-pasted-here");
    let answer = scene.browser.post(&providers, body).await;
    assert_eq!(answer.refusal(), (400, "INVALID_BODY".into()));
    let text = answer.json().to_string();
    assert!(text.contains("token") && !text.contains("sk-pasted-here"), "{text}");
    let demo = scene.path("providers/demo");
    assert_eq!(scene.browser.post(&demo, json!({})).await.refusal(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn facts_and_extra_fields_come_back_and_a_field_of_the_request_is_named() {
    let mut scene = scene().await;
    let (providers, mut local) = (scene.path("providers"), scene.local());
    local["extraBody"] = json!({ "service_tier": "flex" });
    local["models"][0]["toolApi"] = json!("responses");
    local["models"][0]["toolsRequireNoReasoning"] = json!(true);
    local["models"][0]["extraBody"] = json!({ "seed": 4 });
    let refused = scene.browser.post(&providers, local.clone()).await;
    assert_eq!(refused.refusal(), (400, "EXTRA_BODY_KEY_FORBIDDEN".into()));
    assert_eq!(refused.json()["data"]["key"], "seed");
    local["models"][0]["extraBody"] = json!({ "provider": { "order": ["eu"] } });
    let added = scene.browser.post(&providers, local.clone()).await.expect(201);
    assert_eq!(added["extraBody"], local["extraBody"]);
    for field in ["toolApi", "toolsRequireNoReasoning", "extraBody"] {
        assert_eq!(added["models"][0][field], local["models"][0][field], "{field}");
    }
    assert!(added["models"][1].get("extraBody").is_none() && added["models"][1].get("toolApi").is_none());
}

#[tokio::test]
async fn models_are_discovered_and_credentials_managed() {
    let mut scene = scene().await;
    let (discover, base) = (scene.path("providers/discover"), scene.upstream.openai_base());
    let found = scene.browser.post(&discover, json!({ "apiFormat": "openai", "baseUrl": base })).await.expect(200);
    assert_eq!(found["models"][0]["id"], "fake-chat");
    let refused =
        scene.browser.post(&discover, json!({ "apiFormat": "openai", "baseUrl": "http://169.254.169.254/v1" })).await;
    assert_eq!(refused.refusal(), (400, "PRIVATE_HOST_BLOCKED".into()));

    let add = scene.path("providers/openai/credentials");
    let form = json!({ "name": "Production", "authMethod": "api-key", "apiKey": "sk-or-v1-abcdef123456" });
    let first = scene.browser.post(&add, form.clone()).await.expect(201);
    assert_eq!(
        (first["masked"].as_str(), first["isDefault"].as_bool(), first["version"].as_i64()),
        (Some("sk-o…56"), Some(true), Some(1))
    );
    assert_eq!(scene.browser.post(&add, form).await.refusal(), (409, "CREDENTIAL_NAME_TAKEN".into()));
    let env = json!({ "name": "Env", "authMethod": "env", "secretEnv": "DATABASE_URL" });
    assert_eq!(scene.browser.post(&add, env).await.refusal(), (400, "INVALID_BODY".into()));
    // A variable that is not set yet is accepted and named, wherever the credential is shown; its value never is.
    for (variable, unset) in [("TALE_PROVIDER_KEY_LATER", true), ("TALE_PROVIDER_KEY_SET", false)] {
        let env = json!({ "name": variable, "authMethod": "env", "secretEnv": variable });
        let saved = scene.browser.post(&add, env).await.expect(201);
        assert_eq!(saved["unsetVariable"].as_str(), unset.then_some(variable));
        assert!(!saved.to_string().contains("sk-from-env"));
    }
    let shown = scene.browser.get(&scene.path("providers")).await.expect(200);
    let openai = shown["providers"].as_array().unwrap().iter().find(|provider| provider["slug"] == "openai").unwrap();
    let unset: Vec<_> =
        openai["credentials"].as_array().unwrap().iter().filter_map(|one| one["unsetVariable"].as_str()).collect();
    assert_eq!(unset, ["TALE_PROVIDER_KEY_LATER"]);
    let id = first["id"].as_str().unwrap();
    let one = scene.path(&format!("credentials/{id}"));
    let off = scene.browser.patch(&one, json!({ "version": 1, "enabled": false })).await.expect(200);
    assert_eq!((off["enabled"].as_bool(), off["isDefault"].as_bool()), (Some(false), Some(false)));
    let gone = scene.path(&format!("credentials/{id}?version=2"));
    scene.browser.delete(&gone).await.expect(204);
    assert_eq!(scene.browser.delete(&gone).await.refusal(), (404, "CREDENTIAL_NOT_FOUND".into()));
    let nonsense = scene.path("credentials/nonsense?version=1");
    assert_eq!(scene.browser.delete(&nonsense).await.refusal(), (404, "CREDENTIAL_NOT_FOUND".into()));
}

#[tokio::test]
async fn an_own_server_without_a_key_shows_no_credential_and_works() {
    let mut scene = scene().await;
    let providers = scene.path("providers");
    let mut body = scene.local();
    body.as_object_mut().unwrap().remove("apiKey");
    let added = scene.browser.post(&providers, body).await.expect(201);
    assert_eq!(added["credentials"], json!([]));
    let test = scene.path("providers/local/test");
    assert_eq!(scene.browser.post(&test, json!({})).await.expect(200)["ok"], true);
    let one = scene.path("providers/local");
    let keyed = scene.browser.patch(&one, json!({ "version": 1, "apiKey": "sk-new-key-000000042" })).await.expect(200);
    assert_eq!(keyed["credentials"][0]["masked"], "sk-n…42");
}

#[tokio::test]
async fn the_embedding_model_is_chosen_shown_and_removed() {
    let mut scene = scene().await;
    let (providers, local, embedding) = (scene.path("providers"), scene.local(), scene.path("knowledge/embedding"));
    scene.browser.post(&providers, local).await.expect(201);
    let empty = scene.browser.get(&embedding).await.expect(200);
    assert_eq!(empty["embedding"], Value::Null);
    assert_eq!(
        empty["candidates"],
        json!([{ "providerSlug": "local", "displayName": "Local", "models": [{ "id": "fake-embedding", "dimensions": 8 }] }])
    );
    assert_eq!(empty["corpus"], json!({ "documents": 0, "embedded": 0, "waiting": 0 }));
    let choice = json!({ "providerSlug": "local", "model": "fake-embedding", "dimensions": 8 });
    assert_eq!(scene.browser.put(&embedding, choice.clone()).await.expect(200), json!({ "requeued": 0 }));
    assert_eq!(scene.browser.get(&embedding).await.expect(200)["embedding"], choice);
    let gone = scene.path("providers/local?version=1");
    assert_eq!(scene.browser.delete(&gone).await.refusal(), (409, "PROVIDER_IN_USE".into()));
    scene.browser.delete(&embedding).await.expect(204);
    assert_eq!(scene.browser.delete(&embedding).await.refusal(), (409, "EMBEDDING_NOT_CONFIGURED".into()));
    let wrong = json!({ "providerSlug": "anthropic", "model": "x", "dimensions": 8 });
    assert_eq!(scene.browser.put(&embedding, wrong).await.refusal(), (400, "EMBEDDING_PROVIDER_UNSUPPORTED".into()));
}

#[tokio::test]
async fn key_holders_see_the_models_they_can_call() {
    let mut scene = scene().await;
    let (providers, local, keys) = (scene.path("providers"), scene.local(), scene.path("api-keys"));
    scene.browser.post(&providers, local).await.expect(201);
    let made = scene.browser.post(&keys, json!({ "name": "test", "expiresInDays": null })).await.expect(201);
    let mut key = scene.world.key(made["key"].as_str().unwrap());
    let models = key.get("/api/v1/models").await.expect(200);
    assert_eq!(
        models["models"],
        json!([{
            "id": "fake-chat", "providerSlug": "local", "displayName": "fake-chat", "contextWindow": 32000, "maxOutputTokens": 2000,
            "capabilities": { "tools": true, "vision": false, "reasoning": false }, "tags": [],
        }])
    );
}

#[tokio::test]
async fn each_role_reaches_what_the_matrix_says_and_other_organizations_reach_nothing() {
    let mut scene = scene().await;
    let (providers, local, embedding) = (scene.path("providers"), scene.local(), scene.path("knowledge/embedding"));
    scene.browser.post(&providers, local.clone()).await.expect(201);
    let choice = json!({ "providerSlug": "local", "model": "fake-embedding", "dimensions": 8 });
    for role in ["member", "editor"] {
        let mut browser = scene.colleague(role).await;
        assert_eq!(browser.get(&providers).await.refusal().0, 403, "{role}");
        // The right is checked before the body is judged.
        assert_eq!(browser.post(&providers, json!({ "nonsense": 1 })).await.refusal().0, 403, "{role}");
        assert_eq!(browser.put(&embedding, choice.clone()).await.refusal().0, 403, "{role}");
    }
    let mut developer = scene.colleague("developer").await;
    developer.get(&providers).await.expect(200);
    assert_eq!(developer.put(&embedding, choice.clone()).await.refusal().0, 403);
    let mut admin = scene.colleague("admin").await;
    admin.put(&embedding, choice).await.expect(200);

    let other = scene.browser.post("/api/app/organizations", json!({ "name": "Other" })).await.expect(201);
    let at_other = |path: &str| {
        format!("/api/app/{path}{}orgId={}", if path.contains('?') { '&' } else { '?' }, other["id"].as_str().unwrap())
    };
    let list = scene.browser.get(&at_other("providers")).await.expect(200);
    assert!(list["providers"].as_array().unwrap().iter().all(|provider| provider["slug"] != "local"));
    assert_eq!(
        scene.browser.delete(&at_other("providers/local?version=1")).await.refusal(),
        (404, "PROVIDER_UNKNOWN".into())
    );
    assert_eq!(
        scene.browser.post(&at_other("providers/local/test"), json!({})).await.refusal(),
        (404, "PROVIDER_UNKNOWN".into())
    );
    assert_eq!(developer.get(&at_other("providers")).await.refusal().0, 403);
}
