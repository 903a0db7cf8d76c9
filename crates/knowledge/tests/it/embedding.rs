//! Vectors: later than words, of one width, of one model.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tale_core::{Clock, Code};
use tale_governance::budgets::{Amounts, Cap, Holder, Kind, Period, Refusal, Scope};
use tale_identity::Role;
use tale_knowledge::embedder::EmbedFailure;
use tale_knowledge::files::IndexStatus;
use tale_knowledge::indexing::EmbedRunError;
use tale_knowledge::{Reach, SearchRequest};

use crate::world::{long_text, world};

#[tokio::test]
async fn documents_indexed_before_a_model_are_embedded_afterwards() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let mut documents = Vec::new();
    for n in 0..3 {
        let document = world.document(&owner, &format!("{n}.md"), long_text(2)).await;
        world.index(owner.org, document.file.unwrap()).await;
        documents.push(document);
    }
    sqlx::query("UPDATE app.files SET skip_indexing = true WHERE id = $1")
        .bind(documents[2].file)
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(world.queued("knowledge.embed_file").await, 0);

    let model = world.embedder.choose(owner.org, "letters", 16);
    assert_eq!(world.saved(owner.org, &model).await, 2, "the one that opted out stays");
    assert_eq!(world.queued("knowledge.embed_file").await, 2);
    let counts = world.knowledge.corpus_counts(owner.org).await.unwrap();
    assert_eq!((counts.documents, counts.embedded, counts.waiting), (3, 0, 2));
    for document in &documents[..2] {
        world.embed(owner.org, document.file.unwrap()).await;
        let indexing = world.read(&owner, document.id).await.indexing;
        assert_eq!((indexing.status, indexing.embedded, indexing.error_code), (IndexStatus::Completed, true, None));
    }
    assert_eq!(world.knowledge.corpus_counts(owner.org).await.unwrap().embedded, 2);
    assert_eq!(world.knowledge.corpus_width(owner.org).await.unwrap(), Some(16));
    assert_eq!(world.saved(owner.org, &model).await, 0, "nothing is left to do");

    // Another model of the same width: other vectors, same passages.
    let other = world.embedder.choose(owner.org, "vowels", 16);
    assert_eq!(world.saved(owner.org, &other).await, 2);
    world.embed(owner.org, documents[0].file.unwrap()).await;
    let stamps: Vec<String> =
        sqlx::query_scalar("SELECT DISTINCT embedding_model FROM private_knowledge.chunks WHERE file_id = $1")
            .bind(documents[0].file)
            .fetch_all(&world.db.knowledge)
            .await
            .unwrap();
    assert_eq!(stamps, ["fake/vowels/16"]);

    let mut conn = world.db.app.acquire().await.unwrap();
    world.knowledge.embedding_removed(&mut conn, owner.org).await.unwrap();
    drop(conn);
    let indexing = world.read(&owner, documents[0].id).await.indexing;
    assert_eq!((indexing.embedded, indexing.error_code.as_deref()), (false, Some("embedding_not_configured")));
}

#[tokio::test]
async fn a_corpus_has_one_width_and_a_refusal_names_both() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let other = world.person("other", Role::Owner).await;
    let first = world.document(&owner, "a.txt", "alpha").await;
    world.embedder.choose(owner.org, "letters", 16);
    world.index(owner.org, first.file.unwrap()).await;
    world.embed(owner.org, first.file.unwrap()).await;

    world.embedder.choose(other.org, "letters", 24);
    let second = world.document(&other, "b.txt", "beta").await;
    world.index(other.org, second.file.unwrap()).await;
    world.embed(other.org, second.file.unwrap()).await;
    let indexing = world.read(&other, second.id).await.indexing;
    assert_eq!(
        (indexing.status, indexing.error_code.as_deref()),
        (IndexStatus::Failed, Some("embedding_provider_refused"))
    );
    let sentence = indexing.error.unwrap();
    assert!(sentence.contains("16") && sentence.contains("24"), "{sentence}");
    assert_eq!(world.found(&other, "beta").await, 1, "it is still found by its words");
    assert!(world.read(&owner, first.id).await.indexing.embedded, "stored vectors are untouched");

    let model = world.embedder.choose(other.org, "letters", 16);
    assert_eq!(world.saved(other.org, &model).await, 1, "the settings cure it");
    *world.embedder.width.lock().unwrap() = Some(12);
    world.embed(other.org, second.file.unwrap()).await;
    let sentence = world.read(&other, second.id).await.indexing.error.unwrap();
    assert!(sentence.contains("12") && sentence.contains("16"), "{sentence}");
}

#[tokio::test]
async fn provider_troubles_are_waited_out_retried_or_final() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    world.embedder.choose(owner.org, "letters", 8);
    let document = world.document(&owner, "a.md", long_text(100)).await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    assert_eq!(world.queued("knowledge.embed_file").await, 1);
    let fail = |list: Vec<EmbedFailure>| *world.embedder.failures.lock().unwrap() = list;
    let run = || world.knowledge.embed_file(owner.org, file, || async { Ok(()) });

    // An outage after the first batch: what was made is kept.
    let soon = EmbedFailure::RateLimited { after: Some(Duration::ZERO) };
    fail(vec![soon.clone(), soon, EmbedFailure::Upstream("HTTP 500".into())]);
    assert!(matches!(run().await, Err(EmbedRunError::Upstream(_))));
    fail(vec![EmbedFailure::RateLimited { after: Some(Duration::from_secs(3_600)) }]);
    assert!(matches!(run().await, Err(EmbedRunError::Later(wait)) if wait == Duration::from_secs(3_600)));
    run().await.unwrap();
    let passages = world.passages(file).await.len();
    assert_eq!(world.embedder.embedded.load(Ordering::SeqCst), passages, "every passage was embedded once");
    assert!(world.read(&owner, document.id).await.indexing.embedded);
    run().await.unwrap();
    assert_eq!(world.embedder.embedded.load(Ordering::SeqCst), passages);

    let spent = world.document(&owner, "b.txt", "x").await;
    world.index(owner.org, spent.file.unwrap()).await;
    fail(vec![EmbedFailure::CreditExhausted("The account has no balance.".into())]);
    world.embed(owner.org, spent.file.unwrap()).await;
    let indexing = world.read(&owner, spent.id).await.indexing;
    assert_eq!(
        (indexing.status, indexing.error_code.as_deref()),
        (IndexStatus::Failed, Some("embedding_provider_refused"))
    );
    assert_eq!(indexing.error.as_deref(), Some("The account has no balance."));
}

#[tokio::test]
async fn a_usage_limit_lets_documents_wait_findable_and_searches_say_so() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let model = world.embedder.choose(owner.org, "letters", 8);
    world.saved(owner.org, &model).await;
    let document = world.document(&owner, "contract.txt", "The notice period is three months.").await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    world.keyword.catch_up(owner.org).await.unwrap();
    let cap = Cap {
        holder: Holder::Org,
        scope: Scope::Org,
        scope_id: None,
        rule: 0,
        period: Period::Monthly,
        kind: Kind::Tokens,
        limit: 10,
        warn_percent: None,
    };
    let needed = Amounts { tokens: 5, ..Amounts::default() };
    let refusal = Refusal::of(&[(cap, 9)], &needed, world.clock.now()).unwrap();
    let limited = EmbedFailure::Limited(Box::new(refusal.clone()));
    let fail = || *world.embedder.failures.lock().unwrap() = vec![limited.clone()];
    sqlx::query("DELETE FROM app.jobs").execute(&world.db.app).await.unwrap();
    fail();
    world.embed(owner.org, file).await;
    let indexing = world.read(&owner, document.id).await.indexing;
    assert_eq!((indexing.status, indexing.error_code.as_deref()), (IndexStatus::Queued, Some("usage_limit")));
    assert_eq!(indexing.error, Some(refusal.sentence()));
    assert_eq!(world.queued("knowledge.embed_file").await, 1, "it goes on by itself");

    let reach = Reach::library(owner.org, owner.user);
    fail();
    let strict = world.knowledge.search(&reach, SearchRequest::new("notice period")).await.unwrap_err();
    assert_eq!((strict.code, strict.retry_after.is_some()), (Code::BudgetExceeded, true));
    fail();
    let by_words = SearchRequest { allow_keyword_fallback: true, ..SearchRequest::new("notice period") };
    let found = world.knowledge.search(&reach, by_words).await.unwrap();
    assert_eq!((found.hits.len(), found.diagnostics.dense), (1, false));
    assert_eq!(found.diagnostics.limited, Some(refusal.sentence()));

    world.embed(owner.org, file).await;
    let indexing = world.read(&owner, document.id).await.indexing;
    assert_eq!((indexing.status, indexing.embedded, indexing.error_code), (IndexStatus::Completed, true, None));
}
