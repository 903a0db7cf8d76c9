//! The copy of the session in a cookie, through the doors.

use std::time::Duration;

use serde_json::json;
use tale_identity::IdentityConfig;

use crate::client::Client;
use crate::stage::PASSWORD;
use crate::world::{SITE, World};

async fn signed_in(cache: Option<u64>) -> (World, Client) {
    let config = IdentityConfig {
        session_cookie_cache: cache.map(Duration::from_secs),
        session_secret: Some("the secret of this deployment".into()),
        ..IdentityConfig::default()
    };
    let world = World::with(config, SITE).await;
    let mut owner = world.browser();
    let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
    owner.post("/api/app/setup", form).await.expect(200);
    (world, owner)
}

#[tokio::test]
async fn a_browser_gets_a_copy_uses_it_and_loses_it_with_the_session() {
    let (world, mut owner) = signed_in(Some(300)).await;
    let feed = tokio::spawn({
        let identity = world.app.identity.clone();
        async move { identity.follow_ended_sessions().await }
    });
    let answer = owner.get("/api/app/members").await;
    assert!(answer.header("set-cookie").contains("HttpOnly; SameSite=Lax; Max-Age=300"), "{:?}", answer.headers);
    let mut other = world.browser();
    other.post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": PASSWORD })).await.expect(200);
    let copied = async |browser: &mut Client| {
        // A believed copy is not made anew.
        let believed = async {
            while browser.get("/api/app/members").await.headers.contains_key("set-cookie") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), believed).await.expect("no copy was ever believed");
    };
    copied(&mut owner).await;
    copied(&mut other).await;
    other.get("/api/app/account").await.expect(200);
    owner.post("/api/app/account/sessions/end-others", json!({})).await.expect(204);
    let ended = async {
        while other.get("/api/app/account").await.status != 401 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the session lives on in its copy");
    assert!(owner.copy().is_some());
    owner.post("/api/auth/sign-out", json!({})).await.expect(204);
    assert_eq!((owner.cookie(), owner.copy()), (None, None));
    feed.abort();
}

#[tokio::test]
async fn there_is_no_copy_unless_the_operator_asks_for_it() {
    let (_world, mut owner) = signed_in(None).await;
    owner.get("/api/app/members").await.expect(200);
    owner.get("/api/app/account").await.expect(200);
    assert_eq!(owner.copy(), None);
}
