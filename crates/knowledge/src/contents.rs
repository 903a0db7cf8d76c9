//! What is inside a document: its bytes, its extracted text and the passages that citations open.

use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt};
use sqlx::PgConnection;
use tale_blobs::BlobKey;
use tale_core::ids::{ChunkId, DocumentId, FileId, OrgId};
use tale_core::{Code, Problem};
use tale_identity::Caller;

use crate::Knowledge;
use crate::documents::{Document, document_not_found};
use crate::store::corpus;
use crate::store::documents::DocumentRow;

/// Longest stretch of extracted text in one answer, in Unicode scalar values.
pub const MAX_TEXT_CHARS: u64 = 200_000;

/// The bytes of a document.
pub struct Content {
    /// Name to save it under.
    pub file_name: String,
    /// Its media type.
    pub mime_type: String,
    /// Size of the whole in bytes.
    pub size: u64,
    /// Changes when the bytes change.
    pub tag: String,
    /// When the bytes were stored.
    pub modified: DateTime<Utc>,
    /// How many bytes `bytes` yields.
    pub length: u64,
    /// The bytes, or those of the range that was asked for.
    pub bytes: Pin<Box<dyn Stream<Item = Result<Bytes, tale_blobs::BlobError>> + Send>>,
}

/// What is known about a document's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentAbout {
    /// Size of the whole in bytes.
    pub size: u64,
    /// Changes when the bytes change.
    pub tag: String,
    /// When the bytes were stored.
    pub modified: DateTime<Utc>,
}

/// A passage in its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The passage.
    pub chunk_id: ChunkId,
    /// Its text.
    pub passage: String,
    /// Title and enclosing headings.
    pub header: String,
    /// The page it begins on, from 1.
    pub page: Option<u32>,
    /// Where it begins in the extracted text, in Unicode scalar values.
    pub start: u64,
    /// Where it ends, exclusive.
    pub end: u64,
}

/// A stretch of a document's extracted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// The stretch.
    pub text: String,
    /// Length of the whole text in Unicode scalar values.
    pub total_length: u64,
    /// Where the next stretch begins; `None` at the end.
    pub next_offset: Option<u64>,
}

impl Knowledge {
    /// What is known about a document's bytes without reading them.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`.
    pub async fn content_about(&self, caller: &Caller, id: DocumentId) -> Result<ContentAbout, Problem> {
        let row = self.row(caller, id).await?;
        Ok(ContentAbout {
            size: u64::try_from(row.size).unwrap_or_default(),
            tag: content_tag(&row),
            modified: row.created_at,
        })
    }

    /// The bytes of a document, or a stretch of them.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`, `BLOB_NOT_FOUND`, or the object store's trouble.
    pub async fn open_content(
        &self,
        caller: &Caller,
        id: DocumentId,
        range: Option<Range<u64>>,
    ) -> Result<Content, Problem> {
        let row = self.row(caller, id).await?;
        let document = Document { content: None, ..Document::from_ref(&row) };
        let tag = content_tag(&row);
        let range = range.unwrap_or(0..document.size);
        let length = range.end.saturating_sub(range.start);
        let bytes = match (&row.storage_key, row.content) {
            (Some(key), _) => {
                let key = BlobKey::parse(key).map_err(Problem::internal)?;
                if !key.belongs_to(&caller.org_slug) {
                    return Err(document_not_found());
                }
                if length == 0 {
                    futures::stream::empty().boxed()
                } else {
                    self.blobs().get(&key, Some(range)).await?.bytes
                }
            }
            (None, Some(text)) => {
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(text.len());
                let part = Bytes::from(text.clone().into_bytes()).slice(at(range.start)..at(range.end));
                futures::stream::iter([Ok(part)]).boxed()
            }
            (None, None) => return Err(document_not_found()),
        };
        Ok(Content {
            file_name: document.file_name,
            mime_type: document.mime_type,
            size: document.size,
            tag,
            modified: document.created_at,
            length,
            bytes,
        })
    }

    /// A passage of a document, as a citation opens it.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`, `PASSAGE_NOT_FOUND`.
    pub async fn passage(&self, caller: &Caller, id: DocumentId, chunk: ChunkId) -> Result<Passage, Problem> {
        let file = self.row(caller, id).await?.file_id.ok_or_else(passage_not_found)?;
        self.passage_in(caller.org, file, chunk).await
    }

    /// A passage of a file, as a citation of a chat's own upload opens it.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for a file the caller may not read, `PASSAGE_NOT_FOUND`.
    pub async fn file_passage(&self, caller: &Caller, id: FileId, chunk: ChunkId) -> Result<Passage, Problem> {
        let file = self.readable(caller, id).await?.id;
        self.passage_in(caller.org, file, chunk).await
    }

    /// The caller has checked that `file` may be read.
    async fn passage_in(&self, org: OrgId, file: FileId, chunk: ChunkId) -> Result<Passage, Problem> {
        let mut conn = self.corpus_of(org).await?.acquire().await?;
        let row = corpus::passage(&mut conn, org, file, chunk).await?.ok_or_else(passage_not_found)?;
        Ok(Passage {
            chunk_id: row.id,
            passage: row.body,
            header: row.header,
            page: row.page.and_then(|page| u32::try_from(page).ok()),
            start: u64::try_from(row.body_start).unwrap_or_default(),
            end: u64::try_from(row.body_end).unwrap_or_default(),
        })
    }

    /// A stretch of a document's text as it was extracted; of inline text, the text itself.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`.
    pub async fn text(&self, caller: &Caller, id: DocumentId, offset: u64, limit: u64) -> Result<TextPart, Problem> {
        let row = self.row(caller, id).await?;
        let limit = limit.clamp(1, MAX_TEXT_CHARS);
        if let Some(text) = row.content {
            let total_length = text.chars().count() as u64;
            let skip = usize::try_from(offset).unwrap_or(usize::MAX);
            let take = usize::try_from(limit).unwrap_or(usize::MAX);
            let part: String = text.chars().skip(skip).take(take).collect();
            return Ok(part_of(part, offset, limit, total_length));
        }
        let file = row.file_id.ok_or_else(document_not_found)?;
        self.text_in(caller.org, file, row.text_length, offset, limit).await
    }

    /// A stretch of a file's text as it was extracted.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for a file the caller may not read.
    pub async fn file_text(&self, caller: &Caller, id: FileId, offset: u64, limit: u64) -> Result<TextPart, Problem> {
        let row = self.readable(caller, id).await?;
        self.text_in(caller.org, row.id, row.text_length, offset, limit.clamp(1, MAX_TEXT_CHARS)).await
    }

    /// The caller has checked that `file` may be read.
    async fn text_in(
        &self,
        org: OrgId,
        file: FileId,
        length: Option<i64>,
        offset: u64,
        limit: u64,
    ) -> Result<TextPart, Problem> {
        let total = length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default();
        let mut conn = self.corpus_of(org).await?.acquire().await?;
        let text = assembled(&mut conn, org, file, offset.min(total), limit.min(total.saturating_sub(offset))).await?;
        Ok(part_of(text, offset, limit, total))
    }
}

fn passage_not_found() -> Problem {
    Problem::new(Code::PassageNotFound, "This passage is not in the document any more. The document was indexed anew.")
}

/// The characters `offset..offset + limit` of a file's extracted text, put together from the exact
/// cores of its passages.
pub(crate) async fn assembled(
    conn: &mut PgConnection,
    org: OrgId,
    file: FileId,
    offset: u64,
    limit: u64,
) -> Result<String, Problem> {
    if limit == 0 {
        return Ok(String::new());
    }
    let place = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let cores = corpus::cores(conn, org, file, place(offset), place(offset.saturating_add(limit))).await?;
    let Some(first) = cores.first().map(|(start, _)| u64::try_from(*start).unwrap_or_default()) else {
        return Ok(String::new());
    };
    let skip = usize::try_from(offset.saturating_sub(first)).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(cores.iter().flat_map(|(_, core)| core.chars()).skip(skip).take(take).collect())
}

pub(crate) fn part_of(text: String, offset: u64, limit: u64, total_length: u64) -> TextPart {
    let end = offset.saturating_add(limit);
    TextPart { text, total_length, next_offset: (end < total_length).then_some(end) }
}

/// Stored bytes never change under their file's id; inline text is named by its digest.
fn content_tag(row: &DocumentRow) -> String {
    row.file_id.map_or_else(
        || tale_core::crypto::hex_of(&tale_core::crypto::sha256(row.content.as_deref().unwrap_or_default().as_bytes())),
        |file| file.to_string(),
    )
}
