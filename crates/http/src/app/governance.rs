//! Policies (spec 95, section 1).

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tale_core::ids::ApiKeyId;
use tale_governance::policies::{Document, Key, ModelRules, Readers};
use tale_identity::Capability;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::composer::ModelView;
use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read_policy, change_policy))
        .routes(routes!(list_governed_models))
        .routes(routes!(list_key_names))
}

/// A policy.
#[derive(Serialize, ToSchema)]
#[schema(as = Policy)]
struct PolicyView {
    /// The document, every field filled in.
    #[schema(value_type = Object)]
    value: Value,
    /// Counts the writes; 0 = never written.
    version: i64,
    /// Why the present document cannot be read. `value` is then the last that could, and what depends on the
    /// policy is refused until it is saved again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    unreadable: Option<String>,
}

impl From<Document> for PolicyView {
    fn from(document: Document) -> Self {
        Self { value: document.value, version: document.version, unreadable: document.unreadable }
    }
}

/// A change of a policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PolicyChange {
    /// What is to be set (JSON merge patch): fields that are left out stay, `null` goes back to the default, and
    /// lists are replaced whole.
    #[schema(value_type = Object)]
    value: Value,
    /// The version that was changed; without it the change is made whatever the version.
    version: Option<i64>,
}

/// A policy of the organization.
#[utoipa::path(get, path = "/api/app/governance/policies/{key}", tag = "app: governance", params(("key" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = PolicyView)))]
async fn read_policy(
    State(app): State<App>,
    Member(caller): Member,
    Path(key): Path<String>,
) -> Result<Json<PolicyView>, HttpProblem> {
    let key = Key::parse(&key);
    if !key.as_ref().is_ok_and(|key| key.readers() == Readers::Members) {
        caller.require(Capability::GovernanceManage)?;
    }
    Ok(Json(app.policies.document(caller.org, key?).await?.into()))
}

/// Changes a policy; it counts from the next request on.
#[utoipa::path(put, path = "/api/app/governance/policies/{key}", tag = "app: governance", params(("key" = String, Path), ("orgId" = Option<String>, Query)), request_body = PolicyChange, responses((status = 200, body = PolicyView)))]
async fn change_policy(
    State(app): State<App>,
    Member(caller): Member,
    Path(key): Path<String>,
    body: Body<PolicyChange>,
) -> Result<Json<PolicyView>, HttpProblem> {
    caller.require(Capability::GovernanceManage)?;
    let key = Key::parse(&key)?;
    let change = body.read()?;
    Ok(Json(app.policies.set(caller.org, &caller.actor(), key, change.value, change.version).await?.into()))
}

/// Every chat model of the organization.
#[derive(Serialize, ToSchema)]
struct GovernedModels {
    models: Vec<ModelView>,
}

/// The chat models that rules can name: all of the organization, whoever may use them.
#[utoipa::path(get, path = "/api/app/governance/models", tag = "app: governance", params(("orgId" = Option<String>, Query)), responses((status = 200, body = GovernedModels)))]
async fn list_governed_models(
    State(app): State<App>,
    Member(caller): Member,
) -> Result<Json<GovernedModels>, HttpProblem> {
    caller.require(Capability::GovernanceManage)?;
    let models = app.models.chat_models(caller.org, &ModelRules::none()).await?;
    Ok(Json(GovernedModels { models: models.into_iter().map(ModelView::from).collect() }))
}

/// A key of a member.
#[derive(Serialize, ToSchema)]
struct ApiKeyName {
    id: ApiKeyId,
    name: String,
    /// Who holds it.
    holder: String,
}

/// Keys of members.
#[derive(Serialize, ToSchema)]
struct ApiKeyNames {
    keys: Vec<ApiKeyName>,
}

/// The API keys that rules can name: those of the members, 1,000 at most.
#[utoipa::path(get, path = "/api/app/governance/api-keys", tag = "app: governance", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ApiKeyNames)))]
async fn list_key_names(State(app): State<App>, Member(caller): Member) -> Result<Json<ApiKeyNames>, HttpProblem> {
    let keys = app.identity.member_keys(&caller).await?;
    let named = keys.into_iter().map(|key| ApiKeyName { id: key.id, name: key.name, holder: key.holder });
    Ok(Json(ApiKeyNames { keys: named.collect() }))
}
