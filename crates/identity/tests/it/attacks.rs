//! Guessing without end, and what the answers give away.

use std::time::Duration;

use tale_core::Code;
use tale_identity::sign_in::Credentials;
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, World, cheap, code, device};

#[tokio::test]
async fn ten_thousand_failed_sign_ins_open_nothing_hold_up_nobody_else_and_leave_little_behind() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    let mut tasks = tokio::task::JoinSet::new();
    for guesser in 0..50u32 {
        let identity = world.identity.clone();
        tasks.spawn(async move {
            let from = device(&format!("198.51.{}.{}", guesser % 10, guesser));
            let mut looked_at = 0;
            for at in 0..200 {
                let guess = Credentials {
                    email: "owner@acme.test".into(),
                    password: format!("Guess-Kettle-{guesser}-{at}"),
                    remember: true,
                };
                match identity.sign_in(&guess, &from).await.unwrap_err().code {
                    Code::InvalidCredentials => looked_at += 1,
                    Code::SignInLocked | Code::Busy => {}
                    other => panic!("{other:?}"),
                }
            }
            looked_at
        });
    }
    let looked_at: i64 = tasks.join_all().await.into_iter().sum();
    // Ten networks of five guesses each, and not one more: time stands still, so every block lasts.
    assert_eq!(looked_at, 50);
    assert_eq!(world.audited(owner.org, "auth.sign_in_failed").await, 50, "a refused guess is no entry");
    assert!(world.audited(owner.org, "auth.locked_out").await <= 11, "each block is told once");
    let counters = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM app.login_attempts");
    assert_eq!(counters.fetch_one(&world.db.app).await.unwrap(), 11, "one of each network, and one of all");
    // Nobody else notices: another person signs in, and open sessions go on.
    world.sign_in_from("m@acme.test", PASSWORD, "198.51.0.1").await.unwrap();
    world.identity.authenticate_session(&owner.token, false).await.unwrap();
    world.identity.authenticate_session(&member.token, false).await.unwrap();
    // The owner comes in when the longest block is over, and the counters go with their age.
    world.pass(Duration::from_secs(1));
    world.sign_in_from("owner@acme.test", PASSWORD, "203.0.113.9").await.unwrap();
    world.pass(Duration::from_secs(91 * 24 * 3600));
    world.identity.sweep().await.unwrap();
    let counters = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM app.login_attempts");
    assert_eq!(counters.fetch_one(&world.db.app).await.unwrap(), 0);
}

#[tokio::test]
async fn an_account_without_a_password_is_told_from_none_by_nothing() {
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "sso@acme.test", Role::Member).await;
    let disabled = world.member(&owner, "off@acme.test", Role::Member).await;
    sqlx::query("UPDATE app.users SET password_hash = NULL WHERE id = $1")
        .bind(member.id)
        .execute(&world.db.app)
        .await
        .unwrap();
    let change = tale_identity::members::MemberChange { role: Some(Role::Disabled), ..Default::default() };
    world.identity.update_member(&owner.caller, disabled.id, &change).await.unwrap();
    let answer = async |email: &str| {
        let problem = world.sign_in(email, "Wrong-Kettle-42").await.unwrap_err();
        (problem.code, problem.message.to_string(), problem.data, problem.retry_after)
    };
    let unknown = answer("nobody@acme.test").await;
    for email in ["sso@acme.test", "off@acme.test", "owner@acme.test"] {
        assert_eq!(answer(email).await, unknown, "{email}");
    }
    // As many wrong passwords block each of them, for as long.
    for _ in 0..4 {
        for email in ["nobody@acme.test", "sso@acme.test", "owner@acme.test"] {
            assert_eq!(answer(email).await.0, Code::InvalidCredentials);
        }
    }
    let blocked = answer("nobody@acme.test").await;
    assert_eq!(blocked.0, Code::SignInLocked);
    for email in ["sso@acme.test", "owner@acme.test"] {
        assert_eq!(answer(email).await, blocked, "{email}");
    }
}

#[tokio::test]
async fn whether_an_address_has_an_account_costs_the_same_work() {
    // One hash at a time, nobody may wait: whoever has no turn is told so, and who needs none would not be.
    let cost =
        tale_identity::password::HashCost { concurrent: 1, waiting: 0, memory_kib: 16 * 1024, passes: 2, ..cheap() };
    let world = World::new().await;
    let owner = world.owner().await;
    let member = world.member(&owner, "sso@acme.test", Role::Member).await;
    sqlx::query("UPDATE app.users SET password_hash = NULL WHERE id = $1")
        .bind(member.id)
        .execute(&world.db.app)
        .await
        .unwrap();
    let narrow = world.again(IdentityConfig { hash_cost: cost, ..IdentityConfig::default() });
    for email in ["owner@acme.test", "nobody@acme.test", "sso@acme.test"] {
        let mut tasks = tokio::task::JoinSet::new();
        for at in 0..8u8 {
            let identity = narrow.clone();
            let guess = Credentials { email: email.into(), password: "Wrong-Kettle-42".into(), remember: true };
            tasks.spawn(async move {
                identity.sign_in(&guess, &device(&format!("198.51.100.{at}"))).await.unwrap_err().code
            });
        }
        let codes = tasks.join_all().await;
        assert!(codes.contains(&Code::Busy) && codes.contains(&Code::InvalidCredentials), "{email}: {codes:?}");
    }
}

#[tokio::test]
async fn proxies_that_an_organization_trusts_say_where_its_people_sign_in_from() {
    let world = World::new().await;
    let owner = world.owner().await;
    let stranger = world.stranger("s@other.test", "Other").await;
    let by = |forwarded: &str| {
        let hops = tale_identity::Hops { peer: "10.0.0.5".parse().unwrap(), forwarded_for: forwarded.into() };
        let seen = hops.client(&tale_identity::TrustedProxies::default());
        tale_identity::Device::new(seen, Some("Test browser")).by(Some(hops))
    };
    let network = async |email: &str, forwarded: &str| {
        let credentials = Credentials { email: email.into(), password: PASSWORD.into(), remember: true };
        world.identity.sign_in(&credentials, &by(forwarded)).await.unwrap();
        let last = "SELECT s.network FROM app.sessions s JOIN app.users u ON u.id = s.user_id WHERE u.email = $1 ORDER BY s.created_at DESC, s.id DESC LIMIT 1";
        sqlx::query_scalar::<_, String>(last).bind(email).fetch_one(&world.db.app).await.unwrap()
    };
    // By itself only loopback and private networks are believed, so the deployment's edge elsewhere hides everybody.
    assert_eq!(network("owner@acme.test", "203.0.113.7, 198.51.100.1").await, "198.51.100.0/24");
    let trusting = serde_json::json!({ "trustedProxies": ["loopback", "uniquelocal", "198.51.100.0/24"] });
    let key = tale_governance::policies::Key::LoginPolicy;
    world.policies.set(owner.org, &owner.caller.actor(), key, trusting, None).await.unwrap();
    assert_eq!(network("owner@acme.test", "203.0.113.7, 198.51.100.1").await, "203.0.113.0/24");
    assert_eq!(network("owner@acme.test", "1.1.1.1, garbage, 198.51.100.1").await, "198.51.100.0/24");
    // It says so of its own people, and of those who belong elsewhere too only where that organization agrees.
    assert_eq!(network("s@other.test", "203.0.113.7, 198.51.100.1").await, "198.51.100.0/24");
    let new = tale_identity::members::NewMember {
        email: "s@other.test".into(),
        name: None,
        role: Role::Member,
        password: None,
        must_change_password: false,
    };
    world.identity.add_member(&owner.caller, &new).await.unwrap();
    assert_eq!(network("s@other.test", "203.0.113.7, 198.51.100.1").await, "198.51.100.0/24");
    let same = serde_json::json!({ "trustedProxies": ["198.51.100.0/24", "uniquelocal"] });
    world.policies.set(stranger.org, &stranger.caller.actor(), key, same, None).await.unwrap();
    assert_eq!(network("s@other.test", "203.0.113.7, 198.51.100.1").await, "203.0.113.0/24");
    let wrong = serde_json::json!({ "trustedProxies": ["everywhere"] });
    assert_eq!(
        code(world.policies.set(owner.org, &owner.caller.actor(), key, wrong, None).await.map(drop)),
        Code::InvalidBody
    );
}
