//! How long records are kept (spec 95, section 9), as far as this release forgets any: records of usage.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tale_core::problem::Issue;
use tale_core::{Code, Problem};

use super::Policy;

/// Shortest and longest time that records of usage may be kept for, in days.
const USAGE_DAYS: (i64, i64) = (30, 3_650);
/// Shortest and longest grace, in days.
const GRACE_DAYS: (i64, i64) = (0, 90);

/// The policy `retention_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetentionPolicy {
    /// Whether records of usage are ever deleted.
    pub usage_ledger_enabled: bool,
    /// For how many days they are kept then; 30 to 3,650.
    pub usage_ledger_days: i64,
    /// How many days more whatever is to be deleted stays; 0 to 90.
    pub deletion_grace_days: i64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { usage_ledger_enabled: false, usage_ledger_days: 365, deletion_grace_days: 0 }
    }
}

/// A period of the policy and what it may be.
struct Period {
    category: &'static str,
    field: &'static str,
    value: i64,
    bounds: (i64, i64),
}

impl RetentionPolicy {
    /// After how many days a record of usage is deleted; `None` = never.
    #[must_use]
    pub fn usage_days(&self) -> Option<u32> {
        let days = u32::try_from(self.usage_ledger_days.saturating_add(self.deletion_grace_days)).ok()?;
        self.usage_ledger_enabled.then_some(days)
    }

    fn periods(&self) -> [Period; 2] {
        [
            Period {
                category: "usageLedger",
                field: "usageLedgerDays",
                value: self.usage_ledger_days,
                bounds: USAGE_DAYS,
            },
            Period {
                category: "deletionGrace",
                field: "deletionGraceDays",
                value: self.deletion_grace_days,
                bounds: GRACE_DAYS,
            },
        ]
    }
}

impl Policy for RetentionPolicy {
    fn check(&self) -> Vec<Issue> {
        let wrong = |period: &Period| !(period.bounds.0..=period.bounds.1).contains(&period.value);
        let words = |period: Period| {
            let (least, most) = period.bounds;
            Issue::new(period.field, format!("must be a whole number from {least} to {most}"))
        };
        self.periods().into_iter().filter(wrong).map(words).collect()
    }

    /// `RETENTION_BELOW_FLOOR` or `RETENTION_EXCEEDS_CEILING` for the first period out of its bounds (RET-5).
    fn refusal(&self) -> Option<Problem> {
        self.periods().into_iter().find_map(|period| {
            let Period { category, field, value, bounds: (least, most) } = period;
            let (code, bound, words) = match value {
                short if short < least => (Code::RetentionBelowFloor, least, "at least"),
                long if long > most => (Code::RetentionExceedsCeiling, most, "at most"),
                _ => return None,
            };
            let sentence = format!("`{field}` must be {words} {bound} days. Nothing was saved.");
            Some(Problem::new(code, sentence).with_data(json!({
                "category": category, "field": field, "value": value, "bound": bound, "unit": "days", "source": "platform",
            })))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_out_of_its_bounds_is_refused_with_the_bound_and_where_it_comes_from() {
        let with = |days: i64, grace: i64| RetentionPolicy {
            usage_ledger_days: days,
            deletion_grace_days: grace,
            ..RetentionPolicy::default()
        };
        let refused = |policy: RetentionPolicy| {
            let problem = policy.refusal()?;
            assert!(!policy.check().is_empty(), "a file with it would be taken over");
            let data = problem.data.unwrap();
            Some((problem.code, data["field"].as_str().unwrap().to_owned(), data["bound"].as_i64().unwrap()))
        };
        let days = "usageLedgerDays".to_owned();
        let grace = "deletionGraceDays".to_owned();
        for (policy, expected) in [
            (with(29, 0), (Code::RetentionBelowFloor, days.clone(), 30)),
            (with(-1, 0), (Code::RetentionBelowFloor, days.clone(), 30)),
            (with(i64::MAX, 0), (Code::RetentionExceedsCeiling, days, 3_650)),
            (with(30, -1), (Code::RetentionBelowFloor, grace.clone(), 0)),
            (with(30, 91), (Code::RetentionExceedsCeiling, grace, 90)),
        ] {
            assert_eq!(refused(policy), Some(expected));
        }
        for fits in [with(30, 0), with(3_650, 90)] {
            assert!(fits.refusal().is_none() && fits.check().is_empty());
        }
        assert_eq!(with(30, 5).usage_days(), None);
        assert_eq!(RetentionPolicy { usage_ledger_enabled: true, ..with(30, 5) }.usage_days(), Some(35));
    }
}
