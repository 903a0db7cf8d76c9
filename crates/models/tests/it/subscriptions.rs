//! Subscriptions: kept with their broker, asked as a run will ask, used by nothing else.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tale_core::ids::CredentialId;
use tale_core::net::HostPolicy;
use tale_core::problem::Code;
use tale_governance::policies::ModelRules;
use tale_models::{Broker, Excluded, NewSubscription, PastedToken, Subscription, SubscriptionChange, TokenSource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Room, organization};

/// A broker that answers every request with the same text and remembers the heads of requests.
struct FakeBroker {
    address: String,
    heads: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl FakeBroker {
    async fn answering(status: &str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/tokens?provider=anthropic", listener.local_addr().unwrap());
        let heads = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let (answer, seen) = (
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()),
            heads.clone(),
        );
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4_096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                seen.lock().unwrap().push(String::from_utf8_lossy(&head[..read]).to_lowercase());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, heads }
    }

    async fn listing(items: Value) -> Self {
        Self::answering("200 OK", json!({ "tokens": items }).to_string()).await
    }

    fn document(&self, more: Value) -> Broker {
        let mut document = json!({
            "endpoint": self.address, "targetEnvVar": "CLAUDE_CODE_OAUTH_TOKEN",
            "responseMapping": { "tokensPath": "$.tokens", "tokenField": "token" },
        });
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }
}

fn named(name: &str, broker: Broker, secret: Option<&str>) -> NewSubscription {
    of_source(name, TokenSource::Broker(broker), secret)
}

fn of_source(name: &str, source: TokenSource, secret: Option<&str>) -> NewSubscription {
    NewSubscription { name: name.into(), source, secret: secret.map(SecretString::from), model_allowlist: Vec::new() }
}

async fn add(room: &Room, broker: Broker) -> Subscription {
    room.models.create_subscription(room.org, &room.actor, "anthropic", named("Team plan", broker, None)).await.unwrap()
}

fn issues(problem: &tale_core::Problem) -> Vec<String> {
    let issues = problem.data.as_ref().and_then(|data| data["issues"].as_array()).cloned().unwrap_or_default();
    issues.iter().map(|issue| issue["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn accounts_are_taken_in_turn_by_all_processes_together() {
    let room = Room::new().await;
    let broker = FakeBroker::listing(json!([
        { "id": "a", "token": "ta" }, { "id": "b", "token": "tb" }, { "id": "c", "token": "tc" },
    ]))
    .await;
    let one = add(&room, broker.document(json!({ "selection": "round-robin" }))).await;
    let other = room.again();
    let mut counts = BTreeMap::<String, usize>::new();
    for _ in 0..20 {
        let taken = futures::future::join_all((0..15).map(|n| {
            let models = if n % 2 == 0 { &room.models } else { &other };
            async { models.select_token(room.org, one.id, &HashSet::new()).await.unwrap().account }
        }));
        for account in taken.await {
            *counts.entry(account).or_default() += 1;
        }
    }
    assert_eq!(counts, BTreeMap::from([("id:a".into(), 100), ("id:b".into(), 100), ("id:c".into(), 100)]));
    // A new account comes before all that had a turn, whatever the order of the answer.
    let tried = HashSet::from(["id:a".to_owned()]);
    assert_ne!(room.models.select_token(room.org, one.id, &tried).await.unwrap().account, "id:a");
    let all = ["id:a", "id:b", "id:c"].map(str::to_owned).into();
    assert!(room.models.select_token(room.org, one.id, &all).await.is_ok(), "all were tried, so one is tried again");
}

#[tokio::test]
async fn an_account_that_the_vendor_refused_is_left_alone_for_a_minute() {
    let room = Room::new().await;
    let broker = FakeBroker::listing(json!([{ "id": "a", "token": "ta" }, { "id": "b", "token": "tb" }])).await;
    let one = add(&room, broker.document(json!({ "selection": "first" }))).await;
    let select = async || room.models.select_token(room.org, one.id, &HashSet::new()).await;
    let first = select().await.unwrap();
    assert_eq!((first.account.as_str(), first.token.expose_secret()), ("id:a", "ta"));
    assert_eq!(first.target_env_var, "CLAUDE_CODE_OAUTH_TOKEN");
    room.models.cool_account(room.org, one.id, "id:a").await.unwrap();
    assert_eq!(select().await.unwrap().account, "id:b");
    room.clock.advance(Duration::from_secs(20));
    room.models.cool_account(room.org, one.id, "id:b").await.unwrap();
    let problem = select().await.unwrap_err();
    assert_eq!((problem.code, problem.retry_after), (Code::SubscriptionExhausted, Some(Duration::from_secs(40))));
    let test = room.models.test_subscription(room.org, one.id).await.unwrap();
    assert_eq!((test.items, test.usable, test.account), (2, 0, None));
    assert_eq!(test.excluded, BTreeMap::from([(Excluded::Cooling, 2)]));
    room.clock.advance(Duration::from_secs(40));
    assert_eq!(select().await.unwrap().account, "id:a");
}

#[tokio::test]
async fn a_broker_that_gives_no_list_says_why_and_nothing_of_what_it_said() {
    let room = Room::new().await;
    let large = json!({ "tokens": ["x".repeat(2_000)] }).to_string();
    for (status, body, why) in [
        ("500 Oops", "secret words".to_owned(), "it answered with HTTP 500"),
        ("302 Found", String::new(), "it answered with HTTP 302"),
        ("200 OK", "secret words".to_owned(), "its answer is not JSON"),
        ("200 OK", json!({ "tokens": { "a": 1 } }).to_string(), "its answer has no list at `$.tokens`"),
        ("200 OK", large, "its answer is larger than 1024 bytes"),
    ] {
        let broker = FakeBroker::answering(status, body).await;
        let one = add(&room, broker.document(json!({ "maxResponseBytes": 1_024 }))).await;
        let problem = room.models.test_subscription(room.org, one.id).await.unwrap_err();
        assert_eq!(problem.code, Code::ProviderUpstreamError);
        assert_eq!(problem.message, format!("The broker gave no accounts: {why}."));
        room.models.delete_subscription(room.org, &room.actor, one.id, 1).await.unwrap();
    }
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", silent.local_addr().unwrap());
    let broker = FakeBroker { address, heads: Default::default() }.document(json!({ "timeoutMs": 100 }));
    let one = add(&room, broker).await;
    let problem = room.models.test_subscription(room.org, one.id).await.unwrap_err();
    assert!(problem.message.contains("did not answer within 100 ms"), "{}", problem.message);
}

#[tokio::test]
async fn the_secret_signs_in_and_goes_nowhere_else() {
    let room = Room::new().await;
    let broker = FakeBroker::listing(json!([{ "id": "a", "token": "ta" }])).await;
    let bearer = |more: Value| {
        let mut auth = json!({ "method": "bearer" });
        auth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        broker.document(json!({ "auth": auth }))
    };
    let secret = "broker-secret-0123456789";
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let missing = models.create_subscription(org, actor, "anthropic", named("x", bearer(json!({})), None)).await;
    assert_eq!(missing.unwrap_err().code, Code::CredentialSecretInvalid);
    let both = bearer(json!({ "secretEnv": "TALE_TOKEN_SOURCE_POOL" }));
    let one = models.create_subscription(org, actor, "anthropic", named("Plan", both, Some(secret))).await.unwrap();
    assert_eq!(
        (one.masked.as_deref(), one.source.broker().unwrap().auth.secret_env.as_deref()),
        (Some("brok…89"), None)
    );
    models.test_subscription(org, one.id).await.unwrap();
    assert!(broker.heads.lock().unwrap()[0].contains(&format!("authorization: bearer {secret}")));
    let rows: Vec<String> =
        sqlx::query_scalar("SELECT to_jsonb(s)::text FROM app.subscriptions s").fetch_all(&room.db.app).await.unwrap();
    assert!(rows.len() == 1 && !rows[0].contains(secret));
    assert!(!format!("{:?}", room.audit().await).contains(secret));

    // The stored secret stays for the same place alone, gives way to a variable, and goes with the method.
    let change = async |version: i64, broker: Broker, secret: Option<&str>| {
        let secret = secret.map(SecretString::from);
        let change = SubscriptionChange {
            version,
            source: Some(TokenSource::Broker(broker)),
            secret,
            ..SubscriptionChange::default()
        };
        models.change_subscription(org, actor, one.id, change).await
    };
    let kept = change(1, broker.document(json!({ "auth": { "method": "header", "headerName": "X-Key" } })), None).await;
    assert_eq!(kept.unwrap().masked, one.masked);
    let elsewhere = FakeBroker::listing(json!([])).await;
    let moved = elsewhere.document(json!({ "auth": { "method": "bearer" } }));
    assert_eq!(change(2, moved.clone(), None).await.unwrap_err().code, Code::CredentialSecretInvalid);
    assert_eq!(change(1, bearer(json!({})), None).await.unwrap_err().code, Code::CredentialVersionConflict);
    assert!(change(2, moved, Some("another-secret-012345")).await.is_ok());
    let variable = change(3, bearer(json!({ "secretEnv": "TALE_TOKEN_SOURCE_POOL" })), None).await.unwrap();
    assert_eq!(variable.masked, None);
    let unset = models.test_subscription(org, one.id).await.unwrap_err();
    assert_eq!(unset.code, Code::CredentialEnvMissing);
    assert!(unset.message.contains("TALE_TOKEN_SOURCE_POOL"));
    assert!(change(4, broker.document(json!({})), None).await.is_ok());
    let stored: Option<String> =
        sqlx::query_scalar("SELECT secret FROM app.subscriptions").fetch_one(&room.db.app).await.unwrap();
    assert_eq!(stored, None);
}

#[tokio::test]
async fn what_no_runtime_could_use_is_refused_before_it_is_saved() {
    let room = Room::with(HostPolicy::PublicOnly, None).await;
    let at = |endpoint: &str| FakeBroker { address: endpoint.into(), heads: Default::default() };
    let public = at("https://broker.example/tokens");
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let refused = async |provider: &str, broker: Broker| {
        models.create_subscription(org, actor, provider, named("n", broker, None)).await.unwrap_err()
    };
    for (more, path) in [
        (json!({ "targetEnvVar": "PATH" }), "broker.targetEnvVar"),
        (
            json!({ "responseMapping": { "tokensPath": "$..x", "tokenField": "t" } }),
            "broker.responseMapping.tokensPath",
        ),
        (json!({ "responseMapping": { "tokensPath": "$", "tokenField": "" } }), "broker.responseMapping.tokenField"),
        (
            json!({ "responseMapping": { "tokensPath": "$", "tokenField": "t", "statusField": "s" } }),
            "broker.responseMapping.activeValue",
        ),
        (json!({ "timeoutMs": 99 }), "broker.timeoutMs"),
        (json!({ "maxResponseBytes": 5_000_000 }), "broker.maxResponseBytes"),
        (json!({ "expirySkewMs": 3_600_001 }), "broker.expirySkewMs"),
        (
            json!({ "auth": { "method": "header", "headerName": "Host", "secretEnv": "TALE_TOKEN_SOURCE_A" } }),
            "broker.auth.headerName",
        ),
        (json!({ "auth": { "method": "bearer", "secretEnv": "TALE_PROVIDER_KEY_A" } }), "broker.auth.secretEnv"),
    ] {
        assert_eq!(issues(&refused("anthropic", public.document(more)).await), [path]);
    }
    for (endpoint, code) in [
        ("http://broker.example/", Code::InvalidUrl),
        ("https://user:pass@broker.example/", Code::InvalidUrl),
        ("http://127.0.0.1:1/", Code::PrivateHostBlocked),
        ("http://169.254.169.254/", Code::PrivateHostBlocked),
    ] {
        assert_eq!(refused("anthropic", at(endpoint).document(json!({}))).await.code, code, "{endpoint}");
    }
    assert_eq!(refused("nobody", public.document(json!({}))).await.code, Code::ProviderUnknown);
    assert_eq!(issues(&refused("deepseek", public.document(json!({}))).await), ["slug"]);
    let codex = public.document(json!({ "targetEnvVar": "TALE_SUBSCRIPTION_TOKEN" }));
    assert_eq!(issues(&refused("openai", codex).await), ["modelAllowlist"]);
    for unknown in [json!({ "more": 1 }), json!({ "selection": "best" })] {
        let mut document = serde_json::to_value(public.document(json!({}))).unwrap();
        document.as_object_mut().unwrap().extend(unknown.as_object().unwrap().clone());
        assert!(serde_json::from_value::<Broker>(document).is_err());
    }
}

#[tokio::test]
async fn no_call_of_a_model_finds_a_subscription() {
    let room = Room::new().await;
    let broker = FakeBroker::listing(json!([{ "id": "a", "token": "ta" }])).await;
    let one = add(&room, broker.document(json!({}))).await;
    let (models, org) = (&room.models, room.org);
    assert_eq!(models.chat_models(org, &ModelRules::none()).await.unwrap().len(), 0);
    let model = &tale_models::catalog::shipped_provider("anthropic").unwrap().models[0].id;
    let resolved = models.resolve_chat(org, &ModelRules::none(), model, Some("anthropic")).await;
    assert!(resolved.is_err());
    assert!(models.test_provider(org, &room.actor, "anthropic", None, Some(one.id)).await.is_err());
    assert_eq!(models.subscriptions(org).await.unwrap(), std::slice::from_ref(&one));
    let view = models.provider(org, "anthropic").await.unwrap();
    assert_eq!((view.credentials.len(), view.subscriptions.len()), (0, 1));
    // Names are unique among both kinds, and another organization sees nothing.
    let taken = named("Team plan", broker.document(json!({})), None);
    assert_eq!(
        models.create_subscription(org, &room.actor, "anthropic", taken).await.unwrap_err().code,
        Code::CredentialNameTaken
    );
    let other = organization(&room.db.app, "globex").await;
    assert_eq!(models.test_subscription(other, one.id).await.unwrap_err().code, Code::CredentialNotFound);
    let gone = models.delete_subscription(other, &room.actor, one.id, 1).await.unwrap_err();
    assert_eq!(gone.code, Code::CredentialNotFound);
    let change = SubscriptionChange { version: 1, enabled: Some(false), ..SubscriptionChange::default() };
    models.change_subscription(org, &room.actor, one.id, change).await.unwrap();
    assert!(models.subscriptions(org).await.unwrap().is_empty());
    let select = models.select_token(org, one.id, &HashSet::new()).await.unwrap_err();
    assert_eq!(select.code, Code::CredentialNotFound);
    assert_eq!(models.test_subscription(org, CredentialId::new()).await.unwrap_err().code, Code::CredentialNotFound);
}

#[tokio::test]
async fn a_broker_of_somebody_s_choice_gets_no_secret_of_the_operator() {
    let room = Room::with(HostPolicy::PublicOnly, None).await;
    let broker: Broker = serde_json::from_value(json!({
        "endpoint": "https://collector.example.com/tokens", "targetEnvVar": "CLAUDE_CODE_OAUTH_TOKEN",
        "auth": { "method": "bearer", "secretEnv": "TALE_TOKEN_SOURCE_POOL" },
        "responseMapping": { "tokensPath": "$.tokens", "tokenField": "token" },
    }))
    .unwrap();
    let one = add(&room, broker).await;
    let refused = room.models.test_subscription(room.org, one.id).await.unwrap_err();
    assert_eq!(refused.code, Code::CredentialSecretInvalid);
    assert!(refused.message.contains("TALE_ENV_KEY_HOSTS") && refused.message.contains("collector.example.com"));
}

/// MOD-40: it is stored encrypted, taken as it is, and left alone for a minute after the vendor refused it.
#[tokio::test]
async fn a_pasted_token_is_kept_encrypted_and_handed_to_its_runtime_alone() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let pasted = |variable: &str, account: Option<&str>| {
        TokenSource::Pasted(PastedToken { target_env_var: variable.into(), account_id: account.map(str::to_owned) })
    };
    let token = "sk-ant-oat01-0123456789";
    let create = |slug: &'static str, name: &'static str, source: TokenSource, token: Option<&'static str>| async move {
        models.create_subscription(org, actor, slug, of_source(name, source, token)).await
    };
    let missing = create("anthropic", "x", pasted("", None), None).await.unwrap_err();
    assert_eq!(missing.code, Code::CredentialSecretInvalid);
    for (slug, source, path) in [
        ("anthropic", pasted("PATH", None), "targetEnvVar"),
        ("openai", pasted("", None), "accountId"),
        ("openai", pasted("", Some("two words")), "accountId"),
    ] {
        assert_eq!(issues(&create(slug, "x", source, Some(token)).await.unwrap_err()), [path], "{slug}");
    }
    let one = create("anthropic", "Plan", pasted("", None), Some(token)).await.unwrap();
    assert_eq!(one.masked.as_deref(), Some("sk-a…89"));
    let rows: Vec<String> =
        sqlx::query_scalar("SELECT to_jsonb(s)::text FROM app.subscriptions s").fetch_all(&room.db.app).await.unwrap();
    assert!(rows.len() == 1 && !rows[0].contains(token));
    assert!(!format!("{:?}", room.audit().await).contains(token));

    let none = HashSet::new();
    let taken = models.select_token(org, one.id, &none).await.unwrap();
    assert_eq!((taken.token.expose_secret(), taken.target_env_var.as_str()), (token, "CLAUDE_CODE_OAUTH_TOKEN"));
    models.cool_account(org, one.id, &taken.account).await.unwrap();
    let refused = models.select_token(org, one.id, &none).await.unwrap_err();
    assert_eq!((refused.code, refused.retry_after), (Code::SubscriptionExhausted, Some(Duration::from_secs(60))));

    // Replacing it keeps its id; it is another account from then on. It never becomes a broker.
    let change = |version: i64| SubscriptionChange { version, ..SubscriptionChange::default() };
    let replaced = SubscriptionChange { token: Some(SecretString::from("sk-ant-oat01-abcdefghij")), ..change(1) };
    assert_eq!(
        models.change_subscription(org, actor, one.id, replaced).await.unwrap().masked.as_deref(),
        Some("sk-a…ij")
    );
    let other = models.select_token(org, one.id, &none).await.unwrap();
    assert_eq!(other.token.expose_secret(), "sk-ant-oat01-abcdefghij");
    let broker = FakeBroker::listing(json!([])).await.document(json!({}));
    for (wrong, path) in [
        (SubscriptionChange { source: Some(TokenSource::Broker(broker)), ..change(2) }, "authMethod"),
        (SubscriptionChange { secret: Some(SecretString::from("a-secret-of-a-broker")), ..change(2) }, "brokerSecret"),
    ] {
        assert_eq!(issues(&models.change_subscription(org, actor, one.id, wrong).await.unwrap_err()), [path]);
    }
    assert_eq!(models.test_subscription(org, one.id).await.unwrap_err().code, Code::InvalidBody);

    let codex = NewSubscription {
        model_allowlist: vec!["gpt-6-luna".into()],
        ..of_source("Codex", pasted("", Some("acct_1")), Some(token))
    };
    let codex = models.create_subscription(org, actor, "openai", codex).await.unwrap();
    let taken = models.select_token(org, codex.id, &none).await.unwrap();
    assert_eq!(taken.vendor_account.as_deref(), Some("acct_1"));
    // A coding plan whose vendor has no broker.
    create("zai", "Coding plan", pasted("", None), Some(token)).await.unwrap();
    let broker = FakeBroker::listing(json!([])).await.document(json!({ "targetEnvVar": "ANTHROPIC_AUTH_TOKEN" }));
    let refused = create("zai", "Pool", TokenSource::Broker(broker), None).await.unwrap_err();
    assert_eq!(issues(&refused), ["authMethod"]);
}
