//! The check at the start of a role: errors together, warnings as lines of the log.

use tale_env::effective::summary;
use tale_env::{EnvProblems, Environment, Role, Scope, Settings, Severity, check};

/// The settings of the role, after everything that can be said about them was said.
///
/// # Errors
/// Everything that keeps the role from starting, together.
pub(crate) fn settle(env: &Environment) -> Result<Settings, EnvProblems> {
    let found = check(env, Role::All, Scope::Here);
    let (errors, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(EnvProblems(errors));
    }
    let (warnings, notes): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|problem| problem.severity == Severity::Warning);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if !notes.is_empty() {
        let names: Vec<&str> = notes.iter().map(|note| note.variable.as_str()).collect();
        tracing::info!("set without effect: {}; `tale env check` says why", names.join(", "));
    }
    let given = summary(env, Role::All);
    if !given.is_empty() {
        tracing::info!(role = Role::All.name(), version = env!("CARGO_PKG_VERSION"), "configuration: {given}");
    }
    Settings::from_env(env)
}
