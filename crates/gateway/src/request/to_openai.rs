//! An Anthropic messages request for a model that speaks the OpenAI chat-completions format.

use serde_json::{Map, Value, json};
use tale_core::problem::Problem;
use tale_models::wire::WireDialect;

use super::{Request, Upstream, VENDOR_DATA};

/// The signature of thinking that came as plain `reasoning_content`. Such thinking goes back by that
/// name; thinking that a provider signed means nothing to another one.
pub(crate) const PLAIN_REASONING: &str = "tale-reasoning-content";

pub(super) fn body(whole: &Value, request: &Request, upstream: &Upstream<'_>) -> Result<Map<String, Value>, Problem> {
    let facts = upstream.facts;
    let modern = upstream.dialect == WireDialect::OpenAiModern;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(facts.id));
    body.insert("messages".to_owned(), Value::Array(conversation(whole)?));
    let cap = if modern { "max_completion_tokens" } else { "max_tokens" };
    body.insert(cap.to_owned(), json!(request.cap(facts)));
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    for name in ["temperature", "top_p"] {
        if !(whole[name].is_null() || modern && facts.reasoning) {
            body.insert(name.to_owned(), whole[name].clone());
        }
    }
    if whole["stop_sequences"].as_array().is_some_and(|list| !list.is_empty()) {
        body.insert("stop".to_owned(), whole["stop_sequences"].clone());
    }
    if let Some(user) = whole["metadata"]["user_id"].as_str() {
        body.insert("user".to_owned(), json!(user));
    }
    tools(whole, &mut body);
    if facts.tools_require_no_reasoning && request.tools {
        body.insert("reasoning_effort".to_owned(), json!("none"));
    } else if let Some(effort) = effort(whole, facts.xhigh).filter(|_| facts.reasoning) {
        body.insert("reasoning_effort".to_owned(), json!(effort));
    }
    let format =
        Some(&whole["output_config"]["format"]).filter(|format| !format.is_null()).unwrap_or(&whole["output_format"]);
    if format["type"] == "json_schema" {
        let schema = json!({ "name": "answer", "schema": format["schema"], "strict": true });
        body.insert("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": schema }));
    }
    Ok(body)
}

fn conversation(whole: &Value) -> Result<Vec<Value>, Problem> {
    let mut list = Vec::new();
    let system = texts(&whole["system"]);
    if !system.is_empty() {
        list.push(json!({ "role": "system", "content": system }));
    }
    for (at, message) in whole["messages"].as_array().into_iter().flatten().enumerate() {
        let path = format!("messages.{at}");
        match message["role"].as_str() {
            Some("user") => user(&path, &message["content"], &mut list)?,
            Some("assistant") => list.extend(assistant(&message["content"])),
            // A change of the tools has no words: all of them are declared from the start.
            Some("system") => {
                let said = texts(&message["content"]);
                if !said.is_empty() {
                    list.push(json!({ "role": "system", "content": said }));
                }
            }
            _ => return Err(Problem::invalid_field(&format!("{path}.role"), "must be one of \"user\", \"assistant\"")),
        }
    }
    Ok(list)
}

/// The text of a string or of text blocks.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n\n")
        }
        _ => String::new(),
    }
}

/// Tool results become messages of their own, before what else the person says.
fn user(path: &str, content: &Value, list: &mut Vec<Value>) -> Result<(), Problem> {
    let mut parts = Vec::new();
    match content {
        Value::String(text) => parts.push(json!({ "type": "text", "text": text })),
        Value::Array(blocks) => {
            for (at, block) in blocks.iter().enumerate() {
                let path = format!("{path}.content.{at}");
                if block["type"] == "tool_result" {
                    list.push(tool_result(&path, block, &mut parts)?);
                } else {
                    part(&path, block, &mut parts)?;
                }
            }
        }
        _ => return Err(Problem::invalid_field(&format!("{path}.content"), "must be a string or a list of blocks")),
    }
    let only_text = parts.iter().all(|part| part["type"] == "text");
    if only_text && !parts.is_empty() {
        // A plain string is understood by every server.
        list.push(json!({ "role": "user", "content": texts(&Value::Array(parts)) }));
    } else if !parts.is_empty() {
        list.push(json!({ "role": "user", "content": parts }));
    }
    Ok(())
}

/// The message of a tool result. It holds text only: images and documents follow in the person's
/// next message, with a word about where they belong.
fn tool_result(path: &str, block: &Value, parts: &mut Vec<Value>) -> Result<Value, Problem> {
    let id = &block["tool_use_id"];
    let mut inner = Vec::new();
    match &block["content"] {
        Value::String(text) => inner.push(json!({ "type": "text", "text": text })),
        Value::Array(blocks) => {
            for (at, block) in blocks.iter().enumerate() {
                part(&format!("{path}.content.{at}"), block, &mut inner)?;
            }
        }
        _ => {}
    }
    let (text, media): (Vec<Value>, Vec<Value>) = inner.into_iter().partition(|part| part["type"] == "text");
    let mut text = texts(&Value::Array(text));
    if !media.is_empty() {
        let about = format!("Attached to the result of the tool call {}:", id.as_str().unwrap_or_default());
        parts.push(json!({ "type": "text", "text": about }));
        parts.extend(media);
    }
    if block["is_error"] == json!(true) {
        text = format!("Error: {text}");
    }
    Ok(json!({ "role": "tool", "tool_call_id": id, "content": text }))
}

fn part(path: &str, block: &Value, parts: &mut Vec<Value>) -> Result<(), Problem> {
    let source = &block["source"];
    match block["type"].as_str() {
        Some("text") => parts.push(json!({ "type": "text", "text": block["text"].as_str().unwrap_or_default() })),
        Some("image") => {
            let url = match source["url"].as_str().filter(|_| source["type"] == "url") {
                Some(url) => url.to_owned(),
                None => encoded(source, "image/png"),
            };
            parts.push(json!({ "type": "image_url", "image_url": { "url": url } }));
        }
        Some("document") => match source["type"].as_str() {
            Some("base64") => {
                let name = block["title"].as_str().unwrap_or("document.pdf");
                let data = encoded(source, "application/pdf");
                parts.push(json!({ "type": "file", "file": { "filename": name, "file_data": data } }));
            }
            Some("text") => {
                let text = source["data"].as_str().unwrap_or_default();
                let titled = block["title"].as_str().map(|title| format!("{title}\n\n{text}"));
                parts.push(json!({ "type": "text", "text": titled.unwrap_or_else(|| text.to_owned()) }));
            }
            Some("content") => match &source["content"] {
                Value::String(text) => parts.push(json!({ "type": "text", "text": text })),
                blocks => {
                    for (at, block) in blocks.as_array().into_iter().flatten().enumerate() {
                        part(&format!("{path}.source.content.{at}"), block, parts)?;
                    }
                }
            },
            _ => {
                let why = "must be one of \"base64\", \"text\", \"content\" with this model";
                return Err(Problem::invalid_field(&format!("{path}.source.type"), why));
            }
        },
        Some("tool_reference") => {
            let name = block["tool_name"].as_str().unwrap_or_default();
            parts.push(json!({ "type": "text", "text": format!("The tool {name} can be called.") }));
        }
        Some("search_result") => {
            let text = format!(
                "{}\n{}\n\n{}",
                block["title"].as_str().unwrap_or_default(),
                block["source"].as_str().unwrap_or_default(),
                texts(&block["content"])
            );
            parts.push(json!({ "type": "text", "text": text }));
        }
        _ => return Err(Problem::invalid_field(&format!("{path}.type"), "is no kind of block that this model reads")),
    }
    Ok(())
}

fn encoded(source: &Value, otherwise: &str) -> String {
    let kind = source["media_type"].as_str().unwrap_or(otherwise);
    format!("data:{kind};base64,{}", source["data"].as_str().unwrap_or_default())
}

fn assistant(content: &Value) -> Option<Value> {
    let blocks = match content {
        Value::Array(blocks) => blocks,
        other => return Some(json!({ "role": "assistant", "content": texts(other) })),
    };
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant"))]);
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    let mut vendor: Value = Value::Null;
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => text.push_str(block["text"].as_str().unwrap_or_default()),
            Some("thinking") if block["signature"] == PLAIN_REASONING => {
                reasoning.push_str(block["thinking"].as_str().unwrap_or_default());
            }
            Some("redacted_thinking") => {
                let data = block["data"].as_str().and_then(|data| data.strip_prefix(VENDOR_DATA));
                vendor = data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or(vendor);
            }
            Some("tool_use") => {
                let mut call = json!({
                    "id": block["id"], "type": "function",
                    "function": { "name": block["name"], "arguments": block["input"].to_string() },
                });
                if !vendor.is_null() {
                    call["extra_content"] = std::mem::take(&mut vendor);
                }
                calls.push(call);
            }
            _ => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
    if !reasoning.is_empty() && !calls.is_empty() {
        message.insert("reasoning_content".to_owned(), json!(reasoning));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Some(Value::Object(message))
}

fn tools(whole: &Value, body: &mut Map<String, Value>) {
    let mut tools: Vec<Value> = whole["tools"].as_array().into_iter().flatten().map(tool).collect();
    tools.extend(super::added_tools(&whole["messages"]).map(tool));
    if tools.is_empty() {
        return;
    }
    body.insert("tools".to_owned(), Value::Array(tools));
    let choice = &whole["tool_choice"];
    let wanted = match choice["type"].as_str() {
        Some("any") => json!("required"),
        Some("none") => json!("none"),
        Some("tool") => json!({ "type": "function", "function": { "name": choice["name"] } }),
        _ => json!("auto"),
    };
    body.insert("tool_choice".to_owned(), wanted);
    if choice["disable_parallel_tool_use"] == json!(true) {
        body.insert("parallel_tool_calls".to_owned(), json!(false));
    }
}

/// A tool's declaration. The schemas of Anthropic's own client tools are known to its models only,
/// so they are written out.
fn tool(tool: &Value) -> Value {
    let kind = tool["type"].as_str().unwrap_or("custom");
    let text = |about: &str| json!({ "type": "string", "description": about });
    let known = if kind.starts_with("bash_") {
        Some((
            "Runs a command in a lasting shell session.",
            json!({ "type": "object", "properties": {
                "command": text("The command to run."),
                "restart": { "type": "boolean", "description": "true starts the shell again." },
            } }),
        ))
    } else if kind.starts_with("text_editor_") {
        Some((
            "Views, creates and edits text files.",
            json!({ "type": "object", "required": ["command", "path"], "properties": {
                "command": { "type": "string", "enum": ["view", "create", "str_replace", "insert"] },
                "path": text("The file or folder."),
                "file_text": text("create: the whole text."),
                "old_str": text("str_replace: the text to replace, which must occur once."),
                "new_str": text("str_replace: the new text."),
                "insert_line": { "type": "integer", "description": "insert: the line after which to insert; 0 is the beginning." },
                "insert_text": text("insert: the text."),
                "view_range": { "type": "array", "items": { "type": "integer" }, "description": "view: first and last line; -1 is the end." },
            } }),
        ))
    } else if kind.starts_with("memory_") {
        Some((
            "Keeps notes as files below /memories.",
            json!({ "type": "object", "required": ["command"], "properties": {
                "command": { "type": "string", "enum": ["view", "create", "str_replace", "insert", "delete", "rename"] },
                "path": text("The file or folder."),
                "file_text": text("create: the whole text."),
                "old_str": text("str_replace: the text to replace."),
                "new_str": text("str_replace: the new text."),
                "insert_line": { "type": "integer" },
                "insert_text": text("insert: the text."),
                "old_path": text("rename: the former path."),
                "new_path": text("rename: the new path."),
                "view_range": { "type": "array", "items": { "type": "integer" } },
            } }),
        ))
    } else if kind.starts_with("computer_") {
        Some((
            "Uses mouse, keyboard and screen of a computer.",
            json!({ "type": "object", "required": ["action"], "properties": {
                "action": text("screenshot, left_click, right_click, middle_click, double_click, triple_click, left_click_drag, left_mouse_down, left_mouse_up, mouse_move, type, key, hold_key, scroll, wait or zoom."),
                "coordinate": { "type": "array", "items": { "type": "integer" }, "description": "x and y in pixels." },
                "start_coordinate": { "type": "array", "items": { "type": "integer" } },
                "region": { "type": "array", "items": { "type": "integer" } },
                "text": text("type, key, hold_key: what to type or press."),
                "scroll_direction": { "type": "string", "enum": ["up", "down", "left", "right"] },
                "scroll_amount": { "type": "integer" },
                "duration": { "type": "number", "description": "Seconds." },
            } }),
        ))
    } else {
        None
    };
    let function = match known {
        Some((about, schema)) => {
            let size = tool["display_width_px"].as_u64().zip(tool["display_height_px"].as_u64());
            let about =
                size.map_or_else(|| about.to_owned(), |(x, y)| format!("{about} The screen has {x} by {y} pixels."));
            json!({ "name": tool["name"], "description": about, "parameters": schema })
        }
        None => {
            let mut function = json!({ "name": tool["name"], "parameters": tool["input_schema"] });
            if !tool["description"].is_null() {
                function["description"] = tool["description"].clone();
            }
            function
        }
    };
    json!({ "type": "function", "function": function })
}

/// The effort that a thinking budget, or an effort word, comes nearest to.
fn effort(whole: &Value, xhigh: bool) -> Option<&'static str> {
    let most = if xhigh { "xhigh" } else { "high" };
    let thinking = whole["thinking"]["type"].as_str();
    if thinking == Some("disabled") {
        return None;
    }
    match whole["output_config"]["effort"].as_str() {
        Some("low") => return Some("low"),
        Some("medium") => return Some("medium"),
        Some("high") => return Some("high"),
        Some(_) => return Some(most),
        None => {}
    }
    match (thinking, whole["thinking"]["budget_tokens"].as_u64()) {
        (Some("enabled"), Some(..=4_096)) => Some("low"),
        (Some("enabled"), Some(..=16_384)) => Some("medium"),
        (Some("enabled"), _) => Some("high"),
        (Some(_), _) => Some("medium"),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use tale_models::wire::ModelFacts;

    use super::*;
    use crate::wire::Wire;

    fn translated(mut whole: Value) -> Result<Value, Problem> {
        whole["model"] = json!("p/m");
        whole["max_tokens"] = json!(500);
        let request = Request::read(Wire::Messages, whole.to_string().into_bytes()).unwrap();
        let facts = ModelFacts { id: "gpt".into(), reasoning: true, ..ModelFacts::default() };
        let upstream = Upstream { wire: Wire::Chat, dialect: WireDialect::OpenAiModern, facts: &facts };
        Ok(serde_json::from_slice(&request.body_for(&upstream)?).unwrap())
    }

    #[test]
    fn a_conversation_with_tools_and_media_loses_nothing() {
        let body = translated(json!({
            "system": [{ "type": "text", "text": "Be kind.", "cache_control": { "type": "ephemeral" } }, { "type": "text", "text": "Be brief." }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Look" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    { "type": "document", "title": "a.pdf", "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBE" } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": PLAIN_REASONING },
                    { "type": "thinking", "thinking": "secret", "signature": "of another provider" },
                    { "type": "text", "text": "Looking." },
                    { "type": "redacted_thinking", "data": "tale-vendor:{\"google\":{\"thought_signature\":\"s\"}}" },
                    { "type": "tool_use", "id": "a", "name": "f", "input": { "q": 1 } },
                    { "type": "tool_use", "id": "b", "name": "f", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "one" }, { "type": "image", "source": { "type": "url", "url": "https://x.test/b.png" } }] },
                    { "type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": true },
                    { "type": "text", "text": "Go on" },
                ] },
            ],
            "tools": [{ "name": "f", "description": "d", "input_schema": { "type": "object" } }, { "type": "bash_20250124", "name": "bash" }],
            "tool_choice": { "type": "tool", "name": "f", "disable_parallel_tool_use": true },
            "stop_sequences": ["END"], "thinking": { "type": "enabled", "budget_tokens": 2_000 }, "temperature": 1, "stream": true,
        }))
        .unwrap();
        assert_eq!(
            body["messages"],
            json!([
                { "role": "system", "content": "Be kind.\n\nBe brief." },
                { "role": "user", "content": [
                    { "type": "text", "text": "Look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" } },
                ] },
                { "role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"q\":1}" }, "extra_content": { "google": { "thought_signature": "s" } } },
                    { "id": "b", "type": "function", "function": { "name": "f", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": "Error: two" },
                { "role": "user", "content": [
                    { "type": "text", "text": "Attached to the result of the tool call a:" },
                    { "type": "image_url", "image_url": { "url": "https://x.test/b.png" } },
                    { "type": "text", "text": "Go on" },
                ] },
            ])
        );
        assert_eq!(body["tool_choice"], json!({ "type": "function", "function": { "name": "f" } }));
        assert_eq!((&body["parallel_tool_calls"], &body["stop"]), (&json!(false), &json!(["END"])));
        assert_eq!(body["stream_options"], json!({ "include_usage": true }));
        assert_eq!((&body["reasoning_effort"], &body["temperature"]), (&json!("low"), &Value::Null));
        assert_eq!(body["max_completion_tokens"], 500);
        assert!(body["tools"][1]["function"]["parameters"]["properties"]["command"].is_object());
    }

    #[test]
    fn what_the_wire_has_no_place_for_is_said() {
        for block in [
            json!({ "type": "document", "source": { "type": "url", "url": "https://x.test/a.pdf" } }),
            json!({ "type": "something_new" }),
        ] {
            let whole = json!({ "messages": [{ "role": "user", "content": [block] }] });
            assert!(translated(whole.clone()).is_err(), "{whole}");
        }
    }
}
