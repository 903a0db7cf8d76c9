//! Models: which ones an organization has, and how they are called.

pub mod wire;
