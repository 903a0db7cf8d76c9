//! Organizations.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_identity::organizations::OrganizationView;
use tale_identity::{Caller, SessionPrincipal};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::members::Role;
use crate::body::Body;
use crate::caller::Signed;
use crate::problem::HttpProblem;
use crate::state::App;

/// An organization of the person.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrganizationSummary {
    /// The organization.
    #[schema(format = Uuid)]
    id: String,
    /// Its name.
    name: String,
    /// Its short name, which never changes.
    slug: String,
    /// The person's role there.
    role: Role,
}

impl From<OrganizationView> for OrganizationSummary {
    fn from(org: OrganizationView) -> Self {
        Self { id: org.id.to_string(), name: org.name, slug: org.slug, role: org.role.into() }
    }
}

/// An organization.
#[derive(Serialize, ToSchema)]
struct Organization {
    /// The organization.
    #[schema(format = Uuid)]
    id: String,
    /// Its short name, which never changes.
    slug: String,
    /// Its name.
    name: String,
}

impl From<OrganizationView> for Organization {
    fn from(org: OrganizationView) -> Self {
        Self { id: org.id.to_string(), slug: org.slug, name: org.name }
    }
}

/// A name for an organization.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OrganizationRequest {
    /// 1 to 100 letters, digits, spaces, hyphens and underscores.
    name: String,
}

/// How long sessions of members may be idle.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionPolicy {
    /// Whether the organization sets a window of its own.
    enabled: bool,
    /// Minutes without use after which a session ends; a proposal while there is no window.
    idle_timeout_minutes: u16,
    /// What the operator allows at most, in minutes; `null` when they set nothing.
    #[schema(required)]
    deployment_minutes: Option<u64>,
}

/// A window for sessions. It can only shorten what the operator allows.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionPolicyRequest {
    /// Whether the organization sets a window of its own.
    enabled: bool,
    /// 1 to 1440.
    #[schema(minimum = 1, maximum = 1440)]
    idle_timeout_minutes: u16,
}

/// What is proposed while an organization has no window.
const PROPOSED_MINUTES: u16 = 30;

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(rename))
        .routes(routes!(session_policy, set_session_policy))
}

async fn caller_in(app: &App, principal: &SessionPrincipal, id: &str) -> Result<Caller, Problem> {
    let id: OrgId =
        id.parse().map_err(|_| Problem::new(Code::OrgForbidden, "You are not a member of this organization."))?;
    let caller = app.identity.caller_for_session(principal, Some(id)).await?;
    caller.require(tale_identity::Capability::OrganizationManage)?;
    Ok(caller)
}

/// Makes an organization with the person as owner.
#[utoipa::path(post, path = "/api/app/organizations", tag = "organizations", request_body = OrganizationRequest, responses((status = 201, body = Organization)), operation_id = "create_organization")]
async fn create(
    State(app): State<App>,
    Signed(principal): Signed,
    body: Body<OrganizationRequest>,
) -> Result<(StatusCode, Json<Organization>), HttpProblem> {
    let org = app.identity.create_organization(&principal, &body.read()?.name).await?;
    Ok((StatusCode::CREATED, Json(org.into())))
}

/// Renames an organization.
#[utoipa::path(patch, path = "/api/app/organizations/{id}", tag = "organizations", params(("id" = String, Path)), request_body = OrganizationRequest, responses((status = 200, body = Organization)), operation_id = "rename_organization")]
async fn rename(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
    body: Body<OrganizationRequest>,
) -> Result<Json<Organization>, HttpProblem> {
    let caller = caller_in(&app, &principal, &id).await?;
    Ok(Json(app.identity.rename_organization(&caller, &body.read()?.name).await?.into()))
}

/// How long sessions of the members may be idle.
#[utoipa::path(get, path = "/api/app/organizations/{id}/session-policy", tag = "organizations", params(("id" = String, Path)), responses((status = 200, body = SessionPolicy)), operation_id = "read_session_policy")]
async fn session_policy(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
) -> Result<Json<SessionPolicy>, HttpProblem> {
    let caller = caller_in(&app, &principal, &id).await?;
    let policy = app.identity.idle_policy(&caller).await?;
    Ok(Json(SessionPolicy {
        enabled: policy.minutes.is_some(),
        idle_timeout_minutes: policy.minutes.unwrap_or(PROPOSED_MINUTES),
        deployment_minutes: policy.deployment.map(|window| window.as_secs() / 60),
    }))
}

/// Sets how long sessions of the members may be idle. It counts from their next request.
#[utoipa::path(put, path = "/api/app/organizations/{id}/session-policy", tag = "organizations", params(("id" = String, Path)), request_body = SessionPolicyRequest, responses((status = 204)), operation_id = "set_session_policy")]
async fn set_session_policy(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
    body: Body<SessionPolicyRequest>,
) -> Result<StatusCode, HttpProblem> {
    let caller = caller_in(&app, &principal, &id).await?;
    let form = body.read()?;
    app.identity.set_idle_policy(&caller, form.enabled.then_some(form.idle_timeout_minutes)).await?;
    Ok(StatusCode::NO_CONTENT)
}
