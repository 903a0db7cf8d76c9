//! Writes the event stream of the interface that was called.

use serde_json::{Map, Value, json};

use super::{Piece, Tokens, write_anthropic, write_openai, write_responses};
use crate::request::{Request, Tool, ToolKind};
use crate::wire::Wire;

/// What an answer tells about the request.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The interface that was called.
    pub(crate) wire: Wire,
    /// The model as the client named it.
    pub(crate) model: String,
    /// When the call began, in seconds.
    pub(crate) created: i64,
    /// Whether a stream of chat completions ends with the usage.
    pub(crate) usage_wanted: bool,
    /// Tools whose calls the client wants in another form than the model writes them.
    pub(crate) tools: Vec<Tool>,
    /// Fields of the request that a response repeats.
    pub(crate) echoed: Map<String, Value>,
}

impl Told {
    /// What the answer of a model of `upstream` to `request` has to tell; `created` is the time of the
    /// call in seconds.
    pub(crate) fn new(request: &Request, upstream: Wire, created: i64) -> Self {
        Self {
            wire: request.wire(),
            model: request.model().to_owned(),
            created,
            usage_wanted: request.usage_wanted(),
            tools: request.special_tools(upstream),
            echoed: request.echoed(upstream),
        }
    }

    /// The tool that the model knows by this name, if there is something special about it.
    pub(super) fn tool(&self, flat: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.flat == flat)
    }

    /// Whether the tool's input is free text.
    pub(super) fn is_custom(&self, flat: &str) -> bool {
        self.tool(flat).is_some_and(|tool| tool.kind == ToolKind::Custom)
    }
}

/// Turns pieces into events.
#[derive(Debug)]
pub(crate) enum Writer {
    Chat(write_openai::Writer),
    Responses(write_responses::Writer),
    Messages(write_anthropic::Writer),
}

impl Writer {
    pub(crate) fn new(told: Told) -> Self {
        match told.wire {
            Wire::Chat => Self::Chat(write_openai::Writer::new(told)),
            Wire::Responses => Self::Responses(write_responses::Writer::new(told)),
            Wire::Messages => Self::Messages(write_anthropic::Writer::new(told)),
        }
    }

    /// Writes one piece.
    pub(crate) fn piece(&mut self, piece: Piece, out: &mut String) {
        match self {
            Self::Chat(writer) => writer.piece(piece, out),
            Self::Responses(writer) => writer.piece(piece, out),
            Self::Messages(writer) => writer.piece(piece, out),
        }
    }

    /// Writes the end of a complete answer.
    pub(crate) fn end(&mut self, tokens: Option<Tokens>, out: &mut String) {
        match self {
            Self::Chat(writer) => writer.end(tokens, out),
            Self::Responses(writer) => writer.end(tokens, out),
            Self::Messages(writer) => writer.end(tokens, out),
        }
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
