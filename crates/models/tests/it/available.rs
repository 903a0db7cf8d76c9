use std::time::Duration;

use futures::StreamExt;
use secrecy::SecretString;
use serde_json::json;
use tale_core::Actor;
use tale_core::net::HostPolicy;
use tale_core::problem::Code;
use tale_governance::policies::{Key, ModelRules, Person};
use tale_models::auto::AutoInput;
use tale_models::{
    ApiFormat, AuthMethod, ChatMessage, ChatRequest, CredentialChange, Models, NewCredential, NewProvider,
    ProviderChange, StreamEvent,
};
use tale_testkit::upstream::{FakeUpstream, Reply};
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, Room, chat_model, embedding_model, new_provider};

#[tokio::test]
async fn a_model_is_found_by_id_and_by_provider_and_called() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let specs = vec![chat_model("shared"), chat_model("only-a"), embedding_model("vec", 8)];
    models.create_provider(org, actor, new_provider("a", &upstream.openai_base(), specs)).await.unwrap();
    let anthropic = NewProvider {
        api_format: ApiFormat::Anthropic,
        ..new_provider("b", &upstream.anthropic_base(), vec![chat_model("shared")])
    };
    models.create_provider(org, actor, anthropic).await.unwrap();
    let ids: Vec<(String, String)> = models
        .chat_models(org, &ModelRules::none())
        .await
        .unwrap()
        .into_iter()
        .map(|entry| (entry.provider_slug, entry.id))
        .collect();
    assert_eq!(
        ids,
        [("a", "shared"), ("a", "only-a"), ("b", "shared")].map(|(slug, id)| (slug.to_owned(), id.to_owned()))
    );

    assert_eq!(models.resolve_chat(org, &ModelRules::none(), "only-a", None).await.unwrap().provider_slug, "a");
    let ambiguous = models.resolve_chat(org, &ModelRules::none(), "shared", None).await.unwrap_err();
    assert_eq!(
        (ambiguous.code, &ambiguous.data.unwrap()["providers"]),
        (Code::ChatModelAmbiguous, &serde_json::json!(["a", "b"]))
    );
    for (model, provider, code) in [
        ("nope", None, Code::ChatModelUnknown),
        ("vec", None, Code::ChatModelUnknown),
        ("shared", Some("c"), Code::ChatProviderUnknown),
        ("gpt-4o", Some("openai"), Code::ChatProviderUnknown),
        ("only-a", Some("b"), Code::ChatModelNotOnProvider),
    ] {
        assert_eq!(
            models.resolve_chat(org, &ModelRules::none(), model, provider).await.unwrap_err().code,
            code,
            "{model} {provider:?}"
        );
    }

    for (provider, path) in [("a", "/v1/chat/completions"), ("b", "/v1/messages")] {
        upstream.push(Reply::text("Here you are."));
        let resolved = models.resolve_chat(org, &ModelRules::none(), "shared", Some(provider)).await.unwrap();
        let request = ChatRequest { messages: vec![ChatMessage::user("Hi")], ..ChatRequest::default() };
        let mut stream = models.stream(&resolved, request, CancellationToken::new()).await.unwrap();
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            if let StreamEvent::Text(piece) = event.unwrap() {
                text.push_str(&piece);
            }
        }
        assert_eq!(text, "Here you are.");
        assert_eq!(upstream.chat_requests().pop().unwrap().path, path);
    }
    assert!(
        !format!("{:?}", models.resolve_chat(org, &ModelRules::none(), "only-a", None).await.unwrap()).contains(KEY)
    );
}

#[tokio::test]
async fn rules_narrow_lists_and_calls_and_name_the_policy() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    for (slug, ids) in [("a", ["shared", "mine"]), ("b", ["shared", "theirs"])] {
        let specs = ids.map(chat_model).to_vec();
        models.create_provider(org, actor, new_provider(slug, "http://127.0.0.1:9/v1", specs)).await.unwrap();
    }
    let save = |key, value| room.policies.set(org, actor, key, value, None);
    save(
        Key::ModelAccess,
        json!({ "enabled": true, "rules": [{ "scope": "default", "blockedModels": ["a/shared", "theirs"] }] }),
    )
    .await
    .unwrap();
    save(
        Key::DefaultModels,
        json!({ "enabled": true, "rules": [
            { "scope": "role", "scopeId": "member", "providerName": "b", "modelId": "theirs" },
            { "scope": "default", "providerName": "b", "modelId": "shared" },
        ] }),
    )
    .await
    .unwrap();
    let used = models.delete_provider(org, actor, "b", 1).await.unwrap_err();
    assert_eq!((used.code, &used.data.unwrap()["usedBy"]), (Code::ProviderInUse, &json!(["default_models"])));
    let rules = models.rules(org, Person { user: None, role: "member", team: None }).await.unwrap();
    let seen: Vec<String> = models
        .chat_models(org, &rules)
        .await
        .unwrap()
        .into_iter()
        .map(|entry| format!("{}/{}", entry.provider_slug, entry.id))
        .collect();
    assert_eq!(seen, ["a/mine", "b/shared"]);
    // Named without a provider, the one that is left is meant.
    assert_eq!(models.resolve_chat(org, &rules, "shared", None).await.unwrap().provider_slug, "b");
    for (model, provider) in [("shared", Some("a")), ("theirs", None), ("theirs", Some("b"))] {
        let refused = models.resolve_chat(org, &rules, model, provider).await.unwrap_err();
        assert_eq!(refused.code, Code::ChatModelForbidden, "{model}");
        assert!(refused.message.contains("`model_access`") && refused.message.contains(model));
    }
    // The default that is denied is skipped, the next one counts; without any, the heuristic picks among the rest.
    assert_eq!(models.resolve_auto(org, &rules, &AutoInput::default()).await.unwrap().provider_slug, "b");
    save(Key::DefaultModels, json!({ "enabled": false })).await.unwrap();
    let rules = models.rules(org, Person { user: None, role: "member", team: None }).await.unwrap();
    assert_eq!(models.resolve_auto(org, &rules, &AutoInput::default()).await.unwrap().model_id, "mine");
    save(Key::ModelAccess, json!({ "mode": "allowlist" })).await.unwrap();
    let rules = models.rules(org, Person { user: None, role: "member", team: None }).await.unwrap();
    let nothing = models.resolve_auto(org, &rules, &AutoInput::default()).await.unwrap_err();
    assert_eq!(nothing.code, Code::ChatModelForbidden);
}

#[tokio::test]
async fn shipped_models_appear_with_a_credential_narrowed_by_its_allowlist() {
    let room = Room::new().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    assert!(models.chat_models(org, &ModelRules::none()).await.unwrap().is_empty());
    let new = |name: &str, allow: &[&str]| NewCredential {
        name: name.into(),
        auth_method: AuthMethod::Env,
        api_key: None,
        secret_env: Some(format!("TALE_PROVIDER_KEY_{name}")),
        endpoint: None,
        model_allowlist: allow.iter().map(|id| (*id).to_owned()).collect(),
        enabled: true,
    };
    models.create_credential(org, actor, "anthropic", new("SET", &["claude-haiku-4-5"])).await.unwrap();
    let missing =
        models.create_credential(org, actor, "anthropic", new("MISSING", &["claude-sonnet-4-5"])).await.unwrap();
    // The union of the enabled credentials is what can be reached (MOD-54).
    let ids: Vec<String> =
        models.chat_models(org, &ModelRules::none()).await.unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["claude-sonnet-4-5", "claude-haiku-4-5"]);
    let resolved = models.resolve_chat(org, &ModelRules::none(), "claude-haiku-4-5", None).await.unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(resolved.target.secret.as_ref().unwrap()), "sk-from-env");
    assert!(resolved.facts.reasoning);
    let unset = models.resolve_chat(org, &ModelRules::none(), "claude-sonnet-4-5", None).await.unwrap_err();
    assert_eq!(unset.code, Code::CredentialEnvMissing);
    assert!(unset.message.contains("TALE_PROVIDER_KEY_MISSING"));
    let off = CredentialChange { version: missing.version, enabled: Some(false), ..CredentialChange::default() };
    models.change_credential(org, actor, missing.id, off).await.unwrap();
    assert_eq!(models.chat_models(org, &ModelRules::none()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_demo_exists_only_while_it_runs_and_its_address_is_never_stored() {
    let without = Room::new().await;
    assert_eq!(without.models.install_demo(without.org, &without.actor).await.unwrap_err().code, Code::NotFound);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let server = tokio::spawn(tale_demo::serve(listener, stop.clone()));
    let room = Room::with(HostPolicy::PublicOnly, Some(base)).await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let view = models.install_demo(org, actor).await.unwrap();
    assert_eq!(view, models.install_demo(org, actor).await.unwrap());
    assert!(view.provider.display_name.contains("not a language model") && view.provider.base_url.is_none());
    let entry = models.chat_models(org, &ModelRules::none()).await.unwrap().remove(0);
    assert!(entry.demo && entry.tags.contains(&"demo"));
    let outcome = models.test_provider(org, &Actor::System, "tale-demo", None, None).await.unwrap();
    assert!(outcome.result.unwrap().contains("not a language model"));
    let refused = NewCredential {
        name: "x".into(),
        auth_method: AuthMethod::ApiKey,
        api_key: Some(SecretString::from(KEY)),
        secret_env: None,
        endpoint: None,
        model_allowlist: vec![],
        enabled: true,
    };
    assert_eq!(models.create_credential(org, actor, "tale-demo", refused).await.unwrap_err().code, Code::InvalidBody);
    // The same organization in a process without the demo: shown, and not on offer.
    let other = Room { models: without.models, ..without };
    assert!(other.models.chat_models(other.org, &ModelRules::none()).await.unwrap().is_empty());
    models.delete_provider(org, actor, "tale-demo", 1).await.unwrap();
    assert!(models.chat_models(org, &ModelRules::none()).await.unwrap().is_empty());
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_demo_searches_then_quotes_over_the_wire() {
    use tale_models::{ToolCall, ToolSpec};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(tale_demo::serve(listener, CancellationToken::new()));
    let room = Room::with(HostPolicy::PublicOnly, Some(base)).await;
    room.models.install_demo(room.org, &room.actor).await.unwrap();
    let resolved = room.models.resolve_chat(room.org, &ModelRules::none(), "tale-demo", None).await.unwrap();
    let tool = ToolSpec {
        name: "rag_search".into(),
        description: String::new(),
        parameters: std::sync::Arc::new(serde_json::json!({ "type": "object" })),
    };
    let mut request = ChatRequest {
        messages: vec![ChatMessage::user("How long is the notice period?")],
        tools: vec![tool],
        ..ChatRequest::default()
    };
    let mut call: Option<ToolCall> = None;
    let mut stream = room.models.stream(&resolved, request.clone(), CancellationToken::new()).await.unwrap();
    while let Some(event) = stream.next().await {
        if let StreamEvent::ToolCall(complete) = event.unwrap() {
            call = Some(complete);
        }
    }
    let call = call.unwrap();
    assert_eq!(call.arguments, r#"{"action":"search","limit":6,"query":"notice period"}"#);
    let rows = serde_json::json!({ "rows": [{ "cite": 1, "title": "Contract", "snippet": "The notice period is three months." }] });
    request.messages.push(ChatMessage::Assistant {
        text: String::new(),
        reasoning: vec![],
        tool_calls: vec![call.clone()],
    });
    request.messages.push(ChatMessage::ToolResult {
        id: call.id,
        name: call.name,
        content: rows.to_string(),
        is_error: false,
    });
    let mut stream = room.models.stream(&resolved, request, CancellationToken::new()).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::Text(piece) = event.unwrap() {
            pieces.push(piece);
        }
    }
    assert!(pieces.len() > 5, "the answer streams word by word");
    assert!(pieces.concat().contains("> The notice period is three months. [1]"));
}

#[tokio::test]
async fn what_was_read_of_a_provider_is_kept_until_it_changes() {
    let room = Room::new().await;
    let (org, actor) = (room.org, &room.actor);
    let made = new_provider("p", "https://first.test/v1", vec![chat_model("m")]);
    room.models.create_provider(org, actor, made).await.unwrap();
    let host = async |models: &Models| {
        let resolved = models.resolve_chat(org, &ModelRules::none(), "m", Some("p")).await.unwrap();
        resolved.target.base.host_str().unwrap().to_owned()
    };
    // Unannounced, as nothing of ours changes it.
    let secretly = async |to: &str| {
        let written = sqlx::query("UPDATE app.providers SET base_url = $2 WHERE org_id = $1").bind(org).bind(to);
        written.execute(&room.db.app).await.unwrap();
    };
    secretly("https://second.test/v1").await;
    assert_eq!(host(&room.models).await, "second.test", "nothing is kept by who does not listen");

    let follower = room.models.clone();
    let following = tokio::spawn(async move { follower.follow().await });
    let patience = Duration::from_secs(20);
    let kept = async {
        for round in 0.. {
            let before = host(&room.models).await;
            secretly(&format!("https://round-{round}.test/v1")).await;
            if host(&room.models).await == before {
                return;
            }
        }
    };
    tokio::time::timeout(patience, kept).await.expect("what was read is kept by who listens");

    let move_to = async |models: &Models, version: i64, base: &str| {
        let change = ProviderChange {
            version,
            base_url: Some(base.into()),
            api_key: Some("sk-another-key-1234".into()),
            ..ProviderChange::default()
        };
        models.change_provider(org, actor, "p", change).await.unwrap();
    };
    move_to(&room.models, 1, "https://own.test/v1").await;
    assert_eq!(host(&room.models).await, "own.test", "a change of this process counts at once");
    move_to(&room.again(), 2, "https://other.test/v1").await;
    let heard = async {
        while host(&room.models).await != "other.test" {
            // What is kept is answered without ever waiting, and on the one thread of a test that keeps the
            // announcement from being heard at all.
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(patience, heard).await.expect("a change of another process is heard of");
    host(&room.models).await;
    secretly("https://fifth.test/v1").await;
    room.clock.advance(Duration::from_secs(10));
    assert_eq!(host(&room.models).await, "fifth.test", "nothing is believed for long");

    following.abort();
    assert!(following.await.unwrap_err().is_cancelled());
    secretly("https://sixth.test/v1").await;
    assert_eq!(host(&room.models).await, "sixth.test", "nothing is kept once nobody listens");
}
