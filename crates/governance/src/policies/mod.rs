//! Policies: what an organization's administrators lay down, one typed document per key (POL-1).
//!
//! The database decides. Beside each policy stands a file for the operator, and this is how the two
//! stay together:
//!
//! - A save writes the row, its audit entry and then the file, all while it holds the organization's
//!   row, so that nothing else changes either meanwhile.
//! - A file that somebody wrote or changed counts: it becomes the policy, with an audit entry of the
//!   platform's, as soon as a process sees it (within [`MAX_AGE`]). One that cannot be read makes the
//!   policy unusable until it is mended or an administrator saves over it: it is never read as "on", and
//!   never passed over (POL-5).
//! - A file that Tale wrote and nobody touched is only a copy. A stale one is written anew; that a file
//!   is missing changes nothing.
//!
//! Growth: an organization's policies are read together (two statements and a look at the folder) at
//! most every [`MAX_AGE`] and held in memory for [`MAX_ORGS`] organizations; a change is announced to
//! every process, so the next request there reads anew (POL-6).

mod cache;
mod default_models;
mod login_policy;
mod mirror;
mod model_access;
mod model_sync;
mod password_policy;
mod retention_policy;
mod sandbox_quota;
mod sandbox_workspaces;
mod saving;
mod scope;
mod session_idle_timeout;
mod store;
mod transcription_model;
mod two_factor;
mod upload_policy;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use tale_core::clock::SharedClock;
use tale_core::ids::{OrgId, TeamId, UserId};
use tale_core::problem::Issue;
use tale_core::{Code, Problem, strict};
use tale_orgfiles::{ConfigStore, FilePath};

use crate::budgets::BudgetRules;

pub use default_models::{DefaultModels, DefaultRule};
pub use login_policy::LoginRules;
pub use model_access::{AccessMode, AccessRule, ModelAccess, ModelApi, ModelRules};
pub use model_sync::ModelSync;
pub use password_policy::PasswordRules;
pub use retention_policy::RetentionPolicy;
pub use sandbox_quota::SandboxQuota;
pub use sandbox_workspaces::{SandboxWorkspaces, WorkspacesRule};
pub use scope::{Person, Scope};
pub use session_idle_timeout::SessionIdleTimeout;
pub use transcription_model::TranscriptionModelPin;
pub use two_factor::TwoFactorPolicy;
pub use upload_policy::{SizeLimit, Upload, UploadPolicy};

/// Oldest state of an organization's policies that a process acts on.
pub const MAX_AGE: Duration = Duration::from_secs(30);

/// Organizations whose policies one process holds.
pub const MAX_ORGS: usize = 4_096;

/// The notification channel that announces changes; the payload is the organization.
const CHANNEL: &str = "tale_policies";

/// A document with rules of its own, besides the kinds of its fields.
pub(crate) trait Policy: Serialize + DeserializeOwned + Default {
    /// What is wrong with it, field by field.
    fn check(&self) -> Vec<Issue>;

    /// Why a save of it is refused, where that has a code of its own. What it refuses [`Policy::check`] finds as well.
    fn refusal(&self) -> Option<Problem> {
        None
    }
}

/// Who may read a policy; every one is written by owners and admins (POL-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Whoever writes it.
    Admins,
    /// Every member.
    Members,
}

/// A policy as it is now.
#[derive(Debug, Clone)]
pub struct Current<P> {
    key: Key,
    value: Arc<P>,
    unreadable: Option<String>,
}

impl<P> Current<P> {
    /// The policy.
    ///
    /// # Errors
    /// `POLICY_UNREADABLE` while its document cannot be read.
    pub fn usable(&self) -> Result<&Arc<P>, Problem> {
        match &self.unreadable {
            None => Ok(&self.value),
            Some(_) => Err(Problem::new(
                Code::PolicyUnreadable,
                format!(
                    "The organization's policy `{}` cannot be read, so nothing that depends on it is done. Settings > Governance shows administrators why; they mend it there or in its file.",
                    self.key.text()
                ),
            )
            .with_data(serde_json::json!({ "policy": self.key.text() }))),
        }
    }
}

/// A policy for whoever edits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The document with every field; the last one that could be read, where the present one cannot.
    pub value: Value,
    /// Counts the writes; 0 = never written.
    pub version: i64,
    /// Why the present document cannot be read.
    pub unreadable: Option<String>,
}

macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident $field:ident $type:ty = $text:literal $file:literal for $readers:ident;)+) => {
        /// A policy's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Key { $($(#[$doc])* $variant),+ }

        impl Key {
            /// Every policy that this release acts on.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The key on the wire and in the database.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Who may read it.
            #[must_use]
            pub fn readers(self) -> Readers {
                match self { $(Self::$variant => Readers::$readers),+ }
            }

            fn file(self) -> FilePath {
                match self { $(Self::$variant => FilePath(concat!("governance/", $file, ".yml"))),+ }
            }

            /// Why a save of the document is refused, where that has a code of its own.
            fn refusal(self, value: &Value) -> Option<Problem> {
                match self { $(Self::$variant => strict::read::<$type>(value.clone()).ok()?.refusal()),+ }
            }

            /// The document with its defaults filled in, or what is wrong with it.
            fn normal(self, value: Value) -> Result<Value, Vec<Issue>> {
                match self { $(Self::$variant => typed::<$type>(value).and_then(|policy| written(&policy))),+ }
            }
        }

        /// The policies of an organization.
        #[derive(Debug)]
        pub struct OrgPolicies {
            $($(#[$doc])* pub $field: Current<$type>,)+
            /// Who is in the teams that rules name.
            teams: HashMap<TeamId, HashSet<UserId>>,
        }

        impl OrgPolicies {
            /// `of` gives each policy's document as it was stored.
            fn read(mut of: impl FnMut(Key) -> Document) -> Self {
                Self { $($field: current(Key::$variant, of(Key::$variant)),)+ teams: HashMap::new() }
            }
        }
    };
}

impl Policy for BudgetRules {
    fn check(&self) -> Vec<Issue> {
        self.issues()
    }
}

policies! {
    /// Which models people may use, and the endpoints for API keys.
    ModelAccess model_access ModelAccess = "model_access" "model-access" for Admins;
    /// Which model answers when nobody picks one.
    DefaultModels default_models DefaultModels = "default_models" "default-models" for Members;
    /// How much may be used.
    Budgets budgets BudgetRules = "budgets" "budgets" for Admins;
    /// Which model hears recordings.
    TranscriptionModel transcription_model TranscriptionModelPin = "transcription_model" "transcription-model" for Admins;
    /// Whether lists of models are read again by themselves.
    ModelSync model_sync ModelSync = "model_sync" "model-sync" for Admins;
    /// How wrong passwords are slowed down.
    LoginPolicy login_policy LoginRules = "login_policy" "login-policy" for Admins;
    /// What new passwords must be.
    PasswordPolicy password_policy PasswordRules = "password_policy" "password-policy" for Admins;
    /// What may be uploaded.
    UploadPolicy upload_policy UploadPolicy = "upload_policy" "upload-policy" for Members;
    /// How long sessions may be idle.
    SessionIdleTimeout session_idle_timeout SessionIdleTimeout = "session_idle_timeout" "session-idle-timeout" for Members;
    /// Whether people need a second factor.
    TwoFactor two_factor TwoFactorPolicy = "two_factor_policy" "two-factor-policy" for Admins;
    /// How many sandboxes run at the same time.
    SandboxQuota sandbox_quota SandboxQuota = "sandbox_quota" "sandbox-quota" for Admins;
    /// When files of sandboxes that nobody uses are deleted.
    SandboxWorkspaces sandbox_workspaces SandboxWorkspaces = "sandbox_workspaces" "sandbox-workspaces" for Admins;
    /// How long records are kept.
    Retention retention_policy RetentionPolicy = "retention_policy" "retention-policy" for Admins;
}

impl OrgPolicies {
    /// The teams that a rule about models or a limit names.
    fn named_teams(&self) -> Vec<TeamId> {
        let access = self.model_access.value.rules.iter().map(|rule| (rule.scope, rule.scope_id.as_deref()));
        let defaults = self.default_models.value.rules.iter().map(|rule| (rule.scope, rule.scope_id.as_deref()));
        let team = |(scope, id): (Scope, Option<&str>)| id.filter(|_| scope == Scope::Team)?.parse().ok();
        access
            .chain(defaults)
            .filter_map(team)
            .chain(self.budgets.value.teams())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// The teams of a person, as far as rules name them, in a fixed order.
    #[must_use]
    pub fn teams_of(&self, user: UserId) -> Vec<TeamId> {
        let inside = self.teams.iter().filter(|(_, people)| people.contains(&user));
        let mut teams: Vec<TeamId> = inside.map(|(team, _)| *team).collect();
        teams.sort_unstable();
        teams
    }

    /// The rules about models as they are for `who`.
    ///
    /// # Errors
    /// `POLICY_UNREADABLE` while the rules of access cannot be read. Defaults that cannot be read are none.
    pub fn model_rules(&self, who: Person) -> Result<ModelRules, Problem> {
        Ok(ModelRules {
            who,
            teams: who.user.into_iter().flat_map(|user| self.teams_of(user)).chain(who.team).collect(),
            access: self.model_access.usable()?.clone(),
            defaults: self.default_models.usable().cloned().unwrap_or_default(),
        })
    }
}

impl Key {
    /// The policy called `text`.
    ///
    /// # Errors
    /// `POLICY_UNKNOWN`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::ALL.iter().copied().find(|key| key.text() == text).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|key| key.text()).collect();
            Problem::new(Code::PolicyUnknown, format!("There is no such policy. There are: {}.", known.join(", ")))
        })
    }

    fn defaults(self) -> Value {
        self.normal(Value::Object(serde_json::Map::new())).unwrap_or_default()
    }
}

fn typed<P: Policy>(value: Value) -> Result<P, Vec<Issue>> {
    let policy: P = strict::read(value).map_err(|issue| vec![issue])?;
    let issues = policy.check();
    if issues.is_empty() { Ok(policy) } else { Err(issues) }
}

fn written<P: Policy>(policy: &P) -> Result<Value, Vec<Issue>> {
    serde_json::to_value(policy).map_err(|error| vec![Issue::new("", error.to_string())])
}

fn current<P: Policy>(key: Key, document: Document) -> Current<P> {
    let (value, unreadable) = match (document.unreadable, typed::<P>(document.value)) {
        (None, Ok(policy)) => (policy, None),
        (None, Err(issues)) => (P::default(), Some(problem_words(&issues))),
        (Some(reason), _) => (P::default(), Some(reason)),
    };
    Current { key, value: Arc::new(value), unreadable }
}

/// The first thing that is wrong, as a sentence without a full stop.
fn problem_words(issues: &[Issue]) -> String {
    match issues.first() {
        Some(issue) if issue.path.is_empty() => format!("the document {}", issue.message),
        Some(issue) => format!("`{}` {}", issue.path, issue.message),
        None => "it cannot be read".to_owned(),
    }
}

fn too_long(path: &str, length: usize, most: usize) -> Vec<Issue> {
    if length > most { vec![Issue::new(path, format!("must have at most {most} entries"))] } else { Vec::new() }
}

fn name_issue(path: &str, name: &str, most: usize) -> Option<Issue> {
    let fits = (1..=most).contains(&name.chars().count()) && !name.contains(char::is_control) && name.trim() == name;
    (!fits).then(|| Issue::new(path, format!("must be 1 to {most} characters without spaces around them")))
}

/// Tells every process, when the transaction commits, that what policies mean in `org` changed: who is in a team.
///
/// # Errors
/// The database's, when the statement fails.
pub async fn announce(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    store::announce(conn, org).await
}

/// The policies of a deployment's organizations. Cheap to clone; clones share their memory.
#[derive(Clone)]
pub struct Policies(Arc<Inner>);

struct Inner {
    pool: PgPool,
    clock: SharedClock,
    files: ConfigStore,
    cache: cache::Cache,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies").finish_non_exhaustive()
    }
}

impl Policies {
    /// In the application database behind `pool`, mirrored into `files`. Have [`Policies::follow`] run
    /// beside it.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock, files: ConfigStore) -> Self {
        Self(Arc::new(Inner { pool, clock, files, cache: cache::Cache::default() }))
    }

    /// The policies of `org`, as they were at most [`MAX_AGE`] ago.
    ///
    /// # Errors
    /// `DATABASE_UNAVAILABLE`, when nothing recent is held; `NOT_FOUND` for an organization that is gone.
    pub async fn of(&self, org: OrgId) -> Result<Arc<OrgPolicies>, Problem> {
        let inner = &self.0;
        if let Some(held) = inner.cache.get(org, inner.clock.now()) {
            return Ok(held);
        }
        let ticket = inner.cache.ticket();
        let now = inner.clock.now();
        let documents = self.documents(org).await?;
        let mut policies = OrgPolicies::read(|key| documents.of(key));
        let named = policies.named_teams();
        if !named.is_empty() {
            for (team, user) in store::in_teams(&mut *inner.pool.acquire().await?, org, &named).await? {
                policies.teams.entry(team).or_default().insert(user);
            }
        }
        let policies = Arc::new(policies);
        inner.cache.put(org, ticket, now, policies.clone());
        Ok(policies)
    }

    /// The rules about models as they are for `who` now (MOD-56).
    ///
    /// # Errors
    /// As [`Policies::of`], and `POLICY_UNREADABLE` while the rules of access cannot be read. Defaults
    /// that cannot be read are none.
    pub async fn model_rules(&self, org: OrgId, who: Person) -> Result<ModelRules, Problem> {
        self.of(org).await?.model_rules(who)
    }

    /// The policies of `org` exactly as they are stored, for a transaction that holds the organization's row.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn held(&self, conn: &mut PgConnection, org: OrgId) -> Result<OrgPolicies, Problem> {
        let rows = store::list(conn, org).await?;
        let row = |key: Key| rows.iter().find(|row| row.key == key.text());
        Ok(OrgPolicies::read(|key| saving::document(key, row(key), None)))
    }

    /// Reads the policies of `org` anew when they are next wanted.
    pub fn forget(&self, org: OrgId) {
        self.0.cache.forget(org);
    }

    /// Hears of changes by other processes for as long as it is polled.
    pub async fn follow(&self) {
        let mut listener = tale_db::channels::ChannelListener::new(&self.0.pool, &[CHANNEL]);
        loop {
            match listener.next().await {
                tale_db::channels::ChannelEvent::Resync => self.0.cache.clear(),
                tale_db::channels::ChannelEvent::Notification { payload, .. } => match payload.parse() {
                    Ok(org) => self.0.cache.forget(org),
                    Err(_) => self.0.cache.clear(),
                },
            }
        }
    }
}
