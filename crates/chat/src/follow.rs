//! Following a turn: the state right now ([`Chat::generation`]) and everything after it
//! ([`Chat::follow`]), wherever the turn runs.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tale_core::Problem;
use tale_core::ids::{MessageId, OrgId, ThreadId};
use tokio::sync::broadcast::error::RecvError;

use crate::parts::{Part, Status};
use crate::service::{Chat, Inner, Owner};
use crate::store::{generations, messages, threads};
use crate::thread::not_found;
use crate::turn::live::{TurnEvent, TurnStatus};

/// How often a turn of another process is read; its process writes once a second.
const REMOTE_LOOK: Duration = Duration::from_millis(700);

/// What a chat is doing.
#[derive(Debug, Clone)]
pub enum Generation {
    /// Nothing; how its last reply ended.
    Idle {
        /// The last reply, when there is one.
        last: Option<(MessageId, String)>,
    },
    /// A turn is accepted and waits.
    Queued {
        /// The reply.
        message: MessageId,
    },
    /// A reply is being written.
    Streaming {
        /// The reply.
        message: MessageId,
        /// Its parts so far.
        parts: Vec<Part>,
        /// Whether it was asked to stop.
        cancel_requested: bool,
    },
}

impl Chat {
    /// What the chat is doing right now.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`.
    pub async fn generation(&self, owner: &Owner, id: ThreadId) -> Result<Generation, Problem> {
        let inner = &self.0;
        let mut conn = inner.db.acquire().await?;
        let thread = threads::find(&mut conn, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        if let Some(row) = generations::find(&mut conn, owner.org, id).await? {
            let live = inner.live.get(id).filter(|turn| turn.message == row.message_id);
            let (status, parts) = match live {
                Some(turn) => (turn.status(), turn.parts()),
                None => (status_of(&row.status), row.parts.0),
            };
            return Ok(match status {
                TurnStatus::Queued => Generation::Queued { message: row.message_id },
                TurnStatus::Streaming => {
                    Generation::Streaming { message: row.message_id, parts, cancel_requested: row.cancel_requested }
                }
            });
        }
        let last = match thread.active_leaf {
            Some(leaf) => messages::find(&mut conn, owner.org, id, leaf).await?.map(|row| (row.id, row.status)),
            None => None,
        };
        Ok(Generation::Idle { last })
    }

    /// The running turn of a chat: a snapshot, then everything that follows, until it is settled.
    /// Ends at once when no turn runs. The caller has checked that the chat is the reader's.
    pub fn follow(&self, org: OrgId, id: ThreadId) -> impl Stream<Item = TurnEvent> + Send + use<> {
        let inner = self.0.clone();
        async_stream::stream! {
            // kept until its end: a reader that falls behind then must still see all of it
            if let Some(turn) = inner.live.get(id) {
                let mut listening = turn.listen();
                yield listening.snapshot;
                while listening.settled.is_none() {
                    match listening.events.recv().await {
                        Ok(event) => {
                            let event = Arc::unwrap_or_clone(event);
                            let over = matches!(event, TurnEvent::Settled { .. });
                            yield event;
                            if over {
                                return;
                            }
                        }
                        // Too slow for the ring: start over from a fresh snapshot.
                        Err(RecvError::Lagged(_)) => {
                            listening = turn.listen();
                            yield listening.snapshot;
                        }
                        Err(RecvError::Closed) => return,
                    }
                }
                if let Some(status) = listening.settled {
                    yield TurnEvent::Settled { message: turn.message, status };
                }
                return;
            }
            let mut last = None;
            while let Some(event) = remote(&inner, org, id, &mut last).await {
                if let Some(event) = event {
                    let over = matches!(event, TurnEvent::Settled { .. });
                    yield event;
                    if over {
                        return;
                    }
                }
                tokio::time::sleep(REMOTE_LOOK).await;
            }
        }
    }
}

/// One look at a turn of another process: `None` = nothing runs and nothing ran while we looked.
async fn remote(
    inner: &Arc<Inner>,
    org: OrgId,
    id: ThreadId,
    last: &mut Option<(MessageId, Vec<Part>)>,
) -> Option<Option<TurnEvent>> {
    let found = async {
        let mut conn = inner.db.acquire().await?;
        match generations::find(&mut conn, org, id).await? {
            Some(row) => Ok::<_, sqlx::Error>((Some(row), None)),
            None => match last.as_ref() {
                Some((message, _)) => Ok((None, messages::find(&mut conn, org, id, *message).await?)),
                None => Ok((None, None)),
            },
        }
    }
    .await;
    match found {
        // The database is away: keep looking.
        Err(_) => Some(None),
        Ok((Some(row), _)) => {
            let parts = row.parts.0;
            if last.as_ref().is_some_and(|(message, held)| *message == row.message_id && *held == parts) {
                return Some(None);
            }
            let public = parts.iter().cloned().map(Part::public).collect();
            *last = Some((row.message_id, parts));
            Some(Some(TurnEvent::Snapshot {
                message: row.message_id,
                status: status_of(&row.status),
                parts: Arc::new(public),
            }))
        }
        Ok((None, Some(settled))) => {
            Some(Some(TurnEvent::Settled { message: settled.id, status: settled_status(&settled.status) }))
        }
        Ok((None, None)) => None,
    }
}

fn status_of(text: &str) -> TurnStatus {
    if text == "queued" { TurnStatus::Queued } else { TurnStatus::Streaming }
}

fn settled_status(text: &str) -> Status {
    match text {
        "complete" => Status::Complete,
        "cancelled" => Status::Cancelled,
        "pending" => Status::Pending,
        _ => Status::Failed,
    }
}
