//! Liveness, readiness and the state of the stores (DCF 18.3).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

/// How long a store may take to answer before it counts as out (DCF-220).
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The web process lives.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The release.
    version: &'static str,
}

/// One component of the status report.
#[derive(Serialize, ToSchema)]
pub struct Component {
    /// `application`, `knowledge` or `files`.
    id: &'static str,
    /// `operational` or `outage`.
    status: &'static str,
}

/// The status report.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// `operational`, `degraded` or `outage`.
    status: &'static str,
    /// When it was looked at (ISO 8601).
    checked_at: String,
    /// The components, always in this order.
    components: Vec<Component>,
}

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ping)).routes(routes!(ready)).routes(routes!(health)).routes(routes!(status))
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
async fn status(State(app): State<App>) -> Response {
    let application = async { sqlx::query("SELECT 1").execute(&app.database).await.is_ok() };
    let knowledge = async { app.knowledge.ping().await.is_ok() };
    let files = async { app.blobs.ping().await.is_ok() };
    let (application, knowledge, files) = futures::join!(within(application), within(knowledge), within(files));
    let up = [application, knowledge, files];
    let overall = match up.iter().filter(|up| **up).count() {
        3 => "operational",
        0 => "outage",
        _ => "degraded",
    };
    let components = ["application", "knowledge", "files"]
        .into_iter()
        .zip(up)
        .map(|(id, up)| Component { id, status: if up { "operational" } else { "outage" } })
        .collect();
    let report = StatusReport { status: overall, checked_at: app.clock.now().to_rfc3339(), components };
    ([(header::CACHE_CONTROL, "public, max-age=5")], Json(report)).into_response()
}

async fn within(probe: impl Future<Output = bool>) -> bool {
    tokio::time::timeout(PROBE_TIMEOUT, probe).await.unwrap_or(false)
}
