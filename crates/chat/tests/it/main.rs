//! Chats on a real database, with a scripted model on a real socket.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail loudly")]

mod deferred;
mod ends;
mod shares;
mod threads;
mod turns;
mod usage;
mod web;
mod world;
