//! What calls of providers count.

use tale_core::metrics::Counter;
use tale_governance::budgets::{Kind, Scope};

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

/// Work that a limit refused, by kind of limit and scope of its rule.
static REFUSED: [[Counter; SCOPES.len()]; Kind::ALL.len()] = [const { [const { Counter::new() }; SCOPES.len()] }; 3];

/// The scopes that a refusal can have.
const SCOPES: [Scope; 5] = [Scope::Org, Scope::User, Scope::Role, Scope::Default, Scope::ApiKey];

/// Holds that this process opened and closed.
pub(crate) static HOLDS_OPENED: Counter = Counter::new();
pub(crate) static HOLDS_CLOSED: Counter = Counter::new();

/// Work that this process holds now.
pub fn holds_open() -> u64 {
    // Closed first: one that is closed in between was opened before.
    let closed = HOLDS_CLOSED.get();
    HOLDS_OPENED.get().saturating_sub(closed)
}

/// Counts a refusal.
pub(crate) fn refused(kind: Kind, scope: Scope) {
    if let Some(place) = SCOPES.iter().position(|known| *known == scope) {
        REFUSED[kind as usize][place].increment();
    }
}

/// Refusals so far: kind, scope, number.
pub fn refusals() -> impl Iterator<Item = (Kind, Scope, u64)> {
    Kind::ALL.into_iter().zip(&REFUSED).flat_map(|(kind, scopes)| {
        SCOPES.into_iter().zip(scopes).map(move |(scope, counter)| (kind, scope, counter.get()))
    })
}
