//! Provisioning by a directory: whether it is on, where it speaks to, and its token.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_identity::Capability;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::scim;
use crate::state::App;

/// What an organization lets a directory do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Provisioning {
    /// Whether the token works.
    enabled: bool,
    /// The address that the directory is given.
    base_url: String,
    /// The beginning of the token; `null` without one.
    #[schema(required)]
    token: Option<String>,
    /// When the token was made, in epoch milliseconds.
    #[schema(required)]
    token_made_at: Option<i64>,
    /// When it was used last, to the minute, in epoch milliseconds.
    #[schema(required)]
    last_used_at: Option<i64>,
}

/// Whether a directory provisions the organization.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetProvisioningRequest {
    enabled: bool,
}

/// A new token. It is shown only now.
#[derive(Serialize, ToSchema)]
struct ProvisioningToken {
    token: String,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read, set)).routes(routes!(make_token))
}

/// Whether a directory provisions the organization, and where it speaks to.
#[utoipa::path(get, path = "/api/app/provisioning", tag = "provisioning", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Provisioning)), operation_id = "get_provisioning")]
async fn read(State(app): State<App>, Member(caller): Member) -> Result<Json<Provisioning>, HttpProblem> {
    let state = app.identity.provisioning(&caller).await?;
    Ok(Json(Provisioning {
        enabled: state.enabled,
        base_url: scim::base(&app.site),
        token: state.token,
        token_made_at: state.token_made_at.map(|at| at.timestamp_millis()),
        last_used_at: state.last_used_at.map(|at| at.timestamp_millis()),
    }))
}

/// Switches provisioning on or off. Off refuses the token and keeps it.
#[utoipa::path(put, path = "/api/app/provisioning", tag = "provisioning", params(("orgId" = Option<String>, Query)), request_body = SetProvisioningRequest, responses((status = 204)), operation_id = "set_provisioning")]
async fn set(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<SetProvisioningRequest>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::SignInManage)?;
    app.identity.set_provisioning(&caller, body.read()?.enabled).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a token. It takes the place of the one before, which is over at once.
#[utoipa::path(post, path = "/api/app/provisioning/token", tag = "provisioning", params(("orgId" = Option<String>, Query)), responses((status = 201, body = ProvisioningToken)), operation_id = "make_provisioning_token")]
async fn make_token(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<(StatusCode, Json<ProvisioningToken>), HttpProblem> {
    let made = app.identity.make_provisioning_token(&caller).await?;
    Ok((StatusCode::CREATED, Json(ProvisioningToken { token: made.secret })))
}
