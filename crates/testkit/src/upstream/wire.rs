//! Writes steps in the wire formats.

use serde_json::{Value, json};

use super::reply::Step;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenAi,
    Responses,
    Anthropic,
}

/// Adds usage and an ending where the script decides none.
pub(super) fn with_ending(mut steps: Vec<Step>) -> Vec<Step> {
    let decided = steps.iter().any(|step| {
        matches!(step, Step::Finish(_) | Step::Hang | Step::Drop | Step::Forever(_) | Step::Error { .. } | Step::Raw(_))
    });
    if decided {
        return steps;
    }
    let calls = steps.iter().any(|step| matches!(step, Step::ToolCall { .. }));
    let output = steps.len() as u64;
    let usage = steps.iter().position(|step| matches!(step, Step::Usage { .. })).map(|at| steps.remove(at));
    steps.push(Step::Finish(if calls { "tool_calls" } else { "stop" }));
    steps.push(usage.unwrap_or(Step::Usage { input: 11, output }));
    steps
}

/// The state of one streamed answer.
pub(super) struct Writer {
    format: Format,
    begun: bool,
    calls: usize,
    block: usize,
    open: Option<&'static str>,
    finish: Option<&'static str>,
    responses: super::responses::Writer,
}

impl Writer {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            begun: false,
            calls: 0,
            block: 0,
            open: None,
            finish: None,
            responses: super::responses::Writer::default(),
        }
    }

    /// The bytes of one step.
    pub(super) fn write(&mut self, step: &Step) -> Vec<u8> {
        let mut out = String::new();
        if let Step::Raw(bytes) = step {
            return bytes.clone();
        }
        match self.format {
            Format::OpenAi => self.openai(step, &mut out),
            Format::Responses => self.responses.write(step, &mut out),
            Format::Anthropic => self.anthropic(step, &mut out),
        }
        out.into_bytes()
    }

    fn openai(&mut self, step: &Step, out: &mut String) {
        let mut chunk = |choices: Value, usage: Value| {
            let data = json!({ "id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 0, "model": "fake", "choices": choices, "usage": usage });
            out.push_str(&format!("data: {data}\n\n"));
        };
        let delta = |delta: Value| json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
        if !self.begun {
            self.begun = true;
            chunk(delta(json!({ "role": "assistant", "content": "" })), Value::Null);
        }
        match step {
            Step::Text(text) => chunk(delta(json!({ "content": text })), Value::Null),
            Step::Reasoning(text) => chunk(delta(json!({ "reasoning_content": text })), Value::Null),
            Step::ToolCall { id, name, arguments, pieces } => {
                let index = self.calls;
                self.calls += 1;
                let mut first =
                    json!({ "index": index, "type": "function", "function": { "name": name, "arguments": "" } });
                if !id.is_empty() {
                    first["id"] = json!(id);
                }
                chunk(delta(json!({ "tool_calls": [first] })), Value::Null);
                for piece in cut(arguments, *pieces) {
                    chunk(
                        delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] })),
                        Value::Null,
                    );
                }
            }
            Step::Finish(reason) => {
                self.finish = Some(reason);
                chunk(json!([{ "index": 0, "delta": {}, "finish_reason": reason }]), Value::Null);
            }
            Step::Usage { input, output } => {
                chunk(
                    json!([]),
                    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output }),
                );
                out.push_str("data: [DONE]\n\n");
            }
            Step::Error { code, message } => out.push_str(&format!(
                "data: {}\n\n",
                json!({ "error": { "message": message, "type": code, "code": code } })
            )),
            _ => {}
        }
    }

    fn anthropic(&mut self, step: &Step, out: &mut String) {
        if !self.begun {
            self.begun = true;
            event(
                out,
                json!({ "type": "message_start", "message": { "id": "msg_fake", "role": "assistant", "content": [], "usage": { "input_tokens": 11, "output_tokens": 1 } } }),
            );
        }
        match step {
            Step::Text(text) => {
                self.block_of("text", json!({ "type": "text", "text": "" }), out);
                event(
                    out,
                    json!({ "type": "content_block_delta", "index": self.block, "delta": { "type": "text_delta", "text": text } }),
                );
            }
            Step::Reasoning(text) => {
                self.block_of("thinking", json!({ "type": "thinking", "thinking": "", "signature": "" }), out);
                event(
                    out,
                    json!({ "type": "content_block_delta", "index": self.block, "delta": { "type": "thinking_delta", "thinking": text } }),
                );
            }
            Step::Signature(signature) => {
                event(
                    out,
                    json!({ "type": "content_block_delta", "index": self.block, "delta": { "type": "signature_delta", "signature": signature } }),
                );
            }
            Step::ToolCall { id, name, arguments, pieces } => {
                self.close(out);
                self.block_of("tool_use", json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), out);
                for piece in cut(arguments, *pieces) {
                    event(
                        out,
                        json!({ "type": "content_block_delta", "index": self.block, "delta": { "type": "input_json_delta", "partial_json": piece } }),
                    );
                }
                self.close(out);
            }
            Step::Finish(reason) => {
                self.close(out);
                self.finish = Some(stop_reason(reason));
            }
            Step::Usage { input, output } => {
                event(
                    out,
                    json!({ "type": "message_delta", "delta": { "stop_reason": self.finish }, "usage": { "input_tokens": input, "output_tokens": output } }),
                );
                event(out, json!({ "type": "message_stop" }));
            }
            Step::Error { code, message } => {
                event(out, json!({ "type": "error", "error": { "type": code, "message": message } }))
            }
            _ => {}
        }
    }

    fn block_of(&mut self, kind: &'static str, start: Value, out: &mut String) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        self.open = Some(kind);
        event(out, json!({ "type": "content_block_start", "index": self.block, "content_block": start }));
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            event(out, json!({ "type": "content_block_stop", "index": self.block }));
            self.block += 1;
        }
    }
}

/// The Anthropic format's word for a reason.
pub(super) fn stop_reason(reason: &'static str) -> &'static str {
    match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

pub(super) fn event(out: &mut String, data: Value) {
    let name = data["type"].as_str().unwrap_or_default();
    out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
}

/// Cuts text into about `pieces` parts at character borders.
pub(super) fn cut(text: &str, pieces: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return Vec::new();
    }
    characters.chunks(characters.len().div_ceil(pieces.max(1))).map(|part| part.iter().collect()).collect()
}
