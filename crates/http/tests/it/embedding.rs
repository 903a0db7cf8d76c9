//! Who may show pages in a frame: what an organization lists, for its pages, and for the sign-in page of
//! the deployment what anybody lists.

use std::time::Duration;

use serde_json::{Value, json};
use tale_identity::Role;

use crate::client::Client;
use crate::stage::{Stage, within};

const PORTAL: &str = "https://portal.example.org";

/// The ancestors that a page admits, and its older header.
async fn framing(client: &mut Client, path: &str) -> (String, String) {
    let answer = client.get(path).await;
    let policy = answer.header("content-security-policy");
    let ancestors = policy.split("frame-ancestors ").nth(1).unwrap_or_default().to_owned();
    (ancestors, answer.header("x-frame-options").to_owned())
}

fn closed() -> (String, String) {
    ("'none'".into(), "DENY".into())
}

async fn list(owner: &mut Client, org: &str, origins: &[&str]) -> Value {
    owner.put(&within(org, "trusted-headers/embedding"), json!({ "origins": origins })).await.expect(200)
}

#[tokio::test]
async fn listed_origins_frame_their_organization_and_the_sign_in_page() {
    let mut stage = Stage::new().await;
    let (_, other, _) = stage.outsider().await;
    let (own, foreign) = (format!("/dashboard/{}/chat", stage.org), format!("/dashboard/{other}/chat"));
    for path in [own.as_str(), foreign.as_str(), "/log-in", "/"] {
        assert_eq!(framing(&mut stage.owner, path).await, closed(), "{path}");
    }
    let org = stage.org.clone();
    let kept = list(&mut stage.owner, &org, &["https://Portal.example.org/", "https://a.example:8443", PORTAL]).await;
    assert_eq!(kept["origins"], json!(["https://a.example:8443", PORTAL]));
    assert_eq!(stage.get("trusted-headers").await.expect(200)["frameOrigins"], kept["origins"]);
    stage.world.clock.advance(Duration::from_secs(5));
    let open = (format!("'self' https://a.example:8443 {PORTAL}"), String::new());
    for path in [own.as_str(), "/log-in", "/dashboard"] {
        assert_eq!(framing(&mut stage.owner, path).await, open, "{path}");
    }
    assert_eq!(framing(&mut stage.owner, &foreign).await, closed(), "another organization listed nothing");
    for path in ["/status", "/openapi.json", "/api/app/session"] {
        assert_eq!(framing(&mut stage.owner, path).await.1, "DENY", "{path}");
    }
    let mut web_tier = Client::browser(tale_http::backend_router(stage.world.app.clone()));
    assert_eq!(web_tier.get("/health/frames").await.expect(200), json!({ org.as_str(): kept["origins"] }));

    list(&mut stage.owner, &org, &[]).await;
    stage.world.clock.advance(Duration::from_secs(5));
    assert_eq!(framing(&mut stage.owner, "/log-in").await, closed());
}

#[tokio::test]
async fn only_origins_get_in_and_only_by_admins() {
    let mut stage = Stage::new().await;
    let path = stage.app("trusted-headers/embedding");
    for wrong in ["*", "http://portal.example.org", "https://a.example/x", "https://a;script-src", "'self'"] {
        let refused = stage.owner.put(&path, json!({ "origins": [PORTAL, wrong] })).await;
        assert_eq!(refused.refusal().1, "INVALID_BODY", "{wrong}");
    }
    let many: Vec<String> = (0..11).map(|n| format!("https://a{n}.example")).collect();
    assert_eq!(stage.owner.put(&path, json!({ "origins": many })).await.refusal().1, "INVALID_BODY");
    let mut developer = stage.member(Role::Developer).await;
    assert_eq!(developer.put(&path, json!({ "origins": [PORTAL] })).await.refusal().1, "ORG_FORBIDDEN");
    assert_eq!(stage.get("trusted-headers").await.expect(200)["frameOrigins"], json!([]));

    // One header holds the lists of all organizations.
    let mut orgs = vec![stage.org.clone()];
    for name in ["B", "C", "D", "E", "F"] {
        let made = stage.owner.post("/api/app/organizations", json!({ "name": name })).await.expect(201);
        orgs.push(made["id"].as_str().unwrap().to_owned());
    }
    let (last, first) = orgs.split_last().unwrap();
    for (n, org) in first.iter().enumerate() {
        let origins: Vec<String> = (0..10).map(|m| format!("https://a{n}-{m}.example")).collect();
        list(&mut stage.owner, org, &origins.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let over = stage.owner.put(&within(last, "trusted-headers/embedding"), json!({ "origins": [PORTAL] })).await;
    assert_eq!(over.refusal(), (409, "FRAME_ORIGIN_LIMIT".into()));
    list(&mut stage.owner, last, &["https://a0-0.example"]).await;
}

#[tokio::test]
async fn a_frame_of_our_own_page_may_hand_over_and_no_other() {
    let mut stage = Stage::new().await;
    let settings = stage.app("trusted-headers/settings");
    stage.owner.put(&settings, json!({ "enabled": true, "maxAssertedRole": "member" })).await.expect(204);
    let key = stage.post("trusted-headers/keys", json!({ "name": "portal" })).await.expect(201)["key"].clone();
    let frame = |site: &str| {
        stage
            .world
            .browser()
            .without("origin")
            .with("authorization", &format!("Bearer {}", key.as_str().unwrap()))
            .with("remote-email", "zoe@acme.test")
            .with("sec-fetch-mode", "navigate")
            .with("sec-fetch-dest", "iframe")
            .with("sec-fetch-site", site)
    };
    let (mut ours, mut theirs) = (frame("same-origin"), frame("cross-site"));
    let refused = theirs.get("/api/trusted-headers/authenticate").await;
    assert_eq!((refused.status.as_u16(), refused.header("location")), (303, "/log-in"));
    let answer = ours.get("/api/trusted-headers/authenticate").await;
    assert_eq!((answer.header("location"), answer.headers.contains_key("set-cookie")), ("/dashboard", true));
}
