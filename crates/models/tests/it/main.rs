//! Tests of the models room over real sockets and a real database.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests fail loudly")]

mod allowance;
mod available;
mod catalogs;
mod embedding;
mod files;
mod leases;
mod ledger;
mod providers;
mod responses;
mod retention;
mod rotation;
mod statements;
mod subscriptions;
mod support;
mod transcription;
mod warnings;
mod wire;
