//! Statements on `app.deferred_sends`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{DeferredSendId, FileId, OrgId, ThreadId, UserId};

/// A parked message as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct DeferredRow {
    pub id: DeferredSendId,
    pub user_id: UserId,
    pub state: String,
    pub content: String,
    pub attachments: Vec<FileId>,
    pub model: Option<String>,
    pub provider_slug: Option<String>,
    pub effort: Option<String>,
    pub locale: Option<String>,
    pub refusal_code: Option<String>,
    pub refusal: Option<String>,
    pub failures: i32,
    pub created_at: DateTime<Utc>,
}

macro_rules! select_row {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, state, content, attachments, model, provider_slug, effort, locale, refusal_code, refusal,
                    failures, created_at
               FROM app.deferred_sends WHERE org_id = $1 AND thread_id = $2 ",
            $rest
        )
    };
}

/// A message to park.
pub(crate) struct NewDeferred<'a> {
    pub id: DeferredSendId,
    pub org: OrgId,
    pub thread: ThreadId,
    pub user: UserId,
    pub content: &'a str,
    pub attachments: &'a [FileId],
    pub model: Option<&'a str>,
    pub provider_slug: Option<&'a str>,
    pub effort: Option<&'a str>,
    pub locale: Option<&'a str>,
    pub opened_thread: bool,
    pub now: DateTime<Utc>,
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &NewDeferred<'_>) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.deferred_sends (id, org_id, thread_id, user_id, state, content, attachments, model, provider_slug,
                                         effort, locale, opened_thread, due_at, created_at, changed_at)
         VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7, $8, $9, $10, $11, $12, $12, $12)",
    )
    .bind(new.id)
    .bind(new.org)
    .bind(new.thread)
    .bind(new.user)
    .bind(new.content)
    .bind(new.attachments)
    .bind(new.model)
    .bind(new.provider_slug)
    .bind(new.effort)
    .bind(new.locale)
    .bind(new.opened_thread)
    .bind(new.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The files of messages of `threads` that are not sent yet, whatever keeps them.
pub(crate) async fn parked_files(
    conn: &mut PgConnection,
    org: OrgId,
    threads: &[ThreadId],
) -> sqlx::Result<Vec<FileId>> {
    sqlx::query_scalar(
        "SELECT unnest(attachments) FROM app.deferred_sends
          WHERE org_id = $1 AND thread_id = ANY($2) AND state NOT IN ('sent', 'cancelled')",
    )
    .bind(org)
    .bind(threads)
    .fetch_all(conn)
    .await
}

/// The parked messages of a chat that are not over, in their order.
pub(crate) async fn open(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> sqlx::Result<Vec<DeferredRow>> {
    sqlx::query_as(select_row!("AND state IN ('waiting', 'held', 'refused') ORDER BY position"))
        .bind(org)
        .bind(thread)
        .fetch_all(conn)
        .await
}

/// One of them.
pub(crate) async fn find(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    id: DeferredSendId,
) -> sqlx::Result<Option<DeferredRow>> {
    sqlx::query_as(select_row!("AND id = $3 AND state IN ('waiting', 'held', 'refused')"))
        .bind(org)
        .bind(thread)
        .bind(id)
        .fetch_optional(conn)
        .await
}

/// The first waiting message of a chat that is not in the trash, and whether the chat is archived
/// and whether a turn runs in it.
pub(crate) async fn head(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
) -> sqlx::Result<Option<(DeferredRow, bool, bool)>> {
    let place: Option<(bool, bool)> = sqlx::query_as(
        "SELECT t.archived_at IS NOT NULL,
                EXISTS (SELECT 1 FROM app.generations g WHERE g.org_id = t.org_id AND g.thread_id = t.id)
           FROM app.threads t WHERE t.org_id = $1 AND t.id = $2 AND t.trashed_at IS NULL",
    )
    .bind(org)
    .bind(thread)
    .fetch_optional(&mut *conn)
    .await?;
    let Some((archived, running)) = place else { return Ok(None) };
    let row: Option<DeferredRow> = sqlx::query_as(select_row!("AND state = 'waiting' ORDER BY position LIMIT 1"))
        .bind(org)
        .bind(thread)
        .fetch_optional(conn)
        .await?;
    Ok(row.map(|row| (row, archived, running)))
}

/// Takes waiting messages of every organization whose look is due, and moves their next one to
/// `next`. Another process that asks meanwhile gets others. Returns their chats.
pub(crate) async fn take_due(
    conn: &mut PgConnection,
    now: DateTime<Utc>,
    next: DateTime<Utc>,
    limit: i64,
) -> sqlx::Result<Vec<(OrgId, ThreadId)>> {
    sqlx::query_as(
        "WITH due AS (
             SELECT id FROM app.deferred_sends WHERE state = 'waiting' AND due_at <= $1
              ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED
         ), taken AS (
             UPDATE app.deferred_sends d SET due_at = $2 FROM due WHERE d.id = due.id RETURNING d.org_id, d.thread_id
         )
         SELECT DISTINCT org_id, thread_id FROM taken",
    )
    .bind(now)
    .bind(next)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// The waiting messages of a chat are looked at again at `at`.
pub(crate) async fn due(conn: &mut PgConnection, org: OrgId, thread: ThreadId, at: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.deferred_sends SET due_at = $3 WHERE org_id = $1 AND thread_id = $2 AND state = 'waiting'")
        .bind(org)
        .bind(thread)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}

/// People with a parked message in a chat that carries `file`; its next look is at `at`.
pub(crate) async fn due_for_file(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    file: FileId,
    at: DateTime<Utc>,
) -> sqlx::Result<Vec<UserId>> {
    sqlx::query_scalar(
        "UPDATE app.deferred_sends SET due_at = $4
          WHERE org_id = $1 AND thread_id = $2 AND state IN ('waiting', 'held') AND $3 = ANY(attachments)
      RETURNING user_id",
    )
    .bind(org)
    .bind(thread)
    .bind(file)
    .bind(at)
    .fetch_all(conn)
    .await
}

/// A look failed on our side; the next one is at `at`.
pub(crate) async fn failed(
    conn: &mut PgConnection,
    org: OrgId,
    id: DeferredSendId,
    at: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.deferred_sends SET due_at = $3, failures = failures + 1 WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}

/// `waiting` → `sent`, in the transaction that stores the message. `false` when it is not waiting.
pub(crate) async fn sent(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    id: DeferredSendId,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.deferred_sends SET state = 'sent', content = '', attachments = '{}', changed_at = $4
          WHERE org_id = $1 AND thread_id = $2 AND id = $3 AND state = 'waiting'",
    )
    .bind(org)
    .bind(thread)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// `waiting` → `held`. `false` when it is not waiting any more.
pub(crate) async fn hold(
    conn: &mut PgConnection,
    org: OrgId,
    id: DeferredSendId,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.deferred_sends SET state = 'held', changed_at = $3 WHERE org_id = $1 AND id = $2 AND state = 'waiting'",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// `waiting` → `refused` with the reason. `false` when it is not waiting any more.
pub(crate) async fn refuse(
    conn: &mut PgConnection,
    org: OrgId,
    id: DeferredSendId,
    code: &str,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.deferred_sends SET state = 'refused', refusal_code = $3, refusal = $4, changed_at = $5
          WHERE org_id = $1 AND id = $2 AND state = 'waiting'",
    )
    .bind(org)
    .bind(id)
    .bind(code)
    .bind(reason)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// `waiting` or `held` → `waiting` with these attachments, looked at now.
pub(crate) async fn wait_again(
    conn: &mut PgConnection,
    org: OrgId,
    id: DeferredSendId,
    attachments: &[FileId],
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.deferred_sends SET state = 'waiting', attachments = $3, due_at = $4, changed_at = $4
          WHERE org_id = $1 AND id = $2 AND state IN ('waiting', 'held')",
    )
    .bind(org)
    .bind(id)
    .bind(attachments)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends one parked message for good.
pub(crate) async fn cancel(
    conn: &mut PgConnection,
    org: OrgId,
    id: DeferredSendId,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.deferred_sends SET state = 'cancelled', content = '', attachments = '{}', changed_at = $3
          WHERE org_id = $1 AND id = $2 AND state IN ('waiting', 'held', 'refused')",
    )
    .bind(org)
    .bind(id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends every parked message of these chats for good.
pub(crate) async fn cancel_all(
    conn: &mut PgConnection,
    org: OrgId,
    threads: &[ThreadId],
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "UPDATE app.deferred_sends SET state = 'cancelled', content = '', attachments = '{}', changed_at = $3
          WHERE org_id = $1 AND thread_id = ANY($2) AND state IN ('waiting', 'held', 'refused')",
    )
    .bind(org)
    .bind(threads)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Those of `files` that no message and no parked message of the chat carries.
pub(crate) async fn unused_files(
    conn: &mut PgConnection,
    org: OrgId,
    thread: ThreadId,
    files: &[FileId],
) -> sqlx::Result<Vec<FileId>> {
    sqlx::query_scalar(
        "SELECT file FROM unnest($3::uuid[]) AS file
          WHERE NOT EXISTS (SELECT 1 FROM app.deferred_sends d
                             WHERE d.org_id = $1 AND d.thread_id = $2 AND d.state IN ('waiting', 'held', 'refused')
                               AND file = ANY(d.attachments))
            AND NOT EXISTS (SELECT 1 FROM app.messages m
                             WHERE m.org_id = $1 AND m.thread_id = $2
                               AND m.parts @> jsonb_build_array(jsonb_build_object('type', 'attachment', 'fileId', file)))",
    )
    .bind(org)
    .bind(thread)
    .bind(files)
    .fetch_all(conn)
    .await
}

/// Removes a chat that a parked message had opened and that holds nothing: no message, no other
/// parked one, no name that a person gave it.
pub(crate) async fn remove_empty_thread(conn: &mut PgConnection, org: OrgId, thread: ThreadId) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "DELETE FROM app.threads t
          WHERE t.org_id = $1 AND t.id = $2 AND t.title_source = 'generated'
            AND EXISTS (SELECT 1 FROM app.deferred_sends d WHERE d.org_id = $1 AND d.thread_id = $2 AND d.opened_thread)
            AND NOT EXISTS (SELECT 1 FROM app.deferred_sends d
                             WHERE d.org_id = $1 AND d.thread_id = $2 AND d.state IN ('waiting', 'held', 'refused'))
            AND NOT EXISTS (SELECT 1 FROM app.messages m WHERE m.org_id = $1 AND m.thread_id = $2)",
    )
    .bind(org)
    .bind(thread)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Forgets, across organizations, messages that were sent or cancelled before `before`.
pub(crate) async fn sweep(conn: &mut PgConnection, before: DateTime<Utc>) -> sqlx::Result<u64> {
    let done = sqlx::query("DELETE FROM app.deferred_sends WHERE state IN ('sent', 'cancelled') AND changed_at < $1")
        .bind(before)
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}
