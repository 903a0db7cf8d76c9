//! Answers and refusals.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use tale_sandbox_wire::spawner::{ErrorAnswer, ErrorCode, Queue};

use crate::admission::Shortage;
use crate::spawner::{LookupError, Refusal};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// An answer that is not what was asked for.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    body: Box<ErrorAnswer>,
    retry_after: Option<u64>,
}

impl Refused {
    pub(super) fn of(status: StatusCode, body: ErrorAnswer) -> Self {
        Self { status, body: Box::new(body), retry_after: None }
    }

    pub(super) fn new(status: StatusCode, code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self::of(status, ErrorAnswer::new(code, sentence))
    }

    pub(super) fn retry(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(super) fn retry_in(self, pause: Duration) -> Self {
        self.retry(pause.as_secs().max(1))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut ErrorAnswer)) -> Self {
        change(&mut self.body);
        self
    }

    pub(super) fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::BadRequest, sentence)
    }

    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, "there is no such route")
    }

    pub(super) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::MethodNotAllowed, "this route has another method")
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = json(self.status, &self.body);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<LookupError> for Refused {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound => Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, error.to_string()),
            LookupError::Unavailable => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::SessionUnavailable, error.to_string()).retry(1)
            }
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let (code, sentence) = match refusal.shortage {
            Shortage::Slot => (ErrorCode::SessionQuota, "every slot of this deployment is taken"),
            Shortage::Memory => (ErrorCode::HostMemory, "the host has too little free memory for another session"),
            Shortage::Cpu => (ErrorCode::HostCpu, "the host's processors are busy; sessions start one by one"),
            Shortage::Disk => (ErrorCode::HostDisk, "a disk of the host has too little free space"),
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let queue = Queue { position: count(refusal.place.position), waiting: count(refusal.place.waiting) };
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, sentence)
            .with(|body| body.queue = Some(queue))
            .retry_in(refusal.place.retry_after())
    }
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let (status, bytes) = match serde_json::to_vec(value) {
        Ok(bytes) => (status, bytes),
        Err(error) => {
            tracing::error!(event = "sandbox.answer", %error, "an answer could not be written");
            (StatusCode::INTERNAL_SERVER_ERROR, br#"{"error":"internal"}"#.to_vec())
        }
    };
    with_head(status, Body::from(bytes), &[(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

/// An answer that nobody keeps.
pub(super) fn with_head(
    status: StatusCode,
    body: Body,
    headers: &[(hyper::header::HeaderName, HeaderValue)],
) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let own: &mut HeaderMap = response.headers_mut();
    own.insert(CACHE_CONTROL, NO_STORE);
    for (name, value) in headers {
        own.insert(name, value.clone());
    }
    response
}

/// 200.
pub(super) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}
