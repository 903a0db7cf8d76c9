//! Messages that wait for their attachments (CHT-54 … CHT-58).
//!
//! A parked message is a row: `waiting` until all its attachments have been read and the messages
//! before it are gone, `held` while one of them could not be read, `refused` when it was not
//! accepted at its turn. `sending` is the one transaction in [`Chat::send`]'s path that stores the
//! message, takes the chat's turn and marks the row as `sent`, so a process that is killed at any
//! point has sent it once or not at all.
//!
//! Every waiting row carries the time of its next look. What may let it go (an upload that was
//! read, the end of a turn, a chat that is brought back) moves that time to now in its own
//! transaction. A process that looks moves it on by 30 seconds first, so nothing that is missed or
//! lost delays a message for longer.
//!
//! Growth: one statement a second and process on an index of waiting rows alone; a look reads two
//! rows and the uploads of one message.

mod queue;

pub(crate) use queue::{WaitingForUploads, run};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tale_core::ids::{DeferredSendId, FileId, ThreadId};
use tale_core::{Code, Problem};
use tale_knowledge::Knowledge;
use tale_knowledge::files::{Attachment, AttachmentState};

use crate::admission::{effort_text, too_many, writable};
use crate::send::{MAX_WAITING_ATTACHMENTS, ModelChoice, SendRequest, SendTo};
use crate::service::{Chat, Owner};
use crate::store::deferred::{self, DeferredRow, NewDeferred};
use crate::store::threads::{self, NewThread};
use crate::thread::{announce, not_found};

/// Most messages of one chat that wait, are held or were refused.
pub const MAX_WAITING: usize = 10;

/// How far a parked message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredState {
    /// Goes by itself.
    Waiting,
    /// An attachment could not be read: have it read again, or take it off.
    Held,
    /// Was not accepted at its turn.
    Refused,
}

impl DeferredState {
    /// The word on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Refused => "refused",
        }
    }
}

/// A parked message.
#[derive(Debug, Clone)]
pub struct DeferredSend {
    /// Its id.
    pub id: DeferredSendId,
    /// The chat.
    pub thread: ThreadId,
    /// How far it is.
    pub state: DeferredState,
    /// Place in the chat's queue, from 1.
    pub position: usize,
    /// The words.
    pub content: String,
    /// The attachments as they are now.
    pub attachments: Vec<Attachment>,
    /// The attachments that are not ready.
    pub waiting_for: Vec<FileId>,
    /// Code and sentence of a refusal.
    pub refusal: Option<(String, String)>,
    /// When it was parked.
    pub created_at: DateTime<Utc>,
}

/// What a person gets back who gives a parked message up.
#[derive(Debug, Clone)]
pub struct Abandoned {
    /// The words.
    pub content: String,
    /// The attachments; they can go with another message for an hour.
    pub attachments: Vec<Attachment>,
    /// Whether the chat is gone: it was made for this message and held nothing else.
    pub thread_deleted: bool,
}

/// The answer for absent and foreign parked messages, and for those that are over.
pub fn gone() -> Problem {
    Problem::new(
        Code::DeferredSendNotFound,
        "This message is not waiting any more: it was sent or given up, perhaps in another tab.",
    )
}

impl Chat {
    /// Parks a message until its attachments are ready; it is sent by itself then. One without
    /// attachments waits for those parked before it.
    ///
    /// # Errors
    /// As [`Chat::send`] except for a running turn; `TOO_MANY_ATTACHMENTS`, `QUEUE_FULL`. Nothing is
    /// written when one is returned.
    pub async fn park(&self, owner: &Owner, to: SendTo, request: SendRequest) -> Result<DeferredSend, Problem> {
        let inner = &self.0;
        if request.attachments.len() > MAX_WAITING_ATTACHMENTS {
            return Err(too_many());
        }
        let checked = self.check(owner, to, &request, MAX_WAITING_ATTACHMENTS).await?;
        let thread = match to {
            SendTo::New => ThreadId::new(),
            SendTo::Thread(id) => id,
        };
        let held = self.to_hold(owner, thread, &checked.files).await?;
        let now = inner.clock.now();
        let mut tx = inner.db.begin().await?;
        if to == SendTo::New {
            let new = NewThread {
                id: thread,
                org: owner.org,
                owner: owner.user,
                title: None,
                custom_title: false,
                forked_from: None,
                now,
            };
            threads::insert(&mut tx, &new).await?;
        } else if threads::lock(&mut tx, owner.org, owner.user, thread).await?.is_none() {
            return Err(not_found());
        }
        let row = threads::find(&mut tx, owner.org, owner.user, thread).await?.ok_or_else(not_found)?;
        writable(row.archived_at.is_some())?;
        let before = deferred::open(&mut tx, owner.org, thread).await?;
        if before.len() >= MAX_WAITING {
            return Err(Problem::new(
                Code::QueueFull,
                format!("{MAX_WAITING} messages are waiting in this chat already. Let one go out, or take one back, then send again."),
            )
            .with_data(serde_json::json!({ "limit": MAX_WAITING })));
        }
        let (model, provider_slug) = match &request.model {
            ModelChoice::Auto => (None, None),
            ModelChoice::Named { model, provider } => (Some(model.as_str()), provider.as_deref()),
        };
        let id = DeferredSendId::new();
        let files: Vec<FileId> = checked.files.iter().map(|file| file.file_id).collect();
        let new = NewDeferred {
            id,
            org: owner.org,
            thread,
            user: owner.user,
            content: &checked.content,
            attachments: &files,
            model,
            provider_slug,
            effort: request.effort.map(effort_text),
            locale: request.locale.as_deref(),
            opened_thread: to == SendTo::New,
            now,
        };
        deferred::insert(&mut tx, &new).await?;
        if !held.is_empty() {
            Knowledge::hold_attachments(&mut tx, &owner.caller, thread, &held).await?;
        }
        announce(&mut tx, owner, thread).await?;
        let row = deferred::find(&mut tx, owner.org, thread, id).await?.ok_or_else(gone)?;
        tx.commit().await?;
        inner.parked.notify_one();
        view(thread, before.len(), row, checked.files)
    }

    /// The parked messages of a chat in their order, with their attachments as they are now.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn parked(&self, owner: &Owner, id: ThreadId) -> Result<Vec<DeferredSend>, Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let rows = deferred::open(&mut conn, owner.org, id).await?;
        drop(conn);
        let ids: Vec<FileId> = rows.iter().flat_map(|row| row.attachments.iter().copied()).collect();
        let files = self.0.knowledge.attachments(&owner.caller, &ids).await?;
        rows.into_iter()
            .enumerate()
            .map(|(at, row)| {
                let own = row
                    .attachments
                    .iter()
                    .filter_map(|id| files.iter().find(|file| file.file_id == *id).cloned())
                    .collect();
                view(id, at, row, own)
            })
            .collect()
    }

    /// Gives a parked message up. A chat that was made for it and holds nothing else goes with it.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`; `DEFERRED_SEND_NOT_FOUND`, also when it was sent a moment ago.
    pub async fn abandon(&self, owner: &Owner, thread: ThreadId, id: DeferredSendId) -> Result<Abandoned, Problem> {
        let inner = &self.0;
        let now = inner.clock.now();
        let mut tx = inner.db.begin().await?;
        let row = locked(&mut tx, owner, thread, id).await?;
        deferred::cancel(&mut tx, owner.org, id, now).await?;
        let unused = deferred::unused_files(&mut tx, owner.org, thread, &row.attachments).await?;
        inner.knowledge.return_attachments(&mut tx, owner.org, thread, &unused).await?;
        let thread_deleted = deferred::remove_empty_thread(&mut tx, owner.org, thread).await?;
        // The one behind it may go now.
        deferred::due(&mut tx, owner.org, thread, now).await?;
        announce(&mut tx, owner, thread).await?;
        tx.commit().await?;
        inner.parked.notify_one();
        let attachments = inner.knowledge.attachments(&owner.caller, &row.attachments).await?;
        Ok(Abandoned { content: row.content, attachments, thread_deleted })
    }

    /// Takes an attachment off a parked message; one that was held for it goes on waiting.
    ///
    /// # Errors
    /// As [`Chat::abandon`]; `FILE_NOT_FOUND`; `INVALID_BODY` when nothing would be left to send.
    pub async fn drop_attachment(
        &self,
        owner: &Owner,
        thread: ThreadId,
        id: DeferredSendId,
        file: FileId,
    ) -> Result<(), Problem> {
        let inner = &self.0;
        let now = inner.clock.now();
        let mut tx = inner.db.begin().await?;
        let row = locked(&mut tx, owner, thread, id).await?;
        let rest: Vec<FileId> = row.attachments.iter().copied().filter(|held| *held != file).collect();
        if rest.len() == row.attachments.len() {
            return Err(no_file());
        }
        if rest.is_empty() && row.content.is_empty() {
            return Err(Problem::new(
                Code::InvalidBody,
                "Without this file nothing would be left to send. Take the whole message back instead.",
            ));
        }
        if !deferred::wait_again(&mut tx, owner.org, id, &rest, now).await? {
            return Err(gone());
        }
        let unused = deferred::unused_files(&mut tx, owner.org, thread, &[file]).await?;
        inner.knowledge.return_attachments(&mut tx, owner.org, thread, &unused).await?;
        announce(&mut tx, owner, thread).await?;
        tx.commit().await?;
        inner.parked.notify_one();
        Ok(())
    }

    /// Has an attachment of a parked message read again; one that was held for it goes on waiting.
    ///
    /// # Errors
    /// As [`Chat::abandon`]; `FILE_NOT_FOUND`.
    pub async fn retry_attachment(
        &self,
        owner: &Owner,
        thread: ThreadId,
        id: DeferredSendId,
        file: FileId,
    ) -> Result<(), Problem> {
        let inner = &self.0;
        let mut conn = inner.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, thread).await?.ok_or_else(not_found)?;
        let row = deferred::find(&mut conn, owner.org, thread, id).await?.ok_or_else(gone)?;
        drop(conn);
        if !row.attachments.contains(&file) {
            return Err(no_file());
        }
        inner.knowledge.retry_attachment(&owner.caller, file).await?;
        let mut tx = inner.db.begin().await?;
        let row = locked(&mut tx, owner, thread, id).await?;
        if !deferred::wait_again(&mut tx, owner.org, id, &row.attachments, inner.clock.now()).await? {
            return Err(gone());
        }
        announce(&mut tx, owner, thread).await?;
        tx.commit().await?;
        inner.parked.notify_one();
        Ok(())
    }
}

/// The parked message, with its chat locked.
async fn locked(
    conn: &mut PgConnection,
    owner: &Owner,
    thread: ThreadId,
    id: DeferredSendId,
) -> Result<DeferredRow, Problem> {
    if threads::lock(conn, owner.org, owner.user, thread).await?.is_none() {
        return Err(not_found());
    }
    deferred::find(conn, owner.org, thread, id).await?.ok_or_else(gone)
}

fn no_file() -> Problem {
    Problem::new(Code::FileNotFound, "This file is not attached to the message.")
}

fn view(
    thread: ThreadId,
    before: usize,
    row: DeferredRow,
    attachments: Vec<Attachment>,
) -> Result<DeferredSend, Problem> {
    let state = match row.state.as_str() {
        "waiting" => DeferredState::Waiting,
        "held" => DeferredState::Held,
        "refused" => DeferredState::Refused,
        other => return Err(Problem::internal(format!("a parked message in the state {other}"))),
    };
    let waiting_for =
        attachments.iter().filter(|file| file.state != AttachmentState::Ready).map(|file| file.file_id).collect();
    Ok(DeferredSend {
        id: row.id,
        thread,
        state,
        position: before + 1,
        content: row.content,
        attachments,
        waiting_for,
        refusal: row.refusal_code.zip(row.refusal),
        created_at: row.created_at,
    })
}
