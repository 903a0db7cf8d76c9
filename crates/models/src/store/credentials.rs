//! `app.credentials`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{CredentialId, OrgId};
use url::Url;

use crate::credentials::{AuthMethod, Credential};

#[derive(sqlx::FromRow)]
struct Row {
    id: CredentialId,
    provider_slug: String,
    name: String,
    auth_method: String,
    masked: Option<String>,
    secret_env: Option<String>,
    endpoint: Option<String>,
    model_allowlist: Vec<String>,
    enabled: bool,
    is_default: bool,
    version: i64,
    updated_at: DateTime<Utc>,
}

impl Row {
    fn into_credential(self) -> Credential {
        Credential {
            id: self.id,
            provider_slug: self.provider_slug,
            name: self.name,
            auth_method: match self.auth_method.as_str() {
                "api-key" => AuthMethod::ApiKey,
                "env" => AuthMethod::Env,
                _ => AuthMethod::None,
            },
            masked: self.masked,
            secret_env: self.secret_env,
            endpoint: self.endpoint.and_then(|text| Url::parse(&text).ok()),
            model_allowlist: self.model_allowlist,
            enabled: self.enabled,
            is_default: self.is_default,
            version: self.version,
            updated_at: self.updated_at,
        }
    }
}

/// The credentials of the organization; of each provider the default first.
pub(crate) async fn list(conn: &mut PgConnection, org: OrgId) -> Result<Vec<Credential>, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, provider_slug, name, auth_method, masked, secret_env, endpoint, model_allowlist,
                enabled, is_default, version, updated_at
           FROM app.credentials
          WHERE org_id = $1
          ORDER BY provider_slug, is_default DESC, name",
    )
    .bind(org)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Row::into_credential).collect())
}

/// Those of one provider, the default first.
pub(crate) async fn of_provider(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
) -> Result<Vec<Credential>, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, provider_slug, name, auth_method, masked, secret_env, endpoint, model_allowlist,
                enabled, is_default, version, updated_at
           FROM app.credentials
          WHERE org_id = $1 AND provider_slug = $2
          ORDER BY is_default DESC, name",
    )
    .bind(org)
    .bind(slug)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Row::into_credential).collect())
}

pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
) -> Result<Option<Credential>, sqlx::Error> {
    let row: Option<Row> = sqlx::query_as(
        "SELECT id, provider_slug, name, auth_method, masked, secret_env, endpoint, model_allowlist,
                enabled, is_default, version, updated_at
           FROM app.credentials
          WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Row::into_credential))
}

/// The version of a credential and its encrypted key.
pub(crate) async fn sealed_secret(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
) -> Result<Option<(i64, Option<String>)>, sqlx::Error> {
    sqlx::query_as("SELECT version, secret FROM app.credentials WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .fetch_optional(conn)
        .await
}

/// Whether a credential of the organization is called `name`.
pub(crate) async fn name_taken(conn: &mut PgConnection, org: OrgId, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.credentials WHERE org_id = $1 AND name = $2)")
        .bind(org)
        .bind(name)
        .fetch_one(conn)
        .await
}

/// `sealed` is the encrypted key of an `api-key` credential.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    credential: &Credential,
    sealed: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.credentials
                (id, org_id, provider_slug, name, auth_method, secret, masked, secret_env, endpoint,
                 model_allowlist, enabled, is_default, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)",
    )
    .bind(credential.id)
    .bind(org)
    .bind(&credential.provider_slug)
    .bind(&credential.name)
    .bind(credential.auth_method.text())
    .bind(sealed)
    .bind(&credential.masked)
    .bind(&credential.secret_env)
    .bind(credential.endpoint.as_ref().map(Url::as_str))
    .bind(&credential.model_allowlist)
    .bind(credential.enabled)
    .bind(credential.is_default)
    .bind(credential.version)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes `credential` over version `from`; `sealed` replaces the key when given. `false` =
/// somebody else was faster.
pub(crate) async fn update(
    conn: &mut PgConnection,
    org: OrgId,
    credential: &Credential,
    from: i64,
    sealed: Option<&str>,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.credentials
            SET name = $4, auth_method = $5, secret = CASE WHEN $5 = 'api-key' THEN coalesce($6, secret) END,
                masked = $7, endpoint = $8, model_allowlist = $9, enabled = $10, is_default = $11,
                version = $12, updated_at = $13
          WHERE org_id = $1 AND id = $2 AND version = $3",
    )
    .bind(org)
    .bind(credential.id)
    .bind(from)
    .bind(&credential.name)
    .bind(credential.auth_method.text())
    .bind(sealed)
    .bind(&credential.masked)
    .bind(credential.endpoint.as_ref().map(Url::as_str))
    .bind(&credential.model_allowlist)
    .bind(credential.enabled)
    .bind(credential.is_default)
    .bind(credential.version)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Takes the default mark away from the provider's credentials.
pub(crate) async fn clear_default(
    conn: &mut PgConnection,
    org: OrgId,
    provider_slug: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.credentials
            SET is_default = false, version = version + 1, updated_at = $3
          WHERE org_id = $1 AND provider_slug = $2 AND is_default",
    )
    .bind(org)
    .bind(provider_slug)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn delete(
    conn: &mut PgConnection,
    org: OrgId,
    id: CredentialId,
    version: i64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.credentials WHERE org_id = $1 AND id = $2 AND version = $3")
        .bind(org)
        .bind(id)
        .bind(version)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// A stored key as it is encrypted: of a credential, or of a subscription's broker.
#[derive(sqlx::FromRow)]
pub(crate) struct Sealed {
    pub(crate) id: CredentialId,
    pub(crate) org_id: OrgId,
    pub(crate) secret: String,
    pub(crate) of_broker: bool,
}

/// The next stored keys of all organizations, in the order of their ids: the operator's work is on
/// the whole deployment.
pub(crate) async fn sealed_after(
    pool: &sqlx::PgPool,
    after: Option<CredentialId>,
    limit: i64,
) -> Result<Vec<Sealed>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, org_id, secret, of_broker FROM (
            SELECT id, org_id, secret, false AS of_broker FROM app.credentials
            UNION ALL SELECT id, org_id, secret, true FROM app.subscriptions) stored
          WHERE secret IS NOT NULL AND ($1::uuid IS NULL OR id > $1) ORDER BY id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(pool)
    .await
}

/// Replaces the encrypted form unless the key was changed meanwhile. The key itself is the same, so
/// the version stays.
pub(crate) async fn reseal(pool: &sqlx::PgPool, row: &Sealed, sealed: &str) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(if row.of_broker {
        "UPDATE app.subscriptions SET secret = $4 WHERE org_id = $1 AND id = $2 AND secret = $3"
    } else {
        "UPDATE app.credentials SET secret = $4 WHERE org_id = $1 AND id = $2 AND secret = $3"
    })
    .bind(row.org_id)
    .bind(row.id)
    .bind(&row.secret)
    .bind(sealed)
    .execute(pool)
    .await?;
    Ok(done.rows_affected() == 1)
}
