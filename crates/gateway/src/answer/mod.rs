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
mod same;
#[cfg(test)]
mod tests;
mod translation;
mod write;
mod write_anthropic;
mod write_openai;

use serde_json::Value;
use tale_models::ModelError;
use tale_models::wire::ApiFormat;

use collect::document;
pub(crate) use translation::Translation;
use write::Writer;
pub(crate) use write::{Told, error_event};

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
    format: ApiFormat,
    openai: decode_openai::State,
    anthropic: decode_anthropic::State,
    /// Tokens as told so far.
    tokens: Option<Tokens>,
    /// Bytes of output, for when no tokens are told.
    output: u64,
    finished: bool,
    done: bool,
}

impl Decoder {
    /// A reader of `format`; of the OpenAI format `answers` are expected.
    pub(crate) fn new(format: ApiFormat, answers: u64) -> Self {
        Self {
            format,
            openai: decode_openai::State::new(answers),
            anthropic: decode_anthropic::State::default(),
            tokens: None,
            output: 0,
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
        match self.format {
            ApiFormat::OpenAi if data.trim() == "[DONE]" => self.done = true,
            ApiFormat::OpenAi => decode_openai::event(self, data, out)?,
            ApiFormat::Anthropic => decode_anthropic::event(self, data, out)?,
        }
        self.count(&out[before..]);
        Ok(())
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// As [`Decoder::event`].
    pub(crate) fn document(&mut self, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
        let before = out.len();
        match self.format {
            ApiFormat::OpenAi => decode_openai::event(self, text, out)?,
            ApiFormat::Anthropic => decode_anthropic::document(self, text, out)?,
        }
        self.done = true;
        self.count(&out[before..]);
        Ok(())
    }

    fn count(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let bytes = match piece {
                Piece::Text(text) | Piece::Reasoning(text) | Piece::Arguments { text, .. } => text.len(),
                Piece::Tool { name, .. } => name.len(),
                Piece::Redacted(data) => data.len(),
                Piece::Further(bytes) => *bytes,
                Piece::Begin(_) | Piece::Signature(_) | Piece::Finish(_) => continue,
            };
            self.output += bytes as u64;
        }
    }

    /// Whether the model said that it is done; usage may still follow.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// Whether nothing follows.
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    /// Whether all that matters was said: the end of the answer and its usage. In the Anthropic
    /// format both come at once.
    pub(crate) fn complete(&self) -> bool {
        self.done || (self.finished && (self.format == ApiFormat::Anthropic || self.tokens.is_some()))
    }

    /// The tokens as the upstream told them at the end.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.tokens
    }

    /// At least so many tokens of output came: four bytes to a token.
    pub(crate) fn relayed_tokens(&self) -> u64 {
        let told = self.tokens.map_or(0, |tokens| tokens.output);
        told.max(self.output.div_ceil(4))
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
