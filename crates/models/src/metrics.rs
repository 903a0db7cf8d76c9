//! What calls of providers count.

use tale_core::metrics::Counter;

use crate::wire::{ModelError, ModelErrorCode};

static ERRORS: [Counter; ModelErrorCode::ALL.len()] = [const { Counter::new() }; ModelErrorCode::ALL.len()];

/// Counts a call that a provider refused, failed or left unanswered.
pub(crate) fn count(error: &ModelError) {
    ERRORS[error.code as usize].increment();
}

/// Failed calls by class since the process started.
pub fn provider_errors() -> impl Iterator<Item = (&'static str, u64)> {
    ModelErrorCode::ALL.iter().map(|code| (code.text(), ERRORS[*code as usize].get()))
}
