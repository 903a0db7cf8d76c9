//! What organizations lay down about passwords and sign-ins, and who is bound by it.

use std::time::Duration;

use serde_json::json;
use tale_core::Code;
use tale_governance::policies::Key;
use tale_identity::Role;
use tale_identity::members::NewMember;

use crate::world::{PASSWORD, World, code, here};

#[tokio::test]
async fn the_strictest_of_a_persons_organizations_decides_about_a_new_password() {
    let world = World::new().await;
    let owner = world.owner().await;
    let lax = json!({ "minLength": 6, "requireUpper": false, "requireSpecial": false, "requireDigit": false });
    world.policies.set(owner.org, &owner.caller.actor(), Key::PasswordPolicy, lax, None).await.unwrap();
    let new = |email: &str, password: &str| NewMember {
        email: email.into(),
        name: None,
        role: Role::Member,
        password: Some(password.into()),
        must_change_password: false,
    };
    world.identity.add_member(&owner.caller, &new("ann@acme.test", "kettle blue")).await.unwrap();
    assert_eq!(
        code(world.identity.add_member(&owner.caller, &new("ben@acme.test", "kettl")).await),
        Code::PasswordPolicy
    );
    let ann = world.sign_in("ann@acme.test", "kettle blue").await.unwrap();
    let principal = world.identity.authenticate_session(&ann.token, false).await.unwrap();
    let asked = async || world.identity.account(&principal).await.unwrap().password_policy;
    assert_eq!((asked().await.min_length, asked().await.require_upper), (6, false));

    // Another organization, which lays down nothing, is as strict as the deployment.
    let eve = world.stranger("eve@other.test", "Other").await;
    let join = NewMember { password: None, ..new("ann@acme.test", "") };
    world.identity.add_member(&eve.caller, &join).await.unwrap();
    assert_eq!((asked().await.min_length, asked().await.require_upper), (12, true));
    let change = async |to: &str| world.identity.change_password(&principal, "kettle blue", to, &here()).await;
    assert_eq!(code(change("kettle green").await), Code::PasswordPolicy);
    let strict = json!({ "minLength": 20 });
    world.policies.set(eve.org, &eve.caller.actor(), Key::PasswordPolicy, strict, None).await.unwrap();
    assert_eq!(code(change("Green-Kettle-4321").await), Code::PasswordPolicy);
    // What is there already goes on working.
    world.sign_in("ann@acme.test", "kettle blue").await.unwrap();
    change("Green-Kettle-4321-and-more").await.unwrap();
}

#[tokio::test]
async fn the_strictest_of_a_persons_organizations_slows_wrong_passwords_down() {
    let world = World::new().await;
    let owner = world.owner().await;
    world.member(&owner, "ann@acme.test", Role::Member).await;
    let rules = json!({ "maxAttemptsBeforeLockout": 2, "backoffSchedule": [400, 90_000] });
    world.policies.set(owner.org, &owner.caller.actor(), Key::LoginPolicy, rules, None).await.unwrap();
    let wrong = async |email: &str| code(world.sign_in(email, "Wrong-Kettle-42").await);
    assert_eq!(wrong("ann@acme.test").await, Code::InvalidCredentials);
    assert_eq!(wrong("ann@acme.test").await, Code::InvalidCredentials);
    assert_eq!(code(world.sign_in("ann@acme.test", PASSWORD).await), Code::SignInLocked);
    // An address without an account is treated as the deployment says.
    for _ in 0..4 {
        assert_eq!(wrong("nobody@acme.test").await, Code::InvalidCredentials);
    }
    world.pass(Duration::from_millis(400));
    assert_eq!(wrong("ann@acme.test").await, Code::InvalidCredentials);
    world.pass(Duration::from_secs(80));
    assert_eq!(code(world.sign_in("ann@acme.test", PASSWORD).await), Code::SignInLocked);
    world.pass(Duration::from_secs(10));
    world.sign_in("ann@acme.test", PASSWORD).await.unwrap();

    // Switched off here, but Ann belongs to an organization that did not.
    let off = json!({ "enabled": false });
    world.policies.set(owner.org, &owner.caller.actor(), Key::LoginPolicy, off, None).await.unwrap();
    for _ in 0..9 {
        assert_eq!(wrong("ann@acme.test").await, Code::InvalidCredentials);
    }
    world.sign_in("ann@acme.test", PASSWORD).await.unwrap();
    let eve = world.stranger("eve@other.test", "Other").await;
    let join = NewMember {
        email: "ann@acme.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    world.identity.add_member(&eve.caller, &join).await.unwrap();
    for _ in 0..5 {
        assert_eq!(wrong("ann@acme.test").await, Code::InvalidCredentials);
    }
    assert_eq!(code(world.sign_in("ann@acme.test", PASSWORD).await), Code::SignInLocked);
}
