//! What happens to every request before and after its handler: request id, URL limits, one log
//! line, the error body, security headers, compression, a caught panic.

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tale_core::{Code, Problem};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate, SizeAbove};
use tracing::Instrument;

use crate::problem::{Answered, HttpProblem, envelope};
use crate::state::App;

/// Longest path and query, in bytes (API-21).
const MAX_URI_BYTES: usize = 32 * 1024;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, kept in its extensions.
#[derive(Clone)]
pub struct RequestId(pub String);

/// Puts the door around the routes.
pub fn around(router: Router<App>, app: &App) -> Router<App> {
    let inner = router
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(SizeAbove::new(512))))
        .with_state(app.clone());
    Router::new()
        .fallback_service(inner)
        .layer(CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| {
            HttpProblem(Problem::internal("a handler panicked")).into_response()
        }))
        .layer(middleware::from_fn_with_state(app.clone(), door))
}

async fn door(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", request_id = %id, %method, path = %path, user = tracing::field::Empty, org = tracing::field::Empty);
    let response = match judge_uri(request.uri()) {
        Err(problem) => HttpProblem(problem).into_response(),
        Ok(rewritten) => {
            if let Some(uri) = rewritten {
                *request.uri_mut() = uri;
            }
            request.extensions_mut().insert(RequestId(id.clone()));
            next.run(request).instrument(span.clone()).await
        }
    };
    let mut response = if method == Method::OPTIONS && response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let (parts, _) = response.into_parts();
        let mut options = StatusCode::NO_CONTENT.into_response();
        if let Some(allow) = parts.headers.get(header::ALLOW) {
            options.headers_mut().insert(header::ALLOW, allow.clone());
        }
        options
    } else {
        answer(response, &id, &method, &span)
    };
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    security_headers(&app, &mut response);
    let _entered = span.enter();
    tracing::debug!(
        status = response.status().as_u16(),
        ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "answered"
    );
    response
}

/// The client's id when it is well-formed, else a fresh one (API-22).
fn request_id(request: &Request) -> String {
    request
        .headers()
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(|text| {
            (1..=255).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'=' | b'-'))
        })
        .map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// Refuses what no route may see; rewrites one trailing slash away.
fn judge_uri(uri: &Uri) -> Result<Option<Uri>, Problem> {
    let whole = uri.path_and_query().map_or("", |pq| pq.as_str());
    if whole.len() > MAX_URI_BYTES {
        return Err(Problem::new(Code::UriTooLong, "The address is longer than 32 KiB. Send long values in the body."));
    }
    if whole.contains("%00") {
        return Err(Problem::new(Code::InvalidUrl, "The address contains the character NUL."));
    }
    let path = uri.path();
    if path
        .split('/')
        .any(|segment| matches!(segment.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e."))
    {
        return Err(Problem::new(Code::NotFound, "There is nothing at this address."));
    }
    let Some(stripped) = path.strip_suffix('/').filter(|rest| !rest.is_empty() && path.starts_with("/api/")) else {
        return Ok(None);
    };
    let target = uri.query().map_or_else(|| stripped.to_owned(), |query| format!("{stripped}?{query}"));
    Ok(Uri::builder().path_and_query(target).build().ok())
}

/// Writes the body of a problem and its log line.
fn answer(mut response: Response, id: &str, method: &Method, span: &tracing::Span) -> Response {
    let Some(Answered(problem)) = response.extensions_mut().remove::<Answered>() else {
        return response;
    };
    let _entered = span.enter();
    if problem.status() >= 500 {
        let cause = problem.source.as_deref().map(chain).unwrap_or_default();
        tracing::error!(code = problem.code.text(), cause, "{}", problem.message);
    } else {
        tracing::debug!(code = problem.code.text(), "{}", problem.message);
    }
    let body = envelope(&problem, Some(id)).to_string();
    let length = body.len();
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Response::from_parts(parts, if method == Method::HEAD { Body::empty() } else { Body::from(body) })
}

/// An error and its causes on one line.
fn chain(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn security_headers(app: &App, response: &mut Response) {
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), payment=(), usb=()"),
        (HeaderName::from_static("x-permitted-cross-domain-policies"), "none"),
    ];
    for (name, value) in fixed {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if app.site.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// A known path with another verb.
pub async fn method_not_allowed() -> HttpProblem {
    HttpProblem(Problem::new(
        Code::MethodNotAllowed,
        "This address does not accept this method. The `Allow` header lists those it accepts.",
    ))
}

/// An unknown path of an API door.
pub async fn not_found() -> HttpProblem {
    HttpProblem(Problem::new(Code::NotFound, "There is nothing at this address."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(uri: &str) -> Result<Option<String>, Code> {
        judge_uri(&uri.parse().unwrap()).map(|uri| uri.map(|uri| uri.to_string())).map_err(|problem| problem.code)
    }

    #[test]
    fn addresses_are_judged_before_routing() {
        assert_eq!(judged("/api/v1/me"), Ok(None));
        assert_eq!(judged("/api/v1/me/?a=b"), Ok(Some("/api/v1/me?a=b".into())));
        assert_eq!(judged("/api/v1/%00"), Err(Code::InvalidUrl));
        assert_eq!(judged("/api/v1/a/%2e%2e/b"), Err(Code::NotFound));
        assert_eq!(judged(&format!("/x?{}", "a".repeat(MAX_URI_BYTES))), Err(Code::UriTooLong));
        assert_eq!(judged("/"), Ok(None));
    }
}
