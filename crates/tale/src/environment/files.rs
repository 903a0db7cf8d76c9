//! Environment files: reading them with a bound, and comparing two.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tale_env::file::EnvFile;
use tale_env::reader::shown;
use tale_env::{EnvSource, Environment, registry};

/// Largest file that is read.
const LIMIT: u64 = 1024 * 1024;

/// Why a file gives no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Io(PathBuf, #[source] io::Error),
    #[error("{} is larger than 1 MiB and no environment file", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not text in UTF-8", .0.display())]
    NotText(PathBuf),
}

/// What a question is about.
pub(super) struct Subject {
    /// The variables.
    pub env: Environment,
    /// The file they stand in; `None` for the environment of this command.
    pub file: Option<String>,
}

impl Subject {
    /// The file, or the environment around.
    pub(super) fn of(file: Option<&Path>, around: Environment) -> Result<Self, FileError> {
        let Some(path) = file else { return Ok(Self { env: around, file: None }) };
        let name = path.display().to_string();
        let parsed = read(path, &|name| around.get(name))?;
        Ok(Self { env: Environment::of_file(&parsed, &name), file: Some(name) })
    }
}

/// Parses a file.
pub(super) fn read(path: &Path, outer: &dyn Fn(&str) -> Option<String>) -> Result<EnvFile, FileError> {
    let io = |error| FileError::Io(path.to_owned(), error);
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(LIMIT + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LIMIT {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText(path.to_owned()))?;
    Ok(EnvFile::parse(&text, outer))
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Side {
    /// The name is not there.
    Absent,
    /// A value that may be shown.
    Value(String),
    /// A value that may not: a secret, or a name of somebody else's.
    Hidden,
}

/// A variable that two files do not agree on.
pub(super) struct Difference {
    pub name: String,
    pub a: Side,
    pub b: Side,
}

/// Where two files differ, by name.
pub(super) fn differences(a: &EnvFile, b: &EnvFile) -> Vec<Difference> {
    let names: BTreeSet<&str> = a.entries.iter().chain(&b.entries).map(|entry| entry.name.as_str()).collect();
    let side = |file: &EnvFile, name: &str| match file.get(name) {
        None => Side::Absent,
        Some(value) => match registry::find(name).and_then(|var| shown(var, value)) {
            Some(text) => Side::Value(text),
            None => Side::Hidden,
        },
    };
    names
        .into_iter()
        .filter(|name| a.get(name) != b.get(name))
        .map(|name| Difference { name: name.to_owned(), a: side(a, name), b: side(b, name) })
        .collect()
}
