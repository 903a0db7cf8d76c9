//! The wires of the gateway.

use tale_models::wire::ModelFacts;
use tale_models::{ApiFormat, ToolApi};

/// A wire: what a client speaks, and what a model is called by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

impl Wire {
    /// The wire that a model is called by, from its provider's format and its own facts.
    #[must_use]
    pub fn of_model(format: ApiFormat, facts: &ModelFacts) -> Self {
        match (format, facts.tool_api) {
            (ApiFormat::Anthropic, _) => Self::Messages,
            (ApiFormat::OpenAi, ToolApi::ChatCompletions) => Self::Chat,
            (ApiFormat::OpenAi, ToolApi::Responses) => Self::Responses,
        }
    }

    /// Whether it is one of OpenAI's two, which share the form of errors and the names of models' lists.
    #[must_use]
    pub fn is_openai(self) -> bool {
        self != Self::Messages
    }

    /// The field by which a request of this wire bounds its answer.
    #[must_use]
    pub fn cap_field(self) -> &'static str {
        match self {
            Self::Chat => "max_completion_tokens",
            Self::Responses => "max_output_tokens",
            Self::Messages => "max_tokens",
        }
    }
}
