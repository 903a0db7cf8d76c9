//! SQL of a search: candidates of the dense leg, the check against live rows, the passages.

use pgvector::Vector;
use sqlx::postgres::PgExecutor;
use sqlx::{FromRow, QueryBuilder};
use tale_core::ids::{ChunkId, DocumentId, FileId, OrgId};
use uuid::Uuid;

/// A passage near the query.
#[derive(Debug, Clone, Copy, PartialEq, FromRow)]
pub(crate) struct Near {
    pub(crate) id: Uuid,
    pub(crate) file_id: Uuid,
    /// Cosine similarity, −1 to 1.
    pub(crate) similarity: f64,
}

/// What a library search in the graph index needs to know.
pub(crate) struct GraphSearch<'a> {
    pub(crate) org: OrgId,
    pub(crate) vector: &'a Vector,
    /// Which model's vectors to compare with.
    pub(crate) model: &'a str,
    pub(crate) dimensions: u32,
    pub(crate) pool: i64,
    /// Candidates that one descent of the graph keeps.
    pub(crate) effort: u32,
    /// Entries that a filtered search may visit before it gives up.
    pub(crate) most_visits: u32,
}

/// The nearest library passages by the graph index of their width; `library` and `embedding IS NOT
/// NULL` are what that index is limited to, so they have to be said. The settings hold for this
/// statement only: they are made in a subquery that runs before the first row is read, so that the
/// search is one round trip.
pub(crate) async fn near_by_graph(
    executor: impl PgExecutor<'_>,
    search: &GraphSearch<'_>,
) -> Result<Vec<Near>, sqlx::Error> {
    let mut query = QueryBuilder::new("SELECT best.id, best.file_id, 1 - (best.embedding <=> ");
    query.push_bind(search.vector);
    query.push(
        ") AS similarity
           FROM (SELECT chunk.id, chunk.file_id, chunk.embedding
                   FROM private_knowledge.chunks AS chunk
                  WHERE chunk.org_id = ",
    );
    query.push_bind(search.org);
    query.push(
        "
                    AND chunk.library
                    AND chunk.embedding IS NOT NULL
                    AND chunk.embedding_model = ",
    );
    query.push_bind(search.model);
    query.push(
        "
                    AND (SELECT set_config('hnsw.ef_search', ",
    );
    query.push_bind(search.effort.to_string());
    query.push(
        ", true) || set_config('hnsw.iterative_scan', 'relaxed_order', true) || set_config('hnsw.max_scan_tuples', ",
    );
    query.push_bind(search.most_visits.to_string());
    query.push(
        ", true)) IS NOT NULL
                  ORDER BY chunk.embedding::halfvec(",
    );
    query.push(search.dimensions);
    query.push(") <=> ");
    query.push_bind(search.vector);
    query.push("::halfvec(");
    query.push(search.dimensions);
    query.push(
        ")
                  LIMIT ",
    );
    query.push_bind(search.pool);
    query.push(
        ") AS best
          ORDER BY similarity DESC, best.id",
    );
    query.build_query_as().fetch_all(executor).await
}

/// The nearest library passages by comparing all of them; `embedding` itself has no index.
pub(crate) async fn near_by_comparing(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    vector: &Vector,
    model: &str,
    pool: i64,
) -> Result<Vec<Near>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, file_id, 1 - (embedding <=> $2) AS similarity
           FROM private_knowledge.chunks
          WHERE org_id = $1
            AND library
            AND embedding_model = $3
          ORDER BY embedding <=> $2, id
          LIMIT $4",
    )
    .bind(org)
    .bind(vector)
    .bind(model)
    .bind(pool)
    .fetch_all(executor)
    .await
}

/// The nearest passages of the chat uploads `files`, by comparing all of them.
pub(crate) async fn near_in_files(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    files: &[Uuid],
    vector: &Vector,
    model: &str,
    pool: i64,
) -> Result<Vec<Near>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, file_id, 1 - (embedding <=> $3) AS similarity
           FROM private_knowledge.chunks
          WHERE org_id = $1
            AND file_id = ANY($2)
            AND NOT library
            AND embedding_model = $4
          ORDER BY embedding <=> $3, id
          LIMIT $5",
    )
    .bind(org)
    .bind(files)
    .bind(vector)
    .bind(model)
    .bind(pool)
    .fetch_all(executor)
    .await
}

/// How many library passages carry a vector of `model`, counted up to `most`; and about how many
/// passages the whole corpus has, all organizations together.
pub(crate) async fn counts(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    model: &str,
    most: i64,
) -> Result<(i64, i64), sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT count(*)
                   FROM (SELECT
                           FROM private_knowledge.chunks
                          WHERE org_id = $1
                            AND library
                            AND embedding_model = $2
                          LIMIT $3) AS counted),
                greatest((SELECT reltuples::bigint
                            FROM pg_class
                           WHERE oid = 'private_knowledge.chunks'::regclass), 0)",
    )
    .bind(org)
    .bind(model)
    .bind(most)
    .fetch_one(executor)
    .await
}

/// Whether the graph index for vectors of `dimensions` is there and complete.
pub(crate) async fn graph_exists(executor: impl PgExecutor<'_>, dimensions: u32) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1
                          FROM pg_index
                         WHERE indexrelid = to_regclass('private_knowledge.chunks_near_' || $1::text)
                           AND indisvalid)",
    )
    .bind(dimensions.to_string())
    .fetch_one(executor)
    .await
}

/// Creates the graph index for vectors of `dimensions`, which the caller has checked to be a number
/// in range. Runs for as long as it takes; without vectors that is no time at all.
pub(crate) async fn create_graph(conn: &mut sqlx::PgConnection, dimensions: u32) -> Result<(), sqlx::Error> {
    sqlx::query("SET LOCAL statement_timeout = 0").execute(&mut *conn).await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtext('private_knowledge.chunks_near'))").execute(&mut *conn).await?;
    let mut query = QueryBuilder::<sqlx::Postgres>::new("CREATE INDEX IF NOT EXISTS chunks_near_");
    query.push(dimensions);
    query.push(" ON private_knowledge.chunks USING hnsw ((embedding::halfvec(");
    query.push(dimensions);
    query.push(")) halfvec_cosine_ops) WHERE library AND embedding IS NOT NULL");
    query.build().execute(conn).await?;
    Ok(())
}

/// A file that the reader may see at this moment, and what holds it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(crate) struct Visible {
    pub(crate) file_id: FileId,
    pub(crate) document_id: Option<DocumentId>,
    pub(crate) title: String,
}

/// Which of `files` are within reach now: held by a live document, or a live chat upload among
/// `uploads` (SRCH-9). Application database.
pub(crate) async fn visible(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    files: &[Uuid],
    uploads: &[Uuid],
) -> Result<Vec<Visible>, sqlx::Error> {
    sqlx::query_as(
        "SELECT file.id AS file_id, document.id AS document_id, coalesce(document.title, file.file_name) AS title
           FROM app.files AS file
           LEFT JOIN app.documents AS document
             ON document.org_id = file.org_id AND document.file_id = file.id AND document.lifecycle = 'active'
          WHERE file.org_id = $1
            AND file.id = ANY($2)
            AND file.state = 'stored'
            AND file.searchable
            AND NOT file.skip_indexing
            AND (document.id IS NOT NULL OR (file.purpose = 'chat' AND file.id = ANY($3)))",
    )
    .bind(org)
    .bind(files)
    .bind(uploads)
    .fetch_all(executor)
    .await
}

/// Uploads of the chats `threads`, newest first, at most `most`. Application database.
pub(crate) async fn uploads_of(
    executor: impl PgExecutor<'_>,
    org: OrgId,
    threads: &[Uuid],
    most: i64,
) -> Result<Vec<FileId>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT id
           FROM app.files
          WHERE org_id = $1
            AND thread_id = ANY($2)
            AND purpose = 'chat'
            AND state = 'stored'
            AND searchable
            AND NOT skip_indexing
          ORDER BY id DESC
          LIMIT $3",
    )
    .bind(org)
    .bind(threads)
    .bind(most)
    .fetch_all(executor)
    .await
}

/// A passage with its place.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(crate) struct Body {
    pub(crate) id: ChunkId,
    pub(crate) header: String,
    pub(crate) body: String,
    pub(crate) page: Option<i32>,
}

/// The passages `ids` that exist now.
pub(crate) async fn bodies(executor: impl PgExecutor<'_>, org: OrgId, ids: &[Uuid]) -> Result<Vec<Body>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, header, body, page
           FROM private_knowledge.chunks
          WHERE org_id = $1
            AND id = ANY($2)",
    )
    .bind(org)
    .bind(ids)
    .fetch_all(executor)
    .await
}
