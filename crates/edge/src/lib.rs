//! The proxy in front of Tale: a configuration for Caddy, made from the same settings as everything
//! behind it.
//!
//! The proxy ends TLS, routes and answers for what is away. It judges nothing else: limits of bodies
//! and addresses, tokens and origins are judged behind it, once. The token of the metrics routes is
//! one of these. Caddy compares strings in a time that depends on them and would need the secret in
//! its configuration; the processes compare in constant time and have it already.

mod answers;
mod caddyfile;

pub use caddyfile::{Ports, caddyfile};
