//! The backend hands the settings of its environment on to the model gateway (DCF-189), whenever that is
//! there: at each start, again and again until it was heard. Without the password of the administration it
//! does nothing.

use std::time::Duration;

use secrecy::ExposeSecret;
use tale_env::{GatewayLink, ModelCallSettings};
use tale_gateway::settings::Settings;
use tokio_util::sync::CancellationToken;

/// First pause between two attempts; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest pause.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why the gateway did not hear.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error("it cannot be reached")]
    Away(#[from] reqwest::Error),
    #[error("it refuses the name or the password; SANDBOX_LLM_GATEWAY_ADMIN_PASSWORD must be the same there and here")]
    Password,
    #[error("it answers {0}; SANDBOX_LLM_GATEWAY_URL must be the address of its administration")]
    Other(reqwest::StatusCode),
}

/// The settings as the gateway takes them.
pub(crate) fn settings(calls: &ModelCallSettings) -> Settings {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Settings {
        provider_concurrency: number(calls.per_built_in_provider),
        custom_provider_concurrency: number(calls.per_custom_provider),
        stream_idle_timeout_seconds: u32::try_from(calls.idle.as_secs()).unwrap_or(u32::MAX),
        log_retention_days: calls.log_retention_days,
    }
}

/// Hands them on, however long the gateway is away.
pub(crate) async fn hand_on(link: GatewayLink, settings: Settings, stop: CancellationToken) {
    let (mut pause, mut said) = (RETRY_MIN, false);
    loop {
        let Some(handed) = stop.run_until_cancelled(put(&link, &settings)).await else { return };
        match handed {
            Ok(counts) => return finished(&counts),
            Err(error) => {
                // One line for one reason to look; the rest is patience.
                if !std::mem::replace(&mut said, true) || !matches!(error, Unheard::Away(_)) {
                    tracing::warn!(
                        event = "gateway.settings_unheard", %error,
                        "[llm-gateway] the settings could not be handed on to the model gateway yet"
                    );
                }
            }
        }
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// What the gateway counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    resized: u64,
    refused: u64,
    unconfirmed: u64,
}

/// The line that operators wait for.
pub(crate) fn finished(counts: &Counts) {
    let Counts { resized, refused, unconfirmed } = counts;
    tracing::info!(
        event = "gateway.resized",
        resized,
        refused,
        unconfirmed,
        "[llm-gateway] provider worker resize finished: {resized} resized, {refused} refused, {unconfirmed} unconfirmed"
    );
}

async fn put(link: &GatewayLink, settings: &Settings) -> Result<Counts, Unheard> {
    tale_core::net::install_tls_provider();
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE).build()?;
    let url = format!("{}/api/settings", link.url.as_str().trim_end_matches('/'));
    let request = client.put(url).basic_auth(&link.admin.username, Some(link.admin.password.expose_secret()));
    let answer = request.json(settings).send().await?;
    match answer.status() {
        status if status.is_success() => {
            let said: serde_json::Value = answer.json().await?;
            let count = |name: &str| said[name].as_u64().unwrap_or(0);
            Ok(Counts { resized: count("resized"), refused: count("refused"), unconfirmed: count("unconfirmed") })
        }
        reqwest::StatusCode::UNAUTHORIZED => Err(Unheard::Password),
        status => Err(Unheard::Other(status)),
    }
}
