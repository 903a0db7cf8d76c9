//! The jobs room: background work on a queue in the application database.
//!
//! A job is enqueued inside the transaction that causes it ([`enqueue`]), so work and cause commit
//! together. A [`Worker`] claims jobs, runs them and writes down how they ended.
//!
//! **Delivery is at least once.** A claim is a *lease*: holder, expiry and a fencing token that
//! grows with every claim. The worker extends its leases every [`HEARTBEAT`]; when it dies, the
//! lease runs out after [`LEASE`] and another worker starts the job again, within 90 seconds of
//! the loss. What a worker that lost its lease still tries to write is refused when it writes
//! through [`Lease::guard`] or [`Lease::complete`]. No transaction stays open while a job runs.
//!
//! **Order.** Claims take turns between organizations and take the oldest job inside one; an
//! organization at its limit for a kind ([`Job::PER_ORG`]) is passed over. A worker claims only
//! kinds it knows, so two releases share a queue. `NOTIFY tale_jobs` wakes workers; it names kind and
//! organization, so that one at that limit sleeps on. Polling every [`POLL`] is the truth.
//!
//! **Failure.** A job that fails is tried again after a growing, jittered pause ([`Backoff`]), up
//! to [`Job::MAX_ATTEMPTS`]; one that something it needs is away for costs no attempt and comes back
//! every [`AWAY`] or so until it is there. When attempts are used up, or when it fails for good, it stays in the table as `dead` with
//! its code, after [`Job::given_up`] has told the domain.
//!
//! **Growth.** Enqueue and finish touch one row. A claim costs one index probe per organization it
//! passes over plus one per kind, takes a short advisory lock (claims are serial, a
//! fraction of a millisecond each, however long the queue) and holds no row locks after it. A worker writes one heartbeat statement per
//! [`HEARTBEAT`], whatever the number of jobs it runs.
//!
//! The room never interprets a payload and knows no other room's tables.

mod backoff;
mod depth;
mod job;
mod lease;
mod registry;
mod store;
mod worker;

pub use backoff::Backoff;
pub use depth::{Depth, STATES, depths};
pub use job::{EnqueueOptions, Failure, Job, JobError, enqueue};
pub use lease::Lease;
pub use worker::{Worker, WorkerBuilder};

use std::time::Duration;

/// How long a claim holds without a heartbeat.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often a worker extends its leases.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often an idle worker looks for work that nobody announced, and for leases that ran out.
pub const POLL: Duration = Duration::from_secs(10);
/// The longest pause before a job looks again for something that was away.
pub const AWAY: Duration = Duration::from_secs(40);
/// How long an interrupted job may take to return before it is dropped.
pub const RELEASE_GRACE: Duration = Duration::from_secs(2);
