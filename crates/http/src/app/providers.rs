//! Model providers and their credentials (spec 40, sections 2 to 5).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tale_core::Problem;
use tale_core::ids::CredentialId;
use tale_core::problem::Code;
use tale_identity::Capability;
use tale_models::wire::WireDialect;
use tale_models::{AuthMethod, CredentialChange, ExtraBody, ModelSpec, NewCredential, NewProvider, ProviderChange};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;
use crate::wire::providers::{
    AddCredentialRequest, AddProviderRequest, CatalogResult, ChangeCredentialRequest, ChangeProviderRequest,
    CheckedModels, Credential, CredentialMethod, DeleteCredentialQuery, Dialect, DiscoverModelsRequest,
    DiscoveredModels, Model, Provider, ProviderHistory, ProviderState, ProviderTest, ProviderTestError, Providers,
    RefreshedCatalog, RefreshedCatalogs, RestoreProviderRequest, RetiredProvider, TestProviderRequest, UnusableFile,
    VersionQuery,
};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_providers, add_provider))
        .routes(routes!(add_demo_provider))
        .routes(routes!(discover_models))
        .routes(routes!(change_provider, delete_provider))
        .routes(routes!(provider_history))
        .routes(routes!(restore_provider))
        .routes(routes!(test_provider))
        .routes(routes!(refresh_provider))
        .routes(routes!(refresh_catalogs))
        .routes(routes!(check_models))
        .routes(routes!(add_credential))
        .routes(routes!(change_credential, delete_credential))
}

/// Every provider: the organization's own, then the shipped ones.
#[utoipa::path(get, path = "/api/app/providers", tag = "app: providers", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Providers)))]
async fn list_providers(State(app): State<App>, Member(caller): Member) -> Result<Json<Providers>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let views = app.models.providers(caller.org).await?;
    let unusable = app.models.unusable_files(caller.org).await?;
    Ok(Json(Providers {
        providers: views.into_iter().map(|view| Provider::shown(view, &app.models)).collect(),
        unusable_files: unusable.into_iter().map(UnusableFile::from).collect(),
    }))
}

/// Adds a custom provider together with its first credential.
#[utoipa::path(post, path = "/api/app/providers", tag = "app: providers", params(("orgId" = Option<String>, Query)), request_body = AddProviderRequest, responses((status = 201, body = Provider)))]
async fn add_provider(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<AddProviderRequest>,
) -> Result<(StatusCode, Json<Provider>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let new = NewProvider {
        slug: form.name,
        display_name: form.display_name,
        api_format: form.api_format.into(),
        wire_dialect: form.wire_dialect.map_or(WireDialect::Classic, |Dialect::OpenaiModern| WireDialect::OpenAiModern),
        base_url: form.base_url,
        models: form.models.into_iter().map(ModelSpec::from).collect(),
        extra_body: ExtraBody::new(form.extra_body),
        api_key: form.api_key.map(Into::into),
        secret_env: form.secret_env,
    };
    let view = app.models.create_provider(caller.org, &caller.actor(), new).await?;
    Ok((StatusCode::CREATED, Json(Provider::shown(view, &app.models))))
}

/// Adds the demo model of this process, which quotes documents and is no language model.
#[utoipa::path(post, path = "/api/app/providers/demo", tag = "app: providers", params(("orgId" = Option<String>, Query)), responses((status = 201, body = Provider)))]
async fn add_demo_provider(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<(StatusCode, Json<Provider>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let view = app.models.install_demo(caller.org, &caller.actor()).await?;
    Ok((StatusCode::CREATED, Json(Provider::shown(view, &app.models))))
}

/// Reads the models of an endpoint; nothing is saved.
#[utoipa::path(post, path = "/api/app/providers/discover", tag = "app: providers", params(("orgId" = Option<String>, Query)), request_body = DiscoverModelsRequest, responses((status = 200, body = DiscoveredModels)))]
async fn discover_models(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<DiscoverModelsRequest>,
) -> Result<Json<DiscoveredModels>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let request = tale_models::DiscoverRequest {
        api_format: form.api_format.into(),
        base_url: form.base_url,
        api_key: form.api_key.map(Into::into),
    };
    let models = app.models.discover(request).await?;
    Ok(Json(DiscoveredModels { models: models.into_iter().map(Model::from).collect() }))
}

/// Changes a custom provider, and its key in the same step.
#[utoipa::path(patch, path = "/api/app/providers/{slug}", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = ChangeProviderRequest, responses((status = 200, body = Provider)))]
async fn change_provider(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    body: Body<ChangeProviderRequest>,
) -> Result<Json<Provider>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let change = ProviderChange {
        version: form.version,
        display_name: form.display_name,
        base_url: form.base_url,
        models: form.models.map(|models| models.into_iter().map(ModelSpec::from).collect()),
        extra_body: form.extra_body.map(ExtraBody::new),
        api_key: form.api_key.map(Into::into),
    };
    let view = app.models.change_provider(caller.org, &caller.actor(), &slug, change).await?;
    Ok(Json(Provider::shown(view, &app.models)))
}

/// Deletes a custom provider or the demo, with its only credential.
#[utoipa::path(delete, path = "/api/app/providers/{slug}", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query), VersionQuery), responses((status = 204)))]
async fn delete_provider(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    Query(query): Query<VersionQuery>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    app.models.delete_provider(caller.org, &caller.actor(), &slug, query.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Earlier states of a custom provider's definition, also of a deleted one.
#[utoipa::path(get, path = "/api/app/providers/{slug}/history", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = ProviderHistory)))]
async fn provider_history(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
) -> Result<Json<ProviderHistory>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let states = app.models.provider_history(caller.org, &slug).await?;
    Ok(Json(ProviderHistory { states: states.into_iter().map(ProviderState::from).collect() }))
}

/// Saves an earlier state of a definition anew. A deleted provider comes back without credentials.
#[utoipa::path(post, path = "/api/app/providers/{slug}/restore", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = RestoreProviderRequest, responses((status = 200, body = Provider)))]
async fn restore_provider(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    body: Body<RestoreProviderRequest>,
) -> Result<Json<Provider>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let view = app.models.restore_provider(caller.org, &caller.actor(), &slug, form.state, form.version).await?;
    Ok(Json(Provider::shown(view, &app.models)))
}

/// Makes one tiny real call and shows what came back, or the vendor's own error.
#[utoipa::path(post, path = "/api/app/providers/{slug}/test", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = TestProviderRequest, responses((status = 200, body = ProviderTest)))]
async fn test_provider(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    body: Body<TestProviderRequest>,
) -> Result<Json<ProviderTest>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let credential = form.credential_id.as_deref().map(credential_id).transpose()?;
    let outcome =
        app.models.test_provider(caller.org, &caller.actor(), &slug, form.model.as_deref(), credential).await?;
    let (reply, error) = match outcome.result {
        Ok(reply) => (Some(reply), None),
        Err(error) => {
            (None, Some(ProviderTestError { code: error.code.text(), message: error.message, status: error.status }))
        }
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
async fn refresh_provider(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
) -> Result<Json<RefreshedCatalog>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let count = app.models.refresh_catalog(caller.org, &slug).await?;
    Ok(Json(RefreshedCatalog { count }))
}

/// Reads every list of models that comes from a provider again. A failure keeps the list before it.
#[utoipa::path(post, path = "/api/app/catalogs/refresh", tag = "app: providers", params(("orgId" = Option<String>, Query)), responses((status = 200, body = RefreshedCatalogs)))]
async fn refresh_catalogs(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<RefreshedCatalogs>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let results = app.models.refresh_catalogs(caller.org).await?;
    Ok(Json(RefreshedCatalogs { catalogs: results.into_iter().map(CatalogResult::from).collect() }))
}

/// Reads the list of models with this credential's key.
#[utoipa::path(post, path = "/api/app/credentials/{id}/check", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = CheckedModels)))]
async fn check_models(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<CheckedModels>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let checked = app.models.check_models(caller.org, credential_id(&id)?).await?;
    Ok(Json(CheckedModels { count: checked.count, missing: checked.missing }))
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
    Ok((StatusCode::CREATED, shown(&app, credential)?))
}

/// Changes a credential.
#[utoipa::path(patch, path = "/api/app/credentials/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = ChangeCredentialRequest, responses((status = 200, body = Credential)))]
async fn change_credential(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<ChangeCredentialRequest>,
) -> Result<Json<Credential>, HttpProblem> {
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
    Ok(shown(&app, credential)?)
}

/// Deletes a credential. With `retireProvider` the last one of a custom provider takes the provider along, and the
/// answer says whether it did; the credential is gone either way.
#[utoipa::path(delete, path = "/api/app/credentials/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query), DeleteCredentialQuery), responses((status = 200, body = RetiredProvider), (status = 204)))]
async fn delete_credential(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<DeleteCredentialQuery>,
) -> Result<Response, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let (actor, id) = (caller.actor(), credential_id(&id)?);
    if query.retire_provider != Some(true) {
        app.models.delete_credential(caller.org, &actor, id, query.version).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let retired = app.models.delete_credential_and_provider(caller.org, &actor, id, query.version).await?;
    let (deleted, reason) = match retired {
        Ok(deleted) => (deleted, None),
        Err(problem) => (false, Some(problem.message.into_owned())),
    };
    Ok(Json(RetiredProvider::new(deleted, reason)).into_response())
}

fn no_such_credential() -> Problem {
    Problem::new(
        Code::CredentialNotFound,
        "There is no such credential in this organization. Reload the page to see the current list.",
    )
}

pub(super) fn credential_id(text: &str) -> Result<CredentialId, Problem> {
    text.parse().map_err(|_| no_such_credential())
}

fn shown(app: &App, credential: tale_models::Credential) -> Result<Json<Credential>, Problem> {
    Credential::shown(credential, &app.models).map(Json).ok_or_else(no_such_credential)
}
