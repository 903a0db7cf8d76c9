//! SQL of the knowledge room, one module per concept.

pub(crate) mod corpus;
pub(crate) mod documents;
pub(crate) mod files;
pub(crate) mod keyword;
pub(crate) mod moves;
pub(crate) mod organizations;
pub(crate) mod search;
pub(crate) mod transcripts;
