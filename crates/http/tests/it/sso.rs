//! Sign-in at an identity provider, through the doors.

use serde_json::{Value, json};
use tale_core::Clock;
use tale_testkit::identity_provider::{CLIENT, IdentityProvider, SECRET};

use crate::client::{Answer, Client};
use crate::stage::Stage;

fn form(provider: &IdentityProvider) -> Value {
    json!({
        "displayName": "Acme", "enabled": true, "defaultRole": "editor", "domains": [], "clientSecret": SECRET,
        "config": {
            "protocol": "oidc", "issuer": provider.issuer(), "clientId": CLIENT, "scopes": ["openid", "email"],
            "claims": { "email": "email", "name": "name", "groups": "groups", "roles": "roles" },
            "autoAssign": false, "rules": [], "teamSync": false, "excludedGroups": [],
        },
    })
}

/// A browser as page loads come: without an origin.
fn visitor(stage: &Stage) -> Client {
    stage.world.browser().without("origin").with("sec-fetch-site", "cross-site")
}

fn cookie_of(answer: &Answer, name: &str) -> Option<String> {
    let cookies = answer.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    cookies.filter(|cookie| cookie.starts_with(name)).map(str::to_owned).next()
}

/// Away from `start` and as far back as the callback's address, with the cookie that the browser has then.
async fn round(stage: &Stage, provider: &IdentityProvider, start: &str, email: &str) -> (String, String, String) {
    let away = visitor(stage).get(start).await;
    assert_eq!((away.status.as_u16(), away.header("cache-control")), (303, "no-store"));
    let set = cookie_of(&away, "tale_sso").unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Lax") && set.ends_with("; Max-Age=600"), "{set}");
    let now = stage.world.clock.now().timestamp();
    let claims = json!({
        "iss": provider.issuer(), "aud": CLIENT, "sub": email, "email": email, "iat": now, "exp": now + 60,
    });
    let given = provider.log_in(away.header("location"), &claims);
    let query = format!("code={}&state={}&session_state=ignored", given.code, given.state);
    (set.split(';').next().unwrap().to_owned(), query, given.callback)
}

#[tokio::test]
async fn the_way_to_a_provider_and_back() {
    let mut stage = Stage::new().await;
    let provider = IdentityProvider::start().await;
    let settings = stage.app("sso");
    assert_eq!(stage.owner.get(&settings).await.expect(200)["connection"], Value::Null);
    assert_eq!(visitor(&stage).get("/api/app/session").await.expect(200)["sso"], false);
    stage.owner.put(&settings, form(&provider)).await.expect(204);
    let stored = stage.owner.get(&settings).await.expect(200);
    assert_eq!(
        (&stored["connection"]["hasSecret"], &stored["callbacks"][0]),
        (&json!(true), &json!("http://localhost:3000/api/sso/callback"))
    );
    assert!(!stored.to_string().contains(SECRET));
    let mut owned = form(&provider);
    owned["defaultRole"] = json!("owner");
    assert_eq!(stage.owner.put(&settings, owned).await.expect(400)["code"], "INVALID_BODY");
    assert_eq!(visitor(&stage).get("/api/app/session").await.expect(200)["sso"], true);
    let offer = visitor(&stage).get("/api/sso/connections").await.expect(200);
    assert_eq!(offer["connections"][0]["displayName"], "Acme");
    let connection = offer["connections"][0]["id"].as_str().unwrap().to_owned();
    let start = |next: &str| format!("/api/sso/start?connection={connection}&next={next}");

    let (cookie, query, callback) = round(&stage, &provider, &start("/dashboard/x?y=1"), "zoe@acme.test").await;
    assert_eq!(callback, "http://localhost:3000/api/sso/callback");
    // Another browser has no cookie, and says so.
    let other = visitor(&stage).get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!(other.header("location"), "/log-in?error=browser_binding&recovery=again");
    assert!(cookie_of(&other, "tale_session").is_none());
    let mut zoe = visitor(&stage).with("cookie", &cookie);
    let back = zoe.get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, "/dashboard/x?y=1"));
    assert!(cookie_of(&back, "tale_sso").unwrap().contains("Max-Age=0"));
    let mut zoe = zoe.without("cookie");
    let session = zoe.get("/api/app/session").await.expect(200);
    assert_eq!(
        (&session["user"]["email"], &session["activeOrganizationId"]),
        (&json!("zoe@acme.test"), &json!(stage.org))
    );
    let again = visitor(&stage).with("cookie", &cookie).get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!(again.header("location"), "/log-in?error=flow_over&recovery=again");

    // Nothing leads away from this Tale, and old registrations still lead here.
    for (next, door) in
        [("//evil.example", "/api/sso/callback"), ("https://evil.example/", "/http_api/api/sso/callback")]
    {
        let (cookie, query, _) = round(&stage, &provider, &start(next), "zoe@acme.test").await;
        let back = visitor(&stage).with("cookie", &cookie).get(&format!("{door}?{query}")).await;
        assert_eq!(back.header("location"), "/dashboard", "{next}");
    }
    // A name of the client's own is not where the provider sends anybody.
    let forged = visitor(&stage).with("host", "evil.example").get(&start("/")).await;
    assert!(forged.header("location").contains("redirect_uri=http%3A%2F%2Flocalhost%3A3000%2Fapi%2Fsso%2Fcallback"));
    let denied = round(&stage, &provider, &start("/"), "zoe@acme.test").await;
    let state = denied.1.split('&').find(|pair| pair.starts_with("state=")).unwrap().to_owned();
    let said = format!("/api/sso/callback?{state}&error=access_denied&error_description=AADSTS50105%3A+not+assigned");
    let back = visitor(&stage).with("cookie", &denied.0).get(&said).await;
    assert_eq!(back.header("location"), "/log-in?error=provider_refused&error_code=AADSTS50105&recovery=again");
    let nobody = visitor(&stage).get("/api/sso/start?connection=nonsense").await;
    assert_eq!(nobody.header("location"), "/log-in?error=switched_off&recovery=other_way");
    stage.owner.delete(&settings).await.expect(204);
    assert_eq!(visitor(&stage).get("/api/sso/connections").await.expect(200)["connections"], json!([]));
}

#[tokio::test]
async fn a_provider_that_speaks_oauth2_alone() {
    let mut stage = Stage::new().await;
    let provider = IdentityProvider::start().await;
    let settings = stage.app("sso");
    let mut form = form(&provider);
    let config = &mut form["config"];
    (config["protocol"], config["issuer"], config["scopes"]) = (json!("oauth2"), json!(""), json!([]));
    assert_eq!(stage.owner.put(&settings, form.clone()).await.expect(400)["code"], "INVALID_BODY");
    form["config"]["oauth2"] = json!({
        "authorizationUrl": provider.at("/authorize"), "tokenUrl": provider.at("/token"), "userInfoUrl": provider.at("/me"),
        "subject": "", "emailVerified": "email_verified", "secretInBody": true,
    });
    let tested = stage.owner.post(&stage.app("sso/test"), form.clone()).await.expect(200);
    for step in ["discovery", "keys", "credentials"] {
        assert_eq!(tested[step], json!({ "ok": true, "detail": null }), "{step}");
    }
    stage.owner.put(&settings, form.clone()).await.expect(204);
    let stored = stage.owner.get(&settings).await.expect(200);
    assert_eq!(stored["connection"]["config"]["oauth2"], form["config"]["oauth2"]);
    assert!(!stored.to_string().contains(SECRET));
    let offer = visitor(&stage).get("/api/sso/connections").await.expect(200);
    let connection = offer["connections"][0]["id"].as_str().unwrap().to_owned();
    let start = format!("/api/sso/start?connection={connection}&next=/dashboard/x");
    let (cookie, query, _) = round(&stage, &provider, &start, "zoe@acme.test").await;
    let other = visitor(&stage).get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!(other.header("location"), "/log-in?error=browser_binding&recovery=again");
    let mut zoe = visitor(&stage).with("cookie", &cookie);
    let back = zoe.get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, "/dashboard/x"));
    let session = zoe.without("cookie").get("/api/app/session").await.expect(200);
    assert_eq!(session["user"]["email"], "zoe@acme.test");
    let again = visitor(&stage).with("cookie", &cookie).get(&format!("/api/sso/callback?{query}")).await;
    assert_eq!(again.header("location"), "/log-in?error=flow_over&recovery=again");
}

#[tokio::test]
async fn a_connection_with_an_address_of_its_own_takes_answers_there_only() {
    let mut stage = Stage::new().await;
    let provider = IdentityProvider::start().await;
    let settings = stage.app("sso");
    stage.owner.put(&settings, form(&provider)).await.expect(204);
    let stored = stage.owner.get(&settings).await.expect(200);
    assert_eq!(stored["connection"]["config"]["ownCallback"], false, "unless it is asked for");
    let mut form = form(&provider);
    form["config"]["ownCallback"] = json!(true);
    stage.owner.put(&settings, form).await.expect(204);
    let stored = stage.owner.get(&settings).await.expect(200);
    assert_eq!(stored["connection"]["config"]["ownCallback"], true);
    let own = format!("/api/sso/{}/callback", stage.org);
    assert_eq!(stored["ownCallbacks"], json!([format!("http://localhost:3000{own}")]));
    let offer = visitor(&stage).get("/api/sso/connections").await.expect(200);
    let connection = offer["connections"][0]["id"].as_str().unwrap().to_owned();
    let start = format!("/api/sso/start?connection={connection}&next=/dashboard/x");

    let other = "/api/sso/01890000-0000-7000-8000-000000000000/callback";
    for door in ["/api/sso/callback", "/http_api/api/sso/callback", other, "/api/sso/nonsense/callback"] {
        let (cookie, query, callback) = round(&stage, &provider, &start, "zoe@acme.test").await;
        assert_eq!(callback, format!("http://localhost:3000{own}"));
        let back = visitor(&stage).with("cookie", &cookie).get(&format!("{door}?{query}")).await;
        assert_eq!(back.header("location"), "/log-in?error=browser_binding&recovery=again", "{door}");
        assert!(cookie_of(&back, "tale_session").is_none());
    }
    assert_eq!(provider.asked("token"), 0, "the codes stay here");
    let (cookie, query, _) = round(&stage, &provider, &start, "zoe@acme.test").await;
    let mut zoe = visitor(&stage).with("cookie", &cookie);
    let back = zoe.get(&format!("{own}?{query}")).await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, "/dashboard/x"));
    let session = zoe.without("cookie").get("/api/app/session").await.expect(200);
    assert_eq!(session["user"]["email"], "zoe@acme.test");
}
