//! The two writers of a process: one admits, one ends. Each takes everything that waits, at most
//! [`BATCH`] at a time, writes it in one statement and takes the next; so the calls of a process
//! never wait for each other's commits one by one, and a lone call waits for nobody.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_governance::budgets::caps::days;
use tale_governance::budgets::{Amounts, Cap, Kind, Refusal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::store::{self, ChargeRow, Ended, Gate, Judged};
use super::{Charge, Estimate, Hold, HoldError, Inner, Progress, bounded};

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
    pub estimate: Estimate,
    pub id: Uuid,
    pub at: DateTime<Utc>,
}

/// An admitted hold on its way to its caller. One that nobody takes was never begun, and so is given back.
type Answer = oneshot::Sender<Result<Hold, HoldError>>;

/// The way to the writers.
pub(super) struct Writer {
    holds: mpsc::Sender<(Wanted, Answer)>,
    ends: mpsc::Sender<(Ended, Option<oneshot::Sender<()>>)>,
}

/// Starts both. They end when nobody can reach them any more.
pub(super) fn start(pool: PgPool, clock: SharedClock, who: (Uuid, i16)) -> Writer {
    let (holds, wanted) = mpsc::channel(QUEUE);
    let (ends, ended) = mpsc::channel(QUEUE);
    tokio::spawn(admit(pool.clone(), clock.clone(), who, wanted));
    tokio::spawn(end(pool, clock, ended));
    Writer { holds, ends }
}

/// The writer is gone with its runtime: the process ends.
fn stopped() -> HoldError {
    HoldError::Database(Arc::new(std::io::Error::other("the ledger has stopped")))
}

impl Writer {
    pub(super) async fn hold(&self, wanted: Wanted) -> Result<Hold, HoldError> {
        let (answer, answered) = oneshot::channel();
        self.holds.send((wanted, answer)).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Writes an end and waits for it.
    pub(super) async fn end(&self, ended: Ended) {
        let (written, heard) = oneshot::channel();
        if self.ends.send((ended, Some(written))).await.is_ok() {
            // An error means that it was given up, which was logged.
            let _ = heard.await;
        }
    }

    /// Writes an end that nobody waits for. When the queue is full the sweep writes it.
    pub(super) fn end_unheard(&self, ended: Ended) {
        let _ = self.ends.try_send((ended, None));
    }
}

async fn admit(pool: PgPool, clock: SharedClock, who: (Uuid, i16), mut queue: mpsc::Receiver<(Wanted, Answer)>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let judged = judge(&pool, &clock, who, &batch).await;
        match judged {
            Ok(judged) => {
                for ((wanted, answer), judged) in batch.drain(..).zip(judged) {
                    let _ = answer.send(answer_of(wanted, &judged));
                }
            }
            // One that the database refuses must not take the others with it.
            Err(error) if error.as_database_error().is_some() && batch.len() > 1 => {
                for one in batch.drain(..) {
                    let judged = judge(&pool, &clock, who, std::slice::from_ref(&one)).await;
                    let (wanted, answer) = one;
                    let _ = answer.send(match judged.map(|mut judged| judged.pop()) {
                        Ok(Some(judged)) => answer_of(wanted, &judged),
                        Ok(None) => Err(stopped()),
                        Err(error) => Err(HoldError::Database(Arc::new(error))),
                    });
                }
            }
            Err(error) => {
                let error: Arc<dyn std::error::Error + Send + Sync> = Arc::new(error);
                for (_, answer) in batch.drain(..) {
                    let _ = answer.send(Err(HoldError::Database(error.clone())));
                }
            }
        }
    }
}

/// The answer to one piece of work.
fn answer_of(wanted: Wanted, judged: &Judged) -> Result<Hold, HoldError> {
    let Wanted { ledger, charge, caps, estimate, id, at } = wanted;
    let amount = |value: &i64| u64::try_from(*value).unwrap_or(0);
    let Some(granted) = &judged.granted else {
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
    let progress = Arc::new(Progress {
        known: Mutex::new(estimate.floor),
        begun: AtomicBool::new(false),
        ended: AtomicBool::new(false),
    });
    ledger.remember(id, progress.clone());
    let granted = Amounts {
        tokens: granted.first().map_or(0, amount),
        cost_micro_usd: granted.get(1).map_or(0, amount),
        requests: granted.get(2).map_or(0, amount),
    };
    let bounds_output = caps.iter().any(|cap| cap.kind != Kind::Requests);
    Ok(Hold { id, org: charge.org, at, granted, bounds_output, progress, ledger })
}

async fn judge(
    pool: &PgPool,
    clock: &SharedClock,
    who: (Uuid, i16),
    batch: &[(Wanted, Answer)],
) -> sqlx::Result<Vec<Judged>> {
    let (gates, charges) = rows(batch.iter().map(|(wanted, _)| wanted));
    let mut attempt = 1;
    loop {
        let judged = store::hold(pool, who, clock.now(), &gates, &charges).await;
        match judged {
            Err(error) if conflicted(&error) && attempt < ATTEMPTS => attempt += 1,
            Ok(judged) if judged.len() != charges.len() => {
                return Err(sqlx::Error::Protocol("the ledger judged another number of holds".to_owned()));
            }
            judged => return judged,
        }
    }
}

/// The largest limit, which leaves room for adding to it.
const MOST_OF_A_LIMIT: u64 = 1 << 52;

fn conflicted(error: &sqlx::Error) -> bool {
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
                gate.first == first && gate.last == last
            });
            let gate = known.copied().unwrap_or_else(|| {
                let gate = gates.len() + 1;
                gates.push(Gate { gate, org: wanted.charge.org, holder: cap.holder.key(), first, last });
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
            let Wanted { charge, caps, estimate, id, at, .. } = wanted;
            let day = at.date_naive();
            let holders: Vec<String> = charge.subject().holders().iter().map(|holder| holder.key()).collect();
            let adds_to = holders
                .iter()
                .filter_map(|holder| numbers.get(&(charge.org, holder.clone())))
                .flatten()
                .copied()
                .filter(|gate| (gates[*gate - 1].first..=gates[*gate - 1].last).contains(&day))
                .collect();
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
                cap_kinds: caps.iter().map(|cap| cap.kind as u8 + 1).collect(),
                cap_limits: caps.iter().map(|cap| cap.limit.min(MOST_OF_A_LIMIT)).collect(),
                need: amounts(&estimate.needed),
                want: amounts(&estimate.wanted),
                floor: estimate.floor.row(),
            }
        })
        .collect();
    (gates, charges)
}

async fn end(pool: PgPool, clock: SharedClock, mut queue: mpsc::Receiver<(Ended, Option<oneshot::Sender<()>>)>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let (ended, heard): (Vec<Ended>, Vec<_>) = batch.drain(..).unzip();
        write(&pool, &clock, &ended).await;
        // Dropping the others' would say the same.
        for heard in heard.into_iter().flatten() {
            let _ = heard.send(());
        }
    }
}

/// Writes ends until they are written or [`PATIENCE`] is over.
async fn write(pool: &PgPool, clock: &SharedClock, ended: &[Ended]) {
    let (began, mut pause) = (Instant::now(), RETRY_MIN);
    loop {
        let error = match store::settle(pool, clock.now(), ended).await {
            Ok(_) => return,
            Err(error) => error,
        };
        let refused = error.as_database_error().is_some() && !conflicted(&error);
        if refused && ended.len() > 1 {
            for one in ended {
                Box::pin(write(pool, clock, std::slice::from_ref(one))).await;
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
