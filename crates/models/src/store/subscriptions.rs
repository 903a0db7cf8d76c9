//! `app.subscriptions` and the history of their accounts.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use sqlx::types::Json;
use tale_core::ids::{CredentialId, OrgId};

use crate::subscriptions::{Subscription, TokenSource};

#[derive(sqlx::FromRow)]
struct Row {
    id: CredentialId,
    provider_slug: String,
    name: String,
    broker: Json<TokenSource>,
    masked: Option<String>,
    model_allowlist: Vec<String>,
    enabled: bool,
    version: i64,
    updated_at: DateTime<Utc>,
}

impl From<Row> for Subscription {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            provider_slug: row.provider_slug,
            name: row.name,
            source: row.broker.0,
            masked: row.masked,
            model_allowlist: row.model_allowlist,
            enabled: row.enabled,
            version: row.version,
            updated_at: row.updated_at,
        }
    }
}

/// The subscriptions of an organization, by provider and name.
pub(crate) async fn list(conn: &mut PgConnection, org: OrgId) -> sqlx::Result<Vec<Subscription>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, provider_slug, name, broker, masked, model_allowlist, enabled, version, updated_at
           FROM app.subscriptions WHERE org_id = $1 ORDER BY provider_slug, name",
    )
    .bind(org)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Subscription::from).collect())
}

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId, id: CredentialId) -> sqlx::Result<Option<Subscription>> {
    let row: Option<Row> = sqlx::query_as(
        "SELECT id, provider_slug, name, broker, masked, model_allowlist, enabled, version, updated_at
           FROM app.subscriptions WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Subscription::from))
}

/// The encrypted secret of a subscription, when one is stored.
pub(crate) async fn sealed_secret(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
) -> sqlx::Result<Option<String>> {
    let secret: Option<Option<String>> =
        sqlx::query_scalar("SELECT secret FROM app.subscriptions WHERE org_id = $1 AND id = $2")
            .bind(org)
            .bind(id)
            .fetch_optional(conn)
            .await?;
    Ok(secret.flatten())
}

/// Whether a subscription of the organization is called `name`.
pub(crate) async fn name_taken(conn: &mut PgConnection, org: OrgId, name: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.subscriptions WHERE org_id = $1 AND name = $2)")
        .bind(org)
        .bind(name)
        .fetch_one(conn)
        .await
}

pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    one: &Subscription,
    sealed: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.subscriptions (id, org_id, provider_slug, name, broker, secret, masked, model_allowlist,
                                        enabled, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
    )
    .bind(one.id)
    .bind(org)
    .bind(&one.provider_slug)
    .bind(&one.name)
    .bind(Json(&one.source))
    .bind(sealed)
    .bind(&one.masked)
    .bind(&one.model_allowlist)
    .bind(one.enabled)
    .bind(one.version)
    .bind(one.updated_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes `one` over version `from`. `false` = somebody else was faster. The stored secret is replaced by `sealed`,
/// and goes away where `one` shows none.
pub(crate) async fn update(
    conn: &mut PgConnection,
    org: OrgId,
    one: &Subscription,
    from: i64,
    sealed: Option<&str>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.subscriptions
            SET name = $4, broker = $5, masked = $6, secret = CASE WHEN $6 IS NOT NULL THEN coalesce($7, secret) END,
                model_allowlist = $8, enabled = $9, version = $10, updated_at = $11
          WHERE org_id = $1 AND id = $2 AND version = $3",
    )
    .bind(org)
    .bind(one.id)
    .bind(from)
    .bind(&one.name)
    .bind(Json(&one.source))
    .bind(&one.masked)
    .bind(sealed)
    .bind(&one.model_allowlist)
    .bind(one.enabled)
    .bind(one.version)
    .bind(one.updated_at)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, id: CredentialId, version: i64) -> sqlx::Result<bool> {
    let done = sqlx::query("DELETE FROM app.subscriptions WHERE org_id = $1 AND id = $2 AND version = $3")
        .bind(org)
        .bind(id)
        .bind(version)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Takes the next of `accounts` in turn; `None` when the subscription is gone.
pub(crate) async fn turn(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
    accounts: &[&str],
) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT app.subscription_turn($1, $2, $3)")
        .bind(org)
        .bind(id)
        .bind(accounts)
        .fetch_one(conn)
        .await
}

/// The accounts that the vendor wants no work of at `now`, and when the first of them is free.
pub(crate) async fn cooling(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
    now: DateTime<Utc>,
) -> sqlx::Result<(HashSet<String>, Option<DateTime<Utc>>)> {
    let rows: Vec<(String, DateTime<Utc>)> = sqlx::query_as(
        "SELECT account, cooling_until FROM app.subscription_accounts
          WHERE org_id = $1 AND subscription_id = $2 AND cooling_until > $3",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .fetch_all(conn)
    .await?;
    let first = rows.iter().map(|(_, until)| *until).min();
    Ok((rows.into_iter().map(|(account, _)| account).collect(), first))
}

/// Keeps an account out of selections until then. Nothing happens when the subscription is gone.
pub(crate) async fn cool(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
    account: &str,
    until: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.subscription_accounts AS n (subscription_id, org_id, account, cooling_until)
         SELECT id, org_id, $3, $4 FROM app.subscriptions WHERE org_id = $1 AND id = $2
         ON CONFLICT (subscription_id, account)
         DO UPDATE SET cooling_until = greatest(n.cooling_until, excluded.cooling_until)",
    )
    .bind(org)
    .bind(id)
    .bind(account)
    .bind(until)
    .execute(conn)
    .await?;
    Ok(())
}
