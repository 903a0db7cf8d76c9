//! Warnings of limits that are nearly used up (MOD-94, BUD-17).
//!
//! Once a minute a worker looks at the organizations whose rules have a threshold: whose use has passed it is told, once
//! for each rule and period. The path of a call knows nothing of it. A row whose key is the holder, the rule and the
//! period is written in the transaction of the notification, so that whatever processes look at the same time there is
//! one; the rule is named by what it says, so that a changed one warns anew and one that was switched off and on does not.
//!
//! Who is told: of a person's own limit that person; of a key's whoever it acts as; of everything that several people
//! share, and of keys without a person, the owners and admins.
//!
//! Cost: two statements a minute where no rule has a threshold, one more for each organization whose use and rules stayed as
//! they were; otherwise one that sums the counters of the longest period by holder, the list of members and of given
//! warnings, and one for each team that a rule names.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tale_core::ids::{ApiKeyId, OrgId, TeamId, UserId};
use tale_core::problem::Problem;
use tale_governance::budgets::caps::days;
use tale_governance::budgets::{Amounts, BudgetRule, BudgetRules, Cap, Holder, Period, Scope, Subject};
use tale_jobs::{Job, JobError, Lease};
use tale_notices::{Kind, News};

use super::store::warnings as store;
use super::{Ledger, store as counters};

/// How often somebody looks.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// How long an organization whose use and rules stay as they are is passed over: who is in a team, and with which role,
/// changes what limits measure as well.
const LOOK_ANYWAY: chrono::TimeDelta = chrono::TimeDelta::minutes(15);
/// How long given warnings are remembered: longer than any period.
const REMEMBERED: Days = Days::new(62);

/// Looks whether anybody is to be warned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WarnOfLimits {}

/// What a worker needs for it.
pub(crate) struct Warner {
    ledger: Ledger,
    seen: Mutex<HashMap<OrgId, Seen>>,
}

impl Warner {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, seen: Mutex::default() }
    }
}

/// What an organization was like when nobody had to be warned any more.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    at: DateTime<Utc>,
    day: NaiveDate,
    used: Amounts,
    rules: Arc<BudgetRules>,
}

impl Job for WarnOfLimits {
    const NAME: &'static str = "models.warn_of_limits";
    const MAX_ATTEMPTS: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(10 * 60);
    type Context = Warner;

    async fn run(&self, warner: &Warner, _lease: &Lease) -> Result<(), JobError> {
        warner.look().await?;
        Ok(())
    }
}

impl Warner {
    /// One look at every organization. An organization that fails holds up no other and is looked at again by the next.
    async fn look(&self) -> Result<u64, Problem> {
        let inner = &self.ledger.inner;
        let day = inner.clock.now().date_naive();
        let mut conn = inner.pool.acquire().await?;
        let orgs = store::organizations(&mut *conn).await?;
        store::forget(&mut *conn, day - REMEMBERED).await?;
        drop(conn);
        let gone = |org: &OrgId| orgs.binary_search(org).is_err();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|org, _| !gone(org));
        let mut warned = 0;
        for org in orgs {
            match self.look_at(org).await {
                Ok(count) => warned += count,
                Err(problem) => {
                    tracing::warn!(%org, %problem, "the usage limits of an organization could not be looked at, trying again in a minute");
                }
            }
        }
        Ok(warned)
    }

    async fn look_at(&self, org: OrgId) -> Result<u64, Problem> {
        let inner = &self.ledger.inner;
        let (rules, now) = (self.ledger.rules(org).await?, inner.clock.now());
        let day = now.date_naive();
        // What is booked counts for the day of its admission: today, or the day that ended meanwhile.
        let recent = (day.pred_opt().unwrap_or(day), day);
        let used = counters::used(&mut *inner.pool.acquire().await?, org, &Holder::Org, recent).await?;
        let present = Seen { at: now, day, used, rules };
        let before = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&org).cloned();
        if before.is_some_and(|before| now < before.at + LOOK_ANYWAY && Seen { at: now, ..before } == present) {
            return Ok(0);
        }
        let warned = self.ledger.warn(org).await?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(org, present);
        Ok(warned)
    }
}

/// What has to be told of one holder, rule and period.
struct Due {
    cap: Cap,
    used: u64,
}

/// What holders have used within the running periods.
struct Use(HashMap<String, [Amounts; 3]>);

impl Use {
    fn of(&self, holder: &Holder, period: Period) -> Amounts {
        self.0.get(&holder.key()).map_or_else(Amounts::default, |used| used[period as usize])
    }
}

/// The limits that warn, with what is used of them.
#[derive(Default)]
struct Passed(HashMap<(Holder, usize, Period), Due>);

impl Passed {
    /// Of several kinds of one rule the one of which most is used is told.
    fn look(&mut self, cap: Cap, used: u64) {
        if !cap.passed(used) {
            return;
        }
        let key = (cap.holder.clone(), cap.rule, cap.period);
        match self.0.get(&key) {
            Some(held) if held.cap.percent(held.used) >= cap.percent(used) => {}
            _ => {
                self.0.insert(key, Due { cap, used });
            }
        }
    }
}

impl Ledger {
    /// Tells everybody in an organization who has passed the threshold of a limit and was not told yet. Returns how
    /// many warnings there were.
    ///
    /// # Errors
    /// When the rules or the sums cannot be read, or the warning not be written.
    pub async fn warn(&self, org: OrgId) -> Result<u64, Problem> {
        let rules = self.rules(org).await?;
        if !rules.enabled || rules.rules.iter().all(|rule| rule.warning_threshold_percent.is_none()) {
            return Ok(0);
        }
        let now = self.inner.clock.now();
        let day = now.date_naive();
        let due = self.due(org, &rules, day).await?;
        let mut conn = self.inner.pool.acquire().await?;
        let first = Period::Monthly.first_day(day).min(Period::Weekly.first_day(day));
        let told: HashSet<(String, Vec<u8>, NaiveDate)> =
            store::told(&mut *conn, org, first).await?.into_iter().collect();
        drop(conn);
        let mut warned = 0;
        for ((holder, rule, period), due) in due.0 {
            let Some(rule) = rules.rules.get(rule) else { continue };
            let place = (holder.key(), rule.fingerprint().to_vec(), period.first_day(day));
            if !told.contains(&place) && self.tell(org, &due, place, now).await? {
                warned += 1;
            }
        }
        Ok(warned)
    }

    /// Every limit whose threshold is passed.
    async fn due(&self, org: OrgId, rules: &BudgetRules, day: NaiveDate) -> Result<Passed, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let firsts = [Period::Daily, Period::Weekly, Period::Monthly].map(|period| period.first_day(day));
        let used = Use(store::used(&mut *conn, org, firsts, day).await?);
        let mut passed = Passed::default();
        let mut look = |cap: Cap, used: Amounts| passed.look(cap.clone(), used.of(cap.kind));
        let own = |cap: &Cap, holder: &Holder| cap.warn_percent.is_some() && cap.holder == *holder;
        for cap in rules.caps(&Subject::default()).into_iter().filter(|cap| own(cap, &Holder::Org)) {
            let amounts = used.of(&Holder::Org, cap.period);
            look(cap, amounts);
        }
        let keys: HashSet<ApiKeyId> = rules
            .rules
            .iter()
            .filter(|rule| rule.scope == Scope::ApiKey)
            .filter_map(|rule| rule.target()?.parse().ok())
            .collect();
        for key in keys {
            let holder = Holder::ApiKey(key);
            let subject = Subject { api_key: Some(key), ..Subject::default() };
            for cap in rules.caps(&subject).into_iter().filter(|cap| own(cap, &holder)) {
                let amounts = used.of(&holder, cap.period);
                look(cap, amounts);
            }
        }
        for team in rules.teams().collect::<HashSet<TeamId>>() {
            let holder = Holder::Team(team);
            let subject = Subject { key_team: Some(team), ..Subject::default() };
            for cap in rules.caps(&subject).into_iter().filter(|cap| own(cap, &holder)) {
                let amounts = counters::used(&mut conn, org, &holder, days(cap.period, day)).await?;
                look(cap, amounts);
            }
        }
        let personal = |rule: &BudgetRule| !matches!(rule.scope, Scope::Org | Scope::ApiKey | Scope::Project);
        if !rules.rules.iter().any(|rule| personal(rule) && rule.warning_threshold_percent.is_some()) {
            return Ok(passed);
        }
        let members = store::members(&mut *conn, org).await?;
        drop(conn);
        for (person, role) in members {
            let holder = Holder::User(person);
            // What follows seldom waits for anything, and there may be thousands.
            tokio::task::consume_budget().await;
            if !used.0.contains_key(&holder.key()) {
                continue;
            }
            let teams = self.teams(org, Some(person), rules).await?;
            let subject = Subject { user: Some(person), role: Some(&role), teams: &teams, ..Subject::default() };
            for cap in rules.caps(&subject).into_iter().filter(|cap| own(cap, &holder)) {
                let amounts = used.of(&holder, cap.period);
                look(cap, amounts);
            }
        }
        Ok(passed)
    }

    /// Writes a warning and tells of it, unless somebody else did. Answers whether it did.
    async fn tell(
        &self,
        org: OrgId,
        due: &Due,
        (holder, rule, first): (String, Vec<u8>, NaiveDate),
        now: DateTime<Utc>,
    ) -> Result<bool, Problem> {
        let (cap, used) = (&due.cap, due.used);
        let mut tx = self.inner.pool.begin().await?;
        let (word, name, person): (&str, Option<String>, Option<UserId>) = match cap.holder {
            Holder::Org => ("organization", None, None),
            Holder::User(person) => ("person", None, Some(person)),
            Holder::Team(team) => match store::team(&mut *tx, org, team).await? {
                Some(name) => ("team", Some(name), None),
                None => return Ok(false),
            },
            // A key that was revoked uses nothing any more.
            Holder::ApiKey(key) => match store::key(&mut *tx, org, key, now).await? {
                Some((name, person)) => ("apiKey", Some(name), person),
                None => return Ok(false),
            },
        };
        if !store::note(&mut tx, org, &holder, &rule, first, now).await? {
            return Ok(false);
        }
        let kind = if person.is_some() { Kind::LimitNear } else { Kind::SharedLimitNear };
        let details = json!({
            "holder": word,
            "name": name,
            "counts": cap.kind.text(),
            "period": cap.period.text(),
            "limit": cap.kind.on_the_wire(cap.limit),
            "percent": cap.percent(used),
            "resetsOn": cap.period.next_first_day(now.date_naive()),
        });
        let news = News { org: Some(org), kind, details, at: now };
        match person {
            Some(person) => tale_notices::tell(&mut tx, person, &news).await?,
            None => tale_notices::tell_admins(&mut tx, org, None, &news).await?,
        }
        tx.commit().await?;
        tracing::info!(event = "usage.warned", %org, holder, period = cap.period.text(), counts = cap.kind.text(), "the threshold of a usage limit is passed");
        Ok(true)
    }
}
