//! Searching the library for key holders (spec 91, section 4; 60, section 8.3).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tale_core::Problem;
use tale_core::ids::{ChunkId, DocumentId, FileId};
use tale_core::limits::MAX_QUERY_CHARS;
use tale_core::problem::Issue;
use tale_identity::Capability;
use tale_knowledge::{Corpus, Diagnostics, Hit, Leg, Reach, SearchRequest, SearchResponse};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::KeyCaller;
use crate::problem::HttpProblem;
use crate::query::NoQuery;
use crate::state::App;

/// Hits of a request that sets no limit.
const DEFAULT_LIMIT: i64 = 10;
/// Most hits of one request.
const MAX_LIMIT: i64 = 50;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search_knowledge))
}

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = SearchRequest)]
pub struct Search {
    /// What is looked for: 1–2,000 characters after trimming.
    query: String,
    /// 1–50, default 10.
    limit: Option<i64>,
    /// 0–1: floor on the cosine similarity of what is found by meaning. What is found by words stays.
    min_similarity: Option<f64>,
    /// What to search; everything unless set.
    corpus: Option<CorpusWord>,
    /// Refuse with `EMBEDDING_NOT_CONFIGURED` instead of answering by words alone.
    require_dense: Option<bool>,
}

/// What a search reads.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SearchCorpus)]
pub enum CorpusWord {
    /// The library.
    Documents,
    /// Websites.
    Web,
    /// Both.
    All,
}

/// A way a passage was found.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SearchLeg)]
pub enum LegWord {
    /// By its words.
    Keyword,
    /// By its meaning.
    Dense,
}

/// Where a passage stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchSource)]
pub struct SourceView {
    /// Reference of the text, stable while the document keeps its file.
    #[serde(rename = "ref")]
    reference: FileId,
    #[schema(required)]
    document_id: Option<DocumentId>,
    title: String,
    /// Title and headings above the passage.
    header: String,
    /// From 1, when the format has pages.
    #[schema(required)]
    page: Option<u32>,
}

/// A passage that answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchHit)]
pub struct HitView {
    corpus: CorpusWord,
    id: ChunkId,
    /// The whole passage.
    passage: String,
    /// What the hits are ordered by.
    score: f32,
    /// Reciprocal-rank score, 1 for the first of every leg.
    fused_score: f32,
    /// Cosine similarity when it was found by meaning.
    #[schema(required)]
    similarity: Option<f32>,
    /// BM25 score when it was found by words; comparable within one answer only.
    #[schema(required)]
    keyword_score: Option<f32>,
    matched_legs: Vec<LegWord>,
    /// How many legs found it.
    legs: usize,
    source: SourceView,
}

/// How an answer came about.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchDiagnostics)]
pub struct DiagnosticsView {
    /// False while the keyword index cannot serve.
    bm25: bool,
    /// False without an embedding model.
    dense: bool,
    /// Present when a usage limit kept the dense leg from serving: which, and when it resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limited: Option<String>,
    reranked: bool,
    cached: bool,
    /// Candidates that passed the check against live rows.
    admitted: usize,
    /// Admitted candidates per corpus and leg.
    legs: BTreeMap<&'static str, usize>,
}

/// The answer to a search.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchAnswer)]
pub struct SearchView {
    /// Best first.
    hits: Vec<HitView>,
    diagnostics: DiagnosticsView,
}

/// Searches the library by words and, with an embedding model, by meaning.
#[utoipa::path(post, path = "/knowledge/search", tag = "knowledge", security(("key" = [])), request_body = Search, responses((status = 200, body = SearchView)))]
async fn search_knowledge(
    State(app): State<App>,
    caller: KeyCaller,
    _: NoQuery,
    body: Body<Search>,
) -> Result<Json<SearchView>, HttpProblem> {
    caller.0.require(Capability::KnowledgeRead)?;
    let request = body.read()?.into_request()?;
    // over the API only the library is within reach, never a chat's uploads
    let reach = Reach::library(caller.0.org, caller.0.user).asked_with(caller.0.api_key());
    Ok(Json(app.knowledge.search(&reach, request).await?.into()))
}

impl Search {
    /// Checks everything before any provider is asked.
    fn into_request(self) -> Result<SearchRequest, Problem> {
        let mut issues = Vec::new();
        let query = self.query.trim();
        if query.is_empty() {
            issues.push(Issue::new("query", "must not be blank"));
        } else if query.chars().count() > MAX_QUERY_CHARS {
            issues.push(Issue::new("query", "must be at most 2,000 characters"));
        }
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            issues.push(Issue::new("limit", "must be a whole number from 1 to 50"));
        }
        if self.min_similarity.is_some_and(|floor| !(0.0..=1.0).contains(&floor)) {
            issues.push(Issue::new("minSimilarity", "must be a number from 0 to 1"));
        }
        if !issues.is_empty() {
            return Err(Problem::invalid_body(issues));
        }
        Ok(SearchRequest {
            limit: usize::try_from(limit).unwrap_or(1),
            #[expect(clippy::cast_possible_truncation, reason = "a similarity needs no more digits")]
            min_similarity: self.min_similarity.map(|floor| floor as f32),
            corpus: match self.corpus {
                None | Some(CorpusWord::All) => Corpus::All,
                Some(CorpusWord::Documents) => Corpus::Documents,
                Some(CorpusWord::Web) => Corpus::Web,
            },
            require_dense: self.require_dense.unwrap_or(false),
            ..SearchRequest::new(query)
        })
    }
}

impl From<SearchResponse> for SearchView {
    fn from(answer: SearchResponse) -> Self {
        let Diagnostics { bm25, dense, limited, reranked, cached, admitted, legs } = answer.diagnostics;
        Self {
            hits: answer.hits.into_iter().map(HitView::from).collect(),
            diagnostics: DiagnosticsView { bm25, dense, limited, reranked, cached, admitted, legs },
        }
    }
}

impl From<Hit> for HitView {
    fn from(hit: Hit) -> Self {
        let matched_legs: Vec<LegWord> = hit
            .legs
            .iter()
            .map(|leg| match leg {
                Leg::Keyword => LegWord::Keyword,
                Leg::Dense => LegWord::Dense,
            })
            .collect();
        Self {
            corpus: CorpusWord::Documents,
            id: hit.chunk_id,
            passage: hit.passage,
            score: hit.score,
            fused_score: hit.fused_score,
            similarity: hit.similarity,
            keyword_score: hit.keyword_score,
            legs: matched_legs.len(),
            matched_legs,
            source: SourceView {
                reference: hit.file_id,
                document_id: hit.document_id,
                title: hit.title,
                header: hit.header,
                page: hit.page,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tale_core::Code;

    use super::*;

    fn parsed(body: &str) -> Result<SearchRequest, Problem> {
        crate::body::parse::<Search>(body.as_bytes())?.into_request()
    }

    #[test]
    fn the_body_is_judged_before_anything_is_searched() {
        for (body, path) in [
            ("{}", "query"),
            (r#"{"query":"  "}"#, "query"),
            (r#"{"query":"a","limit":0}"#, "limit"),
            (r#"{"query":"a","limit":51}"#, "limit"),
            (r#"{"query":"a","limit":1.5}"#, "limit"),
            (r#"{"query":"a","minSimilarity":1.01}"#, "minSimilarity"),
            (r#"{"query":"a","corpus":"mail"}"#, "corpus"),
            (r#"{"query":"a","projectId":"x"}"#, "projectId"),
            (r#"{"query":"a","requireDense":1}"#, "requireDense"),
        ] {
            let problem = parsed(body).unwrap_err();
            assert_eq!(problem.code, Code::InvalidBody, "{body}");
            assert_eq!(problem.data.unwrap()["issues"][0]["path"], path, "{body}");
        }
        let long = format!(r#"{{"query":"{}"}}"#, "ä".repeat(2_001));
        assert_eq!(parsed(&long).unwrap_err().code, Code::InvalidBody);
    }

    #[test]
    fn an_answer_has_the_fields_of_the_contract() {
        let hit = Hit {
            chunk_id: ChunkId::new(),
            document_id: Some(DocumentId::new()),
            file_id: FileId::new(),
            title: "Contract".into(),
            passage: "The notice period is three months.".into(),
            header: "Contract › Notice".into(),
            page: None,
            score: 1.0,
            fused_score: 1.0,
            legs: vec![Leg::Keyword],
            similarity: None,
            keyword_score: Some(2.5),
        };
        let (id, file, document) = (hit.chunk_id, hit.file_id, hit.document_id);
        let diagnostics = Diagnostics {
            bm25: true,
            admitted: 1,
            legs: BTreeMap::from([("documents:keyword", 1)]),
            ..Diagnostics::default()
        };
        let answer = serde_json::to_value(SearchView::from(SearchResponse { hits: vec![hit], diagnostics })).unwrap();
        let expected = serde_json::json!({
            "hits": [{
                "corpus": "documents", "id": id, "passage": "The notice period is three months.", "score": 1.0, "fusedScore": 1.0,
                "similarity": null, "keywordScore": 2.5, "matchedLegs": ["keyword"], "legs": 1,
                "source": { "ref": file, "documentId": document, "title": "Contract", "header": "Contract › Notice", "page": null },
            }],
            "diagnostics": {
                "bm25": true, "dense": false, "reranked": false, "cached": false, "admitted": 1, "legs": { "documents:keyword": 1 },
            },
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let request = parsed(r#"{"query":" notice period "}"#).unwrap();
        assert_eq!(request, SearchRequest::new("notice period"));
        assert_eq!((request.limit, request.corpus, request.require_dense), (10, Corpus::All, false));
        let request =
            parsed(r#"{"query":"a","limit":50,"minSimilarity":0.5,"corpus":"documents","requireDense":true}"#).unwrap();
        assert_eq!(
            (request.limit, request.min_similarity, request.corpus, request.require_dense),
            (50, Some(0.5), Corpus::Documents, true)
        );
    }
}
