//! The database room on a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

mod embedded;
mod hints;
mod migrate;
