//! Hybrid search: the keyword and the dense leg, fused, admitted against live rows and cut
//! (spec 60, section 8).

use std::collections::BTreeMap;

use tale_core::ids::{ChunkId, DocumentId, FileId};

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
