//! Tests of the knowledge room on a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests fail loudly")]

mod search;
