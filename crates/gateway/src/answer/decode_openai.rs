//! Reads chat completions: chunks and whole answers, which differ in one name only.

use serde::Deserialize;
use serde_json::Value;
use tale_models::ModelError;

use super::{Decoder, Finish, Piece, Tokens, foreign, made_up};

#[derive(Debug)]
pub(super) struct State {
    begun: bool,
    answers: u64,
    ended: u64,
    /// Whether a choice has come.
    choices: bool,
    slots: Vec<Slot>,
    refused: bool,
}

impl State {
    pub(super) fn new(answers: u64) -> Self {
        Self { begun: false, answers, ended: 0, choices: false, slots: Vec::new(), refused: false }
    }

    /// Whether an answer has come to its end.
    pub(super) fn ended(&self) -> bool {
        self.ended > 0
    }
}

/// A tool call while its pieces arrive.
#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    id: String,
    announced: bool,
    /// Arguments that came before the name.
    early: String,
    vendor: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk {
    id: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
    x_groq: Option<Groq>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Groq {
    usage: Option<Usage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice {
    index: Option<u64>,
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ToolDelta>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ToolDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    extra_content: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's and Moonshot's names of the cached part.
    prompt_cache_hit_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Whether it says anything in the words of this wire.
    fn is_told(&self) -> bool {
        self.prompt_tokens.is_some() || self.completion_tokens.is_some()
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let details = usage.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens);
        let input = usage.prompt_tokens.unwrap_or(0);
        Self {
            input,
            cached: cached.unwrap_or(0).min(input),
            cache_written: details.cache_write_tokens.unwrap_or(0).min(input),
            output: usage.completion_tokens.unwrap_or(0),
            reasoning: usage.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
        }
    }
}

/// A whole answer, which has at least one choice.
pub(super) fn document(decoder: &mut Decoder, text: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    event(decoder, text, out)?;
    if decoder.openai.choices { Ok(()) } else { Err(foreign()) }
}

/// One chunk, or a whole answer.
pub(super) fn event(decoder: &mut Decoder, data: &str, out: &mut Vec<Piece>) -> Result<(), ModelError> {
    let chunk: Chunk = serde_json::from_str(data).map_err(|_| foreign())?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(ModelError::in_answer(&serde_json::json!({ "error": error })));
    }
    if chunk.choices.is_none() && !chunk.usage.as_ref().is_some_and(Usage::is_told) {
        return Err(foreign());
    }
    let state = &mut decoder.openai;
    if !state.begun {
        state.begun = true;
        let id = chunk.id.filter(|id| !id.is_empty());
        out.push(Piece::Begin(id.unwrap_or_else(|| made_up("chatcmpl-"))));
    }
    let mut usage = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage));
    for choice in chunk.choices.into_iter().flatten() {
        usage = usage.or(choice.usage);
        state.choices = true;
        let first = choice.index.unwrap_or(0) == 0;
        let delta = choice.delta.unwrap_or_default();
        if first {
            state.delta(delta, out);
        } else {
            further(delta, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            state.ended += 1;
            if first {
                state.end(&reason, out);
            }
        }
    }
    decoder.finished = state.ended >= state.answers;
    if let Some(usage) = usage {
        decoder.tokens = Some(usage.into());
    }
    Ok(())
}

impl State {
    fn delta(&mut self, delta: Delta, out: &mut Vec<Piece>) {
        let (text, thought) = delta.content.map(texts).unwrap_or_default();
        let named = delta.reasoning_content.or(delta.reasoning.map(|value| texts(value).0));
        let reasoning = named.filter(|text| !text.is_empty()).unwrap_or(thought);
        if !reasoning.is_empty() {
            out.push(Piece::Reasoning(reasoning));
        }
        if !text.is_empty() {
            out.push(Piece::Text(text));
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            out.push(Piece::Text(refusal));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
    }

    fn call(&mut self, call: ToolDelta, out: &mut Vec<Piece>) {
        let id = call.id.filter(|id| !id.is_empty());
        let function = call.function.unwrap_or_default();
        let name = function.name.filter(|name| !name.is_empty());
        let slot = self.slot_of(call.index, id.as_deref(), name.is_some());
        let at = slot.unwrap_or_else(|| {
            let id = id.unwrap_or_else(|| made_up("call_"));
            self.slots.push(Slot { index: call.index, id, announced: false, early: String::new(), vendor: None });
            self.slots.len() - 1
        });
        let held = &mut self.slots[at];
        held.vendor = call.extra_content.or(held.vendor.take());
        if let (false, Some(name)) = (held.announced, name) {
            held.announced = true;
            out.push(Piece::Tool { slot: at, id: held.id.clone(), name, vendor: held.vendor.take() });
            let early = std::mem::take(&mut held.early);
            if !early.is_empty() {
                out.push(Piece::Arguments { slot: at, text: early });
            }
        }
        // A few servers write the arguments as an object.
        let text = match function.arguments {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => return,
            Some(other) => other.to_string(),
        };
        if !text.is_empty() {
            if held.announced {
                out.push(Piece::Arguments { slot: at, text });
            } else {
                held.early.push_str(&text);
            }
        }
    }

    /// The call that a piece belongs to. Some servers number every call 0, some number none.
    fn slot_of(&self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        if let Some(id) = id
            && let Some(at) = self.slots.iter().rposition(|slot| slot.id == id)
        {
            return Some(at);
        }
        let at = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index)?,
            None => self.slots.len().checked_sub(1)?,
        };
        // Another id together with a name is another call.
        let other = id.is_some() && named && self.slots[at].announced;
        (!other && (index.is_some() || id.is_none() && !named)).then_some(at)
    }

    fn end(&mut self, reason: &str, out: &mut Vec<Piece>) {
        let called = !self.slots.is_empty();
        out.push(Piece::Finish(match reason {
            "length" | "max_tokens" => Finish::Length,
            "content_filter" => Finish::Refusal,
            "tool_calls" | "function_call" => Finish::Tools,
            // Some servers say "stop" although they call tools.
            _ if called => Finish::Tools,
            _ if self.refused => Finish::Refusal,
            _ => Finish::Stop,
        }));
    }
}

fn further(delta: Delta, out: &mut Vec<Piece>) {
    let mut bytes = delta.content.map_or(0, |content| texts(content).0.len());
    bytes += delta.reasoning_content.map_or(0, |text| text.len());
    for call in delta.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        bytes += function.name.map_or(0, |name| name.len());
        bytes += function.arguments.and_then(|text| text.as_str().map(str::len)).unwrap_or(0);
    }
    if bytes > 0 {
        out.push(Piece::Further(bytes));
    }
}

/// The text and the thinking of a content, which may be a string or a list of typed parts.
fn texts(content: Value) -> (String, String) {
    match content {
        Value::String(text) => (text, String::new()),
        Value::Array(parts) => {
            let (mut text, mut thought) = (String::new(), String::new());
            for part in parts {
                if part["type"] == "thinking" {
                    for piece in part["thinking"].as_array().into_iter().flatten() {
                        thought.push_str(piece["text"].as_str().unwrap_or_default());
                    }
                    thought.push_str(part["thinking"].as_str().unwrap_or_default());
                } else {
                    text.push_str(part["text"].as_str().unwrap_or_default());
                }
            }
            (text, thought)
        }
        _ => Default::default(),
    }
}
