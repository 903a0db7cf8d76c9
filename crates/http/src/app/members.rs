//! The members of an organization.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tale_core::ids::UserId;
use tale_core::{Code, Problem};
use tale_identity::{Capability, members};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::SignInBlockKind;
use crate::body::Body;
use crate::caller;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;
use crate::v1::holder;

/// What a person may be in an organization.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Everything.
    Owner,
    /// Everything except what belongs to the owner.
    Admin,
    /// Also the technical settings.
    Developer,
    /// Also changes documents.
    Editor,
    /// Chats and reads.
    Member,
    /// No access.
    Disabled,
}

impl From<tale_identity::Role> for Role {
    fn from(role: tale_identity::Role) -> Self {
        match role {
            tale_identity::Role::Owner => Self::Owner,
            tale_identity::Role::Admin => Self::Admin,
            tale_identity::Role::Developer => Self::Developer,
            tale_identity::Role::Editor => Self::Editor,
            tale_identity::Role::Member => Self::Member,
            tale_identity::Role::Disabled => Self::Disabled,
        }
    }
}

impl From<Role> for tale_identity::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Owner => Self::Owner,
            Role::Admin => Self::Admin,
            Role::Developer => Self::Developer,
            Role::Editor => Self::Editor,
            Role::Member => Self::Member,
            Role::Disabled => Self::Disabled,
        }
    }
}

/// A member.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Member {
    /// The person.
    #[schema(format = Uuid)]
    user_id: String,
    /// Display name.
    name: String,
    /// Sign-in address.
    email: String,
    role: Role,
    /// Whether the person made the organization.
    is_creator: bool,
    /// Since when, in epoch milliseconds.
    joined_at: i64,
}

impl From<members::Member> for Member {
    fn from(member: members::Member) -> Self {
        Self {
            user_id: member.user.to_string(),
            name: member.name,
            email: member.email,
            role: member.role.into(),
            is_creator: member.is_creator,
            joined_at: member.joined_at.timestamp_millis(),
        }
    }
}

/// Every member.
#[derive(Serialize, ToSchema)]
struct Members {
    members: Vec<Member>,
}

/// Someone to add.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AddMemberRequest {
    /// The address; an account that exists is reused.
    email: String,
    /// Display name of a new account.
    name: Option<String>,
    /// Any role but owner.
    role: Role,
    /// Password of a new account; ignored when the account exists.
    password: Option<String>,
    /// Whether a new account has to replace that password before anything else.
    #[serde(default)]
    must_change_password: bool,
}

/// Someone added.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddedMember {
    /// The person.
    #[schema(format = Uuid)]
    id: String,
    /// Whether the account is new.
    created: bool,
}

/// Whose account is asked for.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LookUpQuery {
    /// The address.
    email: String,
}

/// What there is of an address.
#[derive(Serialize, ToSchema)]
struct AccountLookUp {
    /// Whether it has an account.
    account: bool,
    /// Whether that is a member already.
    member: bool,
}

/// Which failures are forgotten.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ClearQuery {
    /// Absent: passwords.
    #[param(inline)]
    kind: Option<SignInBlockKind>,
}

/// What changes; absent fields stay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateMemberRequest {
    /// Another role.
    role: Option<Role>,
    /// Another display name.
    name: Option<String>,
    /// Another password; ends the member's sessions.
    password: Option<String>,
    /// Whether the member has to replace that password before anything else.
    #[serde(default)]
    must_change_password: bool,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(look_up))
        .routes(routes!(update, remove))
        .routes(routes!(transfer_ownership))
        .routes(routes!(clear_sign_in_blocks))
}

fn target(id: &str) -> Result<UserId, Problem> {
    id.parse().map_err(|_| Problem::new(Code::MemberNotFound, "This person is not a member of the organization."))
}

/// Every member, first come first.
#[utoipa::path(get, path = "/api/app/members", tag = "members", params(("orgId" = Option<String>, Query)), responses((status = 200, body = Members)), operation_id = "list_members")]
async fn list(State(app): State<App>, caller::Member(caller): caller::Member) -> Result<Json<Members>, HttpProblem> {
    let members = app.identity.members(&caller).await?.into_iter().map(Member::from).collect();
    Ok(Json(Members { members }))
}

/// Adds a member, with a new account when the address has none.
#[utoipa::path(post, path = "/api/app/members", tag = "members", params(("orgId" = Option<String>, Query)), request_body = AddMemberRequest, responses((status = 201, body = AddedMember)), operation_id = "add_member")]
async fn add(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    body: Body<AddMemberRequest>,
) -> Result<(StatusCode, Json<AddedMember>), HttpProblem> {
    caller.require(Capability::MembersManage)?;
    let form = body.read()?;
    let new = members::NewMember {
        email: form.email,
        name: form.name,
        role: form.role.into(),
        password: form.password,
        must_change_password: form.must_change_password,
    };
    let added = app.identity.add_member(&caller, &new).await?;
    Ok((StatusCode::CREATED, Json(AddedMember { id: added.user.to_string(), created: added.created })))
}

/// Says whether an address has an account on this Tale, so that nobody thinks of a password for one that is there. At
/// most 30 an hour, each of them an entry of the audit log.
#[utoipa::path(get, path = "/api/app/members/lookup", tag = "members", params(("orgId" = Option<String>, Query), LookUpQuery), responses((status = 200, body = AccountLookUp)), operation_id = "look_up_account")]
async fn look_up(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    query: Result<Query<LookUpQuery>, HttpProblem>,
) -> Result<Json<AccountLookUp>, HttpProblem> {
    caller.require(Capability::MembersManage)?;
    let Query(query) = query?;
    app.limits.account_lookups.take(holder(&caller))?;
    let found = app.identity.look_up_account(&caller, &query.email).await?;
    Ok(Json(AccountLookUp { account: found.account, member: found.member }))
}

/// Changes a member's role, name or password.
#[utoipa::path(patch, path = "/api/app/members/{userId}", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query)), request_body = UpdateMemberRequest, responses((status = 200, body = Member)), operation_id = "update_member")]
async fn update(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
    body: Body<UpdateMemberRequest>,
) -> Result<Json<Member>, HttpProblem> {
    members::may_change(&caller)?;
    let user = target(&user)?;
    let form = body.read()?;
    let change = members::MemberChange {
        role: form.role.map(Into::into),
        name: form.name,
        password: form.password,
        must_change_password: form.must_change_password,
    };
    Ok(Json(app.identity.update_member(&caller, user, &change).await?.into()))
}

/// Removes a member.
#[utoipa::path(delete, path = "/api/app/members/{userId}", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "remove_member")]
async fn remove(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    members::may_remove(&caller)?;
    app.identity.remove_member(&caller, target(&user)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes another member the owner.
#[utoipa::path(post, path = "/api/app/members/{userId}/transfer-ownership", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)))]
async fn transfer_ownership(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::OrganizationOwn)?;
    app.identity.transfer_ownership(&caller, target(&user)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets a member's failed sign-ins, so that a block of theirs ends now. Not one's own, and not those of somebody who
/// belongs to another organization too.
#[utoipa::path(delete, path = "/api/app/members/{userId}/sign-in-blocks", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query), ClearQuery), responses((status = 204)), operation_id = "clear_sign_in_blocks")]
async fn clear_sign_in_blocks(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
    query: Result<Query<ClearQuery>, HttpProblem>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::MembersManage)?;
    let Query(query) = query?;
    let kind = query.kind.unwrap_or(SignInBlockKind::Password);
    app.identity.clear_sign_in_blocks(&caller, target(&user)?, kind.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}
