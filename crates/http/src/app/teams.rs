//! The teams of an organization.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::ids::{TeamId, UserId};
use tale_core::{Code, Problem};
use tale_identity::{Capability, teams};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::Member;
use crate::problem::HttpProblem;
use crate::state::App;

/// A team.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Team {
    id: TeamId,
    /// Unique in the organization, whatever its case and spaces.
    name: String,
    /// What it is for; may be empty.
    description: String,
    /// How many people are in it.
    member_count: u64,
    /// Whether the caller is one of them.
    mine: bool,
    /// Whether its name and its people are a directory's to change.
    managed: bool,
    /// Since when, in epoch milliseconds.
    created_at: i64,
}

impl From<teams::Team> for Team {
    fn from(team: teams::Team) -> Self {
        Self {
            id: team.id,
            name: team.name,
            description: team.description,
            member_count: team.members,
            mine: team.mine,
            managed: team.managed,
            created_at: team.created_at.timestamp_millis(),
        }
    }
}

/// Every team.
#[derive(Serialize, ToSchema)]
struct Teams {
    teams: Vec<Team>,
}

/// Somebody in a team.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TeamMember {
    user_id: UserId,
    /// Display name.
    name: String,
    /// Sign-in address.
    email: String,
}

/// Who is in a team.
#[derive(Serialize, ToSchema)]
struct TeamMembers {
    members: Vec<TeamMember>,
}

/// What the deletion of a team touches.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TeamDeletion {
    /// People who lose the team and stay in the organization.
    members: i64,
    /// Live API keys of the team, which end with it.
    api_keys: i64,
    /// Usage limits of the team or of each of its members, which no longer apply.
    limits: i64,
    /// Rules about models for the team, which no longer apply.
    model_rules: i64,
}

/// A team to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewTeam {
    /// 1 to 100 characters.
    name: String,
    /// At most 500 characters.
    #[serde(default)]
    description: String,
    /// Members of the organization; nobody = the person who makes the team.
    #[serde(default)]
    user_ids: Vec<UserId>,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TeamChange {
    /// Another name.
    name: Option<String>,
    /// Another description.
    description: Option<String>,
}

/// Members of the organization.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TeamAdditions {
    /// At most 500.
    user_ids: Vec<UserId>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_teams, create_team))
        .routes(routes!(update_team, delete_team))
        .routes(routes!(preview_team_deletion))
        .routes(routes!(list_team_members, add_team_members))
        .routes(routes!(remove_team_member))
}

fn id_of(text: &str) -> Result<TeamId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::TeamNotFound, "This team does not exist."))
}

/// Every team of the organization, by name.
#[utoipa::path(get, path = "/api/app/teams", tag = "teams", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Teams)))]
async fn list_teams(State(app): State<App>, Member(caller): Member) -> Result<Json<Teams>, HttpProblem> {
    let teams = app.identity.teams(&caller).await?.into_iter().map(Team::from).collect();
    Ok(Json(Teams { teams }))
}

/// Makes a team.
#[utoipa::path(post, path = "/api/app/teams", tag = "teams", params(("orgId" = Option<String>, Query)), request_body = NewTeam, responses((status = 201, body = Team)))]
async fn create_team(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<NewTeam>,
) -> Result<(StatusCode, Json<Team>), HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    let form = body.read()?;
    let new = teams::NewTeam { name: form.name, description: form.description, members: form.user_ids };
    Ok((StatusCode::CREATED, Json(app.identity.create_team(&caller, &new).await?.into())))
}

/// Renames or describes a team.
#[utoipa::path(patch, path = "/api/app/teams/{id}", tag = "teams", params(("id" = TeamId, Path), ("orgId" = Option<String>, Query)), request_body = TeamChange, responses((status = 204)))]
async fn update_team(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<TeamChange>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    let id = id_of(&id)?;
    let form = body.read()?;
    let change = teams::TeamChange { name: form.name, description: form.description };
    app.identity.update_team(&caller, id, &change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the deletion of a team would touch now.
#[utoipa::path(get, path = "/api/app/teams/{id}/deletion", tag = "teams", params(("id" = TeamId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = TeamDeletion)))]
async fn preview_team_deletion(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<TeamDeletion>, HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    let found = app.identity.team_deletion(&caller, id_of(&id)?).await?;
    Ok(Json(TeamDeletion {
        members: found.members,
        api_keys: found.api_keys,
        limits: found.limits,
        model_rules: found.model_rules,
    }))
}

/// Deletes a team. Its people stay members of the organization.
#[utoipa::path(delete, path = "/api/app/teams/{id}", tag = "teams", params(("id" = TeamId, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn delete_team(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    app.identity.delete_team(&caller, id_of(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who is in a team, for its members and for owners and admins.
#[utoipa::path(get, path = "/api/app/teams/{id}/members", tag = "teams", params(("id" = TeamId, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = TeamMembers)))]
async fn list_team_members(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<TeamMembers>, HttpProblem> {
    let members = app.identity.team_members(&caller, id_of(&id)?).await?;
    let shown = |member: teams::TeamMember| TeamMember { user_id: member.user, name: member.name, email: member.email };
    Ok(Json(TeamMembers { members: members.into_iter().map(shown).collect() }))
}

/// Puts members of the organization into a team, all or none.
#[utoipa::path(post, path = "/api/app/teams/{id}/members", tag = "teams", params(("id" = TeamId, Path), ("orgId" = Option<String>, Query)), request_body = TeamAdditions, responses((status = 204)))]
async fn add_team_members(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<TeamAdditions>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    let id = id_of(&id)?;
    app.identity.add_to_team(&caller, id, &body.read()?.user_ids).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes somebody out of a team, which keeps at least one member.
#[utoipa::path(delete, path = "/api/app/teams/{id}/members/{userId}", tag = "teams", params(("id" = TeamId, Path), ("userId" = UserId, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn remove_team_member(
    State(app): State<App>,
    Member(caller): Member,
    Path((id, user)): Path<(String, String)>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::TeamsManage)?;
    let user = user.parse().map_err(|_| Problem::new(Code::MemberNotFound, "This person is not in the team."))?;
    app.identity.remove_from_team(&caller, id_of(&id)?, user).await?;
    Ok(StatusCode::NO_CONTENT)
}
