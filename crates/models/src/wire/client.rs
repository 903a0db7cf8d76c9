//! The transport: guarded HTTP requests to a [`Target`].

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::ExposeSecret;
use serde_json::Value;
use tale_core::net::{HostPolicy, HostRefused, check_destination, guarded_client, refusal_in};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::error::{ModelError, ModelErrorCode};
use super::pump::{self, Private, Pump};
use super::{
    ApiFormat, ChatRequest, ModelFacts, StreamEvent, Target, ToolApi, WireLimits, anthropic, classify, openai,
    responses,
};
use crate::metrics;

/// Most bytes read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How long a provider may take to count tokens.
const COUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// The version of the Anthropic format that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What a provider answers to [`WireClient::relay`].
pub struct Relayed {
    /// Whether it is one JSON document, and not a stream of events.
    pub document: bool,
    /// Its bytes. Dropping them closes the connection.
    pub body: BoxStream<'static, Result<Bytes, ModelError>>,
}

/// Sends requests to model providers. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct WireClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    demo_http: reqwest::Client,
    policy: HostPolicy,
    demo_base: Option<Url>,
    limits: WireLimits,
}

impl WireClient {
    /// A client under `policy`. `demo_base` is the address of this process's demo model; it is the
    /// only private address that [`HostPolicy::PublicOnly`] lets through, and only for targets
    /// marked as the demo.
    ///
    /// # Errors
    /// When the TLS backend cannot start.
    pub fn new(policy: HostPolicy, demo_base: Option<Url>, limits: WireLimits) -> Result<Self, reqwest::Error> {
        Ok(Self {
            inner: Arc::new(Inner {
                http: guarded_client(policy, limits.connect)?,
                demo_http: guarded_client(HostPolicy::PrivateAllowed, limits.connect)?,
                policy,
                demo_base,
                limits,
            }),
        })
    }

    /// The address of the demo model, when this process runs one.
    #[must_use]
    pub fn demo_base(&self) -> Option<&Url> {
        self.inner.demo_base.as_ref()
    }

    /// The policy that destinations are judged by.
    #[must_use]
    pub fn policy(&self) -> HostPolicy {
        self.inner.policy
    }

    /// The bounds of each call.
    #[must_use]
    pub fn limits(&self) -> &WireLimits {
        &self.inner.limits
    }

    /// Starts an answer. The stream ends with [`StreamEvent::Finish`], with an error, or without
    /// either when `cancel` fired. Dropping the stream closes the connection.
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached.
    pub async fn chat(
        &self,
        target: &Target,
        facts: &ModelFacts,
        request: &ChatRequest,
        cancel: CancellationToken,
    ) -> Result<BoxStream<'static, Result<StreamEvent, ModelError>>, ModelError> {
        let started = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(stream::empty().boxed()),
            started = self.start(target, facts, request) => started,
        };
        let response = started.map_err(|error| error.scrubbed(target.secret.as_ref(), &target.base))?;
        let document = content_type(response.headers()).is_some_and(|kind| kind.starts_with("application/json"));
        let body = response.bytes_stream().map(|piece| piece.map_err(|error| unreachable(&error, true))).boxed();
        let private = Private { secret: target.secret.clone(), base: Some(target.base.clone()) };
        let pump = Pump::new(target.format, body, document, self.inner.limits, cancel, private);
        Ok(pump.over(facts.tool_api).into_stream())
    }

    async fn start(
        &self,
        target: &Target,
        facts: &ModelFacts,
        request: &ChatRequest,
    ) -> Result<reqwest::Response, ModelError> {
        let post = async |path: &[&str], mut body: Value| {
            facts.extra_body.add_to(&mut body);
            self.post(target, path, &body).await
        };
        let refused = |error: &ModelError, word: &str| {
            matches!(error.status, Some(400 | 422)) && error.message.to_lowercase().contains(word)
        };
        let response = match (target.format, facts.tool_api) {
            (ApiFormat::Anthropic, _) => post(&["v1", "messages"], anthropic::body(facts, request)).await?,
            (ApiFormat::OpenAi, ToolApi::Responses) => {
                match post(&["responses"], responses::body(facts, request, true)).await {
                    // Readable reasoning is a privilege of verified accounts; the answer is not.
                    Err(error) if refused(&error, "summar") => {
                        post(&["responses"], responses::body(facts, request, false)).await?
                    }
                    other => other?,
                }
            }
            (ApiFormat::OpenAi, ToolApi::ChatCompletions) => {
                let path = ["chat", "completions"];
                match post(&path, openai::body(facts, target.dialect, request, true)).await {
                    // A server that does not know `stream_options` answers without usage.
                    Err(error) if refused(&error, "stream_options") => {
                        post(&path, openai::body(facts, target.dialect, request, false)).await?
                    }
                    other => other?,
                }
            }
        };
        if content_type(response.headers()).is_some_and(|kind| kind.starts_with("text/html")) {
            return Err(classify::refusal(response.status().as_u16(), response.headers(), b"<html>"));
        }
        Ok(response)
    }

    /// Posts a body that is written in the target's wire already and hands on what comes back as it
    /// comes. Waits up to `wait` for the answer to begin. A connection that could not be made is tried
    /// once more, because nothing was sent by then (MOD-139).
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached; the key is in none.
    pub async fn relay(
        &self,
        target: &Target,
        tool_api: ToolApi,
        body: Bytes,
        beta: Option<&str>,
        wait: Duration,
    ) -> Result<Relayed, ModelError> {
        let path: &[&str] = match (target.format, tool_api) {
            (ApiFormat::OpenAi, ToolApi::ChatCompletions) => &["chat", "completions"],
            (ApiFormat::OpenAi, ToolApi::Responses) => &["responses"],
            (ApiFormat::Anthropic, _) => &["v1", "messages"],
        };
        let once = async || {
            let mut request = self
                .http(target)
                .post(self.admit(target, path)?)
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "text/event-stream, application/json")
                .body(body.clone());
            if let Some(beta) = beta.filter(|_| target.format == ApiFormat::Anthropic) {
                request = request.header("anthropic-beta", beta);
            }
            self.send(target, request, wait).await
        };
        let answered = match once().await {
            Err(error) if error.code == ModelErrorCode::ProviderUnreachable => once().await,
            other => other,
        };
        let response = answered.map_err(|error| error.scrubbed(target.secret.as_ref(), &target.base))?;
        let kind = content_type(response.headers()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(classify::refusal(response.status().as_u16(), response.headers(), b"<html>"));
        }
        let body = response.bytes_stream().map(|piece| piece.map_err(|error| unreachable(&error, true))).boxed();
        Ok(Relayed { document: kind.starts_with("application/json"), body })
    }

    /// Has the provider count the tokens of a prompt in the Anthropic format. `None` = it has no such
    /// service, as some providers of the format have none.
    ///
    /// # Errors
    /// A [`ModelError`] when the provider refuses or cannot be reached; the key is in none.
    pub async fn count_tokens(
        &self,
        target: &Target,
        body: Bytes,
        beta: Option<&str>,
    ) -> Result<Option<u64>, ModelError> {
        let mut request = self
            .http(target)
            .post(self.admit(target, &["v1", "messages", "count_tokens"])?)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(body);
        if let Some(beta) = beta {
            request = request.header("anthropic-beta", beta);
        }
        let counted = async {
            let response = self.send(target, request, COUNT_TIMEOUT).await?;
            self.json(response, MAX_REFUSAL_BYTES).await
        };
        match counted.await {
            Ok(count) => Ok(count["input_tokens"].as_u64()),
            Err(error) if matches!(error.status, Some(404 | 405 | 501)) => Ok(None),
            Err(error) => Err(error.scrubbed(target.secret.as_ref(), &target.base)),
        }
    }

    /// Posts JSON; anything but a 2xx is a [`ModelError`].
    pub(super) async fn post(
        &self,
        target: &Target,
        path: &[&str],
        body: &Value,
    ) -> Result<reqwest::Response, ModelError> {
        let url = self.admit(target, path)?;
        let bytes = serde_json::to_vec(body)
            .map_err(|_| ModelError::new(ModelErrorCode::Generic, "The request could not be written as JSON."))?;
        let request = self
            .http(target)
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(bytes);
        self.send(target, request, self.inner.limits.idle).await
    }

    /// Posts a body of another kind than JSON and waits up to `wait` for the answer to begin.
    pub(super) async fn post_body(
        &self,
        target: &Target,
        path: &[&str],
        (kind, length, body): (String, u64, reqwest::Body),
        wait: Duration,
    ) -> Result<reqwest::Response, ModelError> {
        let url = self.admit(target, path)?;
        let request = self
            .http(target)
            .post(url)
            .header(CONTENT_TYPE, kind)
            .header(CONTENT_LENGTH, length)
            .header(ACCEPT, "application/json")
            .body(body);
        self.send(target, request, wait).await
    }

    /// Gets `path`; anything but a 2xx is a [`ModelError`].
    pub(super) async fn get(
        &self,
        target: &Target,
        path: &[&str],
        query: Option<&str>,
    ) -> Result<reqwest::Response, ModelError> {
        let mut url = self.admit(target, path)?;
        url.set_query(query);
        let request = self.http(target).get(url).header(ACCEPT, "application/json");
        self.send(target, request, self.inner.limits.idle).await
    }

    async fn send(
        &self,
        target: &Target,
        request: reqwest::RequestBuilder,
        wait: Duration,
    ) -> Result<reqwest::Response, ModelError> {
        self.attempt(target, request, wait).await.inspect_err(metrics::count)
    }

    async fn attempt(
        &self,
        target: &Target,
        request: reqwest::RequestBuilder,
        wait: Duration,
    ) -> Result<reqwest::Response, ModelError> {
        let request = request.headers(auth_headers(target)?);
        let sent = tokio::time::timeout(wait, request.send()).await;
        let response = sent.map_err(|_| pump::idle(wait))?.map_err(|error| unreachable(&error, false))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let mut error = ModelError::new(
                ModelErrorCode::Generic,
                format!(
                    "The provider answered with a redirect (HTTP {}), which is not followed. Check the base URL.",
                    status.as_u16()
                ),
            );
            error.status = Some(status.as_u16());
            return Err(error);
        }
        let headers = response.headers().clone();
        let body = self.read_up_to(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        Err(classify::refusal(status.as_u16(), &headers, &body))
    }

    /// Reads a body of at most `limit` bytes; of a longer one the start.
    async fn read_up_to(&self, mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut held = Vec::new();
        loop {
            let piece = tokio::time::timeout(self.inner.limits.idle, response.chunk())
                .await
                .map_err(|_| pump::idle(self.inner.limits.idle))?;
            match piece.map_err(|error| unreachable(&error, true))? {
                Some(bytes) => {
                    let room = limit - held.len();
                    held.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    if held.len() == limit {
                        return Ok(held);
                    }
                }
                None => return Ok(held),
            }
        }
    }

    /// Reads a JSON body of at most `limit` bytes.
    pub(super) async fn json(&self, response: reqwest::Response, limit: usize) -> Result<Value, ModelError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.read_up_to(response, limit + 1).await?;
        if body.len() > limit {
            return Err(ModelError::new(
                ModelErrorCode::ProviderError,
                format!("The provider's answer is larger than {} KiB.", limit / 1_024),
            ));
        }
        serde_json::from_slice(&body).map_err(|_| classify::refusal(status, &headers, &body))
    }

    /// The client for other addresses than a provider's, under the same policy.
    pub(crate) fn guarded(&self) -> &reqwest::Client {
        &self.inner.http
    }

    fn http(&self, target: &Target) -> &reqwest::Client {
        if target.demo { &self.inner.demo_http } else { &self.inner.http }
    }

    /// The request's URL, judged by the host policy. Names are judged again when they are resolved.
    fn admit(&self, target: &Target, path: &[&str]) -> Result<Url, ModelError> {
        let mut url = target.base.clone();
        // The Anthropic format's root has no version; a pasted one is not doubled.
        let versioned = url.path().trim_end_matches('/').ends_with("/v1");
        let path = path.strip_prefix(&["v1"]).filter(|_| versioned).unwrap_or(path);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if target.demo {
            if self.inner.demo_base.as_ref() != Some(&target.base) {
                return Err(ModelError::new(
                    ModelErrorCode::ProviderUnreachable,
                    "The demo model is not running. Start Tale with `tale dev --demo`.",
                ));
            }
            return Ok(url);
        }
        check_destination(&url, self.inner.policy).map_err(|refused| host_refused(&refused))?;
        Ok(url)
    }
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase)
}

fn auth_headers(target: &Target) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if target.format == ApiFormat::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    let Some(secret) = &target.secret else { return Ok(headers) };
    let key = secret.expose_secret().trim();
    let (name, text) = match target.format {
        ApiFormat::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
        ApiFormat::Anthropic => (reqwest::header::HeaderName::from_static("x-api-key"), key.to_owned()),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        ModelError::new(
            ModelErrorCode::AuthError,
            "The stored key contains characters that cannot be sent. Enter the key again.",
        )
    })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// The address itself is nobody's business who only uses the provider.
fn host_refused(refused: &HostRefused) -> ModelError {
    let why = match refused {
        HostRefused::Private(_) => {
            "it is private. An administrator of the deployment can admit private addresses with TALE_ALLOW_PRIVATE_PROVIDER_HOSTS=1"
        }
        HostRefused::Metadata(_) => "it belongs to a cloud's metadata service",
        HostRefused::NeedsHttps(_) => "a public host needs https",
        HostRefused::NotHttp | HostRefused::Decorated => "it is not the plain http or https address of a server",
    };
    ModelError::new(ModelErrorCode::ProviderUnreachable, format!("The provider's address is refused: {why}."))
}

/// A transport fault. `under_way` = the answer had begun.
fn unreachable(error: &reqwest::Error, under_way: bool) -> ModelError {
    if let Some(refused) = refusal_in(error) {
        return host_refused(refused);
    }
    if under_way {
        return pump::broken_off();
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = error.source();
    let mut last = None;
    while let Some(inner) = cause {
        last = Some(inner.to_string());
        cause = inner.source();
    }
    let mut reason = last.unwrap_or_else(|| "no reason was given".to_owned());
    // Certificates are refused by name.
    if let Some(host) = error.url().and_then(Url::host_str) {
        reason = reason.replace(host, "the provider");
    }
    if error.is_connect() || error.is_timeout() {
        let message = format!("Could not connect to the provider: {reason}.");
        return ModelError::new(ModelErrorCode::ProviderUnreachable, message);
    }
    ModelError::new(ModelErrorCode::ProviderError, format!("The connection to the provider failed: {reason}."))
}
