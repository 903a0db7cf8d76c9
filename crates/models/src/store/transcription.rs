//! `app.transcription_settings`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::OrgId;

use crate::transcription::TranscriptionPin;

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId) -> Result<Option<TranscriptionPin>, sqlx::Error> {
    let row: Option<(String, String)> =
        sqlx::query_as("SELECT provider_slug, model FROM app.transcription_settings WHERE org_id = $1")
            .bind(org)
            .fetch_optional(conn)
            .await?;
    Ok(row.map(|(provider_slug, model)| TranscriptionPin { provider_slug, model }))
}

/// Pins a model; `None` goes back to the automatic choice.
pub(crate) async fn set(
    conn: &mut PgConnection,
    org: OrgId,
    pin: Option<&TranscriptionPin>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let Some(pin) = pin else {
        sqlx::query("DELETE FROM app.transcription_settings WHERE org_id = $1").bind(org).execute(conn).await?;
        return Ok(());
    };
    sqlx::query(
        "INSERT INTO app.transcription_settings (org_id, provider_slug, model, updated_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (org_id) DO UPDATE
            SET provider_slug = EXCLUDED.provider_slug, model = EXCLUDED.model, updated_at = EXCLUDED.updated_at",
    )
    .bind(org)
    .bind(&pin.provider_slug)
    .bind(&pin.model)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}
