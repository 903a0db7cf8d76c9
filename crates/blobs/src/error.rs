//! Why stored bytes could not be had.

use std::sync::Arc;
use std::time::Duration;

use tale_core::net::HostRefused;
use tale_core::problem::{Code, Problem};

use crate::connection::ConnectionError;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// No object store is configured on this deployment.
    #[error("no object store is configured")]
    Unconfigured,
    /// There is no such object.
    #[error("the object does not exist")]
    NotFound,
    /// The requested range lies outside the object.
    #[error("the requested range lies outside the object")]
    RangeNotSatisfiable,
    /// The store answered with an error.
    #[error("the object store answered {status}: {detail}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The store's own code and message.
        detail: String,
    },
    /// The store could not be reached or the transfer broke off.
    #[error("the object store cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The store's address is one that may not be called.
    #[error("the object store's address is refused: {0}")]
    Forbidden(HostRefused),
    /// The files that name an organization's store are there and cannot be used.
    #[error("the organization's object store cannot be used")]
    Misconfigured(#[source] Arc<ConnectionError>),
    /// The bytes that were to be stored could not be read.
    #[error("the bytes to store could not be read")]
    Source(#[source] std::io::Error),
    /// The object is larger than the reader allows.
    #[error("the object is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
}

impl From<BlobError> for Problem {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Unconfigured => Self::new(
                Code::ObjectStoreUnconfigured,
                "This deployment has no object store for files. An administrator must set OBJECT_STORE_ACCESS_KEY and OBJECT_STORE_SECRET_KEY.",
            ),
            BlobError::NotFound => Self::new(Code::BlobNotFound, "The stored bytes of this file are missing."),
            BlobError::Refused { status: 507, .. } => Self::new(
                Code::ObjectStoreUnavailable,
                "The object store has no space left. Nothing was stored; an administrator must free space.",
            )
            .because(error),
            BlobError::Misconfigured(why) => Self::new(
                Code::ObjectStoreMisconfigured,
                "The settings of this organization's object storage cannot be used, so its files are out of reach. An owner or admin can correct them in Settings > Data residency.",
            )
            .because(why),
            BlobError::Forbidden(refused) => Self::new(
                Code::ObjectStoreMisconfigured,
                "The address of this organization's object storage is not allowed on this deployment, so its files are out of reach. An owner or admin can correct it in Settings > Data residency.",
            )
            .because(refused),
            other => Self::new(
                Code::ObjectStoreUnavailable,
                "The object store cannot be used right now. Nothing was lost; try again in a moment.",
            )
            .retry_after(Duration::from_secs(5))
            .because(other),
        }
    }
}
