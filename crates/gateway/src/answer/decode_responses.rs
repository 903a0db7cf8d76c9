//! Reads Responses: events and whole answers. Only clients of the same interface get them, as they
//! came, so what is read here is how much came, how it ended and what it cost.

use serde::Deserialize;
use serde_json::Value;
use tale_models::ModelError;

use super::{Decoder, Finish, Piece, Tokens, foreign};
use crate::json::{field, fields};

#[derive(Debug, Default)]
pub(super) struct State {
    /// The id of the response.
    pub(super) id: Option<String>,
    /// Items whose pieces were counted, by their place.
    counted: Vec<u64>,
    /// Keep the response that the last event brings, for a client that does not stream.
    pub(super) keep: bool,
    /// That response.
    pub(super) whole: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    output_index: u64,
    delta: Option<Value>,
    item: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Response {
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    output: Vec<Value>,
    usage: Option<Usage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

pub(super) fn event(decoder: &mut Decoder, data: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let event: Event = serde_json::from_str(data).map_err(|_| foreign())?;
    let state = &mut decoder.responses;
    match event.kind.as_str() {
        "response.completed" | "response.incomplete" | "response.failed" => {
            let found = fields(data);
            let text = field(&found, "response").map(|range| &data[range.clone()]).ok_or_else(foreign)?;
            if state.keep {
                state.whole = Some(text.to_owned());
            }
            ended(decoder, text, out)?;
        }
        "response.created" => {
            let found = fields(data);
            let response = field(&found, "response").map_or("", |range| &data[range.clone()]);
            let within = fields(response);
            state.id = field(&within, "id").and_then(|range| serde_json::from_str(&response[range.clone()]).ok());
        }
        "response.output_item.done" if !state.counted.contains(&event.output_index) => {
            state.counted.push(event.output_index);
            out.extend(event.item.as_ref().map(|item| Piece::Further(bytes_of(item))).filter(counts));
        }
        "error" => return Err(failed(data)),
        kind if kind.starts_with("response.") => {
            // Pieces of all kinds: text, reasoning, refusals, arguments.
            if let Some(Value::String(delta)) = event.delta {
                if !state.counted.contains(&event.output_index) {
                    state.counted.push(event.output_index);
                }
                out.extend(Some(Piece::Further(delta.len())).filter(counts));
            }
        }
        // What is yet to come, such as `keepalive`; but not another wire.
        kind if kind.is_empty() || kind.starts_with("message_") || kind.starts_with("content_block_") => {
            return Err(failed(data));
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn document(decoder: &mut Decoder, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let value: Value = serde_json::from_str(text).map_err(|_| foreign())?;
    if value["object"] != "response" {
        return Err(failed(text));
    }
    ended(decoder, text, out)
}

fn ended(decoder: &mut Decoder, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let response: Response = serde_json::from_str(text).map_err(|_| foreign())?;
    if let Some(usage) = response.usage {
        decoder.tokens = Some(usage.into());
    }
    let status = response.status.unwrap_or_default();
    let error = response.error.filter(|error| !error.is_null());
    if error.is_some() || !matches!(status.as_str(), "completed" | "incomplete") {
        let error = error.unwrap_or_else(|| "The provider says that the answer failed and gives no reason.".into());
        return Err(ModelError::in_answer(&serde_json::json!({ "error": error })));
    }
    for (at, item) in (0..).zip(&response.output) {
        if !decoder.responses.counted.contains(&at) {
            out.extend(Some(Piece::Further(bytes_of(item))).filter(counts));
        }
    }
    decoder.finished = true;
    decoder.done = true;
    let reason = response.incomplete_details.and_then(|details| details.reason);
    let calls = response.output.iter().any(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call")));
    out.push(Piece::Finish(match reason.as_deref() {
        Some("content_filter") => Finish::Refusal,
        _ if status == "incomplete" => Finish::Length,
        _ if calls => Finish::Tools,
        _ => Finish::Stop,
    }));
    Ok(())
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let details = usage.input_tokens_details.unwrap_or_default();
        let input = usage.input_tokens.unwrap_or(0);
        Self {
            input,
            cached: details.cached_tokens.unwrap_or(0).min(input),
            cache_written: details.cache_write_tokens.unwrap_or(0).min(input),
            output: usage.output_tokens.unwrap_or(0),
            reasoning: usage.output_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
        }
    }
}

/// What the model wrote into an item.
fn bytes_of(item: &Value) -> usize {
    let texts = |list: &Value| -> usize {
        list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).map(str::len).sum()
    };
    let plain =
        ["arguments", "input", "name"].iter().filter_map(|name| item[*name].as_str()).map(str::len).sum::<usize>();
    plain + texts(&item["content"]) + texts(&item["summary"])
}

fn counts(piece: &Piece) -> bool {
    !matches!(piece, Piece::Further(0))
}

/// An error of the provider, or what is no answer of this wire.
fn failed(data: &str) -> ModelError {
    match serde_json::from_str::<Value>(data) {
        Ok(value) if value["error"].is_object() || value["error"].is_string() => ModelError::in_answer(&value),
        Ok(value) if value["type"] == "error" => ModelError::in_answer(&serde_json::json!({ "error": value })),
        _ => foreign(),
    }
}
