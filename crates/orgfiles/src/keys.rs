//! The age keys of this deployment.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use age::x25519::{Identity, Recipient};
use secrecy::{ExposeSecret, SecretString};

/// Why the keys cannot be used. Never shows any of them.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The inline key does not parse.
    #[error("SOPS_AGE_KEY is not an age key; expected one AGE-SECRET-KEY-1…")]
    Inline,
    /// The key file cannot be read.
    #[error("the file of age keys {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A line of the key file does not parse, or there is none.
    #[error("line {line} of the file of age keys {} is not an age key; expected one AGE-SECRET-KEY-1… per line, # for comments", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
}

/// Keys that open secrets, and for which new ones are written. Without any, secrets are plain text
/// in files of mode 0600.
#[derive(Clone, Default)]
pub struct AgeKeys {
    identities: Vec<Identity>,
}

impl std::fmt::Debug for AgeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgeKeys").field("count", &self.identities.len()).finish()
    }
}

impl AgeKeys {
    /// `SOPS_AGE_KEY` holds exactly one key and wins; `SOPS_AGE_KEY_FILE` holds one per line.
    ///
    /// # Errors
    /// [`KeyError`] when what is set cannot be used.
    pub fn load(inline: Option<&SecretString>, file: Option<&Path>) -> Result<Self, KeyError> {
        if let Some(inline) = inline {
            let identity = Identity::from_str(inline.expose_secret().trim()).map_err(|_| KeyError::Inline)?;
            return Ok(Self { identities: vec![identity] });
        }
        let Some(path) = file else { return Ok(Self::default()) };
        let text =
            std::fs::read_to_string(path).map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
        let mut identities = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = |_| KeyError::Line { path: path.to_owned(), line: at + 1 };
            identities.push(Identity::from_str(line).map_err(refused)?);
        }
        if identities.is_empty() {
            return Err(KeyError::Line { path: path.to_owned(), line: 1 });
        }
        Ok(Self { identities })
    }

    /// Whether secrets are written as plain text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }

    /// What secrets are encrypted to: every key.
    pub fn recipients(&self) -> impl Iterator<Item = Recipient> {
        self.identities.iter().map(Identity::to_public)
    }

    pub(crate) fn identities(&self) -> &[Identity] {
        &self.identities
    }
}
