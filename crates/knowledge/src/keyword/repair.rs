//! What is done about damage, and what is written down about it (DCF-75…77).

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;
use sqlx::PgPool;
use tale_core::Actor;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_governance::audit::{self, AuditEntry};

/// Whether and how damaged indexes are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairPolicy {
    /// Files are verified and damaged indexes are built anew.
    pub enabled: bool,
    /// Searches wait for the repair of an index that takes no more bytes than this; while a larger one is
    /// repaired they answer without it.
    pub inline_max_bytes: u64,
}

impl Default for RepairPolicy {
    fn default() -> Self {
        Self { enabled: true, inline_max_bytes: 1 << 30 }
    }
}

/// A step of a repair that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A large index is being built anew in the background.
    Scheduled,
    /// The index was built anew.
    Repaired,
    /// It could not be built anew; it is tried again.
    Failed,
}

/// The policy and where steps are recorded.
pub(crate) struct Repair {
    pub(crate) app: PgPool,
    pub(crate) clock: SharedClock,
    pub(crate) policy: RepairPolicy,
}

impl Repair {
    /// Records a step, as the system. That it cannot be recorded must not stop the repair.
    pub(crate) async fn record(&self, org: OrgId, step: Step, bytes: u64, reason: &str) {
        let action = match step {
            Step::Scheduled => "knowledge_index_rebuild_scheduled",
            Step::Repaired => "knowledge_index_repaired",
            Step::Failed => "knowledge_index_repair_failed",
        };
        let entry = AuditEntry {
            org: Some(org),
            actor: Actor::System,
            action,
            category: "data",
            resource_type: "knowledge_index",
            resource_id: Some("keyword".to_owned()),
            details: json!({ "bytes": bytes, "reason": reason }),
            at: self.clock.now(),
        };
        let written = async { audit::record(&mut *self.app.acquire().await?, &entry).await };
        if let Err(error) = written.await {
            tracing::warn!(%org, %error, action, "the repair of a keyword index could not be recorded");
        }
    }
}

/// Bytes of the files below `folder`; what cannot be looked at counts nothing.
pub(crate) fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// The organizations that have a folder in `folder`.
pub(crate) fn folders(folder: &Path) -> io::Result<Vec<OrgId>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}
