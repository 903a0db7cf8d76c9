//! Room of the Tale workspace.

pub mod keyword;
pub mod reach;
pub mod search;
mod store;
