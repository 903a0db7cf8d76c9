//! Reads the events of a streamed response.

use std::collections::VecDeque;

use serde_json::Value;
use uuid::Uuid;

use crate::wire::error::{ModelError, ModelErrorCode};
use crate::wire::openai::read_usage;
use crate::wire::pump::Allowance;
use crate::wire::{FinishReason, ReasoningBlock, StreamEvent, ToolCall, classify};

/// State of one answer.
#[derive(Debug, Default)]
pub(in crate::wire) struct Decoder {
    calls: Vec<Slot>,
    /// Items that were handed out, by their place in the answer.
    given: Vec<u64>,
    said_text: bool,
    had_calls: bool,
    summary_part: Option<(u64, u64)>,
    done: bool,
}

/// A function call while its arguments arrive.
#[derive(Debug)]
struct Slot {
    at: u64,
    call: ToolCall,
}

impl Decoder {
    /// Whether nothing more can follow. The last event brings the usage along, so nothing is late.
    pub(in crate::wire) fn done(&self) -> bool {
        self.done
    }

    /// Reads the data of one event, or a whole response from a server that does not stream.
    pub(in crate::wire) fn data(
        &mut self,
        data: &str,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|_| malformed(data))?;
        let at = event.get("output_index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => self.text(delta(&event), allowance, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning(&event, at, allowance, out)
            }
            "response.output_item.added" => self.added(&event["item"], at, allowance, out),
            "response.function_call_arguments.delta" => {
                let piece = delta(&event);
                allowance.take(piece.len())?;
                if let Some(slot) = self.calls.iter_mut().find(|slot| slot.at == at) {
                    slot.call.arguments.push_str(piece);
                }
                Ok(())
            }
            "response.output_item.done" => self.item(&event["item"], at, allowance, out),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end_with(&event["response"], allowance, out)
            }
            "error" => Err(classify::from_value(None, &event)),
            "" if event.get("error").is_some_and(|error| !error.is_null()) => Err(classify::from_value(None, &event)),
            "" if event.get("object").and_then(Value::as_str) == Some("response") => {
                self.end_with(&event, allowance, out)
            }
            "" => Err(classify::from_value(None, &event)),
            // Parts begin and end, searches run: nothing that is shown.
            _ => Ok(()),
        }
    }

    fn text(
        &mut self,
        text: &str,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        if !text.is_empty() {
            allowance.take(text.len())?;
            self.said_text = true;
            out.push_back(StreamEvent::Text(text.to_owned()));
        }
        Ok(())
    }

    fn reasoning(
        &mut self,
        event: &Value,
        at: u64,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let text = delta(event);
        if text.is_empty() {
            return Ok(());
        }
        allowance.take(text.len())?;
        // Summaries come in parts, each a paragraph of its own.
        let part = (at, event.get("summary_index").and_then(Value::as_u64).unwrap_or(0));
        let parted = self.summary_part.replace(part).is_some_and(|before| before != part);
        out.push_back(StreamEvent::Reasoning(if parted { format!("\n\n{text}") } else { text.to_owned() }));
        Ok(())
    }

    /// A new item: a function call is announced with its name.
    fn added(
        &mut self,
        item: &Value,
        at: u64,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        if text_of(item, "type") != "function_call" || self.calls.iter().any(|slot| slot.at == at) {
            return Ok(());
        }
        allowance.tool_call(self.calls.len())?;
        let id = match text_of(item, "call_id") {
            "" => format!("call_{}", Uuid::now_v7().simple()),
            id => id.to_owned(),
        };
        let call = ToolCall::new(id, text_of(item, "name"), text_of(item, "arguments"));
        allowance.take(call.name.len() + call.arguments.len())?;
        out.push_back(StreamEvent::ToolCallStarted { id: call.id.clone(), name: call.name.clone() });
        self.calls.push(Slot { at, call });
        Ok(())
    }

    /// A complete item.
    fn item(
        &mut self,
        item: &Value,
        at: u64,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        if self.given.contains(&at) {
            return Ok(());
        }
        match text_of(item, "type") {
            "function_call" => {
                // A server that announces nothing sends the call only here.
                self.added(item, at, allowance, out)?;
                if let Some(slot) = self.calls.iter_mut().find(|slot| slot.at == at) {
                    let whole = text_of(item, "arguments");
                    if !whole.is_empty() {
                        allowance.take(whole.len().saturating_sub(slot.call.arguments.len()))?;
                        slot.call.arguments = whole.to_owned();
                    }
                    self.given.push(at);
                    self.had_calls = true;
                    out.push_back(StreamEvent::ToolCall(complete(&slot.call)));
                }
            }
            "reasoning" => {
                let data = text_of(item, "encrypted_content");
                if !data.is_empty() {
                    allowance.take(data.len())?;
                    self.given.push(at);
                    let summary: Vec<&str> = item["summary"]
                        .as_array()
                        .map(|parts| parts.iter().map(|part| text_of(part, "text")).collect())
                        .unwrap_or_default();
                    out.push_back(StreamEvent::ReasoningBlock(ReasoningBlock::Encrypted {
                        id: text_of(item, "id").to_owned(),
                        text: summary.join("\n\n"),
                        data: data.to_owned(),
                    }));
                }
            }
            // The text of a message has been streamed, unless the server does not stream.
            "message" if !self.said_text => {
                for part in item["content"].as_array().into_iter().flatten() {
                    self.text(text_of(part, "text"), allowance, out)?;
                    self.text(text_of(part, "refusal"), allowance, out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end_with(
        &mut self,
        response: &Value,
        allowance: &mut Allowance,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ModelError> {
        let status = text_of(response, "status");
        if status == "failed" || response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failed(response));
        }
        for (at, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            self.item(item, at as u64, allowance, out)?;
        }
        // Calls whose end was never said.
        for slot in &self.calls {
            if !self.given.contains(&slot.at) {
                self.had_calls = true;
                out.push_back(StreamEvent::ToolCall(complete(&slot.call)));
            }
        }
        if let Some(usage) = response.get("usage").and_then(read_usage) {
            out.push_back(StreamEvent::Usage(usage));
        }
        let reason = match (status, response.pointer("/incomplete_details/reason").and_then(Value::as_str)) {
            ("incomplete", Some("max_output_tokens" | "max_tokens")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete" | "cancelled", _) => FinishReason::Other,
            _ if self.had_calls => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        };
        self.done = true;
        out.push_back(StreamEvent::Finish(reason));
        Ok(())
    }
}

fn complete(call: &ToolCall) -> ToolCall {
    let mut call = call.clone();
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    call
}

fn failed(response: &Value) -> ModelError {
    match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => classify::from_value(None, &serde_json::json!({ "error": error })),
        None => ModelError::new(
            ModelErrorCode::ProviderError,
            "The provider says that the answer failed and gives no reason.",
        ),
    }
}

fn delta(event: &Value) -> &str {
    text_of(event, "delta")
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
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
    use crate::wire::{Usage, WireLimits};

    fn decode(events: &[Value]) -> Result<Vec<StreamEvent>, ModelError> {
        let mut decoder = Decoder::default();
        let mut allowance = Allowance::new(&WireLimits::default());
        let mut out = VecDeque::new();
        for event in events {
            decoder.data(&event.to_string(), &mut allowance, &mut out)?;
        }
        Ok(out.into())
    }

    fn ended(status: &str, more: Value) -> Value {
        let mut response = json!({ "object": "response", "status": status, "error": null, "output": [] });
        response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "type": format!("response.{status}"), "response": response })
    }

    #[test]
    fn parallel_calls_keep_their_places_and_their_arguments() {
        let call = |at: u64, id: &str| {
            json!({ "type": "response.output_item.added", "output_index": at,
                "item": { "type": "function_call", "id": "fc", "call_id": id, "name": "f", "arguments": "" } })
        };
        let piece = |at: u64, text: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": at, "delta": text });
        let done = |at: u64, id: &str, arguments: &str| {
            json!({ "type": "response.output_item.done", "output_index": at,
                "item": { "type": "function_call", "call_id": id, "name": "f", "arguments": arguments } })
        };
        let events = decode(&[
            call(0, "a"),
            call(1, "b"),
            piece(0, "{\"x\""),
            piece(1, "{}"),
            piece(0, ":1}"),
            done(0, "a", "{\"x\":1}"),
            done(1, "b", ""),
            ended("completed", json!({ "usage": { "input_tokens": 9, "input_tokens_details": { "cached_tokens": 4 }, "output_tokens": 7, "output_tokens_details": { "reasoning_tokens": 5 }, "total_tokens": 16 } })),
        ])
        .unwrap();
        assert_eq!(
            events[2..],
            [
                StreamEvent::ToolCall(ToolCall::new("a", "f", "{\"x\":1}")),
                StreamEvent::ToolCall(ToolCall::new("b", "f", "{}")),
                StreamEvent::Usage(Usage {
                    input_tokens: 9,
                    output_tokens: 7,
                    reasoning_tokens: Some(5),
                    cached_input_tokens: Some(4)
                }),
                StreamEvent::Finish(FinishReason::ToolCalls),
            ]
        );
    }

    #[test]
    fn every_end_has_its_reason() {
        let reason = |event: Value| decode(&[event]).unwrap().pop().unwrap();
        let incomplete = |why: &str| ended("incomplete", json!({ "incomplete_details": { "reason": why } }));
        assert_eq!(reason(incomplete("max_output_tokens")), StreamEvent::Finish(FinishReason::Length));
        assert_eq!(reason(incomplete("content_filter")), StreamEvent::Finish(FinishReason::ContentFilter));
        assert_eq!(reason(ended("completed", json!({}))), StreamEvent::Finish(FinishReason::Stop));
        let error = |event: Value| decode(&[event]).unwrap_err().code;
        assert_eq!(
            error(ended("failed", json!({ "error": { "code": "rate_limit_exceeded", "message": "slow down" } }))),
            ModelErrorCode::RateLimited
        );
        assert_eq!(error(ended("failed", json!({}))), ModelErrorCode::ProviderError);
        assert_eq!(
            error(json!({ "type": "error", "code": "server_error", "message": "boom", "param": null })),
            ModelErrorCode::ProviderError
        );
    }

    #[test]
    fn paragraphs_of_a_summary_stay_apart_and_the_sealed_reasoning_is_kept() {
        let piece = |part: u64, text: &str| json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": text });
        let events = decode(&[
            piece(0, "First"),
            piece(0, " thought."),
            piece(1, "Second."),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "reasoning", "id": "rs_1",
                "summary": [{ "type": "summary_text", "text": "First thought." }, { "type": "summary_text", "text": "Second." }], "encrypted_content": "enc" } }),
        ])
        .unwrap();
        let text: String = events
            .iter()
            .filter_map(|event| if let StreamEvent::Reasoning(text) = event { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(text, "First thought.\n\nSecond.");
        assert_eq!(
            events.last(),
            Some(&StreamEvent::ReasoningBlock(ReasoningBlock::Encrypted {
                id: "rs_1".into(),
                text: "First thought.\n\nSecond.".into(),
                data: "enc".into()
            }))
        );
    }

    #[test]
    fn a_whole_response_is_read_like_a_streamed_one() {
        let whole = json!({ "object": "response", "status": "completed", "output": [
            { "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] },
            { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" },
        ] });
        let events = decode(&[whole]).unwrap();
        assert_eq!(events.first(), Some(&StreamEvent::Text("Hi".into())));
        assert_eq!(
            events[2..],
            [StreamEvent::ToolCall(ToolCall::new("c", "f", "{}")), StreamEvent::Finish(FinishReason::ToolCalls)]
        );
    }
}
