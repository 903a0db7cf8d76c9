//! What this process leases of allowances, and the calls that it has paid from there and not written down yet.
//! Memory only; [`super::keeper`] does what needs the database.
//!
//! A call that is admitted here is `fresh` until the next time that calls are written down. When it ends before
//! that, it is written as one booking and never has a hold; else it gets its hold, and ends like any other.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::allowance::Allowance;
use super::lease::{Amount, Appetite, Lease, unused};
use super::store::Ended;
use super::store::leases::{Asked, Entry, Granted};
use super::{Consumption, Estimate, Progress};

/// How long a lease is good after its owner was last heard by the database. Less than half of what others wait
/// before they end it ([`super::SILENCE`]), and measured by a clock that nobody sets.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// How far the clock on the wall may go off the other one before no lease is believed.
const SKEW: TimeDelta = TimeDelta::seconds(10);
/// After how long without a call a lease is given back.
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// How long nothing is leased of an allowance whose lease was called back.
const BARRED: Duration = Duration::from_secs(10);
/// How long nothing is asked for after there was too little.
const REFUSED: Duration = Duration::from_secs(1);
/// Allowances that are watched at the same time.
const MOST_PAYERS: usize = 16_384;
/// Calls that are not written down yet; more are held one by one, which waits for the database.
const MOST_UNWRITTEN: usize = 8_192;
/// What calls that have ended and are not booked yet may have cost together before an answer waits for its
/// booking, in micro-US-dollars: ten cents.
const MOST_UNBOOKED: u64 = 100_000;

/// Which lease paid for a call, and with what.
#[derive(Debug, Clone)]
pub(super) struct Paid {
    pub lease: Uuid,
    pub allowance: Allowance,
    pub need: Amount,
}

/// A call to be paid for.
pub(super) struct Wanted<'a> {
    pub id: Uuid,
    pub allowance: Allowance,
    pub provider: &'a Arc<str>,
    pub model: &'a Arc<str>,
    pub need: Amount,
    pub now: DateTime<Utc>,
}

struct Open {
    id: Uuid,
    lease: Lease,
    /// When the database last knew of its owner, by both clocks.
    known: (Instant, DateTime<Utc>),
    /// When the allowance ends, by both clocks.
    ends: (Instant, DateTime<Utc>),
}

impl Open {
    fn is_good(&self, now: Instant, wall: DateTime<Utc>) -> bool {
        let passed = now.saturating_duration_since(self.known.0);
        let skew = (wall - self.known.1) - TimeDelta::from_std(passed).unwrap_or(TimeDelta::MAX);
        passed < GOOD_FOR && skew.abs() < SKEW && now < self.ends.0 && wall < self.ends.1
    }
}

#[derive(Default)]
struct Payer {
    lease: Option<Open>,
    /// Calls since it is watched.
    calls: u64,
    last_call: Option<Instant>,
    need: Amount,
    appetite: Appetite,
    asking: bool,
    asked: Option<Instant>,
    /// When there was too little to lease, last.
    refused: Option<Instant>,
    barred_until: Option<Instant>,
}

struct Fresh {
    lease: Uuid,
    allowance: Allowance,
    provider: Arc<str>,
    model: Arc<str>,
    need: Amount,
    progress: Arc<Progress>,
    /// The round before which it began.
    round: u64,
}

/// Calls that are being written down. They are written again as they are until that is known to have happened.
pub(super) struct Batch {
    pub entries: Vec<Entry>,
    /// Leases that are given back afterwards.
    pub closing: Vec<Uuid>,
    round: u64,
    /// What its bookings cost.
    cost: u64,
}

#[derive(Default)]
struct State {
    /// Changes elsewhere are heard.
    listening: bool,
    /// The last batch could not be written.
    failing: bool,
    /// The process ends: nothing more is leased.
    closed: bool,
    payers: HashMap<Allowance, Payer>,
    fresh: HashMap<Uuid, Fresh>,
    /// Calls that get their hold now, and how they ended meanwhile.
    writing: HashMap<Uuid, Option<Ended>>,
    whole: Vec<Entry>,
    /// What ended calls cost that are not known to be booked, a batch under way included.
    unbooked: u64,
    batch: Option<Arc<Batch>>,
    closing: Vec<Uuid>,
    rounds: u64,
    /// Somebody waits for the next round.
    urgent: bool,
    /// Nothing is there for the next round, which nobody prepares for.
    idle: bool,
}

/// See the module.
pub(super) struct Leases {
    state: Mutex<State>,
    /// Whether the connection that listens is there.
    live: OnceLock<Arc<AtomicBool>>,
    /// There is something to write down.
    pub work: Notify,
    /// There is an allowance to ask for, or to watch.
    pub asks: Notify,
    /// Rounds that are over.
    pub done: watch::Sender<u64>,
    /// Beats of other processes' leases, and since when they stand there.
    pub seen: Mutex<HashMap<Uuid, (i64, Instant)>>,
}

impl Default for Leases {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            live: OnceLock::new(),
            work: Notify::new(),
            asks: Notify::new(),
            done: watch::Sender::new(0),
            seen: Mutex::default(),
        }
    }
}

/// What is left to do for a call that ended.
pub(super) enum Rest {
    /// It will be written down with what else there is.
    Journal,
    /// The same, but its answer should wait for that round.
    Wait(u64),
    /// It has a hold, which is to be ended.
    Hold(Ended),
}

impl Leases {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pays for a call, when a lease can. `None`: the database is to be asked.
    pub(super) fn pay(&self, wanted: &Wanted<'_>, progress: &Arc<Progress>) -> Option<Paid> {
        let (now, &Wanted { id, allowance, need, .. }) = (Instant::now(), wanted);
        let Some(live) = self.live.get() else {
            // From here on it is listened.
            self.asks.notify_one();
            return None;
        };
        if !live.load(Ordering::Acquire) {
            return None;
        }
        let state = &mut *self.state();
        if !state.listening
            || state.closed
            || !(state.payers.contains_key(&allowance) || state.payers.len() < MOST_PAYERS)
        {
            return None;
        }
        let (can, round) = (!state.failing && state.fresh.len() + state.whole.len() < MOST_UNWRITTEN, state.rounds);
        let payer = state.payers.entry(allowance).or_default();
        payer.calls += 1;
        payer.last_call = Some(now);
        payer.need = need;
        let mut wants = payer.lease.as_ref().is_none_or(|open| open.lease.is_low());
        let good = payer.lease.as_mut().filter(|open| can && open.is_good(now, wanted.now));
        let paid = good.and_then(|open| {
            let taken = open.lease.take(need);
            // One that is larger than those it was leased for, or the last that finds room.
            wants = !taken || open.lease.is_low();
            taken.then_some(Paid { lease: open.id, allowance, need })
        });
        wants &= payer.calls > 1;
        let may = !payer.asking
            && payer.barred_until.is_none_or(|until| until <= now)
            && payer.refused.is_none_or(|refused| refused + REFUSED <= now);
        // The first call has it watched, the second leases.
        if payer.calls == 1 || wants && may {
            payer.asking |= wants;
            self.asks.notify_one();
        }
        if let Some(paid) = &paid {
            let (provider, model) = (wanted.provider.clone(), wanted.model.clone());
            let progress = progress.clone();
            state.fresh.insert(id, Fresh { lease: paid.lease, allowance, provider, model, need, progress, round });
            self.wake(state);
        }
        paid
    }

    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.idle) {
            self.work.notify_one();
        }
    }

    /// Ends a call that a lease paid for.
    pub(super) fn end(&self, paid: &Paid, ended: Ended) -> Rest {
        let state = &mut *self.state();
        let used = ended.used;
        let booked = (!ended.released).then(|| [used[0] + used[1], used[4], paid.need[2]]);
        if let Some(open) = state.payers.get_mut(&paid.allowance).and_then(|payer| payer.lease.as_mut())
            && open.id == paid.lease
        {
            open.lease.give_back(unused(paid.need, booked));
        }
        if let Some(fresh) = state.fresh.remove(&ended.id) {
            if ended.released {
                return Rest::Journal;
            }
            let Fresh { lease, allowance, provider, model, need, .. } = fresh;
            let outcome = Some(ended.outcome);
            state.whole.push(Entry { id: ended.id, allowance, lease, provider, model, need, outcome, used });
            state.unbooked = state.unbooked.saturating_add(used[4]);
            if state.unbooked > MOST_UNBOOKED {
                return Rest::Wait(self.hurry(state));
            }
            self.wake(state);
            return Rest::Journal;
        }
        match state.writing.get_mut(&ended.id) {
            Some(end) => {
                *end = Some(ended);
                Rest::Journal
            }
            None => Rest::Hold(ended),
        }
    }

    /// Has everything written down that is there now. Answers the round that does it.
    fn hurry(&self, state: &mut State) -> u64 {
        state.urgent = true;
        state.idle = false;
        self.work.notify_one();
        state.rounds + 1
    }

    /// Waits until everything that a process knows of an allowance is written down.
    pub(super) fn settle(&self, allowance: Allowance) -> Option<u64> {
        let state = &mut *self.state();
        let of = |other: &Allowance| *other == allowance;
        let known = state.whole.iter().any(|entry| of(&entry.allowance))
            || state.fresh.values().any(|fresh| of(&fresh.allowance))
            || state.batch.is_some()
            || state.writing.values().any(Option::is_some);
        known.then(|| self.hurry(state))
    }

    /// Waits for a round, for as long as anybody writes.
    pub(super) async fn round(&self, round: u64) {
        let mut done = self.done.subscribe();
        let _ = done.wait_for(|done| *done >= round).await;
    }

    /// Whether the next round is in a hurry.
    pub(super) fn is_urgent(&self) -> bool {
        self.state().urgent
    }

    /// What the next round writes: what could not be written before, or what has ended and what began before the
    /// last one; everything when somebody waits. `None` when there is nothing left.
    pub(super) fn next_batch(&self) -> Option<Arc<Batch>> {
        let state = &mut *self.state();
        if let Some(batch) = &state.batch {
            return Some(batch.clone());
        }
        let all = std::mem::take(&mut state.urgent) || !state.closing.is_empty();
        if state.fresh.is_empty() && state.whole.is_empty() && !all {
            state.idle = true;
            return None;
        }
        state.rounds += 1;
        let round = state.rounds;
        let mut entries = std::mem::take(&mut state.whole);
        let cost = entries.iter().map(|entry| entry.used[4]).sum();
        let State { fresh, writing, .. } = state;
        fresh.retain(|id, call| {
            if !all && call.round + 1 >= round {
                return true;
            }
            let used = call.progress.known().row();
            let (id, provider, model) = (*id, call.provider.clone(), call.model.clone());
            let Fresh { lease, allowance, need, .. } = *call;
            entries.push(Entry { id, allowance, lease, provider, model, need, outcome: None, used });
            writing.insert(id, None);
            false
        });
        let batch = Arc::new(Batch { entries, closing: std::mem::take(&mut state.closing), round, cost });
        state.batch = Some(batch.clone());
        Some(batch)
    }

    /// A batch is written, and more may be paid from the leases `alive`. Answers the ends of calls that have a hold now.
    pub(super) fn written(&self, batch: &Batch, alive: &[Uuid]) -> Vec<Ended> {
        let state = &mut *self.state();
        let alive: HashSet<&Uuid> = alive.iter().collect();
        state.batch = None;
        state.failing = false;
        state.unbooked = state.unbooked.saturating_sub(batch.cost);
        for entry in &batch.entries {
            if !alive.contains(&entry.lease) {
                self.surrender_in(state, entry.allowance, Some(entry.lease));
            }
        }
        let running = batch.entries.iter().filter(|entry| entry.outcome.is_none());
        running.filter_map(|entry| state.writing.remove(&entry.id).flatten()).collect()
    }

    /// A round is over.
    pub(super) fn over(&self, batch: &Batch) {
        self.done.send_replace(batch.round);
    }

    /// The batch could not be written: until it can, the database is asked for each call.
    pub(super) fn failed(&self) {
        self.state().failing = true;
    }

    /// Takes back what was leased of an allowance, and leases nothing of it for a while. Answers the round after
    /// which the database has it back.
    pub(super) fn surrender(&self, id: Uuid) -> Option<u64> {
        let state = &mut *self.state();
        let until = Instant::now() + BARRED;
        let payers = state.payers.iter_mut().filter(|(allowance, _)| allowance.id == id);
        let known: Vec<Allowance> = payers
            .map(|(allowance, payer)| {
                payer.barred_until = Some(until);
                *allowance
            })
            .collect();
        known.into_iter().filter_map(|allowance| self.surrender_in(state, allowance, None)).next()
    }

    fn surrender_in(&self, state: &mut State, allowance: Allowance, only: Option<Uuid>) -> Option<u64> {
        let payer = state.payers.get_mut(&allowance)?;
        let open = payer.lease.take_if(|open| only.is_none_or(|only| open.id == only))?;
        state.closing.push(open.id);
        Some(self.hurry(state))
    }

    /// Others can be heard from here on; what they said before is lost, so nothing that was leased is believed.
    pub(super) fn listening(&self, live: &Arc<AtomicBool>) {
        self.live.get_or_init(|| live.clone());
        let state = &mut *self.state();
        let known: Vec<Allowance> = state.payers.keys().copied().collect();
        for allowance in known {
            self.surrender_in(state, allowance, None);
        }
        state.listening = true;
    }

    /// What shall be leased now, of whatever was asked for.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let (state, now) = (&mut *self.state(), Instant::now());
        let asking = state.payers.iter_mut().filter(|(_, payer)| payer.asking);
        asking
            .map(|(allowance, payer)| {
                let since = payer.asked.map_or(Duration::MAX, |asked| now - asked);
                let (wanted, least) = payer.appetite.next(payer.need, since);
                let lease = payer.lease.as_ref().map(|open| open.id);
                let (new, lease) = (lease.is_none(), lease.unwrap_or_else(Uuid::now_v7));
                Asked { allowance: *allowance, lease, new, wanted, least }
            })
            .collect()
    }

    /// What became of that, asked at `at`. `None`: nobody knows, or no call may begin.
    pub(super) fn answered(&self, asked: &Asked, at: (Instant, DateTime<Utc>), granted: Option<Granted>) {
        let state = &mut *self.state();
        let (listening, closed) = (state.listening, state.closed);
        let payer = state.payers.get_mut(&asked.allowance);
        let barred = |payer: &Payer| payer.barred_until.is_some_and(|until| until > at.0);
        let known = granted.is_some();
        let amounts = granted.as_ref().and_then(|granted| granted.granted.as_ref()).map(|granted| {
            let amount = |kind: usize| granted.get(kind).and_then(|amount| u64::try_from(*amount).ok()).unwrap_or(0);
            [amount(0), amount(1), amount(2)]
        });
        let Some(payer) = payer.filter(|payer| listening && !closed && !barred(payer)) else {
            // Called back while it was asked for: nothing is kept.
            if asked.new && (amounts.is_some() || !known) {
                state.closing.push(asked.lease);
                self.hurry(state);
            }
            if let Some(payer) = state.payers.get_mut(&asked.allowance) {
                payer.asking = false;
            }
            return;
        };
        payer.asking = false;
        payer.asked = Some(at.0);
        payer.refused = amounts.is_none().then_some(at.0);
        match (amounts, granted, &mut payer.lease) {
            (Some(amounts), Some(granted), None) if asked.new => {
                let limited = std::array::from_fn(|kind| granted.limited.get(kind).copied().unwrap_or(true));
                let life = (granted.expires_at - at.1).to_std().unwrap_or_default();
                let ends = (at.0 + life, granted.expires_at);
                payer.lease = Some(Open { id: asked.lease, lease: Lease::new(amounts, limited), known: at, ends });
            }
            (Some(amounts), _, Some(open)) if open.id == asked.lease => {
                open.lease.add(amounts);
                open.known = at;
            }
            (None, None, _) => {
                // What may be there of it is given back.
                payer.lease = None;
                state.closing.push(asked.lease);
                self.hurry(state);
            }
            // Given back meanwhile, with what was added.
            _ => {}
        }
    }

    /// The database knows at `at` that the owner of these leases lives.
    pub(super) fn beaten(&self, at: (Instant, DateTime<Utc>), leases: &[Uuid]) {
        let state = &mut *self.state();
        for open in state.payers.values_mut().filter_map(|payer| payer.lease.as_mut()) {
            if leases.contains(&open.id) {
                open.known = at;
            }
        }
    }

    /// Gives back what nobody has used for a while, and forgets who has not called. Whether anybody is left, and
    /// whether they lease.
    pub(super) fn tidy(&self) -> (bool, bool) {
        let (state, now) = (&mut *self.state(), Instant::now());
        let quiet = |payer: &Payer| payer.last_call.is_none_or(|last| last + IDLE <= now);
        let idle: Vec<Allowance> =
            state.payers.iter().filter(|(_, payer)| quiet(payer)).map(|(allowance, _)| *allowance).collect();
        for allowance in idle {
            self.surrender_in(state, allowance, None);
        }
        state
            .payers
            .retain(|_, payer| !quiet(payer) || payer.asking || payer.barred_until.is_some_and(|until| until > now));
        (!state.payers.is_empty(), state.payers.values().any(|payer| payer.lease.is_some()))
    }

    /// Nothing is leased any more. Answers the round after which everything is written down and given back, if there
    /// ever was anything.
    pub(super) fn close(&self) -> Option<u64> {
        let state = &mut *self.state();
        state.closed = true;
        self.live.get()?;
        let known: Vec<Allowance> = state.payers.keys().copied().collect();
        for allowance in known {
            self.surrender_in(state, allowance, None);
        }
        Some(self.hurry(state))
    }
}

impl Progress {
    /// Of work that has not begun.
    pub(super) fn of(estimate: &Estimate) -> Arc<Self> {
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { known: Mutex::new(estimate.floor), delivered: AtomicU64::new(0), begun, ended })
    }

    pub(super) fn known(&self) -> Consumption {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
