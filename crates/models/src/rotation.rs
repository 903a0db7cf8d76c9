//! Moves stored keys of providers to the present encryption key, for the operator who changes it.
//!
//! Works in batches beside a running deployment: a key that somebody replaces meanwhile is theirs,
//! and an interrupted run is continued by the next one. Growth: one row read and at most one written
//! per stored key.

use sqlx::PgPool;
use tale_core::crypto::FieldCipher;
use tale_core::ids::CredentialId;

use crate::credentials::secret_context;
use crate::store::credentials as store;
use crate::subscriptions;

/// Keys that are read at once.
const BATCH: i64 = 200;
/// Unreadable keys that are named; the rest is counted.
const NAMED: usize = 50;

/// What has been done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stored keys that were looked at.
    pub checked: u64,
    /// Those that are encrypted with the present key since.
    pub rewritten: u64,
    /// How many no configured key opens. They stay as they are.
    pub unreadable: u64,
    /// The first of them.
    pub named: Vec<CredentialId>,
}

/// Encrypts every stored key that is not encrypted with the present key of `cipher` anew, and calls
/// `told` after each batch.
///
/// # Errors
/// When the database fails; what was rewritten until then stays so.
pub async fn reencrypt(
    pool: &PgPool,
    cipher: &FieldCipher,
    mut told: impl FnMut(&Progress),
) -> Result<Progress, sqlx::Error> {
    let mut done = Progress::default();
    let mut after = None;
    loop {
        let batch = store::sealed_after(pool, after, BATCH).await?;
        let Some(last) = batch.last() else { return Ok(done) };
        after = Some(last.id);
        for row in batch {
            done.checked += 1;
            let context = if row.of_broker { subscriptions::secret_context(row.id) } else { secret_context(row.id) };
            match cipher.renew(&context, &row.secret) {
                Ok(None) => {}
                Ok(Some(sealed)) => done.rewritten += u64::from(store::reseal(pool, &row, &sealed).await?),
                Err(_) => {
                    done.unreadable += 1;
                    if done.named.len() < NAMED {
                        done.named.push(row.id);
                    }
                }
            }
        }
        told(&done);
    }
}
