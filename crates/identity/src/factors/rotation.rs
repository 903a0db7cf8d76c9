//! Moves the secrets of authenticator apps to the present encryption key, for the operator who changes it.

use sqlx::PgPool;
use tale_core::crypto::FieldCipher;

use super::authenticator::context;
use crate::store::factors as store;

/// Secrets that are read at once.
const BATCH: i64 = 200;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Stored secrets that were looked at.
    pub checked: u64,
    /// Those that are encrypted with the present key since.
    pub rewritten: u64,
    /// Those that no configured key opens. They stay as they are.
    pub unreadable: u64,
}

/// Encrypts every stored secret that is not encrypted with the present key of `cipher` anew. An interrupted run is
/// continued by the next one.
///
/// # Errors
/// When the database fails; what was rewritten until then stays so.
pub async fn reencrypt(pool: &PgPool, cipher: &FieldCipher) -> Result<Resealed, sqlx::Error> {
    let mut done = Resealed::default();
    let mut after = None;
    loop {
        let batch = store::sealed_after(pool, after, BATCH).await?;
        let Some(last) = batch.last() else { return Ok(done) };
        after = Some(last.user_id);
        for row in batch {
            done.checked += 1;
            match cipher.renew(&context(row.user_id), &row.secret) {
                Ok(None) => {}
                Ok(Some(sealed)) => done.rewritten += u64::from(store::reseal(pool, &row, &sealed).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
}
