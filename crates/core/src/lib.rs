//! What every room of Tale may use: typed ids, the error vocabulary, the clock, cryptography,
//! the outbound network guard, paging cursors, counters and the limits that several rooms share.
//!
//! Nothing here knows a table, a route or a role. The crate is at the bottom of the dependency
//! order and imports no other room.

pub mod actor;
pub mod clock;
pub mod crypto;
pub mod ids;
pub mod limits;
pub mod metrics;
pub mod net;
pub mod page;
pub mod problem;
pub mod reach;
pub mod redact;
pub mod strict;

pub use actor::Actor;
pub use clock::{Clock, ManualClock, SystemClock};
pub use problem::{Code, Problem};
