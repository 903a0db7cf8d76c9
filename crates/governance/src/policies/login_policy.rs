//! How wrong passwords are slowed down (spec 30, 3.3).

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// Most steps of a schedule.
const MAX_STEPS: usize = 10;
/// Most entries of the list of proxies.
const MAX_PROXIES: usize = 32;
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
    /// The hops whose `X-Forwarded-For` is believed when somebody signs in (LCK-7): addresses, ranges such as
    /// `10.0.0.0/8`, and the words `loopback`, `linklocal`, `uniquelocal`.
    pub trusted_proxies: Vec<String>,
}

impl Default for LoginRules {
    fn default() -> Self {
        Self {
            enabled: true,
            max_attempts_before_lockout: 5,
            backoff_schedule: vec![1_000, 10_000, 60_000, 600_000],
            trusted_proxies: ["loopback", "uniquelocal"].map(str::to_owned).to_vec(),
        }
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
        if self.trusted_proxies.len() > MAX_PROXIES {
            issues.push(Issue::new("trustedProxies", format!("must have at most {MAX_PROXIES} entries")));
        }
        let odd = self.trusted_proxies.iter().position(|entry| !is_proxy(entry));
        issues.extend(odd.map(|at| {
            Issue::new(
                format!("trustedProxies.{at}"),
                "must be an IP address, a range such as 10.0.0.0/8, or one of loopback, linklocal, uniquelocal",
            )
        }));
        issues
    }
}

/// Whether an entry names hops.
fn is_proxy(entry: &str) -> bool {
    let entry = entry.trim();
    if ["loopback", "linklocal", "uniquelocal"].contains(&entry) {
        return true;
    }
    let (address, bits) = match entry.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (entry, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let widest = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= widest))
}

impl LoginRules {
    /// What is at least as strict as both: the fewest attempts, step by step the longest block (LCK-6), and the proxies
    /// that both trust.
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
            trusted_proxies: self.proxies().intersection(&other.proxies()).cloned().collect(),
        }
    }
}

impl LoginRules {
    fn proxies(&self) -> BTreeSet<String> {
        self.trusted_proxies.iter().map(|entry| entry.trim().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules() -> impl Strategy<Value = LoginRules> {
        let proxy = prop_oneof![Just("loopback"), Just("10.0.0.0/8"), Just("203.0.113.7"), Just("2001:db8::/32")];
        let proxies = prop::collection::btree_set(proxy.prop_map(str::to_owned), 0..=4);
        (any::<bool>(), 1u32..=50, prop::collection::vec(0u64..100_000, 1..=10), proxies).prop_map(
            |(enabled, max_attempts_before_lockout, backoff_schedule, proxies)| LoginRules {
                enabled,
                max_attempts_before_lockout,
                backoff_schedule,
                trusted_proxies: proxies.into_iter().collect(),
            },
        )
    }

    #[test]
    fn a_list_of_proxies_holds_addresses_ranges_and_three_words() {
        for good in ["loopback", "linklocal", "uniquelocal", "203.0.113.7", " 10.0.0.0/8 ", "2001:db8::/32", "::1"] {
            assert!(is_proxy(good), "{good}");
        }
        for bad in ["", "everywhere", "10.0.0.0/33", "10.0.0.0/", "10.0.0", "2001:db8::/129", "tale.example.org", "/8"]
        {
            let rules = LoginRules { trusted_proxies: vec!["loopback".into(), bad.into()], ..LoginRules::default() };
            let paths: Vec<String> = rules.check().into_iter().map(|issue| issue.path).collect();
            assert_eq!(paths, ["trustedProxies.1"], "{bad}");
        }
        let many = vec!["loopback".to_owned(); 33];
        assert_eq!(LoginRules { trusted_proxies: many, ..LoginRules::default() }.check().len(), 1);
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
                prop_assert!(both.proxies().is_subset(&one.proxies()));
                for at in 0..12 {
                    let block = |rules: &LoginRules| *rules.backoff_schedule.get(at).or(rules.backoff_schedule.last()).unwrap();
                    prop_assert!(block(&both) >= block(one));
                }
            }
        }
    }
}
