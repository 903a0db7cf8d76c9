//! Why a model call failed, in the vocabulary of spec 50, section 15.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

macro_rules! model_error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// What went wrong, as stored with a failed turn. Codes are added, never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ModelErrorCode { $($(#[$doc])* $variant),+ }

        impl ModelErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stored and transmitted word.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the stored word.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.text() == text)
            }
        }
    };
}

model_error_codes! {
    /// No usable provider or key in the organization.
    MissingApiKey = "missing_api_key",
    /// The provider account has no credit left. Trying again cannot help.
    CreditExhausted = "credit_exhausted",
    /// The provider account's plan excludes the model. Trying again cannot help.
    ModelNotEntitled = "model_not_entitled",
    /// The key is invalid, expired or missing.
    AuthError = "auth_error",
    /// The provider does not know the model or the address.
    ModelNotFound = "model_not_found",
    /// A request parameter or combination was rejected.
    UnsupportedParameter = "unsupported_parameter",
    /// The output cap is above the model's ceiling or fills the window.
    OutputCapTooHigh = "output_cap_too_high",
    /// Other trouble with output tokens.
    TokenLimit = "token_limit",
    /// The context window is exceeded.
    ContextLength = "context_length",
    /// Too many requests; waiting helps.
    RateLimited = "rate_limited",
    /// The provider's filter refused.
    ContentFilter = "content_filter",
    /// No connection to the provider.
    ProviderUnreachable = "provider_unreachable",
    /// A tool failed.
    ToolFailure = "tool_failure",
    /// The provider failed: 5xx, overload, timeout, reset.
    ProviderError = "provider_error",
    /// A usage limit in Tale leaves no room for the call, which was therefore not made.
    UsageLimit = "usage_limit",
    /// Anything else.
    Generic = "generic",
}

/// Longest message that is kept, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// A failed model call. `message` holds the provider's own words where it gave any; the key never
/// appears in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.text())]
pub struct ModelError {
    /// What clients branch on.
    pub code: ModelErrorCode,
    /// Readable English, the provider's own words where there are any.
    pub message: String,
    /// The HTTP status of the provider's answer.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error without a status.
    pub fn new(code: ModelErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), status: None, retry_after: None }
    }

    /// Whether the provider turned the request away instead of working on it, so that nothing was used.
    #[must_use]
    pub fn before_work(&self) -> bool {
        self.status.is_some()
            || matches!(self.code, ModelErrorCode::ProviderUnreachable | ModelErrorCode::MissingApiKey)
    }

    /// The error that a provider writes where an answer should be: an event of a stream or a whole
    /// body, in whatever shape it wraps it.
    #[must_use]
    pub fn in_answer(value: &serde_json::Value) -> Self {
        super::classify::from_value(None, value)
    }

    /// Removes every occurrence of the key in whatever form, of the provider's address, control characters and
    /// excess length. That a provider cannot be reached is said by Tale itself, and names the host.
    #[must_use]
    pub fn scrubbed(mut self, secret: Option<&SecretString>, base: &Url) -> Self {
        if let Some(secret) = secret {
            self.message = super::scrub::without_key(&self.message, secret.expose_secret());
        }
        if self.code != ModelErrorCode::ProviderUnreachable {
            self.message = super::scrub::without_address(&self.message, base);
        }
        let mut clean: String = self
            .message
            .chars()
            .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
            .take(MAX_MESSAGE_CHARS)
            .collect();
        if clean.len() < self.message.len() && clean.chars().count() == MAX_MESSAGE_CHARS {
            clean.push('…');
        }
        self.message = clean.trim().to_owned();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_never_stays_in_a_message() {
        let secret = SecretString::from("sk-live-123456");
        let error = ModelError::new(ModelErrorCode::AuthError, "bad key sk-live-123456\u{0}!")
            .scrubbed(Some(&secret), &"https://models.test/v1".parse().unwrap());
        assert_eq!(error.message, "bad key ••• !");
    }

    #[test]
    fn every_code_reads_back() {
        for code in ModelErrorCode::ALL {
            assert_eq!(ModelErrorCode::parse(code.text()), Some(*code));
        }
    }
}
