//! An OpenAI chat-completions request for a model that speaks the Anthropic messages format.

use serde_json::{Map, Value, json};
use tale_core::problem::Problem;
use tale_models::wire::ThinkingStyle;

use super::{Request, Upstream};

/// The one field of a tool whose input is free text, which this format does not have.
pub(crate) const CUSTOM_INPUT: &str = "input";
/// Begins the data of a block that carries a vendor's own field of tool calls.
pub(crate) const VENDOR_DATA: &str = "tale-vendor:";

/// Smallest thinking budget.
const MIN_BUDGET: u64 = 1_024;

pub(super) fn body(whole: &Value, request: &Request, upstream: &Upstream<'_>) -> Result<Map<String, Value>, Problem> {
    if request.answers > 1 {
        return Err(Problem::invalid_field("n", "must be 1 with this model, which gives one answer at a time"));
    }
    if !whole["functions"].is_null() || !whole["function_call"].is_null() {
        return Err(Problem::invalid_field(
            "functions",
            "is the former name of `tools`: this model takes `tools` only",
        ));
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(upstream.facts.id));
    body.insert("max_tokens".to_owned(), json!(request.cap(upstream.facts)));
    let (mut system, messages) = conversation(&whole["messages"])?;
    if whole["response_format"]["type"] == "json_object" {
        system.push(json!({ "type": "text", "text": "Answer with one JSON object and nothing else." }));
    }
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }
    let in_loop_unsigned = loop_without_thinking(&messages);
    body.insert("messages".to_owned(), Value::Array(messages));
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    let forced = tools(whole, &mut body)?;
    thinking(whole, request, upstream, forced || in_loop_unsigned, &mut body);
    let thinks = body.contains_key("thinking");
    for name in ["temperature", "top_p"] {
        if let Some(value) = whole[name].as_f64().filter(|_| !thinks) {
            body.insert(name.to_owned(), json!(value.clamp(0.0, 1.0)));
        }
    }
    let stop: Vec<&str> = match &whole["stop"] {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // This format refuses stop sequences of white space only.
    let stop: Vec<&str> = stop.into_iter().filter(|text| !text.trim().is_empty()).collect();
    if !stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(stop));
    }
    if let Some(user) = whole["user"].as_str().or(whole["safety_identifier"].as_str()) {
        body.insert("metadata".to_owned(), json!({ "user_id": user }));
    }
    if whole["response_format"]["type"] == "json_schema" {
        let format = json!({ "type": "json_schema", "schema": whole["response_format"]["json_schema"]["schema"] });
        body.entry("output_config").or_insert_with(|| json!({}))["format"] = format;
    }
    Ok(body)
}

/// The system blocks and the messages. Roles alternate: neighbours of one role become one message.
fn conversation(messages: &Value) -> Result<(Vec<Value>, Vec<Value>), Problem> {
    let mut system = Vec::new();
    let mut list: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for (at, message) in messages.as_array().into_iter().flatten().enumerate() {
        let path = format!("messages.{at}");
        let content = &message["content"];
        let (role, blocks) = match message["role"].as_str() {
            Some("system" | "developer") => {
                system.extend(parts(&path, content)?);
                continue;
            }
            Some("user") => ("user", parts(&path, content)?),
            Some("assistant") => ("assistant", assistant(&path, message)?),
            Some("tool") => {
                let mut block = json!({ "type": "tool_result", "tool_use_id": message["tool_call_id"] });
                match content {
                    Value::String(text) if !text.is_empty() => block["content"] = json!(text),
                    Value::Array(_) => block["content"] = Value::Array(parts(&path, content)?),
                    _ => {}
                }
                ("user", vec![block])
            }
            _ => {
                let roles = "must be one of \"system\", \"developer\", \"user\", \"assistant\", \"tool\"";
                return Err(Problem::invalid_field(&format!("{path}.role"), roles));
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match list.last_mut() {
            Some((last, held)) if *last == role => held.extend(blocks),
            _ => list.push((role, blocks)),
        }
    }
    // White space at the end of a last message that is to be continued is refused.
    if let Some(("assistant", blocks)) = list.last_mut()
        && let Some(Value::String(text)) = blocks.last_mut().and_then(|block| block.get_mut("text"))
    {
        text.truncate(text.trim_end().len());
    }
    let messages = list.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    Ok((system, messages))
}

/// The blocks of a content, which is a string or a list of parts. Empty texts are refused by the format.
fn parts(path: &str, content: &Value) -> Result<Vec<Value>, Problem> {
    let list = match content {
        Value::String(text) => return Ok(text_block(text).into_iter().collect()),
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err(Problem::invalid_field(&format!("{path}.content"), "must be a string or a list of parts")),
    };
    let mut blocks = Vec::with_capacity(list.len());
    for (at, part) in list.iter().enumerate() {
        let path = format!("{path}.content.{at}");
        let mut block = match part["type"].as_str() {
            Some("text" | "input_text" | "output_text") => text_block(part["text"].as_str().unwrap_or_default()),
            Some("refusal") => text_block(part["refusal"].as_str().unwrap_or_default()),
            Some("image_url") => Some(image(&path, part["image_url"]["url"].as_str().unwrap_or_default())?),
            Some("file") => Some(document(&path, &part["file"])?),
            _ => {
                return Err(Problem::invalid_field(
                    &format!("{path}.type"),
                    "is no kind of part that this model reads",
                ));
            }
        };
        if let (Some(block), false) = (&mut block, part["cache_control"].is_null()) {
            block["cache_control"] = part["cache_control"].clone();
        }
        blocks.extend(block);
    }
    Ok(blocks)
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// `data:<type>;base64,<data>` as its two pieces.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.split_once(',')?;
    let head = head.get(5..).filter(|_| head[..5].eq_ignore_ascii_case("data:"))?;
    let kind = head.strip_suffix(";base64")?;
    Some((kind.split(';').next().unwrap_or(kind), data))
}

fn image(path: &str, url: &str) -> Result<Value, Problem> {
    if !url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:")) {
        return Ok(json!({ "type": "image", "source": { "type": "url", "url": url } }));
    }
    let (kind, data) =
        data_url(url).ok_or_else(|| Problem::invalid_field(path, "must be `data:<type>;base64,<data>`"))?;
    Ok(json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": data } }))
}

fn document(path: &str, file: &Value) -> Result<Value, Problem> {
    let held = file["file_data"].as_str().unwrap_or_default();
    // Some clients send the bare data.
    let (kind, data) = data_url(held).unwrap_or(("application/pdf", held));
    if data.is_empty() {
        return Err(Problem::invalid_field(&format!("{path}.file.file_data"), "is required"));
    }
    let mut block = if kind.starts_with("text/") {
        use base64::Engine as _;
        let text =
            base64::engine::general_purpose::STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text
            .ok_or_else(|| Problem::invalid_field(&format!("{path}.file.file_data"), "must be UTF-8 text in base64"))?;
        json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": text } })
    } else {
        json!({ "type": "document", "source": { "type": "base64", "media_type": kind, "data": data } })
    };
    if let Some(name) = file["filename"].as_str().filter(|name| !name.is_empty()) {
        block["title"] = json!(name);
    }
    Ok(block)
}

fn assistant(path: &str, message: &Value) -> Result<Vec<Value>, Problem> {
    // What an earlier answer gave for this purpose: signed thinking goes back as it came.
    let mut blocks: Vec<Value> = message["thinking_blocks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")))
        .cloned()
        .collect();
    blocks.extend(parts(path, &message["content"])?);
    blocks.extend(message["refusal"].as_str().and_then(text_block));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let (name, input) = if call["type"] == "custom" {
            (&call["custom"]["name"], json!({ CUSTOM_INPUT: call["custom"]["input"] }))
        } else {
            let text = call["function"]["arguments"].as_str().unwrap_or_default();
            (&call["function"]["name"], arguments(text))
        };
        blocks.push(json!({ "type": "tool_use", "id": call["id"], "name": name, "input": input }));
    }
    Ok(blocks)
}

/// Arguments as the object that this format wants. What is none travels inside one.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ "invalid_arguments": text }),
    }
}

/// Whether the model waits for tool results after a call that it made without thinking, or whose
/// thinking the client did not keep: thinking cannot begin in the middle of such a loop.
fn loop_without_thinking(messages: &[Value]) -> bool {
    let kind = |block: &Value, kinds: &[&str]| block["type"].as_str().is_some_and(|kind| kinds.contains(&kind));
    let any = |message: &Value, kinds: &[&str]| {
        message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| kind(block, kinds)))
    };
    let [.., asked, answered] = messages else { return false };
    any(answered, &["tool_result"]) && any(asked, &["tool_use"]) && !any(asked, &["thinking", "redacted_thinking"])
}

/// Declares the tools; whether the model is forced to call one.
fn tools(whole: &Value, body: &mut Map<String, Value>) -> Result<bool, Problem> {
    let mut choice = whole["tool_choice"].clone();
    let mut allowed: Option<Vec<String>> = None;
    if choice["type"] == "allowed_tools" {
        let inner = &choice["allowed_tools"];
        allowed = Some(inner["tools"].as_array().into_iter().flatten().filter_map(name_of).collect());
        choice = inner["mode"].clone();
    }
    let mut list = Vec::new();
    for (at, tool) in whole["tools"].as_array().into_iter().flatten().enumerate() {
        let name = name_of(tool).ok_or_else(|| Problem::invalid_field(&format!("tools.{at}"), "needs a name"))?;
        if allowed.as_ref().is_some_and(|names| !names.contains(&name)) {
            continue;
        }
        let (description, schema) = if tool["type"] == "custom" {
            let mut about = tool["custom"]["description"].as_str().unwrap_or_default().to_owned();
            if let Some(grammar) = tool["custom"]["format"]["grammar"]["definition"].as_str() {
                about.push_str("\n\nThe input must follow this grammar:\n");
                about.push_str(grammar);
            }
            let schema = json!({ "type": "object", "properties": { CUSTOM_INPUT: { "type": "string" } }, "required": [CUSTOM_INPUT] });
            (json!(about), schema)
        } else {
            let function = &tool["function"];
            let schema = Some(&function["parameters"]).filter(|schema| schema.is_object()).cloned();
            (function["description"].clone(), schema.unwrap_or_else(|| json!({ "type": "object" })))
        };
        let mut declared = json!({ "name": name, "input_schema": schema });
        if description.as_str().is_some_and(|text| !text.is_empty()) {
            declared["description"] = description;
        }
        if declared["input_schema"]["type"].is_null() {
            declared["input_schema"]["type"] = json!("object");
        }
        if !tool["cache_control"].is_null() {
            declared["cache_control"] = tool["cache_control"].clone();
        }
        list.push(declared);
    }
    if list.is_empty() {
        return Ok(false);
    }
    body.insert("tools".to_owned(), Value::Array(list));
    let mut wanted = match (&choice, name_of(&choice)) {
        (Value::String(word), _) if word == "required" => json!({ "type": "any" }),
        (Value::String(word), _) if word == "none" => json!({ "type": "none" }),
        (_, Some(name)) => json!({ "type": "tool", "name": name }),
        _ => json!({ "type": "auto" }),
    };
    let forced = matches!(wanted["type"].as_str(), Some("any" | "tool"));
    if whole["parallel_tool_calls"] == json!(false) && wanted["type"] != "none" {
        wanted["disable_parallel_tool_use"] = json!(true);
    }
    body.insert("tool_choice".to_owned(), wanted);
    Ok(forced)
}

fn name_of(tool: &Value) -> Option<String> {
    ["/function/name", "/custom/name"].iter().find_map(|at| tool.pointer(at)?.as_str()).map(str::to_owned)
}

/// Thinking for an effort. It cannot be combined with a forced tool.
fn thinking(whole: &Value, request: &Request, upstream: &Upstream<'_>, off: bool, body: &mut Map<String, Value>) {
    let effort = whole["reasoning_effort"].as_str().filter(|word| !matches!(*word, "none" | "minimal"));
    let Some(effort) = effort.filter(|_| upstream.facts.reasoning && !off) else { return };
    match upstream.facts.thinking {
        ThinkingStyle::Adaptive => {
            let word = match effort {
                "low" | "medium" | "high" => effort,
                _ => "max",
            };
            body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
            body.insert("output_config".to_owned(), json!({ "effort": word }));
        }
        ThinkingStyle::Budget => {
            let wanted = match effort {
                "low" => 2_048,
                "medium" => 8_192,
                "high" => 16_384,
                _ => 32_768,
            };
            // The budget is part of the cap, and something must be left for the answer.
            let budget = request.cap(upstream.facts).saturating_mul(3) / 4;
            if budget >= MIN_BUDGET {
                body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget.min(wanted) }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tale_models::wire::{ModelFacts, WireDialect};

    use super::*;
    use crate::wire::Wire;

    fn facts() -> ModelFacts {
        ModelFacts { id: "claude".into(), max_output_tokens: Some(8_000), reasoning: true, ..ModelFacts::default() }
    }

    fn translated(mut whole: Value) -> Result<Value, Problem> {
        whole["model"] = json!("p/claude");
        let request = Request::read(Wire::Chat, whole.to_string().into_bytes()).unwrap();
        let facts = facts();
        let upstream = Upstream { wire: Wire::Messages, dialect: WireDialect::Classic, facts: &facts };
        Ok(serde_json::from_slice(&request.body_for(&upstream)?).unwrap())
    }

    #[test]
    fn a_conversation_with_parallel_tools_and_media_loses_nothing() {
        let body = translated(json!({
            "messages": [
                { "role": "system", "content": "Be kind." },
                { "role": "user", "content": [
                    { "type": "text", "text": "Look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "image_url", "image_url": { "url": "https://x.test/a.png" } },
                    { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" } },
                    { "type": "file", "file": { "filename": "a.txt", "file_data": "data:text/plain;base64,aGk=" } },
                ] },
                { "role": "assistant", "content": null,
                  "thinking_blocks": [{ "type": "thinking", "thinking": "hm", "signature": "sig" }],
                  "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"q\":1}" } },
                    { "id": "b", "type": "custom", "custom": { "name": "g", "input": "free" } },
                    { "id": "c", "type": "function", "function": { "name": "f", "arguments": "oops" } },
                ] },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": [{ "type": "text", "text": "two" }] },
                { "role": "tool", "tool_call_id": "c", "content": "" },
                { "role": "user", "content": "Go on" },
                { "role": "developer", "content": "Be brief." },
            ],
            "tools": [
                { "type": "function", "function": { "name": "f", "description": "d", "parameters": { "type": "object", "properties": { "q": {} } }, "strict": true } },
                { "type": "custom", "custom": { "name": "g" } },
            ],
            "tool_choice": "auto", "parallel_tool_calls": false, "max_completion_tokens": 9_000,
            "stop": ["END", " "], "temperature": 1.5, "user": "u1",
        }))
        .unwrap();
        assert_eq!(
            body["system"],
            json!([{ "type": "text", "text": "Be kind." }, { "type": "text", "text": "Be brief." }])
        );
        assert_eq!(body["max_tokens"], 8_000);
        assert_eq!(body["temperature"], 1.0);
        assert_eq!(body["stop_sequences"], json!(["END"]));
        assert_eq!(body["metadata"], json!({ "user_id": "u1" }));
        assert_eq!(body["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
        assert_eq!(body["tools"][1]["input_schema"]["required"], json!(["input"]));
        assert_eq!(
            body["messages"],
            json!([
                { "role": "user", "content": [
                    { "type": "text", "text": "Look" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    { "type": "image", "source": { "type": "url", "url": "https://x.test/a.png" } },
                    { "type": "document", "title": "a.pdf", "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBE" } },
                    { "type": "document", "title": "a.txt", "source": { "type": "text", "media_type": "text/plain", "data": "hi" } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "sig" },
                    { "type": "tool_use", "id": "a", "name": "f", "input": { "q": 1 } },
                    { "type": "tool_use", "id": "b", "name": "g", "input": { "input": "free" } },
                    { "type": "tool_use", "id": "c", "name": "f", "input": { "invalid_arguments": "oops" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "one" },
                    { "type": "tool_result", "tool_use_id": "b", "content": [{ "type": "text", "text": "two" }] },
                    { "type": "tool_result", "tool_use_id": "c" },
                    { "type": "text", "text": "Go on" },
                ] },
            ])
        );
    }

    #[test]
    fn effort_becomes_thinking_where_thinking_can_be() {
        let hi = json!([{ "role": "user", "content": "hi" }]);
        let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
        let body = translated(json!({ "messages": hi, "reasoning_effort": "high", "temperature": 0.2 })).unwrap();
        assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 6_000 }));
        assert!(body["temperature"].is_null(), "thinking takes no temperature");
        let forced = json!({ "messages": hi, "reasoning_effort": "high", "tools": tools, "tool_choice": "required" });
        let body = translated(forced).unwrap();
        assert!(body["thinking"].is_null() && body["tool_choice"]["type"] == "any");
        let call = json!({ "role": "assistant", "tool_calls": [{ "id": "a", "function": { "name": "f", "arguments": "{}" } }] });
        let answered = json!([hi[0], call, { "role": "tool", "tool_call_id": "a", "content": "x" }]);
        let body = translated(json!({ "messages": answered, "reasoning_effort": "high", "tools": tools })).unwrap();
        assert!(body["thinking"].is_null(), "the thinking before the call is missing");
    }

    #[test]
    fn what_the_wire_has_no_place_for_is_said() {
        let hi = json!([{ "role": "user", "content": "hi" }]);
        for whole in [
            json!({ "messages": hi, "n": 2 }),
            json!({ "messages": hi, "functions": [{ "name": "f" }] }),
            json!({ "messages": [{ "role": "function", "name": "f", "content": "hi" }] }),
            json!({ "messages": [{ "role": "user", "content": [{ "type": "hologram" }] }] }),
        ] {
            assert!(translated(whole.clone()).is_err(), "{whole}");
        }
    }
}
