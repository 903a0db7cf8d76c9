//! Builds the body of `POST <base>/responses`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::wire::openai::effort_word;
use crate::wire::{ChatMessage, ChatRequest, ModelFacts, ReasoningBlock, ToolCall, UserPart, arguments_object};

/// The request body. Nothing is kept at the provider (`store: false`), so the whole conversation
/// travels, and reasoning comes back encrypted for the next round of a tool loop. `summaries` asks
/// for readable reasoning, which some accounts may not have.
pub(in crate::wire) fn body(facts: &ModelFacts, request: &ChatRequest, summaries: bool) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(facts.id));
    body.insert("input".to_owned(), Value::Array(input(request)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    if !request.system.is_empty() {
        body.insert("instructions".to_owned(), json!(request.system));
    }
    let with_tools = request.sends_tools();
    if with_tools {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                // Unlike chat completions, this format is strict by default and then wants every
                // property of a schema to be required.
                json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": *tool.parameters,
                    "strict": false,
                })
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        body.insert("tool_choice".to_owned(), json!("auto"));
    }
    if let Some(tokens) = request.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), json!(tokens));
    }
    if facts.reasoning {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
        if let Some(reasoning) = reasoning(facts, request, with_tools, summaries) {
            body.insert("reasoning".to_owned(), reasoning);
        }
    }
    Value::Object(body)
}

fn reasoning(facts: &ModelFacts, request: &ChatRequest, with_tools: bool, summaries: bool) -> Option<Value> {
    if with_tools && facts.tools_require_no_reasoning {
        return Some(json!({ "effort": "none" }));
    }
    let mut reasoning = Map::new();
    if let Some(effort) = request.effort {
        reasoning.insert("effort".to_owned(), json!(effort_word(effort, facts.xhigh)));
    }
    if summaries {
        reasoning.insert("summary".to_owned(), json!("auto"));
    }
    (!reasoning.is_empty()).then_some(Value::Object(reasoning))
}

fn input(request: &ChatRequest) -> Vec<Value> {
    let last_user = request.messages.iter().rposition(|message| matches!(message, ChatMessage::User(_)));
    let mut items = Vec::with_capacity(request.messages.len());
    for (at, message) in request.messages.iter().enumerate() {
        match message {
            ChatMessage::User(parts) => {
                let content: Vec<Value> = parts.iter().map(user_part).collect();
                items.push(json!({ "role": "user", "content": content }));
            }
            ChatMessage::Assistant { text, reasoning, tool_calls } => {
                if last_user.is_none_or(|user| at > user) {
                    items.extend(reasoning.iter().filter_map(reasoning_item));
                }
                if !text.is_empty() {
                    items.push(json!({ "role": "assistant", "content": text }));
                }
                items.extend(tool_calls.iter().map(function_call));
            }
            ChatMessage::ToolResult { id, content, .. } => {
                items.push(json!({ "type": "function_call_output", "call_id": id, "output": content }));
            }
        }
    }
    items
}

fn user_part(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({ "type": "input_text", "text": text }),
        UserPart::Image { media_type, bytes } => {
            json!({ "type": "input_image", "image_url": format!("data:{media_type};base64,{}", STANDARD.encode(bytes)) })
        }
    }
}

/// Only what this format gave is handed back to it.
fn reasoning_item(block: &ReasoningBlock) -> Option<Value> {
    let ReasoningBlock::Encrypted { id, text, data } = block else { return None };
    let summary = if text.is_empty() { json!([]) } else { json!([{ "type": "summary_text", "text": text }]) };
    Some(json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": data }))
}

fn function_call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments_object(&call.arguments).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::wire::{Effort, ToolChoice, ToolSpec};

    fn facts() -> ModelFacts {
        ModelFacts { id: "m-1".to_owned(), reasoning: true, ..ModelFacts::default() }
    }

    fn request() -> ChatRequest {
        ChatRequest {
            system: "Be kind.".to_owned(),
            messages: vec![
                ChatMessage::User(vec![
                    UserPart::Text("What is this?".to_owned()),
                    UserPart::Image { media_type: "image/png".to_owned(), bytes: Bytes::from_static(b"\x89PNG") },
                ]),
                ChatMessage::Assistant {
                    text: "One moment.".to_owned(),
                    reasoning: vec![
                        ReasoningBlock::Plain { text: "of another vendor".to_owned() },
                        ReasoningBlock::Encrypted { id: "rs_1".into(), text: "hm".into(), data: "enc".into() },
                    ],
                    tool_calls: vec![ToolCall::new("c1", "rag_search", "{broken")],
                },
                ChatMessage::ToolResult {
                    id: "c1".to_owned(),
                    name: "rag_search".to_owned(),
                    content: "[]".to_owned(),
                    is_error: false,
                },
            ],
            tools: vec![ToolSpec {
                name: "rag_search".to_owned(),
                description: "Searches.".to_owned(),
                parameters: Arc::new(json!({ "type": "object" })),
            }],
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(1_000),
            effort: Some(Effort::High),
        }
    }

    #[test]
    fn a_conversation_becomes_items_in_its_order() {
        let body = body(&facts(), &request(), true);
        assert_eq!(body["instructions"], "Be kind.");
        assert_eq!(
            body["input"],
            json!([
                { "role": "user", "content": [
                    { "type": "input_text", "text": "What is this?" },
                    { "type": "input_image", "image_url": "data:image/png;base64,iVBORw==" },
                ] },
                { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "enc" },
                { "role": "assistant", "content": "One moment." },
                { "type": "function_call", "call_id": "c1", "name": "rag_search", "arguments": "{\"invalid_arguments\":\"{broken\"}" },
                { "type": "function_call_output", "call_id": "c1", "output": "[]" },
            ])
        );
        assert_eq!(body["store"], false);
        assert_eq!(body["max_output_tokens"], 1_000);
        assert_eq!(body["tools"][0]["name"], "rag_search");
        assert_eq!(body["reasoning"], json!({ "effort": "high", "summary": "auto" }));
    }

    #[test]
    fn reasoning_is_off_with_tools_where_the_model_wants_it_so() {
        let facts = ModelFacts { tools_require_no_reasoning: true, ..facts() };
        assert_eq!(body(&facts, &request(), true)["reasoning"], json!({ "effort": "none" }));
        let forced = ChatRequest { tool_choice: ToolChoice::None, ..request() };
        let without_tools = body(&facts, &forced, false);
        assert_eq!(without_tools["reasoning"], json!({ "effort": "high" }));
        assert!(without_tools.get("tools").is_none());
    }

    #[test]
    fn a_model_without_the_knob_is_asked_nothing_about_reasoning() {
        let plain = body(&ModelFacts { reasoning: false, ..facts() }, &request(), true);
        assert!(plain.get("reasoning").is_none() && plain.get("include").is_none());
    }
}
