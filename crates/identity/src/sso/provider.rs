//! Talking with identity providers: every request through the guard, bounded in time and size (SSO-23).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{ACCEPT, AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use tale_core::net::{HostPolicy, check_destination, guarded_client};
use url::Url;

use super::claims::MAX_VALUES;
use super::config::Config;
use super::jws::{KeySet, Unsigned};

/// How long a whole exchange may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer, in bytes.
const MAX_BODY: usize = 1 << 20;
/// How long what a provider says about itself, and its keys, are believed.
const FRESH: Duration = Duration::from_secs(600);
/// How long nobody asks again for keys that are not there.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most providers that are remembered at once.
const MAX_REMEMBERED: usize = 1_000;
/// Most pages of groups of somebody.
const MAX_PAGES: usize = 10;

/// Why a provider gave nothing usable. The text is for the log and for the test of a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderError {
    /// The guard refuses the address.
    #[error("{0} may not be called from here")]
    Refused(&'static str),
    /// No answer, in time or at all.
    #[error("{0} does not answer")]
    Silent(&'static str),
    /// An answer that is no success.
    #[error("{0} answers with status {1}")]
    Status(&'static str, u16),
    /// An answer that is too large, or not what the protocol says.
    #[error("{0} answers with something else than expected")]
    Unexpected(&'static str),
    /// The discovery document is another issuer's.
    #[error("the provider calls itself {0}")]
    OtherIssuer(String),
    /// The token endpoint refuses.
    #[error("the token endpoint refuses: {}", .0.error)]
    Token(Denial),
    /// The token is not believed.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
}

/// A refusal of a provider in its own words.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Denial {
    #[serde(default)]
    pub(super) error: String,
    #[serde(default)]
    pub(super) error_description: String,
}

/// What a provider says about itself, as far as it is used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Discovery {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) jwks_uri: Url,
    #[serde(default)]
    pub(super) userinfo_endpoint: Option<Url>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl Discovery {
    /// Where the provider is spoken with.
    pub(super) fn endpoints(&self) -> Endpoints {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        Endpoints {
            authorization: self.authorization_endpoint.clone(),
            token: self.token_endpoint.clone(),
            user_info: self.userinfo_endpoint.clone(),
            secret_in_body: methods.is_some_and(|all| !all.iter().any(|method| method == "client_secret_basic")),
        }
    }
}

/// Where a provider is spoken with, found or entered.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) user_info: Option<Url>,
    /// Whether the client's secret goes into the body of a request, and not into its header.
    pub(super) secret_in_body: bool,
}

/// What a code was exchanged for.
#[derive(Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) id_token: Option<String>,
    #[serde(default)]
    pub(super) access_token: Option<String>,
}

/// A code and what proves that it is ours.
pub(super) struct Exchange<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) callback: &'a str,
}

/// Something with the time at which it was read.
struct Aged<T> {
    value: T,
    at: DateTime<Utc>,
}

/// What was read of providers, dropped as a whole when it becomes too much.
struct Memory<K, T>(Mutex<HashMap<K, Aged<T>>>);

impl<K: Eq + Hash, T: Clone> Memory<K, T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn get(&self, key: &K) -> Option<(T, DateTime<Utc>)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(key).map(|aged| (aged.value.clone(), aged.at))
    }

    fn put(&self, key: K, value: T, at: DateTime<Utc>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MAX_REMEMBERED {
            held.clear();
        }
        held.insert(key, Aged { value, at });
    }
}

/// The client of all identity providers of a process.
pub(crate) struct Providers {
    policy: HostPolicy,
    client: OnceLock<reqwest::Client>,
    discovered: Memory<String, Discovery>,
    keys: Memory<Url, KeySet>,
}

impl Providers {
    pub(crate) fn new(policy: HostPolicy) -> Self {
        Self { policy, client: OnceLock::new(), discovered: Memory::new(), keys: Memory::new() }
    }

    pub(super) fn policy(&self) -> HostPolicy {
        self.policy
    }

    fn client(&self) -> Result<&reqwest::Client, ProviderError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = guarded_client(self.policy, TIMEOUT).map_err(|_| ProviderError::Silent("the network"))?;
        Ok(self.client.get_or_init(|| made))
    }

    /// Sends a request and reads the bytes of its answer, with the status.
    async fn fetch(
        &self,
        what: &'static str,
        url: &Url,
        request: impl FnOnce(&reqwest::Client) -> reqwest::RequestBuilder,
    ) -> Result<(u16, Vec<u8>), ProviderError> {
        check_destination(url, self.policy).map_err(|_| ProviderError::Refused(what))?;
        let request = request(self.client()?).timeout(TIMEOUT);
        let failed = |error: reqwest::Error| match tale_core::net::refusal_in(&error) {
            Some(_) => ProviderError::Refused(what),
            None => ProviderError::Silent(what),
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > MAX_BODY {
                return Err(ProviderError::Unexpected(what));
            }
            body.extend_from_slice(&piece);
        }
        Ok((status, body))
    }

    /// Sends a request and reads the JSON of its answer, with the status.
    async fn ask(
        &self,
        what: &'static str,
        url: &Url,
        request: impl FnOnce(&reqwest::Client) -> reqwest::RequestBuilder,
    ) -> Result<(u16, Value), ProviderError> {
        let (status, body) = self.fetch(what, url, |client| request(client).header(ACCEPT, "application/json")).await?;
        match serde_json::from_slice(&body) {
            Ok(value) => Ok((status, value)),
            Err(_) if (200..300).contains(&status) => Err(ProviderError::Unexpected(what)),
            Err(_) => Ok((status, Value::Null)),
        }
    }

    async fn get(&self, what: &'static str, url: &Url, token: Option<&str>) -> Result<Value, ProviderError> {
        let (status, value) = self
            .ask(what, url, |client| {
                let request = client.get(url.clone());
                match token {
                    Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
                    None => request,
                }
            })
            .await?;
        if (200..300).contains(&status) { Ok(value) } else { Err(ProviderError::Status(what, status)) }
    }

    /// The metadata of a provider that speaks SAML.
    pub(super) async fn document(&self, url: &Url) -> Result<String, ProviderError> {
        const WHAT: &str = "the address of the metadata";
        let (status, body) = self.fetch(WHAT, url, |client| client.get(url.clone())).await?;
        if !(200..300).contains(&status) {
            return Err(ProviderError::Status(WHAT, status));
        }
        String::from_utf8(body).map_err(|_| ProviderError::Unexpected(WHAT))
    }

    /// Whether anything answers at an address of the provider; without a question it may well refuse.
    pub(super) async fn answers(&self, what: &'static str, url: &Url) -> Result<(), ProviderError> {
        match self.fetch(what, url, |client| client.get(url.clone())).await? {
            (status @ (404 | 410 | 500..), _) => Err(ProviderError::Status(what, status)),
            _ => Ok(()),
        }
    }

    /// What the issuer says about itself, at most ten minutes old.
    pub(super) async fn discover(&self, issuer: &str, now: DateTime<Utc>) -> Result<Discovery, ProviderError> {
        let issuer = issuer.trim_end_matches('/');
        let remembered = self.discovered.get(&issuer.to_owned());
        if let Some((found, _)) = remembered.filter(|(_, at)| now < *at + FRESH) {
            return Ok(found);
        }
        let found = self.discover_anew(issuer).await?;
        self.discovered.put(issuer.to_owned(), found.clone(), now);
        Ok(found)
    }

    /// What the issuer says about itself now.
    pub(super) async fn discover_anew(&self, issuer: &str) -> Result<Discovery, ProviderError> {
        const WHAT: &str = "the discovery document";
        let issuer = issuer.trim_end_matches('/');
        let url = Url::parse(&format!("{issuer}/.well-known/openid-configuration"))
            .map_err(|_| ProviderError::Unexpected(WHAT))?;
        let found = self.get(WHAT, &url, None).await?;
        let found = Discovery::deserialize(found).map_err(|_| ProviderError::Unexpected(WHAT))?;
        if found.issuer.trim_end_matches('/') != issuer {
            return Err(ProviderError::OtherIssuer(found.issuer.chars().take(200).collect()));
        }
        // Browsers are sent there, so it is judged like an address that is called.
        check_destination(&found.authorization_endpoint, self.policy)
            .map_err(|_| ProviderError::Refused("the authorization endpoint"))?;
        Ok(found)
    }

    /// The provider's keys now.
    pub(super) async fn keys_anew(&self, url: &Url) -> Result<KeySet, ProviderError> {
        const WHAT: &str = "the address of the keys";
        let set = self.get(WHAT, url, None).await?;
        KeySet::parse(&set).filter(|keys| !keys.is_empty()).ok_or(ProviderError::Unexpected(WHAT))
    }

    /// What a token says. A key that is not among those remembered makes them be read once more, at most once in half a
    /// minute, however many tokens name it.
    pub(super) async fn verify(
        &self,
        found: &Discovery,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, ProviderError> {
        let mut age = PATIENCE;
        if let Some((keys, at)) = self.keys.get(&found.jwks_uri).filter(|(_, at)| now < *at + FRESH) {
            match keys.verify(token) {
                Err(Unsigned::UnknownKey) => age = (now - at).to_std().unwrap_or_default(),
                judged => return Ok(judged?),
            }
        }
        if age < PATIENCE {
            return Err(Unsigned::UnknownKey.into());
        }
        let keys = self.keys_anew(&found.jwks_uri).await?;
        self.keys.put(found.jwks_uri.clone(), keys.clone(), now);
        Ok(keys.verify(token)?)
    }

    /// Exchanges a code.
    pub(super) async fn exchange(
        &self,
        endpoints: &Endpoints,
        config: &Config,
        secret: Option<&SecretString>,
        exchange: &Exchange<'_>,
    ) -> Result<Tokens, ProviderError> {
        const WHAT: &str = "the token endpoint";
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", exchange.code),
            ("redirect_uri", exchange.callback),
            ("code_verifier", exchange.verifier),
        ];
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let mut header = None;
        match secret {
            Some(secret) if !endpoints.secret_in_body => {
                let pair = format!("{}:{}", encoded(&config.client_id), encoded(secret.expose_secret()));
                header = Some(format!("Basic {}", base64::Engine::encode(&base64::prelude::BASE64_STANDARD, pair)));
            }
            Some(secret) => {
                form.push(("client_id", &config.client_id));
                form.push(("client_secret", secret.expose_secret()));
            }
            None => form.push(("client_id", &config.client_id)),
        }
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let (status, value) = self
            .ask(WHAT, &endpoints.token, |client| {
                let request = client
                    .post(endpoints.token.clone())
                    .header(reqwest::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(body);
                match header {
                    Some(header) => request.header(AUTHORIZATION, header),
                    None => request,
                }
            })
            .await?;
        // Some providers refuse with the status of a success.
        match Denial::deserialize(&value) {
            Ok(denial) if !denial.error.is_empty() => Err(ProviderError::Token(denial)),
            _ if (200..300).contains(&status) => {
                Tokens::deserialize(value).map_err(|_| ProviderError::Unexpected(WHAT))
            }
            _ => Err(ProviderError::Status(WHAT, status)),
        }
    }

    /// What the provider says about the holder of a token.
    pub(super) async fn holder(&self, url: &Url, token: &str) -> Result<Map<String, Value>, ProviderError> {
        const WHAT: &str = "the userinfo endpoint";
        match self.get(WHAT, url, Some(token)).await? {
            Value::Object(said) => Ok(said),
            _ => Err(ProviderError::Unexpected(WHAT)),
        }
    }

    /// What the provider says beside the token, when it is about the same person.
    pub(super) async fn user_info(
        &self,
        url: &Url,
        token: &str,
        subject: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        let said = self.holder(url, token).await?;
        let same = said.get("sub").and_then(Value::as_str) == Some(subject);
        if same { Ok(said) } else { Err(ProviderError::Unexpected("the userinfo endpoint")) }
    }

    /// The groups of the person at Microsoft Graph, as pairs of id and name. Graph is where the userinfo endpoint of
    /// the tenant is, in every national cloud.
    pub(super) async fn graph_groups(
        &self,
        user_info: &Url,
        token: &str,
    ) -> Result<Vec<(String, String)>, ProviderError> {
        const WHAT: &str = "Microsoft Graph";
        let mut url = user_info
            .join("/v1.0/me/transitiveMemberOf/microsoft.graph.group?$select=id,displayName&$top=999")
            .map_err(|_| ProviderError::Unexpected(WHAT))?;
        let mut groups = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = self.get(WHAT, &url, Some(token)).await?;
            let listed = page.get("value").and_then(Value::as_array).ok_or(ProviderError::Unexpected(WHAT))?;
            let text = |group: &Value, name: &str| group.get(name).and_then(Value::as_str).map(str::to_owned);
            groups.extend(listed.iter().filter_map(|group| Some((text(group, "id")?, text(group, "displayName")?))));
            let next = page.get("@odata.nextLink").and_then(Value::as_str).and_then(|next| Url::parse(next).ok());
            match next.filter(|_| groups.len() < MAX_VALUES) {
                // The token goes where it went before and nowhere else.
                Some(next) if next.origin() == url.origin() => url = next,
                _ => break,
            }
        }
        groups.truncate(MAX_VALUES);
        Ok(groups)
    }
}
