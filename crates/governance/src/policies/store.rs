//! `app.policies`.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use tale_core::ids::{OrgId, TeamId, UserId};

/// A stored policy.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) version: i64,
}

/// The organization's short name, which its files stand under.
pub(super) async fn slug(pool: &PgPool, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT slug FROM app.organizations WHERE id = $1").bind(org).fetch_optional(pool).await
}

/// [`slug`], holding the organization's row until the transaction ends: what changes policies or
/// their files happens one after the other.
pub(super) async fn lock(conn: &mut PgConnection, org: OrgId) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT slug FROM app.organizations WHERE id = $1 FOR NO KEY UPDATE")
        .bind(org)
        .fetch_optional(conn)
        .await
}

pub(super) async fn list(conn: &mut PgConnection, org: OrgId) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as("SELECT key, value, version FROM app.policies WHERE org_id = $1").bind(org).fetch_all(conn).await
}

pub(super) async fn get(conn: &mut PgConnection, org: OrgId, key: &str) -> Result<Option<Row>, sqlx::Error> {
    sqlx::query_as("SELECT key, value, version FROM app.policies WHERE org_id = $1 AND key = $2")
        .bind(org)
        .bind(key)
        .fetch_optional(conn)
        .await
}

/// Writes a policy and returns its version, which is one more than the last.
pub(super) async fn put(
    conn: &mut PgConnection,
    org: OrgId,
    key: &str,
    value: &Value,
    by: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO app.policies (org_id, key, value, version, updated_by, updated_at)
         VALUES ($1, $2, $3, 1, $4, $5)
         ON CONFLICT (org_id, key) DO UPDATE
            SET value = EXCLUDED.value, version = policies.version + 1,
                updated_by = EXCLUDED.updated_by, updated_at = EXCLUDED.updated_at
         RETURNING version",
    )
    .bind(org)
    .bind(key)
    .bind(value)
    .bind(by)
    .bind(now)
    .fetch_one(conn)
    .await
}

/// Lets the rule about unused workspaces count from now on.
pub(super) async fn restart_workspaces_rule(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.sandbox_workspace_retention (org_id, effective_since) VALUES ($1, now())
         ON CONFLICT (org_id) DO UPDATE SET effective_since = EXCLUDED.effective_since",
    )
    .bind(org)
    .execute(conn)
    .await?;
    Ok(())
}

/// Since when the rule about unused workspaces counts, and what time it is.
pub(super) async fn workspaces_rule_since(
    conn: &mut PgConnection,
    org: OrgId,
) -> Result<Option<(DateTime<Utc>, DateTime<Utc>)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT coalesce(r.effective_since, o.created_at), now()
         FROM app.organizations o LEFT JOIN app.sandbox_workspace_retention r ON r.org_id = o.id
         WHERE o.id = $1 AND o.deleted_at IS NULL",
    )
    .bind(org)
    .fetch_optional(conn)
    .await
}

/// Who is in these teams.
pub(super) async fn in_teams(
    conn: &mut PgConnection,
    org: OrgId,
    teams: &[TeamId],
) -> Result<Vec<(TeamId, UserId)>, sqlx::Error> {
    sqlx::query_as("SELECT team_id, user_id FROM app.team_members WHERE org_id = $1 AND team_id = ANY ($2)")
        .bind(org)
        .bind(teams)
        .fetch_all(conn)
        .await
}

/// Tells every process, when the transaction commits, that the organization's policies changed.
pub(super) async fn announce(conn: &mut PgConnection, org: OrgId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_notify($1, $2)").bind(super::CHANNEL).bind(org.to_string()).execute(conn).await?;
    Ok(())
}
