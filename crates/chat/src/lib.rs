//! Chats: threads of messages, and the turns that answer them.
//!
//! A message is accepted by [`Chat::send`], which checks everything and commits the message, the
//! pending reply and the turn's place in one transaction. The turn then runs detached from the
//! connection ([`turn`]): the model streams, calls the three read-only tools, and its reply is
//! settled in one transaction. Whoever wants to watch follows it with [`Chat::follow`]; closing
//! a tab changes nothing, stopping is a row.
//!
//! A message whose attachments are still being read is parked ([`deferred`]) and sent by itself, so
//! that a turn never starts with a file it cannot read yet.
//!
//! Messages form a tree: an edit or a retry adds a branch, and the chat remembers which leaf is on
//! screen. Chats are private to their owner; everybody else gets the answer for an absent one. What
//! a [`Share`] publishes is a snapshot for the members of the organization.
//!
//! Growth: a send touches a handful of rows by primary key; a running turn holds its parts and a
//! ring of 256 events in memory; one statement a second writes all turns of a process,
//! another looks for parked messages that may go.

mod admission;
pub mod deferred;
mod export;
mod feedback;
mod follow;
mod message;
pub mod metrics;
pub mod parts;
mod send;
mod service;
mod share;
mod store;
mod thread;
pub mod turn;

pub use deferred::{Abandoned, DeferredSend, DeferredState};
pub use feedback::Rating;
pub use follow::Generation;
pub use message::{Message, Versions};
pub use parts::{Part, Status, TurnUsage};
pub use send::{Accepted, IdempotencyKey, MAX_ATTACHMENTS, MAX_WAITING_ATTACHMENTS, ModelChoice, SendRequest, SendTo};
pub use service::{Chat, ChatConfig, LostTurns, Owner};
pub use share::{OpenSource, Share, SharedChat, SharedMessage, SharedPart};
pub use thread::{BulkResult, FoundThread, Thread, ThreadPatch, ThreadQuery};
pub use turn::live::{DeltaKind, TurnEvent, TurnStatus};
pub use turn::web::WebAccess;
