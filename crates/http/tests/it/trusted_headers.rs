//! Sign-in by the headers of a reverse proxy, through the doors.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tale_core::crypto::hmac_sha256;
use tale_core::{Clock, ManualClock};
use tale_identity::Role;

use crate::client::{Answer, Client};
use crate::stage::Stage;

const DOOR: &str = "/api/trusted-headers/authenticate";

/// The organization trusts a proxy up to `ceiling`; its key.
async fn trusting(stage: &mut Stage, ceiling: &str) -> String {
    let settings = stage.app("trusted-headers/settings");
    stage.owner.put(&settings, json!({ "enabled": true, "maxAssertedRole": ceiling })).await.expect(204);
    key(stage).await
}

async fn key(stage: &mut Stage) -> String {
    let keys = stage.app("trusted-headers/keys");
    stage.owner.post(&keys, json!({ "name": "portal" })).await.expect(201)["key"].as_str().unwrap().to_owned()
}

/// A visitor whom a proxy names, without an origin, as page loads come.
fn visitor(stage: &Stage, key: &str, email: &str) -> Client {
    stage.world.browser().without("origin").with("authorization", &format!("Bearer {key}")).with("remote-email", email)
}

fn refused(answer: &Answer) {
    assert_eq!(
        (answer.status.as_u16(), answer.header("location"), answer.headers.contains_key("set-cookie")),
        (303, "/log-in?trusted_headers_error=refused", false)
    );
}

async fn role_of(stage: &mut Stage, email: &str) -> Option<String> {
    let members = stage.app("members");
    let found = stage.owner.get(&members).await.expect(200);
    let member = found["members"].as_array().unwrap().iter().find(|member| member["email"] == email)?.clone();
    Some(member["role"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_unknown_person_gets_an_account_a_seat_and_a_session() {
    let mut stage = Stage::new().await;
    let key = trusting(&mut stage, "editor").await;
    let mut zoe = visitor(&stage, &key, " Zoe@Acme.test ").with("remote-name", "Zoë").with("remote-role", "ADMIN");
    let answer = zoe.get(DOOR).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/dashboard"));
    assert_eq!(answer.header("cache-control"), "no-store");
    let session = zoe.get("/api/app/session").await.expect(200);
    assert_eq!((&session["user"]["name"], &session["user"]["email"]), (&json!("Zoë"), &json!("zoe@acme.test")));
    assert_eq!(session["activeOrganizationId"], stage.org);
    assert_eq!(role_of(&mut stage, "zoe@acme.test").await.unwrap(), "editor", "lowered to the ceiling");
    let mut nameless = visitor(&stage, &key, "bob.b@acme.test").with("remote-role", "owner");
    nameless.get(DOOR).await;
    assert_eq!(nameless.get("/api/app/session").await.expect(200)["user"]["name"], "bob.b");
    assert_eq!(role_of(&mut stage, "bob.b@acme.test").await.unwrap(), "member", "ownership is never given");
}

#[tokio::test]
async fn a_member_is_moved_and_owners_strangers_and_disabled_people_are_not() {
    let mut stage = Stage::new().await;
    let key = trusting(&mut stage, "admin").await;
    stage.member(Role::Editor).await;
    for (asserted, role) in [("developer", "developer"), ("", "member"), ("admin", "admin")] {
        let mut editor = visitor(&stage, &key, "editor@acme.test").with("remote-role", asserted);
        assert_eq!(editor.get(DOOR).await.header("location"), "/dashboard");
        assert_eq!(role_of(&mut stage, "editor@acme.test").await.unwrap(), role);
    }
    let mut owner = visitor(&stage, &key, "ada@acme.test").with("remote-role", "member");
    assert_eq!(owner.get(DOOR).await.header("location"), "/dashboard");
    assert_eq!(role_of(&mut stage, "ada@acme.test").await.unwrap(), "owner");

    stage.member(Role::Disabled).await;
    refused(&visitor(&stage, &key, "disabled@acme.test").with("remote-role", "admin").get(DOOR).await);
    assert_eq!(role_of(&mut stage, "disabled@acme.test").await.unwrap(), "disabled");

    // Somebody with an account and no seat: removed from the organization before.
    let members = stage.owner.get(&stage.app("members")).await.expect(200);
    let gone = members["members"].as_array().unwrap().iter().find(|one| one["email"] == "editor@acme.test").unwrap();
    let path = stage.app(&format!("members/{}", gone["userId"].as_str().unwrap()));
    stage.owner.delete(&path).await.expect(204);
    refused(&visitor(&stage, &key, "editor@acme.test").get(DOOR).await);
    assert_eq!(role_of(&mut stage, "editor@acme.test").await, None);
}

#[tokio::test]
async fn every_refused_key_has_the_same_answer() {
    let mut stage = Stage::new().await;
    let good = trusting(&mut stage, "admin").await;
    let (bare, email) = (stage.world.browser().without("origin"), "zoe@acme.test");
    refused(&bare.clone().with("remote-email", email).get(DOOR).await);
    refused(&visitor(&stage, "tale_h_nonsense", email).get(DOOR).await);
    refused(&visitor(&stage, &good, "not an address").get(DOOR).await);
    refused(&bare.clone().with("authorization", &format!("Bearer {good}")).get(DOOR).await);
    refused(&bare.clone().with("x-api-key", &good).with("remote-email", email).get(DOOR).await);
    // Two of a kind: one may be the visitor's own.
    refused(&visitor(&stage, &good, email).and("remote-email", "ada@acme.test").get(DOOR).await);

    let listed = stage.owner.get(&stage.app("trusted-headers")).await.expect(200);
    let id = listed["keys"][0]["id"].as_str().unwrap().to_owned();
    assert!(listed["keys"][0]["lastUsedAt"].is_null() && !listed.to_string().contains(&good));
    assert!(good.starts_with(listed["keys"][0]["tokenPrefix"].as_str().unwrap()));
    let settings = stage.app("trusted-headers/settings");
    stage.owner.put(&settings, json!({ "enabled": false, "maxAssertedRole": "admin" })).await.expect(204);
    refused(&visitor(&stage, &good, email).get(DOOR).await);
    stage.owner.put(&settings, json!({ "enabled": true, "maxAssertedRole": "admin" })).await.expect(204);
    let mut zoe = bare.clone().with("remote-internal-secret", &good).with("remote-email", email);
    assert_eq!(zoe.get(DOOR).await.header("location"), "/dashboard", "off had revoked nothing");

    let path = stage.app(&format!("trusted-headers/keys/{id}"));
    stage.owner.delete(&path).await.expect(204);
    assert_eq!(stage.owner.delete(&path).await.refusal(), (404, "TRUSTED_KEY_NOT_FOUND".into()));
    refused(&visitor(&stage, &good, email).get(DOOR).await);
    zoe.get("/api/app/account").await.expect(200);
}

#[tokio::test]
async fn refused_keys_count_against_their_network_and_then_nothing_is_looked_at() {
    let mut stage = Stage::new().await;
    let key = trusting(&mut stage, "member").await;
    for _ in 0..40 {
        refused(&visitor(&stage, "tale_h_nonsense", "zoe@acme.test").from("203.0.113.9").get(DOOR).await);
    }
    let late = visitor(&stage, &key, "zoe@acme.test").from("203.0.113.200").get(DOOR).await;
    assert_eq!(late.status, 429);
    assert!(!late.header("retry-after").is_empty());
    assert!(!late.headers.contains_key("set-cookie"));
    let elsewhere = visitor(&stage, &key, "zoe@acme.test").from("198.51.100.9").get(DOOR).await;
    assert_eq!(elsewhere.header("location"), "/dashboard");
    stage.world.clock.advance(std::time::Duration::from_secs(3));
    let again = visitor(&stage, &key, "zoe@acme.test").from("203.0.113.200").get(DOOR).await;
    assert_eq!(again.header("location"), "/dashboard");
}

#[tokio::test]
async fn it_leads_on_inside_this_tale_only() {
    let mut stage = Stage::new().await;
    let key = trusting(&mut stage, "member").await;
    for (redirect, location) in [
        ("/dashboard/x/documents%3Fdoc=1", "/dashboard/x/documents?doc=1"),
        ("https://evil.example", "/dashboard"),
        ("//evil.example", "/dashboard"),
        ("/.//evil.example", "/dashboard"),
        ("/%5Cevil.example", "/dashboard"),
    ] {
        let answer = visitor(&stage, &key, "zoe@acme.test").get(&format!("{DOOR}?redirect={redirect}")).await;
        assert_eq!(answer.header("location"), location, "{redirect}");
        assert!(answer.header("set-cookie").contains("HttpOnly"));
    }
    let answer = visitor(&stage, "", "zoe@acme.test").get(&format!("{DOOR}?redirect=/dashboard/x")).await;
    assert_eq!(answer.header("location"), "/log-in?trusted_headers_error=refused&next=%2Fdashboard%2Fx");
}

#[tokio::test]
async fn only_a_page_load_of_our_own_signs_in_and_a_session_is_kept() {
    let mut stage = Stage::new().await;
    let key = trusting(&mut stage, "member").await;
    let page = |site: &str, mode: &str, dest: &str| {
        visitor(&stage, &key, "zoe@acme.test")
            .with("sec-fetch-site", site)
            .with("sec-fetch-mode", mode)
            .with("sec-fetch-dest", dest)
    };
    for (site, mode, dest) in [
        ("cross-site", "navigate", "document"),
        ("same-origin", "no-cors", "image"),
        ("cross-site", "navigate", "iframe"),
        ("same-site", "navigate", "iframe"),
        ("none", "navigate", "iframe"),
    ] {
        let answer = page(site, mode, dest).get(DOOR).await;
        assert_eq!(answer.header("location"), "/log-in", "{site} {mode} {dest}");
        assert!(!answer.headers.contains_key("set-cookie"));
    }
    assert_eq!(page("same-origin", "navigate", "document").get(DOOR).await.header("location"), "/dashboard");
    let mut signed_in =
        stage.owner.clone().with("authorization", &format!("Bearer {key}")).with("remote-email", "zoe@acme.test");
    assert!(!signed_in.get(DOOR).await.headers.contains_key("set-cookie"));
    assert_eq!(signed_in.get("/api/app/session").await.expect(200)["user"]["email"], "ada@acme.test");
}

#[tokio::test]
async fn the_sign_in_page_learns_that_a_proxy_names_the_visitor() {
    let mut stage = Stage::new().await;
    let told =
        async |client: Client| client.clone().get("/api/app/session").await.expect(200)["trustedHeaders"].clone();
    let named = || stage.world.browser().with("remote-email", "zoe@acme.test");
    assert_eq!(told(named()).await, Value::Bool(false), "no organization trusts a proxy");
    let settings = stage.app("trusted-headers/settings");
    stage.owner.put(&settings, json!({ "enabled": true, "maxAssertedRole": "member" })).await.expect(204);
    assert_eq!(told(stage.world.browser().with("remote-email", "zoe@acme.test")).await, Value::Bool(true));
    assert_eq!(told(stage.world.browser()).await, Value::Bool(false));
    assert_eq!(told(stage.owner.clone().with("remote-email", "zoe@acme.test")).await, Value::Bool(false));
}

/// An assertion as a proxy signs it.
fn assertion(clock: &ManualClock, secret: &str, email: &str, id: &str) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let now = clock.now().timestamp();
    let claims = json!({ "email": email, "name": "Zoë", "role": "admin", "iat": now, "exp": now + 60, "jti": id });
    let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT" })), part(claims));
    let signature = hmac_sha256(secret.as_bytes(), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test]
async fn a_signed_assertion_names_the_person_once_and_a_key_can_ask_for_it() {
    let mut stage = Stage::new().await;
    let plain = trusting(&mut stage, "editor").await;
    let made = stage.post("trusted-headers/keys", json!({ "name": "signed", "signedOnly": true })).await.expect(201);
    let (key, secret) = (made["key"].as_str().unwrap(), made["signingSecret"].as_str().unwrap());
    let (clock, browser) = (stage.world.clock.clone(), stage.world.browser().without("origin"));
    let behind = |key: &str| browser.clone().with("authorization", &format!("Bearer {key}"));

    // The assertion says all of it; a header beside it says nothing.
    let signed = assertion(&clock, secret, "zoe@acme.test", "0123456789abcdef");
    let mut zoe = behind(key).with("tale-assertion", &signed).with("remote-email", "ada@acme.test");
    assert_eq!(zoe.get(DOOR).await.header("location"), "/dashboard");
    assert_eq!(zoe.get("/api/app/session").await.expect(200)["user"]["email"], "zoe@acme.test");
    assert_eq!(role_of(&mut stage, "zoe@acme.test").await.unwrap(), "editor");

    // Again, by somebody who read it on the way, also at another process.
    let mut thief = behind(key).with("tale-assertion", &signed);
    refused(&thief.get(DOOR).await);
    // Without one, with another key's, with a changed one, twice.
    refused(&behind(key).with("remote-email", "ada@acme.test").get(DOOR).await);
    let fresh = |id: &str| assertion(&clock, secret, "zoe@acme.test", id);
    let mut beside_another = behind(&plain).with("tale-assertion", &fresh("another-0123456789"));
    refused(&beside_another.get(DOOR).await);
    let twice = fresh("twice-0123456789");
    refused(&behind(key).with("tale-assertion", &twice).and("tale-assertion", &twice).get(DOOR).await);
    let late = fresh("late-0123456789ab");
    clock.advance(std::time::Duration::from_secs(60));
    refused(&behind(key).with("tale-assertion", &late).get(DOOR).await);
    // None of these used up what they carried.
    assert_eq!(
        behind(key).with("tale-assertion", &fresh("twice-0123456789")).get(DOOR).await.header("location"),
        "/dashboard"
    );

    // The plain form comes back with the switch, and the secret stays the same.
    let path = stage.app(&format!("trusted-headers/keys/{}", made["id"].as_str().unwrap()));
    let told = stage.owner.patch(&path, json!({ "signedOnly": false })).await.expect(200);
    assert_eq!(told["signingSecret"], secret);
    let listed = stage.get("trusted-headers").await.expect(200);
    assert!(!listed.to_string().contains(secret));
    assert_eq!(behind(key).with("remote-email", "zoe@acme.test").get(DOOR).await.header("location"), "/dashboard");
    let (mut eve, other, _) = stage.outsider().await;
    let elsewhere = crate::stage::within(&other, &format!("trusted-headers/keys/{}", made["id"].as_str().unwrap()));
    let foreign = eve.patch(&elsewhere, json!({ "signedOnly": true })).await;
    assert_eq!(foreign.refusal(), (404, "TRUSTED_KEY_NOT_FOUND".into()));
}

#[tokio::test]
async fn an_assertion_that_comes_twice_at_once_signs_in_once() {
    let mut stage = Stage::new().await;
    trusting(&mut stage, "member").await;
    let made = stage.post("trusted-headers/keys", json!({ "name": "signed", "signedOnly": true })).await.expect(201);
    let signed =
        assertion(&stage.world.clock, made["signingSecret"].as_str().unwrap(), "zoe@acme.test", "0123456789abcdef");
    let key = format!("Bearer {}", made["key"].as_str().unwrap());
    let client = stage.world.browser().without("origin").with("authorization", &key).with("tale-assertion", &signed);
    let answers = futures::future::join_all((0..8).map(|_| {
        let mut client = client.clone();
        async move { client.get(DOOR).await.headers.contains_key("set-cookie") }
    }))
    .await;
    assert_eq!(answers.into_iter().filter(|signed_in| *signed_in).count(), 1);
}

#[tokio::test]
async fn there_are_ten_keys_at_most_and_no_ceiling_above_admin() {
    let mut stage = Stage::new().await;
    let untouched = stage.owner.get(&stage.app("trusted-headers")).await.expect(200);
    assert_eq!(
        untouched,
        json!({
            "enabled": false, "maxAssertedRole": "member", "keys": [], "frameOrigins": [],
            "headers": {
                "assertion": "Tale-Assertion",
                "key": "Remote-Internal-Secret", "email": "Remote-Email", "name": "Remote-Name",
                "role": "Remote-Role", "teams": "Remote-Teams",
            },
        })
    );
    let settings = stage.app("trusted-headers/settings");
    for role in ["owner", "disabled", "Admin"] {
        let answer = stage.owner.put(&settings, json!({ "enabled": true, "maxAssertedRole": role })).await;
        assert_eq!(answer.refusal(), (400, "INVALID_BODY".into()), "{role}");
    }
    let keys = stage.app("trusted-headers/keys");
    for name in ["", "x".repeat(65).as_str()] {
        assert_eq!(stage.owner.post(&keys, json!({ "name": name })).await.refusal(), (400, "INVALID_BODY".into()));
    }
    for _ in 0..10 {
        key(&mut stage).await;
    }
    assert_eq!(
        stage.owner.post(&keys, json!({ "name": "one more" })).await.refusal(),
        (409, "TRUSTED_KEY_LIMIT".into())
    );
    let listed = stage.owner.get(&stage.app("trusted-headers")).await.expect(200);
    let first = listed["keys"][0]["id"].as_str().unwrap().to_owned();
    let path = stage.app(&format!("trusted-headers/keys/{first}"));
    stage.owner.delete(&path).await.expect(204);
    key(&mut stage).await;
}
