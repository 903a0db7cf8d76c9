//! The kinds of jobs a worker knows, with their types erased.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tale_core::ids::OrgId;

use crate::backoff::Backoff;
use crate::job::{Failure, Job, JobError};
use crate::lease::Lease;

type Run = dyn Fn(Value, Arc<Lease>) -> BoxFuture<'static, Result<(), JobError>> + Send + Sync;
type GivenUp = dyn Fn(Value, Option<OrgId>, Failure) -> BoxFuture<'static, ()> + Send + Sync;

/// One kind.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) per_org: u32,
    pub(crate) max_attempts: u32,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) resumes: bool,
    pub(crate) run: Arc<Run>,
    pub(crate) given_up: Arc<GivenUp>,
}

/// All kinds, by name.
pub(crate) type Registry = HashMap<&'static str, Kind>;

/// The erased form of `J` working in `context`.
pub(crate) fn kind<J: Job>(context: Arc<J::Context>) -> Kind {
    let for_failure = Arc::clone(&context);
    Kind {
        per_org: J::PER_ORG.max(1),
        max_attempts: J::MAX_ATTEMPTS.max(1),
        timeout: J::TIMEOUT,
        backoff: J::BACKOFF,
        resumes: J::RESUMES,
        run: Arc::new(move |payload, lease| {
            let context = Arc::clone(&context);
            Box::pin(async move {
                let job: J = serde_json::from_value(payload).map_err(|error| {
                    JobError::permanent("JOB_UNREADABLE", format!("this release cannot read the job: {error}"))
                })?;
                job.run(&context, &lease).await
            })
        }),
        given_up: Arc::new(move |payload, org, failure| {
            let context = Arc::clone(&for_failure);
            Box::pin(async move {
                if let Ok(job) = serde_json::from_value::<J>(payload) {
                    job.given_up(&context, org, &failure).await;
                }
            })
        }),
    }
}
