//! The real program, started as a process on a directory of its own, asked over HTTP as the spawner asks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]
#![allow(missing_docs, reason = "a test is no interface")]

mod attack;
mod files;
mod life;
mod output;
mod processes;
mod redirect;
mod session;
