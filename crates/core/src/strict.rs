//! A JSON value that is read to the letter: an object is an object, however deep it lies.
//!
//! `serde`'s derived readers also take a list as a struct's fields in order, which no contract says
//! and every new field would break. This reader refuses it wherever a struct is expected. Types that
//! buffer what they read (untagged or internally tagged enums) read past it; no body has one.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Error, Map, Value};
use serde_path_to_error::Segment;

use crate::problem::Issue;

/// Longest path or message of an issue, in characters.
pub const MAX_ISSUE_CHARS: usize = 200;

/// Reads `value` as a `T`.
///
/// # Errors
/// What is wrong first, and where.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, Issue> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(Strict(value), &mut track);
    T::deserialize(deserializer).map_err(|error| {
        let mut issue = issue_of(&dotted(&track.path()), &error.to_string());
        shorten(&mut issue.path);
        shorten(&mut issue.message);
        issue
    })
}

/// The path as API-11 writes it: `contacts.2.email`.
fn dotted(path: &serde_path_to_error::Path) -> String {
    let names = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    names.collect::<Vec<_>>().join(".")
}

/// An answer does not give back what was sent at length.
pub fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_ISSUE_CHARS) {
        text.truncate(end);
        text.push('…');
    }
}

/// Turns serde's sentence into the contract's words (API-11).
#[must_use]
pub fn issue_of(path: &str, sentence: &str) -> Issue {
    let named = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let quoted = |prefix: &str| sentence.strip_prefix(prefix).and_then(|rest| rest.split('`').next());
    if let Some(field) = quoted("missing field `") {
        return Issue::new(named(field), "is required");
    }
    if let Some(field) = quoted("unknown field `") {
        // serde reports the path up to and including the unknown key.
        let path = if path == field || path.ends_with(&format!(".{field}")) { path.to_owned() } else { named(field) };
        return Issue::new(path, "is not a known field");
    }
    if let Some(rest) = sentence.strip_prefix("unknown variant `") {
        let choices: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
        let list = choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", ");
        return Issue::new(path, format!("must be one of {list}"));
    }
    if sentence.starts_with("invalid type") {
        let expected = sentence.rsplit("expected ").next().unwrap_or_default();
        let words = match expected {
            "a string" => "must be a string",
            "a boolean" => "must be true or false",
            "a sequence" => "must be a list",
            text if text.starts_with('u') || text.starts_with('i') => "must be a whole number",
            text if text.starts_with('f') => "must be a number",
            text if text.starts_with("struct") || text == "a map" => "must be an object",
            _ => "has the wrong type",
        };
        return Issue::new(path, words);
    }
    if sentence.starts_with("invalid value") || sentence.contains("UUID") {
        return Issue::new(path, "is not a valid value");
    }
    Issue::new(path, sentence.to_owned())
}

/// The value.
struct Strict(Value);

/// Reads scalars as `serde_json` does.
macro_rules! scalars {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.0.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Error;

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => list(items, visitor),
            Value::Object(fields) => object(fields, visitor),
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => list(items, visitor),
            other => other.deserialize_seq(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) => object(fields, visitor),
            other => other.deserialize_map(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(given) => object(given, visitor),
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            other => other.deserialize_struct(name, fields, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries(fields))))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }
}

impl<'de> IntoDeserializer<'de, Error> for Strict {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn entries(fields: Map<String, Value>) -> impl Iterator<Item = (String, Strict)> {
    fields.into_iter().map(|(name, value)| (name, Strict(value)))
}

fn object<'de, V: Visitor<'de>>(fields: Map<String, Value>, visitor: V) -> Result<V::Value, Error> {
    let mut entries = MapDeserializer::new(entries(fields));
    let read = visitor.visit_map(&mut entries)?;
    entries.end()?;
    Ok(read)
}

fn list<'de, V: Visitor<'de>>(items: Vec<Value>, visitor: V) -> Result<V::Value, Error> {
    let mut items = SeqDeserializer::new(items.into_iter().map(Strict));
    let read = visitor.visit_seq(&mut items)?;
    items.end()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        a: u8,
        #[serde(default)]
        b: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Plain,
        With(Inner),
        Fields { inner: Inner },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        one: Inner,
        #[serde(default)]
        maybe: Option<Inner>,
        #[serde(default)]
        many: Vec<Inner>,
        #[serde(default)]
        named: HashMap<String, Inner>,
        #[serde(default)]
        pair: Option<(u8, Inner)>,
        #[serde(default)]
        choice: Option<Choice>,
        #[serde(default)]
        free: Value,
    }

    fn read(value: Value) -> Result<Outer, String> {
        Outer::deserialize(Strict(value)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_is_never_an_object() {
        for refused in [
            json!([{ "a": 1 }]),
            json!({ "one": [1, "x"] }),
            json!({ "one": { "a": 1 }, "maybe": [1, null] }),
            json!({ "one": { "a": 1 }, "many": [[1, null]] }),
            json!({ "one": { "a": 1 }, "named": { "x": [1, null] } }),
            json!({ "one": { "a": 1 }, "named": [] }),
            json!({ "one": { "a": 1 }, "pair": [1, [1, null]] }),
            json!({ "one": { "a": 1 }, "choice": { "with": [1, null] } }),
            json!({ "one": { "a": 1 }, "choice": { "fields": [{ "a": 1 }] } }),
            json!({ "one": { "a": 1 }, "choice": { "fields": { "inner": [1, null] } } }),
        ] {
            let error = read(refused.clone()).unwrap_err();
            assert!(error.starts_with("invalid type: sequence"), "{refused}: {error}");
        }
    }

    #[test]
    fn everything_else_reads_as_before() {
        for value in [
            json!({ "one": { "a": 1, "b": null }, "maybe": null, "many": [], "free": [1, { "x": [true, null, 1.5] }] }),
            json!({ "one": { "a": 1, "b": "x" }, "maybe": { "a": 2 }, "many": [{ "a": 3 }], "named": { "x": { "a": 4 } } }),
            json!({ "one": { "a": 1 }, "pair": [1, { "a": 2 }], "choice": "plain" }),
            json!({ "one": { "a": 1 }, "choice": { "with": { "a": 2 } } }),
            json!({ "one": { "a": 1 }, "choice": { "fields": { "inner": { "a": 2 } } } }),
            json!({ "one": { "a": 1, "c": 1 } }),
            json!({ "one": { "a": 300 } }),
            json!({ "one": null }),
            json!({ "one": { "a": 1 }, "pair": [1, { "a": 2 }, 3] }),
            json!({ "one": { "a": 1 }, "choice": "other" }),
            json!({ "one": { "a": 1 }, "choice": 1 }),
            json!({ "one": { "a": "1" }, "many": {} }),
            json!({ "many": [] }),
        ] {
            let usual = Outer::deserialize(value.clone()).map_err(|error| error.to_string());
            match (read(value.clone()), usual) {
                (Ok(ours), Ok(usual)) => assert_eq!(ours, usual),
                (Err(_), Err(_)) => {}
                (ours, usual) => panic!("{value}: {ours:?} instead of {usual:?}"),
            }
        }
    }
}
