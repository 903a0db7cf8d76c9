//! SQL of uploaded files and of how far they are indexed.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::Problem;
use tale_core::ids::{DocumentId, FileId, OrgId, ThreadId, UserId};

use crate::files::{IndexStatus, Purpose};

/// A file row as the domain reads it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct FileRow {
    pub(crate) id: FileId,
    pub(crate) storage_key: String,
    pub(crate) file_name: String,
    pub(crate) content_type: String,
    pub(crate) size: i64,
    pub(crate) purpose: Purpose,
    pub(crate) uploaded_by: Option<UserId>,
    pub(crate) thread_id: Option<ThreadId>,
    pub(crate) image_width: Option<i32>,
    pub(crate) image_height: Option<i32>,
    pub(crate) state: String,
    pub(crate) skip_indexing: bool,
    pub(crate) index_status: IndexStatus,
    pub(crate) index_error: Option<String>,
    pub(crate) searchable: bool,
    pub(crate) embedded: bool,
    pub(crate) embedding_stamp: Option<String>,
    pub(crate) text_length: Option<i64>,
    pub(crate) created_at: DateTime<Utc>,
}

macro_rules! select_file {
    ($rest:literal) => {
        concat!(
            "SELECT id, storage_key, file_name, content_type, size, purpose, uploaded_by, thread_id,
                    image_width, image_height, state, skip_indexing, index_status, index_error, searchable,
                    embedded, embedding_stamp, text_length, created_at
               FROM app.files
              WHERE org_id = $1 ",
            $rest
        )
    };
}

/// What a new upload slot starts with.
pub(crate) struct NewFile<'a> {
    pub(crate) id: FileId,
    pub(crate) storage_key: &'a str,
    pub(crate) file_name: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) size: i64,
    pub(crate) purpose: Purpose,
    pub(crate) uploaded_by: Option<UserId>,
    pub(crate) upload_deadline: DateTime<Utc>,
    pub(crate) now: DateTime<Utc>,
}

/// Lets the uploads of one person happen one after another until the transaction ends.
pub(crate) async fn lock_volume(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('tale:uploads:' || $1::text || $2::text, 0))")
        .bind(org)
        .bind(user)
        .execute(conn)
        .await
        .map(drop)
}

/// The bytes of one person's files together: those on their way and those in the trash included.
pub(crate) async fn volume(conn: &mut PgConnection, org: OrgId, user: UserId) -> Result<u64, sqlx::Error> {
    let sum: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(size), 0)::bigint
           FROM app.files
          WHERE org_id = $1 AND uploaded_by = $2 AND state <> 'deleting'",
    )
    .bind(org)
    .bind(user)
    .fetch_one(conn)
    .await?;
    Ok(sum.unsigned_abs())
}

/// Opens an upload slot.
pub(crate) async fn insert(conn: &mut PgConnection, org: OrgId, file: &NewFile<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO app.files (org_id, id, storage_key, file_name, content_type, size, purpose, uploaded_by,
                                upload_deadline, status_changed_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
    )
    .bind(org)
    .bind(file.id)
    .bind(file.storage_key)
    .bind(file.file_name)
    .bind(file.content_type)
    .bind(file.size)
    .bind(file.purpose)
    .bind(file.uploaded_by)
    .bind(file.upload_deadline)
    .bind(file.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The file, unless it waits for its purge.
pub(crate) async fn get(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<Option<FileRow>, sqlx::Error> {
    sqlx::query_as(select_file!("AND id = $2 AND state <> 'deleting'")).bind(org).bind(id).fetch_optional(conn).await
}

/// As [`get`], locked until the transaction ends.
pub(crate) async fn lock(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<Option<FileRow>, sqlx::Error> {
    sqlx::query_as(select_file!("AND id = $2 AND state <> 'deleting' FOR UPDATE"))
        .bind(org)
        .bind(id)
        .fetch_optional(conn)
        .await
}

/// What a registered upload is known to be.
pub(crate) struct Registration<'a> {
    pub(crate) status: IndexStatus,
    pub(crate) error: Option<&'a str>,
    pub(crate) error_code: Option<&'a str>,
    pub(crate) image: Option<(i32, i32)>,
    pub(crate) now: DateTime<Utc>,
}

/// Turns an upload slot into a stored file with its first status.
pub(crate) async fn register(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    with: &Registration<'_>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.files
            SET state = 'stored', index_status = $3, index_error = $4, index_error_code = $5, image_width = $6,
                image_height = $7, status_changed_at = $8, index_queued_at = CASE WHEN $3 = 'queued' THEN $8 END
          WHERE org_id = $1 AND id = $2 AND state = 'slot'",
    )
    .bind(org)
    .bind(id)
    .bind(with.status)
    .bind(with.error)
    .bind(with.error_code)
    .bind(with.image.map(|(width, _)| width))
    .bind(with.image.map(|(_, height)| height))
    .bind(with.now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives chat uploads of `owner` to a chat. Returns how many of `ids` it now holds.
pub(crate) async fn hold_by_thread(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    owner: Option<UserId>,
    ids: &[FileId],
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.files
            SET thread_id = $2
          WHERE org_id = $1 AND id = ANY($4) AND purpose = 'chat' AND state = 'stored'
            AND uploaded_by IS NOT DISTINCT FROM $3 AND (thread_id IS NULL OR thread_id = $2)",
    )
    .bind(org)
    .bind(thread)
    .bind(owner)
    .bind(ids)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// The chat uploads of `owner` among `ids`, in no order.
pub(crate) async fn own_chat_uploads(
    conn: &mut PgConnection,
    org: OrgId,
    owner: Option<UserId>,
    ids: &[FileId],
) -> Result<Vec<FileRow>, sqlx::Error> {
    sqlx::query_as(select_file!("AND id = ANY($2) AND uploaded_by = $3 AND purpose = 'chat' AND state <> 'deleting'"))
        .bind(org)
        .bind(ids)
        .bind(owner)
        .fetch_all(conn)
        .await
}

/// Takes chat uploads from a chat; they wait for another message until `deadline`.
pub(crate) async fn release_from_thread(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    ids: &[FileId],
    deadline: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files SET thread_id = NULL, upload_deadline = GREATEST(upload_deadline, $4)
          WHERE org_id = $1 AND thread_id = $2 AND id = ANY($3) AND purpose = 'chat'",
    )
    .bind(org)
    .bind(thread)
    .bind(ids)
    .bind(deadline)
    .execute(conn)
    .await?;
    Ok(())
}

/// Puts a stored file into the queue. Returns whether it was not there already.
pub(crate) async fn queue(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.files
            SET index_status = 'queued', index_error = NULL, index_error_code = NULL, index_done = NULL, index_total = NULL,
                skip_indexing = false, index_queued_at = $3, status_changed_at = $3
          WHERE org_id = $1 AND id = $2 AND state = 'stored' AND (index_status NOT IN ('queued', 'running') OR skip_indexing)",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Queues every file that an indexing run would serve and that none is about to serve. Files that
/// were left out of indexing, or whose format rules it out, stay as they are.
pub(crate) async fn queue_all(
    conn: &mut PgConnection,
    org: OrgId,
    now: DateTime<Utc>,
) -> Result<Vec<FileId>, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE app.files
            SET index_status = 'queued', index_error = NULL, index_error_code = NULL, index_done = NULL, index_total = NULL,
                index_queued_at = $2, status_changed_at = $2
          WHERE org_id = $1 AND state = 'stored' AND NOT skip_indexing AND index_status IN ('completed', 'failed')
      RETURNING id",
    )
    .bind(org)
    .bind(now)
    .fetch_all(conn)
    .await
}

/// A file that a job took up, with the document that holds it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct TakenUp {
    pub(crate) storage_key: String,
    pub(crate) file_name: String,
    pub(crate) size: i64,
    pub(crate) purpose: Purpose,
    pub(crate) document_id: Option<DocumentId>,
    pub(crate) title: Option<String>,
}

/// Marks a file as being read. `None` when nothing is to be done for it: it is gone, done, left out,
/// or no active document holds it.
pub(crate) async fn take_up(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    now: DateTime<Utc>,
) -> Result<Option<TakenUp>, sqlx::Error> {
    sqlx::query_as(
        "WITH holder AS (SELECT id, title FROM app.documents WHERE org_id = $1 AND file_id = $2 AND lifecycle = 'active'),
              taken AS (
              UPDATE app.files
                 SET index_status = 'running', index_error = NULL, index_error_code = NULL, index_done = NULL,
                     index_total = NULL, status_changed_at = $3
               WHERE org_id = $1 AND id = $2 AND state = 'stored' AND NOT skip_indexing
                 AND index_status IN ('queued', 'running', 'failed')
                 AND (purpose = 'chat' OR EXISTS (SELECT FROM holder))
           RETURNING storage_key, file_name, size, purpose)
         SELECT taken.storage_key, taken.file_name, taken.size, taken.purpose, holder.id AS document_id, holder.title
           FROM taken
           LEFT JOIN holder ON true",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .fetch_optional(conn)
    .await
}

/// Who pays for what is done with a file: its uploader, else who made its document.
pub(crate) async fn spender(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<Option<UserId>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT coalesce(f.uploaded_by, d.created_by)
           FROM app.files f
           LEFT JOIN app.documents d ON d.org_id = f.org_id AND d.file_id = f.id
          WHERE f.org_id = $1 AND f.id = $2
          LIMIT 1",
    )
    .bind(org)
    .bind(id)
    .fetch_optional(conn)
    .await
    .map(Option::flatten)
}

/// Puts a file whose run did not succeed back to where the next one takes it up.
pub(crate) async fn await_retry(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    away: Option<&Problem>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET index_status = 'queued', index_done = NULL, index_total = NULL, status_changed_at = $3,
                index_error_code = $4, index_error = $5
          WHERE org_id = $1 AND id = $2 AND index_status = 'running'",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .bind(away.map(|problem| problem.code.text().to_ascii_lowercase()))
    .bind(away.map(|problem| problem.message.as_ref()))
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends an indexing run without a searchable file: `failed` or `unsupported`, reason and code together.
pub(crate) async fn end(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    status: IndexStatus,
    code: &str,
    error: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET index_status = $3, index_error_code = $4, index_error = $5, index_done = NULL, index_total = NULL,
                status_changed_at = $6
          WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .bind(status)
    .bind(code)
    .bind(error)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a file's passages out of every search. Its digest is known: it was read.
pub(crate) async fn darken(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    content_hash: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET content_hash = $3, searchable = false, embedded = false, embedding_stamp = NULL, text_length = NULL, indexed_at = NULL
          WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .bind(content_hash)
    .execute(conn)
    .await?;
    Ok(())
}

/// A file whose passages are complete: searchable by words. `code` says what is missing for vectors.
pub(crate) struct Completed<'a> {
    pub(crate) content_hash: &'a str,
    pub(crate) text_length: i64,
    /// Set when the passages carry the vectors of the organization's model already.
    pub(crate) embedding_stamp: Option<&'a str>,
    pub(crate) code: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) now: DateTime<Utc>,
}

/// What holds a file that was read: a document with its title and whether it is active, or a chat.
pub(crate) type Held = (Option<DocumentId>, Option<String>, Option<bool>);

/// Records that a file was read to its end. `None` when it was deleted, or settled by somebody else
/// meanwhile.
pub(crate) async fn complete(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    with: &Completed<'_>,
) -> Result<Option<Held>, sqlx::Error> {
    sqlx::query_as(
        "WITH completed AS (
         UPDATE app.files
            SET index_status = 'completed', searchable = true, content_hash = $3, text_length = $4, embedded = $5 IS NOT NULL,
                embedding_stamp = $5, index_error_code = $6, index_error = $7,
                index_done = NULL, index_total = NULL, indexed_at = $8, status_changed_at = $8
          WHERE org_id = $1 AND id = $2 AND state = 'stored' AND index_status = 'running'
      RETURNING id)
         SELECT holder.id, holder.title, holder.lifecycle = 'active'
           FROM completed
           LEFT JOIN app.documents holder ON holder.org_id = $1 AND holder.file_id = completed.id",
    )
    .bind(org)
    .bind(id)
    .bind(with.content_hash)
    .bind(with.text_length)
    .bind(with.embedding_stamp)
    .bind(with.code)
    .bind(with.error)
    .bind(with.now)
    .fetch_optional(conn)
    .await
}

/// Passages done, and how many are expected when that is known.
pub(crate) async fn progress(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    done: i32,
    total: Option<i32>,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files SET index_done = $3, index_total = $4, status_changed_at = $5 WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .bind(done)
    .bind(total)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Every passage of the file carries a vector of the model that `stamp` names.
pub(crate) async fn embedded(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    stamp: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET embedded = true, embedding_stamp = $3, index_status = 'completed', index_error_code = NULL, index_error = NULL,
                index_done = NULL, index_total = NULL, status_changed_at = $4
          WHERE org_id = $1 AND id = $2 AND searchable",
    )
    .bind(org)
    .bind(id)
    .bind(stamp)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The file stays searchable by words; `code` says why it has no vectors.
pub(crate) async fn not_embedded(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    status: IndexStatus,
    code: &str,
    error: &str,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET embedded = false, index_status = $3, index_error_code = $4, index_error = $5, index_done = NULL, index_total = NULL,
                status_changed_at = $6
          WHERE org_id = $1 AND id = $2 AND searchable",
    )
    .bind(org)
    .bind(id)
    .bind(status)
    .bind(code)
    .bind(error)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Files that a newly chosen embedding model concerns (EMB-4, IDX-15): complete ones without its
/// vectors, and failed ones that its settings can cure. Their reasons are cleared.
pub(crate) async fn take_unembedded(
    conn: &mut PgConnection,
    org: OrgId,
    stamp: &str,
    now: DateTime<Utc>,
) -> Result<Vec<FileId>, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE app.files
            SET index_status = 'completed', index_error_code = NULL, index_error = NULL, embedded = false, status_changed_at = $3
          WHERE org_id = $1 AND state = 'stored' AND searchable AND NOT skip_indexing
            AND embedding_stamp IS DISTINCT FROM $2
            AND (index_status = 'completed'
                 OR (index_status = 'failed' AND index_error_code IN ('embedding_upstream', 'embedding_provider_refused')))
      RETURNING id",
    )
    .bind(org)
    .bind(stamp)
    .bind(now)
    .fetch_all(conn)
    .await
}

/// The organization has no embedding model any more: what is searchable is so by words alone.
pub(crate) async fn forget_embedding(conn: &mut PgConnection, org: OrgId, error: &str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET embedded = false, index_status = 'completed', index_error_code = 'embedding_not_configured', index_error = $2
          WHERE org_id = $1 AND searchable
            AND (index_status = 'completed'
                 OR (index_status = 'failed' AND index_error_code IN ('embedding_upstream', 'embedding_provider_refused')))",
    )
    .bind(org)
    .bind(error)
    .execute(conn)
    .await?;
    Ok(())
}

/// How many files held by active documents are searchable, carry vectors, and wait for them.
pub(crate) async fn corpus_counts(conn: &mut PgConnection, org: OrgId) -> Result<(i64, i64, i64), sqlx::Error> {
    sqlx::query_as(
        "SELECT count(*), count(*) FILTER (WHERE f.embedded),
                count(*) FILTER (WHERE NOT f.embedded AND f.searchable AND f.index_error_code IS NULL)
           FROM app.documents d
           JOIN app.files f ON f.org_id = d.org_id AND f.id = d.file_id
          WHERE d.org_id = $1 AND d.lifecycle = 'active'",
    )
    .bind(org)
    .fetch_one(conn)
    .await
}

/// Rows of every organization whose status has not moved since `before`: what the watchdog looks at.
pub(crate) async fn stuck(
    conn: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(OrgId, FileId)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT org_id, id
           FROM app.files
          WHERE index_status IN ('queued', 'running') AND status_changed_at < $1 AND state = 'stored' AND NOT skip_indexing
          ORDER BY status_changed_at
          LIMIT $2",
    )
    .bind(before)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Marks a stuck row as queued and moved; false when it moved by itself meanwhile.
pub(crate) async fn touch(
    conn: &mut PgConnection,
    org: OrgId,
    id: FileId,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE app.files
            SET index_status = 'queued', status_changed_at = $3
          WHERE org_id = $1 AND id = $2 AND index_status IN ('queued', 'running')",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A file whose bytes, passages and row are to go.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Doomed {
    pub(crate) org_id: OrgId,
    pub(crate) id: FileId,
    pub(crate) storage_key: String,
}

/// Dooms uploads of every organization that nothing attached in time (FILE-7) and returns what is
/// doomed by now, oldest first, the organizations by turns: one whose database or bucket is away holds up
/// nobody else.
pub(crate) async fn doom_unattached(
    conn: &mut PgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Doomed>, sqlx::Error> {
    sqlx::query(
        "UPDATE app.files
            SET state = 'deleting', searchable = false
          WHERE upload_deadline < $1 AND (state = 'slot' OR (purpose = 'chat' AND state = 'stored' AND thread_id IS NULL))
            AND NOT EXISTS (SELECT 1 FROM app.documents d WHERE d.org_id = files.org_id AND d.file_id = files.id)",
    )
    .bind(before)
    .execute(&mut *conn)
    .await?;
    sqlx::query_as(
        "SELECT f.org_id, f.id, f.storage_key
           FROM app.files f
          WHERE f.state = 'deleting'
            AND NOT EXISTS (SELECT 1 FROM app.documents d WHERE d.org_id = f.org_id AND d.file_id = f.id)
          ORDER BY row_number() OVER (PARTITION BY f.org_id ORDER BY f.upload_deadline), f.upload_deadline
          LIMIT $1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Dooms the uploads of a chat that is purged.
pub(crate) async fn doom_of_thread(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("UPDATE app.files SET state = 'deleting', searchable = false WHERE org_id = $1 AND thread_id = $2 AND purpose = 'chat'")
        .bind(org)
        .bind(thread)
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

/// Dooms a file whose document is purged.
pub(crate) async fn doom(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE app.files SET state = 'deleting', searchable = false WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether a file is there and is not being removed.
pub(crate) async fn is_stored(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM app.files WHERE org_id = $1 AND id = $2 AND state <> 'deleting')")
        .bind(org)
        .bind(id)
        .fetch_one(conn)
        .await
}

/// Removes the row of a file whose bytes and passages are gone.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, id: FileId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM app.files WHERE org_id = $1 AND id = $2 AND state = 'deleting'")
        .bind(org)
        .bind(id)
        .execute(conn)
        .await?;
    Ok(())
}
