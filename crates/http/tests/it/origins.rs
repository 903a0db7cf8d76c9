//! Several origins and a base path: what follows the browser, what stays, what is never given back.

use serde_json::{Value, json};
use tale_env::SiteSettings;
use tale_identity::IdentityConfig;

use crate::client::Client;
use crate::stage::PASSWORD;
use crate::world::{World, site_at};

const CANONICAL: &str = "https://tale.example.org";
const OTHER: &str = "https://intern.example:8443";
const LOCAL: &str = "http://localhost:3000";

fn site(base_path: &str) -> SiteSettings {
    SiteSettings {
        additional: vec![OTHER.parse().unwrap(), LOCAL.parse().unwrap()],
        base_path: base_path.to_owned(),
        ..site_at(CANONICAL)
    }
}

async fn world(base_path: &str) -> World {
    World::at(IdentityConfig::default(), site(base_path), Some(CANONICAL.parse().unwrap())).await
}

/// A browser on a page of `origin`, behind a proxy on this machine that passes host and scheme on.
fn browser_at(world: &World, origin: &str) -> Client {
    let (scheme, host) = origin.split_once("://").unwrap();
    world.browser().with("origin", origin).with("host", host).with("x-forwarded-proto", scheme)
}

fn setup() -> Value {
    json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" })
}

fn sign_in() -> Value {
    json!({ "email": "ada@acme.test", "password": PASSWORD })
}

async fn server_of(client: &mut Client) -> String {
    client.get("/openapi.json").await.expect(200)["servers"][0]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_contract_names_the_origin_of_the_reader_and_no_other() {
    let world = world("").await;
    for origin in [CANONICAL, OTHER, LOCAL] {
        assert_eq!(server_of(&mut browser_at(&world, origin)).await, origin);
    }
    let outside = browser_at(&world, OTHER).from("203.0.113.9");
    let forged = [
        outside.clone(),
        outside.with("x-forwarded-for", "127.0.0.1"),
        browser_at(&world, "https://evil.example"),
        browser_at(&world, "https://evil.example").with("x-forwarded-host", "intern.example:8443"),
        browser_at(&world, OTHER).with("host", "evil.example"),
        browser_at(&world, OTHER).with("host", "intern.example:8443/evil.example"),
        browser_at(&world, OTHER).without("x-forwarded-proto"),
        browser_at(&world, OTHER).without("host"),
    ];
    for mut client in forged {
        assert_eq!(server_of(&mut client).await, CANONICAL);
    }
    let tag = |answer: crate::client::Answer| answer.header("etag").to_owned();
    let canonical = tag(browser_at(&world, CANONICAL).get("/openapi.json").await);
    assert_ne!(canonical, tag(browser_at(&world, OTHER).get("/openapi.json").await), "another text, another tag");
}

#[tokio::test]
async fn cookies_and_transport_security_follow_the_origin() {
    let world = world("").await;
    // From this machine by its own name, so that no token is needed.
    browser_at(&world, LOCAL).post("/api/app/setup", setup()).await.expect(200);
    for (origin, name, secure) in [
        (CANONICAL, "__Host-tale_session=", true),
        (OTHER, "__Host-tale_session=", true),
        (LOCAL, "tale_session=", false),
    ] {
        let answer = browser_at(&world, origin).post("/api/auth/sign-in/email", sign_in()).await;
        let set = answer.header("set-cookie");
        assert!(set.starts_with(name) && set.contains("; Path=/;") && !set.contains("Domain"), "{origin}: {set}");
        assert_eq!(set.contains("; Secure"), secure, "{origin}");
        assert_eq!(answer.headers.contains_key("strict-transport-security"), secure, "{origin}");
    }
    let mut browser = browser_at(&world, CANONICAL);
    browser.post("/api/auth/sign-in/email", sign_in()).await.expect(200);
    let out = browser.post("/api/auth/sign-out", Value::Null).await;
    assert!(out.header("set-cookie").contains("Max-Age=0") && out.header("set-cookie").contains("; Secure"));
}

#[tokio::test]
async fn signing_out_on_one_origin_leaves_the_other() {
    let world = world("").await;
    browser_at(&world, LOCAL).post("/api/app/setup", setup()).await.expect(200);
    let (mut one, mut other) = (browser_at(&world, CANONICAL), browser_at(&world, OTHER));
    for client in [&mut one, &mut other] {
        client.post("/api/auth/sign-in/email", sign_in()).await.expect(200);
    }
    one.post("/api/auth/sign-out", Value::Null).await.expect(204);
    assert_eq!(one.get("/api/app/account").await.status.as_u16(), 401);
    other.get("/api/app/account").await.expect(200);
}

#[tokio::test]
async fn changes_come_from_a_listed_origin_whatever_the_host_says() {
    let world = world("").await;
    let mut local = browser_at(&world, LOCAL);
    local.post("/api/app/setup", setup()).await.expect(200);
    let rename = json!({ "name": "Grace" });
    for foreign in ["https://evil.example", "http://intern.example:8443", "https://intern.example"] {
        let host = foreign.split_once("://").unwrap().1;
        let mut page = local.clone().with("origin", foreign).with("host", host);
        assert_eq!(
            page.patch("/api/app/account", rename.clone()).await.refusal(),
            (403, "ORIGIN_FORBIDDEN".into()),
            "{foreign}"
        );
    }
    let mut listed = local.clone().with("origin", OTHER);
    listed.patch("/api/app/account", rename.clone()).await.expect(200);
    // Without `Origin` the browser's own word does, except where people get in.
    let mut silent = local.without("origin").with("sec-fetch-site", "same-origin");
    silent.patch("/api/app/account", rename).await.expect(200);
    for (path, body) in [("/api/auth/sign-in/email", sign_in()), ("/api/auth/sign-out", Value::Null)] {
        assert_eq!(silent.post(path, body).await.refusal(), (403, "ORIGIN_FORBIDDEN".into()), "{path}");
    }
}

#[tokio::test]
async fn uploads_go_to_the_origin_the_browser_is_on() {
    let world = world("/app").await;
    let mut local = browser_at(&world, LOCAL);
    local.post("/app/api/app/setup", setup()).await.expect(200);
    let slot = json!({ "fileName": "a.md", "contentType": "text/markdown", "size": 3 });
    let token = local.cookie().unwrap();
    let jar = format!("tale_session={token}; __Secure-tale_session={token}");
    let at = |origin| browser_at(&world, origin).with("cookie", &jar);
    let silent = |origin| at(origin).without("origin").with("sec-fetch-site", "same-origin");
    for (client, origin) in [
        (at(CANONICAL), CANONICAL),
        (at(OTHER), OTHER),
        (at(LOCAL), LOCAL),
        // A proxy that keeps the scheme to itself, and one that changes the name.
        (at(OTHER).without("x-forwarded-proto"), OTHER),
        (at(CANONICAL).with("host", "evil.example"), CANONICAL),
        (silent(OTHER), OTHER),
        (silent(LOCAL), LOCAL),
        (silent("https://evil.example"), CANONICAL),
    ] {
        let mut client = client;
        let made = client.post("/app/api/app/uploads", slot.clone()).await.expect(201);
        let url = made["url"].as_str().unwrap();
        // At the root of the host: a prefix would break the signature.
        assert!(url.starts_with(&format!("{origin}/tale-blobs/")), "{origin}: {url}");
    }
}

#[tokio::test]
async fn everything_is_below_the_base_path() {
    let world = world("/app").await;
    let mut browser = browser_at(&world, LOCAL);
    let done = browser.post("/app/api/app/setup", setup()).await;
    assert!(done.header("set-cookie").contains("; Path=/app;"), "{}", done.header("set-cookie"));
    let org = done.json()["organization"]["id"].as_str().unwrap().to_owned();

    let secure = browser_at(&world, CANONICAL).post("/app/api/auth/sign-in/email", sign_in()).await;
    let set = secure.header("set-cookie");
    assert!(
        set.starts_with("__Secure-tale_session=") && set.contains("; Path=/app;") && set.contains("; Secure"),
        "{set}"
    );
    let signed_in = browser.post("/app/api/auth/sign-in/email", sign_in()).await.expect(200);
    assert_eq!(signed_in["redirect"], format!("/app/dashboard/{org}/chat"));
    assert_eq!(browser.get("/app/api/health").await.expect(200)["status"], "ok");
    browser.get("/app/api/health/").await.expect(200);
    browser.get("/app/status.json").await.expect(200);
    let events = browser.open("GET", &format!("/app/events?orgId={org}"), axum::body::Body::empty()).await;
    assert_eq!(events.status().as_u16(), 200);

    let contract = browser.get("/app/openapi.json").await.expect(200);
    assert_eq!(contract["servers"][0]["url"], format!("{LOCAL}/app"));
    let page = browser.get("/app/docs").await;
    let page = String::from_utf8(page.bytes).unwrap();
    for file in ["\"/app/_docs/start.js\"", "\"/app/icon.svg\"", "\"/app/openapi.json\""] {
        assert!(page.contains(file), "{file}");
    }
    let reference = browser.get("/app/docs/environment").await;
    assert!(String::from_utf8(reference.bytes).unwrap().contains("\"/app/docs/environment/de\""));
    assert!(!page.contains("%base%") && !page.contains("\"/_docs"));

    let made = browser
        .post(&format!("/app/api/app/api-keys?orgId={org}"), json!({ "name": "k", "expiresInDays": 30 }))
        .await
        .expect(201);
    let mut key = world.key(made["key"].as_str().unwrap());
    let thread = key.post("/app/api/v1/threads", json!({})).await;
    let place = thread.header("location").to_owned();
    assert!(place.starts_with("/app/api/v1/threads/"), "{place}");
    key.get(&place).await.expect(200);
}

#[tokio::test]
async fn nothing_but_probes_is_outside_the_base_path() {
    let world = world("/app").await;
    let mut browser = browser_at(&world, LOCAL);
    for path in ["/", "/api/health", "/application/api/health", "/apps", "/openapi.json", "/docs", "/app/../api/health"]
    {
        assert_eq!(browser.get(path).await.refusal(), (404, "NOT_FOUND".into()), "{path}");
    }
    assert_eq!(browser.post("/api/app/setup", setup()).await.refusal(), (404, "NOT_FOUND".into()));
    for path in ["/ping", "/ready"] {
        assert_eq!(browser.get(path).await.status.as_u16(), 200, "{path}");
        assert_eq!(browser.get(&format!("/app{path}")).await.refusal(), (404, "NOT_FOUND".into()), "{path}");
    }
    let contract = browser.get("/app/openapi.json").await.expect(200);
    assert_eq!(contract["paths"]["/ping"]["servers"], json!([{ "url": "/" }]));
    assert_eq!(browser.get("/app/api/nowhere").await.refusal(), (404, "NOT_FOUND".into()));
}
