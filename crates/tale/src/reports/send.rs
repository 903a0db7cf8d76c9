//! Sending reports, one after the other.

use std::time::Duration;

use tale_core::net::{HostPolicy, guarded_client};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dsn::Dsn;

/// How long a report may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a refusal that names none.
const PAUSE: Duration = Duration::from_secs(60);

/// Sends what [`super::Reports`] collects.
pub(crate) struct Sender {
    dsn: Dsn,
    waiting: mpsc::Receiver<String>,
}

impl Sender {
    pub(super) fn new(dsn: Dsn, waiting: mpsc::Receiver<String>) -> Self {
        Self { dsn, waiting }
    }

    /// Sends until `stop`, then what still waits.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        // The operator named the place, which may be a machine of their own.
        let client = match guarded_client(HostPolicy::PrivateAllowed, TIMEOUT) {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(event = "reports.unavailable", %error, "errors are not reported");
                return;
            }
        };
        let mut line = Line { client, dsn: self.dsn, quiet_until: None, away: false };
        while let Some(Some(envelope)) = stop.run_until_cancelled(self.waiting.recv()).await {
            line.send(envelope).await;
        }
        while let Ok(envelope) = self.waiting.try_recv() {
            line.send(envelope).await;
        }
    }
}

/// The line to the service.
struct Line {
    client: reqwest::Client,
    dsn: Dsn,
    /// It asked for a pause until then.
    quiet_until: Option<Instant>,
    /// Whether the last report failed, which has been said.
    away: bool,
}

impl Line {
    async fn send(&mut self, envelope: String) {
        if self.quiet_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let (version, key) = (env!("CARGO_PKG_VERSION"), &self.dsn.key);
        let request = self
            .client
            .post(self.dsn.envelope.clone())
            .timeout(TIMEOUT)
            .header("content-type", "application/x-sentry-envelope")
            .header("x-sentry-auth", format!("Sentry sentry_version=7, sentry_client=tale/{version}, sentry_key={key}"))
            .body(envelope);
        let why = match request.send().await {
            Ok(answer) if answer.status().is_success() => {
                self.away = false;
                return;
            }
            Ok(answer) => {
                let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                self.quiet_until = Some(Instant::now() + wait.map_or(PAUSE, Duration::from_secs));
                format!("it answered {}", answer.status().as_u16())
            }
            Err(error) => error.without_url().to_string(),
        };
        if !std::mem::replace(&mut self.away, true) {
            // Never an error: that would be reported, too.
            tracing::warn!(event = "reports.refused", why, "an error report could not be sent");
        }
    }
}
