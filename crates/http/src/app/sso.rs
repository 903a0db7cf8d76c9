//! Sign-in at an organization's identity provider: its settings, and the way there and back.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::OrgId;
use tale_identity::sso::{self, ConnectionForm, FLOW_LIFETIME, Places, Refused, Returned, SsoEntry};
use tale_identity::{Capability, Device, Role};
use url::Url;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{Visitor, cookie_of, session_cookie};
use super::trusted_headers::{AssertableRole, lead_to, local_path};
use crate::body::Body;
use crate::caller::{Member, cookie_name, session_token};
use crate::origin::{RequestOrigin, request_origin};
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

/// The cookie of a sign-in under way.
const FLOW_COOKIE: &str = "tale_sso";

/// How the provider speaks: OpenID Connect, in general or as Microsoft Entra ID does, SAML 2.0, or OAuth 2.0 alone.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum SsoProtocol {
    Oidc,
    Entra,
    Saml,
    OAuth2,
}

/// Where the provider says what: paths of claims, with dots into nested ones; with SAML names of attributes.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SsoClaims {
    email: String,
    name: String,
    groups: String,
    roles: String,
}

/// People in whose claim the value stands have the role.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SsoRule {
    /// `groups`, `roles`, or the path of any claim.
    claim: String,
    value: String,
    #[schema(value_type = AssertableRole)]
    role: Role,
}

/// What SAML needs beside what every provider has.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SsoSaml {
    /// Where browsers are sent.
    sign_on_url: String,
    /// What the provider signs with, as PEM, at most 10.
    certificates: Vec<String>,
    /// Whether assertions must be signed themselves, and not only the responses around them.
    require_signed_assertions: bool,
    /// Whether they must be encrypted, which needs a private key.
    require_encrypted_assertions: bool,
    /// What they are encrypted for, as PEM. It stands in the metadata of this Tale.
    #[schema(required)]
    sp_certificate: Option<String>,
}

/// What OAuth 2.0 needs beside what every provider has.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SsoOAuth2 {
    /// Where browsers are sent. It may have a query, without what every question says itself.
    authorization_url: String,
    /// Where a code is exchanged.
    token_url: String,
    /// What says who the holder of a token is.
    user_info_url: String,
    /// The path of what the provider knows somebody by and gives to nobody else, a text or a whole number; empty: `sub`,
    /// else `id`.
    subject: String,
    /// The path of whether the email address is known to be the person's.
    email_verified: String,
    /// Whether the client secret goes into the body of a request, and not into its header.
    secret_in_body: bool,
}

/// What the provider is, and what is made of its answers.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SsoConfig {
    protocol: SsoProtocol,
    /// The issuer, below which the discovery document is; with SAML the entity ID of the provider. With OAuth 2.0 it
    /// follows from the userinfo URL and the subject, whatever is sent.
    issuer: String,
    /// Empty with SAML.
    client_id: String,
    /// At most 30; `openid` is added, but not with OAuth 2.0. None with SAML.
    scopes: Vec<String>,
    claims: SsoClaims,
    /// Whether the rules decide about roles, at each sign-in.
    auto_assign: bool,
    /// At most 100; the first that matches counts.
    rules: Vec<SsoRule>,
    /// Whether people are put into the teams that their groups are called.
    team_sync: bool,
    /// Groups that have nothing to do with teams, at most 200.
    excluded_groups: Vec<String>,
    /// Whether the provider sends browsers back to an address of the organization (`ownCallbacks`), and not to the one
    /// that all connections share (`callbacks`). Always off with SAML.
    #[serde(default)]
    own_callback: bool,
    /// With SAML only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saml: Option<SsoSaml>,
    /// With OAuth 2.0 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oauth2: Option<SsoOAuth2>,
}

/// An organization's connection with its identity provider.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SsoConnection {
    #[schema(format = Uuid)]
    id: String,
    display_name: String,
    enabled: bool,
    #[schema(value_type = AssertableRole)]
    default_role: Role,
    domains: Vec<String>,
    /// Whether a client secret is stored, or with SAML a private key.
    has_secret: bool,
    /// How many people log in with it and in no other way.
    only_way_of: u64,
    /// `null` when what is stored cannot be read.
    #[schema(required)]
    config: Option<SsoConfig>,
}

/// The connection, and what to register at the provider.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SsoSettings {
    /// `null` when there is none.
    #[schema(required)]
    connection: Option<SsoConnection>,
    /// The redirect addresses that all connections share, one for each address of this Tale.
    callbacks: Vec<String>,
    /// Those of the organization alone, for a connection with `ownCallback`.
    own_callbacks: Vec<String>,
    /// The same for SAML.
    saml: SamlRegistration,
}

/// What to register at a provider that speaks SAML.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SamlRegistration {
    /// The entity ID of this Tale for the organization, which is the address of its metadata too.
    entity_id: String,
    /// The addresses that take responses (ACS), one for each address of this Tale.
    replies: Vec<String>,
}

/// A connection to save or to test.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SsoForm {
    /// Shown in the sign-in page, to everybody.
    display_name: String,
    /// Whether people sign in with it.
    enabled: bool,
    /// What people are whom no rule matches.
    #[schema(value_type = AssertableRole)]
    default_role: Role,
    /// Whose addresses sign in with it, at most 50; none = all.
    domains: Vec<String>,
    config: SsoConfig,
    /// Absent: the one that is stored; empty: there is none.
    client_secret: Option<String>,
    /// With SAML: the private RSA key that assertions are encrypted for, as PEM. Absent: the one that is stored; empty:
    /// there is none.
    sp_private_key: Option<String>,
}

/// A step of a test.
#[derive(Serialize, ToSchema)]
struct SsoStep {
    ok: bool,
    /// What is wrong, in English; `null` when nothing is.
    #[schema(required)]
    detail: Option<String>,
}

/// How far a test came.
#[derive(Serialize, ToSchema)]
struct SsoTest {
    /// The discovery document; with SAML the sign-on address, with OAuth 2.0 the authorization URL.
    discovery: SsoStep,
    /// The keys; `null` when not tried. With SAML the certificates, with OAuth 2.0 the userinfo URL.
    #[schema(required)]
    keys: Option<SsoStep>,
    /// The client id and its secret; `null` when not tried.
    #[schema(required)]
    credentials: Option<SsoStep>,
}

/// A connection in the sign-in page.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SsoChoice {
    #[schema(format = Uuid)]
    id: String,
    display_name: String,
}

/// The connections to choose from.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SsoOffer {
    /// By name.
    connections: Vec<SsoChoice>,
    /// Whether there are others, which are found by an address.
    by_address: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    email: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    connection: String,
    next: Option<String>,
}

/// What a provider appends to the callback. It may say more, which is ignored.
#[derive(Deserialize)]
struct Answer {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// The cookie of a sign-in under way.
pub(super) struct UnderWay(pub(super) Option<String>);

impl FromRequestParts<App> for UnderWay {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let origin = request_origin(&app.site, &parts.headers, &parts.extensions);
        let name = cookie_name(&app.site, origin, FLOW_COOKIE);
        Ok(Self(session_token(&parts.headers, &name).map(str::to_owned)))
    }
}

impl From<sso::Config> for SsoConfig {
    fn from(config: sso::Config) -> Self {
        Self {
            protocol: match config.protocol {
                sso::Protocol::Oidc => SsoProtocol::Oidc,
                sso::Protocol::Entra => SsoProtocol::Entra,
                sso::Protocol::Saml => SsoProtocol::Saml,
                sso::Protocol::OAuth2 => SsoProtocol::OAuth2,
            },
            issuer: config.issuer,
            client_id: config.client_id,
            scopes: config.scopes,
            claims: SsoClaims {
                email: config.claims.email,
                name: config.claims.name,
                groups: config.claims.groups,
                roles: config.claims.roles,
            },
            auto_assign: config.auto_assign,
            rules: config
                .rules
                .into_iter()
                .map(|rule| SsoRule { claim: rule.claim, value: rule.value, role: rule.role })
                .collect(),
            team_sync: config.team_sync,
            excluded_groups: config.excluded_groups,
            own_callback: config.own_callback,
            saml: config.saml.map(|saml| SsoSaml {
                sign_on_url: saml.sign_on_url,
                certificates: saml.certificates,
                require_signed_assertions: saml.require_signed_assertions,
                require_encrypted_assertions: saml.require_encrypted_assertions,
                sp_certificate: saml.sp_certificate,
            }),
            oauth2: config.oauth2.map(|oauth2| SsoOAuth2 {
                authorization_url: oauth2.authorization_url,
                token_url: oauth2.token_url,
                user_info_url: oauth2.user_info_url,
                subject: oauth2.subject,
                email_verified: oauth2.email_verified,
                secret_in_body: oauth2.secret_in_body,
            }),
        }
    }
}

impl From<SsoForm> for ConnectionForm {
    fn from(form: SsoForm) -> Self {
        let config = form.config;
        Self {
            display_name: form.display_name,
            enabled: form.enabled,
            default_role: form.default_role,
            domains: form.domains,
            client_secret: match config.protocol {
                SsoProtocol::Saml => form.sp_private_key,
                _ => form.client_secret,
            },
            config: sso::Config {
                protocol: match config.protocol {
                    SsoProtocol::Oidc => sso::Protocol::Oidc,
                    SsoProtocol::Entra => sso::Protocol::Entra,
                    SsoProtocol::Saml => sso::Protocol::Saml,
                    SsoProtocol::OAuth2 => sso::Protocol::OAuth2,
                },
                issuer: config.issuer,
                client_id: config.client_id,
                scopes: config.scopes,
                claims: sso::ClaimPaths {
                    email: config.claims.email,
                    name: config.claims.name,
                    groups: config.claims.groups,
                    roles: config.claims.roles,
                },
                auto_assign: config.auto_assign,
                rules: config
                    .rules
                    .into_iter()
                    .map(|rule| sso::Rule { claim: rule.claim, value: rule.value, role: rule.role })
                    .collect(),
                team_sync: config.team_sync,
                excluded_groups: config.excluded_groups,
                own_callback: config.own_callback,
                saml: config.saml.map(|saml| sso::saml::SamlSettings {
                    sign_on_url: saml.sign_on_url,
                    certificates: saml.certificates,
                    require_signed_assertions: saml.require_signed_assertions,
                    require_encrypted_assertions: saml.require_encrypted_assertions,
                    sp_certificate: saml.sp_certificate,
                }),
                oauth2: config.oauth2.map(|oauth2| sso::OAuth2Settings {
                    authorization_url: oauth2.authorization_url,
                    token_url: oauth2.token_url,
                    user_info_url: oauth2.user_info_url,
                    subject: oauth2.subject,
                    email_verified: oauth2.email_verified,
                    secret_in_body: oauth2.secret_in_body,
                }),
            },
        }
    }
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(read, save, remove))
        .routes(routes!(test))
        .routes(routes!(offer))
        .routes(routes!(start))
        .routes(routes!(callback))
        .routes(routes!(own_callback))
        // Where earlier installations registered it.
        .route("/http_api/api/sso/callback", axum::routing::get(callback))
}

/// Where this Tale is, for a browser at `origin`.
pub(super) fn places(app: &App, origin: &Url) -> Places {
    Places { here: app.site.address_at(origin), all: app.site.origins().map(|one| app.site.address_at(one)).collect() }
}

/// The connection and the redirect addresses to register at the provider.
#[utoipa::path(get, path = "/api/app/sso", tag = "sso", params(("orgId" = Option<String>, Query)), responses((status = 200, body = SsoSettings)), operation_id = "read_sso")]
async fn read(
    State(app): State<App>,
    Member(caller): Member,
    RequestOrigin(origin): RequestOrigin,
) -> Result<Json<SsoSettings>, HttpProblem> {
    let connection = app.identity.sso_connection(&caller).await?.map(|found| SsoConnection {
        id: found.id.to_string(),
        display_name: found.display_name,
        enabled: found.enabled,
        default_role: found.default_role,
        domains: found.domains,
        has_secret: found.has_secret,
        only_way_of: found.only_way_of,
        config: found.config.map(SsoConfig::from),
    });
    let places = places(&app, &origin);
    let saml = SamlRegistration { entity_id: places.entity_id(caller.org), replies: places.every_acs(caller.org) };
    Ok(Json(SsoSettings {
        connection,
        callbacks: places.every_callback(None),
        own_callbacks: places.every_callback(Some(caller.org)),
        saml,
    }))
}

/// Saves the connection. Another provider or client needs its secret again.
#[utoipa::path(put, path = "/api/app/sso", tag = "sso", params(("orgId" = Option<String>, Query)), request_body = SsoForm, responses((status = 204)), operation_id = "save_sso")]
async fn save(State(app): State<App>, Member(caller): Member, body: Body<SsoForm>) -> Result<StatusCode, HttpProblem> {
    caller.require(Capability::SignInManage)?;
    app.identity.save_sso_connection(&caller, body.read()?.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the connection with its secret. Sessions that began with it go on.
#[utoipa::path(delete, path = "/api/app/sso", tag = "sso", params(("orgId" = Option<String>, Query)), responses((status = 204)), operation_id = "remove_sso")]
async fn remove(State(app): State<App>, Member(caller): Member) -> Result<StatusCode, HttpProblem> {
    app.identity.remove_sso_connection(&caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries a connection without saving it: its discovery document, its keys and its credentials, or what stands in their
/// place.
#[utoipa::path(post, path = "/api/app/sso/test", tag = "sso", params(("orgId" = Option<String>, Query)), request_body = SsoForm, responses((status = 200, body = SsoTest)), operation_id = "test_sso")]
async fn test(
    State(app): State<App>,
    Member(caller): Member,
    RequestOrigin(origin): RequestOrigin,
    body: Body<SsoForm>,
) -> Result<Json<SsoTest>, HttpProblem> {
    caller.require(Capability::SignInManage)?;
    let form = body.read()?.into();
    let tested = app.identity.test_sso_connection(&caller, form, &places(&app, &origin)).await?;
    let step = |done: Result<(), String>| SsoStep { ok: done.is_ok(), detail: done.err() };
    Ok(Json(SsoTest {
        discovery: step(tested.discovery),
        keys: tested.keys.map(step),
        credentials: tested.credentials.map(step),
    }))
}

/// The connections that the sign-in page offers: those of the domain of `email`, without one those for any
/// address.
#[utoipa::path(get, path = "/api/sso/connections", tag = "sso", params(("email" = Option<String>, Query)), responses((status = 200, body = SsoOffer)), operation_id = "sso_connections")]
async fn offer(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Json<SsoOffer>, HttpProblem> {
    let found = app.identity.sso_offer(asked.email.as_deref()).await?;
    let connections = found
        .connections
        .into_iter()
        .map(|one| SsoChoice { id: one.id.to_string(), display_name: one.display_name })
        .collect();
    Ok(Json(SsoOffer { connections, by_address: found.by_address }))
}

/// Sends the browser to the provider of a connection. For page loads, not for programs.
#[utoipa::path(get, path = "/api/sso/start", tag = "sso", params(("connection" = String, Query), ("next" = Option<String>, Query)), responses((status = 303, description = "To the provider, or to the sign-in page with what is wrong")), operation_id = "sso_start")]
async fn start(
    State(app): State<App>,
    Visitor(device): Visitor,
    RequestOrigin(origin): RequestOrigin,
    Query(asked): Query<Start>,
) -> Result<Response, HttpProblem> {
    if app.limits.sso.take(device.client.network()).is_err() {
        return Ok(lead_to(&back(&app, "too_many", None, "later")));
    }
    let Ok(connection) = asked.connection.parse() else { return Ok(refused(&app, &Refused::SwitchedOff)) };
    let next = asked.next.as_deref().and_then(|text| local_path(&app.site, text));
    match app.identity.begin_sso(connection, &places(&app, &origin), next.as_deref()).await? {
        Ok(begun) => {
            let cookie = flow_cookie(&app, &origin, &begun.cookie, FLOW_LIFETIME.as_secs())?;
            Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), lead_to(begun.location.as_str())).into_response())
        }
        Err(reason) => Ok(refused(&app, &reason)),
    }
}

/// Where the provider sends the browser back. Leads on with a session, or to the sign-in page with what is
/// wrong.
#[utoipa::path(get, path = "/api/sso/callback", tag = "sso", responses((status = 303, description = "To the page that was asked for with a session, or to the sign-in page")), operation_id = "sso_callback")]
async fn callback(
    State(app): State<App>,
    Visitor(device): Visitor,
    RequestOrigin(origin): RequestOrigin,
    UnderWay(cookie): UnderWay,
    axum::extract::Query(answer): axum::extract::Query<Answer>,
) -> Result<Response, HttpProblem> {
    finish(&app, None, &device, &origin, cookie.as_deref(), answer).await
}

/// Where the provider of a connection with `ownCallback` sends the browser back: takes answers for this organization
/// only. Leads on as the shared address does.
#[utoipa::path(get, path = "/api/sso/{organization}/callback", tag = "sso", params(("organization" = String, Path)), responses((status = 303, description = "To the page that was asked for with a session, or to the sign-in page")), operation_id = "sso_own_callback")]
async fn own_callback(
    State(app): State<App>,
    Visitor(device): Visitor,
    RequestOrigin(origin): RequestOrigin,
    UnderWay(cookie): UnderWay,
    Path(organization): Path<String>,
    axum::extract::Query(answer): axum::extract::Query<Answer>,
) -> Result<Response, HttpProblem> {
    let Ok(organization) = organization.parse() else { return Ok(refused(&app, &Refused::OtherBrowser)) };
    finish(&app, Some(organization), &device, &origin, cookie.as_deref(), answer).await
}

/// Takes an answer at the address of the organization `at`, or at the shared one.
async fn finish(
    app: &App,
    at: Option<OrgId>,
    device: &Device,
    origin: &Url,
    cookie: Option<&str>,
    answer: Answer,
) -> Result<Response, HttpProblem> {
    if app.limits.sso.take(device.client.network()).is_err() {
        return Ok(lead_to(&back(app, "too_many", None, "later")));
    }
    let returned = Returned {
        state: answer.state,
        code: answer.code,
        iss: answer.iss,
        error: answer.error,
        error_description: answer.error_description,
    };
    match app.identity.finish_sso(at, cookie, &returned, device).await? {
        SsoEntry::SignedIn { session, next } => {
            let next = next.unwrap_or_else(|| app.site.path("/dashboard"));
            let cookies = [
                (header::SET_COOKIE, session_cookie(app, origin, &session)?),
                (header::SET_COOKIE, flow_cookie(app, origin, "", 0)?),
            ];
            Ok((AppendHeaders(cookies), lead_to(&next)).into_response())
        }
        SsoEntry::Refused(reason) => Ok(refused(app, &reason)),
    }
}

pub(super) fn flow_cookie(app: &App, origin: &Url, value: &str, seconds: u64) -> Result<HeaderValue, Problem> {
    cookie_of(&app.site, origin, &cookie_name(&app.site, origin, FLOW_COOKIE), value, Some(seconds))
}

pub(super) fn refused(app: &App, reason: &Refused) -> Response {
    let code = match reason {
        Refused::ByProvider(code) => Some(code.as_str()),
        _ => None,
    };
    lead_to(&back(app, reason.key(), code, reason.recovery()))
}

/// The sign-in page with what is wrong and what to do (SSO-12).
pub(super) fn back(app: &App, error: &str, code: Option<&str>, recovery: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("error", error);
    if let Some(code) = code {
        query.append_pair("error_code", code);
    }
    query.append_pair("recovery", recovery);
    format!("{}?{}", app.site.path("/log-in"), query.finish())
}
