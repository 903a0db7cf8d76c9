//! How long sessions of an organization's people may be idle (SES-4).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// The policy `session_idle_timeout`. It can shorten what the deployment allows, never lengthen it, and counts
/// for the whole session: a person of several organizations has the shortest of their windows. The identity
/// room reads it where it reads sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionIdleTimeout {
    /// Whether the organization sets a window.
    pub enabled: bool,
    /// The window in minutes, 1 to 1440.
    pub idle_timeout_minutes: u16,
}

impl Default for SessionIdleTimeout {
    fn default() -> Self {
        Self { enabled: false, idle_timeout_minutes: 30 }
    }
}

impl Policy for SessionIdleTimeout {
    fn check(&self) -> Vec<Issue> {
        let fits = (1..=1_440).contains(&self.idle_timeout_minutes);
        let issue = || Issue::new("idleTimeoutMinutes", "must be a whole number from 1 to 1440");
        (!fits).then(issue).into_iter().collect()
    }
}
