//! A Responses request for a model that speaks another wire: first as chat completions, whose form
//! holds everything that the wires share.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tale_core::problem::Problem;
use tale_models::wire::WireDialect;

use super::responses::{Declared, ToolKind, declared, flat_name};
use super::{CUSTOM_INPUT, PLAIN_REASONING, Request, Upstream, VENDOR_DATA, to_anthropic};

/// Begins the seal of a reasoning item whose summary another provider signed; the signature follows.
pub(crate) const SIGNED: &str = "tale-signed:";
/// Begins the seal of a reasoning item that another provider encrypted; its data follows.
pub(crate) const REDACTED: &str = "tale-redacted:";

/// The body for a model of Anthropic's wire.
pub(super) fn messages(
    whole: &Value,
    request: &Request,
    upstream: &Upstream<'_>,
) -> Result<Map<String, Value>, Problem> {
    to_anthropic::body(&Value::Object(chat(whole)?), request, upstream)
}

/// The body for a model of chat completions.
pub(super) fn completions(
    whole: &Value,
    request: &Request,
    upstream: &Upstream<'_>,
) -> Result<Map<String, Value>, Problem> {
    let facts = upstream.facts;
    let modern = upstream.dialect == WireDialect::OpenAiModern;
    let mut body = chat(whole)?;
    body.insert("model".to_owned(), json!(facts.id));
    if let Some(cap) = request.stated_cap(facts) {
        body.insert(if modern { "max_completion_tokens" } else { "max_tokens" }.to_owned(), json!(cap));
    }
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    if modern && facts.reasoning {
        body.remove("temperature");
        body.remove("top_p");
    }
    if facts.tools_require_no_reasoning && request.tools {
        body.insert("reasoning_effort".to_owned(), json!("none"));
    } else if !facts.reasoning {
        body.remove("reasoning_effort");
    } else if let Some(effort @ ("xhigh" | "max")) = body.get("reasoning_effort").and_then(Value::as_str) {
        let word = if facts.xhigh { effort } else { "high" };
        body.insert("reasoning_effort".to_owned(), json!(word));
    }
    if modern {
        for (name, value) in
            [("verbosity", &whole["text"]["verbosity"]), ("prompt_cache_key", &whole["prompt_cache_key"])]
        {
            if !value.is_null() {
                body.insert(name.to_owned(), value.clone());
            }
        }
    }
    if let Some(Value::Array(list)) = body.remove("messages") {
        body.insert("messages".to_owned(), Value::Array(plain(list)));
    }
    Ok(body)
}

/// The messages without what chat completions do not know: other providers' thinking, and images in
/// the results of tools, which follow in a message of the person.
fn plain(list: Vec<Value>) -> Vec<Value> {
    let (mut out, mut media): (Vec<Value>, Vec<Value>) = (Vec::with_capacity(list.len()), Vec::new());
    for mut message in list {
        let tool = message["role"] == "tool";
        if !tool && !media.is_empty() {
            out.push(json!({ "role": "user", "content": std::mem::take(&mut media) }));
        }
        if tool && message["content"].is_array() {
            let Value::Array(parts) = message["content"].take() else { continue };
            let (text, other): (Vec<Value>, Vec<Value>) = parts.into_iter().partition(|part| part["type"] == "text");
            if !other.is_empty() {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                media.push(json!({ "type": "text", "text": format!("Attached to the result of the tool call {id}:") }));
                media.extend(other);
            }
            message["content"] = json!(texts(&Value::Array(text)));
        }
        if let Some(fields) = message.as_object_mut() {
            fields.remove("thinking_blocks");
        }
        out.push(message);
    }
    if !media.is_empty() {
        out.push(json!({ "role": "user", "content": media }));
    }
    out
}

/// The request as chat completions, with the thinking of Anthropic's models beside the messages.
fn chat(whole: &Value) -> Result<Map<String, Value>, Problem> {
    let tools = declared(&whole["tools"], &whole["input"])?;
    let mut body = Map::new();
    let named =
        tools.iter().map(|one| ((one.tool.name.as_str(), one.tool.namespace.as_deref()), one.tool.flat.as_str()));
    let mut talk = Talk { names: named.collect(), list: Vec::new(), calls: HashMap::new(), turn: Turn::default() };
    talk.system(texts(&whole["instructions"]));
    match &whole["input"] {
        Value::String(text) => talk.push(json!({ "role": "user", "content": text })),
        items => {
            for (at, item) in items.as_array().into_iter().flatten().enumerate() {
                talk.item(&format!("input.{at}"), item)?;
            }
        }
    }
    talk.end_turn();
    let messages = talk.list.into_iter().flat_map(|(message, results)| std::iter::once(message).chain(results));
    body.insert("messages".to_owned(), messages.collect());
    declare(whole, &tools, &mut body)?;
    for name in ["temperature", "top_p"] {
        if !whole[name].is_null() {
            body.insert(name.to_owned(), whole[name].clone());
        }
    }
    if let Some(effort) = whole["reasoning"]["effort"].as_str() {
        body.insert("reasoning_effort".to_owned(), json!(effort));
    }
    let format = &whole["text"]["format"];
    match format["type"].as_str() {
        Some("json_schema") => {
            let mut schema = json!({ "name": format["name"], "schema": format["schema"] });
            if !format["strict"].is_null() {
                schema["strict"] = format["strict"].clone();
            }
            body.insert("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": schema }));
        }
        Some("json_object") => {
            body.insert("response_format".to_owned(), json!({ "type": "json_object" }));
        }
        _ => {}
    }
    if let Some(user) = whole["user"].as_str().or(whole["safety_identifier"].as_str()) {
        body.insert("user".to_owned(), json!(user));
    }
    Ok(body)
}

/// Names of tools on the model's wire, by name and namespace.
type Names<'a> = HashMap<(&'a str, Option<&'a str>), &'a str>;

/// The conversation while it is read.
struct Talk<'a> {
    /// The tools' names on the model's wire, by those of the client.
    names: Names<'a>,
    /// The messages, each with the results of the calls that it holds.
    list: Vec<(Value, Vec<Value>)>,
    /// In which message a call is.
    calls: HashMap<String, usize>,
    turn: Turn,
}

/// What the assistant said since somebody else spoke: items here, one message there.
#[derive(Default)]
struct Turn {
    text: String,
    reasoning: String,
    thinking: Vec<Value>,
    calls: Vec<Value>,
    /// A vendor's own field of the next call.
    vendor: Value,
}

impl Talk<'_> {
    fn push(&mut self, message: Value) {
        self.list.push((message, Vec::new()));
    }

    /// System texts at the beginning are one message; later ones stay where they are.
    fn system(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        if let [(only, _)] = self.list.as_mut_slice()
            && only["role"] == "system"
            && let Some(Value::String(held)) = only.get_mut("content")
        {
            held.push_str("\n\n");
            held.push_str(&text);
            return;
        }
        self.push(json!({ "role": "system", "content": text }));
    }

    fn item(&mut self, path: &str, item: &Value) -> Result<(), Problem> {
        let kind = item["type"].as_str().or(item["role"].as_str().map(|_| "message")).unwrap_or_default();
        match kind {
            "message" => self.message(path, item)?,
            "reasoning" => self.turn.reasoning(item),
            "function_call" | "custom_tool_call" | "local_shell_call" => self.turn.call(&self.names, kind, item),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.output(path, item)?
            }
            // Its tools are declared with the others; a search of the past is in what was said after it.
            "additional_tools" | "web_search_call" => {}
            _ => {
                return Err(Problem::invalid_field(
                    &format!("{path}.type"),
                    "is no kind of item that this model reads",
                ));
            }
        }
        Ok(())
    }

    fn message(&mut self, path: &str, item: &Value) -> Result<(), Problem> {
        match item["role"].as_str() {
            Some("assistant") => {
                let said = texts(&item["content"]);
                if !(self.turn.text.is_empty() || said.is_empty()) {
                    self.turn.text.push_str("\n\n");
                }
                self.turn.text.push_str(&said);
            }
            Some("system" | "developer") => {
                self.end_turn();
                self.system(texts(&item["content"]));
            }
            Some("user") => {
                self.end_turn();
                let content = parts(path, &item["content"])?;
                let only_text = content.iter().all(|part| part["type"] == "text");
                // A plain string is understood by every server.
                let content = if only_text { json!(texts(&Value::Array(content))) } else { Value::Array(content) };
                self.push(json!({ "role": "user", "content": content }));
            }
            _ => {
                let roles = "must be one of \"user\", \"assistant\", \"system\", \"developer\"";
                return Err(Problem::invalid_field(&format!("{path}.role"), roles));
            }
        }
        Ok(())
    }

    /// A result stands behind the message that holds its call, whatever came between the two.
    fn output(&mut self, path: &str, item: &Value) -> Result<(), Problem> {
        self.end_turn();
        let id = Some(&item["call_id"]).filter(|id| id.is_string()).unwrap_or(&item["id"]);
        let content = match &item["output"] {
            Value::String(text) => json!(text),
            Value::Array(_) => {
                let parts = parts_of(&format!("{path}.output"), &item["output"])?;
                let only_text = parts.iter().all(|part| part["type"] == "text");
                if only_text { json!(texts(&Value::Array(parts))) } else { Value::Array(parts) }
            }
            Value::Null => json!(""),
            other => json!(other.to_string()),
        };
        let result = json!({ "role": "tool", "tool_call_id": id, "content": content });
        match id.as_str().and_then(|id| self.calls.get(id)) {
            Some(at) => self.list[*at].1.push(result),
            None => self.push(result),
        }
        Ok(())
    }

    fn end_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if turn.text.is_empty() && turn.calls.is_empty() {
            return;
        }
        let content = if turn.text.is_empty() { Value::Null } else { json!(turn.text) };
        let mut message = json!({ "role": "assistant", "content": content });
        if !(turn.reasoning.is_empty() || turn.calls.is_empty()) {
            message["reasoning_content"] = json!(turn.reasoning);
        }
        if !turn.thinking.is_empty() {
            message["thinking_blocks"] = Value::Array(turn.thinking);
        }
        if !turn.calls.is_empty() {
            let ids = turn.calls.iter().filter_map(|call| call["id"].as_str());
            self.calls.extend(ids.map(|id| (id.to_owned(), self.list.len())));
            message["tool_calls"] = Value::Array(turn.calls);
        }
        self.push(message);
    }
}

impl Turn {
    /// Reasoning goes back to the provider that gave it; what another one encrypted means nothing here.
    fn reasoning(&mut self, item: &Value) {
        let summary = item["summary"].as_array().into_iter().flatten();
        let text: String = summary.filter_map(|part| part["text"].as_str()).collect();
        let seal = item["encrypted_content"].as_str().unwrap_or_default();
        if seal == PLAIN_REASONING {
            self.reasoning.push_str(&text);
        } else if let Some(signature) = seal.strip_prefix(SIGNED) {
            self.thinking.push(json!({ "type": "thinking", "thinking": text, "signature": signature }));
        } else if let Some(data) = seal.strip_prefix(REDACTED) {
            self.thinking.push(json!({ "type": "redacted_thinking", "data": data }));
        } else if let Some(vendor) = seal.strip_prefix(VENDOR_DATA) {
            self.vendor = serde_json::from_str(vendor).unwrap_or_default();
        }
    }

    fn call(&mut self, names: &Names<'_>, kind: &str, item: &Value) {
        let (name, arguments) = match kind {
            "custom_tool_call" => (&item["name"], json!({ CUSTOM_INPUT: item["input"] }).to_string()),
            "local_shell_call" => (&Value::Null, shell_arguments(&item["action"])),
            _ => (&item["name"], item["arguments"].as_str().unwrap_or_default().to_owned()),
        };
        let (name, space) = (name.as_str().unwrap_or("local_shell"), item["namespace"].as_str());
        let name = names.get(&(name, space)).map_or_else(|| flat_name(space, name), |flat| (*flat).to_owned());
        let id = Some(&item["call_id"]).filter(|id| id.is_string()).unwrap_or(&item["id"]);
        let mut call = json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
        if !self.vendor.is_null() {
            call["extra_content"] = self.vendor.take();
        }
        self.calls.push(call);
    }
}

fn shell_arguments(action: &Value) -> String {
    let mut arguments = Map::new();
    for name in ["command", "working_directory", "timeout_ms"] {
        if !action[name].is_null() {
            arguments.insert(name.to_owned(), action[name].clone());
        }
    }
    Value::Object(arguments).to_string()
}

/// The texts of a string or of parts.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| part["text"].as_str().or(part["refusal"].as_str()).map(str::to_owned);
            parts.iter().filter_map(text).collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

fn parts(path: &str, content: &Value) -> Result<Vec<Value>, Problem> {
    match content {
        Value::String(text) => Ok(vec![json!({ "type": "text", "text": text })]),
        Value::Array(_) => parts_of(&format!("{path}.content"), content),
        _ => Err(Problem::invalid_field(&format!("{path}.content"), "must be a string or a list of parts")),
    }
}

fn parts_of(path: &str, content: &Value) -> Result<Vec<Value>, Problem> {
    let mut list = Vec::new();
    for (at, part) in content.as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.{at}");
        list.push(match part["type"].as_str() {
            Some("input_text" | "output_text" | "text") => {
                json!({ "type": "text", "text": part["text"].as_str().unwrap_or_default() })
            }
            Some("input_image") => {
                let mut image = json!({ "url": part["image_url"] });
                if let Some(detail) = part["detail"].as_str().filter(|detail| *detail != "auto") {
                    image["detail"] = json!(detail);
                }
                json!({ "type": "image_url", "image_url": image })
            }
            Some("input_file") => {
                if part["file_data"].as_str().is_none_or(str::is_empty) {
                    let why = "is required: this model reads documents that are in the request";
                    return Err(Problem::invalid_field(&format!("{path}.file_data"), why));
                }
                let name = part["filename"].as_str().unwrap_or("document.pdf");
                json!({ "type": "file", "file": { "filename": name, "file_data": part["file_data"] } })
            }
            _ => {
                return Err(Problem::invalid_field(
                    &format!("{path}.type"),
                    "is no kind of part that this model reads",
                ));
            }
        });
    }
    Ok(list)
}

/// Declares the tools, and whether the model has to call one.
fn declare(whole: &Value, tools: &[Declared<'_>], body: &mut Map<String, Value>) -> Result<(), Problem> {
    let mut choice = &whole["tool_choice"];
    let mut allowed: Option<Vec<&str>> = None;
    if choice["type"] == "allowed_tools" {
        let named = choice["tools"].as_array().into_iter().flatten();
        allowed = Some(named.filter_map(|tool| found(tools, tool)).collect());
        choice = &choice["mode"];
    }
    let kept = tools.iter().filter(|one| allowed.as_ref().is_none_or(|names| names.contains(&one.tool.flat.as_str())));
    let list: Vec<Value> = kept.map(function).collect();
    if list.is_empty() {
        return Ok(());
    }
    let wanted = match choice {
        Value::String(word) => json!(word),
        Value::Null => json!("auto"),
        one => {
            let name = found(tools, one)
                .ok_or_else(|| Problem::invalid_field("tool_choice", "must name one of the request's tools"))?;
            json!({ "type": "function", "function": { "name": name } })
        }
    };
    body.insert("tools".to_owned(), Value::Array(list));
    body.insert("tool_choice".to_owned(), wanted);
    if whole["parallel_tool_calls"] == json!(false) {
        body.insert("parallel_tool_calls".to_owned(), json!(false));
    }
    Ok(())
}

/// The tool that a choice names, by its name on the model's wire.
fn found<'a>(tools: &'a [Declared<'_>], choice: &Value) -> Option<&'a str> {
    let name = choice["name"].as_str().or(choice["type"].as_str())?;
    let space = choice["namespace"].as_str();
    let fits =
        |one: &&Declared<'_>| one.tool.name == name && (space.is_none() || one.tool.namespace.as_deref() == space);
    tools.iter().find(fits).map(|one| one.tool.flat.as_str())
}

/// A tool as a function, which every server knows.
fn function(one: &Declared<'_>) -> Value {
    let about = one.about;
    let mut description = about["description"].as_str().unwrap_or_default().to_owned();
    let parameters = match one.tool.kind {
        ToolKind::Function => Some(&about["parameters"]).filter(|schema| schema.is_object()).cloned(),
        ToolKind::Custom => {
            if let Some(grammar) = about["format"]["definition"].as_str() {
                description.push_str("\n\nThe input must follow this grammar:\n");
                description.push_str(grammar);
            }
            Some(
                json!({ "type": "object", "properties": { CUSTOM_INPUT: { "type": "string" } }, "required": [CUSTOM_INPUT] }),
            )
        }
        ToolKind::LocalShell => {
            "Runs a command on the user's machine.".clone_into(&mut description);
            Some(json!({ "type": "object", "required": ["command"], "properties": {
                "command": { "type": "array", "items": { "type": "string" }, "description": "The program and its arguments." },
                "working_directory": { "type": "string" },
                "timeout_ms": { "type": "integer", "description": "Milliseconds." },
            } }))
        }
    };
    let parameters = parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    let mut function = json!({ "name": one.tool.flat, "parameters": parameters });
    if !description.is_empty() {
        function["description"] = json!(description);
    }
    if about["strict"] == json!(true) {
        function["strict"] = json!(true);
    }
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use tale_models::wire::ModelFacts;

    use super::*;
    use crate::wire::Wire;

    fn translated(mut whole: Value, wire: Wire) -> Result<Value, Problem> {
        whole["model"] = json!("p/m");
        let request = Request::read(Wire::Responses, whole.to_string().into_bytes())?;
        let facts =
            ModelFacts { id: "m".into(), max_output_tokens: Some(900), reasoning: true, ..ModelFacts::default() };
        let upstream = Upstream { wire, dialect: WireDialect::Classic, facts: &facts };
        Ok(serde_json::from_slice(&request.body_for(&upstream)?).unwrap())
    }

    fn conversation() -> Value {
        let text = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
        json!({
            "instructions": "Be kind.",
            "input": [
                text("developer", "Be brief."),
                { "role": "user", "content": [
                    { "type": "input_text", "text": "Look" },
                    { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
                    { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" },
                ] },
                { "type": "reasoning", "id": "r1", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": PLAIN_REASONING },
                { "type": "reasoning", "id": "r2", "summary": [{ "type": "summary_text", "text": "so" }], "encrypted_content": "tale-signed:sig" },
                { "type": "reasoning", "id": "r3", "summary": [], "encrypted_content": "of another provider" },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }] },
                { "type": "reasoning", "id": "r4", "summary": [], "encrypted_content": "tale-vendor:{\"google\":1}" },
                { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"q\":1}" },
                { "type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "*** Begin" },
                { "type": "function_call", "call_id": "c", "name": "close", "namespace": "agents", "arguments": "{}" },
                { "type": "local_shell_call", "call_id": "d", "action": { "type": "exec", "command": ["ls"], "env": {} } },
                { "type": "function_call_output", "call_id": "a", "output": [
                    { "type": "input_text", "text": "one" }, { "type": "input_image", "image_url": "https://x.test/b.png" } ] },
                text("developer", "The mode changed."),
                { "type": "custom_tool_call_output", "call_id": "b", "output": "two" },
                { "type": "function_call_output", "call_id": "c", "output": "three" },
                { "type": "local_shell_call_output", "call_id": "d", "output": "four" },
                text("user", "Go on"),
            ],
            "tools": [
                { "type": "function", "name": "f", "description": "d", "parameters": { "type": "object" }, "strict": false },
                { "type": "custom", "name": "apply_patch", "format": { "type": "grammar", "syntax": "lark", "definition": "start: x" } },
                { "type": "namespace", "name": "agents", "tools": [{ "type": "function", "name": "close", "parameters": { "type": "object" } }] },
                { "type": "local_shell" },
                { "type": "web_search", "external_web_access": true },
            ],
            "tool_choice": "auto", "parallel_tool_calls": false, "max_output_tokens": 500, "temperature": 0.5, "stream": true,
            "reasoning": { "effort": "xhigh", "summary": "auto" }, "store": false, "include": ["reasoning.encrypted_content"],
            "text": { "verbosity": "low", "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true } },
            "prompt_cache_key": "k", "client_metadata": { "x": "y" },
        })
    }

    #[test]
    fn a_conversation_of_items_becomes_messages_and_loses_nothing() {
        let body = translated(conversation(), Wire::Chat).unwrap();
        let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
        let mut calls = json!([
            call("a", "f", "{\"q\":1}"),
            call("b", "apply_patch", "{\"input\":\"*** Begin\"}"),
            call("c", "agents__close", "{}"),
            call("d", "local_shell", "{\"command\":[\"ls\"]}"),
        ]);
        calls[0]["extra_content"] = json!({ "google": 1 });
        assert_eq!(
            body["messages"],
            json!([
                { "role": "system", "content": "Be kind.\n\nBe brief." },
                { "role": "user", "content": [
                    { "type": "text", "text": "Look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" } },
                ] },
                { "role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": calls },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": "two" },
                { "role": "tool", "tool_call_id": "c", "content": "three" },
                { "role": "tool", "tool_call_id": "d", "content": "four" },
                { "role": "user", "content": [
                    { "type": "text", "text": "Attached to the result of the tool call a:" },
                    { "type": "image_url", "image_url": { "url": "https://x.test/b.png" } },
                ] },
                { "role": "system", "content": "The mode changed." },
                { "role": "user", "content": "Go on" },
            ])
        );
        let names: Vec<&str> =
            body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["f", "apply_patch", "agents__close", "local_shell"], "the provider's search is left out");
        assert!(body["tools"][1]["function"]["description"].as_str().unwrap().contains("start: x"));
        assert_eq!((&body["max_tokens"], &body["parallel_tool_calls"]), (&json!(500), &json!(false)));
        assert_eq!((&body["reasoning_effort"], &body["temperature"]), (&json!("high"), &json!(0.5)));
        assert_eq!(body["response_format"]["json_schema"]["strict"], true);
        assert_eq!(body["stream_options"], json!({ "include_usage": true }));
        for unknown in ["input", "store", "include", "client_metadata", "prompt_cache_key", "verbosity", "text"] {
            assert!(body[unknown].is_null(), "{unknown}");
        }
    }

    #[test]
    fn signed_thinking_goes_back_to_models_of_anthropic() {
        let mut whole = conversation();
        whole["text"] = Value::Null;
        let body = translated(whole, Wire::Messages).unwrap();
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages[1]["content"][0], json!({ "type": "thinking", "thinking": "so", "signature": "sig" }));
        let results = messages[2]["content"].as_array().unwrap();
        assert_eq!(results[0]["content"][1]["type"], "image");
        assert_eq!((&results[1]["tool_use_id"], &results[3]["content"]), (&json!("b"), &json!("four")));
        assert_eq!(body["system"].as_array().unwrap().len(), 2);
        assert_eq!((&body["max_tokens"], &body["tools"][2]["name"]), (&json!(500), &json!("agents__close")));
        assert_eq!(body["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
    }

    #[test]
    fn models_of_the_same_interface_get_what_the_client_wrote() {
        let facts = ModelFacts { id: "m".into(), reasoning: true, ..ModelFacts::default() };
        let upstream = Upstream { wire: Wire::Responses, dialect: WireDialect::OpenAiModern, facts: &facts };
        let text = r#"{"model":"p/m","input":[ {"role":"user", "content":"hi"} ],"tools":[{"type":"custom","name":"x"},{"type":"web_search"}],"max_output_tokens":9,"include":["reasoning.encrypted_content"],"stream":true}"#;
        let request = Request::read(Wire::Responses, text.into()).unwrap();
        assert_eq!(
            String::from_utf8(request.body_for(&upstream).unwrap()).unwrap(),
            r#"{"model":"m","max_output_tokens":9,"store":false,"tools":[{"name":"x","type":"custom"}],"input":[ {"role":"user", "content":"hi"} ],"include":["reasoning.encrypted_content"],"stream":true}"#
        );
        let chat = Request::read(Wire::Chat, br#"{"model":"p/m","messages":[]}"#.to_vec()).unwrap();
        assert!(chat.body_for(&upstream).is_err(), "only this interface reaches such a model");
    }

    #[test]
    fn tools_that_the_conversation_brings_are_tools() {
        let whole = json!({
            "input": [
                { "type": "additional_tools", "role": "developer", "tools": [
                    { "type": "namespace", "name": "functions", "tools": [{ "type": "custom", "name": "exec" }] } ] },
                { "role": "user", "content": "hi" },
            ],
            "tool_choice": { "type": "custom", "name": "exec" },
        });
        let body = translated(whole.clone(), Wire::Chat).unwrap();
        assert_eq!(body["tools"][0]["function"]["name"], "functions__exec");
        assert_eq!(body["tool_choice"]["function"]["name"], "functions__exec");
        let mut named = whole;
        named["model"] = json!("p/m");
        let request = Request::read(Wire::Responses, named.to_string().into()).unwrap();
        let tools = request.special_tools(Wire::Chat);
        assert_eq!((tools[0].name.as_str(), tools[0].namespace.as_deref()), ("exec", Some("functions")));
    }

    #[test]
    fn what_is_not_offered_is_said() {
        let hi = json!([{ "role": "user", "content": "hi" }]);
        let with = |extra: Value| {
            let mut whole = json!({ "input": hi });
            whole.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            whole
        };
        let item = |item: Value| json!({ "input": [item] });
        for whole in [
            with(json!({ "store": true })),
            with(json!({ "background": true })),
            with(json!({ "previous_response_id": "resp_1" })),
            with(json!({ "conversation": "conv_1" })),
            with(json!({ "prompt": { "id": "p" } })),
            with(json!({ "service_tier": "priority" })),
            with(json!({ "max_tokens": 5 })),
            with(json!({ "n": 2 })),
            with(json!({ "tools": [{ "type": "file_search" }] })),
            with(json!({ "tools": [{ "type": "mcp", "server_url": "https://x" }] })),
            with(json!({ "tools": [{ "type": "shell", "environment": { "type": "container_auto" } }] })),
            with(json!({ "tools": [{ "type": "namespace", "name": "n", "tools": [{ "type": "code_interpreter" }] }] })),
            with(json!({ "tool_choice": { "type": "web_search" }, "tools": [{ "type": "function", "name": "f" }] })),
            item(json!({ "type": "additional_tools", "tools": [{ "type": "web_search" }] })),
            item(json!({ "type": "item_reference", "id": "msg_1" })),
            item(json!({ "type": "something_new" })),
            item(json!({ "role": "robot", "content": "hi" })),
            item(json!({ "role": "user", "content": [{ "type": "input_file", "file_id": "file-1" }] })),
            item(json!({ "role": "user", "content": [{ "type": "input_file", "file_url": "https://x.test/a.pdf" }] })),
            item(
                json!({ "role": "user", "content": [{ "type": "input_image", "image_url": "http://10.0.0.1/a.png" }] }),
            ),
            item(json!({ "role": "user", "content": [{ "type": "input_audio" }] })),
            item(
                json!({ "type": "function_call_output", "call_id": "a", "output": [{ "type": "input_image", "file_id": "f" }] }),
            ),
            json!({ "input": 7 }),
            json!({}),
        ] {
            assert!(translated(whole.clone(), Wire::Chat).is_err(), "{whole}");
        }
        let hidden = r#"{"model":"p/m","input":[{"type":"item_refer\u0065nce","id":"msg_1"}]}"#;
        assert!(Request::read(Wire::Responses, hidden.into()).is_err());
        assert_eq!(translated(json!({ "input": "hi" }), Wire::Chat).unwrap()["messages"][0]["content"], "hi");
    }
}
