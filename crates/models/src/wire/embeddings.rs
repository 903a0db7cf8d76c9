//! `POST <base>/embeddings`, the vectors of the OpenAI format.

use serde_json::{Map, Value, json};

use super::Target;
use super::client::WireClient;
use super::error::{ModelError, ModelErrorCode};
use crate::extra_body::ExtraBody;

/// Largest answer: 64 texts of 4,096 numbers with room to spare.
const MAX_EMBEDDING_BYTES: usize = 32 << 20;

/// The vectors of one request, in the order of its texts.
#[derive(Debug)]
pub(crate) struct EmbeddingAnswer {
    pub(crate) vectors: Vec<Vec<f32>>,
    /// Tokens of the texts, when told.
    pub(crate) tokens: Option<u64>,
}

/// Why a request for vectors failed.
#[derive(Debug)]
pub(crate) enum EmbeddingRefusal {
    /// The provider takes fewer texts per request; the number when it names one.
    TooManyTexts(Option<usize>),
    /// Anything else.
    Failed(ModelError),
}

impl WireClient {
    /// Asks for the vectors of `texts`. `dimensions` is sent only for models that shorten; `extra`
    /// is added to the body.
    pub(crate) async fn embed(
        &self,
        target: &Target,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
        extra: &ExtraBody,
    ) -> Result<EmbeddingAnswer, EmbeddingRefusal> {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(model));
        body.insert("input".to_owned(), json!(texts));
        if let Some(dimensions) = dimensions {
            body.insert("dimensions".to_owned(), json!(dimensions));
        }
        let mut body = Value::Object(body);
        extra.add_to(&mut body);
        let answer = async {
            let response = self.post(target, &["embeddings"], &body).await?;
            self.json(response, MAX_EMBEDDING_BYTES).await
        };
        let failed = |error: ModelError| EmbeddingRefusal::Failed(error.scrubbed(target.secret.as_ref(), &target.base));
        match answer.await {
            Ok(value) => match value.get("error") {
                Some(error) if !error.is_null() => Err(failed(super::classify::from_value(None, &value))),
                _ => read(&value, texts.len()).map_err(failed),
            },
            Err(error) => match texts_cap(&error, texts.len()) {
                Some(cap) => Err(EmbeddingRefusal::TooManyTexts(cap)),
                None => Err(failed(error)),
            },
        }
    }
}

fn read(value: &Value, wanted: usize) -> Result<EmbeddingAnswer, ModelError> {
    let broken = |what: String| ModelError::new(ModelErrorCode::ProviderError, what);
    let rows = value
        .get("data")
        .and_then(Value::as_array)
        .ok_or_else(|| broken("The provider's answer holds no vectors.".to_owned()))?;
    if rows.len() != wanted {
        return Err(broken(format!("The provider answered {} vectors for {wanted} texts.", rows.len())));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; wanted];
    for (place, row) in rows.iter().enumerate() {
        let at =
            row.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok()).unwrap_or(place);
        let numbers = row
            .get("embedding")
            .and_then(Value::as_array)
            .ok_or_else(|| broken("The provider's answer holds a vector that is not a list of numbers.".to_owned()))?;
        let vector: Option<Vec<f32>> = numbers
            .iter()
            .map(|number| number.as_f64().map(|number| number as f32).filter(|number| number.is_finite()))
            .collect();
        let vector = vector
            .ok_or_else(|| broken("The provider's answer holds a vector that is not a list of numbers.".to_owned()))?;
        match vectors.get_mut(at) {
            Some(slot @ None) => *slot = Some(vector),
            _ => return Err(broken("The provider numbered its vectors wrongly.".to_owned())),
        }
    }
    let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    let tokens = ["/usage/prompt_tokens", "/usage/total_tokens"]
        .iter()
        .find_map(|place| value.pointer(place).and_then(Value::as_u64));
    vectors
        .map(|vectors| EmbeddingAnswer { vectors, tokens })
        .ok_or_else(|| broken("The provider numbered its vectors wrongly.".to_owned()))
}

/// Whether a refusal is about the number of texts, and the cap it names (IDX-10).
fn texts_cap(error: &ModelError, sent: usize) -> Option<Option<usize>> {
    if sent < 2 || !matches!(error.status, Some(400 | 413 | 422)) {
        return None;
    }
    let lower = error.message.to_lowercase();
    let about_count = [
        "batch size",
        "batch_size",
        "maximum batch",
        "number of inputs",
        "array length",
        "too many inputs",
        "at most",
        "maximum number of",
        "inputs must",
        "texts",
        "list should have",
        "items after validation",
        "should not be larger than",
        "array too long",
    ]
    .iter()
    .any(|needle| lower.contains(needle));
    if !about_count {
        return None;
    }
    let cap = lower
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse::<usize>().ok())
        .filter(|number| (1..sent).contains(number))
        .min();
    Some(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_put_in_the_order_of_their_texts() {
        let answer =
            read(&json!({ "data": [{ "index": 1, "embedding": [2.0] }, { "index": 0, "embedding": [1.0] }] }), 2)
                .unwrap();
        assert_eq!(answer.vectors, [[1.0], [2.0]]);
        assert!(read(&json!({ "data": [{ "index": 0, "embedding": [1.0] }] }), 2).is_err());
        assert!(
            read(&json!({ "data": [{ "index": 0, "embedding": [1.0] }, { "index": 0, "embedding": [1.0] }] }), 2)
                .is_err()
        );
        assert!(read(&json!({ "data": [{ "index": 0, "embedding": "AAAA" }] }), 1).is_err());
    }

    #[test]
    fn a_cap_is_learned_from_the_wording() {
        let refusal =
            |message: &str| ModelError { status: Some(400), ..ModelError::new(ModelErrorCode::Generic, message) };
        assert_eq!(
            texts_cap(
                &refusal("Value error, batch size is invalid, it should not be larger than 10.: input.contents"),
                64
            ),
            Some(Some(10))
        );
        assert_eq!(texts_cap(&refusal("batch size 64 > maximum allowed batch size 32"), 64), Some(Some(32)));
        assert_eq!(texts_cap(&refusal("too many inputs"), 64), Some(None));
        assert_eq!(texts_cap(&refusal("unknown model"), 64), None);
        assert_eq!(texts_cap(&refusal("too many inputs"), 1), None);
    }
}
