//! Sign-in by the headers of a reverse proxy: its settings and keys, and the hand-off itself.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::ids::TrustedKeyId;
use tale_core::{Code, Problem};
use tale_env::SiteSettings;
use tale_identity::Role;
use tale_identity::trusted_headers::{Assertion, HandOff};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{Visitor, session_cookie};
use crate::body::Body;
use crate::caller::{MaybeSigned, Member};
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

/// Carries a signed assertion.
const ASSERTION_HEADER: &str = "Tale-Assertion";

/// Longest `redirect` that is looked at, in bytes.
const MAX_REDIRECT: usize = 2_048;

/// What an organization allows a reverse proxy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TrustedHeaders {
    /// Whether its keys work.
    enabled: bool,
    /// The highest role that a header can give.
    #[schema(value_type = AssertableRole)]
    max_asserted_role: Role,
    /// The live keys, newest first.
    keys: Vec<TrustedKey>,
    headers: HeaderNames,
    /// The origins whose pages may show this organization in a frame.
    frame_origins: Vec<String>,
}

/// A key of a reverse proxy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TrustedKey {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    /// The first characters of the key.
    token_prefix: String,
    /// Milliseconds since 1970.
    created_at: i64,
    /// The person who made it; `null` when their account is gone.
    #[schema(required, format = Uuid)]
    created_by: Option<String>,
    /// Milliseconds since 1970; `null` when it never signed anybody in.
    #[schema(required)]
    last_used_at: Option<i64>,
    /// Whether it takes signed assertions only.
    signed_only: bool,
}

/// The names of the headers, as the operator set them.
#[derive(Serialize, ToSchema)]
struct HeaderNames {
    /// Carries the key.
    key: String,
    /// Carries the address of the person.
    email: String,
    /// Carries the display name.
    name: String,
    /// Carries the role.
    role: String,
    /// Reserved for team names; ignored.
    teams: String,
    /// Carries a signed assertion; its name is fixed.
    assertion: &'static str,
}

/// A role that a header can give.
#[derive(Deserialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AssertableRole {
    Member,
    Editor,
    Developer,
    Admin,
}

impl From<AssertableRole> for Role {
    fn from(role: AssertableRole) -> Self {
        match role {
            AssertableRole::Member => Self::Member,
            AssertableRole::Editor => Self::Editor,
            AssertableRole::Developer => Self::Developer,
            AssertableRole::Admin => Self::Admin,
        }
    }
}

/// The switch and the ceiling.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TrustedHeaderSettings {
    /// Off refuses every key and revokes none.
    enabled: bool,
    /// The highest role that a header can give.
    max_asserted_role: AssertableRole,
}

/// What else the revocation of a key does.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RevokeKeyQuery {
    /// Whether the sessions that the key began end as well, except those that began before this was recorded.
    end_sessions: Option<bool>,
}

/// Who may show the organization in a frame.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Embedding {
    /// At most ten origins such as `https://portal.example.org`; none forbids it.
    #[schema(max_items = 10)]
    origins: Vec<String>,
}

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateTrustedKey {
    /// 1 to 64 characters.
    name: String,
    /// Whether it takes signed assertions only; `false` by default.
    #[serde(default)]
    signed_only: bool,
}

/// What a key takes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TrustedKeyChange {
    /// Whether it takes signed assertions only.
    signed_only: bool,
}

/// What assertions are signed with.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SigningSecret {
    /// The secret of HMAC-SHA256, as this text.
    signing_secret: String,
}

/// A key just made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreatedTrustedKey {
    #[schema(format = Uuid)]
    id: String,
    /// The whole key. Nothing shows it again.
    key: String,
    /// Its first characters.
    token_prefix: String,
    /// What its assertions are signed with.
    signing_secret: String,
}

/// Where a hand-off leads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    redirect: Option<String>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read))
        .routes(routes!(set))
        .routes(routes!(set_frames))
        .routes(routes!(create_key))
        .routes(routes!(revoke_key, change_key))
        .routes(routes!(authenticate))
}

/// The settings, the live keys and the names of the headers.
#[utoipa::path(get, path = "/api/app/trusted-headers", tag = "trusted headers", params(("orgId" = Option<String>, Query)), responses((status = 200, body = TrustedHeaders)), operation_id = "read_trusted_headers")]
async fn read(State(app): State<App>, Member(caller): Member) -> Result<Json<TrustedHeaders>, HttpProblem> {
    let found = app.identity.trusted_headers(&caller).await?;
    let keys = found
        .keys
        .into_iter()
        .map(|key| TrustedKey {
            id: key.id.to_string(),
            name: key.name,
            token_prefix: key.prefix,
            created_at: key.created_at.timestamp_millis(),
            created_by: key.created_by.map(|user| user.to_string()),
            last_used_at: key.last_used_at.map(|at| at.timestamp_millis()),
            signed_only: key.signed_only,
        })
        .collect();
    let names = app.trusted_headers.clone();
    let headers = HeaderNames {
        key: names.secret,
        email: names.email,
        name: names.name,
        role: names.role,
        teams: names.teams,
        assertion: ASSERTION_HEADER,
    };
    let frame_origins = app.identity.frame_origins(&caller).await?;
    Ok(Json(TrustedHeaders { enabled: found.enabled, max_asserted_role: found.max_role, keys, headers, frame_origins }))
}

/// Switches the sign-in on or off and sets the highest role it gives.
#[utoipa::path(put, path = "/api/app/trusted-headers/settings", tag = "trusted headers", params(("orgId" = Option<String>, Query)), request_body = TrustedHeaderSettings, responses((status = 204)), operation_id = "set_trusted_headers")]
async fn set(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<TrustedHeaderSettings>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(tale_identity::Capability::SignInManage)?;
    let form = body.read()?;
    app.identity.set_trusted_headers(&caller, form.enabled, form.max_asserted_role.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets whose pages may show the organization in a frame. Pages follow within seconds.
#[utoipa::path(put, path = "/api/app/trusted-headers/embedding", tag = "trusted headers", params(("orgId" = Option<String>, Query)), request_body = Embedding, responses((status = 200, body = Embedding)), operation_id = "set_embedding")]
async fn set_frames(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<Embedding>,
) -> Result<Json<Embedding>, HttpProblem> {
    caller.require(tale_identity::Capability::SignInManage)?;
    let origins = app.identity.set_frame_origins(&caller, &body.read()?.origins).await?;
    Ok(Json(Embedding { origins }))
}

/// Makes a key, shown once. An organization has at most ten.
#[utoipa::path(post, path = "/api/app/trusted-headers/keys", tag = "trusted headers", params(("orgId" = Option<String>, Query)), request_body = CreateTrustedKey, responses((status = 201, body = CreatedTrustedKey)), operation_id = "create_trusted_key")]
async fn create_key(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<CreateTrustedKey>,
) -> Result<(StatusCode, Json<CreatedTrustedKey>), HttpProblem> {
    caller.require(tale_identity::Capability::SignInManage)?;
    let form = body.read()?;
    let key = app.identity.create_trusted_key(&caller, &form.name, form.signed_only).await?;
    let made = CreatedTrustedKey {
        id: key.id.to_string(),
        key: key.secret,
        token_prefix: key.prefix,
        signing_secret: key.signing_secret,
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes a key for good. Sessions that it began go on, unless they are to end.
#[utoipa::path(delete, path = "/api/app/trusted-headers/keys/{id}", tag = "trusted headers", params(("id" = String, Path), ("orgId" = Option<String>, Query), RevokeKeyQuery), responses((status = 204)), operation_id = "revoke_trusted_key")]
async fn revoke_key(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    query: Result<Query<RevokeKeyQuery>, HttpProblem>,
) -> Result<StatusCode, HttpProblem> {
    caller.require(tale_identity::Capability::SignInManage)?;
    app.identity.revoke_trusted_key(&caller, key_id(&id)?, query?.0.end_sessions.unwrap_or_default()).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn key_id(text: &str) -> Result<TrustedKeyId, Problem> {
    text.parse()
        .map_err(|_| Problem::new(Code::TrustedKeyNotFound, "This key does not exist, or it was revoked before."))
}

/// Sets whether a key takes signed assertions only, and tells what they are signed with.
#[utoipa::path(patch, path = "/api/app/trusted-headers/keys/{id}", tag = "trusted headers", params(("id" = String, Path), ("orgId" = Option<String>, Query)), request_body = TrustedKeyChange, responses((status = 200, body = SigningSecret)), operation_id = "change_trusted_key")]
async fn change_key(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    body: Body<TrustedKeyChange>,
) -> Result<Json<SigningSecret>, HttpProblem> {
    caller.require(tale_identity::Capability::SignInManage)?;
    let form = body.read()?;
    let signing_secret = app.identity.set_signed_only(&caller, key_id(&id)?, form.signed_only).await?;
    Ok(Json(SigningSecret { signing_secret }))
}

/// Signs in whom the reverse proxy names in its headers and leads on to `redirect`, a path of this Tale.
/// A refusal leads to the sign-in page. For page loads, not for programs.
#[utoipa::path(get, path = "/api/trusted-headers/authenticate", tag = "trusted headers", params(("redirect" = Option<String>, Query)), responses((status = 303, description = "To `redirect` with a session, or to the sign-in page"), (status = 429, description = "Too many refused keys from this network", content_type = "text/html", body = String)), operation_id = "trusted_headers_authenticate")]
async fn authenticate(
    State(app): State<App>,
    MaybeSigned(principal): MaybeSigned,
    Visitor(device): Visitor,
    RequestOrigin(origin): RequestOrigin,
    asked: Asked,
    Query(target): Query<Target>,
) -> Result<Response, HttpProblem> {
    let asked_for = target.redirect.as_deref().and_then(|text| local_path(&app.site, text));
    let next = asked_for.clone().unwrap_or_else(|| app.site.path("/dashboard"));
    let log_in = app.site.path("/log-in");
    if principal.is_some() {
        return Ok(lead_to(&next));
    }
    let sign_in = |error: Option<&str>| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if let Some(error) = error {
            query.append_pair("trusted_headers_error", error);
        }
        if let Some(path) = &asked_for {
            query.append_pair("next", path);
        }
        let query = query.finish();
        if query.is_empty() { log_in.clone() } else { format!("{log_in}?{query}") }
    };
    if !asked.by_page_load {
        // The sign-in page asks again by itself, as a page of ours.
        return Ok(lead_to(&sign_in(None)));
    }
    let network = device.client.network();
    if let Err(problem) = app.limits.failed_hand_offs.check(&network) {
        return Ok(too_many(&log_in, &asked.languages, &problem));
    }
    match app.identity.hand_off(&asked.assertion, &device).await? {
        HandOff::SignedIn(signed_in) => {
            let cookie = [(header::SET_COOKIE, session_cookie(&app, &origin, &signed_in)?)];
            Ok((AppendHeaders(cookie), lead_to(&next)).into_response())
        }
        HandOff::KeyRefused => Ok(match app.limits.failed_hand_offs.take(network) {
            Ok(()) => lead_to(&sign_in(Some("refused"))),
            Err(problem) => too_many(&log_in, &asked.languages, &problem),
        }),
        HandOff::Refused => Ok(lead_to(&sign_in(Some("refused")))),
    }
}

pub(super) fn lead_to(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path.to_owned()), (header::CACHE_CONTROL, "no-store".to_owned())])
        .into_response()
}

/// The page for a network from which too many refused keys came. It says nothing of this one.
fn too_many(log_in: &str, languages: &str, problem: &Problem) -> Response {
    let (lang, title, text, link) = if languages.starts_with("de") {
        (
            "de",
            "Zu viele Versuche",
            "Von Ihrem Netz kamen zu viele abgelehnte Anmeldungen. Versuchen Sie es in einer Minute wieder.",
            "Zur Anmeldung",
        )
    } else if languages.starts_with("fr") {
        (
            "fr",
            "Trop de tentatives",
            "Trop de connexions refusées sont venues de votre réseau. Réessayez dans une minute.",
            "Vers la connexion",
        )
    } else {
        (
            "en",
            "Too many attempts",
            "Too many refused sign-ins came from your network. Try again in a minute.",
            "Log in",
        )
    };
    let page = format!(
        "<!doctype html><html lang=\"{lang}\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><main><h1>{title}</h1><p>{text}</p><p><a href=\"{log_in}?trusted_headers_error=busy\">{link}</a></p></main></html>"
    );
    let seconds = problem.retry_after.map_or(1, |wait| wait.as_millis().div_ceil(1_000).max(1));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::RETRY_AFTER, seconds.to_string()),
    ];
    (StatusCode::TOO_MANY_REQUESTS, headers, page).into_response()
}

/// What the proxy says, and whether a browser loads a page with it.
struct Asked {
    assertion: Assertion,
    by_page_load: bool,
    /// The languages of the browser, as it names them.
    languages: String,
}

impl FromRequestParts<App> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let (headers, names) = (&parts.headers, &app.trusted_headers);
        let bearer = single(headers, header::AUTHORIZATION.as_str()).and_then(|text| {
            let (scheme, key) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
        });
        let assertion = Assertion {
            key: bearer.or_else(|| single(headers, &names.secret)),
            email: single(headers, &names.email),
            name: single(headers, &names.name),
            role: single(headers, &names.role),
            // One that came twice is no assertion, and not none.
            signed: headers
                .contains_key(ASSERTION_HEADER)
                .then(|| single(headers, ASSERTION_HEADER).unwrap_or_default()),
        };
        let languages = single(headers, header::ACCEPT_LANGUAGE.as_str()).unwrap_or_default().to_lowercase();
        Ok(Self { assertion, by_page_load: is_page_load(headers), languages })
    }
}

/// The trimmed value of a header that came once and says something.
fn single(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    let text = std::str::from_utf8(value.as_bytes()).ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether the request came through a proxy that names a person.
pub(crate) fn names_somebody(app: &App, headers: &HeaderMap) -> bool {
    single(headers, &app.trusted_headers.email).is_some() || headers.contains_key(ASSERTION_HEADER)
}

/// Whether a browser asks for a page of its own window, not from another site, or of a frame that shows a
/// page of ours already, which the origins around it were judged for. A client that says nothing about
/// it is believed.
fn is_page_load(headers: &HeaderMap) -> bool {
    let is =
        |name: &str, wanted: &[&str]| headers.get(name).is_none_or(|value| wanted.iter().any(|word| value == word));
    let of_window = is("sec-fetch-dest", &["document"]) && is("sec-fetch-site", &["same-origin", "same-site", "none"]);
    let of_frame = is("sec-fetch-dest", &["iframe"]) && is("sec-fetch-site", &["same-origin"]);
    is("sec-fetch-mode", &["navigate"]) && (of_window || of_frame)
}

/// `text` as a path of this Tale with its query and fragment; nothing for another site's address, for
/// what lies outside the base path, for an API's, and for whatever a browser could take for either.
pub(super) fn local_path(site: &SiteSettings, text: &str) -> Option<String> {
    if text.len() > MAX_REDIRECT || !text.starts_with('/') || text.contains(|c: char| c.is_control() || c == '\\') {
        return None;
    }
    let url = site.url.join(text).ok()?;
    let path = site.without_base(url.path())?;
    let ours = url.origin() == site.url.origin() && !url.path().starts_with("//") && !path.starts_with("//");
    let page = !path.starts_with("/api/") && path != "/log-in";
    (ours && page && url.username().is_empty()).then(|| url[url::Position::BeforePath..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(base_path: &str) -> SiteSettings {
        SiteSettings {
            url: "https://tale.example.org/".parse().unwrap(),
            additional: Vec::new(),
            base_path: base_path.to_owned(),
            support_url: "https://tale.dev/contact".parse().unwrap(),
        }
    }

    #[test]
    fn only_a_path_below_the_base_path_is_followed() {
        let site = site("/app");
        for (text, path) in [
            ("/app/dashboard?x=1", Some("/app/dashboard?x=1")),
            ("/app", Some("/app")),
            ("/dashboard", None),
            ("/application", None),
            ("/app/../other", None),
            ("/app//evil.example", None),
            ("/app/api/trusted-headers/authenticate", None),
            ("/app/log-in", None),
        ] {
            assert_eq!(local_path(&site, text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn only_a_path_of_this_site_is_followed() {
        let site = site("");
        for (text, path) in [
            ("/dashboard/1/chat?x=1#y", Some("/dashboard/1/chat?x=1#y")),
            ("/", Some("/")),
            ("/a/../b", Some("/b")),
            ("https://evil.example", None),
            ("https://tale.example.org/x", None),
            ("//evil.example", None),
            ("/\\evil.example", None),
            ("/\t/evil.example", None),
            ("/.//evil.example", None),
            ("/x/..//evil.example", None),
            ("dashboard", None),
            ("javascript:alert(1)", None),
            ("/api/trusted-headers/authenticate", None),
            ("/log-in?next=/", None),
            ("", None),
        ] {
            assert_eq!(local_path(&site, text).as_deref(), path, "{text}");
        }
        assert_eq!(local_path(&site, &format!("/{}", "a".repeat(MAX_REDIRECT))), None);
    }

    #[test]
    fn a_header_that_came_twice_says_nothing() {
        let mut headers = HeaderMap::new();
        headers.append("remote-email", " a@acme.test ".parse().unwrap());
        assert_eq!(single(&headers, "Remote-Email").as_deref(), Some("a@acme.test"));
        headers.append("remote-email", "b@acme.test".parse().unwrap());
        assert_eq!(single(&headers, "Remote-Email"), None);
    }
}
