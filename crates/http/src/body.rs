//! Strict JSON bodies (API-10 … API-16).
//!
//! The body is read within its cap before the handler runs, but what is wrong with it is told
//! only when the handler asks: [`Body::read`] comes after the permission check, so a caller
//! without the right learns nothing from validation (ERR-4).

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tale_core::limits::MAX_JSON_BODY_BYTES;
use tale_core::strict::{self, shorten};
use tale_core::{Code, Problem};

use crate::problem::HttpProblem;

/// Largest whole number that survives JavaScript: 2^53 − 1 (API-10).
const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// Longest time to send a body (API-17).
const BODY_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Deepest nesting of a body.
const MAX_DEPTH: usize = 64;

/// A JSON body of type `T`, judged when it is read.
pub struct Body<T>(Result<T, Problem>);

impl<T> Body<T> {
    /// The parsed body.
    ///
    /// # Errors
    /// `INVALID_BODY` with `data.issues`.
    pub fn read(self) -> Result<T, Problem> {
        self.0
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = HttpProblem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Self::Rejection> {
        let bytes = read_limited(request, MAX_JSON_BODY_BYTES).await?;
        Ok(Self(parse(&bytes)))
    }
}

/// Reads at most `cap` bytes; a declared length beyond it is refused before a byte is read.
///
/// # Errors
/// `BODY_TOO_LARGE` naming the cap.
pub async fn read_limited(request: Request, cap: usize) -> Result<Bytes, HttpProblem> {
    let too_large = || {
        Problem::new(
            Code::BodyTooLarge,
            format!("The request body is larger than the {} that this route accepts.", size_words(cap)),
        )
    };
    let declared = request
        .headers()
        .get(axum::http::header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<u64>().ok());
    if declared.is_some_and(|length| length > cap as u64) {
        return Err(too_large().into());
    }
    read_within(request.into_body(), cap, BODY_TIMEOUT).await?.ok_or_else(|| too_large().into())
}

/// Reads a body in time; `None` when it is larger than `cap`.
async fn read_within(body: axum::body::Body, cap: usize, time: Duration) -> Result<Option<Bytes>, Problem> {
    match tokio::time::timeout(time, Limited::new(body, cap).collect()).await {
        Err(_) => {
            Err(Problem::new(Code::RequestTimeout, "The request body did not arrive within 15 minutes. Send it again."))
        }
        Ok(Ok(collected)) => Ok(Some(collected.to_bytes())),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Ok(None),
        Ok(Err(error)) if is_badly_framed(error.as_ref()) => Err(Problem::new(
            Code::BodyChunkMalformed,
            "The chunks of the request body are not framed as HTTP/1.1 wants. Correct the client, or send the body with its length.",
        )
        .because(error)),
        Ok(Err(error)) => {
            Err(Problem::new(Code::InvalidBody, "The request body could not be read to its end. Send it again.")
                .because(error))
        }
    }
}

/// Whether the server found chunks that are none (API-27), and not a connection that broke off.
fn is_badly_framed(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData);
        }
        cause = error.source();
    }
    false
}

fn size_words(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

/// Parses a strict JSON body; an empty one stands for `{}`.
///
/// # Errors
/// `INVALID_BODY` with `data.issues`.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = if bytes.iter().all(u8::is_ascii_whitespace) {
        Value::Object(serde_json::Map::new())
    } else {
        serde_json::from_slice(bytes).map_err(|error| {
            Problem::invalid_field("", &format!("is not valid JSON (line {}, column {})", error.line(), error.column()))
        })?
    };
    if !value.is_object() {
        return Err(Problem::invalid_field("", "must be an object"));
    }
    judge_value(&value, &mut Vec::new())?;
    strict::read(value).map_err(|issue| Problem::invalid_body(vec![issue]))
}

/// Refuses NUL characters and numbers that JavaScript cannot hold, anywhere in the body.
fn judge_value(value: &Value, path: &mut Vec<String>) -> Result<(), Problem> {
    let refuse = |path: &[String], message: &str| {
        let mut path = path.join(".");
        shorten(&mut path);
        Problem::invalid_field(&path, message)
    };
    if path.len() > MAX_DEPTH {
        return Err(refuse(&path[..4], &format!("is nested deeper than {MAX_DEPTH} levels")));
    }
    match value {
        Value::String(text) if text.contains('\0') => Err(refuse(path, "must not contain the character NUL")),
        Value::Number(number) => {
            let unsafe_integer = number.as_u64().is_some_and(|n| n > MAX_SAFE_INTEGER)
                || number.as_i64().is_some_and(|n| n < -(MAX_SAFE_INTEGER as i64));
            if unsafe_integer { Err(refuse(path, "must be a whole number of at most 2^53 − 1")) } else { Ok(()) }
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| within(path, at.to_string(), item)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            if name.contains('\0') {
                return Err(refuse(path, "has a key that contains the character NUL"));
            }
            within(path, name.clone(), item)
        }),
        _ => Ok(()),
    }
}

fn within(path: &mut Vec<String>, name: String, value: &Value) -> Result<(), Problem> {
    path.push(name);
    let judged = judge_value(value, path);
    path.pop();
    judged
}

#[cfg(test)]
mod tests {
    use tale_core::strict::MAX_ISSUE_CHARS;

    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Form {
        #[expect(dead_code, reason = "only its presence matters")]
        name: String,
        #[expect(dead_code, reason = "only its type matters")]
        size: Option<u32>,
        #[expect(dead_code, reason = "only its type matters")]
        parts: Option<Vec<Part>>,
    }

    #[derive(serde::Deserialize, Debug)]
    struct Part {
        #[expect(dead_code, reason = "only its type matters")]
        text: String,
    }

    fn issue(body: &str) -> (String, String) {
        let problem = parse::<Form>(body.as_bytes()).unwrap_err();
        assert_eq!(problem.code, Code::InvalidBody);
        let issue = &problem.data.unwrap()["issues"][0];
        (issue["path"].as_str().unwrap().to_owned(), issue["message"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_wrong_is_named_by_path() {
        assert_eq!(issue("{}"), ("name".into(), "is required".into()));
        assert_eq!(issue(""), ("name".into(), "is required".into()));
        assert_eq!(issue(r#"{"name":1}"#), ("name".into(), "must be a string".into()));
        assert_eq!(issue(r#"{"name":"a","other":1}"#), ("other".into(), "is not a known field".into()));
        assert_eq!(issue(r#"{"name":"a","size":-1}"#).0, "size");
        assert_eq!(
            issue(r#"{"name":"a","parts":[{"text":"x"},["x"]]}"#),
            ("parts.1".into(), "must be an object".into())
        );
        assert_eq!(issue("{\"name\":\"a\\u0000b\"}"), ("name".into(), "must not contain the character NUL".into()));
        assert_eq!(issue(r#"{"name":"a","size":9007199254740992}"#).0, "size");
        assert_eq!(
            issue(&format!(r#"{{"name":"a","{}":1}}"#, "ä".repeat(9_000))).0.chars().count(),
            MAX_ISSUE_CHARS + 1
        );
        assert!(issue(r#"{"name":"\ud800"}"#).1.starts_with("is not valid JSON"));
        assert!(issue("{\"name\"").1.starts_with("is not valid JSON"));
        assert!(parse::<Form>(b"{\"name\":\"\xff\"}").is_err());
    }

    #[tokio::test]
    async fn a_body_has_a_size_and_a_time() {
        let read = |body, cap| read_within(body, cap, Duration::from_millis(5));
        assert_eq!(read(axum::body::Body::from("abc"), 3).await.unwrap().unwrap(), "abc");
        assert!(read(axum::body::Body::from("abcd"), 3).await.unwrap().is_none());
        let silent = axum::body::Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(silent, 3).await.unwrap_err().code, Code::RequestTimeout);
        let broken =
            axum::body::Body::from_stream(futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("reset"))]));
        assert_eq!(read(broken, 3).await.unwrap_err().code, Code::InvalidBody);
        let framed = std::io::Error::new(std::io::ErrorKind::InvalidInput, "chunk");
        let framed = axum::body::Body::from_stream(futures::stream::iter([Err::<Bytes, _>(framed)]));
        assert_eq!(read(framed, 3).await.unwrap_err().code, Code::BodyChunkMalformed);
    }

    #[test]
    fn the_last_of_two_equal_keys_wins() {
        assert_eq!(parse::<Value>(br#"{"a":1,"a":2}"#).unwrap()["a"], 2);
    }
}
