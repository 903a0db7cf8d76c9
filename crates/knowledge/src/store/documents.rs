//! SQL of the library's documents.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{DocumentId, FileId, OrgId, UserId};

use crate::documents::DocumentQuery;
use crate::files::IndexStatus;
use crate::order::{Key, Position, SortBy};

/// A document with what its file knows, as the domain reads it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct DocumentRow {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) file_id: Option<FileId>,
    pub(crate) content: Option<String>,
    pub(crate) mime_type: String,
    pub(crate) extension: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    pub(crate) created_by: Option<UserId>,
    pub(crate) creator_name: Option<String>,
    pub(crate) file_name: Option<String>,
    pub(crate) size: i64,
    pub(crate) storage_key: Option<String>,
    pub(crate) content_hash: Option<String>,
    pub(crate) status: IndexStatus,
    pub(crate) embedded: bool,
    pub(crate) indexed_at: Option<DateTime<Utc>>,
    pub(crate) index_error: Option<String>,
    pub(crate) index_error_code: Option<String>,
    pub(crate) index_done: Option<i32>,
    pub(crate) index_total: Option<i32>,
    pub(crate) text_length: Option<i64>,
}

macro_rules! select_document {
    ($($rest:literal),+) => {
        concat!(
            "SELECT d.id, d.title, d.file_id, d.content, d.mime_type, d.extension, d.created_at, d.updated_at, d.created_by,
                    u.name AS creator_name, f.file_name, coalesce(f.size, octet_length(d.content)::bigint, 0) AS size,
                    f.storage_key, f.content_hash,
                    CASE WHEN f.id IS NULL THEN 'pending' WHEN f.skip_indexing THEN 'skipped' ELSE f.index_status END AS status,
                    coalesce(f.embedded, false) AS embedded, f.indexed_at, f.index_error, f.index_error_code, f.index_done,
                    f.index_total, f.text_length
               FROM app.documents d
               LEFT JOIN app.files f ON f.org_id = d.org_id AND f.id = d.file_id
               LEFT JOIN app.users u ON u.id = d.created_by
              WHERE d.org_id = $1 ",
            $($rest),+
        )
    };
}

/// One page in one order: `$key` is what rows are compared by, `$after` the same of the row before the page.
macro_rules! page_of {
    ($key:literal, $after:literal, $past:literal, $direction:literal) => {
        select_document!(
            "AND d.lifecycle = 'active'
             AND ($2::text IS NULL OR d.title ILIKE $2 OR f.file_name ILIKE $2)
             AND ($3::text IS NULL
                  OR $3 = CASE WHEN f.id IS NULL THEN 'pending' WHEN f.skip_indexing THEN 'skipped' ELSE f.index_status END)
             AND ($5::uuid IS NULL OR (",
            $key,
            ", d.id) ",
            $past,
            " (",
            $after,
            ", $5)) ORDER BY ",
            $key,
            " ",
            $direction,
            ", d.id ",
            $direction,
            " LIMIT $6"
        )
    };
}

macro_rules! page_by_name {
    ($past:literal, $direction:literal) => {
        // Titles are compared without regard to case, and letters with accents stand with their base letter, whatever
        // the database's collation.
        page_of!(
            "translate(lower(d.title), 'àáâãäåæçèéêëìíîïñòóôõöøœùúûüýÿß', 'aaaaaaaceeeeiiiinooooooouuuuyys')",
            "translate(lower($4::text), 'àáâãäåæçèéêëìíîïñòóôõöøœùúûüýÿß', 'aaaaaaaceeeeiiiinooooooouuuuyys')",
            $past,
            $direction
        )
    };
}

macro_rules! page_by_size {
    ($past:literal, $direction:literal) => {
        page_of!("coalesce(f.size, octet_length(d.content)::bigint, 0)", "$4::bigint", $past, $direction)
    };
}

macro_rules! page_by_age {
    ($past:literal, $direction:literal) => {
        page_of!("d.created_at", "$4::timestamptz", $past, $direction)
    };
}

/// What a new document starts with.
pub(crate) struct NewDocument<'a> {
    pub(crate) id: DocumentId,
    pub(crate) title: &'a str,
    pub(crate) file_id: Option<FileId>,
    pub(crate) content: Option<&'a str>,
    pub(crate) mime_type: &'a str,
    pub(crate) extension: &'a str,
    pub(crate) source_provider: &'a str,
    pub(crate) created_by: Option<UserId>,
    pub(crate) now: DateTime<Utc>,
}

/// Creates a document.
pub(crate) async fn insert(conn: &mut PgConnection, org: OrgId, document: &NewDocument<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.documents (org_id, id, title, file_id, content, mime_type, extension, source_provider, created_by,
                                    created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
    )
    .bind(org)
    .bind(document.id)
    .bind(document.title)
    .bind(document.file_id)
    .bind(document.content)
    .bind(document.mime_type)
    .bind(document.extension)
    .bind(document.source_provider)
    .bind(document.created_by)
    .bind(document.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// A document that is not in the trash.
pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    id: DocumentId,
) -> Result<Option<DocumentRow>, sqlx::Error> {
    sqlx::query_as(select_document!("AND d.id = $2 AND d.lifecycle = 'active'"))
        .bind(org)
        .bind(id)
        .fetch_optional(conn)
        .await
}

/// Those of `ids` that are active documents.
pub(crate) async fn active(
    conn: &mut PgConnection,
    org: OrgId,
    ids: &[DocumentId],
) -> Result<Vec<DocumentId>, sqlx::Error> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.0).collect();
    sqlx::query_scalar("SELECT id FROM app.documents WHERE org_id = $1 AND id = ANY($2) AND lifecycle = 'active'")
        .bind(org)
        .bind(ids)
        .fetch_all(conn)
        .await
}

/// As [`get`], with document and file locked until the transaction ends.
pub(crate) async fn lock(
    conn: &mut PgConnection,
    org: OrgId,
    id: DocumentId,
) -> Result<Option<DocumentRow>, sqlx::Error> {
    sqlx::query("SELECT 1 FROM app.documents WHERE org_id = $1 AND id = $2 FOR UPDATE")
        .bind(org)
        .bind(id)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "SELECT 1
           FROM app.files f
           JOIN app.documents d ON d.org_id = f.org_id AND d.file_id = f.id
          WHERE f.org_id = $1 AND d.id = $2
            FOR UPDATE OF f",
    )
    .bind(org)
    .bind(id)
    .execute(&mut *conn)
    .await?;
    get(conn, org, id).await
}

/// The document that holds a file, with whether it is active.
pub(crate) async fn holding(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
) -> Result<Option<(DocumentId, bool, Option<UserId>)>, sqlx::Error> {
    sqlx::query_as("SELECT id, lifecycle = 'active', created_by FROM app.documents WHERE org_id = $1 AND file_id = $2")
        .bind(org)
        .bind(file)
        .fetch_optional(conn)
        .await
}

/// A page of active documents, in the order of `query`.
pub(crate) async fn list(
    conn: &mut PgConnection,
    org: OrgId,
    query: &DocumentQuery,
    after: Option<&Position>,
    limit: i64,
) -> Result<Vec<DocumentRow>, sqlx::Error> {
    let statement = match (query.order.by, query.order.ascending) {
        (SortBy::Added, false) => page_by_age!("<", "DESC"),
        (SortBy::Added, true) => page_by_age!(">", "ASC"),
        (SortBy::Name, false) => page_by_name!("<", "DESC"),
        (SortBy::Name, true) => page_by_name!(">", "ASC"),
        (SortBy::Size, false) => page_by_size!("<", "DESC"),
        (SortBy::Size, true) => page_by_size!(">", "ASC"),
    };
    let key = after.map(|at| &at.key);
    let rows = sqlx::query_as(statement).bind(org).bind(query.search.as_deref().map(contains)).bind(query.status);
    let rows = match query.order.by {
        SortBy::Added => rows.bind(key.and_then(Key::added)),
        SortBy::Name => rows.bind(key.and_then(Key::name)),
        SortBy::Size => rows.bind(key.and_then(Key::size)),
    };
    rows.bind(after.map(|at| at.id)).bind(limit).fetch_all(conn).await
}

/// How many active documents match.
pub(crate) async fn count(conn: &mut PgConnection, org: OrgId, query: &DocumentQuery) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(*)
           FROM app.documents d
           LEFT JOIN app.files f ON f.org_id = d.org_id AND f.id = d.file_id
          WHERE d.org_id = $1 AND d.lifecycle = 'active'
            AND ($2::text IS NULL OR d.title ILIKE $2 OR f.file_name ILIKE $2)
            AND ($3::text IS NULL
                 OR $3 = CASE WHEN f.id IS NULL THEN 'pending' WHEN f.skip_indexing THEN 'skipped' ELSE f.index_status END)",
    )
    .bind(org)
    .bind(query.search.as_deref().map(contains))
    .bind(query.status)
    .fetch_one(conn)
    .await
}

/// A pattern that finds `text` anywhere, its own wildcards taken literally.
fn contains(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// Gives a document another title.
pub(crate) async fn rename(
    conn: &mut PgConnection,
    org: OrgId,
    id: DocumentId,
    title: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.documents SET title = $3, updated_at = $4 WHERE org_id = $1 AND id = $2 AND lifecycle = 'active'",
    )
    .bind(org)
    .bind(id)
    .bind(title)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Moves an active document to the trash; false when there is none.
pub(crate) async fn trash(
    conn: &mut PgConnection,
    org: OrgId,
    id: DocumentId,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.documents
            SET lifecycle = 'trashed', trashed_at = $3, updated_at = $3
          WHERE org_id = $1 AND id = $2 AND lifecycle = 'active'",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Brings a document back from the trash; false when it is not there.
pub(crate) async fn restore(
    conn: &mut PgConnection,
    org: OrgId,
    id: DocumentId,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.documents
            SET lifecycle = 'active', trashed_at = NULL, updated_at = $3
          WHERE org_id = $1 AND id = $2 AND lifecycle = 'trashed'",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A document on its way out of the trash for good.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Purging {
    pub(crate) org_id: OrgId,
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) file_id: Option<FileId>,
    pub(crate) storage_key: Option<String>,
}

/// Marks documents of every organization that were trashed before `before` and returns all that
/// are being purged by now.
pub(crate) async fn start_purge(
    conn: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Purging>, sqlx::Error> {
    sqlx::query("UPDATE app.documents SET lifecycle = 'purging' WHERE lifecycle = 'trashed' AND trashed_at < $1")
        .bind(before)
        .execute(&mut *conn)
        .await?;
    sqlx::query_as(
        "SELECT d.org_id, d.id, d.title, d.file_id, f.storage_key
           FROM app.documents d
           LEFT JOIN app.files f ON f.org_id = d.org_id AND f.id = d.file_id
          WHERE d.lifecycle = 'purging'
          ORDER BY row_number() OVER (PARTITION BY d.org_id ORDER BY d.trashed_at), d.trashed_at
          LIMIT $1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Removes the row of a document whose bytes and passages are gone.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, id: DocumentId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.documents WHERE org_id = $1 AND id = $2 AND lifecycle = 'purging'")
        .bind(org)
        .bind(id)
        .execute(conn)
        .await?;
    Ok(())
}
