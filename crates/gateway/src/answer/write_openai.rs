//! Writes chat completion chunks.

use serde_json::{Value, json};

use super::write::{Told, custom_input, is_whole, openai_usage};
use super::{Finish, Piece, Tokens};

#[derive(Debug)]
pub(crate) struct Writer {
    told: Told,
    id: String,
    begun: bool,
    thought: String,
    /// Calls of custom tools, whose text is written when it is whole.
    custom: Vec<Custom>,
    finish: Option<Finish>,
}

#[derive(Debug)]
struct Custom {
    slot: usize,
    id: String,
    name: String,
    arguments: String,
    written: bool,
}

/// The word for why an answer ended.
pub(super) fn finish_word(finish: Option<&Finish>) -> &'static str {
    match finish {
        Some(Finish::Length) => "length",
        Some(Finish::Tools) => "tool_calls",
        Some(Finish::Refusal) => "content_filter",
        Some(Finish::Stop | Finish::Sequence(_)) | None => "stop",
    }
}

impl Writer {
    pub(super) fn new(told: Told) -> Self {
        Self { told, id: String::new(), begun: false, thought: String::new(), custom: Vec::new(), finish: None }
    }

    pub(super) fn piece(&mut self, piece: Piece, out: &mut String) {
        match piece {
            Piece::Begin(id) => {
                self.id = id;
                self.begin(out);
            }
            Piece::Text(text) => self.delta(json!({ "content": text }), out),
            Piece::Reasoning(text) => {
                self.thought.push_str(&text);
                self.delta(json!({ "reasoning_content": text }), out);
            }
            Piece::Signature(signature) => {
                let thought = std::mem::take(&mut self.thought);
                let block = json!({ "type": "thinking", "thinking": thought, "signature": signature });
                self.delta(json!({ "thinking_blocks": [block] }), out);
            }
            Piece::Redacted(data) => {
                self.delta(json!({ "thinking_blocks": [{ "type": "redacted_thinking", "data": data }] }), out);
            }
            Piece::Tool { slot, id, name, .. } if self.told.is_custom(&name) => {
                self.custom.push(Custom { slot, id, name, arguments: String::new(), written: false });
            }
            Piece::Tool { slot, id, name, vendor } => {
                let mut call = json!({ "index": slot, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
                if let Some(vendor) = vendor {
                    call["extra_content"] = vendor;
                }
                self.delta(json!({ "tool_calls": [call] }), out);
            }
            Piece::Arguments { slot, text } => match self.custom.iter_mut().find(|call| call.slot == slot) {
                Some(call) => {
                    call.arguments.push_str(&text);
                    if !call.written && is_whole(&call.arguments) {
                        call.written = true;
                        let delta = call.delta();
                        self.delta(delta, out);
                    }
                }
                None => {
                    self.delta(json!({ "tool_calls": [{ "index": slot, "function": { "arguments": text } }] }), out)
                }
            },
            Piece::Finish(finish) => self.finish = Some(finish),
            Piece::Further(_) => {}
        }
    }

    pub(super) fn end(&mut self, tokens: Option<Tokens>, out: &mut String) {
        self.begin(out);
        for delta in self.custom.iter().filter(|call| !call.written).map(Custom::delta).collect::<Vec<_>>() {
            self.delta(delta, out);
        }
        let reason = finish_word(self.finish.as_ref());
        self.chunk(json!([{ "index": 0, "delta": {}, "finish_reason": reason }]), None, out);
        if let Some(tokens) = tokens.filter(|_| self.told.usage_wanted) {
            self.chunk(json!([]), Some(openai_usage(tokens)), out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn begin(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.begun, true) {
            self.delta(json!({ "role": "assistant", "content": "" }), out);
        }
    }

    fn delta(&self, delta: Value, out: &mut String) {
        self.chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), None, out);
    }

    fn chunk(&self, choices: Value, usage: Option<Value>, out: &mut String) {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.told.created, "model": self.told.model,
            "choices": choices,
        });
        if self.told.usage_wanted {
            chunk["usage"] = usage.unwrap_or_default();
        }
        out.push_str("data: ");
        out.push_str(&chunk.to_string());
        out.push_str("\n\n");
    }
}

impl Custom {
    fn delta(&self) -> Value {
        let custom = json!({ "name": self.name, "input": custom_input(&self.arguments) });
        json!({ "tool_calls": [{ "index": self.slot, "id": self.id, "type": "custom", "custom": custom }] })
    }
}
