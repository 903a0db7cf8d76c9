//! The chat service: what its operations share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_core::ids::{OrgId, UserId};
use tale_core::page::CursorSigner;
use tale_core::{Actor, Code, Problem};
use tale_extract::ExtractProgram;
use tale_identity::{Caller, Identity};
use tale_knowledge::Knowledge;
use tale_models::Models;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::deferred::{self, WaitingForUploads};
use crate::store;
use crate::turn::heartbeat;
use crate::turn::live::LiveTurns;
use crate::turn::web::{WebAccess, WebReader};

/// Turns that one process runs at the same time; more wait in order of arrival.
const MAX_TURNS: usize = 1_000;

/// Days that a chat stays in the trash before it is removed for good.
const TRASH_DAYS: i64 = 30;

/// What the service is built from.
pub struct ChatConfig {
    /// The operational database.
    pub db: PgPool,
    /// Models.
    pub models: Models,
    /// Documents and search.
    pub knowledge: Knowledge,
    /// The clock.
    pub clock: SharedClock,
    /// Signs page cursors.
    pub cursors: CursorSigner,
    /// People and their preferences.
    pub identity: Identity,
    /// The program that turns fetched pages into text.
    pub extract: ExtractProgram,
    /// Which pages the assistant reads.
    pub web: WebAccess,
}

/// Chats of an organization's people. Cheap to clone.
#[derive(Clone)]
pub struct Chat(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub db: PgPool,
    pub models: Models,
    pub knowledge: Knowledge,
    pub clock: SharedClock,
    pub cursors: CursorSigner,
    pub identity: Identity,
    pub live: LiveTurns,
    /// This process among those that run turns.
    pub owner: Uuid,
    pub slots: Semaphore,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
    /// Cancelled: titles are not worth waiting for while the process drains.
    pub titles: CancellationToken,
    pub draining: AtomicBool,
    pub web: WebReader,
    /// Told when this process did something that may let a parked message go.
    pub parked: Notify,
}

/// The person whose chats an operation is about.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The call.
    pub caller: Caller,
    /// The organization.
    pub org: OrgId,
    /// The person.
    pub user: UserId,
    /// The author of changes, for the audit log.
    pub actor: Actor,
}

impl Owner {
    /// The person behind a call.
    ///
    /// # Errors
    /// `API_KEY_SCOPE_FORBIDDEN` for a key that belongs to no person: it has no chats.
    pub fn of(caller: &Caller) -> Result<Self, Problem> {
        let user = caller.user.ok_or_else(|| {
            Problem::new(
                Code::ApiKeyScopeForbidden,
                "This API key belongs to no person and has no chats. Use a key of your own, or one made for a member.",
            )
        })?;
        Ok(Self { org: caller.org, user, actor: caller.actor(), caller: caller.clone() })
    }
}

impl Chat {
    /// Builds the service. Call [`Chat::run`] to keep its turns alive.
    ///
    /// # Errors
    /// When the web reader's TLS backend cannot start.
    pub fn new(config: ChatConfig) -> Result<Self, Problem> {
        config.knowledge.on_upload_settled(Arc::new(WaitingForUploads { clock: config.clock.clone() }));
        Ok(Self(Arc::new(Inner {
            db: config.db,
            models: config.models,
            knowledge: config.knowledge,
            clock: config.clock,
            cursors: config.cursors,
            identity: config.identity,
            live: LiveTurns::default(),
            owner: Uuid::new_v4(),
            slots: Semaphore::new(MAX_TURNS),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            titles: CancellationToken::new(),
            draining: AtomicBool::new(false),
            web: WebReader::new(config.extract, config.web).map_err(Problem::internal)?,
            parked: Notify::new(),
        })))
    }

    /// The heartbeat of this process's turns, the settling of lost ones and the sending of parked
    /// messages; runs until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(heartbeat::run(self.0.clone(), stop.clone()), deferred::run(self.clone(), stop));
    }

    /// Refuses new turns and waits for the running ones, at most `budget`; what is left then is
    /// settled as stopped by us with its partial text.
    pub async fn drain(&self, budget: Duration) {
        self.0.draining.store(true, Ordering::SeqCst);
        self.0.titles.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(budget, self.0.tasks.wait()).await.is_err() {
            let left = self.0.live.all();
            if !left.is_empty() {
                tracing::warn!(
                    event = "turn.drain_over",
                    turns = left.len(),
                    "stopping turns that did not finish in time"
                );
            }
            // Before the turns are told, so that their end says that we, not the person, stopped them.
            self.0.stop.cancel();
            for turn in left {
                turn.cancel.cancel();
            }
            // Settling is one short transaction each.
            let _ = tokio::time::timeout(Duration::from_secs(5), self.0.tasks.wait()).await;
        }
        self.0.stop.cancel();
    }

    /// Removes chats that have been in the trash for longer than [`TRASH_DAYS`] and forgets old
    /// idempotent answers and parked messages that are over.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep(&self) -> Result<u64, Problem> {
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin().await?;
        let forgotten = store::idempotency::sweep(&mut tx, now).await?
            + store::deferred::sweep(&mut tx, now - TimeDelta::days(1)).await?;
        let purged = store::threads::purge(&mut tx, now - TimeDelta::days(TRASH_DAYS)).await?;
        for (org, thread) in &purged {
            Knowledge::release_thread(&mut tx, *org, *thread).await?;
        }
        tx.commit().await?;
        Ok(forgotten + purged.len() as u64)
    }

    /// Writes the state of this process's turns and obeys stops from elsewhere, as [`Chat::run`]
    /// does once a second.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn beat(&self) -> Result<(), Problem> {
        Ok(heartbeat::beat(&self.0).await?)
    }

    /// Settles every turn that another process had begun. For a process that is the only one of its
    /// installation, before it accepts anything: whoever began a turn is gone.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn settle_abandoned_turns(&self) -> Result<usize, Problem> {
        Ok(heartbeat::settle_abandoned(&self.0).await?)
    }

    /// Looks once for turns whose process is gone. The second look that finds the same silence
    /// settles them; a test calls it twice instead of waiting.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn settle_lost_turns(&self, suspects: &mut LostTurns) -> Result<usize, Problem> {
        Ok(heartbeat::look(&self.0, &mut suspects.0).await?)
    }
}

/// What [`Chat::settle_lost_turns`] remembers between looks.
#[derive(Default)]
pub struct LostTurns(heartbeat::Suspects);
