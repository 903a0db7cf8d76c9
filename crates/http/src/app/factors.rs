//! The second factors of a person's own account, and those of members.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tale_core::ids::{PasskeyId, UserId};
use tale_core::{Code, Problem};
use tale_identity::factors;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Visitor;
use super::second_factor::{CodeRequest, CredentialDescriptor, bytes_of, passkeys_here};
use crate::body::Body;
use crate::caller::{self, Signed};
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::state::App;

/// A passkey.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Passkey {
    /// The passkey.
    #[schema(format = Uuid)]
    id: String,
    /// What its owner calls it.
    name: String,
    /// When it was added, in epoch milliseconds.
    created_at: i64,
    /// When somebody signed in with it last, in epoch milliseconds.
    #[schema(required)]
    last_used_at: Option<i64>,
}

impl From<factors::Passkey> for Passkey {
    fn from(passkey: factors::Passkey) -> Self {
        Self {
            id: passkey.id.to_string(),
            name: passkey.name,
            created_at: passkey.created_at.timestamp_millis(),
            last_used_at: passkey.last_used_at.map(|at| at.timestamp_millis()),
        }
    }
}

/// The second factors of the person.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Factors {
    /// Whether an authenticator app is on.
    totp: bool,
    /// How many backup codes are left.
    backup_codes_left: u32,
    /// The passkeys, the oldest first.
    passkeys: Vec<Passkey>,
    /// Whether passkeys can be made on this page.
    passkeys_here: bool,
    /// Whether the account has a password, which an authenticator app needs.
    has_password: bool,
    /// Whether adding a passkey asks for the password.
    password_needed: bool,
    /// Whether removing a passkey is refused until the person has shown once more that it is them.
    proof_needed: bool,
}

/// The factors of a member.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemberFactors {
    /// Whether an authenticator app is on.
    totp: bool,
    /// How many backup codes are left.
    backup_codes_left: u32,
    /// The passkeys, the oldest first.
    passkeys: Vec<Passkey>,
}

/// The password once more.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfirmRequest {
    /// The person's own password.
    password: String,
}

/// What an authenticator app needs to know.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TotpSetup {
    /// The secret to type, in Base32.
    secret: String,
    /// The same with its names, as apps read it.
    uri: String,
    /// Modules on each side of the QR code of `uri`.
    qr_size: u32,
    /// The dark modules as the path of an SVG image that is `qrSize` wide and high, without a margin.
    qr_path: String,
}

/// Backup codes, told once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BackupCodes {
    /// The codes.
    codes: Vec<String>,
    /// The name of a file for them.
    file_name: String,
}

impl From<factors::BackupCodes> for BackupCodes {
    fn from(made: factors::BackupCodes) -> Self {
        Self { codes: made.codes, file_name: made.file }
    }
}

/// The password, where it is asked for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewPasskeyRequest {
    /// The person's own password; needed when `passwordNeeded` says so.
    password: Option<String>,
}

/// A question to an authenticator, as `navigator.credentials.create` takes it with its texts as bytes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasskeyCreationOptions {
    /// What is signed, in base64url.
    challenge: String,
    /// The site.
    rp_id: String,
    /// The site's name.
    rp_name: String,
    /// The person's id, in base64url.
    user_id: String,
    /// The person's address.
    user_name: String,
    /// The person's name.
    user_display_name: String,
    /// The algorithms that may be used, the preferred one first (COSE).
    algorithms: Vec<i64>,
    /// The passkeys that are there.
    exclude_credentials: Vec<CredentialDescriptor>,
    /// How long an answer counts, in milliseconds.
    timeout: u64,
}

/// A passkey that an authenticator made; bytes in base64url.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AddPasskeyRequest {
    /// What to call it, 1 to 64 characters.
    name: String,
    /// `response.clientDataJSON`.
    client_data: String,
    /// `response.attestationObject`.
    attestation: String,
    /// `response.getTransports()`.
    transports: Vec<String>,
}

/// Another name.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RenamePasskeyRequest {
    /// 1 to 64 characters.
    name: String,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read))
        .routes(routes!(begin_totp))
        .routes(routes!(confirm_totp))
        .routes(routes!(disable_totp))
        .routes(routes!(renew_backup_codes))
        .routes(routes!(passkey_options))
        .routes(routes!(add_passkey))
        .routes(routes!(rename_passkey, remove_passkey))
        .routes(routes!(member_factors))
        .routes(routes!(reset_member_totp))
        .routes(routes!(revoke_member_passkey))
}

fn passkey_id(id: &str) -> Result<PasskeyId, Problem> {
    id.parse().map_err(|_| Problem::new(Code::PasskeyNotFound, "This passkey does not exist any more."))
}

fn member_id(id: &str) -> Result<UserId, Problem> {
    id.parse().map_err(|_| Problem::new(Code::MemberNotFound, "This person is not a member of the organization."))
}

/// The person's second factors.
#[utoipa::path(get, path = "/api/app/account/factors", tag = "account", responses((status = 200, body = Factors)), operation_id = "read_factors")]
async fn read(
    State(app): State<App>,
    Signed(principal): Signed,
    origin: RequestOrigin,
) -> Result<Json<Factors>, HttpProblem> {
    let factors = app.identity.factors(&principal).await?;
    Ok(Json(Factors {
        totp: factors.totp,
        backup_codes_left: factors.backup_codes_left,
        passkeys: factors.passkeys.into_iter().map(Passkey::from).collect(),
        passkeys_here: passkeys_here(&app, &origin.0).is_ok(),
        has_password: factors.has_password,
        password_needed: factors.password_needed,
        proof_needed: factors.proof_needed,
    }))
}

/// Begins the set-up of an authenticator app, which acts once a code of it was typed.
#[utoipa::path(post, path = "/api/app/account/totp", tag = "account", request_body = ConfirmRequest, responses((status = 200, body = TotpSetup)), operation_id = "begin_totp")]
async fn begin_totp(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<ConfirmRequest>,
) -> Result<Json<TotpSetup>, HttpProblem> {
    let setup = app.identity.begin_totp(&principal, &body.read()?.password, &device).await?;
    Ok(Json(TotpSetup { secret: setup.secret, uri: setup.uri, qr_size: setup.qr_size, qr_path: setup.qr_path }))
}

/// Switches the authenticator app on by a code of it, and tells its backup codes.
#[utoipa::path(post, path = "/api/app/account/totp/confirm", tag = "account", request_body = CodeRequest, responses((status = 200, body = BackupCodes)), operation_id = "confirm_totp")]
async fn confirm_totp(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<CodeRequest>,
) -> Result<Json<BackupCodes>, HttpProblem> {
    Ok(Json(app.identity.confirm_totp(&principal, &body.read()?.code, &device).await?.into()))
}

/// Switches the authenticator app off.
#[utoipa::path(post, path = "/api/app/account/totp/disable", tag = "account", request_body = ConfirmRequest, responses((status = 204)), operation_id = "disable_totp")]
async fn disable_totp(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<ConfirmRequest>,
) -> Result<StatusCode, HttpProblem> {
    app.identity.disable_totp(&principal, &body.read()?.password, &device).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes new backup codes in the place of all before.
#[utoipa::path(post, path = "/api/app/account/backup-codes", tag = "account", request_body = ConfirmRequest, responses((status = 200, body = BackupCodes)), operation_id = "renew_backup_codes")]
async fn renew_backup_codes(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    body: Body<ConfirmRequest>,
) -> Result<Json<BackupCodes>, HttpProblem> {
    Ok(Json(app.identity.renew_backup_codes(&principal, &body.read()?.password, &device).await?.into()))
}

/// The question for a new passkey.
#[utoipa::path(post, path = "/api/app/account/passkeys/options", tag = "account", request_body = NewPasskeyRequest, responses((status = 200, body = PasskeyCreationOptions)), operation_id = "ask_new_passkey")]
async fn passkey_options(
    State(app): State<App>,
    Signed(principal): Signed,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<NewPasskeyRequest>,
) -> Result<Json<PasskeyCreationOptions>, HttpProblem> {
    let form = body.read()?;
    passkeys_here(&app, &origin.0)?;
    let asked = app.identity.begin_passkey(&principal, form.password.as_deref(), &device).await?;
    Ok(Json(PasskeyCreationOptions {
        challenge: asked.challenge,
        rp_id: asked.party,
        rp_name: app.identity.factor_labels().issuer.clone(),
        user_id: URL_SAFE_NO_PAD.encode(asked.user.0.as_bytes()),
        user_name: asked.email,
        user_display_name: asked.name,
        algorithms: asked.algorithms.to_vec(),
        exclude_credentials: asked.exclude.into_iter().map(CredentialDescriptor::from).collect(),
        timeout: u64::try_from(asked.lasts.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Adds a passkey.
#[utoipa::path(post, path = "/api/app/account/passkeys", tag = "account", request_body = AddPasskeyRequest, responses((status = 201, body = Passkey)), operation_id = "add_passkey")]
async fn add_passkey(
    State(app): State<App>,
    Signed(principal): Signed,
    body: Body<AddPasskeyRequest>,
) -> Result<(StatusCode, Json<Passkey>), HttpProblem> {
    let form = body.read()?;
    let new = factors::NewPasskey {
        client_data: bytes_of("clientData", &form.client_data)?,
        attestation: bytes_of("attestation", &form.attestation)?,
        name: form.name,
        transports: form.transports,
    };
    Ok((StatusCode::CREATED, Json(app.identity.add_passkey(&principal, &new).await?.into())))
}

/// Gives a passkey another name.
#[utoipa::path(patch, path = "/api/app/account/passkeys/{id}", tag = "account", params(("id" = String, Path)), request_body = RenamePasskeyRequest, responses((status = 204)), operation_id = "rename_passkey")]
async fn rename_passkey(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
    body: Body<RenamePasskeyRequest>,
) -> Result<StatusCode, HttpProblem> {
    let id = passkey_id(&id)?;
    app.identity.rename_passkey(&principal, id, &body.read()?.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a passkey.
#[utoipa::path(delete, path = "/api/app/account/passkeys/{id}", tag = "account", params(("id" = String, Path)), responses((status = 204)), operation_id = "remove_passkey")]
async fn remove_passkey(
    State(app): State<App>,
    Signed(principal): Signed,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    app.identity.remove_passkey(&principal, passkey_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The factors of a member.
#[utoipa::path(get, path = "/api/app/members/{userId}/factors", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = MemberFactors)), operation_id = "read_member_factors")]
async fn member_factors(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
) -> Result<Json<MemberFactors>, HttpProblem> {
    let factors = app.identity.member_factors(&caller, member_id(&user)?).await?;
    Ok(Json(MemberFactors {
        totp: factors.totp,
        backup_codes_left: factors.backup_codes_left,
        passkeys: factors.passkeys.into_iter().map(Passkey::from).collect(),
    }))
}

/// Takes a member's authenticator app and backup codes away and ends all their sessions.
#[utoipa::path(delete, path = "/api/app/members/{userId}/totp", tag = "members", params(("userId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "reset_member_totp")]
async fn reset_member_totp(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path(user): Path<String>,
) -> Result<StatusCode, HttpProblem> {
    app.identity.reset_member_totp(&caller, member_id(&user)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a passkey of a member away and ends all their sessions.
#[utoipa::path(delete, path = "/api/app/members/{userId}/passkeys/{passkeyId}", tag = "members", params(("userId" = String, Path), ("passkeyId" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "revoke_member_passkey")]
async fn revoke_member_passkey(
    State(app): State<App>,
    caller::Member(caller): caller::Member,
    Path((user, passkey)): Path<(String, String)>,
) -> Result<StatusCode, HttpProblem> {
    app.identity.revoke_member_passkey(&caller, member_id(&user)?, passkey_id(&passkey)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
