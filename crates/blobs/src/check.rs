//! Trying a store out: a real put, get and delete (DCF-105).

use bytes::Bytes;
use futures::StreamExt;

use crate::error::BlobError;
use crate::key::{BlobKey, InvalidKey};
use crate::store::Store;

/// What the object of a try contains.
const CONTENT: &[u8] = b"Tale tries whether this bucket can be used. This object can be deleted.\n";

/// A step of a try, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Storing an object.
    Put,
    /// Reading it back.
    Get,
    /// Removing it.
    Delete,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The name that objects would have is none.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// It is the bucket of the deployment itself, however it is spelled.
    #[error("it is the deployment's own bucket")]
    SameBucket,
    /// A step failed.
    #[error("{step:?} failed")]
    Failed {
        /// Which one.
        step: Step,
        /// Why.
        #[source]
        error: BlobError,
    },
    /// What was read is not what was stored.
    #[error("the store gave back other bytes than it was given")]
    OtherBytes,
    /// The deployment's store could not be asked whether it is the same one.
    #[error("the deployment's own store cannot be asked")]
    DefaultAway(#[source] BlobError),
}

impl Store {
    /// Stores a small object of the organization with `org_slug`, reads it back and removes it, and
    /// looks whether it turned up in the bucket of `other`. The object is removed whatever happens.
    ///
    /// # Errors
    /// [`CheckError`]; [`CheckError::DefaultAway`] only when everything else is well.
    pub async fn check(&self, org_slug: &str, other: Option<&Self>) -> Result<(), CheckError> {
        if other.is_some_and(|other| self.is_named_like(other)) {
            return Err(CheckError::SameBucket);
        }
        let key = BlobKey::fresh(org_slug)?;
        let failed = |step| move |error| CheckError::Failed { step, error };
        self.put_bytes(&key, "text/plain", Bytes::from_static(CONTENT)).await.map_err(failed(Step::Put))?;
        let seen = match other {
            Some(other) => other.shows(self, &key).await,
            None => Ok(false),
        };
        let read = self.read_back(&key).await;
        let deleted = self.delete(&key).await;
        if matches!(seen, Ok(true)) {
            return Err(CheckError::SameBucket);
        }
        if !read.map_err(failed(Step::Get))? {
            return Err(CheckError::OtherBytes);
        }
        deleted.map_err(failed(Step::Delete))?;
        match seen {
            // A key that may not look at what is not there cannot have put it there either.
            Ok(_) | Err(BlobError::Refused { status: 403, .. }) => Ok(()),
            Err(error) => Err(CheckError::DefaultAway(error)),
        }
    }

    /// Whether an object of `written` turned up here: where that one put it, or where this one looks for
    /// it. An endpoint with a path can spell our bucket and prefix as another bucket.
    async fn shows(&self, written: &Self, key: &BlobKey) -> Result<bool, BlobError> {
        let mut refused = None;
        for found in [self.head_at(&written.object_path(key)).await, self.head(key).await] {
            match found {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(false), Err)
    }

    async fn read_back(&self, key: &BlobKey) -> Result<bool, BlobError> {
        let mut object = self.get(key, None).await?;
        let mut at = 0;
        while let Some(piece) = object.bytes.next().await {
            let piece = piece?;
            if CONTENT.get(at..at + piece.len()) != Some(&piece[..]) {
                return Ok(false);
            }
            at += piece.len();
        }
        Ok(at == CONTENT.len())
    }
}
