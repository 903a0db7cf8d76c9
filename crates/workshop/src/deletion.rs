//! The end of a workspace: whoever condemned it, the spawner deletes it, and only then its row goes (SBX-43).
//!
//! One that somebody asked for is deleted whatever goes on in it, and asked for again until it is gone. One that Tale
//! condemned by itself is deleted only while nothing runs in it: when something does, or the spawner cannot do it, it is
//! kept, and looked at again with the next pass ([`crate::cleanup`]).

use tale_core::ids::OrgId;
use tale_core::{Actor, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_governance::audit::{self, AuditEntry};
use tale_sandbox_wire::names::SessionId;
use tale_sandbox_wire::spawner::{Deletion, DestroyAnswer};

use crate::client::SpawnerError;
use crate::service::Workshop;
use crate::store::places::{self, Condemned};

impl Workshop {
    /// Deletes a condemned session with its files.
    pub(crate) async fn destroy(&self, condemned: &Condemned) {
        let Condemned { org_id: org, id: session, reason } = condemned;
        let Ok(id) = SessionId::new(session.as_str()) else { return };
        let asked_for = reason == "requested";
        let settled = match self.0.spawner.destroy(&id, !asked_for).await {
            Ok(DestroyAnswer::Ended { deletion: Deletion::Done | Deletion::HandedOff, destroyed }) => {
                self.destroyed(*org, session, destroyed).await
            }
            Ok(DestroyAnswer::Ended { deletion, .. }) => {
                tracing::info!(session, ?deletion, "the files of a sandbox are being deleted");
                Ok(())
            }
            Ok(DestroyAnswer::Busy { .. }) => {
                tracing::info!(
                    event = "sandbox.workspace_kept",
                    session,
                    reason,
                    "a sandbox was to be deleted and is used again"
                );
                self.kept(condemned, None).await
            }
            Err(error) => {
                tracing::warn!(event = "sandbox.destroy_delayed", session, reason, %error, "a sandbox could not be deleted yet");
                if asked_for { Ok(()) } else { self.kept(condemned, Some(&error)).await }
            }
        };
        if let Err(problem) = settled {
            tracing::warn!(session, %problem, "what became of a sandbox could not be written down yet");
        }
    }

    /// Forgets it. A workspace that nothing named and that was gone already leaves no trace.
    async fn destroyed(&self, org: OrgId, session: &str, destroyed: bool) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        if let Some(reason) = places::remove(&mut tx, org, session).await? {
            if destroyed || reason != "orphaned" {
                let entry = self.deletion_entry(org, session, serde_json::json!({ "reason": reason }));
                audit::record(&mut tx, &entry).await?;
            }
            hints::notify(&mut tx, &Hint::new(org, Topic::Sandboxes)).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Lets it be used again; `error`: it was tried.
    async fn kept(&self, condemned: &Condemned, error: Option<&SpawnerError>) -> Result<(), Problem> {
        let Condemned { org_id: org, id: session, reason } = condemned;
        let mut tx = self.0.db.begin().await?;
        if places::keep(&mut tx, *org, session).await? {
            if let Some(error) = error {
                let details = serde_json::json!({ "reason": reason, "error": error.to_string() });
                audit::record_failed(&mut tx, &self.deletion_entry(*org, session, details)).await?;
            }
            hints::notify(&mut tx, &Hint::new(*org, Topic::Sandboxes)).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    pub(crate) fn deletion_entry(&self, org: OrgId, session: &str, details: serde_json::Value) -> AuditEntry {
        AuditEntry {
            org: Some(org),
            actor: Actor::System,
            action: "sandbox.workspace_deleted",
            category: "data",
            resource_type: "sandbox",
            resource_id: Some(session.to_owned()),
            details,
            at: self.0.clock.now(),
        }
    }
}
