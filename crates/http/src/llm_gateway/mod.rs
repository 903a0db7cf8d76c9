//! The door of the model gateway (spec 40, section 11): both interfaces for agents and scripts, with keys
//! of its own, and the administration for the backend.
//!
//! What a request passes is short, because it is on the way of every model call: its id, its address, the
//! error body, one line of the log when it took long. There is no session, no site and no page here.

mod admin;
mod bodies;
mod inference;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use secrecy::SecretString;
use tale_core::clock::SharedClock;
use tale_core::crypto::sha256;
use tale_core::problem::Problem;
use tale_gateway::{Gateway, Keys, Wire};
use tale_models::Models;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;

use crate::door;
use crate::metrics::{self, requests};
use crate::problem::HttpProblem;

/// The content of a [`GatewayDoor`].
pub struct GatewayDoorParts {
    /// Calls of models.
    pub gateway: Gateway,
    /// Who may.
    pub keys: Keys,
    /// What they call.
    pub models: Models,
    /// Name and password of the administration.
    pub admin: (String, SecretString),
    /// Name of the process's role.
    pub role: &'static str,
    /// Token of the public metrics route; without it it answers nobody.
    pub metrics_token: Option<SecretString>,
    /// The database, for readiness and settings.
    pub database: sqlx::PgPool,
    /// The time of changes.
    pub clock: SharedClock,
    /// Cancelled when the process begins to drain.
    pub stopping: CancellationToken,
}

/// What the door works with. Cheap to clone.
#[derive(Clone)]
pub struct GatewayDoor(Arc<Inner>);

struct Inner {
    parts: GatewayDoorParts,
    /// The digest of what the administration sends.
    credentials: [u8; 32],
    bodies: bodies::Bodies,
}

impl GatewayDoor {
    /// A door over these parts.
    #[must_use]
    pub fn new(parts: GatewayDoorParts) -> Self {
        let credentials = sha256(&admin::basic(&parts.admin.0, &parts.admin.1));
        Self(Arc::new(Inner { parts, credentials, bodies: bodies::Bodies::default() }))
    }

    fn parts(&self) -> &GatewayDoorParts {
        &self.0.parts
    }
}

/// Models for whoever has a key; the administration too, unless it has a port of its own.
pub fn router(door: GatewayDoor, with_admin: bool) -> Router {
    let router = inference::router().merge(health());
    let router = if with_admin { router.merge(admin::router(&door)) } else { router };
    around(router, door)
}

/// The administration alone.
pub fn admin_router(door: GatewayDoor) -> Router {
    around(admin::router(&door).merge(health()), door)
}

fn health() -> Router<GatewayDoor> {
    Router::new()
        .route("/health", get(async || axum::Json(serde_json::json!({ "status": "ok" }))))
        .route("/ping", get(async || "pong"))
        .route("/ready", get(ready))
        .route("/metrics", get(internal_metrics))
        .route("/metrics/backend", get(public_metrics))
}

fn around(router: Router<GatewayDoor>, gateway: GatewayDoor) -> Router {
    router
        .fallback(door::not_found)
        .method_not_allowed_fallback(door::method_not_allowed)
        .layer(CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| {
            HttpProblem(Problem::internal("a handler panicked")).into_response()
        }))
        .layer(middleware::from_fn(passage))
        .with_state(gateway)
}

/// The interface that a path belongs to.
fn interface(path: &str) -> Option<Wire> {
    match path.split('/').nth(1).unwrap_or_default() {
        "openai" => Some(Wire::Chat),
        "anthropic" => Some(Wire::Messages),
        _ => None,
    }
}

async fn passage(mut request: Request, next: Next) -> Response {
    if door::head_bytes(&request) > door::MAX_HEAD_BYTES {
        return (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, [(header::CONNECTION, "close")]).into_response();
    }
    let started = Instant::now();
    let id = door::request_id(&request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", request_id = %id, %method, path = %path, key = tracing::field::Empty);
    let response = match door::judge_uri(request.uri()) {
        Err(problem) => HttpProblem(problem).into_response(),
        Ok(rewritten) => {
            if let Some(uri) = rewritten {
                *request.uri_mut() = uri;
            }
            next.run(request).instrument(span.clone()).await
        }
    };
    let mut response = door::answer(response, &id, &span, interface(&path));
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(door::REQUEST_ID, value);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    requests::count(&method, &path, status, elapsed);
    tracing::debug!(parent: &span, status, ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX), "answered");
    response
}

/// Whether calls can be admitted now.
async fn ready(State(door): State<GatewayDoor>) -> (StatusCode, &'static str) {
    if door.parts().stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining");
    }
    let asked = sqlx::query("SELECT 1").execute(&door.parts().database).await;
    match asked {
        Ok(_) => (StatusCode::OK, "ready"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "no database"),
    }
}

async fn internal_metrics(State(door): State<GatewayDoor>, request: Request) -> Response {
    if !metrics::is_direct_neighbour(&request) {
        return door::not_found().await.into_response();
    }
    metrics::of_process(door.parts().role, request.headers())
}

async fn public_metrics(State(door): State<GatewayDoor>, headers: HeaderMap) -> Response {
    match metrics::admitted(door.parts().metrics_token.as_ref(), &headers) {
        true => metrics::of_process(door.parts().role, &headers),
        false => metrics::refused(),
    }
}
