//! Settings of the organization's own knowledge database (DCF-103, RSD-1 to 8).
//!
//! The configuration files are the truth ([`crate::corpora`]); this is one writer of them among others, which
//! looks at a database before it names it and leaves an audit entry. Naming another database moves no
//! passages: [`Knowledge::index_everything`] reads the organization's files anew into the present one.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tale_core::net::entered;
use tale_core::{Code, Problem};
use tale_db::foreign::{Foreign, ForeignError, Report};
use tale_db::hints::{Hint, Topic, notify};
use tale_governance::audit::{self, AuditEntry};
use tale_identity::{Caller, Capability};
use tale_orgfiles::ConfigError;
use tokio::sync::Semaphore;

use crate::Knowledge;
use crate::config_files::{in_words, name_of, not_written};
use crate::corpora::{Connection, OwnFiles, SettingsError, SslMode, State};
use crate::indexing::enqueue_index;
use crate::store::{files, moves};

/// The folder of the files below the organization's.
const FOLDER: &str = "knowledge";
/// Why the stored password is not used.
const PASSWORD_ELSEWHERE: &str = "must be given again: the stored one is used only for the host, port, database and user that it was stored for, and never with weaker encryption";
/// Databases that people may have looked at in one process at once.
const LOOKS_MAX: usize = 4;
/// A look takes no longer, but for a name that is slow to resolve.
const LOOK_AGAIN: Duration = Duration::from_secs(8);

static LOOKS: Semaphore = Semaphore::const_new(LOOKS_MAX);

/// A database as a person enters it.
#[derive(Debug, Clone)]
pub struct DatabaseForm {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// The role.
    pub user: String,
    /// The password; when left out, the stored one, if the rest leads to where it belongs and is no less
    /// encrypted.
    pub password: Option<SecretString>,
    /// How the connection is encrypted.
    pub sslmode: SslMode,
}

/// What a look at a database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The server's version.
    pub server_version: String,
    /// Version of the extension `vector`.
    pub vector: Option<String>,
    /// Version of the extension `pg_search`.
    pub pg_search: Option<String>,
}

impl From<&Report> for Found {
    fn from(report: &Report) -> Self {
        Self {
            server_version: report.server_version.clone(),
            vector: report.vector.clone(),
            pg_search: report.pg_search.clone(),
        }
    }
}

/// Why the organization's own database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A stable word: `settings`, `opening`, or a reason of [`ForeignError::reason`].
    pub reason: &'static str,
    /// What the files, the network or the server said.
    pub detail: Option<String>,
}

/// Where the organization's passages are.
#[derive(Debug, Clone)]
pub struct KnowledgeDatabase {
    /// The database of its own, when its file can be read.
    pub own: Option<Connection>,
    /// What was found there, when it can be used.
    pub found: Option<Found>,
    /// Why it cannot be used.
    pub trouble: Option<Trouble>,
}

impl Knowledge {
    fn own_files(&self) -> Result<OwnFiles<'_>, Problem> {
        self.corpora().own_databases().ok_or_else(|| Problem::internal("there is no configuration directory"))
    }

    /// Where the organization's passages are, after a look whether the database is there.
    ///
    /// # Errors
    /// The caller's missing right.
    pub async fn knowledge_database(&self, caller: &Caller) -> Result<KnowledgeDatabase, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let (files, slug) = (self.own_files()?, &caller.org_slug);
        let (found, trouble) = match files.state(slug).await {
            State::Deployment => (None, None),
            State::Open(foreign) => (Some(foreign.report().into()), None),
            State::Settings(error) => (None, Some(Trouble { reason: "settings", detail: Some(said(&error, slug)) })),
            State::Failed(error) => (None, Some(Trouble { reason: error.reason(), detail: error.detail() })),
            State::Busy => (None, Some(Trouble { reason: "opening", detail: None })),
        };
        Ok(KnowledgeDatabase { own: files.connection(slug).await, found, trouble })
    }

    /// Names a database as the organization's own, after a look at it. No passages are moved.
    ///
    /// # Errors
    /// `INVALID_BODY`, `PRIVATE_HOST_BLOCKED`, `KNOWLEDGE_SAME_DATABASE`, `KNOWLEDGE_CHECK_FAILED`,
    /// `RATE_LIMITED` while many databases are being looked at, `CONFIG_NOT_WRITABLE`, the caller's missing right.
    pub async fn connect_database(&self, caller: &Caller, form: DatabaseForm) -> Result<KnowledgeDatabase, Problem> {
        let (connection, password, _) = self.looked_at(caller, form).await?;
        let mut tx = self.app().begin().await?;
        moves::lock_organization(&mut tx, caller.org).await?;
        self.record_database(&mut tx, caller, "knowledge.connect", described(&connection)).await?;
        self.own_files()?.save(&caller.org_slug, &connection, &password).await.map_err(unwritten)?;
        tx.commit().await?;
        self.knowledge_database(caller).await
    }

    /// Looks at a database and changes nothing.
    ///
    /// # Errors
    /// As [`Knowledge::connect_database`].
    pub async fn try_database(&self, caller: &Caller, form: DatabaseForm) -> Result<Found, Problem> {
        self.looked_at(caller, form).await.map(|(_, _, report)| (&report).into())
    }

    async fn looked_at(
        &self,
        caller: &Caller,
        form: DatabaseForm,
    ) -> Result<(Connection, SecretString, Report), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let files = self.own_files()?;
        let connection = Connection {
            host: form.host.trim().to_owned(),
            port: form.port,
            database: form.database.trim().to_owned(),
            user: form.user.trim().to_owned(),
            sslmode: form.sslmode,
        };
        let password = match form.password.filter(|password| !password.expose_secret().is_empty()) {
            Some(password) => password,
            None => match files.read(&caller.org_slug).await {
                Ok(Some((stored, password))) if connection.may_reuse_password_of(&stored) => password,
                Ok(Some(_)) => return Err(Problem::invalid_field("password", PASSWORD_ELSEWHERE)),
                Ok(None) | Err(_) => {
                    return Err(Problem::invalid_field("password", "must be given, because none can be read here"));
                }
            },
        };
        let config = files.config(&connection, password.clone()).map_err(|error| match error {
            SettingsError::Issues(issues) => Problem::invalid_body(issues),
            SettingsError::Host(refused) => entered("host", &refused),
            other => Problem::internal(other),
        })?;
        let _turn = LOOKS.try_acquire().map_err(|_taken| {
            Problem::new(
                Code::RateLimited,
                "Other databases are being looked at right now, and nothing was changed. Try again in a moment.",
            )
            .retry_after(LOOK_AGAIN)
        })?;
        let report = Foreign::look(&config).await.map_err(check_failed)?;
        // The deployment's may be away; then it is not this one.
        let deployment = self.corpora().deployment().identity().await;
        if deployment.is_ok_and(|deployment| *deployment == *report.identity) {
            return Err(Problem::new(
                Code::KnowledgeSameDatabase,
                "This is the deployment's own knowledge database, where the documents are already. Choose another database.",
            ));
        }
        Ok((connection, password, report))
    }

    /// Lets the organization's passages belong into the deployment's database again. What is in its own
    /// stays there, out of reach.
    ///
    /// # Errors
    /// `CONFIG_NOT_WRITABLE`, the caller's missing right.
    pub async fn disconnect_database(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let files = self.own_files()?;
        let mut tx = self.app().begin().await?;
        moves::lock_organization(&mut tx, caller.org).await?;
        if let Ok(None) = files.read(&caller.org_slug).await {
            return Ok(());
        }
        let before = files.connection(&caller.org_slug).await;
        let details = before.as_ref().map_or_else(|| json!({}), described);
        self.record_database(&mut tx, caller, "knowledge.disconnect", details).await?;
        files.remove(&caller.org_slug).await.map_err(unwritten)?;
        tx.commit().await?;
        Ok(())
    }

    /// Queues every file of the organization that has passages, or failed to get them, so that they are in
    /// the present database; how many. Files that are being read come in any case.
    ///
    /// # Errors
    /// The database's trouble, the caller's missing right.
    pub async fn index_everything(&self, caller: &Caller) -> Result<u64, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let mut tx = self.app().begin().await?;
        let queued = files::queue_all(&mut tx, caller.org, self.clock().now()).await?;
        for file in &queued {
            enqueue_index(&mut tx, caller.org, *file).await?;
        }
        if !queued.is_empty() {
            self.record_database(&mut tx, caller, "knowledge.reindex", json!({ "files": queued.len() })).await?;
            notify(&mut tx, &Hint::new(caller.org, Topic::Documents)).await?;
        }
        tx.commit().await?;
        Ok(queued.len() as u64)
    }

    /// Records an act of `caller` and tells open pages.
    async fn record_database(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        action: &'static str,
        details: Value,
    ) -> Result<(), sqlx::Error> {
        let entry = AuditEntry {
            org: Some(caller.org),
            actor: caller.actor(),
            action,
            category: "admin",
            resource_type: "knowledge_database",
            resource_id: None,
            details,
            at: self.clock().now(),
        };
        audit::record(conn, &entry).await?;
        notify(conn, &Hint::new(caller.org, Topic::Storage)).await
    }
}

fn described(connection: &Connection) -> Value {
    let Connection { host, port, database, user, sslmode } = connection;
    json!({ "host": host, "port": port, "database": database, "user": user, "sslmode": sslmode })
}

/// What is wrong with an organization's files, without where they are on the machine.
fn said(error: &SettingsError, slug: &str) -> String {
    match error {
        SettingsError::File(error) => in_words(error, slug, FOLDER),
        SettingsError::PasswordMissing(path) => {
            format!("{}: the file with the password is missing", name_of(path, slug, FOLDER))
        }
        SettingsError::Issues(_) | SettingsError::Host(_) => format!("{slug}/{FOLDER}/connection.json: {error}"),
    }
}

fn unwritten(error: SettingsError) -> Problem {
    not_written(matches!(error, SettingsError::File(ConfigError::WouldBecomePlain(_))), error)
}

/// Why a database cannot be used, in words for whoever entered it.
fn check_failed(error: ForeignError) -> Problem {
    if let ForeignError::Host(refused) = &error {
        return entered("host", refused);
    }
    let found = error.report();
    Problem::new(Code::KnowledgeCheckFailed, format!("The database cannot be used: {error}")).with_data(json!({
        "stage": error.stage(),
        "reason": error.reason(),
        "detail": error.detail(),
        "serverVersion": found.map(|found| &found.server_version),
        "vector": found.and_then(|found| found.vector.as_ref()),
        "pgSearch": found.and_then(|found| found.pg_search.as_ref()),
    }))
}
