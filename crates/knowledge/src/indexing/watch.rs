//! Putting back what no job finished (IDX-13, IDX-14).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tale_jobs::{Job, JobError, Lease};

use crate::Knowledge;
use crate::changes;
use crate::store::files;

/// A status that has not moved for this long is looked at.
const STUCK_AFTER: Duration = Duration::from_secs(35 * 60);
/// Rows per run, oldest first.
const PER_RUN: i64 = 200;

/// Looks for files whose indexing stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watch {}

impl Job for Watch {
    const NAME: &'static str = "knowledge.watch";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(5 * 60);
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, _lease: &Lease) -> Result<(), JobError> {
        knowledge.watch().await?;
        Ok(())
    }
}

impl Knowledge {
    /// Queues files whose status has not moved for 35 minutes again. A job that is alive moves the
    /// status with every slice or holds the queue's one place for its file, so nothing runs twice;
    /// a file that is stored already is finished without being read again. Returns how many.
    ///
    /// # Errors
    /// The database's.
    pub async fn watch(&self) -> Result<usize, sqlx::Error> {
        let now = self.clock().now();
        let mut conn = self.app().acquire().await?;
        let stuck = files::stuck(&mut conn, now - STUCK_AFTER, PER_RUN).await?;
        drop(conn);
        let mut queued = 0;
        for (org, file) in stuck {
            let mut tx = self.app().begin().await?;
            // Counts as moved, so that the next run looks at others first.
            if files::touch(&mut tx, org, file, now).await? {
                super::enqueue_index(&mut tx, org, file).await?;
                changes::hint_file(&mut tx, org, file).await?;
                queued += 1;
            }
            tx.commit().await?;
        }
        if queued > 0 {
            tracing::warn!(files = queued, "queued files whose indexing had stopped");
        }
        Ok(queued)
    }
}
