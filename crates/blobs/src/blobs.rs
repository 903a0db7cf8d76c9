//! Which store has an object: the organization's own, or the deployment's (DCF-105).
//!
//! An object's name begins with the slug of its organization. What is new goes to the
//! organization's own bucket when there is one. What is looked for is looked for there first and
//! then in the deployment's store, where older objects stay until they are moved. An organization
//! whose own store is named but cannot be used gets an error, never the other store.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tale_core::clock::SharedClock;
use url::Url;

use crate::embedded::EmbeddedStore;
use crate::error::BlobError;
use crate::key::BlobKey;
use crate::organization::Organizations;
use crate::store::{BlobMeta, BlobStream, SignedRequest, Store, StoreConfig};

/// The stored bytes of a deployment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs {
    default: Option<Store>,
    organizations: Option<Organizations>,
}

impl Blobs {
    /// With the store that `config` names as the deployment's.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(config: StoreConfig, clock: SharedClock) -> Result<Self, reqwest::Error> {
        Ok(Self { default: Some(Store::new(config, clock)?), organizations: None })
    }

    /// With `store`, which this process serves where `config` says, as the deployment's.
    ///
    /// # Errors
    /// As [`Blobs::new`].
    pub fn beside(config: StoreConfig, clock: SharedClock, store: &EmbeddedStore) -> Result<Self, reqwest::Error> {
        Ok(Self { default: Some(Store::beside(config, clock, store)?), organizations: None })
    }

    /// Without a store of the deployment: what has no bucket of its own is told so (DCF-82).
    #[must_use]
    pub fn unconfigured() -> Self {
        Self { default: None, organizations: None }
    }

    /// Lets organizations have buckets of their own.
    #[must_use]
    pub fn with_organizations(self, organizations: Organizations) -> Self {
        Self { organizations: Some(organizations), ..self }
    }

    /// The buckets of organizations, where they may have some.
    #[must_use]
    pub fn organizations(&self) -> Option<&Organizations> {
        self.organizations.as_ref()
    }

    /// The deployment's store.
    #[must_use]
    pub fn default_store(&self) -> Option<&Store> {
        self.default.as_ref()
    }

    /// Whether the deployment has a store.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.default.is_some()
    }

    fn deployment(&self) -> Result<&Store, BlobError> {
        self.default.as_ref().ok_or(BlobError::Unconfigured)
    }

    /// The bucket that the organization with `slug` has of its own.
    ///
    /// # Errors
    /// [`BlobError::Misconfigured`].
    pub async fn own(&self, slug: &str) -> Result<Option<Store>, BlobError> {
        match &self.organizations {
            Some(organizations) => organizations.store(slug).await.map_err(BlobError::Misconfigured),
            None => Ok(None),
        }
    }

    /// [`Store::ping`] of the deployment's store.
    ///
    /// # Errors
    /// As there, and [`BlobError::Unconfigured`].
    pub async fn ping(&self) -> Result<(), BlobError> {
        self.deployment()?.ping().await
    }

    /// [`Store::ensure_bucket`] of the deployment's store.
    ///
    /// # Errors
    /// As there, and [`BlobError::Unconfigured`].
    pub async fn ensure_bucket(&self) -> Result<(), BlobError> {
        self.deployment()?.ensure_bucket().await
    }

    /// The origin that browsers exchange files with; empty without a store of the deployment.
    #[must_use]
    pub fn public_origin(&self) -> String {
        self.default.as_ref().map(Store::public_origin).unwrap_or_default()
    }

    /// Where a new object of that name goes.
    async fn target(&self, key: &BlobKey) -> Result<Store, BlobError> {
        match self.own(key.organization()).await? {
            Some(own) => Ok(own),
            None => self.deployment().cloned(),
        }
    }

    /// Stores `size` bytes from `body` under `key`, as [`Store::put`].
    ///
    /// # Errors
    /// As there, and those of finding the store.
    pub async fn put<S>(&self, key: &BlobKey, content_type: &str, size: u64, body: S) -> Result<(), BlobError>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        self.target(key).await?.put(key, content_type, size, body).await
    }

    /// Stores bytes that are in memory already.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    pub async fn put_bytes(&self, key: &BlobKey, content_type: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.target(key).await?.put_bytes(key, content_type, bytes).await
    }

    /// Looks for an object with `look` wherever it may be. A bucket whose key may not list answers
    /// "forbidden" for what is not there, so that answer counts only when nobody else has it. The
    /// second look at the own bucket finds what was moved there between the first two.
    async fn find<T, F>(&self, key: &BlobKey, look: impl Fn(Store) -> F) -> Result<Option<T>, BlobError>
    where
        F: Future<Output = Result<T, BlobError>>,
    {
        let own = self.own(key.organization()).await?;
        let mut refused = None;
        let places = [own.clone(), self.default.clone(), own.filter(|_| self.default.is_some())];
        if places.iter().all(Option::is_none) {
            return Err(BlobError::Unconfigured);
        }
        for (at, store) in places.into_iter().enumerate() {
            let Some(store) = store else { continue };
            match look(store).await {
                Ok(found) => return Ok(Some(found)),
                Err(BlobError::NotFound) => {}
                Err(error @ BlobError::Refused { status: 403, .. }) if at != 1 => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    /// Opens an object for reading, as [`Store::get`].
    ///
    /// # Errors
    /// As there, and those of finding the store.
    pub async fn get(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        let range = &range;
        self.find(key, |store| async move { store.get(key, range.clone()).await }).await?.ok_or(BlobError::NotFound)
    }

    /// The whole object in memory.
    ///
    /// # Errors
    /// [`BlobError::TooLarge`] above `limit` bytes, else as [`Blobs::get`].
    pub async fn get_bytes(&self, key: &BlobKey, limit: u64) -> Result<Bytes, BlobError> {
        self.get(key, None).await?.collect(limit).await
    }

    /// What is known about an object; `None` when it does not exist.
    ///
    /// # Errors
    /// When a store cannot be reached or refuses.
    pub async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        self.find(key, |store| async move { store.head(key).await?.ok_or(BlobError::NotFound) }).await
    }

    /// Removes an object from wherever it is. Removing one that does not exist succeeds.
    ///
    /// The deployment's store comes first: whoever moves an object there to the organization's
    /// bucket meanwhile has either put it there before the second removal, or finds out afterwards
    /// that its row is gone.
    ///
    /// # Errors
    /// When a store cannot be reached or refuses.
    pub async fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let own = self.own(key.organization()).await?;
        if own.is_none() && self.default.is_none() {
            return Err(BlobError::Unconfigured);
        }
        for store in [self.default.clone(), own].into_iter().flatten() {
            store.delete(key).await?;
        }
        Ok(())
    }

    /// A request with which a browser on `origin` stores exactly `size` bytes of `content_type`
    /// under `key` within `valid`. Size and type are part of the signature.
    ///
    /// # Errors
    /// Those of finding the store.
    pub async fn presign_put(
        &self,
        key: &BlobKey,
        content_type: &str,
        size: u64,
        origin: Option<&str>,
        valid: Duration,
    ) -> Result<SignedRequest, BlobError> {
        Ok(self.target(key).await?.presign_put(key, content_type, size, origin, valid))
    }

    /// A URL with which a browser on `origin` reads the object within `valid`.
    ///
    /// # Errors
    /// [`BlobError::NotFound`], or the stores' trouble.
    pub async fn presign_get(&self, key: &BlobKey, origin: Option<&str>, valid: Duration) -> Result<Url, BlobError> {
        let found =
            self.find(key, |store| async move { store.head(key).await?.map(|_| store).ok_or(BlobError::NotFound) });
        Ok(found.await?.ok_or(BlobError::NotFound)?.presign_get(key, origin, valid))
    }
}
