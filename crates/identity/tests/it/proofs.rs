//! Showing once more that it is oneself, setting a first password, and the last way into an organization.

use std::time::Duration;

use tale_core::Code;
use tale_core::ids::{SessionId, UserId};
use tale_identity::factors::PROOF_TIME;
use tale_identity::sso::{ClaimPaths, Config, ConnectionForm, Protocol};
use tale_identity::{Role, SessionPrincipal};

use crate::authenticator::Authenticator;
use crate::passkeys::{device as authenticator, world as with_passkeys};
use crate::world::{PASSWORD, Person, World, code, here};

/// The session as it is now.
async fn again(world: &World, person: &Person) -> SessionPrincipal {
    world.identity.authenticate_session(&person.token, false).await.unwrap()
}

async fn without_password(world: &World, user: UserId) {
    sqlx::query("UPDATE app.users SET password_hash = NULL WHERE id = $1")
        .bind(user)
        .execute(&world.db.app)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_passkey_goes_only_when_its_person_has_just_shown_who_they_are() {
    let world = with_passkeys().await;
    let owner = world.owner().await;
    let identity = &world.identity;
    let mut kept = authenticator();
    let mut added: Vec<(Authenticator, _)> = Vec::new();
    for _ in 0..4 {
        let key = authenticator();
        let id = world.passkey_of(&owner, &key).await;
        added.push((key, id));
    }
    let keep = world.passkey_of(&owner, &kept).await;
    let mut next = added.into_iter().map(|(_, id)| id);
    let remove = async |id| identity.remove_passkey(&again(&world, &owner).await, id).await;
    let needed = async || identity.factors(&again(&world, &owner).await).await.unwrap().proof_needed;

    // A sign-in counts as a proof, for a while.
    assert!(!needed().await);
    remove(next.next().unwrap()).await.unwrap();
    world.pass(PROOF_TIME);
    let second = next.next().unwrap();
    assert!(needed().await);
    assert_eq!(code(remove(second).await), Code::SessionNotFresh);

    // The password does, a wrong one does not and is slowed down like a sign-in.
    let principal = again(&world, &owner).await;
    let wrong = identity.prove_with_password(&principal, "Wrong-Kettle-42", &here()).await;
    assert_eq!(code(wrong), Code::InvalidCredentials);
    assert_eq!(code(remove(second).await), Code::SessionNotFresh);
    identity.prove_with_password(&principal, PASSWORD, &here()).await.unwrap();
    let elsewhere = SessionPrincipal { session: SessionId::new(), ..principal.clone() };
    assert_eq!(code(identity.remove_passkey(&elsewhere, second).await), Code::SessionNotFresh, "of another session");
    remove(second).await.unwrap();
    world.pass(PROOF_TIME);
    let third = next.next().unwrap();
    assert_eq!(code(remove(third).await), Code::SessionNotFresh);

    // So does a passkey of the same person, asked in this session, once.
    let asked = identity.begin_proof(&principal).await.unwrap();
    assert!(asked.allow.iter().any(|known| known.id == kept.credential));
    let answer = kept.answer(&asked.challenge);
    identity.prove_with_passkey(&principal, &answer, &here()).await.unwrap();
    remove(third).await.unwrap();
    world.pass(PROOF_TIME);
    let replay = identity.prove_with_passkey(&principal, &answer, &here()).await;
    assert_eq!(code(replay), Code::PasskeyRefused);
    let adding = identity.begin_passkey(&principal, Some(PASSWORD), &here()).await.unwrap().challenge;
    for question in [world.question(), adding] {
        let elsewhere = identity.prove_with_passkey(&principal, &kept.answer(&question), &here()).await;
        assert_eq!(code(elsewhere), Code::PasskeyRefused, "asked for something else");
    }
    assert_eq!(code(remove(keep).await), Code::SessionNotFresh);
    assert_eq!(world.audited(owner.org, "auth.proved").await, 2);
}

#[tokio::test]
async fn a_code_of_the_app_shows_it_too_and_counts_once() {
    let world = with_passkeys().await;
    let owner = world.owner().await;
    let id = world.passkey_of(&owner, &authenticator()).await;
    let (app, _) = world.app_of(&owner).await;
    let stranger = world.stranger("s@other.test", "Other").await;
    world.pass(PROOF_TIME + Duration::from_secs(60));
    let identity = &world.identity;
    let typed = world.totp(&app, 0);
    let foreign = identity.prove_with_totp(&stranger.principal, &typed, &here()).await;
    assert_eq!(code(foreign), Code::TwoFactorCodeInvalid);
    let wrong = identity.prove_with_totp(&owner.principal, "000000", &here()).await;
    assert_eq!(code(wrong), Code::TwoFactorCodeInvalid);
    identity.prove_with_totp(&owner.principal, &typed, &here()).await.unwrap();
    let replay = identity.prove_with_totp(&owner.principal, &typed, &here()).await;
    assert_eq!(code(replay), Code::TwoFactorCodeInvalid);
    assert_eq!(world.audited(owner.org, "2fa_verify_failed").await, 2);
    identity.remove_passkey(&owner.principal, id).await.unwrap();
}

#[tokio::test]
async fn somebody_without_a_password_sets_one_in_a_fresh_session_and_once() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let identity = &world.identity;
    let set = async |principal: &SessionPrincipal, new: &str| identity.set_first_password(principal, new).await;
    assert_eq!(code(set(&member.principal, "Green-Kettle-43").await), Code::PasswordAlreadySet);
    without_password(&world, member.id).await;
    assert_eq!(code(set(&member.principal, "short").await), Code::PasswordPolicy);
    let mut confined = member.principal.clone();
    confined.confined = true;
    assert_eq!(code(set(&confined, "Green-Kettle-43").await), Code::SessionNotFresh, "somebody else signed them in");
    world.pass(Duration::from_secs(24 * 3600));
    assert_eq!(code(set(&member.principal, "Green-Kettle-43").await), Code::SessionNotFresh);

    let fresh = SessionPrincipal {
        created_at: member.principal.created_at + Duration::from_secs(24 * 3600),
        ..member.principal.clone()
    };
    let (one, two) = tokio::join!(set(&fresh, "Green-Kettle-43"), set(&fresh, "Other-Kettle-44"));
    assert!(one.is_ok() != two.is_ok(), "of two tabs one is the first");
    let password = if one.is_ok() { "Green-Kettle-43" } else { "Other-Kettle-44" };
    assert_eq!(code(identity.authenticate_session(&member.token, true).await), Code::Unauthorized);
    world.sign_in("m@acme.test", password).await.unwrap();
    assert_eq!(world.audited(owner.org, "account.password_set").await, 1);
}

fn connection(enabled: bool) -> ConnectionForm {
    let claims = ["email", "name", "groups", "roles"].map(String::from);
    let [email, name, groups, roles] = claims;
    ConnectionForm {
        display_name: "Acme".into(),
        enabled,
        default_role: Role::Member,
        domains: Vec::new(),
        client_secret: Some("secret".into()),
        config: Config {
            protocol: Protocol::Oidc,
            issuer: "https://login.acme.example".into(),
            client_id: "tale".into(),
            scopes: vec!["openid".into()],
            claims: ClaimPaths { email, name, groups, roles },
            auto_assign: false,
            rules: Vec::new(),
            team_sync: false,
            excluded_groups: Vec::new(),
            own_callback: false,
            saml: None,
            oauth2: None,
        },
    }
}

#[tokio::test]
async fn the_last_way_in_is_not_taken_away() {
    let world = with_passkeys().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "a@acme.test", Role::Admin).await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let identity = &world.identity;
    let save = async |form| identity.save_sso_connection(&owner.caller, form).await;
    let only = async || identity.sso_connection(&owner.caller).await.unwrap().unwrap().only_way_of;
    save(connection(true)).await.unwrap();
    assert_eq!(only().await, 0);
    for user in [owner.id, admin.id] {
        without_password(&world, user).await;
    }
    // A member who gets in otherwise could not switch it on again.
    assert_eq!(only().await, 2);
    assert_eq!(code(save(connection(false)).await), Code::SsoLastWayIn);
    let mut moved = connection(true);
    moved.config.issuer = "https://login.elsewhere.example".into();
    assert_eq!(code(save(moved).await), Code::SsoLastWayIn);
    assert_eq!(code(identity.remove_sso_connection(&owner.caller).await), Code::SsoLastWayIn);
    let mut renamed = connection(true);
    renamed.display_name = "Renamed".into();
    save(renamed).await.unwrap();

    // A passkey is a way in, and so is a password that one of them sets.
    let id = world.passkey_of(&admin, &authenticator()).await;
    assert_eq!(only().await, 1);
    save(connection(false)).await.unwrap();
    save(connection(true)).await.unwrap();
    identity.remove_passkey(&admin.principal, id).await.unwrap();
    assert_eq!(code(save(connection(false)).await), Code::SsoLastWayIn);
    identity.set_first_password(&admin.principal, "Green-Kettle-43").await.unwrap();
    identity.remove_sso_connection(&owner.caller).await.unwrap();
    assert!(identity.authenticate_session(&member.token, true).await.is_ok());
    assert_eq!(world.audited(owner.org, "sso.connection_removed").await, 1);
}
