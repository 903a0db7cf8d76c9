//! Workspaces that nobody uses any more (SBX-36 to SBX-42).
//!
//! Whether one goes is [`due`], a function of what was used when. An hourly job asks the spawner what there is, and
//! condemns what is due under the lock that places are given out under, after looking once more; from then on nothing
//! can begin in it, and [`crate::deletion`] takes it from there. What the spawner keeps and no row names goes as well,
//! when the organization that is recorded for it is one of this deployment: no other deployment on the same host is
//! touched.
//!
//! The rule is about standing workspaces. Those of people who run code are the only ones that there are.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Days, Utc};
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::OrgId;
use tale_db::hints::{self, Hint, Topic};
use tale_governance::policies::WorkspacesRule;
use tale_jobs::{Job, JobError, Lease, WorkerBuilder};
use tale_sandbox_wire::spawner::WorkspacesAnswer;

use crate::client::SpawnerError;
use crate::service::Workshop;
use crate::store::{self, places};

/// Time between two passes.
const EVERY: Duration = Duration::from_secs(3_600);
/// Workspaces of an organization that one pass condemns.
const AT_ONCE: i64 = 500;

/// What is known of when a workspace was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// When something ended, began or was asked for in it last.
    pub last: DateTime<Utc>,
    /// When it was last seen pinned.
    pub pinned_at: Option<DateTime<Utc>>,
    /// Whether it is.
    pub pinned: bool,
    /// Whether something runs in it, holds a place for it or waits for it.
    pub in_use: bool,
}

/// When a workspace goes, unless it is used again; `None` = not as things are.
///
/// A full window must have passed since it was used, since it was pinned, and since the rule deletes as early as it does.
#[must_use]
pub fn due(rule: &WorkspacesRule, of: &Use) -> Option<DateTime<Utc>> {
    if !rule.policy.enabled || of.pinned || of.in_use {
        return None;
    }
    let from = of.last.max(rule.since).max(of.pinned_at.unwrap_or(of.last));
    from.checked_add_days(Days::new(rule.policy.unused_days.into()))
}

impl From<&places::Session> for Use {
    fn from(row: &places::Session) -> Self {
        Self {
            last: row.used_at,
            pinned_at: row.pinned_at,
            pinned: row.pinned,
            in_use: row.workload != "project" || row.allocation != "released" || row.open > 0,
        }
    }
}

impl From<&places::Unused> for Use {
    fn from(row: &places::Unused) -> Self {
        Self {
            last: row.used_at,
            pinned_at: row.pinned_at,
            pinned: row.pinned,
            in_use: row.allocation != "released" || row.open > 0,
        }
    }
}

/// The hourly pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CleanWorkspaces {}

impl Job for CleanWorkspaces {
    const NAME: &'static str = "sandbox.workspace_gc";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(900);
    type Context = Workshop;

    async fn run(&self, workshop: &Workshop, _: &Lease) -> Result<(), JobError> {
        workshop.clean_workspaces().await
    }
}

impl Workshop {
    /// Teaches a worker what this room does in the background.
    pub fn register(&self, worker: WorkerBuilder) -> WorkerBuilder {
        worker.register::<CleanWorkspaces>(Arc::new(self.clone())).every(EVERY, CleanWorkspaces {})
    }

    /// One pass: condemns what is due and what nothing names.
    ///
    /// # Errors
    /// While the spawner cannot say what there is, and the database's.
    pub async fn clean_workspaces(&self) -> Result<(), JobError> {
        let inventory = self.0.spawner.workspaces().await.map_err(away)?;
        let pinned: Vec<&str> =
            inventory.workspaces.iter().filter(|one| one.pinned).map(|one| one.session_id.as_str()).collect();
        places::note_pins(&self.0.db, &pinned).await?;
        let active: HashSet<&str> =
            inventory.workspaces.iter().filter(|one| one.active).map(|one| one.session_id.as_str()).collect();
        // One organization's trouble keeps nothing of the others.
        let mut trouble = Ok(());
        for org in places::orgs_with_unused(&self.0.db).await? {
            if let Err(problem) = self.condemn_unused(org, &active).await {
                tracing::warn!(event = "sandbox.cleanup_fails", %org, %problem, "unused sandboxes of an organization could not be looked for");
                trouble = Err(problem);
            }
        }
        self.condemn_orphans(&inventory).await?;
        Ok(trouble?)
    }

    async fn condemn_unused(&self, org: OrgId, active: &HashSet<&str>) -> Result<(), Problem> {
        // A file of the operator's that cannot be read keeps everything.
        if self.0.policies.of(org).await?.sandbox_workspaces.usable().is_err() {
            return Ok(());
        }
        let mut conn = self.0.db.acquire().await?;
        let Some(rule) = self.0.policies.workspaces_rule(&mut conn, org).await? else { return Ok(()) };
        let window = Days::new(rule.policy.unused_days.into());
        let Some(until) = rule.now.checked_sub_days(window) else { return Ok(()) };
        let unused = places::unused(&mut conn, org, None, until, AT_ONCE).await?;
        drop(conn);
        let due = |one: &&places::Unused| {
            !active.contains(one.id.as_str()) && due(&rule, &Use::from(*one)).is_some_and(|at| at <= rule.now)
        };
        for one in unused.iter().filter(due) {
            self.condemn_if_unused(org, &one.id).await?;
        }
        Ok(())
    }

    /// Looks once more, where nothing can begin meanwhile (SBX-41).
    async fn condemn_if_unused(&self, org: OrgId, session: &str) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        places::lock(&mut tx, org).await?;
        let Some(rule) = self.0.policies.workspaces_rule(&mut tx, org).await? else { return Ok(()) };
        let found = places::unused(&mut tx, org, Some(session), rule.now, 1).await?;
        let Some(one) = found.first() else { return Ok(()) };
        if due(&rule, &one.into()).is_some_and(|at| at <= rule.now) {
            places::condemn_unused(&mut tx, org, session).await?;
            self.announce_condemned(&mut tx, org).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Has the spawner's workspaces deleted that no row names. Those without an organization, and with one that is not of
    /// this deployment, are somebody else's.
    async fn condemn_orphans(&self, inventory: &WorkspacesAnswer) -> Result<(), Problem> {
        let stopped = inventory.workspaces.iter().filter(|one| !one.active);
        let (sessions, orgs): (Vec<&str>, Vec<OrgId>) = stopped
            .filter_map(|one| {
                let org: OrgId = one.organization_id.as_ref()?.as_str().parse().ok()?;
                Some((one.session_id.as_str(), org))
            })
            .unzip();
        for (org, session) in places::unnamed(&self.0.db, &sessions, &orgs).await? {
            let mut tx = self.0.db.begin().await?;
            places::lock(&mut tx, org).await?;
            if places::condemn_orphan(&mut tx, org, &session, self.0.profile.as_str()).await? {
                self.announce_condemned(&mut tx, org).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    async fn announce_condemned(&self, conn: &mut sqlx::PgConnection, org: OrgId) -> Result<(), Problem> {
        store::announce(conn, "").await?;
        hints::notify(conn, &Hint::new(org, Topic::Sandboxes)).await?;
        Ok(())
    }
}

/// Nothing is decided without an inventory; the job comes back until there is one.
fn away(error: SpawnerError) -> JobError {
    JobError::Away { code: "SANDBOX_UNAVAILABLE", message: error.to_string().into() }
}
