//! Reads the events of a streamed message.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::wire::error::{ModelError, ModelErrorCode};
use crate::wire::pump::Allowance;
use crate::wire::{FinishReason, ReasoningBlock, StreamEvent, ToolCall, Usage, classify};

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default)]
    content_block: Option<Block>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<RawUsage>,
    // An answer that was not streamed.
    #[serde(default)]
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    partial_json: String,
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct RawUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

/// A content block while its pieces arrive.
#[derive(Debug)]
enum Open {
    Text,
    Thinking { text: String, signature: String },
    ToolUse { call: ToolCall },
    Other,
}

/// State of one answer.
#[derive(Debug, Default)]
pub(in crate::wire) struct Decoder {
    open: Vec<(u64, Open)>,
    raw_usage: RawUsage,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    blocks: usize,
    done: bool,
}

impl Decoder {
    pub(in crate::wire) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    pub(in crate::wire) fn done(&self) -> bool {
        self.done
    }

    /// Reads the data of one event.
    pub(in crate::wire) fn data(
        &mut self,
        data: &str,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            // How the other format ends its streams; of this one something has come before.
            return if self.finish.is_some() || self.blocks > 0 { self.end(out) } else { Err(foreign()) };
        }
        let event: Event = serde_json::from_str(data).map_err(|_| malformed(data))?;
        match event.kind.as_str() {
            "message_start" => {
                let usage = event.message.as_ref().and_then(|message| message.get("usage")).cloned();
                if let Some(usage) = usage.and_then(|usage| serde_json::from_value(usage).ok()) {
                    self.count(usage, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index.unwrap_or(0), block, allowance, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.extend(event.index.unwrap_or(0), delta, allowance, out)?;
                }
            }
            "content_block_stop" => self.close(event.index.unwrap_or(0), out),
            "message_delta" => {
                if let Some(usage) = event.usage {
                    self.count(usage, out);
                }
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.finish = Some(finish_reason(&reason));
                }
            }
            "message_stop" => self.end(out)?,
            // The whole message at once, from a server that does not stream.
            "message" => {
                for (index, block) in (0u64..).zip(event.content) {
                    self.begin(index, block, allowance, out)?;
                    self.close(index, out);
                }
                if let Some(usage) = event.usage {
                    self.count(usage, out);
                }
                self.finish = event.stop_reason.as_deref().map(finish_reason);
                self.end(out)?;
            }
            "error" => return Err(classify::from_value(None, &parsed(data)?)),
            "ping" => {}
            _ => {
                let value = parsed(data)?;
                if value.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(classify::from_value(None, &value));
                }
                if value.get("choices").is_some() {
                    return Err(foreign());
                }
            }
        }
        Ok(())
    }

    /// Says that the body has ended.
    pub(in crate::wire) fn end(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        let open: Vec<u64> = self.open.iter().map(|(index, _)| *index).collect();
        for index in open {
            self.close(index, out);
        }
        out.push_back(StreamEvent::Finish(self.finish.unwrap_or(FinishReason::Stop)));
        Ok(())
    }

    fn begin(
        &mut self,
        index: u64,
        block: Block,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        self.close(index, out);
        allowance.tool_call(self.blocks)?;
        let open = match block.kind.as_str() {
            "text" => {
                if !block.text.is_empty() {
                    allowance.take(block.text.len())?;
                    out.push_back(StreamEvent::Text(block.text));
                }
                Open::Text
            }
            "thinking" => {
                if !block.thinking.is_empty() {
                    allowance.take(block.thinking.len())?;
                    out.push_back(StreamEvent::Reasoning(block.thinking.clone()));
                }
                Open::Thinking { text: block.thinking, signature: block.signature }
            }
            "redacted_thinking" => {
                allowance.take(block.data.len())?;
                out.push_back(StreamEvent::ReasoningBlock(ReasoningBlock::Redacted { data: block.data }));
                Open::Other
            }
            "tool_use" => {
                self.blocks += 1;
                let arguments = match &block.input {
                    Value::Object(fields) if !fields.is_empty() => block.input.to_string(),
                    _ => String::new(),
                };
                allowance.take(arguments.len() + block.name.len())?;
                let id = if block.id.is_empty() { format!("toolu_{}", Uuid::now_v7().simple()) } else { block.id };
                out.push_back(StreamEvent::ToolCallStarted { id: id.clone(), name: block.name.clone() });
                Open::ToolUse { call: ToolCall::new(id, block.name, arguments) }
            }
            _ => Open::Other,
        };
        self.open.push((index, open));
        Ok(())
    }

    fn extend(
        &mut self,
        index: u64,
        delta: Delta,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let open = self.open.iter_mut().find(|(at, _)| *at == index).map(|(_, open)| open);
        match delta.kind.as_str() {
            "text_delta" if !delta.text.is_empty() => {
                allowance.take(delta.text.len())?;
                out.push_back(StreamEvent::Text(delta.text));
            }
            "thinking_delta" if !delta.thinking.is_empty() => {
                allowance.take(delta.thinking.len())?;
                if let Some(Open::Thinking { text, .. }) = open {
                    text.push_str(&delta.thinking);
                }
                out.push_back(StreamEvent::Reasoning(delta.thinking));
            }
            "signature_delta" => {
                allowance.take(delta.signature.len())?;
                if let Some(Open::Thinking { signature, .. }) = open {
                    signature.push_str(&delta.signature);
                }
            }
            "input_json_delta" => {
                allowance.take(delta.partial_json.len())?;
                if let Some(Open::ToolUse { call }) = open {
                    call.arguments.push_str(&delta.partial_json);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut VecDeque<StreamEvent>) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == index) else { return };
        match self.open.remove(at).1 {
            Open::Thinking { text, signature } if !signature.is_empty() => {
                out.push_back(StreamEvent::ReasoningBlock(ReasoningBlock::Signed { text, signature }));
            }
            Open::ToolUse { mut call } => {
                if call.arguments.trim().is_empty() {
                    call.arguments = "{}".to_owned();
                }
                out.push_back(StreamEvent::ToolCall(call));
            }
            _ => {}
        }
    }

    /// Input tokens are told without the cached ones in this format; ours include them.
    fn count(&mut self, usage: RawUsage, out: &mut VecDeque<StreamEvent>) {
        let held = &mut self.raw_usage;
        held.input_tokens = usage.input_tokens.or(held.input_tokens);
        held.output_tokens = usage.output_tokens.or(held.output_tokens);
        held.cache_read_input_tokens = usage.cache_read_input_tokens.or(held.cache_read_input_tokens);
        held.cache_creation_input_tokens = usage.cache_creation_input_tokens.or(held.cache_creation_input_tokens);
        let cached = held.cache_read_input_tokens;
        let usage = Usage {
            input_tokens: held.input_tokens.unwrap_or(0)
                + cached.unwrap_or(0)
                + held.cache_creation_input_tokens.unwrap_or(0),
            output_tokens: held.output_tokens.unwrap_or(0),
            reasoning_tokens: None,
            cached_input_tokens: cached,
        };
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push_back(StreamEvent::Usage(usage));
        }
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

fn parsed(data: &str) -> Result<Value, ModelError> {
    serde_json::from_str(data).map_err(|_| malformed(data))
}

/// The words of another format.
fn foreign() -> ModelError {
    ModelError::new(
        ModelErrorCode::ProviderError,
        "The provider does not answer in the Anthropic format. Check the provider's API format and base URL.",
    )
}

fn malformed(data: &str) -> ModelError {
    let start: String = data.chars().take(200).collect();
    ModelError::new(
        ModelErrorCode::ProviderError,
        format!("The provider sent a piece of the answer that is not valid JSON: {start}"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::WireLimits;

    fn decode(events: &[Value]) -> Result<Vec<StreamEvent>, ModelError> {
        let mut decoder = Decoder::default();
        let mut allowance = Allowance::new(&WireLimits::default());
        let mut out = VecDeque::new();
        for event in events {
            decoder.data(&event.to_string(), &mut allowance, &mut out)?;
        }
        Ok(out.into())
    }

    #[test]
    fn the_stream_of_the_other_format_is_no_answer() {
        let chunk = json!({ "id": "c", "choices": [{ "index": 0, "delta": { "content": "abc" } }] }).to_string();
        for data in [chunk.as_str(), "[DONE]"] {
            let mut decoder = Decoder::default();
            let mut allowance = Allowance::new(&WireLimits::default());
            let error = decoder.data(data, &mut allowance, &mut VecDeque::new()).unwrap_err();
            assert!(error.message.contains("Anthropic format"), "{}", error.message);
        }
    }

    #[test]
    fn a_tool_round_with_signed_thinking_reads_completely() {
        let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        let events = decode(&[
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
            json!({ "type": "ping" }),
            delta(0, json!({ "type": "thinking_delta", "thinking": "let me" })),
            delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
            delta(1, json!({ "type": "text_delta", "text": "Looking" })),
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "t1", "name": "search", "input": {} } }),
            delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"q\":" })),
            delta(2, json!({ "type": "input_json_delta", "partial_json": "1}" })),
            json!({ "type": "content_block_stop", "index": 2 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 40 } }),
            json!({ "type": "message_stop" }),
        ])
        .unwrap();
        let usage = |output| {
            StreamEvent::Usage(Usage {
                input_tokens: 8,
                output_tokens: output,
                reasoning_tokens: None,
                cached_input_tokens: Some(3),
            })
        };
        assert_eq!(
            events,
            [
                usage(1),
                StreamEvent::Reasoning("let me".into()),
                StreamEvent::ReasoningBlock(ReasoningBlock::Signed { text: "let me".into(), signature: "sig".into() }),
                StreamEvent::Text("Looking".into()),
                StreamEvent::ToolCallStarted { id: "t1".into(), name: "search".into() },
                StreamEvent::ToolCall(ToolCall::new("t1", "search", "{\"q\":1}")),
                usage(40),
                StreamEvent::Finish(FinishReason::ToolCalls),
            ]
        );
    }

    #[test]
    fn an_error_event_fails_the_answer() {
        let error =
            decode(&[json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } })])
                .unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (ModelErrorCode::ProviderError, "Overloaded"));
    }

    #[test]
    fn a_whole_message_reads_like_a_stream() {
        let events = decode(&[json!({ "type": "message", "content": [{ "type": "text", "text": "Hi" }], "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 2 } })]).unwrap();
        assert_eq!(events[0], StreamEvent::Text("Hi".into()));
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::Stop)));
    }
}
