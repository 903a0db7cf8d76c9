//! The spawner on a real engine, with real containers and the real daemon in them, through its signed interface.
//!
//! `scripts/docker-engine` gives the engine and `scripts/sandbox-images` the image. Where one of them cannot be had the
//! tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "tests fail loudly"
)]

mod attack;
mod failures;
mod git;
mod place;
mod sessions;
