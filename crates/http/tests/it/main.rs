//! The doors over real services: no socket in between, everything else as in the program.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test that cannot go on should panic")]

mod client;
mod contract;
mod documents;
mod identity;
mod providers;
mod world;
