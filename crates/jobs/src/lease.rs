//! A worker's hold on one job.

use sqlx::{PgConnection, PgPool};
use tale_core::ids::{JobId, OrgId};
use tokio_util::sync::CancellationToken;

use crate::job::JobError;
use crate::store;

/// The right to write for one claimed job, as long as nobody else has claimed it since.
#[derive(Debug)]
pub struct Lease {
    pub(crate) pool: PgPool,
    pub(crate) job: JobId,
    pub(crate) org: Option<OrgId>,
    pub(crate) token: i64,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) interrupted: CancellationToken,
}

impl Lease {
    /// The job.
    #[must_use]
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The organization it works for.
    #[must_use]
    pub fn org(&self) -> Option<OrgId> {
        self.org
    }

    /// The fencing token: larger than that of every earlier claim of any job. Rows written to
    /// another database carry it, so that a late writer can be told from the present one.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.token
    }

    /// Which attempt this is, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether a failure now gives the job up.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.attempt >= self.max_attempts
    }

    /// Cancelled when the worker wants the job to stop: the drain deadline has passed, or the drain
    /// has begun and the kind [resumes](crate::Job::RESUMES). A job that can go on later returns [`JobError::Interrupted`] at its next
    /// good place, such as after something that costs to repeat; one that still runs
    /// [`crate::RELEASE_GRACE`] after the drain deadline is dropped.
    #[must_use]
    pub fn interrupted(&self) -> &CancellationToken {
        &self.interrupted
    }

    /// Fails when the worker wants the job to stop. For between two steps.
    ///
    /// # Errors
    /// [`JobError::Interrupted`].
    pub fn check(&self) -> Result<(), JobError> {
        if self.interrupted.is_cancelled() { Err(JobError::Interrupted) } else { Ok(()) }
    }

    /// Extends the lease, and proves that it is still held. The worker's heartbeat does this
    /// anyway; call it before something costly.
    ///
    /// # Errors
    /// [`JobError::LeaseLost`] when another worker has the job.
    pub async fn renew(&self) -> Result<(), JobError> {
        let mut conn = self.pool.acquire().await?;
        let held = store::renew(&mut conn, &[(self.job, self.token)]).await?;
        if held.is_empty() { Err(JobError::LeaseLost) } else { self.check() }
    }

    /// Proves inside `conn`'s transaction that the lease is held, and keeps it so until the
    /// transaction ends: what the transaction writes is written by the one holder.
    ///
    /// # Errors
    /// [`JobError::LeaseLost`] when another worker has the job.
    pub async fn guard(&self, conn: &mut PgConnection) -> Result<(), JobError> {
        if store::lock_if_held(conn, self.job, self.token).await? { Ok(()) } else { Err(JobError::LeaseLost) }
    }

    /// Ends the job inside `conn`'s transaction, so that its effect and its end commit together.
    /// The job then returns `Ok`.
    ///
    /// # Errors
    /// [`JobError::LeaseLost`] when another worker has the job.
    pub async fn complete(&self, conn: &mut PgConnection) -> Result<(), JobError> {
        if store::finish(conn, self.job, self.token).await? { Ok(()) } else { Err(JobError::LeaseLost) }
    }
}
