//! What the environment room promises, over the whole registry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should panic")]

mod check;
mod compose;
mod generated;
mod parser;
mod reactions;
