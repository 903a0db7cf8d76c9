//! The job queue on a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

mod draining;
mod kit;
mod leases;
mod ordering;
mod outcomes;
