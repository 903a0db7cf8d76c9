//! The two wire formats that model providers speak, behind one vocabulary.
//!
//! A call is a [`ChatRequest`] to a [`Target`]; the answer is a stream of [`StreamEvent`]s. What
//! differs between the OpenAI chat-completions format and the Anthropic messages format stays in
//! [`openai`] and [`anthropic`]; the transport ([`client`]), the event-stream parser ([`sse`]) and
//! the driver that turns bytes into events ([`pump`]) are shared.
//!
//! Bounds: every buffer has a named limit ([`WireLimits`]), no byte for 180 s ends a call, and
//! dropping the stream (or cancelling its token) closes the connection to the provider.

mod anthropic;
mod classify;
mod client;
mod embeddings;
mod error;
mod lenient;
mod listing;
mod openai;
mod pump;
mod responses;
mod scrub;
mod sse;
mod transcribe;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::extra_body::ExtraBody;

pub use client::{Relayed, WireClient};
pub(crate) use embeddings::EmbeddingRefusal;
pub use error::{ModelError, ModelErrorCode};
pub use listing::{ListedKind, ListedModel};
pub use sse::{SseEvent, SseParser, SseTooLarge};
pub(crate) use transcribe::Recording;
pub use transcribe::Transcript;

/// The wire format of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiFormat {
    /// OpenAI chat completions: `POST <base>/chat/completions`, bearer key.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic messages: `POST <base>/v1/messages`, `x-api-key`.
    Anthropic,
}

impl ApiFormat {
    /// The stored and transmitted word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Reads the stored word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "openai" => Some(Self::OpenAi),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

/// Which names the OpenAI format uses for its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WireDialect {
    /// The classic fields, `max_tokens` among them.
    #[default]
    #[serde(rename = "classic")]
    Classic,
    /// `max_completion_tokens` instead of `max_tokens`.
    #[serde(rename = "openai-modern")]
    OpenAiModern,
}

/// How a model of the Anthropic format is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingStyle {
    /// A number of tokens set aside for thinking.
    #[default]
    Budget,
    /// The model decides; an effort word steers it.
    Adaptive,
}

/// Over which of the two OpenAI interfaces a model is called (MOD-75).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolApi {
    /// `POST <base>/chat/completions`.
    #[default]
    ChatCompletions,
    /// `POST <base>/responses`: some models call tools only there.
    Responses,
}

/// How hard a model shall think (CHT-39). Without one, a model that can answer without extended
/// reasoning does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    Extra,
    /// As much as the model can.
    Max,
}

/// Where a call goes and with which key.
#[derive(Debug, Clone)]
pub struct Target {
    /// The wire format.
    pub format: ApiFormat,
    /// The field names of the OpenAI format.
    pub dialect: WireDialect,
    /// The API root; paths are appended to it.
    pub base: Url,
    /// The key, when the endpoint wants one.
    pub secret: Option<SecretString>,
    /// Whether this is the demo model of this very process (the only loopback address that is
    /// reachable without `TALE_ALLOW_PRIVATE_PROVIDER_HOSTS`).
    pub demo: bool,
}

/// What the wire must know about the model that is called.
#[derive(Debug, Clone, Default)]
pub struct ModelFacts {
    /// The provider's name of the model.
    pub id: String,
    /// The largest answer in tokens, when known.
    pub max_output_tokens: Option<u32>,
    /// Whether the model has a reasoning knob.
    pub reasoning: bool,
    /// How it is asked to think in the Anthropic format.
    pub thinking: ThinkingStyle,
    /// Whether it knows the effort above `high` in the OpenAI format.
    pub xhigh: bool,
    /// Over which interface it is called in the OpenAI format.
    pub tool_api: ToolApi,
    /// Whether it takes tools only with reasoning off.
    pub tools_require_no_reasoning: bool,
    /// Fields added to the body of each request (MOD-76).
    pub extra_body: ExtraBody,
}

/// One request to a chat model.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// The system text; empty = none.
    pub system: String,
    /// The conversation, oldest first, tool calls and results in their original order.
    pub messages: Vec<ChatMessage>,
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
    /// Whether tools may be called now.
    pub tool_choice: ToolChoice,
    /// Upper bound of the answer in tokens; `None` = the model's own.
    pub max_output_tokens: Option<u32>,
    /// How hard to think; ignored by models without the knob.
    pub effort: Option<Effort>,
}

impl ChatRequest {
    /// Whether tools stand in the request: `tool_choice: none` is not obeyed everywhere, and a tool
    /// that is not on the wire cannot be called.
    fn sends_tools(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice == ToolChoice::Auto
    }
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must answer in text. Tools are left off the wire where the format allows it.
    None,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatMessage {
    /// What the person said.
    User(Vec<UserPart>),
    /// What the model said.
    Assistant {
        /// The visible text, possibly empty.
        text: String,
        /// Reasoning to hand back, as received in [`StreamEvent::ReasoningBlock`]. Providers that
        /// sign their reasoning want it back within a tool loop; elsewhere it may be left empty.
        reasoning: Vec<ReasoningBlock>,
        /// The tools it called, in order.
        tool_calls: Vec<ToolCall>,
    },
    /// The result of one tool call.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What the tool answered.
        content: String,
        /// Whether it failed.
        is_error: bool,
    },
}

impl ChatMessage {
    /// A user message of one text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }

    /// An assistant message of one text.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { text: text.into(), reasoning: Vec::new(), tool_calls: Vec::new() }
    }
}

/// A piece of a user message.
#[derive(Debug, Clone, PartialEq)]
pub enum UserPart {
    /// Text.
    Text(String),
    /// An image, for vision models only.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// The file's bytes.
        bytes: Bytes,
    },
}

/// A tool offered to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Name by which the model calls it: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments (an object schema).
    pub parameters: Arc<Value>,
}

/// A complete tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call, or one made up here when it gave none.
    pub id: String,
    /// The tool's name as the model wrote it (it may not exist).
    pub name: String,
    /// The arguments as the model wrote them. Not necessarily valid JSON.
    pub arguments: String,
    /// Opaque data of the vendor that must travel back with the call (Gemini's thought signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Value>,
}

impl ToolCall {
    /// A call without vendor data.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), vendor: None }
    }
}

/// Reasoning that a provider may want back within a tool loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ReasoningBlock {
    /// A thinking block with the provider's signature over it.
    Signed {
        /// The reasoning text.
        text: String,
        /// The signature.
        signature: String,
    },
    /// A thinking block that the provider encrypted.
    Redacted {
        /// The encrypted block.
        data: String,
    },
    /// A reasoning item of the Responses format, encrypted by the provider.
    Encrypted {
        /// The item's id.
        id: String,
        /// The readable summary, possibly empty.
        text: String,
        /// The encrypted reasoning.
        data: String,
    },
    /// Plain `reasoning_content` of the OpenAI format.
    Plain {
        /// The reasoning text.
        text: String,
    },
}

/// What happens while a model answers, in order. [`StreamEvent::Finish`] is the last one; a stream
/// that ends without it was cancelled or failed.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// More visible text, never empty.
    Text(String),
    /// More reasoning text, never empty.
    Reasoning(String),
    /// A finished piece of reasoning to keep for the next round of the same tool loop. Its text
    /// has already been streamed as [`StreamEvent::Reasoning`].
    ReasoningBlock(ReasoningBlock),
    /// The model began to write a tool call.
    ToolCallStarted {
        /// The call's id, the same as in the complete call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A complete tool call. Calls come in the order in which the model made them.
    ToolCall(ToolCall),
    /// Tokens counted so far; a later one replaces the earlier.
    Usage(Usage),
    /// The answer is complete.
    Finish(FinishReason),
}

/// Tokens of one call, as the provider counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// The part of `output_tokens` spent on reasoning, when told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The part of `input_tokens` read from the provider's cache, when told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Anything else.
    Other,
}

/// Bounds of one call.
#[derive(Debug, Clone, Copy)]
pub struct WireLimits {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest wait for the next byte, the answer's first included (RES-34).
    pub idle: Duration,
    /// Longest wait for late usage after the model said that it is done.
    pub after_finish: Duration,
    /// Longest whole call.
    pub total: Duration,
    /// Most bytes read from the provider in one call. A model that never stops ends here.
    pub stream_bytes: usize,
    /// Most bytes of text, reasoning and arguments together in one answer.
    pub answer_bytes: usize,
    /// Largest single event of a stream.
    pub event_bytes: usize,
    /// Most tool calls in one answer.
    pub tool_calls: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(180),
            after_finish: Duration::from_secs(10),
            total: Duration::from_secs(3_600),
            stream_bytes: 64 << 20,
            answer_bytes: 4 << 20,
            event_bytes: 2 << 20,
            tool_calls: 128,
        }
    }
}

/// Tool arguments as the object that must stand in a history. Arguments that are no JSON object
/// travel inside one, so that a strict provider does not refuse the whole conversation.
fn arguments_object(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return serde_json::json!({});
    }
    match serde_json::from_str::<Value>(arguments) {
        Ok(value @ Value::Object(_)) => value,
        _ => serde_json::json!({ "invalid_arguments": arguments }),
    }
}
