//! The OpenAI chat-completions format.

mod calls;
mod decode;
mod request;

pub(super) use decode::Decoder;
pub(super) use request::body;
