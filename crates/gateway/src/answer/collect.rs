//! Writes a whole answer of the interface that was called.

use serde_json::{Value, json};

use super::write::{Told, anthropic_usage, custom_input, openai_usage};
use super::write_anthropic::{message_id, stop_words, vendor_block};
use super::write_openai::finish_word;
use super::{Finish, Piece, Tokens, write_responses};
use crate::request::PLAIN_REASONING;
use crate::wire::Wire;

/// A part of an answer.
enum Part {
    Text(String),
    Thinking { text: String, signature: Option<String> },
    Redacted(String),
    Tool { slot: usize, id: String, name: String, vendor: Option<Value>, arguments: String },
}

/// The whole answer that these pieces are.
pub(crate) fn document(told: &Told, pieces: Vec<Piece>, tokens: Option<Tokens>) -> Value {
    if told.wire == Wire::Responses {
        return write_responses::Writer::document(told, pieces, tokens);
    }
    let (mut id, mut parts, mut finish) = (String::new(), Vec::new(), None);
    for piece in pieces {
        match piece {
            Piece::Begin(given) => id = given,
            Piece::Text(text) => match parts.last_mut() {
                Some(Part::Text(held)) => held.push_str(&text),
                _ => parts.push(Part::Text(text)),
            },
            Piece::Reasoning(text) => match parts.last_mut() {
                Some(Part::Thinking { text: held, signature: None }) => held.push_str(&text),
                _ => parts.push(Part::Thinking { text, signature: None }),
            },
            Piece::Signature(signature) => match parts.last_mut() {
                Some(Part::Thinking { signature: held, .. }) => *held = Some(signature),
                _ => parts.push(Part::Thinking { text: String::new(), signature: Some(signature) }),
            },
            Piece::Redacted(data) => parts.push(Part::Redacted(data)),
            Piece::Tool { slot, id, name, vendor } => {
                parts.push(Part::Tool { slot, id, name, vendor, arguments: String::new() });
            }
            Piece::Arguments { slot, text } => {
                let call = parts.iter_mut().find_map(|part| match part {
                    Part::Tool { slot: at, arguments, .. } if *at == slot => Some(arguments),
                    _ => None,
                });
                if let Some(arguments) = call {
                    arguments.push_str(&text);
                }
            }
            Piece::Finish(reason) => finish = Some(reason),
            Piece::Further(_) => {}
        }
    }
    match told.wire {
        Wire::Chat | Wire::Responses => openai(told, &id, &parts, finish.as_ref(), tokens),
        Wire::Messages => anthropic(told, &id, parts, finish.as_ref(), tokens),
    }
}

fn openai(told: &Told, id: &str, parts: &[Part], finish: Option<&Finish>, tokens: Option<Tokens>) -> Value {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let (mut blocks, mut calls) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Thinking { text, signature } => {
                reasoning.push_str(text);
                if let Some(signature) = signature {
                    blocks.push(json!({ "type": "thinking", "thinking": text, "signature": signature }));
                }
            }
            Part::Redacted(data) => blocks.push(json!({ "type": "redacted_thinking", "data": data })),
            Part::Tool { id, name, arguments, .. } if told.is_custom(name) => {
                calls.push(
                    json!({ "id": id, "type": "custom", "custom": { "name": name, "input": custom_input(arguments) } }),
                );
            }
            Part::Tool { id, name, vendor, arguments, .. } => {
                let mut call =
                    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
                if let Some(vendor) = vendor {
                    call["extra_content"] = vendor.clone();
                }
                calls.push(call);
            }
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    if !blocks.is_empty() {
        message["thinking_blocks"] = Value::Array(blocks);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "id": id, "object": "chat.completion", "created": told.created, "model": told.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_word(finish) }],
        "usage": openai_usage(tokens.unwrap_or_default()),
    })
}

fn anthropic(told: &Told, id: &str, parts: Vec<Part>, finish: Option<&Finish>, tokens: Option<Tokens>) -> Value {
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        let block = match part {
            Part::Text(text) => json!({ "type": "text", "text": text }),
            Part::Thinking { text, signature } => {
                let signature = signature.unwrap_or_else(|| PLAIN_REASONING.to_owned());
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
            Part::Redacted(data) => json!({ "type": "redacted_thinking", "data": data }),
            Part::Tool { id, name, vendor, arguments, .. } => {
                blocks.extend(vendor.as_ref().map(vendor_block));
                let input = match serde_json::from_str(&arguments) {
                    Ok(input @ Value::Object(_)) => input,
                    _ if arguments.trim().is_empty() => json!({}),
                    _ => json!({ "invalid_arguments": arguments }),
                };
                json!({ "type": "tool_use", "id": id, "name": name, "input": input })
            }
        };
        blocks.push(block);
    }
    let (reason, sequence) = stop_words(finish);
    json!({
        "id": message_id(id), "type": "message", "role": "assistant", "model": told.model, "content": blocks,
        "stop_reason": reason, "stop_sequence": sequence, "usage": anthropic_usage(tokens.unwrap_or_default()),
    })
}
