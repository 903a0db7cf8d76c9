//! Writes steps as one document, for requests that do not stream.

use serde_json::{Value, json};

use super::reply::Step;
use super::wire::Format;

/// The document that these steps are; `None` when they are no answer of one piece (an error, a break,
/// bytes as they are) or the format has none here.
pub(super) fn document(format: Format, steps: &[Step], model: &Value) -> Option<Value> {
    let (mut text, mut reasoning, mut signature) = (String::new(), String::new(), String::new());
    let (mut calls, mut finish, mut usage) = (Vec::new(), "stop", (0, 0));
    for step in steps {
        match step {
            Step::Text(more) => text.push_str(more),
            Step::Reasoning(more) => reasoning.push_str(more),
            Step::Signature(more) => signature.push_str(more),
            Step::ToolCall { id, name, arguments, .. } => calls.push((id, name, arguments)),
            Step::Usage { input, output } => usage = (*input, *output),
            Step::Finish(reason) => finish = reason,
            Step::Wait(_) => {}
            Step::Error { .. } | Step::Raw(_) | Step::Hang | Step::Drop | Step::Forever(_) => return None,
        }
    }
    match format {
        Format::OpenAi => {
            let mut message = json!({ "role": "assistant", "content": text });
            if !reasoning.is_empty() {
                message["reasoning_content"] = json!(reasoning);
            }
            if !calls.is_empty() {
                let call = |(id, name, arguments): &(&String, &String, &String)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
            let usage =
                json!({ "prompt_tokens": usage.0, "completion_tokens": usage.1, "total_tokens": usage.0 + usage.1 });
            Some(
                json!({ "id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage }),
            )
        }
        Format::Anthropic => {
            let mut blocks = Vec::new();
            if !reasoning.is_empty() {
                blocks.push(json!({ "type": "thinking", "thinking": reasoning, "signature": signature }));
            }
            if !text.is_empty() {
                blocks.push(json!({ "type": "text", "text": text }));
            }
            for (id, name, arguments) in calls {
                let input: Value = serde_json::from_str(arguments).unwrap_or_default();
                blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
            }
            Some(json!({
                "id": "msg_fake", "type": "message", "role": "assistant", "model": model, "content": blocks,
                "stop_reason": super::wire::stop_reason(finish), "stop_sequence": null,
                "usage": { "input_tokens": usage.0, "output_tokens": usage.1 },
            }))
        }
        Format::Responses => Some(super::responses::document(steps, model)),
    }
}
