//! The doors of identity: exact shapes, cookies, origins, rights.

use std::time::Duration;

use serde_json::{Value, json};
use tale_identity::{Capability, IdentityConfig, Role};

use crate::client::Client;
use crate::world::{SITE, World};

const PASSWORD: &str = "Blue-Kettle-42";

/// The first owner of "Acme", through the wizard's door. Returns the browser and the organization.
async fn owner(world: &World) -> (Client, String) {
    let mut browser = world.browser();
    let done = browser
        .post(
            "/api/app/setup",
            json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" }),
        )
        .await
        .expect(200);
    (browser, done["organization"]["id"].as_str().unwrap().to_owned())
}

/// A member, added by `owner` and signed in.
async fn member(world: &World, owner: &mut Client, org: &str, email: &str, role: &str) -> (Client, String) {
    let added = owner
        .post(&format!("/api/app/members?orgId={org}"), json!({ "email": email, "role": role, "password": PASSWORD }))
        .await
        .expect(201);
    let mut browser = world.browser();
    browser.post("/api/auth/sign-in/email", json!({ "email": email, "password": PASSWORD })).await.expect(200);
    (browser, added["id"].as_str().unwrap().to_owned())
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn setup_signs_the_owner_in() {
    let world = World::new().await;
    let mut browser = world.browser();
    let before = browser.get("/api/app/session").await.expect(200);
    assert_eq!(
        keys(&before),
        [
            "activeOrganizationId",
            "canCreateOrganization",
            "demoAvailable",
            "fileEvents",
            "organizations",
            "passkeys",
            "passwordChange",
            "secondFactorWanted",
            "setupRequired",
            "setupTokenRequired",
            "sso",
            "trustedHeaders",
            "user",
            "version"
        ]
    );
    assert_eq!(
        (&before["user"], &before["setupRequired"], &before["setupTokenRequired"]),
        (&Value::Null, &json!(true), &json!(false))
    );
    let answer = browser
        .post(
            "/api/app/setup",
            json!({ "name": "Ada", "email": "Ada@Acme.test", "password": PASSWORD, "organizationName": "Acme" }),
        )
        .await;
    let cookie = answer.header("set-cookie").to_owned();
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age="), "{cookie}");
    assert!(!cookie.contains("Secure"));
    let done = answer.expect(200);
    assert_eq!(done["user"]["email"], "ada@acme.test");
    assert_eq!((&done["organization"]["slug"], &done["organization"]["role"]), (&json!("acme"), &json!("owner")));
    let session = browser.get("/api/app/session").await.expect(200);
    assert_eq!(session["user"]["name"], "Ada");
    assert_eq!(session["activeOrganizationId"], done["organization"]["id"]);
    assert_eq!(session["organizations"], json!([done["organization"]]));
    assert_eq!(session["setupRequired"], false);
    let again = world
        .browser()
        .post(
            "/api/app/setup",
            json!({ "name": "B", "email": "b@b.test", "password": PASSWORD, "organizationName": "B" }),
        )
        .await;
    assert_eq!(again.refusal(), (409, "SETUP_ALREADY_DONE".into()));
}

#[tokio::test]
async fn setup_from_elsewhere_needs_the_token() {
    let world = World::new().await;
    let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
    let mut elsewhere = [
        world.browser().from("203.0.113.9"),
        world.browser().with("x-forwarded-for", "203.0.113.9"),
        // A proxy here that forwards nothing but the name it was called by.
        world.browser().with("host", "tale.example.org"),
    ];
    for browser in &mut elsewhere {
        assert_eq!(browser.get("/api/app/session").await.expect(200)["setupTokenRequired"], true);
        assert_eq!(browser.post("/api/app/setup", form.clone()).await.refusal(), (403, "SETUP_TOKEN_REQUIRED".into()));
        let sign_up = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD });
        assert_eq!(
            browser.post("/api/auth/sign-up/email", sign_up).await.refusal(),
            (403, "SETUP_TOKEN_REQUIRED".into())
        );
    }
    // Another site's name that resolves to this machine.
    let mut rebound = world.browser().with("host", "rebound.example").with("origin", "http://rebound.example");
    assert_eq!(rebound.post("/api/app/setup", form).await.refusal(), (403, "ORIGIN_FORBIDDEN".into()));
}

#[tokio::test]
async fn a_site_on_https_gets_a_secure_cookie() {
    let world = World::with(
        IdentityConfig { allow_open_sign_up: true, ..IdentityConfig::default() },
        "https://tale.example.org",
    )
    .await;
    let mut browser = world.browser().with("origin", "https://tale.example.org");
    let answer = browser
        .post("/api/auth/sign-up/email", json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD }))
        .await;
    let set = answer.header("set-cookie").to_owned();
    assert!(set.starts_with("__Host-tale_session=") && set.contains("; Path=/;") && set.contains("; Secure"), "{set}");
    assert_eq!(keys(&answer.expect(200)), ["user"]);
    let token = browser.cookie().unwrap().to_owned();
    let who = async |name: &str| {
        let mut other = world.browser().with("cookie", &format!("{name}={token}"));
        other.get("/api/app/session").await.expect(200)["user"].clone()
    };
    assert_eq!(who("__Host-tale_session").await["email"], "ada@acme.test");
    assert!(who("tale_session").await.is_null(), "a neighbouring site could have put that one there");
}

#[tokio::test]
async fn the_first_account_by_sign_up_makes_its_organization() {
    let world = World::new().await;
    let mut browser = world.browser();
    let sign_up = |email: &str| json!({ "name": "Ada", "email": email, "password": PASSWORD });
    browser.post("/api/auth/sign-up/email", sign_up("ada@acme.test")).await.expect(200);
    assert_eq!(
        world.browser().post("/api/auth/sign-up/email", sign_up("b@acme.test")).await.refusal(),
        (403, "SIGN_UP_DISABLED".into())
    );
    let session = browser.get("/api/app/session").await.expect(200);
    assert_eq!((&session["organizations"], &session["activeOrganizationId"]), (&json!([]), &Value::Null));
    let org = browser.post("/api/app/organizations", json!({ "name": "Acme Widgets" })).await.expect(201);
    assert_eq!((keys(&org), &org["slug"]), (vec!["id", "name", "slug"], &json!("acme-widgets")));
    let key = browser
        .post(
            &format!("/api/app/api-keys?orgId={}", org["id"].as_str().unwrap()),
            json!({ "name": "CI", "expiresInDays": null }),
        )
        .await
        .expect(201);
    assert_eq!((keys(&key), &key["expiresAt"]), (vec!["expiresAt", "id", "key", "name"], &Value::Null));
    let me = world.key(key["key"].as_str().unwrap()).get("/api/v1/me").await.expect(200);
    assert_eq!(me["organization"]["slug"], "acme-widgets");
    assert_eq!(me["key"], json!({ "name": "CI", "expiresAt": null }));
    assert_eq!(me["capabilities"], json!({ "developer": true, "modelApi": false }));
    assert_eq!(me["organizations"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn sign_in_and_out() {
    let world = World::new().await;
    let (_, org) = owner(&world).await;
    let mut browser = world.browser();
    let wrong = browser.post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": "no" })).await;
    let unknown =
        browser.post("/api/auth/sign-in/email", json!({ "email": "nobody@acme.test", "password": "no" })).await;
    assert_eq!(wrong.refusal(), (401, "INVALID_CREDENTIALS".into()));
    assert_eq!(wrong.bytes, unknown.bytes);
    let answer = browser
        .post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": PASSWORD, "rememberMe": false }))
        .await;
    assert!(!answer.header("set-cookie").contains("Max-Age"));
    assert_eq!(answer.expect(200)["redirect"], format!("/dashboard/{org}/chat"));
    browser.get("/api/app/account").await.expect(200);
    let mut copy = browser.clone();
    browser.post("/api/auth/sign-out", json!({})).await.expect(204);
    assert_eq!(copy.get("/api/app/account").await.refusal(), (401, "UNAUTHORIZED".into()));
    assert_eq!(browser.get("/api/app/session").await.expect(200)["user"], Value::Null);
}

#[tokio::test]
async fn a_lockout_says_when_to_come_back() {
    let world = World::new().await;
    owner(&world).await;
    let mut browser = world.browser();
    for _ in 0..5 {
        browser
            .post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": "no" }))
            .await
            .expect(401);
    }
    let locked =
        browser.post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": PASSWORD })).await;
    assert_eq!(locked.header("retry-after"), "1");
    assert_eq!(locked.json()["data"]["retryAfterMs"], 1000);
    assert_eq!(locked.refusal(), (429, "SIGN_IN_LOCKED".into()));
    world.clock.advance(Duration::from_secs(1));
    browser
        .post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": PASSWORD }))
        .await
        .expect(200);
}

#[tokio::test]
async fn changes_come_from_our_own_pages() {
    let world = World::new().await;
    let (browser, _) = owner(&world).await;
    for mut foreign in [
        browser.clone().with("origin", "https://evil.example"),
        browser.clone().without("origin"),
        browser.clone().with("origin", "null"),
    ] {
        assert_eq!(
            foreign.patch("/api/app/account", json!({ "name": "X" })).await.refusal(),
            (403, "ORIGIN_FORBIDDEN".into())
        );
        let sign_in = json!({ "email": "ada@acme.test", "password": PASSWORD });
        assert_eq!(foreign.post("/api/auth/sign-in/email", sign_in).await.refusal(), (403, "ORIGIN_FORBIDDEN".into()));
        foreign.get("/api/app/account").await.expect(200);
    }
    let mut same = browser.without("origin").with("sec-fetch-site", "same-origin");
    same.patch("/api/app/account", json!({ "name": "Grace" })).await.expect(200);
}

#[tokio::test]
async fn the_account_and_its_sessions() {
    let world = World::new().await;
    let (mut browser, _) = owner(&world).await;
    let account = browser.get("/api/app/account").await.expect(200);
    assert_eq!(keys(&account), ["email", "hasPassword", "id", "name", "passwordPolicy"]);
    assert_eq!(
        account["passwordPolicy"],
        json!({ "minLength": 12, "requireUpper": true, "requireLower": true, "requireDigit": true, "requireSpecial": true })
    );
    let weak =
        browser.post("/api/app/account/password", json!({ "currentPassword": PASSWORD, "newPassword": "abc" })).await;
    assert_eq!(weak.json()["data"]["failed"], json!(["length", "upper", "digit", "special"]));
    assert_eq!(weak.refusal(), (400, "PASSWORD_POLICY".into()));
    let mut second = world.browser().with("user-agent", "Second browser");
    second.post("/api/auth/sign-in/email", json!({ "email": "ada@acme.test", "password": PASSWORD })).await.expect(200);
    let sessions = browser.get("/api/app/account/sessions").await.expect(200);
    let list = sessions["sessions"].as_array().unwrap();
    assert_eq!(keys(&list[0]), ["createdAt", "current", "id", "lastUsedAt", "network", "userAgent"]);
    let other = list.iter().find(|session| session["current"] == false).unwrap();
    assert_eq!(other["userAgent"], "Second browser");
    browser.delete(&format!("/api/app/account/sessions/{}", other["id"].as_str().unwrap())).await.expect(204);
    second.get("/api/app/account").await.expect(401);
    for gone in [other["id"].as_str().unwrap(), "not-an-id"] {
        let answer = browser.delete(&format!("/api/app/account/sessions/{gone}")).await;
        assert_eq!(answer.refusal(), (404, "SESSION_NOT_FOUND".into()));
    }
    browser.post("/api/app/account/sessions/end-others", json!({})).await.expect(204);
    browser
        .post("/api/app/account/password", json!({ "currentPassword": PASSWORD, "newPassword": "Green-Kettle-43" }))
        .await
        .expect(204);
    browser.get("/api/app/account").await.expect(401);
}

#[tokio::test]
async fn members_are_managed_by_admins() {
    let world = World::new().await;
    let (mut boss, org) = owner(&world).await;
    let (mut editor, editor_id) = member(&world, &mut boss, &org, "ed@acme.test", "editor").await;
    let list = boss.get(&format!("/api/app/members?orgId={org}")).await.expect(200);
    assert_eq!(keys(&list["members"][0]), ["email", "isCreator", "joinedAt", "name", "role", "userId"]);
    let path = format!("/api/app/members/{editor_id}?orgId={org}");
    // The right is checked before the body is looked at.
    let nonsense = editor.patch(&path, json!({ "role": "emperor" })).await;
    assert_eq!(nonsense.refusal(), (403, "MEMBER_ROLE_UPDATE_FORBIDDEN".into()));
    assert_eq!(editor.delete(&path).await.refusal(), (403, "MEMBER_REMOVE_FORBIDDEN".into()));
    assert_eq!(
        editor.post(&format!("/api/app/members?orgId={org}"), json!({})).await.refusal(),
        (403, "ORG_FORBIDDEN".into())
    );
    let bad = boss.patch(&path, json!({ "role": "emperor" })).await;
    assert_eq!(bad.json()["data"]["issues"][0]["path"], "role");
    assert_eq!(boss.patch(&path, json!({ "role": "developer" })).await.expect(200)["role"], "developer");
    for unknown in ["00000000-0000-7000-8000-000000000000", "x"] {
        let answer = boss.patch(&format!("/api/app/members/{unknown}?orgId={org}"), json!({ "role": "member" })).await;
        assert_eq!(answer.refusal(), (404, "MEMBER_NOT_FOUND".into()));
    }
    let permissions = editor.get(&format!("/api/app/permissions?orgId={org}")).await.expect(200);
    assert_eq!(permissions["role"], "developer");
    assert!(permissions["capabilities"].as_array().unwrap().contains(&json!("providers.manage")));
    boss.patch(&path, json!({ "role": "disabled" })).await.expect(200);
    assert_eq!(editor.get(&format!("/api/app/permissions?orgId={org}")).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    boss.patch(&path, json!({ "role": "admin" })).await.expect(200);
    boss.post(&format!("/api/app/members/{editor_id}/transfer-ownership?orgId={org}"), json!({})).await.expect(204);
    assert_eq!(editor.get(&format!("/api/app/permissions?orgId={org}")).await.expect(200)["role"], "owner");
    let renamed =
        editor.patch(&format!("/api/app/organizations/{org}"), json!({ "name": "Acme Two" })).await.expect(200);
    assert_eq!((&renamed["name"], &renamed["slug"]), (&json!("Acme Two"), &json!("acme")));
}

#[tokio::test]
async fn the_permissions_read_is_the_table() {
    let world = World::new().await;
    let (mut boss, org) = owner(&world).await;
    let (mut someone, id) = member(&world, &mut boss, &org, "x@acme.test", "member").await;
    for role in [Role::Member, Role::Editor, Role::Developer, Role::Admin] {
        boss.patch(&format!("/api/app/members/{id}?orgId={org}"), json!({ "role": role.text() })).await.expect(200);
        let permissions = someone.get(&format!("/api/app/permissions?orgId={org}")).await.expect(200);
        // This deployment has no sandboxes.
        let there = |held: &Capability| !matches!(held, Capability::SandboxesManage | Capability::WorkspacesManage);
        let expected: Vec<&str> = role.capabilities().into_iter().filter(there).map(Capability::text).collect();
        let cells = Capability::ALL.iter().map(|capability| (capability.text(), role.cell(*capability).text()));
        let cells: serde_json::Map<String, Value> = cells.map(|(name, cell)| (name.to_owned(), json!(cell))).collect();
        assert_eq!(permissions, json!({ "role": role.text(), "capabilities": expected, "cells": cells }));
    }
}

#[tokio::test]
async fn foreign_organizations_are_refused_whatever_their_name() {
    let world = World::new().await;
    let (mut boss, _) = owner(&world).await;
    for org in ["00000000-0000-7000-8000-000000000000", "acme", "1"] {
        for path in ["members", "api-keys", "preferences", "permissions"] {
            let answer = boss.get(&format!("/api/app/{path}?orgId={org}")).await;
            assert_eq!(answer.refusal(), (403, "ORG_FORBIDDEN".into()), "{path} {org}");
        }
        assert_eq!(
            boss.patch(&format!("/api/app/organizations/{org}"), json!({ "name": "X" })).await.refusal(),
            (403, "ORG_FORBIDDEN".into())
        );
    }
    // Without `orgId` the session's active organization is meant.
    boss.get("/api/app/members").await.expect(200);
}

#[tokio::test]
async fn preferences_are_replaced_as_a_whole() {
    let world = World::new().await;
    let (mut browser, org) = owner(&world).await;
    let path = format!("/api/app/preferences?orgId={org}");
    let initial = json!({ "locale": null, "theme": "system", "customInstructions": { "enabled": null, "text": "" } });
    assert_eq!(browser.get(&path).await.expect(200), initial);
    let wanted = json!({ "locale": "fr", "theme": "dark", "customInstructions": { "enabled": true, "text": "Bref." } });
    assert_eq!(browser.put(&path, wanted.clone()).await.expect(200), wanted);
    assert_eq!(browser.get(&path).await.expect(200), wanted);
    for (body, at) in [
        (json!({ "theme": "dark", "customInstructions": { "enabled": true, "text": "" } }), "locale"),
        (json!({ "locale": "it", "theme": "dark", "customInstructions": { "enabled": true, "text": "" } }), "locale"),
        (
            json!({ "locale": null, "theme": "dark", "customInstructions": { "enabled": true, "text": "x".repeat(3201) } }),
            "customInstructions.text",
        ),
    ] {
        let refused = browser.put(&path, body).await;
        assert_eq!(refused.json()["data"]["issues"][0]["path"], at);
        assert_eq!(refused.refusal(), (400, "INVALID_BODY".into()));
    }
}

#[tokio::test]
async fn mail_is_to_be_seen_only_where_the_deployment_delivers_it() {
    let world = World::new().await;
    let (mut browser, org) = owner(&world).await;
    let path = format!("/api/app/notifications/settings?orgId={org}");
    let settings = browser.get(&path).await.expect(200);
    assert!(!settings.to_string().contains("mail"), "{settings}");
    sqlx::query("INSERT INTO app.mail_delivery (since) VALUES (now())").execute(&world.app.database).await.unwrap();
    let of = |settings: &Value, name: &str| {
        settings["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == name).unwrap().clone()
    };
    let settings = browser.put(&path, json!({ "muted": [], "unmailed": ["keyMade"] })).await.expect(200);
    assert_eq!(
        of(&settings, "keyMade"),
        json!({ "kind": "keyMade", "always": false, "muted": false, "mailed": false })
    );
    assert_eq!(of(&settings, "passwordChanged")["mailed"], true);
    // Who changes the one keeps the other.
    browser.put(&path, json!({ "muted": ["newDevice"] })).await.expect(200);
    let settings = browser.get(&path).await.expect(200);
    assert_eq!(
        (&of(&settings, "keyMade")["mailed"], &of(&settings, "newDevice")["muted"]),
        (&json!(false), &json!(true))
    );
    for wrong in ["passwordChanged", "nothing"] {
        let refused = browser.put(&path, json!({ "muted": [], "unmailed": [wrong] })).await;
        assert_eq!(refused.refusal(), (400, "INVALID_BODY".into()), "{wrong}");
    }
}

#[tokio::test]
async fn keys_open_the_other_door() {
    let world = World::new().await;
    let (mut boss, org) = owner(&world).await;
    let path = format!("/api/app/api-keys?orgId={org}");
    for body in [
        json!({ "name": "CI" }),
        json!({ "name": "CI", "expiresInDays": 0 }),
        json!({ "name": " ", "expiresInDays": 7 }),
    ] {
        assert_eq!(boss.post(&path, body).await.refusal(), (400, "INVALID_BODY".into()));
    }
    let made = boss.post(&path, json!({ "name": "CI", "expiresInDays": 30 })).await.expect(201);
    let secret = made["key"].as_str().unwrap();
    let listed = boss.get(&path).await.expect(200);
    assert_eq!(
        keys(&listed["keys"][0]),
        [
            "createdAt",
            "expiresAt",
            "fragment",
            "holder",
            "id",
            "kind",
            "lastUsedAt",
            "maker",
            "name",
            "replaceable",
            "role"
        ]
    );
    assert!(!listed.to_string().contains(secret));
    let me = world.key(secret).get("/api/v1/me").await;
    assert!(me.header("etag").starts_with('"'));
    me.expect(200);
    for mut refused in [
        world.key("tale_u_nonsense"),
        world.key(secret).without("authorization"),
        world.key(secret).with("x-api-key", secret),
    ] {
        let answer = refused.get("/api/v1/me").await;
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".into()));
    }
    assert_eq!(world.key(secret).get("/api/v1/nothing").await.refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(
        world.key(secret).with("x-organization-slug", "nowhere").get("/api/v1/me").await.refusal(),
        (404, "ORG_SLUG_INVALID".into())
    );
    boss.delete(&format!("/api/app/api-keys/{}?orgId={org}", made["id"].as_str().unwrap())).await.expect(204);
    assert_eq!(world.key(secret).get("/api/v1/me").await.refusal(), (401, "UNAUTHORIZED".into()));
    let (mut editor, _) = member(&world, &mut boss, &org, "ed@acme.test", "editor").await;
    assert_eq!(editor.post(&path, json!({ "name": "x" })).await.refusal(), (403, "API_KEY_CREATE_FORBIDDEN".into()));
}

#[tokio::test]
async fn a_key_of_the_organization_opens_what_needs_no_person() {
    let world = World::new().await;
    let (mut boss, org) = owner(&world).await;
    let path = format!("/api/app/api-keys?orgId={org}");
    for (body, at) in [
        (json!({ "name": "k", "expiresInDays": 1, "kind": "organization" }), "role"),
        (json!({ "name": "k", "expiresInDays": 1, "kind": "organization", "role": "editor", "userId": org }), "userId"),
        (json!({ "name": "k", "expiresInDays": 1, "role": "editor" }), "role"),
        (json!({ "name": "k", "expiresInDays": 1, "kind": "team", "role": "editor", "teamId": "x" }), "teamId"),
    ] {
        let refused = boss.post(&path, body).await;
        assert_eq!(refused.json()["data"]["issues"][0]["path"], at);
    }
    let unknown = json!({ "name": "k", "expiresInDays": 1, "kind": "project" });
    assert_eq!(boss.post(&path, unknown).await.refusal(), (400, "INVALID_BODY".into()));
    let body = json!({ "name": "k", "expiresInDays": 1, "kind": "organization", "role": "editor" });
    let (mut dev, _) = member(&world, &mut boss, &org, "dev@acme.test", "developer").await;
    assert_eq!(dev.post(&path, body.clone()).await.refusal(), (403, "API_KEY_CREATE_FORBIDDEN".into()));
    let made = boss.post(&path, body).await.expect(201);
    let mut key = world.key(made["key"].as_str().unwrap());
    let me = key.get("/api/v1/me").await.expect(200);
    assert_eq!(
        (&me["user"], &me["key"]["name"], &me["organization"]["role"]),
        (&json!(null), &json!("k"), &json!("editor"))
    );
    let text = json!({ "title": "Notes", "content": "Tulips" });
    let document = key.post("/api/v1/documents", text).await.expect(201);
    key.get(&format!("/api/v1/documents/{}", document["id"].as_str().unwrap())).await.expect(200);
    let chats = key.get("/api/v1/threads").await;
    assert_eq!(chats.refusal(), (403, "API_KEY_SCOPE_FORBIDDEN".into()));
    let elsewhere = key.clone().with("x-organization-slug", "other").get("/api/v1/me").await;
    assert_eq!(elsewhere.refusal(), (403, "ORG_FORBIDDEN".into()));
}

#[tokio::test]
async fn guessed_keys_are_slowed_down_per_network() {
    let world = World::new().await;
    owner(&world).await;
    let mut guesser = world.key("tale_u_nonsense").from("203.0.113.9");
    for _ in 0..40 {
        guesser.get("/api/v1/me").await.expect(401);
    }
    let limited = guesser.clone().from("203.0.113.77").get("/api/v1/me").await;
    assert_eq!(limited.refusal(), (429, "RATE_LIMITED".into()));
    world.key("tale_u_nonsense").from("198.51.100.1").get("/api/v1/me").await.expect(401);
}

#[tokio::test]
async fn a_known_key_works_on_while_its_network_guesses() {
    let stage = crate::stage::Stage::new().await;
    let mut known = stage.key.clone().from("203.0.113.9");
    known.get("/api/v1/me").await.expect(200);
    let mut guesser = stage.world.key("tale_u_nonsense").from("203.0.113.9");
    while guesser.get("/api/v1/me").await.status == 401 {}
    known.get("/api/v1/me").await.expect(200);
}

#[tokio::test]
async fn an_empty_list_of_creators_lets_nobody_make_a_second_organization() {
    let config = IdentityConfig { organization_creators: Some(Vec::new()), ..IdentityConfig::default() };
    let world = World::with(config, SITE).await;
    let mut owner = world.browser();
    let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
    owner.post("/api/app/setup", form).await.expect(200);
    let refused = owner.post("/api/app/organizations", json!({ "name": "Second" })).await;
    assert_eq!(refused.refusal(), (403, "ORGANIZATION_CREATION_FORBIDDEN".into()));
    assert_eq!(owner.get("/api/app/session").await.expect(200)["canCreateOrganization"], false);
}

#[tokio::test]
async fn a_deleted_organization_is_nobodys_from_the_next_request_on() {
    let world = World::new().await;
    let (mut boss, org) = owner(&world).await;
    let (mut admin, _) = member(&world, &mut boss, &org, "admin@acme.test", "admin").await;
    let path = format!("/api/app/organizations/{org}");
    let right = json!({ "name": "Acme" });
    let delete = async |client: &mut Client, body: Value| client.send("DELETE", &path, Some(body)).await;
    assert_eq!(delete(&mut admin, right.clone()).await.refusal(), (403, "ORG_FORBIDDEN".into()));
    for wrong in [json!({ "name": "acme" }), json!({}), json!({ "name": "" })] {
        assert_eq!(delete(&mut boss, wrong).await.refusal(), (400, "INVALID_BODY".into()));
    }
    boss.get(&format!("/api/app/members?orgId={org}")).await.expect(200);
    let (first, second) = (&mut boss.clone(), &mut boss.clone());
    let both = tokio::join!(delete(first, right.clone()), delete(second, right.clone()));
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 403], "of two at once one comes too late");
    for client in [&mut boss, &mut admin] {
        assert_eq!(client.get(&format!("/api/app/members?orgId={org}")).await.refusal(), (403, "ORG_FORBIDDEN".into()));
        assert_eq!(client.get("/api/app/session").await.expect(200)["organizations"], json!([]));
    }
    // Whoever made it may make another one.
    boss.post("/api/app/organizations", json!({ "name": "Acme Again" })).await.expect(201);
}
