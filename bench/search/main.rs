//! Search over 100,000 passages, and the quality of the keyword leg. See `bench/search.md`.
//!
//! ```text
//! cargo bench -p tale-knowledge --bench search                     speed, recall, freshness
//! cargo bench -p tale-knowledge --bench search -- 500              the same with 500 documents
//! cargo bench -p tale-knowledge --bench search -- quality FOLDER   nDCG@10 on a judged collection
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark prints and fails loudly"
)]

mod corpus;
mod quality;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus::{DIMENSIONS, Language, MODEL, Random};
use pgvector::Vector;
use sqlx::{PgConnection, PgPool};
use tale_core::clock::SystemClock;
use tale_core::ids::OrgId;
use tale_db::pools::{self, PoolConfig};
use tale_knowledge::corpora::Corpora;
use tale_knowledge::dense::{QueryVector, ensure_index};
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_knowledge::search::Searcher;
use tale_knowledge::{Reach, SearchRequest};
use tale_testkit::TestDb;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Documents of the large organization; 20 passages each.
const FILES: usize = 5_000;
/// Documents of the organization that owns one hundredth of the corpus.
const FEW_FILES: usize = 50;
const QUERIES: usize = 1_000;
const JUDGED_QUERIES: usize = 200;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.as_slice() {
        [] => speed(FILES).await,
        [files] if files.parse::<usize>().is_ok() => speed(files.parse().unwrap()).await,
        [quality, folder] if quality == "quality" => quality::run(&PathBuf::from(folder)).await,
        _ => panic!("arguments: nothing, a number of documents, or `quality FOLDER`"),
    }
}

/// A pool as the program makes it.
async fn pool(url: &str) -> PgPool {
    let config = PoolConfig { url: url.to_owned(), max_connections: 4, ca_file: None, application_name: "bench" };
    pools::connect("bench", &config).await.unwrap()
}

/// Milliseconds at the given share of sorted durations.
fn at(sorted: &[Duration], share: f64) -> f64 {
    let place = ((sorted.len() as f64 * share) as usize).min(sorted.len() - 1);
    sorted[place].as_secs_f64() * 1_000.0
}

fn report(name: &str, mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let (p50, p95) = (at(&times, 0.5), at(&times, 0.95));
    println!("{name:<58} p50 {p50:>7.2} ms   p95 {p95:>7.2} ms   p99 {:>7.2} ms", at(&times, 0.99));
    (p50, p95)
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1_024.0
}

async fn speed(files: usize) {
    let db = TestDb::new().await;
    // the corpus database with memory for building the graph at once, and one connection to compare on
    sqlx::query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET maintenance_work_mem = ''1GB''', current_database()); END $$")
        .execute(&db.knowledge)
        .await
        .unwrap();
    let corpus_pool = pool(&db.knowledge_url()).await;
    let app_pool = pool(&db.app_url()).await;
    let language = Language::new();

    let begun = Instant::now();
    let large = corpus::organization(&app_pool, &corpus_pool, &language, files, 1).await;
    let few = corpus::organization(&app_pool, &corpus_pool, &language, FEW_FILES, 2).await;
    println!("{} passages stored in {:.0} s", (files + FEW_FILES) * 20, begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    ensure_index(&corpus_pool, u32::try_from(DIMENSIONS).unwrap()).await.unwrap();
    println!("graph index built in {:.0} s", begun.elapsed().as_secs_f64());
    for pool in [&corpus_pool, &app_pool] {
        sqlx::query("VACUUM ANALYZE").execute(pool).await.unwrap();
    }

    let folder = tempfile::tempdir().unwrap();
    let corpora = Corpora::deployment_only(corpus_pool.clone());
    let keyword = Keyword::new(KeywordParts {
        app: app_pool.clone(),
        corpora: corpora.clone(),
        data_dir: folder.path().to_owned(),
        clock: Arc::new(SystemClock),
        repair: RepairPolicy::default(),
    });
    let before = resident_mib();
    let begun = Instant::now();
    keyword.catch_up(large).await.unwrap();
    println!(
        "keyword index built in {:.1} s; resident memory {:.0} MiB before, {:.0} MiB after",
        begun.elapsed().as_secs_f64(),
        before,
        resident_mib()
    );
    println!("keyword index on disk {:.0} MiB", folder_mib(folder.path()));
    keyword.catch_up(few).await.unwrap();
    let searcher = Searcher::new(app_pool.clone(), corpora, keyword);

    let mut random = Random::new(77);
    let questions: Vec<(String, Vec<f32>)> = (0..QUERIES)
        .map(|_| {
            let (topic, text) = language.question(&mut random);
            (text, language.vector(topic, &mut random))
        })
        .collect();
    latency(&searcher, &corpus_pool, large, &questions).await;
    recall(&searcher, &corpus_pool, "dense leg, everything", large, &questions[..JUDGED_QUERIES]).await;
    recall(&searcher, &corpus_pool, "dense leg, 1 % of the corpus", few, &questions[..JUDGED_QUERIES]).await;
    freshness(&searcher, &app_pool, &corpus_pool, large).await;
    println!("resident memory at the end {:.0} MiB", resident_mib());
}

fn folder_mib(path: &std::path::Path) -> f64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0.0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => folder_mib(&entry.path()),
            Ok(data) => data.len() as f64 / 1_048_576.0,
            Err(_) => 0.0,
        })
        .sum()
}

/// The bare statement that the hybrid search is measured against: the nearest passages by the graph
/// index, nothing else. Text and settings as pgvector's own documentation gives them.
async fn bare(connection: &mut PgConnection, vector: &[f32], limit: i64) -> Vec<Uuid> {
    sqlx::query_scalar(
        "SELECT id
           FROM private_knowledge.chunks
          WHERE library AND embedding IS NOT NULL
          ORDER BY embedding::halfvec(384) <=> $1::halfvec(384)
          LIMIT $2",
    )
    .bind(Vector::from(vector.to_vec()))
    .bind(limit)
    .fetch_all(connection)
    .await
    .unwrap()
}

async fn latency(searcher: &Searcher, pool: &PgPool, org: OrgId, questions: &[(String, Vec<f32>)]) {
    let reach = Reach::library(org, None);
    let mut plain_connection = pool.acquire().await.unwrap().detach();
    let mut wide_connection = pool.acquire().await.unwrap().detach();
    sqlx::query("SET hnsw.ef_search = 80").execute(&mut wide_connection).await.unwrap();
    // once through everything first, so that neither side pays for cold pages
    for (text, vector) in questions {
        bare(&mut plain_connection, vector, 10).await;
        bare(&mut wide_connection, vector, 30).await;
        hybrid(searcher, &reach, text, vector).await;
    }
    let corpus = Corpora::deployment_only(pool.clone()).deployment();
    let (mut plain, mut wide, mut both, mut words) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (text, vector) in questions {
        let begun = Instant::now();
        bare(&mut plain_connection, vector, 10).await;
        plain.push(begun.elapsed());
        let begun = Instant::now();
        hybrid(searcher, &reach, text, vector).await;
        both.push(begun.elapsed());
        let begun = Instant::now();
        bare(&mut wide_connection, vector, 30).await;
        wide.push(begun.elapsed());
        let begun = Instant::now();
        searcher.keyword().search(org, &corpus, text, &[], 30).await.unwrap();
        words.push(begun.elapsed());
    }
    let (_, plain) = report("bare HNSW statement, LIMIT 10, ef_search 40", plain);
    let (_, wide) = report("bare HNSW statement, LIMIT 30, ef_search 80 (ours)", wide);
    let (_, both) = report("hybrid search end to end, 10 hits", both);
    report("keyword leg, questions of 1-8 words", words);
    println!(
        "hybrid p95 is {:.2} times the bare statement's at ef_search 40, {:.2} times at 80",
        both / plain,
        both / wide
    );
}

async fn hybrid(searcher: &Searcher, reach: &Reach, text: &str, vector: &[f32]) -> usize {
    let vector = QueryVector { model: MODEL.to_owned(), values: vector.to_vec() };
    let answer = searcher.search(reach, &SearchRequest::new(text), Some(&vector)).await.unwrap();
    assert!(answer.diagnostics.bm25 && answer.diagnostics.dense);
    answer.hits.len()
}

async fn recall(searcher: &Searcher, pool: &PgPool, name: &str, org: OrgId, questions: &[(String, Vec<f32>)]) {
    let reach = Reach::library(org, None);
    let (mut found, mut all) = (0, 0);
    for (_, vector) in questions {
        let exact: Vec<Uuid> = sqlx::query_scalar(
            "SELECT id FROM private_knowledge.chunks
              WHERE org_id = $1 AND library AND embedding IS NOT NULL
              ORDER BY embedding <=> $2 LIMIT 10",
        )
        .bind(org)
        .bind(Vector::from(vector.clone()))
        .fetch_all(pool)
        .await
        .unwrap();
        // a word that is nowhere: what comes back is the dense leg alone
        let query = QueryVector { model: MODEL.to_owned(), values: vector.clone() };
        let answer = searcher.search(&reach, &SearchRequest::new("qqqqqqqqqqqqqqqqqqqq"), Some(&query)).await.unwrap();
        let ids: HashSet<Uuid> = answer.hits.iter().map(|hit| hit.chunk_id.0).collect();
        all += exact.len();
        found += exact.iter().filter(|id| ids.contains(id)).count();
    }
    println!("{name:<58} recall@10 {:.4}", found as f64 / all as f64);
}

async fn freshness(searcher: &Searcher, app: &PgPool, pool: &PgPool, org: OrgId) {
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (keyword, stop) = (searcher.keyword().clone(), stop.clone());
        async move { keyword.run(stop).await }
    });
    let whole = Corpora::deployment_only(pool.clone()).deployment();
    let mut times = Vec::new();
    for number in 0..30 {
        let word = format!("zzfresh{}", ["a", "b", "c", "d", "e", "f"][number % 6].repeat(number + 3));
        corpus::document(app, pool, org, "Fresh", &[format!("The new word is {word} and nothing else.")], None).await;
        let committed = Instant::now();
        while searcher.keyword().search(org, &whole, &word, &[], 10).await.unwrap().is_empty() {
            assert!(committed.elapsed() < Duration::from_secs(20), "the passage never appears");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times.push(committed.elapsed());
    }
    stop.cancel();
    running.await.unwrap();
    times.sort_unstable();
    println!("a new passage is found after {:.0} ms (median), {:.0} ms (longest)", at(&times, 0.5), at(&times, 1.0));
}
