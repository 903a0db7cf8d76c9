//! Where values come from, what is wrong with them, and typed reading.

use std::collections::BTreeMap;
use std::fmt;

use url::Url;

use crate::kind::{Fault, Value};
use crate::registry::{Default, Reaction, Var};
use crate::words::Lang;

/// Where variables come from.
pub trait EnvSource: Send + Sync {
    /// The raw value of a variable.
    fn get(&self, name: &str) -> Option<String>;
}

/// A fixed set of variables, for tests and for values that `tale dev` fills in.
#[derive(Debug, Clone, std::default::Default)]
pub struct MapEnv(pub BTreeMap<String, String>);

impl MapEnv {
    /// From pairs.
    pub fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}

impl EnvSource for MapEnv {
    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The role does not start.
    Error,
    /// It starts, but not as it was meant.
    Warning,
    /// A value without effect.
    Note,
}

impl Severity {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding about the environment. It never holds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvProblem {
    /// How bad it is.
    pub severity: Severity,
    /// The variable.
    pub variable: String,
    /// Its value, when it may be shown.
    pub value: Option<String>,
    /// Where it was set: a file and a line.
    pub place: Option<String>,
    /// What is wrong, continuing the name of the variable, without a full stop.
    pub why: String,
    /// What to do, a sentence without a full stop.
    pub fix: String,
}

impl EnvProblem {
    /// A finding about `variable`.
    #[must_use]
    pub fn new(
        severity: Severity,
        variable: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity, variable: variable.into(), value: None, place: None, why: why.into(), fix: fix.into() }
    }
}

impl fmt::Display for EnvProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        // A question ends by itself.
        let end = if self.fix.ends_with('?') { "" } else { "." };
        write!(f, "{} {}. {}{end}", self.variable, self.why, self.fix)
    }
}

/// Everything that keeps a role from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvProblems(pub Vec<EnvProblem>);

impl fmt::Display for EnvProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        writeln!(f, "{count} setting{} wrong, nothing was started", if count == 1 { " is" } else { "s are" })?;
        for problem in &self.0 {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for EnvProblems {}

/// What a raw value means for a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Unset, or empty where that is the same.
    Unset,
    /// Usable.
    Fine(Value),
    /// Not usable, with what happens then.
    Bad(Fault, Reaction),
}

/// Judges `raw` for `var`: trimmed, empty counts as unset with the exceptions of DCF-4.
#[must_use]
pub fn judge(var: &Var, raw: Option<&str>) -> Verdict {
    let Some(text) = raw.map(str::trim) else { return Verdict::Unset };
    if text.is_empty() {
        return if var.empty_counts { Verdict::Fine(Value::List(Vec::new())) } else { Verdict::Unset };
    }
    match var.kind.check(text) {
        Ok(value) => Verdict::Fine(value),
        Err(fault) if fault.foreign => Verdict::Bad(fault, Reaction::UseDefault),
        Err(fault) if var.reaction == Reaction::Clamp && fault.nearest.is_none() => {
            Verdict::Bad(fault, Reaction::UseDefault)
        }
        Err(fault) => Verdict::Bad(fault, var.reaction),
    }
}

/// Longest value that a message repeats.
const SHOWN: usize = 80;

/// `raw` as it may be shown: nothing of a secret, no credentials of a URL, no control characters.
#[must_use]
pub fn shown(var: &Var, raw: &str) -> Option<String> {
    if var.secret {
        return None;
    }
    let mut text = raw.trim().to_owned();
    if text.contains('@')
        && let Ok(mut url) = Url::parse(&text)
        && (url.password().is_some() || !url.username().is_empty())
    {
        // A URL without a host keeps its words; it has no credentials then.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        text = url.to_string();
    }
    let clean: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match clean.char_indices().nth(SHOWN) {
        Some((end, _)) => Some(format!("{}…", &clean[..end])),
        None => Some(clean),
    }
}

/// The finding for an unusable value.
pub(crate) fn unusable(var: &Var, name: &str, raw: &str, fault: &Fault, reaction: Reaction) -> EnvProblem {
    let value = shown(var, raw);
    let found = match &value {
        Some(text) => format!("is {text:?}, which {}", fault.why),
        None => format!("is set but unusable: it {} (value not shown)", fault.why),
    };
    let expected = var.kind.describe(Lang::En);
    let (severity, consequence) = match reaction {
        Reaction::Refuse => (Severity::Error, String::new()),
        Reaction::UseDefault => (Severity::Warning, format!("; {} is used", default_words(var))),
        Reaction::Off => (Severity::Warning, "; it stays off".to_owned()),
        Reaction::Clamp => {
            (Severity::Warning, fault.nearest.map_or_else(String::new, |nearest| format!("; {nearest} is used")))
        }
        Reaction::Ignore => (Severity::Note, "; nothing reads it".to_owned()),
    };
    let fix = match fault.foreign {
        true => "Set enableServiceLinks: false for the Pod, or leave the variable out".to_owned(),
        false => format!("Set it to {expected}"),
    };
    EnvProblem { value, ..EnvProblem::new(severity, name, format!("{found}{consequence}"), fix) }
}

fn default_words(var: &Var) -> String {
    match var.default {
        Default::Unset => "no value".to_owned(),
        Default::Value(value) => format!("the default {value}"),
        Default::Derived(words) => format!("the default ({})", words.en),
    }
}

/// The finding for a missing value.
pub(crate) fn missing(var: &Var, others: &[&str]) -> EnvProblem {
    let expected = var.kind.describe(Lang::En);
    let fix = match others.is_empty() {
        true => format!("Set it to {expected}"),
        false => format!("Set it to {expected}, or set {}", others.join(" or ")),
    };
    EnvProblem::new(Severity::Error, var.name, "is not set", fix)
}

/// Reads typed values and remembers what keeps a role from starting.
pub struct EnvReader<'a> {
    source: &'a dyn EnvSource,
    problems: Vec<EnvProblem>,
}

impl<'a> EnvReader<'a> {
    /// Over `source`.
    pub fn new(source: &'a dyn EnvSource) -> Self {
        Self { source, problems: Vec::new() }
    }

    /// The value of a variable, or its default literal; `None` when neither is there.
    pub fn value(&mut self, var: &'static Var) -> Option<Value> {
        let raw = self.source.get(var.name);
        match judge(var, raw.as_deref()) {
            Verdict::Fine(value) => return Some(value),
            Verdict::Unset => {}
            Verdict::Bad(fault, Reaction::Refuse) => {
                let text = raw.unwrap_or_default();
                self.problems.push(unusable(var, var.name, &text, &fault, Reaction::Refuse));
                return None;
            }
            Verdict::Bad(Fault { nearest: Some(nearest), .. }, Reaction::Clamp) => {
                return Some(Value::Integer(nearest));
            }
            Verdict::Bad(..) => {}
        }
        match var.default {
            Default::Value(literal) => var.kind.check(literal).ok(),
            Default::Unset | Default::Derived(_) => None,
        }
    }

    /// Whether a variable has a value.
    #[must_use]
    pub fn is_set(&self, var: &Var) -> bool {
        self.source.get(var.name).is_some_and(|text| !text.trim().is_empty())
    }

    /// Reports `var` as missing when it has no value and none of `others` has one.
    pub fn require(&mut self, var: &'static Var, others: &[&'static Var]) {
        if !self.is_set(var) && !others.iter().any(|other| self.is_set(other)) {
            let names: Vec<&str> = others.iter().map(|other| other.name).collect();
            self.problems.push(missing(var, &names));
        }
    }

    /// The text of a variable.
    pub fn text(&mut self, var: &'static Var) -> Option<String> {
        let parsed = self.value(var)?;
        match parsed {
            Value::Text(text) => Some(text),
            // The parsed form of the others is for those who ask for it; their text is the raw one.
            _ => self.source.get(var.name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        }
    }

    /// The whole number of a variable.
    pub fn integer(&mut self, var: &'static Var) -> Option<u64> {
        match self.value(var)? {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// Whether a variable is on.
    pub fn switch(&mut self, var: &'static Var) -> Option<bool> {
        match self.value(var)? {
            Value::Switch(on) => Some(on),
            _ => None,
        }
    }

    /// The URL of a variable.
    pub fn url(&mut self, var: &'static Var) -> Option<Url> {
        match self.value(var)? {
            Value::Url(url) => Some(url),
            _ => None,
        }
    }

    /// The URLs of a variable; none when it is unset.
    pub fn urls(&mut self, var: &'static Var) -> Vec<Url> {
        match self.value(var) {
            Some(Value::Urls(urls)) => urls,
            _ => Vec::new(),
        }
    }

    /// The entries of a variable; `None` when it is unset.
    pub fn list(&mut self, var: &'static Var) -> Option<Vec<String>> {
        match self.value(var)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The result, or all problems.
    ///
    /// # Errors
    /// [`EnvProblems`] when anything was reported.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, EnvProblems> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(EnvProblems(self.problems)),
        }
    }
}
