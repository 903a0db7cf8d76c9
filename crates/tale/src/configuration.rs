//! The check at the start of a role: errors together, warnings as lines of the log.

use tale_env::effective::summary;
use tale_env::{EnvProblems, Environment, Role, Scope, Settings, Severity, check, secret_values};

/// The settings of the role, after everything that can be said about them was said.
///
/// # Errors
/// Everything that keeps the role from starting, together.
pub(crate) fn settle(env: &Environment) -> Result<Settings, EnvProblems> {
    tale_core::redact::know(secret_values(env));
    let found = check(env, Role::All, Scope::Here);
    let (errors, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(EnvProblems(errors));
    }
    let (warnings, notes): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|problem| problem.severity == Severity::Warning);
    for warning in warnings {
        tracing::warn!(event = "configuration.warning", "{warning}");
    }
    if !notes.is_empty() {
        let names: Vec<&str> = notes.iter().map(|note| note.variable.as_str()).collect();
        tracing::info!(
            event = "configuration.without_effect",
            "set without effect: {}; `tale env check` says why",
            names.join(", ")
        );
    }
    let given = summary(env, Role::All);
    if !given.is_empty() {
        tracing::info!(
            event = "configuration.effective",
            role = Role::All.name(),
            version = env!("CARGO_PKG_VERSION"),
            "configuration: {given}"
        );
    }
    Settings::from_env(env)
}
