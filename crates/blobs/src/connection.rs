//! The deployment's object store, as a file that follows the environment.
//!
//! `$TALE_CONFIG_DIR/default/object-storage/connection.json` and its file of secrets say where the
//! objects are. At every start the file is brought in step with the `OBJECT_STORE_*` variables,
//! unless an operator has taken it over:
//!
//! | File | `managedBy` | Environment | Outcome |
//! | --- | --- | --- | --- |
//! | absent | | keys present | [`Outcome::Seeded`] |
//! | present | `environment` | differs | [`Outcome::Reconciled`] |
//! | present | `environment` | equal | [`Outcome::Unchanged`] |
//! | present | absent | names the same bucket and endpoint | [`Outcome::Adopted`] |
//! | present | absent | names another | [`Outcome::Kept`] |
//! | present | `operator` | anything | [`Outcome::Ignored`] |
//! | any but an operator's | | keys missing | [`Outcome::Skipped`] |
//!
//! A file that is there but cannot be used stops the start: bytes must not go to another place than
//! the one that was written down. Several processes may start at once: each file is replaced whole,
//! the secrets first, and all of them write the same.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;
use tale_orgfiles::{ConfigError, ConfigStore, FilePath, Scope};
use url::Url;

use crate::store::StoreConfig;

/// Where objects are.
pub const CONNECTION: FilePath = FilePath("object-storage/connection.json");
/// The keys to them.
pub const SECRETS: FilePath = FilePath("object-storage/connection.secrets.json");

/// Who keeps a connection file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManagedBy {
    /// It follows the `OBJECT_STORE_*` variables.
    Environment,
    /// A person edits it, the variables are ignored.
    Operator,
}

/// An object store without its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connection {
    /// Region that signatures name.
    pub region: String,
    /// The store's address; AWS S3 in `region` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Url>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    pub force_path_style: bool,
    /// The bucket.
    pub bucket: String,
    /// Put before every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Where browsers reach the store; the endpoint when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_endpoint: Option<Url>,
    /// Who keeps this file; nobody in files of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<ManagedBy>,
}

/// The keys of a store.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Keys {
    /// The access key's id.
    pub access_key_id: String,
    /// The access key's secret.
    #[serde(with = "tale_orgfiles::secret")]
    pub secret_access_key: SecretString,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.access_key_id == other.access_key_id
            && self.secret_access_key.expose_secret() == other.secret_access_key.expose_secret()
    }
}

/// What a start made of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Written for the first time.
    Seeded,
    /// Brought in step with the environment.
    Reconciled,
    /// In step already.
    Unchanged,
    /// A file of an older release that names the same store is kept in step from now on.
    Adopted,
    /// A file of an older release that names another store stays as a person wrote it.
    Kept,
    /// An operator keeps it.
    Ignored,
    /// The environment names no keys: nothing was written, a file that exists stays in use.
    Skipped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seeded => "seeded",
            Self::Reconciled => "reconciled",
            Self::Unchanged => "unchanged",
            Self::Adopted => "adopted",
            Self::Kept => "kept",
            Self::Ignored => "ignored",
            Self::Skipped => "skipped",
        })
    }
}

/// Why the connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// A file cannot be read, opened or written.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// The connection is there and its keys are not.
    #[error("{} names an object store and {} with its keys is missing", .connection.display(), .secrets.display())]
    KeysMissing {
        /// The connection.
        connection: std::path::PathBuf,
        /// Where the keys should be.
        secrets: std::path::PathBuf,
    },
    /// A value is not one of its kind; there is at least one.
    #[error("`{}` {}", .0[0].path, .0[0].message)]
    Issues(Vec<Issue>),
}

/// Brings the deployment's file in step with `environment` (`None` when the variables name no pair
/// of keys) and returns the store to use, if any.
///
/// # Errors
/// [`ConnectionError`] when a file that is there cannot be used.
pub async fn reconcile(
    files: &ConfigStore,
    environment: Option<(Connection, Keys)>,
) -> Result<(Outcome, Option<(Connection, Keys)>), ConnectionError> {
    let present = read(files).await?;
    let Some((wanted, keys)) = environment else {
        let outcome = match &present {
            Some((connection, _)) if connection.managed_by == Some(ManagedBy::Operator) => Outcome::Ignored,
            _ => Outcome::Skipped,
        };
        return Ok((outcome, present));
    };
    let wanted = (Connection { managed_by: Some(ManagedBy::Environment), ..wanted }, keys);
    let outcome = match &present {
        None => Outcome::Seeded,
        Some((connection, _)) if connection.managed_by == Some(ManagedBy::Operator) => Outcome::Ignored,
        Some(same) if *same == wanted => Outcome::Unchanged,
        Some((connection, _)) if connection.managed_by.is_some() => Outcome::Reconciled,
        Some((connection, _)) if connection.bucket == wanted.0.bucket && connection.endpoint == wanted.0.endpoint => {
            Outcome::Adopted
        }
        Some(_) => Outcome::Kept,
    };
    match outcome {
        Outcome::Seeded | Outcome::Reconciled | Outcome::Adopted => {
            files.write_secrets(Scope::Deployment, SECRETS, &wanted.1).await?;
            files.write(Scope::Deployment, CONNECTION, &wanted.0).await?;
            Ok((outcome, Some(wanted)))
        }
        _ => Ok((outcome, present)),
    }
}

async fn read(files: &ConfigStore) -> Result<Option<(Connection, Keys)>, ConnectionError> {
    let Some(connection) = files.read::<Connection>(Scope::Deployment, CONNECTION).await? else { return Ok(None) };
    match files.read_secrets(Scope::Deployment, SECRETS).await? {
        Some(keys) => Ok(Some((connection, keys))),
        None => Err(ConnectionError::KeysMissing {
            connection: files.path(Scope::Deployment, CONNECTION),
            secrets: files.path(Scope::Deployment, SECRETS),
        }),
    }
}

impl Connection {
    /// What the client needs. `site_origins` are those of this deployment (DCF-91).
    #[must_use]
    pub fn store_config(&self, keys: Keys, site_origins: Vec<Url>) -> Option<StoreConfig> {
        let prefix = self.prefix.clone().unwrap_or_default();
        let style = self.force_path_style;
        let config = store_config(&self.region, self.endpoint.as_ref(), &self.bucket, prefix, style, keys)?;
        Some(StoreConfig { public_endpoint: self.public_endpoint.clone(), site_origins, ..config })
    }
}

/// A store that browsers reach where we do; `None` when nothing says where that is.
pub(crate) fn store_config(
    region: &str,
    endpoint: Option<&Url>,
    bucket: &str,
    prefix: String,
    path_style: bool,
    keys: Keys,
) -> Option<StoreConfig> {
    Some(StoreConfig {
        endpoint: endpoint.cloned().or_else(|| aws_endpoint(region))?,
        public_endpoint: None,
        site_origins: Vec::new(),
        region: region.to_owned(),
        bucket: bucket.to_owned(),
        prefix,
        path_style,
        access_key: keys.access_key_id,
        secret_key: keys.secret_access_key,
    })
}

/// The regional address of AWS S3; `None` for a region that is no name.
fn aws_endpoint(region: &str) -> Option<Url> {
    let china = if region.starts_with("cn-") { ".cn" } else { "" };
    let name = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    name.then(|| Url::parse(&format!("https://s3.{region}.amazonaws.com{china}")).ok()).flatten()
}
