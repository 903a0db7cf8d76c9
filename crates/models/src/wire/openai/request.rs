//! Builds the body of `POST <base>/chat/completions`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::wire::{
    ChatMessage, ChatRequest, Effort, ModelFacts, ReasoningBlock, ToolCall, UserPart, WireDialect, arguments_object,
};

/// The request body. `with_usage` asks for the usage chunk at the end of the stream, which a few
/// servers refuse.
pub(in crate::wire) fn body(
    facts: &ModelFacts,
    dialect: WireDialect,
    request: &ChatRequest,
    with_usage: bool,
) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(facts.id));
    body.insert("messages".to_owned(), Value::Array(messages(request)));
    body.insert("stream".to_owned(), json!(true));
    if with_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    let with_tools = request.sends_tools();
    if with_tools {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": { "name": tool.name, "description": tool.description, "parameters": *tool.parameters },
                })
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        body.insert("tool_choice".to_owned(), json!("auto"));
    }
    if let Some(tokens) = request.max_output_tokens {
        let name = match dialect {
            WireDialect::Classic => "max_tokens",
            WireDialect::OpenAiModern => "max_completion_tokens",
        };
        body.insert(name.to_owned(), json!(tokens));
    }
    if with_tools && facts.tools_require_no_reasoning {
        // Left out, the model's own default would reason and refuse the tools.
        body.insert("reasoning_effort".to_owned(), json!("none"));
    } else if let Some(effort) = request.effort.filter(|_| facts.reasoning) {
        body.insert("reasoning_effort".to_owned(), json!(effort_word(effort, facts.xhigh)));
    }
    Value::Object(body)
}

/// Three steps are understood by every model with the knob; newer ones have a fourth above them.
pub(in crate::wire) fn effort_word(effort: Effort, xhigh: bool) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::Extra | Effort::Max if xhigh => "xhigh",
        Effort::High | Effort::Extra | Effort::Max => "high",
    }
}

fn messages(request: &ChatRequest) -> Vec<Value> {
    let mut list = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        list.push(json!({ "role": "system", "content": request.system }));
    }
    let last_user = request.messages.iter().rposition(|message| matches!(message, ChatMessage::User(_)));
    for (at, message) in request.messages.iter().enumerate() {
        let in_tool_loop = last_user.is_none_or(|user| at > user);
        list.push(match message {
            ChatMessage::User(parts) => json!({ "role": "user", "content": user_content(parts) }),
            ChatMessage::Assistant { text, reasoning, tool_calls } => {
                assistant(text, reasoning, tool_calls, in_tool_loop)
            }
            ChatMessage::ToolResult { id, content, .. } => {
                json!({ "role": "tool", "tool_call_id": id, "content": content })
            }
        });
    }
    list
}

/// Text alone travels as a string, which every server understands; parts only where an image is.
fn user_content(parts: &[UserPart]) -> Value {
    if parts.iter().all(|part| matches!(part, UserPart::Text(_))) {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                UserPart::Text(text) => Some(text.as_str()),
                UserPart::Image { .. } => None,
            })
            .collect();
        return json!(texts.join("\n\n"));
    }
    parts
        .iter()
        .map(|part| match part {
            UserPart::Text(text) => json!({ "type": "text", "text": text }),
            UserPart::Image { media_type, bytes } => {
                json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,{}", STANDARD.encode(bytes)) } })
            }
        })
        .collect()
}

fn assistant(text: &str, reasoning: &[ReasoningBlock], tool_calls: &[ToolCall], in_tool_loop: bool) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert(
        "content".to_owned(),
        if text.is_empty() && !tool_calls.is_empty() { Value::Null } else { json!(text) },
    );
    if tool_calls.is_empty() {
        return Value::Object(message);
    }
    let calls: Vec<Value> = tool_calls.iter().map(tool_call).collect();
    message.insert("tool_calls".to_owned(), Value::Array(calls));
    if in_tool_loop {
        let plain: String = reasoning
            .iter()
            .filter_map(|block| match block {
                ReasoningBlock::Plain { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if !plain.is_empty() {
            message.insert("reasoning_content".to_owned(), json!(plain));
        }
    }
    Value::Object(message)
}

fn tool_call(call: &ToolCall) -> Value {
    let mut value = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments_object(&call.arguments).to_string() },
    });
    if let (Some(vendor), Some(object)) = (&call.vendor, value.as_object_mut()) {
        object.insert("extra_content".to_owned(), vendor.clone());
    }
    value
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::wire::{ToolChoice, ToolSpec};

    fn facts(reasoning: bool) -> ModelFacts {
        ModelFacts { id: "m-1".to_owned(), max_output_tokens: Some(4_096), reasoning, ..ModelFacts::default() }
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
                    text: String::new(),
                    reasoning: vec![ReasoningBlock::Plain { text: "look it up".to_owned() }],
                    tool_calls: vec![
                        ToolCall::new("c1", "rag_search", "{\"query\":\"x\"}"),
                        ToolCall::new("c2", "rag_search", "{broken"),
                    ],
                },
                ChatMessage::ToolResult {
                    id: "c1".to_owned(),
                    name: "rag_search".to_owned(),
                    content: "[]".to_owned(),
                    is_error: false,
                },
                ChatMessage::ToolResult {
                    id: "c2".to_owned(),
                    name: "rag_search".to_owned(),
                    content: "bad JSON".to_owned(),
                    is_error: true,
                },
            ],
            tools: vec![ToolSpec {
                name: "rag_search".to_owned(),
                description: "Searches.".to_owned(),
                parameters: Arc::new(json!({ "type": "object" })),
            }],
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(1_000),
            effort: Some(Effort::Extra),
        }
    }

    #[test]
    fn the_history_keeps_its_order_with_calls_and_results() {
        let body = body(&facts(false), WireDialect::Classic, &request(), true);
        let roles: Vec<&str> =
            body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
        let messages = &body["messages"];
        assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORw==");
        assert_eq!(messages[2]["content"], Value::Null);
        assert_eq!(messages[2]["reasoning_content"], "look it up");
        assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"query\":\"x\"}");
        // Broken arguments go back as a valid object: strict servers refuse the whole request otherwise.
        assert_eq!(messages[2]["tool_calls"][1]["function"]["arguments"], "{\"invalid_arguments\":\"{broken\"}");
        assert_eq!(messages[3]["tool_call_id"], "c1");
        assert_eq!(body["stream_options"]["include_usage"], true);
        assert_eq!(body["tools"][0]["function"]["name"], "rag_search");
    }

    #[test]
    fn the_dialect_names_the_output_cap_and_the_effort() {
        let classic = body(&facts(true), WireDialect::Classic, &request(), true);
        assert_eq!(classic["max_tokens"], 1_000);
        assert_eq!(classic["reasoning_effort"], "high");
        let newer = ModelFacts { xhigh: true, ..facts(true) };
        let modern = body(&newer, WireDialect::OpenAiModern, &request(), false);
        assert_eq!(modern["max_completion_tokens"], 1_000);
        assert!(modern.get("max_tokens").is_none());
        assert!(modern.get("stream_options").is_none());
        assert_eq!(modern["reasoning_effort"], "xhigh");
        assert!(modern.get("temperature").is_none());
        let plain = body(&facts(false), WireDialect::OpenAiModern, &request(), true);
        assert!(plain.get("reasoning_effort").is_none());
    }

    #[test]
    fn reasoning_is_off_with_tools_where_the_model_wants_it_so() {
        let facts = ModelFacts { tools_require_no_reasoning: true, ..facts(true) };
        assert_eq!(body(&facts, WireDialect::OpenAiModern, &request(), true)["reasoning_effort"], "none");
        let forced = ChatRequest { tool_choice: ToolChoice::None, ..request() };
        assert_eq!(body(&facts, WireDialect::OpenAiModern, &forced, true)["reasoning_effort"], "high");
    }

    #[test]
    fn a_forced_answer_has_no_tools_on_the_wire() {
        let request = ChatRequest { tool_choice: ToolChoice::None, ..request() };
        let body = body(&facts(false), WireDialect::Classic, &request, true);
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
    }

    #[test]
    fn vendor_data_of_a_call_travels_back() {
        let mut call = ToolCall::new("c", "f", "{}");
        call.vendor = Some(json!({ "google": { "thought_signature": "s" } }));
        assert_eq!(tool_call(&call)["extra_content"]["google"]["thought_signature"], "s");
    }
}
