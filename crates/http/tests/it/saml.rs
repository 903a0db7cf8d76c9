//! Sign-in by SAML through the doors: what is registered, the way there, and back by a form of another site's page.

use serde_json::{Value, json};
use tale_core::Clock;
use tale_testkit::saml_provider::{CERTIFICATE, ENTITY, OWN_CERTIFICATE, OWN_KEY, SIGN_ON, Said, asked};

use crate::client::{Answer, Client};
use crate::stage::Stage;

fn form() -> Value {
    json!({
        "displayName": "Acme", "enabled": true, "defaultRole": "editor", "domains": [],
        "config": {
            "protocol": "saml", "issuer": ENTITY, "clientId": "", "scopes": [],
            "claims": { "email": "email", "name": "name", "groups": "groups", "roles": "roles" },
            "autoAssign": false, "rules": [], "teamSync": false, "excludedGroups": [],
            "saml": {
                "signOnUrl": SIGN_ON, "certificates": [CERTIFICATE], "requireSignedAssertions": true,
                "requireEncryptedAssertions": false, "spCertificate": null,
            },
        },
    })
}

/// A browser on a page of the provider.
fn elsewhere(stage: &Stage) -> Client {
    stage.world.browser().with("origin", "https://idp.example.org").with("sec-fetch-site", "cross-site")
}

fn cookie_of(answer: &Answer, name: &str) -> Option<String> {
    let cookies = answer.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    cookies.filter(|cookie| cookie.starts_with(name)).map(str::to_owned).next()
}

fn posted(pairs: &[(&str, &str)]) -> Vec<u8> {
    serde_urlencoded::to_string(pairs).unwrap().into_bytes()
}

#[tokio::test]
async fn the_way_to_a_provider_and_back_by_a_form() {
    let mut stage = Stage::new().await;
    let settings = stage.app("sso");
    let before = stage.owner.get(&settings).await.expect(200);
    let (own, reply) = (before["saml"]["entityId"].as_str().unwrap(), before["saml"]["replies"][0].as_str().unwrap());
    assert_eq!(own, format!("http://localhost:3000/api/sso/saml/{}/metadata", stage.org));
    let door = reply.strip_prefix("http://localhost:3000").unwrap().to_owned();
    let metadata = stage.world.browser().get(own.strip_prefix("http://localhost:3000").unwrap()).await;
    assert_eq!((metadata.status.as_u16(), metadata.header("content-type")), (200, "application/samlmetadata+xml"));
    assert!(String::from_utf8_lossy(&metadata.bytes).contains(&format!("Location=\"{reply}\"")));
    assert_eq!(stage.world.browser().get("/api/sso/saml/nonsense/metadata").await.status.as_u16(), 404);

    let mut encrypted = form();
    encrypted["config"]["saml"]["requireEncryptedAssertions"] = json!(true);
    encrypted["config"]["saml"]["spCertificate"] = json!(OWN_CERTIFICATE);
    assert_eq!(stage.owner.put(&settings, encrypted.clone()).await.refusal(), (400, "sso_sp_key_required".into()));
    encrypted["spPrivateKey"] = json!(OWN_KEY);
    stage.owner.put(&settings, encrypted).await.expect(204);
    let stored = stage.owner.get(&settings).await.expect(200);
    assert_eq!(stored["connection"]["hasSecret"], true);
    assert!(!stored.to_string().contains("PRIVATE KEY"));
    stage.owner.put(&settings, form()).await.expect(204);

    let offer = stage.world.browser().get("/api/sso/connections").await.expect(200);
    let connection = offer["connections"][0]["id"].as_str().unwrap().to_owned();
    let away = stage
        .world
        .browser()
        .without("origin")
        .with("sec-fetch-site", "cross-site")
        .get(&format!("/api/sso/start?connection={connection}&next=/dashboard/x"))
        .await;
    let set = cookie_of(&away, "tale_sso").unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Lax"), "{set}");
    let cookie = set.split(';').next().unwrap().to_owned();
    let (question, _) = asked(away.header("location"));

    let at = stage.world.clock.now().timestamp();
    let said = Said::about("zoe@acme.test", own, reply, Some(&question), at).posted();
    // The provider's page posts without our cookies. The page that answers posts the same again, and nothing has happened.
    let page = elsewhere(&stage).form(&door, posted(&[("SAMLResponse", &said), ("RelayState", "x")])).await;
    assert_eq!(page.status.as_u16(), 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self'"), "{policy}");
    assert!(String::from_utf8_lossy(&page.bytes).contains(&said));
    let again = posted(&[("SAMLResponse", &said), ("RelayState", "x"), ("again", "1")]);
    // Whoever posts it from elsewhere at once has no cookie.
    let other = elsewhere(&stage).form(&door, again.clone()).await;
    assert_eq!(other.header("location"), "/log-in?error=browser_binding&recovery=again");
    let mut zoe = stage.world.browser().with("cookie", &cookie);
    let back = zoe.form(&door, again.clone()).await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, "/dashboard/x"));
    assert!(cookie_of(&back, "tale_sso").unwrap().contains("Max-Age=0"));
    let session = zoe.without("cookie").get("/api/app/session").await.expect(200);
    assert_eq!(session["user"]["email"], "zoe@acme.test");
    let more = stage.world.browser().with("cookie", &cookie).form(&door, again).await;
    assert_eq!(more.header("location"), "/log-in?error=flow_over&recovery=again");

    // Begun at the provider: the page of this Tale that it names, and no other.
    for (relay, page) in [("/dashboard/y", "/dashboard/y"), ("https://evil.example/", "/dashboard"), ("", "/dashboard")]
    {
        let said = Said::about("zoe@acme.test", own, reply, None, at).posted();
        let fields = posted(&[("SAMLResponse", &said), ("RelayState", relay), ("again", "1")]);
        let back = elsewhere(&stage).form(&door, fields).await;
        assert_eq!(back.header("location"), page, "{relay}");
        assert!(cookie_of(&back, "tale_session").is_some());
    }
    for (fields, location) in [
        (posted(&[("SAMLResponse", "PHg+"), ("again", "1")]), "/log-in?error=not_believed&recovery=again"),
        (posted(&[("SAMLResponse", "<script>")]), "/log-in?error=not_believed&recovery=again"),
        (posted(&[("again", "1")]), "/log-in?error=not_believed&recovery=again"),
    ] {
        assert_eq!(elsewhere(&stage).form(&door, fields).await.header("location"), location);
    }
    let nowhere = elsewhere(&stage).form("/api/sso/saml/nonsense/acs", posted(&[("SAMLResponse", "PHg+")])).await;
    assert_eq!(nowhere.header("location"), "/log-in?error=switched_off&recovery=other_way");
    let large = elsewhere(&stage).form(&door, vec![b'a'; (1 << 20) + 1]).await;
    assert_eq!(large.refusal(), (413, "BODY_TOO_LARGE".into()));

    // What is imported is read, not saved.
    let import = stage.app("sso/saml/metadata");
    let read = stage.owner.post(&import, json!({ "document": "<a/>" })).await;
    assert_eq!(read.refusal(), (400, "INVALID_BODY".into()));
    let both = stage.owner.post(&import, json!({ "document": "<a/>", "url": "https://idp.example.org" })).await;
    assert_eq!(both.refusal(), (400, "INVALID_BODY".into()));
}
