//! From a [`Problem`] to a response. `into_response` has no side effects: the door logs.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tale_core::{Code, Problem};

/// A problem on its way out.
#[derive(Debug)]
pub struct HttpProblem(pub Problem);

impl<E: Into<Problem>> From<E> for HttpProblem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// The problem behind a response, left in its extensions for the door's log line and request id.
#[derive(Clone)]
pub struct Answered(pub Arc<Problem>);

/// Codes whose body repeats the request id (API-22).
fn repeats_request_id(code: Code) -> bool {
    matches!(code.status(), 413 | 414 | 429) || code.status() >= 500
}

/// The error envelope (API-50).
#[must_use]
pub fn envelope(problem: &Problem, request_id: Option<&str>) -> Value {
    let mut body = json!({ "error": problem.message, "code": problem.code.text() });
    let mut data = problem.data.clone();
    if let (Code::RateLimited, Some(wait)) = (problem.code, problem.retry_after) {
        data = Some(json!({ "retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }));
    }
    if let Some(data) = data {
        body["data"] = data;
    }
    if let Some(id) = request_id.filter(|_| repeats_request_id(problem.code)) {
        body["requestId"] = json!(id);
    }
    body
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // The door fills in the body: only there the request id is known.
        let mut response = status.into_response();
        if let Some(wait) = problem.retry_after {
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
        }
        response.extensions_mut().insert(Answered(Arc::new(problem)));
        response
    }
}
