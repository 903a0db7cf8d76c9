//! SQL of the knowledge room, one module per concept.

pub(crate) mod keyword;
pub(crate) mod search;
