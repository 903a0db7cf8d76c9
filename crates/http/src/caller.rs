//! Who calls: the extractors that turn a cookie or a key into a caller, before any body is looked at.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_env::SiteSettings;
pub use tale_identity::ClientAddress;
use tale_identity::api_keys::KeyHolder;
use tale_identity::{Caller, Hops, SessionPrincipal, TrustedProxies};
use url::Url;

use crate::origin::{peer, request_origin};
use crate::problem::HttpProblem;
use crate::session_copy;
use crate::state::App;

/// Name of the session cookie where the site is plain HTTP on one machine (SES-1).
pub const SESSION_COOKIE: &str = "tale_session";
/// Name of the session cookie of an https site. Browsers take a cookie of this name only from the
/// very host, over https and for all of it, so that no neighbouring site or plain connection can put
/// its own session in the place of a person's.
pub const SECURE_SESSION_COOKIE: &str = "__Host-tale_session";

/// Name of the session cookie of an https site under a base path, which the name above rules out: still
/// taken over https only.
pub const SECURE_PATH_SESSION_COOKIE: &str = "__Secure-tale_session";

/// The name of the session cookie at `origin`, one of the site's. No other is read or written there.
#[must_use]
pub fn session_cookie_name(site: &SiteSettings, origin: &Url) -> &'static str {
    match (origin.scheme(), site.base_path.as_str()) {
        ("https", "") => SECURE_SESSION_COOKIE,
        ("https", _) => SECURE_PATH_SESSION_COOKIE,
        _ => SESSION_COOKIE,
    }
}

/// `name` as a cookie of ours is called at `origin`, by the same rule.
pub(crate) fn cookie_name(site: &SiteSettings, origin: &Url, name: &str) -> String {
    match (origin.scheme(), site.base_path.as_str()) {
        ("https", "") => format!("__Host-{name}"),
        ("https", _) => format!("__Secure-{name}"),
        _ => name.to_owned(),
    }
}

/// Marks requests that a tab makes by itself: they do not keep a session alive (SES-7).
pub const BACKGROUND_HEADER: &str = "x-tale-background";

/// A signed-in person, no organization chosen. State-changing requests must come from our origin.
pub struct Signed(pub SessionPrincipal);

/// The same, and also somebody who has to choose another password before anything else (PWD-7): for choosing it and for
/// signing out.
pub struct BeforeRelease(pub SessionPrincipal);

/// A signed-in person, or nobody.
pub struct MaybeSigned(pub Option<SessionPrincipal>);

/// A signed-in person in the organization of `?orgId=` (absent: the session's active one).
pub struct Member(pub Caller);

/// The holder of an API key, which the `/api/v1` door put into the request.
pub struct KeyCaller(pub Caller);

/// Who that is.
pub(crate) struct KeyMe(pub(crate) KeyHolder);

/// The session token of a request, of the cookie that belongs to the origin it came in by.
fn token_of<'a>(app: &App, parts: &'a Parts) -> Option<&'a str> {
    let origin = request_origin(&app.site, &parts.headers, &parts.extensions);
    session_token(&parts.headers, session_cookie_name(&app.site, origin))
}

/// The session token of the request, or whatever its cookie called `cookie` holds.
#[must_use]
pub fn session_token<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == cookie && !value.is_empty())
        .map(|(_, value)| value)
}

/// Refuses a state-changing request that another site's page made (SES-11, DCF-16): it needs one of
/// our origins in `Origin`, or, away from signing in and out, the browser's own word that it is
/// same-origin.
///
/// # Errors
/// `ORIGIN_FORBIDDEN`.
pub fn check_origin(site: &SiteSettings, parts: &Parts) -> Result<(), Problem> {
    if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let text = |name| parts.headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let allowed = match text("origin") {
        Some(origin) => site.allows_origin(origin),
        None => text("sec-fetch-site") == Some("same-origin") && !parts.uri.path().starts_with("/api/auth/"),
    };
    if allowed {
        return Ok(());
    }
    Err(Problem::new(
        Code::OriginForbidden,
        "This request must come from a page of this Tale, opened at one of its own addresses (SITE_URL, ADDITIONAL_SITE_URLS).",
    ))
}

fn signed_out() -> Problem {
    Problem::new(Code::Unauthorized, "You are not signed in, or the session has ended. Sign in and try again.")
}

fn is_background(parts: &Parts) -> bool {
    parts.headers.contains_key(BACKGROUND_HEADER) || matches!(parts.uri.path(), "/events" | "/events/file")
}

async fn principal(app: &App, parts: &Parts) -> Result<Option<SessionPrincipal>, Problem> {
    let Some(token) = token_of(app, parts) else { return Ok(None) };
    let background = is_background(parts);
    if let Some(principal) = session_copy::read(app, parts, token, background, None) {
        return Ok(Some(principal));
    }
    match app.identity.authenticate_session(token, background).await {
        Ok(principal) => {
            session_copy::keep(app, parts, &principal, token);
            Ok(Some(principal))
        }
        Err(problem) if problem.code == Code::Unauthorized => Ok(None),
        Err(problem) => Err(problem),
    }
}

impl FromRequestParts<App> for MaybeSigned {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        Ok(Self(principal(app, parts).await?))
    }
}

impl FromRequestParts<App> for BeforeRelease {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        check_origin(&app.site, parts)?;
        let principal = principal(app, parts).await?.ok_or_else(signed_out)?;
        tracing::Span::current().record("user", tracing::field::display(principal.user));
        Ok(Self(principal))
    }
}

impl FromRequestParts<App> for Signed {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let BeforeRelease(principal) = BeforeRelease::from_request_parts(parts, app).await?;
        principal.released()?;
        Ok(Self(principal))
    }
}

impl FromRequestParts<App> for Member {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        check_origin(&app.site, parts)?;
        let org = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
            .find(|(name, _)| name == "orgId")
            .map(|(_, value)| value.parse::<OrgId>())
            .transpose()
            .map_err(|_| Problem::new(Code::OrgForbidden, "You are not a member of this organization."));
        let token = token_of(app, parts).ok_or_else(signed_out)?;
        let named = org.as_ref().copied().ok().flatten();
        let background = is_background(parts);
        let (principal, caller) = match session_copy::read(app, parts, token, background, named) {
            Some(principal) => {
                let caller = app.identity.caller_for_session(&principal, named).await;
                (principal, caller)
            }
            None => {
                let (mut principal, caller) = app
                    .identity
                    .authenticate_member(token, background, named)
                    .await
                    .map_err(|problem| if problem.code == Code::Unauthorized { signed_out() } else { problem })?;
                if let Ok(caller) = &caller
                    && !background
                {
                    principal.active_org = Some(caller.org);
                }
                session_copy::keep(app, parts, &principal, token);
                (principal, caller)
            }
        };
        tracing::Span::current().record("user", tracing::field::display(principal.user));
        org?;
        let caller = caller?;
        tracing::Span::current().record("org", tracing::field::display(caller.org));
        Ok(Self(caller))
    }
}

impl FromRequestParts<App> for KeyMe {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Self::Rejection> {
        parts.extensions.get::<KeyHolder>().cloned().map(Self).ok_or_else(|| {
            HttpProblem(Problem::new(Code::Unauthorized, "Send an API key as `Authorization: Bearer <key>`."))
        })
    }
}

impl FromRequestParts<App> for KeyCaller {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        Ok(Self(KeyMe::from_request_parts(parts, app).await?.0.caller))
    }
}

impl FromRequestParts<App> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Self::Rejection> {
        Ok(client_address(parts))
    }
}

/// The client's address: the TCP peer, or the client behind it when the peer is a proxy of ours.
#[must_use]
pub fn client_address(parts: &Parts) -> ClientAddress {
    match hops(parts) {
        Some(hops) => hops.client(&TrustedProxies::default()),
        None => ClientAddress::resolve(peer(&parts.extensions), None, &TrustedProxies::default()),
    }
}

/// The way of a request that came through a proxy.
pub(crate) fn hops(parts: &Parts) -> Option<Hops> {
    let lines: Vec<&str> =
        parts.headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    let list = lines.join(",");
    (!list.is_empty()).then(|| Hops { peer: peer(&parts.extensions), forwarded_for: list })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::extract::ConnectInfo;

    use super::*;

    fn parts(peer: &str, forwarded: Option<&str>) -> Parts {
        let mut request = axum::http::Request::builder();
        if let Some(list) = forwarded {
            request = request.header("x-forwarded-for", list);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 9)));
        parts
    }

    #[test]
    fn forged_hops_before_our_proxy_are_not_believed() {
        let address = |peer, list| client_address(&parts(peer, list)).0.to_string();
        assert_eq!(address("203.0.113.9", Some("198.51.100.1")), "203.0.113.9");
        assert_eq!(address("127.0.0.1", Some("1.1.1.1, 203.0.113.9, 10.0.0.2")), "203.0.113.9");
        assert_eq!(address("127.0.0.1", Some("garbage, 10.0.0.2")), "10.0.0.2");
        assert_eq!(address("::1", None), "::1");
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "a=b; tale_session=token; __Host-tale_session=own; c=d".parse().unwrap());
        assert_eq!(session_token(&headers, SESSION_COOKIE), Some("token"));
        assert_eq!(session_token(&headers, SECURE_SESSION_COOKIE), Some("own"));
    }
}
