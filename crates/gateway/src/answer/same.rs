//! The same wire on both sides: what the upstream says goes on as it was written, with the model's
//! name replaced by the one that the client used.

use super::Told;
use crate::json::{field, fields, quoted, spliced};
use crate::wire::Wire;

/// An event for the client; `None` when it is not for the client.
pub(crate) fn event(told: &Told, name: &str, data: &str) -> Option<String> {
    match told.wire {
        Wire::Chat | Wire::Responses if data.trim() == "[DONE]" => None,
        Wire::Chat => Some(format!("data: {}\n\n", one_line(&chunk(told, data)?))),
        Wire::Responses => {
            let found = fields(data);
            let kind = field(&found, "type").and_then(|at| serde_json::from_str::<String>(&data[at.clone()]).ok());
            let text = match field(&found, "response") {
                Some(response) => spliced(data, response, &renamed(told, &data[response.clone()])),
                None => data.to_owned(),
            };
            Some(format!("event: {}\ndata: {}\n\n", kind.as_deref().unwrap_or(name), one_line(&text)))
        }
        Wire::Messages => {
            let mut named = name.to_owned();
            let found = fields(data);
            let mut text = data.to_owned();
            if let Some(kind) =
                field(&found, "type").and_then(|at| serde_json::from_str::<String>(&data[at.clone()]).ok())
            {
                named = kind;
            }
            // Written at the end, whether it came or not.
            if named == "message_stop" {
                return None;
            }
            if named == "message_start"
                && let Some(message) = field(&found, "message")
            {
                text = spliced(data, message, &renamed(told, &data[message.clone()]));
            }
            Some(format!("event: {named}\ndata: {}\n\n", one_line(&text)))
        }
    }
}

/// A whole answer for the client.
pub(crate) fn document(told: &Told, text: &str) -> String {
    renamed(told, text)
}

/// A chunk of the OpenAI format. Usage that the client did not ask for stays here: it was asked for
/// to charge the call.
fn chunk(told: &Told, data: &str) -> Option<String> {
    let mut text = renamed(told, data);
    if told.usage_wanted {
        return Some(text);
    }
    let found = fields(&text);
    if let Some(usage) = field(&found, "usage").filter(|at| &text[(*at).clone()] != "null") {
        let choices = field(&found, "choices").map_or("[]", |at| &text[at.clone()]);
        if choices.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"[]") {
            return None;
        }
        text = spliced(&text, usage, "null");
    }
    Some(text)
}

/// The object with the client's name of the model, also where the upstream names none.
fn renamed(told: &Told, text: &str) -> String {
    let found = fields(text);
    let name = quoted(&told.model);
    match (field(&found, "model"), text.find('{')) {
        (Some(model), _) => spliced(text, model, &name),
        (None, Some(start)) => {
            let comma = if found.is_empty() { "" } else { "," };
            spliced(text, &(start + 1..start + 1), &format!("\"model\":{name}{comma}"))
        }
        (None, None) => text.to_owned(),
    }
}

/// An event's data on one line: a line feed between the values of JSON means nothing.
fn one_line(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ").into() } else { text.into() }
}
