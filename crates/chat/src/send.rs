//! Accepting a message: every check, then one transaction, then a turn of its own (CHT-65 … CHT-70).

use std::sync::Arc;

use serde::Serialize;
use tale_core::ids::{DeferredSendId, FileId, MessageId, ThreadId};
use tale_core::{Code, Problem};
use tale_knowledge::Knowledge;
use tale_knowledge::files::{Attachment, AttachmentState};
use tale_models::ResolvedModel;
use tale_models::ledger::{Hold, source};
use tale_models::wire::Effort;

use crate::admission::{Checked, effort_text, writable};
use crate::message;
use crate::parts::{Part, Status, readable};
use crate::service::{Chat, Owner};
use crate::store::messages::MessageRow;
use crate::store::opening::{self, Opening};
use crate::store::threads::NewThread;
use crate::store::{deferred, generations, messages, threads};
use crate::thread::{announcement, in_progress, not_found};
use crate::turn::charge::Meter;
use crate::turn::history;
use crate::turn::live::LiveTurn;
use crate::turn::prompt::PromptFacts;
use crate::turn::run::{self, TurnPlan};

/// Most files on one message (spec 50, 6.2).
pub const MAX_ATTACHMENTS: usize = 10;

/// Most files on one parked message (CHT-57).
pub const MAX_WAITING_ATTACHMENTS: usize = 20;

/// Most bytes of all files on one message: 200 MiB.
pub const MAX_BATCH_BYTES: u64 = 200 << 20;

/// The language of answers whose sender names none.
const DEFAULT_LOCALE: &str = "en";

/// Which model shall answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The heuristic decides (CHT-35).
    Auto,
    /// This one.
    Named {
        /// The model's id.
        model: String,
        /// Its provider; needed when two serve the same id.
        provider: Option<String>,
    },
}

/// A message to send.
#[derive(Debug, Clone)]
pub struct SendRequest {
    /// What the person wrote; may be blank when files are attached.
    pub content: String,
    /// Who shall answer.
    pub model: ModelChoice,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Upper bound of all answers of the turn in tokens.
    pub max_output_tokens: Option<u32>,
    /// Uploads of the sender.
    pub attachments: Vec<FileId>,
    /// Language of the answer (BCP 47).
    pub locale: Option<String>,
}

/// An accepted turn.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The chat.
    pub thread_id: ThreadId,
    /// The person's message.
    pub user_message_id: MessageId,
    /// The reply, pending.
    pub message_id: MessageId,
    /// The model that answers.
    pub model: String,
    /// Its provider.
    pub provider_slug: String,
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendTo {
    /// A new chat.
    New,
    /// The end of the version on screen.
    Thread(ThreadId),
}

/// A checked send on its way into the database.
struct Sending {
    owner: Owner,
    to: SendTo,
    place: Place,
    request: SendRequest,
    parts: Vec<Part>,
    held: Vec<FileId>,
    accepted: Accepted,
    origin: Origin,
    /// What its first round may use, where something limits it.
    room: Option<Hold>,
}

/// What an accepted send leaves for its turn.
struct Committed {
    /// Whether the chat needs a title.
    untitled: bool,
    /// The messages before the question, oldest first.
    before: Result<Vec<MessageRow>, Problem>,
}

/// What a send comes from, and what its transaction therefore writes besides the message.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A person's or a client's call.
    Call,
    /// A call that is remembered under its key.
    Keyed(IdempotencyKey),
    /// A parked message, which is over with it.
    Parked(DeferredSendId),
}

/// Where in the tree the new turn hangs.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// After the version on screen.
    End,
    /// Beside an existing user message, as another version of its turn.
    Beside(MessageId),
}

impl Chat {
    /// Sends a message and starts the turn that answers it.
    ///
    /// # Errors
    /// In the order of CHT-65; nothing is written when one is returned.
    pub async fn send(&self, owner: &Owner, to: SendTo, request: SendRequest) -> Result<Accepted, Problem> {
        self.start(owner, to, Place::End, request, Origin::Call).await
    }

    /// Like [`Chat::send`], at most once per key and body within 24 hours (API-70 … API-72). The
    /// flag says whether the answer is a remembered one.
    ///
    /// # Errors
    /// As [`Chat::send`], and `IDEMPOTENCY_KEY_REUSED` for another body under the same key.
    pub async fn send_once(
        &self,
        owner: &Owner,
        thread: ThreadId,
        request: SendRequest,
        key: &IdempotencyKey,
    ) -> Result<(Accepted, bool), Problem> {
        let mut conn = self.0.db.acquire().await?;
        if let Some((hash, answer)) = crate::store::idempotency::find(
            &mut conn,
            owner.org,
            &key.scope(owner, thread),
            &key.key,
            self.0.clock.now(),
        )
        .await?
        {
            return remembered(&hash, answer, key);
        }
        drop(conn);
        match self.start(owner, SendTo::Thread(thread), Place::End, request, Origin::Keyed(key.clone())).await {
            Ok(accepted) => Ok((accepted, false)),
            Err(problem) if problem.code == Code::ChatTurnInProgress => {
                // Two equal sends at once: the other one may just have been accepted.
                let mut conn = self.0.db.acquire().await?;
                match crate::store::idempotency::find(
                    &mut conn,
                    owner.org,
                    &key.scope(owner, thread),
                    &key.key,
                    self.0.clock.now(),
                )
                .await?
                {
                    Some((hash, answer)) => remembered(&hash, answer, key),
                    None => Err(problem),
                }
            }
            Err(problem) => Err(problem),
        }
    }

    /// Asks again with other words: a new version of the turn that `message` begins (CHT-121).
    ///
    /// # Errors
    /// As [`Chat::send`], and `MESSAGE_NOT_FOUND`.
    pub async fn edit(
        &self,
        owner: &Owner,
        thread: ThreadId,
        message: MessageId,
        request: SendRequest,
    ) -> Result<Accepted, Problem> {
        self.start(owner, SendTo::Thread(thread), Place::Beside(message), request, Origin::Call).await
    }

    /// Asks the same again: a new version of the turn whose reply is `message` (CHT-50, CHT-121).
    ///
    /// # Errors
    /// As [`Chat::send`], and `MESSAGE_NOT_FOUND`.
    pub async fn retry(
        &self,
        owner: &Owner,
        thread: ThreadId,
        message: MessageId,
        model: ModelChoice,
        effort: Option<Effort>,
        locale: Option<String>,
    ) -> Result<Accepted, Problem> {
        let mut conn = self.0.db.acquire().await?;
        threads::find(&mut conn, owner.org, owner.user, thread).await?.ok_or_else(not_found)?;
        let reply = messages::find(&mut conn, owner.org, thread, message)
            .await?
            .filter(|row| row.role == "assistant")
            .ok_or_else(message::not_found)?;
        let question_id = reply.parent_id.ok_or_else(message::not_found)?;
        let question =
            messages::find(&mut conn, owner.org, thread, question_id).await?.ok_or_else(message::not_found)?;
        drop(conn);
        let mut content = String::new();
        let mut attachments = Vec::new();
        for part in &question.parts.0 {
            match part {
                Part::Text { text } => content.push_str(text),
                Part::Attachment { file_id, .. } => attachments.push(*file_id),
                _ => {}
            }
        }
        let request = SendRequest { content, model, effort, max_output_tokens: None, attachments, locale };
        self.start(owner, SendTo::Thread(thread), Place::Beside(question_id), request, Origin::Call).await
    }

    pub(crate) async fn start(
        &self,
        owner: &Owner,
        to: SendTo,
        place: Place,
        request: SendRequest,
        origin: Origin,
    ) -> Result<Accepted, Problem> {
        // A message that waited may carry more files, and so may its next versions.
        let most = match (&origin, place) {
            (Origin::Call | Origin::Keyed(_), Place::End) => MAX_ATTACHMENTS,
            _ => MAX_WAITING_ATTACHMENTS,
        };
        // The preferences are of no use to the checks, but to read them later would cost time of its own.
        let (checked, preferences) =
            tokio::join!(self.check(owner, to, &request, most), self.0.identity.preferences(&owner.caller));
        let Checked { content, files, model } = checked?;
        let preferences = preferences?;
        let instructed = preferences.instructions_enabled == Some(true) && !preferences.instructions.trim().is_empty();
        let personal = instructed.then_some(preferences.instructions);
        let unread: Vec<FileId> =
            files.iter().filter(|file| file.state == AttachmentState::Processing).map(|file| file.file_id).collect();
        if !unread.is_empty() {
            return Err(Problem::new(
                Code::AttachmentNotReady,
                "An attached file is still being read. Send the message again once it is ready.",
            )
            .with_data(serde_json::json!({ "attachments": unread })));
        }
        let thread = match to {
            SendTo::New => ThreadId::new(),
            SendTo::Thread(id) => id,
        };
        let (user_message, reply) = (MessageId::new(), MessageId::new());
        let accepted = Accepted {
            thread_id: thread,
            user_message_id: user_message,
            message_id: reply,
            model: model.model_id.clone(),
            provider_slug: model.provider_slug.clone(),
        };
        let held = self.to_hold(owner, thread, &files).await?;
        let mut parts: Vec<Part> = files
            .into_iter()
            .map(|file| Part::Attachment {
                name: file.name,
                media_type: file.media_type,
                file_id: file.file_id,
                size_bytes: file.size,
            })
            .collect();
        let meter = Meter::new(self.0.models.ledger(), &owner.caller, owner.user, &model, source::CHAT);
        if !content.is_empty() {
            parts.push(Part::text(content));
        }
        // The last check, because it takes something: what is refused here leaves no trace.
        let room = if meter.limited().await? {
            let before = self.said_before(owner, to, place).await?;
            let vision = model.capabilities.vision;
            let reader = history::Reader { caller: &owner.caller, user: owner.user, vision, pixels: false };
            let facts = PromptFacts {
                personal: personal.as_deref(),
                locale: request.locale.as_deref().unwrap_or(DEFAULT_LOCALE),
                now: self.0.clock.now(),
                tools: model.capabilities.tools,
            };
            let most = request.max_output_tokens;
            let prompt = run::first_prompt(&self.0, reader, &model, most, &facts, before, &parts).await?;
            Some(meter.admit(prompt).await?)
        } else {
            None
        };
        let sending = Sending { owner: owner.clone(), to, place, request, parts, held, accepted, origin, room };
        let chat = self.clone();
        // A task of its own: a client that hangs up between the commit and the start of the turn
        // must not leave a turn behind that nobody runs.
        let accepting = tokio::spawn(async move { chat.accept(sending, model, personal).await });
        accepting.await.map_err(Problem::internal)?
    }

    /// What was said before a question in this place, as far as it is known before the chat is held.
    async fn said_before(&self, owner: &Owner, to: SendTo, place: Place) -> Result<Vec<MessageRow>, Problem> {
        let SendTo::Thread(thread) = to else { return Ok(Vec::new()) };
        let mut conn = self.0.db.acquire().await?;
        let parent = match place {
            Place::End => {
                threads::find(&mut conn, owner.org, owner.user, thread).await?.and_then(|row| row.active_leaf)
            }
            Place::Beside(message) => {
                messages::find(&mut conn, owner.org, thread, message).await?.and_then(|row| row.parent_id)
            }
        };
        let Some(parent) = parent else { return Ok(Vec::new()) };
        Ok(messages::path(&mut conn, owner.org, thread, parent).await?)
    }

    /// Commits an accepted send and starts its turn, detached from the connection.
    async fn accept(
        &self,
        sending: Sending,
        model: ResolvedModel,
        personal: Option<String>,
    ) -> Result<Accepted, Problem> {
        let inner = self.0.clone();
        let accepted = sending.accepted.clone();
        let turn = Arc::new(LiveTurn::new(sending.owner.org, accepted.thread_id, accepted.message_id));
        let Committed { untitled, before } = match self.commit(&sending, &turn).await {
            Ok(committed) => committed,
            Err(problem) => {
                inner.live.remove(&turn);
                // whoever looked already looks again, and finds the chat as it was
                turn.settled(Status::Failed);
                return Err(problem);
            }
        };
        let plan = TurnPlan {
            user: sending.owner.user,
            caller: sending.owner.caller,
            model,
            effort: sending.request.effort,
            max_output_tokens: sending.request.max_output_tokens,
            locale: sending.request.locale.unwrap_or_else(|| DEFAULT_LOCALE.to_owned()),
            untitled,
        };
        let opening = Box::new(run::Opening { before, question: sending.parts, personal, held: sending.room });
        let task = run::guarded(inner.clone(), turn, plan, opening);
        inner.tasks.spawn(task);
        Ok(accepted)
    }

    /// The files that this chat takes. One that a chat of its lineage holds stays there: a fork
    /// reads what its origin holds.
    pub(crate) async fn to_hold(
        &self,
        owner: &Owner,
        thread: ThreadId,
        files: &[Attachment],
    ) -> Result<Vec<FileId>, Problem> {
        let foreign = files.iter().any(|file| file.thread.is_some_and(|holder| holder != thread));
        let lineage = if foreign { history::lineage(&self.0, owner.org, thread).await } else { Vec::new() };
        let inherited =
            |file: &Attachment| file.thread.is_some_and(|holder| holder != thread && lineage.contains(&holder));
        Ok(files.iter().filter(|file| !inherited(file)).map(|file| file.file_id).collect())
    }

    /// Everything of an accepted send in one transaction, and meanwhile what was said before.
    async fn commit(&self, sending: &Sending, turn: &Arc<LiveTurn>) -> Result<Committed, Problem> {
        let Sending { owner, request, parts, held, accepted, .. } = sending;
        let inner = &self.0;
        let now = inner.clock.now();
        let thread = accepted.thread_id;
        let mut tx = inner.db.begin().await?;
        let row = if sending.to == SendTo::New {
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
            threads::Held::default()
        } else {
            threads::lock(&mut tx, owner.org, owner.user, thread).await?.ok_or_else(not_found)?
        };
        writable(row.archived)?;
        let parent = match sending.place {
            Place::End => row.active_leaf,
            Place::Beside(message) => {
                if generations::find(&mut tx, owner.org, thread).await?.is_some() {
                    return Err(in_progress());
                }
                let held = messages::find(&mut tx, owner.org, thread, message)
                    .await?
                    .filter(|row| row.role == "user")
                    .ok_or_else(message::not_found)?;
                held.parent_id
            }
        };
        let write = async {
            let opening = Opening {
                question: accepted.user_message_id,
                reply: accepted.message_id,
                org: owner.org,
                thread,
                parent,
                parts,
                search_text: &readable(parts),
                model: &accepted.model,
                provider_slug: &accepted.provider_slug,
                effort: request.effort.map(effort_text),
                owner: inner.owner,
                hints: &announcement(owner, thread),
                now,
            };
            if !opening::open(&mut tx, &opening).await? {
                return Err(in_progress());
            }
            // Before the commit, because its hint makes tabs look for the turn at once.
            inner.live.insert(turn.clone());
            if !held.is_empty() {
                Knowledge::hold_attachments(&mut tx, &owner.caller, thread, held).await?;
            }
            if let Origin::Parked(id) = sending.origin
                && !deferred::sent(&mut tx, owner.org, thread, id, now).await?
            {
                return Err(crate::deferred::gone());
            }
            if let Origin::Keyed(key) = &sending.origin {
                let answer = serde_json::to_value(accepted).map_err(Problem::internal)?;
                crate::store::idempotency::insert(
                    &mut tx,
                    owner.org,
                    &key.scope(owner, thread),
                    &key.key,
                    &key.body_hash,
                    &answer,
                    now,
                )
                .await?;
            }
            tx.commit().await?;
            Ok(())
        };
        // The version that goes on is settled and the chat is held, so what was said before can be read
        // on another connection at the same time.
        let before = async {
            let Some(parent) = parent else { return Ok::<_, Problem>(Vec::new()) };
            let mut conn = inner.db.acquire().await?;
            Ok(messages::path(&mut conn, owner.org, thread, parent).await?)
        };
        let (written, before) = tokio::join!(write, before);
        written?;
        Ok(Committed { untitled: !row.titled, before })
    }

    /// Asks a running turn to stop (CHT-107 … CHT-109). Returns the reply's id.
    ///
    /// # Errors
    /// `THREAD_NOT_FOUND`; `CHAT_TURN_NOT_RUNNING` with the last reply in `data`.
    pub async fn stop(&self, owner: &Owner, id: ThreadId) -> Result<MessageId, Problem> {
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        let thread = threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        let stopped = generations::request_cancel(&mut tx, owner.org, id).await?;
        tx.commit().await?;
        let Some(message) = stopped else {
            let mut problem = Problem::new(Code::ChatTurnNotRunning, "No reply is being written in this chat.");
            if let Some(leaf) = thread.active_leaf {
                let mut conn = inner.db.acquire().await?;
                if let Some(last) = messages::find(&mut conn, owner.org, id, leaf).await? {
                    problem =
                        problem.with_data(serde_json::json!({ "lastMessageId": last.id, "lastStatus": last.status }));
                }
            }
            return Err(problem);
        };
        if let Some(turn) = inner.live.get(id).filter(|turn| turn.message == message) {
            turn.cancel.cancel();
        }
        Ok(message)
    }
}

/// A client's key for one send, with the hash of its body.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// 1–255 printable ASCII characters.
    pub key: String,
    /// SHA-256 of the canonical body.
    pub body_hash: [u8; 32],
}

impl IdempotencyKey {
    fn scope(&self, owner: &Owner, thread: ThreadId) -> String {
        format!("send:{}:{thread}", owner.user)
    }
}

fn remembered(hash: &[u8], answer: serde_json::Value, key: &IdempotencyKey) -> Result<(Accepted, bool), Problem> {
    if hash != key.body_hash {
        return Err(Problem::new(
            Code::IdempotencyKeyReused,
            "This Idempotency-Key was used for another message in this chat. Use a fresh key.",
        ));
    }
    let field = |name: &str| answer.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let id = |name: &str| field(name).parse().map_err(Problem::internal);
    Ok((
        Accepted {
            thread_id: ThreadId(id("threadId")?),
            user_message_id: MessageId(id("userMessageId")?),
            message_id: MessageId(id("messageId")?),
            model: field("model").to_owned(),
            provider_slug: field("providerSlug").to_owned(),
        },
        true,
    ))
}
