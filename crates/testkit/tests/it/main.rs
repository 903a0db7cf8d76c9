//! The test kit's own tests and the checks that hold for the whole workspace.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

mod asvs;
mod catalog;
mod database;
mod workspace;
