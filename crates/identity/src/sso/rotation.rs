//! Moves stored client secrets and private keys of SAML to the present encryption key, for the operator who changes it.

use sqlx::PgPool;
use tale_core::crypto::FieldCipher;

use super::secret_context;
use crate::factors::rotation::Resealed;
use crate::store::sso as store;

/// Secrets that are read at once.
const BATCH: i64 = 200;

/// Encrypts every stored client secret that is not encrypted with the present key of `cipher` anew. An interrupted run
/// is continued by the next one.
///
/// # Errors
/// When the database fails; what was rewritten until then stays so.
pub async fn reencrypt(pool: &PgPool, cipher: &FieldCipher) -> Result<Resealed, sqlx::Error> {
    let mut done = Resealed::default();
    let mut after = None;
    loop {
        let batch = store::sealed_after(pool, after, BATCH).await?;
        let Some(last) = batch.last() else { return Ok(done) };
        after = Some(last.org_id);
        for row in batch {
            done.checked += 1;
            match cipher.renew(&secret_context(row.org_id), &row.secret) {
                Ok(None) => {}
                Ok(Some(sealed)) => done.rewritten += u64::from(store::reseal(pool, &row, &sealed).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
}
