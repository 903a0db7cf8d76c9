//! Writes steps in the OpenAI Responses format: an item at a time, each begun and ended by its
//! events, and the whole response again in the last one.

use serde_json::{Value, json};

use super::reply::Step;
use super::wire::{cut, event};

/// The state of one streamed response.
#[derive(Debug, Default)]
pub(super) struct Writer {
    begun: bool,
    sequence: u64,
    /// The finished items.
    output: Vec<Value>,
    /// The item that is being written: its kind and its text.
    open: Option<(&'static str, String)>,
    finish: Option<&'static str>,
}

/// The response that these steps are.
pub(super) fn document(steps: &[Step], model: &Value) -> Value {
    let (mut writer, mut events) = (Writer::default(), String::new());
    steps.iter().for_each(|step| writer.write(step, &mut events));
    let last = events.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or("null");
    let mut response = serde_json::from_str::<Value>(last).unwrap_or_default()["response"].take();
    response["model"] = model.clone();
    response
}

impl Writer {
    pub(super) fn write(&mut self, step: &Step, out: &mut String) {
        if !self.begun {
            self.begun = true;
            for name in ["response.created", "response.in_progress"] {
                self.event(out, json!({ "type": name, "response": self.response("in_progress") }));
            }
        }
        match step {
            Step::Text(text) => {
                self.open_item("message", out);
                self.event(
                    out,
                    json!({ "type": "response.output_text.delta", "item_id": "msg_fake", "output_index": self.output.len(), "content_index": 0, "delta": text, "logprobs": [] }),
                );
                self.hold(text);
            }
            Step::Reasoning(text) => {
                self.open_item("reasoning", out);
                self.event(
                    out,
                    json!({ "type": "response.reasoning_summary_text.delta", "item_id": "rs_fake", "output_index": self.output.len(), "summary_index": 0, "delta": text }),
                );
                self.hold(text);
            }
            Step::Signature(sealed) => self.close(Some(sealed), out),
            Step::ToolCall { id, name, arguments, pieces } => self.call(id, name, arguments, *pieces, out),
            Step::Finish(reason) => {
                self.close(None, out);
                self.finish = Some(reason);
            }
            Step::Usage { input, output } => self.end(*input, *output, out),
            Step::Error { code, message } => {
                self.event(out, json!({ "type": "error", "code": code, "message": message, "param": null }));
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: &str, pieces: usize, out: &mut String) {
        self.close(None, out);
        let at = self.output.len();
        let item = |arguments: &str, status: &str| json!({ "id": format!("fc_{id}"), "type": "function_call", "status": status, "call_id": id, "name": name, "arguments": arguments });
        self.event(
            out,
            json!({ "type": "response.output_item.added", "output_index": at, "item": item("", "in_progress") }),
        );
        for piece in cut(arguments, pieces) {
            self.event(
                out,
                json!({ "type": "response.function_call_arguments.delta", "item_id": format!("fc_{id}"), "output_index": at, "delta": piece }),
            );
        }
        self.event(
            out,
            json!({ "type": "response.function_call_arguments.done", "item_id": format!("fc_{id}"), "output_index": at, "arguments": arguments }),
        );
        self.done(item(arguments, "completed"), out);
    }

    fn end(&mut self, input: u64, output: u64, out: &mut String) {
        self.close(None, out);
        let (name, status, details) = match self.finish {
            Some("length") => ("response.incomplete", "incomplete", json!({ "reason": "max_output_tokens" })),
            Some("content_filter") => ("response.incomplete", "incomplete", json!({ "reason": "content_filter" })),
            _ => ("response.completed", "completed", Value::Null),
        };
        let mut response = self.response(status);
        response["incomplete_details"] = details;
        response["usage"] = json!({
            "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + output,
        });
        self.event(out, json!({ "type": name, "response": response }));
    }

    fn open_item(&mut self, kind: &'static str, out: &mut String) {
        if self.open.as_ref().is_some_and(|(open, _)| *open == kind) {
            return;
        }
        self.close(None, out);
        let (item, part) = match kind {
            "reasoning" => (
                json!({ "id": "rs_fake", "type": "reasoning", "summary": [] }),
                json!({ "type": "response.reasoning_summary_part.added", "item_id": "rs_fake", "output_index": self.output.len(), "summary_index": 0, "part": { "type": "summary_text", "text": "" } }),
            ),
            _ => (
                json!({ "id": "msg_fake", "type": "message", "status": "in_progress", "role": "assistant", "content": [] }),
                json!({ "type": "response.content_part.added", "item_id": "msg_fake", "output_index": self.output.len(), "content_index": 0, "part": { "type": "output_text", "text": "", "annotations": [] } }),
            ),
        };
        self.event(
            out,
            json!({ "type": "response.output_item.added", "output_index": self.output.len(), "item": item }),
        );
        self.event(out, part);
        self.open = Some((kind, String::new()));
    }

    fn hold(&mut self, text: &str) {
        if let Some((_, held)) = &mut self.open {
            held.push_str(text);
        }
    }

    fn close(&mut self, sealed: Option<&str>, out: &mut String) {
        let Some((kind, text)) = self.open.take() else { return };
        let item = if kind == "reasoning" {
            json!({ "id": "rs_fake", "type": "reasoning", "summary": [{ "type": "summary_text", "text": text }], "encrypted_content": sealed })
        } else {
            self.event(
                out,
                json!({ "type": "response.output_text.done", "item_id": "msg_fake", "output_index": self.output.len(), "content_index": 0, "text": text }),
            );
            json!({ "id": "msg_fake", "type": "message", "status": "completed", "role": "assistant", "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
        };
        self.done(item, out);
    }

    fn done(&mut self, item: Value, out: &mut String) {
        self.event(
            out,
            json!({ "type": "response.output_item.done", "output_index": self.output.len(), "item": item }),
        );
        self.output.push(item);
    }

    fn response(&self, status: &str) -> Value {
        json!({ "id": "resp_fake", "object": "response", "created_at": 0, "model": "fake", "status": status, "error": null, "incomplete_details": null, "output": self.output, "store": false, "usage": null })
    }

    fn event(&mut self, out: &mut String, mut data: Value) {
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        event(out, data);
    }
}
