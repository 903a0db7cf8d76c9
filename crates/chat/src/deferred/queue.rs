//! Letting parked messages go.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::TimeDelta;
use futures::StreamExt;
use sqlx::PgConnection;
use tale_core::clock::SharedClock;
use tale_core::ids::{DeferredSendId, FileId, OrgId, ThreadId};
use tale_core::{Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_identity::Capability;
use tale_knowledge::attachments::UploadSettled;
use tale_knowledge::embedder::Answer;
use tale_knowledge::files::AttachmentState;
use tokio_util::sync::CancellationToken;

use super::MAX_WAITING;
use crate::admission::effort_of;
use crate::send::{ModelChoice, Origin, Place, SendRequest, SendTo};
use crate::service::{Chat, Owner};
use crate::store::deferred::{self, DeferredRow};
use crate::thread::announce;

/// Pause between two looks of a process for messages that may go.
const TICK: Duration = Duration::from_secs(1);

/// A waiting message is looked at this often, whatever is announced.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(30);

/// Next look at a chat that is archived; bringing it back looks at once.
const ARCHIVED_LOOK: TimeDelta = TimeDelta::days(1);

/// Longest pause after looks that failed on our side.
const FAILED_LOOK_MAX: i64 = 300;

/// Chats per look.
const PER_LOOK: i64 = 200;

/// Chats looked at side by side.
const PARALLEL: usize = 8;

impl Chat {
    /// Looks once at the parked messages whose look is due, and sends those that may go, as
    /// [`Chat::run`] does every second. Returns how many were sent.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn send_parked(&self) -> Result<usize, Problem> {
        if self.0.draining.load(Ordering::SeqCst) {
            return Ok(0);
        }
        let now = self.0.clock.now();
        let mut conn = self.0.db.acquire().await?;
        let due = deferred::take_due(&mut conn, now, now + LOOK_AGAIN, PER_LOOK).await?;
        drop(conn);
        let looks = futures::stream::iter(due).map(|(org, thread)| async move {
            match self.send_head(org, thread).await {
                Ok(sent) => usize::from(sent),
                Err(error) => {
                    tracing::warn!(org.id = %org, %thread, %error, "a parked message could not be looked at, trying again");
                    0
                }
            }
        });
        Ok(looks.buffer_unordered(PARALLEL).fold(0, |sum, sent| async move { sum + sent }).await)
    }

    /// Sends the first waiting message of a chat if it may go. One that is held or refused here
    /// lets the next one come first.
    async fn send_head(&self, org: OrgId, thread: ThreadId) -> Result<bool, Problem> {
        let inner = &self.0;
        for _ in 0..MAX_WAITING {
            let mut conn = inner.db.acquire().await?;
            let Some((row, archived, running)) = deferred::head(&mut conn, org, thread).await? else {
                return Ok(false);
            };
            if archived {
                deferred::due(&mut conn, org, thread, inner.clock.now() + ARCHIVED_LOOK).await?;
                return Ok(false);
            }
            drop(conn);
            let caller = inner.identity.caller_for_earlier(org, row.user_id).await?;
            let Some(caller) = caller.filter(|caller| caller.can(Capability::ChatUse)) else {
                let mut conn = inner.db.acquire().await?;
                deferred::cancel_all(&mut conn, org, &[thread], inner.clock.now()).await?;
                tracing::info!(org.id = %org, %thread, "gave parked messages up whose sender has no access any more");
                return Ok(false);
            };
            let owner = Owner::of(&caller)?;
            let files = inner.knowledge.attachments(&owner.caller, &row.attachments).await?;
            let any = |state| files.iter().any(|file| file.state == state);
            if any(AttachmentState::Failed) {
                self.hold(&owner, thread, row.id).await?;
                continue;
            }
            // The end of a running turn looks again.
            if running || any(AttachmentState::Processing) {
                return Ok(false);
            }
            let (id, failures) = (row.id, row.failures);
            match self.start(&owner, SendTo::Thread(thread), Place::End, request_of(row)?, Origin::Parked(id)).await {
                Ok(_) => return Ok(true),
                Err(problem) => match problem.code {
                    // Somebody was faster, or the chat is closed: another look or nothing is due.
                    Code::ChatTurnInProgress
                    | Code::AttachmentNotReady
                    | Code::DeferredSendNotFound
                    | Code::ThreadNotFound
                    | Code::ChatThreadArchived
                    | Code::Draining => return Ok(false),
                    _ if problem.status() >= 500 => {
                        let wait = 1_i64.checked_shl(failures.clamp(0, 16).unsigned_abs()).unwrap_or(FAILED_LOOK_MAX);
                        let at = inner.clock.now() + TimeDelta::seconds(wait.min(FAILED_LOOK_MAX));
                        deferred::failed(&mut *inner.db.acquire().await?, org, id, at).await?;
                        return Err(problem);
                    }
                    _ => self.refuse(&owner, thread, id, &problem).await?,
                },
            }
        }
        Ok(false)
    }

    async fn hold(&self, owner: &Owner, thread: ThreadId, id: DeferredSendId) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        if deferred::hold(&mut tx, owner.org, id, self.0.clock.now()).await? {
            announce(&mut tx, owner, thread).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn refuse(
        &self,
        owner: &Owner,
        thread: ThreadId,
        id: DeferredSendId,
        problem: &Problem,
    ) -> Result<(), Problem> {
        let mut tx = self.0.db.begin().await?;
        let now = self.0.clock.now();
        if deferred::refuse(&mut tx, owner.org, id, problem.code.text(), &problem.message, now).await? {
            announce(&mut tx, owner, thread).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Looks for parked messages that may go until `stop`: every second, and at once when this process
/// did something that may let one go.
pub(crate) async fn run(chat: Chat, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut silent = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
            () = chat.0.parked.notified() => {}
        }
        match chat.send_parked().await {
            Ok(_) => silent = false,
            Err(error) if !std::mem::replace(&mut silent, true) => {
                tracing::warn!(%error, "parked messages cannot be looked up, trying until they can");
            }
            Err(_) => {}
        }
    }
}

fn request_of(row: DeferredRow) -> Result<SendRequest, Problem> {
    Ok(SendRequest {
        content: row.content,
        model: match row.model {
            None => ModelChoice::Auto,
            Some(model) => ModelChoice::Named { model, provider: row.provider_slug },
        },
        effort: row.effort.as_deref().map(effort_of).transpose()?,
        max_output_tokens: None,
        attachments: row.attachments,
        locale: row.locale,
    })
}

/// Lets the messages go that wait for an upload.
pub(crate) struct WaitingForUploads {
    pub clock: SharedClock,
}

impl UploadSettled for WaitingForUploads {
    fn upload_settled<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        org: OrgId,
        thread: ThreadId,
        file: FileId,
    ) -> Answer<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            let people = deferred::due_for_file(conn, org, thread, file, self.clock.now()).await?;
            for user in people {
                let hint = Hint { org, topic: Topic::Thread, id: Some(thread.0), user: Some(user) };
                hints::notify(conn, &hint).await?;
            }
            Ok(())
        })
    }
}
