//! The organization's embedding model: the setting (spec 60, 7.1) and the vectors it makes.
//!
//! Indexing and searching share the wire but not the waiting: a rate limit pauses all indexing
//! with the model (IDX-9) and holds no search back. How many texts a provider takes per request is
//! learned from its refusal (IDX-10) and kept in memory for the life of the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::{Code, Issue, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_governance::budgets::Refusal;
use tokio::time::Instant;

use crate::available::embeds;
use crate::definition::{
    CatalogSource, EmbeddingSupport, MAX_DIMENSIONS, ModelSpec, ProviderKind, Purpose, check_model_id,
};
use crate::extra_body::ExtraBody;
use crate::ledger::{Charge, HoldError, Outcome, Price, source};
use crate::wire::{EmbeddingRefusal, ModelError, ModelErrorCode, Target};
use crate::{Models, changed, store};

/// Most texts of one request, before a provider's own cap is known.
const MAX_TEXTS: usize = 64;
/// Most characters of one request.
const MAX_CHARS: usize = 200_000;
/// How often a rate limit is waited out while indexing (IDX-9).
const MAX_PAUSES: u32 = 6;
/// Longest single wait for a rate limit.
const MAX_PAUSE: Duration = Duration::from_secs(120);
/// Wait for a rate limit that names none, doubled with each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// What a search caller is told to wait when the provider names nothing.
const DEFAULT_RETRY: Duration = Duration::from_secs(10);
/// Providers and models whose caps and pauses are remembered.
const MAX_REMEMBERED: usize = 1_024;

/// The embedding model of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// The provider.
    pub provider_slug: String,
    /// The provider's name of the model.
    pub model: String,
    /// The width of its vectors.
    pub dimensions: u32,
}

/// What vectors are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// Indexing: a rate limit is waited out.
    Index,
    /// Searching: somebody waits, so a rate limit is reported at once.
    Search,
}

/// A provider that can make vectors, and the models it is known to have.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingCandidate {
    /// The provider.
    pub provider_slug: String,
    /// Its label.
    pub display_name: String,
    /// Its embedding models with their widths, as far as known.
    pub models: Vec<(String, Option<u32>)>,
}

/// Who must hear that the embedding model changed.
#[async_trait]
pub trait EmbeddingChanged: Send + Sync {
    /// Runs in the transaction of the change; what it writes commits with the setting, and a
    /// [`Problem`] takes the whole change back. `config` is what is set now, `None` after removal.
    /// Returns how many documents were queued again (IDX-15).
    async fn embedding_changed(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        config: Option<&EmbeddingConfig>,
    ) -> Result<u64, Problem>;
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The organization has no embedding model.
    #[error("no embedding model is set")]
    NotConfigured,
    /// The provider refuses the account: balance, plan, billing. No retry.
    #[error("the embedding provider refuses the account: {0}")]
    CreditExhausted(String),
    /// The key is rejected, missing or disabled. No retry.
    #[error("the embedding credential is not usable: {0}")]
    CredentialRejected(String),
    /// The vectors have another width than the setting says. No retry.
    #[error("the embedding model answered vectors of {received} numbers; {configured} are configured")]
    Width {
        /// The width of the setting.
        configured: u32,
        /// The width of the answer.
        received: usize,
    },
    /// The provider refuses the request itself (unknown model, text too long). No retry.
    #[error("the embedding provider refuses the request: {0}")]
    Refused(String),
    /// Outage or rate limit; trying again later helps.
    #[error("the embedding provider fails: {message}")]
    Upstream {
        /// The provider's words.
        message: String,
        /// How long to wait.
        retry_after: Duration,
    },
    /// A usage limit leaves no room for it, so the provider was not asked. Waiting helps.
    #[error(transparent)]
    Limited(Box<Refusal>),
    /// The database.
    #[error("the embedding settings cannot be read")]
    Store(#[source] Problem),
}

impl EmbedError {
    /// Whether trying again later helps.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Upstream { .. } | Self::Limited(_) | Self::Store(_))
    }

    /// The code stored with a file that could not be embedded.
    #[must_use]
    pub fn indexing_code(&self) -> &'static str {
        match self {
            Self::NotConfigured => "embedding_not_configured",
            Self::CreditExhausted(_) | Self::CredentialRejected(_) | Self::Width { .. } | Self::Refused(_) => {
                "embedding_provider_refused"
            }
            Self::Limited(_) => "usage_limit",
            Self::Upstream { .. } | Self::Store(_) => "embedding_upstream",
        }
    }

    fn from_model(error: ModelError) -> Self {
        match error.code {
            ModelErrorCode::CreditExhausted | ModelErrorCode::ModelNotEntitled => Self::CreditExhausted(error.message),
            ModelErrorCode::AuthError | ModelErrorCode::MissingApiKey => Self::CredentialRejected(error.message),
            ModelErrorCode::RateLimited | ModelErrorCode::ProviderError | ModelErrorCode::ProviderUnreachable => {
                Self::Upstream { message: error.message, retry_after: error.retry_after.unwrap_or(DEFAULT_RETRY) }
            }
            _ => Self::Refused(error.message),
        }
    }
}

impl From<EmbedError> for Problem {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::NotConfigured => {
                Self::new(Code::EmbeddingNotConfigured, "The organization has no embedding model. An administrator can choose one in the settings.")
            }
            EmbedError::CreditExhausted(message) => Self::new(
                Code::EmbeddingCreditExhausted,
                format!("The account at the embedding provider has no credit or its plan does not include the model: {message}"),
            ),
            EmbedError::CredentialRejected(message) => {
                Self::new(Code::EmbeddingCredentialRejected, format!("The credential of the embedding model is not usable: {message}"))
            }
            EmbedError::Width { configured, received } => Self::new(
                Code::EmbeddingWidthConflict,
                format!("The embedding model answers vectors of {received} numbers, but {configured} are configured. Set the embedding model again with the width {received}."),
            )
            .with_data(json!({ "configured": configured, "received": received })),
            EmbedError::Refused(message) => Self::new(Code::EmbeddingUpstreamError, format!("The embedding provider refuses the request: {message}")),
            EmbedError::Upstream { message, retry_after } => {
                Self::new(Code::EmbeddingUpstreamError, format!("The embedding provider cannot answer right now: {message}")).retry_after(retry_after)
            }
            EmbedError::Limited(refusal) => (*refusal).into(),
            EmbedError::Store(problem) => problem,
        }
    }
}

/// What is remembered about providers between calls.
#[derive(Debug, Default)]
pub(crate) struct State {
    learned: Mutex<HashMap<(String, String), Learned>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Learned {
    cap: Option<usize>,
    paused_until: Option<Instant>,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Learned>> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &(String, String)) -> Learned {
        self.lock().get(key).copied().unwrap_or_default()
    }

    fn change(&self, key: &(String, String), change: impl FnOnce(&mut Learned)) {
        let mut learned = self.lock();
        if learned.len() >= MAX_REMEMBERED && !learned.contains_key(key) {
            learned.clear();
        }
        change(learned.entry(key.clone()).or_default());
    }
}

impl Models {
    /// The organization's embedding model.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn embedding(&self, org: OrgId) -> Result<Option<EmbeddingConfig>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        Ok(store::embedding::get(&mut conn, org).await?)
    }

    /// Providers that could make vectors: they have an enabled credential and may offer embeddings.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn embedding_candidates(&self, org: OrgId) -> Result<Vec<EmbeddingCandidate>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.load(&mut conn, org).await?;
        Ok(loaded
            .into_iter()
            .filter(|one| {
                one.provider.embedding != EmbeddingSupport::Unsupported
                    && embeds(one.provider.api_format)
                    && one.credentials.iter().any(|held| held.enabled)
            })
            .map(|one| EmbeddingCandidate {
                models: one
                    .models
                    .iter()
                    .filter(|model| model.serves(Purpose::Embedding))
                    .map(|model| (model.id.clone(), model.dimensions))
                    .collect(),
                provider_slug: one.provider.slug,
                display_name: one.provider.display_name,
            })
            .collect())
    }

    /// Sets the embedding model and returns how many documents were queued again (EMB-1…EMB-4).
    ///
    /// # Errors
    /// `INVALID_BODY`, `PROVIDER_UNKNOWN`, `EMBEDDING_PROVIDER_UNSUPPORTED` (no embeddings, or no
    /// enabled credential), and whatever the listener refuses with, such as
    /// `EMBEDDING_WIDTH_CONFLICT` (EMB-3).
    pub async fn set_embedding(&self, org: OrgId, actor: &Actor, config: EmbeddingConfig) -> Result<u64, Problem> {
        let mut issues = Vec::new();
        if let Err(why) = check_model_id(&config.model) {
            issues.push(Issue::new("model", why));
        }
        if !(1..=MAX_DIMENSIONS).contains(&config.dimensions) {
            issues.push(Issue::new("dimensions", format!("must be from 1 to {MAX_DIMENSIONS}")));
        }
        if !issues.is_empty() {
            return Err(Problem::invalid_body(issues));
        }
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        self.check_embedding(&mut tx, org, &config).await?;
        let before = store::embedding::get(&mut tx, org).await?;
        store::embedding::set(&mut tx, org, &config, self.inner.clock.now()).await?;
        let details = json!({ "before": before.as_ref().map(described), "after": described(&config) });
        let requeued = self.embedding_has_changed(&mut tx, org, actor, "embedding.set", Some(&config), details).await?;
        tx.commit().await?;
        Ok(requeued)
    }

    /// Removes the embedding model; indexing and search go on with keywords alone (EMB-6).
    ///
    /// # Errors
    /// `EMBEDDING_NOT_CONFIGURED` when none is set.
    pub async fn clear_embedding(&self, org: OrgId, actor: &Actor) -> Result<(), Problem> {
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        let before = store::embedding::get(&mut tx, org).await?;
        if !store::embedding::clear(&mut tx, org).await? {
            return Err(EmbedError::NotConfigured.into());
        }
        let details = json!({ "before": before.as_ref().map(described), "after": null });
        self.embedding_has_changed(&mut tx, org, actor, "embedding.clear", None, details).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn embedding_has_changed(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        action: &'static str,
        config: Option<&EmbeddingConfig>,
        details: serde_json::Value,
    ) -> Result<u64, Problem> {
        changed(conn, &self.inner.clock, org, actor, action, ("embedding", org.to_string()), details).await?;
        hints::notify(conn, &Hint::new(org, Topic::Embedding)).await?;
        match self.inner.embedding_changed.get() {
            Some(listener) => listener.embedding_changed(conn, org, config).await,
            None => Ok(0),
        }
    }

    /// EMB-1 and EMB-2.
    async fn check_embedding(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        config: &EmbeddingConfig,
    ) -> Result<(), Problem> {
        let provider = self.provider_in(conn, org, &config.provider_slug).await?;
        let unsupported = |why: String| Problem::new(Code::EmbeddingProviderUnsupported, why);
        let name = &provider.display_name;
        if provider.embedding == EmbeddingSupport::Unsupported
            || provider.kind == ProviderKind::Demo
            || !embeds(provider.api_format)
        {
            return Err(unsupported(format!("{name} offers no embeddings. Choose another provider.")));
        }
        if provider.catalog_source == CatalogSource::Static
            && !provider.models.iter().any(|model| model.id == config.model && model.serves(Purpose::Embedding))
        {
            return Err(unsupported(format!("{name} does not list this embedding model. Choose one of its list.")));
        }
        let credentials = store::credentials::list(conn, org).await?;
        if !credentials
            .iter()
            .any(|held| held.provider_slug == provider.slug && held.enabled && held.allows(&config.model))
        {
            return Err(unsupported(format!(
                "{name} has no enabled credential that may use this model. Add one first."
            )));
        }
        Ok(())
    }

    /// The vectors of `texts`, in their order, at the expense of `payer`. Each request is held and booked
    /// by itself.
    ///
    /// # Errors
    /// [`EmbedError`]; for [`EmbedPurpose::Index`] a rate limit has been waited out six times
    /// before it is reported.
    pub async fn embed(
        &self,
        org: OrgId,
        payer: &Actor,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let EmbeddingTarget { config, target, send_width, extra, price } = self.embedding_target(org).await?;
        let charge = Charge::of(org, payer, source::KNOWLEDGE, &config.provider_slug, &config.model);
        let key = (target.base.to_string(), config.model.clone());
        let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
        let mut pauses = 0;
        while vectors.len() < texts.len() {
            let learned = self.inner.embedding_state.get(&key);
            if let Some(until) = learned.paused_until.filter(|_| purpose == EmbedPurpose::Index) {
                tokio::time::sleep_until(until).await;
            }
            let batch = batch_of(&texts[vectors.len()..], learned.cap.unwrap_or(MAX_TEXTS));
            let estimate = estimated_tokens(&batch);
            let hold = self.inner.ledger.hold(&charge, price.whole(estimate, 0, 1)).await?;
            hold.progress(price.consumption(estimate, 0, 0), 0);
            let answered = self.inner.wire.embed(&target, &config.model, &batch, send_width, &extra).await;
            let outcome = match &answered {
                Ok(answer) => match answer.tokens {
                    Some(tokens) => Outcome::Known(price.consumption(tokens, 0, 0)),
                    None => Outcome::Floor(price.consumption(estimate, 0, 0)),
                },
                Err(EmbeddingRefusal::TooManyTexts(_)) => Outcome::Released,
                Err(EmbeddingRefusal::Failed(error)) if error.before_work() => Outcome::Released,
                Err(EmbeddingRefusal::Failed(_)) => Outcome::Floor(price.consumption(estimate, 0, 0)),
            };
            self.inner.ledger.settle(hold, outcome).await;
            match answered {
                Ok(answer) => {
                    if let Some(wrong) = answer.vectors.iter().find(|vector| vector.len() != config.dimensions as usize)
                    {
                        return Err(EmbedError::Width { configured: config.dimensions, received: wrong.len() });
                    }
                    vectors.extend(answer.vectors);
                    pauses = 0;
                }
                Err(EmbeddingRefusal::TooManyTexts(cap)) => {
                    let cap = cap.unwrap_or(batch.len() / 2).clamp(1, batch.len() - 1);
                    tracing::info!(
                        provider = config.provider_slug,
                        model = config.model,
                        cap,
                        "the embedding provider takes fewer texts per request"
                    );
                    self.inner.embedding_state.change(&key, |learned| learned.cap = Some(cap));
                }
                Err(EmbeddingRefusal::Failed(error)) => {
                    let may_wait = error.code == ModelErrorCode::RateLimited
                        && purpose == EmbedPurpose::Index
                        && pauses < MAX_PAUSES;
                    if !may_wait {
                        return Err(EmbedError::from_model(error));
                    }
                    let pause = error.retry_after.unwrap_or(FIRST_PAUSE * 2_u32.pow(pauses)).min(MAX_PAUSE);
                    pauses += 1;
                    self.inner
                        .embedding_state
                        .change(&key, |learned| learned.paused_until = Some(Instant::now() + pause));
                }
            }
        }
        Ok(vectors)
    }

    /// The setting and how its model is called.
    async fn embedding_target(&self, org: OrgId) -> Result<EmbeddingTarget, EmbedError> {
        let store_error = |error: sqlx::Error| EmbedError::Store(error.into());
        let mut conn = self.inner.pool.acquire().await.map_err(store_error)?;
        let config =
            store::embedding::get(&mut conn, org).await.map_err(store_error)?.ok_or(EmbedError::NotConfigured)?;
        let provider = self.provider_in(&mut conn, org, &config.provider_slug).await.map_err(EmbedError::Store)?;
        let credentials = store::credentials::list(&mut conn, org).await.map_err(store_error)?;
        let credential = credentials
            .iter()
            .find(|held| held.provider_slug == config.provider_slug && held.enabled && held.allows(&config.model))
            .ok_or_else(|| {
                EmbedError::CredentialRejected(format!(
                    "{} has no enabled credential that may use {}.",
                    provider.display_name, config.model
                ))
            })?;
        let target =
            self.target(&mut conn, org, &provider, Some(credential)).await.map_err(|problem| match problem.code {
                Code::CredentialEnvMissing | Code::CredentialSecretInvalid | Code::ProviderUnknown => {
                    EmbedError::CredentialRejected(problem.message.into_owned())
                }
                _ => EmbedError::Store(problem),
            })?;
        let spec: Option<&ModelSpec> = provider.models.iter().find(|model| model.id == config.model);
        let send_width = spec.filter(|spec| spec.shortens).map(|_| config.dimensions);
        let extra = spec.map(|spec| spec.extra_body.over(&provider.extra_body)).unwrap_or(provider.extra_body.clone());
        let price = Price::of(spec.and_then(|spec| spec.pricing.as_ref()));
        Ok(EmbeddingTarget { config, target, send_width, extra, price })
    }
}

/// How the embedding model is called.
struct EmbeddingTarget {
    config: EmbeddingConfig,
    target: Target,
    /// The width to ask for, where the model makes shorter vectors.
    send_width: Option<u32>,
    extra: ExtraBody,
    price: Price,
}

/// Tokens of texts when nobody counted, rather too many.
fn estimated_tokens(texts: &[&str]) -> u64 {
    texts.iter().map(|text| text.len() as u64 / 3 + 4).sum()
}

impl From<HoldError> for EmbedError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Exceeded(refusal) => Self::Limited(refusal),
            error => Self::Store(error.into()),
        }
    }
}

fn described(config: &EmbeddingConfig) -> serde_json::Value {
    json!({ "providerSlug": config.provider_slug, "model": config.model, "dimensions": config.dimensions })
}

/// The next texts of one request: at most `cap`, and no more characters than fit (always one).
fn batch_of(texts: &[String], cap: usize) -> Vec<&str> {
    let mut chars = 0;
    texts
        .iter()
        .take(cap.min(MAX_TEXTS))
        .enumerate()
        .take_while(|(at, text)| {
            chars += text.len();
            *at == 0 || chars <= MAX_CHARS
        })
        // Providers refuse an empty text.
        .map(|(_, text)| if text.trim().is_empty() { "." } else { text.as_str() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_at_most_its_cap_and_its_characters() {
        let texts: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(batch_of(&texts, MAX_TEXTS).len(), 64);
        assert_eq!(batch_of(&texts, 10).len(), 10);
        let long = vec!["x".repeat(150_000), "y".repeat(150_000)];
        assert_eq!(batch_of(&long, 64).len(), 1);
        assert_eq!(batch_of(&["z".repeat(MAX_CHARS + 1)], 64).len(), 1);
        assert_eq!(batch_of(&[String::new()], 64), ["."]);
    }

    #[test]
    fn errors_say_whether_waiting_helps() {
        let class = |code| EmbedError::from_model(ModelError::new(code, "x"));
        assert_eq!(Problem::from(class(ModelErrorCode::CreditExhausted)).code, Code::EmbeddingCreditExhausted);
        assert_eq!(Problem::from(class(ModelErrorCode::AuthError)).code, Code::EmbeddingCredentialRejected);
        let upstream = Problem::from(class(ModelErrorCode::ProviderError));
        assert_eq!(upstream.code, Code::EmbeddingUpstreamError);
        assert!(upstream.retry_after.is_some());
        assert!(Problem::from(class(ModelErrorCode::CreditExhausted)).retry_after.is_none());
        assert_eq!(EmbedError::Width { configured: 8, received: 4 }.indexing_code(), "embedding_provider_refused");
    }
}
