//! The ledger: every model call is held before it runs and booked once when it ended.
//!
//! ```text
//! let hold = ledger.hold(&charge, price.whole(prompt, output, 1)).await?;   // 429 when a limit refuses
//! … the call; hold.progress(…) as its output arrives …
//! ledger.settle(hold, Outcome::Known(price.consumption(input, cached, output))).await;
//! ```
//!
//! A [`Hold`] that is dropped is booked by what its work has told ([`Hold::progress`]), or given back
//! when the work never began. While it
//! lives, this process confirms it once a minute; when the process dies, another one (or the same
//! after its restart) books it after five minutes of silence, exactly once, because the removal of
//! the hold's row is what books.
//!
//! Cost: one round trip for a hold and one for its end, both shared by everything that waits at
//! that moment ([`writer`]), so that a batch of two hundred calls is two short transactions. Work
//! without a limit locks only rows of its own process ([`store`], stripes); work under a limit
//! takes a lock per holder of limits, in one order, until its batch is committed. Counters are kept
//! by day, and a period is a sum over days: at most 31 rows for each process that wrote.

pub mod allowance;
mod keeper;
mod lease;
mod leases;
mod line;
mod price;
pub mod report;
mod status;
mod store;
pub(crate) mod warnings;
mod writer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use tale_core::Actor;
use tale_core::clock::SharedClock;
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_core::problem::{Code, Problem};
use tale_governance::budgets::{Amounts, BudgetRules, Cap, Refusal, Subject};
use tale_governance::policies::Policies;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use price::{DEFAULT_OUTPUT_TOKENS, Price};
pub use status::LimitState;

/// How often a process confirms its holds.
pub const BEAT: Duration = Duration::from_secs(60);

/// After how much silence a hold is closed by whoever sees it.
pub const SILENCE: TimeDelta = TimeDelta::minutes(5);

/// How long a client waits before it tries again when it has too many calls running.
const CROWDED_RETRY: Duration = Duration::from_secs(2);

/// How long an end in another process may be on its way into the database.
const ENDED_ELSEWHERE: Duration = Duration::from_millis(50);

/// How often work that a limit has no room for looks whether what ended meanwhile is booked.
const BOOKING: Duration = Duration::from_millis(2);

/// How long an answer waits for its booking.
const MOST_UNBOOKED_TIME: Duration = Duration::from_secs(1);

/// API keys whose team one process remembers.
const MAX_KEY_TEAMS: usize = 16_384;

/// Silent holds that are closed in one go.
const SWEEP_AT_ONCE: i64 = 500;

/// What work is booked under, where no assistant has a name of its own (MOD-98).
pub mod source {
    /// A chat without an assistant of its own.
    pub const CHAT: &str = "chat";
    /// The title of a chat.
    pub const TITLE: &str = "thread-title";
    /// A recording that was transcribed.
    pub const TRANSCRIPTION: &str = "__transcription__";
    /// Vectors for indexing and for searching.
    pub const KNOWLEDGE: &str = "__knowledge__";
    /// A call that shows whether a provider works.
    pub const PROVIDER_TEST: &str = "__provider_test__";
    /// A call of the model endpoints.
    pub const DIRECT_API: &str = "__direct_api__";
}

/// For whom and through what a piece of work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The organization.
    pub org: OrgId,
    /// The person, when there is one.
    pub person: Option<UserId>,
    /// The person's role, for rules about roles; looked up when one is needed and none is given.
    pub role: Option<&'static str>,
    /// The API key that asked.
    pub api_key: Option<ApiKeyId>,
    /// One of [`source`], or the slug of an assistant.
    pub source: Arc<str>,
    /// The provider.
    pub provider: Arc<str>,
    /// The provider's name of the model.
    pub model: Arc<str>,
}

impl Charge {
    /// Work of a background part or a search, for whoever wanted it.
    pub(crate) fn of(org: OrgId, payer: &Actor, source: &str, provider: &str, model: &str) -> Self {
        let (person, api_key) = match payer {
            Actor::User { id } => (Some(*id), None),
            Actor::Api { key, subject, .. } => (*subject, Some(*key)),
            Actor::System => (None, None),
        };
        let [source, provider, model] = [source, provider, model].map(Arc::from);
        Self { org, person, role: None, api_key, source, provider, model }
    }

    fn subject(&self) -> Subject<'_> {
        Subject { user: self.person, role: self.role, api_key: self.api_key, ..Subject::default() }
    }
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consumption {
    /// Tokens of the request, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from a cache.
    pub cached_tokens: u64,
    /// What is not measured in tokens: seconds of a recording.
    pub units: u64,
    /// What it costs.
    pub cost_micro_usd: u64,
}

impl Consumption {
    fn row(&self) -> [u64; 5] {
        // Whatever a provider reports leaves room for the sums of years.
        [self.input_tokens, self.output_tokens, self.cached_tokens, self.units, self.cost_micro_usd].map(bounded)
    }
}

/// The most that one call counts for: a hundred billion tokens, or 100,000 US dollars. Ninety million such
/// calls fit the sums.
const MOST_OF_A_CALL: u64 = 100_000_000_000;

/// An amount that no provider can break the sums with.
fn bounded(amount: u64) -> u64 {
    amount.min(MOST_OF_A_CALL)
}

/// What a call may use, before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// What must fit, or the work is refused.
    pub needed: Amounts,
    /// What it would like to have; at least `needed`.
    pub wanted: Amounts,
    /// What is booked when nobody ever says more.
    pub floor: Consumption,
    /// What tokens cost, for when fewer of them are believed than were told.
    pub price: Price,
}

/// How held work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With usage that the provider reported.
    Known(Consumption),
    /// Without: at least this was used (MOD-124).
    Floor(Consumption),
    /// Nothing was asked of a provider; nothing is booked.
    Released,
}

/// Why work may not begin.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// A limit has no room for it.
    #[error(transparent)]
    Exceeded(Box<Refusal>),
    /// The person or the key has as many calls running as may be, over all processes.
    #[error("{0} calls of this person or key are running already")]
    Crowded(u64),
    /// The limits cannot be read; nothing is held.
    #[error("the usage limits cannot be read")]
    Rules(#[source] Problem),
    /// The hold could not be written; nothing is held.
    #[error("the use of models could not be recorded")]
    Database(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl From<HoldError> for Problem {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Exceeded(refusal) => (*refusal).into(),
            HoldError::Crowded(most) => Self::new(
                Code::ModelApiConcurrencyExceeded,
                format!("{most} calls of this person or key are running already. Wait for one of them to end."),
            )
            .retry_after(CROWDED_RETRY),
            HoldError::Rules(problem) => problem,
            HoldError::Database(cause) => Self::new(
                Code::DatabaseUnavailable,
                "The use of models cannot be recorded right now, so nothing was started. Try again in a moment.",
            )
            .retry_after(Duration::from_secs(5))
            .because(cause),
        }
    }
}

/// Where the rules of an organization come from.
#[async_trait]
pub trait RulesSource: Send + Sync {
    /// The rules in force. Asked before each piece of work, so it answers from memory when it can.
    async fn budgets(&self, org: OrgId) -> Result<Arc<BudgetRules>, Problem>;

    /// The teams of a person that rules name; asked only when some do.
    async fn teams(&self, _org: OrgId, _person: UserId) -> Result<Vec<TeamId>, Problem> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl RulesSource for Policies {
    async fn budgets(&self, org: OrgId) -> Result<Arc<BudgetRules>, Problem> {
        Ok(self.of(org).await?.budgets.usable()?.clone())
    }

    async fn teams(&self, org: OrgId, person: UserId) -> Result<Vec<TeamId>, Problem> {
        Ok(self.of(org).await?.teams_of(person))
    }
}

/// What remains to be done for work that has ended.
#[derive(Debug, Default)]
pub struct End {
    /// [`Ledger::unbooked`] should be waited for before the answer of the work is complete: so much has ended
    /// within the last moment that a crash would cost noticeably.
    pub round: Option<u64>,
    /// A hold to be ended with [`Ledger::end_hold`].
    pub hold: Option<EndedHold>,
}

/// A hold whose work has ended.
#[derive(Debug)]
pub struct EndedHold(store::Ended);

/// Admitted work. Ends with [`Ledger::settle`]; when it is dropped instead, it is booked by what
/// [`Hold::progress`] was told last, and given back when it was told nothing.
pub struct Hold {
    id: Uuid,
    org: OrgId,
    at: DateTime<Utc>,
    granted: Amounts,
    bounds_output: bool,
    /// Whose running calls it is counted among.
    counted: Option<Counted>,
    held: Arc<store::Held>,
    possible: Possible,
    progress: Arc<Progress>,
    /// The lease that paid for it.
    paid: Option<leases::Paid>,
    ledger: Arc<Inner>,
}

/// The most tokens that a provider is believed to have used for a call: its prompt and the largest answer, both with
/// much benefit of doubt, because they are estimated and because images and hidden prompts count for more than they
/// seem to. No number that a provider makes up eats the budget of an organization.
#[derive(Debug, Clone, Copy)]
struct Possible {
    input: u64,
    output: u64,
    price: Price,
}

impl Possible {
    fn of(estimate: &Estimate) -> Self {
        let prompt = estimate.floor.input_tokens;
        let answer = estimate.wanted.tokens.saturating_sub(prompt);
        Self {
            input: prompt.saturating_mul(16).saturating_add(1 << 16),
            output: answer.saturating_mul(4).saturating_add(1 << 12),
            price: estimate.price,
        }
    }

    /// What was used, no more than can have been. What has `delivered` itself is no claim of a provider, and an
    /// answer that is longer than it was to be may have hidden as much as one that is not.
    fn bound(self, used: Consumption, delivered: u64) -> Consumption {
        let output = self.output.max(delivered.saturating_mul(4));
        let (input, output) = (used.input_tokens.min(self.input), used.output_tokens.min(output));
        if (input, output) == (used.input_tokens, used.output_tokens) {
            return used;
        }
        Consumption { units: used.units, ..self.price.consumption(input, used.cached_tokens, output) }
    }
}

/// Whose running calls are counted: those of a person, and of a key, in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    org: OrgId,
    person: Option<UserId>,
    key: Option<ApiKeyId>,
}

/// Holds that have ended in this process and are about to be booked: the database still has them, and yet they
/// do not run any more.
#[derive(Debug, Clone, Default)]
struct Ending(Arc<Mutex<HashMap<Uuid, Counted>>>);

impl Ending {
    fn add(&self, id: Uuid, of: Counted) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, of);
    }

    fn remove(&self, ids: impl Iterator<Item = Uuid>) {
        let mut ending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            ending.remove(&id);
        }
    }

    /// Those of an organization.
    fn within(&self, org: OrgId) -> Vec<Uuid> {
        let ending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ending.iter().filter(|(_, of)| of.org == org).map(|(id, _)| *id).collect()
    }

    fn has_any(&self, ids: &[Uuid]) -> bool {
        let ending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().any(|id| ending.contains_key(id))
    }

    /// Those of a person or a key.
    fn of(&self, counted: &Counted) -> Vec<Uuid> {
        let ending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |of: &Counted| {
            of.org == counted.org
                && (counted.person.is_some() && of.person == counted.person
                    || counted.key.is_some() && of.key == counted.key)
        };
        ending.iter().filter(|(_, of)| same(of)).map(|(id, _)| *id).collect()
    }
}

#[derive(Debug)]
struct Progress {
    known: Mutex<Consumption>,
    /// Tokens of output that have come by.
    delivered: AtomicU64,
    /// Whether something was asked of a provider.
    begun: AtomicBool,
    ended: AtomicBool,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").field("id", &self.id).field("granted", &self.granted).finish_non_exhaustive()
    }
}

impl Hold {
    /// The reservation, which is also the id of the booking.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What the work may use.
    #[must_use]
    pub fn granted(&self) -> Amounts {
        self.granted
    }

    /// Whether a limit of tokens or cost binds the work, so that it may not use more than `granted`.
    /// When none does, `granted` is only what was wanted.
    #[must_use]
    pub fn bounds_output(&self) -> bool {
        self.bounds_output
    }

    /// Says what has been used so far: what is booked should nobody say more. From the first time on
    /// the work counts as begun, so say it before a provider is asked. `delivered` are the tokens of output that
    /// have come by, which are believed because nobody told them.
    pub fn progress(&self, used: Consumption, delivered: u64) {
        self.progress.begun.store(true, Ordering::Release);
        self.progress.delivered.store(delivered, Ordering::Release);
        *self.progress.known.lock().unwrap_or_else(PoisonError::into_inner) = self.possible.bound(used, delivered);
    }

    /// The end of the hold as it is written, once.
    fn ended(&self, outcome: Outcome) -> Option<store::Ended> {
        if self.progress.ended.swap(true, Ordering::AcqRel) {
            return None;
        }
        if let Some(counted) = self.counted {
            self.ledger.ending.add(self.id, counted);
        }
        self.ledger.forget(self.id);
        let (released, outcome, told) = match outcome {
            Outcome::Known(used) => (false, "reported", used),
            Outcome::Floor(used) => (false, "floor", used),
            Outcome::Released => (true, "floor", Consumption::default()),
        };
        let used = self.possible.bound(told, self.progress.delivered.load(Ordering::Acquire));
        if told != used {
            tracing::warn!(
                event = "usage.impossible", hold = %self.id, org = %self.org, input = told.input_tokens,
                output = told.output_tokens, "a provider told more tokens than the call can have used, which are not booked"
            );
        }
        let (used, held) = (used.row(), Some(self.held.clone()));
        Some(store::Ended { id: self.id, org: self.org, released, outcome, silent_since: None, used, held })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let begun = self.progress.begun.load(Ordering::Acquire);
        let outcome = if begun { Outcome::Floor(self.progress.known()) } else { Outcome::Released };
        let ended = self.ended(outcome).map(|ended| self.ledger.left_of(ended, self.paid.as_ref()));
        if let Some((_, Some(ended))) = ended {
            self.ledger.writer().end_unheard(ended);
        }
    }
}

/// The ledger. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    pool: PgPool,
    clock: SharedClock,
    /// This process among those that hold.
    owner: Uuid,
    /// The rows of sums that this process writes.
    stripe: i16,
    rules: Arc<dyn RulesSource>,
    /// Keys and the teams that they belong to, which never change.
    key_teams: Mutex<HashMap<ApiKeyId, Option<TeamId>>>,
    writer: OnceLock<writer::Writer>,
    open: Mutex<HashMap<Uuid, Arc<Progress>>>,
    ending: Ending,
    leases: leases::Leases,
    recalls: keeper::Recalls,
}

impl Inner {
    fn writer(&self) -> &writer::Writer {
        self.writer.get_or_init(|| {
            writer::start(self.pool.clone(), self.clock.clone(), (self.owner, self.stripe), self.ending.clone())
        })
    }

    /// What is left to do for work that ended: a round to wait for, or its hold to end.
    fn left_of(&self, ended: store::Ended, paid: Option<&leases::Paid>) -> (Option<u64>, Option<store::Ended>) {
        let Some(paid) = paid else { return (None, Some(ended)) };
        match self.leases.end(paid, ended) {
            leases::Rest::Journal => (None, None),
            leases::Rest::Wait(round) => (Some(round), None),
            leases::Rest::Hold(ended) => (None, Some(ended)),
        }
    }

    fn remember(&self, id: Uuid, progress: Arc<Progress>) {
        if self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, progress).is_none() {
            crate::metrics::HOLDS_OPENED.increment();
        }
    }

    fn forget(&self, id: Uuid) {
        if self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id).is_some() {
            crate::metrics::HOLDS_CLOSED.increment();
        }
    }
}

/// Stripes of sums: more processes than write at the same time.
const STRIPES: u8 = 64;

impl Ledger {
    /// A ledger in `pool` under `rules`.
    #[must_use]
    pub fn new(pool: PgPool, clock: SharedClock, rules: Arc<dyn RulesSource>) -> Self {
        let owner = Uuid::new_v4();
        let stripe = i16::from(owner.as_bytes()[0] % STRIPES);
        let (writer, open, ending, key_teams) =
            (OnceLock::new(), Mutex::default(), Ending::default(), Mutex::default());
        let (leases, recalls) = (leases::Leases::default(), keeper::Recalls::default());
        let inner = Inner { pool, clock, owner, stripe, rules, key_teams, writer, open, ending, leases, recalls };
        Self { inner: Arc::new(inner) }
    }

    /// The rules of an organization.
    pub(crate) async fn rules(&self, org: OrgId) -> Result<Arc<BudgetRules>, Problem> {
        self.inner.rules.budgets(org).await
    }

    /// The teams of a person that limits are about.
    pub(crate) async fn teams(
        &self,
        org: OrgId,
        person: Option<UserId>,
        rules: &BudgetRules,
    ) -> Result<Vec<TeamId>, Problem> {
        match person.filter(|_| rules.teams().next().is_some()) {
            Some(person) => self.inner.rules.teams(org, person).await,
            None => Ok(Vec::new()),
        }
    }

    /// The team of the charge's key, when limits are about teams.
    async fn key_team(&self, charge: &Charge, rules: &BudgetRules) -> Result<Option<TeamId>, HoldError> {
        let Some(key) = charge.api_key.filter(|_| rules.teams().next().is_some()) else { return Ok(None) };
        let held = || self.inner.key_teams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held().get(&key) {
            return Ok(*known);
        }
        let team = store::key_team(&self.inner.pool, charge.org, key).await;
        let team = team.map_err(|error| HoldError::Database(Arc::new(error)))?;
        let mut held = held();
        if held.len() >= MAX_KEY_TEAMS {
            held.clear();
        }
        held.insert(key, team);
        Ok(team)
    }

    /// Whether any limit binds work of `charge`.
    ///
    /// # Errors
    /// [`HoldError`] when the rules cannot be read.
    pub async fn limits(&self, charge: &Charge) -> Result<bool, HoldError> {
        Ok(!self.caps(charge).await?.is_empty())
    }

    async fn caps(&self, charge: &Charge) -> Result<Vec<Cap>, HoldError> {
        let rules = self.rules(charge.org).await.map_err(HoldError::Rules)?;
        let teams = self.teams(charge.org, charge.person, &rules).await.map_err(HoldError::Rules)?;
        let key_team = self.key_team(charge, &rules).await?;
        let subject = Subject { teams: &teams, key_team, ..charge.subject() };
        match charge.person.filter(|_| charge.role.is_none() && rules.name_roles()) {
            None => Ok(rules.caps(&subject)),
            Some(person) => {
                let role = store::role(&self.inner.pool, charge.org, person).await;
                let role = role.map_err(|error| HoldError::Database(Arc::new(error)))?;
                Ok(rules.caps(&Subject { role: role.as_deref(), ..subject }))
            }
        }
    }

    /// Admits work, or names the limit that refuses it. One round trip.
    ///
    /// # Errors
    /// [`HoldError`]; nothing is held then.
    pub async fn hold(&self, charge: &Charge, estimate: Estimate) -> Result<Hold, HoldError> {
        let caps = self.caps(charge).await?;
        self.admit(charge, estimate, caps, None, (Uuid::now_v7(), self.inner.clock.now())).await
    }

    /// As [`Ledger::hold`], for at most `most` pieces of work of the charge's source at the same time: of its person
    /// and, separately, of its key, in all processes together.
    ///
    /// # Errors
    /// [`HoldError`]; nothing is held then.
    pub async fn hold_among(&self, most: u64, charge: &Charge, estimate: Estimate) -> Result<Hold, HoldError> {
        let caps = self.caps(charge).await?;
        let admit = || {
            let place = (Uuid::now_v7(), self.inner.clock.now());
            self.admit(charge, estimate, caps.clone(), Some(most), place)
        };
        match admit().await {
            Err(HoldError::Crowded(_)) => {
                tokio::time::sleep(ENDED_ELSEWHERE).await;
                admit().await
            }
            held => held,
        }
    }

    /// Measures held work anew, for instance when its prompt is known. It keeps its place in time;
    /// what it held is judged as free.
    ///
    /// # Errors
    /// [`HoldError`], beside the hold as it was.
    pub async fn resize(
        &self,
        hold: Hold,
        charge: &Charge,
        estimate: Estimate,
    ) -> Result<Hold, Box<(HoldError, Hold)>> {
        let (id, at) = (hold.id, hold.at);
        let again = match self.caps(charge).await {
            Ok(caps) => self.admit(charge, estimate, caps, None, (id, at)).await,
            Err(error) => Err(error),
        };
        match again {
            Ok(mut again) => {
                // The same row from here on, and the same id; the old value must not end it.
                again.counted = hold.counted;
                hold.progress.ended.store(true, Ordering::Release);
                Ok(again)
            }
            Err(error) => Err(Box::new((error, hold))),
        }
    }

    async fn admit(
        &self,
        charge: &Charge,
        estimate: Estimate,
        caps: Vec<Cap>,
        at_once: Option<u64>,
        (id, at): (Uuid, DateTime<Utc>),
    ) -> Result<Hold, HoldError> {
        let ask = || {
            let (ledger, charge, caps) = (self.inner.clone(), charge.clone(), caps.clone());
            self.inner.writer().hold(writer::Wanted { ledger, charge, caps, at_once, estimate, id, at })
        };
        match ask().await {
            // Whoever has an answer in hands finds free what it did not use, although it may not be booked yet.
            Err(HoldError::Exceeded(_)) if self.booked(charge.org).await => ask().await,
            held => held,
        }
    }

    /// Waits until what has ended in an organization is booked. Answers whether there was something.
    async fn booked(&self, org: OrgId) -> bool {
        let ending = self.inner.ending.within(org);
        let booked = async {
            while self.inner.ending.has_any(&ending) {
                tokio::time::sleep(BOOKING).await;
            }
        };
        !ending.is_empty() && tokio::time::timeout(MOST_UNBOOKED_TIME, booked).await.is_ok()
    }

    /// Ends held work and books it, once. Returns when it is written; a database that is away is
    /// waited for, and what cannot be written for [`writer::PATIENCE`] is booked by the sweep.
    pub async fn settle(&self, hold: Hold, outcome: Outcome) {
        let End { round, hold } = self.end(hold, outcome);
        if let Some(round) = round {
            self.unbooked(round).await;
        }
        if let Some(hold) = hold {
            self.end_hold(hold).await;
        }
    }

    /// Ends held work and books it, once, saying what remains to be waited for: nothing, mostly, when a lease paid.
    #[must_use]
    pub fn end(&self, hold: Hold, outcome: Outcome) -> End {
        let ended = hold.ended(outcome).map(|ended| self.inner.left_of(ended, hold.paid.as_ref()));
        let (round, hold) = ended.unwrap_or_default();
        End { round, hold: hold.map(EndedHold) }
    }

    /// Ends the hold of work, as [`Ledger::settle`] does.
    pub async fn end_hold(&self, hold: EndedHold) {
        self.inner.writer().end(hold.0).await;
    }

    /// Waits until work that ended at once is booked, or it is clear that the database is away.
    pub async fn unbooked(&self, round: u64) {
        let _ = tokio::time::timeout(MOST_UNBOOKED_TIME, self.inner.leases.round(round)).await;
    }

    /// Confirms this process's holds once a minute and closes those that fell silent, and keeps its leases, until
    /// `stop`; then everything that was leased is written down and given back.
    pub async fn run(&self, stop: CancellationToken) {
        let leases = async {
            stop.run_until_cancelled(self.inner.keep_leases()).await;
            self.inner.close_leases().await;
        };
        tokio::join!(self.beats(&stop), leases);
    }

    async fn beats(&self, stop: &CancellationToken) {
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = beat.tick() => {}
            }
            let beaten = async {
                self.keep().await?;
                self.sweep().await?;
                self.inner.sweep_leases(false).await?;
                self.sweep_allowances().await
            };
            if let Err(error) = beaten.await {
                tracing::warn!(%error, "holds of running work could not be confirmed, trying again in a minute");
            }
        }
    }

    /// Confirms this process's holds, with what their work has told so far.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn keep(&self) -> Result<(), sqlx::Error> {
        let floors: Vec<(Uuid, [u64; 5])> = {
            let open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.iter()
                .map(|(id, progress)| (*id, progress.known.lock().unwrap_or_else(PoisonError::into_inner).row()))
                .collect()
        };
        for some in floors.chunks(1_000) {
            store::keep(&self.inner.pool, self.inner.owner, self.inner.clock.now(), some).await?;
        }
        Ok(())
    }

    /// Books holds of other processes that were silent for [`SILENCE`], by their floor. Returns how many.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep(&self) -> Result<u64, sqlx::Error> {
        self.close_silent_since(self.inner.clock.now() - SILENCE).await
    }

    /// Gives back what other processes had leased, once this one has seen them silent for [`SILENCE`]. By a clock
    /// that nobody sets, so that no jump of another makes a lease of a process that lives look left behind.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep_leases(&self) -> Result<(), sqlx::Error> {
        self.inner.sweep_leases(false).await
    }

    /// Books every hold of another process. For a process that is the only one of its installation,
    /// before it admits anything: whoever held is gone.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn close_abandoned(&self) -> Result<u64, sqlx::Error> {
        let closed = self.close_silent_since(DateTime::<Utc>::MAX_UTC).await?;
        self.inner.sweep_leases(true).await?;
        Ok(closed)
    }

    /// Books them together; one by one when the database refuses that, so that one which cannot be booked
    /// holds up no other.
    async fn close(&self, ended: &[store::Ended]) -> Result<u64, sqlx::Error> {
        let (pool, now) = (&self.inner.pool, self.inner.clock.now());
        match store::settle(pool, now, ended).await {
            Ok(closed) => return Ok(u64::try_from(closed).unwrap_or(0)),
            Err(error) if error.as_database_error().is_none() => return Err(error),
            Err(_) => {}
        }
        let mut closed = 0;
        for one in ended {
            match store::settle(pool, now, std::slice::from_ref(one)).await {
                Ok(count) => closed += u64::try_from(count).unwrap_or(0),
                Err(error) if error.as_database_error().is_none() => return Err(error),
                Err(error) => {
                    tracing::error!(%error, hold = %one.id, "a hold of a process that is gone cannot be booked")
                }
            }
        }
        Ok(closed)
    }

    async fn close_silent_since(&self, before: DateTime<Utc>) -> Result<u64, sqlx::Error> {
        // What Postgres can store as a time.
        let before = before.min(self.inner.clock.now() + TimeDelta::days(36_500));
        let mut closed = 0;
        loop {
            let silent = store::silent(&self.inner.pool, self.inner.owner, before, SWEEP_AT_ONCE).await?;
            let ended: Vec<store::Ended> = silent
                .iter()
                .map(|hold| store::Ended {
                    id: hold.id,
                    org: hold.org_id,
                    released: hold.aside,
                    outcome: "abandoned",
                    silent_since: Some(before),
                    used: std::array::from_fn(|at| {
                        hold.floor.get(at).and_then(|amount| u64::try_from(*amount).ok()).unwrap_or(0)
                    }),
                    held: None,
                })
                .collect();
            if ended.is_empty() {
                return Ok(closed);
            }
            let now = self.close(&ended).await?;
            tracing::info!(event = "usage.abandoned", holds = now, "booked work whose process is gone");
            closed += now;
            if now == 0 {
                return Ok(closed);
            }
        }
    }
}
