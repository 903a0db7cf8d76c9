//! Passwords that have to be replaced before anything else: too old, or chosen by somebody else (PWD-6…8).

use std::time::Duration;

use serde_json::json;
use tale_core::Code;
use tale_governance::policies::Key;
use tale_identity::api_keys::BelongsTo;
use tale_identity::members::{MemberChange, NewMember};
use tale_identity::password::Due;
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, Person, World, code, here};

const DAY: Duration = Duration::from_secs(24 * 3600);
const NEW: &str = "Green-Kettle-43";

async fn rotate(world: &World, by: &Person, days: u16) {
    let value = json!({ "rotationDays": days });
    world.policies.set(by.org, &by.caller.actor(), Key::PasswordPolicy, value, None).await.unwrap();
}

async fn due(world: &World, token: &str) -> Option<Due> {
    world.identity.authenticate_session(token, false).await.unwrap().password_due
}

#[tokio::test]
async fn a_password_that_is_too_old_stops_a_session_in_the_middle() {
    let world = World::new().await;
    let owner = world.owner().await;
    rotate(&world, &owner, 30).await;
    let key = world.identity.create_key(&owner.caller, BelongsTo::Maker, "nightly", None).await.unwrap();
    world.pass(DAY * 29);
    let session = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    let other = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    let identity = &world.identity;
    let principal = identity.authenticate_session(&session.token, false).await.unwrap();
    let standing = async || identity.standing(&[(principal.session, owner.org)]).await.unwrap().len();
    let enters = async || identity.authenticate_member(&session.token, false, Some(owner.org)).await.unwrap().1;
    world.pass(DAY);
    assert_eq!((due(&world, &session.token).await, standing().await), (None, 1), "as old as it may be");
    enters().await.unwrap();
    world.pass(Duration::from_millis(1));
    assert_eq!(due(&world, &session.token).await, Some(Due::Expired));
    assert_eq!(code(enters().await), Code::PasswordChangeRequired);
    let named = identity.caller_for_session(&principal, Some(owner.org)).await;
    assert_eq!(code(named), Code::PasswordChangeRequired, "what was read of the session before");
    assert_eq!(standing().await, 0, "its live updates end");
    identity.authenticate_key(&key.secret, None).await.expect("keys go on");
    let now = identity.authenticate_session(&session.token, false).await.unwrap();
    assert_eq!(code(now.released()), Code::PasswordChangeRequired);
    let overview = identity.session_overview(Some(&now), &here()).await.unwrap();
    assert!(overview.organizations.is_empty() && overview.active_org.is_none());

    assert_eq!(code(identity.change_password(&now, PASSWORD, PASSWORD, &here()).await), Code::PasswordPolicy);
    assert_eq!(code(identity.change_password(&now, "Wrong-Kettle-42", NEW, &here()).await), Code::InvalidCredentials);
    assert!(identity.change_password(&now, PASSWORD, NEW, &here()).await.unwrap(), "this session goes on");
    enters().await.unwrap();
    assert_eq!((due(&world, &session.token).await, standing().await), (None, 1));
    assert_eq!(code(identity.authenticate_session(&other.token, false).await), Code::Unauthorized);
    let required: Option<String> = sqlx::query_scalar(
        "SELECT details ->> 'required' FROM app.audit_entries WHERE org_id = $1 AND action = 'account.password_changed'",
    )
    .bind(owner.org)
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert_eq!(required.as_deref(), Some("expired"));
    // By one's own wish it ends every session, as ever.
    assert!(!identity.change_password(&now, NEW, PASSWORD, &here()).await.unwrap());
    assert_eq!(code(identity.authenticate_session(&session.token, false).await), Code::Unauthorized);
}

#[tokio::test]
async fn the_fewest_days_of_ones_organizations_count_and_nobody_without_a_password_is_asked() {
    let world = World::new().await;
    let owner = world.owner().await;
    let eve = world.stranger("eve@other.test", "Other").await;
    let ann = world.member(&owner, "ann@acme.test", Role::Member).await;
    let join = NewMember {
        email: "ann@acme.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    world.identity.add_member(&eve.caller, &join).await.unwrap();
    rotate(&world, &owner, 90).await;
    rotate(&world, &eve, 10).await;
    world.pass(DAY * 11);
    let ann_now = world.sign_in("ann@acme.test", PASSWORD).await.unwrap();
    let owner_now = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    assert_eq!(due(&world, &ann_now.token).await, Some(Due::Expired));
    assert_eq!(due(&world, &owner_now.token).await, None, "Other's rule is none of Acme's");
    // Whoever is out of an organization is out of its rules.
    let eve_now = world.sign_in("eve@other.test", PASSWORD).await.unwrap();
    assert_eq!(due(&world, &eve_now.token).await, Some(Due::Expired));
    let disable = MemberChange { role: Some(Role::Disabled), ..MemberChange::default() };
    world.identity.update_member(&eve.caller, ann.id, &disable).await.unwrap();
    assert_eq!(due(&world, &ann_now.token).await, None);
    rotate(&world, &eve, 0).await;
    assert_eq!(due(&world, &eve_now.token).await, None, "0 is never");
    rotate(&world, &eve, 1).await;
    sqlx::query("UPDATE app.users SET password_hash = NULL WHERE id = $1")
        .bind(eve.id)
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(due(&world, &eve_now.token).await, None, "an account of an identity provider");
    let bounds = json!({ "rotationDays": 3_651 });
    let refused = world.policies.set(owner.org, &owner.caller.actor(), Key::PasswordPolicy, bounds, None).await;
    assert_eq!(code(refused.map(drop)), Code::InvalidBody);
}

#[tokio::test]
async fn a_password_that_an_admin_chose_is_replaced_first() {
    let world = World::new().await;
    let owner = world.owner().await;
    let new = NewMember {
        email: "ann@acme.test".into(),
        name: None,
        role: Role::Admin,
        password: Some(PASSWORD.into()),
        must_change_password: true,
    };
    let ann = world.identity.add_member(&owner.caller, &new).await.unwrap().user;
    let session = world.sign_in("ann@acme.test", PASSWORD).await.unwrap();
    assert_eq!(due(&world, &session.token).await, Some(Due::Temporary));
    let principal = world.identity.authenticate_session(&session.token, false).await.unwrap();
    assert!(world.identity.change_password(&principal, PASSWORD, NEW, &here()).await.unwrap());
    assert_eq!(due(&world, &session.token).await, None);
    let reset =
        MemberChange { password: Some("Red-Kettle-44".into()), must_change_password: true, ..MemberChange::default() };
    world.identity.update_member(&owner.caller, ann, &reset).await.unwrap();
    let session = world.sign_in("ann@acme.test", "Red-Kettle-44").await.unwrap();
    assert_eq!(due(&world, &session.token).await, Some(Due::Temporary));
    // A membership of an account that exists changes nothing about its password, and neither does one's own choice.
    let eve = world.stranger("eve@other.test", "Other").await;
    let join = NewMember { email: "eve@other.test".into(), ..new };
    world.identity.add_member(&owner.caller, &join).await.unwrap();
    assert_eq!(due(&world, &eve.token).await, None);
    world.identity.update_member(&owner.caller, owner.id, &reset).await.unwrap();
    let own = world.sign_in("owner@acme.test", "Red-Kettle-44").await.unwrap();
    assert_eq!(due(&world, &own.token).await, None);
}

#[tokio::test]
async fn a_copy_of_a_session_is_no_way_around() {
    let config = IdentityConfig {
        session_cookie_cache: Some(Duration::from_secs(300)),
        session_secret: Some("secret".into()),
        ..IdentityConfig::default()
    };
    let world = World::with(config).await;
    let owner = world.owner().await;
    let copied = world.identity.copy_session(&owner.principal, &owner.token);
    assert!(copied.is_some());
    rotate(&world, &owner, 1).await;
    world.pass(DAY + Duration::from_secs(1));
    let principal = world.identity.authenticate_session(&owner.token, false).await.unwrap();
    assert!(world.identity.copy_session(&principal, &owner.token).is_none());
    let earlier = world.identity.caller_for_session(&owner.principal, Some(owner.org)).await;
    assert_eq!(code(earlier), Code::PasswordChangeRequired);
}
