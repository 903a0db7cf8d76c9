//! The doors over real services: no socket in between, everything else as in the program.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test that cannot go on should panic")]

mod attacks;
mod audit;
mod branding;
mod chat;
mod client;
mod competences;
mod contract;
mod conventions;
mod deferred;
mod documents;
mod edge;
mod embedding;
mod events;
mod governance;
mod hostile_models;
mod identity;
mod knowledge_database;
mod metrics;
mod model_endpoints;
mod object_storage;
mod origins;
mod outlets;
mod providers;
mod rights;
mod saml;
mod scim;
mod serve;
mod session_copy;
mod shares;
mod sso;
mod stage;
mod trusted_headers;
mod usage;
mod world;
