//! Aggregate page statistics (DCF-135 to DCF-137): a relay to an authenticated Umami gateway.
//!
//! Origin and token of the collector stay here. Of what a page sends, only the fields that this module
//! writes anew go on: a page's template, the origin it was reached from, language and screen. Cookies,
//! credentials and `Referer` never do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;
use tale_core::clock::SharedClock;
use tale_core::net::{HostPolicy, HostRefused, check_destination, guarded_client};
use tale_core::{Code, Problem};
use tale_env::AnalyticsSettings;
use tokio::sync::Semaphore;
use url::Url;

use super::{from_our_page, is_template, text};
use crate::HttpProblem;
use crate::body::read_limited;
use crate::caller::client_address;
use crate::origin::{peer, request_origin};
use crate::rate::Lane;
use crate::state::Shell;
use tale_identity::{ClientAddress, TrustedProxies};

/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest script of the collector, in bytes.
const LARGEST_SCRIPT: usize = 256 << 10;

/// Largest message of a page, in bytes.
const LARGEST_VIEW: usize = 8 << 10;

/// Largest answer to one, in bytes.
const LARGEST_ANSWER: usize = 16 << 10;

/// Calls to the collector at the same time; what comes on top is dropped.
const AT_ONCE: usize = 32;

/// Messages a minute from one network: a few people behind one address.
const PER_MINUTE: u32 = 600;

/// What the collector knows a visit by, for as long as the page is open.
const SESSION_HEADER: &str = "x-umami-cache";

/// What the proxy says about the client, whatever the client says.
const CLIENT_HEADER: &str = "x-analytics-client-ip";

/// Why statistics stay off.
#[derive(Debug, thiserror::Error)]
pub enum AnalyticsError {
    /// The collector is at an address that is never asked.
    #[error("UMAMI_URL cannot be used: {0}")]
    Collector(#[from] HostRefused),
    /// No HTTP client.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// The relay.
pub struct Analytics {
    script: Url,
    send: Url,
    settings: AnalyticsSettings,
    client: reqwest::Client,
    slots: Semaphore,
    networks: Lane<String>,
    /// Whether the last call failed, which has been said.
    away: AtomicBool,
}

impl Analytics {
    /// A relay to this collector. The operator names it, so that it may be on a private address.
    ///
    /// # Errors
    /// When it can never be asked.
    pub fn new(settings: AnalyticsSettings, clock: SharedClock) -> Result<Self, AnalyticsError> {
        check_destination(&settings.collector, HostPolicy::PrivateAllowed)?;
        let (mut script, mut send) = (settings.collector.clone(), settings.collector.clone());
        script.set_path("/_collect/script.js");
        send.set_path("/_collect/api/send");
        Ok(Self {
            script,
            send,
            settings,
            client: guarded_client(HostPolicy::PrivateAllowed, TIMEOUT)?,
            slots: Semaphore::new(AT_ONCE),
            networks: Lane::new(PER_MINUTE, PER_MINUTE, clock),
            away: AtomicBool::new(false),
        })
    }

    /// Id of the site at the collector.
    #[must_use]
    pub fn website(&self) -> &str {
        &self.settings.website
    }

    /// Asks the collector; `None` when there is nothing to pass on. Said once, until it answers again.
    async fn ask(&self, request: reqwest::RequestBuilder, largest: usize) -> Option<(HeaderMap, Bytes)> {
        let Ok(_slot) = self.slots.try_acquire() else { return None };
        let asked = async {
            let request = request.bearer_auth(self.settings.token.expose_secret());
            let mut answer = request.send().await.map_err(|error| error.without_url().to_string())?;
            if !answer.status().is_success() {
                return Err(format!("it answered {}", answer.status().as_u16()));
            }
            let headers = std::mem::take(answer.headers_mut());
            let mut body = Vec::new();
            while let Some(part) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
                if body.len() + part.len() > largest {
                    return Err(format!("its answer is larger than {largest} bytes"));
                }
                body.extend_from_slice(&part);
            }
            Ok((headers, Bytes::from(body)))
        };
        let why = match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(answer)) => {
                self.away.store(false, Ordering::Relaxed);
                return Some(answer);
            }
            Ok(Err(why)) => why,
            Err(_) => "it did not answer in time".to_owned(),
        };
        if !self.away.swap(true, Ordering::Relaxed) {
            tracing::warn!(event = "analytics.unavailable", why, "the collector of page statistics cannot be used");
        }
        None
    }
}

/// What a page sends, as Umami's script does; the rest of it goes no further.
#[derive(Deserialize)]
struct Message {
    r#type: String,
    payload: View,
}

#[derive(Deserialize)]
struct View {
    url: String,
    #[serde(default)]
    referrer: String,
    #[serde(default)]
    language: String,
    #[serde(default)]
    screen: String,
}

impl View {
    /// The message for the collector.
    fn rewritten(&self, website: &str, site: &Url) -> Option<serde_json::Value> {
        if !is_template(&self.url) {
            return None;
        }
        let from = Url::parse(&self.referrer).ok().map(|url| url.origin()).filter(|from| *from != site.origin());
        let referrer = from.filter(url::Origin::is_tuple).map(|from| from.ascii_serialization()).unwrap_or_default();
        let short = |text: &str, odd: &[u8]| {
            let fits = text.len() <= 35 && text.bytes().all(|b| b.is_ascii_alphanumeric() || odd.contains(&b));
            if fits { text.to_owned() } else { String::new() }
        };
        Some(json!({ "type": "event", "payload": {
            "website": website,
            "hostname": site.host_str(),
            "url": self.url,
            "referrer": referrer,
            "language": short(&self.language, b"-"),
            "screen": short(&self.screen, b""),
        }}))
    }
}

/// The collector's script.
pub(super) async fn script(State(shell): State<Shell>) -> Response {
    let Some(analytics) = &shell.outlets.analytics else { return StatusCode::NOT_FOUND.into_response() };
    let Some((_, body)) =
        analytics.ask(analytics.client.get(analytics.script.clone()).timeout(TIMEOUT), LARGEST_SCRIPT).await
    else {
        return ([(header::CACHE_CONTROL, "no-store")], StatusCode::BAD_GATEWAY).into_response();
    };
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    let caching = HeaderValue::from_static("public, max-age=86400");
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, caching)], body).into_response()
}

/// A page was looked at.
pub(super) async fn send(State(shell): State<Shell>, request: Request) -> Result<Response, HttpProblem> {
    let Some(analytics) = &shell.outlets.analytics else { return Ok(StatusCode::NOT_FOUND.into_response()) };
    let (parts, body) = request.into_parts();
    from_our_page(&shell.site, &parts)?;
    let said = |name| text(&parts.headers, name, 1) == "1";
    if said("dnt") || said("sec-gpc") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let client = analytics_client(&parts);
    analytics.networks.take(client.network())?;
    let body = read_limited(Request::from_parts(parts.clone(), body), LARGEST_VIEW).await?;
    let invalid = || Problem::new(Code::InvalidBody, "This is no view of a page of ours.");
    let message: Message = serde_json::from_slice(&body).map_err(|_| invalid())?;
    let origin = request_origin(&shell.site, &parts.headers, &parts.extensions);
    let view = message.payload.rewritten(analytics.website(), origin).filter(|_| message.r#type == "event");
    let view = view.ok_or_else(invalid)?;
    let mut forward = analytics
        .client
        .post(analytics.send.clone())
        .timeout(TIMEOUT)
        .header(header::USER_AGENT, text(&parts.headers, "user-agent", 1024))
        .header(CLIENT_HEADER, client.0.to_string())
        .header("x-forwarded-for", client.0.to_string())
        .json(&view);
    let session = text(&parts.headers, SESSION_HEADER, 4096);
    if !session.is_empty() {
        forward = forward.header(SESSION_HEADER, session);
    }
    let Some((headers, answer)) = analytics.ask(forward, LARGEST_ANSWER).await else {
        return Ok(([(header::CACHE_CONTROL, "no-store")], StatusCode::BAD_GATEWAY).into_response());
    };
    let json = text(&headers, "content-type", 100).starts_with("application/json");
    let kind = if json { "application/json" } else { "text/plain; charset=utf-8" };
    let kind = HeaderValue::from_static(kind);
    let caching = HeaderValue::from_static("no-store");
    Ok(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, caching)], Body::from(answer)).into_response())
}

/// The client as our proxy names it. Without a proxy in between, or without its word, as everywhere.
fn analytics_client(parts: &Parts) -> ClientAddress {
    let named = text(&parts.headers, CLIENT_HEADER, 45).parse().ok();
    match named.filter(|_| TrustedProxies::default().contains(peer(&parts.extensions))) {
        Some(address) => ClientAddress(address),
        None => client_address(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_carries_a_template_and_origins_only() {
        let site: Url = "https://tale.example.org".parse().unwrap();
        let sent = |url: &str, referrer: &str| {
            let text = json!({ "url": url, "referrer": referrer, "language": "de-CH", "screen": "1440x900", "title": "Secret plan" });
            serde_json::from_value::<View>(text).unwrap().rewritten("site", &site)
        };
        let payload = sent("/dashboard/:org/documents", "https://portal.example/path?code=1#x").unwrap();
        assert_eq!(
            payload["payload"],
            json!({
                "website": "site", "hostname": "tale.example.org", "url": "/dashboard/:org/documents",
                "referrer": "https://portal.example", "language": "de-CH", "screen": "1440x900",
            })
        );
        for own in ["https://tale.example.org/dashboard/x", "about:blank", "", "garbage"] {
            assert_eq!(sent("/log-in", own).unwrap()["payload"]["referrer"], "", "{own}");
        }
        assert!(sent("/log-in?next=/dashboard", "").is_none());
    }
}
