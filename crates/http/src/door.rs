//! What happens to every request before and after its handler: request id, URL limits, one log
//! line, the error body, security headers, compression, a caught panic.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tale_core::{Code, Problem};
use tale_env::SiteSettings;
use tale_gateway::{Wire, error_body};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tracing::Instrument;

use crate::metrics::requests;
use crate::origin::{below_base, request_origin};
use crate::problem::{Answered, HttpProblem, envelope};
use crate::session_copy;
use crate::state::Shell;
use crate::v1::model_endpoints;

/// Longest path and query, in bytes (API-21).
const MAX_URI_BYTES: usize = 32 * 1024;

/// Largest head of a request, in bytes (API-21).
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// An answer that takes this long leaves a line in the log.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, kept in its extensions.
#[derive(Clone)]
pub struct RequestId(pub String);

/// Marks an answer that may be shown in a frame, as its policy says.
#[derive(Clone)]
pub(crate) struct Framed;

/// Puts the door around the routes.
pub fn around<S: Clone + Send + Sync + 'static>(router: Router<S>, state: S, shell: &Shell) -> Router {
    let inner =
        router.layer(CompressionLayer::new().compress_when(SizeAbove::new(512).and(compressible))).with_state(state);
    Router::new()
        .fallback_service(inner)
        .layer(CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| {
            HttpProblem(Problem::internal("a handler panicked")).into_response()
        }))
        .layer(middleware::from_fn_with_state(shell.clone(), door))
}

/// Whether an answer gets smaller by compression (API-32). Files that are compressed in themselves
/// keep their length and their ranges; live streams are not held back.
fn compressible(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    (kind.starts_with("text/") && kind != "text/event-stream") || matches!(kind, "application/json" | "image/svg+xml")
}

async fn door(State(shell): State<Shell>, mut request: Request, next: Next) -> Response {
    if head_bytes(&request) > MAX_HEAD_BYTES {
        // Bare, as the server below answers what it cannot even hold.
        return (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, [(header::CONNECTION, "close")]).into_response();
    }
    let started = Instant::now();
    let id = request_id(&request);
    let method = request.method().clone();
    let whole_path = request.uri().path().to_owned();
    let path = logged(&whole_path);
    let span = tracing::info_span!("request", request_id = %id, %method, path = %path, route = requests::class(&whole_path), user = tracing::field::Empty, org = tracing::field::Empty);
    if method == Method::HEAD {
        // Answered as the GET it stands for, uncompressed, so that its headers are the same (API-20).
        *request.method_mut() = Method::GET;
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    let copied = session_copy::Slot::default();
    let over_tls = request_origin(&shell.site, request.headers(), request.extensions()).scheme() == "https";
    let response = match addressed(&shell.site, request.uri()) {
        Err(problem) => HttpProblem(problem).into_response(),
        Ok(rewritten) => {
            if let Some(uri) = rewritten {
                *request.uri_mut() = uri;
            }
            request.extensions_mut().insert(RequestId(id.clone()));
            request.extensions_mut().insert(copied.clone());
            next.run(request).instrument(span.clone()).await
        }
    };
    let mut response = if method == Method::OPTIONS && response.status() == StatusCode::METHOD_NOT_ALLOWED {
        options(&response)
    } else {
        answer(response, &id, &span, model_endpoints::interface(shell.site.without_base(&whole_path)))
    };
    if method == Method::HEAD {
        response = without_body(response);
    }
    mark_coding(response.headers_mut());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    security_headers(over_tls, &mut response);
    copied.settle(&mut response);
    let _entered = span.enter();
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    requests::count(&method, shell.site.without_base(&whole_path).unwrap_or(&whole_path), status, elapsed);
    let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    if elapsed >= SLOW {
        tracing::info!(event = "http.slow", status, ms, "answered slowly");
    } else {
        tracing::debug!(status, ms, "answered");
    }
    response
}

/// The path for the log. The token of a share link is left out: whoever reads logs need not be a
/// member.
fn logged(path: &str) -> String {
    const BEFORE: &str = "/chat/shared/";
    match path.split_once(BEFORE) {
        Some((head, _)) => format!("{head}{BEFORE}…"),
        None => path.to_owned(),
    }
}

/// Size of a request's head, without its address, which has a limit of its own.
pub(crate) fn head_bytes(request: &Request) -> usize {
    request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// `OPTIONS` of a known path: what it accepts, for anybody (API-20).
fn options(refused: &Response) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let accepted =
        refused.headers().get(header::ALLOW).and_then(|value| value.to_str().ok()).filter(|list| !list.is_empty());
    let list = accepted.map_or_else(|| "OPTIONS".to_owned(), |list| format!("{list},OPTIONS"));
    if let Ok(value) = HeaderValue::from_str(&list) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

/// The head of an answer, with the length that its body has.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact()
        && !matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        && !parts.headers.contains_key(header::CONTENT_LENGTH)
    {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}

/// A strong tag names one sequence of bytes, so a compressed answer has a tag of its own (API-30).
fn mark_coding(headers: &mut HeaderMap) {
    let Some(coding @ ("gzip" | "zstd")) = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok())
    else {
        return;
    };
    let marked = headers
        .get(header::ETAG)
        .and_then(|value| value.to_str().ok())
        .and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'))
        .and_then(|tag| HeaderValue::from_str(&format!("\"{tag}-{coding}\"")).ok());
    if let Some(value) = marked {
        headers.insert(header::ETAG, value);
    }
}

/// The client's id when it is well-formed, else a fresh one (API-22).
pub(crate) fn request_id(request: &Request) -> String {
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

/// The address as routes see it, when it differs: judged, and without the base path.
fn addressed(site: &SiteSettings, uri: &Uri) -> Result<Option<Uri>, Problem> {
    let judged = judge_uri(uri)?;
    let below = below_base(site, judged.as_ref().unwrap_or(uri))?;
    Ok(below.or(judged))
}

/// Refuses what no route may see; rewrites one trailing slash away.
pub(crate) fn judge_uri(uri: &Uri) -> Result<Option<Uri>, Problem> {
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
    let Some(stripped) = path.strip_suffix('/').filter(|rest| rest.starts_with('/') && !rest.ends_with('/')) else {
        return Ok(None);
    };
    let target = uri.query().map_or_else(|| stripped.to_owned(), |query| format!("{stripped}?{query}"));
    Ok(Uri::builder().path_and_query(target).build().ok())
}

/// Writes the body of a problem and its log line.
pub(crate) fn answer(mut response: Response, id: &str, span: &tracing::Span, interface: Option<Wire>) -> Response {
    let Some(Answered(problem)) = response.extensions_mut().remove::<Answered>() else {
        return response;
    };
    let _entered = span.enter();
    let cause = problem.source.as_deref().map(chain).unwrap_or_default();
    match response.status().as_u16() {
        500 => tracing::error!(event = "http.fault", code = problem.code.text(), cause, "{}", problem.message),
        // Something outside that we depend on.
        501.. => tracing::warn!(event = "http.unavailable", code = problem.code.text(), cause, "{}", problem.message),
        _ => tracing::debug!(code = problem.code.text(), "{}", problem.message),
    }
    let (mut parts, _) = response.into_parts();
    // The model endpoints answer in the shape of the interface that they are (MOD-121).
    let body = match interface {
        Some(interface) => error_body(interface, parts.status.as_u16(), &problem),
        None => envelope(&problem, Some(id)),
    }
    .to_string();
    let length = body.len();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Response::from_parts(parts, Body::from(body))
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

fn security_headers(over_tls: bool, response: &mut Response) {
    let framed = response.extensions().get::<Framed>().is_some();
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), payment=(), usb=()"),
        (HeaderName::from_static("x-permitted-cross-domain-policies"), "none"),
    ];
    for (name, value) in fixed {
        let left_out = framed && name == header::X_FRAME_OPTIONS;
        if !left_out && !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if over_tls {
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
        assert_eq!((judged("/"), judged("//"), judged("/a//")), (Ok(None), Ok(None), Ok(None)));
    }
}
