//! The data directory of `tale dev`: one process at a time, a version, generated secrets.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tale_core::crypto::{random_hex, random_token};
use tale_env::{EnvSource, MapEnv};

/// Version of the directory's layout. A higher number is refused by older programs.
const LAYOUT: u32 = 1;

/// Why the directory cannot be used, in words that say what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    #[error("no data directory: HOME is not set. Name one with --data-dir")]
    NoHome,
    #[error("another tale is running on {0}. Stop it, or choose another directory (--data-dir, or TALE_DATA_DIR)")]
    InUse(PathBuf),
    #[error(
        "{0} was written by a newer Tale (layout {1}, this program knows {LAYOUT}). Start the newer program, or name another directory with --data-dir"
    )]
    Newer(PathBuf, u32),
    #[error("{0} holds a file VERSION that is not Tale's. Name another directory with --data-dir")]
    Foreign(PathBuf),
    #[error("{0} is a file. Name a directory with --data-dir")]
    NoDirectory(PathBuf),
    #[error(
        "{0} is missing, and the data beside it was encrypted with the secrets in it. Restore it from a backup. If there is none, put an empty file there: Tale then makes new secrets, everybody signs in again and provider keys have to be entered again"
    )]
    SecretsMissing(PathBuf),
    #[error(
        "{0} is damaged: {1}. Restore it from a backup. If there is none, empty the file: Tale then makes new secrets, everybody signs in again and provider keys have to be entered again"
    )]
    SecretsDamaged(PathBuf, String),
    #[error("no space left on the disk of {0}. Free some, then start again; nothing was lost")]
    DiskFull(PathBuf),
    #[error("{0} may not be used by this user. Start tale as its owner, or name another directory with --data-dir")]
    Forbidden(PathBuf),
    #[error("{0} cannot be used: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// A secret of the first layout and how it is made.
struct Secret {
    name: &'static str,
    make: fn() -> String,
    sound: fn(&str) -> bool,
}

/// The secrets without which existing data cannot be read. All were there from the first release.
const SECRETS: &[Secret] = &[
    Secret { name: "BETTER_AUTH_SECRET", make: || random_token(32), sound: |text| text.len() >= 16 },
    Secret { name: "ENCRYPTION_SECRET_HEX", make: || random_hex(32), sound: is_key },
    Secret { name: "INSTANCE_SECRET", make: || random_hex(32), sound: is_key },
    Secret { name: "OBJECT_STORE_ACCESS_KEY", make: || "tale".to_owned(), sound: |text| !text.is_empty() },
    Secret { name: "OBJECT_STORE_SECRET_KEY", make: || random_token(32), sound: |text| text.len() >= 16 },
];

/// Secrets that came later: made when they are missing.
const LATER: &[Secret] =
    &[Secret { name: "TALE_AUDIT_PEPPER", make: || random_token(32), sound: |text| text.len() >= 16 }];

fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An open data directory. The lock is held until it is dropped.
pub(crate) struct DataDir {
    root: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Opens the directory, or creates it.
    pub(crate) fn open(chosen: Option<PathBuf>, env: &dyn EnvSource) -> Result<Self, DataDirError> {
        let set = |name: &str| env.get(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let root = chosen
            .or_else(|| set(tale_env::registry::TALE_DATA_DIR.name))
            .or_else(|| set("XDG_DATA_HOME").map(|home| home.join("tale")))
            .or_else(|| set("HOME").map(|home| home.join(".local/share/tale")))
            .ok_or(DataDirError::NoHome)?;
        let told = |error: io::Error| tell(&root, error);
        if root.is_file() {
            return Err(DataDirError::NoDirectory(root));
        }
        fs::DirBuilder::new().recursive(true).mode(0o711).create(&root).map_err(told)?;
        let root = root.canonicalize().map_err(told)?;
        let lock = lock(&root)?;
        check_version(&root)?;
        let owner = |path: &Path| fs::metadata(path).map(|meta| meta.uid());
        if let (Ok(0), Ok(other @ 1..)) = (owner(Path::new("/proc/self")), owner(&root)) {
            tracing::warn!(
                "{} belongs to user {other}, but root runs tale: files written now cannot be used by that user",
                root.display()
            );
        }
        // The directory itself can be passed through, because an unprivileged Postgres lives in it.
        for name in ["objects", "search", "work"] {
            let folder = root.join(name);
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)))
                .map_err(|error| tell(&folder, error))?;
        }
        Ok(Self { root, _lock: lock })
    }

    /// A path inside.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The secrets of this installation, made with a new one and stored with mode 0600. What the
    /// environment sets is neither needed nor made.
    ///
    /// An installation that lost its secrets is not given new ones unasked: what was encrypted
    /// would be lost without a word.
    pub(crate) fn secrets(&self, env: &dyn EnvSource) -> Result<MapEnv, DataDirError> {
        let path = self.join("secrets.env");
        let used = self.join("postgres/cluster").exists();
        let told = |error: io::Error| tell(&self.root, error);
        let unset = |secret: &&Secret| env.get(secret.name).is_none_or(|text| text.trim().is_empty());
        let text = match fs::read(&path) {
            Ok(bytes) => {
                keep_private(&path);
                String::from_utf8(bytes)
                    .map_err(|_| DataDirError::SecretsDamaged(path.clone(), "it is not text".to_owned()))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if used && SECRETS.iter().any(|secret| unset(&secret)) {
                    return Err(DataDirError::SecretsMissing(path));
                }
                String::new()
            }
            Err(error) => return Err(told(error)),
        };
        let mut held = read_secrets(&text);
        let before = held.len();
        for secret in SECRETS.iter().filter(unset) {
            match held.get(secret.name) {
                Some(value) if (secret.sound)(value) => {}
                Some(_) => {
                    return Err(DataDirError::SecretsDamaged(path, format!("{} is not whole", secret.name)));
                }
                None if used && before > 0 => {
                    return Err(DataDirError::SecretsDamaged(path, format!("{} is missing", secret.name)));
                }
                None => {
                    held.insert(secret.name.to_owned(), (secret.make)());
                }
            }
        }
        for secret in LATER.iter().filter(unset) {
            if held.get(secret.name).is_none_or(|value| !(secret.sound)(value)) {
                held.insert(secret.name.to_owned(), (secret.make)());
            }
        }
        if held.len() != before {
            let body: String = held.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
            let text = format!(
                "# Secrets of this Tale. Without them the data beside this file cannot be read: back them up together.\n{body}"
            );
            write_private(&path, text.as_bytes()).map_err(told)?;
        }
        Ok(MapEnv(held))
    }
}

/// Keeps every other process out of a directory until the file is dropped.
///
/// # Errors
/// When another process is in it, or it cannot be used.
pub(crate) fn lock(root: &Path) -> Result<File, DataDirError> {
    let path = root.join("tale.lock");
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| tell(root, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(tell(root, error)),
    }
}

/// `NAME=value` lines; comments, a byte order mark and Windows line ends are fine.
fn read_secrets(text: &str) -> BTreeMap<String, String> {
    text.trim_start_matches('\u{feff}')
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Closes a file of secrets that others may read.
fn keep_private(path: &Path) {
    let Ok(mode) = fs::metadata(path).map(|meta| meta.permissions().mode()) else { return };
    if mode & 0o077 == 0 {
        return;
    }
    let path_shown = path.display();
    match fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!("others could read {path_shown} (mode {:o}); it is closed now", mode & 0o777),
        Err(error) => tracing::warn!("others can read {path_shown} (mode {:o}): {error}", mode & 0o777),
    }
}

/// Writes a file that only its owner may read, whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

fn check_version(root: &Path) -> Result<(), DataDirError> {
    let path = root.join("VERSION");
    match fs::read(&path) {
        Ok(bytes) => match String::from_utf8_lossy(&bytes).trim().parse::<u32>() {
            Ok(layout) if layout > LAYOUT => Err(DataDirError::Newer(root.to_owned(), layout)),
            Ok(_) => Ok(()),
            Err(_) => Err(DataDirError::Foreign(root.to_owned())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write_private(&path, format!("{LAYOUT}\n").as_bytes()).map_err(|error| tell(root, error))
        }
        Err(error) => Err(tell(root, error)),
    }
}

fn tell(root: &Path, error: io::Error) -> DataDirError {
    match error.kind() {
        io::ErrorKind::StorageFull => DataDirError::DiskFull(root.to_owned()),
        io::ErrorKind::PermissionDenied => DataDirError::Forbidden(root.to_owned()),
        _ => DataDirError::Io(root.to_owned(), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(root: &Path) -> Result<DataDir, DataDirError> {
        DataDir::open(Some(root.to_owned()), &MapEnv::default())
    }

    #[test]
    fn secrets_are_made_once_and_kept_private() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("data");
        let none = MapEnv::default();
        let first = open(&root).unwrap().secrets(&none).unwrap();
        let again = open(&root).unwrap().secrets(&none).unwrap();
        assert_eq!(first.0, again.0);
        let mode = fs::metadata(root.join("secrets.env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn existing_data_never_gets_other_secrets_unasked() {
        let temp = tempfile::tempdir().unwrap();
        let (none, file) = (MapEnv::default(), temp.path().join("secrets.env"));
        let data = open(temp.path()).unwrap();
        let first = data.secrets(&none).unwrap();
        fs::create_dir_all(temp.path().join("postgres/cluster")).unwrap();
        let whole = fs::read_to_string(&file).unwrap();

        fs::remove_file(&file).unwrap();
        let error = data.secrets(&none).unwrap_err();
        assert!(matches!(error, DataDirError::SecretsMissing(_)), "{error}");
        // Every way of being cut off ends with the old secrets or with a refusal.
        for end in 0..whole.len() {
            fs::write(&file, &whole[..end]).unwrap();
            match data.secrets(&none) {
                Ok(secrets) if read_secrets(&whole[..end]).is_empty() => assert_ne!(secrets.0, first.0),
                Ok(mut secrets) => {
                    // These may be cut without a loss: one is the store's own word to itself, the other
                    // one only groups lines of the audit log.
                    for name in ["TALE_AUDIT_PEPPER", "OBJECT_STORE_SECRET_KEY"] {
                        secrets.0.insert(name.to_owned(), first.0[name].clone());
                    }
                    assert_eq!(secrets.0, first.0, "cut at {end}");
                }
                Err(error) => assert!(matches!(error, DataDirError::SecretsDamaged(..)), "{error}"),
            }
        }
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(matches!(data.secrets(&none), Err(DataDirError::SecretsDamaged(..))));
        fs::write(&file, format!("\u{feff}{}", whole.replace('\n', "\r\n"))).unwrap();
        assert_eq!(data.secrets(&none).unwrap().0, first.0);

        // What the environment sets does not have to be in the file.
        fs::remove_file(&file).unwrap();
        assert_eq!(data.secrets(&first).unwrap().0.len(), 0);
        // An empty file asks for new ones.
        fs::write(&file, "").unwrap();
        assert_ne!(data.secrets(&none).unwrap().0["INSTANCE_SECRET"], first.0["INSTANCE_SECRET"]);
    }

    #[test]
    fn an_open_file_of_secrets_is_closed() {
        let temp = tempfile::tempdir().unwrap();
        let (none, file) = (MapEnv::default(), temp.path().join("secrets.env"));
        open(temp.path()).unwrap().secrets(&none).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        open(temp.path()).unwrap().secrets(&none).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn files_are_for_their_owner_alone() {
        let temp = tempfile::tempdir().unwrap();
        let _held = open(temp.path()).unwrap();
        for name in ["objects", "search", "work"] {
            assert_eq!(fs::metadata(temp.path().join(name)).unwrap().permissions().mode() & 0o777, 0o700, "{name}");
        }
    }

    #[test]
    fn one_process_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let held = open(temp.path()).unwrap();
        assert!(matches!(open(temp.path()), Err(DataDirError::InUse(_))));
        drop(held);
        assert!(open(temp.path()).is_ok());
    }

    #[test]
    fn a_newer_layout_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("VERSION"), "2\n").unwrap();
        let text = open(temp.path()).err().unwrap().to_string();
        assert!(text.contains("newer Tale"), "{text}");
        for foreign in [&b"something else"[..], b"", &[0xff, 0xfe]] {
            fs::write(temp.path().join("VERSION"), foreign).unwrap();
            assert!(matches!(open(temp.path()), Err(DataDirError::Foreign(_))));
        }
        let file = temp.path().join("VERSION");
        assert!(matches!(open(&file), Err(DataDirError::NoDirectory(_))));
    }
}
