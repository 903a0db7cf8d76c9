//! The data directory of `tale dev`: one process at a time, a version, generated secrets.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
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
    #[error("another tale is running on {0}. Stop it, or name another directory with --data-dir")]
    InUse(PathBuf),
    #[error(
        "{0} was written by a newer Tale (layout {1}, this program knows {LAYOUT}). Start the newer program, or name another directory with --data-dir"
    )]
    Newer(PathBuf, u32),
    #[error("{0} holds a file VERSION that is not Tale's. Name another directory with --data-dir")]
    Foreign(PathBuf),
    #[error("no space left on the disk of {0}. Free some, then start again; nothing was lost")]
    DiskFull(PathBuf),
    #[error("{0} cannot be used: {1}")]
    Io(PathBuf, #[source] io::Error),
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
        fs::DirBuilder::new().recursive(true).mode(0o711).create(&root).map_err(told)?;
        let root = root.canonicalize().map_err(told)?;
        let told = |error: io::Error| tell(&root, error);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(root.join("tale.lock"))
            .map_err(told)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataDirError::InUse(root)),
            Err(TryLockError::Error(error)) => return Err(tell(&root, error)),
        }
        check_version(&root)?;
        Ok(Self { root, _lock: lock })
    }

    /// A path inside.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The secrets of this installation; missing ones are made and stored with mode 0600.
    pub(crate) fn secrets(&self) -> Result<MapEnv, DataDirError> {
        let path = self.join("secrets.env");
        let told = |error: io::Error| tell(&self.root, error);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(told(error)),
        };
        let mut held: BTreeMap<String, String> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect();
        let before = held.len();
        let mut missing = |name: &str, make: &dyn Fn() -> String| {
            held.entry(name.to_owned()).or_insert_with(make);
        };
        missing("BETTER_AUTH_SECRET", &|| random_token(32));
        missing("ENCRYPTION_SECRET_HEX", &|| random_hex(32));
        missing("INSTANCE_SECRET", &|| random_hex(32));
        missing("OBJECT_STORE_ACCESS_KEY", &|| "tale".to_owned());
        missing("OBJECT_STORE_SECRET_KEY", &|| random_token(32));
        missing("POSTGRES_PASSWORD", &|| random_token(24));
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
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse::<u32>() {
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
    if error.kind() == io::ErrorKind::StorageFull {
        DataDirError::DiskFull(root.to_owned())
    } else {
        DataDirError::Io(root.to_owned(), error)
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
        let first = open(&root).unwrap().secrets().unwrap();
        let again = open(&root).unwrap().secrets().unwrap();
        assert_eq!(first.0, again.0);
        let mode = fs::metadata(root.join("secrets.env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
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
        fs::write(temp.path().join("VERSION"), "something else").unwrap();
        assert!(matches!(open(temp.path()), Err(DataDirError::Foreign(_))));
    }
}
