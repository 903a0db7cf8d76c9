//! Fields that a definition or a model adds to the body of its requests (MOD-76): the routing
//! options of a gateway, a service tier and the like.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};
use tale_core::problem::{Code, Issue, Problem};

/// Keys that would overwrite what a request is made of.
const FORBIDDEN: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "stop",
    "seed",
    "response_format",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "frequency_penalty",
    "presence_penalty",
    "store",
    "metadata",
    "prompt",
    "size",
    "user",
    "reasoning_effort",
    "verbosity",
    // The same for the interfaces beside chat completions.
    "input",
    "instructions",
    "include",
    "max_output_tokens",
    "system",
    "dimensions",
    "encoding_format",
    "file",
];
/// Most fields.
const MAX_FIELDS: usize = 32;
/// Most bytes as JSON.
const MAX_BYTES: usize = 8 << 10;

/// Extra fields of a request's body. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtraBody(Option<Arc<Map<String, Value>>>);

impl ExtraBody {
    /// These fields, not yet judged; see [`ExtraBody::check`].
    #[must_use]
    pub fn new(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Arc::new(fields)))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        self.0.as_deref().cloned().unwrap_or_default()
    }

    /// Judges the fields; `path` is the field's name in messages.
    ///
    /// # Errors
    /// `EXTRA_BODY_KEY_FORBIDDEN` naming the key, `INVALID_BODY` for too many or too large ones.
    pub fn check(&self, path: &str) -> Result<(), Problem> {
        let Some(fields) = &self.0 else { return Ok(()) };
        if let Some(key) = fields.keys().find(|key| FORBIDDEN.contains(&key.trim().to_ascii_lowercase().as_str())) {
            return Err(Problem::new(
                Code::ExtraBodyKeyForbidden,
                format!("`{path}` must not set `{key}`, because that would overwrite the request itself. Remove the field and save again."),
            )
            .with_data(json!({ "key": key, "issues": [{ "path": format!("{path}.{key}"), "message": "must not be set" }] })));
        }
        let too_large = serde_json::to_vec(fields.as_ref()).map_or(true, |bytes| bytes.len() > MAX_BYTES);
        if fields.len() > MAX_FIELDS || too_large {
            let why = format!("must hold at most {MAX_FIELDS} fields and {} KiB", MAX_BYTES / 1_024);
            return Err(Problem::invalid_body(vec![Issue::new(path, why)]));
        }
        Ok(())
    }

    /// These fields over those of `base`.
    #[must_use]
    pub(crate) fn over(&self, base: &Self) -> Self {
        match (&self.0, &base.0) {
            (None, _) => base.clone(),
            (_, None) => self.clone(),
            (Some(own), Some(base)) => {
                let mut merged = base.as_ref().clone();
                merged.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
                Self::new(merged)
            }
        }
    }

    /// Adds the fields to a body. What the request itself says stays as it is.
    pub(crate) fn add_to(&self, body: &mut Value) {
        if let (Some(fields), Some(body)) = (&self.0, body.as_object_mut()) {
            for (key, value) in fields.iter() {
                body.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
}

impl Serialize for ExtraBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_deref().unwrap_or(&Map::new()).serialize(serializer)
    }
}

/// Reads and judges: a definition with a forbidden key does not load.
impl<'de> Deserialize<'de> for ExtraBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let extra = Self::new(Map::deserialize(deserializer)?);
        extra.check("extraBody").map_err(|problem| de::Error::custom(&problem))?;
        Ok(extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(value: Value) -> ExtraBody {
        ExtraBody::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn keys_of_the_request_are_refused_by_name_in_any_case() {
        for key in FORBIDDEN.iter().copied().chain(["Model", " stream "]) {
            let problem = extra(json!({ "provider": {}, key: "sk-oops" })).check("extraBody").unwrap_err();
            assert_eq!(problem.code, Code::ExtraBodyKeyForbidden, "{key}");
            assert_eq!(problem.data.as_ref().unwrap()["key"], key);
            assert!(problem.message.contains(key) && !problem.message.contains("oops"));
            let load = serde_json::from_value::<ExtraBody>(json!({ key: 1 })).unwrap_err().to_string();
            assert!(load.contains("EXTRA_BODY_KEY_FORBIDDEN") && load.contains(key), "{load}");
        }
        assert_eq!(
            extra(json!({ "x": "y".repeat(MAX_BYTES) })).check("extraBody").unwrap_err().code,
            Code::InvalidBody
        );
        assert!(extra(json!({ "service_tier": "flex" })).check("extraBody").is_ok());
    }

    #[test]
    fn a_model_s_fields_win_over_its_provider_s_and_the_request_over_both() {
        let provider = extra(json!({ "service_tier": "flex", "provider": { "order": ["a"] } }));
        let model = extra(json!({ "service_tier": "priority", "reasoning": { "effort": "max" } }));
        let mut body = json!({ "model": "m", "reasoning": { "effort": "low" } });
        model.over(&provider).add_to(&mut body);
        assert_eq!(
            body,
            json!({ "model": "m", "reasoning": { "effort": "low" }, "service_tier": "priority", "provider": { "order": ["a"] } })
        );
    }
}
