//! Every HTTP door of Tale: the browser's (`/api/app`, `/api/auth`, `/events`), the key holder's
//! (`/api/v1`), health, the contract (`/openapi.json`, `/docs`) and the web app's files.
//!
//! A handler parses, authorizes, calls one domain function and maps the answer to its own wire
//! type. It knows no SQL; domain rooms know no HTTP. The pieces every handler shares:
//!
//! - [`caller`]: who calls ([`caller::Signed`], [`caller::Member`], [`caller::KeyCaller`]),
//! - [`body`] and [`query`]: strict parsing into wire types,
//! - [`origin`]: by which of the site's addresses a request came,
//! - [`problem`]: the only type that is both a problem and a response,
//! - [`outlets`]: what pages tell outward through their own origin,
//! - [`door`]: what happens to a request before and after every handler.
//!
//! The model gateway ([`llm_gateway`]) is a door of its own: agents call models there, with keys of its own.

pub mod app;
pub mod body;
pub mod caller;
pub mod contract;
pub mod docs;
mod documents;
pub mod door;
pub mod frames;
pub mod health;
pub mod listeners;
pub mod llm_gateway;
pub mod metrics;
pub mod origin;
pub mod outlets;
pub mod problem;
pub mod query;
pub mod rate;
mod scim;
pub mod serve;
pub mod session_copy;
pub mod state;
pub mod status;
mod store_origins;
mod unread;
pub mod v1;
pub mod web;
pub mod wire;

pub use problem::HttpProblem;
pub use serve::serve;
pub use state::{App, AppParts, Shell, ShellParts};
pub use store_origins::StoreOrigins;

use axum::Router;
use axum::routing::get;

/// Everything: the web tier and the doors in one process.
pub fn router(app: App) -> Router {
    let router = doors(&app)
        .merge(Router::from(health::router()))
        .merge(outlets::router())
        .route("/status", get(health::status_page))
        .fallback(web::serve)
        .method_not_allowed_fallback(door::method_not_allowed);
    door::around(router, app.clone(), app.shell())
}

/// The doors alone, for a process behind a proxy that sends everything else to the web tier.
pub fn backend_router(app: App) -> Router {
    let router = doors(&app)
        .merge(health::of_backend())
        .fallback(door::not_found)
        .method_not_allowed_fallback(door::method_not_allowed);
    door::around(router, app.clone(), app.shell())
}

/// What a process without doors says about itself: whether it lives, whether it stops, its metrics.
pub fn worker_router(app: App) -> Router {
    let router = health::of_worker()
        .merge(metrics::of_worker())
        .fallback(door::not_found)
        .method_not_allowed_fallback(door::method_not_allowed);
    door::around(router, app.clone(), app.shell())
}

/// The web tier alone: the app's page and files, health and the status report.
pub fn platform_router(shell: Shell) -> Router {
    let router = health::of_web_tier()
        .merge(metrics::of_web_tier_alone())
        .merge(outlets::router())
        .fallback(web::serve)
        .method_not_allowed_fallback(door::method_not_allowed);
    door::around(router, shell.clone(), &shell)
}

fn doors(app: &App) -> Router<App> {
    Router::from(app::router())
        .nest("/api/v1", v1::guarded(v1::router().into(), app))
        .nest("/scim/v2", scim::router(app))
        .merge(docs::router())
        .merge(metrics::router())
}
