//! The rule that slows password guessing down (LCK-2…4, 11), as a pure state machine. The database
//! runs the same step in one statement (`store::attempts`); a test compares the two.
//!
//! An attempt is charged before the password is looked at and the charge is dropped when the
//! password was right. So a burst of simultaneous guesses gets no further than guesses in a row.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tale_core::{Code, Problem};

/// After how many failures a block starts, and how long blocks last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginPolicy {
    /// The failure that starts the first block.
    pub max_attempts: u32,
    /// The length of the first, second, … block; the last entry repeats.
    pub backoff: Vec<Duration>,
}

impl Default for LoginPolicy {
    fn default() -> Self {
        Self { max_attempts: 5, backoff: [1_000, 10_000, 60_000, 600_000].map(Duration::from_millis).to_vec() }
    }
}

/// How much higher the threshold of the account-wide counter is (LCK-11): guesses from one network
/// block that network long before they block the person everywhere.
pub const ACCOUNT_WIDE_FACTOR: u32 = 10;

impl LoginPolicy {
    /// The policy of the counter over all networks.
    #[must_use]
    pub fn account_wide(&self) -> Self {
        Self { max_attempts: self.max_attempts.saturating_mul(ACCOUNT_WIDE_FACTOR), backoff: self.backoff.clone() }
    }

    /// The block that the `failures`-th consecutive failure starts.
    #[must_use]
    pub fn block_after(&self, failures: u32) -> Option<Duration> {
        let step = failures.checked_sub(self.max_attempts)?;
        let last = self.backoff.len().checked_sub(1)?;
        self.backoff.get(usize::try_from(step).unwrap_or(usize::MAX).min(last)).copied()
    }
}

/// The counter of consecutive failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Failures since the last success.
    pub failures: u32,
    /// Until when attempts are refused.
    pub blocked_until: Option<DateTime<Utc>>,
}

/// What became of an attempt at the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// The attempt may look at the password; it counts as failed until it succeeds. `blocked`: its
    /// failure starts a block of this length.
    Admitted {
        /// The block, when this failure starts one.
        blocked: Option<Duration>,
    },
    /// Attempts are refused for this long; the counter is unchanged.
    Refused {
        /// The time left.
        wait: Duration,
    },
}

impl Counter {
    /// Charges one attempt at `now`.
    pub fn charge(&mut self, policy: &LoginPolicy, now: DateTime<Utc>) -> Charge {
        if let Some(wait) = remaining(self.blocked_until, now) {
            return Charge::Refused { wait };
        }
        self.failures = self.failures.saturating_add(1);
        let blocked = policy.block_after(self.failures).filter(|block| !block.is_zero());
        self.blocked_until = blocked.map(|block| now + block);
        Charge::Admitted { blocked }
    }

    /// Forgets everything after the right password.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The time until `until`; `None` when it is not in the future.
#[must_use]
pub fn remaining(until: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<Duration> {
    until.and_then(|until| (until - now).to_std().ok()).filter(|wait| !wait.is_zero())
}

/// The refusal during a block (LCK-4), the same for addresses that have no account.
#[must_use]
pub fn locked(wait: Duration) -> Problem {
    let seconds = wait.as_millis().div_ceil(1_000);
    Problem::new(Code::SignInLocked, format!("Too many wrong passwords. Try again in {seconds} s."))
        .with_data(serde_json::json!({ "retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }))
        .retry_after(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_800_000_000_000 + ms).unwrap()
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn blocks_follow_the_schedule_and_stay_on_the_last_entry() {
        let policy = LoginPolicy::default();
        let mut counter = Counter::default();
        for _ in 0..4 {
            assert_eq!(counter.charge(&policy, at(0)), Charge::Admitted { blocked: None });
        }
        let mut now = 0;
        for block in [1_000, 10_000, 60_000, 600_000, 600_000, 600_000] {
            assert_eq!(counter.charge(&policy, at(now)), Charge::Admitted { blocked: Some(ms(block)) });
            let before = counter;
            assert_eq!(counter.charge(&policy, at(now + 1)), Charge::Refused { wait: ms(block - 1) });
            assert_eq!(counter, before, "a refused attempt changes nothing");
            now += i64::try_from(block).unwrap();
        }
        counter.clear();
        assert_eq!(counter.charge(&policy, at(now)), Charge::Admitted { blocked: None });
    }

    #[test]
    fn the_refusal_says_how_long() {
        let problem = locked(ms(1_500));
        assert_eq!(problem.status(), 429);
        assert_eq!(problem.retry_after, Some(ms(1_500)));
        assert!(problem.message.contains("2 s"));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(i64),
        Guess,
        Success,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![4 => Just(Step::Guess), 2 => (0i64..700_000).prop_map(Step::Wait), 1 => Just(Step::Success)]
    }

    proptest! {
        /// Whatever happens: an admitted failure at or over the threshold blocks for exactly its
        /// schedule entry, below it never; refusals change nothing; time alone ends every block;
        /// and guesses get no faster than the schedule allows.
        #[test]
        fn guessing_is_never_faster_than_the_schedule(
            max in 1u32..8,
            schedule in prop::collection::vec(1u64..600_000, 1..6),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let policy = LoginPolicy { max_attempts: max, backoff: schedule.iter().copied().map(ms).collect() };
            let mut counter = Counter::default();
            let mut now = 0i64;
            let mut row = 0u32; // admitted failures since the last success
            let mut free_at = 0i64;
            for step in steps {
                match step {
                    Step::Wait(pause) => now += pause,
                    Step::Success => {
                        // A success needs an admitted attempt.
                        if now >= free_at {
                            counter.clear();
                            row = 0;
                            free_at = now;
                        }
                    }
                    Step::Guess => {
                        let before = counter;
                        match counter.charge(&policy, at(now)) {
                            Charge::Refused { wait } => {
                                prop_assert!(now < free_at);
                                prop_assert_eq!(i64::try_from(wait.as_millis()).unwrap(), free_at - now);
                                prop_assert_eq!(counter, before);
                            }
                            Charge::Admitted { blocked } => {
                                prop_assert!(now >= free_at);
                                row += 1;
                                prop_assert_eq!(counter.failures, row);
                                if row < max {
                                    prop_assert_eq!(blocked, None);
                                } else {
                                    let entry = schedule[((row - max) as usize).min(schedule.len() - 1)];
                                    prop_assert_eq!(blocked, Some(ms(entry)));
                                    free_at = now + i64::try_from(entry).unwrap();
                                }
                            }
                        }
                    }
                }
            }
        }

        /// Ten thousand simultaneous guesses get as far as the threshold allows.
        #[test]
        fn a_burst_gets_no_further_than_a_row(max in 1u32..50, guesses in 1u32..500) {
            let policy = LoginPolicy { max_attempts: max, ..LoginPolicy::default() };
            let mut counter = Counter::default();
            let admitted = (0..guesses).filter(|_| matches!(counter.charge(&policy, at(0)), Charge::Admitted { .. })).count();
            prop_assert_eq!(admitted, guesses.min(max) as usize);
        }
    }
}
