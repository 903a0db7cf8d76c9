//! Providers that speak OAuth 2.0 and nothing above it: their addresses are entered, no token is signed, and who somebody
//! is stands in what the userinfo address answers to the token that the code was exchanged for (SSO-2).

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tale_core::Problem;
use tale_core::net::{HostPolicy, check_destination, check_entered, entered, invalid_url};
use url::Url;

use super::claims::at;
use super::config::Config;
use super::provider::{Endpoints, ProviderError};
use super::{Tested, config};
use crate::fields;
use crate::service::Identity;

/// Longest address of a provider.
const MAX_URL: usize = 500;
/// Where a person's name at the provider stands when no path is set: the first that is there.
const SUBJECTS: [&str; 2] = ["sub", "id"];
/// What a question says itself, so that the authorization address must not; and what would bind it to another one: the
/// nonce of OpenID Connect, and objects whose contents count instead of the question's (RFC 9101).
const OF_THE_QUESTION: [&str; 10] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "nonce",
    "request",
    "request_uri",
];

/// How a provider that speaks OAuth 2.0 is asked and understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuth2Settings {
    /// Where browsers are sent.
    pub authorization_url: String,
    /// Where a code is exchanged.
    pub token_url: String,
    /// What says who the holder of a token is.
    pub user_info_url: String,
    /// The path of what the provider knows somebody by and never gives to anybody else; empty: `sub`, else `id`.
    pub subject: String,
    /// The path of whether the address is known to be the person's.
    pub email_verified: String,
    /// Whether the client's secret goes into the body of a request, and not into its header.
    pub secret_in_body: bool,
}

fn address(path: &str, text: &str) -> Result<(String, Url), Problem> {
    let text = fields::short_text(path, text, MAX_URL)?;
    let url = Url::parse(&text)
        .map_err(|_| invalid_url(path, "must be an address such as https://login.example.org/oauth"))?;
    Ok((text, url))
}

impl OAuth2Settings {
    /// The settings with everything trimmed, once all of it is known to fit.
    pub(super) fn judged(self, policy: HostPolicy) -> Result<Self, Problem> {
        let (authorization_url, browsers) = address("authorizationUrl", &self.authorization_url)?;
        check_destination(&browsers, policy).map_err(|refused| entered("authorizationUrl", &refused))?;
        let decorated =
            !browsers.username().is_empty() || browsers.password().is_some() || browsers.fragment().is_some();
        if decorated || browsers.query_pairs().any(|(name, _)| OF_THE_QUESTION.contains(&name.as_ref())) {
            return Err(invalid_url(
                "authorizationUrl",
                "must not carry a user name, a fragment, or what every question says itself, such as `client_id`",
            ));
        }
        let (token_url, token) = address("tokenUrl", &self.token_url)?;
        check_entered("tokenUrl", &token, policy)?;
        let (user_info_url, user_info) = address("userInfoUrl", &self.user_info_url)?;
        // Some providers choose with a query what they say.
        check_destination(&user_info, policy).map_err(|refused| entered("userInfoUrl", &refused))?;
        if !user_info.username().is_empty() || user_info.password().is_some() || user_info.fragment().is_some() {
            return Err(invalid_url("userInfoUrl", "must not carry a user name or a fragment"));
        }
        Ok(Self {
            authorization_url,
            token_url,
            user_info_url,
            subject: match self.subject.trim() {
                "" => String::new(),
                path => config::line("subject", path)?,
            },
            email_verified: config::line("emailVerified", &self.email_verified)?,
            secret_in_body: self.secret_in_body,
        })
    }

    /// Whose names the subjects are: those that the userinfo address gives at this path.
    pub(super) fn issuer(&self) -> String {
        match self.subject.as_str() {
            "" => self.user_info_url.clone(),
            path => format!("{}#{path}", self.user_info_url),
        }
    }

    /// The addresses, which are the provider as a client knows it.
    pub(super) fn addresses(&self) -> [&str; 3] {
        [&self.authorization_url, &self.token_url, &self.user_info_url]
    }

    /// The addresses, judged once more: what was admitted when they were entered may not be any more.
    pub(super) fn endpoints(&self, policy: HostPolicy) -> Result<Endpoints, ProviderError> {
        const WHAT: &str = "the authorization URL";
        let parsed = |text: &str| Url::parse(text).map_err(|_| ProviderError::Unexpected("the stored address"));
        let authorization = parsed(&self.authorization_url)?;
        check_destination(&authorization, policy).map_err(|_| ProviderError::Refused(WHAT))?;
        Ok(Endpoints {
            authorization,
            token: parsed(&self.token_url)?,
            user_info: Some(parsed(&self.user_info_url)?),
            secret_in_body: self.secret_in_body,
        })
    }

    /// Whether an answer that names its issuer (RFC 9207) can be this provider's. Its issuer is not known here, but
    /// where browsers were sent is: an answer of another place was led here by somebody in between.
    pub(super) fn may_call_itself(&self, issuer: &str) -> bool {
        let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
        origin(issuer).is_some_and(|named| origin(&self.authorization_url) == Some(named))
    }

    /// What the provider knows the person by. Only a text or a whole number stays the same from one answer to the next.
    pub(super) fn subject_of(&self, said: &Map<String, Value>) -> Option<String> {
        let own = [self.subject.as_str()];
        let paths: &[&str] = if self.subject.is_empty() { &SUBJECTS } else { &own };
        match paths.iter().find_map(|path| at(said, path))? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) if !number.is_f64() => Some(number.to_string()),
            _ => None,
        }
    }
}

impl Identity {
    /// Tries what can be tried without anybody signing in: both addresses answer, and the token address takes the
    /// client's secret.
    pub(super) async fn tested_by_oauth2(
        &self,
        config: &Config,
        settings: &OAuth2Settings,
        secret: Option<&SecretString>,
        callback: &str,
    ) -> Tested {
        let providers = &self.0.providers;
        let endpoints = match settings.endpoints(providers.policy()) {
            Ok(endpoints) => endpoints,
            Err(error) => return Tested { discovery: Err(error.to_string()), keys: None, credentials: None },
        };
        let discovery = providers.answers("the authorization URL", &endpoints.authorization).await;
        let user_info = match &endpoints.user_info {
            Some(url) => Some(providers.answers("the userinfo URL", url).await.map_err(|error| error.to_string())),
            None => None,
        };
        let credentials = self.try_client(&endpoints, config, secret, callback).await;
        Tested {
            discovery: discovery.map_err(|error| error.to_string()),
            keys: user_info,
            credentials: Some(credentials),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> OAuth2Settings {
        OAuth2Settings {
            authorization_url: "https://login.example.org/authorize?prompt=login".into(),
            token_url: "https://login.example.org/token".into(),
            user_info_url: "https://api.example.org/user".into(),
            subject: String::new(),
            email_verified: "email_verified".into(),
            secret_in_body: false,
        }
    }

    #[test]
    fn a_subject_is_a_text_or_a_whole_number_at_its_path() {
        let of = |path: &str, said: Value| {
            OAuth2Settings { subject: path.into(), ..settings() }.subject_of(said.as_object().unwrap())
        };
        assert_eq!(of("", serde_json::json!({ "sub": "a", "id": 7 })).as_deref(), Some("a"));
        assert_eq!(of("", serde_json::json!({ "id": 7 })).as_deref(), Some("7"));
        assert_eq!(of("user.id", serde_json::json!({ "sub": "a", "user": { "id": "u-7" } })).as_deref(), Some("u-7"));
        for said in [
            serde_json::json!({}),
            serde_json::json!({ "sub": null }),
            serde_json::json!({ "id": 7.5 }),
            serde_json::json!({ "id": true }),
            serde_json::json!({ "sub": ["a"] }),
            serde_json::json!({ "login": "zoe" }),
        ] {
            assert_eq!(of("", said.clone()), None, "{said}");
        }
        assert_eq!(of("user.id", serde_json::json!({ "sub": "a" })), None, "no other place is looked at");
    }

    #[test]
    fn subjects_of_another_address_or_path_are_other_people() {
        let other = OAuth2Settings { user_info_url: "https://api.example.org/v2/user".into(), ..settings() };
        let path = OAuth2Settings { subject: "id".into(), ..settings() };
        assert_ne!(settings().issuer(), other.issuer());
        assert_ne!(settings().issuer(), path.issuer());
    }

    #[test]
    fn an_answer_that_names_another_place_is_not_this_providers() {
        assert!(settings().may_call_itself("https://login.example.org/realms/a"));
        for other in ["https://evil.example", "http://login.example.org", "", "data:x", "urn:x"] {
            assert!(!settings().may_call_itself(other), "{other}");
        }
    }

    #[test]
    fn addresses_are_https_and_leave_the_question_to_us() {
        let refused = |edit: fn(&mut OAuth2Settings)| {
            let mut settings = settings();
            edit(&mut settings);
            settings.judged(HostPolicy::PublicOnly).unwrap_err().code.text()
        };
        assert_eq!(settings().judged(HostPolicy::PublicOnly).unwrap(), settings());
        assert_eq!(refused(|s| s.authorization_url = "http://login.example.org/a".into()), "INVALID_URL");
        assert_eq!(refused(|s| s.authorization_url.push_str("&state=fixed")), "INVALID_URL");
        assert_eq!(refused(|s| s.authorization_url.push_str("&nonce=of-another-question")), "INVALID_URL");
        assert_eq!(refused(|s| s.authorization_url.push_str("&request_uri=urn:x")), "INVALID_URL");
        assert_eq!(refused(|s| s.token_url = "https://u:p@login.example.org/token".into()), "INVALID_URL");
        assert_eq!(refused(|s| s.token_url = "https://169.254.169.254/token".into()), "PRIVATE_HOST_BLOCKED");
        assert_eq!(refused(|s| s.user_info_url = "https://127.0.0.1/user".into()), "PRIVATE_HOST_BLOCKED");
        assert_eq!(refused(|s| s.user_info_url = "javascript:alert(1)".into()), "INVALID_URL");
        assert_eq!(refused(|s| s.email_verified = " ".into()), "INVALID_BODY");
    }
}
