//! Searching and reading through the whole room: files that were really indexed, and a model.

use tale_core::Code;
use tale_core::ids::FileId;
use tale_identity::Role;
use tale_knowledge::embedder::EmbedFailure;
use tale_knowledge::files::Purpose;
use tale_knowledge::{Reach, SearchRequest};

use crate::world::world;

const TEXT: &str =
    "The notice period is three months.\n\nIt begins at the end of the quarter – “Quartalsende” in the German version.";

#[tokio::test]
async fn without_a_model_words_are_enough_unless_the_caller_insists() {
    let world = world().await;
    let ada = world.person("acme", Role::Owner).await;
    let document = world.document(&ada, "contract.txt", TEXT).await;
    world.index(ada.org, document.file.unwrap()).await;
    world.keyword.catch_up(ada.org).await.unwrap();
    let reach = Reach::library(ada.org, ada.user);

    let found = world.knowledge.search(&reach, SearchRequest::new("notice period")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].document_id, Some(document.id));
    assert!(found.diagnostics.bm25 && !found.diagnostics.dense);

    let insists = SearchRequest { require_dense: true, ..SearchRequest::new("notice period") };
    let refused = world.knowledge.search(&reach, insists).await.unwrap_err();
    assert_eq!(refused.code, Code::EmbeddingNotConfigured);
}

#[tokio::test]
async fn with_a_model_both_legs_answer_and_its_failures_have_their_codes() {
    let world = world().await;
    let ada = world.person("acme", Role::Owner).await;
    let model = world.embedder.choose(ada.org, "letters", 8);
    world.saved(ada.org, &model).await;
    let file = world.document(&ada, "contract.txt", TEXT).await.file.unwrap();
    world.index(ada.org, file).await;
    world.embed(ada.org, file).await;
    world.keyword.catch_up(ada.org).await.unwrap();
    let reach = Reach::library(ada.org, ada.user);

    let found = world.knowledge.search(&reach, SearchRequest::new("notice period")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].legs.len(), 2);
    assert!(found.hits[0].similarity.is_some() && found.diagnostics.dense);

    for (failure, code) in [
        (EmbedFailure::CreditExhausted("balance".into()), Code::EmbeddingCreditExhausted),
        (EmbedFailure::CredentialRejected("key".into()), Code::EmbeddingCredentialRejected),
        (EmbedFailure::RateLimited { after: None }, Code::EmbeddingUpstreamError),
        (EmbedFailure::Upstream("outage".into()), Code::EmbeddingUpstreamError),
    ] {
        world.embedder.failures.lock().unwrap().push(failure.clone());
        let problem = world.knowledge.search(&reach, SearchRequest::new("notice period")).await.unwrap_err();
        assert_eq!(problem.code, code);
        assert_eq!(problem.retry_after.is_some(), code.status() == 503);
        // a chat goes on by words
        world.embedder.failures.lock().unwrap().push(failure);
        let chat = SearchRequest { allow_keyword_fallback: true, ..SearchRequest::new("notice period") };
        let found = world.knowledge.search(&reach, chat).await.unwrap();
        assert!(found.hits.len() == 1 && !found.diagnostics.dense);
    }
    // a model that suddenly answers another width cannot be compared with anything
    *world.embedder.width.lock().unwrap() = Some(4);
    let problem = world.knowledge.search(&reach, SearchRequest::new("notice period")).await.unwrap_err();
    assert_eq!(problem.code, Code::EmbeddingUpstreamError);
}

#[tokio::test]
async fn a_text_is_read_in_stretches_and_only_within_reach() {
    let world = world().await;
    let ada = world.person("acme", Role::Owner).await;
    let stranger = world.person("other", Role::Owner).await;
    let text: String = (0..900).map(|line| format!("Zeile {line}: Größe und Maß, “quoted” – 税 {line}.\n")).collect();
    let document = world.document(&ada, "lines.txt", text.clone()).await;
    let file = document.file.unwrap();
    world.index(ada.org, file).await;
    let reach = Reach::library(ada.org, ada.user);

    let total = world.knowledge.fetch_text(&reach, file, 0, 1).await.unwrap().total_length;
    let (mut read, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let part = world.knowledge.fetch_text(&reach, file, from, 7_001).await.unwrap();
        assert_eq!((part.title.as_str(), part.document_id), ("lines", Some(document.id)));
        read.push_str(&part.text);
        offset = part.next_offset;
    }
    assert_eq!(read.chars().count() as u64, total);
    assert_eq!(read.trim_end(), text.trim_end());
    let beyond = world.knowledge.fetch_text(&reach, file, total + 5, 100).await.unwrap();
    assert_eq!((beyond.text.as_str(), beyond.next_offset), ("", None));

    let code = |reach: Reach, file: FileId| {
        let world = &world;
        async move {
            world
                .knowledge
                .fetch_text(&reach, file, 0, 10)
                .await
                .map(|_| ())
                .map_err(|problem| (problem.code, problem.message.to_string()))
        }
    };
    let unknown = code(Reach::library(ada.org, ada.user), FileId::new()).await;
    assert_eq!(unknown.as_ref().unwrap_err().0, Code::DocumentNotFound);
    assert_eq!(code(Reach::library(stranger.org, stranger.user), file).await, unknown);
    world.knowledge.delete_document(&ada, document.id).await.unwrap();
    assert_eq!(code(Reach::library(ada.org, ada.user), file).await, unknown);

    let upload = world.upload(&ada, "notes.txt", TEXT, Purpose::Chat).await;
    assert_eq!(code(Reach::chat(ada.org, ada.user, [FileId::new()]), upload).await, unknown);
}
