//! Identity on a real Postgres, in simulated time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod attacks;
mod authenticator;
mod branding;
mod factors;
mod forced_change;
mod keys;
mod known_device;
mod members;
mod mix_up;
mod notices;
mod oauth2;
mod passkeys;
mod policies;
mod preferences;
mod proofs;
mod saml;
mod scim;
mod session_copies;
mod sessions;
mod setup;
mod sign_in;
mod sso;
mod teams;
mod trusted_headers;
mod world;
