//! API keys.

use std::time::Duration;

use tale_core::Code;
use tale_core::ids::ApiKeyId;
use tale_identity::members::MemberChange;
use tale_identity::{Role, Via};

use crate::world::{World, code};

#[tokio::test]
async fn a_key_acts_as_its_holder_with_the_role_of_now() {
    let world = World::new().await;
    let owner = world.owner().await;
    let dev = world.member(&owner, "dev@acme.test", Role::Developer).await;
    let key = world.identity.create_key(&dev.caller, " CI ", Some(30)).await.unwrap();
    let caller = world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!((caller.org, caller.user, caller.role), (owner.org, Some(dev.id), Role::Developer));
    assert!(
        matches!(&caller.via, Via::ApiKey { id, name, expires_at } if *id == key.id && name == "CI" && expires_at.is_some())
    );
    let me = world.identity.me(&caller).await.unwrap();
    assert_eq!((me.email.as_str(), me.organizations.len()), ("dev@acme.test", 1));
    let listed = world.identity.keys(&dev.caller).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].fragment.starts_with("tale_u_") && listed[0].fragment.len() < 25);
    assert!(world.identity.keys(&owner.caller).await.unwrap().is_empty(), "never the personal keys of others");

    world
        .identity
        .update_member(&owner.caller, dev.id, &MemberChange { role: Some(Role::Member), ..MemberChange::default() })
        .await
        .unwrap();
    assert_eq!(world.identity.authenticate_key(&key.secret, None).await.unwrap().role, Role::Member);
    let member = world.identity.caller_for_session(&dev.principal, None).await.unwrap();
    assert_eq!(
        code(world.identity.create_key(&member, "More", None).await.map(|key| key.id)),
        Code::ApiKeyCreateForbidden
    );
    assert_eq!(world.identity.keys(&member).await.unwrap().len(), 1, "existing keys stay listed");
    world
        .identity
        .update_member(&owner.caller, dev.id, &MemberChange { role: Some(Role::Disabled), ..MemberChange::default() })
        .await
        .unwrap();
    assert_eq!(code(world.identity.authenticate_key(&key.secret, None).await), Code::OrgForbidden);
    world.identity.remove_member(&owner.caller, dev.id).await.unwrap();
    assert_eq!(code(world.identity.authenticate_key(&key.secret, None).await), Code::OrgForbidden);
}

#[tokio::test]
async fn revoked_expired_and_invented_keys_are_refused_at_once() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (gone, short) = (
        world.identity.create_key(&owner.caller, "gone", None).await.unwrap(),
        world.identity.create_key(&owner.caller, "short", Some(7)).await.unwrap(),
    );
    world.identity.authenticate_key(&gone.secret, None).await.unwrap();
    world.identity.revoke_key(&owner.caller, gone.id).await.unwrap();
    assert_eq!(code(world.identity.authenticate_key(&gone.secret, None).await), Code::Unauthorized);
    assert_eq!(code(world.identity.revoke_key(&owner.caller, gone.id).await), Code::ApiKeyNotFound);
    world.identity.authenticate_key(&short.secret, None).await.unwrap();
    world.pass(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(code(world.identity.authenticate_key(&short.secret, None).await), Code::Unauthorized);
    assert_eq!(
        code(world.identity.authenticate_key(&tale_identity::keys::personal().secret, None).await),
        Code::Unauthorized
    );
    for days in [0, -1, 367] {
        assert_eq!(
            code(world.identity.create_key(&owner.caller, "x", Some(days)).await.map(|key| key.id)),
            Code::InvalidBody
        );
    }
    let stranger = world.stranger("stranger@other.test", "Other").await;
    for foreign in [short.id, ApiKeyId::new()] {
        assert_eq!(code(world.identity.revoke_key(&stranger.caller, foreign).await), Code::ApiKeyNotFound);
    }
    assert_eq!(world.audited(owner.org, "api_key.created").await, 2);
    assert_eq!(world.audited(owner.org, "api_key.revoked").await, 1);
}

#[tokio::test]
async fn a_malformed_key_costs_no_query() {
    let world = World::new().await;
    world.db.app.close().await;
    for malformed in ["", "tale_u_x", "sk-123"] {
        assert_eq!(code(world.identity.authenticate_key(malformed, None).await), Code::Unauthorized);
    }
    let well_formed = tale_identity::keys::personal().secret;
    assert_eq!(code(world.identity.authenticate_key(&well_formed, None).await), Code::DatabaseUnavailable);
}

#[tokio::test]
async fn the_organization_comes_from_the_slug_when_there_are_several() {
    let world = World::new().await;
    let owner = world.owner().await;
    let key = world.identity.create_key(&owner.caller, "k", None).await.unwrap();
    world.stranger("stranger@other.test", "Foreign").await;
    let by = async |slug| world.identity.authenticate_key(&key.secret, slug).await;
    assert_eq!(by(None).await.unwrap().org, owner.org);
    assert_eq!(by(Some("  ")).await.unwrap().org, owner.org);
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    let several = by(None).await.unwrap_err();
    assert_eq!(several.code, Code::OrgSlugRequired);
    assert_eq!(several.data.unwrap()["organizations"][1]["slug"], "second");
    assert_eq!(by(Some("SECOND")).await.unwrap().org, second.id);
    assert_eq!(by(Some("acme")).await.unwrap().org, owner.org);
    assert_eq!(code(by(Some("foreign")).await), Code::OrgForbidden);
    assert_eq!(code(by(Some("nowhere")).await), Code::OrgSlugInvalid);
}

#[tokio::test]
async fn only_the_hash_is_stored_and_uses_are_noted_once_a_minute() {
    let world = World::new().await;
    let owner = world.owner().await;
    let key = world.identity.create_key(&owner.caller, "k", None).await.unwrap();
    let dump: String = sqlx::query_scalar("SELECT k::text FROM app.api_keys k").fetch_one(&world.db.app).await.unwrap();
    assert!(!dump.contains(&key.secret[..20]));
    let last_used = async || world.identity.keys(&owner.caller).await.unwrap()[0].last_used_at;
    assert_eq!(last_used().await, None);
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    let first = last_used().await.unwrap();
    world.pass(Duration::from_secs(59));
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!(last_used().await, Some(first));
    world.pass(Duration::from_secs(1));
    world.identity.authenticate_key(&key.secret, None).await.unwrap();
    assert_eq!(last_used().await, Some(first + Duration::from_secs(60)));
}
