//! A JSON value that is read to the letter: an object is an object, however deep it lies.
//!
//! `serde`'s derived readers also take a list as a struct's fields in order, which no contract says
//! and every new field would break. This reader refuses it wherever a struct is expected. Types that
//! buffer what they read (untagged or internally tagged enums) read past it; no body has one.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Error, Map, Value};

/// The value.
pub(super) struct Strict(pub(super) Value);

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
