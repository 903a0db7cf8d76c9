//! Typed files below the configuration directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tale_core::crypto::random_hex;
use tracing::warn;

use crate::keys::AgeKeys;
use crate::sops::{self, SopsError};

/// Largest file that is read, in bytes. Configuration is written by hand.
pub const FILE_MAX: u64 = 1024 * 1024;
/// The folder of the deployment's own files.
const DEPLOYMENT: &str = "default";
/// How the files of secrets end.
pub(crate) const SECRETS_SUFFIX: &str = ".secrets.json";

/// Whose files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The deployment's own.
    Deployment,
    /// An organization's, by its slug.
    Organization(&'a str),
}

/// A file inside a scope, such as `object-storage/connection.json`. Fixed in code: no part of it
/// comes from a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePath(pub &'static str);

/// Tells two states of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(found: &std::fs::Metadata) -> Self {
        Self { inode: found.ino(), size: found.size(), modified: (found.mtime(), found.mtime_nsec()) }
    }

    /// When the file was written; the beginning of time for what is older than that.
    pub(crate) fn written(&self) -> SystemTime {
        let (seconds, nanos) = self.modified;
        let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        SystemTime::UNIX_EPOCH + whole + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }
}

/// Why a configuration file could not be used. Never shows its content.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be used.
    #[error("the configuration file {} cannot be used: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of secrets is there and cannot be opened.
    #[error("the configuration file {} cannot be opened", .path.display())]
    Secrets {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: SopsError,
    },
    /// Saving would replace encrypted secrets by plain text.
    #[error(
        "{} is encrypted and no age key is configured, so it was not overwritten with plain text. Set SOPS_AGE_KEY or SOPS_AGE_KEY_FILE and save again",
        .0.display()
    )]
    WouldBecomePlain(PathBuf),
    /// Reading or writing failed.
    #[error("{} cannot be {what}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl ConfigError {
    /// Why, without the path, which is for the operator alone.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Invalid { reason, .. } => reason.clone(),
            Self::Secrets { source, .. } => source.to_string(),
            Self::WouldBecomePlain(_) => "it is encrypted and no age key is configured".to_owned(),
            Self::Io { what, source, .. } => format!("it cannot be {what} ({})", source.kind()),
        }
    }
}

/// What [`ConfigStore::rotate`] did.
#[derive(Debug, Default)]
pub struct Rotation {
    /// Files that were encrypted anew.
    pub rewritten: Vec<PathBuf>,
    /// Files that were encrypted to exactly the present keys already.
    pub current: Vec<PathBuf>,
    /// Files that could not be opened or written, unchanged.
    pub failed: Vec<(PathBuf, ConfigError)>,
}

/// The configuration directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConfigStore {
    root: Arc<Path>,
    keys: Arc<AgeKeys>,
    warned: Arc<AtomicBool>,
}

impl ConfigStore {
    /// Below `root`, with `keys` for secrets. Nothing is read yet.
    #[must_use]
    pub fn new(root: &Path, keys: AgeKeys) -> Self {
        Self { root: root.into(), keys: Arc::new(keys), warned: Arc::default() }
    }

    /// Where a file is.
    #[must_use]
    pub fn path(&self, scope: Scope<'_>, file: FilePath) -> PathBuf {
        self.folder(scope).join(file.0)
    }

    /// The configuration directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a scope, whether it exists or not.
    pub(crate) fn folder(&self, scope: Scope<'_>) -> PathBuf {
        self.root.join(match scope {
            Scope::Deployment => DEPLOYMENT,
            Scope::Organization(slug) => slug,
        })
    }

    /// The present state of a file; `None` when there is none.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when the directory cannot be looked at.
    pub async fn stamp(&self, scope: Scope<'_>, file: FilePath) -> Result<Option<Stamp>, ConfigError> {
        let path = self.path(scope, file);
        blocking(move || match std::fs::metadata(&path) {
            Ok(found) => Ok(Some(Stamp::of(&found))),
            Err(error) if is_absent(&path, &error) => Ok(None),
            Err(source) => Err(ConfigError::Io { path, what: "read", source }),
        })
        .await
    }

    /// A file of settings; `None` when there is none.
    ///
    /// # Errors
    /// [`ConfigError`] when it is there and cannot be used.
    pub async fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        scope: Scope<'_>,
        file: FilePath,
    ) -> Result<Option<T>, ConfigError> {
        let path = self.path(scope, file);
        blocking(move || read_text(&path)?.map(|text| parse(&path, &text)).transpose()).await
    }

    /// The texts of several files, in their order, with one look at the disk; `None` for each that is not there.
    pub async fn read_texts(&self, scope: Scope<'_>, files: Vec<FilePath>) -> Vec<Result<Option<String>, ConfigError>> {
        let paths: Vec<PathBuf> = files.into_iter().map(|file| self.path(scope, file)).collect();
        let none = paths.len();
        let read = blocking(move || Ok(paths.iter().map(|path| read_text(path)).collect())).await;
        // The runtime is shutting down.
        read.unwrap_or_else(|_| (0..none).map(|_| Ok(None)).collect())
    }

    /// Replaces a file with `text`, whole or not at all.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when it cannot be written; the file before is unchanged.
    pub async fn write_text(&self, scope: Scope<'_>, file: FilePath, text: String) -> Result<(), ConfigError> {
        let path = self.path(scope, file);
        blocking(move || replace(&path, &text, 0o640)).await
    }

    /// A file of secrets, in either form; `None` when there is none.
    ///
    /// # Errors
    /// [`ConfigError`] when it is there and cannot be opened or used.
    pub async fn read_secrets<T: DeserializeOwned + Send + 'static>(
        &self,
        scope: Scope<'_>,
        file: FilePath,
    ) -> Result<Option<T>, ConfigError> {
        let (path, keys) = (self.path(scope, file), Arc::clone(&self.keys));
        blocking(move || {
            let Some(text) = read_text(&path)? else { return Ok(None) };
            if !sops::is_encrypted(&text) {
                return parse(&path, &text).map(Some);
            }
            let plain =
                sops::decrypt(&text, &keys).map_err(|source| ConfigError::Secrets { path: path.clone(), source })?;
            parse(&path, &plain).map(Some)
        })
        .await
    }

    /// Replaces a file of settings, whole or not at all.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when it cannot be written; the file before is unchanged.
    pub async fn write<T: Serialize>(&self, scope: Scope<'_>, file: FilePath, value: &T) -> Result<(), ConfigError> {
        let path = self.path(scope, file);
        let text = print(&path, value)?;
        blocking(move || replace(&path, &text, 0o640)).await
    }

    /// Replaces a file of secrets, whole or not at all: encrypted to every configured key, or as
    /// plain text for the owner's eyes only when none is configured.
    ///
    /// # Errors
    /// [`ConfigError::WouldBecomePlain`] when an encrypted file would become plain text,
    /// [`ConfigError::Io`] when it cannot be written; the file before is unchanged.
    pub async fn write_secrets<T: Serialize>(
        &self,
        scope: Scope<'_>,
        file: FilePath,
        value: &T,
    ) -> Result<(), ConfigError> {
        let (path, keys) = (self.path(scope, file), Arc::clone(&self.keys));
        let plain = print(&path, value)?;
        if keys.is_empty() && !self.warned.swap(true, Ordering::Relaxed) {
            warn!(
                event = "sops.plain_text",
                "no age key is configured: secrets in the configuration directory are plain text (SOPS_AGE_KEY)"
            );
        }
        blocking(move || {
            if keys.is_empty() && read_text(&path)?.is_some_and(|text| sops::is_encrypted(&text)) {
                return Err(ConfigError::WouldBecomePlain(path));
            }
            write_sealed(&path, &plain, &keys)
        })
        .await
    }

    /// Removes a file. One that is not there is fine.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when it stays.
    pub async fn remove(&self, scope: Scope<'_>, file: FilePath) -> Result<(), ConfigError> {
        let path = self.path(scope, file);
        blocking(move || match std::fs::remove_file(&path) {
            Err(error) if !is_absent(&path, &error) => Err(ConfigError::Io { path, what: "written", source: error }),
            _ => Ok(()),
        })
        .await
    }

    /// Removes every file of an organization that is gone, whoever wrote it. One that has none is fine, and so is one that
    /// was half removed. What links in the folder lead to stays.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] for what is no name of an organization's folder, [`ConfigError::Io`] when something stays.
    pub async fn remove_organization(&self, slug: &str) -> Result<(), ConfigError> {
        let path = self.folder(Scope::Organization(slug));
        let mut parts = Path::new(slug).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == slug);
        if !plain || slug == DEPLOYMENT || slug.starts_with('.') {
            return Err(ConfigError::Invalid { path, reason: "it is no folder of an organization".to_owned() });
        }
        blocking(move || {
            let removed = match path.symlink_metadata() {
                Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
                Ok(_) => std::fs::remove_file(&path),
                Err(error) => Err(error),
            };
            match removed {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    Err(ConfigError::Io { path, what: "written", source })
                }
                _ => Ok(()),
            }
        })
        .await
    }

    /// Encrypts every file of secrets of every scope to exactly the present keys. Each is replaced
    /// whole; one that cannot be opened stays as it is and is reported.
    ///
    /// # Errors
    /// [`ConfigError`] when the directory cannot be walked or no key is configured.
    pub async fn rotate(&self) -> Result<Rotation, ConfigError> {
        let (root, keys) = (Arc::clone(&self.root), Arc::clone(&self.keys));
        blocking(move || {
            if keys.is_empty() {
                return Err(ConfigError::Secrets { path: root.to_path_buf(), source: SopsError::NoKey });
            }
            let mut wanted: Vec<String> = keys.recipients().map(|recipient| recipient.to_string()).collect();
            wanted.sort();
            let mut done = Rotation::default();
            for path in secret_files(&root)? {
                match rotate_file(&path, &keys, &wanted) {
                    Ok(true) => done.rewritten.push(path),
                    Ok(false) => done.current.push(path),
                    Err(error) => done.failed.push((path, error)),
                }
            }
            Ok(done)
        })
        .await
    }
}

/// Whether the file was written anew.
fn rotate_file(path: &Path, keys: &AgeKeys, wanted: &[String]) -> Result<bool, ConfigError> {
    let failed = |source| ConfigError::Secrets { path: path.to_owned(), source };
    let Some(text) = read_text(path)? else { return Ok(false) };
    let plain = if sops::is_encrypted(&text) {
        let mut present = sops::recipients(&text).map_err(failed)?;
        present.sort();
        if present == wanted {
            return Ok(false);
        }
        sops::decrypt(&text, keys).map_err(failed)?
    } else {
        text
    };
    write_sealed(path, &plain, keys)?;
    Ok(true)
}

/// The files of secrets below `root`: `<scope>/**/*.secrets.json`. Links are not followed.
fn secret_files(root: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |source| ConfigError::Io { path: folder.clone(), what: "read", source };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Nothing was ever written.
            Err(error) if is_absent(&folder, &error) => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(SECRETS_SUFFIX) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn write_sealed(path: &Path, plain: &str, keys: &AgeKeys) -> Result<(), ConfigError> {
    if keys.is_empty() {
        return replace(path, plain, 0o600);
    }
    let text = sops::encrypt(plain, keys).map_err(|source| ConfigError::Secrets { path: path.to_owned(), source })?;
    replace(path, &text, 0o600)
}

pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |source| ConfigError::Io { path: path.to_owned(), what: "read", source };
    let invalid = |reason: String| ConfigError::Invalid { path: path.to_owned(), reason };
    match std::fs::metadata(path) {
        // To open a pipe would wait for whoever writes into it.
        Ok(found) if found.is_dir() => {
            return Err(invalid("it is a folder where a file should be; the operator must move it away".to_owned()));
        }
        Ok(found) if !found.is_file() => return Err(invalid("it is not a file".to_owned())),
        Ok(_) => {}
        Err(error) if is_absent(path, &error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(invalid(format!("it is larger than {FILE_MAX} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| invalid("it is not UTF-8 text".to_owned()))
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    serde_json::from_str(text).map_err(|error| {
        // serde quotes what it did not expect, which may be a secret; the place says enough.
        let problem = match error.classify() {
            serde_json::error::Category::Data => "a field is missing, unknown or of the wrong kind",
            _ => "it is not JSON",
        };
        let reason = format!("{problem} (line {}, column {})", error.line(), error.column());
        ConfigError::Invalid { path: path.to_owned(), reason }
    })
}

fn print<T: Serialize>(path: &Path, value: &T) -> Result<String, ConfigError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| ConfigError::Invalid { path: path.to_owned(), reason: error.to_string() })?;
    text.push('\n');
    Ok(text)
}

/// Writes beside the file, then takes its place. Two writers at once leave one of the two texts.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), ConfigError> {
    let failed = |source| ConfigError::Io { path: path.to_owned(), what: "written", source };
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o750).create(folder).map_err(failed)?;
    let draft = folder.join(format!(".{}.tmp", random_hex(8)));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&draft);
        failed(error)
    })
}

/// Whether nothing is at `path`. A link that leads nowhere, or a folder on the way that is none, is
/// something: it must not count as a setting that nobody made.
pub(crate) fn is_absent(path: &Path, error: &io::Error) -> bool {
    let missing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    if !missing(error) {
        return false;
    }
    for place in path.ancestors() {
        match place.symlink_metadata() {
            Ok(_) => return place != path && place.is_dir(),
            Err(error) if missing(&error) => {}
            Err(_) => return false,
        }
    }
    true
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ConfigError> + Send + 'static,
) -> Result<T, ConfigError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(error) => Err(ConfigError::Io { path: PathBuf::new(), what: "read", source: io::Error::other(error) }),
        },
    }
}
