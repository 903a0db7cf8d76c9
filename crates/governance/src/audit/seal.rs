//! Sealing: what is committed gets its place in the chain of its organization.
//!
//! One process at a time seals, whoever holds the row of `app.audit_sealing`; any may. Entries are found by the snapshot
//! of transactions that the last pass had: what it did not see is new, however early it was written. A place that was
//! given is never given again, so a pass that is cut off is simply repeated. Growth: a pass costs five statements for each
//! [`BATCH`] entries plus one row per organization among them, two batches in memory, and next to nothing when nothing is
//! new.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use sqlx::PgPool;
use tale_core::crypto::random_key;
use tale_core::ids::OrgId;
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

/// Steps one after the other. While one is hashed and written, the next one is read.
struct Pass<'a> {
    pool: &'a PgPool,
    ahead: Option<Ahead>,
}

/// What is read before it is this process's turn, which it may turn out not to be.
struct Ahead {
    from: Position,
    entries: JoinHandle<Result<Vec<Unsealed>, sqlx::Error>>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.entries.abort();
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
        let entries = match self.ahead.take().filter(|ahead| ahead.from == sealing.position) {
            Some(mut ahead) => (&mut ahead.entries).await.map_err(not_run)??,
            None => store::unsealed(&mut tx, &sealing.from(), BATCH).await?,
        };
        if entries.is_empty() && !sealing.position.under_way() {
            return Ok(Step::Done);
        }
        let read = entries.len();
        let last = entries.last().filter(|_| read == BATCH).map(|last| last.record.id);
        let last = match last {
            Some(id) => Some((store::transaction_of(&mut tx, id).await?, id)),
            None => None,
        };
        let more = last.is_some();
        let to = sealing.after(last);
        store::advance(&mut tx, &to).await?;
        if more {
            let (pool, from) = (self.pool.clone(), to.clone());
            let (_, seen_by) = sealing.from();
            let entries =
                tokio::spawn(async move { store::unsealed(&mut *pool.begin().await?, &(to, seen_by), BATCH).await });
            self.ahead = Some(Ahead { from, entries });
        }
        let new: Vec<Unsealed> = entries.into_iter().filter(|entry| !entry.sealed).collect();
        if !new.is_empty() {
            let mut places: Vec<Uuid> = new.iter().map(place_of).collect();
            places.sort_unstable();
            places.dedup();
            let heads: HashMap<Uuid, Head> = store::heads(&mut tx, &places).await?.into_iter().collect();
            let (heads, seals) = tokio::task::spawn_blocking(move || seal(&new, heads)).await.map_err(not_run)?;
            store::write_seals(&mut tx, seals, heads.into_iter()).await?;
        }
        tx.commit().await?;
        Ok(if more { Step::More(read) } else { Step::Done })
    }
}

fn not_run(error: JoinError) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(error))
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

fn place_of(entry: &Unsealed) -> Uuid {
    store::place(entry.record.organization.map(OrgId))
}

/// Gives `entries` their places after `heads`, which move on.
fn seal(entries: &[Unsealed], mut heads: HashMap<Uuid, Head>) -> (HashMap<Uuid, Head>, Seals) {
    let mut sealer = Sealer::default();
    let mut seals = Seals::new();
    for entry in entries {
        let place = place_of(entry);
        let head = match heads.entry(place) {
            Entry::Occupied(head) => head.into_mut(),
            Entry::Vacant(new) => new.insert(Head::BEGINNING),
        };
        let [actor, subject] = salts();
        let sequence = head.sequence + 1;
        let (who, what) = (Keeping::Salted(actor), Keeping::Salted(subject));
        let Some(hash) = sealer.hash(&head.hash, sequence, &entry.record, who, what) else { continue };
        *head = Head { sequence, hash };
        seals.push(&NewSeal { place, sequence, entry: entry.record.id, hash, actor, subject });
    }
    (heads, seals)
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
