//! From stored messages to what the model reads: history in order, within the window (CHT-81 … CHT-88).

use std::collections::HashSet;

use tale_models::wire::{ChatMessage, ChatRequest, ToolCall, ToolSpec, UserPart};

use crate::parts::Part;
use crate::store::messages::MessageRow;

/// Characters per token when nobody counted: low enough to stay inside the window.
const CHARS_PER_TOKEN: usize = 3;

/// Tokens that an image counts for.
const IMAGE_TOKENS: usize = 1_600;

/// Rebuilds what one assistant message said and called, in rounds. Calls without a result (the
/// turn was stopped in between) get one that says so, because every wire wants pairs.
/// `keep_reasoning`: hand the provider its own reasoning back, within the running tool loop.
pub(crate) fn assistant_messages(parts: &[Part], keep_reasoning: bool) -> Vec<ChatMessage> {
    let answered: HashSet<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    let mut out = Vec::new();
    let mut round = Round::default();
    for part in parts {
        match part {
            Part::ToolResult { id, name, output, is_error } => {
                round.results.push(ChatMessage::ToolResult {
                    id: id.clone(),
                    name: name.clone(),
                    content: result_text(output),
                    is_error: *is_error,
                });
            }
            Part::Text { text } => {
                round.close_if_answered(&mut out);
                round.text.push_str(text);
            }
            Part::Reasoning { blocks, .. } => {
                round.close_if_answered(&mut out);
                if keep_reasoning {
                    round.reasoning.extend(blocks.iter().cloned());
                }
            }
            Part::ToolCall { id, name, input, vendor } => {
                round.close_if_answered(&mut out);
                let arguments = match input {
                    serde_json::Value::String(raw) => raw.clone(),
                    other => other.to_string(),
                };
                let mut call = ToolCall::new(id.clone(), name.clone(), arguments);
                call.vendor.clone_from(vendor);
                if !answered.contains(id.as_str()) {
                    round.results.push(ChatMessage::ToolResult {
                        id: id.clone(),
                        name: name.clone(),
                        content: "The call was not carried out.".to_owned(),
                        is_error: true,
                    });
                    round.dangling = true;
                }
                round.calls.push(call);
            }
            Part::Attachment { .. } | Part::Citation { .. } => {}
        }
    }
    round.close(&mut out);
    out
}

/// What the model reads of a tool's output.
pub(crate) fn result_text(output: &serde_json::Value) -> String {
    match output {
        serde_json::Value::String(text) => text.clone(),
        other => super::prompt::untrusted("tool result", &other.to_string()),
    }
}

#[derive(Default)]
struct Round {
    text: String,
    reasoning: Vec<tale_models::wire::ReasoningBlock>,
    calls: Vec<ToolCall>,
    results: Vec<ChatMessage>,
    /// Whether some results were made up while calls of the same round still follow.
    dangling: bool,
}

impl Round {
    /// A part after results starts the next round, unless the results were made up.
    fn close_if_answered(&mut self, out: &mut Vec<ChatMessage>) {
        if !self.results.is_empty() && !self.dangling {
            self.close(out);
        }
    }

    fn close(&mut self, out: &mut Vec<ChatMessage>) {
        let round = std::mem::take(self);
        if !round.text.is_empty() || !round.calls.is_empty() {
            out.push(ChatMessage::Assistant { text: round.text, reasoning: round.reasoning, tool_calls: round.calls });
        }
        out.extend(round.results);
    }
}

/// One stored message as the model reads it: the unit that is kept or dropped whole.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub messages: Vec<ChatMessage>,
    pub tokens: usize,
}

impl Block {
    pub(crate) fn new(messages: Vec<ChatMessage>) -> Self {
        let tokens = messages.iter().map(tokens_of).sum();
        Self { messages, tokens }
    }
}

fn tokens_of(message: &ChatMessage) -> usize {
    let chars = estimate_tokens;
    match message {
        ChatMessage::User(parts) => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(text) => chars(text),
                UserPart::Image { .. } => IMAGE_TOKENS,
            })
            .sum(),
        ChatMessage::Assistant { text, tool_calls, .. } => {
            chars(text) + tool_calls.iter().map(|call| chars(&call.arguments) + chars(&call.name)).sum::<usize>()
        }
        ChatMessage::ToolResult { content, .. } => chars(content),
    }
}

/// Estimated tokens of a text.
pub(crate) fn estimate_tokens(text: &str) -> usize {
    tokens_in(text.len())
}

/// Estimated tokens of so many bytes of text.
pub(crate) fn tokens_in(bytes: usize) -> usize {
    bytes / CHARS_PER_TOKEN + 4
}

/// Estimated tokens of all that a request sends.
pub(crate) fn request_tokens(request: &ChatRequest) -> usize {
    let said = request.messages.iter().map(tokens_of).sum::<usize>();
    estimate_tokens(&request.system) + said + tool_tokens(&request.tools)
}

/// Estimated tokens of tools as a model reads them.
pub(crate) fn tool_tokens(tools: &[ToolSpec]) -> usize {
    let of = |tool: &ToolSpec| {
        estimate_tokens(&tool.description) + estimate_tokens(&tool.name) + estimate_tokens(&tool.parameters.to_string())
    };
    tools.iter().map(of).sum()
}

/// Keeps the newest blocks that fit into `budget` tokens; the last one always stays. Returns the
/// messages and how many blocks were left out (CHT-85).
pub(crate) fn fit(blocks: Vec<Block>, budget: usize) -> (Vec<ChatMessage>, usize) {
    let mut first = first_kept(&blocks, budget);
    // An answer without its question would open the conversation: leave it out as well.
    while first + 1 < blocks.len() && !matches!(blocks[first].messages.first(), Some(ChatMessage::User(_))) {
        first += 1;
    }
    let messages = blocks.into_iter().skip(first).flat_map(|block| block.messages).collect();
    (messages, first)
}

/// Estimated tokens of what [`fit`] keeps, at most.
pub(crate) fn fitting(blocks: &[Block], budget: usize) -> usize {
    blocks[first_kept(blocks, budget)..].iter().map(|block| block.tokens).sum()
}

fn first_kept(blocks: &[Block], budget: usize) -> usize {
    let mut used = 0usize;
    let mut first = blocks.len();
    for (at, block) in blocks.iter().enumerate().rev() {
        used = used.saturating_add(block.tokens);
        if used > budget && at + 1 != blocks.len() {
            break;
        }
        first = at;
    }
    first
}

/// Whether a stored message has anything for the model.
pub(crate) fn is_reply(row: &MessageRow) -> bool {
    row.role == "assistant"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Part {
        Part::ToolCall { id: id.into(), name: "rag_search".into(), input: json!({ "action": "search" }), vendor: None }
    }

    fn result(id: &str) -> Part {
        Part::ToolResult { id: id.into(), name: "rag_search".into(), output: json!({ "rows": [] }), is_error: false }
    }

    fn kinds(messages: &[ChatMessage]) -> Vec<String> {
        messages
            .iter()
            .map(|message| match message {
                ChatMessage::User(_) => "user".into(),
                ChatMessage::Assistant { tool_calls, text, .. } => format!("assistant:{}:{text}", tool_calls.len()),
                ChatMessage::ToolResult { id, is_error, .. } => format!("result:{id}:{is_error}"),
            })
            .collect()
    }

    #[test]
    fn rounds_come_back_in_their_order() {
        let parts = [Part::text("let me look"), call("a"), call("b"), result("a"), result("b"), Part::text("found")];
        assert_eq!(
            kinds(&assistant_messages(&parts, false)),
            ["assistant:2:let me look", "result:a:false", "result:b:false", "assistant:0:found"]
        );
    }

    #[test]
    fn a_call_that_was_stopped_gets_a_result() {
        let parts = [call("a"), call("b")];
        assert_eq!(kinds(&assistant_messages(&parts, false)), ["assistant:2:", "result:a:true", "result:b:true"]);
    }

    #[test]
    fn the_oldest_messages_go_first_and_the_question_stays() {
        let block = |text: &str| Block::new(vec![ChatMessage::user(text)]);
        let (messages, dropped) = fit(vec![block(&"x".repeat(300)), block("old"), block("question")], 40);
        assert_eq!((messages.len(), dropped), (2, 1));
        let (messages, dropped) = fit(vec![block("old"), block(&"x".repeat(3000))], 10);
        assert_eq!((messages.len(), dropped), (1, 1));
        assert_eq!(fit(Vec::new(), 10).1, 0);
    }
}
