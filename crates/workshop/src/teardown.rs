//! The end of an organization's sandboxes (SBX-44): whatever runs in them is ended, and the spawner removes their files and
//! the package caches. The organization itself goes last, when the spawner has confirmed that: what is still to be
//! done therefore follows from its rows, and is done again and again until then, whoever dies or is away meanwhile.

use tale_core::Problem;
use tale_core::ids::OrgId;
use tale_governance::audit;
use tale_sandbox_wire::spawner::Deletion;

use crate::service::Workshop;
use crate::store::{self, places, runs};

impl Workshop {
    /// One try for every deleted organization that has, or had, sandboxes.
    pub(crate) async fn tear_down_deleted(&self) -> Result<(), Problem> {
        for org in places::deleted_orgs(&self.0.db).await? {
            self.tear_down(org).await?;
        }
        Ok(())
    }

    async fn tear_down(&self, org: OrgId) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        let stopped = runs::cancel_all(&mut tx, org).await?;
        for (run, _) in &stopped {
            store::announce(&mut tx, &run.to_string()).await?;
        }
        // Nobody belongs to the organization any more, so what has ended by now is followed by nothing.
        let is_quiet = !runs::any_open(&mut *tx, org).await?;
        tx.commit().await?;
        self.wake_all(&stopped);
        match self.0.spawner.tear_down(org).await {
            Ok(answer) if !matches!(answer.deletion, Deletion::Done | Deletion::HandedOff) => {
                tracing::info!(event = "sandbox.teardown", org.id = %org, deletion = ?answer.deletion, "files of a deleted organization are being removed");
            }
            Ok(_) if !is_quiet => {}
            Ok(answer) => {
                self.torn_down(org).await?;
                tracing::info!(
                    event = "sandbox.teardown", org.id = %org, sessions = answer.sessions, caches = answer.package_caches,
                    "the sandboxes of a deleted organization are gone"
                );
            }
            Err(error) => {
                tracing::warn!(event = "sandbox.teardown_delayed", org.id = %org, %error, "the sandboxes of a deleted organization could not be removed yet");
            }
        }
        Ok(())
    }

    async fn torn_down(&self, org: OrgId) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        places::lock(&mut tx, org).await?;
        for session in places::remove_all(&mut tx, org).await? {
            let details = serde_json::json!({ "reason": "organization_deleted" });
            let entry = self.deletion_entry(org, &session, details);
            audit::record(&mut tx, &entry).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
