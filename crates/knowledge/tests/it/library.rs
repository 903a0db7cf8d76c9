//! Documents in the library: lists, titles, bytes, text, passages, trash.

use std::time::Duration;

use futures::StreamExt;
use tale_core::Code;
use tale_core::ids::{ChunkId, DocumentId};
use tale_identity::Role;
use tale_knowledge::documents::{DocumentQuery, NewContent, Retried};
use tale_knowledge::files::{IndexStatus, Purpose};
use tale_knowledge::order::{DocumentOrder, SortBy};
use tale_knowledge::purge::TRASH_KEEPS;

use crate::world::{long_text, world};

#[tokio::test]
async fn every_door_of_another_organization_answers_not_found() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "hello").await;
    let stranger = world.person("other", Role::Owner).await;
    let k = &world.knowledge;
    let id = document.id;
    let answers = [
        k.document(&stranger, id).await.err(),
        k.update_document(&stranger, id, Some("x"), |_| Ok(())).await.err(),
        k.delete_document(&stranger, id).await.err(),
        k.restore_document(&stranger, id).await.err(),
        k.retry_indexing(&stranger, id).await.err(),
        k.open_content(&stranger, id, None).await.err(),
        k.passage(&stranger, id, ChunkId::new()).await.err(),
        k.text(&stranger, id, 0, 10).await.err(),
        k.document(&owner, DocumentId::new()).await.err(),
    ];
    for answer in answers {
        assert_eq!(answer.unwrap().code, Code::DocumentNotFound);
    }
    assert_eq!(k.list_documents(&stranger, &DocumentQuery::default(), None, 10).await.unwrap().rows.len(), 0);
    let member = world.colleague(owner.org, "acme", Role::Member).await;
    assert!(k.document(&member, id).await.is_ok());
    for refused in
        [k.delete_document(&member, id).await.err(), k.update_document(&member, id, Some("x"), |_| Ok(())).await.err()]
    {
        assert_eq!(refused.unwrap().code, Code::RbacForbidden);
    }
}

#[tokio::test]
async fn lists_are_pages_newest_first_and_narrowed_by_title_and_status() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    for name in ["100% sure.txt", "100x sure.txt", "budget_2024.txt", "photo.png", "z.txt"] {
        world.document(&owner, name, "x").await;
        world.later(Duration::from_millis(1));
    }
    let all = DocumentQuery::default();
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = world.knowledge.list_documents(&owner, &all, after, 2).await.unwrap();
        names.extend(page.rows.into_iter().map(|row| row.title));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["z", "photo", "budget_2024", "100x sure", "100% sure"]);
    assert_eq!(world.knowledge.count_documents(&owner, &all).await.unwrap(), 5);
    for (search, expected) in [("100%", 1), ("SURE", 2), ("t_2", 1), ("_", 1), ("\\", 0), ("nothing", 0)] {
        let query = DocumentQuery { search: Some(search.into()), ..DocumentQuery::default() };
        assert_eq!(
            world.knowledge.list_documents(&owner, &query, None, 10).await.unwrap().rows.len(),
            expected,
            "{search}"
        );
        assert_eq!(world.knowledge.count_documents(&owner, &query).await.unwrap(), expected as u64, "{search}");
    }
    let unsupported = DocumentQuery { status: Some(IndexStatus::Unsupported), ..DocumentQuery::default() };
    assert_eq!(world.knowledge.list_documents(&owner, &unsupported, None, 10).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn every_order_shows_each_document_once_across_pages() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    for (name, content) in [("Zebra.txt", "12345"), ("ärger.txt", "1"), ("Apfel.txt", "1"), ("bär.txt", "123")] {
        world.document(&owner, name, content).await;
        world.later(Duration::from_millis(1));
    }
    let listed = async |by, ascending| {
        let query = DocumentQuery { order: DocumentOrder { by, ascending }, ..DocumentQuery::default() };
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = world.knowledge.list_documents(&owner, &query, after, 1).await.unwrap();
            names.extend(page.rows.into_iter().map(|row| row.title));
            after = page.next;
            if after.is_none() {
                return names;
            }
        }
    };
    assert_eq!(listed(SortBy::Added, true).await, ["Zebra", "ärger", "Apfel", "bär"]);
    assert_eq!(listed(SortBy::Name, true).await, ["Apfel", "ärger", "bär", "Zebra"]);
    assert_eq!(listed(SortBy::Name, false).await, ["Zebra", "bär", "ärger", "Apfel"]);
    let by_size = listed(SortBy::Size, true).await;
    assert_eq!(&by_size[2..], ["bär", "Zebra"]);
    let mut descending = listed(SortBy::Size, false).await;
    descending.reverse();
    assert_eq!(by_size, descending);
}

#[tokio::test]
async fn a_deleted_document_is_dark_at_once_and_comes_back_whole() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The quick marmot.").await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    assert_eq!(world.found(&owner, "marmot").await, 1);

    world.knowledge.delete_document(&owner, document.id).await.unwrap();
    assert_eq!(world.found(&owner, "marmot").await, 0);
    assert_eq!(world.passages(file).await.len(), 1, "the passages wait for the purge");
    assert_eq!(world.knowledge.document(&owner, document.id).await.unwrap_err().code, Code::DocumentNotFound);
    assert_eq!(world.knowledge.delete_document(&owner, document.id).await.unwrap_err().code, Code::DocumentNotFound);

    let restored = world.knowledge.restore_document(&owner, document.id).await.unwrap();
    assert_eq!(restored.indexing.status, IndexStatus::Completed);
    assert_eq!(world.found(&owner, "marmot").await, 1);
}

#[tokio::test]
async fn the_trash_is_emptied_of_bytes_passages_and_rows() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "The quick marmot.").await;
    let kept = world.document(&owner, "b.txt", "The slow marmot.").await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    let key: String = sqlx::query_scalar("SELECT storage_key FROM app.files WHERE id = $1")
        .bind(file)
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    let key = tale_blobs::BlobKey::parse(&key).unwrap();
    let forgotten = world.upload(&owner, "c.txt", "x", Purpose::Document).await;

    world.knowledge.delete_document(&owner, document.id).await.unwrap();
    world.later(TRASH_KEEPS - Duration::from_secs(60));
    let swept = world.knowledge.sweep().await.unwrap();
    assert_eq!((swept.documents, swept.uploads), (0, 1), "only the forgotten upload");
    assert!(world.knowledge.create_document(&owner, NewContent::File(forgotten), None).await.is_err());
    world.later(Duration::from_secs(120));
    assert_eq!(world.knowledge.sweep().await.unwrap().documents, 1);
    assert_eq!(world.blobs.head(&key).await.unwrap(), None);
    assert!(world.passages(file).await.is_empty());
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM app.files").fetch_one(&world.db.app).await.unwrap();
    assert_eq!(rows, 1);
    assert_eq!(world.knowledge.restore_document(&owner, document.id).await.unwrap_err().code, Code::DocumentNotFound);
    assert!(world.knowledge.document(&owner, kept.id).await.is_ok());
    let acts: Vec<String> =
        sqlx::query_scalar("SELECT action FROM app.audit_entries WHERE resource_id = $1 ORDER BY at, id")
            .bind(document.id.to_string())
            .fetch_all(&world.db.app)
            .await
            .unwrap();
    assert_eq!(acts, ["document.create", "document.delete", "document.purge"]);
}

#[tokio::test]
async fn bytes_that_cannot_be_removed_keep_their_row_for_the_next_sweep() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "x").await;
    world.knowledge.delete_document(&owner, document.id).await.unwrap();
    world.later(TRASH_KEEPS + Duration::from_secs(60));
    world.store.stop().await;
    let swept = world.knowledge.sweep().await.unwrap();
    assert_eq!((swept.documents, swept.kept), (0, 1));
    let acts: i64 = sqlx::query_scalar("SELECT count(*) FROM app.audit_entries WHERE action = 'document.purge'")
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    assert_eq!(acts, 0);
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM app.files").fetch_one(&world.db.app).await.unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn a_new_title_stands_in_the_passages_and_their_ids_stay() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.md", long_text(3)).await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    let before = world.passages(file).await;
    world.later(Duration::from_secs(1));
    let renamed =
        world.knowledge.update_document(&owner, document.id, Some(" Groundhog\nfacts "), |_| Ok(())).await.unwrap();
    assert_eq!(renamed.title, "Groundhog facts");
    assert!(renamed.updated_at > document.updated_at);
    assert_eq!(world.found(&owner, "marker1").await, 1, "it stays searchable while the headers are written");
    world.index(owner.org, file).await;
    assert_eq!(world.passages(file).await, before);
    assert_eq!(world.read(&owner, document.id).await.indexing.status, IndexStatus::Completed);
    assert!(world.found(&owner, "groundhog").await > 0);

    let same = world.knowledge.update_document(&owner, document.id, Some("Groundhog facts"), |_| Ok(())).await.unwrap();
    assert_eq!(same.updated_at, renamed.updated_at, "nothing was written");
    let guard = |_: &_| Err(tale_core::Problem::new(Code::DocumentStale, "stale"));
    assert_eq!(
        world.knowledge.update_document(&owner, document.id, Some("Groundhog facts"), guard).await.unwrap_err().code,
        Code::DocumentStale
    );
    assert_eq!(
        world.knowledge.update_document(&owner, document.id, Some(" "), |_| Ok(())).await.unwrap_err().code,
        Code::InvalidBody
    );
}

#[tokio::test]
async fn the_text_is_put_together_exactly_and_passages_lie_where_they_say() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let text = format!("\n\n  {}Übergröße 👩‍👩‍👧 end.  \n", long_text(12));
    let document = world.document(&owner, "a.md", text.clone()).await;
    let file = document.file.unwrap();
    world.index(owner.org, file).await;
    let total = text.chars().count() as u64;
    assert_eq!(world.read(&owner, document.id).await.text_length, Some(total));

    let whole = world.knowledge.text(&owner, document.id, 0, 1_000_000).await.unwrap();
    assert_eq!((whole.text.as_str(), whole.total_length, whole.next_offset), (text.as_str(), total, None));
    let mut read = String::new();
    let mut offset = Some(0);
    while let Some(at) = offset {
        let part = world.knowledge.text(&owner, document.id, at, 777).await.unwrap();
        read.push_str(&part.text);
        offset = part.next_offset;
    }
    assert_eq!(read, text);
    assert_eq!(world.knowledge.text(&owner, document.id, total + 5, 10).await.unwrap().text, "");

    for (id, body) in world.passages(file).await {
        let passage = world.knowledge.passage(&owner, document.id, ChunkId(id)).await.unwrap();
        let place: String =
            text.chars().skip(passage.start as usize).take((passage.end - passage.start) as usize).collect();
        assert_eq!((passage.passage.as_str(), place.as_str()), (body.as_str(), body.as_str()));
    }
    assert_eq!(
        world.knowledge.passage(&owner, document.id, ChunkId::new()).await.unwrap_err().code,
        Code::PassageNotFound
    );
}

#[tokio::test]
async fn bytes_are_read_whole_and_in_ranges() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let document = world.document(&owner, "a.txt", "0123456789").await;
    let read = async |range| {
        let mut content = world.knowledge.open_content(&owner, document.id, range).await.unwrap();
        let mut bytes = Vec::new();
        while let Some(piece) = content.bytes.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        (content.length, String::from_utf8(bytes).unwrap())
    };
    assert_eq!(read(None).await, (10, "0123456789".into()));
    assert_eq!(read(Some(2..5)).await, (3, "234".into()));
    assert_eq!(read(Some(9..10)).await, (1, "9".into()));
}

#[tokio::test]
async fn inline_text_is_readable_and_never_indexed() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let content = NewContent::Inline { text: "Ünïcode".into(), mime_type: None, extension: Some(".MD".into()) };
    let (document, created) = world.knowledge.create_document(&owner, content, Some("Note")).await.unwrap();
    assert!(created);
    assert_eq!(
        (document.content.as_deref(), document.mime_type.as_str(), document.extension.as_str()),
        (Some("Ünïcode"), "text/markdown", "md")
    );
    assert_eq!(document.file_name, "Note.md");
    assert_eq!(document.indexing.status, IndexStatus::Pending);
    assert_eq!(world.queued("knowledge.index_file").await, 0);
    assert_eq!(world.knowledge.retry_indexing(&owner, document.id).await.unwrap(), Retried::ContentOnly);
    assert_eq!(world.knowledge.text(&owner, document.id, 1, 2).await.unwrap().text, "nï");
    let mut bytes = world.knowledge.open_content(&owner, document.id, None).await.unwrap().bytes;
    assert_eq!(bytes.next().await.unwrap().unwrap(), "Ünïcode".as_bytes());
    let untitled = NewContent::Inline { text: "x".into(), mime_type: None, extension: None };
    assert_eq!(world.knowledge.create_document(&owner, untitled, None).await.unwrap_err().code, Code::InvalidBody);
}
