//! The knowledge room on a real Postgres and a real object store.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests fail loudly")]

mod embedding;
mod indexing;
mod library;
mod recordings;
mod removal;
mod residency;
mod search;
mod storage;
mod uploads;
mod world;
