//! Builds the body of `POST <base>/v1/messages`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::wire::{
    ChatMessage, ChatRequest, Effort, ModelFacts, ReasoningBlock, ThinkingStyle, ToolCall, ToolChoice, UserPart,
    arguments_object,
};

/// `max_tokens` is mandatory in this format; this stands in where the model's ceiling is unknown.
const DEFAULT_MAX_TOKENS: u32 = 8_192;
/// Smallest thinking budget, and the smallest output cap of a thinking request (RES-36).
const MIN_BUDGET: u32 = 2_048;
/// Tokens kept for the visible answer beside the budget.
const ANSWER_RESERVE: u32 = 1_024;

pub(in crate::wire) fn body(facts: &ModelFacts, request: &ChatRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(facts.id));
    body.insert("messages".to_owned(), Value::Array(messages(request)));
    body.insert("stream".to_owned(), json!(true));
    if !request.system.is_empty() {
        body.insert("system".to_owned(), json!(request.system));
    }
    tools(request, &mut body);
    thinking(facts, request, &mut body);
    Value::Object(body)
}

fn tools(request: &ChatRequest, body: &mut Map<String, Value>) {
    let history_has_calls = request
        .messages
        .iter()
        .any(|message| matches!(message, ChatMessage::Assistant { tool_calls, .. } if !tool_calls.is_empty()));
    // The format refuses a history with tool calls when no tools are declared, so a forced answer
    // keeps the declarations and forbids their use.
    let forbidden = request.tool_choice == ToolChoice::None;
    if request.tools.is_empty() || (forbidden && !history_has_calls) {
        return;
    }
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": *tool.parameters }))
        .collect();
    body.insert("tools".to_owned(), Value::Array(tools));
    body.insert("tool_choice".to_owned(), json!({ "type": if forbidden { "none" } else { "auto" } }));
}

/// Sets the output cap and the thinking that fits below it.
fn thinking(facts: &ModelFacts, request: &ChatRequest, body: &mut Map<String, Value>) {
    let ceiling = facts.max_output_tokens;
    let cap = request.max_output_tokens.or(ceiling).unwrap_or(DEFAULT_MAX_TOKENS);
    let off = facts.tools_require_no_reasoning && request.sends_tools();
    let Some(effort) = request.effort.filter(|_| facts.reasoning && !off) else {
        body.insert("max_tokens".to_owned(), json!(cap));
        return;
    };
    match facts.thinking {
        ThinkingStyle::Adaptive => {
            body.insert("max_tokens".to_owned(), json!(cap.max(MIN_BUDGET)));
            body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
            let word = match effort {
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High => "high",
                Effort::Extra | Effort::Max => "max",
            };
            body.insert("output_config".to_owned(), json!({ "effort": word }));
        }
        ThinkingStyle::Budget => {
            let wanted = match effort {
                Effort::Low => MIN_BUDGET,
                Effort::Medium => 8_192,
                Effort::High => 16_384,
                Effort::Extra => 32_768,
                Effort::Max => 60_000,
            };
            // Without a cap of the caller and a known ceiling, room is made for the budget.
            let roomy = if request.max_output_tokens.is_none() && ceiling.is_none() {
                wanted + DEFAULT_MAX_TOKENS
            } else {
                cap
            };
            let cap = roomy.max(MIN_BUDGET + ANSWER_RESERVE);
            let budget = wanted.min(cap - ANSWER_RESERVE);
            body.insert("max_tokens".to_owned(), json!(cap));
            body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget }));
        }
    }
}

/// Roles alternate in this format: neighbouring messages of one role become one message.
fn messages(request: &ChatRequest) -> Vec<Value> {
    let thinking_on = request.effort.is_some();
    let last_user = request.messages.iter().rposition(|message| matches!(message, ChatMessage::User(_)));
    let mut list: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        let in_tool_loop = last_user.is_none_or(|user| at > user);
        let (role, blocks) = match message {
            ChatMessage::User(parts) => ("user", parts.iter().filter_map(user_block).collect()),
            ChatMessage::Assistant { text, reasoning, tool_calls } => {
                let reasoning: &[ReasoningBlock] = if thinking_on && in_tool_loop { reasoning } else { &[] };
                ("assistant", assistant_blocks(text, reasoning, tool_calls))
            }
            ChatMessage::ToolResult { id, content, is_error, .. } => {
                ("user", vec![tool_result(id, content, *is_error)])
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match list.last_mut() {
            Some((last, held)) if *last == role => held.extend(blocks),
            _ => list.push((role, blocks)),
        }
    }
    list.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Empty text blocks are refused by the format.
fn user_block(part: &UserPart) -> Option<Value> {
    match part {
        UserPart::Text(text) if text.trim().is_empty() => None,
        UserPart::Text(text) => Some(json!({ "type": "text", "text": text })),
        UserPart::Image { media_type, bytes } => Some(
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": STANDARD.encode(bytes) } }),
        ),
    }
}

fn assistant_blocks(text: &str, reasoning: &[ReasoningBlock], tool_calls: &[ToolCall]) -> Vec<Value> {
    let mut blocks = Vec::new();
    for block in reasoning {
        match block {
            ReasoningBlock::Signed { text, signature } => {
                blocks.push(json!({ "type": "thinking", "thinking": text, "signature": signature }))
            }
            ReasoningBlock::Redacted { data } => blocks.push(json!({ "type": "redacted_thinking", "data": data })),
            ReasoningBlock::Plain { .. } | ReasoningBlock::Encrypted { .. } => {}
        }
    }
    if !text.trim().is_empty() {
        // Trailing whitespace of a last assistant message is refused by the format.
        blocks.push(json!({ "type": "text", "text": text.trim_end() }));
    }
    for call in tool_calls {
        blocks.push(
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(&call.arguments) }),
        );
    }
    blocks
}

fn tool_result(id: &str, content: &str, is_error: bool) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": id });
    if let Some(object) = block.as_object_mut() {
        if !content.trim().is_empty() {
            object.insert("content".to_owned(), json!(content));
        }
        if is_error {
            object.insert("is_error".to_owned(), json!(true));
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::wire::ToolSpec;

    fn facts(ceiling: Option<u32>) -> ModelFacts {
        ModelFacts { id: "claude".to_owned(), max_output_tokens: ceiling, reasoning: true, ..ModelFacts::default() }
    }

    fn loop_request(effort: Option<Effort>) -> ChatRequest {
        ChatRequest {
            system: "Be kind.".to_owned(),
            messages: vec![
                ChatMessage::user("Find it"),
                ChatMessage::Assistant {
                    text: "Looking. ".to_owned(),
                    reasoning: vec![
                        ReasoningBlock::Signed { text: "hm".to_owned(), signature: "sig".to_owned() },
                        ReasoningBlock::Redacted { data: "xx".to_owned() },
                    ],
                    tool_calls: vec![ToolCall::new("a", "search", "{\"q\":1}"), ToolCall::new("b", "search", "oops")],
                },
                ChatMessage::ToolResult {
                    id: "a".to_owned(),
                    name: "search".to_owned(),
                    content: "found".to_owned(),
                    is_error: false,
                },
                ChatMessage::ToolResult {
                    id: "b".to_owned(),
                    name: "search".to_owned(),
                    content: "bad".to_owned(),
                    is_error: true,
                },
            ],
            tools: vec![ToolSpec {
                name: "search".to_owned(),
                description: String::new(),
                parameters: Arc::new(json!({ "type": "object" })),
            }],
            effort,
            ..ChatRequest::default()
        }
    }

    #[test]
    fn results_of_one_round_are_one_user_message_and_signatures_travel_back() {
        let body = body(&facts(Some(64_000)), &loop_request(Some(Effort::High)));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 3);
        let assistant = messages[1]["content"].as_array().unwrap();
        let kinds: Vec<&str> = assistant.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]);
        assert_eq!(assistant[0]["signature"], "sig");
        assert_eq!(assistant[2]["text"], "Looking.");
        assert_eq!(assistant[4]["input"], json!({ "invalid_arguments": "oops" }));
        let results = messages[2]["content"].as_array().unwrap();
        assert_eq!(results[0]["tool_use_id"], "a");
        assert_eq!(results[1]["is_error"], true);
        assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 16_384 }));
        assert_eq!(body["max_tokens"], 64_000);
        assert_eq!(body["system"], "Be kind.");
    }

    #[test]
    fn without_thinking_no_thinking_block_goes_back() {
        let body = body(&facts(Some(8_000)), &loop_request(None));
        assert_eq!(body["messages"][1]["content"][0]["type"], "text");
        assert!(body.get("thinking").is_none());
    }

    #[test]
    fn the_budget_stays_between_its_floor_and_the_cap() {
        let with = |cap: Option<u32>, ceiling: Option<u32>, effort| {
            let request = ChatRequest { max_output_tokens: cap, effort: Some(effort), ..ChatRequest::default() };
            let body = body(&facts(ceiling), &request);
            (body["max_tokens"].as_u64().unwrap(), body["thinking"]["budget_tokens"].as_u64().unwrap())
        };
        assert_eq!(with(Some(500), Some(64_000), Effort::Low), (3_072, 2_048));
        assert_eq!(with(Some(10_000), Some(64_000), Effort::Max), (10_000, 8_976));
        assert_eq!(with(None, Some(64_000), Effort::Extra), (64_000, 32_768));
        assert_eq!(with(None, None, Effort::Medium), (16_384, 8_192));
    }

    #[test]
    fn adaptive_models_get_an_effort_word() {
        let facts = ModelFacts { thinking: ThinkingStyle::Adaptive, ..facts(Some(64_000)) };
        let body = body(&facts, &loop_request(Some(Effort::Medium)));
        assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
        assert_eq!(body["output_config"]["effort"], "medium");
    }

    #[test]
    fn a_forced_answer_keeps_declarations_only_where_the_history_needs_them() {
        let request = ChatRequest { tool_choice: ToolChoice::None, ..loop_request(None) };
        assert_eq!(body(&facts(None), &request)["tool_choice"], json!({ "type": "none" }));
        let fresh = ChatRequest { messages: vec![ChatMessage::user("hi")], ..request };
        assert!(body(&facts(None), &fresh).get("tools").is_none());
    }
}
