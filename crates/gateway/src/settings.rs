//! What the backend lays down for every replica of the gateway (DCF-189): how many calls a provider gets at
//! the same time, how long it may be silent, how long the log is kept. It stands in the database; a change is
//! announced, and the next call of every process acts on it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, PgPool};
use tale_core::problem::{Issue, Problem};
use tale_db::channels::{ChannelEvent, ChannelListener};

use crate::call::{Gateway, Limits};

/// The notification channel that announces changes.
const CHANNEL: &str = "tale_gateway";
/// How often the settings are read when nobody announces anything.
const LOOK: Duration = Duration::from_secs(60);

/// Most calls of one provider at the same time.
const MAX_CONCURRENCY: u32 = 5_000;
/// Longest silence, in seconds: a day.
const MAX_IDLE: u32 = 86_400;
/// Longest life of the log, in days.
const MAX_RETENTION: u32 = 36_500;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Calls that a built-in provider gets at the same time.
    pub provider_concurrency: u32,
    /// Calls that each model of an organization's own provider gets at the same time.
    pub custom_provider_concurrency: u32,
    /// Longest silence of a provider.
    pub stream_idle_timeout_seconds: u32,
    /// Days that the request log is kept.
    pub log_retention_days: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            provider_concurrency: 512,
            custom_provider_concurrency: 64,
            stream_idle_timeout_seconds: 600,
            log_retention_days: 3,
        }
    }
}

impl Settings {
    /// The bounds of calls among them.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            built_in: self.provider_concurrency as usize,
            custom: self.custom_provider_concurrency as usize,
            idle: Duration::from_secs(self.stream_idle_timeout_seconds.into()),
        }
    }

    /// What is wrong with them.
    ///
    /// # Errors
    /// `INVALID_BODY` naming every field that is out of range.
    pub fn check(&self) -> Result<(), Problem> {
        let ranges = [
            ("providerConcurrency", self.provider_concurrency, MAX_CONCURRENCY),
            ("customProviderConcurrency", self.custom_provider_concurrency, MAX_CONCURRENCY),
            ("streamIdleTimeoutSeconds", self.stream_idle_timeout_seconds, MAX_IDLE),
            ("logRetentionDays", self.log_retention_days, MAX_RETENTION),
        ];
        let wrong = ranges.into_iter().filter(|(_, value, most)| !(1..=*most).contains(value));
        let issues: Vec<Issue> =
            wrong.map(|(path, _, most)| Issue::new(path, format!("must be a whole number from 1 to {most}"))).collect();
        if issues.is_empty() { Ok(()) } else { Err(Problem::invalid_body(issues)) }
    }
}

/// The settings in force; the defaults while nobody laid any down.
///
/// # Errors
/// When the database cannot be read.
pub async fn read(db: impl PgExecutor<'_>) -> sqlx::Result<Settings> {
    let row: Option<(i32, i32, i32, i32)> = sqlx::query_as(
        "SELECT provider_concurrency, custom_provider_concurrency, stream_idle_timeout_seconds, log_retention_days \
         FROM app.gateway_settings",
    )
    .fetch_optional(db)
    .await?;
    let number = |value: i32| u32::try_from(value).unwrap_or(1);
    Ok(row.map_or_else(Settings::default, |(built_in, custom, idle, retention)| Settings {
        provider_concurrency: number(built_in),
        custom_provider_concurrency: number(custom),
        stream_idle_timeout_seconds: number(idle),
        log_retention_days: number(retention),
    }))
}

/// Lays settings down, and tells every process when they are others than before.
///
/// # Errors
/// When the database cannot be written.
pub async fn write(pool: &PgPool, settings: &Settings, now: DateTime<Utc>) -> sqlx::Result<()> {
    let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    sqlx::query(
        "WITH changed AS (INSERT INTO app.gateway_settings AS s (provider_concurrency, custom_provider_concurrency, \
             stream_idle_timeout_seconds, log_retention_days, updated_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (singleton) DO UPDATE SET provider_concurrency = $1, custom_provider_concurrency = $2, \
             stream_idle_timeout_seconds = $3, log_retention_days = $4, updated_at = $5 \
         WHERE (s.provider_concurrency, s.custom_provider_concurrency, s.stream_idle_timeout_seconds, s.log_retention_days) \
             <> ($1, $2, $3, $4) RETURNING 1) SELECT pg_notify($6, '') FROM changed",
    )
    .bind(number(settings.provider_concurrency))
    .bind(number(settings.custom_provider_concurrency))
    .bind(number(settings.stream_idle_timeout_seconds))
    .bind(number(settings.log_retention_days))
    .bind(now)
    .bind(CHANNEL)
    .execute(pool)
    .await?;
    Ok(())
}

/// Keeps a gateway to the settings in force for as long as it is polled. `hear` is told of those that are
/// new, the first ones included.
pub async fn follow(pool: &PgPool, gateway: &Gateway, hear: impl Fn(&Settings)) {
    let mut listener = ChannelListener::new(pool, &[CHANNEL]);
    let mut known = None;
    loop {
        match read(pool).await {
            Ok(settings) if known != Some(settings) => {
                gateway.set_limits(settings.limits());
                hear(&settings);
                known = Some(settings);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the settings of the gateway cannot be read, those known before stay"),
        }
        // Everything that is announced means the same: read them.
        let heard: Result<ChannelEvent, _> = tokio::time::timeout(LOOK, listener.next()).await;
        drop(heard);
    }
}
