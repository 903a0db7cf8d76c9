//! Where the Postgres programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::EmbeddedError;

/// The version `scripts/setup` unpacks into a checkout.
const BUNDLED: &str = "18.6.3";
/// Oldest major version that will do.
const OLDEST: u32 = 15;

/// A usable installation: Postgres and pgvector.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// Holds `bin/`.
    pub directory: PathBuf,
    /// Major version of the server.
    pub major: u32,
}

/// The installations to look at, best first: the one named by a setting (then only that one), the
/// one beside the running program, that of the checkout the program was built in, the system's.
#[must_use]
pub fn candidates(setting: Option<&Path>) -> Vec<PathBuf> {
    if let Some(directory) = setting {
        return vec![directory.to_owned()];
    }
    let mut found = Vec::new();
    if let Ok(program) = std::env::current_exe().and_then(|path| path.canonicalize()) {
        if let Some(directory) = program.parent() {
            found.push(directory.join("../lib/tale/postgres"));
        }
        // target/<profile>/tale, target/<profile>/deps/<test>: the checkout is two or three up.
        found.extend(program.ancestors().skip(3).take(2).map(|root| root.join(".cache/postgres").join(BUNDLED)));
    }
    let mut system: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    system.sort_by_key(|path| std::cmp::Reverse(path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok())));
    found.extend(system);
    found
}

impl Binaries {
    /// The first usable installation among `candidates`.
    ///
    /// # Errors
    /// [`EmbeddedError::NotFound`] with what each place lacked.
    pub fn find(candidates: &[PathBuf]) -> Result<Self, EmbeddedError> {
        let mut looked_in = Vec::new();
        for directory in candidates {
            match Self::at(directory) {
                Ok(binaries) => return Ok(binaries),
                Err(lack) => looked_in.push(format!("{} ({lack})", directory.display())),
            }
        }
        Err(EmbeddedError::NotFound { looked_in })
    }

    /// The program `name`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join("bin").join(name)
    }

    fn at(directory: &Path) -> Result<Self, String> {
        let directory = directory.canonicalize().map_err(|_| "does not exist".to_owned())?;
        for program in ["postgres", "initdb"] {
            if !directory.join("bin").join(program).exists() {
                return Err(format!("has no bin/{program}"));
            }
        }
        let major = major_version(&directory.join("bin/postgres"))?;
        if major < OLDEST {
            return Err(format!("is PostgreSQL {major}, {OLDEST} or newer is needed"));
        }
        let control = "extension/vector.control";
        let shares = [
            directory.join("share").join(control),
            directory.join("share/postgresql").join(control),
            PathBuf::from(format!("/usr/share/postgresql/{major}")).join(control),
        ];
        if shares.iter().any(|path| path.exists()) {
            Ok(Self { directory, major })
        } else {
            Err("has no pgvector".to_owned())
        }
    }
}

/// Asks the program itself: `postgres (PostgreSQL) 18.6`.
fn major_version(postgres: &Path) -> Result<u32, String> {
    let output = Command::new(postgres).arg("--version").output().map_err(|error| format!("cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .last()
        .and_then(|version| version.split(['.', 'd', 'b', 'r']).next()?.parse().ok())
        .ok_or_else(|| "does not say its version".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_installation_is_the_only_candidate_and_its_lack_is_told() {
        let named = candidates(Some(Path::new("/nowhere/at/all")));
        let error = Binaries::find(&named).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all (does not exist)"), "{error}");
        assert!(error.contains("TALE_EMBEDDED_POSTGRES_DIR") && error.contains("scripts/setup"), "{error}");
    }
}
