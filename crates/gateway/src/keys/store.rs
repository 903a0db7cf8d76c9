//! SQL of gateway keys.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::{OrgId, UserId};
use tale_models::ModelReference;
use tale_models::ledger::HoldError;
use uuid::Uuid;

use super::KeyOrder;

/// A key to be stored.
pub(super) struct NewKey<'a> {
    pub id: Uuid,
    pub org: OrgId,
    pub digest: &'a [u8; 32],
    pub models: &'a [ModelReference],
    pub minted_from: &'a KeyOrder,
    pub now: DateTime<Utc>,
}

pub(super) async fn insert(conn: &mut PgConnection, key: &NewKey<'_>) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.gateway_keys (org_id, id, secret_sha256, models, minted_from, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(key.org)
    .bind(key.id)
    .bind(key.digest.as_slice())
    .bind(Json(key.models))
    .bind(Json(key.minted_from))
    .bind(key.now)
    .execute(conn)
    .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
pub(super) struct Row {
    pub secret_sha256: Vec<u8>,
    pub models: Json<Vec<ModelReference>>,
    pub minted_from: Json<KeyOrder>,
}

pub(super) async fn get(db: impl PgExecutor<'_>, org: OrgId, id: Uuid) -> sqlx::Result<Option<Row>> {
    sqlx::query_as("SELECT secret_sha256, models, minted_from FROM app.gateway_keys WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .fetch_optional(db)
        .await
}

/// The open key of a secret, whoever it belongs to: the secret is what says so.
pub(super) async fn by_digest(
    db: impl PgExecutor<'_>,
    digest: &[u8; 32],
    now: DateTime<Utc>,
) -> sqlx::Result<Option<(Uuid, OrgId, Json<Vec<ModelReference>>)>> {
    sqlx::query_as(
        "SELECT k.id, k.org_id, k.models FROM app.gateway_keys k \
         JOIN app.usage_allowances a ON a.org_id = k.org_id AND a.id = k.id \
         JOIN app.organizations o ON o.id = k.org_id \
         WHERE k.secret_sha256 = $1 AND a.ended_at IS NULL AND a.expires_at > $2 AND o.deleted_at IS NULL",
    )
    .bind(digest.as_slice())
    .bind(now)
    .fetch_optional(db)
    .await
}

/// The role of a member.
pub(super) async fn role(db: impl PgExecutor<'_>, org: OrgId, person: UserId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT role FROM app.memberships WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(person)
        .fetch_optional(db)
        .await
}

/// Whether the id is another key's.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Whether the organization is what is missing.
pub(super) fn no_org(error: &HoldError) -> bool {
    let HoldError::Database(cause) = error else { return false };
    let cause: &(dyn std::error::Error + 'static) = cause.as_ref();
    cause
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation)
}
