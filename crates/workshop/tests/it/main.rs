//! The platform's side of sandboxes on a real database, with a spawner that speaks the real interface and runs
//! scripts of the tests instead of containers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "tests fail loudly"
)]

mod cleanup;
mod engine;
mod places;
mod runs;
mod spawner;
mod world;
