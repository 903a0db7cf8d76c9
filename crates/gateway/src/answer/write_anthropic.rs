//! Writes the events of an Anthropic message: blocks one after the other, each begun and ended.

use serde_json::{Value, json};

use super::write::{Told, anthropic_usage, is_whole};
use super::{Finish, Piece, Tokens};
use crate::request::{PLAIN_REASONING, VENDOR_DATA};

#[derive(Debug)]
pub(crate) struct Writer {
    told: Told,
    begun: bool,
    next: usize,
    open: Option<Open>,
    /// Calls that began while another one's arguments were still incomplete. Blocks do not overlap
    /// in this format, so such calls wait.
    waiting: Vec<Call>,
    late: String,
    finish: Option<Finish>,
}

#[derive(Debug)]
enum Open {
    Text,
    Thinking { signed: bool },
    Tool(Call),
}

#[derive(Debug)]
struct Call {
    slot: usize,
    id: String,
    name: String,
    vendor: Option<Value>,
    arguments: String,
}

/// The words for why an answer ended: the reason and the stop sequence.
pub(super) fn stop_words(finish: Option<&Finish>) -> (&'static str, Value) {
    match finish {
        Some(Finish::Length) => ("max_tokens", Value::Null),
        Some(Finish::Tools) => ("tool_use", Value::Null),
        Some(Finish::Refusal) => ("refusal", Value::Null),
        Some(Finish::Sequence(text)) => ("stop_sequence", json!(text)),
        Some(Finish::Stop) | None => ("end_turn", Value::Null),
    }
}

/// The id of a message for one of an upstream.
pub(super) fn message_id(id: &str) -> String {
    if id.starts_with("msg_") { id.to_owned() } else { format!("msg_{id}") }
}

/// The block that keeps a vendor's field of the next tool call for the way back.
pub(super) fn vendor_block(vendor: &Value) -> Value {
    json!({ "type": "redacted_thinking", "data": format!("{VENDOR_DATA}{vendor}") })
}

impl Writer {
    pub(super) fn new(told: Told) -> Self {
        Self { told, begun: false, next: 0, open: None, waiting: Vec::new(), late: String::new(), finish: None }
    }

    pub(super) fn piece(&mut self, piece: Piece, out: &mut String) {
        match piece {
            Piece::Begin(id) => self.begin(&id, out),
            // Text between the pieces of a call follows the call.
            Piece::Text(text) if self.in_call() => self.late.push_str(&text),
            Piece::Text(text) => {
                if !matches!(self.open, Some(Open::Text)) {
                    self.start(Open::Text, &json!({ "type": "text", "text": "" }), out);
                }
                self.delta(&json!({ "type": "text_delta", "text": text }), out);
            }
            Piece::Reasoning(text) => {
                if !matches!(self.open, Some(Open::Thinking { signed: false })) {
                    let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
                    self.start(Open::Thinking { signed: false }, &block, out);
                }
                self.delta(&json!({ "type": "thinking_delta", "thinking": text }), out);
            }
            Piece::Signature(signature) => {
                if !matches!(self.open, Some(Open::Thinking { .. })) {
                    let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
                    self.start(Open::Thinking { signed: false }, &block, out);
                }
                self.open = Some(Open::Thinking { signed: true });
                self.delta(&json!({ "type": "signature_delta", "signature": signature }), out);
            }
            Piece::Redacted(data) => self.whole(&json!({ "type": "redacted_thinking", "data": data }), out),
            Piece::Tool { slot, id, name, vendor } => {
                self.waiting.push(Call { slot, id, name, vendor, arguments: String::new() });
                self.settle(false, out);
            }
            Piece::Arguments { slot, text } => self.arguments(slot, &text, out),
            Piece::Finish(finish) => self.finish = Some(finish),
            Piece::Further(_) => {}
        }
    }

    /// Whether a call is being written whose arguments are incomplete.
    fn in_call(&self) -> bool {
        matches!(&self.open, Some(Open::Tool(call)) if !is_whole(&call.arguments))
    }

    fn arguments(&mut self, slot: usize, text: &str, out: &mut String) {
        if let Some(Open::Tool(call)) = &mut self.open
            && call.slot == slot
        {
            call.arguments.push_str(text);
            self.delta(&json!({ "type": "input_json_delta", "partial_json": text }), out);
            if !self.waiting.is_empty() {
                self.settle(false, out);
            }
        } else if let Some(call) = self.waiting.iter_mut().find(|call| call.slot == slot) {
            call.arguments.push_str(text);
        }
    }

    /// Writes the calls that wait, as far as the one before is complete; at the end all of them.
    fn settle(&mut self, all: bool, out: &mut String) {
        while !self.waiting.is_empty() {
            if !all && self.in_call() {
                return;
            }
            let call = self.waiting.remove(0);
            if let Some(vendor) = &call.vendor {
                self.whole(&vendor_block(vendor), out);
            }
            let block = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
            let early = call.arguments.clone();
            self.start(Open::Tool(call), &block, out);
            if !early.is_empty() {
                self.delta(&json!({ "type": "input_json_delta", "partial_json": early }), out);
            }
        }
    }

    pub(super) fn end(&mut self, tokens: Option<Tokens>, out: &mut String) {
        self.begin("", out);
        self.settle(true, out);
        let late = std::mem::take(&mut self.late);
        if !late.is_empty() {
            self.start(Open::Text, &json!({ "type": "text", "text": "" }), out);
            self.delta(&json!({ "type": "text_delta", "text": late }), out);
        }
        self.close(out);
        let (reason, sequence) = stop_words(self.finish.as_ref());
        let usage = anthropic_usage(tokens.unwrap_or_default());
        let delta = json!({ "stop_reason": reason, "stop_sequence": sequence });
        event(out, "message_delta", &json!({ "type": "message_delta", "delta": delta, "usage": usage }));
        event(out, "message_stop", &json!({ "type": "message_stop" }));
    }

    fn begin(&mut self, id: &str, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let message = json!({
            "id": message_id(id), "type": "message", "role": "assistant", "model": self.told.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": anthropic_usage(Tokens::default()),
        });
        event(out, "message_start", &json!({ "type": "message_start", "message": message }));
    }

    fn whole(&mut self, block: &Value, out: &mut String) {
        self.close(out);
        event(
            out,
            "content_block_start",
            &json!({ "type": "content_block_start", "index": self.next, "content_block": block }),
        );
        event(out, "content_block_stop", &json!({ "type": "content_block_stop", "index": self.next }));
        self.next += 1;
    }

    fn start(&mut self, open: Open, block: &Value, out: &mut String) {
        self.close(out);
        event(
            out,
            "content_block_start",
            &json!({ "type": "content_block_start", "index": self.next, "content_block": block }),
        );
        self.open = Some(open);
    }

    fn delta(&self, delta: &Value, out: &mut String) {
        event(
            out,
            "content_block_delta",
            &json!({ "type": "content_block_delta", "index": self.next, "delta": delta }),
        );
    }

    fn close(&mut self, out: &mut String) {
        let Some(open) = self.open.take() else { return };
        if let Open::Thinking { signed: false } = open {
            self.delta(&json!({ "type": "signature_delta", "signature": PLAIN_REASONING }), out);
        }
        event(out, "content_block_stop", &json!({ "type": "content_block_stop", "index": self.next }));
        self.next += 1;
    }
}

fn event(out: &mut String, name: &str, data: &Value) {
    out.push_str("event: ");
    out.push_str(name);
    out.push_str("\ndata: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}
