//! What the keyword leg finds.

use tale_core::Code;
use tale_core::ids::ThreadId;
use tale_knowledge::reach::Reach;
use tale_knowledge::search::{Leg, SearchRequest};

use super::world::World;

const NOTICE: &str = "Either party may terminate this agreement with thirty days of written notice. The notice period begins at the end of the month.";
const PAYMENT: &str =
    "Invoices are payable within 14 days of receipt. Late payments bear interest at five percent above the base rate.";
const GERMAN: &str = "Die Kündigungsfrist beträgt drei Monate zum Quartalsende. Verträge mit einer Laufzeit über zwei Jahre werden schriftlich gekündigt.";
const FRENCH: &str = "Le salarié bénéficie de vingt-cinq jours de congés payés par année. Les demandes sont adressées à la direction un mois avant le départ.";
const PART: &str = "Replace the filter AB-1234 every six months. Order it under part number 77.310/B; the controller calls resetFilterTimer() afterwards.";

async fn contracts() -> (World, tale_core::ids::OrgId) {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "Master agreement", &[NOTICE, PAYMENT]).await;
    world.document(org, "Arbeitsvertrag", &[GERMAN]).await;
    world.document(org, "Règlement intérieur", &[FRENCH]).await;
    world.document(org, "Service manual", &[PART]).await;
    (world, org)
}

#[tokio::test]
async fn questions_find_their_passage_in_several_languages_and_spellings() {
    let (world, org) = contracts().await;
    let cases = [
        ("What is the notice period?", NOTICE),
        ("terminating agreements", NOTICE),
        ("when is an invoice payable", PAYMENT),
        ("late payment interest rates", PAYMENT),
        ("Wie lange ist die Kündigungsfrist?", GERMAN),
        ("kuendigungsfrist", GERMAN),
        ("Vertrag kündigen", GERMAN),
        ("KÜNDIGUNGSFRISTEN", GERMAN),
        ("combien de jours de congé", FRENCH),
        ("conges payes", FRENCH),
        ("reglement interieur", FRENCH),
        // identifiers, however they are spelled
        ("AB-1234", PART),
        ("ab1234", PART),
        ("AB 1234", PART),
        ("77.310/B", PART),
        ("resetFilterTimer", PART),
        ("reset_filter_timer", PART),
        ("filter timer", PART),
        // typing errors, words put together and taken apart
        ("terminaton", NOTICE),
        ("agreemnet notise", NOTICE),
        ("Kündigunsfrist", GERMAN),
        ("notice-period", NOTICE),
        ("noticeperiod", NOTICE),
        ("kündigungs frist", GERMAN),
        // a phrase
        ("\"base rate\"", PAYMENT),
        ("what does \"end of the month\" mean", NOTICE),
        // a phrase that is nowhere is looked for by its words
        ("\"month written\"", NOTICE),
    ];
    for (query, expected) in cases {
        let found = world.passages(org, query).await;
        assert_eq!(found.first().map(String::as_str), Some(expected), "{query}: {found:?}");
    }
}

#[tokio::test]
async fn a_question_about_something_else_finds_nothing() {
    let (world, org) = contracts().await;
    for query in [
        "what is the of and",
        "photosynthesis",
        "xq",
        "…",
        "??",
        "\"\"",
        "AND OR NOT (",
        "field:value^2~ [a TO b] \\",
        "-",
    ] {
        let found = world.find(org, query).await;
        assert!(found.diagnostics.bm25, "{query}");
        if query == "photosynthesis" || query == "xq" || query == "…" {
            assert!(found.hits.is_empty(), "{query}: {:?}", found.hits);
        }
    }
}

#[tokio::test]
async fn a_query_of_two_thousand_characters_is_answered_and_a_longer_one_refused() {
    let (world, org) = contracts().await;
    let mut long = "lorem dolor sit ".repeat(125);
    long.replace_range(..13, "notice period");
    assert_eq!(long.chars().count(), 2_000);
    long.pop();
    assert_eq!(world.passages(org, &long).await.first().map(String::as_str), Some(NOTICE));
    let unbroken = "x".repeat(2_000);
    assert!(world.passages(org, &unbroken).await.is_empty());

    let reach = Reach::library(org, None);
    for query in ["", " \n ", &"y".repeat(2_001)] {
        let refused = world.searcher.search(&reach, &SearchRequest::new(query), None).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidBody);
    }
}

#[tokio::test]
async fn hits_carry_their_source_and_diagnostics_their_counts() {
    let world = World::new().await;
    let org = world.org().await;
    let stored = world.document(org, "Master agreement", &[NOTICE, PAYMENT]).await;
    let found = world.find(org, "notice period").await;
    let hit = &found.hits[0];
    assert_eq!((hit.document_id, hit.file_id), (stored.document, stored.file));
    assert_eq!((hit.title.as_str(), hit.header.as_str()), ("Master agreement", "Master agreement"));
    assert_eq!((hit.fused_score, hit.legs.as_slice(), hit.similarity), (1.0, &[Leg::Keyword][..], None));
    assert!(hit.keyword_score.unwrap() > 0.0);
    assert!(found.diagnostics.bm25 && !found.diagnostics.dense);
    assert_eq!(
        found.diagnostics.legs.iter().map(|(leg, count)| (*leg, *count)).collect::<Vec<_>>(),
        [("documents:keyword", 1)]
    );
}

#[tokio::test]
async fn titles_count_more_than_bodies() {
    let world = World::new().await;
    let org = world.org().await;
    let body = "This policy applies to every employee and describes what is paid back and what is not.";
    world
        .document(
            org,
            "Parental leave",
            &[body, "Travel is mentioned here once, among other things that are paid back or not."],
        )
        .await;
    let travel = "This policy applies to every employee and describes what is paid back, and what is not.";
    world.document(org, "Travel policy", &[travel]).await;
    assert_eq!(world.passages(org, "travel policy").await[0], travel);
}

#[tokio::test]
async fn repeated_passages_are_shown_once_and_the_limit_is_filled() {
    let world = World::new().await;
    let org = world.org().await;
    for title in ["First copy", "Second copy", "Third copy"] {
        world.document(org, title, &[NOTICE]).await;
    }
    let other = "Written notice must be sent by registered mail.";
    world.document(org, "Letters", &[other]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    let request = SearchRequest { limit: 2, ..SearchRequest::new("written notice") };
    let found = world.searcher.search(&Reach::library(org, None), &request, None).await.unwrap();
    let mut passages: Vec<&str> = found.hits.iter().map(|hit| hit.passage.as_str()).collect();
    passages.sort_unstable();
    assert_eq!(passages, [NOTICE, other]);
}

#[tokio::test]
async fn another_organization_finds_nothing_of_it() {
    let (world, org) = contracts().await;
    let stranger = world.org().await;
    assert!(!world.passages(org, "notice period").await.is_empty());
    assert!(world.passages(stranger, "notice period").await.is_empty());
    let mine = "The notice period of our own lease is one year.";
    world.document(stranger, "Lease", &[mine]).await;
    assert_eq!(world.passages(stranger, "notice period").await, [mine]);
}

#[tokio::test]
async fn trashed_deleted_and_refused_documents_are_dark_at_once() {
    let world = World::new().await;
    let org = world.org().await;
    let stored = world.document(org, "Agreement", &[NOTICE]).await;
    assert_eq!(world.passages(org, "notice").await, [NOTICE]);
    let reach = Reach::library(org, None);
    let look =
        || async { world.searcher.search(&reach, &SearchRequest::new("notice"), None).await.unwrap().hits.len() };

    let lifecycle = "UPDATE app.documents SET lifecycle = 'trashed', trashed_at = now() WHERE id = $1";
    sqlx::query(lifecycle).bind(stored.document).execute(&world.db.app).await.unwrap();
    assert_eq!(look().await, 0);
    let lifecycle = "UPDATE app.documents SET lifecycle = 'active', trashed_at = NULL WHERE id = $1";
    sqlx::query(lifecycle).bind(stored.document).execute(&world.db.app).await.unwrap();
    assert_eq!(look().await, 1);

    sqlx::query("UPDATE app.files SET searchable = false WHERE id = $1")
        .bind(stored.file)
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(look().await, 0);
    sqlx::query("UPDATE app.files SET searchable = true WHERE id = $1")
        .bind(stored.file)
        .execute(&world.db.app)
        .await
        .unwrap();

    // gone from the corpus, but the index has not followed yet
    world.remove(org, stored.file).await;
    assert_eq!(look().await, 0);
}

#[tokio::test]
async fn a_refused_favourite_does_not_empty_the_page() {
    let world = World::new().await;
    let org = world.org().await;
    let favourite = world.document(org, "Notice period", &["Notice period, notice period: the notice period."]).await;
    world.document(org, "Agreement", &[NOTICE]).await;
    sqlx::query("UPDATE app.documents SET lifecycle = 'trashed', trashed_at = now() WHERE id = $1")
        .bind(favourite.document)
        .execute(&world.db.app)
        .await
        .unwrap();
    world.searcher.keyword().catch_up(org).await.unwrap();
    let request = SearchRequest { limit: 1, ..SearchRequest::new("notice period") };
    let found = world.searcher.search(&Reach::library(org, None), &request, None).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].fused_score, 1.0);
}

#[tokio::test]
async fn chat_uploads_are_found_from_their_chat_only() {
    let world = World::new().await;
    let org = world.org().await;
    let (chat, fork, other) = (ThreadId::new(), ThreadId::new(), ThreadId::new());
    let upload = world.upload(org, chat, "notes.txt", &[NOTICE]).await;
    world.document(org, "Agreement", &[PAYMENT]).await;
    world.searcher.keyword().catch_up(org).await.unwrap();
    let look = |reach: Reach| {
        let world = &world;
        async move {
            let found = world.searcher.search(&reach, &SearchRequest::new("notice payments"), None).await.unwrap();
            found.hits.into_iter().map(|hit| hit.file_id).collect::<Vec<_>>()
        }
    };
    assert!(!look(Reach::library(org, None)).await.contains(&upload.file));
    assert!(!look(world.chats(org, &[other]).await).await.contains(&upload.file));
    assert!(look(world.chats(org, &[chat]).await).await.contains(&upload.file));
    assert!(look(world.chats(org, &[fork, chat]).await).await.contains(&upload.file));
    assert_eq!(look(world.chats(org, &[chat]).await).await.len(), 2);
    let stranger = world.org().await;
    assert!(look(world.chats(stranger, &[chat]).await).await.is_empty());
    assert!(look(Reach::chat(stranger, None, [upload.file])).await.is_empty(), "even by its id");
}

#[tokio::test]
async fn the_words_of_other_chats_do_not_change_scores() {
    let world = World::new().await;
    let org = world.org().await;
    world.document(org, "Agreement", &[NOTICE, PAYMENT]).await;
    let before = world.find(org, "notice days").await;
    for number in 0..5 {
        world.upload(org, ThreadId::new(), &format!("notes {number}.txt"), &[NOTICE, "notice notice notice"]).await;
    }
    assert_eq!(world.find(org, "notice days").await.hits, before.hits);
}
