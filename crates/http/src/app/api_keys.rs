//! A person's API keys.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_identity::Capability;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApiKey {
    /// The key.
    #[schema(format = Uuid)]
    id: String,
    /// Its name.
    name: String,
    /// Its beginning and end.
    fragment: String,
    /// When it was made, in epoch milliseconds.
    created_at: i64,
    /// When it ends, in epoch milliseconds; `null` is never.
    #[schema(required)]
    expires_at: Option<i64>,
    /// When it was used last, to the minute, in epoch milliseconds.
    #[schema(required)]
    last_used_at: Option<i64>,
}

/// The person's keys.
#[derive(Serialize, ToSchema)]
struct ApiKeys {
    keys: Vec<ApiKey>,
}

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateApiKeyRequest {
    /// 1 to 100 characters.
    name: String,
    /// 1 to 366 days, or `null` for a key that never ends.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    expires_in_days: Option<i64>,
}

/// A new key. The secret is shown only now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreatedApiKey {
    /// The key's id.
    #[schema(format = Uuid)]
    id: String,
    /// The secret.
    key: String,
    /// Its name.
    name: String,
    /// When it ends, in epoch milliseconds; `null` is never.
    #[schema(required)]
    expires_at: Option<i64>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// The person's keys, newest first.
#[utoipa::path(get, path = "/api/app/api-keys", tag = "api-keys", params(("orgId" = Option<String>, Query)), responses((status = 200, body = ApiKeys)), operation_id = "list_api_keys")]
async fn list(State(app): State<App>, Member(caller): Member) -> Result<Json<ApiKeys>, HttpProblem> {
    let keys = app.identity.keys(&caller).await?;
    let keys = keys
        .into_iter()
        .map(|key| ApiKey {
            id: key.id.to_string(),
            name: key.name,
            fragment: key.fragment,
            created_at: key.created_at.timestamp_millis(),
            expires_at: key.expires_at.map(|at| at.timestamp_millis()),
            last_used_at: key.last_used_at.map(|at| at.timestamp_millis()),
        })
        .collect();
    Ok(Json(ApiKeys { keys }))
}

/// Makes a key for the person.
#[utoipa::path(post, path = "/api/app/api-keys", tag = "api-keys", params(("orgId" = Option<String>, Query)), request_body = CreateApiKeyRequest, responses((status = 201, body = CreatedApiKey)), operation_id = "create_api_key")]
async fn create(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<CreateApiKeyRequest>,
) -> Result<(StatusCode, Json<CreatedApiKey>), HttpProblem> {
    caller.require(Capability::ApiKeysOwn)?;
    let form = body.read()?;
    let key = app.identity.create_key(&caller, &form.name, form.expires_in_days).await?;
    let made = CreatedApiKey {
        id: key.id.to_string(),
        key: key.secret,
        name: key.name,
        expires_at: key.expires_at.map(|at| at.timestamp_millis()),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes a key of the person, for good.
#[utoipa::path(delete, path = "/api/app/api-keys/{id}", tag = "api-keys", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "revoke_api_key")]
async fn revoke(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    let id = id
        .parse()
        .map_err(|_| Problem::new(Code::ApiKeyNotFound, "This API key does not exist, or it was revoked before."))?;
    app.identity.revoke_key(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
