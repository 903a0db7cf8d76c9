//! The OpenAI chat-completions format.

mod calls;
mod decode;
mod request;

pub(super) use decode::{Decoder, read_usage};
pub(super) use request::{body, effort_word};
