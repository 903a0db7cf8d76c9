//! Subscriptions of providers and their brokers (spec 40, section 6).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use tale_identity::Capability;
use tale_models::{NewSubscription, SubscriptionChange};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::providers::credential_id;
use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;
use crate::wire::providers::VersionQuery;
use crate::wire::subscriptions::{AddSubscriptionRequest, BrokerTest, ChangeSubscriptionRequest, Subscription};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(add_subscription))
        .routes(routes!(change_subscription, delete_subscription))
        .routes(routes!(test_subscription))
}

/// Adds a subscription: a pasted token, or a broker that hands them out. It acts in the provider's agent runtime alone; no chat and no other call uses it.
#[utoipa::path(post, path = "/api/app/providers/{slug}/subscriptions", tag = "app: providers", params(("slug" = String, Path), ("orgId" = Option<String>, Query)), request_body = AddSubscriptionRequest, responses((status = 201, body = Subscription)))]
async fn add_subscription(
    State(app): State<App>,
    Member(caller): Member,
    Path(slug): Path<String>,
    body: Body<AddSubscriptionRequest>,
) -> Result<(StatusCode, Json<Subscription>), HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let pasted = (form.target_env_var, form.account_id);
    let (source, secret) = AddSubscriptionRequest::source(form.broker, form.broker_secret, form.token, pasted)?;
    let new = NewSubscription {
        name: form.name,
        source,
        secret: secret.map(Into::into),
        model_allowlist: form.model_allowlist,
    };
    let one = app.models.create_subscription(caller.org, &caller.actor(), &slug, new).await?;
    Ok((StatusCode::CREATED, Json(Subscription::shown(one, &app.models))))
}

/// Changes a subscription.
#[utoipa::path(patch, path = "/api/app/subscriptions/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = ChangeSubscriptionRequest, responses((status = 200, body = Subscription)))]
async fn change_subscription(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<ChangeSubscriptionRequest>,
) -> Result<Json<Subscription>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    let form = body.read()?;
    let change = SubscriptionChange {
        version: form.version,
        name: form.name,
        source: ChangeSubscriptionRequest::source(form.broker, (form.target_env_var, form.account_id))?,
        secret: form.broker_secret.map(Into::into),
        token: form.token.map(Into::into),
        model_allowlist: form.model_allowlist,
        enabled: form.enabled,
    };
    let one = app.models.change_subscription(caller.org, &caller.actor(), credential_id(&id)?, change).await?;
    Ok(Json(Subscription::shown(one, &app.models)))
}

/// Deletes a subscription.
#[utoipa::path(delete, path = "/api/app/subscriptions/{id}", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query), VersionQuery), responses((status = 204)))]
async fn delete_subscription(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    Query(query): Query<VersionQuery>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    app.models.delete_subscription(caller.org, &caller.actor(), credential_id(&id)?, query.version).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks the broker for its accounts and says how many can be used now. No token is shown or kept.
#[utoipa::path(post, path = "/api/app/subscriptions/{id}/test", tag = "app: providers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = BrokerTest)))]
async fn test_subscription(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<BrokerTest>, HttpProblem> {
    caller.require(Capability::ProvidersManage)?;
    Ok(Json(app.models.test_subscription(caller.org, credential_id(&id)?).await?.into()))
}
