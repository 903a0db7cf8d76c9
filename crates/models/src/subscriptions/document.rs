//! Where the tokens of a subscription come from: what a broker is asked and how its answer is read (spec 40, 6.2), or
//! a token that somebody pasted.

use reqwest::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use tale_core::net::{HostPolicy, check_entered, invalid_url};
use tale_core::problem::{Issue, Problem};
use tale_env::registry::TOKEN_SOURCE_PREFIX;
use url::Url;

use super::path::TokensPath;
use crate::definition::{SubscriptionMethod, SubscriptionRuntime};

/// Longest name of a secret's variable (spec 40, 5.3).
const MAX_ENV_NAME: usize = 60;
/// Longest name of a field of an account, in bytes.
const MAX_FIELD: usize = 100;
/// Headers that a request has anyway.
const OWN_HEADERS: [&str; 8] =
    ["host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "accept"];

/// Where the tokens of a subscription come from. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a handful of them, each for a moment")]
pub enum TokenSource {
    /// From a broker.
    Broker(Broker),
    /// It is one, which stands encrypted beside.
    Pasted(PastedToken),
}

/// What belongs to a pasted token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastedToken {
    /// The variable that the agent runtime reads the token from.
    pub target_env_var: String,
    /// The vendor's id of the account, where the runtime needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
}

impl TokenSource {
    /// How the tokens are held.
    #[must_use]
    pub fn method(&self) -> SubscriptionMethod {
        match self {
            Self::Broker(_) => SubscriptionMethod::SubscriptionBroker,
            Self::Pasted(_) => SubscriptionMethod::SubscriptionKey,
        }
    }

    /// The broker, where there is one.
    #[must_use]
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Self::Broker(broker) => Some(broker),
            Self::Pasted(_) => None,
        }
    }

    /// Judges it for a provider whose subscriptions run in `runtime`.
    ///
    /// # Errors
    /// As [`Broker::check`].
    pub(super) fn check(&self, runtime: &SubscriptionRuntime, policy: HostPolicy) -> Result<(), Problem> {
        if !runtime.methods.contains(&self.method()) {
            let known: Vec<&str> = runtime.methods.iter().map(|method| method.text()).collect();
            return Err(Problem::invalid_field(
                "authMethod",
                &format!("must be {} for this provider", known.join(" or ")),
            ));
        }
        match self {
            Self::Broker(broker) => broker.check(runtime, policy),
            Self::Pasted(pasted) => pasted.check(runtime),
        }
    }
}

impl PastedToken {
    fn check(&self, runtime: &SubscriptionRuntime) -> Result<(), Problem> {
        let mut issues: Vec<Issue> = Vec::new();
        if let Some(why) = unread(runtime, &self.target_env_var) {
            issues.push(Issue::new("targetEnvVar", why));
        }
        match &self.account_id {
            None if runtime.needs_account_id => {
                issues
                    .push(Issue::new("accountId", format!("is required: {} needs it beside the token", runtime.label)));
            }
            Some(id) if !(1..=MAX_FIELD).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                issues.push(Issue::new("accountId", "must have 1 to 100 characters and no spaces"));
            }
            _ => {}
        }
        if issues.is_empty() { Ok(()) } else { Err(Problem::invalid_body(issues)) }
    }
}

/// Why a runtime would not find a token, if it would not.
fn unread(runtime: &SubscriptionRuntime, variable: &str) -> Option<String> {
    if runtime.target_env_vars.iter().any(|known| known == variable) {
        return None;
    }
    let known = runtime.target_env_vars.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Some(format!("must be one that {} reads: {known}", runtime.label))
}

/// A broker: a service that hands out the tokens of a pool of accounts. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Broker {
    /// Its address, which serves one provider only.
    pub endpoint: Url,
    /// How it is asked.
    #[serde(default)]
    pub http_method: BrokerMethod,
    /// How Tale signs in.
    #[serde(default)]
    pub auth: BrokerAuth,
    /// Where the accounts stand in the answer.
    pub response_mapping: ResponseMapping,
    /// The variable that the agent runtime reads the token from.
    pub target_env_var: String,
    /// Which account is taken.
    #[serde(default)]
    pub selection: Selection,
    /// How long before its expiry a token is not taken any more, in milliseconds.
    #[serde(default = "five_minutes")]
    pub expiry_skew_ms: u64,
    /// Longest wait for the answer, in milliseconds.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: u64,
    /// Largest answer, in bytes.
    #[serde(default = "quarter_mebibyte")]
    pub max_response_bytes: usize,
}

fn five_minutes() -> u64 {
    300_000
}

fn ten_seconds() -> u64 {
    10_000
}

fn quarter_mebibyte() -> usize {
    262_144
}

/// How a broker is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BrokerMethod {
    /// `GET`.
    #[default]
    Get,
    /// `POST` without a body.
    Post,
}

/// How Tale signs in to a broker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrokerAuth {
    /// Whether, and where the secret stands.
    #[serde(default)]
    pub method: BrokerAuthMethod,
    /// The header of [`BrokerAuthMethod::Header`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
    /// The variable that holds the secret, when none is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
}

/// Where the secret stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrokerAuthMethod {
    /// There is none.
    #[default]
    None,
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of the broker's own.
    Header,
}

/// Where the accounts stand in an answer, and what their fields are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResponseMapping {
    /// The list of accounts, such as `$.tokens`.
    pub tokens_path: String,
    /// The token.
    pub token_field: String,
    /// A word about the account; only those with [`ResponseMapping::active_value`] are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_field: Option<String>,
    /// See [`ResponseMapping::status_field`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_value: Option<String>,
    /// When the token expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_field: Option<String>,
}

/// Which account of a pool is taken (MOD-47).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Any, each as likely.
    #[default]
    Random,
    /// The first in the broker's order.
    First,
    /// The one that was taken least recently.
    RoundRobin,
}

impl Broker {
    /// Judges a broker for a provider whose subscriptions run in `runtime`.
    ///
    /// # Errors
    /// `INVALID_BODY` with paths below `broker`, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`.
    pub(super) fn check(&self, runtime: &SubscriptionRuntime, policy: HostPolicy) -> Result<(), Problem> {
        let mut issues = Vec::new();
        let mut refuse = |path: &str, why: String| issues.push(Issue::new(format!("broker.{path}"), why));
        if let Some(why) = unread(runtime, &self.target_env_var) {
            refuse("targetEnvVar", why);
        }
        if let Err(why) = TokensPath::parse(&self.response_mapping.tokens_path) {
            refuse("responseMapping.tokensPath", why.to_owned());
        }
        let ResponseMapping { token_field, status_field, active_value, expires_field, .. } = &self.response_mapping;
        let named = [
            ("tokenField", Some(token_field)),
            ("statusField", status_field.as_ref()),
            ("activeValue", active_value.as_ref()),
            ("expiresField", expires_field.as_ref()),
        ];
        for (field, value) in named {
            if value.is_some_and(|name| name.is_empty() || name.len() > MAX_FIELD || name.contains(char::is_control)) {
                refuse(&format!("responseMapping.{field}"), "must have 1 to 100 characters".to_owned());
            }
        }
        if status_field.is_some() != active_value.is_some() {
            refuse("responseMapping.activeValue", "belongs together with statusField".to_owned());
        }
        for (field, value, least, most) in [
            ("expirySkewMs", self.expiry_skew_ms, 0, 3_600_000),
            ("timeoutMs", self.timeout_ms, 100, 60_000),
            ("maxResponseBytes", self.max_response_bytes as u64, 1_024, 4 << 20),
        ] {
            if !(least..=most).contains(&value) {
                refuse(field, format!("must be from {least} to {most}"));
            }
        }
        match (self.auth.method, &self.auth.header_name) {
            (BrokerAuthMethod::Header, Some(name)) => {
                let known = HeaderName::try_from(name.as_str());
                if known.is_err() || known.is_ok_and(|name| OWN_HEADERS.contains(&name.as_str())) {
                    refuse("auth.headerName", "must be the name of a header of the broker's own".to_owned());
                }
            }
            (BrokerAuthMethod::Header, None) => refuse("auth.headerName", "is required".to_owned()),
            (_, Some(_)) => refuse("auth.headerName", "belongs to the method `header`".to_owned()),
            (_, None) => {}
        }
        match (self.auth.method, &self.auth.secret_env) {
            (BrokerAuthMethod::None, Some(_)) => refuse("auth.secretEnv", "must be absent without a method".to_owned()),
            (_, Some(name)) if !is_token_source(name) => refuse(
                "auth.secretEnv",
                format!(
                    "must begin with {TOKEN_SOURCE_PREFIX}, continue with capital letters, digits or underscores, and have at most {MAX_ENV_NAME} characters"
                ),
            ),
            _ => {}
        }
        if !issues.is_empty() {
            return Err(Problem::invalid_body(issues));
        }
        if self.endpoint.as_str().len() > 2_000 {
            return Err(invalid_url("broker.endpoint", "must have at most 2,000 characters"));
        }
        // One address may serve several providers, each with a query of its own.
        let mut bare = self.endpoint.clone();
        bare.set_query(None);
        check_entered("broker.endpoint", &bare, policy)
    }

    /// The header that signs in with `secret`.
    pub(super) fn sign_in(&self, secret: &str) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self.auth.method {
            BrokerAuthMethod::None => return None,
            BrokerAuthMethod::Bearer => (reqwest::header::AUTHORIZATION, format!("Bearer {secret}")),
            BrokerAuthMethod::Header => {
                (HeaderName::try_from(self.auth.header_name.as_deref()?).ok()?, secret.to_owned())
            }
        };
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

/// Whether a variable may hold the secret of a broker (MOD-35).
fn is_token_source(name: &str) -> bool {
    name.len() <= MAX_ENV_NAME
        && name.strip_prefix(TOKEN_SOURCE_PREFIX).is_some_and(|rest| {
            !rest.is_empty()
                && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        })
}
