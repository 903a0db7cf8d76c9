//! The dense leg and both legs together.

use tale_core::ids::ThreadId;
use tale_knowledge::dense::{QueryVector, ensure_index};
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{Corpus, Leg, SearchRequest};

use super::world::{MODEL, World};

fn query(values: [f32; 4]) -> QueryVector {
    QueryVector { model: MODEL.to_owned(), values: values.to_vec() }
}

#[tokio::test]
async fn both_legs_are_fused_and_each_says_what_it_found() {
    let world = World::new().await;
    let org = world.org().await;
    let stored =
        world.document(org, "Fruit", &["An apple a day.", "A pear in between.", "The word apple once more."]).await;
    world.embed(org, stored.file, 0, [1.0, 0.0, 0.0, 0.0]).await;
    world.embed(org, stored.file, 1, [0.9, 0.1, 0.0, 0.0]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    let vector = query([1.0, 0.0, 0.0, 0.0]);
    let found =
        world.searcher.search(&Reach::library(org, None), &SearchRequest::new("apple"), Some(&vector)).await.unwrap();
    assert_eq!(found.hits.len(), 3);
    assert_eq!(found.hits[0].passage, "An apple a day.");
    assert_eq!(found.hits[0].legs, [Leg::Keyword, Leg::Dense]);
    assert_eq!(found.hits[0].fused_score, 1.0);
    assert!((found.hits[0].similarity.unwrap() - 1.0).abs() < 1e-6);
    let pear = found.hits.iter().find(|hit| hit.passage.contains("pear")).unwrap();
    assert_eq!((pear.legs.as_slice(), pear.keyword_score), (&[Leg::Dense][..], None));
    let legs: Vec<_> = found.diagnostics.legs.iter().map(|(leg, count)| (*leg, *count)).collect();
    assert_eq!(legs, [("documents:dense", 2), ("documents:keyword", 2)]);
    assert_eq!(found.diagnostics.admitted, 3);

    // the floor is on the cosine of the dense leg, keyword hits stay
    let strict = SearchRequest { min_similarity: Some(0.999), ..SearchRequest::new("apple") };
    let found = world.searcher.search(&Reach::library(org, None), &strict, Some(&vector)).await.unwrap();
    assert!(found.hits.iter().all(|hit| !hit.passage.contains("pear")));
    assert_eq!(found.hits.len(), 2);
}

#[tokio::test]
async fn vectors_of_another_model_stay_out() {
    let world = World::new().await;
    let org = world.org().await;
    let stored = world.document(org, "Fruit", &["An apple a day."]).await;
    world.embed(org, stored.file, 0, [1.0, 0.0, 0.0, 0.0]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    let other = QueryVector { model: "other/model/4".to_owned(), values: vec![1.0, 0.0, 0.0, 0.0] };
    let found =
        world.searcher.search(&Reach::library(org, None), &SearchRequest::new("banana"), Some(&other)).await.unwrap();
    assert!(found.hits.is_empty() && found.diagnostics.dense);
}

#[tokio::test]
async fn chat_uploads_are_near_from_their_chat_only() {
    let world = World::new().await;
    let org = world.org().await;
    let chat = ThreadId::new();
    let upload = world.upload(org, chat, "notes.txt", &["Private thoughts."]).await;
    world.embed(org, upload.file, 0, [1.0, 0.0, 0.0, 0.0]).await;
    let vector = query([1.0, 0.0, 0.0, 0.0]);
    let request = SearchRequest::new("unrelated words");
    for (reach, expected) in [
        (Reach::library(org, None), 0),
        (world.chats(org, &[ThreadId::new()]).await, 0),
        (world.chats(org, &[chat]).await, 1),
    ] {
        let found = world.searcher.search(&reach, &request, Some(&vector)).await.unwrap();
        assert_eq!(found.hits.len(), expected, "{reach:?}");
    }
}

#[tokio::test]
async fn websites_are_not_the_library() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "Fruit", &["An apple a day."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    for (corpus, expected) in [(Corpus::All, 1), (Corpus::Documents, 1), (Corpus::Web, 0)] {
        let request = SearchRequest { corpus, ..SearchRequest::new("apple") };
        let found = world.searcher.search(&Reach::library(org, None), &request, None).await.unwrap();
        assert_eq!(found.hits.len(), expected, "{corpus:?}");
    }
}

/// Deterministic points in a few clusters.
fn point(seed: u64) -> [f32; 4] {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    })
}

#[tokio::test]
async fn the_graph_index_finds_what_comparing_finds() {
    let world = World::new().await;
    ensure_index(&world.db.knowledge, 4).await.unwrap();
    ensure_index(&world.db.knowledge, 4).await.unwrap();
    let (large, small) = (world.org().await, world.org().await);
    for (org, count) in [(large, 3_000_i64), (small, 30)] {
        let stored = world.document(org, "Points", &["placeholder"]).await;
        let vectors: Vec<pgvector::Vector> =
            (0..count).map(|seed| pgvector::Vector::from(point(seed as u64).to_vec())).collect();
        sqlx::query(
            "INSERT INTO private_knowledge.chunks
                    (id, org_id, file_id, ordinal, library, header, body, body_start, body_end, core_start, core_end,
                     chunker_version, embedding, embedding_model)
             SELECT gen_random_uuid(), $1, $2, place, true, '', 'point ' || place, place, place + 1, place, place + 1, 1, vector, $4
               FROM unnest($3::vector[]) WITH ORDINALITY AS point (vector, place)",
        )
        .bind(org)
        .bind(stored.file)
        .bind(&vectors)
        .bind(MODEL)
        .execute(&world.db.knowledge)
        .await
        .unwrap();
    }
    sqlx::query("ANALYZE private_knowledge.chunks").execute(&world.db.knowledge).await.unwrap();
    let (mut same, mut all) = (0, 0);
    for seed in 0..40_u64 {
        let vector = query(point(1_000_000 + seed));
        let exact: Vec<(String,)> = sqlx::query_as(
            "SELECT body FROM private_knowledge.chunks WHERE org_id = $1 AND embedding IS NOT NULL ORDER BY embedding <=> $2 LIMIT 10",
        )
        .bind(large)
        .bind(pgvector::Vector::from(vector.values.clone()))
        .fetch_all(&world.db.knowledge)
        .await
        .unwrap();
        let found = world
            .searcher
            .search(&Reach::library(large, None), &SearchRequest::new("zzz"), Some(&vector))
            .await
            .unwrap();
        all += exact.len();
        same += exact.iter().filter(|(body,)| found.hits.iter().any(|hit| &hit.passage == body)).count();
        let few = world
            .searcher
            .search(&Reach::library(small, None), &SearchRequest::new("zzz"), Some(&vector))
            .await
            .unwrap();
        assert_eq!(few.hits.len(), 10);
    }
    assert!(same * 100 >= all * 97, "recall {same} of {all}");
}
