//! Sign-in and the lockout, in simulated time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tale_core::Code;
use tale_core::crypto::{hex_of, hmac_sha256};
use tale_identity::lockout::{Charge, Counter, LoginPolicy};
use tale_identity::password::HashCost;
use tale_identity::sign_in::Credentials;
use tale_identity::{IdentityConfig, Role};

use crate::world::{PASSWORD, Statements, World, cheap, code, here};

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
            let guess =
                Credentials { email: "owner@acme.test".into(), password: "Wrong-Kettle-42".into(), remember: true };
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

/// However many want to sign in at once, those who find the line full keep the database free for everybody else.
#[tokio::test]
async fn a_full_line_asks_the_database_nothing() {
    let world = World::new().await;
    world.owner().await;
    let cost = HashCost { concurrent: 1, waiting: 0, ..cheap() };
    let identity = world.telling(IdentityConfig { hash_cost: cost, ..IdentityConfig::default() }).await;
    let credentials = Credentials { email: "owner@acme.test".into(), password: PASSWORD.into(), remember: true };
    let (statements, device) = (Statements::of_this_thread(), here());
    let sign_in = || identity.sign_in(&credentials, &device);
    sign_in().await.unwrap();
    let alone = statements.since();
    let (first, second, third) = tokio::join!(sign_in(), sign_in(), sign_in());
    first.unwrap();
    assert_eq!([code(second.map(drop)), code(third.map(drop))], [Code::Busy; 2]);
    assert_eq!(statements.since(), alone);
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

/// What the log holds of whom failed sign-ins named and where they came from.
type Claimed = (Option<String>, Option<String>, Option<String>, Option<String>);

async fn claimed(world: &World, org: tale_core::ids::OrgId) -> Vec<Claimed> {
    sqlx::query_as(
        "SELECT actor_email, actor_email_hash, ip_address, ip_address_hash FROM app.audit_entries
          WHERE org_id = $1 AND action = 'auth.sign_in_failed' ORDER BY id",
    )
    .bind(org)
    .fetch_all(&world.db.app)
    .await
    .unwrap()
}

#[tokio::test]
async fn failed_sign_ins_are_pseudonymized_with_a_pepper() {
    let pepper = "a pepper of some length";
    let config = IdentityConfig { audit_pepper: Some(pepper.into()), ..IdentityConfig::default() };
    let world = World::with(config).await;
    let owner = world.owner().await;
    for (email, client) in [
        ("owner@acme.test", "203.0.113.9"),
        (" Owner@ACME.test ", "203.0.113.200"),
        ("owner@acme.test", "2001:db8:1:2:3::4"),
    ] {
        let _ = world.sign_in_from(email, "Wrong-Kettle-42", client).await;
    }
    // Whoever has the pepper finds an address again.
    let hash = |text: &str| Some(hex_of(&hmac_sha256(pepper.as_bytes(), text.as_bytes())));
    let email = hash("owner@acme.test");
    let (v4, v6) = (hash("203.0.113.0/24"), hash("2001:db8:1:2::/64"));
    assert_eq!(
        claimed(&world, owner.org).await,
        [(None, email.clone(), None, v4.clone()), (None, email.clone(), None, v4), (None, email, None, v6)]
    );
    let dump: String = sqlx::query_scalar(
        "SELECT string_agg(e::text, '') FROM app.audit_entries e WHERE action = 'auth.sign_in_failed'",
    )
    .fetch_one(&world.db.app)
    .await
    .unwrap();
    assert!(!dump.contains("acme.test") && !dump.contains("203.0.113") && !dump.contains("2001:db8"));
    let networks: Vec<String> =
        sqlx::query_scalar("SELECT network FROM app.login_attempts").fetch_all(&world.db.app).await.unwrap();
    assert!(networks.iter().all(|network| network == "*" || network.len() == 64));
}

/// Keeps the `[SECURITY]` lines of the thread.
struct Lines(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Lines {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" && text.contains("[SECURITY]") {
            self.0.lock().unwrap().push(text);
        }
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event()
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Lines(self.0.clone()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn without_a_pepper_they_are_plain_and_one_line_warns_at_start() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let listening = tracing::subscriber::set_default(Lines(lines.clone()));
    let world = World::new().await;
    assert_eq!(lines.lock().unwrap().len(), 1, "before anybody failed");
    let owner = world.owner().await;
    for email in ["owner@acme.test", "OWNER@acme.test"] {
        let _ = world.sign_in(email, "Wrong-Kettle-42").await;
    }
    assert_eq!(lines.lock().unwrap().len(), 1);
    drop(listening);
    let plain = (Some("owner@acme.test".to_owned()), None, Some("203.0.113.0/24".to_owned()), None);
    assert_eq!(claimed(&world, owner.org).await, [plain.clone(), plain]);
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
