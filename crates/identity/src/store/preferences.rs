//! What people set for themselves.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};
use tale_core::ids::{OrgId, UserId};

/// The preferences of a member: the account's part and the organization's part.
#[derive(Debug, FromRow)]
pub(crate) struct PreferencesRow {
    pub(crate) locale: Option<String>,
    pub(crate) theme: String,
    pub(crate) custom_instructions_enabled: Option<bool>,
    pub(crate) custom_instructions: String,
}

pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
) -> Result<Option<PreferencesRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT u.locale, u.theme, p.custom_instructions_enabled, COALESCE(p.custom_instructions, '') AS custom_instructions
           FROM app.users u
           LEFT JOIN app.preferences p ON p.org_id = $1 AND p.user_id = u.id
          WHERE u.id = $2",
    )
    .bind(org)
    .bind(user)
    .fetch_optional(conn)
    .await
}

/// Stores the account's part.
pub(crate) async fn set_account(
    conn: &mut PgConnection,
    user: UserId,
    locale: Option<&str>,
    theme: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.users SET locale = $2, theme = $3 WHERE id = $1")
        .bind(user)
        .bind(locale)
        .bind(theme)
        .execute(conn)
        .await
        .map(drop)
}

/// Stores the organization's part.
pub(crate) async fn set_instructions(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    enabled: Option<bool>,
    text: &str,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.preferences (org_id, user_id, custom_instructions_enabled, custom_instructions, updated_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (org_id, user_id) DO UPDATE
            SET custom_instructions_enabled = $3, custom_instructions = $4, updated_at = $5",
    )
    .bind(org)
    .bind(user)
    .bind(enabled)
    .bind(text)
    .bind(at)
    .execute(conn)
    .await
    .map(drop)
}
