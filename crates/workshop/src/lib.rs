//! The platform's side of sandboxes: whose sessions there are, who holds a place under the organization's limits, who
//! waits for one, and what people run in theirs. The spawner decides about its host and knows neither people nor
//! limits; this room decides about those and is its only client.
//!
//! - [`client`] speaks the spawner's signed interface.
//! - [`runs`] is what a person can do: run a program, follow it, stop it, read the list.
//! - [`follow`] streams what a run does to those who look on.
//! - [`files`] lists and reads the workspace of a session that is awake.
//! - [`overview`] is what administrators see.
//! - [`line`](mod@line) gives places to those who wait, takes over what a lost process attended to, and tells the
//!   spawner of holds that ended.
//!   Where an organization was deleted, everything that is left of it at the spawner goes.
//! - [`cleanup`] finds workspaces that nobody uses or names; [`deletion`] ends those that are condemned.
//! - [`attend`] takes one run from its place to its end.
//!
//! Everything that must not be lost is in Postgres. A run that starts or runs has a process that attends to it and
//! says so every few seconds; when that falls silent, another one goes on from the last byte that was stored, because
//! the session's own journal has the rest. A place is held by the row of the session and given back in the
//! transaction that ends or defers the run, so that it is given back exactly once whoever dies when.
//!
//! Growth: one statement a second and process on small indexes; for each run that goes on one statement every
//! [`attend::BEAT`] and one per tenth of a second in which it prints. What a run printed is bounded by
//! [`runs::MAX_OUTPUT`], and a person keeps the last [`runs::KEPT`] runs.

pub mod attend;
pub mod cleanup;
pub mod client;
mod deletion;
pub mod files;
pub mod follow;
pub mod line;
pub mod overview;
pub mod runs;
mod service;
mod store;
mod teardown;

pub use service::{Settings, Workshop};
