//! Allowances: an amount that is set aside once, under every limit, and used by many calls.
//!
//! ```text
//! let aside = ledger.set_aside(&charge, wish).await?;       // 429 when a limit has no room
//! let terms = aside.keep(&mut tx, expires_at).await?;        // with what else belongs to it
//! tx.commit().await?; aside.kept();
//! … ledger.draw(&draw, estimate).await? … ledger.settle(hold, outcome).await …
//! ledger.end_allowances(&[allowance]).await?;                // what is left is given back
//! ```
//!
//! Until it ends, the holders of limits hold what is set aside and not used. A call that draws on it
//! holds a part of it: its row has a floor and a process like any other hold, so a process that dies
//! is booked by the floor, once. An allowance whose owner is gone ends when it expires.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_governance::budgets::{Amounts, Kind, Room};
use uuid::Uuid;

use super::keeper::REVOCATION;
use super::{Charge, Estimate, Hold, HoldError, Ledger, Ordering, store, writer};

/// Tokens that are set aside under a limit of tokens when nobody says how many.
const DEFAULT_TOKENS: u64 = 10_000_000;
/// The same for requests.
const DEFAULT_REQUESTS: u64 = 1_000;
/// How long an allowance that is settled is kept for whoever asks what was spent.
pub const KEPT_FOR: TimeDelta = TimeDelta::days(7);
/// Allowances that are ended or forgotten in one go.
const AT_ONCE: i64 = 500;
/// How often a call that finds no room calls back what is leased.
const RECALLS: usize = 3;

/// An allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Allowance {
    /// The organization.
    pub org: OrgId,
    /// Its id, chosen by whoever sets it aside.
    pub id: Uuid,
}

/// What shall be set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Micro-US-dollars.
    pub cost_micro_usd: u64,
    /// A smaller amount that is taken when a limit leaves no more.
    pub least_cost_micro_usd: u64,
    /// Tokens; a limit of tokens sets some aside in any case.
    pub tokens: Option<u64>,
    /// Calls; a limit of requests sets some aside in any case.
    pub requests: Option<u64>,
}

/// What was set aside; `None` is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Micro-US-dollars.
    pub cost_micro_usd: u64,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Calls.
    pub requests: Option<u64>,
}

/// An amount that the limits admitted and nothing refers to yet. Dropped, it is given back.
#[derive(Debug)]
pub struct SetAside {
    hold: Hold,
    terms: Terms,
}

/// One call that an allowance shall pay for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// What pays.
    pub allowance: Allowance,
    /// The provider.
    pub provider: std::sync::Arc<str>,
    /// The provider's name of the model.
    pub model: std::sync::Arc<str>,
}

/// Why a call may not begin.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// Less is left than the call may use.
    #[error("the allowance has no room for the call")]
    Full(Room),
    /// The allowance has ended or expired, or there is none.
    #[error("the allowance has ended")]
    Ended,
    /// The call could not be written down; nothing is held.
    #[error(transparent)]
    Hold(#[from] HoldError),
}

/// How an allowance stands.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct AllowanceState {
    /// What may be used at most, in micro-US-dollars.
    pub cost_micro_usd: i64,
    /// The same in tokens; `None` is not limited.
    pub tokens: Option<i64>,
    /// The same in calls; `None` is not limited.
    pub requests: Option<i64>,
    /// What was booked.
    pub spent_cost: i64,
    /// Tokens that were booked.
    pub spent_tokens: i64,
    /// Calls that were booked.
    pub spent_requests: i64,
    /// What running calls hold.
    pub held_cost: i64,
    /// Calls that run.
    pub calls: i64,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
    /// Since when no call begins.
    pub ended_at: Option<DateTime<Utc>>,
    /// Since when everything is booked.
    pub settled_at: Option<DateTime<Utc>>,
}

impl AllowanceState {
    /// Whether calls may begin at `now`.
    #[must_use]
    pub fn is_open(&self, now: DateTime<Utc>) -> bool {
        self.ended_at.is_none() && now < self.expires_at
    }
}

impl SetAside {
    /// What was set aside.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Makes it an allowance with the id `id`, in the transaction of `conn`. Say [`SetAside::kept`]
    /// after its commit.
    ///
    /// # Errors
    /// When the database refuses; a taken id is a unique violation.
    pub async fn keep(&self, conn: &mut PgConnection, id: Uuid, expires_at: DateTime<Utc>) -> sqlx::Result<()> {
        let (hold, Terms { tokens, requests, .. }) = (&self.hold, self.terms);
        match store::allowances::keep(conn, (hold.org, hold.id), id, expires_at, tokens, requests).await? {
            true => Ok(()),
            false => Err(sqlx::Error::RowNotFound),
        }
    }

    /// It belongs to the allowance now.
    pub fn kept(self) {
        self.hold.progress.ended.store(true, Ordering::Release);
        self.hold.ledger.forget(self.hold.id);
    }
}

impl Ledger {
    /// Sets an amount aside for work of `charge`, whose provider and model are not known yet, or names the
    /// limit that refuses it.
    ///
    /// # Errors
    /// [`HoldError`]; nothing is set aside then.
    pub async fn set_aside(&self, charge: &Charge, wish: Wish) -> Result<SetAside, HoldError> {
        // By this a sweep knows that nobody has worked with it.
        let charge = &Charge { provider: "".into(), model: "".into(), ..charge.clone() };
        let caps = self.caps(charge).await?;
        let wanted = |kind, asked: Option<u64>, default| {
            let bound = caps.iter().any(|cap| cap.kind == kind);
            asked.or(bound.then_some(default))
        };
        let tokens = wanted(Kind::Tokens, wish.tokens, DEFAULT_TOKENS);
        let requests = wanted(Kind::Requests, wish.requests, DEFAULT_REQUESTS);
        let amounts = |cost_micro_usd, least: bool| {
            let of = |amount: Option<u64>| amount.map_or(0, |amount| if least { amount.min(1) } else { amount });
            Amounts { tokens: of(tokens), cost_micro_usd, requests: of(requests) }
        };
        let estimate = Estimate {
            needed: amounts(wish.least_cost_micro_usd.min(wish.cost_micro_usd), true),
            wanted: amounts(wish.cost_micro_usd, false),
            ..Estimate::default()
        };
        let hold = self.admit(charge, estimate, caps, None, (Uuid::now_v7(), self.inner.clock.now())).await?;
        let granted = hold.granted;
        let terms = Terms {
            cost_micro_usd: granted.cost_micro_usd,
            tokens: tokens.map(|_| granted.tokens),
            requests: requests.map(|_| granted.requests),
        };
        Ok(SetAside { hold, terms })
    }

    /// Admits a call that an allowance pays for: at once from what this process leases of it, or in one round trip,
    /// shared with everything that waits. Its end is [`Ledger::settle`], as of any other.
    ///
    /// # Errors
    /// [`DrawError`]; nothing is held then.
    pub async fn draw(&self, draw: &Draw, estimate: Estimate) -> Result<Hold, DrawError> {
        let ledger = &self.inner;
        if let Some(hold) = writer::paid(ledger, draw, &estimate, ledger.clock.now()) {
            return Ok(hold);
        }
        let mut recalls = 0;
        loop {
            let (id, at) = (Uuid::now_v7(), ledger.clock.now());
            let drawn = writer::Drawn { ledger: ledger.clone(), draw: draw.clone(), estimate, id, at };
            match ledger.writer().draw(drawn).await {
                // What is missing may be leased and not needed there.
                Err(undrawn) if undrawn.leased && recalls < RECALLS => {
                    recalls += 1;
                    let recalled = ledger.recall_together(draw.allowance.id).await;
                    recalled.map_err(|error| HoldError::Database(std::sync::Arc::new(error)))?;
                }
                drawn => return drawn.map_err(|undrawn| undrawn.error),
            }
        }
    }

    /// Ends allowances and says how many were open. What is left is given back, at the latest when the
    /// last running call has ended.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn end_allowances(&self, allowances: &[Allowance]) -> sqlx::Result<u64> {
        let ended = store::allowances::end(&self.inner.pool, self.inner.clock.now(), allowances).await?;
        if ended > 0 {
            // When this is answered, nobody who is there pays from a lease any more.
            let ids: Vec<_> = allowances.iter().map(|one| one.id).collect();
            self.inner.recall(&ids, REVOCATION).await?;
        }
        Ok(ended)
    }

    /// How an allowance stands; `None` when there is none.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn allowance(&self, allowance: Allowance) -> sqlx::Result<Option<AllowanceState>> {
        // What this process has not written down yet belongs to it.
        if let Some(round) = self.inner.leases.settle(allowance) {
            self.unbooked(round).await;
        }
        store::allowances::state(&self.inner.pool, allowance).await
    }

    /// Ends what has expired or belongs to a deleted organization, and forgets what was settled [`KEPT_FOR`] ago.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn sweep_allowances(&self) -> sqlx::Result<()> {
        let now = self.inner.clock.now();
        loop {
            let expired = store::allowances::expired(&self.inner.pool, now, AT_ONCE).await?;
            if expired.is_empty() {
                break;
            }
            self.end_allowances(&expired).await?;
            tracing::info!(
                event = "usage.allowances_expired",
                allowances = expired.len(),
                "ended allowances that had expired or whose organization is gone"
            );
        }
        while store::allowances::forget(&self.inner.pool, now - KEPT_FOR, AT_ONCE).await? > 0 {}
        Ok(())
    }
}
