//! Organizations.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_identity::branding;
use tale_identity::organizations::OrganizationView;
use tale_identity::{Caller, Capability, SessionPrincipal};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::branding::PublishedBranding;
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
    /// How it looks; `null` when it looks as Tale does by itself.
    #[schema(required)]
    branding: Option<PublishedBranding>,
}

impl OrganizationSummary {
    /// An organization that looks as `branding` says.
    pub(crate) fn of(org: OrganizationView, branding: Option<branding::PublishedBranding>) -> Self {
        let branding = branding.map(|branding| PublishedBranding::of(org.id, branding));
        Self { id: org.id.to_string(), name: org.name, slug: org.slug, role: org.role.into(), branding }
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

/// The name of an organization, to confirm what cannot be undone.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeleteOrganizationRequest {
    /// Exactly as it is written.
    name: String,
}

/// What the deployment lays down about sessions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionLimits {
    /// How long a session may be idle at most, in minutes; `null` when the operator set nothing. The policy
    /// `session_idle_timeout` can only shorten it.
    #[schema(required)]
    deployment_minutes: Option<u64>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(rename, delete)).routes(routes!(session_limits))
}

async fn caller_in(app: &App, principal: &SessionPrincipal, id: &str, act: Capability) -> Result<Caller, Problem> {
    let id: OrgId =
        id.parse().map_err(|_| Problem::new(Code::OrgForbidden, "You are not a member of this organization."))?;
    let caller = app.identity.caller_for_session(principal, Some(id)).await?;
    caller.require(act)?;
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
    let caller = caller_in(&app, &principal, &id, Capability::OrganizationManage).await?;
    Ok(Json(app.identity.rename_organization(&caller, &body.read()?.name).await?.into()))
}

/// Deletes an organization with everything in it. Nobody belongs to it from now on.
#[utoipa::path(delete, path = "/api/app/organizations/{id}", tag = "organizations", params(("id" = String, Path)), request_body = DeleteOrganizationRequest, responses((status = 204)), operation_id = "delete_organization")]
async fn delete(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
    body: Body<DeleteOrganizationRequest>,
) -> Result<StatusCode, HttpProblem> {
    let caller = caller_in(&app, &principal, &id, Capability::OrganizationOwn).await?;
    app.identity.delete_organization(&caller, &body.read()?.name).await?;
    // Its gateway keys end with it. The sweep does the same within a minute, should this process end here.
    if let Err(error) = app.models.ledger().sweep_allowances().await {
        tracing::warn!(org.id = %caller.org, %error, "gateway keys of a deleted organization could not be ended yet");
    }
    Ok(StatusCode::NO_CONTENT)
}

/// What the deployment lays down about the sessions of members.
#[utoipa::path(get, path = "/api/app/organizations/{id}/session-limits", tag = "organizations", params(("id" = String, Path)), responses((status = 200, body = SessionLimits)), operation_id = "read_session_limits")]
async fn session_limits(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
) -> Result<Json<SessionLimits>, HttpProblem> {
    caller_in(&app, &principal, &id, Capability::OrganizationManage).await?;
    Ok(Json(SessionLimits { deployment_minutes: app.identity.idle_cap().map(|window| window.as_secs() / 60) }))
}
