//! What people are told, by mail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should panic")]

mod limits;
mod lists;
mod mail;
mod outages;
mod world;
