//! What the process tells Prometheus (spec 10, section 10).
//!
//! `/metrics` is for the network of the deployment: it answers a caller on a private address that came
//! without a proxy, and is unknown to everybody else. `/metrics/platform`, `/metrics/backend` and
//! `/metrics/sla-rules` are public and ask for `METRICS_BEARER_TOKEN`.
//!
//! Counters are statics of the rooms. Gauges are collected when somebody scrapes; scrapes that come
//! while one collects share what it finds. A collector that fails leaves its gauge out and a line in
//! the log.

mod collect;
mod process;
pub(crate) mod requests;
mod sla;
mod write;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, FromRef, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use subtle::ConstantTimeEq;
use tale_blobs::Blobs;
use tale_core::clock::SharedClock;
use tale_core::crypto::sha256;
use tale_core::metrics::Format;
use tale_core::net::{HostPolicy, HostRefused, judge_address};
use tokio_util::sync::CancellationToken;

use self::collect::Collector;
use crate::listeners::Listeners;
use crate::state::{App, Shell};

/// What the gauges are read from.
pub struct MetricsParts {
    /// Name of the process's role.
    pub role: &'static str,
    /// The clock.
    pub clock: SharedClock,
    /// The operational database.
    pub app_db: PgPool,
    /// The knowledge database.
    pub knowledge_db: PgPool,
    /// The default object store.
    pub blobs: Blobs,
    /// The live streams of the process.
    pub streams: Listeners,
    /// Cancelled while new turns are refused for a deploy.
    pub draining: CancellationToken,
}

/// Which series a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Of the web tier.
    Platform,
    /// Of the doors, the queue and the stores.
    Backend,
    /// Of both.
    All,
}

/// The metrics of this process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Collector>);

impl Metrics {
    /// Metrics over these parts.
    #[must_use]
    pub fn new(parts: MetricsParts) -> Self {
        Self(Arc::new(Collector::new(parts)))
    }

    /// The text of a scrape.
    pub async fn page(&self, series: Series, format: Format) -> String {
        let found = match series {
            Series::Platform => None,
            Series::Backend | Series::All => Some(self.0.collect().await),
        };
        write::page(self.0.role(), series, found.as_deref(), format)
    }

    async fn answer(&self, series: Series, headers: &HeaderMap) -> Response {
        let format = format_of(headers);
        sent(self.page(series, format).await, format)
    }
}

fn format_of(headers: &HeaderMap) -> Format {
    Format::accepted(headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default())
}

fn sent(text: String, format: Format) -> Response {
    ([(header::CONTENT_TYPE, format.content_type()), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

/// The counters of a process that has nothing to collect.
pub(crate) fn of_process(role: &str, headers: &HeaderMap) -> Response {
    let format = format_of(headers);
    sent(write::page(role, Series::Backend, None, format), format)
}

/// The series of the web tier, which nothing is collected for.
fn of_shell(shell: &Shell, headers: &HeaderMap) -> Response {
    let format = format_of(headers);
    sent(write::page(shell.role, Series::Platform, None, format), format)
}

/// The routes. They are for operators and stand in no contract.
pub(crate) fn router() -> Router<App> {
    of_web_tier().merge(of_worker()).route("/metrics/backend", get(backend))
}

/// The routes of a process without doors.
pub(crate) fn of_worker() -> Router<App> {
    Router::new().route("/metrics", get(internal))
}

fn of_web_tier<S: Clone + Send + Sync + 'static>() -> Router<S>
where
    Shell: FromRef<S>,
{
    Router::new().route("/metrics/platform", get(platform)).route("/metrics/sla-rules", get(sla_rules))
}

/// The routes of a web tier that is a process of its own.
pub(crate) fn of_web_tier_alone() -> Router<Shell> {
    of_web_tier().route("/metrics", get(internal_of_web_tier))
}

async fn internal_of_web_tier(State(shell): State<Shell>, request: Request) -> Response {
    if !is_direct_neighbour(&request) {
        return crate::door::not_found().await.into_response();
    }
    of_shell(&shell, request.headers())
}

/// Everything, for who stands in the network of the deployment.
async fn internal(State(app): State<App>, request: Request) -> Response {
    if !is_direct_neighbour(&request) {
        return crate::door::not_found().await.into_response();
    }
    app.metrics().answer(Series::All, request.headers()).await
}

async fn platform(State(shell): State<Shell>, headers: HeaderMap) -> Response {
    match admitted(shell.metrics_token.as_ref(), &headers) {
        true => of_shell(&shell, &headers),
        false => refused(),
    }
}

async fn backend(State(app): State<App>, headers: HeaderMap) -> Response {
    match admitted(app.metrics_token.as_ref(), &headers) {
        true => app.metrics().answer(Series::Backend, &headers).await,
        false => refused(),
    }
}

async fn sla_rules(State(shell): State<Shell>, headers: HeaderMap) -> Response {
    match admitted(shell.metrics_token.as_ref(), &headers) {
        true => ([(header::CONTENT_TYPE, "application/yaml")], sla::rules()).into_response(),
        false => refused(),
    }
}

/// Whether the request came from a private address by itself. Through a proxy, that address would
/// be the proxy's, and the caller anybody.
pub(crate) fn is_direct_neighbour(request: &Request) -> bool {
    let proxied = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
    let private =
        peer.is_some_and(|ip| matches!(judge_address(ip, HostPolicy::PublicOnly), Err(HostRefused::Private(_))));
    private && !proxied.iter().any(|name| request.headers().contains_key(*name))
}

/// Compares digests, so that neither the place of a difference nor the length shows in the time.
pub(crate) fn admitted(token: Option<&SecretString>, headers: &HeaderMap) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let (Some(token), Some(given)) = (token, given) else { return false };
    bool::from(sha256(token.expose_secret().as_bytes()).ct_eq(&sha256(given)))
}

pub(crate) fn refused() -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer"), (header::CACHE_CONTROL, "no-store")])
        .into_response()
}
