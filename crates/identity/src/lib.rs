//! Who a person is, how they get a session, which organization and role they act with, and how
//! members and API keys are managed.
//!
//! Everything above this room receives a [`Caller`] and asks it for rights; nobody else reads
//! memberships or credentials. [`Identity`] is the service; its methods stand in the module of
//! their subject.

pub mod accounts;
pub mod api_keys;
mod assertion;
pub mod branding;
pub mod caller;
pub mod competences;
pub mod config;
pub mod factors;
pub mod fields;
pub mod frames;
pub mod keys;
pub mod known_device;
pub mod lockout;
pub mod members;
pub mod network;
pub mod organizations;
pub mod password;
pub mod permissions;
mod policies;
pub mod preferences;
pub mod scim;
pub mod service;
pub mod session_copy;
pub mod sessions;
pub mod sign_in;
pub mod sign_in_blocks;
pub mod sso;
mod store;
pub mod teams;
mod trail;
pub mod trusted_headers;
mod way_in;

pub use caller::{Caller, SessionPrincipal, Via};
pub use competences::Competences;
pub use config::IdentityConfig;
pub use network::{ClientAddress, Hops, TrustedProxies};
pub use permissions::{Capability, Role};
pub use service::{Device, Identity};
pub use tale_notices as notices;
