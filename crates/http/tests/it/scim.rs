//! The directory's door.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::events::Live;
use crate::stage::{PASSWORD, Stage};

async fn directory(stage: &mut Stage) -> Client {
    let token = stage.post("provisioning/token", json!({})).await.expect(201)["token"].as_str().unwrap().to_owned();
    let path = stage.app("provisioning");
    stage.owner.put(&path, json!({ "enabled": true })).await.expect(204);
    let settings = stage.get("provisioning").await.expect(200);
    assert!(settings["baseUrl"].as_str().unwrap().ends_with("/scim/v2"));
    assert!(!settings.to_string().contains(&token));
    stage.world.key(&token)
}

/// Status and `scimType` of a refusal in the form of the protocol.
fn refusal(answer: &crate::client::Answer) -> (u16, Option<String>) {
    let body = answer.json();
    assert_eq!(answer.header("content-type"), "application/scim+json");
    assert_eq!(body["schemas"], json!(["urn:ietf:params:scim:api:messages:2.0:Error"]));
    assert_eq!(body["status"], answer.status.as_u16().to_string());
    assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    (answer.status.as_u16(), body["scimType"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn requests_and_refusals_have_the_form_of_the_protocol() {
    let mut stage = Stage::new().await;
    let mut directory = directory(&mut stage).await;
    let made = directory.post("/scim/v2/Users", json!({ "userName": "ann@acme.test" })).await;
    let (location, etag) = (made.header("location").to_owned(), made.header("etag").to_owned());
    let ann = made.expect(201);
    let path = format!("/scim/v2/Users/{}", ann["id"].as_str().unwrap());
    assert!(location.ends_with(&path) && ann["meta"]["location"] == location && ann["meta"]["version"] == etag);
    assert_eq!(directory.clone().with("if-none-match", &etag).get(&path).await.status, 304);
    let listed =
        directory.get("/scim/v2/Users?filter=userName%20eq%20%22ANN@acme.test%22&attributes=title").await.expect(200);
    assert_eq!(
        (&listed["totalResults"], &listed["Resources"][0]),
        (&json!(1), &json!({ "id": ann["id"], "schemas": ann["schemas"] }))
    );

    let some = |kind: &str| Some(kind.to_owned());
    let huge = format!("{{\"userName\":\"{}\"}}", "x".repeat(1_100_000));
    let deep = format!("{{\"userName\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    for (body, expected) in [
        ("{", (400, some("invalidSyntax"))),
        ("[]", (400, some("invalidSyntax"))),
        (deep.as_str(), (400, some("invalidSyntax"))),
        (huge.as_str(), (413, None)),
        (r#"{"userName":"a\u0000@b.test"}"#, (400, some("invalidSyntax"))),
        (r#"{"userName":"ann@acme.test"}"#, (409, some("uniqueness"))),
        (r#"{"userName":["x"]}"#, (400, some("invalidValue"))),
    ] {
        let answer = directory.raw("POST", "/scim/v2/Users", body.to_owned()).await;
        assert_eq!(refusal(&answer), expected, "{}", &body[..body.len().min(60)]);
    }
    let bad = format!("/scim/v2/Users?filter={}", "(".repeat(5_000));
    for (method, path, expected) in [
        ("GET", "/scim/v2/Users?filter=userName%20eq", (400, some("invalidFilter"))),
        ("GET", bad.as_str(), (400, some("invalidFilter"))),
        ("GET", "/scim/v2/Users?count=many", (400, some("invalidValue"))),
        ("GET", "/scim/v2/Users/1", (404, None)),
        ("GET", "/scim/v2/Users/' OR 1=1", (404, None)),
        ("GET", "/scim/v2/Shoes", (404, None)),
        ("GET", "/scim/v2/Users/1/2", (404, None)),
        ("DELETE", "/scim/v2/Users", (405, None)),
        ("POST", "/scim/v2/Schemas", (405, None)),
    ] {
        let path = path.replace(' ', "%20");
        assert_eq!(
            refusal(&directory.raw(method, &path, "{}").await),
            expected,
            "{method} {}",
            &path[..path.len().min(80)]
        );
    }
    let stale = directory.clone().with("if-match", "W/\"0\"").delete(&path).await;
    assert_eq!(refusal(&stale), (412, None));

    // Without the token of a directory there is nothing, and another kind of key is none.
    let mut key = stage.key.clone();
    for mut nobody in [directory.clone().without("authorization"), stage.world.key("tale_s_x"), key.clone()] {
        let answer = nobody.get("/scim/v2/Users").await;
        assert_eq!((refusal(&answer), answer.header("www-authenticate")), ((401, None), "Bearer"));
    }
    key = directory.clone();
    assert_eq!(key.get("/api/v1/me").await.status, 401);
    let settings = stage.app("provisioning");
    stage.owner.put(&settings, json!({ "enabled": false })).await.expect(204);
    assert_eq!(refusal(&directory.get("/scim/v2/Users").await), (403, None));
}

#[tokio::test]
async fn another_organization_is_out_of_reach() {
    let mut stage = Stage::new().await;
    let (mut eve, other, _) = stage.outsider().await;
    let mut directory = directory(&mut stage).await;
    let members = eve.get(&crate::stage::within(&other, "members")).await.expect(200);
    let foreign = members["members"].as_array().unwrap().iter().find(|m| m["email"] == "eve@other.test").unwrap();
    let path = format!("/scim/v2/Users/{}", foreign["userId"].as_str().unwrap());
    let body = json!({ "Operations": [{ "op": "replace", "path": "active", "value": false }] });
    assert_eq!(refusal(&directory.patch(&path, body).await), (404, None));
    assert_eq!(refusal(&directory.delete(&path).await), (404, None));
    let group = json!({ "displayName": "X", "members": [{ "value": foreign["userId"] }] });
    assert_eq!(refusal(&directory.post("/scim/v2/Groups", group).await), (400, Some("invalidValue".into())));
    let taken = json!({ "userName": "eve@other.test" });
    assert_eq!(refusal(&directory.post("/scim/v2/Users", taken).await), (409, Some("uniqueness".into())));
    eve.get(&crate::stage::within(&other, "members")).await.expect(200);
}

#[tokio::test]
async fn whoever_is_deactivated_is_out_at_once() {
    let mut stage = Stage::new().await;
    let mut directory = directory(&mut stage).await;
    let mut ben = stage.member(tale_identity::Role::Developer).await;
    let made = ben.post(&stage.app("api-keys"), json!({ "name": "k", "expiresInDays": 1 })).await.expect(201);
    let mut key = stage.world.key(made["key"].as_str().unwrap());
    let mut live = Live::open(&ben, &format!("/events?orgId={}", stage.org)).await;
    assert_eq!(live.next().await.unwrap().0, "hello");
    let found = directory.get("/scim/v2/Users?filter=userName%20eq%20%22developer@acme.test%22").await.expect(200);
    let path = format!("/scim/v2/Users/{}", found["Resources"][0]["id"].as_str().unwrap());
    let active = |active: bool| json!({ "Operations": [{ "op": "Replace", "value": { "active": active } }] });
    let begun = Instant::now();
    directory.patch(&path, active(false)).await.expect(200);
    assert_eq!(key.get("/api/v1/me").await.status, 403);
    assert_eq!(ben.get(&stage.app("teams")).await.status, 401);
    while live.next().await.is_some() {}
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    directory.patch(&path, active(true)).await.expect(200);
    key.get("/api/v1/me").await.expect(200);
    let form: Value = json!({ "email": "developer@acme.test", "password": PASSWORD });
    stage.world.browser().post("/api/auth/sign-in/email", form).await.expect(200);
}
