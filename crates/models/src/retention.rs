//! Records of usage that an organization does not want to keep any longer (spec 95, section 9; MOD-104).
//!
//! Once a day every organization whose policy says so loses its bookings of whole days that are older, and the sums of
//! those days. Deleting goes in small transactions, each with its entry in the audit log; what a pass has no time for
//! is left to the next one. The sums that limits are judged by stay for as long as a period lasts in any case.

use std::sync::Arc;
use std::time::Duration;

use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;
use tale_core::problem::Problem;
use tale_governance::audit::{self, AuditEntry};
use tale_governance::policies::RetentionPolicy;
use tale_jobs::{Job, JobError, Lease, WorkerBuilder};
use tokio::time::Instant;
use uuid::Uuid;

use crate::ledger::warnings::{self, WarnOfLimits, Warner};
use crate::{Models, store};

/// How often it is looked for what is too old.
const EVERY: Duration = Duration::from_secs(86_400);
/// How long a pass may delete of one organization (RET-10).
const TIME: Duration = Duration::from_secs(30 * 60);
/// Rows that are deleted in one transaction.
const AT_ONCE: i64 = 5_000;
/// How long the sums of limits stay at least: longer than any period.
const LONGEST_PERIOD: Days = Days::new(62);

/// Deletes records of usage that are too old.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ForgetUsage {}

struct Context {
    models: Models,
    paused: bool,
}

impl Job for ForgetUsage {
    const NAME: &'static str = "models.forget_usage";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(4 * 3_600);
    type Context = Context;

    async fn run(&self, context: &Context, _lease: &Lease) -> Result<(), JobError> {
        if context.paused {
            tracing::warn!(event = "retention.paused", "TALE_RETENTION_DISABLED=true: nothing is deleted for its age");
            return Ok(());
        }
        context.models.forget_usage().await?;
        Ok(())
    }
}

impl Models {
    /// Teaches a worker this room's jobs. `paused`: nothing is deleted for its age (`TALE_RETENTION_DISABLED`).
    #[must_use]
    pub fn register(&self, worker: WorkerBuilder, paused: bool) -> WorkerBuilder {
        let context = Context { models: self.clone(), paused };
        worker
            .register::<ForgetUsage>(Arc::new(context))
            .every(EVERY, ForgetUsage {})
            .register::<WarnOfLimits>(Arc::new(Warner::new(self.ledger().clone())))
            .every(warnings::EVERY, WarnOfLimits {})
    }

    /// One pass over every organization. Returns how many bookings were deleted; an organization that fails holds up no
    /// other and is tried again by the next pass.
    ///
    /// # Errors
    /// When the organizations cannot be listed.
    pub async fn forget_usage(&self) -> Result<u64, Problem> {
        let orgs = store::retention::organizations(&mut *self.inner.pool.acquire().await?).await?;
        let mut deleted = 0;
        for org in orgs {
            let policy = match self.inner.policies.of(org).await {
                Ok(policies) => match policies.retention_policy.usable() {
                    Ok(policy) => policy.clone(),
                    // What cannot be read deletes nothing (RET-12); the page and the log say so already.
                    Err(_) => continue,
                },
                Err(problem) => {
                    tracing::warn!(%org, %problem, "the retention policy of an organization cannot be read");
                    continue;
                }
            };
            let Some(days) = policy.usage_days() else { continue };
            let run = Run { models: self, org, id: Uuid::now_v7() };
            match run.all(&policy, days).await {
                Ok(count) => deleted += count,
                Err(problem) => {
                    tracing::warn!(%org, %problem, "records of usage could not be deleted, trying again tomorrow");
                    let failed = run.tell("retention.run_failed", json!({ "category": "usageLedger" })).await;
                    if let Err(problem) = failed {
                        tracing::warn!(%org, %problem, "the end of a retention run could not be recorded");
                    }
                }
            }
        }
        Ok(deleted)
    }
}

/// One pass over one organization.
struct Run<'a> {
    models: &'a Models,
    org: OrgId,
    id: Uuid,
}

impl Run<'_> {
    async fn all(&self, policy: &RetentionPolicy, days: u32) -> Result<u64, Problem> {
        let today = self.models.inner.clock.now().date_naive();
        let first = today.checked_sub_days(Days::new(days.into())).unwrap_or(NaiveDate::MIN);
        self.tell("retention.run_started", json!({ "policy": policy, "keptFrom": first })).await?;
        let (count, complete) = self.delete(first, today).await?;
        self.tell("retention.run_completed", json!({ "usageLedger": count, "complete": complete })).await?;
        if count > 0 {
            tracing::info!(event = "retention.usage", org = %self.org, records = count, complete, "deleted old records of usage");
        }
        Ok(count)
    }

    /// Deletes what is older than `first`. Answers how many bookings, and whether that was all.
    async fn delete(&self, first: NaiveDate, today: NaiveDate) -> Result<(u64, bool), Problem> {
        let until = Instant::now() + TIME;
        let limits_from = first.min(today.checked_sub_days(LONGEST_PERIOD).unwrap_or(NaiveDate::MIN));
        let pool = &self.models.inner.pool;
        let mut count = 0;
        loop {
            let mut tx = pool.begin().await?;
            let deleted = store::retention::bookings(&mut tx, self.org, first, AT_ONCE).await?;
            if deleted > 0 {
                let details = json!({ "category": "usageLedger", "deleted": deleted });
                self.record(&mut tx, "retention.deleted", details).await?;
            }
            tx.commit().await?;
            count += deleted;
            if deleted == 0 {
                break;
            }
            if Instant::now() >= until {
                return Ok((count, false));
            }
        }
        let mut conn = pool.acquire().await?;
        while store::retention::days(&mut conn, self.org, first, AT_ONCE).await? > 0 {}
        while store::retention::counters(&mut conn, self.org, limits_from, AT_ONCE).await? > 0 {}
        Ok((count, true))
    }

    async fn tell(&self, action: &'static str, details: Value) -> Result<(), Problem> {
        self.record(&mut *self.models.inner.pool.acquire().await?, action, details).await
    }

    async fn record(&self, conn: &mut PgConnection, action: &'static str, details: Value) -> Result<(), Problem> {
        let entry = AuditEntry {
            org: Some(self.org),
            actor: Actor::System,
            action,
            category: "data",
            resource_type: "retention_run",
            resource_id: Some(self.id.to_string()),
            details,
            at: self.models.inner.clock.now(),
        };
        Ok(audit::record(conn, &entry).await?)
    }
}
