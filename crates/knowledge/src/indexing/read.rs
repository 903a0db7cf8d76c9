//! Reading a file and storing its passages.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tale_blobs::{BlobError, BlobKey};
use tale_core::crypto::RunningSha256;
use tale_core::ids::{FileId, OrgId};
use tale_extract::{CHUNKER_VERSION, Chunk, ChunkStream, ExtractError, Kind, OutcomeCode};
use tale_jobs::{Backoff, EnqueueOptions, Failure, Job, JobError, Lease};
use tokio::io::AsyncWriteExt;

use super::{NOT_CONFIGURED, NOT_CONFIGURED_CODE, PER_ORGANIZATION, TEMP_PREFIX, chunk_id, enqueue_embed};
use crate::Knowledge;
use crate::changes;
use crate::documents::title_of;
use crate::embedder::EmbeddingModel;
use crate::files::{IndexStatus, Purpose};
use crate::keyword::{Change, log_changes};
use crate::store::corpus::{self, Slice};
use crate::store::{documents, files};
use crate::transcriber as media;

/// Passages per transaction.
const SLICE: usize = 64;
/// Runs after which a transcription that a provider cannot do right now counts as failed (TRN-3).
const LISTENING_RUNS: u32 = 4;
/// Shortest pause between two notes of progress.
const TOLD_EVERY_MS: i64 = 1_000;
/// Passages per entry of the keyword log.
const LOGGED: i32 = 1024;

/// Reads one file and stores its passages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IndexFile {
    /// The organization.
    pub org: OrgId,
    /// The file.
    pub file: FileId,
}

/// Queues the reading of a file; once per file, whatever is queued already.
pub(crate) async fn enqueue(conn: &mut PgConnection, org: OrgId, file: FileId) -> Result<(), sqlx::Error> {
    tale_jobs::enqueue(conn, Some(org), &IndexFile { org, file }, EnqueueOptions::keyed(file.to_string())).await?;
    Ok(())
}

impl Job for IndexFile {
    const NAME: &'static str = "knowledge.index_file";
    const MAX_ATTEMPTS: u32 = 5;
    const TIMEOUT: Duration = Duration::from_secs(30 * 60);
    const PER_ORG: u32 = PER_ORGANIZATION;
    const BACKOFF: Backoff = Backoff { first: Duration::from_secs(30), cap: Duration::from_secs(600) };
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, lease: &Lease) -> Result<(), JobError> {
        match knowledge.index_file(self.org, self.file, super::renewed(lease)).await {
            Ok(()) => Ok(()),
            Err(ReadError::Stopped(stopped)) => Err(stopped),
            // The file stays on its way while the provider has a bad moment.
            Err(ReadError::Later(message)) if lease.attempt() < LISTENING_RUNS => {
                Err(JobError::retry("TRANSCRIPTION_UPSTREAM", message))
            }
            Err(ReadError::Later(message)) => {
                knowledge.end(self.org, self.file, IndexStatus::Failed, "transcription_upstream", &message).await?;
                Ok(())
            }
            Err(error) => {
                knowledge.fail(self.org, self.file, &error).await?;
                Err(JobError::retry("INDEXER_ERROR", error.to_string()))
            }
        }
    }

    async fn given_up(&self, knowledge: &Knowledge, _org: Option<OrgId>, failure: &Failure) {
        let error = ReadError::Failed(failure.message.clone().into());
        if let Err(error) = knowledge.fail(self.org, self.file, &error).await {
            tracing::warn!(org.id = %self.org, file.id = %self.file, error = %error, "could not record that a file was not indexed");
        }
    }
}

/// Why a run ended without a searchable file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is refused as a whole; reading it again cannot help.
    #[error("{}", .0.message)]
    Refused(ExtractError),
    /// Something of ours failed; the stored file is intact.
    #[error("the file could not be indexed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A recording has no text; trying again on its own cannot help.
    #[error("{message}")]
    Unheard {
        /// Stored with the file.
        code: &'static str,
        /// A sentence for people.
        message: String,
    },
    /// A recording cannot be transcribed right now, in the provider's words.
    #[error("{0}")]
    Later(String),
    /// The worker wants the run to stop.
    #[error("the run was stopped")]
    Stopped(#[source] JobError),
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<BlobError> for ReadError {
    fn from(error: BlobError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ExtractError> for ReadError {
    fn from(error: ExtractError) -> Self {
        if error.code == OutcomeCode::IndexerError { Self::Failed(error.into()) } else { Self::Refused(error) }
    }
}

/// What is read: the file's row with the title its passages carry.
pub(super) struct Source {
    pub(super) org: OrgId,
    pub(super) row: files::FileRow,
    pub(super) title: String,
}

/// What a run stored.
struct Stored {
    count: i32,
    text_length: i64,
}

impl Knowledge {
    /// One run over a file: reads it, stores its passages, makes it searchable and queues its
    /// embedding. `keep` renews the lease and says when to stop.
    ///
    /// # Errors
    /// [`ReadError::Failed`], [`ReadError::Later`] and [`ReadError::Stopped`]; a refusal is recorded
    /// and is no error.
    pub async fn index_file<F, K>(&self, org: OrgId, file: FileId, keep: K) -> Result<(), ReadError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let Some(source) = self.take_up(org, file).await? else { return Ok(()) };
        let bytes = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(self.temp_dir())?;
        let content_hash = self.download(&source, bytes.path(), &keep).await?;
        let stored = match media::recording_type(&source.row.file_name).filter(|_| source.row.purpose == Purpose::Chat)
        {
            Some((extension, kind)) => {
                match self.hear(&source, bytes.path(), (&extension, kind), &content_hash, &keep).await {
                    Ok(text) => self.store_passages(&source, text.path(), Kind::Plain, &content_hash, &keep).await,
                    Err(error) => Err(error),
                }
            }
            None => match tale_extract::classify(&source.row.file_name).into_kind(&source.row.file_name) {
                Ok(kind) => self.store_passages(&source, bytes.path(), kind, &content_hash, &keep).await,
                Err(error) => Err(error.into()),
            },
        };
        match stored {
            Ok(stored) => self.publish(&source, &content_hash, &stored).await,
            Err(ReadError::Refused(error)) => {
                let status = if error.code.is_unsupported() { IndexStatus::Unsupported } else { IndexStatus::Failed };
                self.refuse(&source, &content_hash, status, error.code.as_str(), &error.message).await
            }
            Err(ReadError::Unheard { code, message }) => {
                self.refuse(&source, &content_hash, IndexStatus::Failed, code, &message).await
            }
            Err(error) => Err(error),
        }
    }

    /// Marks the file as running and reads what the run needs; `None` when there is nothing to do.
    async fn take_up(&self, org: OrgId, file: FileId) -> Result<Option<Source>, sqlx::Error> {
        let mut tx = self.app().begin().await?;
        let Some(row) = files::lock(&mut tx, org, file).await? else { return Ok(None) };
        let held = documents::holding(&mut tx, org, file).await?;
        let wanted = match (row.purpose, held) {
            (Purpose::Document, Some((_, active, _))) => active,
            (Purpose::Document, None) => false,
            (Purpose::Chat, _) => true,
        };
        if !wanted || !files::start(&mut tx, org, file, self.clock().now()).await? {
            return Ok(None);
        }
        let title = self.title(&mut tx, org, &row).await?;
        changes::hint_file(&mut tx, org, file).await?;
        tx.commit().await?;
        Ok(Some(Source { org, row, title }))
    }

    async fn title(&self, conn: &mut PgConnection, org: OrgId, row: &files::FileRow) -> Result<String, sqlx::Error> {
        Ok(documents::title_of_file(conn, org, row.id).await?.unwrap_or_else(|| title_of(&row.file_name)))
    }

    /// Cuts the bytes at `path` into passages and stores them in slices. A file of one slice is one
    /// transaction.
    async fn store_passages<F, K>(
        &self,
        source: &Source,
        path: &Path,
        kind: Kind,
        content_hash: &str,
        keep: &K,
    ) -> Result<Stored, ReadError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let (org, file) = (source.org, source.row.id);
        let prior = corpus::get(&mut *self.corpus().acquire().await?, org, file).await?;
        let same = prior.as_ref().is_some_and(|prior| {
            prior.content_hash.as_deref() == Some(content_hash) && prior.chunker_version == CHUNKER_VERSION
        });
        let searchable = same && prior.as_ref().is_some_and(|prior| prior.status == "completed");
        if let Some(prior) = prior.as_ref().filter(|prior| searchable && prior.title == source.title) {
            // Everything is stored: only the last step of an earlier run is missing.
            return Ok(Stored { count: prior.chunks_count, text_length: prior.text_length });
        }
        if prior.is_some() && !same {
            // Other bytes, or another chunker: nothing of the old passages may be shown again.
            self.remove_passages(org, file).await?;
        }
        let library = source.row.purpose == Purpose::Document;
        let mut stream = ChunkStream::open(self.extract_program(), path, kind, &source.title)?;
        let (mut count, mut told) = (0i32, self.clock().now_ms());
        loop {
            let mut slice = Slice::default();
            let mut ended = false;
            while slice.ids.len() < SLICE && !ended {
                match stream.next().await? {
                    Some(chunk) => push(&mut slice, file, content_hash, &chunk),
                    None => ended = true,
                }
            }
            let first = count;
            count += i32::try_from(slice.ids.len()).unwrap_or(i32::MAX);
            let mut tx = self.corpus().begin().await?;
            if first == 0 {
                corpus::begin(&mut tx, org, file, &source.title, library, content_hash, CHUNKER_VERSION).await?;
            }
            let written = if count > first {
                corpus::put_slice(&mut tx, org, file, library, CHUNKER_VERSION, &slice).await?
            } else {
                0
            };
            if searchable && written > 0 {
                // These passages are found already and have a new header.
                log_changes(&mut tx, org, &[Change::Passages { file, first, last: count - 1 }]).await?;
            }
            if ended {
                let text_length = i64::try_from(stream.chars()).unwrap_or(i64::MAX);
                finish(&mut tx, source, count, text_length, searchable).await?;
                tx.commit().await?;
                return Ok(Stored { count, text_length });
            }
            tx.commit().await?;
            keep().await.map_err(ReadError::Stopped)?;
            if self.clock().now_ms() - told >= TOLD_EVERY_MS {
                told = self.clock().now_ms();
                files::progress(&mut *self.app().acquire().await?, org, file, count, None, self.clock().now()).await?;
            }
        }
    }

    /// Copies the stored bytes into `to` and returns their digest. No more than the declared size
    /// is ever written.
    async fn download<F, K>(&self, source: &Source, to: &Path, keep: &K) -> Result<String, ReadError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let key = BlobKey::parse(&source.row.storage_key).map_err(|error| ReadError::Failed(error.into()))?;
        let declared = u64::try_from(source.row.size).unwrap_or_default();
        let mut digest = RunningSha256::default();
        let mut file = tokio::fs::File::create(to).await?;
        let mut written = 0u64;
        let mut object = self.blobs().get(&key, None).await?;
        let mut since_renewal = 0u64;
        while let Some(piece) = object.bytes.next().await {
            let piece = piece?;
            written += piece.len() as u64;
            since_renewal += piece.len() as u64;
            if written > declared {
                return Err(ReadError::Failed("the stored object is larger than its row says".into()));
            }
            digest.update(&piece);
            file.write_all(&piece).await?;
            if since_renewal > 16 << 20 {
                since_renewal = 0;
                keep().await.map_err(ReadError::Stopped)?;
            }
        }
        file.flush().await?;
        if written != declared {
            return Err(ReadError::Failed("the stored object is shorter than its row says".into()));
        }
        Ok(digest.finish_hex())
    }

    /// Makes the stored passages searchable and queues what is left to do.
    async fn publish(&self, source: &Source, content_hash: &str, stored: &Stored) -> Result<(), ReadError> {
        let (org, file) = (source.org, source.row.id);
        let model = self.embedder().model(org).await.map_err(|problem| ReadError::Failed(problem.into()))?;
        let stamp = model.as_ref().map(EmbeddingModel::stamp);
        let has_vectors = match &stamp {
            Some(stamp) => {
                let mut conn = self.corpus().acquire().await?;
                corpus::unembedded_count(&mut conn, org, file, stamp).await?.0 == 0
            }
            None => false,
        };
        let missing = stamp.is_none();
        let mut tx = self.app().begin().await?;
        let completed = files::Completed {
            content_hash,
            text_length: stored.text_length,
            embedding_stamp: stamp.as_deref().filter(|_| has_vectors),
            code: missing.then_some(NOT_CONFIGURED_CODE),
            error: missing.then_some(NOT_CONFIGURED),
            now: self.clock().now(),
        };
        if !files::complete(&mut tx, org, file, &completed).await? {
            // Deleted, or settled by somebody else meanwhile.
            return Ok(());
        }
        if stamp.is_some() && !has_vectors {
            enqueue_embed(&mut tx, org, file).await?;
        }
        if self.title(&mut tx, org, &source.row).await? != source.title {
            // Renamed meanwhile: once more, for the headers.
            files::queue(&mut tx, org, file, self.clock().now()).await?;
            enqueue(&mut tx, org, file).await?;
        }
        changes::hint_file(&mut tx, org, file).await?;
        self.tell_settled(&mut tx, org, &source.row).await?;
        tx.commit().await?;
        tracing::info!(org.id = %org, file.id = %file, passages = stored.count, "indexed a file");
        Ok(())
    }

    /// Refuses the file as a whole: nothing of it stays searchable.
    async fn refuse(
        &self,
        source: &Source,
        content_hash: &str,
        status: IndexStatus,
        code: &str,
        message: &str,
    ) -> Result<(), ReadError> {
        let (org, file) = (source.org, source.row.id);
        self.remove_passages(org, file).await?;
        let mut tx = self.app().begin().await?;
        files::darken(&mut tx, org, file, content_hash).await?;
        files::end(&mut tx, org, file, status, code, message, self.clock().now()).await?;
        changes::hint_file(&mut tx, org, file).await?;
        self.tell_settled(&mut tx, org, &source.row).await?;
        tx.commit().await?;
        tracing::info!(org.id = %org, file.id = %file, code, "refused to index a file");
        Ok(())
    }

    /// Records that a run failed; the passages of an earlier run stay as they are.
    pub(crate) async fn fail(&self, org: OrgId, file: FileId, error: &ReadError) -> Result<(), sqlx::Error> {
        tracing::warn!(org.id = %org, file.id = %file, error = %chain(error), "could not index a file");
        let sentence = "Reading this file failed on our side. The stored file is intact; it is tried again, or use Retry indexing.";
        self.end(org, file, IndexStatus::Failed, OutcomeCode::IndexerError.as_str(), sentence).await
    }

    /// Ends a run without a searchable file.
    async fn end(
        &self,
        org: OrgId,
        file: FileId,
        status: IndexStatus,
        code: &str,
        sentence: &str,
    ) -> Result<(), sqlx::Error> {
        let mut tx = self.app().begin().await?;
        files::end(&mut tx, org, file, status, code, sentence, self.clock().now()).await?;
        changes::hint_file(&mut tx, org, file).await?;
        if let Some(row) = files::get(&mut tx, org, file).await? {
            self.tell_settled(&mut tx, org, &row).await?;
        }
        tx.commit().await
    }

    /// Removes every passage of a file from the corpus and from the keyword leg.
    pub(crate) async fn remove_passages(&self, org: OrgId, file: FileId) -> Result<(), sqlx::Error> {
        let mut tx = self.corpus().begin().await?;
        if corpus::remove(&mut tx, org, file).await? {
            log_changes(&mut tx, org, &[Change::File(file)]).await?;
        }
        tx.commit().await
    }
}

/// Ends a file's passages: what an earlier run left behind the last one goes, and the keyword leg
/// is told unless it knows these passages already.
async fn finish(
    conn: &mut PgConnection,
    source: &Source,
    count: i32,
    text_length: i64,
    searchable: bool,
) -> Result<(), sqlx::Error> {
    let (org, file) = (source.org, source.row.id);
    let cut = corpus::cut_after(&mut *conn, org, file, count).await?;
    corpus::finish(&mut *conn, org, file, &source.title, count, text_length).await?;
    let log: Vec<Change> = if cut > 0 {
        vec![Change::File(file)]
    } else if searchable {
        Vec::new()
    } else {
        (0..count)
            .step_by(LOGGED as usize)
            .map(|first| Change::Passages { file, first, last: (first + LOGGED).min(count) - 1 })
            .collect()
    };
    log_changes(conn, org, &log).await
}

fn push(slice: &mut Slice, file: FileId, content_hash: &str, chunk: &Chunk) {
    let place = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let body_end = chunk.body_start + chunk.body.chars().count() as u64;
    let head = usize::try_from(chunk.body_start.saturating_sub(chunk.start)).unwrap_or_default();
    let tail = usize::try_from(chunk.end.saturating_sub(body_end)).unwrap_or_default();
    let head_text: String = chunk.core.chars().take(head).collect();
    let mut tail_text: Vec<char> = chunk.core.chars().rev().take(tail).collect();
    tail_text.reverse();
    slice.ids.push(chunk_id(file, content_hash, CHUNKER_VERSION, chunk.ordinal).0);
    slice.ordinals.push(i32::try_from(chunk.ordinal).unwrap_or(i32::MAX));
    slice.headers.push(chunk.header.clone());
    slice.bodies.push(chunk.body.clone());
    slice.body_starts.push(place(chunk.body_start));
    slice.body_ends.push(place(body_end));
    slice.core_starts.push(place(chunk.start));
    slice.core_ends.push(place(chunk.end));
    slice.core_heads.push(head_text);
    slice.core_tails.push(tail_text.into_iter().collect());
    slice.pages.push(chunk.page.and_then(|page| i32::try_from(page).ok()));
}

/// An error with its causes, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
