//! Sign-in by headers of a reverse proxy: settings and keys.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, TrustedKeyId, UserId};

use crate::permissions::Role;

/// What an organization allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub(crate) struct SettingsRow {
    pub(crate) enabled: bool,
    #[sqlx(try_from = "String")]
    pub(crate) max_role: Role,
}

/// A live key.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub(crate) id: TrustedKeyId,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) created_by: Option<UserId>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
    pub(crate) signed_only: bool,
}

/// A new key.
pub(crate) struct NewKey<'a> {
    pub(crate) id: TrustedKeyId,
    pub(crate) name: &'a str,
    pub(crate) hash: &'a [u8; 32],
    pub(crate) prefix: &'a str,
    pub(crate) by: Option<UserId>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) signed_only: bool,
}

/// What a presented key stands for.
#[derive(Debug, FromRow)]
pub(crate) struct PresentedRow {
    pub(crate) id: TrustedKeyId,
    pub(crate) org_id: OrgId,
    pub(crate) name: String,
    pub(crate) live: bool,
    pub(crate) signed_only: bool,
    pub(crate) enabled: bool,
    #[sqlx(try_from = "String")]
    pub(crate) max_role: Role,
}

pub(crate) async fn settings(conn: &mut PgConnection, org: OrgId) -> Result<Option<SettingsRow>, sqlx::Error> {
    sqlx::query_as("SELECT enabled, max_role FROM app.trusted_header_settings WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await
}

pub(crate) async fn set(
    conn: &mut PgConnection,
    org: OrgId,
    settings: SettingsRow,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.trusted_header_settings (org_id, enabled, max_role, updated_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (org_id) DO UPDATE SET enabled = $2, max_role = $3, updated_at = $4",
    )
    .bind(org)
    .bind(settings.enabled)
    .bind(settings.max_role.text())
    .bind(at)
    .execute(conn)
    .await
    .map(drop)
}

/// Whether any organization lets a proxy sign people in. Looks across organizations.
pub(crate) async fn any_enabled(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM app.trusted_header_settings WHERE enabled)").fetch_one(conn).await
}

/// The keys that are not revoked, newest first.
pub(crate) async fn keys(conn: &mut PgConnection, org: OrgId) -> Result<Vec<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, prefix, created_by, created_at, last_used_at, signed_only
           FROM app.trusted_header_keys
          WHERE org_id = $1 AND revoked_at IS NULL
          ORDER BY created_at DESC, id DESC",
    )
    .bind(org)
    .fetch_all(conn)
    .await
}

pub(crate) async fn insert(conn: &mut PgConnection, org: OrgId, new: &NewKey<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.trusted_header_keys (id, org_id, name, hash, prefix, created_by, created_at, signed_only)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(new.id)
    .bind(org)
    .bind(new.name)
    .bind(new.hash.as_slice())
    .bind(new.prefix)
    .bind(new.by)
    .bind(new.at)
    .bind(new.signed_only)
    .execute(conn)
    .await
    .map(drop)
}

/// Revokes a key; returns its name. `None`: not there, or revoked before, unless it may be once `more`.
pub(crate) async fn revoke(
    conn: &mut PgConnection,
    org: OrgId,
    id: TrustedKeyId,
    at: DateTime<Utc>,
    more: bool,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE app.trusted_header_keys SET revoked_at = coalesce(revoked_at, $3)
          WHERE org_id = $1 AND id = $2 AND (revoked_at IS NULL OR $4)
         RETURNING name",
    )
    .bind(org)
    .bind(id)
    .bind(at)
    .bind(more)
    .fetch_optional(conn)
    .await
}

/// The key of a digest, revoked ones included. The key tells the organization.
pub(crate) async fn presented(conn: &mut PgConnection, hash: &[u8; 32]) -> Result<Option<PresentedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT k.id, k.org_id, k.name, k.revoked_at IS NULL AS live, k.signed_only,
                COALESCE(s.enabled, false) AS enabled, COALESCE(s.max_role, 'member') AS max_role
           FROM app.trusted_header_keys k
           LEFT JOIN app.trusted_header_settings s ON s.org_id = k.org_id
          WHERE k.hash = $1",
    )
    .bind(hash.as_slice())
    .fetch_optional(conn)
    .await
}

/// Notes a use of a live key. `false`: it was revoked meanwhile.
pub(crate) async fn touch(
    conn: &mut PgConnection,
    org: OrgId,
    id: TrustedKeyId,
    at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.trusted_header_keys SET last_used_at = $3 WHERE org_id = $1 AND id = $2 AND revoked_at IS NULL",
    )
    .bind(org)
    .bind(id)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Sets whether a live key takes signed assertions only; returns its name and what it was before.
pub(crate) async fn set_signed_only(
    conn: &mut PgConnection,
    org: OrgId,
    id: TrustedKeyId,
    signed_only: bool,
) -> Result<Option<(String, bool)>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE app.trusted_header_keys k SET signed_only = $3
           FROM (SELECT id, signed_only FROM app.trusted_header_keys
                  WHERE org_id = $1 AND id = $2 AND revoked_at IS NULL FOR UPDATE) before
          WHERE k.id = before.id
         RETURNING k.name, before.signed_only",
    )
    .bind(org)
    .bind(id)
    .bind(signed_only)
    .fetch_optional(conn)
    .await
}

/// Uses an assertion up. `false`: it was used before.
pub(crate) async fn spend(
    conn: &mut PgConnection,
    org: OrgId,
    key: TrustedKeyId,
    nonce: &[u8; 32],
    expires_at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO app.trusted_header_nonces (key_id, nonce, org_id, expires_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (key_id, nonce) DO NOTHING",
    )
    .bind(key)
    .bind(nonce.as_slice())
    .bind(org)
    .bind(expires_at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Forgets assertions that are over. Returns how many.
pub(crate) async fn sweep(conn: &mut PgConnection, now: DateTime<Utc>) -> Result<u64, sqlx::Error> {
    let done =
        sqlx::query("DELETE FROM app.trusted_header_nonces WHERE expires_at <= $1").bind(now).execute(conn).await?;
    Ok(done.rows_affected())
}
