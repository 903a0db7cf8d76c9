//! Buckets of organizations, named by files that they and operators may edit (DCF-100, 101, 102).
//!
//! `$TALE_CONFIG_DIR/<organization>/object-storage/connection.json` names the bucket, the file of
//! secrets beside it holds the keys. There is no state besides ([`Remembered`]): a file that changed acts
//! on the next use in every process. Files that are there and cannot be used are an error; nothing stands
//! in for them.

use std::fmt;
use std::sync::Arc;

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tale_core::clock::SharedClock;
use tale_core::net::{HostPolicy, check_entered};
use tale_core::problem::{Issue, Problem};
use tale_orgfiles::{ConfigStore, Remembered, Scope};
use url::{Host, Url};

use crate::connection::{CONNECTION, ConnectionError, Keys, SECRETS, store_config};
use crate::store::{Store, guarded_http};

/// A bucket of an organization, without its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bucket {
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
}

impl Bucket {
    /// What is wrong with it and with `keys`, field by field.
    #[must_use]
    pub fn issues(&self, keys: &Keys) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut must = |holds: bool, field: &str, what: &str| {
            if !holds {
                issues.push(Issue::new(field, what));
            }
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        must(
            (1..=64).contains(&self.region.len()) && self.region.bytes().all(plain),
            "region",
            "must be the name of a region, such as eu-central-1: letters, digits and dashes",
        );
        let bucket = self.bucket.as_bytes();
        let inner = |byte: &u8| plain(*byte) || matches!(byte, b'.' | b'_');
        let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        must(
            (3..=63).contains(&bucket.len())
                && bucket.iter().all(inner)
                && ends(bucket.first())
                && ends(bucket.last())
                && !self.bucket.contains(".."),
            "bucket",
            "must be the name of a bucket: 3 to 63 letters, digits, dots, dashes and underscores, with a letter or digit at both ends",
        );
        if let Some(prefix) = &self.prefix {
            let parts =
                |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control);
            must(
                prefix.len() <= 256 && prefix.trim_matches('/').split('/').all(parts),
                "prefix",
                "must be at most 256 bytes of names with slashes between them",
            );
        }
        let by_name = matches!(self.endpoint.as_ref().and_then(Url::host), None | Some(Host::Domain(_)));
        must(
            self.force_path_style || by_name,
            "forcePathStyle",
            "must be on for an endpoint that is an address, because an address has no names below it",
        );
        let key = |text: &str, longest: usize| {
            (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        must(key(&keys.access_key_id, 128), "accessKeyId", "must be 1 to 128 characters without spaces");
        must(
            key(keys.secret_access_key.expose_secret(), 256),
            "secretAccessKey",
            "must be 1 to 256 characters without spaces",
        );
        issues
    }
}

struct Inner {
    files: ConfigStore,
    http: reqwest::Client,
    policy: HostPolicy,
    clock: SharedClock,
    read: Remembered<Result<Option<Store>, Arc<ConnectionError>>>,
}

/// The buckets of a deployment's organizations. Cheap to clone.
#[derive(Clone)]
pub struct Organizations(Arc<Inner>);

impl fmt::Debug for Organizations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Organizations").finish_non_exhaustive()
    }
}

impl Organizations {
    /// Named by files in `files`, at addresses that `policy` admits, judged at every connection.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(files: ConfigStore, policy: HostPolicy, clock: SharedClock) -> Result<Self, reqwest::Error> {
        let http = guarded_http(policy)?;
        Ok(Self(Arc::new(Inner { files, http, policy, clock, read: Remembered::new(CONNECTION, SECRETS) })))
    }

    /// The bucket of the organization with `slug`; `None` when it has none of its own.
    ///
    /// # Errors
    /// [`ConnectionError`] when its files are there and cannot be used.
    pub async fn store(&self, slug: &str) -> Result<Option<Store>, Arc<ConnectionError>> {
        let inner = &self.0;
        let read = inner.read.get(&inner.files, slug, || self.read_store(slug)).await;
        read.map_err(|error| Arc::new(ConnectionError::File(error)))?.unwrap_or(Ok(None))
    }

    async fn read_store(&self, slug: &str) -> Result<Option<Store>, Arc<ConnectionError>> {
        let store = match self.read(slug).await {
            Ok(None) => Ok(None),
            // Whoever wrote the file: what a person could not enter is not used.
            Ok(Some((bucket, keys))) => match self.judge(&bucket) {
                Ok(()) => self.open(&bucket, keys).map(Some).map_err(Arc::new),
                Err(refused) => Err(Arc::new(ConnectionError::Issues(vec![Issue::new("endpoint", refused.message)]))),
            },
            Err(error) => Err(Arc::new(error)),
        };
        if let Err(error) = &store {
            tracing::warn!(
                event = "object_store.misconfigured", org.slug = slug, error = %error,
                "an organization's object store cannot be used"
            );
        }
        store
    }

    /// What the files of the organization with `slug` say, whether it can be used or not.
    ///
    /// # Errors
    /// [`ConnectionError`] when they cannot be read or opened, or when the keys are missing.
    pub async fn read(&self, slug: &str) -> Result<Option<(Bucket, Keys)>, ConnectionError> {
        let (files, scope) = (&self.0.files, Scope::Organization(slug));
        let Some(bucket) = files.read::<Bucket>(scope, CONNECTION).await? else { return Ok(None) };
        match files.read_secrets(scope, SECRETS).await? {
            Some(keys) => Ok(Some((bucket, keys))),
            None => Err(ConnectionError::KeysMissing {
                connection: files.path(scope, CONNECTION),
                secrets: files.path(scope, SECRETS),
            }),
        }
    }

    /// The keys of the organization with `slug`, also where the rest cannot be used.
    pub async fn keys(&self, slug: &str) -> Option<Keys> {
        self.0.files.read_secrets(Scope::Organization(slug), SECRETS).await.ok().flatten()
    }

    /// A client for a bucket that need not be the one in the files.
    ///
    /// # Errors
    /// [`ConnectionError::Issues`].
    pub fn open(&self, bucket: &Bucket, keys: Keys) -> Result<Store, ConnectionError> {
        let issues = bucket.issues(&keys);
        if !issues.is_empty() {
            return Err(ConnectionError::Issues(issues));
        }
        let prefix = bucket.prefix.clone().unwrap_or_default();
        let style = bucket.force_path_style;
        let config = store_config(&bucket.region, bucket.endpoint.as_ref(), &bucket.bucket, prefix, style, keys)
            .ok_or_else(|| ConnectionError::Issues(vec![Issue::new("region", "must be the name of a region")]))?;
        Ok(Store::guarded(config, self.0.http.clone(), self.0.clock.clone(), self.0.policy))
    }

    /// Judges the address of a bucket as a person entered it; its name is judged as it is used.
    ///
    /// # Errors
    /// `PRIVATE_HOST_BLOCKED`, `INVALID_URL`.
    pub fn judge(&self, bucket: &Bucket) -> Result<(), Problem> {
        bucket.endpoint.as_ref().map_or(Ok(()), |endpoint| check_entered("endpoint", endpoint, self.0.policy))
    }

    /// Writes the files: the keys first, each whole or not at all.
    ///
    /// # Errors
    /// [`ConnectionError::File`].
    pub async fn save(&self, slug: &str, bucket: &Bucket, keys: &Keys) -> Result<(), ConnectionError> {
        let scope = Scope::Organization(slug);
        self.0.files.write_secrets(scope, SECRETS, keys).await?;
        Ok(self.0.files.write(scope, CONNECTION, bucket).await?)
    }

    /// Removes the files; nothing in the bucket is touched.
    ///
    /// # Errors
    /// [`ConnectionError::File`].
    pub async fn remove(&self, slug: &str) -> Result<(), ConnectionError> {
        let scope = Scope::Organization(slug);
        self.0.files.remove(scope, CONNECTION).await?;
        Ok(self.0.files.remove(scope, SECRETS).await?)
    }
}
