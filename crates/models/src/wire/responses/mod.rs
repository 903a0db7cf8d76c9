//! The OpenAI Responses format: `POST <base>/responses` (MOD-75).

mod decode;
mod request;

pub(super) use decode::Decoder;
pub(super) use request::body;
