//! What a role would run with, and where each value came from.

use crate::environment::{Environment, Origin};
use crate::reader::{Verdict, judge, shown};
use crate::registry::{self, Default, Role, Var};

/// A value as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The value.
    Text(String),
    /// A secret that is set.
    Set,
    /// Nothing is set and there is no default.
    Unset,
    /// Derived, in words.
    Derived(&'static str),
    /// Set, but unusable.
    Unusable,
}

/// One setting of a role.
#[derive(Debug, Clone)]
pub struct Effective {
    /// Its declaration.
    pub var: &'static Var,
    /// Its name, which differs from the declaration's in a family.
    pub name: String,
    /// Its value.
    pub value: Shown,
    /// Where it came from; `None` for a default.
    pub origin: Option<Origin>,
}

/// What a process of `role` would run with, in the order of the reference. Secrets are only set or
/// unset.
#[must_use]
pub fn effective(env: &Environment, role: Role) -> Vec<Effective> {
    let mut all = Vec::new();
    for var in registry::vars().filter(|var| var.is_read() && role.reads(var)) {
        if var.family().is_none() {
            all.push(of(env, var, var.name));
            continue;
        }
        for name in env.names().filter(|name| registry::find(name).is_some_and(|found| found.name == var.name)) {
            all.push(of(env, var, name));
        }
    }
    all
}

fn of(env: &Environment, var: &'static Var, name: &str) -> Effective {
    let raw = env.raw(name);
    let (value, set) = match judge(var, raw) {
        Verdict::Fine(_) => match raw.and_then(|raw| shown(var, raw)) {
            Some(text) => (Shown::Text(text), true),
            None => (Shown::Set, true),
        },
        Verdict::Bad(..) => (Shown::Unusable, true),
        Verdict::Unset => match var.default {
            Default::Unset => (Shown::Unset, false),
            Default::Value(value) => (Shown::Text(value.to_owned()), false),
            // A secret has no default that could be used.
            Default::Derived(_) if var.secret => (Shown::Unset, false),
            Default::Derived(words) => (Shown::Derived(words.en), false),
        },
    };
    let origin = if set { env.origin(name).cloned() } else { None };
    Effective { var, name: name.to_owned(), value, origin }
}

/// The line that a start logs: what the operator set, secrets by name only.
#[must_use]
pub fn summary(env: &Environment, role: Role) -> String {
    let mut parts = Vec::new();
    let given = |setting: &Effective| setting.origin.as_ref().is_some_and(|origin| *origin != Origin::Dev);
    for setting in effective(env, role).into_iter().filter(given) {
        parts.push(match setting.value {
            Shown::Text(text) if text.contains(char::is_whitespace) || text.is_empty() => {
                format!("{}={text:?}", setting.name)
            }
            Shown::Text(text) => format!("{}={text}", setting.name),
            Shown::Unusable => format!("{}=(unusable)", setting.name),
            Shown::Set | Shown::Unset | Shown::Derived(_) => format!("{}=(set)", setting.name),
        });
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::MapEnv;

    #[test]
    fn values_have_a_source_and_secrets_stay_hidden() {
        let env = Environment::of_map(&MapEnv::of([
            ("DATABASE_URL", "postgres://u:hidden-word@h/db"),
            ("WORKER_CONCURRENCY", "7"),
            ("PORT", "zero"),
            ("TALE_PROVIDER_KEY_OPENAI", "hidden-word"),
            ("OBJECT_STORE_ENDPOINT", "http://me:hidden-word@store:9000"),
        ]));
        let all = effective(&env, Role::All);
        let value = |name: &str| all.iter().find(|setting| setting.name == name).map(|setting| setting.value.clone());
        assert_eq!(value("DATABASE_URL"), Some(Shown::Set));
        assert_eq!(value("TALE_PROVIDER_KEY_OPENAI"), Some(Shown::Set));
        assert_eq!(value("WORKER_CONCURRENCY"), Some(Shown::Text("7".into())));
        assert_eq!(value("PORT"), Some(Shown::Unusable));
        assert_eq!(value("INSTANCE_SECRET"), Some(Shown::Unset));
        assert_eq!(value("DATABASE_POOL_MAX"), Some(Shown::Text("10".into())));
        assert_eq!(value("OBJECT_STORE_ENDPOINT"), Some(Shown::Text("http://store:9000/".into())));
        assert!(value("SANDBOX_PORT").is_none(), "what nothing reads is not in effect");
        let line = summary(&env, Role::All);
        assert!(line.contains("WORKER_CONCURRENCY=7") && line.contains("DATABASE_URL=(set)"), "{line}");
        assert!(!line.contains("hidden-word") && !line.contains("DATABASE_POOL_MAX"), "{line}");
    }
}
