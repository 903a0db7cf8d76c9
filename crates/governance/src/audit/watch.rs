//! The platform's own check: every chain, once a day, from its oldest entry to its end.
//!
//! What was checked before is remembered as a place of the chain, and the next check must go through it: a chain that was written
//! anew is found even when it is sound in itself. The log gets the end of each sound chain, so that whoever keeps log
//! lines elsewhere keeps heads, and a line for each break at every check until it is gone. Growth: one pass over
//! the entries of a chain a day, [`super::log::PAGE`] at a time.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use tale_core::Problem;
use tale_core::crypto::hex_of;
use tale_core::ids::OrgId;
use tale_notices::{Kind, News};
use tokio_util::sync::CancellationToken;

use super::log::AuditLog;
use super::store;
use super::verify::{Break, Head};

/// How often the worker looks for a chain that is due.
pub const EVERY: Duration = Duration::from_secs(5 * 60);
/// Hours between two checks of a chain.
const HOURS: i64 = 24;

/// What the last check by the platform found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastCheck {
    /// When it was.
    pub at: DateTime<Utc>,
    /// The last place that held; none when nothing ever did.
    pub sequence: Option<u64>,
    /// The first break.
    pub incident: Option<Incident>,
}

/// A break that the platform found by itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Incident {
    /// Its kind, as [`super::verify::BreakKind`] is written.
    pub kind: String,
    /// The place.
    pub sequence: Option<u64>,
}

impl AuditLog {
    /// What the last check of `org`'s chain found; none before the first.
    ///
    /// # Errors
    /// The database's.
    pub async fn last_check(&self, org: OrgId) -> Result<Option<LastCheck>, Problem> {
        Ok(store::last_check(&mut *self.pool.acquire().await?, org).await?)
    }

    /// Checks one chain that is due; `false` when none is.
    ///
    /// # Errors
    /// The database's; the chain is due again a day later then.
    pub async fn check_next(&self) -> Result<bool, Problem> {
        let now = self.clock.now();
        let due = now - chrono::Duration::hours(HOURS);
        let taken = store::take_due(&mut *self.pool.acquire().await?, now, due).await?;
        let Some((place, before)) = taken else { return Ok(false) };
        let org = (!place.is_nil()).then_some(OrgId(place));
        let ends = store::ends(&mut *self.pool.acquire().await?, org).await?;
        // A place that retention has taken away is no longer there to go through.
        let before = before.filter(|before| before.sequence > ends.base.sequence);
        let (chain, found) = self.follow(org, ends.base, ends, u64::MAX, before).await?;
        let (to, incident) = match &found {
            None => {
                let (sequence, hash) = (chain.to.sequence, hex_of(&chain.to.hash));
                tracing::info!(event = "audit.head", org = %place, sequence, hash, "the chain of audit entries is intact up to this head");
                (Some(chain.to), None)
            }
            Some(found) => {
                let entry = found.entry.map(|entry| entry.to_string());
                tracing::error!(
                    event = "audit.broken", org = %place, kind = ?found.kind, sequence = found.sequence, entry,
                    "[SECURITY] the audit log does not hold: {}", found.message
                );
                (before, Some(incident(found)))
            }
        };
        let sequence = incident.as_ref().map(|incident| json!({ "sequence": incident.sequence }));
        // Owners and admins are told of each finding once, and of none that was not noted.
        let mut tx = self.pool.begin().await?;
        let other = store::note_check(&mut tx, place, to, incident.map(|incident| json!(incident))).await?;
        if let (true, Some(org), Some(details)) = (other, org, sequence) {
            let news = News { org: Some(org), kind: Kind::AuditBroken, details, at: now };
            tale_notices::tell_admins(&mut tx, org, None, &news).await?;
        }
        tx.commit().await?;
        Ok(true)
    }
}

fn incident(found: &Break) -> Incident {
    let kind = json!(found.kind).as_str().unwrap_or_default().to_owned();
    Incident { kind, sequence: found.sequence }
}

/// Checks chains as they become due, until `stop`.
pub async fn run(log: AuditLog, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        loop {
            match stop.run_until_cancelled(log.check_next()).await {
                Some(Ok(true)) => {}
                Some(Err(problem)) => {
                    tracing::warn!(event = "audit.unchecked", %problem, "a chain of audit entries could not be checked");
                    break;
                }
                Some(Ok(false)) | None => break,
            }
        }
    }
}

/// A place that must be gone through, seen from `head`.
pub(super) fn passed(kept: Option<Head>, to: Head) -> Result<(), Break> {
    match kept {
        Some(kept) if kept.sequence == to.sequence && kept.hash != to.hash => {
            Err(super::verify::other_head(kept, to.hash, None))
        }
        _ => Ok(()),
    }
}
