//! The knowledge room: what an organization knows, and how it is found again.
//!
//! - [`files`], [`documents`] and [`contents`]: uploads, the library, bytes, text and passages;
//!   [`attachments`]: chat uploads that a message waits for.
//! - [`indexing`]: from stored bytes to searchable passages, in background jobs.
//! - [`search`]: hybrid search by words ([`keyword`]) and by meaning ([`dense`]).
//! - [`corpora`]: which database holds an organization's passages.
//! - [`purge`]: removing for good; [`storage`]: a bucket of the organization's own; [`residency`]: the
//!   settings of a database of its own.
//!
//! Visibility is decided by the app database; the knowledge database holds passages that can be
//! made anew from the stored bytes at any time (KB-14).

pub mod attachments;
mod changes;
mod config_files;
pub mod contents;
pub mod corpora;
pub mod dense;
pub mod documents;
pub mod embedder;
pub mod fetch;
mod file_type;
pub mod files;
mod fusion;
pub mod indexing;
pub mod keyword;
pub mod metrics;
pub mod order;
pub mod purge;
mod query_vector;
pub mod reach;
pub mod residency;
pub mod search;
mod service;
pub mod storage;
mod store;
pub mod transcriber;

pub use fetch::FetchedText;
pub use reach::Reach;
pub use search::{Corpus, Diagnostics, Hit, Leg, SearchRequest, SearchResponse};
pub use service::{Knowledge, KnowledgeParts};
