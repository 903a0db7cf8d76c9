//! Stored bytes: a client for any S3-compatible object store, and a store of our own on a folder.
//!
//! [`Blobs`] puts, reads, checks and deletes objects and signs the URLs with which browsers upload
//! straight to the store. [`embedded`] is the store that `tale dev` runs when no
//! `OBJECT_STORE_*` variables point elsewhere; it speaks the same protocol, so nothing above this
//! room knows which of the two it talks to. [`connection`] keeps the file that names the
//! deployment's store in step with the environment.

mod client;
pub mod connection;
pub mod embedded;
mod key;
mod sigv4;

pub use client::{BlobError, BlobMeta, BlobStream, Blobs, SignedRequest, StoreConfig};
pub use key::{BlobKey, InvalidKey};
