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
    /// The process stops, or a task of the index ended before its time.
    #[error("the work on the keyword index was stopped")]
    Stopped,
}

impl KeywordError {
    /// What it means that a blocking task did not return: it was cancelled because the process
    /// stops, or it panicked, which tantivy does on files that are not what they claim to be.
    pub(crate) fn of_task(error: tokio::task::JoinError) -> Self {
        if error.is_panic() { Self::Damaged } else { Self::Stopped }
    }
}
