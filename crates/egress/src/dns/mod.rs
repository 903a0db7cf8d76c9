//! Names: the proxy's own questions, and the only DNS service that sandboxes have.

pub(crate) mod cache;
pub(crate) mod message;
pub mod resolv_conf;
pub(crate) mod resolver;
pub(crate) mod server;
