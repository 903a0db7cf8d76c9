//! Policies (spec 95, section 1).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tale_core::ids::ApiKeyId;
use tale_governance::policies::{Document, Key, ModelRules, Readers};
use tale_identity::Capability;
use tale_identity::api_keys::KeyStatus;
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

/// A policy, with its version as the tag that `If-Match` of a change names.
type Tagged = ([(HeaderName, String); 1], Json<PolicyView>);

fn tagged(document: Document) -> Tagged {
    ([(header::ETAG, format!("\"{}\"", document.version))], Json(document.into()))
}

/// The version that a change is meant for, by its body and by `If-Match`. Where they disagree, and where the header
/// is no version, it is one that never was.
fn meant(body: Option<i64>, headers: &HeaderMap) -> Option<i64> {
    const NEVER: i64 = -1;
    let tag = headers.get(header::IF_MATCH).map(|tag| tag.to_str().unwrap_or_default().trim());
    let tag = tag
        .filter(|tag| *tag != "*")
        .map(|tag| tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')?.parse().ok()).unwrap_or(NEVER));
    match (body, tag) {
        (Some(body), Some(tag)) if body != tag => Some(NEVER),
        (body, tag) => body.or(tag),
    }
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
    /// The version that was changed; without it and without `If-Match`, the change is made whatever the version.
    version: Option<i64>,
}

/// A policy of the organization.
#[utoipa::path(get, path = "/api/app/governance/policies/{key}", tag = "app: governance", params(("key" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = PolicyView)))]
async fn read_policy(
    State(app): State<App>,
    Member(caller): Member,
    Path(key): Path<String>,
) -> Result<Tagged, HttpProblem> {
    let key = Key::parse(&key);
    let for_members = key.as_ref().is_ok_and(|key| key.readers() == Readers::Members);
    caller.require(if for_members { Capability::PoliciesRead } else { Capability::GovernanceManage })?;
    Ok(tagged(app.policies.document(caller.org, key?).await?))
}

/// Changes a policy; it counts from the next request on. `If-Match` with the version in quotes is the same as `version`.
#[utoipa::path(put, path = "/api/app/governance/policies/{key}", tag = "app: governance", params(("key" = String, Path), ("orgId" = Option<String>, Query)), request_body = PolicyChange, responses((status = 200, body = PolicyView)))]
async fn change_policy(
    State(app): State<App>,
    Member(caller): Member,
    Path(key): Path<String>,
    headers: HeaderMap,
    body: Body<PolicyChange>,
) -> Result<Tagged, HttpProblem> {
    caller.require(Capability::GovernanceManage)?;
    let key = Key::parse(&key)?;
    let change = body.read()?;
    let version = meant(change.version, &headers);
    if key == Key::SandboxWorkspaces {
        caller.require(Capability::WorkspacesManage)?;
    }
    if key == Key::SandboxQuota {
        caller.require(Capability::SandboxesManage)?;
        // What the limits must fit is the host's to say.
        return Ok(tagged(app.workshop()?.set_limits(caller.org, &caller.actor(), change.value, version).await?));
    }
    Ok(tagged(app.policies.set(caller.org, &caller.actor(), key, change.value, version).await?))
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

/// A key that a rule can name.
#[derive(Serialize, ToSchema)]
struct ApiKeyName {
    id: ApiKeyId,
    name: String,
    /// The member, the team or the organization that it belongs to.
    holder: String,
}

/// What became of a key: its time is over, its holder's seat is disabled, it was revoked, its holder left, nothing is
/// stored of it any more, or it was never known here.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum ApiKeyStatus {
    Expired,
    Disabled,
    Revoked,
    FormerMember,
    Unavailable,
    Unknown,
}

impl From<KeyStatus> for ApiKeyStatus {
    fn from(status: KeyStatus) -> Self {
        match status {
            KeyStatus::Expired => Self::Expired,
            KeyStatus::Disabled => Self::Disabled,
            KeyStatus::Revoked => Self::Revoked,
            KeyStatus::FormerMember => Self::FormerMember,
            KeyStatus::Unavailable => Self::Unavailable,
            KeyStatus::Unknown => Self::Unknown,
        }
    }
}

/// A key that a rule names and that does not work.
#[derive(Serialize, ToSchema)]
struct GoneApiKey {
    id: ApiKeyId,
    /// Absent when it is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    status: ApiKeyStatus,
}

/// The keys that work in the organization, and those that its rules name beside them.
#[derive(Serialize, ToSchema)]
struct ApiKeyNames {
    keys: Vec<ApiKeyName>,
    /// Named by rules, and without effect.
    gone: Vec<GoneApiKey>,
}

/// The API keys that rules can name: those that work in the organization, 1,000 at most; and those that rules name
/// although they do not.
#[utoipa::path(get, path = "/api/app/governance/api-keys", tag = "app: governance", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ApiKeyNames)))]
async fn list_key_names(State(app): State<App>, Member(caller): Member) -> Result<Json<ApiKeyNames>, HttpProblem> {
    let keys = app.identity.working_keys(&caller).await?;
    let named = keys.into_iter().map(|key| ApiKeyName { id: key.id, name: key.name, holder: key.holder });
    let gone = app.identity.gone_keys(&caller).await?;
    let gone = gone.into_iter().map(|key| GoneApiKey { id: key.id, name: key.name, status: key.status.into() });
    Ok(Json(ApiKeyNames { keys: named.collect(), gone: gone.collect() }))
}
