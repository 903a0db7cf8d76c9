//! The Anthropic messages format.

mod decode;
mod request;

pub(super) use decode::Decoder;
pub(super) use request::body;
