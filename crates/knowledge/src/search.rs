//! Hybrid search: the keyword and the dense leg, fused, admitted against live rows and cut
//! (spec 60, section 8).

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::PgPool;
use tale_core::Problem;
use tale_core::ids::{ChunkId, DocumentId, FileId, OrgId, ThreadId};
use tale_core::limits::MAX_QUERY_CHARS;
use uuid::Uuid;

use crate::corpora::{Corpora, CorpusPool};
use crate::dense::{Dense, QueryVector};
use crate::fusion::{Fused, fuse};
use crate::keyword::{Keyword, KeywordError};
use crate::reach::Reach;
use crate::store::search::{self as store, Body, Visible};

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Corpus {
    /// The library (and, for a chat, its uploads).
    Documents,
    /// Crawled websites.
    Web,
    /// Everything within reach.
    #[default]
    All,
}

/// One search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// What is looked for, 1–2,000 characters after trimming.
    pub query: String,
    /// How many hits to return; clamped to 1–50.
    pub limit: usize,
    /// Floor on the dense leg's cosine similarity, 0–1; keyword hits are unaffected (SRCH-8).
    pub min_similarity: Option<f32>,
    /// What to read.
    pub corpus: Corpus,
    /// Refuse with `EMBEDDING_NOT_CONFIGURED` instead of answering without the dense leg.
    pub require_dense: bool,
    /// Answer from the keyword leg when the query cannot be embedded (outage, spent account), as a
    /// chat does, instead of failing.
    pub allow_keyword_fallback: bool,
}

impl SearchRequest {
    /// A search with the defaults of the API: ten hits, everything in reach, both legs when they serve.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            limit: 10,
            min_similarity: None,
            corpus: Corpus::All,
            require_dense: false,
            allow_keyword_fallback: false,
        }
    }
}

/// A way a passage was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// By its words.
    Keyword,
    /// By its meaning.
    Dense,
}

/// A passage that answers, with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The passage.
    pub chunk_id: ChunkId,
    /// The library document that holds the file; none for a chat upload.
    pub document_id: Option<DocumentId>,
    /// The file.
    pub file_id: FileId,
    /// Title of the document, or name of the uploaded file.
    pub title: String,
    /// The whole passage.
    pub passage: String,
    /// Title and enclosing headings; empty when there are none.
    pub header: String,
    /// Page the passage starts on, from 1, when the format has pages.
    pub page: Option<u32>,
    /// What the hits are ordered by, 0–1; without a re-ranker the fused score.
    pub score: f32,
    /// Reciprocal-rank score over the legs, 1 for the first of every leg (SRCH-6).
    pub fused_score: f32,
    /// The legs that found it, keyword first.
    pub legs: Vec<Leg>,
    /// Cosine similarity, when the dense leg found it.
    pub similarity: Option<f32>,
    /// BM25 score, when the keyword leg found it. Comparable within one answer only.
    pub keyword_score: Option<f32>,
}

/// How an answer came about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Whether the keyword leg could serve; false while its index is rebuilt or damaged.
    pub bm25: bool,
    /// Whether the dense leg could serve.
    pub dense: bool,
    /// Why a usage limit kept the dense leg from serving, when one did.
    pub limited: Option<String>,
    /// Whether a re-ranker ordered the hits.
    pub reranked: bool,
    /// Whether the answer came from a cache.
    pub cached: bool,
    /// Candidates that passed the check against live rows.
    pub admitted: usize,
    /// Admitted candidates per leg, as `documents:keyword` and `documents:dense`.
    pub legs: BTreeMap<&'static str, usize>,
}

/// The answer to one search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchResponse {
    /// Best first.
    pub hits: Vec<Hit>,
    /// How they were found.
    pub diagnostics: Diagnostics,
}

/// Longest answer (spec 60, 8.3).
pub const MAX_HITS: usize = 50;
/// Uploads of one chat lineage that a search reads.
const MAX_UPLOADS: i64 = 500;
/// Passages read beyond the limit, in case some are repetitions or just gone.
const SPARE: usize = 4;

/// Searches the corpora of one deployment.
#[derive(Debug)]
pub struct Searcher {
    app: PgPool,
    corpora: Corpora,
    keyword: Keyword,
    dense: Dense,
}

/// A candidate on its way through fusion: its passage and file.
type Candidate = (Uuid, Uuid);

impl Searcher {
    /// A searcher over `corpora` whose visibility is decided in `app`.
    #[must_use]
    pub fn new(app: PgPool, corpora: Corpora, keyword: Keyword) -> Self {
        Self { app, corpora, keyword, dense: Dense::default() }
    }

    /// The keyword indexes, for the task that follows changes.
    #[must_use]
    pub fn keyword(&self) -> &Keyword {
        &self.keyword
    }

    /// Searches within `reach`. `vector` is the query as a vector, when it could be made.
    ///
    /// Both legs run at the same time; every candidate is then checked against the live rows of the
    /// application database in one statement, before ranks are counted, so that a file that the
    /// reader cannot see neither takes a place nor shows by a gap.
    ///
    /// # Errors
    /// `INVALID_BODY` for a query that is empty or too long; `KNOWLEDGE_UNAVAILABLE` and
    /// `KNOWLEDGE_MISCONFIGURED` when the organization's corpus cannot be read; the database's faults.
    pub async fn search(
        &self,
        reach: &Reach,
        request: &SearchRequest,
        vector: Option<&QueryVector>,
    ) -> Result<SearchResponse, Problem> {
        let query = checked_query(&request.query)?;
        let limit = request.limit.clamp(1, MAX_HITS);
        let pool = (limit * 3).clamp(20, 150);
        if request.corpus == Corpus::Web {
            let diagnostics = Diagnostics { bm25: true, dense: vector.is_some(), ..Diagnostics::default() };
            return Ok(SearchResponse { hits: Vec::new(), diagnostics });
        }
        let org = reach.org();
        let corpus = self.corpora.of(org).await?;
        let uploads = reach.upload_ids();
        let (keyword, dense) = tokio::join!(self.keyword.search(org, &corpus, query, &uploads, pool), async {
            match vector {
                Some(vector) => self.dense.search(&corpus, org, vector, &uploads, pool).await.map(Some),
                None => Ok(None),
            }
        });
        let mut diagnostics = Diagnostics { bm25: true, dense: vector.is_some(), ..Diagnostics::default() };
        let keyword = match keyword {
            Ok(found) => found,
            // not one leg less, but nothing to search in
            Err(KeywordError::NoCorpus(problem)) => return Err(problem),
            Err(KeywordError::Database(error)) => return Err(corpus.problem(error)),
            Err(KeywordError::Away) => return Err(corpus.problem(sqlx::Error::PoolTimedOut)),
            Err(error) => {
                if !matches!(error, KeywordError::Building) {
                    tracing::warn!(%org, error = &error as &dyn std::error::Error, "the keyword leg could not serve");
                }
                diagnostics.bm25 = false;
                Vec::new()
            }
        };
        let mut dense = dense.map_err(|error| corpus.problem(error))?.unwrap_or_default();
        if let Some(floor) = request.min_similarity {
            dense.retain(|near| near.similarity >= f64::from(floor));
        }
        // the passages that will most likely be shown are read while their files are checked
        let likely: Vec<Uuid> = {
            let keyword: Vec<Uuid> = keyword.iter().map(|found| found.chunk).collect();
            let dense: Vec<Uuid> = dense.iter().map(|near| near.id).collect();
            fuse(&keyword, &dense).iter().take(limit + SPARE).map(|candidate| candidate.id).collect()
        };
        let files = keyword.iter().map(|found| found.file).chain(dense.iter().map(|near| near.file_id));
        let (visible, mut bodies) = tokio::try_join!(self.visible(reach, files), bodies_of(&corpus, org, &likely))?;
        let scores: HashMap<Candidate, f32> =
            keyword.iter().map(|found| ((found.chunk, found.file), found.score)).collect();
        let similarities: HashMap<Candidate, f64> =
            dense.iter().map(|near| ((near.id, near.file_id), near.similarity)).collect();
        let admitted = |candidate: &Candidate| visible.contains_key(&candidate.1);
        let keyword: Vec<Candidate> = keyword.iter().map(|found| (found.chunk, found.file)).filter(admitted).collect();
        let dense: Vec<Candidate> = dense.iter().map(|near| (near.id, near.file_id)).filter(admitted).collect();
        if diagnostics.bm25 {
            diagnostics.legs.insert("documents:keyword", keyword.len());
        }
        if diagnostics.dense {
            diagnostics.legs.insert("documents:dense", dense.len());
        }
        let fused = fuse(&keyword, &dense);
        diagnostics.admitted = fused.len();

        let hits = first_distinct(&corpus, org, &fused, limit, &mut bodies).await?;
        let hits = hits
            .into_iter()
            .filter_map(|(fused, body)| {
                let source = visible.get(&fused.id.1)?;
                let legs = [(fused.keyword, Leg::Keyword), (fused.dense, Leg::Dense)];
                Some(Hit {
                    chunk_id: body.id,
                    document_id: source.document_id,
                    file_id: source.file_id,
                    title: source.title.clone(),
                    passage: body.body,
                    header: body.header,
                    page: body.page.and_then(|page| u32::try_from(page).ok()),
                    score: fused.score,
                    fused_score: fused.score,
                    legs: legs.into_iter().filter_map(|(place, leg)| place.map(|_| leg)).collect(),
                    #[expect(clippy::cast_possible_truncation, reason = "a cosine needs no more digits")]
                    similarity: similarities.get(&fused.id).map(|similarity| *similarity as f32),
                    keyword_score: scores.get(&fused.id).copied(),
                })
            })
            .collect();
        Ok(SearchResponse { hits, diagnostics })
    }

    /// Uploads that the chats `threads` hold and that can be searched now, newest first, as many as a
    /// search reads.
    ///
    /// # Errors
    /// The database's faults.
    pub async fn uploads_of(&self, org: OrgId, threads: &[ThreadId]) -> Result<Vec<FileId>, Problem> {
        let threads: Vec<Uuid> = threads.iter().map(|thread| thread.0).collect();
        Ok(store::uploads_of(&self.app, org, &threads, MAX_UPLOADS).await?)
    }

    /// The files among `files` that the reader may see now.
    async fn visible(
        &self,
        reach: &Reach,
        files: impl Iterator<Item = Uuid>,
    ) -> Result<HashMap<Uuid, Visible>, Problem> {
        let files: Vec<Uuid> = files.collect::<HashSet<_>>().into_iter().collect();
        if files.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = store::visible(&self.app, reach.org(), &files, &reach.upload_ids()).await?;
        Ok(rows.into_iter().map(|row| (row.file_id.0, row)).collect())
    }
}

/// The passages `ids` by their id.
async fn bodies_of(corpus: &CorpusPool, org: OrgId, ids: &[Uuid]) -> Result<HashMap<Uuid, Body>, Problem> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = store::bodies(corpus.pool(), org, ids).await.map_err(|error| corpus.problem(error))?;
    Ok(rows.into_iter().map(|body| (body.id.0, body)).collect())
}

/// The first `limit` different texts in the fused order. What is not among `bodies` is read; a
/// passage that was deleted or rewritten since its leg answered is left out.
async fn first_distinct(
    corpus: &CorpusPool,
    org: OrgId,
    fused: &[Fused<Candidate>],
    limit: usize,
    bodies: &mut HashMap<Uuid, Body>,
) -> Result<Vec<(Fused<Candidate>, Body)>, Problem> {
    let mut hits = Vec::with_capacity(limit);
    let mut seen = HashSet::new();
    let mut asked: HashSet<Uuid> = bodies.keys().copied().collect();
    let mut rest = fused;
    while hits.len() < limit && !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(limit - hits.len()));
        rest = later;
        let missing: Vec<Uuid> = now.iter().map(|candidate| candidate.id.0).filter(|id| asked.insert(*id)).collect();
        bodies.extend(bodies_of(corpus, org, &missing).await?);
        for candidate in now {
            let Some(body) = bodies.remove(&candidate.id.0) else { continue };
            if seen.insert(body.body.clone()) {
                hits.push((*candidate, body));
            }
        }
    }
    Ok(hits)
}

/// The query without surrounding white space, if it has an acceptable length.
pub(crate) fn checked_query(query: &str) -> Result<&str, Problem> {
    let query = query.trim();
    if query.is_empty() {
        return Err(Problem::invalid_field("query", "must not be blank"));
    }
    if query.chars().count() > MAX_QUERY_CHARS {
        return Err(Problem::invalid_field("query", "must be at most 2,000 characters"));
    }
    Ok(query)
}
