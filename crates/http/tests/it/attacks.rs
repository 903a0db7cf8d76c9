//! What somebody tries who has a page elsewhere, or a cookie of their own choice.

use serde_json::{Value, json};

use crate::stage::{PASSWORD, Stage};

fn sign_in() -> Value {
    json!({ "email": "ada@acme.test", "password": PASSWORD })
}

/// The value of a cookie that an answer sets.
fn cookie_of(answer: &crate::client::Answer, name: &str) -> Option<String> {
    let set = answer.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    set.filter_map(|value| value.split(';').next()?.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

#[tokio::test]
async fn a_session_that_somebody_else_chose_never_becomes_anybodys() {
    let stage = Stage::new().await;
    // A cookie that was planted before the sign-in, be it invented or a session of the attacker's own.
    let mut attacker = stage.world.browser();
    let planted = cookie_of(&attacker.post("/api/auth/sign-in/email", sign_in()).await, "tale_session").unwrap();
    attacker.post("/api/auth/sign-out", json!({})).await.expect(204);
    for chosen in ["chosen-by-an-attacker", planted.as_str()] {
        let victim = stage.world.browser().with("cookie", &format!("tale_session={chosen}"));
        let answer = victim.clone().post("/api/auth/sign-in/email", sign_in()).await;
        let given = cookie_of(&answer, "tale_session").unwrap();
        assert!(given != chosen && given.len() >= 43, "{given}");
        let mut holder = stage.world.browser().with("cookie", &format!("tale_session={chosen}"));
        assert_eq!(holder.get("/api/app/account").await.refusal(), (401, "UNAUTHORIZED".into()));
        let mut signed_in = stage.world.browser().with("cookie", &format!("tale_session={given}"));
        signed_in.get("/api/app/account").await.expect(200);
    }
    // Each sign-in has a token of its own, and signing out of one leaves the other.
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let answer = stage.world.browser().post("/api/auth/sign-in/email", sign_in()).await;
        tokens.push(cookie_of(&answer, "tale_session").unwrap());
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test]
async fn no_page_elsewhere_changes_anything_whatever_it_calls_itself() {
    let stage = Stage::new().await;
    let refused = (403, "ORIGIN_FORBIDDEN".to_owned());
    let rename = json!({ "name": "Mallory" });
    for origin in [
        "https://localhost:3000",
        "http://localhost",
        "http://localhost:3001",
        "http://evil.localhost:3000",
        "http://localhost:3000.evil.example",
        "http://evil.example#http://localhost:3000",
        "http://localhost:3000@evil.example",
        "http://evil.example/http://localhost:3000",
        "http://127.0.0.1:3000",
        "http://[::1]:3000",
        "file://",
        "chrome-extension://abcdefghijklmnop",
        "null",
        "*",
        "http://localhost:3000, http://evil.example",
        "http://localhost:3000 http://evil.example",
    ] {
        let mut page = stage.owner.clone().with("origin", origin).with("sec-fetch-site", "cross-site");
        assert_eq!(page.patch("/api/app/account", rename.clone()).await.refusal(), refused, "{origin}");
        // Nobody is signed in, out or up from there either.
        for path in ["/api/auth/sign-in/email", "/api/auth/sign-out", "/api/auth/sign-up/email", "/api/app/setup"] {
            assert_eq!(page.post(path, sign_in()).await.refusal(), refused, "{origin} {path}");
        }
    }
    // A browser that names no origin says at least how far away the page is; a word of the page itself does not count.
    let silent = stage.owner.clone().without("origin");
    for site in ["cross-site", "same-site", "none", "SAME-ORIGIN", "same-origin, same-origin"] {
        let mut page = silent.clone().with("sec-fetch-site", site).with("referer", "http://localhost:3000/");
        assert_eq!(page.patch("/api/app/account", rename.clone()).await.refusal(), refused, "{site}");
    }
    // Nor does what a form elsewhere can send without asking first, and a method in a header is none.
    for (name, value) in [("content-type", "text/plain"), ("content-type", "application/x-www-form-urlencoded")] {
        let mut form = stage.owner.clone().with(name, value).with("origin", "http://evil.example");
        assert_eq!(form.patch("/api/app/account", rename.clone()).await.refusal(), refused, "{value}");
    }
    let mut overriding =
        stage.owner.clone().with("x-http-method-override", "PATCH").with("origin", "http://evil.example");
    overriding.get("/api/app/account").await.expect(200);
    let account = stage.owner.clone().get("/api/app/account").await.expect(200);
    assert_ne!(account["name"], "Mallory");
}

#[tokio::test]
async fn addresses_are_looked_up_thirty_times_an_hour_and_no_more() {
    let mut stage = Stage::new().await;
    let path = stage.app("members/lookup");
    for at in 0..30 {
        let found = stage.owner.get(&format!("{path}&email=p{at}%40other.test")).await.expect(200);
        assert_eq!(found, json!({ "account": false, "member": false }));
    }
    let over = stage.owner.get(&format!("{path}&email=ada%40acme.test")).await;
    assert_eq!(over.header("retry-after"), "120");
    assert_eq!(over.refusal(), (429, "RATE_LIMITED".into()));
    stage.world.clock.advance(std::time::Duration::from_secs(120));
    let found = stage.owner.get(&format!("{path}&email=ada%40acme.test")).await.expect(200);
    assert_eq!(found, json!({ "account": true, "member": true }));
    for wrong in ["", "&email=x&more=1"] {
        assert_eq!(stage.owner.get(&format!("{path}{wrong}")).await.status.as_u16(), 400, "{wrong}");
    }
}
