//! The model endpoints: OpenAI's and Anthropic's interfaces in front of every model that an
//! organization can call, whichever of the wires its provider speaks.
//!
//! - [`Gateway`]: a call with its checks, its hold on the budget and its charge.
//! - [`request`]: what a client sent, judged, and written for the model. The same wire on both sides
//!   leaves everything but a few fields as it was written.
//! - `answer`: what the model says, written in the words of the interface; pure state machines.
//! - `relay`: the bytes between the two, with the limits of time and the signs of life.
//! - [`keys`]: keys of the model gateway, each with a list of models and a cap.
//! - `lanes`: how many calls a provider has at the same time. How many a person and a key have is the ledger's to say.
//! - [`settings`]: bounds that the backend lays down for every replica of the gateway.
//! - [`log`]: one row per call with a gateway key, for operators.
//! - `meter`: the charge, which ends exactly once.
//!
//! A running stream holds one connection to its provider, at most one event, and its counts; calls
//! that are not streamed hold their answer, at most 32 MiB. Whoever hangs up ends the call at the
//! provider, because the connection lives in the stream that is dropped.

mod answer;
mod call;
mod json;
pub mod keys;
mod lanes;
pub mod log;
mod meter;
pub mod metrics;
mod refusal;
mod relay;
pub mod request;
pub mod settings;
mod wire;

pub use answer::Tokens;
pub use call::{Admitted, Answer, Callable, Gateway, GatewayParts, Limits, Open};
pub use keys::{Keys, KeysParts};
pub use log::Log;
pub use refusal::{Refusal, error_body};
pub use request::Request;
pub use wire::Wire;
