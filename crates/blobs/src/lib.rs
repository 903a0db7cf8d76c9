//! Stored bytes: a client for any S3-compatible object store, and a store of our own on a folder.
//!
//! [`Blobs`] puts, reads, checks and deletes objects and signs the URLs with which browsers upload
//! straight to the store. [`embedded`] is the store that `tale dev` runs when no
//! `OBJECT_STORE_*` variables point elsewhere; it speaks the same protocol, so nothing above this
//! room knows which of the two it talks to. The process that runs it reads its files directly. [`connection`] keeps the file that names the
//! deployment's store in step with the environment.

mod client;
pub mod connection;
pub mod embedded;
mod error;
mod key;
mod local;
mod sigv4;

pub use client::{BlobMeta, BlobStream, Blobs, SignedRequest, StoreConfig};
pub use error::BlobError;
pub use key::{BlobKey, InvalidKey};
