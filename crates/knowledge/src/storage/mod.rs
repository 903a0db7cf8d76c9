//! Where an organization's files are: in the deployment's object store, or in a bucket of its own
//! (DCF-100 to 106).
//!
//! The configuration files are the truth ([`tale_blobs::organization`]); this is one writer of them
//! among others, which tries a bucket out before it names it and leaves an audit entry.
//! [`moving`] brings what is in the deployment's store to the bucket.

mod moving;

pub use moving::{Move, MoveFiles, MoveState};

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::PgConnection;
use tale_blobs::check::{CheckError, Step};
use tale_blobs::connection::{ConnectionError, Keys};
use tale_blobs::organization::Bucket;
use tale_blobs::{BlobError, BlobKey, Organizations, SignedRequest, Store};
use tale_core::net::invalid_url;
use tale_core::{Code, Problem};
use tale_db::hints::{Hint, Topic, notify};
use tale_governance::audit::{self, AuditEntry};
use tale_identity::{Caller, Capability};
use tale_orgfiles::ConfigError;
use url::Url;
use uuid::Uuid;

use crate::Knowledge;
use crate::config_files::{in_words, name_of, not_written};
use crate::store::moves;

/// The folder of the files below the organization's.
const FOLDER: &str = "object-storage";
/// How long the browser has for its one byte.
const BROWSER_TRY_VALID: Duration = Duration::from_secs(5 * 60);

/// A bucket as a person enters it.
#[derive(Debug, Clone)]
pub struct BucketForm {
    /// Region that signatures name.
    pub region: String,
    /// The store's address; empty for AWS S3.
    pub endpoint: Option<String>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`.
    pub force_path_style: bool,
    /// The bucket.
    pub bucket: String,
    /// Put before every key.
    pub prefix: Option<String>,
    /// The access key's id.
    pub access_key_id: String,
    /// The access key's secret; the stored one when left out.
    pub secret_access_key: Option<SecretString>,
}

/// Where the organization's files are.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The bucket of its own and the id of the key to it.
    pub own: Option<(Bucket, String)>,
    /// Why the bucket of its own cannot be used: what its files say, for whoever edits them.
    pub problem: Option<String>,
    /// The origin that browsers exchange files with, when the bucket can be used.
    pub origin: Option<String>,
    /// Whether the deployment has a store.
    pub deployment: bool,
}

impl Knowledge {
    fn organizations(&self) -> Result<&Organizations, Problem> {
        self.blobs().organizations().ok_or_else(|| Problem::internal("there is no configuration directory"))
    }

    /// Where the organization's files are.
    ///
    /// # Errors
    /// The caller's missing right.
    pub async fn storage(&self, caller: &Caller) -> Result<Storage, Problem> {
        caller.require(Capability::OrganizationManage)?;
        let deployment = self.blobs().is_configured();
        let organizations = self.organizations()?;
        let (store, problem) = match organizations.store(&caller.org_slug).await {
            Ok(store) => (store, None),
            Err(error) => (None, Some(reason(&error, &caller.org_slug))),
        };
        let own = organizations.read(&caller.org_slug).await.ok().flatten();
        let own = own.map(|(bucket, keys)| (bucket, keys.access_key_id));
        Ok(Storage { own, problem, origin: store.map(|store| store.public_origin()), deployment })
    }

    /// Names a bucket as the organization's own, after a real put, get and delete in it.
    ///
    /// # Errors
    /// `INVALID_BODY`, `INVALID_URL`, `PRIVATE_HOST_BLOCKED`, `OBJECT_STORE_SAME_BUCKET`,
    /// `OBJECT_STORE_CHECK_FAILED`, `CONFIG_NOT_WRITABLE`, the caller's missing right.
    pub async fn connect_storage(&self, caller: &Caller, form: BucketForm) -> Result<Storage, Problem> {
        let (bucket, keys, store) = self.tried(caller, form).await?;
        let mut tx = self.app().begin().await?;
        moves::lock_organization(&mut tx, caller.org).await?;
        self.record(&mut tx, caller, "storage.connect", described(&bucket, &store)).await?;
        self.organizations()?.save(&caller.org_slug, &bucket, &keys).await.map_err(unwritten)?;
        tx.commit().await?;
        self.storage(caller).await
    }

    /// Tries a bucket out and changes nothing.
    ///
    /// # Errors
    /// As [`Knowledge::connect_storage`].
    pub async fn try_storage(&self, caller: &Caller, form: BucketForm) -> Result<(), Problem> {
        self.tried(caller, form).await.map(|_| ())
    }

    async fn tried(&self, caller: &Caller, form: BucketForm) -> Result<(Bucket, Keys, Store), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let organizations = self.organizations()?;
        let text = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let endpoint =
            match text(form.endpoint) {
                Some(text) => Some(Url::parse(&text).map_err(|_| {
                    invalid_url("endpoint", "must be a complete address such as https://s3.example.com")
                })?),
                None => None,
            };
        let bucket = Bucket {
            region: form.region.trim().to_owned(),
            endpoint,
            force_path_style: form.force_path_style,
            bucket: form.bucket.trim().to_owned(),
            prefix: text(form.prefix),
        };
        organizations.judge(&bucket)?;
        let secret = match form.secret_access_key.filter(|secret| !secret.expose_secret().is_empty()) {
            Some(secret) => secret,
            None => match organizations.keys(&caller.org_slug).await {
                Some(stored) => stored.secret_access_key,
                None => return Err(Problem::invalid_field("secretAccessKey", "must be given, because none is stored")),
            },
        };
        let keys = Keys { access_key_id: form.access_key_id.trim().to_owned(), secret_access_key: secret };
        let store = organizations.open(&bucket, keys.clone()).map_err(|error| match error {
            ConnectionError::Issues(issues) => Problem::invalid_body(issues),
            other => Problem::internal(other),
        })?;
        match store.check(&caller.org_slug, self.blobs().default_store()).await {
            // The deployment's store may be away; its name is another one, at least.
            Ok(()) | Err(CheckError::DefaultAway(_)) => Ok((bucket, keys, store)),
            Err(error) => Err(check_failed(error, &bucket.bucket)),
        }
    }

    /// Lets the organization's new files go to the deployment's store again. What is in the bucket
    /// stays there, out of reach.
    ///
    /// # Errors
    /// `CONFIG_NOT_WRITABLE`, the caller's missing right.
    pub async fn disconnect_storage(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let organizations = self.organizations()?;
        let mut tx = self.app().begin().await?;
        moves::lock_organization(&mut tx, caller.org).await?;
        let before = organizations.read(&caller.org_slug).await;
        if let Ok(None) = before {
            return Ok(());
        }
        let details = before.ok().flatten().map(|(bucket, _)| serde_json::json!({ "bucket": bucket.bucket }));
        self.record(&mut tx, caller, "storage.disconnect", details.unwrap_or_else(|| serde_json::json!({}))).await?;
        organizations.remove(&caller.org_slug).await.map_err(unwritten)?;
        tx.commit().await?;
        Ok(())
    }

    /// A request with which the caller's browser stores one byte in the organization's own bucket:
    /// only a browser can tell whether the bucket admits the pages of this site (DCF-93). The name of
    /// the object is for [`Knowledge::end_browser_try`].
    ///
    /// # Errors
    /// `OBJECT_STORE_NOT_CONNECTED`, `OBJECT_STORE_MISCONFIGURED`, the caller's missing right.
    pub async fn begin_browser_try(&self, caller: &Caller) -> Result<(Uuid, SignedRequest), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let own = self.own_store(caller).await?;
        let id = Uuid::new_v4();
        let key = BlobKey::parse(&format!("{}/{id}", caller.org_slug)).map_err(Problem::internal)?;
        Ok((id, own.presign_put(&key, "text/plain", 1, None, BROWSER_TRY_VALID)))
    }

    /// Removes what the browser stored. Only one byte of text can be removed this way, so that no
    /// name of a file does any harm.
    ///
    /// # Errors
    /// `NOT_FOUND` without a bucket of its own, the store's trouble, the caller's missing right.
    pub async fn end_browser_try(&self, caller: &Caller, id: Uuid) -> Result<(), Problem> {
        caller.require(Capability::OrganizationManage)?;
        let Some(own) = self.blobs().own(&caller.org_slug).await? else {
            return Err(Problem::new(Code::NotFound, "There is no test with this id. Start another one."));
        };
        let key = BlobKey::parse(&format!("{}/{id}", caller.org_slug)).map_err(Problem::internal)?;
        let mut conn = self.app().acquire().await?;
        let taken = moves::is_kept(&mut conn, caller.org, key.as_str()).await?;
        drop(conn);
        if !taken && own.head(&key).await?.is_some_and(|meta| meta.size == 1) {
            own.delete(&key).await?;
        }
        Ok(())
    }

    async fn own_store(&self, caller: &Caller) -> Result<Store, Problem> {
        self.blobs().own(&caller.org_slug).await?.ok_or_else(|| {
            Problem::new(
                Code::ObjectStoreNotConnected,
                "This organization has no bucket of its own. Connect one in Settings > Data residency first.",
            )
        })
    }

    /// Records an act of `caller` on the storage and tells open pages.
    async fn record(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        action: &'static str,
        details: serde_json::Value,
    ) -> Result<(), sqlx::Error> {
        let entry = AuditEntry {
            org: Some(caller.org),
            actor: caller.actor(),
            action,
            category: "admin",
            resource_type: "object_storage",
            resource_id: None,
            details,
            at: self.clock().now(),
        };
        audit::record(conn, &entry).await?;
        notify(conn, &Hint::new(caller.org, Topic::Storage)).await
    }
}

fn described(bucket: &Bucket, store: &Store) -> serde_json::Value {
    serde_json::json!({ "bucket": bucket.bucket, "address": store.address(), "region": bucket.region })
}

/// What is wrong with an organization's files, without where they are on the machine.
fn reason(error: &Arc<ConnectionError>, slug: &str) -> String {
    match error.as_ref() {
        ConnectionError::File(error) => in_words(error, slug, FOLDER),
        ConnectionError::KeysMissing { secrets, .. } => {
            format!("{}: the file with the keys is missing", name_of(secrets, slug, FOLDER))
        }
        ConnectionError::Issues(_) => format!("{slug}/{FOLDER}/connection.json: {error}"),
    }
}

fn unwritten(error: ConnectionError) -> Problem {
    not_written(matches!(error, ConnectionError::File(ConfigError::WouldBecomePlain(_))), error)
}

/// Why a bucket cannot be used, in words for whoever entered it.
fn check_failed(error: CheckError, bucket: &str) -> Problem {
    let failed = |reason: &str, step: &str, detail: &str, sentence: String| {
        Problem::new(Code::ObjectStoreCheckFailed, sentence)
            .with_data(serde_json::json!({ "reason": reason, "step": step, "detail": detail, "bucket": bucket }))
    };
    match error {
        CheckError::SameBucket | CheckError::DefaultAway(_) => Problem::new(
            Code::ObjectStoreSameBucket,
            "This bucket is the deployment's own store, where the files are already. Choose another bucket.",
        ),
        CheckError::Key(error) => Problem::internal(error),
        CheckError::OtherBytes => failed(
            "other_bytes",
            "get",
            "",
            "The store gave back other bytes than it was given. It cannot be trusted with files.".to_owned(),
        ),
        CheckError::Failed { step, error } => {
            let (step, act) = match step {
                Step::Put => ("put", "store"),
                Step::Get => ("get", "read"),
                Step::Delete => ("delete", "remove"),
            };
            match error {
                BlobError::NotFound => {
                    failed("bucket_missing", step, "", format!("There is no bucket `{bucket}` there."))
                }
                BlobError::Forbidden(refused) => Problem::new(
                    Code::PrivateHostBlocked,
                    format!("The store's address is not allowed on this deployment: {refused}."),
                ),
                BlobError::Refused { status, detail } => {
                    let detail = if detail.is_empty() { format!("HTTP {status}") } else { detail };
                    failed("refused", step, &detail, format!("The store refused to {act} an object: {detail}"))
                }
                BlobError::Unreachable(error) => {
                    let detail = deepest(&error);
                    failed("unreachable", step, &detail, format!("The store cannot be reached: {detail}."))
                }
                other => failed("other", step, &other.to_string(), format!("The bucket cannot be used: {other}.")),
            }
        }
    }
}

/// The last cause of an error, which names what happened.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
