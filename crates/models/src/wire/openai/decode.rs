//! Reads the chunks of a streamed chat completion.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::calls::{Calls, ToolDelta};
use crate::wire::error::{ModelError, ModelErrorCode};
use crate::wire::lenient::{LenientText, list};
use crate::wire::pump::Allowance;
use crate::wire::{FinishReason, ReasoningBlock, StreamEvent, Usage, classify};

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "list")]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    object: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// The streamed form.
    #[serde(default)]
    delta: Option<Delta>,
    /// The form of an answer that is not streamed, and of some servers' last chunk.
    #[serde(default)]
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: LenientText,
    #[serde(default)]
    reasoning_content: LenientText,
    #[serde(default)]
    reasoning: LenientText,
    #[serde(default)]
    refusal: LenientText,
    #[serde(default, deserialize_with = "list")]
    tool_calls: Vec<ToolDelta>,
}

/// State of one answer.
#[derive(Debug, Default)]
pub(in crate::wire) struct Decoder {
    calls: Calls,
    reasoning: String,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    had_calls: bool,
    said_something: bool,
    done: bool,
}

impl Decoder {
    /// Whether the model has said that it is done; late usage may still follow.
    pub(in crate::wire) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether nothing more can follow.
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
            return self.end(out);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| malformed(data))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(classify::from_value(None, &serde_json::json!({ "error": error })));
        }
        if chunk.choices.is_empty() && chunk.usage.is_none() {
            // vLLM's flat error object, and `{"message": …}` of various gateways.
            let flat_error = chunk.object.as_ref().and_then(Value::as_str) == Some("error");
            let value: Value = serde_json::from_str(data).map_err(|_| malformed(data))?;
            if flat_error
                || (value.get("choices").is_none() && (value.get("message").is_some() || value.get("detail").is_some()))
            {
                return Err(classify::from_value(None, &value));
            }
        }
        let mut usage = chunk.usage;
        for choice in chunk.choices {
            if choice.index.is_some_and(|index| index > 0) {
                continue;
            }
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return Err(classify::from_value(None, &serde_json::json!({ "error": error })));
            }
            usage = usage.filter(|usage| !usage.is_null()).or(choice.usage);
            // A whole `message` after streamed pieces repeats them.
            let whole = choice.message.filter(|_| choice.delta.is_none() && !self.said_something);
            if let Some(delta) = choice.delta.or(whole) {
                self.delta(delta, allowance, out)?;
            }
            if let Some(reason) = choice.finish_reason.as_deref().filter(|reason| !reason.is_empty()) {
                self.finish(reason, out)?;
            }
        }
        if let Some(usage) = usage.as_ref().and_then(read_usage).filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            out.push_back(StreamEvent::Usage(usage));
        }
        Ok(())
    }

    /// Says that the body has ended.
    pub(in crate::wire) fn end(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        self.release_calls(out);
        let reason = self.finish.unwrap_or(if self.had_calls { FinishReason::ToolCalls } else { FinishReason::Stop });
        out.push_back(StreamEvent::Finish(reason));
        Ok(())
    }

    fn delta(
        &mut self,
        delta: Delta,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        // Gateways that send both spellings send the same text twice.
        let named = !delta.reasoning_content.text.is_empty();
        let mut thought = if named { delta.reasoning_content.text } else { delta.reasoning.text };
        thought.push_str(&delta.content.thinking);
        if !thought.is_empty() {
            allowance.take(thought.len())?;
            if named {
                self.reasoning.push_str(&thought);
            }
            self.said_something = true;
            out.push_back(StreamEvent::Reasoning(thought));
        }
        for text in [delta.content.text, delta.refusal.text] {
            if !text.is_empty() {
                allowance.take(text.len())?;
                self.said_something = true;
                out.push_back(StreamEvent::Text(text));
            }
        }
        for piece in delta.tool_calls {
            self.said_something = true;
            self.calls.piece(piece, allowance, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, out: &mut VecDeque<StreamEvent>) -> Result<(), ModelError> {
        self.release_calls(out);
        let reason = match reason {
            "stop" | "end_turn" | "eos" | "STOP" if self.had_calls => FinishReason::ToolCalls,
            "stop" | "end_turn" | "eos" | "STOP" => FinishReason::Stop,
            "length" | "max_tokens" | "MAX_TOKENS" | "model_length" => FinishReason::Length,
            "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
            "content_filter" | "SAFETY" | "sensitive" => FinishReason::ContentFilter,
            "error" | "network_error" => {
                return Err(ModelError::new(
                    ModelErrorCode::ProviderError,
                    "The provider broke off the answer with an error and gave no reason.",
                ));
            }
            _ => FinishReason::Other,
        };
        self.finish = Some(reason);
        Ok(())
    }

    fn release_calls(&mut self, out: &mut VecDeque<StreamEvent>) {
        let calls = self.calls.take();
        if calls.is_empty() {
            return;
        }
        self.had_calls = true;
        if !self.reasoning.is_empty() {
            let text = std::mem::take(&mut self.reasoning);
            out.push_back(StreamEvent::ReasoningBlock(ReasoningBlock::Plain { text }));
        }
        out.extend(calls);
    }
}

fn malformed(data: &str) -> ModelError {
    let start: String = data.chars().take(200).collect();
    ModelError::new(
        ModelErrorCode::ProviderError,
        format!("The provider sent a piece of the answer that is not valid JSON: {start}"),
    )
}

/// Token counts, in the words of either OpenAI interface.
pub(in crate::wire) fn read_usage(usage: &Value) -> Option<Usage> {
    let object = usage.as_object()?;
    let number = |value: Option<&Value>| {
        value.and_then(|value| value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64)))
    };
    let first = |names: &[&str]| names.iter().find_map(|name| number(object.get(*name)));
    let input = first(&["prompt_tokens", "input_tokens"]);
    let output = first(&["completion_tokens", "output_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let inner = |path: &str| number(usage.pointer(path));
    let reasoning = inner("/completion_tokens_details/reasoning_tokens")
        .or_else(|| inner("/output_tokens_details/reasoning_tokens"));
    let cached = inner("/prompt_tokens_details/cached_tokens")
        .or_else(|| inner("/input_tokens_details/cached_tokens"))
        .or_else(|| first(&["prompt_cache_hit_tokens", "cached_tokens"]));
    let (input, mut output) = (input.unwrap_or(0), output.unwrap_or(0));
    // One vendor counts reasoning beside the completion instead of inside it; the total gives it away.
    if let (Some(reasoning), Some(total)) = (reasoning, first(&["total_tokens"]))
        && total == input + output + reasoning
    {
        output += reasoning;
    }
    Some(Usage { input_tokens: input, output_tokens: output, reasoning_tokens: reasoning, cached_input_tokens: cached })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::WireLimits;

    fn decode(chunks: &[Value]) -> Result<Vec<StreamEvent>, ModelError> {
        let mut decoder = Decoder::default();
        let mut allowance = Allowance::new(&WireLimits::default());
        let mut out = VecDeque::new();
        for chunk in chunks {
            decoder.data(&chunk.to_string(), &mut allowance, &mut out)?;
        }
        decoder.end(&mut out)?;
        Ok(out.into())
    }

    fn delta(delta: Value) -> Value {
        json!({ "id": "x", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    }

    fn finish(reason: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    fn calls(events: &[StreamEvent]) -> Vec<(String, String)> {
        events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::ToolCall(call) => Some((call.name.clone(), call.arguments.clone())),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn text_reasoning_and_late_usage_come_in_order() {
        let events = decode(&[
            delta(json!({ "role": "assistant", "content": "" })),
            delta(json!({ "reasoning": "hm" })),
            delta(json!({ "content": "Hel" })),
            delta(json!({ "content": "lo" })),
            finish("stop"),
            json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 4 }, "completion_tokens_details": { "reasoning_tokens": 2 } } }),
        ])
        .unwrap();
        assert_eq!(
            events,
            [
                StreamEvent::Reasoning("hm".into()),
                StreamEvent::Text("Hel".into()),
                StreamEvent::Text("lo".into()),
                StreamEvent::Usage(Usage {
                    input_tokens: 10,
                    output_tokens: 5,
                    reasoning_tokens: Some(2),
                    cached_input_tokens: Some(4)
                }),
                StreamEvent::Finish(FinishReason::Stop),
            ]
        );
    }

    #[test]
    fn usage_beside_choices_counts_and_both_reasoning_spellings_are_one() {
        let events = decode(&[
            json!({ "choices": [{ "index": 0, "delta": { "reasoning": "a", "reasoning_content": "a", "content": "b" }, "finish_reason": "length" }], "usage": { "prompt_tokens": 1, "completion_tokens": 2 } }),
        ])
        .unwrap();
        assert_eq!(events[0], StreamEvent::Reasoning("a".into()));
        assert_eq!(events[1], StreamEvent::Text("b".into()));
        assert!(matches!(events[2], StreamEvent::Usage(Usage { input_tokens: 1, output_tokens: 2, .. })));
        assert_eq!(events[3], StreamEvent::Finish(FinishReason::Length));
    }

    #[test]
    fn parallel_calls_in_pieces_are_put_together() {
        let piece = |index: u64, id: Value, name: Value, arguments: &str| {
            delta(
                json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] }),
            )
        };
        let events = decode(&[
            piece(0, json!("a"), json!("search"), ""),
            piece(0, Value::Null, Value::Null, "{\"q\":"),
            piece(1, json!("b"), json!("fetch"), "{\"r\""),
            piece(0, json!(""), json!(""), "1}"),
            piece(1, Value::Null, Value::Null, ":2}"),
            finish("tool_calls"),
        ])
        .unwrap();
        assert_eq!(calls(&events), [("search".into(), "{\"q\":1}".into()), ("fetch".into(), "{\"r\":2}".into())]);
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::ToolCalls)));
        let started =
            events.iter().position(|e| matches!(e, StreamEvent::ToolCallStarted { id, .. } if id == "a")).unwrap();
        let complete = events.iter().position(|e| matches!(e, StreamEvent::ToolCall(call) if call.id == "a")).unwrap();
        assert!(started < complete);
    }

    #[test]
    fn odd_numbering_still_gives_the_right_calls() {
        // All parallel calls numbered 0, told apart by their ids.
        let zero = |id: &str, name: &str| {
            delta(json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": name, "arguments": "{}" } }] }))
        };
        assert_eq!(calls(&decode(&[zero("a", "f"), zero("b", "g"), finish("stop")]).unwrap()).len(), 2);
        // A fresh id with every piece of one call.
        let fresh = |id: &str, name: Value, arguments: &str| {
            delta(
                json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } }] }),
            )
        };
        let events =
            decode(&[fresh("a", json!("f"), "{\"x\":"), fresh("b", Value::Null, "1}"), finish("tool_calls")]).unwrap();
        assert_eq!(calls(&events), [("f".into(), "{\"x\":1}".into())]);
        // Neither id nor index; arguments as an object.
        let bare =
            |name: &str| delta(json!({ "tool_calls": [{ "function": { "name": name, "arguments": { "x": 1 } } }] }));
        let events = decode(&[bare("f"), bare("g"), finish("stop")]).unwrap();
        assert_eq!(calls(&events), [("f".into(), "{\"x\":1}".into()), ("g".into(), "{\"x\":1}".into())]);
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::ToolCalls)));
    }

    #[test]
    fn ids_are_made_up_when_missing_and_empty_arguments_are_an_empty_object() {
        let events = decode(&[
            delta(json!({ "tool_calls": [{ "index": 0, "function": { "name": "now" } }] })),
            finish("tool_calls"),
        ])
        .unwrap();
        let Some(StreamEvent::ToolCall(call)) = events.iter().find(|event| matches!(event, StreamEvent::ToolCall(_)))
        else {
            panic!("{events:?}")
        };
        assert!(call.id.starts_with("call_"));
        assert_eq!(call.arguments, "{}");
    }

    #[test]
    fn an_answer_that_was_not_streamed_reads_the_same() {
        let events = decode(&[json!({ "object": "chat.completion", "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 1, "completion_tokens": 1 } })]).unwrap();
        assert_eq!(events[0], StreamEvent::Text("Hi".into()));
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::Stop)));
    }

    #[test]
    fn errors_inside_a_stream_are_errors() {
        for chunk in [
            json!({ "error": { "message": "Insufficient credits", "code": 402 } }),
            json!({ "object": "error", "message": "credit balance is too low" }),
            json!({ "choices": [{ "index": 0, "delta": {}, "error": { "code": 402, "message": "no" }, "finish_reason": "error" }] }),
        ] {
            assert_eq!(
                decode(&[delta(json!({ "content": "a" })), chunk]).unwrap_err().code,
                ModelErrorCode::CreditExhausted
            );
        }
        assert_eq!(decode(&[finish("error")]).unwrap_err().code, ModelErrorCode::ProviderError);
        let mut decoder = Decoder::default();
        let broken = decoder.data("{\"choices\": [", &mut Allowance::new(&WireLimits::default()), &mut VecDeque::new());
        assert_eq!(broken.unwrap_err().code, ModelErrorCode::ProviderError);
    }

    #[test]
    fn reasoning_beside_the_completion_is_counted_once() {
        let usage = read_usage(&json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35, "completion_tokens_details": { "reasoning_tokens": 20 } })).unwrap();
        assert_eq!(usage.output_tokens, 25);
    }
}
