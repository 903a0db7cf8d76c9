//! Asking a provider something before it is used: the models of an endpoint that is not saved yet,
//! and one tiny call that shows whether a credential works (MOD-17, the Test button).

use std::time::{Duration, Instant};

use futures::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tale_core::Actor;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Problem};
use tokio_util::sync::CancellationToken;

use crate::available::facts_of;
use crate::credentials::provider_unknown;
use crate::definition::{ModelSpec, ProviderKind, Purpose, base_url};
use crate::extra_body::ExtraBody;
use crate::ledger::{Charge, Outcome, Price, source};
use crate::secret::checked_key;
use crate::wire::{
    ApiFormat, ChatMessage, ChatRequest, EmbeddingRefusal, ModelError, ModelErrorCode, ModelFacts, StreamEvent, Target,
    WireDialect,
};
use crate::{Models, catalog};

/// Longest wait for the answer to a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer to a test, in tokens.
const TEST_TOKENS: u32 = 64;
/// What a test's question counts for, in tokens.
const TEST_PROMPT_TOKENS: u64 = 32;
/// Bytes of a token of an answer, about.
const BYTES_OF_A_TOKEN: usize = 4;
/// Most of a test's answer that is shown, in characters.
const TEST_REPLY_CHARS: usize = 400;

/// An endpoint whose models are wanted before anything is saved.
#[derive(Debug, Clone)]
pub struct DiscoverRequest {
    /// The wire format.
    pub api_format: ApiFormat,
    /// The API root.
    pub base_url: String,
    /// The key, when the endpoint wants one.
    pub api_key: Option<SecretString>,
}

/// What a test call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOutcome {
    /// The model that was called.
    pub model: String,
    /// How long the whole call took.
    pub latency: Duration,
    /// What came back, or the vendor's own error.
    pub result: Result<String, ModelError>,
}

/// What a test gave: words to show, and the tokens of question and answer when the provider told them.
type Tested = (String, Option<(u64, u64)>);

impl Models {
    /// Reads the models of an endpoint without saving anything. No stored key is used, so that a
    /// typed address cannot be handed one.
    ///
    /// # Errors
    /// `INVALID_URL`, `PRIVATE_HOST_BLOCKED`, `CREDENTIAL_SECRET_INVALID`,
    /// `PROVIDER_UPSTREAM_ERROR` with the vendor's words and `data: {code, status}`.
    pub async fn discover(&self, request: DiscoverRequest) -> Result<Vec<ModelSpec>, Problem> {
        let base = base_url("baseUrl", &request.base_url, self.inner.wire.policy())?;
        let secret = match request.api_key.filter(|key| !key.expose_secret().trim().is_empty()) {
            Some(key) => Some(SecretString::from(checked_key(&key)?)),
            None => None,
        };
        let target = Target { format: request.api_format, dialect: WireDialect::Classic, base, secret, demo: false };
        let listed = self.inner.wire.list_models(&target, None).await.map_err(upstream_problem)?;
        Ok(listed.into_iter().filter_map(ModelSpec::from_listed).collect())
    }

    /// Makes one tiny real call, charged to `payer` like every call, and returns what came back, or the vendor's
    /// own error.
    ///
    /// # Errors
    /// `PROVIDER_UNKNOWN`, `CREDENTIAL_NOT_FOUND`, `CHAT_MODEL_UNKNOWN`, `CREDENTIAL_ENV_MISSING`,
    /// `BUDGET_EXCEEDED`: what prevents a call. What the provider refuses stands in the outcome.
    pub async fn test_provider(
        &self,
        org: OrgId,
        payer: &Actor,
        slug: &str,
        model: Option<&str>,
        credential: Option<CredentialId>,
    ) -> Result<TestOutcome, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.load(&mut conn, org).await?;
        let Some(one) = loaded.into_iter().find(|one| one.provider.slug == slug) else {
            let shipped = catalog::shipped_provider(slug).is_some();
            return Err(if shipped { no_credential() } else { provider_unknown() });
        };
        let named = match credential {
            Some(id) => {
                Some(one.credentials.iter().find(|held| held.id == id && held.enabled).ok_or_else(no_credential)?)
            }
            None => None,
        };
        let allowed = |spec: &&ModelSpec| named.is_none_or(|credential| credential.allows(&spec.id));
        let spec = match model {
            Some(id) => one.models.iter().find(|spec| spec.id == id).cloned().unwrap_or_else(|| ModelSpec::unknown(id)),
            None => {
                let chat = one.models.iter().filter(allowed).find(|spec| spec.serves(Purpose::Chat));
                chat.or_else(|| one.models.iter().find(allowed)).cloned().ok_or_else(|| {
                    Problem::new(
                        Code::ChatModelUnknown,
                        "The provider has no model to test. Enter a model id, or refresh the list of models.",
                    )
                })?
            }
        };
        let demo = one.provider.kind == ProviderKind::Demo;
        let credential =
            named.or_else(|| one.serving(&spec.id)).or_else(|| one.credentials.iter().find(|held| held.enabled));
        if credential.is_none() && !demo {
            return Err(no_credential());
        }
        let target = self.target(&mut conn, org, &one.provider, credential).await?;
        drop(conn);
        let facts = facts_of(&one.provider, &spec);
        if spec.serves(Purpose::Transcription) && !spec.serves(Purpose::Chat) {
            let why = "A transcription model is tried by attaching a recording to a chat.";
            let result = Err(ModelError::new(ModelErrorCode::Generic, why));
            return Ok(TestOutcome { model: spec.id, latency: Duration::ZERO, result });
        }
        let chat = spec.serves(Purpose::Chat);
        let price = Price::of(spec.pricing.as_ref());
        let output = if chat { u64::from(TEST_TOKENS) } else { 0 };
        let charge = Charge::of(org, payer, source::PROVIDER_TEST, slug, &spec.id);
        let hold = self.inner.ledger.hold(&charge, price.whole(TEST_PROMPT_TOKENS, output, 1)).await?;
        hold.progress(price.consumption(TEST_PROMPT_TOKENS, 0, 0), 0);
        let started = Instant::now();
        let call = async {
            if chat {
                self.test_chat(&target, &facts).await
            } else {
                self.test_embedding(&target, &spec, &facts.extra_body).await
            }
        };
        let tested = tokio::time::timeout(TEST_TIMEOUT, call).await.unwrap_or_else(|_| {
            let why = format!("The provider did not answer within {} seconds.", TEST_TIMEOUT.as_secs());
            Err(ModelError::new(ModelErrorCode::ProviderError, why))
        });
        let latency = started.elapsed();
        let outcome = match &tested {
            Ok((reply, Some((input, output)))) if *input > 0 && (*output > 0 || !chat || reply.is_empty()) => {
                Outcome::Known(price.consumption(*input, 0, *output))
            }
            Err(error) if error.before_work() => Outcome::Released,
            Ok((reply, _)) => {
                // What the provider does not count is estimated.
                let reply = if chat { reply.len().div_ceil(BYTES_OF_A_TOKEN) as u64 } else { 0 };
                Outcome::Floor(price.consumption(TEST_PROMPT_TOKENS, 0, reply))
            }
            Err(_) => Outcome::Floor(price.consumption(TEST_PROMPT_TOKENS, 0, 0)),
        };
        self.inner.ledger.settle(hold, outcome).await;
        let result = tested.map(|(reply, _)| reply);
        Ok(TestOutcome { model: spec.id, latency, result })
    }

    async fn test_chat(&self, target: &Target, facts: &ModelFacts) -> Result<Tested, ModelError> {
        let request = ChatRequest {
            messages: vec![ChatMessage::user("Reply with the single word OK.")],
            max_output_tokens: Some(TEST_TOKENS),
            ..ChatRequest::default()
        };
        let mut stream = self.inner.wire.chat(target, facts, &request, CancellationToken::new()).await?;
        let (mut reply, mut used) = (String::new(), None);
        while let Some(event) = stream.next().await {
            match event? {
                StreamEvent::Text(text) => reply.push_str(&text),
                StreamEvent::Usage(usage) => used = Some((usage.input_tokens, usage.output_tokens)),
                _ => {}
            }
        }
        Ok((reply.trim().chars().take(TEST_REPLY_CHARS).collect(), used))
    }

    async fn test_embedding(&self, target: &Target, spec: &ModelSpec, extra: &ExtraBody) -> Result<Tested, ModelError> {
        let dimensions = spec.dimensions.filter(|_| spec.shortens);
        match self.inner.wire.embed(target, &spec.id, &["OK"], dimensions, extra).await {
            Ok(answer) => {
                let reply = format!("{} dimensions", answer.vectors.first().map_or(0, Vec::len));
                Ok((reply, answer.tokens.map(|tokens| (tokens, 0))))
            }
            Err(EmbeddingRefusal::Failed(error)) => Err(error),
            Err(EmbeddingRefusal::TooManyTexts(_)) => {
                Err(ModelError::new(ModelErrorCode::Generic, "The provider takes no text at all."))
            }
        }
    }
}

fn no_credential() -> Problem {
    Problem::new(
        Code::CredentialNotFound,
        "The provider has no enabled credential with this id. Add or enable one first.",
    )
}

pub(crate) fn upstream_problem(error: ModelError) -> Problem {
    Problem::new(Code::ProviderUpstreamError, error.message.clone())
        .with_data(json!({ "code": error.code.text(), "status": error.status }))
}
