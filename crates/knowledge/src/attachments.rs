//! Chat uploads while a message waits for them: how far they are, another try, and their way back.

use std::time::Duration;

use sqlx::PgConnection;
use tale_core::Problem;
use tale_core::ids::{FileId, OrgId, ThreadId};
use tale_identity::{Caller, Capability};

use crate::embedder::Answer;
use crate::files::{Attachment, IndexStatus, Purpose, attachment_of, file_not_found};
use crate::store::files as store;
use crate::{Knowledge, changes, indexing};

/// How long an upload that a chat gave back stays for another message.
const RETURNED_FOR: Duration = Duration::from_secs(60 * 60);

/// Learns that a chat upload was read, or could not be, in the transaction that records it.
pub trait UploadSettled: Send + Sync {
    /// `file`, which `thread` holds, is ready or failed.
    ///
    /// # Errors
    /// Those of the database; the transaction is rolled back.
    fn upload_settled<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        org: OrgId,
        thread: ThreadId,
        file: FileId,
    ) -> Answer<'a, Result<(), sqlx::Error>>;
}

impl Knowledge {
    /// The caller's own chat uploads among `ids`, in that order. One statement; nothing is taken in.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn attachments(&self, caller: &Caller, ids: &[FileId]) -> Result<Vec<Attachment>, Problem> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.app().acquire().await?;
        let rows = store::own_chat_uploads(&mut conn, caller.org, caller.user, ids).await?;
        Ok(ids.iter().filter_map(|id| rows.iter().find(|row| row.id == *id)).map(attachment_of).collect())
    }

    /// Reads one of the caller's chat uploads again that could not be read.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for anything but the caller's own chat upload.
    pub async fn retry_attachment(&self, caller: &Caller, id: FileId) -> Result<Attachment, Problem> {
        caller.require(Capability::ChatUse)?;
        self.own_upload(caller, id).await?;
        let mut tx = self.app().begin().await?;
        let row = store::lock(&mut tx, caller.org, id)
            .await?
            .filter(|row| row.purpose == Purpose::Chat)
            .ok_or_else(file_not_found)?;
        // What the format rules out stays so, however often it is read.
        if row.index_status == IndexStatus::Failed && store::queue(&mut tx, caller.org, id, self.clock().now()).await? {
            indexing::enqueue_index(&mut tx, caller.org, id).await?;
            changes::hint_file(&mut tx, caller.org, id).await?;
        }
        let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(file_not_found)?;
        tx.commit().await?;
        Ok(attachment_of(&row))
    }

    /// Gives uploads back that a chat held for a message which is not sent, in the caller's
    /// transaction. They wait an hour for another message, then the sweep removes them.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn return_attachments(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        thread: ThreadId,
        ids: &[FileId],
    ) -> Result<(), Problem> {
        store::release_from_thread(conn, org, thread, ids, self.clock().now() + RETURNED_FOR).await?;
        Ok(())
    }

    /// Tells whoever waits for a chat upload that it was read or could not be.
    pub(crate) async fn tell_settled(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        file: FileId,
        purpose: Purpose,
    ) -> Result<(), sqlx::Error> {
        if purpose != Purpose::Chat {
            return Ok(());
        }
        // Read now: the message may have been parked while the file was being read.
        let thread = store::get(conn, org, file).await?.and_then(|row| row.thread_id);
        match (thread, self.upload_settled()) {
            (Some(thread), Some(told)) => told.upload_settled(conn, org, thread, file).await,
            _ => Ok(()),
        }
    }
}
