//! Writes the event stream of the interface that was called.

use serde_json::{Value, json};
use tale_models::wire::ApiFormat;

use super::{Piece, Tokens, write_anthropic, write_openai};

/// What an answer tells about the request.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The interface that was called.
    pub(crate) interface: ApiFormat,
    /// The model as the client named it.
    pub(crate) model: String,
    /// When the call began, in seconds.
    pub(crate) created: i64,
    /// Whether a stream of the OpenAI format ends with the usage.
    pub(crate) usage_wanted: bool,
    /// Tools whose input is free text.
    pub(crate) custom_tools: Vec<String>,
}

/// Turns pieces into events.
#[derive(Debug)]
pub(crate) enum Writer {
    OpenAi(write_openai::Writer),
    Anthropic(write_anthropic::Writer),
}

impl Writer {
    pub(crate) fn new(told: Told) -> Self {
        match told.interface {
            ApiFormat::OpenAi => Self::OpenAi(write_openai::Writer::new(told)),
            ApiFormat::Anthropic => Self::Anthropic(write_anthropic::Writer::new(told)),
        }
    }

    /// Writes one piece.
    pub(crate) fn piece(&mut self, piece: Piece, out: &mut String) {
        match self {
            Self::OpenAi(writer) => writer.piece(piece, out),
            Self::Anthropic(writer) => writer.piece(piece, out),
        }
    }

    /// Writes the end of a complete answer.
    pub(crate) fn end(&mut self, tokens: Option<Tokens>, out: &mut String) {
        match self {
            Self::OpenAi(writer) => writer.end(tokens, out),
            Self::Anthropic(writer) => writer.end(tokens, out),
        }
    }
}

/// The event that tells of an error after the stream began; nothing follows it.
pub(crate) fn error_event(interface: ApiFormat, error: &Value) -> String {
    match interface {
        ApiFormat::OpenAi => format!("data: {error}\n\n"),
        ApiFormat::Anthropic => format!("event: error\ndata: {error}\n\n"),
    }
}

/// Whether the text is a whole JSON value.
pub(super) fn is_whole(text: &str) -> bool {
    text.trim_end().ends_with(['}', ']']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A custom tool's free text from the arguments that stood in for it.
pub(super) fn custom_input(arguments: &str) -> String {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    match &value[crate::request::CUSTOM_INPUT] {
        Value::String(text) => text.clone(),
        _ => arguments.to_owned(),
    }
}

/// Usage in the OpenAI format.
pub(super) fn openai_usage(tokens: Tokens) -> Value {
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input.saturating_add(tokens.output),
        "prompt_tokens_details": { "cached_tokens": tokens.cached },
        "completion_tokens_details": { "reasoning_tokens": tokens.reasoning },
    })
}

/// Usage in the Anthropic format.
pub(super) fn anthropic_usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_written),
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_written,
        "output_tokens": tokens.output,
    })
}
