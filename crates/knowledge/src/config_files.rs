//! What people are told about configuration files of their organization.

use std::path::Path;

use tale_core::{Code, Problem};
use tale_orgfiles::ConfigError;

/// The name of a file of the organization with `slug` in `folder`, without where it is on the machine.
pub(crate) fn name_of(path: &Path, slug: &str, folder: &str) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{slug}/{folder}/{file}")
}

/// What is wrong with a file, for whoever edits it.
pub(crate) fn in_words(error: &ConfigError, slug: &str, folder: &str) -> String {
    let name = |path| name_of(path, slug, folder);
    match error {
        ConfigError::Invalid { path, reason } => format!("{}: {reason}", name(path)),
        ConfigError::Secrets { path, source } => format!("{}: {source}", name(path)),
        ConfigError::Io { path, source, .. } => format!("{}: {source}", name(path)),
        ConfigError::WouldBecomePlain(path) => name(path),
    }
}

/// Why a change was not written. `plain`: it would have replaced encrypted secrets by plain text.
pub(crate) fn not_written(plain: bool, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Problem {
    let sentence = if plain {
        "The stored secrets are encrypted and this deployment has no age key, so they were not overwritten with plain text. An administrator must set SOPS_AGE_KEY or SOPS_AGE_KEY_FILE."
    } else {
        "The configuration directory of this deployment cannot be written, so nothing was changed. An administrator must look at TALE_CONFIG_DIR."
    };
    Problem::new(Code::ConfigNotWritable, sentence).because(error)
}
