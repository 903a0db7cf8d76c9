//! The contract: committed as it is generated, complete, and true to what the doors do.

use std::collections::HashSet;

use serde_json::Value;
use tale_core::crypto::{hex_of, sha256};

const COMMITTED: &str = include_str!("../../openapi.json");
const TYPES: &str = include_str!("../../../../web/src/lib/api/schema.ts");

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            all.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    all
}

#[test]
fn the_committed_contract_and_its_types_are_current() {
    let mut now = serde_json::to_string_pretty(&tale_http::contract::document()).unwrap();
    now.push('\n');
    assert!(now == COMMITTED, "crates/http/openapi.json is not what the handlers say: run `make openapi`");
    let digest = hex_of(&sha256(COMMITTED.as_bytes()));
    assert!(
        TYPES.starts_with("/* Generated") && TYPES.lines().next().unwrap().contains(&digest),
        "web/src/lib/api/schema.ts is older than the contract: run `make openapi`"
    );
}

#[test]
fn every_operation_is_named_once_and_described() {
    let document = tale_http::contract::document();
    let mut names = HashSet::new();
    for (path, method, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} names two operations");
        assert!(operation["summary"].is_string(), "{method} {path} has no summary");
        assert!(operation["tags"].is_array(), "{method} {path} has no tag");
        let declared: Vec<&str> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|p| p["in"] == "path")
            .map(|p| p["name"].as_str().unwrap())
            .collect();
        let in_path: Vec<&str> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(in_path, declared, "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, inner)| match inner.as_str() {
                Some(target) if name == "$ref" => found.push(target.to_owned()),
                _ => walk(inner, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let document = tale_http::contract::document();
    let mut found = Vec::new();
    walk(&document, &mut found);
    assert!(found.len() > 500);
    for target in found {
        assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
    }
}

#[test]
fn nothing_is_null_but_a_word_among_others() {
    fn walk(value: &Value, at: &str) {
        match value {
            Value::Null => panic!("{at} is null"),
            Value::Object(fields) => fields
                .iter()
                .filter(|(name, _)| !["enum", "default"].contains(&name.as_str()))
                .for_each(|(name, inner)| walk(inner, &format!("{at}/{name}"))),
            Value::Array(items) => items.iter().for_each(|item| walk(item, at)),
            _ => {}
        }
    }
    walk(&tale_http::contract::document(), "");
}

#[test]
fn each_door_declares_its_key_its_refusals_and_its_pages() {
    let document = tale_http::contract::document();
    for (path, method, operation) in operations(&document) {
        let at = format!("{method} {path}");
        let answers = |status: &str| operation["responses"].get(status).is_some();
        let takes =
            |name: &str| operation["parameters"].as_array().is_some_and(|all| all.iter().any(|p| p["name"] == name));
        if path.starts_with("/api/v1") {
            assert_eq!(operation["security"][0]["key"], serde_json::json!([]), "{at}");
            assert!(takes("X-Organization-Slug") && answers("401") && answers("403") && answers("429"), "{at}");
        }
        if path.starts_with("/api/") && path != "/api/health" {
            assert!(answers("400") && answers("default"), "{at}");
            assert_eq!(path.contains('{'), answers("404"), "{at}");
            assert_eq!(operation.get("requestBody").is_some(), operation.get("x-tale-body-cap").is_some(), "{at}");
        }
        assert_eq!(takes("cursor"), operation.get("x-tale-pagination").is_some(), "{at}");
        if method == "post" && path.starts_with("/api/v1") {
            let query = operation["parameters"].as_array().unwrap().iter().any(|p| p["in"] == "query");
            assert!(!query, "{at}: writes take no query parameters");
        }
    }
    let codes = document["components"]["schemas"]["Error"]["properties"]["code"]["enum"].as_array().unwrap();
    assert_eq!(codes.len(), tale_core::Code::ALL.len());
}
