//! The governance room on a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

mod audit;
mod chain;
mod policies;

use chrono::Utc;
use serde_json::{Value, json};
use sqlx::Connection;
use tale_core::Actor;
use tale_core::ids::{ApiKeyId, OrgId, UserId};
use tale_governance::audit::{AuditEntry, record};
use tale_testkit::TestDb;

fn entry(actor: Actor) -> AuditEntry {
    AuditEntry {
        org: Some(OrgId::new()),
        actor,
        action: "document.delete",
        category: "data",
        resource_type: "document",
        resource_id: Some("7".into()),
        details: json!({ "title": "Plan" }),
        at: Utc::now(),
    }
}

#[tokio::test]
async fn an_entry_commits_or_vanishes_with_the_act() {
    let db = TestDb::new().await;
    let mut conn = db.app.acquire().await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    record(&mut tx, &entry(Actor::System)).await.unwrap();
    tx.rollback().await.unwrap();
    record(&mut conn, &entry(Actor::User { id: UserId::new() })).await.unwrap();
    let kinds: Vec<String> =
        sqlx::query_scalar("SELECT actor_kind FROM app.audit_entries").fetch_all(&db.app).await.unwrap();
    assert_eq!(kinds, ["user"]);
}

#[tokio::test]
async fn an_act_with_a_key_names_the_key_its_maker_and_whom_it_acts_for() {
    let db = TestDb::new().await;
    let (key, maker, member) = (ApiKeyId::new(), UserId::new(), UserId::new());
    let mut conn = db.app.acquire().await.unwrap();
    for subject in [Some(member), None] {
        record(&mut conn, &entry(Actor::Api { key, user: Some(maker), subject })).await.unwrap();
    }
    let rows: Vec<(ApiKeyId, UserId, Value)> =
        sqlx::query_as("SELECT actor_key_id, actor_user_id, details FROM app.audit_entries ORDER BY id")
            .fetch_all(&db.app)
            .await
            .unwrap();
    let about = |subject: Value, original: Value| json!({ "title": "Plan", "keyAttribution": { "apiKeyId": key, "subjectUserId": subject, "originalActor": original } });
    assert_eq!(rows[0], (key, maker, about(json!(member), json!({ "type": "user", "id": member }))));
    // A key of a team or an organization acts for nobody.
    assert_eq!(rows[1], (key, maker, about(Value::Null, json!({ "type": "api", "id": key }))));
}
