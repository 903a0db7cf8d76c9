//! The content of a message: an ordered list of parts (CHT-2).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tale_core::ids::{ChunkId, DocumentId, FileId};
use tale_models::wire;

/// One part. The vocabulary is additive: clients show unknown types as opaque.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Prose in GitHub-flavoured Markdown. Marks such as `[1]` point to citation parts.
    Text {
        /// The Markdown.
        text: String,
    },
    /// The model's thinking. Never the answer.
    Reasoning {
        /// The text.
        text: String,
        /// What the provider wants back within the tool loop; never sent to clients.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<wire::ReasoningBlock>,
    },
    /// A file on a user message.
    Attachment {
        /// File name.
        name: String,
        /// MIME type.
        media_type: String,
        /// The upload.
        file_id: FileId,
        /// Size in bytes.
        size_bytes: u64,
    },
    /// A call the model made.
    ToolCall {
        /// The provider's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Parsed arguments, or the raw text when they were no JSON.
        input: Value,
        /// Opaque vendor data that travels back with the call; never sent to clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vendor: Option<Value>,
    },
    /// The result of a call.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// What it answered.
        output: Value,
        /// Whether it failed.
        is_error: bool,
    },
    /// What a mark in the text points to.
    Citation {
        /// The number of the mark.
        number: u32,
        /// The cited document; none for a chat upload.
        #[serde(skip_serializing_if = "Option::is_none")]
        document_id: Option<DocumentId>,
        /// The cited file.
        file_id: FileId,
        /// Its title.
        title: String,
        /// The cited passage, whole.
        passage: String,
        /// The passage's id.
        chunk_id: ChunkId,
        /// Page the passage starts on.
        #[serde(skip_serializing_if = "Option::is_none")]
        page: Option<u32>,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The part as clients see it: without what only the provider may read.
    #[must_use]
    pub fn public(mut self) -> Self {
        match &mut self {
            Self::Reasoning { blocks, .. } => blocks.clear(),
            Self::ToolCall { vendor, .. } => *vendor = None,
            _ => {}
        }
        self
    }
}

/// The readable text of a message: what search finds and a title is made from.
#[must_use]
pub fn readable(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        let piece = match part {
            Part::Text { text } => text.as_str(),
            Part::Attachment { name, .. } => name.as_str(),
            _ => continue,
        };
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(piece);
    }
    out
}

/// Tokens of a whole turn (CHT-3).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// Tokens of all requests, cached ones included.
    pub input_tokens: u64,
    /// Tokens of all answers, reasoning included.
    pub output_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// The part of the output spent on reasoning, when told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The part of the input read from the provider's cache, when told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Whether the figures are our estimate because the provider told none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl TurnUsage {
    /// Adds one call.
    pub fn add(&mut self, call: &wire::Usage) {
        let sum = |held: Option<u64>, more: Option<u64>| match (held, more) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.input_tokens = self.input_tokens.saturating_add(call.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(call.output_tokens);
        self.total_tokens = self.input_tokens.saturating_add(self.output_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, call.reasoning_tokens);
        self.cached_input_tokens = sum(self.cached_input_tokens, call.cached_input_tokens);
    }
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Status {
    /// The reply is being made.
    Pending,
    /// Done.
    Complete,
    /// Stopped by the person.
    Cancelled,
    /// Ended with an error; partial text stays.
    Failed,
}

impl Status {
    /// The stored word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_provider_may_read_stays_inside() {
        let part =
            Part::Reasoning { text: "hm".into(), blocks: vec![wire::ReasoningBlock::Plain { text: "hm".into() }] };
        assert_eq!(
            serde_json::to_value(part.public()).unwrap(),
            serde_json::json!({ "type": "reasoning", "text": "hm" })
        );
        let call = Part::ToolCall { id: "1".into(), name: "rag_search".into(), input: Value::Null, vendor: None };
        assert_eq!(serde_json::to_value(&call).unwrap()["type"], "tool-call");
    }

    #[test]
    fn usage_of_rounds_adds_up() {
        let mut usage = TurnUsage::default();
        usage.add(&wire::Usage {
            input_tokens: 10,
            output_tokens: 2,
            reasoning_tokens: None,
            cached_input_tokens: Some(4),
        });
        usage.add(&wire::Usage {
            input_tokens: 20,
            output_tokens: 3,
            reasoning_tokens: Some(1),
            cached_input_tokens: None,
        });
        assert_eq!((usage.total_tokens, usage.reasoning_tokens, usage.cached_input_tokens), (35, Some(1), Some(4)));
    }
}
