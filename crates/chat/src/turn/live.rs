//! Turns that run in this process: what they have streamed so far, and who listens.
//!
//! A listener takes a snapshot and a receiver under the same lock under which deltas are applied
//! and sent, so it sees every delta exactly once, whenever it joins. One turn holds its parts and
//! a ring of [`EVENT_BUFFER`] places; a listener that falls further behind gets a fresh snapshot.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tale_core::ids::{MessageId, OrgId, ThreadId};
use tale_models::wire;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::parts::{Part, Status};

/// Events kept for slow listeners of one turn. A place costs 40 bytes, and its event is gone once
/// everybody has it.
const EVENT_BUFFER: usize = 128;

/// How far a turn in flight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStatus {
    /// Accepted, waits for a slot.
    Queued,
    /// The model is at work.
    Streaming,
}

impl TurnStatus {
    /// The word on the wire and in the database.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Streaming => "streaming",
        }
    }
}

/// Which kind of part a delta extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    /// Prose.
    Text,
    /// Thinking.
    Reasoning,
}

/// Something a listener of a chat learns.
#[derive(Debug, Clone)]
pub enum TurnEvent {
    /// The whole state of the running turn.
    Snapshot {
        /// The reply.
        message: MessageId,
        /// How far the turn is.
        status: TurnStatus,
        /// The parts so far.
        parts: Arc<Vec<Part>>,
    },
    /// Text to append to `parts[index]`, which it creates if need be.
    Delta {
        /// The reply.
        message: MessageId,
        /// What is extended.
        kind: DeltaKind,
        /// Position of the part.
        index: usize,
        /// The text.
        text: Arc<str>,
    },
    /// A part that was added or completed.
    Part {
        /// The reply.
        message: MessageId,
        /// Position of the part.
        index: usize,
        /// The part.
        part: Arc<Part>,
    },
    /// The turn is over; the stored message is the truth now.
    Settled {
        /// The reply.
        message: MessageId,
        /// How it ended.
        status: Status,
    },
}

/// A turn of this process.
#[derive(Debug)]
pub(crate) struct LiveTurn {
    pub org: OrgId,
    pub thread: ThreadId,
    pub message: MessageId,
    pub cancel: CancellationToken,
    /// When it was accepted.
    pub accepted: Instant,
    state: Mutex<LiveState>,
    events: broadcast::Sender<Arc<TurnEvent>>,
}

#[derive(Debug)]
struct LiveState {
    status: TurnStatus,
    parts: Vec<Part>,
    /// Whether anything changed since the last heartbeat took the parts.
    dirty: bool,
    /// Whether the next text or reasoning starts a part of its own (a new round began).
    fresh_round: bool,
    started_at: Option<DateTime<Utc>>,
    first_token_at: Option<DateTime<Utc>>,
    /// How it ended, for listeners that come, or come back, after that was told.
    settled: Option<Status>,
}

/// What a listener of a turn begins with.
pub(crate) struct Listening {
    /// The whole state so far.
    pub snapshot: TurnEvent,
    /// How the turn ended, when it did: then no events follow.
    pub settled: Option<Status>,
    /// Everything after the snapshot.
    pub events: broadcast::Receiver<Arc<TurnEvent>>,
}

/// When a turn started and spoke first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub started_at: Option<DateTime<Utc>>,
    pub first_token_at: Option<DateTime<Utc>>,
}

impl LiveTurn {
    pub(crate) fn new(org: OrgId, thread: ThreadId, message: MessageId) -> Self {
        let state = LiveState {
            status: TurnStatus::Queued,
            parts: Vec::new(),
            dirty: true,
            fresh_round: true,
            started_at: None,
            first_token_at: None,
            settled: None,
        };
        Self {
            org,
            thread,
            message,
            cancel: CancellationToken::new(),
            accepted: Instant::now(),
            state: Mutex::new(state),
            events: broadcast::channel(EVENT_BUFFER).0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot and everything after it.
    pub(crate) fn listen(&self) -> Listening {
        let state = self.lock();
        let events = self.events.subscribe();
        Listening { snapshot: self.snapshot_of(&state), settled: state.settled, events }
    }

    fn snapshot_of(&self, state: &LiveState) -> TurnEvent {
        let parts = state.parts.iter().cloned().map(Part::public).collect();
        TurnEvent::Snapshot { message: self.message, status: state.status, parts: Arc::new(parts) }
    }

    pub(crate) fn status(&self) -> TurnStatus {
        self.lock().status
    }

    pub(crate) fn parts(&self) -> Vec<Part> {
        self.lock().parts.clone()
    }

    pub(crate) fn timing(&self) -> Timing {
        let state = self.lock();
        Timing { started_at: state.started_at, first_token_at: state.first_token_at }
    }

    /// The status and, when something changed since the last call, the parts as JSON: written
    /// straight from the state, because a copy of every running answer once a second is memory.
    pub(crate) fn take_dirty(&self) -> (TurnStatus, Option<String>) {
        let mut state = self.lock();
        let changed = std::mem::take(&mut state.dirty);
        // Parts have no map with other keys than text, so they always are JSON.
        (state.status, changed.then(|| serde_json::to_string(&state.parts).ok()).flatten())
    }

    /// What [`LiveTurn::take_dirty`] gave out was not stored: the next call gives it out again.
    pub(crate) fn put_back(&self) {
        self.lock().dirty = true;
    }

    fn tell(&self, event: TurnEvent) {
        // Nobody listening is fine: the parts are the state.
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(Arc::new(event));
        }
    }

    /// The model is about to be called.
    pub(crate) fn start(&self, now: DateTime<Utc>) {
        let mut state = self.lock();
        state.status = TurnStatus::Streaming;
        state.started_at = Some(now);
        self.tell(self.snapshot_of(&state));
    }

    /// A new model call begins: its text does not join the text of the call before.
    pub(crate) fn begin_round(&self) {
        self.lock().fresh_round = true;
    }

    pub(crate) fn append(&self, kind: DeltaKind, text: &str, now: DateTime<Utc>) {
        let mut state = self.lock();
        state.first_token_at.get_or_insert(now);
        let fresh = std::mem::take(&mut state.fresh_round);
        let joined = match (state.parts.last_mut(), kind) {
            (Some(Part::Text { text: held }), DeltaKind::Text) if !fresh => {
                held.push_str(text);
                true
            }
            (Some(Part::Reasoning { text: held, .. }), DeltaKind::Reasoning) if !fresh => {
                held.push_str(text);
                true
            }
            _ => false,
        };
        if !joined {
            state.parts.push(match kind {
                DeltaKind::Text => Part::text(text),
                DeltaKind::Reasoning => Part::Reasoning { text: text.to_owned(), blocks: Vec::new() },
            });
        }
        state.dirty = true;
        let index = state.parts.len() - 1;
        self.tell(TurnEvent::Delta { message: self.message, kind, index, text: text.into() });
    }

    /// Keeps what the provider wants back, beside the reasoning it belongs to.
    pub(crate) fn keep_reasoning(&self, block: wire::ReasoningBlock) {
        let mut state = self.lock();
        state.dirty = true;
        match state.parts.last_mut() {
            Some(Part::Reasoning { blocks, .. }) => blocks.push(block),
            _ => state.parts.push(Part::Reasoning { text: String::new(), blocks: vec![block] }),
        }
    }

    /// Adds a part and tells the listeners.
    pub(crate) fn push(&self, part: Part) {
        let mut state = self.lock();
        state.dirty = true;
        state.parts.push(part.clone());
        let index = state.parts.len() - 1;
        self.tell(TurnEvent::Part { message: self.message, index, part: Arc::new(part.public()) });
    }

    /// Completes a call that was announced while it was written, or adds it.
    pub(crate) fn complete_call(&self, call: &wire::ToolCall, input: Value) {
        let part = Part::ToolCall { id: call.id.clone(), name: call.name.clone(), input, vendor: call.vendor.clone() };
        let mut state = self.lock();
        let announced = state
            .parts
            .iter()
            .rposition(|held| matches!(held, Part::ToolCall { id, input: Value::Null, .. } if *id == call.id));
        state.dirty = true;
        let index = match announced {
            Some(index) => {
                state.parts[index] = part.clone();
                index
            }
            None => {
                state.parts.push(part.clone());
                state.parts.len() - 1
            }
        };
        self.tell(TurnEvent::Part { message: self.message, index, part: Arc::new(part.public()) });
    }

    /// The turn is over and stored.
    pub(crate) fn settled(&self, status: Status) {
        let mut state = self.lock();
        state.settled = Some(status);
        self.tell(TurnEvent::Settled { message: self.message, status });
    }
}

/// The turns of this process by chat.
#[derive(Debug, Default)]
pub(crate) struct LiveTurns(Mutex<HashMap<ThreadId, Arc<LiveTurn>>>);

impl LiveTurns {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<LiveTurn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, turn: Arc<LiveTurn>) {
        self.lock().insert(turn.thread, turn);
    }

    pub(crate) fn get(&self, thread: ThreadId) -> Option<Arc<LiveTurn>> {
        self.lock().get(&thread).cloned()
    }

    /// Forgets a turn, unless the chat already runs another one.
    pub(crate) fn remove(&self, turn: &LiveTurn) {
        let mut turns = self.lock();
        if turns.get(&turn.thread).is_some_and(|held| held.message == turn.message) {
            turns.remove(&turn.thread);
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<LiveTurn>> {
        self.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn() -> LiveTurn {
        LiveTurn::new(OrgId::new(), ThreadId::new(), MessageId::new())
    }

    #[test]
    fn a_listener_that_joins_in_the_middle_sees_every_letter_once() {
        let turn = turn();
        let now = Utc::now();
        turn.append(DeltaKind::Text, "Hel", now);
        let Listening { snapshot, mut events, .. } = turn.listen();
        turn.append(DeltaKind::Text, "lo", now);
        let TurnEvent::Snapshot { parts, .. } = snapshot else { panic!("no snapshot") };
        assert_eq!(*parts, [Part::text("Hel")]);
        let event = events.try_recv().unwrap();
        let TurnEvent::Delta { index: 0, text, .. } = &*event else { panic!("no delta") };
        assert_eq!(&**text, "lo");
        assert_eq!(turn.parts(), [Part::text("Hello")]);
    }

    #[test]
    fn rounds_and_kinds_do_not_run_together() {
        let turn = turn();
        let now = Utc::now();
        turn.append(DeltaKind::Reasoning, "hm", now);
        turn.append(DeltaKind::Text, "a", now);
        turn.begin_round();
        turn.append(DeltaKind::Text, "b", now);
        assert_eq!(turn.parts().len(), 3);
    }

    #[test]
    fn an_announced_call_is_completed_in_place() {
        let turn = turn();
        turn.push(Part::ToolCall { id: "1".into(), name: "rag_search".into(), input: Value::Null, vendor: None });
        turn.append(DeltaKind::Text, "x", Utc::now());
        turn.complete_call(&wire::ToolCall::new("1", "rag_search", "{}"), serde_json::json!({}));
        assert!(matches!(&turn.parts()[0], Part::ToolCall { input: Value::Object(_), .. }));
        assert_eq!(turn.parts().len(), 2);
    }
}
