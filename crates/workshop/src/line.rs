//! The waiting line: places are given out first come first served, runs of lost processes are taken over, holds
//! that ended are told to the spawner, and what was condemned is deleted.

use std::sync::Arc;
use std::time::Duration;

use tale_core::Problem;
use tale_core::ids::{CodeRunId, OrgId};
use tale_db::channels::{ChannelEvent, ChannelListener};
use tale_sandbox_wire::names::{Generation, SessionId};
use tale_sandbox_wire::spawner::ErrorCode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attend::LEASE;
use crate::service::Workshop;
use crate::store::{CHANNEL, places, runs};

/// Time between two looks when nothing is announced.
const LOOK: Duration = Duration::from_secs(1);
/// Runs that one process attends to at the same time.
const ATTENDED: usize = 64;
/// Organizations that one look gives places to.
const ORGS: i64 = 64;
/// Waiting runs of an organization that one look goes through.
const LINE: i64 = 100;
/// Pause before the spawner is told again of a hold, or asked again to delete.
const AGAIN: Duration = Duration::from_secs(30);

impl Workshop {
    /// Gives out places and attends to runs until `stop`; then hands everything back. `sole`: no other process does
    /// so, and what any attended to is taken over at once.
    pub async fn work(&self, sole: bool, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        if sole && let Err(error) = runs::orphan_all(&self.0.db).await {
            tracing::warn!(%error, "runs of an earlier process could not be freed; they are taken over later");
        }
        let mut heard = ChannelListener::new(&self.0.db, &[CHANNEL]);
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut teardowns = tokio::time::interval(AGAIN);
        teardowns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut was_well = true;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => {}
                _ = teardowns.tick() => {
                    self.start_teardowns(&tasks);
                    continue;
                }
                event = heard.next() => {
                    if let ChannelEvent::Notification { payload, .. } = event
                        && let Ok(run) = payload.parse::<CodeRunId>()
                    {
                        // Somebody wants it stopped, perhaps in another process.
                        self.wake(run);
                        self.tell(run);
                        continue;
                    }
                }
            }
            match self.look(&tasks, &stop).await {
                Ok(()) => was_well = true,
                Err(problem) => {
                    if std::mem::replace(&mut was_well, false) {
                        tracing::warn!(%problem, "places of sandboxes cannot be given out now");
                    }
                }
            }
        }
        tasks.close();
        tasks.wait().await;
    }

    /// One look at everything that may be due.
    pub(crate) async fn look(&self, tasks: &TaskTracker, stop: &CancellationToken) -> Result<(), Problem> {
        let db = &self.0.db;
        let room = || ATTENDED.saturating_sub(tasks.len());
        let most = i64::try_from(room()).unwrap_or(0).min(16);
        for run in runs::adopt(db, self.0.me, LEASE.as_secs_f64(), most).await? {
            tracing::info!(event = "code_run.taken_over", run = %run.id, "another process attended to this run and fell silent");
            self.spawn(tasks, run, stop);
        }
        for org in runs::waiting_orgs(db, ORGS).await? {
            if room() == 0 {
                break;
            }
            for run in self.admit(org, room()).await? {
                self.spawn(tasks, run, stop);
            }
        }
        for (org, session, generation) in places::due_releases(db, AGAIN.as_secs_f64()).await? {
            let workshop = self.clone();
            tasks.spawn(async move { workshop.release(org, &session, &generation).await });
        }
        for condemned in places::due_destroys(db, AGAIN.as_secs_f64()).await? {
            let workshop = self.clone();
            tasks.spawn(async move { workshop.destroy(&condemned).await });
        }
        Ok(())
    }

    /// Beside everything else, and one at a time: an organization can take minutes.
    fn start_teardowns(&self, tasks: &TaskTracker) {
        let Ok(turn) = Arc::clone(&self.0.teardown).try_lock_owned() else { return };
        let workshop = self.clone();
        tasks.spawn(async move {
            if let Err(problem) = workshop.tear_down_deleted().await {
                tracing::warn!(%problem, "sandboxes of deleted organizations cannot be looked for now");
            }
            drop(turn);
        });
    }

    fn spawn(&self, tasks: &TaskTracker, run: runs::Held, stop: &CancellationToken) {
        let (workshop, stop) = (self.clone(), stop.clone());
        tasks.spawn(async move { workshop.attend(run, stop).await });
    }

    /// Gives out the places that the organization has left (SBX-28, SBX-30). Whoever waits for the host keeps those
    /// behind waiting too; whoever waits for another run in the same sandbox does not.
    async fn admit(&self, org: OrgId, most: usize) -> Result<Vec<runs::Held>, Problem> {
        let policies = self.0.policies.of(org).await?;
        // Limits that cannot be read let nothing start.
        let Ok(quota) = policies.sandbox_quota.usable() else { return Ok(Vec::new()) };
        let limit = i64::from(quota.max_sessions_per_org);
        let mut tx = self.0.db.begin().await?;
        places::lock(&mut tx, org).await?;
        runs::dismiss(&mut tx, org).await?;
        let [mut held, ..] = places::held(&mut *tx, org).await?;
        let mut begun: Vec<runs::Held> = Vec::new();
        for waiting in runs::line(&mut tx, org, LINE).await? {
            if waiting.busy || begun.iter().any(|run| run.session_id == waiting.session_id) {
                continue;
            }
            if !waiting.due || held >= limit || begun.len() >= most {
                break;
            }
            if !places::take(&mut tx, org, &waiting.session_id).await? {
                continue;
            }
            if let Some(run) = runs::begin(&mut tx, org, waiting.id, self.0.me, LEASE.as_secs_f64()).await? {
                held += 1;
                begun.push(run);
            }
        }
        for run in &begun {
            crate::runs::announce(&mut tx, crate::runs::Owner { org, user: run.user_id }, run.id).await?;
        }
        tx.commit().await?;
        for run in &begun {
            self.tell(run.id);
        }
        Ok(begun)
    }

    /// Tells the spawner of a hold that ended, so that its host may use the room (SBX-111).
    async fn release(&self, org: OrgId, session: &str, generation: &str) {
        let (Ok(id), Ok(hold)) = (SessionId::new(session), Generation::new(generation)) else { return };
        let told = match self.0.spawner.release(&id, hold).await {
            Ok(_) => true,
            // It does not run any more, so nothing holds it.
            Err(error) if error.code() == Some(ErrorCode::NotFound) => true,
            Err(error) => {
                tracing::debug!(session, %error, "the end of a hold could not be told yet");
                false
            }
        };
        if told && let Err(error) = places::told(&self.0.db, org, session, generation).await {
            tracing::debug!(session, %error, "the end of a hold will be told once more");
        }
    }
}
