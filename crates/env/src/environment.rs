//! A snapshot of the variables of a process or a file, each with where it came from.
//!
//! It is taken once at start. The files that `X_FILE` variables name are read with it, so nothing
//! later touches the process environment or those files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::file::EnvFile;
use crate::reader::{EnvProblem, EnvSource, MapEnv, Severity};
use crate::registry::{self, Var};

/// Largest file of a secret.
const SECRET_FILE_LIMIT: u64 = 64 * 1024;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The process environment.
    Environment,
    /// The file that an `X_FILE` variable names.
    SecretFile(PathBuf),
    /// A line of an environment file.
    Line {
        /// The file, as it was named.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// `tale dev` fills it in.
    Dev,
}

/// A value and where it came from.
#[derive(Clone)]
struct Entry {
    value: String,
    origin: Origin,
}

/// A snapshot of variables.
#[derive(Clone, Default)]
pub struct Environment {
    entries: BTreeMap<String, Entry>,
    problems: Vec<EnvProblem>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl Environment {
    /// Of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let mut taken = Self::default();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    taken.entries.insert(name, Entry { value, origin: Origin::Environment });
                }
                Err(_) if registry::find(&name).is_some() => {
                    let fix = "Set it to text in UTF-8";
                    taken.problems.push(EnvProblem::new(Severity::Error, name, "is not text in UTF-8", fix));
                }
                Err(_) => {}
            }
        }
        taken.read_secret_files();
        taken
    }

    /// Of `source` as if it were the process environment, for tests.
    #[must_use]
    pub fn of_map(source: &MapEnv) -> Self {
        let entries = source
            .0
            .iter()
            .map(|(name, value)| (name.clone(), Entry { value: value.clone(), origin: Origin::Environment }));
        let mut taken = Self { entries: entries.collect(), problems: Vec::new() };
        taken.read_secret_files();
        taken
    }

    /// Of an environment file that was read from `path`.
    #[must_use]
    pub fn of_file(file: &EnvFile, path: &str) -> Self {
        let mut taken = Self::default();
        for entry in &file.entries {
            let origin = Origin::Line { file: path.to_owned(), line: entry.line };
            taken.entries.insert(entry.name.clone(), Entry { value: entry.value.clone(), origin });
        }
        taken.problems.extend(file.problems.iter().cloned().map(|problem| problem.at(path)));
        taken.read_secret_files();
        taken
    }

    /// With `defaults` for what is unset.
    #[must_use]
    pub fn with_defaults(mut self, defaults: &MapEnv) -> Self {
        for (name, value) in &defaults.0 {
            if !self.is_set(name) && !self.means_empty(name) {
                self.entries.insert(name.clone(), Entry { value: value.clone(), origin: Origin::Dev });
            }
        }
        self
    }

    /// Whether `name` has a value that is not empty.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| !entry.value.trim().is_empty())
    }

    /// Whether `name` is there with an empty value that says something (DCF-4).
    fn means_empty(&self, name: &str) -> bool {
        self.entries.contains_key(name) && registry::find(name).is_some_and(|var| var.empty_counts)
    }

    /// The raw value of `name`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(|entry| entry.value.as_str())
    }

    /// Where the value of `name` came from.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.entries.get(name).map(|entry| &entry.origin)
    }

    /// File and line of `name`, when it stands in a file.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<String> {
        match self.origin(name)? {
            Origin::Line { file, line } => Some(format!("{file}:{line}")),
            _ => None,
        }
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What was wrong while the snapshot was taken.
    #[must_use]
    pub fn problems(&self) -> &[EnvProblem] {
        &self.problems
    }

    /// Puts the content of the files that `X_FILE` variables name in the place of `X`.
    fn read_secret_files(&mut self) {
        let named: Vec<(String, String, &'static Var)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.value.trim().is_empty())
            .filter_map(|(name, entry)| {
                let var = registry::secret_of_file(name).filter(|var| var.is_read())?;
                // A member of a family may itself be called like that; then it holds the secret.
                let path = entry.value.trim();
                (var.family().is_none() || path.starts_with('/')).then(|| (name.clone(), path.to_owned(), var))
            })
            .collect();
        for (name, path, var) in named {
            let base = name.strip_suffix("_FILE").unwrap_or(&name).to_owned();
            let place = self.place(&name);
            let mut report = |why: String, fix: String| {
                self.problems.push(EnvProblem {
                    place: place.clone(),
                    ..EnvProblem::new(Severity::Error, name.clone(), why, fix)
                });
            };
            if self.entries.get(&base).is_some_and(|entry| !entry.value.trim().is_empty()) {
                report(format!("and {base} are both set"), "Leave one of the two out".to_owned());
                continue;
            }
            match first_line(Path::new(&path)) {
                Ok(line) if line.trim().is_empty() => {
                    let expected = var.kind.describe(crate::Lang::En);
                    let fix = format!("Put {expected} into its first line");
                    report(format!("names {path:?}, whose first line is empty"), fix);
                }
                Ok(value) => {
                    let origin = Origin::SecretFile(PathBuf::from(&path));
                    self.entries.insert(base, Entry { value, origin });
                }
                Err(error) => {
                    let fix = "Mount the file and let this user read it".to_owned();
                    report(format!("names {path:?}, which cannot be read ({error})"), fix);
                }
            }
        }
    }
}

impl EnvSource for Environment {
    fn get(&self, name: &str) -> Option<String> {
        self.raw(name).map(str::to_owned)
    }
}

fn first_line(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SECRET_FILE_LIMIT).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not text in UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_from_the_first_line_of_its_file() {
        let folder = std::env::temp_dir().join(format!("tale-env-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("instance");
        std::fs::write(&path, format!("{}\r\nsecond line\n", "ab".repeat(32))).unwrap();
        let named = path.to_str().unwrap();

        let taken = Environment::of_map(&MapEnv::of([("INSTANCE_SECRET_FILE", named), ("INSTANCE_SECRET", " ")]));
        assert_eq!(taken.get("INSTANCE_SECRET").unwrap(), "ab".repeat(32));
        assert_eq!(taken.origin("INSTANCE_SECRET"), Some(&Origin::SecretFile(path.clone())));
        assert!(taken.problems().is_empty());

        let both = Environment::of_map(&MapEnv::of([("INSTANCE_SECRET_FILE", named), ("INSTANCE_SECRET", "x")]));
        let text = both.problems()[0].to_string();
        assert!(text.contains("INSTANCE_SECRET_FILE and INSTANCE_SECRET are both set"), "{text}");

        std::fs::write(&path, "\n").unwrap();
        let empty = Environment::of_map(&MapEnv::of([("INSTANCE_SECRET_FILE", named)]));
        assert!(empty.problems()[0].why.contains("first line is empty"));
        let gone = Environment::of_map(&MapEnv::of([("INSTANCE_SECRET_FILE", "/nowhere/x")]));
        assert!(gone.problems()[0].why.contains("cannot be read"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_that_end_in_file_keep_their_own_meaning() {
        let taken = Environment::of_map(&MapEnv::of([
            ("POSTGRES_CA_FILE", "/nowhere/ca.pem"),
            ("SOPS_AGE_KEY_FILE", "/nowhere/keys"),
            ("TALE_PROVIDER_KEY_MY_FILE", "sk-1"),
        ]));
        assert!(taken.problems().is_empty() && taken.raw("TALE_PROVIDER_KEY_MY").is_none());
        assert_eq!(taken.raw("TALE_PROVIDER_KEY_MY_FILE"), Some("sk-1"));
    }

    #[test]
    fn defaults_fill_what_is_unset_and_leave_a_meaningful_empty_value() {
        let defaults = MapEnv::of([("SITE_URL", "http://localhost"), ("TALE_ORGANIZATION_CREATORS", "a@b.example")]);
        let taken = Environment::of_map(&MapEnv::of([("SITE_URL", ""), ("TALE_ORGANIZATION_CREATORS", "")]))
            .with_defaults(&defaults);
        assert_eq!(taken.raw("SITE_URL"), Some("http://localhost"));
        assert_eq!(taken.raw("TALE_ORGANIZATION_CREATORS"), Some(""));
    }
}
