//! What the person may do here, from the same table that the server checks.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tale_identity::Capability;
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
    /// The acts that the person may do without further conditions, such as `knowledge.write`;
    /// `sandboxes.read` besides, for those who see the sandboxes and run code, where there are any.
    capabilities: Vec<&'static str>,
    /// The person's cell of each act of the whole matrix of roles: `allowed`, `refused`, or the condition under
    /// which it is allowed (`assigned`, `policy`, `namedReviewer`, `competence`, `policyOrCompetence`, `read`,
    /// `names`, `ownTeams`). What this release has no door for is among them.
    cells: BTreeMap<&'static str, &'static str>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(permissions))
}

/// What the person may do in the organization.
#[utoipa::path(get, path = "/api/app/permissions", tag = "session", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Permissions)), operation_id = "read_permissions")]
async fn permissions(State(app): State<App>, Member(caller): Member) -> Json<Permissions> {
    use Capability::{SandboxesManage, WorkspacesManage};
    // What a deployment does not have nobody may use, and pages do not offer it.
    let there =
        |capability: &Capability| app.workshop.is_some() || !matches!(capability, SandboxesManage | WorkspacesManage);
    let held = caller.capabilities().into_iter().filter(there).map(Capability::text);
    let reads = (app.workshop.is_some() && caller.role.can_read(SandboxesManage)).then_some("sandboxes.read");
    let cell = |capability: &Capability| (capability.text(), caller.role.cell(*capability).text());
    Json(Permissions {
        role: caller.role.into(),
        capabilities: held.chain(reads).collect(),
        cells: Capability::ALL.iter().map(cell).collect(),
    })
}
