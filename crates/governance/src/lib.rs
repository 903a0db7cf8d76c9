//! The governance room: what happened, who did it, and (with later releases) what may happen.
//!
//! - [`audit`]: one row per recorded act, written in the transaction of the act itself.
//! - [`budgets`]: limits on what is used, as rules and as arithmetic.
//!
//! The room stands below identity, so that every room that changes something can record it.

pub mod audit;
pub mod budgets;
