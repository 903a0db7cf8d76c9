//! What developers and administrators see of the organization's sandboxes, and what administrators may do to them.

use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use serde_json::{Value, json};
use tale_core::ids::{OrgId, UserId};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_governance::audit::{self, AuditEntry};
use tale_governance::policies::{Document, Key, SandboxQuota};
pub use tale_sandbox_wire::spawner::DiskMeasure;
use tale_sandbox_wire::spawner::{CapacityAnswer, RuntimeState};

use crate::cleanup::{self, Use};
use crate::runs::{Owner, announce};
use crate::service::Workshop;
use crate::store::{self, places, runs};

/// Sessions that are shown.
const SHOWN: i64 = 100;

/// Use of one class under its limit (SBX-31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Places that are held.
    pub used: u32,
    /// Places that may be held.
    pub limit: u32,
}

/// What the host said (SBX-32). What is `None` is unknown, never zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// When it was measured.
    pub observed_at: DateTime<Utc>,
    /// Sessions of the deployment that run or start.
    pub sessions: u32,
    /// How many it holds.
    pub capacity: u32,
    /// Sessions of the organization that run or start.
    pub own_sessions: u32,
    /// Processors in use, as a fraction of one.
    pub used_cores: Option<f64>,
    /// Processors.
    pub total_cores: Option<u32>,
    /// Share of the last ten seconds in which something waited for a processor, in percent.
    pub pressure_percent: Option<f64>,
    /// Bytes of memory in use.
    pub used_memory: Option<u64>,
    /// Bytes of memory.
    pub total_memory: Option<u64>,
    /// The disk of the workspaces.
    pub workspace_disk: Option<DiskMeasure>,
    /// The disk of images and containers.
    pub engine_disk: Option<DiskMeasure>,
}

/// Whether a session's compute runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// It does.
    Running,
    /// It is about to.
    Starting,
    /// It does not; the files are kept.
    Stopped,
    /// The spawner could not be asked.
    Unknown,
}

/// A session, with its two independent states (SBX-33).
#[derive(Debug, Clone)]
pub struct Session {
    /// The spawner's name of it.
    pub id: String,
    /// Its class.
    pub workload: String,
    /// Whose it is, by name; `None` when the account is gone.
    pub person: Option<String>,
    /// Whether it runs.
    pub runtime: Runtime,
    /// `creating`, `active`, `released` or `destroying`.
    pub allocation: String,
    /// Programs that run in it.
    pub running: u32,
    /// How long programs of its person ran within 30 days.
    pub used: Duration,
    /// When it was used last.
    pub used_at: DateTime<Utc>,
    /// When its files are deleted unless it is used again; only while it does not run (SBX-38).
    pub deleted_at: Option<DateTime<Utc>>,
}

/// Somebody who waits.
#[derive(Debug, Clone)]
pub struct InLine {
    /// By name; `None` when the account is gone.
    pub person: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// As of [`crate::runs::Run::reason`].
    pub reason: Option<String>,
}

/// The organization's sandboxes.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Standing workspaces, runs of automations, renderings; `None` while the limits cannot be read (SBX-25).
    pub classes: Option<[Class; 3]>,
    /// The policy's version, for a save.
    pub version: i64,
    /// The host; `None` while it cannot be asked.
    pub host: Option<Host>,
    /// How many runs wait.
    pub waiting: u32,
    /// Programs that ran within 30 days, and for how long.
    pub used: (u64, Duration),
    /// Who waits, and whose sessions there are; only for those who may manage them.
    pub people: Option<(Vec<InLine>, Vec<Session>)>,
}

impl Workshop {
    /// The organization's sandboxes as they are now; `people`: with names.
    ///
    /// # Errors
    /// `DATABASE_UNAVAILABLE`.
    pub async fn overview(&self, org: OrgId, people: bool) -> Result<Overview, Problem> {
        let db = &self.0.db;
        let asked = async { self.0.spawner.capacity(org).await };
        let stored = async {
            let document = self.0.policies.document(org, Key::SandboxQuota).await?;
            let held = places::held(db, org).await?;
            let waiting = runs::count_waiting(db, org).await?;
            let used = places::used(db, org, None).await?;
            let named = if people {
                let policies = self.0.policies.of(org).await?;
                let rule = match policies.sandbox_workspaces.usable() {
                    Ok(_) => self.0.policies.workspaces_rule(&mut *db.acquire().await?, org).await?,
                    Err(_) => None,
                };
                Some((runs::in_line(db, org, SHOWN).await?, places::list(db, org, SHOWN).await?, rule))
            } else {
                None
            };
            Ok::<_, Problem>((document, held, waiting, used, named))
        };
        let (asked, stored) = tokio::join!(asked, stored);
        let (document, held, waiting, (count, ms), named) = stored?;
        let asked = asked.inspect_err(|error| tracing::debug!(%error, "the host of sandboxes cannot be asked")).ok();
        let count32 = |number: i64| u32::try_from(number).unwrap_or(0);
        let classes = quota_of(&document).map(|quota| {
            let limits =
                [quota.max_sessions_per_org, quota.max_workflow_sessions_per_org, quota.max_render_sessions_per_org];
            std::array::from_fn(|class| Class { used: count32(held[class]), limit: limits[class] })
        });
        let people = named.map(|(line, sessions, rule)| {
            let line =
                line.into_iter().map(|one| InLine { person: one.person, since: one.queued_at, reason: one.reason });
            let sessions = sessions.into_iter().map(|one| Session {
                deleted_at: rule.and_then(|rule| cleanup::due(&rule, &Use::from(&one))),
                runtime: runtime(asked.as_ref(), &one.id),
                id: one.id,
                workload: one.workload,
                person: one.person,
                allocation: one.allocation,
                running: count32(one.running),
                used: Duration::from_millis(u64::try_from(one.ms).unwrap_or(0)),
                used_at: one.used_at,
            });
            let stopped = |one: Session| Session {
                deleted_at: one.deleted_at.filter(|_| one.runtime == Runtime::Stopped),
                ..one
            };
            (line.collect(), sessions.map(stopped).collect())
        });
        Ok(Overview {
            classes,
            version: document.version,
            host: asked.as_ref().map(host),
            waiting: count32(waiting),
            used: (u64::try_from(count).unwrap_or(0), Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
            people,
        })
    }

    /// Changes the limits. A change that only lowers is always accepted; any other must fit what the deployment holds
    /// at this moment (SBX-23, SBX-24).
    ///
    /// # Errors
    /// As [`tale_governance::policies::Policies::set`], `SANDBOX_CAPACITY_EXCEEDED`, `SANDBOX_UNAVAILABLE` when the
    /// capacity cannot be asked and a limit is raised.
    pub async fn set_limits(
        &self,
        org: OrgId,
        actor: &Actor,
        change: Value,
        version: Option<i64>,
    ) -> Result<Document, Problem> {
        let capacity = self.0.spawner.limits().await;
        let fits = |before: &Value, after: &Value| {
            let read = |value: &Value| serde_json::from_value::<SandboxQuota>(value.clone()).map_err(Problem::internal);
            let (before, after) = (read(before)?, read(after)?);
            if after.is_at_most(&before) {
                return Ok(());
            }
            let limits = capacity.map_err(|error| {
                Problem::new(
                    Code::SandboxUnavailable,
                    "How many sandboxes this deployment holds cannot be asked right now, so limits can only be lowered. Try again in a moment.",
                )
                .because(error)
            })?;
            let most = limits.max_sessions.saturating_add(limits.device_sessions.unwrap_or(0));
            if after.total() <= most {
                return Ok(());
            }
            Err(Problem::new(
                Code::SandboxCapacityExceeded,
                format!(
                    "Together the limits are {}, and this deployment holds {most} sandboxes. Lower them until they fit.",
                    after.total()
                ),
            )
            .with_data(json!({ "total": after.total(), "capacity": most })))
        };
        self.0.policies.set_if(org, actor, Key::SandboxQuota, change, version, fits).await
    }

    /// Ends everything that goes on or waits in a session; its files stay. Answers how many runs (SBX-35).
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`.
    pub async fn stop_session(&self, org: OrgId, actor: &Actor, session: &str) -> Result<u32, Problem> {
        let mut tx = self.0.db.begin().await?;
        if !places::exists(&mut tx, org, session).await? {
            return Err(no_session());
        }
        let stopped = self.stop_all(&mut tx, org, session).await?;
        self.record_session(&mut tx, org, actor, "sandbox.stopped", session, json!({ "runs": stopped.len() })).await?;
        tx.commit().await?;
        self.wake_all(&stopped);
        Ok(u32::try_from(stopped.len()).unwrap_or(u32::MAX))
    }

    /// Has a session deleted with its files, whatever goes on in it. Nothing new starts in it from now on, and it is
    /// gone once its files are.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`.
    pub async fn delete_session(&self, org: OrgId, actor: &Actor, session: &str) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        places::lock(&mut tx, org).await?;
        let condemned = places::condemn(&mut tx, org, session).await?.ok_or_else(no_session)?;
        let stopped = self.stop_all(&mut tx, org, session).await?;
        if condemned {
            self.record_session(&mut tx, org, actor, "sandbox.delete_requested", session, json!({})).await?;
        }
        tx.commit().await?;
        self.wake_all(&stopped);
        Ok(())
    }

    async fn stop_all(
        &self,
        conn: &mut sqlx::PgConnection,
        org: OrgId,
        session: &str,
    ) -> Result<Vec<(tale_core::ids::CodeRunId, UserId)>, Problem> {
        let stopped = runs::cancel_session(conn, org, session).await?;
        for (run, user) in &stopped {
            announce(conn, Owner { org, user: *user }, *run).await?;
            store::announce(conn, &run.to_string()).await?;
        }
        hints::notify(conn, &Hint::new(org, Topic::Sandboxes)).await?;
        store::announce(conn, "").await?;
        Ok(stopped)
    }

    pub(crate) fn wake_all(&self, runs: &[(tale_core::ids::CodeRunId, UserId)]) {
        for (run, _) in runs {
            self.wake(*run);
            self.tell(*run);
        }
    }

    async fn record_session(
        &self,
        conn: &mut sqlx::PgConnection,
        org: OrgId,
        actor: &Actor,
        action: &'static str,
        session: &str,
        details: Value,
    ) -> Result<(), Problem> {
        let entry = AuditEntry {
            org: Some(org),
            actor: actor.clone(),
            action,
            category: "data",
            resource_type: "sandbox",
            resource_id: Some(session.to_owned()),
            details,
            at: self.0.clock.now(),
        };
        Ok(audit::record(conn, &entry).await?)
    }
}

fn no_session() -> Problem {
    Problem::new(Code::SessionNotFound, "There is no such sandbox in this organization.")
}

fn quota_of(document: &Document) -> Option<SandboxQuota> {
    if document.unreadable.is_some() {
        return None;
    }
    serde_json::from_value(document.value.clone()).ok()
}

fn runtime(asked: Option<&CapacityAnswer>, id: &str) -> Runtime {
    let Some(asked) = asked else { return Runtime::Unknown };
    let found = asked.runtime_sessions.iter().find(|session| session.session_id.as_str() == id);
    match found.map(|session| session.state) {
        Some(RuntimeState::Running) => Runtime::Running,
        Some(RuntimeState::Starting) => Runtime::Starting,
        Some(RuntimeState::Stopped) | None => Runtime::Stopped,
    }
}

fn host(asked: &CapacityAnswer) -> Host {
    let at = i64::try_from(asked.observed_at).unwrap_or(0);
    Host {
        observed_at: Utc.timestamp_millis_opt(at).single().unwrap_or_default(),
        sessions: asked.sessions.running + asked.sessions.starting,
        capacity: asked.sessions.limit,
        own_sessions: asked.sessions.organization_running + asked.sessions.organization_starting,
        used_cores: asked.resources.cpu.used_cores,
        total_cores: asked.resources.cpu.total_cores,
        pressure_percent: asked.resources.cpu.pressure_percent,
        used_memory: asked.resources.memory.used_bytes,
        total_memory: asked.resources.memory.total_bytes,
        workspace_disk: asked.resources.disks.workspace,
        engine_disk: asked.resources.disks.docker_data,
    }
}
