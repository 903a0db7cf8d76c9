//! Whether an organization's people need a second factor (MFA-15…18).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// The policy `two_factor_policy`. Whoever has no factor when their grace is over gets nothing of the organization
/// in a session until they have one. The identity room reads it where it reads sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TwoFactorPolicy {
    /// Whether a second factor is needed.
    pub enforced: bool,
    /// Days from a person's first session under the policy until it binds them, 0 to 30.
    pub grace_period_days: u16,
    /// Whether people without a password, who sign in elsewhere, need none.
    pub exempt_sso_users: bool,
}

impl Default for TwoFactorPolicy {
    fn default() -> Self {
        Self { enforced: false, grace_period_days: 7, exempt_sso_users: true }
    }
}

impl Policy for TwoFactorPolicy {
    fn check(&self) -> Vec<Issue> {
        let fits = self.grace_period_days <= 30;
        let issue = || Issue::new("gracePeriodDays", "must be a whole number from 0 to 30");
        (!fits).then(issue).into_iter().collect()
    }
}
