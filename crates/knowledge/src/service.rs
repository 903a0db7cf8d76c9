//! What the room works with.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tale_blobs::Blobs;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_extract::ExtractProgram;
use tale_governance::policies::{Policies, UploadPolicy};
use tale_jobs::WorkerBuilder;

use crate::attachments::UploadSettled;
use crate::corpora::{Corpora, CorpusPool};
use crate::dense;
use crate::embedder::{Embedder, EmbeddingModel};
use crate::indexing::{self, EmbedFile, IndexFile, Watch};
use crate::keyword::Keyword;
use crate::purge::Sweep;
use crate::search::Searcher;
use crate::storage::MoveFiles;
use crate::store::{corpus, files};
use crate::transcriber::Transcriber;

/// How often the trash and forgotten uploads are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often stuck files are looked for.
const WATCH_EVERY: Duration = Duration::from_secs(5 * 60);

/// What a [`Knowledge`] is made of.
pub struct KnowledgeParts {
    /// The operational database.
    pub app: PgPool,
    /// The corpus databases.
    pub corpora: Corpora,
    /// Stored bytes.
    pub blobs: Blobs,
    /// Makes vectors.
    pub embedder: Arc<dyn Embedder>,
    /// The keyword indexes of this process.
    pub keyword: Keyword,
    /// The time.
    pub clock: SharedClock,
    /// Where files are put while they are read; room for a few uploads of 100 MiB.
    pub temp_dir: PathBuf,
    /// The program that reads formats which can do harm.
    pub extract: ExtractProgram,
}

/// Documents, their passages and how they are found. Cheap to clone.
#[derive(Clone)]
pub struct Knowledge(Arc<Inner>);

struct Inner {
    app: PgPool,
    corpora: Corpora,
    blobs: Blobs,
    embedder: Arc<dyn Embedder>,
    searcher: Searcher,
    clock: SharedClock,
    temp_dir: PathBuf,
    extract: ExtractProgram,
    upload_settled: OnceLock<Arc<dyn UploadSettled>>,
    transcriber: OnceLock<Arc<dyn Transcriber>>,
    policies: OnceLock<Policies>,
}

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("blobs", &self.0.blobs).finish_non_exhaustive()
    }
}

impl Knowledge {
    /// Puts the room together. Nothing runs yet.
    #[must_use]
    pub fn new(parts: KnowledgeParts) -> Self {
        Self(Arc::new(Inner {
            searcher: Searcher::new(parts.app.clone(), parts.corpora.clone(), parts.keyword),
            app: parts.app,
            corpora: parts.corpora,
            blobs: parts.blobs,
            embedder: parts.embedder,
            clock: parts.clock,
            temp_dir: parts.temp_dir,
            extract: parts.extract,
            upload_settled: OnceLock::new(),
            transcriber: OnceLock::new(),
            policies: OnceLock::new(),
        }))
    }

    /// Says who is told of chat uploads that were read. The first one stays.
    pub fn on_upload_settled(&self, told: Arc<dyn UploadSettled>) {
        let _ = self.0.upload_settled.set(told);
    }

    pub(crate) fn upload_settled(&self) -> Option<&Arc<dyn UploadSettled>> {
        self.0.upload_settled.get()
    }

    /// Plugs in what turns recordings into text. Later calls change nothing; without one, recordings
    /// have none.
    pub fn hear_with(&self, transcriber: Arc<dyn Transcriber>) {
        let _ = self.0.transcriber.set(transcriber);
    }

    /// Plugs in what organizations lay down about uploads. Later calls change nothing; without it, only the
    /// platform's own limits count.
    pub fn govern_with(&self, policies: Policies) {
        let _ = self.0.policies.set(policies);
    }

    /// What the organization lays down about uploads.
    ///
    /// # Errors
    /// `POLICY_UNREADABLE` while that cannot be read; the database's trouble.
    pub(crate) async fn upload_policy(&self, org: OrgId) -> Result<Arc<UploadPolicy>, Problem> {
        match self.0.policies.get() {
            Some(policies) => Ok(policies.of(org).await?.upload_policy.usable()?.clone()),
            None => Ok(Arc::default()),
        }
    }

    /// Teaches a worker this room's jobs.
    #[must_use]
    pub fn register(&self, worker: WorkerBuilder) -> WorkerBuilder {
        let context = Arc::new(self.clone());
        worker
            .register::<IndexFile>(Arc::clone(&context))
            .register::<EmbedFile>(Arc::clone(&context))
            .register::<Watch>(Arc::clone(&context))
            .register::<MoveFiles>(Arc::clone(&context))
            .register::<Sweep>(context)
            .every(WATCH_EVERY, Watch {})
            .every(SWEEP_EVERY, Sweep {})
    }

    /// The organization's embedding model, when one is chosen: without one, search goes by words.
    ///
    /// # Errors
    /// The database's trouble.
    pub async fn embedding_model(&self, org: OrgId) -> Result<Option<EmbeddingModel>, Problem> {
        self.0.embedder.model(org).await
    }

    /// The width of the vectors in the organization's corpus database, once one is fixed (EMB-3).
    ///
    /// # Errors
    /// The databases' trouble.
    pub async fn corpus_width(&self, org: OrgId) -> Result<Option<u32>, Problem> {
        let corpus = self.corpus_of(org).await?;
        let mut conn = corpus.acquire().await?;
        Ok(corpus::width(&mut conn).await?.and_then(|width| u32::try_from(width).ok()))
    }

    /// Queues every file that a newly saved embedding model concerns and says how many (EMB-4,
    /// IDX-15), in the transaction that saves it. Saving the same model again queues what failed
    /// for a cause its settings can cure.
    ///
    /// # Errors
    /// The databases' trouble.
    pub async fn embedding_saved(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        model: &EmbeddingModel,
    ) -> Result<usize, Problem> {
        if let Some(width) = self.corpus_width(org).await?
            && width != model.dimensions
        {
            return Err(Problem::new(
                Code::EmbeddingWidthConflict,
                format!(
                    "The knowledge database holds vectors of {width} numbers, and this model makes {}. A database holds one width: choose a model of {width}.",
                    model.dimensions
                ),
            )
            .with_data(serde_json::json!({ "stored": width, "requested": model.dimensions })));
        }
        dense::ensure_index(self.corpus_of(org).await?.pool(), model.dimensions).await?;
        let waiting = files::take_unembedded(&mut *conn, org, &model.stamp(), self.clock().now()).await?;
        for file in &waiting {
            indexing::enqueue_embed(&mut *conn, org, *file).await?;
        }
        tale_db::hints::notify(conn, &tale_db::hints::Hint::new(org, tale_db::hints::Topic::Documents)).await?;
        Ok(waiting.len())
    }

    /// The organization's embedding model is removed, in the transaction that removes it: its
    /// documents go on by words alone (EMB-6).
    ///
    /// # Errors
    /// The database's trouble.
    pub async fn embedding_removed(&self, conn: &mut PgConnection, org: OrgId) -> Result<(), Problem> {
        files::forget_embedding(&mut *conn, org, indexing::NOT_CONFIGURED).await?;
        tale_db::hints::notify(conn, &tale_db::hints::Hint::new(org, tale_db::hints::Topic::Documents)).await?;
        Ok(())
    }

    /// How many documents the organization has, how many carry vectors and how many wait for them.
    ///
    /// # Errors
    /// The database's trouble.
    pub async fn corpus_counts(&self, org: OrgId) -> Result<CorpusCounts, Problem> {
        let mut conn = self.app().acquire().await?;
        let (documents, embedded, waiting) = files::corpus_counts(&mut conn, org).await?;
        let count = |value: i64| u64::try_from(value).unwrap_or_default();
        Ok(CorpusCounts { documents: count(documents), embedded: count(embedded), waiting: count(waiting) })
    }

    /// Asks the deployment's knowledge database for a sign of life.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn ping(&self) -> Result<(), Problem> {
        corpus::ping(self.corpora().deployment().pool()).await?;
        Ok(())
    }

    /// Both legs of the search.
    #[must_use]
    pub fn searcher(&self) -> &Searcher {
        &self.0.searcher
    }

    pub(crate) fn embedder(&self) -> &dyn Embedder {
        self.0.embedder.as_ref()
    }

    pub(crate) fn transcriber(&self) -> Option<&dyn Transcriber> {
        self.0.transcriber.get().map(AsRef::as_ref)
    }

    pub(crate) fn app(&self) -> &PgPool {
        &self.0.app
    }

    pub(crate) fn corpora(&self) -> &Corpora {
        &self.0.corpora
    }

    /// The database of the organization's passages, for this request or this job.
    pub(crate) async fn corpus_of(&self, org: OrgId) -> Result<CorpusPool, Problem> {
        self.0.corpora.of(org).await
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    pub(crate) fn clock(&self) -> &SharedClock {
        &self.0.clock
    }

    pub(crate) fn temp_dir(&self) -> &Path {
        &self.0.temp_dir
    }

    pub(crate) fn extract_program(&self) -> &ExtractProgram {
        &self.0.extract
    }
}

/// The state of an organization's corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusCounts {
    /// Documents with a file.
    pub documents: u64,
    /// Those whose passages carry vectors.
    pub embedded: u64,
    /// Those that wait for vectors.
    pub waiting: u64,
}
