//! Fields that providers of the "same" format write in different types.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;

/// Text that may be a string, null or a list of typed parts. Thinking parts are kept apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LenientText {
    pub(super) text: String,
    pub(super) thinking: String,
}

impl LenientText {
    fn add_part(&mut self, part: &Value) {
        match part {
            Value::String(text) => self.text.push_str(text),
            Value::Object(fields) => {
                let thinking = fields.get("type").and_then(Value::as_str) == Some("thinking");
                if thinking {
                    match fields.get("thinking") {
                        Some(Value::String(text)) => self.thinking.push_str(text),
                        Some(Value::Array(inner)) => {
                            for piece in inner {
                                self.thinking.push_str(piece.get("text").and_then(Value::as_str).unwrap_or_default());
                            }
                        }
                        _ => {}
                    }
                } else if let Some(text) = fields.get("text").and_then(Value::as_str) {
                    self.text.push_str(text);
                }
            }
            _ => {}
        }
    }
}

impl<'de> Deserialize<'de> for LenientText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = LenientText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, null or a list of parts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<LenientText, E> {
                Ok(LenientText { text: text.to_owned(), thinking: String::new() })
            }

            fn visit_unit<E: de::Error>(self) -> Result<LenientText, E> {
                Ok(LenientText::default())
            }

            fn visit_none<E: de::Error>(self) -> Result<LenientText, E> {
                Ok(LenientText::default())
            }

            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<LenientText, D::Error> {
                LenientText::deserialize(inner)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<LenientText, A::Error> {
                let mut whole = LenientText::default();
                while let Some(part) = parts.next_element::<Value>()? {
                    whole.add_part(&part);
                }
                Ok(whole)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<LenientText, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(LenientText::default())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// A value that stands for text: strings as they are, null as nothing, the rest as JSON.
pub(super) fn text_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    })
}

/// A list that may be null.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_every_shape() {
        let read = |json: &str| serde_json::from_str::<LenientText>(json).unwrap();
        assert_eq!(read("\"a\"").text, "a");
        assert_eq!(read("null"), LenientText::default());
        assert_eq!(read("{\"x\":1}"), LenientText::default());
        let parts =
            read(r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"yes"}]"#);
        assert_eq!((parts.text.as_str(), parts.thinking.as_str()), ("yes", "hm"));
    }
}
