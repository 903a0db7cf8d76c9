//! Reads Anthropic messages: events and whole answers.

use serde::Deserialize;
use serde_json::Value;
use tale_models::ModelError;

use super::{Decoder, Finish, Piece, foreign, made_up};

#[derive(Debug, Default)]
pub(super) struct State {
    calls: usize,
    /// The blocks that are being written, by their index.
    open: Vec<(u64, Open)>,
}

#[derive(Debug)]
enum Open {
    /// A tool call, with the input that its first event held.
    Tool {
        slot: usize,
        input: Value,
        any: bool,
    },
    Other,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    message: Option<Message>,
    content_block: Option<Value>,
    delta: Option<Delta>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    usage: Option<Usage>,
    #[serde(default)]
    content: Vec<Value>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

pub(super) fn event(decoder: &mut Decoder, data: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let event: Event = serde_json::from_str(data).map_err(|_| foreign())?;
    match event.kind.as_str() {
        "message_start" => {
            let message = event.message.ok_or_else(foreign)?;
            begin(decoder, message.id, message.usage, out);
            for (at, block) in (0..).zip(&message.content) {
                whole_block(decoder, at, block, out);
            }
        }
        "content_block_start" => {
            start(decoder, event.index, event.content_block.as_ref().unwrap_or(&Value::Null), out);
        }
        "content_block_delta" => delta(decoder, event.index, event.delta.unwrap_or_default(), out),
        "content_block_stop" => stop(decoder, event.index, out),
        "message_delta" => {
            add_usage(decoder, event.usage);
            let delta = event.delta.unwrap_or_default();
            end(decoder, delta.stop_reason, delta.stop_sequence, out);
        }
        "message_stop" => decoder.done = true,
        "error" => return Err(ModelError::in_answer(&serde_json::json!({ "error": event.error }))),
        // `ping`, and what is yet to come.
        _ => {}
    }
    Ok(())
}

pub(super) fn document(decoder: &mut Decoder, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let value: Value = serde_json::from_str(text).map_err(|_| foreign())?;
    if value["type"] == "error" || value["error"].is_object() {
        return Err(ModelError::in_answer(&value));
    }
    if !value["content"].is_array() {
        return Err(foreign());
    }
    let message: Message = serde_json::from_value(value).map_err(|_| foreign())?;
    begin(decoder, message.id, message.usage, out);
    for (at, block) in (0..).zip(&message.content) {
        whole_block(decoder, at, block, out);
    }
    end(decoder, message.stop_reason, message.stop_sequence, out);
    Ok(())
}

fn begin(decoder: &mut Decoder, id: Option<String>, usage: Option<Usage>, out: &mut Vec<Piece>) {
    out.push(Piece::Begin(id.filter(|id| !id.is_empty()).unwrap_or_else(|| made_up("msg_"))));
    add_usage(decoder, usage);
}

/// Later numbers are totals and replace the earlier ones; what is left out stays.
fn add_usage(decoder: &mut Decoder, usage: Option<Usage>) {
    let Some(usage) = usage else { return };
    let mut tokens = decoder.tokens.unwrap_or_default();
    let uncached = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_written);
    let uncached = usage.input_tokens.unwrap_or(uncached);
    tokens.cached = usage.cache_read_input_tokens.unwrap_or(tokens.cached);
    tokens.cache_written = usage.cache_creation_input_tokens.unwrap_or(tokens.cache_written);
    tokens.input = uncached.saturating_add(tokens.cached).saturating_add(tokens.cache_written);
    tokens.output = usage.output_tokens.unwrap_or(tokens.output);
    decoder.tokens = Some(tokens);
}

fn whole_block(decoder: &mut Decoder, at: u64, block: &Value, out: &mut Vec<Piece>) {
    start(decoder, at, block, out);
    if let Some(signature) = block["signature"].as_str().filter(|text| !text.is_empty() && block["type"] == "thinking")
    {
        out.push(Piece::Signature(signature.to_owned()));
    }
    stop(decoder, at, out);
}

fn start(decoder: &mut Decoder, at: u64, block: &Value, out: &mut Vec<Piece>) {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let mut opened = Open::Other;
    match block["type"].as_str() {
        Some("text") => push_text(text("text"), out),
        Some("thinking") => push_reasoning(text("thinking"), out),
        Some("redacted_thinking") => out.push(Piece::Redacted(text("data"))),
        Some("tool_use") => {
            let slot = decoder.anthropic.calls;
            decoder.anthropic.calls += 1;
            let id = Some(text("id")).filter(|id| !id.is_empty()).unwrap_or_else(|| made_up("toolu_"));
            out.push(Piece::Tool { slot, id, name: text("name"), vendor: None });
            opened = Open::Tool { slot, input: block["input"].clone(), any: false };
        }
        _ => {}
    }
    decoder.anthropic.open.push((at, opened));
}

fn delta(decoder: &mut Decoder, at: u64, delta: Delta, out: &mut Vec<Piece>) {
    push_text(delta.text.unwrap_or_default(), out);
    push_reasoning(delta.thinking.unwrap_or_default(), out);
    if let Some(signature) = delta.signature.filter(|text| !text.is_empty()) {
        out.push(Piece::Signature(signature));
    }
    if let Some(text) = delta.partial_json.filter(|text| !text.is_empty())
        && let Some((_, Open::Tool { slot, any, .. })) =
            decoder.anthropic.open.iter_mut().rfind(|(index, _)| *index == at)
    {
        *any = true;
        out.push(Piece::Arguments { slot: *slot, text });
    }
}

fn stop(decoder: &mut Decoder, at: u64, out: &mut Vec<Piece>) {
    let Some(held) = decoder.anthropic.open.iter().rposition(|(index, _)| *index == at) else { return };
    if let (_, Open::Tool { slot, input, any: false }) = decoder.anthropic.open.swap_remove(held) {
        let text = if input.is_object() { input.to_string() } else { "{}".to_owned() };
        out.push(Piece::Arguments { slot, text });
    }
}

fn end(decoder: &mut Decoder, reason: Option<String>, sequence: Option<String>, out: &mut Vec<Piece>) {
    let Some(reason) = reason else { return };
    decoder.finished = true;
    out.push(Piece::Finish(match reason.as_str() {
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::Tools,
        "refusal" => Finish::Refusal,
        "stop_sequence" => Finish::Sequence(sequence.unwrap_or_default()),
        _ => Finish::Stop,
    }));
}

fn push_text(text: String, out: &mut Vec<Piece>) {
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
}

fn push_reasoning(text: String, out: &mut Vec<Piece>) {
    if !text.is_empty() {
        out.push(Piece::Reasoning(text));
    }
}
