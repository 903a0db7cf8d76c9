//! Chats as their owner sees them: list, rename, pin, archive, trash, search, versions.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use tale_core::ids::{MessageId, ThreadId};
use tale_core::limits::MAX_TITLE_CHARS;
use tale_core::page::Page;
use tale_core::{Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_governance::audit::{self, AuditEntry};

use crate::message::{self, Message};
use crate::service::{Chat, Inner, Owner};
use crate::share;
use crate::store::threads::{ListFilter, NewThread, ThreadChange, ThreadRow};
use crate::store::{deferred, feedback, generations, messages, threads};

/// A chat.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// Its name; nothing until it has one.
    pub title: Option<String>,
    /// Effort of its last turn.
    pub reasoning_effort: Option<String>,
    /// Whether a reply landed that its owner has not looked at.
    pub unread: bool,
    /// Whether a turn is in flight.
    pub running: bool,
    /// Whether a link publishes a snapshot of it.
    pub shared: bool,
    /// When it was pinned.
    pub pinned_at: Option<DateTime<Utc>>,
    /// When it was archived.
    pub archived_at: Option<DateTime<Utc>>,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// Last message activity.
    pub updated_at: DateTime<Utc>,
}

impl From<ThreadRow> for Thread {
    fn from(row: ThreadRow) -> Self {
        Self {
            id: row.id,
            title: row.title,
            reasoning_effort: row.reasoning_effort,
            unread: row.unread,
            running: row.running,
            shared: row.shared,
            pinned_at: row.pinned_at,
            archived_at: row.archived_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A change by the owner; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct ThreadPatch {
    /// A new name, 1–120 characters.
    pub title: Option<String>,
    /// Archive or bring back.
    pub archived: Option<bool>,
    /// Pin or unpin.
    pub pinned: Option<bool>,
    /// Mark as unread or read.
    pub unread: Option<bool>,
}

/// What [`Chat::threads`] lists.
#[derive(Debug, Clone, Default)]
pub struct ThreadQuery {
    /// Archived chats instead of open ones.
    pub archived: bool,
    /// Only chats whose title contains this.
    pub search: Option<String>,
    /// Continues a page.
    pub cursor: Option<String>,
    /// Rows per page.
    pub limit: u32,
}

/// How many chats an act on all of them reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkResult {
    /// Changed chats.
    pub changed: u64,
    /// Chats left alone because a reply is being written.
    pub skipped: u64,
}

/// A chat found by [`Chat::search`].
#[derive(Debug, Clone)]
pub struct FoundThread {
    /// The chat.
    pub id: ThreadId,
    /// Its name.
    pub title: Option<String>,
    /// Whether it is archived.
    pub archived: bool,
    /// Last message activity.
    pub updated_at: DateTime<Utc>,
    /// The message that matched.
    pub message: Option<MessageId>,
    /// Its words around the match, the match between « and ».
    pub snippet: Option<String>,
}

/// The answer for absent, foreign and trashed chats alike (CHT-4).
pub(crate) fn not_found() -> Problem {
    Problem::new(Code::ThreadNotFound, "This chat does not exist, or it is not yours.")
}

pub(crate) fn in_progress() -> Problem {
    Problem::new(
        Code::ChatTurnInProgress,
        "A reply is being written in this chat. Wait for it or stop it, then try again.",
    )
}

/// Checks a title and trims it (CHT-179).
pub(crate) fn checked_title(title: &str) -> Result<String, Problem> {
    let title = title.trim();
    if title.is_empty() {
        return Err(Problem::invalid_field("title", "must not be blank"));
    }
    if title.chars().count() > MAX_TITLE_CHARS {
        return Err(Problem::invalid_field("title", &format!("must be at most {MAX_TITLE_CHARS} characters")));
    }
    Ok(title.to_owned())
}

/// Tells the owner's tabs that a chat changed.
pub(crate) async fn announce(conn: &mut PgConnection, owner: &Owner, id: ThreadId) -> sqlx::Result<()> {
    hints::notify_all(conn, &announcement(owner, id)).await
}

/// The hints of a change in one of the owner's chats.
pub(crate) fn announcement(owner: &Owner, id: ThreadId) -> [Hint; 2] {
    [Topic::Thread, Topic::Threads].map(|topic| Hint { org: owner.org, topic, id: Some(id.0), user: Some(owner.user) })
}

pub(crate) async fn record(
    inner: &Inner,
    conn: &mut PgConnection,
    owner: &Owner,
    action: &'static str,
    id: ThreadId,
    details: serde_json::Value,
) -> sqlx::Result<()> {
    audit::record(
        conn,
        &AuditEntry {
            org: Some(owner.org),
            actor: owner.actor.clone(),
            action,
            category: "data",
            resource_type: "thread",
            resource_id: Some(id.to_string()),
            details,
            at: inner.clock.now(),
        },
    )
    .await
}

impl Chat {
    /// Creates an empty chat.
    ///
    /// # Errors
    /// `INVALID_BODY` for a bad title.
    pub async fn create_thread(&self, owner: &Owner, title: Option<&str>) -> Result<Thread, Problem> {
        let title = title.map(checked_title).transpose()?;
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        let id = ThreadId::new();
        let now = inner.clock.now();
        let new = NewThread {
            id,
            org: owner.org,
            owner: owner.user,
            title: title.as_deref(),
            custom_title: title.is_some(),
            forked_from: None,
            now,
        };
        threads::insert(&mut tx, &new).await?;
        announce(&mut tx, owner, id).await?;
        let row = threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// The owner's chats, newest activity first.
    ///
    /// # Errors
    /// `INVALID_CURSOR`.
    pub async fn threads(&self, owner: &Owner, query: &ThreadQuery) -> Result<Page<Thread>, Problem> {
        let inner = &self.0;
        let scope = format!(
            "threads:{}:{}:{}:{}",
            owner.org,
            owner.user,
            query.archived,
            query.search.as_deref().unwrap_or_default()
        );
        let before =
            query.cursor.as_deref().map(|cursor| inner.cursors.open::<(i64, ThreadId)>(&scope, cursor)).transpose()?;
        let before = before.and_then(|(micros, id)| Some((DateTime::from_timestamp_micros(micros)?, id)));
        let limit = query.limit.clamp(1, 100);
        let filter = ListFilter {
            org: owner.org,
            owner: owner.user,
            archived: query.archived,
            title: query.search.as_deref(),
            before,
            limit: i64::from(limit) + 1,
        };
        let mut conn = inner.db.acquire().await?;
        let mut rows = threads::list(&mut conn, &filter).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows
            .last()
            .filter(|_| more)
            .map(|row| inner.cursors.sign(&scope, &(row.updated_at.timestamp_micros(), row.id)));
        Ok(Page { rows: rows.into_iter().map(Thread::from).collect(), next })
    }

    /// One chat.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn thread(&self, owner: &Owner, id: ThreadId) -> Result<Thread, Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, id).await?.map(Thread::from).ok_or_else(not_found)
    }

    /// The messages of the version on screen, oldest first.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn messages(&self, owner: &Owner, id: ThreadId) -> Result<Vec<Message>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        let thread = threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let Some(leaf) = thread.active_leaf else { return Ok(Vec::new()) };
        let rows = messages::path(&mut conn, owner.org, id, leaf).await?;
        let siblings = messages::user_messages(&mut conn, owner.org, id).await?;
        let ratings = feedback::ratings(&mut conn, owner.org, id, owner.user).await?;
        Ok(message::view(rows, &siblings, &ratings))
    }

    /// One message of a chat, on whichever version.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `MESSAGE_NOT_FOUND`.
    pub async fn message(&self, owner: &Owner, id: ThreadId, message: MessageId) -> Result<Message, Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let row = messages::find(&mut conn, owner.org, id, message).await?.ok_or_else(message::not_found)?;
        message::view(vec![row], &[], &[]).pop().ok_or_else(message::not_found)
    }

    /// Changes a chat.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `INVALID_BODY`, `CHAT_TURN_IN_PROGRESS` when it is to be archived mid-turn.
    pub async fn change_thread(&self, owner: &Owner, id: ThreadId, patch: &ThreadPatch) -> Result<Thread, Problem> {
        let title = patch.title.as_deref().map(checked_title).transpose()?;
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        let found = threads::lock(&mut tx, owner.org, owner.user, id).await?;
        let before = threads::find(&mut tx, owner.org, owner.user, id)
            .await?
            .filter(|_| found.is_some())
            .ok_or_else(not_found)?;
        if patch.archived == Some(true) && before.running {
            return Err(in_progress());
        }
        let change = ThreadChange {
            title: title.as_deref(),
            archived: patch.archived,
            pinned: patch.pinned,
            unread: patch.unread,
        };
        threads::change(&mut tx, owner.org, id, &change, inner.clock.now()).await?;
        if patch.archived == Some(false) {
            deferred::due(&mut tx, owner.org, id, inner.clock.now()).await?;
        }
        announce(&mut tx, owner, id).await?;
        let row = threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// Moves a chat to the trash with all its versions; what is parked in it is given up for good, and
    /// its link is dark while it is there (CHT-15).
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `CHAT_TURN_IN_PROGRESS`.
    pub async fn delete_thread(&self, owner: &Owner, id: ThreadId) -> Result<(), Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        if threads::lock(&mut tx, owner.org, owner.user, id).await?.is_none() {
            return Err(not_found());
        }
        if generations::find(&mut tx, owner.org, id).await?.is_some() {
            return Err(in_progress());
        }
        threads::trash(&mut tx, owner.org, id, inner.clock.now()).await?;
        deferred::cancel_all(&mut tx, owner.org, &[id], inner.clock.now()).await?;
        record(inner, &mut tx, owner, "chat.trashed", id, json!({})).await?;
        announce(&mut tx, owner, id).await?;
        share::announce_if_shared(&mut tx, owner, &[id]).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes a chat out of the trash again.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND` when it is not in the owner's trash.
    pub async fn restore_thread(&self, owner: &Owner, id: ThreadId) -> Result<Thread, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        if !threads::restore(&mut tx, owner.org, owner.user, id).await? {
            return Err(not_found());
        }
        record(inner, &mut tx, owner, "chat.restored", id, json!({})).await?;
        announce(&mut tx, owner, id).await?;
        share::announce_if_shared(&mut tx, owner, &[id]).await?;
        let row = threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// Archives all open chats of the owner in this organization (CHT-17).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn archive_all(&self, owner: &Owner) -> Result<BulkResult, Problem> {
        self.bulk(owner, "chat.archived_all", false).await
    }

    /// Trashes all chats of the owner in this organization (CHT-17).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_all(&self, owner: &Owner) -> Result<BulkResult, Problem> {
        self.bulk(owner, "chat.trashed_all", true).await
    }

    async fn bulk(&self, owner: &Owner, action: &'static str, trash: bool) -> Result<BulkResult, Problem> {
        let inner = &self.0;
        let now = inner.clock.now();
        let mut tx = inner.db.begin().await?;
        let changed = if trash {
            let trashed = threads::trash_all(&mut tx, owner.org, owner.user, now).await?;
            deferred::cancel_all(&mut tx, owner.org, &trashed, now).await?;
            trashed
        } else {
            threads::archive_all(&mut tx, owner.org, owner.user, now).await?
        };
        let skipped = threads::count_running(&mut tx, owner.org, owner.user).await?;
        audit::record(
            &mut tx,
            &AuditEntry {
                org: Some(owner.org),
                actor: owner.actor.clone(),
                action,
                category: "data",
                resource_type: "thread",
                resource_id: None,
                details: json!({ "count": changed.len() }),
                at: now,
            },
        )
        .await?;
        hints::notify(&mut tx, &Hint { org: owner.org, topic: Topic::Threads, id: None, user: Some(owner.user) })
            .await?;
        if trash {
            share::announce_if_shared(&mut tx, owner, &changed).await?;
        }
        tx.commit().await?;
        Ok(BulkResult { changed: changed.len() as u64, skipped: u64::try_from(skipped).unwrap_or(0) })
    }

    /// The owner's chats whose title or messages match the words of `query`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn search(&self, owner: &Owner, query: &str, limit: u32) -> Result<Vec<FoundThread>, Problem> {
        let words = prefix_query(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.0.db.acquire().await?;
        let rows =
            threads::search(&mut conn, owner.org, owner.user, &words, query.trim(), i64::from(limit.clamp(1, 50)))
                .await?;
        Ok(rows
            .into_iter()
            .map(|row| FoundThread {
                id: row.id,
                title: row.title,
                archived: row.archived,
                updated_at: row.updated_at,
                message: row.message_id,
                snippet: row.snippet,
            })
            .collect())
    }

    /// Shows the version of a turn that begins with `message` (CHT-122, CHT-123).
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `CHAT_TURN_IN_PROGRESS`.
    pub async fn switch_version(&self, owner: &Owner, id: ThreadId, message: MessageId) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        if threads::lock(&mut tx, owner.org, owner.user, id).await?.is_none() {
            return Err(not_found());
        }
        if generations::find(&mut tx, owner.org, id).await?.is_some() {
            return Err(in_progress());
        }
        messages::find(&mut tx, owner.org, id, message).await?.ok_or_else(message::not_found)?;
        let leaf = messages::newest_leaf(&mut tx, owner.org, id, message).await?;
        threads::set_active_leaf(&mut tx, owner.org, id, leaf).await?;
        announce(&mut tx, owner, id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Copies a chat up to a reply into a new one (CHT-128).
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `MESSAGE_NOT_FOUND` for a message that is no settled reply.
    pub async fn fork(&self, owner: &Owner, id: ThreadId, message: MessageId) -> Result<Thread, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        let from = threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let row = messages::find(&mut tx, owner.org, id, message).await?;
        row.filter(|row| row.role == "assistant" && row.status != "pending").ok_or_else(message::not_found)?;
        let title: Option<String> =
            from.title.map(|title| format!("Fork of {title}").chars().take(MAX_TITLE_CHARS).collect());
        let copy = ThreadId::new();
        let now = inner.clock.now();
        let new = NewThread {
            id: copy,
            org: owner.org,
            owner: owner.user,
            title: title.as_deref(),
            custom_title: title.is_some(),
            forked_from: Some(id),
            now,
        };
        threads::insert(&mut tx, &new).await?;
        if let Some(leaf) = messages::copy_path(&mut tx, owner.org, id, message, copy).await? {
            threads::set_active_leaf(&mut tx, owner.org, copy, leaf).await?;
        }
        announce(&mut tx, owner, copy).await?;
        let row = threads::find(&mut tx, owner.org, owner.user, copy).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// The model a person used last; `None` inside is Auto, outside is "never picked".
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pick(&self, owner: &Owner) -> Result<Option<(Option<String>, Option<String>)>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        Ok(threads::pick(&mut conn, owner.org, owner.user).await?)
    }

    /// Remembers the pick for the next fresh chat; `None` is Auto.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_pick(&self, owner: &Owner, pick: Option<(&str, &str)>) -> Result<(), Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::set_pick(&mut conn, owner.org, owner.user, pick).await?;
        Ok(())
    }
}

/// Every word of a query as a prefix, all of them required, safe for `to_tsquery`.
fn prefix_query(query: &str) -> String {
    query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(16)
        .map(|word| format!("{}:*", word.to_lowercase()))
        .collect::<Vec<_>>()
        .join(" & ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_cannot_carry_operators() {
        assert_eq!(prefix_query("Travel costs' | !x:*"), "travel:* & costs:* & x:*");
        assert_eq!(prefix_query("  &|! "), "");
    }
}
