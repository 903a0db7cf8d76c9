//! Liveness, readiness and the state of the stores (DCF 18.3).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::HttpProblem;
use crate::frames;
use crate::state::{App, Shell};
use crate::status::{Component, StatusReport, page};

/// The web process lives.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The release.
    version: &'static str,
}

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ping)).routes(routes!(ready)).routes(routes!(health)).routes(routes!(status))
}

/// What a process without doors answers about itself.
pub(crate) fn of_worker() -> axum::Router<App> {
    axum::Router::new().route("/ping", get(ping)).route("/ready", get(ready))
}

/// What the process of the doors answers about itself and, for the web tier, about its stores.
pub(crate) fn of_backend() -> axum::Router<App> {
    of_worker()
        .route("/health/stores", get(status))
        .route("/health/stores/{component}", get(store))
        .route(frames::ADDRESS, get(frames::tell))
}

/// What the process of the web tier answers about itself and the deployment.
pub(crate) fn of_web_tier() -> axum::Router<Shell> {
    axum::Router::new()
        .route("/api/health", get(health))
        .route("/status.json", get(status))
        .route("/status", get(status_page))
}

/// Liveness: 200 as long as the process serves, while draining too.
#[utoipa::path(get, path = "/ping", tag = "health", responses((status = 200, body = String)))]
async fn ping() -> &'static str {
    "pong"
}

/// Readiness for traffic: 503 from the moment the process drains. Outside stores do not count.
#[utoipa::path(get, path = "/ready", tag = "health", responses((status = 200, body = String), (status = 503, body = String)))]
async fn ready(State(app): State<App>) -> (StatusCode, &'static str) {
    if app.stopping.is_cancelled() { (StatusCode::SERVICE_UNAVAILABLE, "draining") } else { (StatusCode::OK, "ready") }
}

/// The web process lives; names the release.
#[utoipa::path(get, path = "/api/health", tag = "health", responses((status = 200, body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// The state of the application, the knowledge database and the file store; always 200.
#[utoipa::path(get, path = "/status.json", tag = "health", responses((status = 200, body = StatusReport)))]
async fn status(State(shell): State<Shell>) -> Response {
    let report = shell.status.report().await;
    ([(header::CACHE_CONTROL, "public, max-age=5")], Json(report)).into_response()
}

/// The same as a page without scripts, in the reader's language.
pub(crate) async fn status_page(State(shell): State<Shell>, headers: HeaderMap) -> Response {
    let report = shell.status.report().await;
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    page(&report, wanted)
}

/// Whether one store answers this process: by status alone, for the web tier's report.
async fn store(
    State(shell): State<Shell>,
    Path(name): Path<String>,
) -> Result<(StatusCode, &'static str), HttpProblem> {
    let Some(component) = Component::named(&name) else { return Err(crate::door::not_found().await) };
    Ok(match shell.status.probe(component).await {
        true => (StatusCode::OK, "operational"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "outage"),
    })
}
