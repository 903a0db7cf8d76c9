//! How the keyword index follows the corpus.

use std::time::Duration;

use tale_core::ids::{FileId, OrgId};
use tale_knowledge::corpora::Corpora;
use tale_knowledge::keyword::{Change, Keyword, KeywordError, log_changes};
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{SearchRequest, Searcher};
use tokio_util::sync::CancellationToken;

use super::damage::copy;
use super::world::{World, put};

async fn keyword_order(world: &World, keyword: &Keyword, org: OrgId, query: &str) -> Vec<(uuid::Uuid, f32)> {
    let corpus = Corpora::deployment_only(world.db.knowledge.clone()).deployment();
    let found = keyword.search(org, &corpus, query, &[], 150).await.unwrap();
    found.into_iter().map(|found| (found.chunk, found.score)).collect()
}

#[tokio::test]
async fn a_transaction_that_began_earlier_and_commits_later_is_not_passed_over() {
    let world = World::new().await;
    let org = world.org().await;
    // both files are live; what is in question is when their passages commit
    let slow = world.document(org, "Slow", &["placeholder"]).await;
    let fast = world.document(org, "Fast", &["placeholder"]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();

    let mut early = world.db.knowledge.begin().await.unwrap();
    put(&mut early, org, slow.file, "Slow", true, 1, &["The tortoise arrives in the end."]).await;
    let mut late = world.db.knowledge.begin().await.unwrap();
    put(&mut late, org, fast.file, "Fast", true, 1, &["The hare arrives at once."]).await;
    late.commit().await.unwrap();
    assert_eq!(world.passages(org, "arrives").await, ["The hare arrives at once."]);
    // a third one moves the checkpoint on while the first is still open
    let third = world.document(org, "Third", &["The fox arrives as well."]).await;
    assert!(third.document.is_some());
    assert_eq!(world.passages(org, "arrives").await.len(), 2);

    early.commit().await.unwrap();
    assert!(world.passages(org, "arrives").await.contains(&"The tortoise arrives in the end.".to_owned()));
}

#[tokio::test]
async fn what_was_rolled_back_is_never_found() {
    let world = World::new().await;
    let org = world.org().await;
    let stored = world.document(org, "Draft", &["A first sentence."]).await;
    let mut undone = world.db.knowledge.begin().await.unwrap();
    put(&mut undone, org, stored.file, "Draft", true, 1, &["The secret sentence."]).await;
    undone.rollback().await.unwrap();
    assert!(world.passages(org, "secret").await.is_empty());
}

#[tokio::test]
async fn a_rebuilt_index_equals_a_followed_one() {
    let world = World::new().await;
    let org = world.org().await;
    let topics =
        ["notice period", "late payment", "filter AB-1234", "Kündigungsfrist der Verträge", "congés payés du salarié"];
    let mut files = Vec::new();
    for round in 0..12 {
        let bodies: Vec<String> = (0..3)
            .map(|part| {
                format!(
                    "Section {round}.{part} describes the {} in some detail.",
                    topics[(round + part) % topics.len()]
                )
            })
            .collect();
        let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
        files.push(world.document(org, &format!("Document {round}"), &bodies).await);
        if round % 3 == 0 {
            world.searcher.keyword().catch_up(org).await.unwrap();
        }
    }
    world.remove(org, files[1].file).await;
    // rewritten in place: same file and ordinal, another id
    let mut rewrite = world.db.knowledge.begin().await.unwrap();
    put(&mut rewrite, org, files[2].file, "Document 2", true, 0, &["Rewritten: the notice period again."]).await;
    rewrite.commit().await.unwrap();
    world.searcher.keyword().catch_up(org).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let fresh = world.replica(&folder);
    fresh.keyword().catch_up(org).await.unwrap();
    for query in ["notice period", "late payment", "ab1234", "Vertrag", "salariés", "section", "rewritten", "detial"] {
        let followed = keyword_order(&world, world.searcher.keyword(), org, query).await;
        let rebuilt = keyword_order(&world, fresh.keyword(), org, query).await;
        let ids =
            |list: &[(uuid::Uuid, f32)]| list.iter().map(|(id, _)| *id).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(ids(&followed), ids(&rebuilt), "{query}");
        assert!(!followed.is_empty(), "{query}");
    }
    // deleted passages count for scores until their segment is merged; after a rebuild nothing differs
    world.searcher.keyword().rebuild(org).await.unwrap();
    for query in ["notice period", "ab1234", "salariés"] {
        assert_eq!(
            keyword_order(&world, world.searcher.keyword(), org, query).await,
            keyword_order(&world, fresh.keyword(), org, query).await,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_crash_before_the_commit_of_the_index_applies_the_entries_again() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "One", &["The first apple."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    // the folder as the crash leaves it: the checkpoint of before, nothing of what came after
    let crashed = tempfile::tempdir().unwrap();
    copy(&world.folder.path().join("search"), &crashed.path().join("search"));
    world.document(org, "Two", &["The second apple."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    assert_eq!(world.passages(org, "apple").await.len(), 2);

    let restarted = world.replica(&crashed);
    restarted.keyword().catch_up(org).await.unwrap();
    let found = keyword_order(&world, restarted.keyword(), org, "apple").await;
    assert_eq!(found.len(), 2);
    // and once more, as after a crash between commit and answer
    let mut again = world.db.knowledge.begin().await.unwrap();
    let files: Vec<(uuid::Uuid,)> =
        sqlx::query_as("SELECT file_id FROM private_knowledge.documents").fetch_all(&mut *again).await.unwrap();
    for (file,) in files {
        log_changes(
            &mut again,
            org,
            &[Change::File(FileId(file)), Change::Passages { file: FileId(file), first: 0, last: 0 }],
        )
        .await
        .unwrap();
    }
    again.commit().await.unwrap();
    restarted.keyword().catch_up(org).await.unwrap();
    assert_eq!(keyword_order(&world, restarted.keyword(), org, "apple").await.len(), 2);
}

#[tokio::test]
async fn files_that_vanish_under_an_open_index_are_made_again() {
    let world = World::new().await;
    let org = world.org().await;
    let (keyword, search) = (world.searcher.keyword(), world.folder.path().join("search"));
    let mut documents = 1;
    world.document(org, "One", &["The first apple."]).await;
    keyword.catch_up(org).await.unwrap();
    for gone in ["", "CURRENT", "generation"] {
        let folder = search.join(org.to_string());
        match gone {
            "" => std::fs::remove_dir_all(&search).unwrap(),
            "CURRENT" => std::fs::remove_file(folder.join("CURRENT")).unwrap(),
            _ => {
                std::fs::remove_dir_all(folder.join(std::fs::read_to_string(folder.join("CURRENT")).unwrap())).unwrap()
            }
        }
        world.document(org, "Another", &["One more apple."]).await;
        documents += 1;
        keyword.catch_up(org).await.unwrap();
        assert_eq!(keyword_order(&world, keyword, org, "apple").await.len(), documents, "{gone:?}");
    }
}

#[tokio::test]
async fn while_the_index_cannot_be_built_search_says_that_the_leg_is_missing() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "One", &["The first apple."]).await;
    // another process holds the folder: it builds
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("search").join(org.to_string());
    std::fs::create_dir_all(&place).unwrap();
    let lock = std::fs::File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    let waiting = world.replica(&folder);
    assert!(matches!(waiting.keyword().catch_up(org).await, Err(KeywordError::Building)));
    let answer = search(&waiting, org, "apple").await;
    assert!(answer.hits.is_empty() && !answer.diagnostics.bm25 && !answer.diagnostics.dense);

    lock.unlock().unwrap();
    waiting.keyword().catch_up(org).await.unwrap();
    let answer = search(&waiting, org, "apple").await;
    assert!(answer.hits.len() == 1 && answer.diagnostics.bm25);
}

async fn search(searcher: &Searcher, org: OrgId, query: &str) -> tale_knowledge::search::SearchResponse {
    searcher.search(&Reach::library(org, None), &SearchRequest::new(query), None).await.unwrap()
}

#[tokio::test]
async fn a_follower_that_was_away_longer_than_the_log_is_kept_builds_anew() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "One", &["The first apple."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    world.document(org, "Two", &["The second apple."]).await;
    // the log is trimmed before this follower has read the entry
    sqlx::query("UPDATE private_knowledge.keyword_log SET logged_at = now() - interval '8 days'")
        .execute(&world.db.knowledge)
        .await
        .unwrap();
    let trimmed = world.searcher.keyword().trim_log().await.unwrap();
    assert_eq!(trimmed, 2);
    assert_eq!(world.passages(org, "apple").await.len(), 2);
    // nothing is left to trim and nobody builds again
    assert_eq!(world.searcher.keyword().trim_log().await.unwrap(), 0);
    assert_eq!(world.passages(org, "apple").await.len(), 2);
}

#[tokio::test]
async fn two_processes_on_one_folder_do_not_disturb_each_other() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "One", &["The first apple."]).await;
    let twin = world.replica(&world.folder);
    world.searcher.keyword().catch_up(org).await.unwrap();
    twin.keyword().catch_up(org).await.unwrap();
    for round in 0..6 {
        world.document(org, &format!("Document {round}"), &["One more apple."]).await;
        let (one, two) = tokio::join!(world.searcher.keyword().catch_up(org), twin.keyword().catch_up(org));
        one.unwrap();
        two.unwrap();
    }
    // whoever lost the race sees the other's commit at the next look
    twin.keyword().catch_up(org).await.unwrap();
    world.searcher.keyword().catch_up(org).await.unwrap();
    for searcher in [&world.searcher, &twin] {
        assert_eq!(keyword_order(&world, searcher.keyword(), org, "apple").await.len(), 7);
    }
    twin.keyword().rebuild(org).await.unwrap();
    world.document(org, "Last", &["The last apple."]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    assert_eq!(keyword_order(&world, world.searcher.keyword(), org, "apple").await.len(), 8);
}

#[tokio::test]
async fn a_running_follower_finds_a_new_passage_within_two_seconds() {
    let world = World::new().await;
    let org = world.org().await;
    let stop = CancellationToken::new();
    let keyword = world.searcher.keyword().clone();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { keyword.run(stop).await }
    });
    world.document(org, "One", &["The first apple."]).await;
    let committed = std::time::Instant::now();
    loop {
        if !search(&world.searcher, org, "apple").await.hits.is_empty() {
            break;
        }
        assert!(committed.elapsed() < Duration::from_secs(10), "the passage never appears");
        tokio::task::yield_now().await;
    }
    world.document(org, "Two", &["The second apple."]).await;
    let committed = std::time::Instant::now();
    while search(&world.searcher, org, "apple").await.hits.len() < 2 {
        assert!(committed.elapsed() < Duration::from_secs(10), "the passage never appears");
    }
    stop.cancel();
    running.await.unwrap();
}
