//! The key holder's door, `/api/v1`: bearer keys, one envelope, request ids, ETags, cursors,
//! strict bodies and rate limits (spec 91, section 1).

pub mod chat;
pub mod documents;
pub mod me;
pub mod model_endpoints;
pub mod models;
pub mod presumed;
pub mod search;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tale_core::crypto::{hex_of, sha256};
use tale_core::{Code, Problem};
use tale_identity::{Caller, Via};
use utoipa_axum::router::OpenApiRouter;

use crate::caller::client_address;
use crate::contract::CONTRACT_VERSION;
use crate::problem::HttpProblem;
use crate::state::App;
use presumed::Credentials;

const VERSION_HEADER: HeaderName = HeaderName::from_static("x-tale-api-version");

/// Largest answer that gets an entity tag, in bytes. Larger ones are streams.
const MAX_TAGGED_BYTES: u64 = 32 << 20;

/// All routes of the key holder's door, as the contract knows them.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(chat::router())
        .merge(documents::router())
        .merge(me::router())
        .merge(model_endpoints::router())
        .merge(models::router())
        .merge(search::router())
}

/// Puts the door around them.
pub(crate) fn guarded(routes: Router<App>, app: &App) -> Router<App> {
    routes
        .fallback(crate::door::not_found)
        .method_not_allowed_fallback(crate::door::method_not_allowed)
        .layer(middleware::from_fn(tag))
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
}

/// Authenticates before the route is looked up (API-2), draws from the door's lane and stamps the
/// contract's version on the answer.
async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::OPTIONS {
        next.run(request).await
    } else {
        match admit(&app, &mut request).await {
            Ok(()) => next.run(request).await,
            Err(problem) => refused(problem),
        }
    };
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(CONTRACT_VERSION));
    response
}

/// The refusal of a caller.
fn refused(problem: Problem) -> Response {
    let unauthorized = problem.code == Code::Unauthorized;
    let mut response = HttpProblem(problem).into_response();
    if unauthorized {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Puts into the request who calls, or who is presumed to where the route has it proven.
async fn admit(app: &App, request: &mut Request) -> Result<(), Problem> {
    let credentials = credentials(app, request)?;
    let note = |caller: &Caller| {
        tracing::Span::current().record("org", tracing::field::display(caller.org));
    };
    if let Some(presumed) = presumed::presume(app, request, &credentials)
        // An empty lane is told to nobody whose key may be void.
        && app.limits.door.take(holder(&presumed.caller)).is_ok()
    {
        note(&presumed.caller);
        request.extensions_mut().insert(presumed);
        return Ok(());
    }
    // The model endpoints say in their own words and order what a disabled seat must not do.
    let own_words = model_endpoints::interface_below(request.uri().path()).is_some();
    let found = credentials.prove(app, own_words).await?;
    app.limits.door.take(holder(&found.caller))?;
    note(&found.caller);
    request.extensions_mut().insert(found);
    Ok(())
}

/// What the request shows of its caller.
fn credentials(app: &App, request: &mut Request) -> Result<Credentials, Problem> {
    let missing = || Problem::new(Code::Unauthorized, "Send a valid API key as `Authorization: Bearer <key>`.");
    let headers = request.headers();
    if headers.contains_key("x-api-key") {
        return Err(Problem::new(
            Code::Unauthorized,
            "The header `x-api-key` is not accepted. Send the key as `Authorization: Bearer <key>` only.",
        ));
    }
    let key = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim().to_owned())
        .ok_or_else(missing)?;
    let slug = org_slug(headers)?;
    let (parts, body) = std::mem::take(request).into_parts();
    let address = client_address(&parts);
    *request = Request::from_parts(parts, body);
    let digest = sha256(key.as_bytes());
    if !app.limits.known_keys.contains(&digest) {
        // Who guesses keys costs no query beyond the attempts of the network.
        app.limits.failed_keys.check(&address.network())?;
    }
    Ok(Credentials { key, slug, digest, address })
}

/// `X-Organization-Slug`; blank counts as absent (API-3).
fn org_slug(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("x-organization-slug").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        // Whoever stands in between could otherwise choose which one counts.
        return Err(Problem::new(Code::InvalidHeader, "The header `X-Organization-Slug` must be sent once."));
    }
    let text = value
        .to_str()
        .map_err(|_| Problem::new(Code::InvalidHeader, "The header `X-Organization-Slug` must be plain text."))?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Whom a rate limit counts: the person for personal keys, the key for every other kind (KEY-13).
#[must_use]
pub fn holder(caller: &Caller) -> uuid::Uuid {
    match (&caller.user, &caller.via) {
        (Some(user), _) => user.0,
        (None, Via::ApiKey { id, .. }) => id.0,
        (None, Via::Session(id)) => id.0,
        (None, Via::Earlier) => caller.org.0,
    }
}

/// A strong entity tag on every JSON `GET` with 200, and 304 for a matching one (API-30).
async fn tag(request: Request, next: Next) -> Response {
    // The door answers HEAD as the GET it stands for.
    let readable = *request.method() == Method::GET;
    let wanted = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let response = next.run(request).await;
    let json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let small =
        http_body::Body::size_hint(response.body()).exact().is_some_and(|size| size > 0 && size <= MAX_TAGGED_BYTES);
    if !readable || response.status() != StatusCode::OK || !json || !small {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(collected) = body.collect().await else {
        return HttpProblem(Problem::internal("the answer could not be read back")).into_response();
    };
    let bytes = collected.to_bytes();
    let etag = etag_of(&bytes);
    if let Ok(value) = HeaderValue::from_str(&format!("\"{etag}\"")) {
        parts.headers.insert(header::ETAG, value);
    }
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if wanted.is_some_and(|list| matches_tag(&list, &etag)) {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// The strong tag of a representation, without its quotes.
pub(crate) fn etag_of(bytes: &[u8]) -> String {
    hex_of(&sha256(bytes)[..16])
}

/// Whether an `If-None-Match` list names the tag in its plain, coded or weak form.
pub(crate) fn matches_tag(list: &str, etag: &str) -> bool {
    list.split(',').map(str::trim).any(|entry| {
        let inner = entry.strip_prefix("W/").unwrap_or(entry).trim_matches('"');
        entry == "*"
            || inner == etag
            || inner.strip_suffix("-gzip").or_else(|| inner.strip_suffix("-zstd")) == Some(etag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_tag_matches() {
        for list in ["\"abc\"", "W/\"abc\"", "\"abc-gzip\"", "\"x\", \"abc-zstd\"", "*"] {
            assert!(matches_tag(list, "abc"), "{list}");
        }
        assert!(!matches_tag("\"abcd\"", "abc"));
    }
}
