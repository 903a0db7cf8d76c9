//! Which database holds an organization's passages: the deployment's, or one of its own (DCF-100 to 103,
//! RSD-1 to 7).
//!
//! Whoever touches the corpus asks [`Corpora::of`] for the organization, at each request and each job.
//! `$TALE_CONFIG_DIR/<organization>/knowledge/connection.json` and the file of secrets beside it decide;
//! a file that changed acts on the next use in every process. Files that cannot be used, and a
//! database that does not answer, leave that organization without a corpus: nothing stands in for it.
//!
//! A database of an organization is opened on first use: looked at, its tables brought up to date, and a
//! pool of at most [`FOREIGN_POOL_MAX`] connections made for it, which close when they idle. One process
//! knows at most [`OPEN_MAX`] of them; organizations that name the same database with the same words
//! share one. The one that was not used for the longest time makes room, unless it is in use.

mod files;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use secrecy::{ExposeSecret, SecretString};
use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres, Transaction};
use tale_core::crypto::sha256;
use tale_core::ids::OrgId;
use tale_core::net::{HostPolicy, judge_host};
use tale_core::{Code, Problem};
use tale_db::foreign::{Foreign, ForeignConfig, ForeignError, identity_of};
use tale_orgfiles::{ConfigError, ConfigStore, Remembered, Scope};
use tokio::sync::OnceCell;
use tokio::time::Instant;

pub use files::{Connection, SettingsError, SslMode};
pub use tale_db::foreign::FOREIGN_POOL_MAX;

use crate::store::{keyword, organizations};
use files::Secrets;

/// Databases of organizations that one process has open.
pub const OPEN_MAX: usize = 16;
/// How long a request waits for a database that is being opened.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a database that could not be opened is not asked again, unless its settings change.
const RETRY: Duration = Duration::from_secs(5);
/// Organizations whose short name is remembered. It never changes.
const SLUGS: usize = 4_096;

/// What a [`Corpora`] is made of besides the deployment's database.
#[derive(Debug, Clone)]
pub struct OwnDatabases {
    /// The operational database, which knows the organizations' short names.
    pub app: PgPool,
    /// The configuration files.
    pub files: ConfigStore,
    /// Which hosts are admitted.
    pub policy: HostPolicy,
    /// Authorities that are trusted besides the public ones, in PEM form.
    pub ca_file: Option<PathBuf>,
    /// Connections to each database; at most [`FOREIGN_POOL_MAX`] count.
    pub pool_max: u32,
}

type Settings = Result<Option<ForeignConfig>, Arc<SettingsError>>;
type Opening = Shared<BoxFuture<'static, Result<Arc<Foreign>, Failed>>>;

/// Why a database could not be opened, and when that was.
#[derive(Clone)]
struct Failed(Arc<ForeignError>, Instant);

struct Own {
    parts: OwnDatabases,
    slugs: Mutex<HashMap<OrgId, Arc<str>>>,
    settings: Remembered<Settings>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// By everything that its settings say, the password included.
    databases: HashMap<[u8; 32], (Opening, u64)>,
    uses: u64,
}

struct Inner {
    deployment: PgPool,
    identity: OnceCell<Arc<str>>,
    own: Option<Own>,
}

/// The corpus databases of this process. Cheap to clone.
#[derive(Clone)]
pub struct Corpora(Arc<Inner>);

impl fmt::Debug for Corpora {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpora").finish_non_exhaustive()
    }
}

impl Corpora {
    /// The deployment's database, for every organization.
    #[must_use]
    pub fn deployment_only(deployment: PgPool) -> Self {
        Self(Arc::new(Inner { deployment, identity: OnceCell::new(), own: None }))
    }

    /// The deployment's database, and the ones that files name. Nothing is read or opened yet.
    #[must_use]
    pub fn new(deployment: PgPool, own: OwnDatabases) -> Self {
        let own = Own {
            parts: own,
            slugs: Mutex::default(),
            settings: Remembered::new(files::CONNECTION, files::SECRETS),
            open: Mutex::default(),
        };
        Self(Arc::new(Inner { deployment, identity: OnceCell::new(), own: Some(own) }))
    }

    /// The deployment's own database.
    #[must_use]
    pub fn deployment(&self) -> CorpusPool {
        CorpusPool(Kind::Deployment(self.clone()))
    }

    /// The database of `org`. Ask for each request and each job, and hold it no longer.
    ///
    /// # Errors
    /// `KNOWLEDGE_MISCONFIGURED` when the organization names one of its own that cannot be used,
    /// `KNOWLEDGE_UNAVAILABLE` when it does not answer right now; the operational database's trouble.
    pub async fn of(&self, org: OrgId) -> Result<CorpusPool, Problem> {
        let Some(own) = &self.0.own else { return Ok(self.deployment()) };
        // an organization that is not there has no files either
        let Some(slug) = own.slug(org).await? else { return Ok(self.deployment()) };
        match own.settings(&slug).await {
            Ok(None) => Ok(self.deployment()),
            Ok(Some(config)) => own.open(&config, &slug).await.map(|foreign| CorpusPool(Kind::Own(foreign))),
            Err(error) => Err(misconfigured("settings").because(error)),
        }
    }

    /// Removes the configuration files of an organization that is gone, by its short name.
    ///
    /// # Errors
    /// When something stays.
    pub(crate) async fn remove_files(&self, slug: &str) -> Result<(), ConfigError> {
        match &self.0.own {
            Some(own) => own.parts.files.remove_organization(slug).await,
            None => Ok(()),
        }
    }

    /// Closes every connection, orderly.
    pub async fn close(&self) {
        let own = self.open_now();
        futures::join!(self.0.deployment.close(), futures::future::join_all(own.iter().map(|own| own.pool().close())));
    }

    /// The databases of organizations that are open here.
    pub(crate) fn open_now(&self) -> Vec<CorpusPool> {
        let Some(own) = &self.0.own else { return Vec::new() };
        let open = own.databases();
        let ready = open.databases.values().filter_map(|(opening, _)| opening.peek()?.as_ref().ok());
        ready.map(|foreign| CorpusPool(Kind::Own(Arc::clone(foreign)))).collect()
    }

    pub(crate) fn own_databases(&self) -> Option<OwnFiles<'_>> {
        self.0.own.as_ref().map(OwnFiles)
    }

    async fn identity(&self) -> Result<Arc<str>, sqlx::Error> {
        let read = async {
            let mut conn = self.0.deployment.acquire().await?;
            Ok(identity_of(&mut conn, "deployment").await?.into())
        };
        self.0.identity.get_or_try_init(|| read).await.cloned()
    }
}

impl Own {
    fn databases(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn slug(&self, org: OrgId) -> Result<Option<Arc<str>>, sqlx::Error> {
        let known = || self.slugs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slug) = known().get(&org) {
            return Ok(Some(Arc::clone(slug)));
        }
        let Some(slug) = organizations::slug(&self.parts.app, org).await? else { return Ok(None) };
        let slug: Arc<str> = slug.into();
        let mut slugs = known();
        if slugs.len() >= SLUGS {
            slugs.clear();
        }
        slugs.insert(org, Arc::clone(&slug));
        Ok(Some(slug))
    }

    async fn settings(&self, slug: &str) -> Settings {
        let read = self.settings.get(&self.parts.files, slug, || async {
            let settings = match files::read(&self.parts.files, slug).await {
                Ok(None) => Ok(None),
                Ok(Some((connection, password))) => self.config(&connection, password).map(Some).map_err(Arc::new),
                Err(error) => Err(error),
            };
            if let Err(error) = &settings {
                tracing::warn!(
                    event = "knowledge.misconfigured", org.slug = slug, error = %crate::indexing::chain(error.as_ref()),
                    "an organization's knowledge database cannot be used"
                );
            }
            settings
        });
        read.await.map_err(|error| Arc::new(SettingsError::File(error)))?.unwrap_or(Ok(None))
    }

    fn config(&self, connection: &Connection, password: SecretString) -> Result<ForeignConfig, SettingsError> {
        let issues = connection.issues(&password);
        if !issues.is_empty() {
            return Err(SettingsError::Issues(issues));
        }
        judge_host(&connection.host, self.parts.policy).map_err(SettingsError::Host)?;
        Ok(ForeignConfig {
            host: connection.host.clone(),
            port: connection.port,
            database: connection.database.clone(),
            user: connection.user.clone(),
            password,
            encryption: connection.sslmode.into(),
            ca_file: self.parts.ca_file.clone(),
            policy: self.parts.policy,
            max_connections: self.parts.pool_max,
        })
    }

    async fn open_database(&self, config: &ForeignConfig, slug: &str) -> Result<Arc<Foreign>, Option<Failed>> {
        let opening = self.opening(config, slug).ok_or(None)?;
        match tokio::time::timeout(PATIENCE, opening).await {
            Ok(opened) => opened.map_err(Some),
            Err(_slow) => Err(None),
        }
    }

    /// The database that is open, or on its way. `None` when as many are in use as may be open.
    fn opening(&self, config: &ForeignConfig, slug: &str) -> Option<Opening> {
        let key = fingerprint(config);
        let mut open = self.databases();
        open.uses += 1;
        let uses = open.uses;
        open.databases.retain(|_, (opening, _)| match opening.peek() {
            Some(Ok(foreign)) => !foreign.is_distrusted(),
            Some(Err(Failed(_, at))) => at.elapsed() < RETRY,
            None => true,
        });
        if let Some((opening, used)) = open.databases.get_mut(&key) {
            *used = uses;
            return Some(opening.clone());
        }
        if open.databases.len() >= OPEN_MAX {
            let idle = |opening: &Opening| match opening.peek() {
                Some(Ok(foreign)) => Arc::strong_count(foreign) == 1,
                Some(Err(_)) => true,
                None => false,
            };
            let oldest = open.databases.iter().filter(|(_, (opening, _))| idle(opening));
            let oldest = oldest.min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key)?;
            open.databases.remove(&oldest);
        }
        let opening = begin(config.clone(), slug.to_owned());
        open.databases.insert(key, (opening.clone(), uses));
        Some(opening)
    }

    async fn open(&self, config: &ForeignConfig, slug: &str) -> Result<Arc<Foreign>, Problem> {
        match self.open_database(config, slug).await {
            Ok(foreign) => Ok(foreign),
            Err(Some(Failed(error, _))) if error.may_pass() => Err(unavailable().because(error)),
            Err(Some(Failed(error, _))) => Err(misconfigured(error.reason()).because(error)),
            Err(None) => Err(unavailable()),
        }
    }
}

/// Opens a database in a task of its own, so that nobody who waits for it can break it off.
fn begin(config: ForeignConfig, slug: String) -> Opening {
    let task = tokio::spawn(async move {
        let opened = Foreign::open(&config).await;
        match &opened {
            Ok(foreign) => {
                tracing::info!(
                    event = "knowledge.opened",
                    org.slug = slug,
                    "opened an organization's knowledge database"
                );
                // whoever used it last may not have been here for the hour in which the others do this
                let _ = keyword::trim(foreign.pool(), crate::keyword::LOG_DAYS).await;
            }
            Err(error) => tracing::warn!(
                event = "knowledge.unavailable", org.slug = slug, stage = error.stage(), error = %error,
                "an organization's knowledge database cannot be used"
            ),
        }
        opened.map(Arc::new).map_err(|error| Failed(Arc::new(error), Instant::now()))
    });
    async move {
        task.await.unwrap_or_else(|_stopped| {
            let error = ForeignError::Unreachable("the process is stopping".to_owned());
            Err(Failed(Arc::new(error), Instant::now()))
        })
    }
    .boxed()
    .shared()
}

fn fingerprint(config: &ForeignConfig) -> [u8; 32] {
    let ForeignConfig { host, port, database, user, password, encryption, ca_file: _, policy: _, max_connections: _ } =
        config;
    // lengths first: no two settings make the same text
    let mut text = format!("{port}:{encryption:?}");
    for part in [host, database, user, password.expose_secret()] {
        text.push_str(&format!(":{}:{part}", part.len()));
    }
    sha256(text.as_bytes())
}

fn misconfigured(reason: &str) -> Problem {
    Problem::new(
        Code::KnowledgeMisconfigured,
        "This organization's own knowledge database cannot be used, so its documents can be neither searched nor indexed. An owner or admin finds the reason in Settings > Data residency.",
    )
    .with_data(serde_json::json!({ "reason": reason }))
}

fn unavailable() -> Problem {
    Problem::new(
        Code::KnowledgeUnavailable,
        "This organization's own knowledge database cannot be reached right now. Nothing was lost; try again in a moment.",
    )
    .retry_after(RETRY)
}

/// Reading and writing the files, for whoever may.
pub(crate) struct OwnFiles<'a>(&'a Own);

impl OwnFiles<'_> {
    /// What the files say, whether it can be used or not.
    pub(crate) async fn read(&self, slug: &str) -> Result<Option<(Connection, SecretString)>, Arc<SettingsError>> {
        files::read(&self.0.parts.files, slug).await
    }

    /// The connection in the files, also where the password cannot be read.
    pub(crate) async fn connection(&self, slug: &str) -> Option<Connection> {
        self.0.parts.files.read(Scope::Organization(slug), files::CONNECTION).await.ok().flatten()
    }

    /// What the settings lead to: a database that is open, or why there is none.
    pub(crate) async fn state(&self, slug: &str) -> State {
        match self.0.settings(slug).await {
            Ok(None) => State::Deployment,
            Err(error) => State::Settings(error),
            Ok(Some(config)) => match self.0.open_database(&config, slug).await {
                Ok(foreign) => State::Open(foreign),
                Err(Some(Failed(error, _))) => State::Failed(error),
                Err(None) => State::Busy,
            },
        }
    }

    /// The connection to a database that need not be the one in the files.
    pub(crate) fn config(
        &self,
        connection: &Connection,
        password: SecretString,
    ) -> Result<ForeignConfig, SettingsError> {
        self.0.config(connection, password)
    }

    /// Writes the files: the password first, each whole or not at all.
    pub(crate) async fn save(
        &self,
        slug: &str,
        connection: &Connection,
        password: &SecretString,
    ) -> Result<(), SettingsError> {
        let (files, scope) = (&self.0.parts.files, Scope::Organization(slug));
        files.write_secrets(scope, files::SECRETS, &Secrets { password: password.clone() }).await?;
        files.write(scope, files::CONNECTION, connection).await?;
        // whoever saves has looked: what failed a moment ago is asked again at once
        self.0.databases().databases.retain(|_, (opening, _)| !matches!(opening.peek(), Some(Err(_))));
        Ok(())
    }

    /// Removes the files; nothing in the database is touched.
    pub(crate) async fn remove(&self, slug: &str) -> Result<(), SettingsError> {
        let (files, scope) = (&self.0.parts.files, Scope::Organization(slug));
        files.remove(scope, files::CONNECTION).await?;
        Ok(files.remove(scope, files::SECRETS).await?)
    }
}

/// What an organization's settings lead to.
pub(crate) enum State {
    /// There are none.
    Deployment,
    /// The database is open.
    Open(Arc<Foreign>),
    /// The files cannot be used.
    Settings(Arc<SettingsError>),
    /// The database cannot be used.
    Failed(Arc<ForeignError>),
    /// It takes long, or too many others are in use.
    Busy,
}

#[derive(Clone)]
enum Kind {
    Deployment(Corpora),
    Own(Arc<Foreign>),
}

/// The database of one organization's corpus. Cheap to clone; while there is one, the database stays open.
#[derive(Clone)]
pub struct CorpusPool(Kind);

impl fmt::Debug for CorpusPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorpusPool").field("own", &self.is_own()).finish_non_exhaustive()
    }
}

impl CorpusPool {
    /// Whether it is one that an organization named.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self.0, Kind::Own(_))
    }

    /// Its connections.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        match &self.0 {
            Kind::Deployment(corpora) => &corpora.0.deployment,
            Kind::Own(foreign) => foreign.pool(),
        }
    }

    /// Tells this database apart from every other one, however it is spelled.
    ///
    /// # Errors
    /// The deployment's database's, the first time.
    pub async fn identity(&self) -> Result<Arc<str>, sqlx::Error> {
        match &self.0 {
            Kind::Deployment(corpora) => corpora.identity().await,
            Kind::Own(foreign) => Ok(Arc::clone(foreign.identity())),
        }
    }

    /// A connection of its own.
    ///
    /// # Errors
    /// As [`CorpusPool::problem`].
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, Problem> {
        self.pool().acquire().await.map_err(|error| self.problem(error))
    }

    /// A transaction of its own.
    ///
    /// # Errors
    /// As [`CorpusPool::problem`].
    pub async fn begin(&self) -> Result<Transaction<'static, Postgres>, Problem> {
        self.pool().begin().await.map_err(|error| self.problem(error))
    }

    /// What an error of this database means: it may be another one than the operational one, and then has
    /// its own code. A database of an organization that refuses us, or has lost our tables, is looked
    /// at anew on its next use.
    pub(crate) fn problem(&self, error: sqlx::Error) -> Problem {
        if let Kind::Own(foreign) = &self.0
            && let Some(code) = error.as_database_error().and_then(|error| error.code())
            && (code.starts_with("28") || matches!(code.as_ref(), "3D000" | "3F000" | "42P01" | "42501"))
        {
            foreign.distrust();
            return unavailable().because(error);
        }
        let problem = Problem::from(error);
        if problem.code != Code::DatabaseUnavailable {
            return problem;
        }
        let mut own = match self.0 {
            Kind::Own(_) => unavailable(),
            Kind::Deployment(_) => Problem::new(
                Code::KnowledgeUnavailable,
                "The knowledge database cannot be reached right now. Try again in a moment.",
            )
            .retry_after(RETRY),
        };
        own.source = problem.source;
        own
    }
}
