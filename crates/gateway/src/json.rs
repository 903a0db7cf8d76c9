//! Small edits of JSON text: what is not edited stays as it was written, byte for byte.

use std::ops::Range;

/// Where a field of an object stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name, decoded.
    pub(crate) name: String,
    /// Its value, without surrounding space.
    pub(crate) value: Range<usize>,
}

/// The fields of the object that `text` is, in their order. `text` must be valid JSON; of anything
/// but an object there are none.
pub(crate) fn fields(text: &str) -> Vec<Field> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(16);
    let mut at = space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return found;
    }
    at += 1;
    loop {
        at = space(bytes, at);
        if bytes.get(at) != Some(&b'"') {
            return found;
        }
        let end = string_end(bytes, at);
        let Some(Ok(name)) = text.get(at..end).map(serde_json::from_str::<String>) else { return found };
        at = space(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return found;
        }
        at = space(bytes, at + 1);
        let end = value_end(bytes, at);
        found.push(Field { name, value: at..end });
        at = space(bytes, end);
        if bytes.get(at) != Some(&b',') {
            return found;
        }
        at += 1;
    }
}

/// The value of the last field called `name`: of two equal keys the last one counts.
pub(crate) fn field<'a>(fields: &'a [Field], name: &str) -> Option<&'a Range<usize>> {
    fields.iter().rev().find(|field| field.name == name).map(|field| &field.value)
}

/// `text` with `range` replaced.
pub(crate) fn spliced(text: &str, range: &Range<usize>, with: &str) -> String {
    let mut out = String::with_capacity(text.len() + with.len());
    out.push_str(&text[..range.start]);
    out.push_str(with);
    out.push_str(&text[range.end..]);
    out
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The position after the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// The position after the value that begins at `at`.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            "[\\\\\"{}\\[\\],:é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_field_is_found_where_it_stands(object in prop::collection::btree_map("[a-c\"\\\\ü]{0,4}", value(), 0..6), pretty: bool) {
            let object = Value::Object(object.into_iter().collect());
            let text = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let found = fields(&text);
            let read: serde_json::Map<String, Value> =
                found.iter().map(|field| (field.name.clone(), serde_json::from_str(&text[field.value.clone()]).unwrap())).collect();
            prop_assert_eq!(Value::Object(read), object);
        }

        #[test]
        fn no_text_makes_it_fail(text in ".{0,40}", object in "\\{[\\{\\}\\[\\]\",:\\\\a1 ]{0,30}") {
            let _ = (fields(&text), fields(&object));
        }
    }
}
