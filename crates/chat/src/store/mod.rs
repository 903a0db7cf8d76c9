//! SQL of the chat room, nothing else.

pub(crate) mod deferred;
pub(crate) mod feedback;
pub(crate) mod generations;
pub(crate) mod idempotency;
pub(crate) mod messages;
pub(crate) mod opening;
pub(crate) mod shares;
pub(crate) mod threads;
