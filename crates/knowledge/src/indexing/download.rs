//! Copying stored bytes to where the readers of formats find them.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use futures::StreamExt;
use tale_blobs::BlobKey;
use tale_core::crypto::RunningSha256;
use tale_jobs::JobError;

use super::read::{ReadError, Source};
use crate::Knowledge;

/// Bytes that are hashed and written in one step off the async threads: most files are smaller.
const STEP_BYTES: usize = 1 << 20;
/// Bytes between two proofs that the lease is held.
const RENEW_BYTES: u64 = 16 << 20;

/// The copy as far as it is written.
struct OnDisk {
    file: File,
    digest: RunningSha256,
}

impl OnDisk {
    fn append(&mut self, pieces: &[Bytes]) -> std::io::Result<()> {
        for piece in pieces {
            self.digest.update(piece);
            self.file.write_all(piece)?;
        }
        Ok(())
    }
}

impl Knowledge {
    /// Copies the stored bytes into `to` and returns their digest. No more than the declared size
    /// is ever written; at most about a megabyte is held.
    pub(super) async fn download<F, K>(&self, source: &Source, to: &Path, keep: &K) -> Result<String, ReadError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let key = BlobKey::parse(&source.row.storage_key).map_err(|error| ReadError::Failed(error.into()))?;
        let declared = u64::try_from(source.row.size).unwrap_or_default();
        let mut object = self.blobs().get(&key, None).await?;
        let mut copy = OnDisk { file: File::create(to)?, digest: RunningSha256::default() };
        let (mut arrived, mut renewed) = (0u64, 0u64);
        let mut ended = false;
        while !ended {
            let (mut pieces, mut held) = (Vec::new(), 0);
            while held < STEP_BYTES && !ended {
                match object.bytes.next().await.transpose()? {
                    Some(piece) => {
                        held += piece.len();
                        pieces.push(piece);
                    }
                    None => ended = true,
                }
            }
            arrived += held as u64;
            if arrived > declared {
                return Err(ReadError::Failed("the stored object is larger than its row says".into()));
            }
            let step = tokio::task::spawn_blocking(move || copy.append(&pieces).map(|()| copy));
            copy = step.await.map_err(std::io::Error::other)??;
            if arrived - renewed > RENEW_BYTES {
                renewed = arrived;
                keep().await.map_err(ReadError::Stopped)?;
            }
        }
        if arrived != declared {
            return Err(ReadError::Failed("the stored object is shorter than its row says".into()));
        }
        Ok(copy.digest.finish_hex())
    }
}
