//! Passkeys. They belong to a person, not to an organization, so nothing here has an organization condition.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{PasskeyId, UserId};
use uuid::Uuid;

/// A passkey as its owner sees it.
#[derive(Debug, FromRow)]
pub(crate) struct ListedRow {
    pub(crate) id: PasskeyId,
    pub(crate) name: String,
    pub(crate) credential_id: Vec<u8>,
    pub(crate) transports: Vec<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
}

/// A passkey as a sign-in needs it.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub(crate) id: PasskeyId,
    pub(crate) user_id: UserId,
    pub(crate) public_key: Vec<u8>,
}

/// A new passkey.
pub(crate) struct NewPasskey<'a> {
    pub(crate) id: PasskeyId,
    pub(crate) user: UserId,
    pub(crate) name: &'a str,
    pub(crate) credential_id: &'a [u8],
    pub(crate) public_key: &'a [u8],
    pub(crate) sign_count: u32,
    pub(crate) transports: &'a [String],
    pub(crate) aaguid: Uuid,
    pub(crate) at: DateTime<Utc>,
}

/// The passkeys of a person, the oldest first.
pub(crate) async fn list(conn: &mut PgConnection, user: UserId) -> Result<Vec<ListedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, credential_id, transports, created_at, last_used_at
           FROM app.passkeys WHERE user_id = $1 ORDER BY created_at, id",
    )
    .bind(user)
    .fetch_all(conn)
    .await
}

/// Adds a passkey. `false`: the authenticator's credential is known already.
pub(crate) async fn insert(conn: &mut PgConnection, new: &NewPasskey<'_>) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.passkeys
             (id, user_id, name, credential_id, public_key, sign_count, transports, aaguid, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (credential_id) DO NOTHING",
    )
    .bind(new.id)
    .bind(new.user)
    .bind(new.name)
    .bind(new.credential_id)
    .bind(new.public_key)
    .bind(i64::from(new.sign_count))
    .bind(new.transports)
    .bind(new.aaguid)
    .bind(new.at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The passkey of a credential, whoever's it is.
pub(crate) async fn by_credential(conn: &mut PgConnection, credential: &[u8]) -> Result<Option<KeyRow>, sqlx::Error> {
    sqlx::query_as("SELECT id, user_id, public_key FROM app.passkeys WHERE credential_id = $1")
        .bind(credential)
        .fetch_optional(conn)
        .await
}

/// Notes a use with the authenticator's counter. `false`: the counter did not move on, or the passkey is gone.
/// Authenticators that do not count say 0.
pub(crate) async fn used(
    conn: &mut PgConnection,
    id: PasskeyId,
    sign_count: u32,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.passkeys SET sign_count = $2, last_used_at = $3
          WHERE id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0))",
    )
    .bind(id)
    .bind(i64::from(sign_count))
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives a passkey of the person another name; returns the name before.
pub(crate) async fn rename(
    conn: &mut PgConnection,
    user: UserId,
    id: PasskeyId,
    name: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE app.passkeys k
            SET name = $3
           FROM (SELECT id, name FROM app.passkeys WHERE user_id = $1 AND id = $2 FOR UPDATE) before
          WHERE k.id = before.id
         RETURNING before.name",
    )
    .bind(user)
    .bind(id)
    .bind(name)
    .fetch_optional(conn)
    .await
}

/// Removes a passkey of the person; returns its name.
pub(crate) async fn delete(
    conn: &mut PgConnection,
    user: UserId,
    id: PasskeyId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("DELETE FROM app.passkeys WHERE user_id = $1 AND id = $2 RETURNING name")
        .bind(user)
        .bind(id)
        .fetch_optional(conn)
        .await
}
