//! The program as it is called.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod agents;
mod audit;
mod edge;
mod env;
mod gateway_wires;
mod llm_gateway;
mod mail;
mod roles;
mod sdks;
mod store;
mod workers;
