//! The browser's door: a session cookie, the organization in `?orgId=`, our own origin for every
//! change. One module per domain, each with its wire types and its `router()`.

pub mod account;
pub mod api_keys;
pub mod auth;
pub mod chat;
pub mod composer;
pub mod deferred;
pub mod documents;
pub mod embedding;
pub mod events;
mod file_events;
pub mod governance;
pub mod knowledge_database;
pub mod members;
pub mod model_endpoints;
pub mod object_storage;
pub mod organizations;
pub mod permissions;
pub mod preferences;
pub mod providers;
pub mod session;
pub mod shares;
pub mod transcription;
pub mod trusted_headers;
pub mod uploads;
pub mod usage;

use utoipa_axum::router::OpenApiRouter;

use crate::state::App;

/// All routes of the browser's door.
pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(account::router())
        .merge(api_keys::router())
        .merge(auth::router())
        .merge(governance::router())
        .merge(members::router())
        .merge(model_endpoints::router())
        .merge(organizations::router())
        .merge(permissions::router())
        .merge(preferences::router())
        .merge(providers::router())
        .merge(embedding::router())
        .merge(knowledge_database::router())
        .merge(object_storage::router())
        .merge(transcription::router())
        .merge(session::router())
        .merge(chat::router())
        .merge(shares::router())
        .merge(composer::router())
        .merge(deferred::router())
        .merge(documents::router())
        .merge(trusted_headers::router())
        .merge(uploads::router())
        .merge(usage::router())
        .merge(events::router())
        .merge(file_events::router())
}
