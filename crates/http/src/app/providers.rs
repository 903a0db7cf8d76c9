//! Model providers and their credentials (spec 40, sections 2 to 5).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::CredentialId;
use tale_core::problem::Code;
use tale_identity::Capability;
use tale_models::wire::WireDialect;
use tale_models::{
    AuthMethod, Capabilities, CredentialChange, EmbeddingSupport, ModelSpec, NewCredential, NewProvider, ProviderChange, ProviderKind, ProviderView, Purpose,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_providers, add_provider))
        .routes(routes!(add_demo_provider))
        .routes(routes!(discover_models))
        .routes(routes!(change_provider, delete_provider))
        .routes(routes!(test_provider))
        .routes(routes!(refresh_provider))
        .routes(routes!(add_credential))
        .routes(routes!(change_credential, delete_credential))
}

/// The wire format of an endpoint.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ApiFormat {
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
enum ModelPurpose {
    Chat,
    Embedding,
}

/// What a chat model can do.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct ModelCapabilities {
    /// It calls tools.
    tools: bool,
    /// It reads images.
    vision: bool,
    /// It has a reasoning knob.
    reasoning: bool,
}

/// US dollars per million tokens. A missing price is unknown.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ModelPricing {
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<f64>,
    /// Input tokens read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input: Option<f64>,
}

impl From<tale_models::Pricing> for ModelPricing {
    fn from(pricing: tale_models::Pricing) -> Self {
        Self { input: pricing.input, output: pricing.output, cached_input: pricing.cached_input }
    }
}

/// A model of a provider.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Model {
    /// The provider's name of the model.
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    /// In tokens.
    context_window: u32,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    purposes: Vec<ModelPurpose>,
    #[serde(default)]
    capabilities: ModelCapabilities,
    /// Width of the vectors of an embedding model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pricing: Option<ModelPricing>,
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
                })
                .collect(),
            capabilities: Capabilities { tools: model.capabilities.tools, vision: model.capabilities.vision, reasoning: model.capabilities.reasoning },
            dimensions: model.dimensions,
            pricing: model.pricing.map(|pricing| tale_models::Pricing { input: pricing.input, output: pricing.output, cached_input: pricing.cached_input }),
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
                })
                .collect(),
            capabilities: ModelCapabilities { tools: spec.capabilities.tools, vision: spec.capabilities.vision, reasoning: spec.capabilities.reasoning },
            dimensions: spec.dimensions,
            pricing: spec.pricing.map(ModelPricing::from),
        }
    }
}

/// Where a key comes from.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum CredentialMethod {
    /// A stored key.
    ApiKey,
    /// A variable of the process.
    Env,
}

/// An access to a provider, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Credential {
    #[schema(format = Uuid)]
    id: String,
    /// Unique in the organization.
    name: String,
    auth_method: CredentialMethod,
    /// First four and last two characters of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    masked: Option<String>,
    /// The variable of an `env` credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Empty = every model.
    model_allowlist: Vec<String>,
    enabled: bool,
    /// Used when a caller names none.
    is_default: bool,
    version: i64,
    /// In epoch milliseconds.
    updated_at: i64,
}

impl Credential {
    /// An access without a key is no row of its own: the provider simply needs none.
    fn shown(credential: tale_models::Credential) -> Option<Self> {
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

/// A provider with the organization's credentials.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Provider {
    slug: String,
    display_name: String,
    /// `shipped`, `custom` or `demo`.
    kind: &'static str,
    api_format: ApiFormat,
    /// `null` when each credential has its own address, and for the demo.
    #[schema(required)]
    base_url: Option<String>,
    /// `static`, `openrouter-api`, `models-endpoint` or `none`.
    catalog_source: &'static str,
    /// `supported`, `unsupported` or `unknown`.
    embedding: &'static str,
    version: i64,
    models: Vec<Model>,
    credentials: Vec<Credential>,
    /// When the list of models was read from the provider, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog_fetched_at: Option<i64>,
    /// Why the list could not be read the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog_error: Option<String>,
}

impl From<ProviderView> for Provider {
    fn from(view: ProviderView) -> Self {
        let ProviderView { provider, credentials, catalog } = view;
        let (fetched_at, error) = catalog.map(|state| (state.fetched_at, state.error)).unwrap_or_default();
        Self {
            slug: provider.slug,
            display_name: provider.display_name,
            kind: provider.kind.text(),
            api_format: provider.api_format.into(),
            base_url: provider.base_url.filter(|_| provider.kind != ProviderKind::Demo).map(|url| address(&url)),
            catalog_source: provider.catalog_source.text(),
            embedding: EmbeddingSupport::text(provider.embedding),
            version: provider.version,
            models: provider.models.into_iter().map(Model::from).collect(),
            credentials: credentials.into_iter().filter_map(Credential::shown).collect(),
            catalog_fetched_at: fetched_at.map(|at| at.timestamp_millis()),
            catalog_error: error,
        }
    }
}

/// Every provider.
#[derive(Serialize, ToSchema)]
struct Providers {
    providers: Vec<Provider>,
}

/// A custom provider to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AddProviderRequest {
    /// Identifier: lower-case letters, digits and single hyphens.
    name: String,
    display_name: String,
    api_format: ApiFormat,
    base_url: String,
    /// `openai-modern` sends `max_completion_tokens`.
    #[serde(default)]
    wire_dialect: Option<Dialect>,
    /// Empty = read from the endpoint.
    #[serde(default)]
    models: Vec<Model>,
    /// Without a key the endpoint is called without one.
    #[serde(default)]
    api_key: Option<String>,
    /// A variable `TALE_PROVIDER_KEY_…` instead of a key.
    #[serde(default)]
    secret_env: Option<String>,
}

/// A dialect of the OpenAI format.
#[derive(Clone, Copy, Deserialize, ToSchema)]
enum Dialect {
    #[serde(rename = "openai-modern")]
    OpenaiModern,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeProviderRequest {
    /// The version that the change started from.
    version: i64,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    models: Option<Vec<Model>>,
    #[serde(default)]
    api_key: Option<String>,
}

/// The version that a deletion started from.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct VersionQuery {
    version: i64,
}

/// An endpoint whose models are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DiscoverModelsRequest {
    api_format: ApiFormat,
    base_url: String,
    #[serde(default)]
    api_key: Option<String>,
}

/// Models found.
#[derive(Serialize, ToSchema)]
struct DiscoveredModels {
    models: Vec<Model>,
}

/// What to test; the provider's first model and default credential when absent.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TestProviderRequest {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    #[schema(format = Uuid)]
    credential_id: Option<String>,
}

/// What a test gave.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProviderTest {
    ok: bool,
    latency_ms: u64,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProviderTestError>,
}

/// The vendor's own error.
#[derive(Serialize, ToSchema)]
struct ProviderTestError {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// How many models a list holds.
#[derive(Serialize, ToSchema)]
struct RefreshedCatalog {
    count: usize,
}

/// A credential to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AddCredentialRequest {
    name: String,
    auth_method: CredentialMethod,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    secret_env: Option<String>,
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    model_allowlist: Vec<String>,
    #[serde(default)]
    enabled: Option<bool>,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeCredentialRequest {
    /// The version that the change started from.
    version: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    api_key: Option<String>,
    /// An empty text removes it.
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    model_allowlist: Option<Vec<String>>,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    is_default: Option<bool>,
}

/// Every provider: the organization's own, then the shipped ones.
#[utoipa::path(get, path = "/api/app/providers", tag = "app: providers", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Providers)))]
async fn list_providers(State(app): State<App>, Member(caller): Member) -> Result<Json<Providers>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let views = app.models.providers(caller.org).await?;
    Ok(Json(Providers { providers: views.into_iter().map(Provider::from).collect() }))
}

/// Adds a custom provider together with its first credential.
#[utoipa::path(post, path = "/api/app/providers", tag = "app: providers", params(("orgId" = Option<String>, Query)), request_body = AddProviderRequest, responses((status = 201, body = Provider)))]
async fn add_provider(State(app): State<App>, Member(caller): Member, body: Body<AddProviderRequest>) -> Result<(StatusCode, Json<Provider>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let new = NewProvider {
        slug: form.name,
        display_name: form.display_name,
        api_format: form.api_format.into(),
        wire_dialect: form.wire_dialect.map_or(WireDialect::Classic, |Dialect::OpenaiModern| WireDialect::OpenAiModern),
        base_url: form.base_url,
        models: form.models.into_iter().map(ModelSpec::from).collect(),
        api_key: form.api_key.map(Into::into),
        secret_env: form.secret_env,
    };
    let view = app.models.create_provider(caller.org, &caller.actor(), new).await?;
    Ok((StatusCode::CREATED, Json(view.into())))
}

/// Adds the demo model of this process, which quotes documents and is no language model.
#[utoipa::path(post, path = "/api/app/providers/demo", tag = "app: providers", params(("orgId" = Option<String>, Query)), responses((status = 201, body = Provider)))]
async fn add_demo_provider(State(app): State<App>, Member(caller): Member) -> Result<(StatusCode, Json<Provider>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let view = app.models.install_demo(caller.org, &caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(view.into())))
}

/// Reads the models of an endpoint; nothing is saved.
#[utoipa::path(post, path = "/api/app/providers/discover", tag = "app: providers", params(("orgId" = Option<String>, Query)), request_body = DiscoverModelsRequest, responses((status = 200, body = DiscoveredModels)))]
async fn discover_models(State(app): State<App>, Member(caller): Member, body: Body<DiscoverModelsRequest>) -> Result<Json<DiscoveredModels>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let request = tale_models::DiscoverRequest { api_format: form.api_format.into(), base_url: form.base_url, api_key: form.api_key.map(Into::into) };
    let models = app.models.discover(request).await?;
    Ok(Json(DiscoveredModels { models: models.into_iter().map(Model::from).collect() }))
}

/// Changes a custom provider, and its key in the same step.
#[utoipa::path(patch, path = "/api/app/providers/{slug}", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = ChangeProviderRequest, responses((status = 200, body = Provider)))]
async fn change_provider(State(app): State<App>, Member(caller): Member, Path(slug): Path<String>, body: Body<ChangeProviderRequest>) -> Result<Json<Provider>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let change = ProviderChange {
        version: form.version,
        display_name: form.display_name,
        base_url: form.base_url,
        models: form.models.map(|models| models.into_iter().map(ModelSpec::from).collect()),
        api_key: form.api_key.map(Into::into),
    };
    let view = app.models.change_provider(caller.org, &caller.actor(), &slug, change).await?;
    Ok(Json(view.into()))
}

/// Deletes a custom provider or the demo, with its only credential.
#[utoipa::path(delete, path = "/api/app/providers/{slug}", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query), VersionQuery), responses((status = 204)))]
async fn delete_provider(State(app): State<App>, Member(caller): Member, Path(slug): Path<String>, Query(query): Query<VersionQuery>) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    app.models.delete_provider(caller.org, &caller.actor(), &slug, query.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes one tiny real call and shows what came back, or the vendor's own error.
#[utoipa::path(post, path = "/api/app/providers/{slug}/test", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = TestProviderRequest, responses((status = 200, body = ProviderTest)))]
async fn test_provider(State(app): State<App>, Member(caller): Member, Path(slug): Path<String>, body: Body<TestProviderRequest>) -> Result<Json<ProviderTest>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let credential = form.credential_id.as_deref().map(credential_id).transpose()?;
    let outcome = app.models.test_provider(caller.org, &slug, form.model.as_deref(), credential).await?;
    let (reply, error) = match outcome.result {
        Ok(reply) => (Some(reply), None),
        Err(error) => (None, Some(ProviderTestError { code: error.code.text(), message: error.message, status: error.status })),
    };
    Ok(Json(ProviderTest {
        ok: error.is_none(),
        latency_ms: u64::try_from(outcome.latency.as_millis()).unwrap_or(u64::MAX),
        model: outcome.model,
        reply,
        error,
    }))
}

/// Reads the provider's list of models again. A failure keeps the list before it.
#[utoipa::path(post, path = "/api/app/providers/{slug}/refresh", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = RefreshedCatalog)))]
async fn refresh_provider(State(app): State<App>, Member(caller): Member, Path(slug): Path<String>) -> Result<Json<RefreshedCatalog>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let count = app.models.refresh_catalog(caller.org, &slug).await?;
    Ok(Json(RefreshedCatalog { count }))
}

/// Adds a credential. The first one of a provider is its default.
#[utoipa::path(post, path = "/api/app/providers/{slug}/credentials", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = AddCredentialRequest, responses((status = 201, body = Credential)))]
async fn add_credential(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    body: Body<AddCredentialRequest>,
) -> Result<(StatusCode, Json<Credential>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let new = NewCredential {
        name: form.name,
        auth_method: match form.auth_method {
            CredentialMethod::ApiKey => AuthMethod::ApiKey,
            CredentialMethod::Env => AuthMethod::Env,
        },
        api_key: form.api_key.map(Into::into),
        secret_env: form.secret_env,
        endpoint: form.endpoint,
        model_allowlist: form.model_allowlist,
        enabled: form.enabled.unwrap_or(true),
    };
    let credential = app.models.create_credential(caller.org, &caller.actor(), &slug, new).await?;
    Ok((StatusCode::CREATED, shown(credential)?))
}

/// Changes a credential.
#[utoipa::path(patch, path = "/api/app/credentials/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = ChangeCredentialRequest, responses((status = 200, body = Credential)))]
async fn change_credential(State(app): State<App>, Member(caller): Member, Path(id): Path<String>, body: Body<ChangeCredentialRequest>) -> Result<Json<Credential>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let change = CredentialChange {
        version: form.version,
        name: form.name,
        api_key: form.api_key.map(Into::into),
        endpoint: form.endpoint.map(Some),
        model_allowlist: form.model_allowlist,
        enabled: form.enabled,
        is_default: form.is_default,
    };
    let credential = app.models.change_credential(caller.org, &caller.actor(), credential_id(&id)?, change).await?;
    Ok(shown(credential)?)
}

/// Deletes a credential.
#[utoipa::path(delete, path = "/api/app/credentials/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query), VersionQuery), responses((status = 204)))]
async fn delete_credential(State(app): State<App>, Member(caller): Member, Path(id): Path<String>, Query(query): Query<VersionQuery>) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    app.models.delete_credential(caller.org, &caller.actor(), credential_id(&id)?, query.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn no_such_credential() -> Problem {
    Problem::new(Code::CredentialNotFound, "There is no such credential in this organization. Reload the page to see the current list.")
}

fn credential_id(text: &str) -> Result<CredentialId, Problem> {
    text.parse().map_err(|_| no_such_credential())
}

fn shown(credential: tale_models::Credential) -> Result<Json<Credential>, Problem> {
    Credential::shown(credential).map(Json).ok_or_else(no_such_credential)
}
