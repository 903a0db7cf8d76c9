//! When the files of sandboxes that nobody uses are deleted (SBX-36, SBX-37).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use tale_core::Problem;
use tale_core::ids::OrgId;
use tale_core::problem::Issue;

use super::{Document, Policies, Policy, store};

/// Longest window, in days.
const MOST: u32 = 3_650;

/// The policy `sandbox_workspaces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxWorkspaces {
    /// Whether any are.
    pub enabled: bool,
    /// Days without use after which one is; 1 to 3650.
    pub unused_days: u32,
}

impl Default for SandboxWorkspaces {
    fn default() -> Self {
        Self { enabled: true, unused_days: 30 }
    }
}

impl SandboxWorkspaces {
    /// Whether this deletes files earlier than `before` did, so that a full window has to pass first: it was switched
    /// on or shortened. Lengthening keeps more, and makes nobody wait.
    #[must_use]
    pub fn begins_anew(&self, before: &Self) -> bool {
        self.enabled && (!before.enabled || self.unused_days < before.unused_days)
    }
}

impl Policy for SandboxWorkspaces {
    fn check(&self) -> Vec<Issue> {
        let fits = (1..=MOST).contains(&self.unused_days);
        let issue = || Issue::new("unusedDays", format!("must be a whole number from 1 to {MOST}"));
        (!fits).then(issue).into_iter().collect()
    }
}

/// The policy with the times that it is judged by, both of the database, so that no process with a wrong clock deletes
/// anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspacesRule {
    /// The policy.
    pub policy: SandboxWorkspaces,
    /// Since when it deletes as early as it does now.
    pub since: DateTime<Utc>,
    /// Now.
    pub now: DateTime<Utc>,
}

impl Policies {
    /// The rule exactly as it is stored. `None` while it cannot be read, and for an organization that is gone: nothing is
    /// deleted by it then.
    ///
    /// # Errors
    /// The database's.
    pub async fn workspaces_rule(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
    ) -> Result<Option<WorkspacesRule>, Problem> {
        let stored = self.held(conn, org).await?;
        let (Ok(policy), Some((since, now))) =
            (stored.sandbox_workspaces.usable(), store::workspaces_rule_since(conn, org).await?)
        else {
            return Ok(None);
        };
        Ok(Some(WorkspacesRule { policy: **policy, since, now }))
    }
}

/// Writes down that the rule begins anew, when a change makes it.
pub(super) async fn note(conn: &mut PgConnection, org: OrgId, before: &Document, after: &Value) -> Result<(), Problem> {
    let read = |value: &Value| serde_json::from_value::<SandboxWorkspaces>(value.clone()).map_err(Problem::internal);
    // What could not be read may have been anything.
    if before.unreadable.is_some() || read(after)?.begins_anew(&read(&before.value)?) {
        store::restart_workspaces_rule(conn, org).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_deletes_earlier_begins_anew() {
        let rule = |enabled, unused_days| SandboxWorkspaces { enabled, unused_days };
        for (before, after, anew) in [
            (rule(false, 30), rule(true, 30), true),
            (rule(true, 30), rule(true, 29), true),
            (rule(false, 5), rule(true, 30), true),
            (rule(true, 30), rule(true, 30), false),
            (rule(true, 30), rule(true, 31), false),
            (rule(true, 30), rule(false, 30), false),
            (rule(true, 30), rule(false, 5), false),
        ] {
            assert_eq!(after.begins_anew(&before), anew, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_window_is_one_day_to_ten_years() {
        let wrong = |days| !SandboxWorkspaces { enabled: true, unused_days: days }.check().is_empty();
        assert_eq!([0, 1, 3_650, 3_651].map(wrong), [true, false, false, true]);
    }
}
