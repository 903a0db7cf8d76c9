//! Wire types that both doors share.

pub mod chat;
pub mod providers;
