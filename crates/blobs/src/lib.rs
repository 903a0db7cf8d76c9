//! Stored bytes: clients for S3-compatible object stores, and a store of our own on a folder.
//!
//! [`Blobs`] puts, reads, checks and deletes objects and signs the URLs with which browsers upload
//! straight to a store. It chooses among [`Store`]s by the name of the object: the organization's own
//! bucket ([`organization`]) and the deployment's. [`embedded`] is the store that `tale dev` runs when
//! no `OBJECT_STORE_*` variables point elsewhere; it speaks the same protocol, so nothing above this
//! room knows which of the two it talks to; the process that runs it reads its files directly. [`connection`] keeps the file that names the
//! deployment's store in step with the environment; [`check`] tries a store out.

mod blobs;
pub mod check;
pub mod connection;
pub mod embedded;
mod error;
mod key;
mod local;
pub mod organization;
mod sigv4;
mod store;

pub use blobs::Blobs;
pub use error::BlobError;
pub use key::{BlobKey, InvalidKey};
pub use organization::Organizations;
pub use store::{BlobMeta, BlobStream, SignedRequest, Store, StoreConfig};
