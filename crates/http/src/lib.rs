//! Every HTTP door of Tale: the browser's (`/api/app`, `/api/auth`, `/events`), the key holder's
//! (`/api/v1`), health, the contract (`/openapi.json`, `/docs`) and the web app's files.
//!
//! A handler parses, authorizes, calls one domain function and maps the answer to its own wire
//! type. It knows no SQL; domain rooms know no HTTP. The pieces every handler shares:
//!
//! - [`caller`]: who calls ([`caller::Signed`], [`caller::Member`], [`caller::KeyCaller`]),
//! - [`body`] and [`query`]: strict parsing into wire types,
//! - [`problem`]: the only type that is both a problem and a response,
//! - [`door`]: what happens to a request before and after every handler.

pub mod app;
pub mod body;
pub mod caller;
pub mod contract;
pub mod docs;
mod documents;
pub mod door;
pub mod health;
pub mod listeners;
pub mod metrics;
pub mod problem;
pub mod query;
pub mod rate;
pub mod serve;
pub mod session_copy;
pub mod state;
pub mod v1;
pub mod web;
pub mod wire;

pub use problem::HttpProblem;
pub use serve::serve;
pub use state::{App, AppParts};

use axum::Router;

/// The complete router of the `platform` and `backend-api` roles.
pub fn router(app: App) -> Router {
    let browser: Router<App> = app::router().merge(health::router()).into();
    let router = browser
        .nest("/api/v1", v1::guarded(v1::router().into(), &app))
        .merge(docs::router(&app))
        .merge(metrics::router())
        .fallback(web::serve)
        .method_not_allowed_fallback(door::method_not_allowed);
    door::around(router, &app).with_state(app)
}
