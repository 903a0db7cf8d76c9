//! The pinned transcription model (MOD-64).

use serde::{Deserialize, Serialize};
use tale_core::problem::Issue;

use super::{Policy, name_issue};

/// The policy `transcription_model`. Without both fields the choice is automatic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TranscriptionModelPin {
    /// The provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_slug: Option<String>,
    /// The provider's name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

impl Policy for TranscriptionModelPin {
    fn check(&self) -> Vec<Issue> {
        match (&self.provider_slug, &self.model_id) {
            (Some(provider), Some(model)) => {
                name_issue("providerSlug", provider, 64).into_iter().chain(name_issue("modelId", model, 200)).collect()
            }
            (None, None) => Vec::new(),
            (Some(_), None) => vec![Issue::new("modelId", "is required beside `providerSlug`")],
            (None, Some(_)) => vec![Issue::new("providerSlug", "is required beside `modelId`")],
        }
    }
}

impl TranscriptionModelPin {
    /// Provider and model, when one is pinned.
    #[must_use]
    pub fn pin(&self) -> Option<(&str, &str)> {
        self.provider_slug.as_deref().zip(self.model_id.as_deref())
    }
}
