//! SQL of the corpus: documents and passages in the knowledge database.

use pgvector::Vector;
use sqlx::PgConnection;
use tale_core::ids::{ChunkId, FileId, OrgId};

/// How far the passages of a file are stored.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct CorpusDocument {
    pub(crate) title: String,
    pub(crate) status: String,
    pub(crate) content_hash: Option<String>,
    pub(crate) chunker_version: i32,
    pub(crate) chunks_count: i32,
    pub(crate) text_length: i64,
}

/// The corpus row of a file.
pub(crate) async fn get(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
) -> Result<Option<CorpusDocument>, sqlx::Error> {
    sqlx::query_as(
        "SELECT title, status, content_hash, chunker_version, chunks_count, text_length
           FROM private_knowledge.documents
          WHERE org_id = $1 AND file_id = $2",
    )
    .bind(org)
    .bind(file)
    .fetch_optional(conn)
    .await
}

/// What the row of a file starts with.
pub(crate) struct Beginning<'a> {
    pub(crate) title: &'a str,
    pub(crate) library: bool,
    pub(crate) content_hash: &'a str,
    pub(crate) chunker_version: i32,
    /// Number of passages and length of the text, when the same transaction stores all of them: the
    /// row is complete from the start.
    pub(crate) whole: Option<(i32, i64)>,
}

/// Creates the row of a file and says whether it is new. One that is there keeps its status: a
/// completed file stays searchable while its headers are written anew, and keeps its title until
/// they all are.
pub(crate) async fn begin(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    with: &Beginning<'_>,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO private_knowledge.documents
                (org_id, file_id, title, library, status, content_hash, chunker_version, chunks_count, text_length)
         VALUES ($1, $2, $3, $4, CASE WHEN $7::integer IS NULL THEN 'processing' ELSE 'completed' END, $5, $6,
                 coalesce($7, 0), coalesce($8::bigint, 0))
         ON CONFLICT (org_id, file_id) DO UPDATE
            SET title = CASE WHEN documents.status = 'completed' THEN documents.title ELSE excluded.title END,
                content_hash = excluded.content_hash, chunker_version = excluded.chunker_version,
                updated_at = now()
         RETURNING xmax = 0",
    )
    .bind(org)
    .bind(file)
    .bind(with.title)
    .bind(with.library)
    .bind(with.content_hash)
    .bind(with.chunker_version)
    .bind(with.whole.map(|(count, _)| count))
    .bind(with.whole.map(|(_, length)| length))
    .fetch_one(conn)
    .await
}

/// How many passages of a file are stored. They are stored in order, so these are the first ones.
pub(crate) async fn stored(conn: &mut PgConnection, org: OrgId, file: FileId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM private_knowledge.chunks WHERE org_id = $1 AND file_id = $2")
        .bind(org)
        .bind(file)
        .fetch_one(conn)
        .await
}

/// The lists of one slice of passages, in the same order.
#[derive(Default)]
pub(crate) struct Slice {
    pub(crate) ids: Vec<uuid::Uuid>,
    pub(crate) ordinals: Vec<i32>,
    pub(crate) headers: Vec<String>,
    pub(crate) bodies: Vec<String>,
    pub(crate) body_starts: Vec<i64>,
    pub(crate) body_ends: Vec<i64>,
    pub(crate) core_starts: Vec<i64>,
    pub(crate) core_ends: Vec<i64>,
    pub(crate) core_heads: Vec<String>,
    pub(crate) core_tails: Vec<String>,
    pub(crate) pages: Vec<Option<i32>>,
}

/// Stores a slice of passages, holding the row of their document; without one nothing is stored. A
/// passage that an earlier run stored keeps its row and its vector unless its text changed. Returns
/// how many rows were written.
pub(crate) async fn put_slice(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    library: bool,
    chunker_version: i32,
    slice: &Slice,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "WITH held AS MATERIALIZED (
              SELECT 1 FROM private_knowledge.documents WHERE org_id = $1 AND file_id = $2 FOR KEY SHARE)
         INSERT INTO private_knowledge.chunks
                (org_id, file_id, library, chunker_version, id, ordinal, header, body, body_start, body_end, core_start, core_end,
                 core_head, core_tail, page)
         SELECT $1, $2, $3, $4, part.*
           FROM held, unnest($5::uuid[], $6::integer[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[],
                       $12::bigint[], $13::text[], $14::text[], $15::integer[]) AS part
         ON CONFLICT (org_id, file_id, ordinal) DO UPDATE
            SET id = excluded.id, header = excluded.header, body = excluded.body, body_start = excluded.body_start,
                body_end = excluded.body_end, core_start = excluded.core_start, core_end = excluded.core_end,
                core_head = excluded.core_head, core_tail = excluded.core_tail, page = excluded.page,
                chunker_version = excluded.chunker_version,
                embedding = CASE WHEN chunks.body = excluded.body THEN chunks.embedding END,
                embedding_model = CASE WHEN chunks.body = excluded.body THEN chunks.embedding_model END
          WHERE (chunks.id, chunks.header, chunks.body, chunks.body_start, chunks.core_start, chunks.core_end, chunks.page)
                IS DISTINCT FROM
                (excluded.id, excluded.header, excluded.body, excluded.body_start, excluded.core_start, excluded.core_end, excluded.page)",
    )
    .bind(org)
    .bind(file)
    .bind(library)
    .bind(chunker_version)
    .bind(&slice.ids)
    .bind(&slice.ordinals)
    .bind(&slice.headers)
    .bind(&slice.bodies)
    .bind(&slice.body_starts)
    .bind(&slice.body_ends)
    .bind(&slice.core_starts)
    .bind(&slice.core_ends)
    .bind(&slice.core_heads)
    .bind(&slice.core_tails)
    .bind(&slice.pages)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Drops what an earlier, longer run left behind the last passage. Returns how many rows went.
pub(crate) async fn cut_after(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    count: i32,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM private_knowledge.chunks WHERE org_id = $1 AND file_id = $2 AND ordinal >= $3")
        .bind(org)
        .bind(file)
        .bind(count)
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

/// The passages of a file are all stored, under `title`. False when the file was removed meanwhile.
pub(crate) async fn finish(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    title: &str,
    count: i32,
    text_length: i64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE private_knowledge.documents
            SET status = 'completed', title = $5, chunks_count = $3, text_length = $4, updated_at = now()
          WHERE org_id = $1 AND file_id = $2",
    )
    .bind(org)
    .bind(file)
    .bind(count)
    .bind(text_length)
    .bind(title)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes a file from the corpus with all its passages; false when it was not there. The document
/// goes first: that waits for a run that is storing passages of it, and no other can begin.
pub(crate) async fn remove(conn: &mut PgConnection, org: OrgId, file: FileId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM private_knowledge.documents WHERE org_id = $1 AND file_id = $2")
        .bind(org)
        .bind(file)
        .execute(&mut *conn)
        .await?;
    sqlx::query("DELETE FROM private_knowledge.chunks WHERE org_id = $1 AND file_id = $2")
        .bind(org)
        .bind(file)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// A passage as a reader opens it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct PassageRow {
    pub(crate) id: ChunkId,
    pub(crate) header: String,
    pub(crate) body: String,
    pub(crate) body_start: i64,
    pub(crate) body_end: i64,
    pub(crate) page: Option<i32>,
}

/// One passage of a completed file.
pub(crate) async fn passage(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    id: ChunkId,
) -> Result<Option<PassageRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT c.id, c.header, c.body, c.body_start, c.body_end, c.page
           FROM private_knowledge.chunks c
           JOIN private_knowledge.documents d ON d.org_id = c.org_id AND d.file_id = c.file_id
          WHERE c.org_id = $1 AND c.file_id = $2 AND c.id = $3 AND d.status = 'completed'",
    )
    .bind(org)
    .bind(file)
    .bind(id)
    .fetch_optional(conn)
    .await
}

/// Where a core begins and its exact text. The cores of a file in order are its extracted text.
pub(crate) async fn cores(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    from: i64,
    to: i64,
) -> Result<Vec<(i64, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT core_start, core_head || substr(body, (greatest(core_start - body_start, 0) + 1)::integer) || core_tail
           FROM private_knowledge.chunks
          WHERE org_id = $1 AND file_id = $2 AND core_end > $3 AND core_start < $4
          ORDER BY ordinal",
    )
    .bind(org)
    .bind(file)
    .bind(from)
    .bind(to)
    .fetch_all(conn)
    .await
}

/// Fixes the width of the corpus unless it is fixed already, and returns the width that holds (EMB-3).
/// Concerns every organization of this database.
pub(crate) async fn pin_width(conn: &mut PgConnection, dimensions: i32) -> Result<i32, sqlx::Error> {
    sqlx::query(
        "INSERT INTO private_knowledge.corpus_settings (dimensions) VALUES ($1) ON CONFLICT (singleton) DO NOTHING",
    )
    .bind(dimensions)
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar("SELECT dimensions FROM private_knowledge.corpus_settings").fetch_one(conn).await
}

/// The width of the corpus, once one is fixed.
pub(crate) async fn width(conn: &mut PgConnection) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar("SELECT dimensions FROM private_knowledge.corpus_settings").fetch_optional(conn).await
}

/// Passages of a file that carry no vector of `model` yet, in order: id, ordinal, header and body.
pub(crate) async fn unembedded(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    model: &str,
    after: i32,
    limit: i64,
) -> Result<Vec<(ChunkId, i32, String, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, ordinal, header, body
           FROM private_knowledge.chunks
          WHERE org_id = $1 AND file_id = $2 AND ordinal > $4 AND embedding_model IS DISTINCT FROM $3
          ORDER BY ordinal
          LIMIT $5",
    )
    .bind(org)
    .bind(file)
    .bind(model)
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// How many passages of a file carry no vector of `model`, and how many there are.
pub(crate) async fn unembedded_count(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    model: &str,
) -> Result<(i64, i64), sqlx::Error> {
    sqlx::query_as(
        "SELECT count(*) FILTER (WHERE embedding_model IS DISTINCT FROM $3), count(*)
           FROM private_knowledge.chunks
          WHERE org_id = $1 AND file_id = $2",
    )
    .bind(org)
    .bind(file)
    .bind(model)
    .fetch_one(conn)
    .await
}

/// Adds vectors to passages.
pub(crate) async fn set_vectors(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    model: &str,
    ids: &[uuid::Uuid],
    vectors: &[Vector],
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE private_knowledge.chunks c
            SET embedding = new.embedding, embedding_model = $3
           FROM unnest($4::uuid[], $5::vector[]) AS new (id, embedding)
          WHERE c.org_id = $1 AND c.file_id = $2 AND c.id = new.id",
    )
    .bind(org)
    .bind(file)
    .bind(model)
    .bind(ids)
    .bind(vectors)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// A statement that touches nothing.
pub(crate) async fn ping(pool: &sqlx::PgPool) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1").execute(pool).await?;
    Ok(())
}
