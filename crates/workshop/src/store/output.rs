//! `app.code_run_output`.

use sqlx::{PgConnection, PgExecutor};
use tale_core::ids::{CodeRunId, OrgId};

/// Bytes that a program wrote to one of its outputs, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Piece {
    pub seq: i64,
    pub stream: String,
    pub bytes: Vec<u8>,
}

pub(crate) async fn append(conn: &mut PgConnection, org: OrgId, run: CodeRunId, pieces: &[Piece]) -> sqlx::Result<()> {
    let seqs: Vec<i64> = pieces.iter().map(|piece| piece.seq).collect();
    let streams: Vec<&str> = pieces.iter().map(|piece| piece.stream.as_str()).collect();
    let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.bytes.as_slice()).collect();
    sqlx::query(
        "INSERT INTO app.code_run_output (org_id, run_id, seq, stream, bytes)
         SELECT $1, $2, seq, stream, bytes FROM unnest($3::bigint[], $4::text[], $5::bytea[]) AS x(seq, stream, bytes)",
    )
    .bind(org)
    .bind(run)
    .bind(seqs)
    .bind(streams)
    .bind(bytes)
    .execute(conn)
    .await
    .map(drop)
}

/// What follows `since`, in order.
pub(crate) async fn after(
    db: impl PgExecutor<'_>,
    org: OrgId,
    run: CodeRunId,
    since: i64,
    most: i64,
) -> sqlx::Result<Vec<Piece>> {
    sqlx::query_as(
        "SELECT seq, stream, bytes FROM app.code_run_output WHERE org_id = $1 AND run_id = $2 AND seq > $3
         ORDER BY seq LIMIT $4",
    )
    .bind(org)
    .bind(run)
    .bind(since)
    .bind(most)
    .fetch_all(db)
    .await
}
