//! Changes of a resource (RFC 7644, 3.5.2), applied to its JSON: with paths, and in the form without a path whose
//! value is an object, which large directories use.

use serde_json::{Map, Value, json};

use super::filter::{self, Filter, Operator, Target};
use super::schema::{self, Attribute, Kind};
use super::{Invalid, ScimError};

/// Most changes of one request.
const MAX_OPERATIONS: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Add,
    Replace,
    Remove,
}

fn no_target(detail: impl Into<String>) -> ScimError {
    ScimError::invalid(Invalid::NoTarget, detail)
}

fn syntax(detail: &str) -> ScimError {
    ScimError::invalid(Invalid::Syntax, detail)
}

/// Applies the operations of `body` to a resource. What they leave is not checked.
pub(crate) fn apply(
    attributes: &[Attribute],
    resource: &mut Map<String, Value>,
    body: &Value,
) -> Result<(), ScimError> {
    let operations = part(body, "Operations").and_then(Value::as_array);
    let operations = operations.ok_or_else(|| syntax("a change needs `Operations`, a list"))?;
    if operations.is_empty() || operations.len() > MAX_OPERATIONS {
        return Err(syntax(&format!("a change has 1 to {MAX_OPERATIONS} operations")));
    }
    for operation in operations {
        let act = match part(operation, "op").and_then(Value::as_str).map(str::to_ascii_lowercase).as_deref() {
            Some("add") => Act::Add,
            Some("replace") => Act::Replace,
            Some("remove") => Act::Remove,
            _ => return Err(syntax("`op` must be add, replace or remove")),
        };
        let value = part(operation, "value");
        match part(operation, "path") {
            Some(Value::String(path)) if !path.is_empty() => {
                change(attributes, resource, act, filter::parse_target(path)?, value, true)?;
            }
            None | Some(Value::Null | Value::String(_)) => {
                let Some(Value::Object(parts)) = value else {
                    return Err(match act {
                        Act::Remove => no_target("a removal needs a `path`"),
                        Act::Add | Act::Replace => {
                            ScimError::invalid(Invalid::Value, "without a `path`, `value` must be an object")
                        }
                    });
                };
                if act == Act::Remove {
                    return Err(no_target("a removal needs a `path`"));
                }
                for (name, value) in parts {
                    let Ok(target) = filter::parse_target(name) else { continue };
                    change(attributes, resource, act, target, Some(value), false)?;
                }
            }
            Some(_) => return Err(ScimError::invalid(Invalid::Path, "`path` must be a text")),
        }
    }
    Ok(())
}

/// A part of an object, whatever the case of its name.
fn part<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let parts = value.as_object()?;
    parts.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// `strict`: an attribute that nobody knows or that cannot be written is an error, not left aside.
fn change(
    attributes: &[Attribute],
    resource: &mut Map<String, Value>,
    act: Act,
    target: Target,
    value: Option<&Value>,
    strict: bool,
) -> Result<(), ScimError> {
    let Some(attribute) = schema::find(attributes, &target.attribute) else {
        if !strict || schema::is_not_kept(&target.attribute) {
            return Ok(());
        }
        return Err(ScimError::invalid(Invalid::Path, format!("there is no attribute `{}`", target.attribute)));
    };
    if attribute.read_only {
        if !strict {
            return Ok(());
        }
        return Err(ScimError::invalid(Invalid::Mutability, format!("`{}` cannot be changed", attribute.name)));
    }
    let sub = match &target.sub {
        Some(name) => match schema::find(attribute.sub, name) {
            Some(sub) => Some(sub.name),
            None if !strict || attribute.kind == Kind::Complex => return Ok(()),
            None => return Err(ScimError::invalid(Invalid::Path, format!("`{}` has no parts", attribute.name))),
        },
        None => None,
    };
    let value = match (act, value) {
        (Act::Remove, value) => value.cloned(),
        (_, Some(value)) => Some(value.clone()),
        (_, None) => return Err(ScimError::invalid(Invalid::Value, "`value` is missing")),
    };
    match (&target.filter, attribute.many) {
        (Some(_), false) => {
            Err(ScimError::invalid(Invalid::Path, format!("`{}` has one value and takes no filter", attribute.name)))
        }
        (Some(filter), true) => among(attribute, resource, act, filter, sub, value),
        (None, _) => whole(attribute, resource, act, sub, value),
    }
}

/// Changes an attribute as a whole, or a part of it.
fn whole(
    attribute: &Attribute,
    resource: &mut Map<String, Value>,
    act: Act,
    sub: Option<&'static str>,
    value: Option<Value>,
) -> Result<(), ScimError> {
    let name = attribute.name.to_owned();
    match (act, sub, attribute.many) {
        (Act::Remove, None, true) if value.as_ref().is_some_and(|value| !value.is_null()) => {
            // Some directories say with a value which ones go.
            let gone = listed(attribute, value.unwrap_or_default());
            if let Some(Value::Array(values)) = resource.get_mut(&name) {
                values.retain(|held| !gone.iter().any(|gone| same(held, gone)));
            }
        }
        (Act::Remove, None, _) => drop(resource.remove(&name)),
        (Act::Remove, Some(sub), _) => {
            if let Some(held) = resource.get_mut(&name) {
                for one in ones(held) {
                    one.remove(sub);
                }
            }
        }
        (_, Some(sub), false) => {
            let held = resource.entry(name).or_insert_with(|| json!({}));
            for one in ones(held) {
                one.insert(sub.to_owned(), value.clone().unwrap_or_default());
            }
        }
        (_, Some(sub), true) => {
            let held = resource.entry(name).or_insert_with(|| json!([{}]));
            for one in ones(held) {
                one.insert(sub.to_owned(), value.clone().unwrap_or_default());
            }
        }
        (Act::Add, None, true) => {
            let new = listed(attribute, value.unwrap_or_default());
            let held = resource.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(held) = held {
                for value in new {
                    if held.iter().any(|held| same(held, &value)) {
                        continue;
                    }
                    yield_primary(held, &value);
                    held.push(value);
                }
            }
        }
        (Act::Replace, None, true) => {
            resource.insert(name, Value::Array(listed(attribute, value.unwrap_or_default())));
        }
        (_, None, false) => {
            let value = value.unwrap_or_default();
            match (resource.get_mut(&name).and_then(Value::as_object_mut), &value) {
                // The parts that are not named stay.
                (Some(held), Value::Object(parts)) => {
                    for (part, value) in parts {
                        if let Some(sub) = schema::find(attribute.sub, part) {
                            held.insert(sub.name.to_owned(), value.clone());
                        }
                    }
                }
                _ => drop(resource.insert(name, value)),
            }
        }
    }
    Ok(())
}

/// Changes those values of an attribute that match a filter.
fn among(
    attribute: &Attribute,
    resource: &mut Map<String, Value>,
    act: Act,
    filter: &Filter,
    sub: Option<&'static str>,
    value: Option<Value>,
) -> Result<(), ScimError> {
    let held = resource.entry(attribute.name).or_insert_with(|| json!([]));
    let Value::Array(held) = held else { return Err(no_target("the attribute has no values")) };
    let matching: Vec<usize> = (0..held.len()).filter(|at| filter.matches(attribute.sub, &held[*at])).collect();
    if act == Act::Remove {
        match sub {
            None => {
                let mut at = 0;
                held.retain(|_| {
                    at += 1;
                    !matching.contains(&(at - 1))
                });
            }
            Some(sub) => {
                for at in matching {
                    if let Value::Object(one) = &mut held[at] {
                        one.remove(sub);
                    }
                }
            }
        }
        return Ok(());
    }
    let value = value.unwrap_or_default();
    if matching.is_empty() {
        // Some directories add what the filter describes with it.
        let (Act::Add, Filter::Compare(path, Operator::Equal, wanted)) = (act, filter) else {
            return Err(no_target(format!("no value of `{}` matches the filter", attribute.name)));
        };
        let mut one = Map::from_iter([(path.attribute.clone(), wanted.clone())]);
        match (sub, value) {
            (Some(sub), value) => drop(one.insert(sub.to_owned(), value)),
            (None, Value::Object(parts)) => one.extend(parts),
            (None, _) => return Err(ScimError::invalid(Invalid::Value, "`value` must be an object")),
        }
        let one = Value::Object(one);
        yield_primary(held, &one);
        held.push(one);
        return Ok(());
    }
    for at in matching {
        match (sub, &value) {
            (Some(sub), value) => {
                let whole = json!({ sub: value });
                yield_primary(held, &whole);
                if let Value::Object(one) = &mut held[at] {
                    one.insert(sub.to_owned(), value.clone());
                }
            }
            (None, Value::Object(parts)) => {
                yield_primary(held, &value);
                match (&mut held[at], act) {
                    (Value::Object(one), Act::Add) => one.extend(parts.clone()),
                    (one, _) => *one = value.clone(),
                }
            }
            (None, _) => return Err(ScimError::invalid(Invalid::Value, "`value` must be an object")),
        }
    }
    Ok(())
}

/// A new primary value takes the place of the old one.
fn yield_primary(held: &mut [Value], new: &Value) {
    if new.get("primary") == Some(&Value::Bool(true)) {
        for one in held {
            if let Value::Object(one) = one
                && one.get("primary") == Some(&Value::Bool(true))
            {
                one.insert("primary".to_owned(), Value::Bool(false));
            }
        }
    }
}

/// A list of values under the names of the schema, of one value or several.
fn listed(attribute: &Attribute, value: Value) -> Vec<Value> {
    let many = match value {
        Value::Array(many) => many,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    let named = |one| match one {
        Value::Object(parts) => {
            let name = |part: String| schema::find(attribute.sub, &part).map_or(part, |sub| sub.name.to_owned());
            Value::Object(parts.into_iter().map(|(part, value)| (name(part), value)).collect())
        }
        one => one,
    };
    many.into_iter().map(named).collect()
}

/// Whether two values are the same one: those with a `value` by it, others as a whole.
fn same(held: &Value, other: &Value) -> bool {
    match (held.get("value"), other.get("value")) {
        (Some(held), Some(other)) => held == other,
        _ => held == other,
    }
}

fn ones(held: &mut Value) -> Vec<&mut Map<String, Value>> {
    match held {
        Value::Array(many) => many.iter_mut().filter_map(Value::as_object_mut).collect(),
        Value::Object(one) => vec![one],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(before: Value, operations: Value) -> Result<Value, ScimError> {
        let Value::Object(mut resource) = before else { panic!("a resource is an object") };
        apply(schema::USER, &mut resource, &json!({ "Operations": operations }))?;
        Ok(Value::Object(resource))
    }

    fn ann() -> Value {
        json!({ "userName": "ann", "name": { "givenName": "Ann" }, "emails": [{ "value": "a@b", "type": "work", "primary": true }] })
    }

    #[test]
    fn the_forms_of_the_standard_and_of_large_directories() {
        let cases = [
            (json!([{ "op": "Replace", "path": "active", "value": "False" }]), "/active", json!("False")),
            (json!([{ "op": "replace", "value": { "active": false, "shoeSize": 4 } }]), "/active", json!(false)),
            (
                json!([{ "op": "add", "path": "name.familyName", "value": "Lee" }]),
                "/name",
                json!({ "givenName": "Ann", "familyName": "Lee" }),
            ),
            (
                json!([{ "op": "replace", "path": "name", "value": { "FamilyName": "Lee" } }]),
                "/name/givenName",
                json!("Ann"),
            ),
            (json!([{ "op": "replace", "value": { "name.givenName": "Eve" } }]), "/name/givenName", json!("Eve")),
            (
                json!([{ "op": "replace", "path": "emails[type eq \"work\"].value", "value": "n@b" }]),
                "/emails/0/value",
                json!("n@b"),
            ),
            (
                json!([{ "op": "add", "path": "emails[type eq \"home\"].value", "value": "h@b" }]),
                "/emails/1",
                json!({ "type": "home", "value": "h@b" }),
            ),
            (
                json!([{ "op": "add", "path": "emails", "value": [{ "value": "p@b", "primary": true }] }]),
                "/emails/0/primary",
                json!(false),
            ),
            (
                json!([{ "op": "remove", "path": "emails[type eq \"work\"].primary" }]),
                "/emails",
                json!([{ "value": "a@b", "type": "work" }]),
            ),
            (json!([{ "op": "remove", "path": "emails", "value": [{ "value": "a@b" }] }]), "/emails", json!([])),
            (
                json!([{ "op": "add", "path": "emails", "value": { "value": "a@b" } }]),
                "/emails",
                ann()["emails"].clone(),
            ),
            (
                json!([{ "op": "replace", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", "value": "x" }]),
                "/userName",
                json!("ann"),
            ),
        ];
        for (operations, at, expected) in cases {
            let resource = after(ann(), operations.clone()).unwrap_or_else(|error| panic!("{operations}: {error}"));
            assert_eq!(resource.pointer(at), Some(&expected), "{operations}");
        }
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        for (operations, kind) in [
            (json!([]), Invalid::Syntax),
            (json!([{ "op": "move", "path": "title" }]), Invalid::Syntax),
            (json!([{ "op": "remove" }]), Invalid::NoTarget),
            (json!([{ "op": "replace", "path": "shoeSize", "value": 1 }]), Invalid::Path),
            (json!([{ "op": "replace", "path": "title[a pr]", "value": 1 }]), Invalid::Path),
            (json!([{ "op": "replace", "path": "emails[type eq", "value": 1 }]), Invalid::Filter),
            (json!([{ "op": "replace", "path": "id", "value": "x" }]), Invalid::Mutability),
            (json!([{ "op": "replace", "path": "title" }]), Invalid::Value),
            (json!([{ "op": "replace", "path": "emails[type eq \"home\"].value", "value": "x" }]), Invalid::NoTarget),
        ] {
            match after(ann(), operations.clone()) {
                Err(ScimError::Invalid { kind: found, .. }) => assert_eq!(found, kind, "{operations}"),
                other => panic!("{operations}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_ends_checked_or_refused(
            op in "add|replace|remove|x", path in "(title|name|emails|id|active|groups|x)?(\\[(type|value) (eq|pr) ?(\"work\")?\\])?(\\.(value|givenName|x))?",
            value in prop_oneof![
                Just(Value::Null), any::<bool>().prop_map(Value::from), "\\PC{0,5}".prop_map(Value::from),
                Just(json!([])), Just(json!([{ "value": "x", "primary": true }, 4])), Just(json!({ "value": { "a": [] } })), Just(json!([[[]]])),
            ],
        ) {
            if let Ok(resource) = after(ann(), json!([{ "op": op, "path": path, "value": value }])) {
                let _ = schema::cleaned(schema::USER, &resource);
            }
        }
    }
}
