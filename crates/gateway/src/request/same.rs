//! The same wire on both sides: the few fields that must differ are edited, the rest stays byte for
//! byte as the client wrote it.

use serde_json::{Value, json};
use tale_core::problem::Problem;
use tale_models::wire::{ModelFacts, WireDialect};

use super::{Request, Upstream, responses};
use crate::json::{field, quoted};
use crate::wire::Wire;

/// Fields that are written here and not taken over.
const OWN: &[&str] = &["model", "max_tokens", "max_completion_tokens", "max_output_tokens"];

pub(super) fn body(request: &Request, upstream: &Upstream<'_>) -> Result<Vec<u8>, Problem> {
    let (facts, wire) = (upstream.facts, upstream.wire);
    let modern = upstream.dialect == WireDialect::OpenAiModern;
    let mut out = String::with_capacity(request.text.len() + 128);
    out.push_str("{\"model\":");
    out.push_str(&quoted(&facts.id));
    let mut written: Vec<&str> = Vec::new();
    let mut add = |name: &str, value: &str| {
        out.push(',');
        out.push_str(&quoted(name));
        out.push(':');
        out.push_str(value);
    };
    if let Some(cap) = request.stated_cap(facts) {
        let field = if wire == Wire::Chat && !modern { "max_tokens" } else { wire.cap_field() };
        add(field, &cap.to_string());
    }
    if wire == Wire::Chat && request.stream {
        add("stream_options", &stream_options(request).to_string());
    }
    // Left out, the model's own default would reason and refuse the tools.
    let no_reasoning = wire.is_openai() && facts.tools_require_no_reasoning && request.tools;
    match wire {
        Wire::Chat => {
            written.push("stream_options");
            if no_reasoning {
                add("reasoning_effort", "\"none\"");
                written.push("reasoning_effort");
            }
        }
        Wire::Responses => {
            // Left out, the provider would store the answer.
            add("store", "false");
            written.push("store");
            if let Some(tools) = kept_tools(request) {
                add("tools", &tools.to_string());
                written.push("tools");
            }
            if no_reasoning {
                add("reasoning", "{\"effort\":\"none\"}");
                written.push("reasoning");
            }
        }
        Wire::Messages => {}
    }
    let set = facts.extra_body.fields();
    for (at, one) in request.fields.iter().enumerate() {
        let name = one.name.as_str();
        let later = request.fields[at + 1..].iter().any(|other| other.name == one.name);
        // what an administrator laid down for the model stands
        let dropped = OWN.contains(&name)
            || written.contains(&name)
            || set.contains_key(name)
            || (wire.is_openai() && modern && facts.reasoning && name == "temperature");
        if !later && !dropped {
            add(name, &request.text[one.value.clone()]);
        }
    }
    for (name, value) in &set {
        add(name, &value.to_string());
    }
    out.push('}');
    Ok(out.into_bytes())
}

/// The same for the service that counts tokens, which knows nothing of answers.
pub(super) fn body_to_count(request: &Request, facts: &ModelFacts) -> Vec<u8> {
    let mut out = format!("{{\"model\":{}", quoted(&facts.id));
    for (at, one) in request.fields.iter().enumerate() {
        let later = request.fields[at + 1..].iter().any(|other| other.name == one.name);
        if !later && !OWN.contains(&one.name.as_str()) && one.name != "stream" {
            out.push_str(&format!(",{}:{}", quoted(&one.name), &request.text[one.value.clone()]));
        }
    }
    out.push('}');
    out.into_bytes()
}

/// The tools without those that are left out; `None` when none is.
fn kept_tools(request: &Request) -> Option<Value> {
    let range = field(&request.fields, "tools")?;
    let mut tools: Vec<Value> = serde_json::from_str(&request.text[range.clone()]).ok()?;
    let all = tools.len();
    tools.retain(|tool| !responses::left_out(tool));
    (tools.len() != all).then_some(Value::Array(tools))
}

/// The client's options; usage is always asked for, because the call is charged by it.
fn stream_options(request: &Request) -> Value {
    let own = field(&request.fields, "stream_options").map(|range| &request.text[range.clone()]);
    let mut options: Value = own.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match options.as_object_mut() {
        Some(options) => {
            options.insert("include_usage".to_owned(), json!(true));
        }
        None => options = json!({ "include_usage": true }),
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use tale_models::ExtraBody;

    #[test]
    fn what_is_counted_is_the_prompt() {
        let text = r#"{"model":"p/x","system":"s","messages":[],"stream":true,"max_tokens":5}"#;
        let request = Request::read_to_count(Wire::Messages, text.into()).unwrap();
        let facts = ModelFacts { id: "real".into(), ..ModelFacts::default() };
        let body = String::from_utf8(request.body_to_count(&facts)).unwrap();
        assert_eq!(body, r#"{"model":"real","system":"s","messages":[]}"#);
        assert!(Request::read(Wire::Messages, br#"{"model":"p/x","messages":[]}"#.to_vec()).is_err());
    }

    #[test]
    fn what_is_not_edited_stays_as_it_was_written() {
        let facts = ModelFacts {
            id: "real".into(),
            max_output_tokens: Some(100),
            reasoning: true,
            extra_body: ExtraBody::new(json!({ "transforms": ["x"] }).as_object().unwrap().clone()),
            ..ModelFacts::default()
        };
        let upstream = Upstream { wire: Wire::Chat, dialect: WireDialect::OpenAiModern, facts: &facts };
        let text = r#"{"messages":[ {"role":"user", "content":"a\u00e4"} ],"model":"p/x", "seed":1.50e1,"transforms":[],"max_tokens":500,"temperature":0.5,"stream":true,"stream_options":{"other":1},"seed":2.50e1}"#;
        let request = Request::read(Wire::Chat, text.as_bytes().to_vec()).unwrap();
        let body = String::from_utf8(request.body_for(&upstream).unwrap()).unwrap();
        assert_eq!(
            body,
            r#"{"model":"real","max_completion_tokens":100,"stream_options":{"include_usage":true,"other":1},"messages":[ {"role":"user", "content":"a\u00e4"} ],"stream":true,"seed":2.50e1,"transforms":["x"]}"#
        );
    }
}
