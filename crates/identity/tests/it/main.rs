//! Identity on a real Postgres, in simulated time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod keys;
mod members;
mod preferences;
mod session_copies;
mod sessions;
mod setup;
mod sign_in;
mod trusted_headers;
mod world;
