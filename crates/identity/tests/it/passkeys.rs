//! Passkeys, held by a device that signs whatever it is told to.

use std::time::Duration;

use tale_core::Code;
use tale_core::ids::PasskeyId;
use tale_identity::factors::RelyingParty;
use tale_identity::{IdentityConfig, Role};
use url::Url;

use crate::authenticator::{Authenticator, forged};
use crate::world::{PASSWORD, Person, World, code, here};

const SITE: &str = "https://tale.acme.test";

fn party() -> Option<RelyingParty> {
    let url = |text| Url::parse(text).unwrap();
    let others = [url("https://eu.tale.acme.test:8443"), url("https://other.test")];
    RelyingParty::of(&url(SITE), &others)
}

pub async fn world() -> World {
    World::with(IdentityConfig { relying_party: party(), ..IdentityConfig::default() }).await
}

pub fn device() -> Authenticator {
    Authenticator::new("tale.acme.test", SITE)
}

impl World {
    pub async fn passkey_of(&self, person: &Person, key: &Authenticator) -> PasskeyId {
        let asked = self.identity.begin_passkey(&person.principal, None, &here()).await.unwrap();
        let new = key.make("Laptop", &asked.challenge);
        self.identity.add_passkey(&person.principal, &new).await.unwrap().id
    }

    pub fn question(&self) -> String {
        self.identity.begin_passkey_sign_in().unwrap().challenge
    }
}

#[tokio::test]
async fn a_passkey_signs_in_alone_and_finishes_a_sign_in() {
    let world = world().await;
    let owner = world.owner().await;
    let mut key = device();
    let id = world.passkey_of(&owner, &key).await;
    let identity = &world.identity;

    let answer = key.answer(&world.question());
    let signed_in = identity.sign_in_with_passkey(&answer, &here()).await.unwrap();
    assert_eq!((signed_in.user, signed_in.active_org), (owner.id, Some(owner.org)));

    // The password alone is not enough any more, and a block of passwords does not stop the passkey.
    let waiting = world.half("owner@acme.test").await;
    for _ in 0..5 {
        world.sign_in("owner@acme.test", "Wrong-Kettle-42").await.unwrap_err();
    }
    let methods = identity.second_factor_methods(&waiting).await.unwrap();
    assert!(methods.passkey && !methods.totp && !methods.backup_code);
    let asked = identity.begin_second_passkey(&waiting).await.unwrap();
    assert_eq!(asked.allow.len(), 1);
    assert_eq!(asked.allow[0].transports, ["internal"]);
    let answer = key.answer(&asked.challenge);
    identity.finish_with_passkey(&waiting, &answer, &here()).await.unwrap();
    let answer = key.answer(&world.question());
    identity.sign_in_with_passkey(&answer, &here()).await.unwrap();
    assert_eq!(world.audited(owner.org, "2fa_enrolled").await, 1);

    let listed = identity.factors(&owner.principal).await.unwrap().passkeys;
    assert!(listed[0].last_used_at.is_some());
    identity.rename_passkey(&owner.principal, id, " Work laptop ").await.unwrap();
    assert_eq!(identity.factors(&owner.principal).await.unwrap().passkeys[0].name, "Work laptop");
    identity.remove_passkey(&owner.principal, id).await.unwrap();
    let answer = key.answer(&world.question());
    assert_eq!(code(identity.sign_in_with_passkey(&answer, &here()).await), Code::PasskeyRefused);
}

#[tokio::test]
async fn an_answer_counts_once_in_time_and_for_what_was_asked() {
    let world = world().await;
    let owner = world.owner().await;
    let other = world.member(&owner, "m@acme.test", Role::Member).await;
    let (mut key, mut others) = (device(), device());
    world.passkey_of(&owner, &key).await;
    world.passkey_of(&other, &others).await;
    let identity = &world.identity;
    let refused = async |answer: &_| code(identity.sign_in_with_passkey(answer, &here()).await);

    let answer = key.answer(&world.question());
    let here = here();
    let (first, second) =
        tokio::join!(identity.sign_in_with_passkey(&answer, &here), identity.sign_in_with_passkey(&answer, &here));
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1, "{first:?} {second:?}");
    assert_eq!(refused(&answer).await, Code::PasskeyRefused);

    let late = key.answer(&world.question());
    world.pass(Duration::from_secs(5 * 60));
    assert_eq!(refused(&late).await, Code::PasskeyRefused);
    let own = key.answer(&forged(&world.question()));
    assert_eq!(refused(&own).await, Code::PasskeyRefused);

    // Questions of one purpose, or of one sign-in, are no answers to another.
    let (one, two) = (world.half("owner@acme.test").await, world.half("owner@acme.test").await);
    let asked = identity.begin_second_passkey(&one).await.unwrap().challenge;
    let answer = key.answer(&asked);
    assert_eq!(refused(&answer).await, Code::PasskeyRefused);
    assert_eq!(code(identity.finish_with_passkey(&two, &answer, &here).await), Code::PasskeyRefused);
    let answer = others.answer(&asked);
    assert_eq!(code(identity.finish_with_passkey(&one, &answer, &here).await), Code::PasskeyRefused);
    let mut named = key.answer(&world.question());
    named.user = Some(other.id.0.as_bytes().to_vec());
    assert_eq!(refused(&named).await, Code::PasskeyRefused);
    let asked = identity.begin_passkey(&owner.principal, None, &here).await.unwrap().challenge;
    let stolen = identity.add_passkey(&other.principal, &device().make("x", &asked)).await;
    assert_eq!(code(stolen), Code::PasskeyInvalid);
}

#[tokio::test]
async fn other_sites_unverified_people_and_copied_keys_are_refused() {
    let world = world().await;
    let owner = world.owner().await;
    let mut key = device();
    let identity = &world.identity;
    let make = async |key: &Authenticator| {
        let asked = identity.begin_passkey(&owner.principal, None, &here()).await.unwrap();
        identity.add_passkey(&owner.principal, &key.make("x", &asked.challenge)).await
    };
    for wrong in [
        Authenticator { origin: "https://tale.acme.test.evil.test".into(), ..device() },
        Authenticator { origin: "https://other.test".into(), ..device() },
        Authenticator { party: "evil.test".into(), ..device() },
        Authenticator { flags: 0x01, ..device() },
        Authenticator { flags: 0x04, ..device() },
    ] {
        assert_eq!(code(make(&wrong).await), Code::PasskeyInvalid);
    }
    // Another listed origin of the same host is ours.
    make(&Authenticator { origin: "https://eu.tale.acme.test:8443".into(), ..device() }).await.unwrap();
    make(&key).await.unwrap();
    assert_eq!(code(make(&key).await), Code::PasskeyAlreadyRegistered);

    let refused = async |answer: &_| code(identity.sign_in_with_passkey(answer, &here()).await);
    let mut torn = key.answer(&world.question());
    torn.signature[8] ^= 1;
    assert_eq!(refused(&torn).await, Code::PasskeyRefused);
    key.flags = 0x01;
    let unverified = key.answer(&world.question());
    assert_eq!(refused(&unverified).await, Code::PasskeyRefused);
    assert_eq!(world.audited(owner.org, "2fa_verify_failed").await, 2);
    key.flags = 0x05;
    let answer = key.answer(&world.question());
    identity.sign_in_with_passkey(&answer, &here()).await.unwrap();

    // A copy of the key falls behind the counter of the one in use.
    let copied = key.answer_as_counted(&world.question());
    assert_eq!(refused(&copied).await, Code::PasskeyRefused);
    assert_eq!(world.audited(owner.org, "passkey.counter_went_back").await, 1);
}

#[tokio::test]
async fn adding_one_late_asks_for_the_password_and_there_is_an_end_to_them() {
    let world = world().await;
    let owner = world.owner().await;
    let identity = &world.identity;
    world.pass(Duration::from_secs(24 * 3600));
    assert!(identity.factors(&owner.principal).await.unwrap().password_needed);
    let ask = async |password| identity.begin_passkey(&owner.principal, password, &here()).await;
    assert_eq!(code(ask(None).await), Code::SessionNotFresh);
    assert_eq!(code(ask(Some("Wrong-Kettle-42")).await), Code::InvalidCredentials);
    for _ in 0..20 {
        let asked = ask(Some(PASSWORD)).await.unwrap();
        identity.add_passkey(&owner.principal, &device().make("x", &asked.challenge)).await.unwrap();
    }
    assert_eq!(code(ask(Some(PASSWORD)).await), Code::PasskeyLimit);

    // A session that a reverse proxy opened stays in its organization: a passkey would open all of them.
    let mut confined = owner.principal.clone();
    confined.created_at += Duration::from_secs(24 * 3600);
    confined.confined = true;
    assert_eq!(code(identity.begin_passkey(&confined, None, &here()).await), Code::SessionNotFresh);
    let some = identity.factors(&confined).await.unwrap().passkeys[0].id;
    assert_eq!(code(identity.remove_passkey(&confined, some).await), Code::SessionNotFresh);
}

#[tokio::test]
async fn an_admin_takes_a_members_passkey_away_and_a_policy_is_met_by_one() {
    let world = world().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let identity = &world.identity;
    world.factors(&owner, true, 0).await;
    let enters = async || identity.caller_for_session(&member.principal, Some(member.org)).await;
    assert_eq!(code(enters().await), Code::TwoFactorRequired);
    let id = world.passkey_of(&member, &device()).await;
    enters().await.unwrap();

    let strangers = world.passkey_of(&owner, &device()).await;
    let revoke = async |id| identity.revoke_member_passkey(&owner.caller, member.id, id).await;
    assert_eq!(code(revoke(strangers).await), Code::PasskeyNotFound);
    assert_eq!(identity.member_factors(&owner.caller, member.id).await.unwrap().passkeys[0].id, id);
    revoke(id).await.unwrap();
    assert_eq!(code(identity.authenticate_session(&member.token, true).await), Code::Unauthorized);
    assert_eq!(world.audited(owner.org, "passkey.revoked_by_admin").await, 1);
}

#[test]
fn a_site_named_by_a_number_has_no_passkeys() {
    assert_eq!(RelyingParty::of(&Url::parse("http://127.0.0.1:3000").unwrap(), []), None);
    let local = RelyingParty::of(&Url::parse("http://localhost:3000").unwrap(), []).unwrap();
    assert!(local.serves("http://localhost:3000") && !local.serves("http://localhost:3001"));
}
