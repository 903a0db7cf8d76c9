//! What a client asks for: read once, judged (MOD-110 … MOD-112), and written for the model that
//! answers.

mod form;
mod from_responses;
mod media;
mod pages;
mod responses;
mod same;
mod to_anthropic;
mod to_openai;

use memchr::memmem;
use serde_json::{Map, Value};
use tale_core::problem::{Code, Problem};
use tale_models::Capabilities;
use tale_models::wire::{ModelFacts, WireDialect};

use crate::json::{Field, field, fields};
use crate::wire::Wire;
use media::Media;

pub(crate) use from_responses::{REDACTED, SIGNED};
pub(crate) use responses::{Tool, ToolKind};
pub(crate) use to_anthropic::{CUSTOM_INPUT, VENDOR_DATA};
pub(crate) use to_openai::PLAIN_REASONING;

/// Output tokens that are allowed where neither the request nor the catalogue names a number.
const DEFAULT_CAP: u64 = 4_096;
/// Most answers to one request.
const MAX_ANSWERS: u64 = 8;
/// Longest field that a response repeats.
const MAX_ECHOED_BYTES: usize = 1_024;
/// Bytes of a prompt that are counted as one token: fewer than the tokens of every language are
/// long on average, so that the estimate is on the high side.
const BYTES_PER_TOKEN: u64 = 3;

/// A request of one of the interfaces.
#[derive(Debug)]
pub struct Request {
    wire: Wire,
    text: String,
    fields: Vec<Field>,
    model: String,
    stream: bool,
    usage_wanted: bool,
    cap: Option<u64>,
    answers: u64,
    tools: bool,
    media: Media,
}

/// What must be known about the model that answers.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    /// The wire it is called by.
    pub wire: Wire,
    /// The field names of the OpenAI format.
    pub dialect: WireDialect,
    /// The model.
    pub facts: &'a ModelFacts,
}

impl Request {
    /// Reads a body of the interface `wire`.
    ///
    /// # Errors
    /// `INVALID_BODY`, `MODEL_API_VENDOR_TOOL_UNSUPPORTED`.
    pub fn read(wire: Wire, body: Vec<u8>) -> Result<Self, Problem> {
        let request = Self::read_to_count(wire, body)?;
        if wire == Wire::Messages && request.cap.is_none() {
            return Err(Problem::invalid_field("max_tokens", "is required"));
        }
        Ok(request)
    }

    /// The same of a request whose prompt shall only be counted, and which need not bound an answer.
    ///
    /// # Errors
    /// As [`Request::read`].
    pub fn read_to_count(wire: Wire, body: Vec<u8>) -> Result<Self, Problem> {
        let text = String::from_utf8(body).map_err(|_| Problem::invalid_field("", "must be UTF-8"))?;
        form::judge(wire, &text)?;
        let fields = fields(&text);
        evading(wire, &fields)?;
        let whole = Whole { text: &text, fields: &fields };
        let get = |name| whole.get(name);
        let model = get("model").string()?.ok_or_else(|| Problem::invalid_field("model", "is required"))?;
        let stream = get("stream").boolean()?.unwrap_or(false);
        let messages = get(if wire == Wire::Responses { "input" } else { "messages" });
        let name = messages.name;
        let messages = messages.text.ok_or_else(|| Problem::invalid_field(name, "is required"))?;
        if !(messages.starts_with('[') || wire == Wire::Responses && messages.starts_with('"')) {
            return Err(Problem::invalid_field(name, "must be a list"));
        }
        let mut request = Self {
            wire,
            model,
            stream,
            usage_wanted: false,
            cap: None,
            answers: 1,
            tools: false,
            media: Media::default(),
            text: String::new(),
            fields: Vec::new(),
        };
        match wire {
            Wire::Chat => {
                for name in ["max_completion_tokens", "max_tokens"] {
                    request.cap = request.cap.or(get(name).positive()?);
                }
                request.answers = get("n").positive()?.unwrap_or(1);
                if request.answers > MAX_ANSWERS {
                    return Err(Problem::invalid_field("n", "must be at most 8"));
                }
                request.usage_wanted =
                    get("stream_options").value()?.is_some_and(|options| options["include_usage"] == Value::Bool(true));
                request.judge_openai(&whole)?;
            }
            Wire::Responses => {
                request.cap = get("max_output_tokens").positive()?;
                request.judge_responses(&whole, messages)?;
            }
            Wire::Messages => {
                request.cap = get("max_tokens").positive()?;
                request.judge_anthropic(&whole)?;
            }
        }
        request.media = Media::of(wire, messages)?;
        request.text = text;
        request.fields = fields;
        Ok(request)
    }

    fn judge_openai(&mut self, whole: &Whole<'_>) -> Result<(), Problem> {
        if whole.get("store").boolean()? == Some(true) {
            return Err(Problem::invalid_field("store", "must not be true: answers are not stored at the provider"));
        }
        service_tier(&whole.get("service_tier"), &["auto", "default"])?;
        if whole.get("web_search_options").given() {
            return Err(vendor_tool(
                "`web_search_options` makes the provider search the web, which is not offered here. Remove the field, or offer a function of your own.",
            ));
        }
        let modalities = whole.get("modalities").value()?;
        let audio = modalities.and_then(|list| list.as_array().map(|list| list.iter().any(|kind| kind == "audio")));
        if whole.get("audio").given() || audio == Some(true) {
            return Err(Problem::invalid_field("modalities", "must not ask for audio: answers are text"));
        }
        for (at, tool) in self.list_of(whole.get("tools"))?.iter().enumerate() {
            let kind = tool["type"].as_str().unwrap_or("function");
            if !matches!(kind, "function" | "custom") {
                return Err(vendor_tool(&format!(
                    "`tools.{at}` is a tool that the provider runs. Only tools of the types `function` and `custom` are offered here."
                )));
            }
        }
        self.tools |= whole.get("functions").given();
        Ok(())
    }

    fn judge_responses(&mut self, whole: &Whole<'_>, input: &str) -> Result<(), Problem> {
        for name in ["store", "background"] {
            if whole.get(name).boolean()? == Some(true) {
                return Err(Problem::invalid_field(name, "must not be true: answers are not stored"));
            }
        }
        for name in ["previous_response_id", "conversation", "prompt"] {
            if whole.get(name).given() {
                return Err(Problem::invalid_field(
                    name,
                    "is not offered: nothing is stored between calls, so send the whole conversation in `input`",
                ));
            }
        }
        service_tier(&whole.get("service_tier"), &["auto", "default"])?;
        let tools = whole.get("tools").value()?.unwrap_or_default();
        // What must be judged in the conversation has one of these words, or hides it.
        const WORDS: [&str; 3] = ["additional_tools", "item_reference", "\\u00"];
        let items = if WORDS.iter().any(|word| memmem::find(input.as_bytes(), word.as_bytes()).is_some()) {
            serde_json::from_str(input).map_err(|_| unreadable("input"))?
        } else {
            Value::Null
        };
        for (path, list) in responses::lists(&tools, &items) {
            self.tools |= responses::judge(&path, list)?;
        }
        for (at, item) in items.as_array().into_iter().flatten().enumerate() {
            if item["type"] == "item_reference" {
                return Err(Problem::invalid_field(
                    &format!("input.{at}"),
                    "must not refer to an item of an earlier answer, because none is stored: send the item itself",
                ));
            }
        }
        Ok(())
    }

    fn judge_anthropic(&mut self, whole: &Whole<'_>) -> Result<(), Problem> {
        service_tier(&whole.get("service_tier"), &["auto", "standard_only"])?;
        service_tier(&whole.get("speed"), &["standard"])?;
        for name in ["mcp_servers", "container"] {
            if whole.get(name).value()?.is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty())) {
                return Err(vendor_tool(&format!(
                    "`{name}` lets the provider run tools, which is not offered here. Remove the field."
                )));
            }
        }
        for (at, tool) in self.list_of(whole.get("tools"))?.iter().enumerate() {
            client_tool(&format!("tools.{at}"), tool)?;
        }
        // Tools that the conversation brings; what hides the word is read as well.
        let messages = whole.get("messages").text.unwrap_or_default();
        if ["tool_definition", "\\u00"].iter().any(|word| memmem::find(messages.as_bytes(), word.as_bytes()).is_some())
        {
            let list: Value = serde_json::from_str(messages).map_err(|_| unreadable("messages"))?;
            for tool in added_tools(&list) {
                client_tool("messages", tool)?;
                self.tools = true;
            }
        }
        Ok(())
    }

    /// The tools; whether there are any is remembered.
    fn list_of(&mut self, tools: Get<'_>) -> Result<Vec<Value>, Problem> {
        match tools.value()? {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                self.tools = !list.is_empty();
                Ok(list)
            }
            Some(_) => Err(Problem::invalid_field("tools", "must be a list")),
        }
    }

    /// The interface that was called.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The model as the client named it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The named model's provider and the provider's name of the model (MOD-107).
    #[must_use]
    pub fn reference(&self) -> Option<(&str, &str)> {
        self.model.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
    }

    /// Whether the answer shall be streamed.
    #[must_use]
    pub fn stream(&self) -> bool {
        self.stream
    }

    /// Whether a stream of the OpenAI format shall end with the usage.
    #[must_use]
    pub fn usage_wanted(&self) -> bool {
        self.usage_wanted
    }

    /// How many answers are asked for.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The prompt in tokens, estimated on the high side.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        let text = (self.text.len() as u64).saturating_sub(self.media.bytes);
        text.div_ceil(BYTES_PER_TOKEN) + self.media.tokens
    }

    /// The largest single answer in tokens: the request's number, at most the model's own (MOD-117).
    #[must_use]
    pub fn cap(&self, facts: &ModelFacts) -> u64 {
        let most = facts.max_output_tokens.map(u64::from);
        let wanted = self.cap.or(most).unwrap_or(DEFAULT_CAP);
        most.map_or(wanted, |most| wanted.min(most))
    }

    /// The limit to send: a model's own largest answer need not be said where it may be left out, and
    /// said it could be more than fits beside the prompt.
    fn stated_cap(&self, facts: &ModelFacts) -> Option<u64> {
        (self.cap.is_some() || facts.max_output_tokens.is_none()).then(|| self.cap(facts))
    }

    /// Refuses what the model cannot do.
    ///
    /// # Errors
    /// `MODEL_API_VISION_UNSUPPORTED`, `MODEL_API_TOOLS_UNSUPPORTED`.
    pub fn judge(&self, capabilities: Capabilities) -> Result<(), Problem> {
        if self.media.images && !capabilities.vision {
            return Err(Problem::new(
                Code::ModelApiVisionUnsupported,
                format!("{} cannot see images. Remove them, or choose a model that can.", self.model),
            ));
        }
        if self.tools && !capabilities.tools {
            return Err(Problem::new(
                Code::ModelApiToolsUnsupported,
                format!("{} cannot call tools. Remove `tools`, or choose a model that can.", self.model),
            ));
        }
        Ok(())
    }

    /// The body of the call of `upstream`.
    ///
    /// # Errors
    /// `INVALID_BODY` for what the other wire has no place for.
    pub fn body_for(&self, upstream: &Upstream<'_>) -> Result<Vec<u8>, Problem> {
        if self.wire == upstream.wire {
            return same::body(self, upstream);
        }
        let value: Value = serde_json::from_str(&self.text).map_err(|_| unreadable(""))?;
        let mut body = match (self.wire, upstream.wire) {
            (Wire::Responses, Wire::Messages) => from_responses::messages(&value, self, upstream)?,
            (Wire::Responses, _) => from_responses::completions(&value, self, upstream)?,
            (_, Wire::Messages) => to_anthropic::body(&value, self, upstream)?,
            (_, Wire::Chat) => to_openai::body(&value, self, upstream)?,
            (_, Wire::Responses) => {
                let why = format!("{} is called through OpenAI's Responses interface only.", self.model);
                return Err(Problem::invalid_field("model", &why));
            }
        };
        for (key, value) in upstream.facts.extra_body.fields() {
            body.entry(key).or_insert(value);
        }
        serde_json::to_vec(&body).map_err(Problem::internal)
    }

    /// The body that has a provider of the Anthropic format count the prompt.
    pub(crate) fn body_to_count(&self, facts: &ModelFacts) -> Vec<u8> {
        same::body_to_count(self, facts)
    }

    /// The fields that a response repeats, as far as they are small.
    pub(crate) fn echoed(&self, upstream: Wire) -> Map<String, Value> {
        const FIELDS: [&str; 6] =
            ["max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "tool_choice", "top_p"];
        if self.wire != Wire::Responses || self.wire == upstream {
            return Map::new();
        }
        let small = |name: &str| {
            let text = field(&self.fields, name).map(|range| &self.text[range.clone()])?;
            let value = serde_json::from_str(text).ok().filter(|_| text.len() <= MAX_ECHOED_BYTES)?;
            Some((name.to_owned(), value))
        };
        FIELDS.into_iter().filter_map(small).collect()
    }

    /// The tools whose calls the client wants in another form than the model of `upstream` writes them.
    pub(crate) fn special_tools(&self, upstream: Wire) -> Vec<Tool> {
        if self.wire == upstream || self.wire == Wire::Messages || !self.tools {
            return Vec::new();
        }
        let list = |name| {
            let text = field(&self.fields, name).map(|range| &self.text[range.clone()]);
            text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default()
        };
        let tools = list("tools");
        if self.wire == Wire::Responses {
            let brings = ["additional_tools", "\\u00"]
                .iter()
                .any(|word| memmem::find(self.text.as_bytes(), word.as_bytes()).is_some());
            let input = if brings { list("input") } else { Value::Null };
            let all = responses::declared(&tools, &input).unwrap_or_default();
            let plain = |tool: &Tool| tool.kind == ToolKind::Function && tool.name == tool.flat;
            return all.into_iter().map(|one| one.tool).filter(|tool| !plain(tool)).collect();
        }
        let custom = tools.as_array().into_iter().flatten().filter(|tool| tool["type"] == "custom");
        let names = custom.filter_map(|tool| tool["custom"]["name"].as_str());
        let tool = |name: &str| Tool { flat: name.into(), name: name.into(), namespace: None, kind: ToolKind::Custom };
        names.map(tool).collect()
    }
}

/// Refuses a tool of the Anthropic interface that the provider would run.
fn client_tool(path: &str, tool: &Value) -> Result<(), Problem> {
    const CLIENT_TOOLS: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];
    let kind = tool["type"].as_str().unwrap_or("custom");
    if kind == "custom" || CLIENT_TOOLS.iter().any(|prefix| kind.starts_with(prefix)) {
        return Ok(());
    }
    Err(vendor_tool(&format!(
        "`{path}` is a tool that the provider runs. Tools of your own and `bash`, `text_editor`, `computer` and `memory` are offered here."
    )))
}

/// Tools that messages of the Anthropic interface define in the middle of a conversation.
fn added_tools(messages: &Value) -> impl Iterator<Item = &Value> {
    let blocks =
        messages.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array()).flatten();
    blocks
        .filter(|block| block["type"] == "tool_addition" && block["tool"]["type"] == "tool_definition")
        .map(|block| &block["tool"]["definition"])
}

/// The body, by its fields.
struct Whole<'a> {
    text: &'a str,
    fields: &'a [Field],
}

impl<'a> Whole<'a> {
    fn get(&self, name: &'static str) -> Get<'a> {
        Get { name, text: field(self.fields, name).map(|range| &self.text[range.clone()]) }
    }
}

/// One field of the body.
struct Get<'a> {
    name: &'static str,
    text: Option<&'a str>,
}

impl Get<'_> {
    fn value(&self) -> Result<Option<Value>, Problem> {
        let value: Option<Value> =
            self.text.map(serde_json::from_str).transpose().map_err(|_| unreadable(self.name))?;
        Ok(value.filter(|value| !value.is_null()))
    }

    fn given(&self) -> bool {
        self.text.is_some_and(|text| text != "null")
    }

    fn string(&self) -> Result<Option<String>, Problem> {
        match self.value()? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::invalid_field(self.name, "must be a string")),
        }
    }

    fn boolean(&self) -> Result<Option<bool>, Problem> {
        match self.value()? {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(Problem::invalid_field(self.name, "must be true or false")),
        }
    }

    fn positive(&self) -> Result<Option<u64>, Problem> {
        match self.value()? {
            None => Ok(None),
            Some(value) => value
                .as_u64()
                .filter(|number| (1..=u64::from(u32::MAX)).contains(number))
                .map(Some)
                .ok_or_else(|| Problem::invalid_field(self.name, "must be a whole number from 1 to 4294967295")),
        }
    }
}

/// JSON by its grammar that holds no value: half of a surrogate pair, a number beyond every range, lists a
/// hundred deep.
fn unreadable(path: &str) -> Problem {
    Problem::invalid_field(path, "holds a broken character, a number out of range, or too many nested lists")
}

/// Fields by which a provider takes another model, another address, tools of its own or another limit than
/// was judged and held here.
const ROUTING: [&str; 8] =
    ["models", "route", "routing", "fallbacks", "fallback_models", "api_base", "base_url", "api_key"];
const TOOLS_OF_PROVIDERS: [&str; 3] = ["plugins", "search_parameters", "web_search"];
const OTHER_LIMITS: [&str; 6] = ["max_new_tokens", "max_length", "num_predict", "n_predict", "best_of", "num_ctx"];

/// Refuses fields that would undo what was judged.
fn evading(wire: Wire, fields: &[Field]) -> Result<(), Problem> {
    for Field { name, .. } in fields {
        // no field of either interface has capitals, and some servers do not tell them apart
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(Problem::invalid_field(name, "is not a known field: names have no capital letters"));
        }
        if ROUTING.contains(&name.as_str()) {
            return Err(Problem::invalid_field(name, "is not offered: a call goes to the one model that it names"));
        }
        let of_responses = name == "max_output_tokens";
        let of_others = matches!(name.as_str(), "max_tokens" | "max_completion_tokens" | "n");
        let other = if wire == Wire::Responses { of_others } else { of_responses };
        if other || OTHER_LIMITS.contains(&name.as_str()) {
            let own = if wire == Wire::Responses {
                "`max_output_tokens` bounds"
            } else {
                "`max_completion_tokens`, `max_tokens` and `n` bound"
            };
            return Err(Problem::invalid_field(name, &format!("is not offered: {own} an answer")));
        }
        if TOOLS_OF_PROVIDERS.contains(&name.as_str()) {
            return Err(vendor_tool(&format!(
                "`{name}` makes the provider run tools, which is not offered here. Remove the field, or offer a function of your own."
            )));
        }
    }
    Ok(())
}

fn service_tier(field: &Get<'_>, offered: &[&str]) -> Result<(), Problem> {
    match field.string()? {
        Some(tier) if !offered.contains(&tier.as_str()) => {
            let list = offered.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            Err(Problem::invalid_field(field.name, &format!("must be one of {list}")))
        }
        _ => Ok(()),
    }
}

fn vendor_tool(sentence: &str) -> Problem {
    Problem::new(Code::ModelApiVendorToolUnsupported, sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(wire: Wire, body: Value) -> Option<Code> {
        Request::read(wire, body.to_string().into_bytes()).err().map(|problem| problem.code)
    }

    #[test]
    fn what_is_not_offered_is_refused() {
        let openai = |extra: Value| {
            let mut body = json!({ "model": "p/m", "messages": [{ "role": "user", "content": "hi" }] });
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            code(Wire::Chat, body)
        };
        let part = |part: Value| json!({ "messages": [{ "role": "user", "content": [part] }] });
        for body in [
            json!({ "n": 9 }),
            json!({ "n": 0 }),
            json!({ "store": true }),
            json!({ "service_tier": "priority" }),
            json!({ "modalities": ["text", "audio"] }),
            json!({ "max_tokens": -1 }),
            json!({ "messages": "hi" }),
            json!({ "model": 7 }),
            json!({ "models": ["p/other"], "route": "fallback" }),
            json!({ "api_base": "http://169.254.169.254" }),
            json!({ "Model": "secret" }),
            json!({ "max_output_tokens": 5 }),
            part(json!({ "type": "file", "file": { "file_id": "file-1" } })),
            part(json!({ "type": "input_audio", "input_audio": { "data": "", "format": "wav" } })),
            part(json!({ "type": "image_url", "image_url": { "url": "http://10.0.0.1/a.png" } })),
            part(json!({ "type": "video_url", "video_url": { "url": "https://a.test/a.mp4" } })),
            part(json!({ "type": "file", "file": { "file_data": "http://10.0.0.1/a.pdf" } })),
        ] {
            assert_eq!(openai(body.clone()), Some(Code::InvalidBody), "{body}");
        }
        for body in [
            json!({ "web_search_options": {} }),
            json!({ "plugins": [] }),
            json!({ "tools": [{ "type": "web_search" }] }),
        ] {
            assert_eq!(openai(body.clone()), Some(Code::ModelApiVendorToolUnsupported), "{body}");
        }
        for body in [
            json!({ "n": 8 }),
            json!({ "store": false, "service_tier": "auto", "seed": u64::MAX, "unheard_of": { "a": 1 } }),
            json!({ "tools": [{ "type": "custom", "custom": { "name": "x" } }] }),
        ] {
            assert_eq!(openai(body.clone()), None, "{body}");
        }
        let anthropic = |extra: Value| {
            let mut body =
                json!({ "model": "p/m", "max_tokens": 5, "messages": [{ "role": "user", "content": "hi" }] });
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            code(Wire::Messages, body)
        };
        let block = |block: Value| json!({ "messages": [{ "role": "user", "content": [block] }] });
        for body in [
            json!({ "max_tokens": null }),
            json!({ "service_tier": "priority" }),
            block(json!({ "type": "image", "source": { "type": "file", "file_id": "f" } })),
            block(
                json!({ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "image", "source": { "type": "file", "file_id": "f" } }] }),
            ),
            block(json!({ "type": "document", "source": { "type": "file", "file_id": "f" } })),
            block(json!({ "type": "document", "source": { "type": "url", "url": "http://10.0.0.1/a.pdf" } })),
        ] {
            assert_eq!(anthropic(body.clone()), Some(Code::InvalidBody), "{body}");
        }
        for body in [
            json!({ "mcp_servers": [{ "url": "https://x" }] }),
            json!({ "container": "c" }),
            json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search" }] }),
            json!({ "tools": [{ "type": "code_execution_20250522", "name": "code_execution" }] }),
            json!({ "tools": [{ "type": "mcp_toolset" }] }),
            json!({ "messages": [{ "role": "system", "content": [{ "type": "tool_addition", "tool": {
                "type": "tool_definition", "definition": { "type": "web_search_20250305", "name": "web_search" } } }] }] }),
        ] {
            assert_eq!(anthropic(body.clone()), Some(Code::ModelApiVendorToolUnsupported), "{body}");
        }
        for body in [
            json!({ "mcp_servers": [], "service_tier": "standard_only" }),
            json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }, { "name": "own", "input_schema": {} }] }),
        ] {
            assert_eq!(anthropic(body.clone()), None, "{body}");
        }
        assert!(Request::read(Wire::Chat, b"{\"model\":\"a/b\",".to_vec()).is_err());
        assert!(Request::read(Wire::Chat, b"[]".to_vec()).is_err());
        assert!(Request::read(Wire::Chat, vec![b'"', 0xff, b'"']).is_err());
        for odd in [
            r#""temperature":1e999,"n":1e999"#.to_owned(),
            format!(r#""tools":{}{}"#, "[".repeat(200), "]".repeat(200)),
        ] {
            let body = format!(r#"{{"model":"p/m","messages":[],{odd}}}"#);
            let problem = Request::read(Wire::Chat, body.into_bytes()).unwrap_err();
            assert_eq!(problem.code, Code::InvalidBody, "{odd}");
        }
    }

    #[test]
    fn an_escaped_name_hides_nothing() {
        let body = br#"{"model":"p/m","messages":[{"role":"user","content":[{"type":"f\u0069le","file":{"file_\u0069d":"x"}}]}],"st\u006fre":true}"#;
        assert!(Request::read(Wire::Chat, body.to_vec()).is_err());
        let body = br#"{"model":"p/m","messages":[{"role":"user","content":[{"type":"f\u0069le","file":{"file_\u0069d":"x"}}]}]}"#;
        assert!(Request::read(Wire::Chat, body.to_vec()).is_err());
    }

    #[test]
    fn the_model_is_split_at_the_first_slash() {
        let read = |model: &str| {
            Request::read(Wire::Chat, json!({ "model": model, "messages": [] }).to_string().into_bytes()).unwrap()
        };
        assert_eq!(read("openrouter/meta/llama").reference(), Some(("openrouter", "meta/llama")));
        assert_eq!(read("gpt").reference(), None);
        assert_eq!(read("/gpt").reference(), None);
    }
}
