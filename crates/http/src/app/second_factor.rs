//! Sign-in by a passkey, and the second factor of a sign-in whose password was right.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{AppendHeaders, IntoResponse};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tale_core::{Code, Problem};
use tale_identity::factors::{KnownCredential, PasskeyAnswer, PasskeyQuestion, Waiting};
use tale_identity::sessions::SignedIn;
use url::Url;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{SignInDone, Visitor, cookie_of, entry_cookies};
use crate::body::Body;
use crate::caller::{cookie_name, session_token};
use crate::origin::{RequestOrigin, request_origin};
use crate::problem::HttpProblem;
use crate::state::App;

/// The cookie of a sign-in that waits for its second factor.
const WAITING_COOKIE: &str = "tale_sign_in";

/// The token of a sign-in that waits, from its cookie.
pub(crate) struct HalfSignedIn(String);

impl FromRequestParts<App> for HalfSignedIn {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let origin = request_origin(&app.site, &parts.headers, &parts.extensions);
        let token = session_token(&parts.headers, &cookie_name(&app.site, origin, WAITING_COOKIE));
        token.map(|token| Self(token.to_owned())).ok_or_else(|| {
            HttpProblem(Problem::new(
                Code::TwoFactorNotPending,
                "No sign-in waits for a second factor in this browser. Begin with your password.",
            ))
        })
    }
}

/// The cookie of a sign-in that waits.
pub(crate) fn waiting_cookie(app: &App, origin: &Url, waiting: &Waiting) -> Result<HeaderValue, Problem> {
    let name = cookie_name(&app.site, origin, WAITING_COOKIE);
    cookie_of(&app.site, origin, &name, &waiting.token, Some(waiting.lasts.as_secs()))
}

/// Answers a finished sign-in: its session begins, and nothing waits any more.
fn finished(app: &App, origin: &Url, signed_in: &SignedIn) -> Result<impl IntoResponse + use<>, Problem> {
    let over = cookie_of(&app.site, origin, &cookie_name(&app.site, origin, WAITING_COOKIE), "", Some(0))?;
    let mut cookies = entry_cookies(app, origin, signed_in)?;
    cookies.push((header::SET_COOKIE, over));
    Ok((AppendHeaders(cookies), Json(SignInDone::of(app, signed_in))))
}

/// Refuses pages on which browsers do not offer the site's passkeys.
///
/// # Errors
/// `PASSKEY_UNAVAILABLE`.
pub(crate) fn passkeys_here(app: &App, origin: &Url) -> Result<(), Problem> {
    if app.identity.passkeys_at(&origin.origin().ascii_serialization()) {
        return Ok(());
    }
    Err(Problem::new(
        Code::PasskeyUnavailable,
        format!("Passkeys belong to {} and cannot be used at this address.", app.site.url),
    ))
}

/// How a sign-in that waits can be finished.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SecondFactorMethods {
    /// A code of an authenticator app.
    totp: bool,
    /// A backup code.
    backup_code: bool,
    /// A passkey, on this page.
    passkey: bool,
}

/// A code.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CodeRequest {
    /// As it was typed; blanks do not matter.
    pub(crate) code: String,
}

/// A passkey that a browser may use, or must not make again.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CredentialDescriptor {
    /// Its id in base64url.
    id: String,
    /// The ways to it.
    transports: Vec<String>,
}

impl From<KnownCredential> for CredentialDescriptor {
    fn from(known: KnownCredential) -> Self {
        Self { id: URL_SAFE_NO_PAD.encode(known.id), transports: known.transports }
    }
}

/// A question to an authenticator, as `navigator.credentials.get` takes it with its texts as bytes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PasskeyRequestOptions {
    /// What is signed, in base64url.
    challenge: String,
    /// The site.
    rp_id: String,
    /// The passkeys that may answer; empty: any of the site.
    allow_credentials: Vec<CredentialDescriptor>,
    /// Always `required`.
    user_verification: &'static str,
    /// How long an answer counts, in milliseconds.
    timeout: u64,
}

impl From<PasskeyQuestion> for PasskeyRequestOptions {
    fn from(question: PasskeyQuestion) -> Self {
        Self {
            challenge: question.challenge,
            rp_id: question.party,
            allow_credentials: question.allow.into_iter().map(CredentialDescriptor::from).collect(),
            user_verification: "required",
            timeout: u64::try_from(question.lasts.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// What an authenticator answered; everything in base64url.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PasskeyAssertion {
    /// The passkey's id.
    id: String,
    /// `response.clientDataJSON`.
    client_data: String,
    /// `response.authenticatorData`.
    authenticator_data: String,
    /// `response.signature`.
    signature: String,
    /// `response.userHandle`, where the passkey names its owner.
    user_handle: Option<String>,
}

/// The bytes of a field.
pub(crate) fn bytes_of(field: &str, text: &str) -> Result<Vec<u8>, Problem> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Problem::invalid_field(field, "must be base64url without padding"))
}

impl PasskeyAssertion {
    pub(crate) fn answer(self) -> Result<PasskeyAnswer, Problem> {
        Ok(PasskeyAnswer {
            credential: bytes_of("id", &self.id)?,
            client_data: bytes_of("clientData", &self.client_data)?,
            authenticator_data: bytes_of("authenticatorData", &self.authenticator_data)?,
            signature: bytes_of("signature", &self.signature)?,
            user: self.user_handle.map(|text| bytes_of("userHandle", &text)).transpose()?,
        })
    }
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(methods))
        .routes(routes!(totp))
        .routes(routes!(backup_code))
        .routes(routes!(second_passkey_options))
        .routes(routes!(second_passkey))
        .routes(routes!(passkey_options))
        .routes(routes!(passkey))
}

/// How the sign-in that waits in this browser can be finished.
#[utoipa::path(get, path = "/api/auth/two-factor", tag = "auth", responses((status = 200, body = SecondFactorMethods)), operation_id = "read_second_factor_methods")]
async fn methods(
    State(app): State<App>,
    origin: RequestOrigin,
    waiting: HalfSignedIn,
) -> Result<Json<SecondFactorMethods>, HttpProblem> {
    let methods = app.identity.second_factor_methods(&waiting.0).await?;
    let passkey = methods.passkey && passkeys_here(&app, &origin.0).is_ok();
    Ok(Json(SecondFactorMethods { totp: methods.totp, backup_code: methods.backup_code, passkey }))
}

/// Finishes a sign-in with a code of an authenticator app.
#[utoipa::path(post, path = "/api/auth/two-factor/totp", tag = "auth", request_body = CodeRequest, responses((status = 200, body = SignInDone)), operation_id = "finish_sign_in_with_totp")]
async fn totp(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    waiting: HalfSignedIn,
    body: Body<CodeRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let signed_in = app.identity.finish_with_totp(&waiting.0, &body.read()?.code, &device).await?;
    Ok(finished(&app, &origin.0, &signed_in)?)
}

/// Finishes a sign-in with a backup code, which is used up.
#[utoipa::path(post, path = "/api/auth/two-factor/backup-code", tag = "auth", request_body = CodeRequest, responses((status = 200, body = SignInDone)), operation_id = "finish_sign_in_with_backup_code")]
async fn backup_code(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    waiting: HalfSignedIn,
    body: Body<CodeRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let signed_in = app.identity.finish_with_backup_code(&waiting.0, &body.read()?.code, &device).await?;
    Ok(finished(&app, &origin.0, &signed_in)?)
}

/// The question for a passkey that finishes a sign-in.
#[utoipa::path(post, path = "/api/auth/two-factor/passkey/options", tag = "auth", responses((status = 200, body = PasskeyRequestOptions)), operation_id = "ask_second_passkey")]
async fn second_passkey_options(
    State(app): State<App>,
    Visitor(_device): Visitor,
    origin: RequestOrigin,
    waiting: HalfSignedIn,
) -> Result<Json<PasskeyRequestOptions>, HttpProblem> {
    passkeys_here(&app, &origin.0)?;
    Ok(Json(app.identity.begin_second_passkey(&waiting.0).await?.into()))
}

/// Finishes a sign-in with a passkey.
#[utoipa::path(post, path = "/api/auth/two-factor/passkey", tag = "auth", request_body = PasskeyAssertion, responses((status = 200, body = SignInDone)), operation_id = "finish_sign_in_with_passkey")]
async fn second_passkey(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    waiting: HalfSignedIn,
    body: Body<PasskeyAssertion>,
) -> Result<impl IntoResponse, HttpProblem> {
    let answer = body.read()?.answer()?;
    let signed_in = app.identity.finish_with_passkey(&waiting.0, &answer, &device).await?;
    Ok(finished(&app, &origin.0, &signed_in)?)
}

/// The question for a sign-in with a passkey alone.
#[utoipa::path(post, path = "/api/auth/passkey/options", tag = "auth", responses((status = 200, body = PasskeyRequestOptions)), operation_id = "ask_passkey")]
async fn passkey_options(
    State(app): State<App>,
    Visitor(_device): Visitor,
    origin: RequestOrigin,
) -> Result<Json<PasskeyRequestOptions>, HttpProblem> {
    passkeys_here(&app, &origin.0)?;
    Ok(Json(app.identity.begin_passkey_sign_in()?.into()))
}

/// Signs in whoever the passkey belongs to.
#[utoipa::path(post, path = "/api/auth/passkey", tag = "auth", request_body = PasskeyAssertion, responses((status = 200, body = SignInDone)), operation_id = "sign_in_with_passkey")]
async fn passkey(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<PasskeyAssertion>,
) -> Result<impl IntoResponse, HttpProblem> {
    let answer = body.read()?.answer()?;
    let signed_in = app.identity.sign_in_with_passkey(&answer, &device).await?;
    Ok(finished(&app, &origin.0, &signed_in)?)
}
