//! Removing for good: documents that were long enough in the trash and uploads that nothing holds
//! (DOC-9, FILE-6, FILE-7). Passages go first, then bytes, then rows, so that a purge that is
//! interrupted goes on where it stopped and never leaves bytes without a row that names them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tale_blobs::BlobKey;
use tale_core::ids::{FileId, OrgId};
use tale_core::{Actor, Problem};
use tale_jobs::{Job, JobError, Lease};
use tale_orgfiles::ConfigError;

use crate::Knowledge;
use crate::changes::{self, Act};
use crate::indexing::TEMP_PREFIX;
use crate::store::{documents, files, organizations, transcripts};

/// How long a deleted document can be restored.
pub const TRASH_KEEPS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long after its deadline an upload that nothing attached is kept.
const UNATTACHED_KEEPS: Duration = Duration::from_secs(24 * 60 * 60);
/// How old a file that is being read can get: longer than any run.
const TEMP_KEEPS: Duration = Duration::from_secs(2 * 60 * 60);
/// Rows per run and kind.
const PER_RUN: i64 = 200;

/// Removes what was long enough in the trash, uploads that nothing holds, and what deleted organizations left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {}

impl Job for Sweep {
    const NAME: &'static str = "knowledge.sweep";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(15 * 60);
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, _lease: &Lease) -> Result<(), JobError> {
        knowledge.sweep().await?;
        Ok(())
    }
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Documents.
    pub documents: usize,
    /// Uploads without a document.
    pub uploads: usize,
    /// What could not be removed and stays for the next sweep.
    pub kept: usize,
}

#[derive(Debug, thiserror::Error)]
enum PurgeError {
    #[error("the passages could not be removed")]
    Passages(#[source] Problem),
    #[error("the stored name is not one of ours")]
    Key(#[source] tale_blobs::InvalidKey),
    #[error("the bytes could not be removed")]
    Bytes(#[source] tale_blobs::BlobError),
    #[error("the row could not be removed")]
    Row(#[source] sqlx::Error),
    #[error("the configuration files could not be removed")]
    Files(#[source] ConfigError),
}

impl Knowledge {
    /// One round over every organization. What cannot be removed is kept and tried again.
    ///
    /// # Errors
    /// The database's, when the rows to look at cannot be read.
    pub async fn sweep(&self) -> Result<Swept, sqlx::Error> {
        let now = self.clock().now();
        let mut swept = Swept::default();
        let mut conn = self.app().acquire().await?;
        organizations::doom_deleted(&mut conn).await?;
        let purging = documents::start_purge(&mut conn, now - TRASH_KEEPS, PER_RUN).await?;
        drop(conn);
        for document in purging {
            let (org, id) = (document.org_id, document.id);
            match self.purge_document(document).await {
                Ok(()) => swept.documents += 1,
                Err(error) => {
                    swept.kept += 1;
                    tracing::warn!(org.id = %org, document.id = %id, error = %crate::indexing::chain(&error), "a document could not be purged yet");
                }
            }
        }
        let mut conn = self.app().acquire().await?;
        let doomed = files::doom_unattached(&mut conn, now - UNATTACHED_KEEPS, PER_RUN).await?;
        drop(conn);
        for file in doomed {
            match self.purge_file(file.org_id, file.id, &file.storage_key).await {
                Ok(()) => swept.uploads += 1,
                Err(error) => {
                    swept.kept += 1;
                    tracing::warn!(org.id = %file.org_id, file.id = %file.id, error = %crate::indexing::chain(&error), "an upload could not be purged yet");
                }
            }
        }
        let mut conn = self.app().acquire().await?;
        transcripts::forget_orphans(&mut conn, now - UNATTACHED_KEEPS, PER_RUN).await?;
        let empty = organizations::empty(&mut conn).await?;
        drop(conn);
        for (org, slug) in empty {
            match self.remove_organization(org, &slug).await {
                Ok(true) => {
                    tracing::info!(event = "organization.removed", org.id = %org, "the last data of a deleted organization is gone");
                }
                Ok(false) => {}
                Err(error) => {
                    swept.kept += 1;
                    tracing::warn!(org.id = %org, error = %crate::indexing::chain(&error), "a deleted organization could not be removed yet");
                }
            }
        }
        self.clear_temp_dir().await;
        if swept != Swept::default() {
            tracing::info!(documents = swept.documents, uploads = swept.uploads, kept = swept.kept, "swept the trash");
        }
        Ok(swept)
    }

    /// Removes what killed processes left in the folder for files that are being read.
    async fn clear_temp_dir(&self) {
        let (folder, before) = (self.temp_dir().to_owned(), std::time::SystemTime::now() - TEMP_KEEPS);
        let cleared = tokio::task::spawn_blocking(move || -> std::io::Result<()> {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMP_PREFIX));
                if ours && entry.metadata()?.modified()? < before {
                    std::fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        });
        if let Ok(Err(error)) = cleared.await {
            tracing::warn!(error = %error, "the folder for files that are being read could not be cleared");
        }
    }

    async fn purge_document(&self, document: documents::Purging) -> Result<(), PurgeError> {
        let org = document.org_id;
        if let (Some(file), Some(key)) = (document.file_id, &document.storage_key) {
            self.remove_content(org, file, key).await?;
        }
        let row = async {
            let mut tx = self.app().begin().await?;
            documents::remove(&mut tx, org, document.id).await?;
            if let Some(file) = document.file_id {
                files::doom(&mut tx, org, file).await?;
                files::remove(&mut tx, org, file).await?;
            }
            changes::record_as(
                &mut tx,
                org,
                Actor::System,
                Act::Purged,
                document.id,
                &document.title,
                self.clock().now(),
            )
            .await?;
            tx.commit().await
        };
        row.await.map_err(PurgeError::Row)
    }

    async fn purge_file(&self, org: OrgId, file: FileId, key: &str) -> Result<(), PurgeError> {
        self.remove_content(org, file, key).await?;
        let mut conn = self.app().acquire().await.map_err(PurgeError::Row)?;
        files::remove(&mut conn, org, file).await.map_err(PurgeError::Row)
    }

    /// Removes the rest of an organization: its configuration files, then its rows. Its short name is nobody else's as
    /// long as its row is there, so the folder is its own; a sweep that ends in between is done again by the next.
    async fn remove_organization(&self, org: OrgId, slug: &str) -> Result<bool, PurgeError> {
        let mut tx = self.app().begin().await.map_err(PurgeError::Row)?;
        if !organizations::hold_empty(&mut tx, org).await.map_err(PurgeError::Row)? {
            return Ok(false);
        }
        self.corpora().remove_files(slug).await.map_err(PurgeError::Files)?;
        organizations::remove(&mut tx, org).await.map_err(PurgeError::Row)?;
        tx.commit().await.map_err(PurgeError::Row)?;
        Ok(true)
    }

    async fn remove_content(&self, org: OrgId, file: FileId, key: &str) -> Result<(), PurgeError> {
        self.remove_passages(org, file).await.map_err(PurgeError::Passages)?;
        let key = BlobKey::parse(key).map_err(PurgeError::Key)?;
        self.blobs().delete(&key).await.map_err(PurgeError::Bytes)
    }
}
