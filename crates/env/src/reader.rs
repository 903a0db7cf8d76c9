//! Reads variables through a source and collects every problem before anything starts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::registry::Var;

/// Where variables come from.
pub trait EnvSource: Send + Sync {
    /// The raw value of a variable.
    fn get(&self, name: &str) -> Option<String>;
}

/// The process environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnv;

impl EnvSource for ProcessEnv {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// A fixed set of variables, for tests and for values that `tale dev` fills in.
#[derive(Debug, Clone, Default)]
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

/// `first`, and `second` for what `first` leaves unset.
pub struct Layered<'a>(pub &'a dyn EnvSource, pub &'a dyn EnvSource);

impl EnvSource for Layered<'_> {
    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|text| !text.trim().is_empty()).or_else(|| self.1.get(name))
    }
}

/// One variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvProblem {
    /// The variable.
    pub variable: &'static str,
    /// A sentence without the value of a secret.
    pub sentence: String,
}

/// Everything that is wrong with the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvProblems(pub Vec<EnvProblem>);

impl fmt::Display for EnvProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        writeln!(f, "{count} setting{} wrong, nothing was started", if count == 1 { " is" } else { "s are" })?;
        for problem in &self.0 {
            writeln!(f, "  {}", problem.sentence)?;
        }
        Ok(())
    }
}

impl std::error::Error for EnvProblems {}

/// Reads values and remembers what was wrong.
pub struct EnvReader<'a> {
    source: &'a dyn EnvSource,
    problems: Vec<EnvProblem>,
}

impl<'a> EnvReader<'a> {
    /// Over `source`.
    pub fn new(source: &'a dyn EnvSource) -> Self {
        Self { source, problems: Vec::new() }
    }

    /// The trimmed text of a variable; `None` when unset or empty.
    pub fn text(&self, var: &Var) -> Option<String> {
        self.source.get(var.name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The text of a required variable; a missing one is reported.
    pub fn required(&mut self, var: &'static Var) -> Option<String> {
        let text = self.text(var);
        if text.is_none() {
            self.report(var, "is not set".to_owned());
        }
        text
    }

    /// A parsed value that passes `accept`; a bad one is reported and reads as `None`.
    pub fn parsed<T: FromStr>(&mut self, var: &'static Var, accept: impl Fn(&T) -> bool) -> Option<T> {
        let text = self.text(var)?;
        match text.parse::<T>() {
            Ok(value) if accept(&value) => Some(value),
            _ => {
                self.refuse(var, &text);
                None
            }
        }
    }

    /// Reports a set but unusable value, without showing a secret.
    pub fn refuse(&mut self, var: &'static Var, text: &str) {
        let found =
            if var.secret { "is set but unusable (value not shown)".to_owned() } else { format!("is {text:?}") };
        self.report(var, found);
    }

    fn report(&mut self, var: &'static Var, found: String) {
        self.problems.push(EnvProblem {
            variable: var.name,
            sentence: format!("{} {found}; expected {}", var.name, var.expects),
        });
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
