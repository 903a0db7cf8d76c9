//! Who the caller of a key is (API-5).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tale_core::Problem;
use tale_identity::api_keys::KeyHolder;
use tale_identity::organizations::OrganizationView;
use tale_identity::{Role, Via};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::KeyMe;
use crate::problem::HttpProblem;
use crate::query::NoQuery;
use crate::state::App;

/// The caller.
#[derive(Serialize, ToSchema)]
struct Me {
    /// The person the key acts as; `null` for a key of a team or of the organization.
    #[schema(required)]
    user: Option<MeUser>,
    /// The organization the call acts in.
    organization: MeOrganization,
    /// Every organization the key can act in.
    organizations: Vec<MeOrganization>,
    capabilities: MeCapabilities,
    key: MeKey,
}

/// The person that a key acts as.
#[derive(Serialize, ToSchema)]
struct MeUser {
    /// The person.
    #[schema(format = Uuid)]
    id: String,
    /// Display name.
    name: String,
    /// Sign-in address.
    email: String,
}

/// An organization and the role that counts there.
#[derive(Serialize, ToSchema)]
struct MeOrganization {
    /// The organization.
    #[schema(format = Uuid)]
    id: String,
    /// What `X-Organization-Slug` takes.
    slug: String,
    /// Its name.
    name: String,
    /// `owner`, `admin`, `developer`, `editor` or `member`.
    role: &'static str,
}

impl From<OrganizationView> for MeOrganization {
    fn from(org: OrganizationView) -> Self {
        Self { id: org.id.to_string(), slug: org.slug, name: org.name, role: org.role.text() }
    }
}

/// What the caller may do here beyond reading.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MeCapabilities {
    /// Whether the role is owner, admin or developer.
    developer: bool,
    /// Whether the key may call the model endpoints.
    model_api: bool,
}

/// The key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MeKey {
    /// Its name.
    name: String,
    /// When it ends, in epoch milliseconds; `null` is never.
    #[schema(required)]
    expires_at: Option<i64>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Who the caller is: person, organizations, rights and the key itself.
#[utoipa::path(get, path = "/me", tag = "me", security(("key" = [])), responses((status = 200, body = Me)), operation_id = "get_me")]
async fn me(State(app): State<App>, KeyMe(holder): KeyMe, _: NoQuery) -> Result<Json<Me>, HttpProblem> {
    let KeyHolder { caller, me } = holder;
    let model_api = app.gateway.open_to(&caller).await.allowed;
    let Via::ApiKey { name, expires_at, .. } = caller.via else {
        return Err(Problem::internal("a call of the key holder's door without a key").into());
    };
    let key = MeKey { name, expires_at: expires_at.map(|at| at.timestamp_millis()) };
    Ok(Json(Me {
        user: me.person.map(|person| MeUser { id: person.id.to_string(), name: person.name, email: person.email }),
        organization: me.organization.into(),
        organizations: me.organizations.into_iter().map(MeOrganization::from).collect(),
        capabilities: MeCapabilities { developer: caller.role >= Role::Developer, model_api },
        key,
    }))
}
