//! Reading what a search found: whole texts, a stretch at a time.

use tale_core::ids::{DocumentId, FileId};
use tale_core::{Code, Problem};

use crate::Knowledge;
use crate::contents::assembled;
use crate::reach::Reach;
use crate::store::{corpus, search as store};

/// Longest stretch of text that one call reads, in Unicode scalar values.
pub const MAX_FETCH_CHARS: u64 = 50_000;

/// A stretch of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedText {
    /// Title of the document, or name of the uploaded file.
    pub title: String,
    /// The library document that holds the file; none for a chat upload.
    pub document_id: Option<DocumentId>,
    /// The file.
    pub file_id: FileId,
    /// The stretch that was asked for.
    pub text: String,
    /// Length of the whole text, in Unicode scalar values.
    pub total_length: u64,
    /// Where the next stretch begins; none at the end.
    pub next_offset: Option<u64>,
}

impl Knowledge {
    /// Reads the text of `file` from `offset`, at most `limit` Unicode scalar values. The same check
    /// as for a hit applies, at this moment (SRCH-4).
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`, the same for a file that is out of reach as for one that does not exist;
    /// the databases' trouble.
    pub async fn fetch_text(
        &self,
        reach: &Reach,
        file: FileId,
        offset: u64,
        limit: u64,
    ) -> Result<FetchedText, Problem> {
        let missing = || {
            Problem::new(
                Code::DocumentNotFound,
                "No document that you can read has this reference. Search again for a current one.",
            )
        };
        let visible = store::visible(self.app(), reach.org(), &[file.0], &reach.upload_ids()).await?;
        let source = visible.into_iter().next().ok_or_else(missing)?;
        let corpus = self.corpus_of(reach.org()).await?;
        let mut conn = corpus.acquire().await?;
        let row = corpus::get(&mut conn, reach.org(), file).await.map_err(|error| corpus.problem(error))?;
        let row = row.ok_or_else(missing)?;
        let total_length = u64::try_from(row.text_length).unwrap_or_default();
        let end = offset.saturating_add(limit.clamp(1, MAX_FETCH_CHARS)).min(total_length);
        let text = assembled(&mut conn, reach.org(), file, offset, end.saturating_sub(offset)).await?;
        Ok(FetchedText {
            title: source.title,
            document_id: source.document_id,
            file_id: file,
            text,
            total_length,
            next_offset: (end < total_length && offset < end).then_some(end),
        })
    }
}
