//! What a job is, how it fails and how it gets into the queue.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use tale_core::ids::{JobId, OrgId};
use tale_core::{Code, Problem};

use crate::backoff::Backoff;
use crate::lease::Lease;
use crate::store;

/// A kind of background work. The value is its payload: ids, never content.
///
/// A job runs at least once, possibly late and possibly again after it succeeded, so it asks for
/// the state of things before it acts. New payload fields need defaults, because jobs of the
/// previous release are still queued; a new meaning needs a new [`Job::NAME`].
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The stored name of the kind. Never changes.
    const NAME: &'static str;
    /// How often the job may fail before it is given up.
    const MAX_ATTEMPTS: u32;
    /// How long one attempt may take.
    const TIMEOUT: Duration;
    /// How many jobs of this kind one organization may have running at once, over all workers.
    const PER_ORG: u32 = 4;
    /// The pause before another attempt.
    const BACKOFF: Backoff = Backoff::DEFAULT;
    /// Whether a draining worker asks the job to stop at once instead of waiting for its end: it
    /// looks at [`Lease::interrupted`] between its steps, which are short or costly to repeat, and goes
    /// on where it stopped.
    const RESUMES: bool = false;
    /// What the job needs: the domain it works in.
    type Context: Send + Sync + 'static;

    /// Does the work. Dropped at an await when the lease is lost or the time is over; asked
    /// through [`Lease::interrupted`] first when the worker drains.
    fn run(&self, context: &Self::Context, lease: &Lease) -> impl Future<Output = Result<(), JobError>> + Send;

    /// Told once the job is given up, before it is marked as dead, so that the domain can say so
    /// where people look. May be called again when the worker dies in between.
    fn given_up(
        &self,
        context: &Self::Context,
        org: Option<OrgId>,
        failure: &Failure,
    ) -> impl Future<Output = ()> + Send {
        let _ = (context, org, failure);
        async {}
    }
}

/// How an attempt ended when it did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Trying again cannot help.
    #[error("{code}: {message}")]
    Permanent {
        /// Stable code.
        code: &'static str,
        /// A sentence a person can act on.
        message: Cow<'static, str>,
    },
    /// Trying again may help.
    #[error("{code}: {message}")]
    Retry {
        /// Stable code.
        code: &'static str,
        /// A sentence a person can act on.
        message: Cow<'static, str>,
        /// When the other side said when; else the kind's backoff decides.
        after: Option<Duration>,
    },
    /// Something that the job needs (a database, the object store) is away. Costs no attempt: the
    /// job comes back until it is there again.
    #[error("{code}: {message}")]
    Away {
        /// Stable code.
        code: &'static str,
        /// A sentence a person can act on.
        message: Cow<'static, str>,
    },
    /// Another worker has the job now; nothing more may be written for it.
    #[error("the lease of this job is held by another worker")]
    LeaseLost,
    /// The worker drains and the job stopped where it can go on later. Costs no attempt.
    #[error("the job was interrupted and goes on later")]
    Interrupted,
}

impl JobError {
    /// A failure for good.
    pub fn permanent(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Permanent { code, message: message.into() }
    }

    /// A failure that may pass.
    pub fn retry(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Retry { code, message: message.into(), after: None }
    }
}

impl From<sqlx::Error> for JobError {
    /// An outage is waited for; anything else is a failure that may pass.
    fn from(error: sqlx::Error) -> Self {
        let text = error.to_string();
        match Problem::from(error) {
            outage if outage.code == Code::DatabaseUnavailable => outage.into(),
            _ => Self::retry("DATABASE_ERROR", text),
        }
    }
}

impl From<Problem> for JobError {
    /// An outage is waited for, faults and "later" may pass, a refusal stays one.
    fn from(problem: Problem) -> Self {
        let code = problem.code.text();
        if matches!(
            problem.code,
            Code::DatabaseUnavailable
                | Code::KnowledgeUnavailable
                | Code::KnowledgeMisconfigured
                | Code::ObjectStoreUnavailable
                | Code::ObjectStoreMisconfigured
        ) {
            Self::Away { code, message: problem.message }
        } else if problem.status() >= 500 || problem.status() == 429 {
            Self::Retry { code, message: problem.message, after: problem.retry_after }
        } else {
            Self::Permanent { code, message: problem.message }
        }
    }
}

/// Why a job was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// A sentence a person can act on.
    pub message: String,
    /// Attempts made.
    pub attempts: u32,
}

/// How a job is enqueued. The default is: now, no deduplication.
#[derive(Debug, Clone, Default)]
pub struct EnqueueOptions {
    /// At most one job of the kind is queued under this key, and at most one runs: enqueueing
    /// again replaces the payload of the queued one. A *running* job does not absorb a new one,
    /// because it may have read the old state; the new one starts when it has ended.
    pub dedupe_key: Option<String>,
    /// Not before this much time has passed, by the database's clock.
    pub delay: Duration,
}

impl EnqueueOptions {
    /// Deduplicated by `key`.
    pub fn keyed(key: impl Into<String>) -> Self {
        Self { dedupe_key: Some(key.into()), ..Self::default() }
    }

    /// Not before `delay` has passed.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Puts `job` into the queue with `conn`: inside a transaction, it exists when that commits.
/// Returns the id of the queued job, which is an older one's when the key was queued already.
///
/// # Errors
/// The database's, or an encoding error when the payload cannot be written as JSON.
pub async fn enqueue<J: Job>(
    conn: &mut PgConnection,
    org: Option<OrgId>,
    job: &J,
    options: EnqueueOptions,
) -> Result<JobId, sqlx::Error> {
    let payload = serde_json::to_value(job).map_err(|error| sqlx::Error::Encode(error.into()))?;
    store::insert(conn, org, J::NAME, &payload, &options).await
}
