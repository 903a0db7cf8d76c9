//! The room's one handle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::PgPool;
use tale_core::Problem;
use tale_core::clock::SharedClock;
use tale_core::ids::{CodeRunId, OrgId, UserId};
use tale_governance::policies::Policies;
use tale_sandbox_wire::names::{Profile, SessionId};
use tale_sandbox_wire::sign::Key;
use tokio::sync::Notify;
use url::Url;
use uuid::Uuid;

use crate::client::Spawner;
use crate::follow::News;

/// What an operator set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the spawner is.
    pub url: Url,
    /// The key that both share.
    pub key: Key,
    /// The profile of new workspaces.
    pub profile: Profile,
}

/// The platform's side of sandboxes. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Workshop(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: PgPool,
    pub clock: SharedClock,
    pub policies: Policies,
    pub spawner: Spawner,
    pub profile: Profile,
    /// This process, as the rows name it.
    pub me: Uuid,
    /// Held while sandboxes of deleted organizations are removed.
    pub teardown: Arc<tokio::sync::Mutex<()>>,
    attended: Mutex<HashMap<CodeRunId, Arc<Notify>>>,
    pub news: Mutex<News>,
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop").finish_non_exhaustive()
    }
}

impl Workshop {
    /// On the application database behind `db`, with the spawner of `settings`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(db: PgPool, clock: SharedClock, policies: Policies, settings: Settings) -> Result<Self, reqwest::Error> {
        let spawner = Spawner::new(&settings.url, settings.key, clock.clone())?;
        Ok(Self(Arc::new(Inner {
            db,
            clock,
            policies,
            spawner,
            profile: settings.profile,
            me: Uuid::new_v4(),
            teardown: Arc::default(),
            attended: Mutex::default(),
            news: Mutex::default(),
        })))
    }

    /// Announces that this process attends to `run`: what the answer gives is woken when somebody wants it stopped.
    pub(crate) fn attend_to(&self, run: CodeRunId) -> Attended {
        let wake = Arc::new(Notify::new());
        held(&self.0.attended).insert(run, Arc::clone(&wake));
        Attended { workshop: self.clone(), run, wake }
    }

    /// Has the run looked at again, when this process attends to it.
    pub(crate) fn wake(&self, run: CodeRunId) {
        if let Some(wake) = held(&self.0.attended).get(&run) {
            wake.notify_one();
        }
    }
}

/// A run that this process attends to, until this is dropped.
pub(crate) struct Attended {
    workshop: Workshop,
    run: CodeRunId,
    pub wake: Arc<Notify>,
}

impl Drop for Attended {
    fn drop(&mut self) {
        held(&self.workshop.0.attended).remove(&self.run);
    }
}

pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session of a person's own workspace: the same each time (SBX-9), and nobody else's.
pub(crate) fn session_of(org: OrgId, user: UserId) -> Result<SessionId, Problem> {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("code/{org}/{user}").as_bytes());
    let name = digest[..16].iter().fold("code-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    SessionId::new(name).map_err(Problem::internal)
}
