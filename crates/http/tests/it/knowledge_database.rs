//! A knowledge database of the organization's own: what the doors admit and say.

use serde_json::{Value, json};
use tale_testkit::ForeignDb;

use crate::stage::Stage;

fn form(db: &ForeignDb) -> Value {
    json!({
        "host": db.host, "port": db.port, "database": db.database, "user": db.user, "password": db.password,
        "sslmode": "disable"
    })
}

fn with(mut form: Value, field: &str, value: Value) -> Value {
    form[field] = value;
    form
}

#[tokio::test]
async fn a_database_is_looked_at_connected_and_its_password_never_comes_back() {
    let mut stage = Stage::new().await;
    let db = ForeignDb::without_vector().await;
    let org = stage.org.clone();
    let at = move |path: &str| format!("/api/app/knowledge/{path}?orgId={org}");

    for (wrong, path) in [
        (with(form(&db), "managedBy", json!("operator")), "managedBy"),
        (with(form(&db), "port", json!(70_000)), "port"),
        (with(form(&db), "port", json!(0)), "port"),
        (with(form(&db), "sslmode", json!("prefer")), "sslmode"),
        (with(form(&db), "host", json!("db.example.com:5432/x")), "host"),
        (with(form(&db), "user", json!("")), "user"),
    ] {
        let refused = stage.owner.put(&at("connection"), wrong.clone()).await.expect(400);
        assert_eq!(
            (&refused["code"], &refused["data"]["issues"][0]["path"]),
            (&json!("INVALID_BODY"), &json!(path)),
            "{wrong}"
        );
    }
    let nothing = stage.owner.get(&at("connection")).await.expect(200);
    assert_eq!(nothing, json!({ "connection": null, "found": null, "problem": null }));
    let refused = stage.owner.post(&at("connection/test"), form(&db)).await.expect(409);
    assert_eq!((&refused["code"], &refused["data"]["stage"]), (&json!("KNOWLEDGE_CHECK_FAILED"), &json!("extension")));
    assert!(refused["data"]["serverVersion"].is_string() && refused["data"]["vector"].is_null(), "{refused}");
    db.create_vector().await;
    let found = stage.owner.post(&at("connection/test"), form(&db)).await.expect(200);
    assert!(found["vector"].is_string() && found["pgSearch"].is_null(), "{found}");

    let connected = stage.owner.put(&at("connection"), form(&db)).await.expect(200);
    assert_eq!((&connected["connection"]["database"], &connected["problem"]), (&json!(db.database), &Value::Null));
    for answer in [connected, stage.owner.get(&at("connection")).await.expect(200)] {
        assert!(!answer.to_string().contains(&db.password), "{answer}");
    }
    // Nobody of another organization learns of it or changes it.
    let (mut stranger, ..) = stage.outsider().await;
    stranger.get(&at("connection")).await.expect(403);
    stranger.put(&at("connection"), form(&db)).await.expect(403);
    stranger.post(&at("connection/reindex"), json!({})).await.expect(403);
    stranger.delete(&at("connection")).await.expect(403);
    let (search, nothing) = (json!({ "query": "heron" }), json!([]));
    let search_at = "/api/v1/knowledge/search";
    assert_eq!(stage.key.post(search_at, search.clone()).await.expect(200)["hits"], nothing);
    assert_eq!(stage.owner.post(&at("connection/reindex"), json!({})).await.expect(202), json!({ "queued": 0 }));

    // What an operator breaks by hand is said at the next request, in place of an empty answer.
    let file = stage.world.folder.path().join("config").join("acme").join("knowledge/connection.json");
    std::fs::write(&file, "{").unwrap();
    let refused = stage.key.post(search_at, search.clone()).await.expect(503);
    assert_eq!(refused["code"], "KNOWLEDGE_MISCONFIGURED");
    let broken = stage.owner.get(&at("connection")).await.expect(200);
    assert_eq!((&broken["connection"], &broken["problem"]["reason"]), (&Value::Null, &json!("settings")));
    let detail = broken["problem"]["detail"].as_str().unwrap();
    assert!(detail.contains("knowledge/connection.json") && !detail.contains("/config/"), "{detail}");
    stage.owner.delete(&at("connection")).await.expect(204);
    assert_eq!(stage.key.post(search_at, search).await.expect(200)["hits"], nothing);
}
