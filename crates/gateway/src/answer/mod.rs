//! Answers: what an upstream says, in pieces that belong to no wire, and the same in the words of
//! the interface that was called.
//!
//! A [`Decoder`] reads events or a whole document of one wire, a [`Writer`](write::Writer) writes
//! the stream of one interface, [`document`] a whole answer. Where both sides speak the same wire
//! the decoder only counts, and [`same`] hands on what came with the model's name replaced. All of
//! it is pure: bytes in, bytes out.

mod collect;
mod decode_anthropic;
mod decode_openai;
mod decode_responses;
mod same;
#[cfg(test)]
mod tests;
mod translation;
mod write;
mod write_anthropic;
mod write_openai;
mod write_responses;

use serde_json::Value;
use tale_models::ModelError;

use crate::wire::Wire;
use collect::document;
pub(crate) use translation::Translation;
pub(crate) use write::Told;
use write::Writer;

/// Tokens of a call, as the upstream counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of the prompt, those read from and written to the provider's cache included.
    pub input: u64,
    /// The part of `input` that was read from the cache.
    pub cached: u64,
    /// The part of `input` that was written to the cache.
    pub cache_written: u64,
    /// Of the answer, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model was done.
    Stop,
    /// One of the stop sequences came.
    Sequence(String),
    /// The output limit, or the window, was reached.
    Length,
    /// The model waits for tool results.
    Tools,
    /// The provider's filter, or the model itself, refused.
    Refusal,
}

/// What an upstream says, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// The answer's id.
    Begin(String),
    /// More visible text, never empty.
    Text(String),
    /// More reasoning, never empty.
    Reasoning(String),
    /// The provider's seal over the reasoning so far.
    Signature(String),
    /// Reasoning that the provider encrypted.
    Redacted(String),
    /// A tool call began.
    Tool {
        /// Its place among the answer's calls, from 0.
        slot: usize,
        /// The provider's id, or one made up where it gave none.
        id: String,
        /// The tool's name.
        name: String,
        /// A vendor's own field that must travel back with the call.
        vendor: Option<Value>,
    },
    /// More of a call's arguments, never empty.
    Arguments {
        /// The call.
        slot: usize,
        /// The text.
        text: String,
    },
    /// Output of a further answer to the same request, in bytes.
    Further(usize),
    /// Why the answer ended.
    Finish(Finish),
}

/// Reads one answer of an upstream.
#[derive(Debug)]
pub(crate) struct Decoder {
    wire: Wire,
    openai: decode_openai::State,
    responses: decode_responses::State,
    anthropic: decode_anthropic::State,
    /// Tokens as told so far.
    tokens: Option<Tokens>,
    /// Bytes of output, for when no tokens are told.
    output: u64,
    /// Tool calls so far.
    calls: usize,
    finished: bool,
    done: bool,
}

/// Most tool calls of one answer: what they need to be written grows with them.
const MAX_CALLS: usize = 1_024;

impl Decoder {
    /// A reader of `wire`; of chat completions `answers` are expected.
    pub(crate) fn new(wire: Wire, answers: u64) -> Self {
        Self {
            wire,
            responses: decode_responses::State::default(),
            openai: decode_openai::State::new(answers),
            anthropic: decode_anthropic::State::default(),
            tokens: None,
            output: 0,
            calls: 0,
            finished: false,
            done: false,
        }
    }

    /// Reads the data of one event of a stream.
    ///
    /// # Errors
    /// The provider's own error, or what is no event of this wire.
    pub(crate) fn event(&mut self, data: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
        let before = out.len();
        match self.wire {
            // Asked for several answers, some servers give one.
            Wire::Chat if data.trim() == "[DONE]" => {
                self.done = true;
                self.finished |= self.openai.ended();
            }
            Wire::Chat => decode_openai::event(self, data, out)?,
            // A few servers end this wire's streams as those of the other one.
            Wire::Responses if data.trim() == "[DONE]" => {}
            Wire::Responses => decode_responses::event(self, data, out)?,
            Wire::Messages => decode_anthropic::event(self, data, out)?,
        }
        self.count(&out[before..])
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// As [`Decoder::event`].
    pub(crate) fn document(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
        let before = out.len();
        match self.wire {
            Wire::Chat => decode_openai::document(self, text, out)?,
            Wire::Responses => decode_responses::document(self, text, out)?,
            Wire::Messages => decode_anthropic::document(self, text, out)?,
        }
        self.done = true;
        self.count(&out[before..])
    }

    fn count(&mut self, pieces: &[Piece]) -> Result<(), ModelError> {
        for piece in pieces {
            let bytes = match piece {
                Piece::Text(text) | Piece::Reasoning(text) | Piece::Arguments { text, .. } => text.len(),
                Piece::Tool { name, .. } => name.len(),
                Piece::Redacted(data) => data.len(),
                Piece::Further(bytes) => *bytes,
                Piece::Begin(_) | Piece::Signature(_) | Piece::Finish(_) => continue,
            };
            self.output += bytes as u64;
            self.calls += usize::from(matches!(piece, Piece::Tool { .. }));
        }
        if self.calls > MAX_CALLS {
            let why = format!("The answer was broken off: it calls more than {MAX_CALLS} tools.");
            return Err(ModelError::new(tale_models::ModelErrorCode::ProviderError, why));
        }
        Ok(())
    }

    /// Whether the model said that it is done; usage may still follow.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// Whether nothing follows.
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    /// Has the response kept that the last event of a stream brings.
    pub(crate) fn keep_response(&mut self) {
        self.responses.keep = true;
    }

    /// The id of a response whose events are handed on.
    pub(crate) fn response_id(&self) -> Option<&str> {
        self.responses.id.as_deref()
    }

    /// That response.
    pub(crate) fn kept_response(&mut self) -> Option<String> {
        self.responses.whole.take()
    }

    /// Whether all that matters was said: the end of the answer and its usage. Only chat completions may
    /// bring them one after the other.
    pub(crate) fn complete(&self) -> bool {
        self.done || (self.finished && (self.wire != Wire::Chat || self.tokens.is_some()))
    }

    /// The tokens as the upstream told them at the end.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.tokens
    }

    /// So many tokens of output came by: four bytes to a token.
    pub(crate) fn delivered_tokens(&self) -> u64 {
        self.output.div_ceil(4)
    }

    /// At least so many tokens of output came, or were told.
    pub(crate) fn relayed_tokens(&self) -> u64 {
        self.tokens.map_or(0, |tokens| tokens.output).max(self.delivered_tokens())
    }
}

/// What is no answer of this wire.
fn foreign() -> ModelError {
    ModelError::new(
        tale_models::ModelErrorCode::ProviderError,
        "The provider's answer is not in the format that its definition names. Check the provider's API format and base URL.",
    )
}

/// A fresh id after `prefix`.
fn made_up(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}
