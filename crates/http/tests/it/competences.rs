//! Competences: what a member is granted beside the role, who may grant it, and what it opens.

use std::time::Duration;

use serde_json::{Value, json};
use tale_core::Clock;
use tale_identity::Role;
use tale_testkit::upstream::{Reply, Step};

use crate::client::Client;
use crate::model_endpoints::{OPENAI, ask, code, stage};
use crate::stage::Stage;

const MODELS: &str = "tale:models.api";

impl Stage {
    async fn id_of(&mut self, email: &str) -> String {
        let members = self.get("members").await.expect(200);
        let found = members["members"].as_array().unwrap().iter().find(|member| member["email"] == email).unwrap();
        found["userId"].as_str().or(found["id"].as_str()).unwrap().to_owned()
    }

    async fn grant(&mut self, user: &str, competence: &str, expires_at: Option<i64>) -> crate::client::Answer {
        let form = json!({ "userId": user, "competence": competence, "expiresAt": expires_at });
        self.post("governance/competences", form).await
    }

    /// Competence, status and reason of each line of the register, the newest first.
    async fn register(&mut self) -> Vec<(String, String, Value)> {
        let register = self.get("governance/competences").await.expect(200);
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let line = |one: &Value| (word(&one["competence"]), word(&one["status"]), one["revokeReason"].clone());
        register["grants"].as_array().unwrap().iter().map(line).collect()
    }

    /// What was recorded about competences: action, status and reason or error.
    async fn recorded(&mut self) -> Vec<(String, String, Option<String>)> {
        sqlx::query_as(
            "SELECT action, status, coalesce(details ->> 'reason', details ->> 'error') FROM app.audit_entries
              WHERE action LIKE 'competence%' ORDER BY id",
        )
        .fetch_all(&self.world.app.database)
        .await
        .unwrap()
    }
}

async fn key_of(stage: &Stage, browser: &mut Client) -> Client {
    let form = json!({ "name": "mine", "expiresInDays": 30 });
    let made = browser.post(&stage.app("api-keys"), form).await.expect(201);
    stage.world.key(made["key"].as_str().unwrap())
}

#[tokio::test]
async fn a_member_with_the_competence_makes_a_key_and_calls_models_until_it_ends() {
    let mut stage = stage().await;
    let mut ben = stage.member(Role::Member).await;
    let user = stage.id_of("member@acme.test").await;
    let (keys, endpoints, permissions) =
        (stage.app("api-keys"), stage.app("model-endpoints"), stage.app("permissions"));
    let form = json!({ "name": "mine", "expiresInDays": 30 });
    assert_eq!(ben.post(&keys, form).await.refusal(), (403, "API_KEY_CREATE_FORBIDDEN".into()));
    assert_eq!(ben.get(&endpoints).await.refusal().0, 403);

    // The key of a person who may not is refused by name of the competence, whatever it was when it was made.
    let developer = stage.app(&format!("members/{user}"));
    stage.owner.patch(&developer, json!({ "role": "developer" })).await.expect(200);
    let mut key = key_of(&stage, &mut ben).await;
    stage.owner.patch(&developer, json!({ "role": "member" })).await.expect(200);
    let refused = key.post(OPENAI, ask("open/able")).await;
    assert_eq!(code(&refused), (403, "MODEL_API_FORBIDDEN".into()));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains(MODELS));
    assert_eq!(key.get("/api/v1/me").await.expect(200)["capabilities"]["modelApi"], false);

    let in_an_hour = (stage.world.clock.now_ms()) + 3_600_000;
    let granted = stage.grant(&user, MODELS, Some(in_an_hour)).await.expect(201);
    assert!(granted["recordId"].is_string());
    assert_eq!(key.get("/api/v1/me").await.expect(200)["capabilities"]["modelApi"], true);
    stage.upstream.push(Reply::text("Yes.").then(Step::Usage { input: 1, output: 1 }));
    key.post(OPENAI, ask("open/able")).await.expect(200);
    let mut second = key_of(&stage, &mut ben).await;
    second.get("/api/v1/openai/models").await.expect(200);
    let page = ben.get(&endpoints).await.expect(200);
    assert_eq!((&page["enabled"], &page["allowed"]), (&json!(true), &json!(true)));
    let held = ben.get(&permissions).await.expect(200);
    for capability in ["apiKeys.own", "models.call"] {
        assert!(held["capabilities"].as_array().unwrap().contains(&json!(capability)), "{capability}");
    }
    // It is no other right, and none of a disabled seat.
    assert_eq!(ben.get(&stage.app("providers")).await.refusal(), (403, "ROLE_FORBIDDEN".into()));
    stage.owner.patch(&developer, json!({ "role": "disabled" })).await.expect(200);
    assert_eq!(code(&key.post(OPENAI, ask("open/able")).await).0, 403);
    stage.owner.patch(&developer, json!({ "role": "editor" })).await.expect(200);
    key.get("/api/v1/openai/models").await.expect(200);

    stage.world.clock.advance(Duration::from_secs(3_601));
    assert_eq!(code(&key.post(OPENAI, ask("open/able")).await), (403, "MODEL_API_FORBIDDEN".into()));
    assert_eq!(stage.register().await, [(MODELS.into(), "expired".into(), Value::Null)]);
    // Granted anew, the expired one is closed.
    stage.grant(&user, MODELS, None).await.expect(201);
    key.get("/api/v1/openai/models").await.expect(200);
    assert_eq!(
        stage.register().await,
        [(MODELS.into(), "active".into(), Value::Null), (MODELS.into(), "revoked".into(), json!("replaced"))]
    );
}

#[tokio::test]
async fn owners_and_admins_grant_and_revoke_and_everything_is_recorded() {
    let mut stage = Stage::new().await;
    let mut developer = stage.member(Role::Developer).await;
    let mut admin = stage.member(Role::Admin).await;
    let user = stage.id_of("developer@acme.test").await;
    let competences = stage.app("governance/competences");
    // Refused before the body is looked at.
    assert_eq!(developer.post(&competences, json!(7)).await.refusal(), (403, "COMPETENCE_FORBIDDEN".into()));
    assert_eq!(developer.get(&competences).await.refusal(), (403, "COMPETENCE_FORBIDDEN".into()));

    let first = stage.grant(&user, "tale:rest.act-as", None).await.expect(201)["recordId"].as_str().unwrap().to_owned();
    assert_eq!(
        stage.grant(&user, "tale:rest.act-as", None).await.refusal(),
        (409, "COMPETENCE_ALREADY_GRANTED".into())
    );
    for unknown in ["tale:anything", "TALE:models.api"] {
        assert_eq!(stage.grant(&user, unknown, None).await.refusal(), (400, "COMPETENCE_CAPABILITY_UNKNOWN".into()));
    }
    let long = "x".repeat(121);
    for (competence, end) in [("", None), (long.as_str(), None), ("First aid", Some(1))] {
        assert_eq!(stage.grant(&user, competence, end).await.refusal(), (400, "INVALID_BODY".into()), "{competence}");
    }
    let nobody = "01900000-0000-7000-8000-000000000000";
    assert_eq!(stage.grant(nobody, "First aid", None).await.refusal(), (404, "MEMBER_NOT_FOUND".into()));

    let form = json!({ "userId": user, "competence": "First aid", "evidence": "Course of 2026-03" });
    admin.post(&competences, form).await.expect(201);
    let register = admin.get(&format!("{competences}&userId={user}")).await.expect(200);
    let aid = &register["grants"][0];
    assert_eq!(
        (&aid["competence"], &aid["evidence"], &aid["grantedBy"], &aid["member"], &aid["expiresAt"]),
        (&json!("First aid"), &json!("Course of 2026-03"), &json!("Ben"), &json!(true), &Value::Null)
    );
    assert_eq!(admin.get(&format!("{competences}&userId={nobody}")).await.expect(200), json!({ "grants": [] }));

    let revoke = stage.app(&format!("governance/competences/{first}/revoke"));
    assert_eq!(developer.post(&revoke, json!({})).await.refusal(), (403, "COMPETENCE_FORBIDDEN".into()));
    admin.post(&revoke, json!({})).await.expect(204);
    assert_eq!(admin.post(&revoke, json!({})).await.refusal(), (404, "COMPETENCE_NOT_FOUND".into()));

    // Who is removed loses all; who is added again holds none of it.
    let path = stage.app(&format!("members/{user}"));
    stage.owner.delete(&path).await.expect(204);
    let again = json!({ "email": "developer@acme.test", "name": "Ben", "role": "member" });
    stage.post("members", again).await.expect(201);
    assert_eq!(
        stage.register().await,
        [
            ("First aid".into(), "revoked".into(), json!("memberRemoved")),
            ("tale:rest.act-as".into(), "revoked".into(), json!("revoked")),
        ]
    );
    let recorded: Vec<(String, String, Option<String>)> = stage.recorded().await;
    let line = |action: &str, status: &str, why: Option<&str>| {
        (format!("competence_{action}"), status.to_owned(), why.map(str::to_owned))
    };
    assert_eq!(
        recorded,
        [
            line("granted", "success", None),
            line("granted", "denied", Some("COMPETENCE_CAPABILITY_UNKNOWN")),
            line("granted", "denied", Some("COMPETENCE_CAPABILITY_UNKNOWN")),
            line("granted", "success", None),
            line("revoked", "success", Some("revoked")),
            line("revoked", "success", Some("memberRemoved")),
        ]
    );
}

#[tokio::test]
async fn a_competence_counts_in_its_own_organization_only() {
    let mut stage = stage().await;
    let (mut eve, other, _) = stage.outsider().await;
    let form = json!({ "email": "eve@other.test", "name": "Eve", "role": "member" });
    stage.post("members", form).await.expect(201);
    let user = stage.id_of("eve@other.test").await;
    let mut key = stage.world.key(
        eve.post(&crate::stage::within(&other, "api-keys"), json!({ "name": "k", "expiresInDays": 1 }))
            .await
            .expect(201)["key"]
            .as_str()
            .unwrap(),
    );
    key = key.with("x-organization-slug", "acme");
    assert_eq!(code(&key.get("/api/v1/openai/models").await), (403, "MODEL_API_FORBIDDEN".into()));
    // An admin elsewhere grants nothing here, and what is granted elsewhere opens nothing here.
    assert_eq!(
        eve.post(&stage.app("governance/competences"), json!({ "userId": user, "competence": MODELS })).await.refusal(),
        (403, "COMPETENCE_FORBIDDEN".into())
    );
    let elsewhere = json!({ "userId": user, "competence": MODELS });
    let granted = eve.post(&crate::stage::within(&other, "governance/competences"), elsewhere).await.expect(201);
    assert_eq!(code(&key.get("/api/v1/openai/models").await), (403, "MODEL_API_FORBIDDEN".into()));
    let foreign = stage.app(&format!("governance/competences/{}/revoke", granted["recordId"].as_str().unwrap()));
    assert_eq!(stage.owner.post(&foreign, json!({})).await.refusal(), (404, "COMPETENCE_NOT_FOUND".into()));
    stage.grant(&user, MODELS, None).await.expect(201);
    key.get("/api/v1/openai/models").await.expect(200);
}
