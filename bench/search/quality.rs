//! nDCG@10 of the keyword leg beside tantivy's own BM25, on a judged collection.
//!
//! The folder holds `documents.tsv` (id, title, text), `queries.tsv` (id, text) and `qrels.tsv`
//! (query, document, grade); `bench/search.md` says how to make it. Documents without a judgement
//! for a query are left out of its ranking, on both sides alike.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tale_core::clock::SystemClock;
use tale_knowledge::corpora::Corpora;
use tale_knowledge::keyword::{Keyword, KeywordParts, RepairPolicy};
use tale_testkit::TestDb;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::tokenizer::{LowerCaser, PreTokenizedString, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, Token};
use tantivy::{Index, IndexWriter, TantivyDocument, Term};
use uuid::Uuid;

use crate::corpus;

pub(crate) struct Collection {
    documents: Vec<(String, String, String)>,
    queries: Vec<(String, String)>,
    grades: HashMap<String, HashMap<String, f64>>,
}

fn rows(folder: &Path, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

impl Collection {
    fn read(folder: &Path) -> Self {
        let mut grades: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for row in rows(folder, "qrels.tsv") {
            grades.entry(row[0].clone()).or_default().insert(row[1].clone(), row[2].parse().expect("a grade"));
        }
        Self {
            documents: rows(folder, "documents.tsv")
                .into_iter()
                .map(|row| (row[0].clone(), row[1].clone(), row[2].clone()))
                .collect(),
            queries: rows(folder, "queries.tsv")
                .into_iter()
                .map(|row| (row[0].clone(), row[1].clone()))
                .filter(|(id, _)| grades.contains_key(id))
                .collect(),
            grades,
        }
    }

    /// Mean nDCG@10 of `rank` over the queries that have something to find.
    fn ndcg(&self, mut rank: impl FnMut(&str) -> Vec<String>) -> f64 {
        let discount = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let (mut sum, mut counted) = (0.0, 0);
        for (id, text) in &self.queries {
            let grades = &self.grades[id];
            let mut ideal: Vec<f64> = grades.values().copied().collect();
            ideal.sort_unstable_by(|a, b| b.total_cmp(a));
            let best: f64 = ideal.iter().take(10).enumerate().map(|(place, grade)| grade * discount(place)).sum();
            if best > 0.0 {
                let ranked = rank(text);
                let judged = ranked.iter().filter_map(|document| grades.get(document));
                sum += judged.take(10).enumerate().map(|(place, grade)| grade * discount(place)).sum::<f64>() / best;
                counted += 1;
            }
        }
        sum / f64::from(counted)
    }
}

/// Candidates that are ranked before the judged ones are picked.
const DEPTH: usize = 150;

/// tantivy with one text field and its default scoring; words lower-cased and, if `stemmed`, stemmed.
fn plain(collection: &Collection, stemmed: bool) -> f64 {
    let mut schema = Schema::builder();
    let id = schema.add_text_field("id", STRING | STORED);
    let text = schema.add_text_field(
        "text",
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default().set_tokenizer("default").set_index_option(IndexRecordOption::WithFreqs),
        ),
    );
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer(50_000_000).expect("a writer");
    let mut analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(40))
        .filter(LowerCaser)
        .build();
    let stemmer = frostem::Stemmer::new(frostem::Algorithm::English);
    let mut tokens = |text: &str| {
        let mut list: Vec<Token> = Vec::new();
        analyzer.token_stream(text).process(&mut |token| {
            let mut token = token.clone();
            if stemmed {
                token.text = stemmer.stem(&token.text).into_owned();
            }
            list.push(token);
        });
        list
    };
    for (name, title, body) in &collection.documents {
        let whole = format!("{title}\n\n{body}");
        let mut document = TantivyDocument::new();
        document.add_text(id, name);
        document.add_pre_tokenized_text(text, PreTokenizedString { tokens: tokens(&whole), text: whole });
        writer.add_document(document).expect("add");
    }
    writer.commit().expect("commit");
    let searcher = index.reader().expect("a reader").searcher();
    collection.ndcg(|question| {
        let clauses: Vec<(Occur, Box<dyn Query>)> = tokens(question)
            .into_iter()
            .map(|token| {
                let term = Term::from_field_text(text, &token.text);
                (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>)
            })
            .collect();
        let best =
            searcher.search(&BooleanQuery::new(clauses), &TopDocs::with_limit(DEPTH).order_by_score()).expect("search");
        best.into_iter()
            .map(|(_, address)| {
                let document: TantivyDocument = searcher.doc(address).expect("a document");
                document.get_first(id).and_then(|value| value.as_str().map(str::to_owned)).expect("an id")
            })
            .collect()
    })
}

async fn ours(collection: &Collection) -> f64 {
    let db = TestDb::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let language = corpus::Language::new();
    let org = corpus::organization(&db.app, &db.knowledge, &language, 0, 0).await;
    let mut names: HashMap<Uuid, String> = HashMap::new();
    for (name, title, body) in &collection.documents {
        // a document without a text of its own is its title; no passage is empty
        let (title, body) = if body.trim().is_empty() { ("", title) } else { (title.as_str(), body) };
        let file = corpus::document(
            &db.app,
            &db.knowledge,
            org,
            if title.is_empty() { " " } else { title },
            std::slice::from_ref(body),
            None,
        )
        .await;
        names.insert(file.0, name.clone());
    }
    let corpora = Corpora::deployment_only(db.knowledge.clone());
    let keyword = Keyword::new(KeywordParts {
        app: db.app.clone(),
        corpora: corpora.clone(),
        data_dir: folder.path().to_owned(),
        clock: Arc::new(SystemClock),
        repair: RepairPolicy::default(),
    });
    keyword.catch_up(org).await.expect("an index");
    let mut answers: HashMap<String, Vec<String>> = HashMap::new();
    for (_, question) in &collection.queries {
        let found = keyword.search(org, &corpora.deployment(), question, &[], DEPTH).await.expect("search");
        answers.insert(question.clone(), found.into_iter().map(|found| names[&found.file].clone()).collect());
    }
    collection.ndcg(|question| answers[question].clone())
}

pub(crate) async fn run(folder: &Path) {
    let collection = Collection::read(folder);
    println!("{} documents, {} judged queries", collection.documents.len(), collection.queries.len());
    println!("tantivy BM25, words as they are   nDCG@10 {:.4}", plain(&collection, false));
    println!("tantivy BM25, English stems       nDCG@10 {:.4}", plain(&collection, true));
    println!("keyword leg                       nDCG@10 {:.4}", ours(&collection).await);
}
