//! Room of the Tale workspace.

pub mod dense;
mod fusion;
pub mod keyword;
pub mod reach;
pub mod search;
mod store;
