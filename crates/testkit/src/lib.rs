//! What tests of several rooms share. A development dependency only: no shipped crate imports it.
//!
//! - [`TestDb`]: a fresh, migrated pair of databases for one test.
//! - [`ForeignDb`]: a database of somebody else, with a role of its own.
//! - [`identity_provider::IdentityProvider`]: signs people in by OpenID Connect.
//! - [`mail::MailServer`]: a real mail server that keeps what it gets.
//! - [`recorder::Recorder`]: a service that writes down what it is asked.
//! - [`saml_provider::Said`]: what an identity provider says by SAML.
//! - [`ManualClock`]: time that moves when told to.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test support fails loudly")]

mod db;
mod foreign;
pub mod identity_provider;
pub mod mail;
pub mod recorder;
pub mod saml_provider;
pub mod upstream;

pub use db::{TestDb, workspace};
pub use foreign::ForeignDb;
pub use tale_core::ManualClock;
