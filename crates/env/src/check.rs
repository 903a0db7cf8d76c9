//! Everything that can be said about an environment without starting anything.
//!
//! The same check runs at the start of a role: an error keeps it from starting, a warning is a line
//! of the log.

mod agreement;
mod relations;
mod unknown;

pub use agreement::{Part, agreement};
pub use unknown::nearest_name;

use url::Url;

use crate::environment::Environment;
use crate::kind::is_loopback;
use crate::reader::{EnvProblem, Severity, Verdict, judge, missing, unusable};
use crate::registry::{self, Reaction, Required, Role, Use, Var};

/// What the check may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The environment of this process: files it names must be here.
    Here,
    /// A file for some machine: what it names may be elsewhere.
    Elsewhere,
}

/// Every finding about `env` for a process of `role`: errors first, each kind in the order of the
/// reference.
#[must_use]
pub fn check(env: &Environment, role: Role, scope: Scope) -> Vec<EnvProblem> {
    let mut found = env.problems().to_vec();
    for var in registry::vars().filter(|var| role.reads(var) && !matches!(var.usage, Use::Obsolete | Use::Session)) {
        if var.family().is_none() {
            one(env, var, var.name, &mut found);
        }
    }
    for name in env.names() {
        // Members of families, whose names are free.
        if let Some(var) = registry::find(name).filter(|var| var.family().is_some() && role.reads(var))
            && !matches!(var.usage, Use::Obsolete | Use::Session)
            && registry::secret_of_file(name).is_none_or(|secret| secret.family().is_some())
        {
            one(env, var, name, &mut found);
        }
    }
    if role.reads(&registry::SITE_URL) {
        placeholders(env, role, &mut found);
    }
    relations::add(env, role, scope, &mut found);
    unknown::add(env, &mut found);
    for problem in &mut found {
        if problem.place.is_none() {
            problem.place = env.place(&problem.variable);
        }
    }
    found.sort_by_key(|problem| problem.severity);
    found
}

fn one(env: &Environment, var: &'static Var, name: &str, found: &mut Vec<EnvProblem>) {
    let raw = env.raw(name);
    let effective = var.is_read();
    match judge(var, raw) {
        Verdict::Unset if effective => {
            let others: &[&str] = match var.required {
                Required::No => return,
                Required::Always => &[],
                Required::Unless(others) => others,
            };
            // A secret whose file cannot be read is reported as that.
            let file = format!("{name}_FILE");
            let elsewhere = others.iter().any(|other| env.is_set(other)) || (var.secret && env.is_set(&file));
            if !elsewhere {
                found.push(missing(var, others));
            }
        }
        Verdict::Bad(fault, reaction) => {
            let reaction = if effective { reaction } else { Reaction::Ignore };
            found.push(unusable(var, name, raw.unwrap_or_default(), &fault, reaction));
        }
        Verdict::Fine(_) if !effective && !is_default(var, raw) => {
            if let Some(reason) = var.usage.reason() {
                let mut note = EnvProblem::new(Severity::Note, name, "has no effect", reason.en.trim_end_matches('.'));
                note.value = crate::reader::shown(var, raw.unwrap_or_default());
                found.push(note);
            }
        }
        _ => {}
    }
}

fn is_default(var: &Var, raw: Option<&str>) -> bool {
    matches!(var.default, registry::Default::Value(value) if raw.map(str::trim) == Some(value))
}

/// The canonical origin that `env` gives.
fn site(env: &Environment) -> Option<Url> {
    let text = match env.raw("SITE_URL").map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => format!("https://{}", env.raw("HOST").map(str::trim).filter(|text| !text.is_empty())?),
    };
    Url::parse(&text).ok()
}

/// Secrets that are published in an example file protect nothing (DCF-53).
fn placeholders(env: &Environment, role: Role, found: &mut Vec<EnvProblem>) {
    let public = site(env).is_some_and(|url| !is_loopback(&url));
    for var in registry::vars().filter(|var| !var.placeholders.is_empty() && role.reads(var)) {
        let Some(value) = env.raw(var.name).map(str::trim) else { continue };
        if var.placeholders.contains(&value) {
            let severity = if public { Severity::Error } else { Severity::Warning };
            found.push(EnvProblem::new(
                severity,
                var.name,
                "still has the value of the example file, which everybody knows",
                "Replace it by a secret of your own",
            ));
        }
    }
}
