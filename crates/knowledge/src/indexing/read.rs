//! Reading a file and storing its passages.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tale_blobs::BlobError;
use tale_core::ids::{FileId, OrgId};
use tale_core::{Code, Problem};
use tale_extract::{CHUNKER_VERSION, Chunk, ChunkStream, ExtractError, Kind, OutcomeCode};
use tale_jobs::{Backoff, EnqueueOptions, Failure, Job, JobError, Lease};

use super::{NOT_CONFIGURED, NOT_CONFIGURED_CODE, PER_ORGANIZATION, TEMP_PREFIX, chunk_id, enqueue_embed};
use crate::Knowledge;
use crate::changes;
use crate::corpora::CorpusPool;
use crate::documents::title_of;
use crate::embedder::EmbeddingModel;
use crate::files::{IndexStatus, Purpose};
use crate::keyword::{Change, log_changes};
use crate::store::corpus::{self, Beginning, Slice};
use crate::store::files;
use crate::transcriber as media;

/// Passages per transaction: about half a megabyte of text.
const SLICE: usize = 256;
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
    const RESUMES: bool = true;
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, lease: &Lease) -> Result<(), JobError> {
        let started = Instant::now();
        let mut away = None;
        let error = match knowledge.index_file(self.org, self.file, super::renewed(lease)).await {
            Ok(()) => {
                crate::metrics::INGESTION.observe(started.elapsed());
                return Ok(());
            }
            Err(ReadError::Stopped(stopped)) => stopped,
            // The file stays on its way while the provider has a bad moment.
            Err(ReadError::Later(message)) if lease.attempt() < LISTENING_RUNS => {
                JobError::retry("TRANSCRIPTION_UPSTREAM", message)
            }
            Err(ReadError::Later(message)) => {
                knowledge.end(self.org, self.file, IndexStatus::Failed, "transcription_upstream", &message).await?;
                return Ok(());
            }
            Err(ReadError::Away(problem)) => {
                tracing::info!(org.id = %self.org, file.id = %self.file, code = problem.code.text(), "a file waits to be indexed: {}", problem.message);
                away = Some(Problem::new(problem.code, problem.message.clone()));
                problem.into()
            }
            Err(error) => {
                tracing::warn!(event = "file.failed", org.id = %self.org, file.id = %self.file, error = %chain(&error), "could not index a file");
                if lease.is_last_attempt() {
                    // Recorded when the job is given up.
                    return Err(JobError::retry("INDEXER_ERROR", error.to_string()));
                }
                JobError::retry("INDEXER_ERROR", error.to_string())
            }
        };
        if !matches!(error, JobError::LeaseLost) {
            knowledge.await_retry(self.org, self.file, away.as_ref()).await?;
        }
        Err(error)
    }

    async fn given_up(&self, knowledge: &Knowledge, _org: Option<OrgId>, _failure: &Failure) {
        if let Err(error) = knowledge.fail(self.org, self.file).await {
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
    /// A database, the object store or the disk cannot be used at the moment.
    #[error("{}", .0.message)]
    Away(Problem),
    /// The worker wants the run to stop.
    #[error("the run was stopped")]
    Stopped(#[source] JobError),
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<BlobError> for ReadError {
    fn from(error: BlobError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Problem> for ReadError {
    fn from(problem: Problem) -> Self {
        match problem.code {
            Code::DatabaseUnavailable
            | Code::KnowledgeUnavailable
            | Code::KnowledgeMisconfigured
            | Code::ObjectStoreUnavailable
            | Code::ObjectStoreMisconfigured => Self::Away(problem),
            _ => Self::Failed(problem.into()),
        }
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        if matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            let sentence = "There is no space left where files are read. Free some; indexing then goes on by itself.";
            return Self::Away(Problem::new(Code::ObjectStoreUnavailable, sentence).because(error));
        }
        Self::Failed(error.into())
    }
}

impl From<ExtractError> for ReadError {
    fn from(error: ExtractError) -> Self {
        if error.code == OutcomeCode::IndexerError { Self::Failed(error.into()) } else { Self::Refused(error) }
    }
}

/// What is read: the file with the title its passages carry.
pub(super) struct Source {
    pub(super) org: OrgId,
    pub(super) file: FileId,
    pub(super) row: files::TakenUp,
    title: String,
}

/// What a run stored.
struct Stored {
    /// Where.
    corpus: CorpusPool,
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
        let Some(source) = self.take_up(org, file).await? else {
            // An earlier run may have stored passages after the file was removed, and ended there.
            return Ok(self.forget_if_removed(org, file).await?);
        };
        // Nothing is fetched or paid for that could not be stored.
        self.corpus_of(org).await?;
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
        let mut conn = self.app().acquire().await?;
        let Some(mut row) = files::take_up(&mut conn, org, file, self.clock().now()).await? else { return Ok(None) };
        // One statement each: nothing depends on the hint, and the end of the run sends another.
        changes::hint_held(&mut conn, org, file, row.document_id.map(|id| (id, true))).await?;
        let title = row.title.take().unwrap_or_else(|| title_of(&row.file_name));
        Ok(Some(Source { org, file, row, title }))
    }

    /// Cuts the bytes at `path` into passages and stores them in slices. A file of one slice is one
    /// transaction. A run that was interrupted goes on after the slices that it had stored.
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
        let (org, file) = (source.org, source.file);
        let corpus = self.corpus_of(org).await?;
        let mut conn = corpus.acquire().await?;
        let prior = corpus::get(&mut conn, org, file).await?;
        let same = prior.as_ref().is_some_and(|prior| {
            prior.content_hash.as_deref() == Some(content_hash) && prior.chunker_version == CHUNKER_VERSION
        });
        let searchable = same && prior.as_ref().is_some_and(|prior| prior.status == "completed");
        if let Some(prior) = prior.as_ref().filter(|prior| searchable && prior.title == source.title) {
            // Everything is stored: only the last step of an earlier run is missing.
            let (count, text_length) = (prior.chunks_count, prior.text_length);
            return Ok(Stored { corpus, count, text_length });
        }
        // What an earlier run under the same title stored is there as this one would store it. Another
        // model may hear a recording differently.
        let same_text = same && media::recording_type(&source.row.file_name).is_none();
        let resumed = match &prior {
            Some(prior) if same_text && !searchable && prior.title == source.title => {
                i32::try_from(corpus::stored(&mut conn, org, file).await?).unwrap_or(i32::MAX)
            }
            _ => 0,
        };
        drop(conn);
        if prior.is_some() && !same {
            // Other bytes, or another chunker: nothing of the old passages may be shown again.
            remove_from(&corpus, org, file).await?;
        }
        let library = source.row.purpose == Purpose::Document;
        let mut stream = ChunkStream::open(self.extract_program(), path, kind, &source.title)?;
        let (mut count, mut told) = (0i32, self.clock().now_ms());
        while count < resumed && stream.next().await?.is_some() {
            count += 1;
        }
        loop {
            let mut slice = Slice::default();
            let mut ended = false;
            while slice.ids.len() < SLICE && !ended {
                match stream.next().await? {
                    Some(chunk) => push(&mut slice, file, content_hash, chunk),
                    None => ended = true,
                }
            }
            let first = count;
            count += i32::try_from(slice.ids.len()).unwrap_or(i32::MAX);
            let text_length = i64::try_from(stream.chars()).unwrap_or(i64::MAX);
            let mut tx = corpus.begin().await?;
            let mut whole = false;
            if first == 0 {
                let with = Beginning {
                    title: &source.title,
                    library,
                    content_hash,
                    chunker_version: CHUNKER_VERSION,
                    whole: ended.then_some((count, text_length)),
                };
                whole = corpus::begin(&mut tx, org, file, &with).await? && ended;
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
            if whole {
                log_changes(&mut tx, org, &passages_in(file, count)).await?;
            } else if ended && !finish(&mut tx, source, count, text_length, searchable).await? {
                return Err(ReadError::Failed("the file was removed while it was read".into()));
            }
            tx.commit().await?;
            if ended {
                return Ok(Stored { corpus, count, text_length });
            }
            keep().await.map_err(ReadError::Stopped)?;
            if self.clock().now_ms() - told >= TOLD_EVERY_MS {
                told = self.clock().now_ms();
                files::progress(&mut *self.app().acquire().await?, org, file, count, None, self.clock().now()).await?;
            }
        }
    }

    /// Makes the stored passages searchable and queues what is left to do.
    async fn publish(&self, source: &Source, content_hash: &str, stored: &Stored) -> Result<(), ReadError> {
        let (org, file) = (source.org, source.file);
        let model = self.embedder().model(org).await?;
        let stamp = model.as_ref().map(EmbeddingModel::stamp);
        let has_vectors = match &stamp {
            Some(stamp) => {
                let mut conn = stored.corpus.acquire().await?;
                corpus::unembedded_count(&mut conn, org, file, stamp).await?.0 == 0
            }
            None => false,
        };
        self.still_in(org, &stored.corpus).await?;
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
        let Some((document, title, active)) = files::complete(&mut tx, org, file, &completed).await? else {
            drop(tx);
            return Ok(self.forget_if_removed(org, file).await?);
        };
        if stamp.is_some() && !has_vectors {
            enqueue_embed(&mut tx, org, file).await?;
        }
        if title.is_some_and(|title| title != source.title) {
            // Renamed meanwhile: once more, for the headers.
            files::queue(&mut tx, org, file, self.clock().now()).await?;
            enqueue(&mut tx, org, file).await?;
        }
        changes::hint_held(&mut tx, org, file, document.zip(active)).await?;
        self.tell_settled(&mut tx, org, file, source.row.purpose).await?;
        tx.commit().await?;
        tracing::info!(event = "file.indexed", org.id = %org, file.id = %file, passages = stored.count, "indexed a file");
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
        let (org, file) = (source.org, source.file);
        self.remove_passages(org, file).await?;
        let mut tx = self.app().begin().await?;
        files::darken(&mut tx, org, file, content_hash).await?;
        files::end(&mut tx, org, file, status, code, message, self.clock().now()).await?;
        changes::hint_file(&mut tx, org, file).await?;
        self.tell_settled(&mut tx, org, file, source.row.purpose).await?;
        tx.commit().await?;
        tracing::info!(event = "file.refused", org.id = %org, file.id = %file, code, "refused to index a file");
        Ok(())
    }

    /// Shows the file as queued again: its job waits for another run, because of `away` if something is.
    async fn await_retry(&self, org: OrgId, file: FileId, away: Option<&Problem>) -> Result<(), sqlx::Error> {
        let mut tx = self.app().begin().await?;
        files::await_retry(&mut tx, org, file, away, self.clock().now()).await?;
        changes::hint_file(&mut tx, org, file).await?;
        tx.commit().await
    }

    /// Records that every run failed; the passages of an earlier one stay as they are.
    pub(crate) async fn fail(&self, org: OrgId, file: FileId) -> Result<(), sqlx::Error> {
        let sentence = "Reading this file failed on our side. The stored file is intact: use Retry indexing.";
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
            self.tell_settled(&mut tx, org, file, row.purpose).await?;
        }
        tx.commit().await
    }

    /// Removes what was stored of a file that was removed while it was read: whoever removed it found
    /// nothing, or not all of it. The two databases share no transaction, so the last one looks back.
    async fn forget_if_removed(&self, org: OrgId, file: FileId) -> Result<(), Problem> {
        let held = files::is_stored(&mut *self.app().acquire().await?, org, file).await?;
        if held { Ok(()) } else { self.remove_passages(org, file).await }
    }

    /// Removes every passage of a file from the corpus and from the keyword leg.
    pub(crate) async fn remove_passages(&self, org: OrgId, file: FileId) -> Result<(), Problem> {
        remove_from(&self.corpus_of(org).await?, org, file).await
    }

    /// Fails when the organization's passages belong into another database by now: what was written to
    /// `corpus` must not count as stored.
    pub(super) async fn still_in(&self, org: OrgId, corpus: &CorpusPool) -> Result<(), Problem> {
        if self.corpus_of(org).await?.identity().await? == corpus.identity().await? {
            return Ok(());
        }
        Err(Problem::new(
            Code::KnowledgeUnavailable,
            "The knowledge database of this organization was exchanged while the file was read. It is read again.",
        ))
    }
}

async fn remove_from(corpus: &CorpusPool, org: OrgId, file: FileId) -> Result<(), Problem> {
    let mut tx = corpus.begin().await?;
    let removed = async {
        if corpus::remove(&mut tx, org, file).await? {
            log_changes(&mut tx, org, &[Change::File(file)]).await?;
        }
        tx.commit().await
    };
    removed.await.map_err(|error| corpus.problem(error))
}

/// The entries of the keyword log for all passages of a file.
fn passages_in(file: FileId, count: i32) -> Vec<Change> {
    (0..count)
        .step_by(LOGGED as usize)
        .map(|first| Change::Passages { file, first, last: (first + LOGGED).min(count) - 1 })
        .collect()
}

/// Ends a file's passages: what an earlier run left behind the last one goes, and the keyword leg
/// is told unless it knows these passages already. False when the file was removed meanwhile.
async fn finish(
    conn: &mut PgConnection,
    source: &Source,
    count: i32,
    text_length: i64,
    searchable: bool,
) -> Result<bool, sqlx::Error> {
    let (org, file) = (source.org, source.file);
    let cut = corpus::cut_after(&mut *conn, org, file, count).await?;
    if !corpus::finish(&mut *conn, org, file, &source.title, count, text_length).await? {
        return Ok(false);
    }
    let log: Vec<Change> = if cut > 0 {
        vec![Change::File(file)]
    } else if searchable {
        Vec::new()
    } else {
        passages_in(file, count)
    };
    log_changes(conn, org, &log).await?;
    Ok(true)
}

fn push(slice: &mut Slice, file: FileId, content_hash: &str, chunk: Chunk) {
    let place = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let body_end = chunk.body_start + chunk.body.chars().count() as u64;
    let head = usize::try_from(chunk.body_start.saturating_sub(chunk.start)).unwrap_or_default();
    let tail = usize::try_from(chunk.end.saturating_sub(body_end)).unwrap_or_default();
    let head_text: String = chunk.core.chars().take(head).collect();
    let mut tail_text: Vec<char> = chunk.core.chars().rev().take(tail).collect();
    tail_text.reverse();
    slice.ids.push(chunk_id(file, content_hash, CHUNKER_VERSION, chunk.ordinal).0);
    slice.ordinals.push(i32::try_from(chunk.ordinal).unwrap_or(i32::MAX));
    slice.headers.push(chunk.header);
    slice.bodies.push(chunk.body);
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
