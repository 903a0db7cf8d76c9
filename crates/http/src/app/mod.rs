//! The browser's door: a session cookie, the organization in `?orgId=`, our own origin for every
//! change. One module per domain, each with its wire types and its `router()`.

pub mod chat;
pub mod composer;
pub mod events;

use utoipa_axum::router::OpenApiRouter;

use crate::state::App;

/// All routes of the browser's door.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(chat::router())
        .merge(composer::router())
        .merge(events::router())
}
