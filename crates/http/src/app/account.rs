//! A person's own account and its sessions.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{AppendHeaders, IntoResponse};
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_governance::policies::PasswordRules;
use tale_identity::accounts;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{Visitor, cookie};
use crate::body::Body;
use crate::caller::{BeforeRelease, Signed};
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::session_copy;
use crate::state::App;

/// The account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Account {
    /// The person.
    #[schema(format = Uuid)]
    id: String,
    /// Display name.
    name: String,
    /// Sign-in address.
    email: String,
    /// Whether a password is set.
    has_password: bool,
    password_policy: PasswordPolicy,
}

/// What a new password must be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasswordPolicy {
    /// Fewest characters.
    min_length: usize,
    /// An upper-case letter.
    require_upper: bool,
    /// A lower-case letter.
    require_lower: bool,
    /// A digit.
    require_digit: bool,
    /// A character that is neither letter, digit nor white space.
    require_special: bool,
}

impl From<PasswordRules> for PasswordPolicy {
    fn from(policy: PasswordRules) -> Self {
        Self {
            min_length: usize::from(policy.min_length),
            require_upper: policy.require_upper,
            require_lower: policy.require_lower,
            require_digit: policy.require_digit,
            require_special: policy.require_special,
        }
    }
}

impl From<accounts::Account> for Account {
    fn from(account: accounts::Account) -> Self {
        Self {
            id: account.id.to_string(),
            name: account.name,
            email: account.email,
            has_password: account.has_password,
            password_policy: account.password_policy.into(),
        }
    }
}

/// Another display name.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateAccountRequest {
    /// 1 to 200 characters.
    name: String,
}

/// Another password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangePasswordRequest {
    /// The password so far; absent for an account that has none yet.
    #[schema(nullable = false)]
    current_password: Option<String>,
    /// The new one.
    new_password: String,
}

/// A signed-in browser.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AccountSession {
    /// The session.
    #[schema(format = Uuid)]
    id: String,
    /// Whether it is this browser.
    current: bool,
    /// The browser's words about itself.
    #[schema(required)]
    user_agent: Option<String>,
    /// The network it signed in from.
    network: String,
    /// When it signed in, in epoch milliseconds.
    created_at: i64,
    /// When it was used last, to the minute, in epoch milliseconds.
    last_used_at: i64,
}

/// Every signed-in browser.
#[derive(Serialize, ToSchema)]
struct AccountSessions {
    sessions: Vec<AccountSession>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(account, update_account))
        .routes(routes!(change_password))
        .routes(routes!(sessions))
        .routes(routes!(end_session))
        .routes(routes!(end_other_sessions))
}

/// The person's own account.
#[utoipa::path(get, path = "/api/app/account", tag = "account", responses((status = 200, body = Account)), operation_id = "read_account")]
async fn account(
    State(app): State<App>,
    BeforeRelease(principal): BeforeRelease,
) -> Result<Json<Account>, HttpProblem> {
    Ok(Json(app.identity.account(&principal).await?.into()))
}

/// Changes the display name.
#[utoipa::path(patch, path = "/api/app/account", tag = "account", request_body = UpdateAccountRequest, responses((status = 200, body = Account)))]
async fn update_account(
    State(app): State<App>,
    Signed(principal): Signed,
    body: Body<UpdateAccountRequest>,
) -> Result<Json<Account>, HttpProblem> {
    Ok(Json(app.identity.rename_account(&principal, &body.read()?.name).await?.into()))
}

/// Changes the password, or sets the first one, and ends every session of the person. When another password had to be
/// chosen before anything else, the session that asks goes on.
#[utoipa::path(post, path = "/api/app/account/password", tag = "account", request_body = ChangePasswordRequest, responses((status = 204)))]
async fn change_password(
    State(app): State<App>,
    BeforeRelease(principal): BeforeRelease,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<ChangePasswordRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let form = body.read()?;
    let goes_on = match &form.current_password {
        Some(current) => app.identity.change_password(&principal, current, &form.new_password, &device).await?,
        None => {
            app.identity.set_first_password(&principal, &form.new_password).await?;
            false
        }
    };
    let ended = match goes_on {
        true => Vec::new(),
        false => session_copy::forgotten(&app, &origin.0, cookie(&app, &origin.0, "", Some(0))?),
    };
    Ok((StatusCode::NO_CONTENT, AppendHeaders(ended)))
}

/// Every browser in which the person is signed in.
#[utoipa::path(get, path = "/api/app/account/sessions", tag = "account", responses((status = 200, body = AccountSessions)), operation_id = "list_account_sessions")]
async fn sessions(State(app): State<App>, Signed(principal): Signed) -> Result<Json<AccountSessions>, HttpProblem> {
    let sessions = app.identity.sessions(&principal).await?;
    let sessions = sessions
        .into_iter()
        .map(|session| AccountSession {
            id: session.id.to_string(),
            current: session.current,
            user_agent: session.user_agent,
            network: session.network,
            created_at: session.created_at.timestamp_millis(),
            last_used_at: session.last_used_at.timestamp_millis(),
        })
        .collect();
    Ok(Json(AccountSessions { sessions }))
}

/// Signs one browser out.
#[utoipa::path(delete, path = "/api/app/account/sessions/{id}", tag = "account", params(("id" = String, Path)), responses((status = 204)), operation_id = "end_account_session")]
async fn end_session(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    let id = id.parse().map_err(|_| Problem::new(Code::SessionNotFound, "This session does not exist any more."))?;
    app.identity.end_session(&principal, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Signs every other browser out.
#[utoipa::path(post, path = "/api/app/account/sessions/end-others", tag = "account", responses((status = 204)), operation_id = "end_other_account_sessions")]
async fn end_other_sessions(State(app): State<App>, Signed(principal): Signed) -> Result<StatusCode, HttpProblem> {
    app.identity.end_other_sessions(&principal).await?;
    Ok(StatusCode::NO_CONTENT)
}
