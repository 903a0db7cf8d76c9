//! The library: documents that hold an uploaded file or inline text (spec 60, sections 5.1–5.3).

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use tale_core::ids::{DocumentId, FileId, UserId};
use tale_core::limits::MAX_TITLE_CHARS;
use tale_core::{Code, Problem};
use tale_governance::policies::Upload;
use tale_identity::{Caller, Capability};

use crate::Knowledge;
use crate::changes::{self, Act};
use crate::files::{IndexStatus, Purpose, file_not_found};
use crate::indexing;
use crate::order::{DocumentOrder, Key, Position};
use crate::store::documents::{self as store, DocumentRow};
use crate::store::files;

/// Longest inline text, in bytes (API-16).
pub const MAX_INLINE_BYTES: usize = 32 << 20;

/// Who made a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The person.
    pub id: UserId,
    /// The person's name today.
    pub name: String,
}

/// How far a document is indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexing {
    /// Where it stands.
    pub status: IndexStatus,
    /// Whether its passages carry vectors.
    pub embedded: bool,
    /// When it became searchable.
    pub indexed_at: Option<DateTime<Utc>>,
    /// What went wrong, as a sentence.
    pub error: Option<String>,
    /// What clients branch on.
    pub error_code: Option<String>,
    /// Passages done and expected, while both are known.
    pub progress: Option<(u32, u32)>,
}

/// A document of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// Its title.
    pub title: String,
    /// The stored file; `None` for inline text.
    pub file: Option<FileId>,
    /// Inline text.
    pub content: Option<String>,
    /// The file's name; the title for inline text.
    pub file_name: String,
    /// Lower-case, without the dot; may be empty.
    pub extension: String,
    /// Its media type.
    pub mime_type: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: Option<Author>,
    /// SHA-256 of the bytes in hexadecimal, once they were read.
    pub content_hash: Option<String>,
    /// Length of the extracted text in Unicode scalar values, once it was read.
    pub text_length: Option<u64>,
    /// How far it is indexed.
    pub indexing: Indexing,
}

/// Which documents to list, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentQuery {
    /// Part of the title or the file's name.
    pub search: Option<String>,
    /// Only those in this state.
    pub status: Option<IndexStatus>,
    /// Newest first by default.
    pub order: DocumentOrder,
}

/// A page of documents.
#[derive(Debug, Clone)]
pub struct DocumentPage {
    /// The rows.
    pub rows: Vec<Document>,
    /// Continues after the last row; `None` on the last page.
    pub next: Option<Position>,
}

/// What a new document holds.
#[derive(Debug, Clone)]
pub enum NewContent {
    /// The caller's own upload.
    File(FileId),
    /// Text that is stored as it is and never indexed.
    Inline {
        /// The text.
        text: String,
        /// Its media type; `text/plain` when unset.
        mime_type: Option<String>,
        /// Its extension, without the dot; `txt` when unset.
        extension: Option<String>,
    },
}

/// What came of a wish to index again (DOC-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// It is queued.
    Indexing,
    /// Inline text is never indexed.
    ContentOnly,
    /// The stored bytes are unknown.
    UntrackedBlob,
    /// The file cannot be indexed, whatever is tried.
    Unsupported,
    /// It is queued or running already.
    InProgress,
}

impl Retried {
    /// The wire's word for why nothing was done; `None` when the document is queued.
    #[must_use]
    pub fn skipped(self) -> Option<&'static str> {
        match self {
            Self::Indexing => None,
            Self::ContentOnly => Some("content-only"),
            Self::UntrackedBlob => Some("untracked-blob"),
            Self::Unsupported => Some("unsupported"),
            Self::InProgress => Some("in-progress"),
        }
    }
}

pub(crate) fn document_not_found() -> Problem {
    Problem::new(Code::DocumentNotFound, "There is no such document, or it was deleted.")
}

impl Knowledge {
    /// Creates a document. Binding the same upload again returns the same document and `false`
    /// (FILE-4).
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for anything but the caller's own unused upload whose bytes arrived,
    /// `UPLOAD_SCOPE_CONFLICT` for a chat upload, `INVALID_BODY` for a bad title or text.
    pub async fn create_document(
        &self,
        caller: &Caller,
        content: NewContent,
        title: Option<&str>,
    ) -> Result<(Document, bool), Problem> {
        caller.require(Capability::KnowledgeWrite)?;
        let title = title.map(clean_title).transpose()?;
        match content {
            NewContent::File(file) => self.bind_upload(caller, file, title).await,
            NewContent::Inline { text, mime_type, extension } => {
                let title = title.ok_or_else(|| Problem::invalid_field("title", "is required"))?;
                if text.len() > MAX_INLINE_BYTES {
                    return Err(Problem::invalid_field("content", "must be at most 32 MiB"));
                }
                let extension = extension
                    .map_or_else(|| "txt".to_owned(), |text| text.trim().trim_start_matches('.').to_ascii_lowercase());
                let mime_type =
                    crate::file_type::clean_type(mime_type.as_deref().unwrap_or_default(), &format!("a.{extension}"));
                let size = text.len() as u64;
                let policy = self.upload_policy(caller.org).await?;
                policy.judge(&Upload { extension: &extension, content_type: &mime_type, size })?;
                let id = DocumentId::new();
                let new = store::NewDocument {
                    id,
                    title: &title,
                    file_id: None,
                    content: Some(&text),
                    mime_type: &mime_type,
                    extension: &extension,
                    source_provider: source_of(caller),
                    created_by: caller.user,
                    now: self.clock().now(),
                };
                let mut tx = self.app().begin().await?;
                store::insert(&mut tx, caller.org, &new).await?;
                changes::record(&mut tx, caller, Act::Created, id, &title, self.clock().now()).await?;
                let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
                tx.commit().await?;
                Ok((row.into(), true))
            }
        }
    }

    async fn bind_upload(
        &self,
        caller: &Caller,
        file: FileId,
        title: Option<String>,
    ) -> Result<(Document, bool), Problem> {
        let row = self.own_upload(caller, file).await?;
        if row.purpose == Purpose::Chat {
            return Err(Problem::new(
                Code::UploadScopeConflict,
                "This file was uploaded for a chat. Upload it again under Documents to add it to the library.",
            ));
        }
        // The store is asked before the transaction: none stays open while it answers.
        let found = if row.state == "slot" { Some(self.inspect(caller.org, &row).await?) } else { None };
        let mut tx = self.app().begin().await?;
        let locked = files::lock(&mut tx, caller.org, file).await?.ok_or_else(file_not_found)?;
        if let Some((id, active, creator)) = store::holding(&mut tx, caller.org, file).await? {
            if !active || creator != caller.user {
                return Err(file_not_found());
            }
            let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(file_not_found)?;
            return Ok((row.into(), false));
        }
        let found = found.ok_or_else(file_not_found)?;
        let title = title.unwrap_or_else(|| title_of(&locked.file_name));
        let extension = tale_extract::extension(&locked.file_name).unwrap_or_default();
        let id = DocumentId::new();
        let now = self.clock().now();
        let new = store::NewDocument {
            id,
            title: &title,
            file_id: Some(file),
            content: None,
            mime_type: &locked.content_type,
            extension: &extension,
            source_provider: source_of(caller),
            created_by: caller.user,
            now,
        };
        store::insert(&mut tx, caller.org, &new).await?;
        self.settle_upload(&mut tx, caller.org, &locked, &found).await?;
        changes::record(&mut tx, caller, Act::Created, id, &title, now).await?;
        let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
        tx.commit().await?;
        Ok((row.into(), true))
    }

    /// A page of documents, in the order of `query`. `after` must come from a list of the same order.
    ///
    /// # Errors
    /// The caller's missing right; the database's trouble.
    pub async fn list_documents(
        &self,
        caller: &Caller,
        query: &DocumentQuery,
        after: Option<Position>,
        limit: u32,
    ) -> Result<DocumentPage, Problem> {
        caller.require(Capability::KnowledgeRead)?;
        let mut conn = self.app().acquire().await?;
        let mut rows = store::list(&mut conn, caller.org, query, after.as_ref(), i64::from(limit) + 1).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| more).map(|row| Position { key: Key::of(row, query.order.by), id: row.id });
        Ok(DocumentPage { rows: rows.into_iter().map(Document::from).collect(), next })
    }

    /// How many documents match, on all pages.
    ///
    /// # Errors
    /// As [`Knowledge::list_documents`].
    pub async fn count_documents(&self, caller: &Caller, query: &DocumentQuery) -> Result<u64, Problem> {
        caller.require(Capability::KnowledgeRead)?;
        let mut conn = self.app().acquire().await?;
        Ok(u64::try_from(store::count(&mut conn, caller.org, query).await?).unwrap_or_default())
    }

    /// One document.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`.
    pub async fn document(&self, caller: &Caller, id: DocumentId) -> Result<Document, Problem> {
        Ok(self.row(caller, id).await?.into())
    }

    pub(crate) async fn row(&self, caller: &Caller, id: DocumentId) -> Result<DocumentRow, Problem> {
        caller.require(Capability::KnowledgeRead)?;
        let mut conn = self.app().acquire().await?;
        store::get(&mut conn, caller.org, id).await?.ok_or_else(document_not_found)
    }

    /// Those of `ids` that the caller may open now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn readable_documents(
        &self,
        caller: &Caller,
        ids: impl IntoIterator<Item = DocumentId>,
    ) -> Result<HashSet<DocumentId>, Problem> {
        let ids: Vec<DocumentId> = ids.into_iter().collect();
        if ids.is_empty() || !caller.can(Capability::KnowledgeRead) {
            return Ok(HashSet::new());
        }
        let mut conn = self.app().acquire().await?;
        Ok(store::active(&mut conn, caller.org, &ids).await?.into_iter().collect())
    }

    /// Changes what is given of a document, provided `guard` accepts it as it is now. A title it
    /// has already writes nothing (KB-9); the guard is judged before that (KB-8).
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`, `INVALID_BODY`, or what `guard` says.
    pub async fn update_document(
        &self,
        caller: &Caller,
        id: DocumentId,
        title: Option<&str>,
        guard: impl FnOnce(&Document) -> Result<(), Problem> + Send,
    ) -> Result<Document, Problem> {
        caller.require(Capability::KnowledgeWrite)?;
        let title = title.map(clean_title).transpose()?;
        let now = self.clock().now();
        let mut tx = self.app().begin().await?;
        let document: Document = store::lock(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?.into();
        guard(&document)?;
        let Some(title) = title.filter(|title| *title != document.title) else { return Ok(document) };
        store::rename(&mut tx, caller.org, id, &title, now).await?;
        // The title stands in the header of every passage, so the headers are written anew; the
        // vectors stay. A file that waits for its turn takes the new title by itself.
        if let (Some(file), IndexStatus::Completed) = (document.file, document.indexing.status)
            && files::queue(&mut tx, caller.org, file, now).await?
        {
            indexing::enqueue_index(&mut tx, caller.org, file).await?;
        }
        changes::record(&mut tx, caller, Act::Renamed, id, &title, now).await?;
        let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// Moves a document to the trash. No search shows it from this commit on (DOC-9).
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`.
    pub async fn delete_document(&self, caller: &Caller, id: DocumentId) -> Result<(), Problem> {
        caller.require(Capability::KnowledgeWrite)?;
        let now = self.clock().now();
        let mut tx = self.app().begin().await?;
        let row = store::lock(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
        if !store::trash(&mut tx, caller.org, id, now).await? {
            return Err(document_not_found());
        }
        changes::record(&mut tx, caller, Act::Trashed, id, &row.title, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Brings a document back from the trash: the undo of a delete.
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND` when it is not in the trash, or purged.
    pub async fn restore_document(&self, caller: &Caller, id: DocumentId) -> Result<Document, Problem> {
        caller.require(Capability::KnowledgeWrite)?;
        let now = self.clock().now();
        let mut tx = self.app().begin().await?;
        if !store::restore(&mut tx, caller.org, id, now).await? {
            return Err(document_not_found());
        }
        let row = store::get(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
        // A job that found the document in the trash left its file alone.
        if let (Some(file), IndexStatus::Queued | IndexStatus::Running) = (row.file_id, row.status) {
            indexing::enqueue_index(&mut tx, caller.org, file).await?;
        }
        changes::record(&mut tx, caller, Act::Restored, id, &row.title, now).await?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// Queues a document for indexing again; an opted-out one is opted in (DOC-6).
    ///
    /// # Errors
    /// `DOCUMENT_NOT_FOUND`.
    pub async fn retry_indexing(&self, caller: &Caller, id: DocumentId) -> Result<Retried, Problem> {
        caller.require(Capability::KnowledgeWrite)?;
        let mut tx = self.app().begin().await?;
        let row = store::lock(&mut tx, caller.org, id).await?.ok_or_else(document_not_found)?;
        let file = match (row.content.is_some(), row.file_id) {
            (true, _) => return Ok(Retried::ContentOnly),
            (false, None) => return Ok(Retried::UntrackedBlob),
            (false, Some(file)) => file,
        };
        match row.status {
            IndexStatus::Unsupported => return Ok(Retried::Unsupported),
            IndexStatus::Queued | IndexStatus::Running => return Ok(Retried::InProgress),
            IndexStatus::Pending | IndexStatus::Completed | IndexStatus::Failed | IndexStatus::Skipped => {}
        }
        if !files::queue(&mut tx, caller.org, file, self.clock().now()).await? {
            return Ok(Retried::InProgress);
        }
        indexing::enqueue_index(&mut tx, caller.org, file).await?;
        changes::hint_document(&mut tx, caller.org, id).await?;
        tx.commit().await?;
        Ok(Retried::Indexing)
    }
}

/// Where a document came from (DOC-5).
fn source_of(caller: &Caller) -> &'static str {
    if caller.by_key() { "api" } else { "upload" }
}

fn clean_title(title: &str) -> Result<String, Problem> {
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let title = title.trim();
    if title.is_empty() {
        return Err(Problem::invalid_field("title", "must not be blank"));
    }
    if title.chars().count() > MAX_DOCUMENT_TITLE_CHARS {
        return Err(Problem::invalid_field("title", &format!("must be at most {MAX_DOCUMENT_TITLE_CHARS} characters")));
    }
    Ok(title.to_owned())
}

/// Longest title: a file's name must fit.
const MAX_DOCUMENT_TITLE_CHARS: usize = 255;
const _: () = assert!(MAX_DOCUMENT_TITLE_CHARS > MAX_TITLE_CHARS);

/// The title of a file that got none: its name without the extension.
pub(crate) fn title_of(file_name: &str) -> String {
    let name = file_name.trim();
    let stem = tale_extract::extension(name).map_or(name, |ending| &name[..name.len() - ending.len() - 1]).trim();
    if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
}

impl Document {
    pub(crate) fn from_ref(row: &DocumentRow) -> Self {
        let count = |value: Option<i32>| value.and_then(|n| u32::try_from(n).ok());
        Self {
            id: row.id,
            title: row.title.clone(),
            file: row.file_id,
            content: None,
            file_name: row.file_name.clone().unwrap_or_else(|| {
                if row.extension.is_empty() { row.title.clone() } else { format!("{}.{}", row.title, row.extension) }
            }),
            extension: row.extension.clone(),
            mime_type: row.mime_type.clone(),
            size: u64::try_from(row.size).unwrap_or_default(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            created_by: row.created_by.map(|id| Author { id, name: row.creator_name.clone().unwrap_or_default() }),
            content_hash: row.content_hash.clone(),
            text_length: row.text_length.and_then(|length| u64::try_from(length).ok()),
            indexing: Indexing {
                status: row.status,
                embedded: row.embedded,
                indexed_at: row.indexed_at,
                error: row.index_error.clone(),
                error_code: row.index_error_code.clone(),
                progress: count(row.index_done).zip(count(row.index_total)),
            },
        }
    }
}

impl From<DocumentRow> for Document {
    fn from(mut row: DocumentRow) -> Self {
        let content = row.content.take();
        Self { content, ..Self::from_ref(&row) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_name_without_its_ending() {
        assert_eq!(title_of("Q3 report.final.PDF"), "Q3 report.final");
        assert_eq!(title_of("README"), "README");
        assert_eq!(title_of(" .pdf"), ".pdf");
        assert_eq!(title_of("Übersicht.pdf "), "Übersicht");
        assert!(clean_title(" \n ").is_err());
        assert_eq!(clean_title("a\tb").unwrap(), "a b");
    }
}
