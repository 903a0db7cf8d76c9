//! The governance room: what happened, who did it, and what may happen.
//!
//! - [`audit`]: one row per recorded act, written in the transaction of the act itself.
//! - [`budgets`]: limits on what is used, as rules and as arithmetic.
//! - [`policies`]: what administrators lay down, with a file beside each for the operator.
//!
//! The room stands below identity, so that every room that changes something can record it.

pub mod audit;
pub mod budgets;
pub mod policies;
