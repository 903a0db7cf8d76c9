//! API keys: a person's own, and those made for a member, a team or the organization.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tale_core::ids::ApiKeyId;
use tale_core::{Code, Problem};
use tale_identity::api_keys::{BelongsTo, CreatedKey, Expiry};
use tale_identity::keys::KeyKind;
use tale_identity::{Capability, Role};
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
    /// To whom it belongs.
    kind: Kind,
    /// The name of the member or the team; `null` for one's own keys and the organization's.
    #[schema(required)]
    holder: Option<String>,
    /// The role that a key of a team or of the organization acts with.
    #[schema(required, value_type = Option<String>)]
    role: Option<Role>,
    /// Who made it for others, while they have an account.
    #[schema(required)]
    maker: Option<String>,
    /// Whether the caller can replace it.
    replaceable: bool,
}

/// To whom a key belongs.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ApiKeyKind)]
enum Kind {
    #[default]
    Personal,
    Member,
    Team,
    Organization,
}

impl From<KeyKind> for Kind {
    fn from(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Personal => Self::Personal,
            KeyKind::Member => Self::Member,
            KeyKind::Team => Self::Team,
            KeyKind::Organization => Self::Organization,
        }
    }
}

/// The keys that the person sees.
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
    /// 1 to 366 days, or `null` for a key that never ends. Needed unless `expiresAt` is given.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_in_days: Option<Option<i64>>,
    /// When the key ends, in epoch milliseconds: from now on, and at most a year ahead.
    #[schema(nullable = false)]
    expires_at: Option<i64>,
    /// To whom it belongs; absent = to whoever makes it.
    #[serde(default)]
    kind: Kind,
    /// The member of a key of the kind `member`.
    #[schema(value_type = Option<String>, format = Uuid)]
    user_id: Option<String>,
    /// The team of a key of the kind `team`.
    #[schema(value_type = Option<String>, format = Uuid)]
    team_id: Option<String>,
    /// The role that a key of the kind `team` (up to `developer`) or `organization` (up to `admin`) acts with.
    #[schema(value_type = Option<String>)]
    role: Option<Role>,
}

/// A field that is there, `null` or not.
fn given<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(field).map(Some)
}

impl CreateApiKeyRequest {
    /// When the key ends: one of the two ways to say it.
    fn expiry(&self) -> Result<Expiry, Problem> {
        match (self.expires_in_days, self.expires_at) {
            (Some(days), None) => Ok(days.into()),
            (None, Some(at)) => DateTime::from_timestamp_millis(at)
                .map(Expiry::At)
                .ok_or_else(|| Problem::invalid_field("expiresAt", "must be a time in epoch milliseconds")),
            (None, None) => Err(Problem::invalid_field("expiresInDays", "is required; null is never")),
            (Some(_), Some(_)) => Err(Problem::invalid_field("expiresAt", "cannot stand beside `expiresInDays`")),
        }
    }

    /// To whom the key belongs: what the kind needs is there, and nothing else.
    fn belongs(&self) -> Result<BelongsTo, Problem> {
        let given =
            [("userId", self.user_id.is_some()), ("teamId", self.team_id.is_some()), ("role", self.role.is_some())];
        let taken: &[&str] = match self.kind {
            Kind::Personal => &[],
            Kind::Member => &["userId"],
            Kind::Team => &["teamId", "role"],
            Kind::Organization => &["role"],
        };
        for (field, there) in given {
            if there && !taken.contains(&field) {
                return Err(Problem::invalid_field(field, "does not belong to a key of this kind"));
            }
            if !there && taken.contains(&field) {
                return Err(Problem::invalid_field(field, "is required for a key of this kind"));
            }
        }
        let role = self.role.unwrap_or(Role::Member);
        Ok(match self.kind {
            Kind::Personal => BelongsTo::Maker,
            Kind::Member => BelongsTo::Member(id_in("userId", self.user_id.as_deref())?),
            Kind::Team => BelongsTo::Team(id_in("teamId", self.team_id.as_deref())?, role),
            Kind::Organization => BelongsTo::Organization(role),
        })
    }
}

fn id_in<T: std::str::FromStr>(field: &str, text: Option<&str>) -> Result<T, Problem> {
    text.unwrap_or_default().parse().map_err(|_| Problem::invalid_field(field, "must be an id"))
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

/// How a key is replaced.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RotateApiKeyRequest {
    /// How long the old key goes on working: 0 to 168 hours.
    #[serde(default = "a_day")]
    overlap_hours: i64,
}

fn a_day() -> i64 {
    24
}

impl From<CreatedKey> for CreatedApiKey {
    fn from(key: CreatedKey) -> Self {
        Self {
            id: key.id.to_string(),
            key: key.secret,
            name: key.name,
            expires_at: key.expires_at.map(|at| at.timestamp_millis()),
        }
    }
}

fn id_of(text: &str) -> Result<ApiKeyId, Problem> {
    text.parse()
        .map_err(|_| Problem::new(Code::ApiKeyNotFound, "This API key does not exist, or it was revoked before."))
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke)).routes(routes!(rotate))
}

/// The person's own keys and those made for them here, newest first; for owners and admins also all that were made
/// here for others.
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
            kind: key.kind.into(),
            holder: key.holder,
            role: key.role,
            maker: key.maker,
            replaceable: key.replaceable,
        })
        .collect();
    Ok(Json(ApiKeys { keys }))
}

/// Makes a key: for oneself, or as owner or admin for a member below oneself, a team or the organization.
#[utoipa::path(post, path = "/api/app/api-keys", tag = "api-keys", params(("orgId" = Option<String>, Query)), request_body = CreateApiKeyRequest, responses((status = 201, body = CreatedApiKey)), operation_id = "create_api_key")]
async fn create(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<CreateApiKeyRequest>,
) -> Result<(StatusCode, Json<CreatedApiKey>), HttpProblem> {
    caller.require(Capability::ApiKeysOwn)?;
    let form = body.read()?;
    let made = app.identity.create_key(&caller, form.belongs()?, &form.name, form.expiry()?).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Makes a successor of a key. The old one goes on working for a while.
#[utoipa::path(post, path = "/api/app/api-keys/{id}/rotate", tag = "api-keys", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = RotateApiKeyRequest, responses((status = 201, body = CreatedApiKey)), operation_id = "rotate_api_key")]
async fn rotate(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<RotateApiKeyRequest>,
) -> Result<(StatusCode, Json<CreatedApiKey>), HttpProblem> {
    caller.require(Capability::ApiKeysOwn)?;
    let id = id_of(&id)?;
    let made = app.identity.rotate_key(&caller, id, body.read()?.overlap_hours).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Revokes a key, for good: one's own, one made for oneself or, as owner or admin, any made here for others.
#[utoipa::path(delete, path = "/api/app/api-keys/{id}", tag = "api-keys", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "revoke_api_key")]
async fn revoke(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    app.identity.revoke_key(&caller, id_of(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
