//! The browser's door: a session cookie, the organization in `?orgId=`, our own origin for every
//! change. One module per domain, each with its wire types and its `router()`.

pub mod account;
pub mod api_keys;
mod audit;
pub mod auth;
mod branding;
pub mod chat;
pub mod code;
mod competences;
pub mod composer;
pub mod deferred;
pub mod documents;
pub mod embedding;
pub mod events;
mod factors;
mod file_events;
pub mod governance;
pub mod knowledge_database;
pub mod members;
pub mod model_endpoints;
mod notifications;
pub mod object_storage;
pub mod organizations;
pub mod permissions;
pub mod preferences;
mod proof;
pub mod providers;
mod provisioning;
pub mod saml;
pub mod sandboxes;
mod second_factor;
pub mod session;
pub mod shares;
pub mod sso;
pub mod subscriptions;
pub mod teams;
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
        .merge(audit::router())
        .merge(auth::router())
        .merge(branding::router())
        .merge(factors::router())
        .merge(governance::router())
        .merge(members::router())
        .merge(model_endpoints::router())
        .merge(notifications::router())
        .merge(organizations::router())
        .merge(permissions::router())
        .merge(preferences::router())
        .merge(proof::router())
        .merge(providers::router())
        .merge(provisioning::router())
        .merge(subscriptions::router())
        .merge(teams::router())
        .merge(embedding::router())
        .merge(knowledge_database::router())
        .merge(object_storage::router())
        .merge(transcription::router())
        .merge(second_factor::router())
        .merge(session::router())
        .merge(saml::router())
        .merge(sso::router())
        .merge(chat::router())
        .merge(code::router())
        .merge(competences::router())
        .merge(sandboxes::router())
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
