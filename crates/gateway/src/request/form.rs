//! The form of a request: its fields have the kinds that the interface says, as far as Tale knows them. What it does
//! not know is passed on (MOD-113).
//!
//! A body is read once, without keeping anything of it. Only what is wrong is read again, to name its place.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use tale_core::Problem;
use tale_core::strict;

use crate::wire::Wire;

/// Judges a body.
///
/// # Errors
/// `INVALID_BODY`, naming the first place that is wrong.
pub(super) fn judge(wire: Wire, text: &str) -> Result<(), Problem> {
    match wire {
        Wire::Chat => read::<Map<Completion>>(text),
        Wire::Messages => read::<Map<Messages>>(text),
        Wire::Responses => read::<Map<Responses>>(text),
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<(), Problem> {
    if serde_json::from_str::<T>(text).is_ok() {
        return Ok(());
    }
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
        Problem::invalid_field("", &format!("is not valid JSON (line {}, column {})", error.line(), error.column()))
    })?;
    // Two equal fields are one here, of which the last counts.
    let value: Value = serde_json::from_str(text).map_err(|_| super::unreadable(""))?;
    strict::read::<T>(value).map(|_| ()).map_err(|issue| Problem::invalid_body(vec![issue]))
}

/// An object; `serde` alone would also take a list of its fields in their order.
struct Map<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Look<T> {
            type Value = Map<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Map<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Map(self.0))
            }
        }
        deserializer.deserialize_map(Look(std::marker::PhantomData))
    }
}

/// Something that is only looked at.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $expected:literal { $($visit:tt)* })+) => {$(
        $(#[$doc])*
        struct $name;

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Look;
                impl<'de> Visitor<'de> for Look {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    $($visit)*
                }
                deserializer.deserialize_any(Look)
            }
        }
    )+};
}

kinds! {
    Text: "a string" {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<Text, E> {
            Ok(Text)
        }
    }
    Object: "a map" {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Object)
        }
    }
    TextOrTexts: "a string or a list of strings" {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<TextOrTexts, E> {
            Ok(TextOrTexts)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextOrTexts, A::Error> {
            while list.next_element::<Text>()?.is_some() {}
            Ok(TextOrTexts)
        }
    }
    TextOrObject: "a string or an object" {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<TextOrObject, E> {
            Ok(TextOrObject)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextOrObject, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(TextOrObject)
        }
    }
    TextOrParts: "a string or a list of parts" {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<TextOrParts, E> {
            Ok(TextOrParts)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextOrParts, A::Error> {
            while list.next_element::<Map<Part>>()?.is_some() {}
            Ok(TextOrParts)
        }
    }
    TextOrItems: "a string or a list of items" {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<TextOrItems, E> {
            Ok(TextOrItems)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextOrItems, A::Error> {
            while list.next_element::<Map<Item>>()?.is_some() {}
            Ok(TextOrItems)
        }
    }
}

/// Part of a message, on each interface.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    _kind: Text,
    #[serde(rename = "text")]
    _text: Option<Text>,
    #[serde(rename = "tool_use_id")]
    _tool_use_id: Option<Text>,
    #[serde(rename = "id")]
    _id: Option<Text>,
    #[serde(rename = "name")]
    _name: Option<Text>,
}

/// OpenAI chat completions.
#[derive(Deserialize)]
struct Completion {
    #[serde(rename = "messages")]
    _messages: Option<Vec<Map<ChatMessage>>>,
    #[serde(rename = "temperature")]
    _temperature: Option<f64>,
    #[serde(rename = "top_p")]
    _top_p: Option<f64>,
    #[serde(rename = "frequency_penalty")]
    _frequency_penalty: Option<f64>,
    #[serde(rename = "presence_penalty")]
    _presence_penalty: Option<f64>,
    #[serde(rename = "logprobs")]
    _logprobs: Option<bool>,
    #[serde(rename = "top_logprobs")]
    _top_logprobs: Option<u32>,
    #[serde(rename = "parallel_tool_calls")]
    _parallel_tool_calls: Option<bool>,
    #[serde(rename = "stop")]
    _stop: Option<TextOrTexts>,
    #[serde(rename = "stream_options")]
    _stream_options: Option<Object>,
    #[serde(rename = "response_format")]
    _response_format: Option<Object>,
    #[serde(rename = "logit_bias")]
    _logit_bias: Option<Object>,
    #[serde(rename = "metadata")]
    _metadata: Option<Object>,
    #[serde(rename = "tool_choice")]
    _tool_choice: Option<TextOrObject>,
    #[serde(rename = "reasoning_effort")]
    _reasoning_effort: Option<Text>,
    #[serde(rename = "user")]
    _user: Option<Text>,
    #[serde(rename = "tools")]
    _tools: Option<Vec<Map<ChatTool>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ChatRole {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

#[derive(Deserialize)]
struct ChatMessage {
    #[serde(rename = "role")]
    _role: ChatRole,
    #[serde(rename = "content")]
    _content: Option<TextOrParts>,
    #[serde(rename = "name")]
    _name: Option<Text>,
    #[serde(rename = "tool_call_id")]
    _tool_call_id: Option<Text>,
    #[serde(rename = "tool_calls")]
    _tool_calls: Option<Vec<Map<ChatCall>>>,
}

#[derive(Deserialize)]
struct ChatCall {
    #[serde(rename = "id")]
    _id: Option<Text>,
    #[serde(rename = "type")]
    _kind: Option<Text>,
    #[serde(rename = "function")]
    _function: Option<Map<CalledFunction>>,
    #[serde(rename = "custom")]
    _custom: Option<Object>,
}

#[derive(Deserialize)]
struct CalledFunction {
    #[serde(rename = "name")]
    _name: Option<Text>,
    #[serde(rename = "arguments")]
    _arguments: Option<Text>,
}

#[derive(Deserialize)]
struct ChatTool {
    #[serde(rename = "type")]
    _kind: Option<Text>,
    #[serde(rename = "function")]
    _function: Option<Map<Function>>,
    #[serde(rename = "custom")]
    _custom: Option<Object>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(rename = "name")]
    _name: Text,
    #[serde(rename = "description")]
    _description: Option<Text>,
    #[serde(rename = "parameters")]
    _parameters: Option<Object>,
    #[serde(rename = "strict")]
    _strict: Option<bool>,
}

/// Anthropic messages.
#[derive(Deserialize)]
struct Messages {
    #[serde(rename = "messages")]
    _messages: Option<Vec<Map<Message>>>,
    #[serde(rename = "system")]
    _system: Option<TextOrParts>,
    #[serde(rename = "temperature")]
    _temperature: Option<f64>,
    #[serde(rename = "top_p")]
    _top_p: Option<f64>,
    #[serde(rename = "top_k")]
    _top_k: Option<u64>,
    #[serde(rename = "stop_sequences")]
    _stop_sequences: Option<Vec<Text>>,
    #[serde(rename = "metadata")]
    _metadata: Option<Object>,
    #[serde(rename = "thinking")]
    _thinking: Option<Object>,
    #[serde(rename = "tool_choice")]
    _tool_choice: Option<Object>,
    #[serde(rename = "tools")]
    _tools: Option<Vec<Map<ClientTool>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
    System,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "role")]
    _role: Role,
    #[serde(rename = "content")]
    _content: TextOrParts,
}

#[derive(Deserialize)]
struct ClientTool {
    #[serde(rename = "type")]
    _kind: Option<Text>,
    #[serde(rename = "name")]
    _name: Option<Text>,
    #[serde(rename = "description")]
    _description: Option<Text>,
    #[serde(rename = "input_schema")]
    _input_schema: Option<Object>,
}

/// OpenAI Responses.
#[derive(Deserialize)]
struct Responses {
    #[serde(rename = "input")]
    _input: Option<TextOrItems>,
    #[serde(rename = "instructions")]
    _instructions: Option<Text>,
    #[serde(rename = "temperature")]
    _temperature: Option<f64>,
    #[serde(rename = "top_p")]
    _top_p: Option<f64>,
    #[serde(rename = "parallel_tool_calls")]
    _parallel_tool_calls: Option<bool>,
    #[serde(rename = "metadata")]
    _metadata: Option<Object>,
    #[serde(rename = "reasoning")]
    _reasoning: Option<Object>,
    #[serde(rename = "text")]
    _text: Option<Object>,
    #[serde(rename = "tool_choice")]
    _tool_choice: Option<TextOrObject>,
    #[serde(rename = "tools")]
    _tools: Option<Vec<Object>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ItemRole {
    System,
    Developer,
    User,
    Assistant,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    _kind: Option<Text>,
    #[serde(rename = "role")]
    _role: Option<ItemRole>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The place and the words of what is wrong.
    fn wrong(wire: Wire, more: Value) -> Option<String> {
        let mut body = match wire {
            Wire::Responses => json!({ "model": "p/m", "input": "hi" }),
            _ => json!({ "model": "p/m", "max_tokens": 5, "messages": [{ "role": "user", "content": "hi" }] }),
        };
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let problem = judge(wire, &body.to_string()).err()?;
        let issue = &problem.data.as_ref().unwrap()["issues"][0];
        Some(format!("{} {}", issue["path"].as_str().unwrap(), issue["message"].as_str().unwrap()))
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let said = |content: Value| json!({ "messages": [{ "role": "user", "content": "a" }, content] });
        let cases = [
            (Wire::Chat, said(json!({ "role": "boss", "content": "a" })), "messages.1.role must be one of"),
            (Wire::Chat, said(json!({ "content": "a" })), "messages.1.role is required"),
            (Wire::Chat, said(json!("hi")), "messages.1 must be an object"),
            (Wire::Chat, said(json!(["user", "hi", null, null, null])), "messages.1 must be an object"),
            (Wire::Chat, said(json!({ "role": "user", "content": 7 })), "messages.1.content "),
            (Wire::Chat, said(json!({ "role": "user", "content": [{ "text": "a" }] })), "messages.1.content.0.type is"),
            (
                Wire::Chat,
                said(json!({ "role": "user", "content": [{ "type": "text", "text": 1 }] })),
                "messages.1.content.0.text must be a string",
            ),
            (
                Wire::Chat,
                said(json!({ "role": "assistant", "tool_calls": [{ "function": { "arguments": {} } }] })),
                "messages.1.tool_calls.0.function.arguments must be a string",
            ),
            (Wire::Chat, json!({ "temperature": "warm" }), "temperature must be a number"),
            (Wire::Chat, json!({ "stop": [1] }), "stop.0 must be a string"),
            (
                Wire::Chat,
                json!({ "tools": [{ "type": "function", "function": {} }] }),
                "tools.0.function.name is required",
            ),
            (Wire::Chat, json!({ "tools": {} }), "tools must be a list"),
            (Wire::Chat, json!({ "stream_options": true }), "stream_options must be an object"),
            (Wire::Messages, said(json!({ "role": "tool", "content": "a" })), "messages.1.role must be one of"),
            (Wire::Messages, said(json!({ "role": "user" })), "messages.1.content is required"),
            (Wire::Messages, json!({ "system": 1 }), "system "),
            (Wire::Messages, json!({ "top_k": -1 }), "top_k "),
            (Wire::Messages, json!({ "tools": [{ "name": 1 }] }), "tools.0.name must be a string"),
            (Wire::Responses, json!({ "input": 1 }), "input "),
            (Wire::Responses, json!({ "input": [{ "role": "tool", "content": "a" }] }), "input.0.role must be one of"),
        ];
        for (wire, more, expected) in cases {
            let found = wrong(wire, more.clone()).unwrap_or_default();
            assert!(found.starts_with(expected), "{more}\n{found}");
        }
    }

    #[test]
    fn what_the_interfaces_know_or_may_come_to_know_is_passed_on() {
        for (wire, more) in [
            (
                Wire::Chat,
                json!({ "temperature": 1, "stop": "x", "tool_choice": "auto", "unheard_of": [1], "user": null }),
            ),
            (
                Wire::Chat,
                json!({ "messages": [{ "role": "assistant", "content": null, "tool_calls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }] }, { "role": "tool", "tool_call_id": "c", "content": "ok" }] }),
            ),
            (
                Wire::Chat,
                json!({ "messages": [{ "role": "user", "content": [{ "type": "of_tomorrow", "more": {} }] }] }),
            ),
            (
                Wire::Messages,
                json!({ "system": [{ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } }], "thinking": { "type": "adaptive" } }),
            ),
            (
                Wire::Responses,
                json!({ "input": [{ "type": "function_call_output", "call_id": "c", "output": "x" }], "tools": [{ "type": "function" }] }),
            ),
        ] {
            assert_eq!(wrong(wire, more.clone()), None, "{more}");
        }
        assert!(judge(Wire::Chat, r#"{"model":"a","model":"b","temperature":1,"temperature":2}"#).is_ok());
    }
}
