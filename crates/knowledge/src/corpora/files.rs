//! The files that name an organization's own knowledge database (DCF-100, RSD-3).

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tale_core::net::HostRefused;
use tale_core::problem::Issue;
use tale_db::foreign::Encryption;
use tale_orgfiles::{ConfigError, ConfigStore, FilePath, Scope};

/// Where the database is.
pub(super) const CONNECTION: FilePath = FilePath("knowledge/connection.json");
/// The password.
pub(super) const SECRETS: FilePath = FilePath("knowledge/connection.secrets.json");

/// How a connection is encrypted, in the words of Postgres, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Not at all.
    Disable,
    /// Encrypted, whoever the server is.
    #[default]
    Require,
    /// With a certificate of a trusted authority.
    VerifyCa,
    /// With such a certificate for the host's name.
    VerifyFull,
}

impl From<SslMode> for Encryption {
    fn from(mode: SslMode) -> Self {
        match mode {
            SslMode::Disable => Self::Disable,
            SslMode::Require => Self::Require,
            SslMode::VerifyCa => Self::VerifyCa,
            SslMode::VerifyFull => Self::VerifyFull,
        }
    }
}

/// A knowledge database of an organization, without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connection {
    /// A name or an address.
    pub host: String,
    /// The port; 5432 when left out.
    #[serde(default = "usual_port")]
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// The role.
    pub user: String,
    /// How the connection is encrypted; `require` when left out.
    #[serde(default)]
    pub sslmode: SslMode,
}

fn usual_port() -> u16 {
    5432
}

/// What the file of secrets holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secrets {
    #[serde(with = "tale_orgfiles::secret")]
    pub(super) password: SecretString,
}

impl Connection {
    /// Whether a password that is stored for `stored` may be sent here: to the same server, database and user,
    /// and no less protected.
    #[must_use]
    pub fn may_reuse_password_of(&self, stored: &Self) -> bool {
        self.host == stored.host
            && self.port == stored.port
            && self.database == stored.database
            && self.user == stored.user
            && self.sslmode >= stored.sslmode
    }

    /// What is wrong with it and with `password`, field by field.
    #[must_use]
    pub fn issues(&self, password: &SecretString) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut must = |holds: bool, field: &str, what: &str| {
            if !holds {
                issues.push(Issue::new(field, what));
            }
        };
        let host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        must(
            (1..=253).contains(&self.host.len()) && self.host.bytes().all(host),
            "host",
            "must be the name or the address of a server, such as db.example.com, without a port",
        );
        must(self.port > 0, "port", "must be a port, such as 5432");
        let name = |text: &str| (1..=63).contains(&text.len()) && !text.contains(char::is_control);
        must(name(&self.database), "database", "must be the name of a database: 1 to 63 bytes");
        must(name(&self.user), "user", "must be the name of a user: 1 to 63 bytes");
        let password = password.expose_secret();
        must((1..=1_024).contains(&password.len()) && !password.contains('\0'), "password", "must be 1 to 1,024 bytes");
        issues
    }
}

/// Why an organization's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file is there and cannot be used.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// A database is named and there is no password to it.
    #[error("the file with the password is missing: {}", .0.display())]
    PasswordMissing(PathBuf),
    /// A field cannot be used.
    #[error("{}", .0.iter().map(|issue| format!("`{}` {}", issue.path, issue.message)).collect::<Vec<_>>().join("; "))]
    Issues(Vec<Issue>),
    /// The host may not be called.
    #[error("`host` is refused: {0}")]
    Host(HostRefused),
}

/// What the files of the organization with `slug` say, whether it can be used or not.
pub(super) async fn read(
    files: &ConfigStore,
    slug: &str,
) -> Result<Option<(Connection, SecretString)>, Arc<SettingsError>> {
    let scope = Scope::Organization(slug);
    let failed = |error| Arc::new(SettingsError::File(error));
    let Some(connection) = files.read::<Connection>(scope, CONNECTION).await.map_err(failed)? else { return Ok(None) };
    match files.read_secrets::<Secrets>(scope, SECRETS).await.map_err(failed)? {
        Some(secrets) => Ok(Some((connection, secrets.password))),
        None => Err(Arc::new(SettingsError::PasswordMissing(files.path(scope, SECRETS)))),
    }
}
