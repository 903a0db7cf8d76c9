//! How wrong passwords are slowed down (spec 30, 3.3).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// Most steps of a schedule.
const MAX_STEPS: usize = 10;
/// Longest block, in milliseconds: thirty days.
const MAX_BLOCK_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// The policy `login_policy`. The identity room reads it, for all organizations of a person together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoginRules {
    /// Whether wrong passwords lead to blocks.
    pub enabled: bool,
    /// The failure that starts the first block, 1 to 50.
    pub max_attempts_before_lockout: u32,
    /// The length of the first, second, … block in milliseconds; the last entry repeats.
    pub backoff_schedule: Vec<u64>,
}

impl Default for LoginRules {
    fn default() -> Self {
        Self { enabled: true, max_attempts_before_lockout: 5, backoff_schedule: vec![1_000, 10_000, 60_000, 600_000] }
    }
}

impl Policy for LoginRules {
    fn check(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        if !(1..=50).contains(&self.max_attempts_before_lockout) {
            issues.push(Issue::new("maxAttemptsBeforeLockout", "must be an integer between 1 and 50"));
        }
        if !(1..=MAX_STEPS).contains(&self.backoff_schedule.len()) {
            issues.push(Issue::new("backoffSchedule", format!("must have 1 to {MAX_STEPS} entries")));
        }
        let long = self.backoff_schedule.iter().position(|block| *block > MAX_BLOCK_MS);
        issues.extend(long.map(|at| {
            Issue::new(format!("backoffSchedule.{at}"), format!("must be at most {MAX_BLOCK_MS} milliseconds"))
        }));
        issues
    }
}

impl LoginRules {
    /// What is at least as strict as both: the fewest attempts and, step by step, the longest block (LCK-6).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.enabled, other.enabled) {
            (true, false) => return self,
            (false, _) => return other,
            (true, true) => {}
        }
        let step = |rules: &Self, at: usize| {
            rules.backoff_schedule.get(at).or(rules.backoff_schedule.last()).copied().unwrap_or_default()
        };
        let steps = self.backoff_schedule.len().max(other.backoff_schedule.len());
        Self {
            enabled: true,
            max_attempts_before_lockout: self.max_attempts_before_lockout.min(other.max_attempts_before_lockout),
            backoff_schedule: (0..steps).map(|at| step(&self, at).max(step(&other, at))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules() -> impl Strategy<Value = LoginRules> {
        (any::<bool>(), 1u32..=50, prop::collection::vec(0u64..100_000, 1..=10)).prop_map(
            |(enabled, max_attempts_before_lockout, backoff_schedule)| LoginRules {
                enabled,
                max_attempts_before_lockout,
                backoff_schedule,
            },
        )
    }

    proptest! {
        /// Of two organizations neither can loosen what the other lays down, in whatever order they are asked.
        #[test]
        fn together_they_are_as_strict_as_each(a in rules(), b in rules()) {
            let both = a.clone().and(b.clone());
            prop_assert!(both.check().is_empty());
            let swapped = b.clone().and(a.clone());
            prop_assert_eq!(both.enabled, swapped.enabled);
            for one in [a, b].iter().filter(|one| one.enabled) {
                prop_assert_eq!(&both, &swapped);
                prop_assert!(both.enabled && both.max_attempts_before_lockout <= one.max_attempts_before_lockout);
                for at in 0..12 {
                    let block = |rules: &LoginRules| *rules.backoff_schedule.get(at).or(rules.backoff_schedule.last()).unwrap();
                    prop_assert!(block(&both) >= block(one));
                }
            }
        }
    }
}
