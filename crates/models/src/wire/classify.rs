//! Turns a provider's refusal into a [`ModelError`].
//!
//! Structured facts decide first: the error's `code` and `type`, then the HTTP status together
//! with the words it may hide behind (a 429 for an empty account is not a rate limit, CHT-115).
//! Wording alone decides only for dialects that give nothing else.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::error::{ModelError, ModelErrorCode as Code};

/// The error of an answer with a status other than 2xx, or with a body that is no answer.
pub(super) fn refusal(status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let mut error = if looks_like_html(headers, &text) {
        html(status)
    } else {
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => from_value(Some(status), &value),
            Err(_) => from_words(Some(status), text.trim()),
        }
    };
    error.status = Some(status);
    error.retry_after = retry_after(headers);
    error
}

/// The error object of a stream or body, in whatever shape the provider wraps it.
pub(super) fn from_value(status: Option<u16>, value: &Value) -> ModelError {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let object = match value.get("error") {
        Some(inner @ Value::Object(_)) => inner,
        Some(Value::String(words)) => return with_codes(status, &[str_of(value, "code")], words),
        _ => value,
    };
    let message = message_of(object).unwrap_or_else(|| short_json(object));
    // OpenRouter repeats the upstream provider's words in `metadata.raw`.
    let raw = object.pointer("/metadata/raw").and_then(Value::as_str).filter(|raw| !raw.is_empty() && *raw != message);
    let message = raw.map_or_else(|| message.clone(), |raw| format!("{message}: {raw}"));
    let status_in_body = object
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code));
    let moderated = object.pointer("/metadata/reasons").is_some_and(Value::is_array);
    let words = [
        str_of(object, "code"),
        str_of(object, "type"),
        str_of(object, "status"),
        moderated.then_some("content_filter"),
    ];
    let status = status.filter(|status| *status >= 400).or(status_in_body);
    let mut error = with_codes(status, &words, &message);
    error.status = status;
    error
}

fn str_of<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn message_of(object: &Value) -> Option<String> {
    for key in ["message", "detail", "msg", "error_description", "title"] {
        match object.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => return Some(text.trim().to_owned()),
            Some(other @ (Value::Array(_) | Value::Object(_))) => return Some(short_json(other)),
            _ => {}
        }
    }
    None
}

fn short_json(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn with_codes(status: Option<u16>, codes: &[Option<&str>], message: &str) -> ModelError {
    let known = codes.iter().flatten().find_map(|word| known_code(word, message));
    let mut error = match known {
        Some(code) => ModelError::new(code, message),
        None => from_words(status, message),
    };
    error.status = status;
    error
}

/// Codes and types that leave no doubt. `invalid_request_error` and its relatives say only that
/// the request was refused, so the words decide there.
fn known_code(word: &str, message: &str) -> Option<Code> {
    Some(match word.to_ascii_lowercase().as_str() {
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "billing_error"
        | "exceeded_current_quota_error"
        | "insufficient_balance"
        | "payment_required"
        | "1113" => Code::CreditExhausted,
        "access_terminated" | "model_not_available" | "model_not_entitled" | "unsupported_country_region_territory" => {
            Code::ModelNotEntitled
        }
        "invalid_api_key"
        | "authentication_error"
        | "invalid_authentication_error"
        | "incorrect_api_key_error"
        | "unauthenticated"
        | "account_deactivated"
        | "api_key_expired"
        | "permission_denied" => entitlement(message).unwrap_or(Code::AuthError),
        "permission_error" => entitlement(message).unwrap_or(Code::AuthError),
        "model_not_found"
        | "not_found_error"
        | "resource_not_found_error"
        | "deploymentnotfound"
        | "deployment_not_found" => Code::ModelNotFound,
        "unsupported_parameter" | "unsupported_value" | "unknown_parameter" | "invalid_parameter_error" => {
            by_output_words(message).unwrap_or(Code::UnsupportedParameter)
        }
        "context_length_exceeded" | "string_above_max_length" | "request_too_large" | "context_window_exceeded" => {
            Code::ContextLength
        }
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limit_reached_error"
        | "too_many_requests"
        | "resource_exhausted"
        | "tokens"
        | "requests" => {
            if is_credit(message) {
                Code::CreditExhausted
            } else {
                Code::RateLimited
            }
        }
        "content_filter"
        | "content_policy_violation"
        | "moderation_blocked"
        | "responsibleaipolicyviolation"
        | "data_inspection_failed" => Code::ContentFilter,
        "overloaded_error"
        | "api_error"
        | "server_error"
        | "internal_server_error"
        | "timeout_error"
        | "engine_overloaded_error"
        | "service_unavailable"
        | "unavailable"
        | "internal" => Code::ProviderError,
        _ => return None,
    })
}

/// The table of spec 50, section 15: first match wins.
fn from_words(status: Option<u16>, message: &str) -> ModelError {
    let lower = message.to_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| lower.contains(needle));
    let code = if status == Some(402) || is_credit(&lower) {
        Code::CreditExhausted
    } else if let Some(code) = entitlement(&lower) {
        code
    } else if matches!(status, Some(401 | 403)) && has(&["moderation", "flagged", "content policy"]) {
        Code::ContentFilter
    } else if matches!(status, Some(401 | 403))
        || has(&[
            "invalid api key",
            "incorrect api key",
            "api key not valid",
            "api key expired",
            "no api key",
            "missing api key",
            "invalid x-api-key",
            "unauthorized",
        ])
    {
        Code::AuthError
    } else if status == Some(404)
        || has(&[
            "model not found",
            "unknown model",
            "model does not exist",
            "no such model",
            "is not a valid model",
            "not a supported model",
        ])
    {
        Code::ModelNotFound
    } else if let Some(code) = by_output_words(&lower) {
        code
    } else if has(&[
        "unsupported parameter",
        "unknown parameter",
        "unrecognized request argument",
        "extra inputs are not permitted",
        "is not supported with this model",
        "unsupported value",
        "does not support",
        "not supported by this model",
    ]) {
        Code::UnsupportedParameter
    } else if has(&[
        "context length",
        "context window",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "too many input tokens",
        "exceeds the maximum number of tokens",
        "reduce the length of the messages",
    ]) || status == Some(413)
    {
        Code::ContextLength
    } else if status == Some(429) || has(&["rate limit", "too many requests"]) {
        Code::RateLimited
    } else if has(&["content filter", "content policy", "content management policy", "safety system", "moderation"]) {
        Code::ContentFilter
    } else if status.is_some_and(|status| status >= 500 || status == 408 || status == 409)
        || has(&[
            "overloaded",
            "timed out",
            "timeout",
            "connection reset",
            "internal server error",
            "temporarily unavailable",
        ])
    {
        Code::ProviderError
    } else if has(&["tool call failed", "tool_use_failed", "tool error", "failed to call a function"]) {
        Code::ToolFailure
    } else {
        Code::Generic
    };
    let message = if message.is_empty() {
        status.map_or_else(
            || "The provider refused without a reason.".to_owned(),
            |status| format!("The provider answered HTTP {status} without a reason."),
        )
    } else {
        message.to_owned()
    };
    let mut error = ModelError::new(code, message);
    error.status = status;
    error
}

fn is_credit(message: &str) -> bool {
    let lower = message.to_lowercase();
    [
        "credit balance",
        "insufficient balance",
        "insufficient credit",
        "insufficient funds",
        "not enough credit",
        "requires more credits",
        "out of credits",
        "exceeded your current quota",
        "billing details",
        "payment required",
        "account balance",
        "balance is too low",
        "recharge",
    ]
    .iter()
    .any(|needle| lower.contains(needle))
}

fn entitlement(message: &str) -> Option<Code> {
    let lower = message.to_lowercase();
    [
        "your plan",
        "not included in your",
        "upgrade your plan",
        "not available on your",
        "does not have access to model",
        "no access to the model",
        "not entitled",
        "subscription does not",
    ]
    .iter()
    .any(|needle| lower.contains(needle))
    .then_some(Code::ModelNotEntitled)
}

fn by_output_words(message: &str) -> Option<Code> {
    let lower = message.to_lowercase();
    let output = ["max_tokens", "max_completion_tokens", "max_output_tokens", "output tokens", "completion tokens"];
    if !output.iter().any(|needle| lower.contains(needle)) {
        return None;
    }
    if ["unsupported parameter", "not supported", "use 'max_completion_tokens'", "unknown parameter"]
        .iter()
        .any(|needle| lower.contains(needle))
    {
        return Some(Code::UnsupportedParameter);
    }
    let too_high =
        ["too large", "too high", "exceed", "maximum", "at most", "less than or equal", "greater than", "> "]
            .iter()
            .any(|needle| lower.contains(needle));
    // "This model's maximum context length is … (… in the messages, … in the completion)" is about the context.
    if lower.contains("context length") && lower.contains("messages") {
        return Some(Code::ContextLength);
    }
    Some(if too_high { Code::OutputCapTooHigh } else { Code::TokenLimit })
}

pub(super) fn looks_like_html(headers: &HeaderMap, text: &str) -> bool {
    let declared = headers
        .get(reqwest::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.to_ascii_lowercase().starts_with("text/html"));
    let start = text.trim_start().get(..15).unwrap_or(text.trim_start()).to_ascii_lowercase();
    declared || start.starts_with("<!doctype") || start.starts_with("<html")
}

fn html(status: u16) -> ModelError {
    let code = match status {
        401 | 403 => Code::AuthError,
        402 => Code::CreditExhausted,
        429 => Code::RateLimited,
        500.. => Code::ProviderError,
        _ => Code::Generic,
    };
    let advice = if status >= 500 || status == 429 {
        "Something in front of the provider answered instead of it; try again later."
    } else {
        "Check the base URL of the provider."
    };
    ModelError::new(
        code,
        format!("The provider answered with a web page (HTTP {status}) instead of an API answer. {advice}"),
    )
}

/// `Retry-After` in seconds, `retry-after-ms` where a provider is finer.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).and_then(|text| text.trim().parse::<f64>().ok())
    };
    let millis = number("retry-after-ms").map(|ms| ms / 1_000.0);
    millis
        .or_else(|| number("retry-after"))
        .or_else(|| date_after(headers))
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
}

/// `Retry-After` as a date, measured against the answer's own `Date`.
fn date_after(headers: &HeaderMap) -> Option<f64> {
    let date = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| chrono::DateTime::parse_from_rfc2822(text).ok())
    };
    let seconds = (date("retry-after")? - date("date")?).num_seconds();
    u32::try_from(seconds).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(status: u16, body: Value) -> Code {
        refusal(status, &HeaderMap::new(), body.to_string().as_bytes()).code
    }

    #[test]
    fn structured_codes_decide_before_the_status() {
        let openai = |kind: &str, code: &str, message: &str| json!({"error": {"type": kind, "code": code, "message": message, "param": null}});
        assert_eq!(
            code(429, openai("insufficient_quota", "insufficient_quota", "You exceeded your current quota")),
            Code::CreditExhausted
        );
        assert_eq!(code(429, openai("requests", "rate_limit_exceeded", "Rate limit reached")), Code::RateLimited);
        assert_eq!(
            code(400, openai("invalid_request_error", "context_length_exceeded", "too long")),
            Code::ContextLength
        );
        assert_eq!(code(401, openai("invalid_request_error", "invalid_api_key", "Incorrect API key")), Code::AuthError);
        assert_eq!(code(404, openai("invalid_request_error", "model_not_found", "no")), Code::ModelNotFound);
        assert_eq!(
            code(
                400,
                openai(
                    "invalid_request_error",
                    "unsupported_parameter",
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
                )
            ),
            Code::UnsupportedParameter
        );
        assert_eq!(code(400, openai("invalid_request_error", "content_filter", "filtered")), Code::ContentFilter);
    }

    #[test]
    fn anthropic_types_are_known() {
        let anthropic =
            |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
        assert_eq!(code(529, anthropic("overloaded_error", "Overloaded")), Code::ProviderError);
        assert_eq!(code(401, anthropic("authentication_error", "invalid x-api-key")), Code::AuthError);
        assert_eq!(code(404, anthropic("not_found_error", "model: claude-x")), Code::ModelNotFound);
        assert_eq!(
            code(
                400,
                anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")
            ),
            Code::CreditExhausted
        );
        assert_eq!(
            code(400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
            Code::ContextLength
        );
        assert_eq!(
            code(
                400,
                anthropic(
                    "invalid_request_error",
                    "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens"
                )
            ),
            Code::OutputCapTooHigh
        );
    }

    #[test]
    fn other_dialects_are_read_by_status_and_words() {
        assert_eq!(code(402, json!({"error": {"message": "Insufficient Balance"}})), Code::CreditExhausted);
        assert_eq!(code(200, json!({"error": {"code": 402, "message": "Add credits"}})), Code::CreditExhausted);
        assert_eq!(
            code(403, json!({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}})),
            Code::ContentFilter
        );
        assert_eq!(code(404, json!({"detail": "Not Found"})), Code::ModelNotFound);
        assert_eq!(
            code(404, json!({"error": "model \"llama9\" not found, try pulling it first"})),
            Code::ModelNotFound
        );
        assert_eq!(
            code(
                400,
                json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid. Please pass a valid API key."}}])
            ),
            Code::AuthError
        );
        assert_eq!(
            code(429, json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota"}})),
            Code::RateLimited
        );
        assert_eq!(
            code(
                400,
                json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion)."})
            ),
            Code::ContextLength
        );
        assert_eq!(code(500, json!({})), Code::ProviderError);
        assert_eq!(code(418, json!({"error": {"message": "teapot"}})), Code::Generic);
    }

    #[test]
    fn a_web_page_is_named_as_one() {
        let error = refusal(200, &HeaderMap::new(), b"<!DOCTYPE html><html>hi</html>");
        assert!(error.message.contains("web page"), "{}", error.message);
        assert_eq!(refusal(502, &HeaderMap::new(), b"<html></html>").code, Code::ProviderError);
    }

    #[test]
    fn the_wait_is_read_from_seconds_and_dates() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        headers.insert("retry-after-ms", "250".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_millis(250)));
        let mut headers = HeaderMap::new();
        headers.insert("date", "Tue, 01 Jul 2025 10:00:00 GMT".parse().unwrap());
        headers.insert("retry-after", "Tue, 01 Jul 2025 10:00:30 GMT".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(30)));
    }

    #[test]
    fn an_empty_refusal_names_the_status() {
        assert_eq!(refusal(503, &HeaderMap::new(), b"").message, "The provider answered HTTP 503 without a reason.");
    }
}
