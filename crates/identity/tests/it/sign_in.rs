//! Sign-in and the lockout, in simulated time.

use std::time::Duration;

use tale_core::Code;
use tale_identity::lockout::{Charge, Counter, LoginPolicy};
use tale_identity::password::HashCost;
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, World, cheap, code, here};

#[tokio::test]
async fn every_wrong_sign_in_has_the_same_answer() {
    let world = World::new().await;
    let owner = world.owner().await;
    let wrong = world.sign_in("owner@acme.test", "Wrong-Kettle-42").await.unwrap_err();
    let unknown = world.sign_in("nobody@acme.test", "Wrong-Kettle-42").await.unwrap_err();
    let nonsense = world.sign_in("not an address", &"x".repeat(5_000)).await.unwrap_err();
    for problem in [&unknown, &nonsense] {
        assert_eq!((problem.code, &problem.message), (wrong.code, &wrong.message));
    }
    assert_eq!(wrong.code, Code::InvalidCredentials);
    assert_eq!(world.audited(owner.org, "auth.sign_in_failed").await, 1);
    let signed_in = world.sign_in(" OWNER@acme.test ", PASSWORD).await.unwrap();
    assert_eq!(signed_in.active_org, Some(owner.org));
}

#[tokio::test]
async fn five_wrong_passwords_block_for_a_second_then_longer() {
    let world = World::new().await;
    let owner = world.owner().await;
    for address in ["owner@acme.test", "nobody@acme.test"] {
        for _ in 0..5 {
            assert_eq!(code(world.sign_in(address, "Wrong-Kettle-42").await), Code::InvalidCredentials);
        }
        let blocked = world.sign_in(address, PASSWORD).await.unwrap_err();
        assert_eq!(blocked.code, Code::SignInLocked);
        assert_eq!(blocked.retry_after, Some(Duration::from_secs(1)));
    }
    assert_eq!(world.audited(owner.org, "auth.locked_out").await, 1);
    world.pass(Duration::from_millis(999));
    assert_eq!(code(world.sign_in("owner@acme.test", PASSWORD).await), Code::SignInLocked);
    world.pass(Duration::from_millis(1));
    assert_eq!(code(world.sign_in("owner@acme.test", "Wrong-Kettle-42").await), Code::InvalidCredentials);
    let blocked = world.sign_in("owner@acme.test", PASSWORD).await.unwrap_err();
    assert_eq!(blocked.retry_after, Some(Duration::from_secs(10)));
    world.pass(Duration::from_secs(10));
    world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    // The success cleared the counter.
    for _ in 0..5 {
        assert_eq!(code(world.sign_in("owner@acme.test", "Wrong-Kettle-42").await), Code::InvalidCredentials);
    }
}

#[tokio::test]
async fn a_block_from_one_network_does_not_lock_the_person_out_elsewhere() {
    let world = World::new().await;
    world.owner().await;
    for _ in 0..5 {
        let _ = world.sign_in_from("owner@acme.test", "Wrong-Kettle-42", "198.51.100.1").await;
    }
    assert_eq!(
        code(world.sign_in_from("owner@acme.test", PASSWORD, "198.51.100.200").await),
        Code::SignInLocked,
        "the same /24"
    );
    world.sign_in_from("owner@acme.test", PASSWORD, "203.0.113.9").await.unwrap();
    // Many networks together meet the account-wide threshold.
    for network in 0..10 {
        for _ in 0..5 {
            let _ = world.sign_in_from("owner@acme.test", "Wrong-Kettle-42", &format!("192.0.{network}.1")).await;
        }
    }
    assert_eq!(code(world.sign_in_from("owner@acme.test", PASSWORD, "203.0.113.9").await), Code::SignInLocked);
}

#[tokio::test]
async fn a_burst_of_guesses_gets_no_further_than_a_row() {
    let world = World::new().await;
    world.owner().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let identity = world.identity.clone();
        tasks.spawn(async move {
            let guess = tale_identity::sign_in::Credentials {
                email: "owner@acme.test".into(),
                password: "Wrong-Kettle-42".into(),
                remember: true,
            };
            identity.sign_in(&guess, &here()).await.unwrap_err().code
        });
    }
    let codes = tasks.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == Code::InvalidCredentials).count(), 5, "{codes:?}");
}

#[tokio::test]
async fn the_statement_counts_like_the_state_machine() {
    let policy = LoginPolicy { max_attempts: 3, backoff: [500, 2_000].map(Duration::from_millis).to_vec() };
    let world = World::with(IdentityConfig { login_policy: policy.clone(), ..IdentityConfig::default() }).await;
    world.owner().await;
    let mut model = Counter::default();
    let steps = [0u64, 0, 0, 100, 400, 0, 1_999, 1, 0, 2_000, 5_000, 0, 0];
    for (at, wait) in steps.into_iter().enumerate() {
        world.pass(Duration::from_millis(wait));
        let expected = model.charge(&policy, tale_core::Clock::now(&*world.clock));
        let problem = world.sign_in("owner@acme.test", "Wrong-Kettle-42").await.unwrap_err();
        match expected {
            Charge::Admitted { .. } => assert_eq!(problem.code, Code::InvalidCredentials, "step {at}"),
            Charge::Refused { wait } => {
                assert_eq!((problem.code, problem.retry_after), (Code::SignInLocked, Some(wait)), "step {at}")
            }
        }
    }
}

#[tokio::test]
async fn a_full_hash_line_is_busy_and_charges_nobody() {
    let cost = HashCost { concurrent: 1, waiting: 0, memory_kib: 32 * 1024, passes: 2, ..cheap() };
    let world = World::new().await;
    world.owner().await;
    let narrow = world.again(IdentityConfig { hash_cost: cost, ..IdentityConfig::default() });
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..12 {
        let identity = narrow.clone();
        tasks.spawn(async move {
            let guess = tale_identity::sign_in::Credentials {
                email: format!("p{n}@acme.test"),
                password: "Wrong-Kettle-42".into(),
                remember: true,
            };
            identity.sign_in(&guess, &here()).await.unwrap_err()
        });
    }
    let problems = tasks.join_all().await;
    let busy = problems.iter().filter(|problem| problem.code == Code::Busy).count();
    assert!(busy > 0 && problems.iter().all(|problem| matches!(problem.code, Code::Busy | Code::InvalidCredentials)));
    let charged: i64 = sqlx::query_scalar("SELECT count(DISTINCT key_hash) FROM app.login_attempts")
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    assert_eq!(usize::try_from(charged).unwrap(), 12 - busy);
}

#[tokio::test]
async fn failed_sign_ins_are_pseudonymized_with_a_pepper() {
    let config =
        IdentityConfig { audit_pepper: Some("a pepper of some length".to_owned().into()), ..IdentityConfig::default() };
    let world = World::with(config).await;
    let owner = world.owner().await;
    let _ = world.sign_in("owner@acme.test", "Wrong-Kettle-42").await;
    let details: serde_json::Value = sqlx::query_scalar(
        "SELECT details FROM app.audit_entries WHERE org_id = $1 AND action = 'auth.sign_in_failed'",
    )
    .bind(owner.org)
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert_eq!(details["actorEmailHash"].as_str().map(str::len), Some(64));
    assert_eq!(details["networkHash"].as_str().map(str::len), Some(64));
    assert!(!details.to_string().contains("acme.test") && !details.to_string().contains("203.0.113"));
    let networks: Vec<String> =
        sqlx::query_scalar("SELECT network FROM app.login_attempts").fetch_all(&world.db.app).await.unwrap();
    assert!(networks.iter().all(|network| network == "*" || network.len() == 64));
}

#[tokio::test]
async fn raised_hash_parameters_rehash_at_sign_in() {
    let world = World::new().await;
    world.owner().await;
    let hash = async || -> String {
        sqlx::query_scalar("SELECT password_hash FROM app.users").fetch_one(&world.db.app).await.unwrap()
    };
    let before = hash().await;
    world.sign_in("owner@acme.test", PASSWORD).await.unwrap();
    assert_eq!(hash().await, before);
    let raised =
        world.again(IdentityConfig { hash_cost: HashCost { memory_kib: 128, ..cheap() }, ..IdentityConfig::default() });
    let credentials = tale_identity::sign_in::Credentials {
        email: "owner@acme.test".into(),
        password: PASSWORD.into(),
        remember: false,
    };
    raised.sign_in(&credentials, &here()).await.unwrap();
    assert!(hash().await.contains("m=128,"));
}

#[tokio::test]
async fn sign_in_lands_in_the_organization_used_last() {
    let world = World::new().await;
    let owner = world.owner().await;
    let second = world.identity.create_organization(&owner.principal, "Second").await.unwrap();
    assert_eq!(world.sign_in("owner@acme.test", PASSWORD).await.unwrap().active_org, Some(second.id));
    let principal = world.identity.authenticate_session(&owner.token, false).await.unwrap();
    world.identity.caller_for_session(&principal, Some(owner.org)).await.unwrap();
    assert_eq!(world.sign_in("owner@acme.test", PASSWORD).await.unwrap().active_org, Some(owner.org));
    let member = world.member(&owner, "m@acme.test", Role::Member).await;
    assert_eq!(member.principal.active_org, Some(owner.org));
}
