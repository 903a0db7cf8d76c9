//! The same wire on both sides: the few fields that must differ are edited, the rest stays byte for
//! byte as the client wrote it.

use serde_json::{Value, json};
use tale_core::problem::Problem;
use tale_models::wire::{ApiFormat, WireDialect};

use super::{Request, Upstream};
use crate::json::{field, quoted};

/// Fields that are written here and not taken over.
const OWN: &[&str] = &["model", "max_tokens", "max_completion_tokens", "stream_options"];

pub(super) fn body(request: &Request, upstream: &Upstream<'_>) -> Result<Vec<u8>, Problem> {
    let facts = upstream.facts;
    let modern = upstream.dialect == WireDialect::OpenAiModern;
    let openai = upstream.format == ApiFormat::OpenAi;
    let mut out = String::with_capacity(request.text.len() + 128);
    out.push_str("{\"model\":");
    out.push_str(&quoted(&facts.id));
    let mut add = |name: &str, value: &str| {
        out.push(',');
        out.push_str(&quoted(name));
        out.push(':');
        out.push_str(value);
    };
    if let Some(cap) = request.stated_cap(facts) {
        add(if openai && modern { "max_completion_tokens" } else { "max_tokens" }, &cap.to_string());
    }
    if openai && request.stream {
        add("stream_options", &stream_options(request).to_string());
    }
    let no_reasoning = openai && facts.tools_require_no_reasoning && request.tools;
    if no_reasoning {
        // Left out, the model's own default would reason and refuse the tools.
        add("reasoning_effort", "\"none\"");
    }
    let set = facts.extra_body.fields();
    for (at, one) in request.fields.iter().enumerate() {
        let name = one.name.as_str();
        let later = request.fields[at + 1..].iter().any(|other| other.name == one.name);
        // what an administrator laid down for the model stands
        let dropped = OWN.contains(&name)
            || set.contains_key(name)
            || (no_reasoning && name == "reasoning_effort")
            || (openai && modern && facts.reasoning && name == "temperature");
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
    use tale_models::ExtraBody;
    use tale_models::wire::ModelFacts;

    use super::*;

    #[test]
    fn what_is_not_edited_stays_as_it_was_written() {
        let facts = ModelFacts {
            id: "real".into(),
            max_output_tokens: Some(100),
            reasoning: true,
            extra_body: ExtraBody::new(json!({ "transforms": ["x"] }).as_object().unwrap().clone()),
            ..ModelFacts::default()
        };
        let upstream = Upstream { format: ApiFormat::OpenAi, dialect: WireDialect::OpenAiModern, facts: &facts };
        let text = r#"{"messages":[ {"role":"user", "content":"a\u00e4"} ],"model":"p/x", "seed":1.50e1,"transforms":[],"max_tokens":500,"temperature":0.5,"stream":true,"stream_options":{"other":1},"seed":2.50e1}"#;
        let request = Request::read(ApiFormat::OpenAi, text.as_bytes().to_vec()).unwrap();
        let body = String::from_utf8(request.body_for(&upstream).unwrap()).unwrap();
        assert_eq!(
            body,
            r#"{"model":"real","max_completion_tokens":100,"stream_options":{"include_usage":true,"other":1},"messages":[ {"role":"user", "content":"a\u00e4"} ],"stream":true,"seed":2.50e1,"transforms":["x"]}"#
        );
    }
}
