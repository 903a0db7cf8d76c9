//! Share links: a snapshot of a chat for the members of its organization (CHT-153 … CHT-162).
//!
//! A snapshot is the path to one settled message. Settled messages are never overwritten and edits
//! add branches, so that path says the same for ever: taking a snapshot copies nothing, and what is
//! erased from the chat is erased from its link. Running turns stay out until they are included.
//!
//! A reader gets the words: text, the names of files and what the citation marks stand for. How the
//! answer came about (thoughts, tool results) is not published, and a passage of a document is
//! quoted only to a reader who may open that document at this moment (CHT-162).

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use tale_core::crypto::random_token;
use tale_core::ids::{ChunkId, DocumentId, ThreadId};
use tale_core::{Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_identity::Caller;

use crate::parts::Part;
use crate::service::{Chat, Owner};
use crate::store::messages::{self, MessageRow};
use crate::store::shares::{self, ShareRow, Snapshot};
use crate::store::threads;
use crate::thread::{announce, not_found, record};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Characters of a token: base64url of [`TOKEN_BYTES`] without padding.
const TOKEN_CHARS: usize = 43;

/// The live link of a chat.
#[derive(Clone, PartialEq, Eq)]
pub struct Share {
    /// The last segment of the link.
    pub token: String,
    /// When the link was made.
    pub shared_at: DateTime<Utc>,
    /// When its snapshot was taken, last.
    pub taken_at: DateTime<Utc>,
    /// Whether the version on screen has ended elsewhere since then.
    pub newer: bool,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Share").field("taken_at", &self.taken_at).field("newer", &self.newer).finish_non_exhaustive()
    }
}

impl Share {
    fn of(row: ShareRow, newer: bool) -> Self {
        Self { token: row.token, shared_at: row.shared_at, taken_at: row.taken_at, newer }
    }
}

/// A shared chat as a reader sees it.
#[derive(Debug, Clone)]
pub struct SharedChat {
    /// Its title when the snapshot was taken.
    pub title: Option<String>,
    /// The name of the person who shares it, today.
    pub shared_by: String,
    /// When the snapshot was taken.
    pub taken_at: DateTime<Utc>,
    /// Its messages, oldest first.
    pub messages: Vec<SharedMessage>,
}

/// A message of a snapshot.
#[derive(Debug, Clone)]
pub struct SharedMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// `complete`, `cancelled` or `failed`.
    pub status: String,
    /// The published content.
    pub parts: Vec<SharedPart>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
}

/// What is published of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedPart {
    /// Prose in Markdown.
    Text {
        /// The Markdown.
        text: String,
    },
    /// The name of a file on a question. The file itself stays with its owner.
    Attachment {
        /// File name.
        name: String,
    },
    /// What a mark in the text stands for.
    Citation {
        /// The number of the mark.
        number: u32,
        /// The source's title.
        title: String,
        /// The page, when the format has pages.
        page: Option<u32>,
        /// The source, when the reader may open it.
        source: Option<OpenSource>,
    },
}

/// A source that the reader may open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSource {
    /// The document.
    pub document: DocumentId,
    /// The cited passage's id.
    pub chunk: ChunkId,
    /// The cited passage.
    pub passage: String,
}

/// The answer for links that were stopped, whose chat is in the trash, that never were, and for
/// people of other organizations alike.
fn dark() -> Problem {
    Problem::new(Code::ShareNotFound, "This shared chat is no longer available.")
}

fn nothing_to_share() -> Problem {
    Problem::new(
        Code::ChatNothingToShare,
        "This chat has no finished reply yet, so there is nothing to share. Wait for the first reply, then try again.",
    )
}

/// Tells everybody who may have a shared chat open that it may have changed or gone dark. Which
/// one is not said.
pub(crate) async fn announce_readers(conn: &mut PgConnection, owner: &Owner) -> sqlx::Result<()> {
    hints::notify(conn, &Hint::new(owner.org, Topic::SharedChats)).await
}

/// As [`announce_readers`], when one of `threads` is shared.
pub(crate) async fn announce_if_shared(
    conn: &mut PgConnection,
    owner: &Owner,
    threads: &[ThreadId],
) -> sqlx::Result<()> {
    if shares::any(conn, owner.org, threads).await? {
        announce_readers(conn, owner).await?;
    }
    Ok(())
}

impl Chat {
    /// The live link of a chat; nothing while it is private.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn share(&self, owner: &Owner, id: ThreadId) -> Result<Option<Share>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let Some(row) = shares::find(&mut conn, owner.org, id).await? else { return Ok(None) };
        let now = shares::publishable(&mut conn, owner.org, id).await?;
        let newer = now.is_some_and(|(leaf, _)| leaf != row.leaf_id);
        Ok(Some(Share::of(row, newer)))
    }

    /// Publishes the version on the owner's screen as it is now. A chat that is shared keeps its
    /// link and its snapshot.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `CHAT_NOTHING_TO_SHARE`.
    pub async fn publish(&self, owner: &Owner, id: ThreadId) -> Result<Share, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        if threads::lock(&mut tx, owner.org, owner.user, id).await?.is_none() {
            return Err(not_found());
        }
        let now = shares::publishable(&mut tx, owner.org, id).await?;
        if let Some(row) = shares::find(&mut tx, owner.org, id).await? {
            let newer = now.is_some_and(|(leaf, _)| leaf != row.leaf_id);
            return Ok(Share::of(row, newer));
        }
        let (leaf, title) = now.ok_or_else(nothing_to_share)?;
        let token = random_token(TOKEN_BYTES);
        let snapshot = Snapshot { thread: id, leaf, title: title.as_deref(), now: inner.clock.now() };
        shares::insert(&mut tx, owner.org, &token, &snapshot).await?;
        record(inner, &mut tx, owner, "chat.shared", id, json!({})).await?;
        announce(&mut tx, owner, id).await?;
        tx.commit().await?;
        Ok(Share { token, shared_at: snapshot.now, taken_at: snapshot.now, newer: false })
    }

    /// Takes the snapshot of a shared chat anew, from the version on screen; the link stays.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`, `SHARE_NOT_FOUND` for a chat without a link, `CHAT_NOTHING_TO_SHARE`.
    pub async fn include_newer(&self, owner: &Owner, id: ThreadId) -> Result<Share, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        if threads::lock(&mut tx, owner.org, owner.user, id).await?.is_none() {
            return Err(not_found());
        }
        let row = shares::find(&mut tx, owner.org, id).await?.ok_or_else(dark)?;
        let (leaf, title) = shares::publishable(&mut tx, owner.org, id).await?.ok_or_else(nothing_to_share)?;
        let snapshot = Snapshot { thread: id, leaf, title: title.as_deref(), now: inner.clock.now() };
        shares::retake(&mut tx, owner.org, &snapshot).await?;
        record(inner, &mut tx, owner, "chat.share_updated", id, json!({})).await?;
        announce(&mut tx, owner, id).await?;
        announce_readers(&mut tx, owner).await?;
        tx.commit().await?;
        Ok(Share { token: row.token, shared_at: row.shared_at, taken_at: snapshot.now, newer: false })
    }

    /// Ends the link of a chat for good; also of one in the trash. `false` when it had none.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn unshare(&self, owner: &Owner, id: ThreadId) -> Result<bool, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        shares::lock_owned(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        if !shares::delete(&mut tx, owner.org, id).await? {
            return Ok(false);
        }
        record(inner, &mut tx, owner, "chat.unshared", id, json!({})).await?;
        announce(&mut tx, owner, id).await?;
        announce_readers(&mut tx, owner).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// The shared chat behind a token, for a member of its organization.
    ///
    /// # Errors
    /// `SHARE_NOT_FOUND`.
    pub async fn shared(&self, reader: &Caller, token: &str) -> Result<SharedChat, Problem> {
        if token.len() != TOKEN_CHARS || !token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(dark());
        }
        let mut conn = self.0.db.acquire().await?;
        let row = shares::by_token(&mut conn, reader.org, token).await?.ok_or_else(dark)?;
        let path = messages::path(&mut conn, reader.org, row.thread_id, row.leaf_id).await?;
        drop(conn);
        let cited: HashSet<DocumentId> = path.iter().flat_map(|message| cited(&message.parts)).collect();
        let readable = self.0.knowledge.readable_documents(reader, cited).await?;
        Ok(SharedChat {
            title: row.title,
            shared_by: row.shared_by,
            taken_at: row.taken_at,
            messages: path.into_iter().map(|message| publish(message, &readable)).collect(),
        })
    }
}

fn cited(parts: &[Part]) -> impl Iterator<Item = DocumentId> {
    parts.iter().filter_map(|part| match part {
        Part::Citation { document_id, .. } => *document_id,
        _ => None,
    })
}

fn publish(row: MessageRow, readable: &HashSet<DocumentId>) -> SharedMessage {
    let parts = row.parts.0.into_iter().filter_map(|part| match part {
        Part::Text { text } => Some(SharedPart::Text { text }),
        Part::Attachment { name, .. } => Some(SharedPart::Attachment { name }),
        Part::Citation { number, document_id, title, passage, chunk_id, page, .. } => {
            let document = document_id.filter(|id| readable.contains(id));
            let source = document.map(|document| OpenSource { document, chunk: chunk_id, passage });
            Some(SharedPart::Citation { number, title, page, source })
        }
        Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } => None,
    });
    SharedMessage { role: row.role, status: row.status, parts: parts.collect(), created_at: row.created_at }
}
