//! The check at the start of a role: errors together, warnings as lines of the log.

use tale_env::effective::summary;
use tale_env::{EnvProblem, EnvProblems, Environment, Role, Scope, Settings, Severity, check, secret_values};

/// What does not keep the role from starting.
///
/// # Errors
/// Everything that does, together.
pub(crate) fn refuse(env: &Environment, role: Role) -> Result<Vec<EnvProblem>, EnvProblems> {
    let found = check(env, role, Scope::Here);
    let (errors, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|problem| problem.severity == Severity::Error);
    if errors.is_empty() { Ok(rest) } else { Err(EnvProblems(errors)) }
}

/// Says everything that can be said about the environment of a role.
///
/// # Errors
/// Everything that keeps the role from starting, together.
pub(crate) fn judge(env: &Environment, role: Role) -> Result<(), EnvProblems> {
    tale_core::redact::know(secret_values(env));
    let rest = refuse(env, role)?;
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
    let given = summary(env, role);
    if !given.is_empty() {
        tracing::info!(
            event = "configuration.effective",
            role = role.name(),
            version = env!("CARGO_PKG_VERSION"),
            "configuration: {given}"
        );
    }
    Ok(())
}

/// The settings of a backend role, after [`judge`].
///
/// # Errors
/// As there.
pub(crate) fn settle(env: &Environment, role: Role) -> Result<Settings, EnvProblems> {
    judge(env, role)?;
    Settings::for_role(env, role)
}
