//! Following a file of settings and the file of secrets beside it, without a watcher.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{ConfigError, ConfigStore, FilePath, Scope, Stamp};

/// Organizations whose files are remembered in one process.
const MAX: usize = 1_024;

/// By short name: the state of both files, and what was made of them.
type Known<T> = HashMap<String, ([Option<Stamp>; 2], T)>;

/// What two files of an organization said when they were read last. Each use compares what the directory
/// entries say with what they said then, which costs one look at the disk for organizations without the
/// files and two for the others: a file that changed acts on the next use in every process.
#[derive(Debug)]
pub struct Remembered<T> {
    settings: FilePath,
    secrets: FilePath,
    read: Mutex<Known<T>>,
}

impl<T: Clone> Remembered<T> {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(settings: FilePath, secrets: FilePath) -> Self {
        Self { settings, secrets, read: Mutex::default() }
    }

    /// What `read` makes of the files of the organization with `slug`, asked only after they changed;
    /// `None` when there is no file of settings.
    ///
    /// # Errors
    /// [`ConfigError::Io`] when the directory cannot be looked at.
    pub async fn get<F>(
        &self,
        files: &ConfigStore,
        slug: &str,
        read: impl FnOnce() -> F,
    ) -> Result<Option<T>, ConfigError>
    where
        F: Future<Output = T>,
    {
        let scope = Scope::Organization(slug);
        let settings = files.stamp(scope, self.settings).await?;
        if settings.is_none() {
            self.read().remove(slug);
            return Ok(None);
        }
        let stamps = [settings, files.stamp(scope, self.secrets).await?];
        if let Some((_, known)) = self.read().get(slug).filter(|(known, _)| *known == stamps) {
            return Ok(Some(known.clone()));
        }
        let fresh = read().await;
        let mut known = self.read();
        if known.len() >= MAX && !known.contains_key(slug) {
            known.clear();
        }
        known.insert(slug.to_owned(), (stamps, fresh.clone()));
        Ok(Some(fresh))
    }

    fn read(&self) -> MutexGuard<'_, Known<T>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
