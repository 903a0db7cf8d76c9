//! Argon2id on the blocking pool, with a bound on how many run at once and on how many wait.
//!
//! One hash takes tens of milliseconds of a core and 19 MiB. A burst of sign-ins therefore waits
//! in a short line, a longer one is told `BUSY`, and the async threads never hash.
//!
//! The memory of a hash stays for the next one for a few seconds: to have it from the kernel, which clears it page by
//! page, costs as much as the hash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use argon2::password_hash::Error;
use argon2::password_hash::phc::{Output, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use tale_core::{Code, Problem};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long memory is kept that no hash uses.
const KEPT: Duration = Duration::from_secs(10);

/// What one hash costs, and how many may cost it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashCost {
    /// Memory of one hash, in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
    /// Hashes at the same time.
    pub concurrent: usize,
    /// Callers that may wait for a turn; the next one is refused.
    pub waiting: usize,
}

impl Default for HashCost {
    /// 19 MiB, two passes, one lane; as many at once as half the cores, at least one.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { memory_kib: 19 * 1024, passes: 2, lanes: 1, concurrent: (cores / 2).max(1), waiting: 64 }
    }
}

/// Whether the password was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was. `rehash` holds a stronger hash of it when the stored one was made with weaker
    /// parameters than today's.
    Right {
        /// The hash to store instead.
        rehash: Option<String>,
    },
    /// It was not, or there is none.
    Wrong,
}

/// The bounded pool.
#[derive(Debug, Clone)]
pub struct PasswordHasher {
    cost: HashCost,
    /// A hash nobody's password matches, for accounts that do not exist.
    decoy: Arc<str>,
    running: Arc<Semaphore>,
    in_line: Arc<AtomicUsize>,
    spare: Spare,
}

/// Memory that no hash uses at the moment, at most one for each that may run. Dropped [`KEPT`] after the last one.
#[derive(Debug, Clone, Default)]
struct Spare(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    memory: Vec<Vec<Block>>,
    used: Option<Instant>,
    /// Somebody will drop it.
    watched: bool,
}

impl Spare {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Block> {
        self.kept().memory.pop().unwrap_or_default()
    }

    /// For the next one, unless it is more than `most` blocks, as a foreign hash may have needed. Runs on a thread of the
    /// runtime.
    fn put(&self, memory: Vec<Block>, most: usize) {
        if memory.capacity() > most {
            return;
        }
        let mut kept = self.kept();
        kept.memory.push(memory);
        kept.used = Some(Instant::now());
        if !std::mem::replace(&mut kept.watched, true) {
            tokio::spawn(self.clone().watch());
        }
    }

    async fn watch(self) {
        let mut until = Instant::now() + KEPT;
        loop {
            tokio::time::sleep_until(until).await;
            let mut kept = self.kept();
            until = kept.used.map_or(until, |used| used + KEPT);
            if until <= Instant::now() {
                kept.watched = false;
                kept.memory = Vec::new();
                return;
            }
        }
    }
}

/// A place in the line before the pool, taken before anything is looked up for the attempt: whoever finds the line
/// full costs next to nothing. Left when it is dropped.
#[derive(Debug)]
pub struct InLine {
    pool: PasswordHasher,
}

/// A turn at the pool, taken before anything is charged for the attempt.
#[derive(Debug)]
pub struct Admission {
    _permit: OwnedSemaphorePermit,
}

/// The parameters are outside what Argon2 allows.
#[derive(Debug, thiserror::Error)]
#[error("the password hashing parameters are not usable: {0}")]
pub struct HashingError(argon2::Error);

impl Drop for InLine {
    fn drop(&mut self) {
        self.pool.in_line.fetch_sub(1, Ordering::AcqRel);
    }
}

impl InLine {
    /// Waits for a turn.
    ///
    /// # Errors
    /// None while the pool lives.
    pub async fn turn(self) -> Result<Admission, Problem> {
        let permit = Arc::clone(&self.pool.running).acquire_owned().await.map_err(Problem::internal)?;
        Ok(Admission { _permit: permit })
    }
}

impl PasswordHasher {
    /// A pool with this cost. Hashes once, to make the decoy.
    ///
    /// # Errors
    /// [`HashingError`] when Argon2 does not allow the parameters.
    pub fn new(cost: HashCost) -> Result<Self, HashingError> {
        let decoy =
            hash(&tale_core::crypto::random_token(32), &cost, &mut Vec::new()).map_err(|error| match error {
                HashError::Cost(error) => HashingError(error),
                HashError::Hash(_) => HashingError(argon2::Error::OutOfMemory),
            })?;
        Ok(Self {
            cost,
            decoy: decoy.into(),
            running: Arc::new(Semaphore::new(cost.concurrent.max(1))),
            in_line: Arc::new(AtomicUsize::new(0)),
            spare: Spare::default(),
        })
    }

    /// Takes a place in the line, which is as long as those who may wait and the turns that nobody has.
    ///
    /// # Errors
    /// `BUSY` when it is full.
    pub fn line_up(&self) -> Result<InLine, Problem> {
        let before = self.in_line.fetch_add(1, Ordering::AcqRel);
        let place = InLine { pool: self.clone() };
        if before < self.cost.waiting + self.running.available_permits() { Ok(place) } else { Err(busy()) }
    }

    /// Waits in line for a turn.
    ///
    /// # Errors
    /// `BUSY` when the line is full.
    pub async fn admit(&self) -> Result<Admission, Problem> {
        self.line_up()?.turn().await
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// An internal fault when hashing fails.
    pub async fn hash(&self, turn: Admission, password: &str) -> Result<String, Problem> {
        let (password, cost) = (password.to_owned(), self.cost);
        self.blocking(turn, move |memory| hash(&password, &cost, memory)).await
    }

    /// Checks `password` against `stored`. Without a stored hash it checks a decoy, so that the
    /// answer takes as long.
    ///
    /// # Errors
    /// An internal fault when the stored hash cannot be read.
    pub async fn verify(&self, turn: Admission, password: &str, stored: Option<&str>) -> Result<Verdict, Problem> {
        let (password, cost) = (password.to_owned(), self.cost);
        let known = stored.is_some();
        let stored = stored.unwrap_or(&self.decoy).to_owned();
        self.blocking(turn, move |memory| verify(&password, &stored, known, &cost, memory)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        turn: Admission,
        work: impl FnOnce(&mut Vec<Block>) -> Result<T, HashError> + Send + 'static,
    ) -> Result<T, Problem> {
        // A block is a KiB.
        let (spare, most) = (self.spare.clone(), self.cost.memory_kib as usize);
        let work = move || {
            let (_turn, mut memory) = (turn, spare.take());
            let done = work(&mut memory);
            spare.put(memory, most);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(Problem::internal)?.map_err(Problem::internal)
    }
}

fn busy() -> Problem {
    Problem::new(Code::Busy, "Many people are signing in right now. Try again in a few seconds.")
        .retry_after(Duration::from_secs(3))
}

#[derive(Debug, thiserror::Error)]
enum HashError {
    #[error("the parameters are not usable: {0}")]
    Cost(argon2::Error),
    #[error("hashing failed: {0}")]
    Hash(#[from] argon2::password_hash::Error),
}

fn hash(password: &str, cost: &HashCost, memory: &mut Vec<Block>) -> Result<String, HashError> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None).map_err(HashError::Cost)?;
    let salt: [u8; 16] = rand::random();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let made = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: argon.params().try_into()?,
        salt: Some(Salt::new(&salt).map_err(Error::from)?),
        hash: Some(output(&argon, password, &salt, memory)?),
    };
    Ok(made.to_string())
}

fn verify(
    password: &str,
    stored: &str,
    known: bool,
    cost: &HashCost,
    memory: &mut Vec<Block>,
) -> Result<Verdict, HashError> {
    let parsed = PasswordHash::new(stored).map_err(Error::from)?;
    let (Some(salt), Some(right)) = (parsed.salt, parsed.hash) else { return Err(Error::EncodingInvalid.into()) };
    let (algorithm, version) = (Algorithm::try_from(parsed.algorithm.as_str())?, parsed.version.map(Version::try_from));
    let params = Params::try_from(&parsed)?;
    let raised = params.m_cost() < cost.memory_kib || params.t_cost() < cost.passes;
    let argon = Argon2::new(algorithm, version.transpose().map_err(Error::from)?.unwrap_or_default(), params);
    // Takes the same time whatever the bytes.
    if output(&argon, password, &salt, memory)? != right || !known {
        return Ok(Verdict::Wrong);
    }
    Ok(Verdict::Right { rehash: raised.then(|| hash(password, cost, memory)).transpose()? })
}

/// What `argon` makes of a password in memory that may be somebody else's.
fn output(argon: &Argon2<'_>, password: &str, salt: &[u8], memory: &mut Vec<Block>) -> Result<Output, Error> {
    let params = argon.params();
    memory.resize(params.block_count(), Block::default());
    let mut bytes = [0; Output::MAX_LENGTH];
    let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
    let bytes = bytes.get_mut(..length).ok_or(Error::OutputSize)?;
    argon.hash_password_into_with_memory(password.as_bytes(), salt, bytes, memory)?;
    Ok(Output::new(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cheap() -> HashCost {
        HashCost { memory_kib: 64, passes: 1, lanes: 1, concurrent: 1, waiting: 1 }
    }

    #[tokio::test]
    async fn a_password_verifies_and_raised_parameters_rehash_it() {
        let old = PasswordHasher::new(cheap()).unwrap();
        let stored = old.hash(old.admit().await.unwrap(), "Zwölf-Boxkämpfer-7").await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{stored}");
        let check = async |pool: &PasswordHasher, password: &str, stored: Option<&str>| {
            pool.verify(pool.admit().await.unwrap(), password, stored).await.unwrap()
        };
        assert_eq!(check(&old, "Zwölf-Boxkämpfer-7", Some(&stored)).await, Verdict::Right { rehash: None });
        assert_eq!(check(&old, "Zwölf-Boxkämpfer-8", Some(&stored)).await, Verdict::Wrong);
        assert_eq!(check(&old, "Zwölf-Boxkämpfer-7", None).await, Verdict::Wrong);
        let raised = PasswordHasher::new(HashCost { memory_kib: 128, ..cheap() }).unwrap();
        let Verdict::Right { rehash: Some(stronger) } = check(&raised, "Zwölf-Boxkämpfer-7", Some(&stored)).await
        else {
            panic!("a weaker hash is replaced");
        };
        assert_eq!(check(&raised, "Zwölf-Boxkämpfer-7", Some(&stronger)).await, Verdict::Right { rehash: None });
    }

    #[tokio::test]
    async fn the_default_cost_is_the_specified_one() {
        let stored = hash("x", &HashCost::default(), &mut Vec::new()).unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
    }

    #[test]
    fn what_memory_held_before_makes_no_other_hash() {
        let check = |password: &str, stored: &str, memory: &mut Vec<Block>| {
            verify(password, stored, true, &cheap(), memory).unwrap() == Verdict::Right { rehash: None }
        };
        let memory = &mut Vec::new();
        let first = hash("Zwölf-Boxkämpfer-7", &cheap(), memory).unwrap();
        let larger = hash("other", &HashCost { memory_kib: 256, passes: 3, ..cheap() }, memory).unwrap();
        let last = hash("Zwölf-Boxkämpfer-7", &cheap(), memory).unwrap();
        assert_ne!(first, last, "salted");
        for memory in [&mut *memory, &mut Vec::new()] {
            for (password, stored) in
                [("Zwölf-Boxkämpfer-7", &first), ("Zwölf-Boxkämpfer-7", &last), ("other", &larger)]
            {
                assert!(check(password, stored, memory));
                assert!(!check("Zwölf-Boxkämpfer-8", stored, memory));
            }
        }
        // Another implementation's, with the parameters of the specification of Argon2.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert!(check("password", known, memory));
    }

    #[tokio::test]
    async fn the_memory_of_a_larger_hash_than_ours_is_not_kept() {
        let pool = PasswordHasher::new(cheap()).unwrap();
        let foreign = hash("x", &HashCost { memory_kib: 256, ..cheap() }, &mut Vec::new()).unwrap();
        pool.verify(pool.admit().await.unwrap(), "x", Some(&foreign)).await.unwrap();
        assert!(pool.spare.kept().memory.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_of_a_hash_is_kept_for_the_next_one_and_not_for_long() {
        let pool = PasswordHasher::new(cheap()).unwrap();
        let kept = || pool.spare.kept().memory.iter().map(Vec::len).collect::<Vec<_>>();
        for _ in 0..3 {
            pool.hash(pool.admit().await.unwrap(), "Zwölf-Boxkämpfer-7").await.unwrap();
            assert_eq!(kept(), [64]);
        }
        tokio::time::sleep(KEPT / 2).await;
        pool.hash(pool.admit().await.unwrap(), "Zwölf-Boxkämpfer-7").await.unwrap();
        tokio::time::sleep(KEPT - Duration::from_millis(1)).await;
        assert_eq!(kept(), [64], "used since");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(kept(), [0_usize; 0]);
    }

    #[tokio::test]
    async fn a_full_line_is_busy_and_a_left_line_is_free_again() {
        let pool = PasswordHasher::new(cheap()).unwrap();
        let first = pool.admit().await.unwrap();
        let mut second = Box::pin(pool.admit());
        assert!(futures_poll(&mut second).await.is_none(), "the second waits");
        assert_eq!(pool.admit().await.unwrap_err().code, Code::Busy);
        drop(second); // the waiting caller goes away
        let third = pool.admit();
        tokio::pin!(third);
        assert!(futures_poll(&mut third).await.is_none(), "its place is free");
        drop(first);
        assert!(third.await.is_ok());
    }

    /// Polls once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(out) => std::task::Poll::Ready(Some(out)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
