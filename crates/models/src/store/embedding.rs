//! `app.embedding_settings`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::OrgId;

use crate::embedding::EmbeddingConfig;

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId) -> Result<Option<EmbeddingConfig>, sqlx::Error> {
    let row: Option<(String, String, i32)> =
        sqlx::query_as("SELECT provider_slug, model, dimensions FROM app.embedding_settings WHERE org_id = $1")
            .bind(org)
            .fetch_optional(conn)
            .await?;
    Ok(row.map(|(provider_slug, model, dimensions)| EmbeddingConfig {
        provider_slug,
        model,
        dimensions: u32::try_from(dimensions).unwrap_or(0),
    }))
}

pub(crate) async fn set(
    conn: &mut PgConnection,
    org: OrgId,
    config: &EmbeddingConfig,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.embedding_settings (org_id, provider_slug, model, dimensions, updated_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (org_id) DO UPDATE
            SET provider_slug = EXCLUDED.provider_slug, model = EXCLUDED.model,
                dimensions = EXCLUDED.dimensions, updated_at = EXCLUDED.updated_at",
    )
    .bind(org)
    .bind(&config.provider_slug)
    .bind(&config.model)
    .bind(i32::try_from(config.dimensions).unwrap_or(i32::MAX))
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn clear(conn: &mut PgConnection, org: OrgId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.embedding_settings WHERE org_id = $1").bind(org).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}
