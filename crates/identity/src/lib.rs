//! Who a person is, how they get a session, which organization and role they act with, and how
//! members and API keys are managed.
//!
//! Everything above this room receives a [`Caller`] and asks it for rights; nobody else reads
//! memberships or credentials.

pub mod caller;
pub mod keys;
pub mod lockout;
pub mod network;
pub mod password;
pub mod permissions;

pub use caller::{Caller, SessionPrincipal, Via};
pub use network::{ClientAddress, TrustedProxies};
pub use permissions::{Capability, Role};
