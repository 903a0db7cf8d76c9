//! A turn: from an accepted message to a settled reply.
//!
//! It runs detached from the connection that started it. While it runs, its parts live in
//! [`live::LiveTurn`]; once a second the process writes the state of all its turns, a slice of
//! them in each statement, which is their heartbeat, too ([`heartbeat`]). The end is one transaction.
//! A turn whose process is gone is settled as failed by whoever notices ([`heartbeat::reap`]).

pub(crate) mod charge;
pub(crate) mod citations;
pub(crate) mod context;
pub(crate) mod heartbeat;
pub(crate) mod history;
pub mod live;
pub(crate) mod prompt;
pub(crate) mod run;
pub(crate) mod settle;
pub(crate) mod title;
pub(crate) mod tools;
pub(crate) mod web;
