//! A real Caddy with the configuration that we write for it. Skipped, with a line that says so, where
//! it is not installed.
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should panic")]

mod caddy;
mod external;
mod selfsigned;
mod written;
