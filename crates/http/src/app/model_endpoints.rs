//! Where and how one's own keys call models (MOD-109).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tale_identity::Capability;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_model_endpoints))
}

/// The model endpoints as they answer the person's keys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ModelEndpoints {
    /// Whether they are on in the organization.
    enabled: bool,
    /// Whether the person's keys may call them.
    allowed: bool,
    /// What `X-Organization-Slug` takes.
    organization_slug: String,
    /// What `model` takes; empty while they are off.
    models: Vec<String>,
}

/// The model endpoints: whether they are on, and what can be called.
#[utoipa::path(get, path = "/api/app/model-endpoints", tag = "models", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ModelEndpoints)))]
async fn read_model_endpoints(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<ModelEndpoints>, HttpProblem> {
    caller.require(Capability::ApiKeysOwn)?;
    let open = app.gateway.open_to(&caller).await;
    let models = if open.allowed { app.gateway.callable(&caller).await? } else { Vec::new() };
    Ok(Json(ModelEndpoints {
        enabled: open.enabled,
        allowed: open.allowed,
        organization_slug: caller.org_slug,
        models: models.into_iter().map(|model| model.id).collect(),
    }))
}
