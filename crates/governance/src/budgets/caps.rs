//! Which limits bind a piece of work, what is left of them, and which of them a refusal names.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tale_core::ids::{ApiKeyId, TeamId, UserId};
use tale_core::problem::{Code, Problem};

use super::{BudgetRule, BudgetRules, Cost, MICRO_USD_PER_CENT, Period, Scope};

/// What is counted. The order is the order in which a refusal names them (BUD-13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Tokens of requests and answers.
    #[serde(rename = "TOKEN_LIMIT")]
    Tokens,
    /// Micro-US-dollars.
    #[serde(rename = "COST_LIMIT")]
    Cost,
    /// Requests.
    #[serde(rename = "REQUEST_LIMIT")]
    Requests,
}

impl Kind {
    /// Every kind, in the order in which a refusal names them.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Cost, Self::Requests];

    /// The word of a refusal.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Tokens => "TOKEN_LIMIT",
            Self::Cost => "COST_LIMIT",
            Self::Requests => "REQUEST_LIMIT",
        }
    }

    /// An amount in the unit of the wire: tokens, requests or cents.
    #[must_use]
    pub fn on_the_wire(self, amount: u64) -> serde_json::Value {
        if self == Self::Cost { json!(Cost(amount)) } else { amount.into() }
    }

    /// An amount with its unit, for a sentence.
    #[must_use]
    pub fn words(self, amount: u64) -> String {
        let many = |one: &str| format!("{amount} {one}{}", if amount == 1 { "" } else { "s" });
        match self {
            Self::Tokens => many("token"),
            Self::Cost => {
                let cents = amount.div_ceil(MICRO_USD_PER_CENT);
                format!("${}.{:02}", cents / 100, cents % 100)
            }
            Self::Requests => many("request"),
        }
    }
}

/// An amount of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Amounts {
    /// Tokens.
    pub tokens: u64,
    /// Micro-US-dollars.
    pub cost_micro_usd: u64,
    /// Requests.
    pub requests: u64,
}

impl Amounts {
    /// The amount of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Tokens => self.tokens,
            Kind::Cost => self.cost_micro_usd,
            Kind::Requests => self.requests,
        }
    }
}

/// Whose use a limit measures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Holder {
    /// All of the organization.
    Org,
    /// One person.
    User(UserId),
    /// One API key.
    ApiKey(ApiKeyId),
    /// The present members of a team and its keys together. Nothing is kept under its name: it is a sum over them.
    Team(TeamId),
}

impl Holder {
    /// The name under which its use is kept. Distinct within an organization.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Org => "org".to_owned(),
            Self::User(id) => format!("user:{id}"),
            Self::ApiKey(id) => format!("key:{id}"),
            Self::Team(id) => format!("team:{id}"),
        }
    }

    /// Whether it measures the use of several people.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Org | Self::Team(_))
    }

    /// The team whose members it measures together.
    #[must_use]
    pub fn team(&self) -> Option<TeamId> {
        match self {
            Self::Team(id) => Some(*id),
            _ => None,
        }
    }
}

/// For whom and with what a piece of work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject<'a> {
    /// The person, when there is one.
    pub user: Option<UserId>,
    /// The person's role.
    pub role: Option<&'a str>,
    /// The person's teams, as far as rules name them.
    pub teams: &'a [TeamId],
    /// The API key that the request came with.
    pub api_key: Option<ApiKeyId>,
    /// The team that this key belongs to, as far as rules name it.
    pub key_team: Option<TeamId>,
}

impl Subject<'_> {
    /// Under whose names the use of the work is kept.
    #[must_use]
    pub fn holders(&self) -> Vec<Holder> {
        let mut holders = vec![Holder::Org];
        holders.extend(self.user.map(Holder::User));
        holders.extend(self.api_key.map(Holder::ApiKey));
        holders
    }
}

/// One limit of one kind that binds a piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// Whose use it measures.
    pub holder: Holder,
    /// The scope of the rule that set it.
    pub scope: Scope,
    /// The rule's target: the role, the person, the key.
    pub scope_id: Option<String>,
    /// The rule, by its place among [`BudgetRules::rules`].
    pub rule: usize,
    /// Its period.
    pub period: Period,
    /// What it counts.
    pub kind: Kind,
    /// The most of it within the period.
    pub limit: u64,
    /// From which part of the limit on to warn.
    pub warn_percent: Option<u8>,
}

impl Cap {
    /// Whose limit it is and how much it is, as the subject of a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let whose = match self.scope {
            Scope::Team if matches!(self.holder, Holder::Team(_)) => "Your team's",
            Scope::User | Scope::Team | Scope::Role | Scope::Default => "Your",
            Scope::Org => "The organization's",
            Scope::ApiKey => "The API key's",
            Scope::Project => "The project's",
        };
        format!("{whose} {} limit of {}", self.period.text(), self.kind.words(self.limit))
    }

    /// Whether `used` has reached the threshold of a warning, but not yet the limit.
    #[must_use]
    pub fn warns(&self, used: u64) -> bool {
        self.warn_percent.is_some_and(|percent| {
            used < self.limit && u128::from(used) * 100 >= u128::from(self.limit) * u128::from(percent)
        })
    }

    /// Whether something is used and that much of it that a warning is due, also when nothing is left any more.
    #[must_use]
    pub fn passed(&self, used: u64) -> bool {
        used > 0 && (self.warns(used) || (self.warn_percent.is_some() && used >= self.limit))
    }

    /// How much of the limit `used` is, in whole percent.
    #[must_use]
    pub fn percent(&self, used: u64) -> u64 {
        u64::try_from(u128::from(used) * 100 / u128::from(self.limit.max(1))).unwrap_or(u64::MAX)
    }
}

/// The scopes of personal rules, the most specific first.
const PERSONAL: [Scope; 4] = [Scope::User, Scope::Team, Scope::Role, Scope::Default];

impl BudgetRules {
    /// The limits that bind work for `subject`, one per holder, period and kind.
    ///
    /// A personal limit of each kind comes from the most specific rules that set that kind, and
    /// from all of them when several do (BUD-1); limits of the organization, of each team as a whole (BUD-3), that of a
    /// key's team among them (KEY-14), and of the key apply on top. Of equal limits for one holder and period the strictest counts.
    #[must_use]
    pub fn caps(&self, subject: &Subject<'_>) -> Vec<Cap> {
        if !self.enabled {
            return Vec::new();
        }
        let mut caps = Vec::new();
        for kind in Kind::ALL {
            self.collect(&mut caps, Scope::Org, kind, &Holder::Org, |target| target.is_none());
            if let Some(user) = subject.user {
                let id = user.to_string();
                let holder = Holder::User(user);
                for scope in PERSONAL {
                    let found = self.collect(&mut caps, scope, kind, &holder, |target| match scope {
                        Scope::User => target == Some(&id),
                        Scope::Team => subject.teams.iter().any(|team| target == Some(&team.to_string())),
                        Scope::Role => target.is_some() && target == subject.role,
                        _ => target.is_none(),
                    });
                    if found {
                        break;
                    }
                }
            }
            for team in subject.teams.iter().chain(&subject.key_team) {
                let id = team.to_string();
                self.collect(&mut caps, Scope::Team, kind, &Holder::Team(*team), |target| target == Some(&id));
            }
            if let Some(key) = subject.api_key {
                let id = key.to_string();
                self.collect(&mut caps, Scope::ApiKey, kind, &Holder::ApiKey(key), |target| target == Some(&id));
            }
        }
        caps
    }

    /// Whether any rule that applies is about a role.
    #[must_use]
    pub fn name_roles(&self) -> bool {
        self.enabled && self.rules.iter().any(|rule| rule.scope == Scope::Role)
    }

    /// The teams that rules are about.
    pub fn teams(&self) -> impl Iterator<Item = TeamId> {
        let rules = if self.enabled { self.rules.as_slice() } else { &[] };
        rules.iter().filter(|rule| rule.scope == Scope::Team).filter_map(|rule| rule.target()?.parse().ok())
    }

    /// Adds the limits of `kind` from the rules of one scope that are `about` the right target, the strictest of each
    /// period; whether there are any.
    fn collect(
        &self,
        caps: &mut Vec<Cap>,
        scope: Scope,
        kind: Kind,
        holder: &Holder,
        about: impl Fn(Option<&str>) -> bool,
    ) -> bool {
        let before = caps.len();
        let applies =
            |rule: &BudgetRule| rule.scope == scope && about(rule.target().map(str::to_ascii_lowercase).as_deref());
        for (at, rule) in self.rules.iter().enumerate().filter(|(_, rule)| applies(rule)) {
            let Some(limit) = rule.limit(kind) else { continue };
            let cap = Cap {
                holder: holder.clone(),
                scope,
                scope_id: rule.target().map(str::to_ascii_lowercase),
                rule: at,
                period: rule.period,
                kind,
                limit,
                warn_percent: rule.warning_threshold_percent,
            };
            match caps[before..].iter_mut().find(|held| held.period == rule.period) {
                Some(held) if held.limit <= limit => {}
                Some(held) => *held = cap,
                None => caps.push(cap),
            }
        }
        caps.len() > before
    }
}

/// What is left of each kind under all limits together; `None` = that kind has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Micro-US-dollars.
    pub cost_micro_usd: Option<u64>,
    /// Requests.
    pub requests: Option<u64>,
}

impl Room {
    /// What is left under `caps`, each with what is used and held of it.
    #[must_use]
    pub fn under<'a>(caps: impl IntoIterator<Item = (&'a Cap, u64)>) -> Self {
        let mut room = Self::default();
        for (cap, taken) in caps {
            let left = cap.limit.saturating_sub(taken);
            let slot = match cap.kind {
                Kind::Tokens => &mut room.tokens,
                Kind::Cost => &mut room.cost_micro_usd,
                Kind::Requests => &mut room.requests,
            };
            *slot = Some(slot.map_or(left, |held| held.min(left)));
        }
        room
    }

    /// What of `wanted` fits when at least `needed` must; `None` when that does not.
    #[must_use]
    pub fn grant(&self, needed: &Amounts, wanted: &Amounts) -> Option<Amounts> {
        let fit = |room: Option<u64>, needed: u64, wanted: u64| match room {
            None => Some(wanted),
            Some(room) => (needed <= room).then(|| wanted.max(needed).min(room)),
        };
        Some(Amounts {
            tokens: fit(self.tokens, needed.tokens, wanted.tokens)?,
            cost_micro_usd: fit(self.cost_micro_usd, needed.cost_micro_usd, wanted.cost_micro_usd)?,
            requests: fit(self.requests, needed.requests, wanted.requests)?,
        })
    }
}

/// Why work was not admitted: one limit, the first in the order of [`Kind`], and of those of one
/// kind the one that lasts longest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Refusal {
    /// The limit.
    pub cap: Cap,
    /// What is used of it, running work included.
    pub used: u64,
    /// When it begins anew.
    pub resets_at: DateTime<Utc>,
    /// How long that is from the refusal.
    pub retry_after: Duration,
    /// What all limits together still admit.
    pub room: Room,
}

impl Refusal {
    /// The refusal of work that needs `needed` at `now`, under `caps` with what is used and held of
    /// each; `None` when it fits.
    #[must_use]
    pub fn of(caps: &[(Cap, u64)], needed: &Amounts, now: DateTime<Utc>) -> Option<Self> {
        let day = now.date_naive();
        let short = |(cap, taken): &&(Cap, u64)| taken.saturating_add(needed.of(cap.kind)) > cap.limit;
        let (cap, used) = caps.iter().filter(short).min_by_key(|(cap, _)| (cap.kind, std::cmp::Reverse(cap.period)))?;
        let resets_at = cap.period.resets_at(day);
        Some(Self {
            cap: cap.clone(),
            used: *used,
            resets_at,
            retry_after: seconds_until(resets_at, now),
            room: Room::under(caps.iter().map(|(cap, taken)| (cap, *taken))),
        })
    }

    /// Whose limit it is, which, how much of it is used, and when it begins anew.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "{} leaves no room for this (used so far: {}). It resets at {}.",
            self.cap.words(),
            self.cap.kind.words(self.used),
            moment(self.resets_at)
        )
    }

    /// The structured part of a refusal, on every door.
    #[must_use]
    pub fn data(&self) -> serde_json::Value {
        json!({
            "code": self.cap.kind.text(),
            "scope": self.cap.scope.text(),
            "shared": self.cap.holder.is_shared(),
            "period": self.cap.period.text(),
            "used": self.cap.kind.on_the_wire(self.used),
            "limit": self.cap.kind.on_the_wire(self.cap.limit),
            "resetsAt": self.resets_at.timestamp_millis(),
        })
    }
}

/// A time for a sentence.
#[must_use]
pub fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// Whole seconds, at least one.
fn seconds_until(at: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    let ms = u64::try_from((at - now).num_milliseconds()).unwrap_or(0);
    Duration::from_secs(ms.div_ceil(1_000).max(1))
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::new(Code::BudgetExceeded, refusal.sentence()).with_data(refusal.data()).retry_after(refusal.retry_after)
    }
}

/// The first and the last day whose use counts toward a limit of `period` on `day`.
#[must_use]
pub fn days(period: Period, day: NaiveDate) -> (NaiveDate, NaiveDate) {
    (period.first_day(day), period.next_first_day(day).pred_opt().unwrap_or(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(scope: Scope, target: Option<&str>, period: Period, limits: (Option<u64>, Option<u64>)) -> BudgetRule {
        let (max_tokens, max_requests) = limits;
        let target = target.map(str::to_owned);
        let (scope_id, api_key_id) = if scope == Scope::ApiKey { (None, target) } else { (target, None) };
        BudgetRule {
            scope,
            scope_id,
            api_key_id,
            period,
            max_tokens,
            max_cost: None,
            max_requests,
            warning_threshold_percent: Some(80),
        }
    }

    fn short(caps: &[Cap]) -> Vec<(Scope, Kind, u64)> {
        caps.iter().map(|cap| (cap.scope, cap.kind, cap.limit)).collect()
    }

    #[test]
    fn each_kind_of_a_personal_limit_comes_from_the_most_specific_rule_that_sets_it() {
        let (user, key) = (UserId::new(), ApiKeyId::new());
        let id = user.to_string();
        let rules = BudgetRules {
            enabled: true,
            rules: vec![
                rule(Scope::Default, None, Period::Monthly, (Some(100), Some(10))),
                rule(Scope::Role, Some("member"), Period::Monthly, (Some(500), None)),
                rule(Scope::User, Some(&id), Period::Monthly, (None, Some(3))),
                rule(Scope::User, Some(&UserId::new().to_string()), Period::Monthly, (Some(1), Some(1))),
                rule(Scope::Org, None, Period::Daily, (Some(50), None)),
                rule(Scope::Org, None, Period::Daily, (Some(40), None)),
                rule(Scope::ApiKey, Some(&key.to_string()), Period::Daily, (None, Some(7))),
            ],
        };
        let member = Subject { user: Some(user), role: Some("member"), ..Subject::default() };
        let caps = rules.caps(&member);
        assert_eq!(
            short(&caps),
            [(Scope::Org, Kind::Tokens, 40), (Scope::Role, Kind::Tokens, 500), (Scope::User, Kind::Requests, 3)]
        );
        // The key's limit binds beside the holder's, and work without a person knows no personal limit.
        let keyed = Subject { api_key: Some(key), ..member };
        assert!(short(&rules.caps(&keyed)).contains(&(Scope::ApiKey, Kind::Requests, 7)));
        let nobody = Subject::default();
        assert_eq!(short(&rules.caps(&nobody)), [(Scope::Org, Kind::Tokens, 40)]);
        assert_eq!(BudgetRules { enabled: false, ..rules }.caps(&member), []);
    }

    #[test]
    fn of_several_teams_the_strictest_limit_is_personal_and_each_binds_its_members_together() {
        let (user, sales, ops) = (UserId::new(), TeamId::new(), TeamId::new());
        let [sales_id, ops_id] = [sales, ops].map(|team| team.to_string());
        let rules = BudgetRules {
            enabled: true,
            rules: vec![
                rule(Scope::Default, None, Period::Monthly, (Some(1), Some(1))),
                rule(Scope::Team, Some(&sales_id), Period::Monthly, (Some(100), None)),
                rule(Scope::Team, Some(&ops_id), Period::Monthly, (Some(70), None)),
                rule(Scope::Team, Some(&TeamId::new().to_string()), Period::Monthly, (Some(2), Some(2))),
            ],
        };
        let teams = [sales, ops];
        let member = Subject { user: Some(user), role: Some("member"), teams: &teams, ..Subject::default() };
        let caps = rules.caps(&member);
        let found: Vec<(Holder, Kind, u64)> =
            caps.iter().map(|cap| (cap.holder.clone(), cap.kind, cap.limit)).collect();
        assert_eq!(
            found,
            [
                (Holder::User(user), Kind::Tokens, 70),
                (Holder::Team(sales), Kind::Tokens, 100),
                (Holder::Team(ops), Kind::Tokens, 70),
                (Holder::User(user), Kind::Requests, 1),
            ]
        );
        assert_eq!(caps[0].scope_id, Some(ops_id));
        assert_eq!(caps.iter().map(|cap| cap.rule).collect::<Vec<_>>(), [2, 1, 2, 0]);
        assert_eq!(caps[1].words(), "Your team's monthly limit of 100 tokens");

        // A key of a team has no person, so of the team's rules only what binds all together is about it.
        let key = Subject { api_key: Some(ApiKeyId::new()), key_team: Some(sales), ..Subject::default() };
        let caps: Vec<Holder> = rules.caps(&key).into_iter().map(|cap| cap.holder).collect();
        assert_eq!(caps, [Holder::Team(sales)]);
    }

    #[test]
    fn a_refusal_names_tokens_before_cost_before_requests_and_of_one_kind_the_limit_that_lasts() {
        let now = "2026-11-30T23:59:30.500Z".parse::<DateTime<Utc>>().unwrap();
        let cap = |kind, period, limit| Cap {
            holder: Holder::Org,
            scope: Scope::Org,
            scope_id: None,
            rule: 0,
            period,
            kind,
            limit,
            warn_percent: None,
        };
        let caps = [
            (cap(Kind::Requests, Period::Daily, 1), 1),
            (cap(Kind::Cost, Period::Daily, 10_000), 5_000),
            (cap(Kind::Tokens, Period::Daily, 10), 10),
            (cap(Kind::Tokens, Period::Weekly, 20), 19),
            (cap(Kind::Tokens, Period::Monthly, 90), 50),
        ];
        let needed = Amounts { tokens: 5, cost_micro_usd: 6_000, requests: 1 };
        let refusal = Refusal::of(&caps, &needed, now).unwrap();
        assert_eq!((refusal.cap.kind, refusal.cap.period), (Kind::Tokens, Period::Weekly));
        assert_eq!(refusal.resets_at.to_rfc3339(), "2026-12-07T00:00:00+00:00");
        let refusal = Refusal::of(&caps[..2], &needed, now).unwrap();
        assert_eq!((refusal.cap.kind, refusal.used, refusal.retry_after), (Kind::Cost, 5_000, Duration::from_secs(30)));
        assert_eq!(refusal.room, Room { tokens: None, cost_micro_usd: Some(5_000), requests: Some(0) });
        let problem = Problem::from(refusal);
        assert_eq!(problem.status(), 429);
        assert_eq!(
            problem.message,
            "The organization's daily limit of $0.01 leaves no room for this (used so far: $0.01). It resets at 2026-12-01 00:00 UTC."
        );
        assert_eq!(Refusal::of(&caps[4..], &needed, now), None);
    }

    #[test]
    fn warnings_begin_at_their_part_of_the_limit_and_end_at_the_limit() {
        let cap = Cap {
            holder: Holder::Org,
            scope: Scope::Org,
            scope_id: None,
            rule: 0,
            period: Period::Daily,
            kind: Kind::Tokens,
            limit: 10,
            warn_percent: Some(80),
        };
        assert_eq!([7, 8, 9, 10].map(|used| cap.warns(used)), [false, true, true, false]);
        assert_eq!([0, 7, 8, 10, 11].map(|used| cap.passed(used)), [false, false, true, true, true]);
        let at_once = Cap { warn_percent: Some(0), ..cap.clone() };
        assert_eq!([0, 1].map(|used| at_once.passed(used)), [false, true], "of nothing there is nothing to say");
        assert_eq!([0, 8, 11].map(|used| cap.percent(used)), [0, 80, 110]);
        assert!(!Cap { warn_percent: None, ..cap.clone() }.passed(11));
        assert!(!Cap { warn_percent: None, ..cap }.warns(9));
    }
}
