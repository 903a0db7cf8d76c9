//! Competences that are granted to members (CMP-1…7, RES-81).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tale_core::ids::UserId;
use tale_core::{Code, Problem};
use tale_identity::Capability;
use tale_identity::competences::{Grant, GrantStatus, NewGrant};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_competences, grant_competence)).routes(routes!(revoke_competence))
}

/// What a grant is now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CompetenceStatus {
    Active,
    Expired,
    Revoked,
}

/// A line of the register.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CompetenceGrant {
    /// Names it when it is revoked.
    #[schema(format = Uuid)]
    record_id: String,
    #[schema(format = Uuid)]
    user_id: String,
    /// The person's name.
    name: String,
    /// The person's address.
    email: String,
    /// Whether the person is a member now.
    member: bool,
    /// A capability of the platform (`tale:…`), or a qualification in the organization's own words.
    competence: String,
    /// What shows it; may be empty.
    evidence: String,
    status: CompetenceStatus,
    /// The name of who granted it; `null` once their account is gone.
    #[schema(required)]
    granted_by: Option<String>,
    /// In epoch milliseconds.
    granted_at: i64,
    /// When it ends, in epoch milliseconds; `null` is never.
    #[schema(required)]
    expires_at: Option<i64>,
    /// The name of who revoked it, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revoked_by: Option<String>,
    /// When it was revoked, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revoked_at: Option<i64>,
    /// Why: `revoked`, `replaced` (by a new grant after it had expired) or `memberRemoved`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revoke_reason: Option<String>,
}

impl From<Grant> for CompetenceGrant {
    fn from(grant: Grant) -> Self {
        Self {
            record_id: grant.id.to_string(),
            user_id: grant.user.to_string(),
            name: grant.name,
            email: grant.email,
            member: grant.member,
            competence: grant.competence,
            evidence: grant.evidence,
            status: match grant.status {
                GrantStatus::Active => CompetenceStatus::Active,
                GrantStatus::Expired => CompetenceStatus::Expired,
                GrantStatus::Revoked => CompetenceStatus::Revoked,
            },
            granted_by: grant.granted_by,
            granted_at: grant.granted_at.timestamp_millis(),
            expires_at: grant.expires_at.map(|end| end.timestamp_millis()),
            revoked_by: grant.revoked_by,
            revoked_at: grant.revoked_at.map(|at| at.timestamp_millis()),
            revoke_reason: grant.revoke_reason,
        }
    }
}

/// The register.
#[derive(Serialize, ToSchema)]
struct Competences {
    /// Every grant that was not revoked and the latest 1,000 that were, the newest first.
    grants: Vec<CompetenceGrant>,
}

/// Whose grants.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CompetencesQuery {
    /// Only those of this person.
    #[param(value_type = Option<String>)]
    user_id: Option<UserId>,
}

/// A competence to grant.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GrantCompetenceRequest {
    /// The member.
    #[schema(value_type = String, format = Uuid)]
    user_id: String,
    /// `tale:models.api`, another capability of the platform, or a qualification of 1 to 120 characters.
    competence: String,
    /// What shows it, at most 2,000 characters.
    #[serde(default)]
    evidence: String,
    /// When it ends, in epoch milliseconds; absent is never.
    #[serde(default)]
    expires_at: Option<i64>,
}

/// What was granted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GrantedCompetence {
    /// Names the grant when it is revoked.
    #[schema(format = Uuid)]
    record_id: String,
}

/// The register of competences.
#[utoipa::path(get, path = "/api/app/governance/competences", tag = "app: governance", params(("orgId" = Option<String>, Query), CompetencesQuery), responses((status = 200, body = Competences)))]
async fn list_competences(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<CompetencesQuery>, HttpProblem>,
) -> Result<Json<Competences>, HttpProblem> {
    caller.require(Capability::CompetencesManage)?;
    let Query(query) = query?;
    let grants = app.identity.competences(&caller, query.user_id).await?;
    Ok(Json(Competences { grants: grants.into_iter().map(CompetenceGrant::from).collect() }))
}

/// Grants a competence to a member; it counts from their next request on.
#[utoipa::path(post, path = "/api/app/governance/competences", tag = "app: governance", params(("orgId" = Option<String>, Query)), request_body = GrantCompetenceRequest, responses((status = 201, body = GrantedCompetence)))]
async fn grant_competence(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<GrantCompetenceRequest>,
) -> Result<(StatusCode, Json<GrantedCompetence>), HttpProblem> {
    caller.require(Capability::CompetencesManage)?;
    let form = body.read()?;
    let user = form.user_id.parse().map_err(|_| Problem::invalid_field("userId", "must be the id of a member"))?;
    let end = |at| {
        DateTime::from_timestamp_millis(at)
            .ok_or_else(|| Problem::invalid_field("expiresAt", "must be a time in epoch milliseconds"))
    };
    let new = NewGrant {
        user,
        competence: form.competence,
        evidence: form.evidence,
        expires_at: form.expires_at.map(end).transpose()?,
    };
    let id = app.identity.grant_competence(&caller, &new).await?;
    Ok((StatusCode::CREATED, Json(GrantedCompetence { record_id: id.to_string() })))
}

/// Revokes a grant, from the person's next request on.
#[utoipa::path(post, path = "/api/app/governance/competences/{recordId}/revoke", tag = "app: governance", params(("recordId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn revoke_competence(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::CompetencesManage)?;
    let id = id
        .parse()
        .map_err(|_| Problem::new(Code::CompetenceNotFound, "This grant does not exist, or it was revoked before."))?;
    app.identity.revoke_competence(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
