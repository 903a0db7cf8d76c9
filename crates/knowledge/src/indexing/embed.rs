//! Adding vectors to stored passages.

use std::future::Future;
use std::time::Duration;

use pgvector::Vector;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tale_core::ids::{FileId, OrgId};
use tale_core::{Actor, Problem};
use tale_governance::budgets::Refusal;
use tale_jobs::{Backoff, EnqueueOptions, Failure, Job, JobError, Lease};

use super::{NOT_CONFIGURED, NOT_CONFIGURED_CODE, PER_ORGANIZATION};
use crate::changes;
use crate::corpora::CorpusPool;
use crate::embedder::{EmbedFailure, EmbeddingModel, Purpose};
use crate::files::IndexStatus;
use crate::store::{corpus, files};
use crate::{Knowledge, dense};

/// Passages per request to the provider and per transaction.
const BATCH: i64 = 64;

/// How often a batch is sent again when the provider asks to wait (IDX-9).
const WAITS: u32 = 6;
/// How long to wait when the provider does not say.
const WAIT: Duration = Duration::from_secs(10);
/// The longest wait that is sat out; a longer one goes back to the queue.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Longest stretch of it without asking whether the run goes on.
const LISTEN: Duration = Duration::from_secs(1);
/// How often a file that a usage limit holds back is tried again: limits may be raised meanwhile. Shorter
/// than what counts as stuck.
const LIMIT_LOOK: Duration = Duration::from_secs(20 * 60);
/// The code of a file that waits for a usage limit.
const LIMIT_CODE: &str = "usage_limit";
/// Shortest pause between two hints about progress.
const HINT_EVERY_MS: i64 = 1_000;

/// Adds vectors to the passages of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedFile {
    /// The organization.
    pub org: OrgId,
    /// The file.
    pub file: FileId,
}

/// Queues the embedding of a file; once per file, whatever is queued already.
pub(crate) async fn enqueue(conn: &mut PgConnection, org: OrgId, file: FileId) -> Result<(), sqlx::Error> {
    tale_jobs::enqueue(conn, Some(org), &EmbedFile { org, file }, EnqueueOptions::keyed(file.to_string())).await?;
    Ok(())
}

impl Job for EmbedFile {
    const NAME: &'static str = "knowledge.embed_file";
    const MAX_ATTEMPTS: u32 = 5;
    const TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
    const PER_ORG: u32 = PER_ORGANIZATION;
    const BACKOFF: Backoff = Backoff { first: Duration::from_secs(30), cap: Duration::from_secs(600) };
    const RESUMES: bool = true;
    type Context = Knowledge;

    async fn run(&self, knowledge: &Knowledge, lease: &Lease) -> Result<(), JobError> {
        match knowledge.embed_file(self.org, self.file, super::renewed(lease)).await {
            Ok(()) => Ok(()),
            Err(EmbedRunError::Stopped(stopped)) => Err(stopped),
            Err(EmbedRunError::Later(after)) => Err(JobError::Retry {
                code: "EMBEDDING_RATE_LIMITED",
                message: "The embedding provider asks to wait.".into(),
                after: Some(after),
            }),
            Err(EmbedRunError::Ours(problem)) => Err(problem.into()),
            Err(EmbedRunError::Store(error)) => Err(error.into()),
            Err(error) => {
                tracing::warn!(org.id = %self.org, file.id = %self.file, error = %super::chain(&error), "could not embed a file");
                knowledge.embedding_failed(self.org, self.file, &error).await?;
                Err(JobError::retry("EMBEDDING_UPSTREAM", error.to_string()))
            }
        }
    }

    async fn given_up(&self, knowledge: &Knowledge, _org: Option<OrgId>, failure: &Failure) {
        let error = EmbedRunError::Upstream(failure.message.clone());
        if let Err(error) = knowledge.embedding_failed(self.org, self.file, &error).await {
            tracing::warn!(org.id = %self.org, file.id = %self.file, error = %error, "could not record that a file was not embedded");
        }
    }
}

/// Why a run ended before every passage had its vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedRunError {
    /// The provider will not do it however often it is asked.
    #[error("{0}")]
    Refused(String),
    /// A usage limit leaves no room; the file waits.
    #[error(transparent)]
    Limited(Box<Refusal>),
    /// The provider failed; trying again makes sense.
    #[error("{0}")]
    Upstream(String),
    /// The provider asks to wait longer than it makes sense to hold a worker's place.
    #[error("the embedding provider asks to wait")]
    Later(Duration),
    /// Our own settings could not be read, or the organization has no corpus right now.
    #[error("{}", .0.message)]
    Ours(Problem),
    /// Our own databases failed.
    #[error("the vectors could not be stored")]
    Store(#[source] sqlx::Error),
    /// The worker wants the run to stop.
    #[error("the run was stopped")]
    Stopped(#[source] JobError),
}

impl From<sqlx::Error> for EmbedRunError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Problem> for EmbedRunError {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem)
    }
}

impl Knowledge {
    /// Adds vectors of the organization's model to every passage of a file that has none, and
    /// records the outcome. `keep` renews the lease and says when to stop.
    ///
    /// # Errors
    /// What makes sense to try again; a refusal of the provider is recorded and is no error.
    pub async fn embed_file<F, K>(&self, org: OrgId, file: FileId, keep: K) -> Result<(), EmbedRunError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let mut conn = self.app().acquire().await?;
        let Some(row) = files::get(&mut conn, org, file).await?.filter(|row| row.searchable && !row.skip_indexing)
        else {
            return Ok(());
        };
        drop(conn);
        let config = self.embedder().model(org).await.map_err(EmbedRunError::Ours)?;
        let Some(config) = config else {
            return self.note(org, file, IndexStatus::Completed, NOT_CONFIGURED_CODE, NOT_CONFIGURED).await;
        };
        let stamp = config.stamp();
        if row.embedded && row.embedding_stamp.as_deref() == Some(&stamp) {
            return Ok(());
        }
        let payer = self.payer_of(org, file).await?;
        match self.embed_passages(org, (file, &payer), &config, &stamp, &keep).await {
            Ok(corpus) => {
                self.still_in(org, &corpus).await?;
                let mut tx = self.app().begin().await?;
                files::embedded(&mut tx, org, file, &stamp, self.clock().now()).await?;
                changes::hint_file(&mut tx, org, file).await?;
                tx.commit().await?;
                Ok(())
            }
            Err(EmbedRunError::Limited(refusal)) => Ok(self.wait_for_limit(org, file, &refusal).await?),
            Err(EmbedRunError::Refused(sentence)) => {
                self.note(org, file, IndexStatus::Failed, "embedding_provider_refused", &sentence).await
            }
            Err(error) => Err(error),
        }
    }

    async fn embed_passages<F, K>(
        &self,
        org: OrgId,
        (file, payer): (FileId, &Actor),
        config: &EmbeddingModel,
        stamp: &str,
        keep: &K,
    ) -> Result<CorpusPool, EmbedRunError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let corpus = self.corpus_of(org).await?;
        let mut conn = corpus.acquire().await?;
        let wanted = i32::try_from(config.dimensions).unwrap_or(i32::MAX);
        let pinned = corpus::pin_width(&mut conn, wanted).await?;
        if pinned != wanted {
            return Err(EmbedRunError::Refused(format!(
                "The knowledge database holds vectors of width {pinned}, the chosen embedding model makes {wanted}. Choose a model of width {pinned}."
            )));
        }
        dense::ensure_index(corpus.pool(), config.dimensions).await?;
        let (waiting, total) = corpus::unembedded_count(&mut conn, org, file, stamp).await?;
        drop(conn);
        let (mut done, mut after, mut hinted) = (total - waiting, -1, 0);
        loop {
            let mut conn = corpus.acquire().await?;
            let batch = corpus::unembedded(&mut conn, org, file, stamp, after, BATCH).await?;
            drop(conn);
            let Some(last) = batch.last().map(|(_, ordinal, _, _)| *ordinal) else { return Ok(corpus) };
            let texts: Vec<String> = batch
                .iter()
                .map(
                    |(_, _, header, body)| if header.is_empty() { body.clone() } else { format!("{header}\n\n{body}") },
                )
                .collect();
            let vectors = self.vectors(org, payer, &texts, keep).await?;
            if let Some(found) = vectors.iter().map(Vec::len).find(|found| i32::try_from(*found).ok() != Some(wanted)) {
                return Err(EmbedRunError::Refused(format!(
                    "The embedding model answered vectors of width {found}, but {wanted} is configured. Correct the width in the settings."
                )));
            }
            let ids: Vec<uuid::Uuid> = batch.iter().map(|(id, ..)| id.0).collect();
            let vectors: Vec<Vector> = vectors.into_iter().map(Vector::from).collect();
            let mut tx = corpus.begin().await?;
            corpus::set_vectors(&mut tx, org, file, stamp, &ids, &vectors).await?;
            tx.commit().await?;
            after = last;
            done += i64::try_from(ids.len()).unwrap_or_default();
            keep().await.map_err(EmbedRunError::Stopped)?;
            let mut tx = self.app().begin().await?;
            let count = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
            files::progress(&mut tx, org, file, count(done), Some(count(total)), self.clock().now()).await?;
            if self.clock().now_ms() - hinted >= HINT_EVERY_MS {
                hinted = self.clock().now_ms();
                changes::hint_file(&mut tx, org, file).await?;
            }
            tx.commit().await?;
        }
    }

    /// The vectors of one batch; a provider that asks to wait is waited for.
    async fn vectors<F, K>(
        &self,
        org: OrgId,
        payer: &Actor,
        texts: &[String],
        keep: &K,
    ) -> Result<Vec<Vec<f32>>, EmbedRunError>
    where
        K: Fn() -> F + Send + Sync,
        F: Future<Output = Result<(), JobError>> + Send,
    {
        let mut waits = 0;
        loop {
            match self.embedder().embed(org, payer, texts, Purpose::Index).await {
                Ok(vectors) => return Ok(vectors),
                Err(EmbedFailure::RateLimited { after }) => {
                    let pause = after.unwrap_or(WAIT);
                    waits += 1;
                    if waits > WAITS || pause > LONGEST_WAIT {
                        return Err(EmbedRunError::Later(pause));
                    }
                    let over = tokio::time::Instant::now() + pause;
                    while tokio::time::Instant::now() < over {
                        tokio::time::sleep_until(over.min(tokio::time::Instant::now() + LISTEN)).await;
                        keep().await.map_err(EmbedRunError::Stopped)?;
                    }
                }
                Err(EmbedFailure::Limited(refusal)) => return Err(EmbedRunError::Limited(refusal)),
                Err(EmbedFailure::Upstream(sentence)) => return Err(EmbedRunError::Upstream(sentence)),
                Err(EmbedFailure::NotConfigured) => {
                    return Err(EmbedRunError::Upstream("The embedding model was removed meanwhile.".to_owned()));
                }
                Err(
                    EmbedFailure::CreditExhausted(sentence)
                    | EmbedFailure::CredentialRejected(sentence)
                    | EmbedFailure::Refused(sentence),
                ) => {
                    return Err(EmbedRunError::Refused(sentence));
                }
            }
        }
    }

    /// Puts a file aside that a usage limit holds back: it stays searchable by words and goes on where it
    /// stopped, within the hour after there is room (IDX-12).
    async fn wait_for_limit(&self, org: OrgId, file: FileId, refusal: &Refusal) -> Result<(), sqlx::Error> {
        let mut tx = self.app().begin().await?;
        let now = self.clock().now();
        files::not_embedded(&mut tx, org, file, IndexStatus::Queued, LIMIT_CODE, &refusal.sentence(), now).await?;
        let again = EnqueueOptions::keyed(file.to_string()).after(refusal.retry_after.min(LIMIT_LOOK));
        tale_jobs::enqueue(&mut tx, Some(org), &EmbedFile { org, file }, again).await?;
        changes::hint_file(&mut tx, org, file).await?;
        tx.commit().await
    }

    /// Records that a run failed; the file stays searchable by words.
    async fn embedding_failed(&self, org: OrgId, file: FileId, error: &EmbedRunError) -> Result<(), sqlx::Error> {
        let sentence = match error {
            EmbedRunError::Upstream(sentence) => format!("The embedding provider failed: {sentence}"),
            _ => "Making the vectors of this document failed on our side. It is tried again.".to_owned(),
        };
        let mut tx = self.app().begin().await?;
        files::not_embedded(
            &mut tx,
            org,
            file,
            IndexStatus::Failed,
            "embedding_upstream",
            &sentence,
            self.clock().now(),
        )
        .await?;
        changes::hint_file(&mut tx, org, file).await?;
        tx.commit().await
    }

    /// Records why a searchable file has no vectors.
    async fn note(
        &self,
        org: OrgId,
        file: FileId,
        status: IndexStatus,
        code: &str,
        sentence: &str,
    ) -> Result<(), EmbedRunError> {
        let mut tx = self.app().begin().await?;
        files::not_embedded(&mut tx, org, file, status, code, sentence, self.clock().now()).await?;
        changes::hint_file(&mut tx, org, file).await?;
        tx.commit().await?;
        Ok(())
    }
}
