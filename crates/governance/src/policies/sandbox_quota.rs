//! How many sandboxes an organization runs at the same time (SBX-22).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// Most that one class may be given.
const MOST: u32 = 500;

/// The policy `sandbox_quota`. Limits of what runs at once, not reservations: all organizations share the
/// deployment's capacity. A lower limit holds for what starts later; nothing that runs is ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxQuota {
    /// Of standing workspaces, those of people who run code among them; 1 to 500.
    pub max_sessions_per_org: u32,
    /// Of runs of automations; 1 to 500.
    pub max_workflow_sessions_per_org: u32,
    /// Of renderings; 1 to 500.
    pub max_render_sessions_per_org: u32,
}

impl Default for SandboxQuota {
    fn default() -> Self {
        Self { max_sessions_per_org: 2, max_workflow_sessions_per_org: 2, max_render_sessions_per_org: 2 }
    }
}

impl SandboxQuota {
    /// All classes together.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.limits().iter().sum()
    }

    /// Whether no limit is above `other`'s.
    #[must_use]
    pub fn is_at_most(&self, other: &Self) -> bool {
        self.limits().iter().zip(other.limits()).all(|(own, other)| *own <= other)
    }

    fn limits(&self) -> [u32; 3] {
        [self.max_sessions_per_org, self.max_workflow_sessions_per_org, self.max_render_sessions_per_org]
    }
}

impl Policy for SandboxQuota {
    fn check(&self) -> Vec<Issue> {
        let names = ["maxSessionsPerOrg", "maxWorkflowSessionsPerOrg", "maxRenderSessionsPerOrg"];
        let wrong = names.iter().zip(self.limits()).filter(|(_, limit)| !(1..=MOST).contains(limit));
        wrong.map(|(name, _)| Issue::new(*name, format!("must be a whole number from 1 to {MOST}"))).collect()
    }
}
