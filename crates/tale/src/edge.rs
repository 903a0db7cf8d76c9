//! `tale edge`: the proxy in front, configured from the same variables.

use std::io::{self, Write};

use tale_edge::{Ports, caddyfile};
use tale_env::{EnvProblems, Environment, ProxySettings, Role, Scope, Severity, check};

/// Prints the configuration; what is only worth a word goes to standard error.
///
/// # Errors
/// Everything that keeps the proxy from starting, together.
pub(crate) fn print_caddyfile(env: &Environment, ports: Ports) -> Result<(), EnvProblems> {
    let found = check(env, Role::Proxy, Scope::Elsewhere);
    let (errors, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(EnvProblems(errors));
    }
    let mut terminal = io::stderr().lock();
    for warning in rest.iter().filter(|problem| problem.severity == Severity::Warning) {
        // A terminal that is gone reads no warnings.
        let _ = writeln!(terminal, "tale: {warning}");
    }
    let settings = ProxySettings::from_env(env)?;
    let _ = io::stdout().lock().write_all(caddyfile(&settings, ports).as_bytes());
    Ok(())
}
