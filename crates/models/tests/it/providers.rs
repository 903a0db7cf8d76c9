use secrecy::SecretString;
use serde_json::json;
use tale_core::Actor;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::net::HostPolicy;
use tale_core::problem::Code;
use tale_governance::policies::{Key, ModelRules};
use tale_models::{
    ApiFormat, AuthMethod, CredentialChange, DiscoverRequest, EmbeddingConfig, ModelErrorCode, NewCredential,
    NewProvider, ProviderChange, ProviderKind,
};
use tale_testkit::upstream::{FakeUpstream, Reply, Step};

use crate::support::{KEY, Room, chat_model, embedding_model, new_provider, organization};

fn key_credential(name: &str, key: &str) -> NewCredential {
    NewCredential {
        name: name.into(),
        auth_method: AuthMethod::ApiKey,
        api_key: Some(SecretString::from(key)),
        secret_env: None,
        endpoint: None,
        model_allowlist: Vec::new(),
        enabled: true,
    }
}

fn env_credential(name: &str, variable: &str) -> NewCredential {
    NewCredential {
        auth_method: AuthMethod::Env,
        api_key: None,
        secret_env: Some(variable.into()),
        ..key_credential(name, "")
    }
}

#[tokio::test]
async fn a_custom_provider_and_its_credential_are_made_together_and_the_key_stays_hidden() {
    let room = Room::new().await;
    let view = room
        .models
        .create_provider(room.org, &room.actor, new_provider("local", "http://127.0.0.1:9/v1/", vec![chat_model("m1")]))
        .await
        .unwrap();
    assert_eq!(view.provider.base_url.as_ref().unwrap().as_str(), "http://127.0.0.1:9/v1");
    let credential = &view.credentials[0];
    assert_eq!(
        (credential.name.as_str(), credential.masked.as_deref(), credential.is_default),
        ("Provider local", Some("sk-t…89"), true)
    );
    let stored: String = sqlx::query_scalar("SELECT secret FROM app.credentials WHERE id = $1")
        .bind(credential.id)
        .fetch_one(&room.db.app)
        .await
        .unwrap();
    assert!(stored.starts_with("v1.") && !stored.contains(KEY));
    let audit = room.audit().await;
    assert_eq!(
        audit.iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(),
        ["provider.create", "credential.create"]
    );
    assert!(audit.iter().all(|(_, details)| !details.to_string().contains("sk-t")));
    // A second provider of the same label gets the next free credential name.
    let again = NewProvider {
        slug: "local-2".into(),
        ..new_provider("local", "http://127.0.0.1:9/v1", vec![chat_model("m1")])
    };
    let view = room.models.create_provider(room.org, &room.actor, again).await.unwrap();
    assert_eq!(view.credentials[0].name, "Provider local 2");
}

#[tokio::test]
async fn names_addresses_and_keys_are_checked_and_nothing_is_saved() {
    let room = Room::with(HostPolicy::PublicOnly, None).await;
    let base = "https://api.example.com/v1";
    let cases = [
        (new_provider("openai", base, vec![chat_model("m")]), Code::ProviderNameTaken),
        (new_provider("tale-demo", base, vec![chat_model("m")]), Code::ProviderNameTaken),
        (new_provider("demo", base, vec![chat_model("m")]), Code::ProviderNameTaken),
        (new_provider("discover", base, vec![chat_model("m")]), Code::ProviderNameTaken),
        (new_provider("Not A Slug", base, vec![chat_model("m")]), Code::InvalidBody),
        (new_provider("p", "http://192.168.1.20:8000/v1", vec![chat_model("m")]), Code::PrivateHostBlocked),
        (new_provider("p", "http://169.254.169.254/", vec![chat_model("m")]), Code::PrivateHostBlocked),
        (new_provider("p", "http://api.example.com/v1", vec![chat_model("m")]), Code::InvalidUrl),
        (new_provider("p", "sk-pasted-into-the-wrong-field", vec![chat_model("m")]), Code::InvalidUrl),
        (new_provider("p", base, vec![chat_model("m"), chat_model("m")]), Code::InvalidBody),
        (
            NewProvider {
                api_key: Some(SecretString::from("two words")),
                ..new_provider("p", base, vec![chat_model("m")])
            },
            Code::CredentialSecretInvalid,
        ),
        (
            NewProvider {
                api_key: None,
                secret_env: Some("DATABASE_URL".into()),
                ..new_provider("p", base, vec![chat_model("m")])
            },
            Code::InvalidBody,
        ),
    ];
    for (new, code) in cases {
        let problem = room.models.create_provider(room.org, &room.actor, new).await.unwrap_err();
        assert_eq!(problem.code, code, "{problem}");
        assert!(!problem.message.contains("sk-pasted"));
    }
    assert!(room.audit().await.is_empty());
    assert!(
        room.models.providers(room.org).await.unwrap().iter().all(|view| view.provider.kind == ProviderKind::Shipped)
    );
    room.models.create_provider(room.org, &room.actor, new_provider("p", base, vec![chat_model("m")])).await.unwrap();
    let twice = room
        .models
        .create_provider(room.org, &room.actor, new_provider("p", base, vec![chat_model("m")]))
        .await
        .unwrap_err();
    assert_eq!(twice.code, Code::ProviderNameTaken);
}

#[tokio::test]
async fn a_stale_version_changes_nothing_and_the_history_holds_every_state() {
    let room = Room::new().await;
    let base = "http://127.0.0.1:9/v1";
    room.models.create_provider(room.org, &room.actor, new_provider("p", base, vec![chat_model("m")])).await.unwrap();
    let change =
        |version, name: &str| ProviderChange { version, display_name: Some(name.into()), ..ProviderChange::default() };
    let view = room.models.change_provider(room.org, &room.actor, "p", change(1, "Second")).await.unwrap();
    assert_eq!((view.provider.version, view.provider.display_name.as_str()), (2, "Second"));
    let stale = room.models.change_provider(room.org, &room.actor, "p", change(1, "Third")).await.unwrap_err();
    assert_eq!(stale.code, Code::ProviderVersionConflict);
    // A wrong key takes the whole change back (MOD-10).
    let wrong = ProviderChange { api_key: Some(SecretString::from("a b")), ..change(2, "Fourth") };
    assert_eq!(
        room.models.change_provider(room.org, &room.actor, "p", wrong).await.unwrap_err().code,
        Code::CredentialSecretInvalid
    );
    assert_eq!(room.models.provider(room.org, "p").await.unwrap().provider.display_name, "Second");
    let rekeyed = ProviderChange { api_key: Some(SecretString::from("sk-new-key-000000042")), ..change(2, "Fourth") };
    let view = room.models.change_provider(room.org, &room.actor, "p", rekeyed).await.unwrap();
    assert_eq!((view.credentials[0].masked.as_deref(), view.credentials[0].version), (Some("sk-n…42"), 2));
    assert_eq!(
        room.models.delete_provider(room.org, &room.actor, "p", 1).await.unwrap_err().code,
        Code::ProviderVersionConflict
    );
    room.models.delete_provider(room.org, &room.actor, "p", 3).await.unwrap();
    assert_eq!(room.models.provider(room.org, "p").await.unwrap_err().code, Code::ProviderUnknown);
    let changes: Vec<String> =
        sqlx::query_scalar("SELECT change FROM app.provider_history WHERE org_id = $1 ORDER BY id")
            .bind(room.org)
            .fetch_all(&room.db.app)
            .await
            .unwrap();
    assert_eq!(changes, ["created", "changed", "changed", "deleted"]);
    for slug in ["openai", "nope"] {
        assert_eq!(
            room.models.change_provider(room.org, &room.actor, slug, change(1, "X")).await.unwrap_err().code,
            Code::ProviderUnknown
        );
    }
}

#[tokio::test]
async fn credentials_have_unique_names_one_default_and_rules_for_variables() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let first = models
        .create_credential(org, actor, "openai", key_credential("Production", "sk-or-v1-abcdef123456"))
        .await
        .unwrap();
    assert_eq!((first.masked.as_deref(), first.is_default), (Some("sk-o…56"), true));
    let taken = models.create_credential(org, actor, "anthropic", key_credential("Production", KEY)).await.unwrap_err();
    assert_eq!(taken.code, Code::CredentialNameTaken);
    let second = models.create_credential(org, actor, "openai", key_credential("production", "abcdef")).await.unwrap();
    assert_eq!((second.masked.as_deref(), second.is_default), (Some("••••••••"), false));
    for variable in ["BETTER_AUTH_SECRET", "TALE_TOKEN_SOURCE_X", &format!("TALE_PROVIDER_KEY_{}", "A".repeat(23))] {
        assert_eq!(
            models.create_credential(org, actor, "openai", env_credential("env", variable)).await.unwrap_err().code,
            Code::InvalidBody
        );
    }
    let env =
        models.create_credential(org, actor, "openai", env_credential("env", "TALE_PROVIDER_KEY_SET")).await.unwrap();
    let change = |version| CredentialChange { version, ..CredentialChange::default() };
    let rekey = CredentialChange { api_key: Some(SecretString::from(KEY)), ..change(1) };
    assert_eq!(
        models.change_credential(org, actor, env.id, rekey).await.unwrap_err().code,
        Code::CredentialSecretInvalid
    );
    // Moving the mark; a disabled credential cannot carry it, and disabling the default leaves none.
    let moved = models
        .change_credential(org, actor, second.id, CredentialChange { is_default: Some(true), ..change(1) })
        .await
        .unwrap();
    let list = models.provider(org, "openai").await.unwrap().credentials;
    assert_eq!(list.iter().filter(|held| held.is_default).map(|held| held.id).collect::<Vec<_>>(), [second.id]);
    let off = models
        .change_credential(org, actor, second.id, CredentialChange { enabled: Some(false), ..change(moved.version) })
        .await
        .unwrap();
    assert!(!off.is_default && !off.enabled);
    let refused = models
        .change_credential(org, actor, second.id, CredentialChange { is_default: Some(true), ..change(off.version) })
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::InvalidBody);
    assert_eq!(
        models.change_credential(org, actor, second.id, change(1)).await.unwrap_err().code,
        Code::CredentialVersionConflict
    );
    // Renaming to itself is no conflict.
    models
        .change_credential(org, actor, env.id, CredentialChange { name: Some("env".into()), ..change(1) })
        .await
        .unwrap();
    let taken = models
        .change_credential(org, actor, env.id, CredentialChange { name: Some("Production".into()), ..change(2) })
        .await
        .unwrap_err();
    assert_eq!(taken.code, Code::CredentialNameTaken);
    models.delete_credential(org, actor, env.id, 2).await.unwrap();
    assert_eq!(models.delete_credential(org, actor, env.id, 2).await.unwrap_err().code, Code::CredentialNotFound);
}

#[tokio::test]
async fn an_endpoint_of_a_credential_is_judged_and_azure_needs_one() {
    let room = Room::with(HostPolicy::PublicOnly, None).await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let with = |endpoint: Option<&str>, allow: &[&str]| NewCredential {
        endpoint: endpoint.map(str::to_owned),
        model_allowlist: allow.iter().map(|id| (*id).to_owned()).collect(),
        ..key_credential("azure", KEY)
    };
    for endpoint in [
        None,
        Some("http://models.example.com/v1"),
        Some("http://10.0.0.1/v1"),
        Some("https://x.openai.azure.com/?api=1"),
    ] {
        let problem = models.create_credential(org, actor, "azure-openai", with(endpoint, &[])).await.unwrap_err();
        assert_eq!(problem.code, Code::CredentialEndpointInvalid);
        assert!(problem.message.contains("`endpoint`"), "{problem}");
    }
    let azure = models
        .create_credential(org, actor, "azure-openai", with(Some("https://res.openai.azure.com/openai/v1"), &[]))
        .await
        .unwrap();
    assert!(models.chat_models(org, &ModelRules::none()).await.unwrap().is_empty());
    let allow = CredentialChange {
        version: azure.version,
        model_allowlist: Some(vec!["my-deployment".into()]),
        ..CredentialChange::default()
    };
    models.change_credential(org, actor, azure.id, allow).await.unwrap();
    let entries = models.chat_models(org, &ModelRules::none()).await.unwrap();
    assert_eq!(
        entries.iter().map(|entry| (entry.id.as_str(), entry.context_window)).collect::<Vec<_>>(),
        [("my-deployment", 128_000)]
    );
}

#[tokio::test]
async fn what_the_embedding_model_needs_cannot_be_taken_away() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let view = models
        .create_provider(org, actor, new_provider("p", &upstream.openai_base(), vec![embedding_model("vec", 8)]))
        .await
        .unwrap();
    let credential = view.credentials[0].clone();
    models
        .set_embedding(org, actor, EmbeddingConfig { provider_slug: "p".into(), model: "vec".into(), dimensions: 8 })
        .await
        .unwrap();
    let change = CredentialChange { version: 1, ..CredentialChange::default() };
    for refused in [
        CredentialChange { enabled: Some(false), ..change.clone() },
        CredentialChange { is_default: Some(false), ..change.clone() },
        CredentialChange { model_allowlist: Some(vec!["other".into()]), ..change.clone() },
    ] {
        let problem = models.change_credential(org, actor, credential.id, refused).await.unwrap_err();
        assert_eq!(problem.code, Code::CredentialInUse);
        assert!(problem.message.contains("vec"));
    }
    assert_eq!(models.delete_credential(org, actor, credential.id, 1).await.unwrap_err().code, Code::CredentialInUse);
    assert_eq!(models.delete_provider(org, actor, "p", 1).await.unwrap_err().code, Code::ProviderInUse);
    models
        .change_credential(org, actor, credential.id, CredentialChange { name: Some("Renamed".into()), ..change })
        .await
        .unwrap();
    models.clear_embedding(org, actor).await.unwrap();
    models.create_credential(org, actor, "p", key_credential("another", KEY)).await.unwrap();
    assert_eq!(models.delete_provider(org, actor, "p", 1).await.unwrap_err().code, Code::ProviderInUse);
}

#[tokio::test]
async fn another_organization_s_providers_and_credentials_do_not_exist() {
    let room = Room::new().await;
    let (models, actor) = (&room.models, &room.actor);
    let view = models
        .create_provider(room.org, actor, new_provider("p", "http://127.0.0.1:9/v1", vec![chat_model("m")]))
        .await
        .unwrap();
    let credential: CredentialId = view.credentials[0].id;
    let other: OrgId = organization(&room.db.app, "other").await;
    assert_eq!(models.provider(other, "p").await.unwrap_err().code, Code::ProviderUnknown);
    assert_eq!(
        models
            .change_provider(other, actor, "p", ProviderChange { version: 1, ..ProviderChange::default() })
            .await
            .unwrap_err()
            .code,
        Code::ProviderUnknown
    );
    assert_eq!(models.delete_provider(other, actor, "p", 1).await.unwrap_err().code, Code::ProviderUnknown);
    assert_eq!(
        models.create_credential(other, actor, "p", key_credential("x", KEY)).await.unwrap_err().code,
        Code::ProviderUnknown
    );
    assert_eq!(
        models
            .change_credential(other, actor, credential, CredentialChange { version: 1, ..CredentialChange::default() })
            .await
            .unwrap_err()
            .code,
        Code::CredentialNotFound
    );
    assert_eq!(models.delete_credential(other, actor, credential, 1).await.unwrap_err().code, Code::CredentialNotFound);
    assert_eq!(
        models.test_provider(other, &Actor::System, "p", None, None).await.unwrap_err().code,
        Code::ProviderUnknown
    );
    assert_eq!(models.refresh_catalog(other, "p").await.unwrap_err().code, Code::ProviderUnknown);
    assert!(models.chat_models(other, &ModelRules::none()).await.unwrap().is_empty());
    assert!(models.embedding(other).await.unwrap().is_none());
    // The same slug and credential name are free there.
    models
        .create_provider(other, actor, new_provider("p", "http://127.0.0.1:9/v1", vec![chat_model("m")]))
        .await
        .unwrap();
}

#[tokio::test]
async fn two_saves_at_once_never_both_win() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let make = || models.create_provider(org, actor, new_provider("p", "http://127.0.0.1:9/v1", vec![chat_model("m")]));
    let (one, two) = tokio::join!(make(), make());
    assert_eq!([&one, &two].iter().filter(|made| made.is_ok()).count(), 1);
    let change = || {
        models.change_provider(
            org,
            actor,
            "p",
            ProviderChange { version: 1, display_name: Some("New".into()), ..ProviderChange::default() },
        )
    };
    let (one, two) = tokio::join!(change(), change());
    assert_eq!([&one, &two].iter().filter(|made| made.is_ok()).count(), 1);
}

#[tokio::test]
async fn the_last_credential_takes_its_provider_along_when_that_is_asked_for() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let add = async |slug: &str| {
        let provider = new_provider(slug, "http://127.0.0.1:1/v1", vec![embedding_model("vec", 8)]);
        models.create_provider(org, actor, provider).await.unwrap().credentials.remove(0)
    };
    let (alone, first) = (add("alone").await, add("pair").await);
    assert!(matches!(models.delete_credential_and_provider(org, actor, alone.id, 1).await, Ok(Ok(true))));
    assert_eq!(models.provider(org, "alone").await.unwrap_err().code, Code::ProviderUnknown);
    let second = NewCredential {
        name: "second".into(),
        auth_method: AuthMethod::ApiKey,
        api_key: Some(SecretString::from(KEY)),
        secret_env: None,
        endpoint: None,
        model_allowlist: Vec::new(),
        enabled: true,
    };
    let second = models.create_credential(org, actor, "pair", second).await.unwrap();
    assert!(matches!(models.delete_credential_and_provider(org, actor, second.id, 1).await, Ok(Ok(false))));
    // A provider that is needed stays and says why; the credential is gone all the same.
    let rules = json!({ "enabled": true, "rules": [{ "scope": "default", "providerName": "pair", "modelId": "vec" }] });
    room.policies.set(org, actor, Key::DefaultModels, rules, None).await.unwrap();
    let kept = models.delete_credential_and_provider(org, actor, first.id, first.version).await.unwrap();
    assert_eq!(kept.unwrap_err().code, Code::ProviderInUse);
    assert!(models.provider(org, "pair").await.unwrap().credentials.is_empty());
}

/// A test costs like any call; one that the provider does not count is booked by what came back.
#[tokio::test]
async fn a_test_that_nobody_counted_is_booked_by_what_arrived() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let specs = vec![chat_model("fake-chat")];
    room.models
        .create_provider(room.org, &room.actor, new_provider("p", &upstream.openai_base(), specs))
        .await
        .unwrap();
    let answer = "x".repeat(40);
    for (input, output) in [(7, 3), (0, 0), (7, 0)] {
        upstream.push(Reply::text(&answer).then(Step::Usage { input, output }));
        room.models.test_provider(room.org, &Actor::System, "p", None, None).await.unwrap().result.unwrap();
    }
    let booked: Vec<(String, String, i64, i64)> = sqlx::query_as(
        "SELECT source, outcome, input_tokens, output_tokens FROM app.usage_bookings ORDER BY reservation_id",
    )
    .fetch_all(&room.db.app)
    .await
    .unwrap();
    let line = |outcome: &str, input, output| ("__provider_test__".to_owned(), outcome.to_owned(), input, output);
    assert_eq!(booked, [line("reported", 7, 3), line("floor", 32, 10), line("floor", 32, 10)]);
}

#[tokio::test]
async fn the_test_button_shows_the_reply_or_the_vendor_s_own_error() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let specs = vec![chat_model("fake-chat"), embedding_model("vec", 8)];
    models.create_provider(org, actor, new_provider("p", &upstream.openai_base(), specs)).await.unwrap();
    upstream.push(Reply::text("OK"));
    let outcome = models.test_provider(org, &Actor::System, "p", None, None).await.unwrap();
    assert_eq!((outcome.model.as_str(), outcome.result), ("fake-chat", Ok("OK".to_owned())));
    let request = upstream.chat_requests().pop().unwrap();
    assert_eq!(
        (request.key.as_deref(), request.body["max_tokens"].as_u64()),
        (Some("Bearer sk-test-0123456789"), Some(64))
    );
    upstream.push(Reply::refusal(401, "invalid_api_key", "Your key is not welcome."));
    let error =
        models.test_provider(org, &Actor::System, "p", Some("fake-chat"), None).await.unwrap().result.unwrap_err();
    assert_eq!(
        (error.code, error.status, error.message.as_str()),
        (ModelErrorCode::AuthError, Some(401), "Your key is not welcome.")
    );
    assert_eq!(
        models.test_provider(org, &Actor::System, "p", Some("vec"), None).await.unwrap().result,
        Ok("8 dimensions".to_owned())
    );
    assert_eq!(
        models.test_provider(org, &Actor::System, "openai", None, None).await.unwrap_err().code,
        Code::CredentialNotFound
    );
    assert_eq!(
        models.test_provider(org, &Actor::System, "p", None, Some(CredentialId::new())).await.unwrap_err().code,
        Code::CredentialNotFound
    );
}

#[tokio::test]
async fn models_are_discovered_and_live_lists_survive_a_failed_refresh() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let request = DiscoverRequest {
        api_format: ApiFormat::OpenAi,
        base_url: upstream.openai_base(),
        api_key: Some(SecretString::from(KEY)),
    };
    let found = models.discover(request.clone()).await.unwrap();
    assert_eq!(found.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["fake-chat", "fake-embedding"]);
    let nobody = DiscoverRequest { base_url: "http://127.0.0.1:9/v1".into(), ..request };
    let problem = models.discover(nobody).await.unwrap_err();
    assert_eq!(
        (problem.code, problem.data.unwrap()["code"].as_str()),
        (Code::ProviderUpstreamError, Some("provider_unreachable"))
    );
    // Without typed models the list is read from the endpoint, once at the save.
    let view =
        models.create_provider(org, actor, new_provider("live", &upstream.openai_base(), Vec::new())).await.unwrap();
    assert_eq!(view.provider.models.len(), 2);
    assert_eq!(models.chat_models(org, &ModelRules::none()).await.unwrap().len(), 1);
    upstream.set_models(vec![
        serde_json::json!({ "id": "a", "context_length": 1000 }),
        serde_json::json!({ "id": "b" }),
        serde_json::json!({ "id": "c" }),
    ]);
    assert_eq!(models.refresh_catalog(org, "live").await.unwrap(), 3);
    assert_eq!(models.chat_models(org, &ModelRules::none()).await.unwrap()[0].context_window, 1_000);
    let base = ProviderChange {
        version: 1,
        base_url: Some("http://127.0.0.1:9/v1".into()),
        api_key: Some("sk-another-key-1234".into()),
        ..ProviderChange::default()
    };
    models.change_provider(org, actor, "live", base).await.unwrap();
    assert_eq!(models.refresh_catalog(org, "live").await.unwrap_err().code, Code::ProviderUpstreamError);
    let view = models.provider(org, "live").await.unwrap();
    assert_eq!(view.provider.models.len(), 3);
    assert!(view.catalog.unwrap().error.unwrap().contains("Could not connect"));
}

#[tokio::test]
async fn a_stored_key_never_follows_to_another_server() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let (upstream, thief) = (FakeUpstream::start().await, FakeUpstream::start().await);
    let new = new_provider("own", &upstream.openai_base(), vec![chat_model("fake-chat")]);
    let first = models.create_provider(org, actor, new).await.unwrap().credentials.remove(0);
    let away = |key: Option<&str>| ProviderChange {
        version: 1,
        base_url: Some(thief.openai_base()),
        api_key: key.map(Into::into),
        ..ProviderChange::default()
    };
    let refused = models.change_provider(org, actor, "own", away(None)).await.unwrap_err();
    assert_eq!(refused.code, Code::CredentialSecretInvalid);
    assert!(refused.message.contains(upstream.openai_base().split('/').nth(2).unwrap()), "{}", refused.message);
    let endpoint = CredentialChange {
        version: first.version,
        endpoint: Some(Some(thief.openai_base())),
        ..CredentialChange::default()
    };
    let refused = models.change_credential(org, actor, first.id, endpoint).await.unwrap_err();
    assert_eq!(refused.code, Code::CredentialSecretInvalid);

    // A second stored key would follow even when the first one is replaced.
    let second = NewCredential {
        name: "Second".into(),
        auth_method: AuthMethod::ApiKey,
        api_key: Some("sk-second-key-12345".into()),
        secret_env: None,
        endpoint: None,
        model_allowlist: Vec::new(),
        enabled: false,
    };
    let second = models.create_credential(org, actor, "own", second).await.unwrap();
    let refused = models.change_provider(org, actor, "own", away(Some("sk-thief-12345678"))).await.unwrap_err();
    assert!(refused.message.contains("“Second”"), "{}", refused.message);
    models.delete_credential(org, actor, second.id, second.version).await.unwrap();
    models.change_provider(org, actor, "own", away(Some("sk-thief-12345678"))).await.unwrap();
    models.test_provider(org, &Actor::System, "own", None, None).await.unwrap().result.unwrap();
    assert_eq!(thief.chat_requests()[0].key.as_deref(), Some("Bearer sk-thief-12345678"));

    // Another path of the same server is no other server.
    let path = format!("{}/", thief.openai_base());
    let same = ProviderChange { version: 2, base_url: Some(path), ..ProviderChange::default() };
    models.change_provider(org, actor, "own", same).await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_asks_for_no_key_is_called_without_one() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let new =
        NewProvider { api_key: None, ..new_provider("ollama", &upstream.openai_base(), vec![chat_model("llama")]) };
    let view = room.models.create_provider(room.org, &room.actor, new).await.unwrap();
    assert_eq!(view.credentials[0].auth_method, AuthMethod::None);
    room.models.test_provider(room.org, &Actor::System, "ollama", None, None).await.unwrap().result.unwrap();
    assert_eq!(upstream.chat_requests()[0].key, None);
}

/// Whoever manages providers chooses addresses; the keys in variables are the operator's.
#[tokio::test]
async fn a_key_of_the_operator_goes_to_no_address_that_somebody_chose() {
    let upstream = FakeUpstream::start().await;
    let by_variable = |slug: &str, base: &str| NewProvider {
        api_key: None,
        secret_env: Some("TALE_PROVIDER_KEY_SET".into()),
        ..new_provider(slug, base, vec![chat_model("m")])
    };
    let public = Room::with(HostPolicy::PublicOnly, None).await;
    let (models, org, actor) = (&public.models, public.org, &public.actor);
    models.create_provider(org, actor, by_variable("own", "https://collector.example.com/v1")).await.unwrap();
    let elsewhere = NewCredential {
        endpoint: Some("https://collector.example.com/v1".into()),
        ..env_credential("elsewhere", "TALE_PROVIDER_KEY_SET")
    };
    models.create_credential(org, actor, "openai", elsewhere).await.unwrap();
    for slug in ["own", "openai"] {
        let refused = models.test_provider(org, &Actor::System, slug, None, None).await.unwrap_err();
        assert_eq!(refused.code, Code::CredentialSecretInvalid, "{slug}");
        assert!(refused.message.contains("TALE_ENV_KEY_HOSTS") && refused.message.contains("collector.example.com"));
        assert!(!refused.message.contains("sk-from-env"));
    }
    // The operator admits private hosts, and with them what runs there.
    let private = Room::new().await;
    let (models, org, actor) = (&private.models, private.org, &private.actor);
    models.create_provider(org, actor, by_variable("own", &upstream.openai_base())).await.unwrap();
    models.test_provider(org, &Actor::System, "own", None, None).await.unwrap().result.unwrap();
    assert_eq!(upstream.chat_requests()[0].key.as_deref(), Some("Bearer sk-from-env"));
}
