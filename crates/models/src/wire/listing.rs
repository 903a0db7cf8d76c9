//! Reads a provider's list of models (MOD-13…MOD-16).

use std::time::Duration;

use serde_json::Value;

use super::client::WireClient;
use super::error::{ModelError, ModelErrorCode};
use super::{ApiFormat, Target};

/// Longest wait for a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// Largest list.
const MAX_LIST_BYTES: usize = 16 << 20;
/// Most entries of a list.
const MAX_LIST_ENTRIES: usize = 20_000;

/// One entry of a provider's own list, as far as it tells.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// The model's id.
    pub id: String,
    /// A readable name, when given.
    pub display_name: Option<String>,
    /// The context window in tokens, when given.
    pub context_window: Option<u32>,
    /// The largest answer in tokens, when given.
    pub max_output_tokens: Option<u32>,
    /// What it produces.
    pub kind: ListedKind,
    /// Whether it takes images, when told.
    pub vision: Option<bool>,
    /// Whether it calls tools, when told.
    pub tools: Option<bool>,
    /// Whether it has a reasoning knob, when told.
    pub reasoning: Option<bool>,
    /// US dollars per million tokens of input, output and cached input, when told.
    pub prices: [Option<f64>; 3],
    /// US dollars per minute of a recording, when told.
    pub per_minute: Option<f64>,
}

/// What a listed model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedKind {
    /// Chat.
    Chat,
    /// Vectors.
    Embedding,
    /// Text from recordings.
    Transcription,
    /// Something this product does not call (speech, pictures).
    Other,
}

impl WireClient {
    /// Reads `GET <base>/models` (`/v1/models` in the Anthropic format). `query` narrows it.
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses, cannot be reached, or sends no list.
    pub async fn list_models(&self, target: &Target, query: Option<&str>) -> Result<Vec<ListedModel>, ModelError> {
        let path: &[&str] = match target.format {
            ApiFormat::OpenAi => &["models"],
            ApiFormat::Anthropic => &["v1", "models"],
        };
        let query = query.or(match target.format {
            ApiFormat::OpenAi => None,
            ApiFormat::Anthropic => Some("limit=1000"),
        });
        let read = async {
            let response = self.get(target, path, query).await?;
            self.json(response, MAX_LIST_BYTES).await
        };
        let answer = match tokio::time::timeout(LIST_TIMEOUT, read).await {
            Ok(answer) => answer,
            Err(_) => Err(super::pump::idle(LIST_TIMEOUT)),
        };
        answer.and_then(|value| parse(&value)).map_err(|error| error.scrubbed(target.secret.as_ref(), &target.base))
    }
}

fn parse(value: &Value) -> Result<Vec<ListedModel>, ModelError> {
    let entries = value.get("data").or_else(|| value.get("models")).unwrap_or(value).as_array().ok_or_else(|| {
        ModelError::new(
            ModelErrorCode::Generic,
            "The provider's answer is not a list of models. Check the base URL, or enter the model ids by hand.",
        )
    })?;
    if entries.len() > MAX_LIST_ENTRIES {
        return Err(ModelError::new(
            ModelErrorCode::Generic,
            format!("The provider lists more than {MAX_LIST_ENTRIES} models."),
        ));
    }
    let mut models: Vec<ListedModel> = entries.iter().filter_map(entry).collect();
    models.sort_by(|a, b| a.id.cmp(&b.id));
    models.dedup_by(|a, b| a.id == b.id);
    Ok(models)
}

fn entry(value: &Value) -> Option<ListedModel> {
    let id = match value {
        Value::String(id) => id.as_str(),
        _ => value.get("id").or_else(|| value.get("name")).and_then(Value::as_str)?,
    };
    // Google's list writes `models/<id>`; its chat endpoint takes the bare id.
    let id = id.strip_prefix("models/").unwrap_or(id).trim();
    if id.is_empty() || id.len() > 200 || id.chars().any(char::is_control) {
        return None;
    }
    let number = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| value.pointer(name).and_then(Value::as_u64))
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
    };
    let outputs = words(value, &["/architecture/output_modalities", "/modalities/output"]);
    let inputs = words(value, &["/architecture/input_modalities", "/modalities/input", "/input_modalities"]);
    let parameters = words(value, &["/supported_parameters"]);
    let tags = words(value, &["/tags"]);
    let told = |list: &Option<Vec<&str>>, names: &[&str]| {
        list.as_ref().map(|list| names.iter().any(|name| list.contains(name)))
    };
    let price = |name: &str| {
        let per_token = value.pointer(name)?;
        let per_token = per_token.as_f64().or_else(|| per_token.as_str().and_then(|text| text.parse().ok()))?;
        // A millionth of a dollar per token is a dollar per million; sub-cent noise of the conversion is cut.
        (per_token >= 0.0).then(|| (per_token * 1e6 * 1e6).round() / 1e6)
    };
    let kind = kind(value, id, outputs.as_deref());
    let prices = [price("/pricing/prompt"), price("/pricing/completion"), price("/pricing/input_cache_read")];
    let (prices, per_minute) = match kind {
        ListedKind::Transcription => by_duration(prices),
        _ => (prices, None),
    };
    Some(ListedModel {
        id: id.to_owned(),
        display_name: ["display_name", "name"]
            .iter()
            .find_map(|key| value.get(*key).and_then(Value::as_str))
            .filter(|name| *name != id && !name.is_empty() && !name.starts_with("models/"))
            .map(|name| name.chars().take(100).collect()),
        context_window: number(&[
            "/context_length",
            "/context_window",
            "/max_model_len",
            "/max_context_length",
            "/max_input_tokens",
        ]),
        max_output_tokens: number(&[
            "/top_provider/max_completion_tokens",
            "/max_output_tokens",
            "/max_completion_tokens",
            "/max_tokens",
        ]),
        kind,
        vision: told(&inputs, &["image"])
            .or_else(|| told(&tags, &["vision"]))
            .or_else(|| value.pointer("/capabilities/vision").and_then(Value::as_bool)),
        tools: told(&parameters, &["tools"])
            .or_else(|| told(&tags, &["tool-use"]))
            .or_else(|| value.pointer("/capabilities/function_calling").and_then(Value::as_bool)),
        reasoning: told(&parameters, &["reasoning", "include_reasoning"]).or_else(|| told(&tags, &["reasoning"])),
        prices,
        per_minute,
    })
}

/// What a second of a recording costs, in millionths of a dollar: from four cents to three dollars and sixty an hour. Below
/// that are the prices of tokens.
const SECOND: std::ops::RangeInclusive<f64> = 10.0..=1_000.0;

/// The prices of a model that transcribes, and what it takes per minute. Some are paid by the token and some by the
/// second, and OpenRouter's list writes both in the same field: where the answer costs nothing, what remains is the price
/// of a second. A number that can be neither is no price.
fn by_duration(prices: [Option<f64>; 3]) -> ([Option<f64>; 3], Option<f64>) {
    match prices {
        [Some(second), Some(0.0), _] if SECOND.contains(&second) => ([None; 3], Some((second * 60.0).round() / 1e6)),
        [Some(second), Some(0.0), _] if second > *SECOND.end() => ([None; 3], None),
        told => (told, None),
    }
}

fn words<'a>(value: &'a Value, paths: &[&str]) -> Option<Vec<&'a str>> {
    let list = paths.iter().find_map(|path| value.pointer(path).and_then(Value::as_array))?;
    Some(list.iter().filter_map(Value::as_str).collect())
}

/// Told kinds first; the id gives away the rest (an embedding model in a chat picker helps nobody).
fn kind(value: &Value, id: &str, outputs: Option<&[&str]>) -> ListedKind {
    match value.get("type").and_then(Value::as_str) {
        Some("embedding" | "embeddings") => return ListedKind::Embedding,
        Some("transcription") => return ListedKind::Transcription,
        Some("image" | "audio" | "speech" | "rerank" | "reranking" | "moderation" | "video") => {
            return ListedKind::Other;
        }
        Some("language" | "chat" | "llm") => return ListedKind::Chat,
        _ => {}
    }
    if let Some(outputs) = outputs {
        // A chat model that hears is no transcription model (MOD-14).
        if outputs == ["transcription"] {
            return ListedKind::Transcription;
        }
        if outputs.contains(&"embeddings") || outputs.contains(&"embedding") {
            return ListedKind::Embedding;
        }
        return if outputs.contains(&"text") { ListedKind::Chat } else { ListedKind::Other };
    }
    let lower = id.to_ascii_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| lower.contains(needle));
    if has(&["embed", "bge-", "e5-", "minilm", "gte-"]) {
        ListedKind::Embedding
    } else if has(&[
        "whisper",
        "tts",
        "dall-e",
        "transcribe",
        "gpt-image",
        "moderation",
        "rerank",
        "realtime",
        "sora",
        "imagen",
        "veo-",
        "stable-diffusion",
        "flux",
    ]) {
        ListedKind::Other
    } else {
        ListedKind::Chat
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_common_shapes_of_lists_are_read() {
        let openai = parse(&json!({ "object": "list", "data": [{ "id": "gpt-4o", "object": "model" }, { "id": "text-embedding-3-small" }, { "id": "whisper-1" }, { "id": "gpt-4o" }] })).unwrap();
        assert_eq!(
            openai.iter().map(|m| (m.id.as_str(), m.kind)).collect::<Vec<_>>(),
            [
                ("gpt-4o", ListedKind::Chat),
                ("text-embedding-3-small", ListedKind::Embedding),
                ("whisper-1", ListedKind::Other),
            ]
        );
        let vllm = parse(&json!({ "data": [{ "id": "qwen", "max_model_len": 32768 }] })).unwrap();
        assert_eq!(vllm[0].context_window, Some(32_768));
        let router = parse(&json!({ "data": [{
            "id": "a/b", "name": "A: B", "context_length": 1000000,
            "architecture": { "input_modalities": ["text", "image"], "output_modalities": ["text"] },
            "supported_parameters": ["tools", "max_tokens"],
            "pricing": { "prompt": "0.000003", "completion": "0.000015" },
            "top_provider": { "max_completion_tokens": 64000 },
        }] }))
        .unwrap();
        let model = &router[0];
        assert_eq!((model.vision, model.tools, model.reasoning), (Some(true), Some(true), Some(false)));
        assert_eq!(model.prices, [Some(3.0), Some(15.0), None]);
        assert_eq!((model.context_window, model.max_output_tokens), (Some(1_000_000), Some(64_000)));
        assert_eq!(
            parse(&json!({ "models": [{ "name": "models/gemini-2.5-flash" }] })).unwrap()[0].id,
            "gemini-2.5-flash"
        );
        assert!(parse(&json!({ "hello": 1 })).is_err());
    }

    #[test]
    fn a_recording_is_paid_by_the_minute_where_the_list_says_what_a_second_costs() {
        let one = |output: &str, prompt: &str, completion: &str| {
            let list = json!({ "data": [{
                "id": "a", "architecture": { "output_modalities": [output] },
                "pricing": { "prompt": prompt, "completion": completion },
            }] });
            let model = parse(&list).unwrap().remove(0);
            (model.prices, model.per_minute)
        };
        assert_eq!(one("transcription", "0.0001", "0"), ([None; 3], Some(0.006)));
        assert_eq!(one("transcription", "0.000025", "0"), ([None; 3], Some(0.0015)));
        assert_eq!(one("transcription", "0.0000025", "0.00001"), ([Some(2.5), Some(10.0), None], None));
        assert_eq!(one("transcription", "0.00000018", "0"), ([Some(0.18), Some(0.0), None], None));
        assert_eq!(one("transcription", "0.1", "0"), ([None; 3], None), "six dollars a minute is no price");
        assert_eq!(one("text", "0.0001", "0"), ([Some(100.0), Some(0.0), None], None), "chats are paid by the token");
    }

    #[test]
    fn transcription_models_are_told_from_models_that_hear_or_speak() {
        let listed = parse(&json!({ "data": [
            { "id": "a", "type": "transcription" },
            { "id": "b", "architecture": { "input_modalities": ["audio"], "output_modalities": ["transcription"] }, "context_length": 0 },
            { "id": "c", "architecture": { "input_modalities": ["audio", "text"], "output_modalities": ["text"] } },
            { "id": "d", "architecture": { "output_modalities": ["audio"] } },
            { "id": "whisper-large" },
        ] }))
        .unwrap();
        let kinds: Vec<ListedKind> = listed.iter().map(|model| model.kind).collect();
        use ListedKind::{Chat, Other, Transcription};
        assert_eq!(kinds, [Transcription, Transcription, Chat, Other, Other]);
    }
}
