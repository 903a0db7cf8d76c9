//! What an ID token must say to be believed (SSO-11), and who the person is that a provider names.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tale_core::crypto::constant_time_eq;

use super::config::{Config, Protocol};
use crate::fields;

/// How far the clocks of the provider and of this server may be apart, in seconds.
const SKEW: i64 = 60;
/// Longest name that a provider gives somebody.
const MAX_SUBJECT: usize = 255;
/// Most groups or roles of somebody that are looked at.
pub(super) const MAX_VALUES: usize = 1_000;
/// The path of a rule that means the person's groups, wherever the provider says them.
const GROUPS: &str = "groups";
/// The path of a rule that means the person's roles, wherever the provider says them.
const ROLES: &str = "roles";

/// What a token is checked against.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: DateTime<Utc>,
}

/// Who signed in at the provider.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) email_verified: Option<bool>,
    pub(super) name: Option<String>,
    /// What rules match as groups; `None`: the provider does not say.
    pub(super) groups: Option<Vec<String>>,
    /// The names of the groups, for teams; `None`: the provider does not say.
    pub(super) teams: Option<Vec<String>>,
    pub(super) said: Map<String, Value>,
}

/// Whether the claims of a verified token are for this sign-in, now. The error says for the log what is wrong.
pub(super) fn check(said: &Map<String, Value>, expected: &Expected<'_>) -> Result<(), &'static str> {
    if said.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
        return Err("issuer");
    }
    let several = match said.get("aud") {
        Some(Value::String(one)) if one == expected.client => false,
        Some(Value::Array(many)) if many.iter().any(|one| one == expected.client) => many.len() > 1,
        _ => return Err("audience"),
    };
    match said.get("azp") {
        Some(party) if party == expected.client => {}
        None if !several => {}
        _ => return Err("authorized-party"),
    }
    let time = |name: &str| said.get(name).map(|value| value.as_f64().unwrap_or(f64::NAN));
    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are exact in a double")]
    let (earliest, latest) = ((expected.now.timestamp() - SKEW) as f64, (expected.now.timestamp() + SKEW) as f64);
    // Written so that what is not a number fits nowhere.
    if !time("exp").is_some_and(|exp| exp > earliest) {
        return Err("expired");
    }
    if !time("iat").is_some_and(|iat| iat <= latest) || !time("nbf").is_none_or(|nbf| nbf <= latest) {
        return Err("not-yet");
    }
    let nonce = said.get("nonce").and_then(Value::as_str).unwrap_or_default();
    if !constant_time_eq(nonce.as_bytes(), expected.nonce.as_bytes()) {
        return Err("nonce");
    }
    Ok(())
}

/// A claim by its path: the whole path as a name first, since names may be addresses, then its pieces.
pub(super) fn at<'a>(said: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    written_at(said, path).filter(|value| !value.is_null())
}

/// The same where it counts that a provider says nothing in so many words.
fn written_at<'a>(said: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = said.get(path) {
        return Some(value);
    }
    let mut pieces = path.split('.');
    let mut value = said.get(pieces.next()?)?;
    for piece in pieces {
        value = value.get(piece)?;
    }
    Some(value)
}

/// The texts of a claim: a list of them, or one.
pub(super) fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().filter_map(text).take(MAX_VALUES).collect(),
        other => text(other).into_iter().collect(),
    }
}

impl Person {
    /// The person of a checked token, or of what a userinfo address says to one. The error says for the log what is missing.
    pub(super) fn of(config: &Config, said: Map<String, Value>) -> Result<Self, &'static str> {
        let text = |path: &str| at(&said, path).and_then(Value::as_str).map(str::to_owned);
        let subject = match config.protocol {
            Protocol::Oidc | Protocol::Saml => text("sub"),
            Protocol::OAuth2 => config.oauth2.as_ref().and_then(|settings| settings.subject_of(&said)),
            Protocol::Entra => {
                // The issuer of a tenant names it; a token of another tenant is not of this one's people.
                let tenant = text("tid").filter(|tenant| {
                    said.get("iss").and_then(Value::as_str).is_some_and(|iss| iss.split('/').any(|part| part == tenant))
                });
                tenant.ok_or("tenant")?;
                text("oid")
            }
        };
        let subject = subject.filter(|text| (1..=MAX_SUBJECT).contains(&text.len())).ok_or("subject")?;
        let typed = text(&config.claims.email).or_else(|| match config.protocol {
            Protocol::Entra if config.claims.email == "email" => text("preferred_username"),
            _ => None,
        });
        let verified = config.oauth2.as_ref().map_or("email_verified", |settings| settings.email_verified.as_str());
        let email_verified = match written_at(&said, verified) {
            None => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::String(text)) => Some(text.eq_ignore_ascii_case("true")),
            Some(Value::Number(number)) => Some(number.as_u64() == Some(1)),
            // Something is said, a null as well, and it is not that it was verified.
            Some(_) => Some(false),
        };
        let groups = at(&said, &config.claims.groups).map(texts);
        Ok(Self {
            subject,
            email: typed.and_then(|text| fields::email(&text).ok()),
            email_verified,
            name: text(&config.claims.name).and_then(|text| fields::person_name(&text).ok()),
            // Entra names groups by numbers; Graph knows what they are called.
            teams: groups.clone().filter(|_| config.protocol != Protocol::Entra),
            groups,
            said,
        })
    }

    /// What a rule's path stands for; `None`: the provider does not say.
    pub(super) fn values(&self, config: &Config, path: &str) -> Option<Vec<String>> {
        match path {
            GROUPS => self.groups.clone(),
            ROLES => at(&self.said, &config.claims.roles).map(texts),
            path => at(&self.said, path).map(texts),
        }
    }
}
