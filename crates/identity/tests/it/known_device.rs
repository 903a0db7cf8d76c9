//! Devices that a person signed in on before are not stopped by what strangers do (LCK-11).

use std::time::Duration;

use tale_core::Code;
use tale_identity::Role;
use tale_identity::known_device::KNOWN_FOR;
use tale_identity::sessions::SignedIn;
use tale_identity::sign_in::{Credentials, Entry};

use crate::sso::Sso;
use crate::world::{PASSWORD, World, code, device};

const WRONG: &str = "Wrong-Kettle-42";

/// A sign-in from `client` with the mark of an earlier one.
async fn bearing(world: &World, mark: &SignedIn, email: &str, password: &str, client: &str) -> Result<Entry, Code> {
    let credentials = Credentials { email: email.into(), password: password.into(), remember: true };
    let device = device(client).bearing(mark.mark.as_deref());
    world.identity.sign_in(&credentials, &device).await.map_err(|problem| problem.code)
}

/// Guesses from so many networks that the account is blocked everywhere.
async fn besiege(world: &World, email: &str) {
    for network in 0..50 {
        let client = format!("198.51.{network}.7");
        assert_eq!(code(world.sign_in_from(email, WRONG, &client).await), Code::InvalidCredentials);
    }
    assert_eq!(code(world.sign_in_from(email, PASSWORD, "192.0.2.1").await), Code::SignInLocked);
}

#[tokio::test]
async fn strangers_block_whoever_is_unknown_and_not_the_owner() {
    let world = World::new().await;
    let owner = world.owner().await;
    let known = world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    besiege(&world, "owner@acme.test").await;
    let enters = async |password| bearing(&world, &known, "owner@acme.test", password, "192.0.2.1").await;
    // Its own guesses are counted, and stop it alone.
    for _ in 0..5 {
        assert_eq!(enters(WRONG).await.unwrap_err(), Code::InvalidCredentials);
    }
    assert_eq!(enters(PASSWORD).await.unwrap_err(), Code::SignInLocked);
    let blocks = world.identity.sign_in_blocks(&owner.caller).await.unwrap();
    let own: Vec<_> = blocks.iter().filter(|block| block.known_device).collect();
    assert_eq!((own.len(), own[0].failures, own[0].network.as_deref()), (1, 5, None));
    world.pass(Duration::from_secs(1));
    // The block that the strangers began ended with the same second, so they go on.
    assert_eq!(code(world.sign_in_from("owner@acme.test", WRONG, "198.51.100.99").await), Code::InvalidCredentials);
    assert_eq!(code(world.sign_in_from("owner@acme.test", PASSWORD, "192.0.2.1").await), Code::SignInLocked);
    assert!(matches!(enters(PASSWORD).await.unwrap(), Entry::SignedIn(_)));
}

#[tokio::test]
async fn a_mark_is_one_accounts_and_one_passwords_and_does_not_last_for_ever() {
    let world = World::new().await;
    let owner = world.owner().await;
    world.member(&owner, "m@acme.test", Role::Member).await;
    let known = world.sign_in("m@acme.test", PASSWORD).await.unwrap();
    besiege(&world, "owner@acme.test").await;
    let foreign = bearing(&world, &known, "owner@acme.test", PASSWORD, "192.0.2.1").await;
    assert_eq!(foreign.unwrap_err(), Code::SignInLocked, "another account");

    let mut forged = world.sign_in("m@acme.test", PASSWORD).await.unwrap();
    besiege(&world, "m@acme.test").await;
    for text in ["", "v1.00000000.AAAA", &"x".repeat(5_000)] {
        forged.mark = Some(text.to_owned());
        let answer = bearing(&world, &forged, "m@acme.test", PASSWORD, "192.0.2.1").await;
        assert_eq!(answer.unwrap_err(), Code::SignInLocked, "{text:.20}");
    }
    let entered = bearing(&world, &known, "m@acme.test", PASSWORD, "192.0.2.1").await.unwrap();
    let Entry::SignedIn(entered) = entered else { panic!("no second factor is asked for") };

    let principal = world.identity.authenticate_session(&entered.token, false).await.unwrap();
    world.pass(Duration::from_secs(1));
    world.identity.change_password(&principal, PASSWORD, "Green-Kettle-43", &device("192.0.2.1")).await.unwrap();
    besiege_with(&world, "Green-Kettle-43").await;
    let answer = bearing(&world, &entered, "m@acme.test", "Green-Kettle-43", "192.0.2.1").await;
    assert_eq!(answer.unwrap_err(), Code::SignInLocked, "another password");

    world.pass(KNOWN_FOR);
    let known = world.sign_in("m@acme.test", "Green-Kettle-43").await.unwrap();
    world.pass(KNOWN_FOR);
    besiege_with(&world, "Green-Kettle-43").await;
    let answer = bearing(&world, &known, "m@acme.test", "Green-Kettle-43", "192.0.2.1").await;
    assert_eq!(answer.unwrap_err(), Code::SignInLocked, "too old");
}

async fn besiege_with(world: &World, password: &str) {
    for network in 0..60 {
        let client = format!("198.51.{network}.7");
        let _refused_or_wrong = world.sign_in_from("m@acme.test", WRONG, &client).await;
    }
    assert_eq!(code(world.sign_in_from("m@acme.test", password, "192.0.2.1").await), Code::SignInLocked);
}

#[tokio::test]
async fn codes_of_a_known_device_are_counted_alone_too() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (app, _) = world.app_of(&owner).await;
    let waiting = world.half("owner@acme.test").await;
    let signed_in =
        world.identity.finish_with_totp(&waiting, &world.totp(&app, 0), &device("203.0.113.9")).await.unwrap();
    world.pass(Duration::from_secs(60));
    let waiting = world.half("owner@acme.test").await;
    for network in 0..50 {
        let stranger = device(&format!("198.51.{network}.7"));
        let guess = world.identity.finish_with_totp(&waiting, "guess", &stranger).await;
        assert_eq!(code(guess), Code::TwoFactorCodeInvalid);
    }
    let right = world.totp(&app, 0);
    let unknown = world.identity.finish_with_totp(&waiting, &right, &device("192.0.2.1")).await;
    assert_eq!(code(unknown), Code::SignInLocked);
    let known = device("192.0.2.1").bearing(signed_in.mark.as_deref());
    world.identity.finish_with_totp(&waiting, &right, &known).await.unwrap();
}

#[tokio::test]
async fn many_known_devices_do_not_have_many_guesses_at_a_code() {
    let world = World::new().await;
    let owner = world.owner().await;
    let mut marks = Vec::new();
    for _ in 0..60 {
        marks.push(world.sign_in("owner@acme.test", PASSWORD).await.unwrap().mark.unwrap());
    }
    let _app = world.app_of(&owner).await;
    let waiting = world.half("owner@acme.test").await;
    let mut guesses = 0;
    for mark in &marks {
        let known = device("192.0.2.1").bearing(Some(mark));
        match code(world.identity.finish_with_totp(&waiting, "guess", &known).await) {
            Code::TwoFactorCodeInvalid => guesses += 1,
            other => assert_eq!(other, Code::SignInLocked),
        }
    }
    assert_eq!(guesses, 50, "as many as all networks have together");
}

#[tokio::test]
async fn whom_somebody_else_vouches_for_has_no_known_device() {
    let sso = Sso::new().await;
    let session = sso.log_in(&sso.claims("zoe-1", "zoe@acme.test")).await.unwrap();
    assert!(session.mark.is_none());
}
