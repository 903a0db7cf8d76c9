//! The proxy between real networks: a session's, its own, and a small internet with public addresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod addresses;
mod client;
mod forwarding;
mod git;
mod limits;
mod logs;
mod names;
mod start;
mod tunnels;
mod world;
