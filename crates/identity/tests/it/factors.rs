//! Authenticator apps, backup codes and sign-ins that wait for them.

use std::time::Duration;

use tale_core::crypto::FieldCipher;
use tale_core::{Clock, Code};
use tale_identity::factors::{TotpSetup, rotation};
use tale_identity::sign_in_blocks::BlockKind;
use tale_identity::{IdentityConfig, Role};

use crate::authenticator::totp;
use crate::world::{PASSWORD, Person, World, cheap, code, device, here};

const STEP: Duration = Duration::from_secs(30);

impl World {
    pub fn totp(&self, app: &TotpSetup, steps: i64) -> String {
        totp(&app.secret, self.clock.now(), steps)
    }

    /// Sets an authenticator app up; the clock moves past the code that it took.
    pub async fn app_of(&self, person: &Person) -> (TotpSetup, Vec<String>) {
        let app = self.identity.begin_totp(&person.principal, PASSWORD, &here()).await.unwrap();
        let made = self.identity.confirm_totp(&person.principal, &self.totp(&app, 0), &here()).await.unwrap();
        self.pass(STEP * 2);
        (app, made.codes)
    }
}

#[tokio::test]
async fn an_app_asks_nothing_until_one_of_its_codes_was_typed() {
    let world = World::new().await;
    let owner = world.owner().await;
    let identity = &world.identity;

    let guess = identity.begin_totp(&owner.principal, "Wrong-Kettle-42", &here()).await;
    assert_eq!(code(guess), Code::InvalidCredentials);
    assert_eq!(code(identity.confirm_totp(&owner.principal, "123456", &here()).await), Code::TotpNotEnabled);

    let app = identity.begin_totp(&owner.principal, PASSWORD, &here()).await.unwrap();
    let stored: String =
        sqlx::query_scalar("SELECT secret FROM app.totp_secrets").fetch_one(&world.db.app).await.unwrap();
    assert!(!stored.contains(&app.secret), "the secret is stored encrypted");
    world.sign_in("owner@acme.test", PASSWORD).await.unwrap();

    // A second tab shows the same app, so that either finishes the set-up.
    let tab = identity.begin_totp(&owner.principal, PASSWORD, &here()).await.unwrap();
    assert_eq!(tab.secret, app.secret);
    let far = world.totp(&app, 5);
    assert_eq!(code(identity.confirm_totp(&owner.principal, &far, &here()).await), Code::TwoFactorCodeInvalid);
    let made = identity.confirm_totp(&owner.principal, &world.totp(&app, 0), &here()).await.unwrap();
    assert_eq!(made.codes.len(), 10);
    assert_eq!(
        code(identity.confirm_totp(&owner.principal, &world.totp(&app, 1), &here()).await),
        Code::TotpAlreadyEnabled
    );
    assert_eq!(code(identity.begin_totp(&owner.principal, PASSWORD, &here()).await), Code::TotpAlreadyEnabled);
    assert_eq!(world.audited(owner.org, "2fa_enrolled").await, 1);

    let waiting = world.half("owner@acme.test").await;
    // The code of the set-up is used up as well.
    let replay = identity.finish_with_totp(&waiting, &world.totp(&app, 0), &here()).await;
    assert_eq!(code(replay), Code::TwoFactorCodeInvalid);
    let signed_in = identity.finish_with_totp(&waiting, &world.totp(&app, 1), &here()).await.unwrap();
    assert_eq!(signed_in.active_org, Some(owner.org));
    identity.authenticate_session(&signed_in.token, false).await.unwrap();
    assert_eq!(world.audited(owner.org, "2fa_verified").await, 1);
    assert_eq!(world.audited(owner.org, "2fa_verify_failed").await, 1);
}

#[tokio::test]
async fn a_set_up_that_took_too_long_begins_anew() {
    let world = World::new().await;
    let owner = world.owner().await;
    let app = world.identity.begin_totp(&owner.principal, PASSWORD, &here()).await.unwrap();
    world.pass(Duration::from_secs(30 * 60));
    let late = world.identity.confirm_totp(&owner.principal, &world.totp(&app, 0), &here()).await;
    assert_eq!(code(late), Code::TotpNotEnabled);
    let fresh = world.identity.begin_totp(&owner.principal, PASSWORD, &here()).await.unwrap();
    assert_ne!(fresh.secret, app.secret);
}

#[tokio::test]
async fn a_code_counts_once_whoever_sends_it_and_clocks_may_be_a_step_off() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (app, _) = world.app_of(&owner).await;
    let identity = &world.identity;

    let (one, two) = (world.half("owner@acme.test").await, world.half("owner@acme.test").await);
    let typed = world.totp(&app, 1);
    let (here, there) = (device("198.51.100.7"), device("203.0.113.7"));
    let (first, second) =
        tokio::join!(identity.finish_with_totp(&one, &typed, &here), identity.finish_with_totp(&two, &typed, &there),);
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1, "{first:?} {second:?}");

    // Later codes count, the earlier ones no more; what is two steps off never does.
    let rest = world.half("owner@acme.test").await;
    for off in [-2, -1, 0, 1, 2] {
        let answer = identity.finish_with_totp(&rest, &world.totp(&app, off), &device("192.0.2.1")).await;
        assert_eq!(code(answer), Code::TwoFactorCodeInvalid, "{off}");
        world.pass(Duration::from_millis(1));
    }
    world.pass(STEP);
    identity.finish_with_totp(&rest, &world.totp(&app, 1), &device("192.0.2.200")).await.unwrap();
}

#[tokio::test]
async fn a_stolen_half_of_a_sign_in_is_worth_nothing() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (app, _) = world.app_of(&owner).await;
    let identity = &world.identity;

    let waiting = world.half("owner@acme.test").await;
    assert_eq!(code(identity.authenticate_session(&waiting, false).await), Code::Unauthorized);
    // Guesses are slowed down by a counter of their own, which the right password does not clear.
    for _ in 0..5 {
        let guess = identity.finish_with_totp(&waiting, "000000", &here()).await;
        assert_eq!(code(guess), Code::TwoFactorCodeInvalid);
    }
    assert_eq!(world.audited(owner.org, "auth.locked_out").await, 1);
    let again = world.half("owner@acme.test").await;
    for token in [&waiting, &again] {
        let right = identity.finish_with_totp(token, &world.totp(&app, 0), &here()).await;
        assert_eq!(code(right), Code::SignInLocked);
        let guess = identity.finish_with_backup_code(token, "aaaaa-aaaaa", &here()).await;
        assert_eq!(code(guess), Code::SignInLocked);
    }
    world.pass(Duration::from_secs(1));
    identity.finish_with_totp(&waiting, &world.totp(&app, 0), &here()).await.unwrap();
    // It is over with the session it led to, and by itself after ten minutes.
    world.pass(STEP * 2);
    let spent = identity.finish_with_totp(&waiting, &world.totp(&app, 0), &here()).await;
    assert_eq!(code(spent), Code::TwoFactorNotPending);
    world.pass(Duration::from_secs(10 * 60));
    assert_eq!(code(identity.second_factor_methods(&again).await), Code::TwoFactorNotPending);

    // Another password ends whatever waits by the old one.
    let waiting = world.half("owner@acme.test").await;
    identity.change_password(&owner.principal, PASSWORD, "Green-Kettle-43", &here()).await.unwrap();
    let late = identity.finish_with_totp(&waiting, &world.totp(&app, 0), &here()).await;
    assert_eq!(code(late), Code::TwoFactorNotPending);
}

#[tokio::test]
async fn whether_somebody_has_a_second_factor_is_told_after_the_right_password_only() {
    let world = World::new().await;
    let owner = world.owner().await;
    world.app_of(&owner).await;
    let guarded = world.sign_in("owner@acme.test", "Wrong-Kettle-42").await.unwrap_err();
    let unknown = world.sign_in("nobody@acme.test", "Wrong-Kettle-42").await.unwrap_err();
    assert_eq!((guarded.code, &guarded.message), (unknown.code, &unknown.message));
}

#[tokio::test]
async fn backup_codes_count_once_and_new_ones_replace_the_old() {
    let world = World::new().await;
    let owner = world.owner().await;
    let (app, codes) = world.app_of(&owner).await;
    let identity = &world.identity;
    let left = async || identity.factors(&owner.principal).await.unwrap().backup_codes_left;

    let (one, two) = (world.half("owner@acme.test").await, world.half("owner@acme.test").await);
    let shouted = codes[0].to_uppercase().replace('-', " ");
    identity.finish_with_backup_code(&one, &shouted, &here()).await.unwrap();
    let again = identity.finish_with_backup_code(&two, &codes[0], &here()).await;
    assert_eq!(code(again), Code::TwoFactorCodeInvalid);
    assert_eq!(left().await, 9);
    assert_eq!(world.audited(owner.org, "2fa_backup_code_used").await, 1);
    assert_eq!(world.audited(owner.org, "2fa_backup_code_failed").await, 1);

    let guess = identity.renew_backup_codes(&owner.principal, "Wrong-Kettle-42", &here()).await;
    assert_eq!(code(guess), Code::InvalidCredentials);
    let fresh = identity.renew_backup_codes(&owner.principal, PASSWORD, &here()).await.unwrap().codes;
    assert_eq!(left().await, 10);
    let old = identity.finish_with_backup_code(&two, &codes[1], &here()).await;
    assert_eq!(code(old), Code::TwoFactorCodeInvalid);
    identity.finish_with_backup_code(&two, &fresh[0], &here()).await.unwrap();

    // Without the app there is nothing to replace, and the password is enough again.
    assert_eq!(
        code(identity.disable_totp(&owner.principal, "Wrong-Kettle-42", &here()).await),
        Code::InvalidCredentials
    );
    let waiting = world.half("owner@acme.test").await;
    identity.disable_totp(&owner.principal, PASSWORD, &here()).await.unwrap();
    assert_eq!(world.audited(owner.org, "2fa_disabled").await, 1);
    let gone = identity.finish_with_totp(&waiting, &world.totp(&app, 0), &here()).await;
    assert_eq!(code(gone), Code::TwoFactorNotPending);
    let nothing = identity.renew_backup_codes(&owner.principal, PASSWORD, &here()).await;
    assert_eq!(code(nothing), Code::TotpNotEnabled);
    world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
}

#[tokio::test]
async fn secrets_follow_the_operators_change_of_keys() {
    let key = |byte: &str| byte.repeat(32);
    let config = |cipher| IdentityConfig { cipher: Some(cipher), hash_cost: cheap(), ..IdentityConfig::default() };
    let world = World::with(config(FieldCipher::from_hex(&key("a1"), []).unwrap())).await;
    let owner = world.owner().await;
    let (app, codes) = world.app_of(&owner).await;

    let both = FieldCipher::from_hex(&key("b2"), [key("a1").as_str()]).unwrap();
    let done = rotation::reencrypt(&world.db.app, &both).await.unwrap();
    assert_eq!((done.checked, done.rewritten, done.unreadable), (1, 1, 0));
    let after = world.again(config(FieldCipher::from_hex(&key("b2"), []).unwrap()));
    let (one, two) = (world.half("owner@acme.test").await, world.half("owner@acme.test").await);
    after.finish_with_totp(&one, &world.totp(&app, 0), &here()).await.unwrap();
    after.finish_with_backup_code(&two, &codes[0], &here()).await.unwrap();

    let lost = FieldCipher::from_hex(&key("c3"), []).unwrap();
    assert_eq!(rotation::reencrypt(&world.db.app, &lost).await.unwrap().unreadable, 1);
}

#[tokio::test]
async fn a_policy_walls_off_whoever_has_no_factor_when_the_grace_is_over() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let stranger = world.stranger("s@other.test", "Other").await;
    let identity = &world.identity;
    let enters = async |person: &Person| identity.caller_for_session(&person.principal, Some(person.org)).await;
    let by_cookie = async |person: &Person| {
        let (_, caller) = identity.authenticate_member(&person.token, false, Some(person.org)).await.unwrap();
        caller
    };
    world.factors(&owner, true, 7).await;

    // The grace begins with the first request under the policy and never anew.
    enters(&member).await.unwrap();
    world.pass(Duration::from_secs(6 * 86_400));
    by_cookie(&member).await.unwrap();
    let wanting = identity.factor_wanted(&member.principal).await.unwrap();
    assert_eq!(wanting.iter().map(|wanted| (wanted.org, wanted.over)).collect::<Vec<_>>(), [(owner.org, false)]);
    world.pass(Duration::from_secs(86_400));
    assert_eq!(code(enters(&member).await), Code::TwoFactorRequired);
    assert_eq!(code(by_cookie(&member).await), Code::TwoFactorRequired);
    let asked = [(member.principal.session, member.org)];
    assert!(identity.standing(&asked).await.unwrap().is_empty(), "live streams end as well");
    // The account, where a factor is set up, stays open; other organizations are not concerned.
    identity.factors(&member.principal).await.unwrap();
    enters(&stranger).await.unwrap();
    assert!(identity.factor_wanted(&stranger.principal).await.unwrap().is_empty());

    world.app_of(&member).await;
    enters(&member).await.unwrap();
    assert!(identity.factor_wanted(&member.principal).await.unwrap().is_empty());
    identity.disable_totp(&member.principal, PASSWORD, &here()).await.unwrap();
    assert_eq!(code(enters(&member).await), Code::TwoFactorRequired, "switching it off is no way around");

    // Without a grace, at once; without the policy, not at all. The owner is bound too.
    world.factors(&owner, true, 0).await;
    let fresh = world.member_without_session(&owner, "n@acme.test").await;
    assert_eq!(code(identity.caller_for_session(&fresh, Some(owner.org)).await), Code::TwoFactorRequired);
    assert_eq!(code(enters(&owner).await), Code::TwoFactorRequired);
    world.factors(&owner, false, 0).await;
    enters(&owner).await.unwrap();
    enters(&member).await.unwrap();
}

#[tokio::test]
async fn people_without_a_password_are_exempt_where_the_policy_says_so() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let enters = async || world.identity.caller_for_session(&member.principal, Some(member.org)).await;
    world.factors(&owner, true, 0).await;
    assert_eq!(code(enters().await), Code::TwoFactorRequired, "a password is a way around");
    sqlx::query("UPDATE app.users SET password_hash = NULL WHERE id = $1")
        .bind(member.id)
        .execute(&world.db.app)
        .await
        .unwrap();
    enters().await.unwrap();
    let app = world.identity.begin_totp(&member.principal, PASSWORD, &here()).await;
    assert_eq!(code(app), Code::PasswordNotSet);
}

#[tokio::test]
async fn factors_are_reset_by_those_above_and_all_or_nothing() {
    let world = World::new().await;
    let owner = world.owner().await;
    let admin = world.member(&owner, "a@acme.test", Role::Admin).await;
    let editor = world.member(&owner, "e@acme.test", Role::Editor).await;
    let stranger = world.stranger("s@other.test", "Other").await;
    let identity = &world.identity;
    world.app_of(&owner).await;
    world.app_of(&editor).await;
    let alive = async |person: &Person| identity.authenticate_session(&person.token, true).await.is_ok();

    assert_eq!(code(identity.reset_member_totp(&editor.caller, admin.id).await), Code::Forbidden);
    assert_eq!(code(identity.member_factors(&editor.caller, admin.id).await), Code::Forbidden);
    assert_eq!(code(identity.reset_member_totp(&admin.caller, owner.id).await), Code::Forbidden);
    assert_eq!(code(identity.reset_member_totp(&stranger.caller, editor.id).await), Code::MemberNotFound);
    assert_eq!(code(identity.member_factors(&stranger.caller, editor.id).await), Code::MemberNotFound);
    assert!(identity.factors(&owner.principal).await.unwrap().totp);

    // Adding somebody to one's own organization is no way to their factors.
    let add = tale_identity::members::NewMember {
        email: "e@acme.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    identity.add_member(&stranger.caller, &add).await.unwrap();
    assert_eq!(code(identity.reset_member_totp(&stranger.caller, editor.id).await), Code::MemberAccountShared);
    identity.remove_member(&stranger.caller, editor.id).await.unwrap();

    // What cannot be written down does not happen.
    let block = "ALTER TABLE app.audit_entries ADD CONSTRAINT no_room CHECK (action <> '2fa_reset_by_admin') NOT VALID";
    sqlx::query(block).execute(&world.db.app).await.unwrap();
    identity.reset_member_totp(&admin.caller, editor.id).await.unwrap_err();
    assert!(alive(&editor).await);
    assert!(identity.factors(&editor.principal).await.unwrap().totp);
    sqlx::query("ALTER TABLE app.audit_entries DROP CONSTRAINT no_room").execute(&world.db.app).await.unwrap();

    let waiting = world.half("e@acme.test").await;
    identity.reset_member_totp(&admin.caller, editor.id).await.unwrap();
    assert!(!alive(&editor).await);
    assert_eq!(code(identity.second_factor_methods(&waiting).await), Code::TwoFactorNotPending);
    assert_eq!(world.audited(owner.org, "2fa_reset_by_admin").await, 1);
    assert_eq!(code(identity.reset_member_totp(&admin.caller, editor.id).await), Code::TotpNotEnabled);
    world.sign_in("e@acme.test", PASSWORD).await.unwrap();
}

#[tokio::test]
async fn wrong_codes_are_listed_beside_wrong_passwords_and_cleared_alone() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Admin).await;
    let identity = &world.identity;
    let (app, _) = world.app_of(&member).await;
    let waiting = world.half("m@acme.test").await;
    for _ in 0..5 {
        let guess = identity.finish_with_totp(&waiting, "guess", &device("198.51.100.7")).await;
        assert_eq!(code(guess), Code::TwoFactorCodeInvalid);
    }
    let right = async || identity.finish_with_totp(&waiting, &world.totp(&app, 0), &device("198.51.100.7")).await;
    assert_eq!(code(right().await), Code::SignInLocked);
    assert_eq!(code(world.sign_in("m@acme.test", "Wrong-Kettle-42").await), Code::InvalidCredentials);
    let listed = async || {
        let all = identity.sign_in_blocks(&owner.caller).await.unwrap();
        let mut all: Vec<_> = all
            .into_iter()
            .map(|block| (block.user == member.id, block.kind.text(), block.network.is_some(), block.failures))
            .collect();
        all.sort_unstable();
        all
    };
    let passwords = [(true, "password", false, 1), (true, "password", true, 1)];
    let codes = [(true, "secondFactor", false, 5), (true, "secondFactor", true, 5)];
    assert_eq!(listed().await, [passwords, codes].concat());

    let clear = async |by: &Person, kind| identity.clear_sign_in_blocks(&by.caller, member.id, kind).await;
    assert_eq!(code(clear(&member, BlockKind::SecondFactor).await), Code::Forbidden, "oneself");
    let editor = world.member(&owner, "e@acme.test", Role::Editor).await;
    assert_eq!(code(clear(&editor, BlockKind::SecondFactor).await), Code::OrgForbidden);
    let of_owner = identity.clear_sign_in_blocks(&member.caller, owner.id, BlockKind::Password).await;
    assert_eq!(code(of_owner), Code::Forbidden);
    let eve = world.stranger("eve@other.test", "Other").await;
    assert_eq!(code(clear(&eve, BlockKind::Password).await), Code::MemberNotFound);
    clear(&owner, BlockKind::SecondFactor).await.unwrap();
    assert_eq!(listed().await, passwords);
    right().await.unwrap();
    assert_eq!(world.audited(owner.org, "auth.block_cleared").await, 1);

    let join = tale_identity::members::NewMember {
        email: "m@acme.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    identity.add_member(&eve.caller, &join).await.unwrap();
    assert_eq!(code(clear(&owner, BlockKind::Password).await), Code::MemberAccountShared);
    assert_eq!(listed().await, passwords);
}
