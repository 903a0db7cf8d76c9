//! The only way out of sandboxes: a proxy for HTTP and CONNECT, and the DNS service beside it.
//!
//! A client is judged by the network it comes from, a destination by its port, its name and then its
//! address, and the connection goes to an address that was judged. A packet filter, installed before
//! anything listens, is a second wall that knows nothing of the first. See [`server`] for the order in
//! which it starts.

mod connection;
mod dial;
pub mod dns;
mod host;
mod http;
mod journal;
mod limits;
mod metrics;
mod networks;
mod open_files;
mod policy;
pub mod privileges;
pub mod server;
mod tunnel;
pub mod wall;

pub use host::{BadHost, Host};
pub use policy::{BadAllowlist, HostPolicy, Pattern};
pub use server::{Config, Prepared, StartError, Stopped, prepare};
