//! Statements on `app.threads` and `app.chat_picks`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{MessageId, OrgId, ThreadId, UserId};

/// A chat as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct ThreadRow {
    pub id: ThreadId,
    pub title: Option<String>,
    pub reasoning_effort: Option<String>,
    pub active_leaf: Option<MessageId>,
    pub unread: bool,
    pub pinned_at: Option<DateTime<Utc>>,
    pub archived_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub running: bool,
    pub shared: bool,
}

pub(crate) struct NewThread<'a> {
    pub id: ThreadId,
    pub org: OrgId,
    pub owner: UserId,
    pub title: Option<&'a str>,
    pub custom_title: bool,
    pub forked_from: Option<ThreadId>,
    pub now: DateTime<Utc>,
}

pub(crate) async fn insert(conn: &mut PgConnection, new: &NewThread<'_>) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO app.threads (id, org_id, owner_user_id, title, title_source, forked_from, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(new.id)
    .bind(new.org)
    .bind(new.owner)
    .bind(new.title)
    .bind(if new.custom_title { "custom" } else { "generated" })
    .bind(new.forked_from)
    .bind(new.now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The owner's chat, unless it is in the trash.
pub(crate) async fn find(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    id: ThreadId,
) -> sqlx::Result<Option<ThreadRow>> {
    sqlx::query_as(
        "SELECT t.id, t.title, t.reasoning_effort, t.active_leaf, t.unread, t.pinned_at,
                t.archived_at, t.created_at, t.updated_at,
                EXISTS (SELECT 1 FROM app.generations g WHERE g.org_id = t.org_id AND g.thread_id = t.id) AS running,
                EXISTS (SELECT 1 FROM app.thread_shares s WHERE s.org_id = t.org_id AND s.thread_id = t.id) AS shared
           FROM app.threads t
          WHERE t.org_id = $1 AND t.id = $2 AND t.owner_user_id = $3 AND t.trashed_at IS NULL",
    )
    .bind(org)
    .bind(id)
    .bind(owner)
    .fetch_optional(conn)
    .await
}

/// What a send must know of a chat whose row it holds.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub(crate) struct Held {
    pub active_leaf: Option<MessageId>,
    pub archived: bool,
    pub titled: bool,
}

/// Locks the owner's chat until the transaction ends, so that sends, deletes and archives of it happen
/// one after another; nothing when it is not there or in the trash.
pub(crate) async fn lock(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    id: ThreadId,
) -> sqlx::Result<Option<Held>> {
    sqlx::query_as(
        "SELECT active_leaf, archived_at IS NOT NULL AS archived, title IS NOT NULL AS titled
           FROM app.threads
          WHERE org_id = $1 AND id = $2 AND owner_user_id = $3 AND trashed_at IS NULL
            FOR UPDATE",
    )
    .bind(org)
    .bind(id)
    .bind(owner)
    .fetch_optional(conn)
    .await
}

pub(crate) struct ListFilter<'a> {
    pub org: OrgId,
    pub owner: UserId,
    pub archived: bool,
    /// Chats whose title contains this text, any case.
    pub title: Option<&'a str>,
    pub before: Option<(DateTime<Utc>, ThreadId)>,
    pub limit: i64,
}

pub(crate) async fn list(conn: &mut PgConnection, filter: &ListFilter<'_>) -> sqlx::Result<Vec<ThreadRow>> {
    let (before_at, before_id) = filter.before.unzip();
    sqlx::query_as(
        "SELECT t.id, t.title, t.reasoning_effort, t.active_leaf, t.unread, t.pinned_at,
                t.archived_at, t.created_at, t.updated_at,
                EXISTS (SELECT 1 FROM app.generations g WHERE g.org_id = t.org_id AND g.thread_id = t.id) AS running,
                EXISTS (SELECT 1 FROM app.thread_shares s WHERE s.org_id = t.org_id AND s.thread_id = t.id) AS shared
           FROM app.threads t
          WHERE t.org_id = $1 AND t.owner_user_id = $2 AND t.trashed_at IS NULL
            AND (t.archived_at IS NOT NULL) = $3
            AND ($4::text IS NULL OR strpos(lower(t.title), lower($4)) > 0)
            AND ($5::timestamptz IS NULL OR (t.updated_at, t.id) < ($5, $6))
          ORDER BY t.updated_at DESC, t.id DESC
          LIMIT $7",
    )
    .bind(filter.org)
    .bind(filter.owner)
    .bind(filter.archived)
    .bind(filter.title)
    .bind(before_at)
    .bind(before_id)
    .bind(filter.limit)
    .fetch_all(conn)
    .await
}

/// Everything of a chat that its owner changes directly.
#[derive(Debug, Default)]
pub(crate) struct ThreadChange<'a> {
    pub title: Option<&'a str>,
    pub archived: Option<bool>,
    pub pinned: Option<bool>,
    pub unread: Option<bool>,
}

pub(crate) async fn change(
    conn: &mut PgConnection,
    org: OrgId,
    id: ThreadId,
    change: &ThreadChange<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE app.threads
            SET title        = COALESCE($3, title),
                title_source = CASE WHEN $3::text IS NULL THEN title_source ELSE 'custom' END,
                archived_at  = CASE WHEN $4 IS NULL THEN archived_at WHEN NOT $4 THEN NULL ELSE COALESCE(archived_at, $7) END,
                pinned_at    = CASE WHEN $5 IS NULL THEN pinned_at WHEN NOT $5 THEN NULL ELSE COALESCE(pinned_at, $7) END,
                unread       = COALESCE($6, unread)
          WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .bind(change.title)
    .bind(change.archived)
    .bind(change.pinned)
    .bind(change.unread)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes a generated title; a person's own stays.
pub(crate) async fn set_generated_title(
    conn: &mut PgConnection,
    org: OrgId,
    id: ThreadId,
    title: &str,
) -> sqlx::Result<bool> {
    let done = sqlx::query("UPDATE app.threads SET title = $3 WHERE org_id = $1 AND id = $2 AND title IS NULL AND title_source = 'generated'")
        .bind(org)
        .bind(id)
        .bind(title)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn set_active_leaf(
    conn: &mut PgConnection,
    org: OrgId,
    id: ThreadId,
    leaf: MessageId,
) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.threads SET active_leaf = $3 WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .bind(leaf)
        .execute(conn)
        .await?;
    Ok(())
}

/// A reply landed; what is parked behind it may go.
pub(crate) async fn mark_answered(
    conn: &mut PgConnection,
    org: OrgId,
    id: ThreadId,
    unread: bool,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query(
        "WITH next AS (
             UPDATE app.deferred_sends SET due_at = $4 WHERE org_id = $1 AND thread_id = $2 AND state = 'waiting'
         )
         UPDATE app.threads SET unread = $3, updated_at = $4 WHERE org_id = $1 AND id = $2",
    )
    .bind(org)
    .bind(id)
    .bind(unread)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn trash(conn: &mut PgConnection, org: OrgId, id: ThreadId, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query("UPDATE app.threads SET trashed_at = $3 WHERE org_id = $1 AND id = $2")
        .bind(org)
        .bind(id)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes the owner's chat out of the trash. `false` when it is not there.
pub(crate) async fn restore(conn: &mut PgConnection, org: OrgId, owner: UserId, id: ThreadId) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE app.threads SET trashed_at = NULL
          WHERE org_id = $1 AND id = $2 AND owner_user_id = $3 AND trashed_at IS NOT NULL",
    )
    .bind(org)
    .bind(id)
    .bind(owner)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Archives the owner's open chats that are not being answered; returns their ids.
pub(crate) async fn archive_all(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<ThreadId>> {
    sqlx::query_scalar(
        "UPDATE app.threads t SET archived_at = $3
          WHERE t.org_id = $1 AND t.owner_user_id = $2 AND t.trashed_at IS NULL AND t.archived_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM app.generations g WHERE g.org_id = t.org_id AND g.thread_id = t.id)
      RETURNING t.id",
    )
    .bind(org)
    .bind(owner)
    .bind(now)
    .fetch_all(conn)
    .await
}

/// Trashes the owner's chats that are not being answered; returns their ids.
pub(crate) async fn trash_all(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<ThreadId>> {
    sqlx::query_scalar(
        "UPDATE app.threads t SET trashed_at = $3
          WHERE t.org_id = $1 AND t.owner_user_id = $2 AND t.trashed_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM app.generations g WHERE g.org_id = t.org_id AND g.thread_id = t.id)
      RETURNING t.id",
    )
    .bind(org)
    .bind(owner)
    .bind(now)
    .fetch_all(conn)
    .await
}

/// How many of the owner's chats are being answered.
pub(crate) async fn count_running(conn: &mut PgConnection, org: OrgId, owner: UserId) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "SELECT count(*) FROM app.threads t JOIN app.generations g ON g.org_id = t.org_id AND g.thread_id = t.id
          WHERE t.org_id = $1 AND t.owner_user_id = $2 AND t.trashed_at IS NULL",
    )
    .bind(org)
    .bind(owner)
    .fetch_one(conn)
    .await
}

pub(crate) async fn pick(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
) -> sqlx::Result<Option<(Option<String>, Option<String>)>> {
    sqlx::query_as("SELECT model, provider_slug FROM app.chat_picks WHERE org_id = $1 AND user_id = $2")
        .bind(org)
        .bind(user)
        .fetch_optional(conn)
        .await
}

pub(crate) async fn set_pick(
    conn: &mut PgConnection,
    org: OrgId,
    user: UserId,
    pick: Option<(&str, &str)>,
) -> sqlx::Result<()> {
    let (model, provider) = pick.unzip();
    sqlx::query(
        "INSERT INTO app.chat_picks (org_id, user_id, model, provider_slug) VALUES ($1, $2, $3, $4)
         ON CONFLICT (org_id, user_id) DO UPDATE SET model = EXCLUDED.model, provider_slug = EXCLUDED.provider_slug",
    )
    .bind(org)
    .bind(user)
    .bind(model)
    .bind(provider)
    .execute(conn)
    .await?;
    Ok(())
}

/// A chat found by its title or by the text of a message.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct FoundRow {
    pub id: ThreadId,
    pub title: Option<String>,
    pub archived: bool,
    pub updated_at: DateTime<Utc>,
    pub message_id: Option<MessageId>,
    pub snippet: Option<String>,
}

/// The owner's chats that match every word of `query` (a `to_tsquery` of prefixes) in one message,
/// or `title` in their title. Hidden versions count (CHT-125); one row per chat, live before archived.
pub(crate) async fn search(
    conn: &mut PgConnection,
    org: OrgId,
    owner: UserId,
    query: &str,
    title: &str,
    limit: i64,
) -> sqlx::Result<Vec<FoundRow>> {
    sqlx::query_as(
        "WITH own AS (
             SELECT id, title, archived_at, updated_at FROM app.threads
              WHERE org_id = $1 AND owner_user_id = $2 AND trashed_at IS NULL
         ), hits AS (
             SELECT DISTINCT ON (m.thread_id) m.thread_id, m.id AS message_id, m.search_text
               FROM app.messages m JOIN own ON own.id = m.thread_id
              WHERE m.org_id = $1 AND m.search_vector @@ to_tsquery('simple', $3)
              ORDER BY m.thread_id, m.created_at DESC
         )
         SELECT own.id, own.title, own.archived_at IS NOT NULL AS archived, own.updated_at, hits.message_id,
                CASE WHEN hits.search_text IS NULL THEN NULL
                     ELSE ts_headline('simple', left(hits.search_text, 20000), to_tsquery('simple', $3),
                                      'StartSel=«,StopSel=»,MaxWords=24,MinWords=12,MaxFragments=1') END AS snippet
           FROM own LEFT JOIN hits ON hits.thread_id = own.id
          WHERE hits.thread_id IS NOT NULL OR strpos(lower(own.title), lower($4)) > 0
          ORDER BY own.archived_at IS NOT NULL, own.updated_at DESC
          LIMIT $5",
    )
    .bind(org)
    .bind(owner)
    .bind(query)
    .bind(title)
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// The chat and the chats it was forked from, as far as they belong to the same person.
pub(crate) async fn lineage(conn: &mut PgConnection, org: OrgId, id: ThreadId) -> sqlx::Result<Vec<ThreadId>> {
    sqlx::query_scalar(
        "WITH RECURSIVE line AS (
             SELECT id, forked_from, owner_user_id, 0 AS depth FROM app.threads WHERE org_id = $1 AND id = $2
             UNION ALL
             SELECT t.id, t.forked_from, t.owner_user_id, line.depth + 1
               FROM app.threads t JOIN line ON t.id = line.forked_from
              WHERE t.org_id = $1 AND t.owner_user_id = line.owner_user_id AND line.depth < 50
         )
         SELECT id FROM line",
    )
    .bind(org)
    .bind(id)
    .fetch_all(conn)
    .await
}

/// Removes chats of every organization that were trashed before `before`, oldest first.
pub(crate) async fn purge(conn: &mut PgConnection, before: DateTime<Utc>) -> sqlx::Result<Vec<(OrgId, ThreadId)>> {
    sqlx::query_as(
        "DELETE FROM app.threads WHERE (org_id, id) IN (
             SELECT org_id, id FROM app.threads WHERE trashed_at < $1 ORDER BY trashed_at LIMIT 500
         )
         RETURNING org_id, id",
    )
    .bind(before)
    .fetch_all(conn)
    .await
}
