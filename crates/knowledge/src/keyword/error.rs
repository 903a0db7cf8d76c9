//! What can go wrong with a keyword index.

/// A fault of the keyword leg. Search goes on with the dense leg and says `bm25: false`.
#[derive(Debug, thiserror::Error)]
pub enum KeywordError {
    /// The index is being built, or was not ready within the time a search waits.
    #[error("the keyword index is being built")]
    Building,
    /// Its files cannot be used; they are built anew.
    #[error("the keyword index cannot be used")]
    Index(#[from] tantivy::TantivyError),
    /// Reading its files went wrong in a way that only damage explains.
    #[error("the files of the keyword index are damaged")]
    Damaged,
    /// Its folder cannot be read or written.
    #[error("the folder of the keyword index cannot be used")]
    Folder(#[from] std::io::Error),
    /// The corpus cannot be read.
    #[error("the corpus cannot be read")]
    Database(#[from] sqlx::Error),
    /// The database that the index is made from is away, and there is none yet.
    #[error("the corpus is away")]
    Away,
    /// The organization has no corpus right now.
    #[error("{}", .0.message)]
    NoCorpus(tale_core::Problem),
    /// The process stops, or a task of the index ended before its time.
    #[error("the work on the keyword index was stopped")]
    Stopped,
}

impl KeywordError {
    /// Whether a database is away, which may be over the next moment.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Database(_) | Self::NoCorpus(_) | Self::Away)
    }

    /// Whether the files are to blame, so that building them anew helps.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged => true,
            Self::Index(error) => !is_full(error),
            _ => false,
        }
    }

    /// What it means that a blocking task did not return: it was cancelled because the process
    /// stops, or it panicked, which tantivy does on files that are not what they claim to be.
    pub(crate) fn of_task(error: tokio::task::JoinError) -> Self {
        if error.is_panic() { Self::Damaged } else { Self::Stopped }
    }
}

/// A full disk: the files that are there are sound.
fn is_full(error: &tantivy::TantivyError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        }
        cause = error.source();
    }
    match error {
        tantivy::TantivyError::IoError(error) => error.kind() == std::io::ErrorKind::StorageFull,
        _ => false,
    }
}
