//! Errors in the shape of the interface that was called (MOD-121).

use serde_json::{Value, json};
use tale_core::problem::{Code, Problem};
use tale_models::{ModelError, ModelErrorCode};

use crate::wire::Wire;

/// Why a call is not answered.
#[derive(Debug)]
pub struct Refusal {
    /// What is wrong.
    pub problem: Problem,
    /// The status, where it is another than the code's: the one of the provider's refusal.
    pub status: Option<u16>,
    /// What a client library is told about trying again by itself, where that is not for it to judge.
    pub should_retry: Option<bool>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, status: None, should_retry: None }
    }
}

impl Refusal {
    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.unwrap_or_else(|| self.problem.status())
    }

    pub(crate) fn not_to_be_retried(problem: Problem) -> Self {
        Self { should_retry: Some(false), ..problem.into() }
    }

    /// A model whose credential does not work.
    pub(crate) fn no_credential(model: &str, why: Problem) -> Self {
        let message = match why.code {
            Code::CredentialEnvMissing => format!("{model} cannot be called. {}", why.message),
            _ => {
                format!("{model} cannot be called with its stored credential. Ask an administrator to enter it again.")
            }
        };
        Self::not_to_be_retried(Problem::new(Code::ModelApiUnavailable, message).because(why))
    }

    /// A provider's refusal or failure. Its words are passed on; statuses that tell the client what to
    /// do stay, every other is a 502.
    pub(crate) fn of_provider(error: &ModelError, provider: &str) -> Self {
        // The address of a provider is nobody's business who only calls it.
        let message = if error.code == ModelErrorCode::ProviderUnreachable {
            format!("{provider} cannot be reached. Try again later, or ask an administrator to check the provider.")
        } else {
            error.message.clone()
        };
        let mut problem = Problem::new(Code::ModelApiUpstreamError, message);
        problem.retry_after = error.retry_after;
        let status = error.status.filter(|status| matches!(status, 400 | 413 | 422 | 429 | 503 | 529));
        Self { problem, status, should_retry: None }
    }
}

/// The body of an error.
#[must_use]
pub fn error_body(wire: Wire, status: u16, problem: &Problem) -> Value {
    let (message, code) = (&problem.message, problem.code.text());
    match wire {
        Wire::Chat | Wire::Responses => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                429 if problem.code == Code::BudgetExceeded => "insufficient_quota",
                429 => "rate_limit_error",
                400..=499 => "invalid_request_error",
                _ => "server_error",
            };
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        }
        Wire::Messages => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                503 | 529 => "overloaded_error",
                400..=499 => "invalid_request_error",
                _ => "api_error",
            };
            json!({ "type": "error", "error": { "type": kind, "message": message, "code": code } })
        }
    }
}
