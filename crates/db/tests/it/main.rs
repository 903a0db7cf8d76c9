//! The database room on a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod embedded;
mod foreign;
mod hints;
mod migrate;
mod pooler;
mod tls;
