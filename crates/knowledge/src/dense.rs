//! The dense leg: the passages whose vectors are nearest to the query's (pgvector, cosine).
//!
//! Two ways lead to the same answer. Comparing every vector of the organization is exact and cheap
//! for few passages. The HNSW graph holds the library passages of *all* organizations of a corpus,
//! as half-precision vectors; a search in it goes on until enough of the organization's own were met
//! (iterative scan), so its cost grows with the organization's rarity. [`Plan::choose`] takes the
//! cheaper way and never a graph search that would have to stop early.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pgvector::Vector;
use sqlx::PgPool;
use tale_core::ids::OrgId;
use uuid::Uuid;

use crate::corpora::CorpusPool;
use crate::store::search::{self as store, GraphSearch, Near};

/// Widest vectors that the graph index takes.
pub const MAX_INDEXED_DIMENSIONS: u32 = 4_000;
/// Candidates that one descent of the graph keeps. Measured in `bench/search.md`.
const EFFORT: u32 = 80;
/// Entries that a filtered graph search may visit.
const MOST_VISITS: u32 = 40_000;
/// Counting an organization's passages stops here.
const MOST_COUNTED: i64 = 50_000;
/// How long a count is taken for true. It only chooses between two right ways.
const COUNT_AGE: Duration = Duration::from_secs(60);
/// Counts that are remembered.
const MOST_COUNTS: usize = 4_096;
/// Cost of visiting one entry of the graph, in comparisons of a stored vector.
const VISIT_COST: i64 = 6;

/// The query as a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// Which vectors it can be compared with: the stamp of provider, model and width.
    pub model: String,
    /// Its components.
    pub values: Vec<f32>,
}

/// Organization, database and model.
type Counted = (OrgId, Arc<str>, String);

/// The dense leg.
#[derive(Debug, Default)]
pub(crate) struct Dense {
    counts: Mutex<HashMap<Counted, (Counts, Instant)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Of the organization, up to [`MOST_COUNTED`].
    mine: i64,
    /// Of the whole corpus, an estimate.
    all: i64,
    /// Whether the graph index can be used.
    graph: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Compare,
    Graph,
}

impl Plan {
    fn choose(counts: Counts, pool: i64) -> Self {
        if !counts.graph {
            return Self::Compare;
        }
        let all = counts.all.max(counts.mine).max(1);
        // until `pool` of the organization's passages are met
        let visits = (pool.max(i64::from(EFFORT)) * all) / counts.mine.max(1);
        if visits > i64::from(MOST_VISITS) / 2 || counts.mine <= visits * VISIT_COST {
            Self::Compare
        } else {
            Self::Graph
        }
    }
}

impl Dense {
    /// The `pool` nearest passages of the library and of the chat uploads `files`, nearest first.
    pub(crate) async fn search(
        &self,
        corpus: &CorpusPool,
        org: OrgId,
        query: &QueryVector,
        files: &[Uuid],
        pool: usize,
    ) -> Result<Vec<Near>, sqlx::Error> {
        let vector = Vector::from(query.values.clone());
        let limit = i64::try_from(pool).unwrap_or(i64::MAX);
        let counts = self.counts(corpus, org, query).await?;
        let mut near = match Plan::choose(counts, limit) {
            _ if counts.mine == 0 => Vec::new(),
            Plan::Compare => store::near_by_comparing(corpus.pool(), org, &vector, &query.model, limit).await?,
            Plan::Graph => {
                let search = GraphSearch {
                    org,
                    vector: &vector,
                    model: &query.model,
                    dimensions: u32::try_from(query.values.len()).unwrap_or(u32::MAX),
                    pool: limit,
                    effort: EFFORT.max(u32::try_from(pool).unwrap_or(u32::MAX)),
                    most_visits: MOST_VISITS,
                };
                store::near_by_graph(corpus.pool(), &search).await?
            }
        };
        if !files.is_empty() {
            near.extend(store::near_in_files(corpus.pool(), org, files, &vector, &query.model, limit).await?);
            near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.id.cmp(&b.id)));
            near.truncate(pool);
        }
        Ok(near)
    }

    async fn counts(&self, corpus: &CorpusPool, org: OrgId, query: &QueryVector) -> Result<Counts, sqlx::Error> {
        let key = (org, corpus.identity().await?, query.model.clone());
        {
            let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((known, since)) = counts.get(&key)
                && since.elapsed() < COUNT_AGE
                // an organization that has just begun is counted again at once
                && known.mine > 0
            {
                return Ok(*known);
            }
        }
        let (mine, all) = store::counts(corpus.pool(), org, &query.model, MOST_COUNTED).await?;
        let dimensions = u32::try_from(query.values.len()).unwrap_or(u32::MAX);
        let graph = dimensions <= MAX_INDEXED_DIMENSIONS && store::graph_exists(corpus.pool(), dimensions).await?;
        let fresh = Counts { mine, all, graph };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST_COUNTS {
            counts.clear();
        }
        counts.insert(key, (fresh, Instant::now()));
        Ok(fresh)
    }
}

/// Makes sure that vectors of `dimensions` are searched through a graph index. Called when the first
/// model of a corpus is set, while there is nothing to index; repeating it costs one look-up. Wider
/// vectors than [`MAX_INDEXED_DIMENSIONS`] are compared one by one.
///
/// # Errors
/// Those of the database.
pub async fn ensure_index(corpus: &PgPool, dimensions: u32) -> Result<(), sqlx::Error> {
    if dimensions == 0 || dimensions > MAX_INDEXED_DIMENSIONS || store::graph_exists(corpus, dimensions).await? {
        return Ok(());
    }
    let mut transaction = corpus.begin().await?;
    store::create_graph(&mut transaction, dimensions).await?;
    transaction.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_passages_are_compared_and_many_are_looked_up() {
        let choose = |mine, all| Plan::choose(Counts { mine, all, graph: true }, 30);
        assert_eq!(choose(100, 100), Plan::Compare);
        assert_eq!(choose(100_000, 100_000), Plan::Graph);
        assert_eq!(choose(1_000, 100_000), Plan::Compare);
        assert_eq!(choose(50_000, 50_000_000), Plan::Compare);
        assert_eq!(choose(50_000, 1_000_000), Plan::Graph);
        assert_eq!(Plan::choose(Counts { mine: 100_000, all: 100_000, graph: false }, 30), Plan::Compare);
    }
}
