//! Providers, models and credentials on the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tale_models::{AuthMethod, Capabilities, ExtraBody, ModelSpec, Models, ProviderKind, ProviderView, Purpose};
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};

use crate::wire::one_of;
use crate::wire::subscriptions::{Subscription, SubscriptionRuntime};

/// The wire format of an endpoint.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApiFormat {
    Openai,
    Anthropic,
}

impl From<ApiFormat> for tale_models::ApiFormat {
    fn from(format: ApiFormat) -> Self {
        match format {
            ApiFormat::Openai => Self::OpenAi,
            ApiFormat::Anthropic => Self::Anthropic,
        }
    }
}

impl From<tale_models::ApiFormat> for ApiFormat {
    fn from(format: tale_models::ApiFormat) -> Self {
        match format {
            tale_models::ApiFormat::OpenAi => Self::Openai,
            tale_models::ApiFormat::Anthropic => Self::Anthropic,
        }
    }
}

/// What a model is for.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelPurpose {
    Chat,
    Embedding,
    /// Text from recordings.
    Transcription,
}

/// What a chat model can do.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelCapabilities {
    /// It calls tools.
    #[schema(required)]
    pub(crate) tools: bool,
    /// It reads images.
    #[schema(required)]
    pub(crate) vision: bool,
    /// It has a reasoning knob.
    #[schema(required)]
    pub(crate) reasoning: bool,
}

/// US dollars per million tokens, and per minute of a recording. A missing price is unknown.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ModelPricing {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) output: Option<f64>,
    /// Input tokens read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) cached_input: Option<f64>,
    /// A minute of a recording that is transcribed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) per_minute: Option<f64>,
}

impl From<tale_models::Pricing> for ModelPricing {
    fn from(pricing: tale_models::Pricing) -> Self {
        Self {
            input: pricing.input,
            output: pricing.output,
            cached_input: pricing.cached_input,
            per_minute: pricing.per_minute,
        }
    }
}

/// A model of a provider.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Model {
    /// The provider's name of the model.
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) display_name: Option<String>,
    /// In tokens.
    pub(crate) context_window: u32,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) purposes: Vec<ModelPurpose>,
    #[serde(default)]
    pub(crate) capabilities: ModelCapabilities,
    /// Width of the vectors of an embedding model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) dimensions: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) pricing: Option<ModelPricing>,
    /// `responses` for a model that calls tools only through the Responses API (OpenAI format).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) tool_api: Option<ToolApi>,
    /// It takes tools only with reasoning off; chats then offer no effort levels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tools_require_no_reasoning: bool,
    /// Fields added to the body of its requests, over those of the provider. A field of the request
    /// itself is refused with `EXTRA_BODY_KEY_FORBIDDEN`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) extra_body: Map<String, Value>,
}

/// An interface of the OpenAI format other than chat completions.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolApi {
    Responses,
}

impl From<Model> for ModelSpec {
    fn from(model: Model) -> Self {
        Self {
            display_name: model.display_name,
            context_window: model.context_window,
            max_output_tokens: model.max_output_tokens,
            purposes: model
                .purposes
                .into_iter()
                .map(|purpose| match purpose {
                    ModelPurpose::Chat => Purpose::Chat,
                    ModelPurpose::Embedding => Purpose::Embedding,
                    ModelPurpose::Transcription => Purpose::Transcription,
                })
                .collect(),
            capabilities: Capabilities {
                tools: model.capabilities.tools,
                vision: model.capabilities.vision,
                reasoning: model.capabilities.reasoning,
            },
            dimensions: model.dimensions,
            pricing: model.pricing.map(|pricing| tale_models::Pricing {
                input: pricing.input,
                output: pricing.output,
                cached_input: pricing.cached_input,
                per_minute: pricing.per_minute,
            }),
            tool_api: match model.tool_api {
                Some(ToolApi::Responses) => tale_models::ToolApi::Responses,
                None => tale_models::ToolApi::ChatCompletions,
            },
            tools_require_no_reasoning: model.tools_require_no_reasoning,
            extra_body: ExtraBody::new(model.extra_body),
            ..Self::unknown(&model.id)
        }
    }
}

impl From<ModelSpec> for Model {
    fn from(spec: ModelSpec) -> Self {
        Self {
            id: spec.id,
            display_name: spec.display_name,
            context_window: spec.context_window,
            max_output_tokens: spec.max_output_tokens,
            purposes: spec
                .purposes
                .into_iter()
                .map(|purpose| match purpose {
                    Purpose::Chat => ModelPurpose::Chat,
                    Purpose::Embedding => ModelPurpose::Embedding,
                    Purpose::Transcription => ModelPurpose::Transcription,
                })
                .collect(),
            capabilities: ModelCapabilities {
                tools: spec.capabilities.tools,
                vision: spec.capabilities.vision,
                reasoning: spec.capabilities.reasoning,
            },
            dimensions: spec.dimensions,
            pricing: spec.pricing.map(ModelPricing::from),
            tool_api: (spec.tool_api == tale_models::ToolApi::Responses).then_some(ToolApi::Responses),
            tools_require_no_reasoning: spec.tools_require_no_reasoning,
            extra_body: spec.extra_body.fields(),
        }
    }
}

/// Where a key comes from.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CredentialMethod {
    /// A stored key.
    ApiKey,
    /// A variable of the process.
    Env,
}

/// An access to a provider, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credential {
    #[schema(format = Uuid)]
    pub(crate) id: String,
    /// Unique in the organization.
    pub(crate) name: String,
    pub(crate) auth_method: CredentialMethod,
    /// First four and last two characters of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) masked: Option<String>,
    /// The variable of an `env` credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) secret_env: Option<String>,
    /// That variable, while it is not set in the process that answers: calls fail until it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) unset_variable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) endpoint: Option<String>,
    /// Empty = every model.
    pub(crate) model_allowlist: Vec<String>,
    pub(crate) enabled: bool,
    /// Used when a caller names none.
    pub(crate) is_default: bool,
    pub(crate) version: i64,
    /// In epoch milliseconds.
    pub(crate) updated_at: i64,
}

impl Credential {
    /// An access without a key is no row of its own: the provider simply needs none.
    pub(crate) fn shown(credential: tale_models::Credential, models: &Models) -> Option<Self> {
        let auth_method = match credential.auth_method {
            AuthMethod::ApiKey => CredentialMethod::ApiKey,
            AuthMethod::Env => CredentialMethod::Env,
            AuthMethod::None => return None,
        };
        Some(Self {
            id: credential.id.to_string(),
            name: credential.name,
            auth_method,
            masked: credential.masked,
            unset_variable: models.unset_variable(credential.secret_env.as_deref()),
            secret_env: credential.secret_env,
            endpoint: credential.endpoint.map(|url| address(&url)),
            model_allowlist: credential.model_allowlist,
            enabled: credential.enabled,
            is_default: credential.is_default,
            version: credential.version,
            updated_at: credential.updated_at.timestamp_millis(),
        })
    }
}

fn address(url: &url::Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

fn kind_words() -> Object {
    one_of(&["shipped", "custom", "demo"])
}

fn source_words() -> Object {
    one_of(&["static", "openrouter-api", "models-endpoint", "none"])
}

fn support_words() -> Object {
    one_of(&["supported", "unsupported", "unknown"])
}

/// A provider with the organization's credentials.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Provider {
    pub(crate) slug: String,
    pub(crate) display_name: String,
    /// `shipped`, `custom` or `demo`.
    #[schema(schema_with = kind_words)]
    pub(crate) kind: &'static str,
    pub(crate) api_format: ApiFormat,
    /// `null` when each credential has its own address, and for the demo.
    #[schema(required)]
    pub(crate) base_url: Option<String>,
    /// `static`, `openrouter-api`, `models-endpoint` or `none`.
    #[schema(schema_with = source_words)]
    pub(crate) catalog_source: &'static str,
    /// `supported`, `unsupported` or `unknown`.
    #[schema(schema_with = support_words)]
    pub(crate) embedding: &'static str,
    pub(crate) version: i64,
    pub(crate) models: Vec<Model>,
    /// Fields added to the body of each request to the provider.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) credentials: Vec<Credential>,
    /// Subscriptions of the organization, which act in `subscriptionRuntime` alone.
    pub(crate) subscriptions: Vec<Subscription>,
    /// The agent runtime that uses the provider's subscriptions; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) subscription_runtime: Option<SubscriptionRuntime>,
    /// When the list of models was read from the provider, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) catalog_fetched_at: Option<i64>,
    /// Why the list could not be read the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) catalog_error: Option<String>,
    /// Why the definition's file cannot be used; until it is mended or saved over, no model of the provider is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) file_error: Option<String>,
}

impl Provider {
    /// A provider as this process sees it.
    pub(crate) fn shown(view: ProviderView, models: &Models) -> Self {
        let ProviderView { provider, credentials, subscriptions, catalog } = view;
        let (fetched_at, error) = catalog.map(|state| (state.fetched_at, state.error)).unwrap_or_default();
        Self {
            slug: provider.slug,
            display_name: provider.display_name,
            kind: provider.kind.text(),
            api_format: provider.api_format.into(),
            base_url: provider.base_url.filter(|_| provider.kind != ProviderKind::Demo).map(|url| address(&url)),
            catalog_source: provider.catalog_source.text(),
            embedding: provider.embedding.text(),
            version: provider.version,
            models: provider.models.into_iter().map(Model::from).collect(),
            extra_body: provider.extra_body.fields(),
            credentials: credentials.into_iter().filter_map(|one| Credential::shown(one, models)).collect(),
            subscriptions: subscriptions.into_iter().map(|one| Subscription::shown(one, models)).collect(),
            subscription_runtime: provider.subscription.map(SubscriptionRuntime::from),
            catalog_fetched_at: fetched_at.map(|at| at.timestamp_millis()),
            catalog_error: error,
            file_error: provider.unreadable,
        }
    }
}

/// Every provider.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Providers {
    pub(crate) providers: Vec<Provider>,
    /// Files beside the definitions that cannot be used and belong to no provider.
    pub(crate) unusable_files: Vec<UnusableFile>,
}

/// A file in the folder of definitions that cannot be used.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnusableFile {
    /// Its name.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

impl From<tale_models::UnusableFile> for UnusableFile {
    fn from(found: tale_models::UnusableFile) -> Self {
        Self { file: found.file, reason: found.reason }
    }
}

/// Earlier states of a definition.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProviderHistory {
    /// The newest first, at most a hundred.
    pub(crate) states: Vec<ProviderState>,
}

/// A state of a definition.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProviderState {
    /// Names the state when it is restored.
    pub(crate) id: uuid::Uuid,
    pub(crate) version: i64,
    /// `created`, `changed` or `deleted`.
    #[schema(schema_with = change_words)]
    pub(crate) change: String,
    /// In epoch milliseconds.
    pub(crate) at: i64,
    /// The definition as its file held it; it contains no secret.
    pub(crate) definition: Value,
}

fn change_words() -> Object {
    one_of(&["created", "changed", "deleted"])
}

impl From<tale_models::PastProvider> for ProviderState {
    fn from(past: tale_models::PastProvider) -> Self {
        Self {
            id: past.id,
            version: past.version,
            change: past.change,
            at: past.at.timestamp_millis(),
            definition: past.definition,
        }
    }
}

/// An earlier state to save anew.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreProviderRequest {
    /// The state.
    pub(crate) state: uuid::Uuid,
    /// The version of the present definition; absent for a deleted one.
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

/// A custom provider to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AddProviderRequest {
    /// Identifier: lower-case letters, digits and single hyphens.
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) api_format: ApiFormat,
    pub(crate) base_url: String,
    /// `openai-modern` sends `max_completion_tokens`.
    #[serde(default)]
    pub(crate) wire_dialect: Option<Dialect>,
    /// Empty = read from the endpoint.
    #[serde(default)]
    pub(crate) models: Vec<Model>,
    /// Fields added to the body of each request to the provider. A field of the request itself is
    /// refused with `EXTRA_BODY_KEY_FORBIDDEN`.
    #[serde(default)]
    pub(crate) extra_body: Map<String, Value>,
    /// Without a key the endpoint is called without one.
    #[serde(default)]
    pub(crate) api_key: Option<String>,
    /// A variable `TALE_PROVIDER_KEY_…` instead of a key.
    #[serde(default)]
    pub(crate) secret_env: Option<String>,
}

/// A dialect of the OpenAI format.
#[derive(Clone, Copy, Deserialize, ToSchema)]
pub(crate) enum Dialect {
    #[serde(rename = "openai-modern")]
    OpenaiModern,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeProviderRequest {
    /// The version that the change started from.
    pub(crate) version: i64,
    #[serde(default)]
    pub(crate) display_name: Option<String>,
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    #[serde(default)]
    pub(crate) models: Option<Vec<Model>>,
    /// Takes the place of the present fields.
    #[serde(default)]
    pub(crate) extra_body: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) api_key: Option<String>,
}

/// The version that a deletion started from.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionQuery {
    pub(crate) version: i64,
}

/// The version that a deletion started from, and what goes along.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteCredentialQuery {
    pub(crate) version: i64,
    /// Also delete a custom provider that has no other credential.
    pub(crate) retire_provider: Option<bool>,
}

/// What became of the provider of a deleted credential.
#[derive(Serialize, ToSchema)]
pub(crate) struct RetiredProvider {
    /// Whether it was deleted. Shipped providers and those with other credentials stay.
    deleted: bool,
    /// Why it stays although it should have gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
}

impl RetiredProvider {
    pub(crate) fn new(deleted: bool, reason: Option<String>) -> Self {
        Self { deleted, reason }
    }
}

/// An endpoint whose models are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiscoverModelsRequest {
    pub(crate) api_format: ApiFormat,
    pub(crate) base_url: String,
    #[serde(default)]
    pub(crate) api_key: Option<String>,
}

/// Models found.
#[derive(Serialize, ToSchema)]
pub(crate) struct DiscoveredModels {
    pub(crate) models: Vec<Model>,
}

/// What to test; the provider's first model and default credential when absent.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TestProviderRequest {
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    #[schema(format = Uuid)]
    pub(crate) credential_id: Option<String>,
}

/// What a test gave.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderTest {
    pub(crate) ok: bool,
    pub(crate) latency_ms: u64,
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) reply: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) error: Option<ProviderTestError>,
}

/// The vendor's own error.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProviderTestError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) status: Option<u16>,
}

/// How many models a list holds.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefreshedCatalog {
    pub(crate) count: usize,
}

/// What became of reading one provider's list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogResult {
    pub(crate) slug: String,
    pub(crate) display_name: String,
    /// How many models the list holds; absent when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) count: Option<usize>,
    /// Why the list could not be read; the one before it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) error: Option<String>,
}

impl From<tale_models::CatalogRefresh> for CatalogResult {
    fn from(refresh: tale_models::CatalogRefresh) -> Self {
        let (count, error) = match refresh.result {
            Ok(count) => (Some(count), None),
            Err(error) => (None, Some(error)),
        };
        Self { slug: refresh.provider_slug, display_name: refresh.display_name, count, error }
    }
}

/// What became of each list.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefreshedCatalogs {
    pub(crate) catalogs: Vec<CatalogResult>,
}

/// What a credential's endpoint lists.
#[derive(Serialize, ToSchema)]
pub(crate) struct CheckedModels {
    pub(crate) count: usize,
    /// Models of the definition that it does not list, the first twenty.
    pub(crate) missing: Vec<String>,
}

/// A credential to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AddCredentialRequest {
    pub(crate) name: String,
    pub(crate) auth_method: CredentialMethod,
    #[serde(default)]
    pub(crate) api_key: Option<String>,
    #[serde(default)]
    pub(crate) secret_env: Option<String>,
    #[serde(default)]
    pub(crate) endpoint: Option<String>,
    #[serde(default)]
    pub(crate) model_allowlist: Vec<String>,
    #[serde(default)]
    pub(crate) enabled: Option<bool>,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeCredentialRequest {
    /// The version that the change started from.
    pub(crate) version: i64,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) api_key: Option<String>,
    /// An empty text removes it.
    #[serde(default)]
    pub(crate) endpoint: Option<String>,
    #[serde(default)]
    pub(crate) model_allowlist: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) enabled: Option<bool>,
    #[serde(default)]
    pub(crate) is_default: Option<bool>,
}
