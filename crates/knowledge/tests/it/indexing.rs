//! From bytes to passages: outcomes, crashes at every step, retries, the watchdog.

use std::time::Duration;

use tale_core::crypto::{hex_of, sha256};
use tale_identity::Role;
use tale_jobs::{JobError, Worker};
use tale_knowledge::documents::Retried;
use tale_knowledge::files::IndexStatus;
use tale_knowledge::indexing::ReadError;
use tokio_util::sync::CancellationToken;

use crate::world::{long_text, world};

#[tokio::test]
async fn a_document_becomes_searchable_by_its_words() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let text = "# Leave\n\nThirty days of holiday a year.";
    let document = world.document(&owner, "Handbook.md", text).await;
    assert_eq!(world.found(&owner, "holiday").await, 0);
    world.index(owner.org, document.file.unwrap()).await;
    let read = world.read(&owner, document.id).await;
    assert_eq!(read.indexing.status, IndexStatus::Completed);
    assert!(!read.indexing.embedded);
    assert_eq!(read.indexing.error_code.as_deref(), Some("embedding_not_configured"));
    assert_eq!(read.content_hash, Some(hex_of(&sha256(text.as_bytes()))));
    assert!(read.indexing.indexed_at.is_some());
    assert_eq!(world.found(&owner, "holiday").await, 1);
    let stranger = world.person("other", Role::Owner).await;
    assert_eq!(world.found(&stranger, "holiday").await, 0);
}

/// Runs that stop after each slice: the passages are the same as without the interruptions, none
/// twice and none written again, and nothing is found before the end.
#[tokio::test]
async fn a_run_may_end_at_any_step_and_the_next_one_goes_on() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let text = long_text(850);
    let document = world.document(&owner, "long.md", text.clone()).await;
    let file = document.file.unwrap();
    let (mut stops, mut rows) = (0, Vec::new());
    loop {
        let keep = || async { Err(JobError::Interrupted) };
        match world.knowledge.index_file(owner.org, file, keep).await {
            Err(ReadError::Stopped(_)) => {}
            other => {
                other.unwrap();
                break;
            }
        }
        stops += 1;
        let stored: Vec<(i32, String)> = sqlx::query_as(
            "SELECT ordinal, xmin::text FROM private_knowledge.chunks WHERE file_id = $1 ORDER BY ordinal",
        )
        .bind(file)
        .fetch_all(&world.db.knowledge)
        .await
        .unwrap();
        assert!(stored.starts_with(&rows), "what an earlier run stored is not written again");
        rows = stored;
        assert_eq!(world.found(&owner, "marker0").await, 0, "nothing is found before the file was read to its end");
        assert_eq!(world.read(&owner, document.id).await.indexing.status, IndexStatus::Running);
    }
    assert!(stops >= 3, "the text has several slices");
    let passages = world.passages(file).await;
    assert!(passages.len() > 128);
    assert!(world.found(&owner, "marker0").await > 0);
    let whole = world.knowledge.text(&owner, document.id, 0, 200_000).await.unwrap();
    assert!(text.starts_with(&whole.text) && whole.total_length == text.chars().count() as u64);

    // Another document of the same text, without interruption, has the same passages.
    let twin = world.document(&owner, "long.md", text).await;
    world.index(owner.org, twin.file.unwrap()).await;
    let bodies = |list: Vec<(uuid::Uuid, String)>| list.into_iter().map(|(_, body)| body).collect::<Vec<_>>();
    assert_eq!(bodies(passages), bodies(world.passages(twin.file.unwrap()).await));
}

#[tokio::test]
async fn a_crash_between_the_databases_is_finished_without_reading_again() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The marmot.").await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    let ids = world.passages(file).await;
    // As if the process had died after the corpus' last commit and before the application's.
    sqlx::query("UPDATE app.files SET index_status = 'running', searchable = false, text_length = NULL WHERE id = $1")
        .bind(file)
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(world.found(&owner, "marmot").await, 0);
    world.index(owner.org, file).await;
    assert_eq!(world.read(&owner, document.id).await.text_length, Some(11));
    assert_eq!(world.passages(file).await, ids);
    assert_eq!(world.found(&owner, "marmot").await, 1);
}

#[tokio::test]
async fn a_secret_on_the_last_page_refuses_the_whole_file() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let secret = "api_key = \"0f1e2d3c4b5a69788796a5b4c3d2e1f0\"";
    let document = world.document(&owner, "long.md", format!("{}\n{secret}\n", long_text(120))).await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    let indexing = world.read(&owner, document.id).await.indexing;
    assert_eq!((indexing.status, indexing.error_code.as_deref()), (IndexStatus::Failed, Some("secret_detected")));
    assert!(!indexing.error.unwrap().contains("0f1e"));
    assert!(world.passages(file).await.is_empty());
    assert_eq!(world.found(&owner, "marker0").await, 0);
    assert_eq!(
        world.knowledge.retry_indexing(&owner, document.id).await.unwrap(),
        Retried::Indexing,
        "the text may have been judged wrongly"
    );
}

#[tokio::test]
async fn unreadable_files_are_terminal_and_retries_say_why_not() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let blank = world.document(&owner, "blank.txt", " \n\t\n ").await;
    world.index(owner.org, blank.file.unwrap()).await;
    let indexing = world.read(&owner, blank.id).await.indexing;
    assert_eq!((indexing.status, indexing.error_code.as_deref()), (IndexStatus::Unsupported, Some("empty")));
    assert_eq!(world.knowledge.retry_indexing(&owner, blank.id).await.unwrap(), Retried::Unsupported);
    world.index(owner.org, blank.file.unwrap()).await;
    assert_eq!(world.read(&owner, blank.id).await.indexing.status, IndexStatus::Unsupported);

    let waiting = world.document(&owner, "a.txt", "x").await;
    assert_eq!(world.knowledge.retry_indexing(&owner, waiting.id).await.unwrap(), Retried::InProgress);
    world.index(owner.org, waiting.file.unwrap()).await;
    assert_eq!(world.knowledge.retry_indexing(&owner, waiting.id).await.unwrap(), Retried::Indexing);

    let opted_out = world.document(&owner, "b.txt", "x").await;
    sqlx::query("UPDATE app.files SET skip_indexing = true WHERE id = $1")
        .bind(opted_out.file)
        .execute(&world.db.app)
        .await
        .unwrap();
    world.index(owner.org, opted_out.file.unwrap()).await;
    assert_eq!(world.read(&owner, opted_out.id).await.indexing.status, IndexStatus::Skipped);
    assert_eq!(world.knowledge.retry_indexing(&owner, opted_out.id).await.unwrap(), Retried::Indexing);
    world.index(owner.org, opted_out.file.unwrap()).await;
    assert_eq!(world.read(&owner, opted_out.id).await.indexing.status, IndexStatus::Completed);
}

#[tokio::test]
async fn utf16_text_and_text_without_line_ends_are_read() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let mut utf16 = vec![0xff, 0xfe];
    utf16.extend("Grüße vom Murmeltier".encode_utf16().flat_map(u16::to_le_bytes));
    let document = world.document(&owner, "u.txt", utf16).await;
    world.index(owner.org, document.file.unwrap()).await;
    assert_eq!(world.knowledge.text(&owner, document.id, 0, 100).await.unwrap().text, "Grüße vom Murmeltier");
    let endless = world.document(&owner, "e.txt", "a".repeat(100_000)).await;
    world.index(owner.org, endless.file.unwrap()).await;
    assert_eq!(world.read(&owner, endless.id).await.text_length, Some(100_000));
}

#[tokio::test]
async fn a_document_in_the_trash_is_left_alone_and_indexed_when_it_returns() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The marmot.").await;
    let file = document.file.unwrap();
    world.knowledge.delete_document(&owner, document.id).await.unwrap();
    world.index(owner.org, file).await;
    assert!(world.passages(file).await.is_empty());
    sqlx::query("DELETE FROM app.jobs").execute(&world.db.app).await.unwrap();
    world.knowledge.restore_document(&owner, document.id).await.unwrap();
    assert_eq!(world.queued("knowledge.index_file").await, 1);
}

#[tokio::test]
async fn missing_bytes_fail_with_a_reason_and_keep_it() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The marmot.").await;
    let key: String = sqlx::query_scalar("SELECT storage_key FROM app.files WHERE id = $1")
        .bind(document.file)
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    world.blobs.delete(&tale_blobs::BlobKey::parse(&key).unwrap()).await.unwrap();
    let error = world.knowledge.index_file(owner.org, document.file.unwrap(), || async { Ok(()) }).await.unwrap_err();
    assert!(matches!(error, ReadError::Failed(_)));
}

#[tokio::test]
async fn stuck_files_are_queued_again_once() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "x").await;
    sqlx::query("DELETE FROM app.jobs").execute(&world.db.app).await.unwrap();
    assert_eq!(world.knowledge.watch().await.unwrap(), 0, "not yet");
    world.later(Duration::from_secs(36 * 60));
    assert_eq!(world.knowledge.watch().await.unwrap(), 1);
    assert_eq!(world.knowledge.watch().await.unwrap(), 0);
    assert_eq!(world.queued("knowledge.index_file").await, 1);
    world.index(owner.org, document.file.unwrap()).await;
    assert_eq!(world.read(&owner, document.id).await.indexing.status, IndexStatus::Completed);
}

#[tokio::test]
async fn a_worker_does_it_all() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let model = world.embedder.choose(owner.org, "letters", 8);
    world.saved(owner.org, &model).await;
    let documents: Vec<_> = futures::future::join_all((0..6).map(|n| {
        let (world, owner) = (&world, &owner);
        async move { world.document(owner, &format!("{n}.md"), long_text(4)).await }
    }))
    .await;
    let stop = CancellationToken::new();
    let worker =
        tokio::spawn(world.knowledge.register(Worker::builder()).build(world.db.app.clone()).run(stop.clone()));
    let done = async {
        for document in &documents {
            while !world.read(&owner, document.id).await.indexing.embedded {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("every document is embedded");
    stop.cancel();
    worker.await.unwrap();
    assert_eq!(world.found(&owner, "marker3").await, 1, "the same passage of six documents is shown once");
}

#[tokio::test]
async fn a_file_waits_for_a_store_that_is_away_and_comes_back_by_itself() {
    let mut world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The marmot.").await;
    let address = world.store.endpoint.clone();
    let folder = world.folder.path().join("objects");
    std::mem::replace(&mut world.store, tale_blobs::embedded::Running::start(embedded(&folder)).await.unwrap())
        .stop()
        .await;
    let stop = CancellationToken::new();
    let worker =
        tokio::spawn(world.knowledge.register(Worker::builder()).build(world.db.app.clone()).run(stop.clone()));
    let job = async || {
        sqlx::query_as::<_, (String, i32)>("SELECT state, attempts FROM app.jobs WHERE kind = 'knowledge.index_file'")
            .fetch_optional(&world.db.app)
            .await
            .unwrap()
    };
    let waiting = async {
        while job().await != Some(("waiting".to_owned(), 0)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the job waits, its attempt given back");
    let read = world.read(&owner, document.id).await.indexing;
    assert_eq!((read.status, read.error_code.as_deref()), (IndexStatus::Queued, Some("object_store_unavailable")));

    let listener = tokio::net::TcpListener::bind(address.socket_addrs(|| None).unwrap()[0]).await.unwrap();
    let serving = tokio::spawn(tale_blobs::embedded::serve(listener, embedded(&folder), stop.clone()));
    sqlx::query("UPDATE app.jobs SET run_at = clock_timestamp(), state = 'ready'")
        .execute(&world.db.app)
        .await
        .unwrap();
    sqlx::query("SELECT pg_notify('tale_jobs', '')").execute(&world.db.app).await.unwrap();
    let done = async {
        while world.read(&owner, document.id).await.indexing.status != IndexStatus::Completed {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("the document is indexed without anybody's help");
    stop.cancel();
    worker.await.unwrap();
    serving.await.unwrap();
}

fn embedded(folder: &std::path::Path) -> tale_blobs::embedded::EmbeddedStore {
    tale_blobs::embedded::service(folder, "tale", &"secret".into()).unwrap()
}
