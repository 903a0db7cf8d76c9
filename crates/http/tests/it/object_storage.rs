//! A bucket of the organization's own: what the doors admit, and what pages are told.

use serde_json::{Value, json};
use tale_blobs::embedded::{self, Running};
use tale_blobs::{Blobs, StoreConfig};
use tale_core::clock::SystemClock;

use crate::stage::{PASSWORD, Stage};

/// A second store with a bucket `acme-files`.
async fn second(stage: &Stage) -> Running {
    let service = embedded::service(&stage.world.folder.path().join("second"), "acme", &"secret2".into()).unwrap();
    let store = Running::start(service).await.unwrap();
    let config = StoreConfig {
        endpoint: store.endpoint.clone(),
        public_endpoint: None,
        site_origins: vec![],
        region: "us-east-1".into(),
        bucket: "acme-files".into(),
        prefix: String::new(),
        path_style: true,
        access_key: "acme".into(),
        secret_key: "secret2".into(),
    };
    Blobs::new(config, std::sync::Arc::new(SystemClock)).unwrap().ensure_bucket().await.unwrap();
    store
}

fn form(store: &Running) -> Value {
    json!({
        "region": "us-east-1", "endpoint": store.endpoint, "forcePathStyle": true, "bucket": "acme-files",
        "accessKeyId": "acme", "secretAccessKey": "secret2"
    })
}

#[tokio::test]
async fn a_bucket_is_connected_its_secret_never_comes_back_and_pages_may_use_it() {
    let mut stage = Stage::new().await;
    let store = second(&stage).await;
    let org = stage.org.clone();
    let at = move |path: &str| format!("/api/app/object-storage/{path}?orgId={org}");

    let mut unknown = form(&store);
    unknown["managedBy"] = json!("operator");
    assert_eq!(stage.owner.put(&at("connection"), unknown).await.expect(400)["code"], "INVALID_BODY");
    let mut plain = form(&store);
    plain["bucket"] = json!("A");
    let refused = stage.owner.put(&at("connection"), plain).await.expect(400);
    assert_eq!(refused["data"]["issues"][0]["path"], "bucket");
    let nothing = stage.owner.get(&at("connection")).await.expect(200);
    assert_eq!((&nothing["connection"], &nothing["deploymentStore"]), (&Value::Null, &json!(true)));
    assert_eq!(stage.owner.post(&at("migration"), json!({})).await.expect(409)["code"], "OBJECT_STORE_NOT_CONNECTED");
    stage.owner.post(&at("connection/test"), form(&store)).await.expect(204);

    let connected = stage.owner.put(&at("connection"), form(&store)).await.expect(200);
    assert!(!connected.to_string().contains("secret2"));
    let own = store.endpoint.origin().ascii_serialization();
    assert_eq!((&connected["connection"]["bucket"], &connected["origin"]), (&json!("acme-files"), &json!(own)));

    // Who belongs to the organization may reach the bucket from a page; nobody else is told of it, and nobody who has to
    // choose another password first.
    let (mut stranger, ..) = stage.outsider().await;
    let mut nobody = stage.world.browser();
    let ben = json!({
        "email": "ben@acme.test", "name": "Ben", "role": "admin", "password": PASSWORD, "mustChangePassword": true,
    });
    let members = stage.app("members");
    stage.owner.post(&members, ben).await.expect(201);
    let mut walled = stage.world.browser();
    walled.post("/api/auth/sign-in/email", json!({ "email": "ben@acme.test", "password": PASSWORD })).await.expect(200);
    for (client, told) in [(&mut stage.owner, true), (&mut nobody, false), (&mut stranger, false), (&mut walled, false)]
    {
        let origins = client.get("/api/app/object-storage/origins").await.json();
        assert_eq!(origins["origins"].as_array().is_some_and(|list| list.contains(&json!(own))), told, "{origins}");
        let page = client.get("/dashboard").await;
        // Without a build of the web app there is no page.
        if page.status == 200 {
            let policy = page.header("content-security-policy");
            assert_eq!(policy.matches(own.as_str()).count(), if told { 2 } else { 0 }, "{policy}");
        }
    }
    let upload = json!({ "fileName": "a.txt", "contentType": "text/plain", "size": 1 });
    let slot = stage.owner.post(&format!("/api/app/uploads?orgId={}", stage.org), upload).await.expect(201);
    assert!(slot["url"].as_str().unwrap().starts_with(&format!("{own}/acme-files/")));

    let run = stage.owner.post(&at("migration"), json!({})).await.expect(202);
    assert_eq!(run["migration"]["state"], "running");
    assert_eq!(stage.owner.post(&at("migration"), json!({})).await.expect(409)["code"], "OBJECT_STORE_MOVE_RUNNING");
    let test = stage.owner.post(&at("connection/browser-test"), json!({})).await.expect(200);
    let end = at(&format!("connection/browser-test/{}", test["id"].as_str().unwrap()));
    stage.owner.delete(&end).await.expect(204);
    stage.owner.delete(&at("connection/browser-test/x")).await.expect(404);
    stage.owner.delete(&at("connection")).await.expect(204);
    stage.owner.delete(&at("connection")).await.expect(204);
}
