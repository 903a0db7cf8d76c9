//! `app.providers`, `app.provider_history`, `app.provider_catalogs`.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::Actor;
use tale_core::ids::OrgId;
use uuid::Uuid;

use crate::credentials::AuthMethod;
use crate::definition::{CatalogSource, EmbeddingSupport, EndpointMode, ModelSpec, Provider, ProviderKind};
use crate::extra_body::ExtraBody;
use crate::wire::{ApiFormat, WireDialect};

#[derive(sqlx::FromRow)]
struct Row {
    slug: String,
    display_name: String,
    kind: String,
    api_format: String,
    wire_dialect: Option<String>,
    base_url: Option<String>,
    catalog_source: String,
    embedding: String,
    models: Value,
    extra_body: Value,
    version: i64,
    endpoint_mode: Option<String>,
    auth: Vec<String>,
    unreadable: Option<String>,
}

impl Row {
    fn into_provider(self) -> Provider {
        Provider {
            kind: if self.kind == "demo" { ProviderKind::Demo } else { ProviderKind::Custom },
            api_format: ApiFormat::parse(&self.api_format).unwrap_or(ApiFormat::OpenAi),
            wire_dialect: if self.wire_dialect.is_some() { WireDialect::OpenAiModern } else { WireDialect::Classic },
            base_url: self.base_url.and_then(|text| text.parse().ok()),
            endpoint_mode: self.endpoint_mode.map(|_| EndpointMode::PerCredential),
            subscription: None,
            catalog_source: match self.catalog_source.as_str() {
                "models-endpoint" => CatalogSource::ModelsEndpoint,
                "openrouter-api" => CatalogSource::OpenrouterApi,
                _ => CatalogSource::None,
            },
            auth: self.auth.iter().filter_map(|word| AuthMethod::parse(word)).collect(),
            unreadable: self.unreadable,
            embedding: match self.embedding.as_str() {
                "supported" => EmbeddingSupport::Supported,
                "unsupported" => EmbeddingSupport::Unsupported,
                _ => EmbeddingSupport::Unknown,
            },
            models: read_models(self.models, &self.slug),
            extra_body: read_extra_body(self.extra_body, &self.slug),
            version: self.version,
            slug: self.slug,
            display_name: self.display_name,
        }
    }
}

/// Reads stored models. One that this release cannot read is passed over and logged (MOD-2).
fn read_models(stored: Value, slug: &str) -> Vec<ModelSpec> {
    let Value::Array(list) = stored else { return Vec::new() };
    list.into_iter()
        .filter_map(|model| {
            serde_json::from_value(model)
                .inspect_err(|error| tracing::warn!(provider = slug, %error, "a stored model cannot be read"))
                .ok()
        })
        .collect()
}

/// Reads stored extra fields. Those that this release refuses are left out and logged.
fn read_extra_body(stored: Value, slug: &str) -> ExtraBody {
    serde_json::from_value(stored)
        .inspect_err(|error| tracing::warn!(provider = slug, %error, "the extra fields of a provider are refused"))
        .unwrap_or_default()
}

fn dialect_word(dialect: WireDialect) -> Option<&'static str> {
    (dialect == WireDialect::OpenAiModern).then_some("openai-modern")
}

fn mode_word(provider: &Provider) -> Option<&'static str> {
    provider.endpoint_mode.map(|EndpointMode::PerCredential| "per-credential")
}

fn auth_words(provider: &Provider) -> Vec<&'static str> {
    provider.auth.iter().map(|method| method.text()).collect()
}

pub(crate) async fn list(conn: &mut PgConnection, org: OrgId) -> Result<Vec<Provider>, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT slug, display_name, kind, api_format, wire_dialect, base_url, catalog_source,
                embedding, models, extra_body, version, endpoint_mode, auth, unreadable
           FROM app.providers
          WHERE org_id = $1
          ORDER BY kind = 'demo' DESC, lower(display_name), slug",
    )
    .bind(org)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(Row::into_provider).collect())
}

pub(crate) async fn get(conn: &mut PgConnection, org: OrgId, slug: &str) -> Result<Option<Provider>, sqlx::Error> {
    let row: Option<Row> = sqlx::query_as(
        "SELECT slug, display_name, kind, api_format, wire_dialect, base_url, catalog_source,
                embedding, models, extra_body, version, endpoint_mode, auth, unreadable
           FROM app.providers
          WHERE org_id = $1 AND slug = $2",
    )
    .bind(org)
    .bind(slug)
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Row::into_provider))
}

pub(crate) async fn insert(
    conn: &mut PgConnection,
    org: OrgId,
    id: Uuid,
    provider: &Provider,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.providers
                (id, org_id, slug, display_name, kind, api_format, wire_dialect, base_url,
                 catalog_source, embedding, models, version, created_at, updated_at, extra_body,
                 endpoint_mode, auth)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16)",
    )
    .bind(id)
    .bind(org)
    .bind(&provider.slug)
    .bind(&provider.display_name)
    .bind(provider.kind.text())
    .bind(provider.api_format.text())
    .bind(dialect_word(provider.wire_dialect))
    .bind(provider.base_url.as_ref().map(url::Url::as_str))
    .bind(provider.catalog_source.text())
    .bind(provider.embedding.text())
    .bind(sqlx::types::Json(&provider.models))
    .bind(provider.version)
    .bind(now)
    .bind(sqlx::types::Json(&provider.extra_body))
    .bind(mode_word(provider))
    .bind(auth_words(provider))
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes `provider` over version `from`. `false` = somebody else was faster.
pub(crate) async fn update(
    conn: &mut PgConnection,
    org: OrgId,
    provider: &Provider,
    from: i64,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.providers
            SET display_name = $4, wire_dialect = $5, base_url = $6, catalog_source = $7,
                embedding = $8, models = $9, version = $10, updated_at = $11, extra_body = $12,
                endpoint_mode = $13, auth = $14, api_format = $15, unreadable = NULL
          WHERE org_id = $1 AND slug = $2 AND version = $3",
    )
    .bind(org)
    .bind(&provider.slug)
    .bind(from)
    .bind(&provider.display_name)
    .bind(dialect_word(provider.wire_dialect))
    .bind(provider.base_url.as_ref().map(url::Url::as_str))
    .bind(provider.catalog_source.text())
    .bind(provider.embedding.text())
    .bind(sqlx::types::Json(&provider.models))
    .bind(provider.version)
    .bind(now)
    .bind(sqlx::types::Json(&provider.extra_body))
    .bind(mode_word(provider))
    .bind(auth_words(provider))
    .bind(provider.api_format.text())
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn delete(conn: &mut PgConnection, org: OrgId, slug: &str, version: i64) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM app.providers WHERE org_id = $1 AND slug = $2 AND version = $3")
        .bind(org)
        .bind(slug)
        .bind(version)
        .execute(&mut *conn)
        .await?;
    sqlx::query("DELETE FROM app.provider_catalogs WHERE org_id = $1 AND slug = $2")
        .bind(org)
        .bind(slug)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Keeps a state of a definition (MOD-9).
pub(crate) async fn remember(
    conn: &mut PgConnection,
    org: OrgId,
    id: Uuid,
    provider: &Provider,
    change: &str,
    actor: &Actor,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.provider_history (id, org_id, slug, version, change, definition, actor, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id)
    .bind(org)
    .bind(&provider.slug)
    .bind(provider.version)
    .bind(change)
    .bind(sqlx::types::Json(provider))
    .bind(sqlx::types::Json(actor))
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes why the file of a definition cannot be used; `None` = it can. `false` = it was noted already.
pub(crate) async fn note_unreadable(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
    reason: Option<&str>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.providers SET unreadable = $3
          WHERE org_id = $1 AND slug = $2 AND unreadable IS DISTINCT FROM $3",
    )
    .bind(org)
    .bind(slug)
    .bind(reason)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A state of a definition as it was kept.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct HistoryRow {
    pub(crate) id: Uuid,
    pub(crate) version: i64,
    pub(crate) change: String,
    pub(crate) definition: Value,
    pub(crate) at: DateTime<Utc>,
}

/// The last states of a definition, the newest first.
pub(crate) async fn history(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
    most: i64,
) -> Result<Vec<HistoryRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, version, change, definition, at
           FROM app.provider_history
          WHERE org_id = $1 AND slug = $2
          ORDER BY at DESC, id DESC
          LIMIT $3",
    )
    .bind(org)
    .bind(slug)
    .bind(most)
    .fetch_all(conn)
    .await
}

/// The organizations that have definitions of their own, and those called by one of `slugs`.
pub(crate) async fn organizations(
    conn: &mut PgConnection,
    slugs: &[String],
) -> Result<Vec<(OrgId, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, slug FROM app.organizations o
          WHERE deleted_at IS NULL
            AND (slug = ANY($1) OR EXISTS (SELECT FROM app.providers p WHERE p.org_id = o.id AND p.kind = 'custom'))",
    )
    .bind(slugs)
    .fetch_all(conn)
    .await
}

/// When a live list was last read, and how the last attempt failed if it did.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct CatalogRow {
    pub(crate) slug: String,
    pub(crate) revision: i64,
    pub(crate) fetched_at: Option<DateTime<Utc>>,
    pub(crate) error: Option<String>,
    pub(crate) error_at: Option<DateTime<Utc>>,
}

pub(crate) async fn catalogs(conn: &mut PgConnection, org: OrgId) -> Result<Vec<CatalogRow>, sqlx::Error> {
    sqlx::query_as("SELECT slug, revision, fetched_at, error, error_at FROM app.provider_catalogs WHERE org_id = $1")
        .bind(org)
        .fetch_all(conn)
        .await
}

pub(crate) async fn catalog_models(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
) -> Result<Vec<ModelSpec>, sqlx::Error> {
    let stored: Option<Value> =
        sqlx::query_scalar("SELECT models FROM app.provider_catalogs WHERE org_id = $1 AND slug = $2")
            .bind(org)
            .bind(slug)
            .fetch_optional(conn)
            .await?;
    Ok(stored.map(|stored| read_models(stored, slug)).unwrap_or_default())
}

pub(crate) async fn keep_catalog(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
    models: &[ModelSpec],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.provider_catalogs (org_id, slug, models, revision, fetched_at)
         VALUES ($1, $2, $3, 1, $4)
         ON CONFLICT (org_id, slug) DO UPDATE
            SET models = EXCLUDED.models, revision = provider_catalogs.revision + 1, fetched_at = EXCLUDED.fetched_at, error = NULL, error_at = NULL",
    )
    .bind(org)
    .bind(slug)
    .bind(sqlx::types::Json(models))
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes a failed attempt and keeps the list before it (MOD-15).
pub(crate) async fn note_catalog_failure(
    conn: &mut PgConnection,
    org: OrgId,
    slug: &str,
    error: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.provider_catalogs (org_id, slug, error, error_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (org_id, slug) DO UPDATE
            SET error = EXCLUDED.error, error_at = EXCLUDED.error_at",
    )
    .bind(org)
    .bind(slug)
    .bind(error)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}
