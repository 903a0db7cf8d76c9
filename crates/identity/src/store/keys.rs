//! API keys. A personal key belongs to a person and works in every organization of theirs, so the
//! holder stands where tenant tables have the organization.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{ApiKeyId, OrgId, UserId};

/// A key as its holder sees it.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub(crate) id: ApiKeyId,
    pub(crate) name: String,
    pub(crate) first_chars: String,
    pub(crate) last_chars: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
}

/// A new key.
pub(crate) struct NewKeyRow<'a> {
    pub(crate) id: ApiKeyId,
    pub(crate) user: UserId,
    pub(crate) hash: &'a [u8; 32],
    pub(crate) first: &'a str,
    pub(crate) last: &'a str,
    pub(crate) name: &'a str,
    pub(crate) at: DateTime<Utc>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

/// A live key and one organization of its holder; a holder without any has one row of nothing.
#[derive(Debug, FromRow)]
pub(crate) struct ResolvedRow {
    pub(crate) id: ApiKeyId,
    pub(crate) user_id: UserId,
    pub(crate) name: String,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
    pub(crate) org_id: Option<OrgId>,
    pub(crate) org_slug: Option<String>,
    pub(crate) org_name: Option<String>,
    pub(crate) role: Option<String>,
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &NewKeyRow<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.api_keys (id, user_id, kind, hash, first_chars, last_chars, name, created_at, expires_at)
         VALUES ($1, $2, 'personal', $3, $4, $5, $6, $7, $8)",
    )
    .bind(new.id)
    .bind(new.user)
    .bind(new.hash.as_slice())
    .bind(new.first)
    .bind(new.last)
    .bind(new.name)
    .bind(new.at)
    .bind(new.expires_at)
    .execute(conn)
    .await
    .map(drop)
}

/// The keys of a person that are not revoked, newest first.
pub(crate) async fn list(conn: &mut PgConnection, user: UserId) -> Result<Vec<KeyRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, name, first_chars, last_chars, created_at, expires_at, last_used_at
           FROM app.api_keys
          WHERE user_id = $1 AND revoked_at IS NULL
          ORDER BY created_at DESC, id DESC",
    )
    .bind(user)
    .fetch_all(conn)
    .await
}

/// Revokes a key of a person; returns its name. `None`: not theirs, not there, or revoked before.
pub(crate) async fn revoke(
    conn: &mut PgConnection,
    user: UserId,
    id: ApiKeyId,
    at: DateTime<Utc>,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE app.api_keys
            SET revoked_at = $3, revoke_reason = 'holder'
          WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL
         RETURNING name",
    )
    .bind(user)
    .bind(id)
    .bind(at)
    .fetch_optional(conn)
    .await
}

/// The key of a digest with every membership of its holder: one look-up by unique index.
pub(crate) async fn resolve(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Vec<ResolvedRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT k.id, k.user_id, k.name, k.expires_at, k.last_used_at, o.id AS org_id, o.slug AS org_slug, o.name AS org_name, m.role
           FROM app.api_keys k
           LEFT JOIN app.memberships m ON m.user_id = k.user_id
           LEFT JOIN app.organizations o ON o.id = m.org_id
          WHERE k.hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
          ORDER BY lower(o.name), o.id",
    )
    .bind(hash.as_slice())
    .bind(now)
    .fetch_all(conn)
    .await
}

/// Notes a use. Of simultaneous requests one writes.
pub(crate) async fn touch(
    conn: &mut PgConnection,
    id: ApiKeyId,
    seen: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.api_keys SET last_used_at = $3 WHERE id = $1 AND last_used_at IS NOT DISTINCT FROM $2")
        .bind(id)
        .bind(seen)
        .bind(now)
        .execute(conn)
        .await
        .map(drop)
}

/// A key of a member: its name and its holder's.
#[derive(sqlx::FromRow)]
pub(crate) struct NamedKey {
    pub(crate) id: ApiKeyId,
    pub(crate) name: String,
    pub(crate) holder: String,
}

/// The keys that work in an organization now, by holder and name; at most `limit`.
pub(crate) async fn of_members(conn: &mut PgConnection, org: OrgId, limit: i64) -> Result<Vec<NamedKey>, sqlx::Error> {
    sqlx::query_as(
        "SELECT k.id, k.name, u.name AS holder
           FROM app.memberships m
           JOIN app.users u ON u.id = m.user_id
           JOIN app.api_keys k ON k.user_id = m.user_id
          WHERE m.org_id = $1 AND m.role <> 'disabled' AND k.revoked_at IS NULL
          ORDER BY lower(u.name), lower(k.name), k.id
          LIMIT $2",
    )
    .bind(org)
    .bind(limit)
    .fetch_all(conn)
    .await
}
