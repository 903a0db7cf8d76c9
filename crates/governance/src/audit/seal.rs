//! Sealing: what is committed gets its place in the chain of its organization.
//!
//! One process at a time seals, whoever holds the row of `app.audit_sealing`; any may. Entries are found by the snapshot
//! of transactions that the last pass had: what it did not see is new, however early it was written. A place that was
//! given is never given again, so a pass that is cut off is simply repeated.
//!
//! While a batch is written, the next one is read and hashed by another connection and thread, behind the ends that the
//! first one will have. Whether it was right about that shows when it is its turn to be written. Growth: a pass costs seven
//! statements for each [`BATCH`] entries plus one row per organization among them, two batches in memory, and next to
//! nothing when nothing is new.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tale_core::crypto::random_key;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::chain::{Keeping, SALT_BYTES, Salt, Sealer};
use super::store::{self, NewSeal, Position, Seals, Unsealed};
use super::verify::Head;

/// Entries per transaction.
pub const BATCH: usize = 5_000;

/// How often the worker looks.
pub const EVERY: Duration = Duration::from_secs(1);

/// What a step of sealing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Another process seals.
    Busy,
    /// So many entries were read, and there may be more.
    More(usize),
    /// Everything that was committed when the pass began is sealed.
    Done,
}

/// Seals at most [`BATCH`] entries.
///
/// # Errors
/// The database's; nothing was sealed then.
pub async fn step(pool: &PgPool) -> Result<Step, sqlx::Error> {
    Pass::new(pool).step().await
}

/// Steps one after the other.
struct Pass<'a> {
    pool: &'a PgPool,
    ahead: Option<Ahead>,
}

/// What is prepared before it is this process's turn, which it may turn out not to be.
struct Ahead {
    from: Position,
    batch: JoinHandle<Result<Batch, sqlx::Error>>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.batch.abort();
    }
}

impl<'a> Pass<'a> {
    fn new(pool: &'a PgPool) -> Self {
        Self { pool, ahead: None }
    }

    async fn step(&mut self) -> Result<Step, sqlx::Error> {
        let mut tx = self.pool.begin().await?;
        let Some(sealing) = store::take_sealing(&mut tx).await? else { return Ok(Step::Busy) };
        if sealing.moved_here {
            store::begin_anew(&mut tx).await?;
            tx.commit().await?;
            tracing::info!(
                event = "audit.moved",
                "audit entries come from another database server; they are looked through once"
            );
            return Ok(Step::More(0));
        }
        let mut prepared = None;
        if let Some(mut ahead) = self.ahead.take().filter(|ahead| ahead.from == sealing.position) {
            let batch = (&mut ahead.batch).await.map_err(not_run)??;
            // Only an operator moves ends that nobody seals behind.
            if batch.continues(&mut tx).await? {
                prepared = Some(batch);
            }
        }
        let batch = match prepared {
            Some(batch) => batch,
            None => Batch::prepare(&mut tx, &sealing.from(), Heads::new()).await?,
        };
        if batch.read == 0 && !sealing.position.under_way() {
            return Ok(Step::Done);
        }
        let more = batch.last.is_some();
        let to = sealing.after(batch.last);
        store::advance(&mut tx, &to).await?;
        if more {
            let (pool, from, heads) = (self.pool.clone(), to.clone(), batch.after.clone());
            let (_, seen_by) = sealing.from();
            let prepare = async move { Batch::prepare(&mut *pool.begin().await?, &(to, seen_by), heads).await };
            self.ahead = Some(Ahead { from, batch: tokio::spawn(prepare) });
        }
        if !batch.after.is_empty() {
            store::write_seals(&mut tx, batch.seals, batch.after.into_iter()).await?;
        }
        tx.commit().await?;
        Ok(if more { Step::More(batch.read) } else { Step::Done })
    }
}

fn not_run(error: JoinError) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(error))
}

/// The ends of chains.
type Heads = HashMap<Uuid, Head>;

/// Entries that have their places, none of which is written yet.
struct Batch {
    /// How many were read, sealed ones as well.
    read: usize,
    /// The last of them, when there may be more.
    last: Option<(String, Uuid)>,
    /// The ends behind which the places are.
    before: Heads,
    /// The ends with them.
    after: Heads,
    seals: Seals,
}

impl Batch {
    /// Reads and hashes what follows `position`. Where chains end says `known`, or else the database.
    async fn prepare(
        conn: &mut PgConnection,
        position: &(Position, String),
        mut known: Heads,
    ) -> Result<Self, sqlx::Error> {
        let entries = store::unsealed(conn, position, BATCH).await?;
        let mut places = entries.iter().map(Unsealed::place).collect::<Result<Vec<Uuid>, _>>()?;
        places.sort_unstable();
        places.dedup();
        known.retain(|place, _| places.binary_search(place).is_ok());
        places.retain(|place| !known.contains_key(place));
        if !places.is_empty() {
            known.extend(store::heads(conn, &places).await?);
        }
        tokio::task::spawn_blocking(move || Self::seal(&entries, known)).await.map_err(not_run)?
    }

    /// Gives `entries` their places behind `before`.
    fn seal(entries: &[Unsealed], before: Heads) -> Result<Self, sqlx::Error> {
        let read = entries.len();
        let last = entries.last().filter(|_| read == BATCH).map(Unsealed::position).transpose()?;
        let (mut sealer, mut seals, mut after) = (Sealer::default(), Seals::new(), Heads::new());
        for entry in entries {
            if entry.sealed()? {
                continue;
            }
            let (place, record) = (entry.place()?, entry.record()?);
            let head = match after.entry(place) {
                Entry::Occupied(head) => head.into_mut(),
                Entry::Vacant(new) => new.insert(before.get(&place).copied().unwrap_or(Head::BEGINNING)),
            };
            let [actor, subject] = salts();
            let sequence = head.sequence + 1;
            let (who, what) = (Keeping::Salted(actor), Keeping::Salted(subject));
            let Some(hash) = sealer.hash(&head.hash, sequence, &record, who, what) else { continue };
            *head = Head { sequence, hash };
            seals.push(&NewSeal { place, sequence, entry: record.id, hash, actor, subject });
        }
        Ok(Self { read, last, before, after, seals })
    }

    /// Whether the chains still end where this batch goes on.
    async fn continues(&self, conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let places: Vec<Uuid> = self.after.keys().copied().collect();
        let heads: Heads = store::heads(conn, &places).await?.into_iter().collect();
        Ok(places.iter().all(|place| heads.get(place) == self.before.get(place)))
    }
}

/// Seals everything that is committed now, unless it takes longer than `patience` or another process is at it.
///
/// # Errors
/// The database's.
pub async fn catch_up(pool: &PgPool, patience: Duration) -> Result<(), sqlx::Error> {
    let work = async {
        let mut pass = Pass::new(pool);
        while let Step::More(_) = pass.step().await? {}
        Ok(())
    };
    tokio::time::timeout(patience, work).await.unwrap_or(Ok(()))
}

/// Seals until `stop`.
pub async fn run(pool: PgPool, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let mut pass = Pass::new(&pool);
        loop {
            match pass.step().await {
                Ok(Step::More(_)) if !stop.is_cancelled() => continue,
                Ok(_) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(event = "audit.unsealed", %error, "audit entries could not be sealed; they wait until they can");
                }
                Err(_) => {}
            }
            break;
        }
    }
}

/// Two salts that nothing was hidden with before.
fn salts() -> [Salt; 2] {
    let bytes = random_key();
    let mut salts = [[0; SALT_BYTES]; 2];
    for (salt, half) in salts.iter_mut().zip(bytes.chunks_exact(SALT_BYTES)) {
        salt.copy_from_slice(half);
    }
    salts
}
