//! What the person may do here, from the same table that the server checks.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::members::Role;
use crate::caller::Member;
use crate::state::App;

/// The person's role and what it holds.
#[derive(Serialize, ToSchema)]
struct Permissions {
    role: Role,
    /// Names of capabilities, such as `knowledge.write`.
    capabilities: Vec<&'static str>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(permissions))
}

/// What the person may do in the organization.
#[utoipa::path(get, path = "/api/app/permissions", tag = "session", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Permissions)), operation_id = "read_permissions")]
async fn permissions(Member(caller): Member) -> Json<Permissions> {
    let capabilities = caller.role.capabilities().into_iter().map(|capability| capability.text()).collect();
    Json(Permissions { role: caller.role.into(), capabilities })
}
