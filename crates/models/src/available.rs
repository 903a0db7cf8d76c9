//! Which chat models an organization can use now, and how one is called.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgConnection;
use tale_core::ids::{CredentialId, OrgId};
use tale_core::problem::{Code, Problem};
use tale_governance::policies::{ModelRules, Person};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::auto::{self, AutoInput, NoPick};
use crate::credentials::{AuthMethod, Credential, allowlist_is_the_list, secret_context};
use crate::definition::{Capabilities, ModelSpec, Pricing, Provider, ProviderKind, Purpose, Tier};
use crate::secret::env_key;
use crate::wire::{ApiFormat, ChatRequest, ModelError, ModelFacts, Relayed, StreamEvent, Target, ToolApi};
use crate::{Models, catalog, store};

/// Live lists held in memory, at most.
const MAX_CACHED_CATALOGS: usize = 256;

/// A live list as last read from the database.
pub(crate) struct CachedCatalog {
    revision: i64,
    models: Arc<Vec<ModelSpec>>,
}

/// Encrypted keys held in memory, at most.
const MAX_CACHED_KEYS: usize = 1_024;

/// The encrypted key of one version of a credential.
pub(crate) struct SealedKey {
    version: i64,
    sealed: Arc<str>,
}

/// A chat model that can be used now.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEntry {
    /// The provider.
    pub provider_slug: String,
    /// The provider's label.
    pub provider_name: String,
    /// The provider's name of the model.
    pub id: String,
    /// A readable name.
    pub display_name: String,
    /// The context window in tokens.
    pub context_window: u32,
    /// The largest answer in tokens, when known.
    pub max_output_tokens: Option<u32>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Whether this is the demo model.
    pub demo: bool,
    /// Prices, where known.
    pub pricing: Option<Pricing>,
    /// Its class, where curated.
    pub tier: Option<Tier>,
    /// Words about it: `demo`, `fast`, `balanced`, `capable`.
    pub tags: Vec<&'static str>,
    /// Over which interface of the OpenAI format it is called.
    pub tool_api: ToolApi,
}

/// A model with everything that a call needs.
#[derive(Debug, Clone)]
pub struct ResolvedModel {
    /// The provider.
    pub provider_slug: String,
    /// The provider's label.
    pub provider_name: String,
    /// Where the provider's definition comes from.
    pub provider_kind: ProviderKind,
    /// The provider's name of the model.
    pub model_id: String,
    /// A readable name.
    pub display_name: String,
    /// The context window in tokens.
    pub context_window: u32,
    /// The largest answer in tokens, when known.
    pub max_output_tokens: Option<u32>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Prices, where known.
    pub pricing: Option<Pricing>,
    /// Whether this is the demo model.
    pub demo: bool,
    /// The credential in use; none for the demo model.
    pub credential: Option<CredentialId>,
    /// Wire format, address and key.
    pub target: Target,
    /// What the wire must know.
    pub facts: ModelFacts,
}

/// A provider with what decides about its availability.
pub(crate) struct Loaded {
    pub(crate) provider: Provider,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) models: Arc<Vec<ModelSpec>>,
}

impl Loaded {
    /// The credential that serves `model`: the default one when it may, else the first enabled one
    /// that may (MOD-26, MOD-54).
    pub(crate) fn serving(&self, model: &str) -> Option<&Credential> {
        // `credentials` is ordered with the default first.
        self.credentials.iter().find(|credential| {
            credential.enabled
                && credential.allows(model)
                && (!allowlist_is_the_list(&self.provider) || !credential.model_allowlist.is_empty())
        })
    }
}

fn unknown() -> Problem {
    Problem::new(
        Code::ChatModelUnknown,
        "This model is not available in this organization. Choose a model from the list.",
    )
}

fn forbidden(model: &str) -> Problem {
    Problem::new(
        Code::ChatModelForbidden,
        format!("The policy `model_access` of your organization does not let you use {model}. Choose another model from the list."),
    )
    .with_data(json!({ "policy": "model_access", "model": model }))
}

impl Models {
    /// The rules about models as they are for `who` now; every use of a model asks for them anew (MOD-56).
    ///
    /// # Errors
    /// `POLICY_UNREADABLE`, or when the database cannot be read.
    pub async fn rules(&self, org: OrgId, who: Person) -> Result<ModelRules, Problem> {
        self.inner.policies.model_rules(org, who).await
    }

    /// The chat models that can be used under `rules` now (CHT-32, MOD-53): those that an enabled
    /// credential serves, grouped by provider. The demo model is among them while it runs.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn chat_models(&self, org: OrgId, rules: &ModelRules) -> Result<Vec<ModelEntry>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.load(&mut conn, org).await?;
        Ok(self.permitted(&loaded, rules))
    }

    fn permitted(&self, loaded: &[Loaded], rules: &ModelRules) -> Vec<ModelEntry> {
        let entries = loaded.iter().flat_map(|one| self.entries_of(one));
        entries.filter(|entry| rules.permits(&entry.provider_slug, &entry.id)).collect()
    }

    /// The chat models that can be called now.
    fn usable_models<'a>(&'a self, one: &'a Loaded) -> impl Iterator<Item = &'a ModelSpec> + 'a {
        let demo = one.provider.kind == ProviderKind::Demo;
        one.models.iter().filter(move |model| {
            model.serves(Purpose::Chat) && if demo { self.demo_available() } else { one.serving(&model.id).is_some() }
        })
    }

    fn entries_of<'a>(&'a self, one: &'a Loaded) -> impl Iterator<Item = ModelEntry> + 'a {
        let demo = one.provider.kind == ProviderKind::Demo;
        self.usable_models(one).map(move |model| ModelEntry {
            provider_slug: one.provider.slug.clone(),
            provider_name: one.provider.display_name.clone(),
            id: model.id.clone(),
            display_name: model.name().to_owned(),
            context_window: model.context_window,
            max_output_tokens: model.max_output_tokens,
            capabilities: model.offered(),
            demo,
            pricing: model.pricing,
            tier: model.tier,
            tags: demo.then_some("demo").into_iter().chain(model.tier.map(Tier::text)).collect(),
            tool_api: model.tool_api,
        })
    }

    /// Turns a model's id, and the provider's slug when given, into something that can be called.
    ///
    /// # Errors
    /// `CHAT_PROVIDER_UNKNOWN`, `CHAT_MODEL_NOT_ON_PROVIDER`, `CHAT_MODEL_UNKNOWN`,
    /// `CHAT_MODEL_AMBIGUOUS` with `data.providers`, `CHAT_MODEL_FORBIDDEN` naming the policy,
    /// `CREDENTIAL_ENV_MISSING`.
    pub async fn resolve_chat(
        &self,
        org: OrgId,
        rules: &ModelRules,
        model: &str,
        provider: Option<&str>,
    ) -> Result<ResolvedModel, Problem> {
        let Some(slug) = provider else {
            let loaded = self.load_at_once(org).await?;
            let serves = |one: &&Loaded| self.usable_models(one).any(|spec| spec.id == model);
            let serving: Vec<&Loaded> = loaded.iter().filter(serves).collect();
            let permitted: Vec<&Loaded> =
                serving.iter().filter(|one| rules.permits(&one.provider.slug, model)).copied().collect();
            return match permitted.as_slice() {
                [one] => self.resolved(org, one, model).await,
                [] if serving.is_empty() => Err(unknown()),
                [] => Err(forbidden(model)),
                several => {
                    let slugs: Vec<&str> = several.iter().map(|one| one.provider.slug.as_str()).collect();
                    Err(Problem::new(
                        Code::ChatModelAmbiguous,
                        "Several providers offer this model. Name the provider, too.",
                    )
                    .with_data(json!({ "providers": slugs })))
                }
            };
        };
        let one = self.provider_now(org, slug).await?;
        let one = one.filter(|one| self.usable_models(one).next().is_some()).ok_or_else(|| {
            Problem::new(
                Code::ChatProviderUnknown,
                "This provider is not available for chat in this organization. Choose a model from the list.",
            )
        })?;
        if !self.usable_models(&one).any(|spec| spec.id == model) {
            return Err(Problem::new(
                Code::ChatModelNotOnProvider,
                format!("{} does not offer this model here. Choose a model from the list.", one.provider.display_name),
            ));
        }
        if !rules.permits(slug, model) {
            return Err(forbidden(model));
        }
        self.resolved(org, &one, model).await
    }

    /// The model for a message whose sender picked none (CHT-36, MOD-59), ready to be called: the first
    /// default of the person that can be used, else what the heuristic picks among the permitted ones.
    ///
    /// # Errors
    /// `CHAT_MODEL_UNKNOWN` when there is none at all, `CHAT_MODEL_FORBIDDEN` when none is permitted,
    /// `CHAT_MODEL_NO_VISION` when images are attached and none reads them, `CREDENTIAL_ENV_MISSING`.
    pub async fn resolve_auto(
        &self,
        org: OrgId,
        rules: &ModelRules,
        input: &AutoInput,
    ) -> Result<ResolvedModel, Problem> {
        let loaded = self.load_at_once(org).await?;
        let entries = self.permitted(&loaded, rules);
        if entries.is_empty() && loaded.iter().any(|one| self.usable_models(one).next().is_some()) {
            return Err(Problem::new(
                Code::ChatModelForbidden,
                "The policy `model_access` of your organization leaves you no model. Ask an administrator to permit one.",
            )
            .with_data(json!({ "policy": "model_access" })));
        }
        let fits = |entry: &&ModelEntry| !input.has_images || entry.capabilities.vision;
        let mut defaults = rules.defaults().filter_map(|(provider, model)| {
            entries.iter().filter(fits).find(|entry| entry.provider_slug == provider && entry.id == model)
        });
        let pick = match defaults.next() {
            Some(entry) => Ok(entry),
            None => auto::pick(&entries, input),
        };
        let pick = pick.map_err(|reason| match reason {
            NoPick::NoVision => Problem::new(
                Code::ChatModelNoVision,
                "None of the models can see images. Remove the image, or add a model that can.",
            ),
            NoPick::NoModel => Problem::new(
                Code::ChatModelUnknown,
                "No AI provider is connected yet. Ask an administrator to add one under Settings > AI providers.",
            ),
        })?;
        let one = loaded.iter().find(|one| one.provider.slug == pick.provider_slug).ok_or_else(unknown)?;
        self.resolved(org, one, &pick.id).await
    }

    async fn resolved(&self, org: OrgId, one: &Loaded, model: &str) -> Result<ResolvedModel, Problem> {
        self.resolved_by(org, one, model, one.serving(model)).await
    }

    /// The model with the credential that calls it.
    pub(crate) async fn resolved_by(
        &self,
        org: OrgId,
        one: &Loaded,
        model: &str,
        credential: Option<&Credential>,
    ) -> Result<ResolvedModel, Problem> {
        let spec = one.models.iter().find(|spec| spec.id == model).ok_or_else(unknown)?;
        let target = match self.target_at_hand(&one.provider, credential)? {
            Some(target) => target,
            None => {
                let mut conn = self.inner.pool.acquire().await?;
                self.target(&mut conn, org, &one.provider, credential).await?
            }
        };
        Ok(ResolvedModel {
            provider_slug: one.provider.slug.clone(),
            provider_name: one.provider.display_name.clone(),
            provider_kind: one.provider.kind,
            model_id: spec.id.clone(),
            display_name: spec.name().to_owned(),
            context_window: spec.context_window,
            max_output_tokens: spec.max_output_tokens,
            capabilities: spec.offered(),
            pricing: spec.pricing,
            demo: one.provider.kind == ProviderKind::Demo,
            credential: credential.map(|credential| credential.id),
            target,
            facts: facts_of(&one.provider, spec),
        })
    }

    /// Starts an answer. See [`crate::wire::WireClient::chat`].
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached.
    pub async fn stream(
        &self,
        model: &ResolvedModel,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> Result<BoxStream<'static, Result<StreamEvent, ModelError>>, ModelError> {
        self.inner.wire.chat(&model.target, &model.facts, &request, cancel).await
    }

    /// Calls `model` with a body in its own wire. See [`crate::wire::WireClient::relay`].
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached.
    pub async fn relay(
        &self,
        model: &ResolvedModel,
        body: Bytes,
        beta: Option<&str>,
        wait: Duration,
    ) -> Result<Relayed, ModelError> {
        self.inner.wire.relay(&model.target, model.facts.tool_api, body, beta, wait).await
    }

    /// Has `model`'s provider count the tokens of a prompt. See [`crate::wire::WireClient::count_tokens`].
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached.
    pub async fn count_tokens(
        &self,
        model: &ResolvedModel,
        body: Bytes,
        beta: Option<&str>,
    ) -> Result<Option<u64>, ModelError> {
        self.inner.wire.count_tokens(&model.target, body, beta).await
    }

    /// Everything that decides about availability: custom providers first (the demo before the
    /// others), then the shipped ones that have a credential.
    pub(crate) async fn load(&self, conn: &mut PgConnection, org: OrgId) -> Result<Vec<Loaded>, Problem> {
        let credentials = store::credentials::list(conn, org).await?;
        let own = store::providers::list(conn, org).await?;
        Ok(self.assemble(conn, org, credentials, own).await?)
    }

    /// [`Models::load`] with both reads at once, on two connections, because they precede the first token.
    pub(crate) async fn load_at_once(&self, org: OrgId) -> Result<Vec<Loaded>, Problem> {
        let (credentials, own) = tokio::try_join!(self.credentials_of(org), self.providers_of(org))?;
        let mut conn = self.inner.pool.acquire().await?;
        Ok(self.assemble(&mut conn, org, credentials, own).await?)
    }

    /// One provider with what decides about its availability, as it is now or was a moment ago.
    pub(crate) async fn provider_now(&self, org: OrgId, slug: &str) -> Result<Option<Arc<Loaded>>, Problem> {
        let now = self.inner.clock.now();
        if let Some(held) = self.inner.recent.get(org, slug, now) {
            return Ok(Some(held));
        }
        let ticket = self.inner.recent.ticket(now);
        let (credentials, own) = tokio::try_join!(
            async { store::credentials::of_provider(&mut *self.inner.pool.acquire().await?, org, slug).await },
            async { store::providers::get(&mut *self.inner.pool.acquire().await?, org, slug).await },
        )?;
        let mut conn = self.inner.pool.acquire().await?;
        let loaded = self.assemble(&mut conn, org, credentials, own.into_iter().collect()).await?;
        let Some(loaded) = loaded.into_iter().next().map(Arc::new) else { return Ok(None) };
        self.inner.recent.put(org, ticket, loaded.clone());
        Ok(Some(loaded))
    }

    async fn credentials_of(&self, org: OrgId) -> Result<Vec<Credential>, sqlx::Error> {
        store::credentials::list(&mut *self.inner.pool.acquire().await?, org).await
    }

    async fn providers_of(&self, org: OrgId) -> Result<Vec<Provider>, sqlx::Error> {
        store::providers::list(&mut *self.inner.pool.acquire().await?, org).await
    }

    async fn assemble(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        credentials: Vec<Credential>,
        own: Vec<Provider>,
    ) -> Result<Vec<Loaded>, sqlx::Error> {
        let shipped = catalog::shipped()
            .iter()
            .filter(|provider| credentials.iter().any(|credential| credential.provider_slug == provider.slug));
        let providers: Vec<Provider> = own.into_iter().chain(shipped.cloned()).collect();
        let live = providers.iter().any(|provider| provider.catalog_source.is_live() && provider.models.is_empty());
        let states = if live { store::providers::catalogs(conn, org).await? } else { Vec::new() };
        let mut loaded = Vec::with_capacity(providers.len());
        for provider in providers {
            let credentials: Vec<Credential> =
                credentials.iter().filter(|credential| credential.provider_slug == provider.slug).cloned().collect();
            let state = states.iter().find(|state| state.slug == provider.slug);
            self.renew_in_background(org, &provider, &credentials, state);
            let revision = state.map(|state| state.revision);
            let models = self.models_of(conn, org, &provider, &credentials, revision).await?;
            loaded.push(Loaded { provider, credentials, models });
        }
        Ok(loaded)
    }

    /// The provider's models: those of its definition, else its live list, else its allowlists.
    async fn models_of(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        provider: &Provider,
        credentials: &[Credential],
        revision: Option<i64>,
    ) -> Result<Arc<Vec<ModelSpec>>, sqlx::Error> {
        if provider.unreadable.is_some() {
            return Ok(Arc::default());
        }
        if !provider.models.is_empty() {
            return Ok(Arc::new(provider.models.clone()));
        }
        if provider.catalog_source.is_live() {
            return match revision {
                Some(revision) => self.live_catalog(conn, org, &provider.slug, revision).await,
                None => Ok(Arc::default()),
            };
        }
        let mut ids: Vec<&str> = credentials
            .iter()
            .filter(|credential| credential.enabled)
            .flat_map(|credential| &credential.model_allowlist)
            .map(String::as_str)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(Arc::new(ids.into_iter().map(ModelSpec::unknown).collect()))
    }

    /// A live list holds hundreds of models, so it is read again only when it changed.
    async fn live_catalog(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
        revision: i64,
    ) -> Result<Arc<Vec<ModelSpec>>, sqlx::Error> {
        let key = (org, slug.to_owned());
        let held = self
            .inner
            .live_catalogs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .filter(|held| held.revision == revision)
            .map(|held| held.models.clone());
        if let Some(models) = held {
            return Ok(models);
        }
        let models = Arc::new(store::providers::catalog_models(conn, org, slug).await?);
        let mut cache = self.inner.live_catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_CATALOGS {
            cache.clear();
        }
        cache.insert(key, CachedCatalog { revision, models: models.clone() });
        Ok(models)
    }

    /// Address and key of a call through `credential`.
    pub(crate) async fn target(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        provider: &Provider,
        credential: Option<&Credential>,
    ) -> Result<Target, Problem> {
        let sealed = match credential.filter(|credential| credential.auth_method == AuthMethod::ApiKey) {
            Some(credential) => Some(self.sealed(conn, org, credential).await?),
            None => None,
        };
        self.target_with(provider, credential, sealed.as_deref())
    }

    /// The same without asking the database; `None` when its encrypted key is not held.
    fn target_at_hand(&self, provider: &Provider, credential: Option<&Credential>) -> Result<Option<Target>, Problem> {
        let sealed = match credential.filter(|credential| credential.auth_method == AuthMethod::ApiKey) {
            Some(credential) => match self.sealed_at_hand(credential) {
                Some(sealed) => Some(sealed),
                None => return Ok(None),
            },
            None => None,
        };
        self.target_with(provider, credential, sealed.as_deref()).map(Some)
    }

    fn target_with(
        &self,
        provider: &Provider,
        credential: Option<&Credential>,
        sealed: Option<&str>,
    ) -> Result<Target, Problem> {
        if let Some(reason) = &provider.unreadable {
            return Err(Problem::new(
                Code::ProviderUnknown,
                format!(
                    "The definition of {} cannot be read, so it is not called: {reason}. Whoever manages the providers mends its file or saves it anew under Settings > AI providers.",
                    provider.display_name
                ),
            ));
        }
        let demo = provider.kind == ProviderKind::Demo;
        let base = if demo {
            self.inner.wire.demo_base().cloned()
        } else {
            credential.and_then(|credential| credential.endpoint.clone()).or_else(|| provider.base_url.clone())
        };
        let base = base.ok_or_else(|| {
            Problem::new(
                Code::ProviderUnknown,
                format!("{} has no address. Edit its credential and enter the endpoint.", provider.display_name),
            )
        })?;
        let secret = match credential {
            Some(credential) => self.secret_of(credential, sealed, &base)?,
            None => None,
        };
        Ok(Target { format: provider.api_format, dialect: provider.wire_dialect, base, secret, demo })
    }

    /// The encrypted key of this version of a credential: read once, because a version never changes
    /// its key. What was removed or disabled is not asked for any more.
    async fn sealed(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        credential: &Credential,
    ) -> Result<Arc<str>, sqlx::Error> {
        if let Some(sealed) = self.sealed_at_hand(credential) {
            return Ok(sealed);
        }
        let Some((version, sealed)) = store::credentials::sealed_secret(conn, org, credential.id).await? else {
            return Ok(Arc::default());
        };
        let sealed: Arc<str> = sealed.unwrap_or_default().into();
        let mut cache = self.inner.sealed_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_KEYS {
            cache.clear();
        }
        cache.insert(credential.id, SealedKey { version, sealed: sealed.clone() });
        Ok(sealed)
    }

    fn sealed_at_hand(&self, credential: &Credential) -> Option<Arc<str>> {
        let cache = self.inner.sealed_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let held = cache.get(&credential.id).filter(|held| held.version == credential.version)?;
        Some(held.sealed.clone())
    }

    fn secret_of(
        &self,
        credential: &Credential,
        sealed: Option<&str>,
        base: &Url,
    ) -> Result<Option<SecretString>, Problem> {
        match credential.auth_method {
            AuthMethod::None => Ok(None),
            AuthMethod::Env => {
                let name = credential.secret_env.as_deref().unwrap_or_default();
                self.inner.key_hosts.check(name, base, self.inner.wire.policy())?;
                env_key(self.inner.env.as_ref(), name).map(Some).ok_or_else(|| {
                    Problem::new(
                        Code::CredentialEnvMissing,
                        format!("The environment variable {name} is not set in this process. Set it, restart Tale, and try again."),
                    )
                    .with_data(json!({ "variable": name }))
                })
            }
            AuthMethod::ApiKey => {
                let sealed = sealed.unwrap_or_default();
                let key = self.inner.cipher.open(&secret_context(credential.id), sealed).map_err(|error| {
                    Problem::new(
                        Code::CredentialSecretInvalid,
                        "The stored API key can no longer be decrypted, because ENCRYPTION_SECRET_HEX has changed. Enter the key again on the providers page.",
                    )
                    .because(error)
                })?;
                Ok(Some(SecretString::from(key)))
            }
        }
    }
}

impl Tier {
    /// The word shown as a tag.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Capable => "capable",
        }
    }
}

/// What the wire must know about a model.
pub(crate) fn facts_of(provider: &Provider, spec: &ModelSpec) -> ModelFacts {
    ModelFacts {
        id: spec.id.clone(),
        max_output_tokens: spec.max_output_tokens,
        reasoning: spec.capabilities.reasoning,
        thinking: spec.thinking,
        xhigh: spec.xhigh,
        tool_api: spec.tool_api,
        tools_require_no_reasoning: spec.tools_require_no_reasoning,
        extra_body: spec.extra_body.over(&provider.extra_body),
    }
}

/// Whether vectors can be asked for in this format.
pub(crate) fn embeds(format: ApiFormat) -> bool {
    format == ApiFormat::OpenAi
}
