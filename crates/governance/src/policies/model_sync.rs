//! Whether lists of models are read again by themselves (MOD-15).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::Policy;

/// The policy `model_sync`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelSync {
    /// Whether a list that is used is read again after a day. On demand it is read in any case.
    pub auto_sync_enabled: bool,
}

impl Default for ModelSync {
    fn default() -> Self {
        Self { auto_sync_enabled: true }
    }
}

impl Policy for ModelSync {
    fn check(&self) -> Vec<Issue> {
        Vec::new()
    }
}
