//! Folders of files that share a form, such as `providers/<name>.yml`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::store::{ConfigError, ConfigStore, Scope, Stamp, blocking, is_absent, read_text, replace};

/// Files of one folder that are looked at; the rest is passed over.
pub const MOST_FILES: usize = 20_000;

/// A folder inside a scope. Fixed in code; the names in it are plain names or paths below it, never above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folder(pub &'static str);

/// The files of a folder by their names.
pub type Listing = BTreeMap<String, Stamp>;

impl Stamp {
    /// Whether the file was written less than `age` ago, so that whoever writes may not be through.
    #[must_use]
    pub fn is_younger_than(&self, age: Duration) -> bool {
        SystemTime::now().duration_since(self.written()).is_ok_and(|old| old < age)
    }
}

impl ConfigStore {
    /// Where a file of a folder is.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] for a name that leads out of the folder.
    pub fn path_in(&self, scope: Scope<'_>, folder: Folder, name: &str) -> Result<PathBuf, ConfigError> {
        let path = self.folder(scope).join(folder.0).join(name);
        let plain = !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if plain { Ok(path) } else { Err(ConfigError::Invalid { path, reason: "it leads elsewhere".to_owned() }) }
    }

    /// The organizations that have `folder`.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when the configuration directory cannot be looked at.
    pub async fn organizations_with(&self, folder: Folder) -> Result<Vec<String>, ConfigError> {
        let root = self.root().to_owned();
        blocking(move || {
            let entries = match std::fs::read_dir(&root) {
                Ok(entries) => entries,
                Err(error) if is_absent(&root, &error) => return Ok(Vec::new()),
                Err(source) => return Err(ConfigError::Io { path: root, what: "read", source }),
            };
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            Ok(names.filter(|name| !name.starts_with('.') && root.join(name).join(folder.0).is_dir()).collect())
        })
        .await
    }

    /// The files of `folder` whose names end with `suffix` and do not begin with a dot; none when the folder is not
    /// there.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when the folder cannot be looked at.
    pub async fn list(&self, scope: Scope<'_>, folder: Folder, suffix: &'static str) -> Result<Listing, ConfigError> {
        listing(self.folder(scope).join(folder.0), suffix).await
    }

    /// The same of a folder below `folder`.
    ///
    /// # Errors
    /// As [`ConfigStore::list`].
    pub async fn list_below(
        &self,
        scope: Scope<'_>,
        folder: Folder,
        below: &str,
        suffix: &'static str,
    ) -> Result<Listing, ConfigError> {
        listing(self.path_in(scope, folder, below)?, suffix).await
    }

    /// The text of a file; `None` when there is none.
    ///
    /// # Errors
    /// [`ConfigError`] when it is there and cannot be read.
    pub async fn read_in(&self, scope: Scope<'_>, folder: Folder, name: &str) -> Result<Option<String>, ConfigError> {
        let path = self.path_in(scope, folder, name)?;
        blocking(move || read_text(&path)).await
    }

    /// Replaces a file with `text`, whole or not at all.
    ///
    /// # Errors
    /// [`ConfigError`] when it cannot be written; the file before is unchanged.
    pub async fn write_in(
        &self,
        scope: Scope<'_>,
        folder: Folder,
        name: &str,
        text: String,
    ) -> Result<(), ConfigError> {
        let path = self.path_in(scope, folder, name)?;
        blocking(move || replace(&path, &text, 0o640)).await
    }

    /// Removes a file. One that is not there is fine.
    ///
    /// # Errors
    /// [`ConfigError`] when it stays.
    pub async fn remove_in(&self, scope: Scope<'_>, folder: Folder, name: &str) -> Result<(), ConfigError> {
        let path = self.path_in(scope, folder, name)?;
        blocking(move || match std::fs::remove_file(&path) {
            Err(error) if !is_absent(&path, &error) => Err(ConfigError::Io { path, what: "written", source: error }),
            _ => Ok(()),
        })
        .await
    }
}

async fn listing(path: PathBuf, suffix: &'static str) -> Result<Listing, ConfigError> {
    blocking(move || {
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&path, &error) => return Ok(Listing::new()),
            Err(source) => return Err(ConfigError::Io { path, what: "read", source }),
        };
        let mut listing = Listing::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || !name.ends_with(suffix) {
                continue;
            }
            if let Ok(found) = std::fs::metadata(entry.path()).or_else(|_| entry.metadata()) {
                listing.insert(name, Stamp::of(&found));
            }
            if listing.len() == MOST_FILES {
                break;
            }
        }
        Ok(listing)
    })
    .await
}
