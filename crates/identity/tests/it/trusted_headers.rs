//! What the audit log says about sign-ins by a reverse proxy.

use serde_json::Value;
use tale_core::Code;
use tale_core::crypto::{hex_of, hmac_sha256};
use tale_identity::trusted_headers::{Assertion, HandOff};
use tale_identity::{IdentityConfig, Role};

use crate::world::{World, device};

fn assertion(key: Option<&str>, email: &str, role: &str) -> Assertion {
    Assertion {
        key: key.map(str::to_owned),
        email: Some(email.to_owned()),
        name: None,
        role: Some(role.to_owned()),
        signed: None,
    }
}

#[tokio::test]
async fn sign_ins_moves_and_refusals_are_written_down() {
    let pepper = "a pepper of some length";
    let world = World::with(IdentityConfig { audit_pepper: Some(pepper.into()), ..IdentityConfig::default() }).await;
    let owner = world.owner().await;
    world.identity.set_trusted_headers(&owner.caller, true, Role::Admin).await.unwrap();
    let key = world.identity.create_trusted_key(&owner.caller, "portal", false).await.unwrap();
    let far = device("203.0.113.9");
    let hand_off = async |key: Option<&str>, email: &str, role: &str| {
        world.identity.hand_off(&assertion(key, email, role), &far).await.unwrap()
    };
    assert!(matches!(hand_off(Some(&key.secret), "zoe@acme.test", "editor").await, HandOff::SignedIn(_)));
    assert!(matches!(hand_off(Some(&key.secret), "zoe@acme.test", "editor").await, HandOff::SignedIn(_)));
    assert_eq!(world.audited(owner.org, "member.added").await, 1);
    assert_eq!(world.audited(owner.org, "member.role_changed").await, 0);
    assert!(matches!(hand_off(Some(&key.secret), "zoe@acme.test", "admin").await, HandOff::SignedIn(_)));
    assert_eq!(world.audited(owner.org, "member.role_changed").await, 1);

    let eve = world.stranger("eve@other.test", "Other").await;
    assert!(matches!(hand_off(Some(&key.secret), "Eve@Other.test", "admin").await, HandOff::Refused));
    world.identity.set_trusted_headers(&owner.caller, false, Role::Admin).await.unwrap();
    assert!(matches!(hand_off(Some(&key.secret), "zoe@acme.test", "admin").await, HandOff::KeyRefused));
    world.identity.revoke_trusted_key(&owner.caller, key.id, false).await.unwrap();
    assert!(matches!(hand_off(Some(&key.secret), "zoe@acme.test", "admin").await, HandOff::KeyRefused));
    let failed: Vec<(Value, Option<String>, Option<String>)> = sqlx::query_as(
        "SELECT details, actor_email, actor_email_hash FROM app.audit_entries
          WHERE org_id = $1 AND action = 'auth.sign_in_failed' ORDER BY id",
    )
    .bind(owner.org)
    .fetch_all(&world.db.app)
    .await
    .unwrap();
    let reasons: Vec<&str> = failed.iter().map(|(details, ..)| details["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["no-seat", "switched-off", "revoked-key"]);
    let hash = hex_of(&hmac_sha256(pepper.as_bytes(), b"eve@other.test"));
    assert_eq!((&failed[0].1, &failed[0].2), (&None, &Some(hash)));
    assert_eq!(world.audited(eve.org, "auth.sign_in_failed").await, 0, "another organization learns nothing");

    assert!(matches!(hand_off(Some("tale_h_nonsense"), "zoe@acme.test", "admin").await, HandOff::KeyRefused));
    assert!(matches!(hand_off(None, "zoe@acme.test", "admin").await, HandOff::KeyRefused));
    let of_nobody: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM app.audit_entries WHERE org_id IS NULL AND action = 'auth.sign_in_failed'",
    )
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert_eq!(of_nobody, 2);
    for action in ["trusted_headers.updated", "trusted_headers.key_created", "trusted_headers.key_revoked"] {
        assert!(world.audited(owner.org, action).await > 0, "{action}");
    }
    let dump: String = sqlx::query_scalar(
        "SELECT string_agg(k::text, '') || (SELECT string_agg(e::text, '') FROM app.audit_entries e) FROM app.trusted_header_keys k",
    )
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert!(!dump.contains(&key.secret));
}

#[tokio::test]
async fn a_key_opens_its_own_organization_and_no_other_of_the_same_person() {
    let world = World::with(IdentityConfig {
        session_cookie_cache: Some(std::time::Duration::from_secs(300)),
        session_secret: Some("secret".into()),
        ..IdentityConfig::default()
    })
    .await;
    let owner = world.owner().await;
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    world.identity.set_trusted_headers(&owner.caller, true, Role::Member).await.unwrap();
    let key = world.identity.create_trusted_key(&owner.caller, "portal", false).await.unwrap();
    let said = assertion(Some(&key.secret), &owner.principal.email, "member");
    let HandOff::SignedIn(signed_in) = world.identity.hand_off(&said, &device("203.0.113.9")).await.unwrap() else {
        panic!("refused")
    };

    let (principal, here) = world.identity.authenticate_member(&signed_in.token, false, Some(owner.org)).await.unwrap();
    assert_eq!(here.unwrap().org, owner.org);
    let (_, there) = world.identity.authenticate_member(&signed_in.token, false, Some(second.id)).await.unwrap();
    assert_eq!(there.unwrap_err().code, Code::OrgForbidden);
    let there = world.identity.caller_for_session(&principal, Some(second.id)).await;
    assert_eq!(there.unwrap_err().code, Code::OrgForbidden);
    assert!(world.identity.copy_session(&principal, &signed_in.token).is_none(), "a copy would not know of it");
}

#[tokio::test]
async fn a_revocation_ends_the_sessions_of_its_key_when_it_is_told_to() {
    let world = World::new().await;
    let owner = world.owner().await;
    world.identity.set_trusted_headers(&owner.caller, true, Role::Member).await.unwrap();
    let mut keys = Vec::new();
    for name in ["kept", "left", "ended"] {
        keys.push(world.identity.create_trusted_key(&owner.caller, name, false).await.unwrap());
    }
    let mut tokens = Vec::new();
    for key in &keys {
        for email in ["zoe@acme.test", "yan@acme.test"] {
            let said = assertion(Some(&key.secret), email, "member");
            let HandOff::SignedIn(signed_in) = world.identity.hand_off(&said, &device("203.0.113.9")).await.unwrap()
            else {
                panic!("refused")
            };
            tokens.push(signed_in.token);
        }
    }
    world.identity.revoke_trusted_key(&owner.caller, keys[1].id, false).await.unwrap();
    world.identity.revoke_trusted_key(&owner.caller, keys[2].id, true).await.unwrap();
    let mut live = Vec::new();
    for token in &tokens {
        live.push(world.identity.authenticate_session(token, false).await.is_ok());
    }
    assert_eq!(live, [true, true, true, true, false, false]);
    assert!(world.identity.authenticate_session(&owner.token, false).await.is_ok());
    let details: Vec<Value> = sqlx::query_scalar(
        "SELECT details FROM app.audit_entries WHERE action = 'trusted_headers.key_revoked' ORDER BY id",
    )
    .fetch_all(&world.db.app)
    .await
    .unwrap();
    assert_eq!((&details[0]["endedSessions"], &details[1]["endedSessions"]), (&Value::Null, &Value::from(2)));

    // What a revoked key left behind can still be ended.
    assert_eq!(
        world.identity.revoke_trusted_key(&owner.caller, keys[1].id, false).await.unwrap_err().code,
        Code::TrustedKeyNotFound
    );
    world.identity.revoke_trusted_key(&owner.caller, keys[1].id, true).await.unwrap();
    for token in &tokens[2..4] {
        assert!(world.identity.authenticate_session(token, false).await.is_err());
    }

    // Another organization's owner reaches neither the key nor its sessions.
    let eve = world.stranger("eve@other.test", "Other").await;
    let foreign = world.identity.revoke_trusted_key(&eve.caller, keys[0].id, true).await;
    assert_eq!(foreign.unwrap_err().code, Code::TrustedKeyNotFound);
    assert!(world.identity.authenticate_session(&tokens[0], false).await.is_ok());
}
