//! SAML 2.0: what a provider needs to know of this Tale, and where browsers bring its responses.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tale_core::crypto::sha256;
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_identity::sso::saml::{Imported, Posted};
use tale_identity::sso::{Refused, SsoEntry};
use tale_identity::{Capability, Device};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::session_cookie;
use super::sso::{UnderWay, back, flow_cookie, places, refused};
use super::trusted_headers::{lead_to, local_path};
use crate::body::{Body, read_limited};
use crate::caller::{Member, client_address};
use crate::origin::RequestOrigin;
use crate::problem::HttpProblem;
use crate::state::App;
use crate::status::preferred;

/// Largest form of a browser, in bytes: a response as base64, whose signs the form may write as three.
const MAX_FORM: usize = 1 << 20;
/// Longest page to go on to.
const MAX_RELAY: usize = 1_024;
/// What sends the form of the page on.
const SEND: &str = "document.forms[0].submit()";

/// Where to read a provider's metadata: at an address, or right here.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SamlMetadataSource {
    /// Their address, which is called through the guard.
    url: Option<String>,
    /// The document itself, instead.
    document: Option<String>,
}

/// What a provider says about itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SamlMetadata {
    /// Its entity ID.
    entity_id: String,
    /// Where browsers are sent.
    sign_on_url: String,
    /// What it signs with, as PEM.
    certificates: Vec<String>,
}

impl From<Imported> for SamlMetadata {
    fn from(read: Imported) -> Self {
        Self { entity_id: read.entity_id, sign_on_url: read.sign_on_url, certificates: read.certificates }
    }
}

/// What a provider lets a browser post. It may say more, which is ignored.
#[derive(Deserialize, ToSchema)]
struct SamlAnswer {
    /// The response, as base64.
    #[serde(rename = "SAMLResponse")]
    response: Option<String>,
    /// A page of this Tale to go on to, when the sign-in began at the provider.
    #[serde(rename = "RelayState")]
    relay: Option<String>,
    /// Set by our own page, which posts the form again.
    again: Option<String>,
}

/// The routes of this module.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(import)).routes(routes!(metadata)).routes(routes!(answer))
}

/// Reads a provider's metadata, without saving anything.
#[utoipa::path(post, path = "/api/app/sso/saml/metadata", tag = "sso", params(("orgId" = Option<String>, Query)), request_body = SamlMetadataSource, responses((status = 200, body = SamlMetadata)), operation_id = "import_saml_metadata")]
async fn import(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<SamlMetadataSource>,
) -> Result<Json<SamlMetadata>, HttpProblem> {
    caller.require(Capability::SignInManage)?;
    let read = match body.read()? {
        SamlMetadataSource { url: Some(url), document: None } => {
            app.identity.fetch_saml_metadata(&caller, &url).await?
        }
        SamlMetadataSource { url: None, document: Some(text) } => app.identity.read_saml_metadata(&caller, &text)?,
        _ => return Err(Problem::invalid_field("url", "must be given, or the document, and not both").into()),
    };
    Ok(Json(read.into()))
}

/// The metadata of this Tale for an organization's provider. Its address is the entity ID too.
#[utoipa::path(get, path = "/api/sso/saml/{organization}/metadata", tag = "sso", params(("organization" = String, Path)), responses((status = 200, content_type = "application/samlmetadata+xml", body = String)), operation_id = "saml_metadata")]
async fn metadata(
    State(app): State<App>,
    RequestOrigin(origin): RequestOrigin,
    Path(organization): Path<String>,
) -> Result<Response, HttpProblem> {
    let organization: OrgId =
        organization.parse().map_err(|_| Problem::new(Code::NotFound, "There is no such organization."))?;
    let document = app.identity.saml_metadata(organization, &places(&app, &origin)).await?;
    let headers = [(header::CONTENT_TYPE, "application/samlmetadata+xml"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, document).into_response())
}

/// Where a browser comes from that another site's page sent here, and what it speaks.
struct Sent {
    device: Device,
    languages: String,
}

impl FromRequestParts<App> for Sent {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Self::Rejection> {
        let text = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let device = Device::new(client_address(parts), text(header::USER_AGENT)).not_local();
        Ok(Self { device, languages: text(header::ACCEPT_LANGUAGE).unwrap_or_default().to_owned() })
    }
}

/// Takes a response of a provider, which a browser posts from the provider's page. Such a request has no cookies of ours,
/// so a page of ours posts the form once more. Leads on with a session, or to the sign-in page with what is wrong.
#[utoipa::path(post, path = "/api/sso/saml/{organization}/acs", tag = "sso", params(("organization" = String, Path)), request_body(content = SamlAnswer, content_type = "application/x-www-form-urlencoded"), responses((status = 200, content_type = "text/html", body = String), (status = 303, description = "To the page that was asked for with a session, or to the sign-in page")), operation_id = "saml_answer")]
async fn answer(
    State(app): State<App>,
    sent: Sent,
    RequestOrigin(origin): RequestOrigin,
    UnderWay(cookie): UnderWay,
    Path(organization): Path<String>,
    request: Request,
) -> Result<Response, HttpProblem> {
    let form = read_limited(request, MAX_FORM).await?;
    let form: SamlAnswer = serde_urlencoded::from_bytes(&form)
        .map_err(|_| Problem::new(Code::InvalidBody, "The request body is no form with a SAMLResponse."))?;
    let Ok(organization) = organization.parse::<OrgId>() else { return Ok(refused(&app, &Refused::SwitchedOff)) };
    let mut response = form.response.unwrap_or_default();
    response.retain(|c| !c.is_ascii_whitespace());
    if !response.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')) {
        return Ok(refused(&app, &Refused::NotBelieved));
    }
    let relay = form.relay.filter(|relay| relay.len() <= MAX_RELAY);
    if form.again.is_none() {
        return Ok(once_more(&sent.languages, &response, relay.as_deref()));
    }
    if app.limits.sso.take(sent.device.client.network()).is_err() {
        return Ok(lead_to(&back(&app, "too_many", None, "later")));
    }
    let next = relay.and_then(|text| local_path(&app.site, &text));
    let posted = Posted { response, next };
    let places = places(&app, &origin);
    match app.identity.finish_saml(organization, cookie.as_deref(), &posted, &places, &sent.device).await? {
        SsoEntry::SignedIn { session, next } => {
            let next = next.unwrap_or_else(|| app.site.path("/dashboard"));
            let cookies = [
                (header::SET_COOKIE, session_cookie(&app, &origin, &session)?),
                (header::SET_COOKIE, flow_cookie(&app, &origin, "", 0)?),
            ];
            Ok((AppendHeaders(cookies), lead_to(&next)).into_response())
        }
        SsoEntry::Refused(reason) => Ok(refused(&app, &reason)),
    }
}

/// The page that posts the form again, now from our own site, so that the browser adds the cookie of the sign-in. The
/// form goes to the page's own address.
fn once_more(languages: &str, response: &str, relay: Option<&str>) -> Response {
    let lang = preferred(languages).code();
    let (title, text, button) = match lang {
        "de" => ("Anmeldung", "Sie werden angemeldet. Geht es nicht von selbst weiter:", "Weiter"),
        "fr" => ("Connexion", "Connexion en cours. Si rien ne se passe :", "Continuer"),
        _ => ("Signing in", "You are being signed in. If nothing happens:", "Continue"),
    };
    let relay = relay.map_or_else(String::new, |relay| {
        let value = relay.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        format!("<input type=\"hidden\" name=\"RelayState\" value=\"{value}\">")
    });
    let page = format!(
        "<!doctype html><html lang=\"{lang}\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><main><h1>{title}</h1><form method=\"post\"><p>{text}</p><input type=\"hidden\" name=\"SAMLResponse\" value=\"{response}\">{relay}<input type=\"hidden\" name=\"again\" value=\"1\"><button>{button}</button></form></main><script>{SEND}</script></html>"
    );
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        STANDARD.encode(sha256(SEND.as_bytes()))
    );
    let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, "no-store".to_owned())];
    (headers, Html(page)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_provider_sends_along_stays_text() {
        let answer = once_more("de-CH", "PHg+", Some("\"><script>alert(1)</script>&x"));
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let page = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(page.contains("value=\"&quot;>&lt;script>alert(1)&lt;/script>&amp;x\""), "{page}");
        assert!(page.contains("lang=\"de\"") && page.contains("value=\"PHg+\""));
    }
}
