//! The writers of a process: one admits work under the limits, one calls that an allowance pays for, one
//! ends both. Each takes everything that waits, at most [`BATCH`] at a time, writes it in one statement
//! and takes the next; so the calls of a process never wait for each other's commits one by one, and a
//! lone call waits for nobody.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_governance::budgets::caps::days;
use tale_governance::budgets::{Amounts, Cap, Holder, Kind, Refusal, Room};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::allowance::{Draw, DrawError};
use super::leases::Wanted as Payable;
use super::line::Line;
use super::store::allowances::{self, AllowanceRow, CallRow, Verdict};
use super::store::leases;
use super::store::{self, ChargeRow, Ended, Gate, Held, Judged, Running};
use super::{Charge, Counted, Ending, Estimate, Hold, HoldError, Inner, Possible, Progress, bounded};

/// Pieces of work in one statement.
const BATCH: usize = 256;

/// Pieces that may wait for a writer; more wait to be taken.
const QUEUE: usize = 4_096;

/// How long an end is tried to be written before it is left to the sweep.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Pauses between attempts to write ends.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Attempts to admit a batch that was caught in a deadlock.
const ATTEMPTS: u32 = 3;

/// Work that asks to be admitted.
pub(super) struct Wanted {
    pub ledger: Arc<Inner>,
    pub charge: Charge,
    pub caps: Vec<Cap>,
    /// How much of the charge's source its person, and its key, may have running.
    pub at_once: Option<u64>,
    pub estimate: Estimate,
    pub id: Uuid,
    pub at: DateTime<Utc>,
}

/// A call that asks an allowance to pay for it.
pub(super) struct Drawn {
    pub ledger: Arc<Inner>,
    pub draw: Draw,
    pub estimate: Estimate,
    pub id: Uuid,
    pub at: DateTime<Utc>,
}

/// What can be admitted in batches.
trait Ask: Sized + Send + Sync + 'static {
    /// What the database says of one.
    type Judged: Send;
    /// Why one is not admitted.
    type Error: From<HoldError> + Send + 'static;

    /// Judges a batch, in its order.
    async fn judge(
        db: &mut PgConnection,
        clock: &SharedClock,
        who: (Uuid, i16),
        batch: &[(Self, Answer<Self>)],
    ) -> sqlx::Result<Vec<Self::Judged>>;

    /// The answer to it.
    fn answer(self, judged: &Self::Judged) -> Result<Hold, Self::Error>;
}

/// An admitted hold on its way to its caller. One that nobody takes was never begun, and so is given back.
type Answer<A> = oneshot::Sender<Result<Hold, <A as Ask>::Error>>;

/// The way to the writers.
pub(super) struct Writer {
    holds: mpsc::Sender<(Wanted, Answer<Wanted>)>,
    draws: mpsc::Sender<(Drawn, Answer<Drawn>)>,
    ends: mpsc::Sender<(Option<Ended>, Option<oneshot::Sender<()>>)>,
    ending: Ending,
}

/// Starts them. They end when nobody can reach them any more.
pub(super) fn start(pool: PgPool, clock: SharedClock, who: (Uuid, i16), ending: Ending) -> Writer {
    let (holds, wanted) = mpsc::channel(QUEUE);
    let (draws, drawn) = mpsc::channel(QUEUE);
    let (ends, ended) = mpsc::channel(QUEUE);
    tokio::spawn(admit::<Wanted>(pool.clone(), clock.clone(), who, wanted));
    tokio::spawn(admit::<Drawn>(pool.clone(), clock.clone(), who, drawn));
    tokio::spawn(end(pool, clock, who, ended, ending.clone()));
    Writer { holds, draws, ends, ending }
}

/// The writer is gone with its runtime: the process ends.
fn stopped() -> HoldError {
    HoldError::Database(Arc::new(std::io::Error::other("the ledger has stopped")))
}

async fn ask<A: Ask>(writer: &mpsc::Sender<(A, Answer<A>)>, one: A) -> Result<Hold, A::Error> {
    let (answer, answered) = oneshot::channel();
    writer.send((one, answer)).await.map_err(|_| stopped())?;
    answered.await.map_err(|_| stopped())?
}

impl Writer {
    pub(super) async fn hold(&self, wanted: Wanted) -> Result<Hold, HoldError> {
        ask(&self.holds, wanted).await
    }

    pub(super) async fn draw(&self, drawn: Drawn) -> Result<Hold, Undrawn> {
        ask(&self.draws, drawn).await
    }

    /// Writes an end and waits for it.
    pub(super) async fn end(&self, ended: Ended) {
        let (written, heard) = oneshot::channel();
        if self.ends.send((Some(ended), Some(written))).await.is_ok() {
            // An error means that it was given up, which was logged.
            let _ = heard.await;
        }
    }

    /// Waits until every end is written that was to be.
    pub(super) async fn ended(&self) {
        let (written, heard) = oneshot::channel();
        if self.ends.send((None, Some(written))).await.is_ok() {
            let _ = heard.await;
        }
    }

    /// Writes an end that nobody waits for, once there is room for it.
    pub(super) async fn end_later(&self, ended: Ended) {
        let _ = self.ends.send((Some(ended), None)).await;
    }

    /// Writes an end that nobody waits for. When the queue is full the sweep writes it.
    pub(super) fn end_unheard(&self, ended: Ended) {
        if let Err(unsent) = self.ends.try_send((Some(ended), None)) {
            self.ending.remove(unsent.into_inner().0.into_iter().map(|ended| ended.id));
        }
    }
}

async fn admit<A: Ask>(pool: PgPool, clock: SharedClock, who: (Uuid, i16), mut queue: mpsc::Receiver<(A, Answer<A>)>) {
    let (mut line, mut batch) = (Line::new(pool), Vec::with_capacity(BATCH));
    while line.wait(queue.recv_many(&mut batch, BATCH)).await > 0 {
        let judged = judge(&mut line, &clock, who, &batch).await;
        match judged {
            Ok(judged) => {
                for ((one, answer), judged) in batch.drain(..).zip(judged) {
                    let _ = answer.send(one.answer(&judged));
                }
            }
            // One that the database refuses must not take the others with it.
            Err(error) if error.as_database_error().is_some() && batch.len() > 1 => {
                for one in batch.drain(..) {
                    let judged = judge(&mut line, &clock, who, std::slice::from_ref(&one)).await;
                    let (one, answer) = one;
                    let _ = answer.send(match judged.map(|mut judged| judged.pop()) {
                        Ok(Some(judged)) => one.answer(&judged),
                        Ok(None) => Err(stopped().into()),
                        Err(error) => Err(HoldError::Database(Arc::new(error)).into()),
                    });
                }
            }
            Err(error) => {
                let error: Arc<dyn std::error::Error + Send + Sync> = Arc::new(error);
                for (_, answer) in batch.drain(..) {
                    let _ = answer.send(Err(HoldError::Database(error.clone()).into()));
                }
            }
        }
    }
}

async fn judge<A: Ask>(
    line: &mut Line,
    clock: &SharedClock,
    who: (Uuid, i16),
    batch: &[(A, Answer<A>)],
) -> sqlx::Result<Vec<A::Judged>> {
    let mut attempt = 1;
    loop {
        let judged = match line.get().await {
            Ok(db) => A::judge(db, clock, who, batch).await,
            Err(error) => Err(error),
        };
        if judged.is_err() {
            line.hang_up();
        }
        match judged {
            Err(error) if conflicted(&error) && attempt < ATTEMPTS => attempt += 1,
            Ok(judged) if judged.len() != batch.len() => {
                return Err(sqlx::Error::Protocol("the ledger judged another number of holds".to_owned()));
            }
            judged => return judged,
        }
    }
}

/// Why a call could not be drawn.
pub(super) struct Undrawn {
    pub error: DrawError,
    /// A part of what is missing is leased.
    pub leased: bool,
}

impl From<HoldError> for Undrawn {
    fn from(error: HoldError) -> Self {
        Self { error: error.into(), leased: false }
    }
}

/// What a call that an allowance pays for holds.
fn drawn(draw: &Draw, estimate: &Estimate, at: DateTime<Utc>) -> Held {
    Held {
        user: None,
        key: None,
        source: None,
        allowance: Some(draw.allowance.id),
        provider: draw.provider.clone(),
        model: draw.model.clone(),
        at,
        day: at.date_naive(),
        requests: bounded(estimate.needed.requests),
    }
}

/// The same from a lease of this process, when there is one with room.
pub(super) fn paid(ledger: &Arc<Inner>, draw: &Draw, estimate: &Estimate, at: DateTime<Utc>) -> Option<Hold> {
    let (id, allowance) = (Uuid::now_v7(), draw.allowance);
    let progress = Progress::of(estimate);
    let need = Kind::ALL.map(|kind| bounded(estimate.needed.of(kind)));
    let wanted = Payable { id, allowance, provider: &draw.provider, model: &draw.model, need, now: at };
    let paid = ledger.leases.pay(&wanted, &progress)?;
    ledger.remember(id, progress.clone());
    Some(Hold {
        id,
        org: allowance.org,
        at,
        granted: estimate.needed,
        bounds_output: true,
        counted: None,
        held: Arc::new(drawn(draw, estimate, at)),
        possible: Possible::of(estimate),
        progress,
        paid: Some(paid),
        ledger: ledger.clone(),
    })
}

/// A hold that the database has granted.
fn granted(
    ledger: Arc<Inner>,
    of: (Uuid, OrgId, DateTime<Utc>),
    held: Held,
    estimate: &Estimate,
    granted: Amounts,
) -> Hold {
    let progress = Progress::of(estimate);
    let (id, org, at) = of;
    ledger.remember(id, progress.clone());
    let (possible, held) = (Possible::of(estimate), Arc::new(held));
    Hold { id, org, at, granted, bounds_output: true, counted: None, held, possible, progress, paid: None, ledger }
}

impl Ask for Wanted {
    type Judged = Judged;
    type Error = HoldError;

    async fn judge(
        db: &mut PgConnection,
        clock: &SharedClock,
        who: (Uuid, i16),
        batch: &[(Self, Answer<Self>)],
    ) -> sqlx::Result<Vec<Judged>> {
        let (gates, charges) = rows(batch.iter().map(|(wanted, _)| wanted));
        store::hold(db, who, clock.now(), &gates, &charges).await
    }

    fn answer(self, judged: &Judged) -> Result<Hold, HoldError> {
        let Self { ledger, charge, caps, at_once, estimate, id, at } = self;
        let amount = |value: &i64| u64::try_from(*value).unwrap_or(0);
        let Some(grant) = &judged.granted else {
            // What runs is judged before what was used, and stands behind it.
            let crowded = |most: &u64| judged.taken.iter().skip(caps.len()).any(|n| amount(n) >= *most);
            if let Some(most) = at_once.filter(crowded) {
                return Err(HoldError::Crowded(most));
            }
            let limited = !caps.is_empty();
            let taken: Vec<(Cap, u64)> = caps.into_iter().zip(judged.taken.iter().map(amount)).collect();
            return Err(match Refusal::of(&taken, &estimate.needed, at) {
                Some(refusal) => {
                    crate::metrics::refused(refusal.cap.kind, refusal.cap.scope);
                    HoldError::Exceeded(Box::new(refusal))
                }
                None => HoldError::Database(Arc::new(std::io::Error::other(format!(
                    "refused without a limit (limits: {limited})"
                )))),
            });
        };
        let amounts = Amounts {
            tokens: grant.first().map_or(0, amount),
            cost_micro_usd: grant.get(1).map_or(0, amount),
            requests: grant.get(2).map_or(0, amount),
        };
        let held = Held {
            user: charge.person,
            key: charge.api_key,
            source: Some(charge.source),
            allowance: None,
            provider: charge.provider,
            model: charge.model,
            at,
            day: at.date_naive(),
            requests: amounts.requests,
        };
        let mut hold = granted(ledger, (id, charge.org, at), held, &estimate, amounts);
        hold.bounds_output = caps.iter().any(|cap| cap.kind != Kind::Requests);
        hold.counted = at_once.map(|_| Counted { org: charge.org, person: charge.person, key: charge.api_key });
        Ok(hold)
    }
}

impl Ask for Drawn {
    type Judged = Verdict;
    type Error = Undrawn;

    async fn judge(
        db: &mut PgConnection,
        clock: &SharedClock,
        who: (Uuid, i16),
        batch: &[(Self, Answer<Self>)],
    ) -> sqlx::Result<Vec<Verdict>> {
        let mut payers: Vec<AllowanceRow> = Vec::new();
        let mut numbers = HashMap::new();
        let calls = batch.iter().enumerate().map(|(n, (Self { draw, estimate, id, .. }, _))| {
            let a = *numbers.entry(draw.allowance).or_insert_with(|| {
                payers.push(AllowanceRow { a: payers.len() + 1, org: draw.allowance.org, id: draw.allowance.id });
                payers.len()
            });
            CallRow {
                n,
                id: *id,
                a,
                provider: &draw.provider,
                model: &draw.model,
                need: Kind::ALL.map(|kind| bounded(estimate.needed.of(kind))),
                floor: estimate.floor.row(),
            }
        });
        let calls: Vec<CallRow<'_>> = calls.collect();
        let mut verdicts = allowances::draw(&mut *db, who, clock.now(), &payers, &calls).await?;
        let full =
            |(verdict, call): (&Verdict, &CallRow<'_>)| (verdict.verdict == "full").then(|| payers[call.a - 1].id);
        let full: Vec<Uuid> = verdicts.iter().zip(&calls).filter_map(full).collect();
        if !full.is_empty() {
            let leased = leases::leased(db, &full, false).await?;
            for (verdict, call) in verdicts.iter_mut().zip(&calls) {
                verdict.leased = leased.contains(&payers[call.a - 1].id);
            }
        }
        Ok(verdicts)
    }

    fn answer(self, judged: &Verdict) -> Result<Hold, Undrawn> {
        let Self { ledger, draw, estimate, id, at } = self;
        let amount = |value: Option<i64>| value.map(|value| u64::try_from(value).unwrap_or(0));
        match judged.verdict.as_str() {
            "held" => {
                let held = drawn(&draw, &estimate, at);
                Ok(granted(ledger, (id, draw.allowance.org, at), held, &estimate, estimate.needed))
            }
            "full" => {
                let room = Room {
                    tokens: amount(judged.left_tokens),
                    cost_micro_usd: amount(judged.left_cost),
                    requests: amount(judged.left_requests),
                };
                Err(Undrawn { error: DrawError::Full(room), leased: judged.leased })
            }
            _ => Err(Undrawn { error: DrawError::Ended, leased: false }),
        }
    }
}

/// The largest limit, which leaves room for adding to it.
const MOST_OF_A_LIMIT: u64 = 1 << 52;

pub(super) fn conflicted(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code.starts_with("40"))
}

/// A batch as the database takes it.
fn rows<'a>(batch: impl Iterator<Item = &'a Wanted> + Clone) -> (Vec<Gate>, Vec<ChargeRow<'a>>) {
    let mut gates: Vec<Gate> = Vec::new();
    let mut numbers: HashMap<(OrgId, String), Vec<usize>> = HashMap::new();
    let mut caps_of: Vec<Vec<usize>> = Vec::new();
    for wanted in batch.clone() {
        let day = wanted.at.date_naive();
        let mut mine = Vec::with_capacity(wanted.caps.len());
        for cap in &wanted.caps {
            let (first, last) = days(cap.period, day);
            let numbers = numbers.entry((wanted.charge.org, cap.holder.key())).or_default();
            let known = numbers.iter().find(|gate| {
                let gate: &Gate = &gates[**gate - 1];
                gate.running.is_none() && gate.first == first && gate.last == last
            });
            let gate = known.copied().unwrap_or_else(|| {
                let gate = gates.len() + 1;
                let (org, holder, team) = (wanted.charge.org, cap.holder.key(), cap.holder.team());
                gates.push(Gate { gate, org, holder, team, first, last, running: None });
                numbers.push(gate);
                gate
            });
            mine.push(gate);
        }
        for (holder, running) in wanted.at_once.iter().flat_map(|_| running(wanted)) {
            let numbers = numbers.entry((wanted.charge.org, holder.clone())).or_default();
            let same = |gate: &&usize| gates[**gate - 1].running.as_ref().is_some_and(|of| of.source == running.source);
            let gate = numbers.iter().find(same).copied().unwrap_or_else(|| {
                let gate = gates.len() + 1;
                let (org, first, last) = (wanted.charge.org, day, day);
                gates.push(Gate { gate, org, holder, team: None, first, last, running: Some(running) });
                numbers.push(gate);
                gate
            });
            mine.push(gate);
        }
        caps_of.push(mine);
    }
    let charges = batch
        .zip(caps_of)
        .enumerate()
        .map(|(n, (wanted, cap_gates))| {
            let Wanted { charge, caps, at_once, estimate, id, at, .. } = wanted;
            let day = at.date_naive();
            let holders: Vec<String> = charge.subject().holders().iter().map(|holder| holder.key()).collect();
            let teams = caps.iter().filter(|cap| cap.holder.team().is_some()).map(|cap| cap.holder.key());
            let counted: BTreeSet<String> = holders.iter().cloned().chain(teams).collect();
            let adds_to = counted
                .into_iter()
                .filter_map(|holder| numbers.get(&(charge.org, holder)))
                .flatten()
                .copied()
                .filter(|gate| match &gates[*gate - 1] {
                    Gate { running: Some(running), .. } => *running.source == *charge.source,
                    gate => (gate.first..=gate.last).contains(&day),
                })
                .collect();
            let crowds = cap_gates.len() - caps.len();
            let most = at_once.iter().copied().cycle().take(crowds);
            let amounts = |amounts: &Amounts| Kind::ALL.map(|kind| bounded(amounts.of(kind)));
            ChargeRow {
                n,
                id: *id,
                org: charge.org,
                user: charge.person,
                key: charge.api_key,
                source: &charge.source,
                provider: &charge.provider,
                model: &charge.model,
                at: *at,
                day,
                holders,
                gates: adds_to,
                cap_gates,
                cap_kinds: caps
                    .iter()
                    .map(|cap| cap.kind)
                    .chain(std::iter::repeat_n(Kind::Requests, crowds))
                    .map(|kind| kind as u8 + 1)
                    .collect(),
                cap_limits: caps.iter().map(|cap| cap.limit.min(MOST_OF_A_LIMIT)).chain(most).collect(),
                need: amounts(&estimate.needed),
                want: amounts(&estimate.wanted),
                floor: estimate.floor.row(),
            }
        })
        .collect();
    (gates, charges)
}

/// Whose running work limits a piece of work, and what of it has ended.
fn running(wanted: &Wanted) -> impl Iterator<Item = (String, Running)> {
    let Wanted { ledger, charge, .. } = wanted;
    let person = charge.person.map(|person| (Holder::User(person), (Some(person), None)));
    let key = charge.api_key.map(|key| (Holder::ApiKey(key), (None, Some(key))));
    [person, key].into_iter().flatten().map(|(holder, (user, key))| {
        let over = ledger.ending.of(&Counted { org: charge.org, person: user, key });
        (holder.key(), Running { source: charge.source.to_string(), user, key, over })
    })
}

async fn end(
    pool: PgPool,
    clock: SharedClock,
    who: (Uuid, i16),
    mut queue: mpsc::Receiver<(Option<Ended>, Option<oneshot::Sender<()>>)>,
    ending: Ending,
) {
    let (mut line, mut batch) = (Line::new(pool), Vec::with_capacity(BATCH));
    while line.wait(queue.recv_many(&mut batch, BATCH)).await > 0 {
        let (ended, heard): (Vec<Option<Ended>>, Vec<_>) = batch.drain(..).unzip();
        let ended: Vec<Ended> = ended.into_iter().flatten().collect();
        if !ended.is_empty() {
            write(&mut line, &clock, who, &ended).await;
        }
        ending.remove(ended.iter().map(|one| one.id));
        // Dropping the others' would say the same.
        for heard in heard.into_iter().flatten() {
            let _ = heard.send(());
        }
    }
}

/// Writes ends until they are written or [`PATIENCE`] is over.
async fn write(line: &mut Line, clock: &SharedClock, who: (Uuid, i16), ended: &[Ended]) {
    let (began, mut pause) = (Instant::now(), RETRY_MIN);
    loop {
        let written = async {
            let db = line.get().await?;
            let closed = store::settle(&mut *db, clock.now(), ended).await?;
            if usize::try_from(closed).is_ok_and(|closed| closed >= ended.len()) {
                return Ok(0);
            }
            store::settle_lost(db, who, clock.now(), ended).await
        };
        let error = match written.await {
            Ok(0) => return,
            Ok(lost) => {
                tracing::warn!(
                    event = "usage.lost_holds",
                    holds = lost,
                    "booked work whose holds the database had lost"
                );
                return;
            }
            Err(error) => error,
        };
        line.hang_up();
        let refused = error.as_database_error().is_some() && !conflicted(&error);
        if refused && ended.len() > 1 {
            for one in ended {
                Box::pin(write(line, clock, who, std::slice::from_ref(one))).await;
            }
            return;
        }
        if refused || began.elapsed() >= PATIENCE {
            tracing::error!(%error, holds = ended.len(), "the use of models could not be booked, the sweep will do it");
            return;
        }
        tracing::warn!(%error, holds = ended.len(), "the use of models could not be booked yet");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}
