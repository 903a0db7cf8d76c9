//! From stored bytes to searchable passages, in background jobs (spec 60, section 6).
//!
//! [`IndexFile`] reads a file, cuts it into passages and stores them in slices; when the last slice
//! is in, the keyword leg serves the file. [`EmbedFile`] adds the vectors afterwards, so that search
//! by words never waits for a model. Both may be killed at any point and run again: a passage's id
//! is derived from the file's bytes and the passage's place, so a second run finds what the first
//! one stored and adds what is missing. [`Watch`] puts back what neither finished.

mod download;
mod embed;
mod hear;
mod read;
mod watch;

pub use embed::{EmbedFile, EmbedRunError};
pub use read::{IndexFile, ReadError};
pub use watch::Watch;

pub(crate) use embed::enqueue as enqueue_embed;
pub(crate) use read::{chain, enqueue as enqueue_index};

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tale_core::Actor;
use tale_core::ids::{ChunkId, FileId, OrgId};
use tale_jobs::{JobError, Lease};

use crate::Knowledge;
use crate::store::files;

/// Says that search goes by words because there is no embedding model.
pub(crate) const NOT_CONFIGURED: &str = "There is no embedding model, so this document is found by its words, not by its meaning. Choose one in the settings.";
/// The code that goes with [`NOT_CONFIGURED`].
pub(crate) const NOT_CONFIGURED_CODE: &str = "embedding_not_configured";

/// Files of one organization that are read, or embedded, at the same time (IDX-7).
pub(crate) const PER_ORGANIZATION: u32 = 3;

/// Shortest pause between two proofs that a lease is held.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// How files that are being read are called.
pub(crate) const TEMP_PREFIX: &str = "tale-index-";

/// The id of a passage: the same for the same bytes, chunker and place, so that a citation still
/// opens after the file was indexed again.
fn chunk_id(file: FileId, content_hash: &str, chunker_version: i32, ordinal: u32) -> ChunkId {
    let name = format!("{file}/{content_hash}/{chunker_version}/{ordinal}");
    let digest = tale_core::crypto::sha256(name.as_bytes());
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    ChunkId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

impl Knowledge {
    /// Who pays for what is done with a file: who uploaded it, else who made its document, else the
    /// organization (IDX-12).
    async fn payer_of(&self, org: OrgId, file: FileId) -> Result<Actor, sqlx::Error> {
        let person = files::spender(&mut *self.app().acquire().await?, org, file).await?;
        Ok(person.map_or(Actor::System, |id| Actor::User { id }))
    }
}

/// Between two steps: says when to stop, and proves now and then that the lease is still held.
pub(crate) fn renewed<'a>(
    lease: &'a Lease,
) -> impl Fn() -> futures::future::BoxFuture<'a, Result<(), JobError>> + Send + Sync {
    let renewals = Mutex::new(Instant::now());
    move || {
        let due = {
            let mut last = renewals.lock().unwrap_or_else(PoisonError::into_inner);
            let due = last.elapsed() >= RENEW_EVERY;
            if due {
                *last = Instant::now();
            }
            due
        };
        Box::pin(async move { if due { lease.renew().await } else { lease.check() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_keeps_its_id_while_its_file_keeps_its_bytes() {
        let file = FileId::new();
        assert_eq!(chunk_id(file, "aa", 1, 7), chunk_id(file, "aa", 1, 7));
        assert_ne!(chunk_id(file, "aa", 1, 7), chunk_id(file, "ab", 1, 7));
        assert_ne!(chunk_id(file, "aa", 1, 7), chunk_id(file, "aa", 2, 7));
        assert_ne!(chunk_id(file, "aa", 1, 7), chunk_id(file, "aa", 1, 8));
    }
}
