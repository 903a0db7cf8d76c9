//! Moving files from the deployment's store to the organization's own bucket (DCF-106, RSD-11).
//!
//! One file after the other is copied, read back, compared and only then removed where it was; its
//! name stays, so no row changes. A run that was killed goes on after the last file it noted, and
//! looks again at the one it was at: whatever became of that copy, the original is there until the
//! copy was compared. A file that is purged meanwhile loses its copy: by the purge, which removes from
//! the deployment's store first, or by the run, which asks for the row once the copy is there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tale_blobs::{BlobError, BlobKey, Store};
use tale_core::crypto::RunningSha256;
use tale_core::ids::OrgId;
use tale_core::{Actor, Code, Problem};
use tale_db::hints::{Hint, Topic, notify};
use tale_governance::audit::{self, AuditEntry};
use tale_identity::{Caller, Capability};
use tale_jobs::{EnqueueOptions, Failure, Job, JobError, Lease};
use uuid::Uuid;

use super::check_failed;
use crate::Knowledge;
use crate::indexing::{chain, renewed};
use crate::store::moves::{self, Settled};

/// Files that are looked up at once.
const BATCH: i64 = 100;
/// Files in a row that cannot be moved before the run gives up.
const FAILURES: u32 = 5;
/// How long one attempt works before it lets others have the worker.
const STRETCH_MS: i64 = 20 * 60 * 1_000;

/// How far a move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum MoveState {
    /// Under way, or waiting for a worker.
    Running,
    /// Every file was looked at.
    Completed,
    /// Ended early.
    Failed,
}

impl MoveState {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The latest move of an organization's files. Counts are files.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Move {
    /// How far it is.
    pub state: MoveState,
    /// The bucket it moves to.
    pub target: String,
    /// Files of the organization when it began.
    pub total: i64,
    /// Moved.
    pub moved: i64,
    /// Nothing to do: in the bucket already, or gone.
    pub skipped: i64,
    /// Not moved; the original is where it was.
    pub failed: i64,
    /// Bytes that were moved.
    pub bytes: i64,
    /// Why it ended early.
    pub error_code: Option<String>,
    /// The same as a sentence.
    pub error: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// Moves the files of one organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MoveFiles {
    /// The organization.
    pub org: OrgId,
    /// The run.
    pub run: Uuid,
}

/// Why a file was not moved.
#[derive(Debug, thiserror::Error)]
enum MoveError {
    /// The whole run ends.
    #[error("{0}")]
    Over(Problem),
    #[error("the store failed")]
    Store(#[from] BlobError),
    #[error("the copy is not what was copied")]
    BadCopy,
    #[error("the name is not one of ours")]
    Key(#[from] tale_blobs::InvalidKey),
    #[error(transparent)]
    Job(#[from] JobError),
}

impl From<sqlx::Error> for MoveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Job(error.into())
    }
}

impl Job for MoveFiles {
    const NAME: &'static str = "knowledge.move_files";
    const MAX_ATTEMPTS: u32 = 5;
    const TIMEOUT: Duration = Duration::from_secs(30 * 60);
    const PER_ORG: u32 = 1;
    const RESUMES: bool = true;
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, lease: &Lease) -> Result<(), JobError> {
        knowledge.move_files(self.org, self.run, renewed(lease)).await
    }

    async fn given_up(&self, knowledge: &Knowledge, _org: Option<OrgId>, failure: &Failure) {
        let ended = knowledge.end_move(self.org, self.run, Some((&failure.code, &failure.message))).await;
        if let Err(error) = ended {
            tracing::warn!(org.id = %self.org, error = %error, "could not record that a move of files failed");
        }
    }
}

impl Knowledge {
    /// Starts to move the organization's files from the deployment's store to its own bucket.
    ///
    /// # Errors
    /// `OBJECT_STORE_NOT_CONNECTED`, `OBJECT_STORE_UNCONFIGURED`, `OBJECT_STORE_SAME_BUCKET`,
    /// `OBJECT_STORE_CHECK_FAILED`, `OBJECT_STORE_MOVE_RUNNING`, the caller's missing right.
    pub async fn start_move(&self, caller: &Caller) -> Result<Move, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let own = self.own_store(caller).await?;
        let default = self.blobs().default_store().ok_or(BlobError::Unconfigured)?;
        match own.check(&caller.org_slug, Some(default)).await {
            Ok(()) => {}
            Err(tale_blobs::check::CheckError::DefaultAway(error)) => return Err(error.into()),
            Err(error) => return Err(check_failed(error, own.bucket())),
        }
        let run = Uuid::now_v7();
        let mut tx = self.app().begin().await?;
        if !moves::begin(&mut tx, caller.org, run, &own.address(), self.clock().now()).await? {
            return Err(Problem::new(
                Code::ObjectStoreMoveRunning,
                "The files of this organization are being moved already. Wait until that has ended.",
            ));
        }
        tale_jobs::enqueue(&mut tx, Some(caller.org), &MoveFiles { org: caller.org, run }, EnqueueOptions::default())
            .await?;
        self.record(&mut tx, caller, "storage.move", serde_json::json!({ "address": own.address() })).await?;
        let begun = moves::latest(&mut tx, caller.org).await?;
        tx.commit().await?;
        begun.ok_or_else(|| Problem::internal("the move has no row"))
    }

    /// The latest move.
    ///
    /// # Errors
    /// The caller's missing right, the database's trouble.
    pub async fn latest_move(&self, caller: &Caller) -> Result<Option<Move>, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut conn = self.app().acquire().await?;
        Ok(moves::latest(&mut conn, caller.org).await?)
    }

    /// One attempt at a run. `keep` renews the lease and says when to stop.
    ///
    /// # Errors
    /// Those of the database and of `keep`; what stores do is recorded and is no error.
    pub async fn move_files<F, K>(&self, org: OrgId, run: Uuid, keep: K) -> Result<(), JobError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let Some(running) = moves::running(&mut *self.app().acquire().await?, org, run).await? else { return Ok(()) };
        if let Some(key) = &running.at_key
            && let Err(error) = self.forget_purged(org, key).await
        {
            // The same file comes first again and says what is wrong.
            tracing::warn!(org.id = %org, error = %chain(&error), "could not look after a file that was being moved");
        }
        let (mut after, began, mut failures) = (running.after_id, self.clock().now_ms(), 0);
        loop {
            let files = moves::files(&mut *self.app().acquire().await?, org, after, BATCH).await?;
            if files.is_empty() {
                return Ok(self.end_move(org, run, None).await?);
            }
            for (file, key) in files {
                keep().await?;
                if self.clock().now_ms() - began > STRETCH_MS {
                    return Err(JobError::Interrupted);
                }
                if !moves::take_up(&mut *self.app().acquire().await?, org, run, &key).await? {
                    return Ok(());
                }
                let how = match self.move_file(org, &key, &running.target, &keep).await {
                    Ok(how) => how,
                    Err(MoveError::Job(error)) => return Err(error),
                    Err(MoveError::Over(problem)) => {
                        return Ok(self.end_move(org, run, Some((problem.code.text(), &problem.message))).await?);
                    }
                    Err(error) => {
                        tracing::warn!(event = "storage.not_moved", org.id = %org, file.id = %file, error = %chain(&error), "could not move a file");
                        Settled::Failed
                    }
                };
                failures = if how == Settled::Failed { failures + 1 } else { 0 };
                moves::settle(&mut *self.app().acquire().await?, org, run, file, how).await?;
                if failures == FAILURES {
                    let sentence = "Several files in a row could not be moved, so the move was stopped. Nothing was lost. Test the connection, then start it again.";
                    return Ok(self.end_move(org, run, Some((Code::ObjectStoreUnavailable.text(), sentence))).await?);
                }
                after = Some(file);
            }
        }
    }

    async fn move_file<F, K>(&self, org: OrgId, key: &str, target: &str, keep: &K) -> Result<Settled, MoveError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let name = BlobKey::parse(key)?;
        let own = self.blobs().own(name.organization()).await.map_err(|error| MoveError::Over(error.into()))?;
        let Some(own) = own.filter(|own| own.address() == target) else {
            return Err(MoveError::Over(Problem::new(
                Code::ObjectStoreNotConnected,
                "The bucket was disconnected or changed while files were moved to it. Start the move again to go on with the present one.",
            )));
        };
        let Some(default) = self.blobs().default_store() else {
            return Err(MoveError::Over(BlobError::Unconfigured.into()));
        };
        let Some(source) = default.head(&name).await? else { return Ok(Settled::Skipped) };
        let copied = match own.head(&name).await {
            Ok(Some(copy)) if copy.size == source.size => digest(default, &name).await? == digest(&own, &name).await?,
            // A key that may not list is forbidden what is not there.
            Ok(_) | Err(BlobError::Refused { status: 403, .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if !copied && copy(default, &own, &name).await? != digest(&own, &name).await? {
            if default.head(&name).await?.is_some() {
                own.delete(&name).await?;
            }
            return Err(MoveError::BadCopy);
        }
        if !moves::is_kept(&mut *self.app().acquire().await?, org, key).await? {
            own.delete(&name).await?;
            return Ok(Settled::Skipped);
        }
        keep().await?;
        default.delete(&name).await?;
        Ok(Settled::Moved { bytes: i64::try_from(source.size).unwrap_or(i64::MAX) })
    }

    /// Removes the copy that a killed attempt may have made of a file that was purged meanwhile.
    async fn forget_purged(&self, org: OrgId, key: &str) -> Result<(), MoveError> {
        if !moves::is_kept(&mut *self.app().acquire().await?, org, key).await? {
            self.blobs().delete(&BlobKey::parse(key)?).await?;
        }
        Ok(())
    }

    async fn end_move(&self, org: OrgId, run: Uuid, error: Option<(&str, &str)>) -> Result<(), sqlx::Error> {
        let state = if error.is_some() { MoveState::Failed } else { MoveState::Completed };
        let now = self.clock().now();
        let mut tx = self.app().begin().await?;
        let Some(ended) = moves::end(&mut tx, org, run, state, error, now).await? else { return Ok(()) };
        let entry = AuditEntry {
            org: Some(org),
            actor: Actor::System,
            action: if error.is_some() { "storage.move_failed" } else { "storage.moved" },
            category: "admin",
            resource_type: "object_storage",
            resource_id: None,
            details: serde_json::json!({
                "address": ended.target, "moved": ended.moved, "skipped": ended.skipped,
                "failed": ended.failed, "bytes": ended.bytes, "code": ended.error_code,
            }),
            at: now,
        };
        audit::record(&mut tx, &entry).await?;
        notify(&mut tx, &Hint::new(org, Topic::Storage)).await?;
        tx.commit().await?;
        tracing::info!(
            event = "storage.move_ended", org.id = %org, state = state.text(), moved = ended.moved,
            skipped = ended.skipped, failed = ended.failed, "a move of files has ended"
        );
        Ok(())
    }
}

/// Copies an object with its type; its digest as it was read.
async fn copy(from: &Store, to: &Store, key: &BlobKey) -> Result<String, BlobError> {
    let object = from.get(key, None).await?;
    let kind = object.meta.content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    let running = Arc::new(Mutex::new(RunningSha256::default()));
    let seen = Arc::clone(&running);
    let bytes = object.bytes.map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        seen.lock().unwrap_or_else(PoisonError::into_inner).update(&piece);
        Ok(piece)
    });
    to.put(key, &kind, object.length, bytes).await?;
    let running = std::mem::take(&mut *running.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(running.finish_hex())
}

/// The digest of an object's bytes.
async fn digest(store: &Store, key: &BlobKey) -> Result<String, BlobError> {
    let mut object = store.get(key, None).await?;
    let mut running = RunningSha256::default();
    while let Some(piece) = object.bytes.next().await {
        running.update(&piece?);
    }
    Ok(running.finish_hex())
}
