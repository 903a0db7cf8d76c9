//! How long records are kept (spec 95, section 9), as far as this release forgets any: records of usage.

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// Shortest and longest time that records of usage may be kept for, in days.
const USAGE_DAYS: (u32, u32) = (30, 3_650);
/// Longest grace.
const MAX_GRACE: u32 = 90;

/// The policy `retention_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetentionPolicy {
    /// Whether records of usage are ever deleted.
    pub usage_ledger_enabled: bool,
    /// For how many days they are kept then; 30 to 3,650.
    pub usage_ledger_days: u32,
    /// How many days more whatever is to be deleted stays; 0 to 90.
    pub deletion_grace_days: u32,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { usage_ledger_enabled: false, usage_ledger_days: 365, deletion_grace_days: 0 }
    }
}

impl RetentionPolicy {
    /// After how many days a record of usage is deleted; `None` = never.
    #[must_use]
    pub fn usage_days(&self) -> Option<u32> {
        self.usage_ledger_enabled.then(|| self.usage_ledger_days + self.deletion_grace_days)
    }
}

impl Policy for RetentionPolicy {
    fn check(&self) -> Vec<Issue> {
        let (least, most) = USAGE_DAYS;
        let mut issues = Vec::new();
        if !(least..=most).contains(&self.usage_ledger_days) {
            issues.push(Issue::new("usageLedgerDays", format!("must be a whole number from {least} to {most}")));
        }
        if self.deletion_grace_days > MAX_GRACE {
            issues.push(Issue::new("deletionGraceDays", format!("must be a whole number from 0 to {MAX_GRACE}")));
        }
        issues
    }
}
