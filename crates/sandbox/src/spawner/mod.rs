//! The spawner: a registry of sessions, which is a cache (SBX-3), and what is done with them.
//!
//! All of its state is behind one lock that is never held across an await; a decision and what follows from it in
//! the registry happen under it together. A session with compute is in the registry from before the backend is
//! asked to start it until the backend has confirmed that it is gone, so the number of entries is the number of
//! occupied slots. What must not be left half done (a stop, a destroy, the end of a start that failed)
//! runs in a task of its own: a caller that goes away does not end it.

mod admit;
mod create;
mod destroy;
mod drain;
mod follow;
mod hold;
mod lookup;
mod pass;
mod pin;
mod stop;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use tale_core::clock::SharedClock;
use tokio::sync::watch;
use tokio::time::Instant;

pub use create::{CreateError, Order};
pub use destroy::{Destroy, DestroyError, Destroyed};
pub use follow::Followed;
pub use hold::HoldError;
pub use lookup::{LookupError, SessionInfo, SessionState};
pub use pin::PinError;

use crate::admission::{HostReading, Line, Need, Place, Reservation, Shortage};
use crate::backend::Backend;
use crate::daemon::Daemons;
use crate::session::Entry;
use tale_sandbox_wire::names::{Generation, SessionId};

/// Looks at the host. The answer is what was read last; nothing waits for it.
pub trait Host: Send + Sync + 'static {
    /// Memory, pressure and disks.
    fn reading(&self) -> HostReading;

    /// The same, read anew where that is cheap: something has just been stopped.
    fn fresh_reading(&self) -> HostReading {
        self.reading()
    }
}

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Longest life of compute, and what a create gets that names none.
    pub max_lifetime: Duration,
    /// Longest idle time, and what a create gets that names none.
    pub max_idle: Duration,
    /// Idle time of a session that no work holds.
    pub released_idle: Duration,
    /// Budget of one start.
    pub create_timeout: Duration,
    /// How long a draining spawner keeps its sessions.
    pub max_linger: Duration,
    /// Sessions that may run or start at the same time.
    pub capacity: u32,
    /// Memory that a start leaves free, in bytes.
    pub memory_reserve: u64,
    /// Pressure from which starts go one by one, in percent; `None` = never.
    pub pressure_limit: Option<f64>,
}

/// Room was refused (SBX-75).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What is missing.
    pub shortage: Shortage,
    /// Where the session stands now.
    pub place: Place,
}

/// Several callers wait for one acquire.
type SharedAcquire = Shared<BoxFuture<'static, Result<Generation, HoldError>>>;

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, Entry>,
    acquires: HashMap<SessionId, SharedAcquire>,
    line: Line,
    last_start: Option<Instant>,
    nothing_until: Option<Instant>,
    /// Running compute without a readable name, as of the last list.
    unnamed: u32,
    /// When compute was first seen that this process does not start and that does not run.
    unstarted: HashMap<String, Instant>,
    draining_since: Option<Instant>,
    lingered: bool,
    /// Whether the backend has been asked what runs: before that nobody knows which slots are free.
    stocked: bool,
    /// The last creation stamp that was given.
    last_stamp: i64,
    capacity: u32,
    memory_reserve: u64,
}

impl State {
    fn reserved(&self, now: Instant) -> u64 {
        let parts = self.sessions.values().filter_map(|entry| entry.reservation);
        parts.map(|part| part.counted(now)).fold(0, u64::saturating_add)
    }

    fn occupied(&self) -> u32 {
        let named = self.sessions.values().filter(|entry| entry.has_compute).count();
        u32::try_from(named).unwrap_or(u32::MAX).saturating_add(self.unnamed)
    }
}

/// The spawner. Cloning shares it.
#[derive(Clone)]
pub struct Spawner(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    daemons: Arc<dyn Daemons>,
    host: Arc<dyn Host>,
    clock: SharedClock,
    rules: Rules,
    state: Mutex<State>,
    /// Counts changes of the registry, for those who wait for one.
    changes: watch::Sender<u64>,
    pass: tokio::sync::Mutex<()>,
}

impl Spawner {
    /// A spawner that knows of no session yet; [`Spawner::maintain`] finds those that run.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        daemons: Arc<dyn Daemons>,
        host: Arc<dyn Host>,
        clock: SharedClock,
        rules: Rules,
    ) -> Self {
        let state =
            Mutex::new(State { capacity: rules.capacity, memory_reserve: rules.memory_reserve, ..State::default() });
        let changes = watch::Sender::new(0);
        Self(Arc::new(Inner {
            backend,
            daemons,
            host,
            clock,
            rules,
            state,
            changes,
            pass: tokio::sync::Mutex::default(),
        }))
    }

    /// Sessions that may run or start at the same time.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.state().capacity
    }

    /// Takes over how many sessions may run, and the memory in bytes that a start leaves free.
    pub fn set_size(&self, capacity: u32, memory_reserve: u64) {
        {
            let mut state = self.state();
            (state.capacity, state.memory_reserve) = (capacity, memory_reserve);
        }
        self.changed();
    }

    /// The backend, for what needs no decision.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// Who waits, in order.
    #[must_use]
    pub fn waiting(&self) -> Vec<SessionId> {
        let mut state = self.state();
        state.line.forget_silent(Instant::now());
        state.line.sessions().cloned().collect()
    }

    /// Takes over a line that was kept.
    pub fn restore_line(&self, waiting: Vec<(SessionId, Need)>) {
        self.state().line.restore(waiting, Instant::now());
    }

    /// Hands the line to `keep` at each change of it, the present one first. `keep` answers whether it has it.
    pub async fn keep_line<F: Future<Output = bool>>(&self, keep: impl Fn(Vec<(SessionId, Need)>) -> F) {
        let mut changes = self.0.changes.subscribe();
        let mut kept = None;
        loop {
            changes.borrow_and_update();
            let changed = {
                let state = self.state();
                let (number, waiting) = state.line.waiting();
                (kept != Some(number)).then(|| (number, waiting.map(|(id, need)| (id.clone(), need)).collect()))
            };
            if let Some((number, waiting)) = changed
                && keep(waiting).await
            {
                kept = Some(number);
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for a change of the registry.
    fn changed(&self) {
        self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn now_ms(&self) -> i64 {
        self.0.clock.now_ms()
    }

    /// Changes the entry of this incarnation, if it is still there.
    fn with_incarnation<T>(
        &self,
        session: &SessionId,
        created_at_ms: i64,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Option<T> {
        let mut state = self.state();
        state.sessions.get_mut(session).filter(|entry| entry.created_at_ms == created_at_ms).map(change)
    }

    /// Waits until `look` has an answer, which it is asked for after each change, until `deadline`.
    async fn wait_until<T>(&self, deadline: Instant, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut changes = self.0.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&mut self.state()) {
                return Some(found);
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                _ => return look(&mut self.state()),
            }
        }
    }
}

/// A young session's share of memory.
fn young(bytes: u64, now: Instant) -> Option<Reservation> {
    Some(Reservation { bytes, since: Some(now) })
}

/// Variables of a session.
pub type Env = BTreeMap<String, String>;
