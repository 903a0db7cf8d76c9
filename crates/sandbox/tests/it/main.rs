//! What the spawner promises, in simulated time on a host that exists only here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail loudly")]

mod admission;
mod life;
mod simulation;
mod world;
