use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Problem};
use tale_models::{
    ApiFormat, AuthMethod, EmbedError, EmbedPurpose, EmbeddingChanged, EmbeddingConfig, NewCredential, NewProvider,
};
use tale_testkit::upstream::{FakeUpstream, Reply, hash_vector};

use crate::support::{Room, chat_model, embedding_model, new_provider};

#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<Option<EmbeddingConfig>>>,
    refuse: Mutex<bool>,
}

#[async_trait]
impl EmbeddingChanged for Listener {
    async fn embedding_changed(
        &self,
        _conn: &mut PgConnection,
        _org: OrgId,
        config: Option<&EmbeddingConfig>,
    ) -> Result<u64, Problem> {
        if *self.refuse.lock().unwrap() {
            return Err(Problem::new(Code::EmbeddingWidthConflict, "8 is not 16."));
        }
        self.heard.lock().unwrap().push(config.cloned());
        Ok(3)
    }
}

fn config(slug: &str, model: &str, dimensions: u32) -> EmbeddingConfig {
    EmbeddingConfig { provider_slug: slug.into(), model: model.into(), dimensions }
}

async fn ready(upstream: &FakeUpstream) -> Room {
    let room = Room::new().await;
    room.models
        .create_provider(
            room.org,
            &room.actor,
            new_provider("p", &upstream.openai_base(), vec![embedding_model("vec", 8)]),
        )
        .await
        .unwrap();
    room.models.set_embedding(room.org, &room.actor, config("p", "vec", 8)).await.unwrap();
    room
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("text number {n}")).collect()
}

#[tokio::test]
async fn setting_and_removing_it_is_heard_audited_and_atomic() {
    let upstream = FakeUpstream::start().await;
    let room = ready(&upstream).await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let listener = Arc::new(Listener::default());
    models.on_embedding_changed(listener.clone());
    assert_eq!(models.set_embedding(org, actor, config("p", "vec", 16)).await.unwrap(), 3);
    *listener.refuse.lock().unwrap() = true;
    assert_eq!(
        models.set_embedding(org, actor, config("p", "vec", 8)).await.unwrap_err().code,
        Code::EmbeddingWidthConflict
    );
    assert_eq!(models.embedding(org).await.unwrap().unwrap().dimensions, 16);
    *listener.refuse.lock().unwrap() = false;
    models.clear_embedding(org, actor).await.unwrap();
    assert_eq!(*listener.heard.lock().unwrap(), [Some(config("p", "vec", 16)), None]);
    assert_eq!(models.clear_embedding(org, actor).await.unwrap_err().code, Code::EmbeddingNotConfigured);
    let audit = room.audit().await;
    let last = &audit[audit.len() - 1];
    assert_eq!((last.0.as_str(), &last.1["before"]["dimensions"]), ("embedding.clear", &serde_json::json!(16)));
}

#[tokio::test]
async fn only_providers_that_make_vectors_and_hold_a_credential_are_accepted() {
    let upstream = FakeUpstream::start().await;
    let room = ready(&upstream).await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let anthropic = NewProvider {
        api_format: ApiFormat::Anthropic,
        ..new_provider("b", &upstream.anthropic_base(), vec![chat_model("m")])
    };
    models.create_provider(org, actor, anthropic).await.unwrap();
    for (slug, model, dimensions, code) in [
        ("nope", "vec", 8, Code::ProviderUnknown),
        ("anthropic", "vec", 8, Code::EmbeddingProviderUnsupported),
        ("b", "m", 8, Code::EmbeddingProviderUnsupported),
        ("openai", "text-embedding-3-small", 1536, Code::EmbeddingProviderUnsupported),
        ("p", "vec", 0, Code::InvalidBody),
        ("p", " ", 8, Code::InvalidBody),
    ] {
        assert_eq!(
            models.set_embedding(org, actor, config(slug, model, dimensions)).await.unwrap_err().code,
            code,
            "{slug}"
        );
    }
    let openai = NewCredential {
        name: "o".into(),
        auth_method: AuthMethod::Env,
        api_key: None,
        secret_env: Some("TALE_PROVIDER_KEY_O".into()),
        endpoint: None,
        model_allowlist: vec![],
        enabled: true,
    };
    models.create_credential(org, actor, "openai", openai).await.unwrap();
    let unlisted = models.set_embedding(org, actor, config("openai", "made-up", 1536)).await.unwrap_err();
    assert_eq!(unlisted.code, Code::EmbeddingProviderUnsupported);
    models.set_embedding(org, actor, config("openai", "text-embedding-3-small", 1536)).await.unwrap();
    // A custom provider takes a typed model.
    models.set_embedding(org, actor, config("p", "typed", 8)).await.unwrap();
    let candidates = models.embedding_candidates(org).await.unwrap();
    assert_eq!(candidates.iter().map(|one| one.provider_slug.as_str()).collect::<Vec<_>>(), ["p", "openai"]);
    assert_eq!(candidates[0].models, [("vec".to_owned(), Some(8))]);
    // The key of the chosen provider is not set in this process.
    models.set_embedding(org, actor, config("openai", "text-embedding-3-small", 1536)).await.unwrap();
    let rejected = models.embed(org, &Actor::System, &texts(1), EmbedPurpose::Search).await.unwrap_err();
    assert!(
        matches!(&rejected, EmbedError::CredentialRejected(why) if why.contains("TALE_PROVIDER_KEY_O")),
        "{rejected:?}"
    );
}

#[tokio::test]
async fn vectors_come_in_order_and_a_cap_is_learned_once() {
    let upstream = FakeUpstream::start().await;
    let room = ready(&upstream).await;
    upstream.set_embedding_cap(Some(10));
    let texts = texts(40);
    let vectors = room.models.embed(room.org, &Actor::System, &texts, EmbedPurpose::Index).await.unwrap();
    assert_eq!(vectors.len(), 40);
    assert!(vectors.iter().zip(&texts).all(|(vector, text)| *vector == hash_vector(text, 8)));
    let sizes = |upstream: &FakeUpstream| -> Vec<usize> {
        upstream.requests().iter().map(|request| request.body["input"].as_array().unwrap().len()).collect()
    };
    assert_eq!(sizes(&upstream), [40, 10, 10, 10, 10]);
    room.models.embed(room.org, &Actor::System, &texts[..12], EmbedPurpose::Search).await.unwrap();
    assert_eq!(sizes(&upstream)[5..], [10, 2]);
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_while_indexing_and_reported_to_a_search() {
    let upstream = FakeUpstream::start().await;
    let room = ready(&upstream).await;
    let limited = || Reply::refusal(429, "rate_limit_exceeded", "slow down").header("retry-after-ms", "1");
    upstream.push_embedding(limited());
    upstream.push_embedding(limited());
    assert_eq!(room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Index).await.unwrap().len(), 1);
    upstream.push_embedding(limited());
    let problem =
        Problem::from(room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Search).await.unwrap_err());
    assert_eq!(problem.code, Code::EmbeddingUpstreamError);
    assert!(problem.retry_after.is_some());
    for _ in 0..7 {
        upstream.push_embedding(limited());
    }
    let before = upstream.requests().len();
    assert!(
        room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Index).await.unwrap_err().is_transient()
    );
    assert_eq!(upstream.requests().len() - before, 7, "one request and six repeats");
}

#[tokio::test]
async fn each_kind_of_failure_has_its_class() {
    let upstream = FakeUpstream::start().await;
    let room = ready(&upstream).await;
    for (status, code, class) in [
        (402, "payment_required", Code::EmbeddingCreditExhausted),
        (429, "insufficient_quota", Code::EmbeddingCreditExhausted),
        (401, "invalid_api_key", Code::EmbeddingCredentialRejected),
        (500, "server_error", Code::EmbeddingUpstreamError),
    ] {
        upstream.push_embedding(Reply::refusal(status, code, "no"));
        let before = upstream.requests().len();
        let error = room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Index).await.unwrap_err();
        assert_eq!(Problem::from(error).code, class, "{status}");
        assert_eq!(upstream.requests().len() - before, 1);
    }
    upstream.set_embedding_width(4);
    let width = room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Index).await.unwrap_err();
    assert_eq!(width.to_string(), "the embedding model answered vectors of 4 numbers; 8 are configured");
    let problem = Problem::from(width);
    assert_eq!(problem.code, Code::EmbeddingWidthConflict);
    room.models.clear_embedding(room.org, &room.actor).await.unwrap();
    assert!(matches!(
        room.models.embed(room.org, &Actor::System, &texts(1), EmbedPurpose::Search).await,
        Err(EmbedError::NotConfigured)
    ));
}
