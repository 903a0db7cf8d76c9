//! Tests of the models room over real sockets and a real database.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests fail loudly")]

mod available;
mod catalogs;
mod embedding;
mod ledger;
mod providers;
mod responses;
mod rotation;
mod support;
mod transcription;
mod wire;
