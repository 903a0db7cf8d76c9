//! Getting in and out: setup, sign-up, sign-in, sign-out.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse};
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_env::SiteSettings;
use tale_identity::Device;
use tale_identity::accounts::{Setup, SignUp};
use tale_identity::known_device::KNOWN_FOR;
use tale_identity::sessions::SignedIn;
use tale_identity::sign_in::{Credentials, Entry};
use url::Url;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::organizations::OrganizationSummary;
use super::second_factor::waiting_cookie;
use crate::body::Body;
use crate::caller::{
    BeforeRelease, check_origin, client_address, cookie_name, hops, session_cookie_name, session_token,
};
use crate::origin::{RequestOrigin, request_origin};
use crate::problem::HttpProblem;
use crate::session_copy;
use crate::state::App;

/// How long a browser keeps the cookie of a person who wants to be remembered, in seconds: the
/// longest that browsers accept. The server decides how long the session lives.
const COOKIE_SECONDS: u64 = 400 * 24 * 3600;

/// The cookie that makes a device known to whom signed in on it.
const DEVICE_COOKIE: &str = "tale_device";

/// A person, as far as their own browser needs it.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionUser {
    /// The person.
    #[schema(format = Uuid)]
    pub(crate) id: String,
    /// Display name.
    pub(crate) name: String,
    /// Sign-in address.
    pub(crate) email: String,
}

impl From<&SignedIn> for SessionUser {
    fn from(signed_in: &SignedIn) -> Self {
        Self { id: signed_in.user.to_string(), name: signed_in.name.clone(), email: signed_in.email.clone() }
    }
}

/// The first owner and the first organization.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SetupRequest {
    /// The owner's name.
    name: String,
    /// The owner's address.
    email: String,
    /// The owner's password.
    password: String,
    /// The organization's name.
    organization_name: String,
    /// The token from the server's log; needed from another machine.
    setup_token: Option<String>,
}

/// The first owner, signed in.
#[derive(Serialize, ToSchema)]
struct SetupDone {
    user: SessionUser,
    organization: OrganizationSummary,
}

/// An account without organization.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignUpRequest {
    /// Display name.
    name: String,
    /// Sign-in address.
    email: String,
    /// Password.
    password: String,
    /// The token from the server's log; needed from another machine for the first account.
    setup_token: Option<String>,
}

/// A new account, signed in.
#[derive(Serialize, ToSchema)]
struct SignedUp {
    user: SessionUser,
}

/// The sign-in form.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignInRequest {
    /// Sign-in address.
    email: String,
    /// Password.
    password: String,
    /// Whether the sign-in outlives the browser; absent = yes.
    remember_me: Option<bool>,
}

/// A person, signed in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInDone {
    user: SessionUser,
    /// The page to show next.
    redirect: String,
}

impl SignInDone {
    pub(crate) fn of(app: &App, signed_in: &SignedIn) -> Self {
        let redirect = match signed_in.active_org {
            Some(org) => format!("/dashboard/{org}/chat"),
            None => "/dashboard/create-organization".to_owned(),
        };
        Self { user: SessionUser::from(signed_in), redirect: app.site.path(&redirect) }
    }
}

/// The password was right, and a second factor is asked for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SecondFactorAsked {
    /// Always true.
    two_factor_redirect: bool,
}

/// What a right password leads to.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum SignInAnswer {
    /// A session.
    Done(SignInDone),
    /// A second factor is asked for.
    SecondFactor(SecondFactorAsked),
}

/// A request from a page of ours by anybody, with where it comes from.
pub(crate) struct Visitor(pub(crate) Device);

impl FromRequestParts<App> for Visitor {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        check_origin(&app.site, parts)?;
        let user_agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let origin = request_origin(&app.site, &parts.headers, &parts.extensions);
        let mark = session_token(&parts.headers, &cookie_name(&app.site, origin, DEVICE_COOKIE));
        let device = Device::new(client_address(parts), user_agent).by(hops(parts)).bearing(mark);
        Ok(Self(if from_this_machine(parts) { device } else { device.not_local() }))
    }
}

/// Whether the page and the address it called are both named as this machine's own. A proxy on this
/// machine that forwards nothing, and another site's name that resolves to this machine, are not.
fn from_this_machine(parts: &Parts) -> bool {
    let text = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or("", |(_, authority)| authority));
    [origin, text(header::HOST)].into_iter().flatten().all(names_this_machine)
}

fn names_this_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<axum::http::uri::Authority>() else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(setup))
        .routes(routes!(sign_up))
        .routes(routes!(sign_in))
        .routes(routes!(sign_out))
}

/// Makes the first owner with the first organization and signs the owner in.
#[utoipa::path(post, path = "/api/app/setup", tag = "auth", request_body = SetupRequest, responses((status = 200, body = SetupDone)))]
async fn setup(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<SetupRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let form = body.read()?;
    let setup = Setup {
        name: form.name,
        email: form.email,
        password: form.password,
        organization_name: form.organization_name,
        setup_token: form.setup_token,
    };
    let (signed_in, organization) = app.identity.setup(&setup, &device).await?;
    let done =
        SetupDone { user: SessionUser::from(&signed_in), organization: OrganizationSummary::of(organization, None) };
    Ok((AppendHeaders(entry_cookies(&app, &origin.0, &signed_in)?), Json(done)))
}

/// Makes an account without organization: the first one, or any while sign-up is open.
#[utoipa::path(post, path = "/api/auth/sign-up/email", tag = "auth", request_body = SignUpRequest, responses((status = 200, body = SignedUp)))]
async fn sign_up(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<SignUpRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let form = body.read()?;
    let sign_up = SignUp { name: form.name, email: form.email, password: form.password, setup_token: form.setup_token };
    let signed_in = app.identity.sign_up(&sign_up, &device).await?;
    let done = SignedUp { user: SessionUser::from(&signed_in) };
    Ok((AppendHeaders(entry_cookies(&app, &origin.0, &signed_in)?), Json(done)))
}

/// Signs a person in with a password, or asks for their second factor.
#[utoipa::path(post, path = "/api/auth/sign-in/email", tag = "auth", request_body = SignInRequest, responses((status = 200, body = SignInAnswer)))]
async fn sign_in(
    State(app): State<App>,
    Visitor(device): Visitor,
    origin: RequestOrigin,
    body: Body<SignInRequest>,
) -> Result<impl IntoResponse, HttpProblem> {
    let form = body.read()?;
    let credentials =
        Credentials { email: form.email, password: form.password, remember: form.remember_me.unwrap_or(true) };
    let (cookies, answer) = match app.identity.sign_in(&credentials, &device).await? {
        Entry::SignedIn(signed_in) => {
            let done = SignInAnswer::Done(SignInDone::of(&app, &signed_in));
            (entry_cookies(&app, &origin.0, &signed_in)?, done)
        }
        Entry::SecondFactor(waiting) => {
            let asked = SignInAnswer::SecondFactor(SecondFactorAsked { two_factor_redirect: true });
            (vec![(header::SET_COOKIE, waiting_cookie(&app, &origin.0, &waiting)?)], asked)
        }
    };
    Ok((AppendHeaders(cookies), Json(answer)))
}

/// Ends the session.
#[utoipa::path(post, path = "/api/auth/sign-out", tag = "auth", responses((status = 204)))]
async fn sign_out(
    State(app): State<App>,
    BeforeRelease(principal): BeforeRelease,
    origin: RequestOrigin,
) -> Result<impl IntoResponse, HttpProblem> {
    app.identity.sign_out(&principal).await?;
    let ended = session_copy::forgotten(&app, &origin.0, cookie(&app, &origin.0, "", Some(0))?);
    Ok((StatusCode::NO_CONTENT, AppendHeaders(ended)))
}

pub(crate) fn session_cookie(app: &App, origin: &Url, signed_in: &SignedIn) -> Result<HeaderValue, Problem> {
    cookie(app, origin, &signed_in.token, signed_in.persistent.then_some(COOKIE_SECONDS))
}

/// The cookies of somebody who just signed in: the session, and what makes the device known.
pub(crate) fn entry_cookies(
    app: &App,
    origin: &Url,
    signed_in: &SignedIn,
) -> Result<Vec<(HeaderName, HeaderValue)>, Problem> {
    let mut cookies = vec![(header::SET_COOKIE, session_cookie(app, origin, signed_in)?)];
    if let Some(mark) = &signed_in.mark {
        let name = cookie_name(&app.site, origin, DEVICE_COOKIE);
        let cookie = cookie_of(&app.site, origin, &name, mark, Some(KNOWN_FOR.as_secs()))?;
        cookies.push((header::SET_COOKIE, cookie));
    }
    Ok(cookies)
}

/// The `Set-Cookie` value of the session for the origin the browser is on; without an age the cookie
/// ends with the browser.
pub(crate) fn cookie(app: &App, origin: &Url, token: &str, max_age: Option<u64>) -> Result<HeaderValue, Problem> {
    cookie_of(&app.site, origin, session_cookie_name(&app.site, origin), token, max_age)
}

/// The `Set-Cookie` value of one of our cookies at `origin`.
pub(crate) fn cookie_of(
    site: &SiteSettings,
    origin: &Url,
    name: &str,
    value: &str,
    max_age: Option<u64>,
) -> Result<HeaderValue, Problem> {
    let age = max_age.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let path = site.cookie_path();
    let secure = if origin.scheme() == "https" { "; Secure" } else { "" };
    HeaderValue::from_str(&format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}{age}"))
        .map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_own_names_are_local() {
        for own in ["localhost", "LOCALHOST:3000", "127.0.0.1:3000", "[::1]:3000", "127.9.9.9"] {
            assert!(names_this_machine(own), "{own}");
        }
        for other in ["tale.example.org", "localhost.example.org:3000", "10.0.0.1", "", "127.0.0.1.example.org"] {
            assert!(!names_this_machine(other), "{other}");
        }
    }
}
