//! What was used, for the pages of administrators (MOD-103).
//!
//! It reads the daily sums alone: the rows of an organization between two days, once for the totals
//! and once for the groups.

use chrono::NaiveDate;
use tale_core::ids::{ApiKeyId, OrgId, UserId};
use tale_core::problem::Problem;

use super::{Ledger, store};

/// Most groups of a page; the largest come first.
pub const MAX_GROUPS: usize = 500;

/// Most days of one report: a year and a day.
pub const MAX_DAYS: i64 = 366;

/// What a report is broken down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// By day.
    Day,
    /// By week, named by its Monday.
    Week,
    /// By month, named by its first day.
    Month,
    /// By `provider/model`.
    Model,
    /// By assistant or kind of work ([`super::source`]).
    Agent,
    /// By person.
    Person,
    /// By API key.
    Key,
}

impl GroupBy {
    /// Whether the groups are a course of time.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month)
    }
}

/// Which use a report is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    /// Only this assistant or kind of work.
    pub agent: Option<String>,
    /// Only this `provider/model`.
    pub model: Option<String>,
    /// Only this person.
    pub person: Option<UserId>,
    /// Only this API key.
    pub key: Option<ApiKeyId>,
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct Used {
    /// Calls.
    pub requests: i64,
    /// Tokens of requests.
    pub input_tokens: i64,
    /// Tokens of answers.
    pub output_tokens: i64,
    /// The part of `input_tokens` that came from caches.
    pub cached_tokens: i64,
    /// Seconds of recordings.
    pub units: i64,
    /// What it cost.
    pub cost_micro_usd: i64,
    /// People who used something.
    pub active_users: i64,
}

/// One group of a report.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Group {
    /// The day, the model, the assistant, or the id of the person or key; none = without.
    pub key: Option<String>,
    /// The name of the person or key, while there is one.
    pub name: Option<String>,
    /// What was used.
    #[sqlx(flatten)]
    pub used: Used,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Everything together.
    pub totals: Used,
    /// The groups: a course of time in its order, others the dearest first. Empty groups are left out.
    pub groups: Vec<Group>,
    /// Whether there are more groups than were asked for.
    pub truncated: bool,
}

impl Ledger {
    /// What an organization used, in at most `most` groups.
    ///
    /// # Errors
    /// `INVALID_QUERY` for days in the wrong order or more than [`MAX_DAYS`] of them; the database's trouble.
    pub async fn report(&self, org: OrgId, scope: &Scope, group_by: GroupBy, most: usize) -> Result<Report, Problem> {
        if scope.to < scope.from {
            return Err(Problem::invalid_query("to", "must not be before `from`"));
        }
        if (scope.to - scope.from).num_days() >= MAX_DAYS {
            return Err(Problem::invalid_query("from", &format!("must be less than {MAX_DAYS} days before `to`")));
        }
        let (totals, mut groups) = store::report(&self.inner.pool, org, scope, group_by, most + 1).await?;
        let truncated = groups.len() > most;
        groups.truncate(most);
        Ok(Report { totals, groups, truncated })
    }
}
