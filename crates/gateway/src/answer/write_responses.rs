//! Writes a response: items, each begun and ended by its events, and all of it again in the last one.

use serde_json::{Map, Value, json};

use super::write::{Told, custom_input, is_whole};
use super::{Finish, Piece, Tokens};
use crate::request::{PLAIN_REASONING, REDACTED, SIGNED, Tool, ToolKind, VENDOR_DATA};

#[derive(Debug)]
pub(crate) struct Writer {
    told: Told,
    id: String,
    begun: bool,
    sequence: u64,
    items: Vec<Item>,
    finish: Option<Finish>,
    /// Only the response matters, not its events.
    quiet: bool,
}

#[derive(Debug)]
struct Item {
    id: String,
    kind: Kind,
    /// What was said, thought or asked for so far.
    text: String,
    ended: bool,
}

#[derive(Debug)]
enum Kind {
    Message,
    /// Reasoning, with what goes back to the provider with it.
    Reasoning(String),
    Call {
        slot: usize,
        call: String,
        tool: Tool,
    },
}

impl Writer {
    pub(super) fn new(told: Told) -> Self {
        Self { told, id: String::new(), begun: false, sequence: 0, items: Vec::new(), finish: None, quiet: false }
    }

    /// The whole response that these pieces are.
    pub(super) fn document(told: &Told, pieces: Vec<Piece>, tokens: Option<Tokens>) -> Value {
        let mut writer = Self { quiet: true, ..Self::new(told.clone()) };
        let mut nothing = String::new();
        pieces.into_iter().for_each(|piece| writer.piece(piece, &mut nothing));
        writer.begin("", &mut nothing);
        writer.end_all(&mut nothing);
        writer.ended(tokens).1
    }

    pub(super) fn piece(&mut self, piece: Piece, out: &mut String) {
        match piece {
            Piece::Begin(id) => self.begin(&id, out),
            Piece::Text(text) => {
                let at = self.open(|kind| matches!(kind, Kind::Message), || Kind::Message, out);
                self.items[at].text.push_str(&text);
                self.of_item(
                    at,
                    json!({ "type": "response.output_text.delta", "content_index": 0, "delta": text, "logprobs": [] }),
                    out,
                );
            }
            Piece::Reasoning(text) => {
                let at = self.reasoning(out);
                if self.items[at].text.is_empty() {
                    let part = summary_part("");
                    self.of_item(
                        at,
                        json!({ "type": "response.reasoning_summary_part.added", "summary_index": 0, "part": part }),
                        out,
                    );
                }
                self.items[at].text.push_str(&text);
                self.of_item(
                    at,
                    json!({ "type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": text }),
                    out,
                );
            }
            Piece::Signature(signature) => {
                let at = self.reasoning(out);
                self.items[at].kind = Kind::Reasoning(format!("{SIGNED}{signature}"));
                self.end_item(at, out);
            }
            Piece::Redacted(data) => self.sealed(format!("{REDACTED}{data}"), out),
            Piece::Tool { slot, id, name, vendor } => {
                self.end_whole(out);
                if let Some(vendor) = vendor {
                    self.sealed(format!("{VENDOR_DATA}{vendor}"), out);
                }
                let tool = self.told.tool(&name).cloned().unwrap_or_else(|| Tool {
                    flat: name.clone(),
                    name,
                    namespace: None,
                    kind: ToolKind::Function,
                });
                self.begin_item(Kind::Call { slot, call: id, tool }, out);
            }
            Piece::Arguments { slot, text } => self.arguments(slot, &text, out),
            Piece::Finish(finish) => {
                self.finish = Some(finish);
                self.end_all(out);
            }
            Piece::Further(_) => {}
        }
    }

    pub(super) fn end(&mut self, tokens: Option<Tokens>, out: &mut String) {
        self.begin("", out);
        self.end_all(out);
        let (kind, response) = self.ended(tokens);
        self.event(json!({ "type": kind, "response": response }), out);
    }

    /// The last event of an answer that failed.
    pub(super) fn failed(&mut self, error: &Value, out: &mut String) {
        self.begin("", out);
        let mut response = self.response("failed", self.output());
        response["error"] = error.clone();
        self.event(json!({ "type": "response.failed", "response": response }), out);
    }

    /// The last event of an answer whose other events were handed on; without any, its first as well.
    pub(super) fn failed_alone(told: &Told, id: Option<&str>, error: &Value, out: &mut String) {
        let mut writer = Self::new(told.clone());
        if let Some(id) = id {
            writer.begun = true;
            id.clone_into(&mut writer.id);
        }
        writer.failed(error, out);
    }

    fn begin(&mut self, id: &str, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.id = response_id(id);
        for kind in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress", json!([]));
            self.event(json!({ "type": kind, "response": response }), out);
        }
    }

    fn ended(&self, tokens: Option<Tokens>) -> (&'static str, Value) {
        let (kind, status, reason) = match self.finish {
            Some(Finish::Length) => ("response.incomplete", "incomplete", Some("max_output_tokens")),
            Some(Finish::Refusal) => ("response.incomplete", "incomplete", Some("content_filter")),
            _ => ("response.completed", "completed", None),
        };
        let mut response = self.response(status, self.output());
        response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({ "reason": reason }));
        response["usage"] = tokens.map_or(Value::Null, usage);
        (kind, response)
    }

    fn output(&self) -> Value {
        self.items.iter().map(|item| self.item(item)).collect()
    }

    fn response(&self, status: &str, output: Value) -> Value {
        let mut response = json!({
            "id": self.id, "object": "response", "created_at": self.told.created, "status": status, "error": null,
            "incomplete_details": null, "model": self.told.model, "output": output, "store": false, "usage": null,
        });
        if let Some(fields) = response.as_object_mut() {
            fields.extend(self.told.echoed.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        response
    }

    /// The item that is being written and fits, or a new one.
    fn open(&mut self, fits: fn(&Kind) -> bool, new: fn() -> Kind, out: &mut String) -> usize {
        match self.items.iter().rposition(|item| !item.ended && !matches!(item.kind, Kind::Call { .. })) {
            Some(at) if fits(&self.items[at].kind) => at,
            Some(at) => {
                self.end_item(at, out);
                self.begin_item(new(), out)
            }
            None => self.begin_item(new(), out),
        }
    }

    fn reasoning(&mut self, out: &mut String) -> usize {
        let plain = || Kind::Reasoning(PLAIN_REASONING.to_owned());
        self.open(|kind| matches!(kind, Kind::Reasoning(_)), plain, out)
    }

    /// A reasoning item without words.
    fn sealed(&mut self, seal: String, out: &mut String) {
        if let Some(at) = self.items.iter().rposition(|item| !item.ended && !matches!(item.kind, Kind::Call { .. })) {
            self.end_item(at, out);
        }
        let at = self.begin_item(Kind::Reasoning(seal), out);
        self.end_item(at, out);
    }

    fn begin_item(&mut self, kind: Kind, out: &mut String) -> usize {
        let at = self.items.len();
        let prefix = match &kind {
            Kind::Message => "msg",
            Kind::Reasoning(_) => "rs",
            Kind::Call { tool, .. } if tool.kind == ToolKind::Custom => "ctc",
            Kind::Call { tool, .. } if tool.kind == ToolKind::LocalShell => "lsh",
            Kind::Call { .. } => "fc",
        };
        let id = format!("{prefix}_{}_{at}", self.id.trim_start_matches("resp_"));
        self.items.push(Item { id, kind, text: String::new(), ended: false });
        let item = self.item(&self.items[at]);
        self.event(json!({ "type": "response.output_item.added", "output_index": at, "item": item }), out);
        if matches!(self.items[at].kind, Kind::Message) {
            let part = text_part("");
            self.of_item(at, json!({ "type": "response.content_part.added", "content_index": 0, "part": part }), out);
        }
        at
    }

    fn arguments(&mut self, slot: usize, text: &str, out: &mut String) {
        let call = |item: &Item| matches!(item.kind, Kind::Call { slot: at, .. } if at == slot);
        let Some(at) = self.items.iter().rposition(|item| !item.ended && call(item)) else { return };
        self.items[at].text.push_str(text);
        if matches!(&self.items[at].kind, Kind::Call { tool, .. } if tool.kind == ToolKind::Function) {
            self.of_item(at, json!({ "type": "response.function_call_arguments.delta", "delta": text }), out);
        }
    }

    /// Ends what is complete when another call begins.
    fn end_whole(&mut self, out: &mut String) {
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if !(item.ended || matches!(item.kind, Kind::Call { .. }) && !is_whole(&item.text)) {
                self.end_item(at, out);
            }
        }
    }

    fn end_all(&mut self, out: &mut String) {
        for at in 0..self.items.len() {
            if !self.items[at].ended {
                self.end_item(at, out);
            }
        }
    }

    fn end_item(&mut self, at: usize, out: &mut String) {
        if let Kind::Call { slot, tool, .. } = &self.items[at].kind
            && tool.kind == ToolKind::Function
            && self.items[at].text.trim().is_empty()
        {
            // No arguments are an object without fields, as everywhere in this format.
            let slot = *slot;
            self.items[at].text.clear();
            self.arguments(slot, "{}", out);
        }
        self.items[at].ended = true;
        let text = self.items[at].text.clone();
        match &self.items[at].kind {
            Kind::Message => {
                let part = text_part(&text);
                self.of_item(
                    at,
                    json!({ "type": "response.output_text.done", "content_index": 0, "text": text, "logprobs": [] }),
                    out,
                );
                self.of_item(
                    at,
                    json!({ "type": "response.content_part.done", "content_index": 0, "part": part }),
                    out,
                );
            }
            Kind::Reasoning(_) if !text.is_empty() => {
                self.of_item(
                    at,
                    json!({ "type": "response.reasoning_summary_text.done", "summary_index": 0, "text": text }),
                    out,
                );
                let part = summary_part(&text);
                self.of_item(
                    at,
                    json!({ "type": "response.reasoning_summary_part.done", "summary_index": 0, "part": part }),
                    out,
                );
            }
            Kind::Call { tool, .. } if tool.kind == ToolKind::Function => {
                let name = tool.name.clone();
                self.of_item(
                    at,
                    json!({ "type": "response.function_call_arguments.done", "name": name, "arguments": text }),
                    out,
                );
            }
            Kind::Call { tool, .. } if tool.kind == ToolKind::Custom => {
                let input = custom_input(&text);
                self.of_item(at, json!({ "type": "response.custom_tool_call_input.delta", "delta": input }), out);
                self.of_item(at, json!({ "type": "response.custom_tool_call_input.done", "input": input }), out);
            }
            Kind::Reasoning(_) | Kind::Call { .. } => {}
        }
        let item = self.item(&self.items[at]);
        self.event(json!({ "type": "response.output_item.done", "output_index": at, "item": item }), out);
    }

    fn item(&self, item: &Item) -> Value {
        let cut = self.finish == Some(Finish::Length);
        let status = match &item.kind {
            _ if !item.ended => "in_progress",
            Kind::Call { .. } if cut && !is_whole(&item.text) => "incomplete",
            _ => "completed",
        };
        let (id, text) = (&item.id, &item.text);
        match &item.kind {
            Kind::Message => {
                let content = if item.ended { json!([text_part(text)]) } else { json!([]) };
                json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
            }
            Kind::Reasoning(seal) => {
                let said = item.ended && !text.is_empty();
                let summary = if said { json!([summary_part(text)]) } else { json!([]) };
                let mut item = json!({ "id": id, "type": "reasoning", "summary": summary });
                if status == "completed" {
                    item["encrypted_content"] = json!(seal);
                }
                item
            }
            Kind::Call { call, tool, .. } => {
                let mut item = json!({ "id": id, "status": status, "call_id": call });
                match tool.kind {
                    ToolKind::Function => {
                        item["type"] = json!("function_call");
                        item["arguments"] = json!(text);
                    }
                    ToolKind::Custom => {
                        item["type"] = json!("custom_tool_call");
                        item["input"] = if text.is_empty() { json!("") } else { json!(custom_input(text)) };
                    }
                    ToolKind::LocalShell => {
                        item["type"] = json!("local_shell_call");
                        item["action"] = shell_action(text);
                        return item;
                    }
                }
                item["name"] = json!(tool.name);
                if let Some(namespace) = &tool.namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            }
        }
    }

    /// An event about an item.
    fn of_item(&mut self, at: usize, mut data: Value, out: &mut String) {
        if self.quiet {
            return;
        }
        data["item_id"] = json!(self.items[at].id);
        data["output_index"] = json!(at);
        self.event(data, out);
    }

    fn event(&mut self, mut data: Value, out: &mut String) {
        if self.quiet {
            return;
        }
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        event(&data, out);
    }
}

/// Writes an event under its own type.
pub(super) fn event(data: &Value, out: &mut String) {
    out.push_str("event: ");
    out.push_str(data["type"].as_str().unwrap_or_default());
    out.push_str("\ndata: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}

/// The events of a whole response, for a client that streams where the provider did not.
pub(super) fn replayed(response: &Value) -> String {
    let (mut out, mut sequence) = (String::new(), 0_u64);
    let mut write = |mut data: Value| {
        data["sequence_number"] = json!(sequence);
        sequence += 1;
        event(&data, &mut out);
    };
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    write(json!({ "type": "response.created", "response": begun }));
    for (at, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        write(json!({ "type": "response.output_item.added", "output_index": at, "item": item }));
        for (part_at, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            if let Some(text) = part["text"].as_str().filter(|_| item["type"] == "message") {
                write(json!({
                    "type": "response.output_text.delta", "item_id": item["id"], "output_index": at,
                    "content_index": part_at, "delta": text, "logprobs": [],
                }));
            }
        }
        write(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    let kind = if response["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    write(json!({ "type": kind, "response": response }));
    out
}

/// The id of a response for one of an upstream.
fn response_id(id: &str) -> String {
    match id {
        "" => super::made_up("resp_"),
        id if id.starts_with("resp_") => id.to_owned(),
        id => format!("resp_{id}"),
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

/// A command from the arguments that stood in for it.
fn shell_action(arguments: &str) -> Value {
    let given: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let command = match given.get("command") {
        Some(Value::Array(list)) => Value::Array(list.clone()),
        Some(Value::String(line)) => json!(["sh", "-c", line]),
        _ => json!([]),
    };
    json!({
        "type": "exec", "command": command, "env": {},
        "working_directory": given.get("working_directory"), "timeout_ms": given.get("timeout_ms"),
    })
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": { "cached_tokens": tokens.cached },
        "output_tokens": tokens.output,
        "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
        "total_tokens": tokens.input.saturating_add(tokens.output),
    })
}
