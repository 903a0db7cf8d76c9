//! Slots, bytes, bindings: who may bind what, and what the bytes must be.

use tale_core::Code;
use tale_core::ids::{FileId, ThreadId};
use tale_identity::Role;
use tale_knowledge::Knowledge;
use tale_knowledge::documents::NewContent;
use tale_knowledge::files::{AttachmentState, IndexStatus, NewUpload, Purpose};

use crate::world::{World, world};

fn wish(name: &str, size: Option<i64>) -> NewUpload {
    NewUpload {
        file_name: name.into(),
        content_type: "text/plain".into(),
        size,
        purpose: Purpose::Document,
        origin: None,
    }
}

async fn refused(world: &World, role: Role, upload: NewUpload) -> Code {
    let caller = world.person(&format!("org-{}", uuid::Uuid::new_v4()), role).await;
    world.knowledge.create_upload(&caller, upload).await.unwrap_err().code
}

#[tokio::test]
async fn sizes_names_types_and_rights_are_judged_before_a_slot_exists() {
    let world = world().await;
    assert_eq!(refused(&world, Role::Owner, wish("a.txt", None)).await, Code::FileSizeInvalid);
    assert_eq!(refused(&world, Role::Owner, wish("a.txt", Some(-1))).await, Code::FileSizeInvalid);
    assert_eq!(refused(&world, Role::Owner, wish("a.txt", Some(104_857_601))).await, Code::FileTooLarge);
    assert_eq!(refused(&world, Role::Owner, wish("a.exe", Some(1))).await, Code::UnsupportedFileType);
    assert_eq!(refused(&world, Role::Owner, wish(" \u{200b} ", Some(1))).await, Code::InvalidBody);
    assert_eq!(refused(&world, Role::Member, wish("a.txt", Some(1))).await, Code::RbacForbidden);
    let owner = world.person("acme", Role::Owner).await;
    assert!(world.knowledge.create_upload(&owner, wish("a.txt", Some(104_857_600))).await.is_ok());
    let member = world.colleague(owner.org, "acme", Role::Member).await;
    let chat = NewUpload { purpose: Purpose::Chat, ..wish("a.txt", Some(1)) };
    assert!(world.knowledge.create_upload(&member, chat).await.is_ok(), "members may attach files to their chats");
}

#[tokio::test]
async fn binding_is_once_per_upload_and_idempotent() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.upload(&owner, "Plan “B” – 日本 👩‍👩‍👧.txt", "hello world", Purpose::Document).await;
    let (document, created) = world.knowledge.create_document(&owner, NewContent::File(file), None).await.unwrap();
    assert!(created);
    assert_eq!(
        (document.title.as_str(), document.size, document.extension.as_str()),
        ("Plan “B” – 日本 👩‍👩‍👧", 11, "txt")
    );
    assert_eq!(document.file_name, "Plan “B” – 日本 👩‍👩‍👧.txt");
    assert_eq!(document.indexing.status, IndexStatus::Queued);
    assert_eq!(document.created_by.as_ref().map(|author| author.name.as_str()), Some("Ada"));
    let (again, created) =
        world.knowledge.create_document(&owner, NewContent::File(file), Some("Other")).await.unwrap();
    assert!(!created);
    assert_eq!(again, document);
    assert_eq!(world.queued("knowledge.index_file").await, 1);

    let twice = world.upload(&owner, "b.txt", "x", Purpose::Document).await;
    let bind = || world.knowledge.create_document(&owner, NewContent::File(twice), None);
    let (a, b) = tokio::join!(bind(), bind());
    assert_eq!(a.unwrap().0.id, b.unwrap().0.id);
}

#[tokio::test]
async fn nothing_but_ones_own_upload_whose_bytes_arrived_can_be_bound() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.upload(&owner, "a.txt", "x", Purpose::Document).await;
    let colleague = world.colleague(owner.org, "acme", Role::Admin).await;
    let stranger = world.person("other", Role::Owner).await;
    for (caller, id) in [(&colleague, file), (&stranger, file), (&owner, FileId::new())] {
        let refused = world.knowledge.create_document(caller, NewContent::File(id), None).await.unwrap_err();
        assert_eq!(refused.code, Code::FileNotFound);
    }
    let empty = world.knowledge.create_upload(&owner, wish("never.txt", Some(4))).await.unwrap().file_id;
    assert_eq!(
        world.knowledge.create_document(&owner, NewContent::File(empty), None).await.unwrap_err().code,
        Code::FileNotFound
    );
    let chat = world.upload(&owner, "c.txt", "x", Purpose::Chat).await;
    assert_eq!(
        world.knowledge.create_document(&owner, NewContent::File(chat), None).await.unwrap_err().code,
        Code::UploadScopeConflict
    );
}

#[tokio::test]
async fn what_the_bytes_are_decides_not_the_name() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let exe = b"MZ\x90\x00\x03\x00\x00\x00\x04\x00".as_slice();
    for (name, content, code) in [
        ("tool.txt", exe, "not_text"),
        ("tool.pdf", exe, "malformed"),
        ("tool.docx", exe, "malformed"),
        ("empty.txt", b"".as_slice(), "empty"),
        ("notes.loop", b"x".as_slice(), "unsupported_type"),
        ("old.doc", b"x".as_slice(), "unsupported_type"),
        ("photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x06\0\0\0".as_slice(), "image_no_vision"),
    ] {
        let document = world.document(&owner, name, content).await;
        assert_eq!(document.indexing.status, IndexStatus::Unsupported, "{name}");
        assert_eq!(document.indexing.error_code.as_deref(), Some(code), "{name}");
        assert!(document.indexing.error.is_some());
    }
    assert_eq!(world.queued("knowledge.index_file").await, 0);
}

#[tokio::test]
async fn an_object_of_another_size_than_declared_is_refused() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let file = world.upload(&owner, "a.txt", "hello", Purpose::Document).await;
    let key: String = sqlx::query_scalar("SELECT storage_key FROM app.files WHERE id = $1")
        .bind(file)
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    let key = tale_blobs::BlobKey::parse(&key).unwrap();
    world.blobs.put_bytes(&key, "text/plain", "hello!".into()).await.unwrap();
    let refused = world.knowledge.create_document(&owner, NewContent::File(file), None).await.unwrap_err();
    assert_eq!(refused.code, Code::FileSizeInvalid);
}

#[tokio::test]
async fn a_chat_holds_its_uploads_alone() {
    let world = world().await;
    let owner = world.person("acme", Role::Owner).await;
    let member = world.colleague(owner.org, "acme", Role::Member).await;
    let file = world.upload(&member, "notes.md", "# Notes\n\nThe marmot sleeps.", Purpose::Chat).await;
    let png = world
        .upload(
            &member,
            "p.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x06\0\0\0".as_slice(),
            Purpose::Chat,
        )
        .await;

    assert_eq!(world.knowledge.attachment(&owner, file).await.unwrap_err().code, Code::FileNotFound);
    assert_eq!(world.knowledge.prepare_attachments(&owner, &[file]).await.unwrap_err().code, Code::AttachmentNotOwned);
    let prepared = world.knowledge.prepare_attachments(&member, &[file, png]).await.unwrap();
    assert_eq!(prepared[0].state, AttachmentState::Processing);
    assert_eq!((prepared[1].state, prepared[1].image), (AttachmentState::Ready, true));
    world.index(owner.org, file).await;
    let ready = world.knowledge.attachment(&member, file).await.unwrap();
    assert_eq!((ready.state, ready.text_length), (AttachmentState::Ready, Some(27)));

    let (thread, other) = (ThreadId::new(), ThreadId::new());
    let mut conn = world.db.app.acquire().await.unwrap();
    Knowledge::hold_attachments(&mut conn, &member, thread, &[file, png, file]).await.unwrap();
    Knowledge::hold_attachments(&mut conn, &member, thread, &[file]).await.unwrap();
    for (caller, thread) in [(&member, other), (&owner, thread)] {
        let refused = Knowledge::hold_attachments(&mut conn, caller, thread, &[file]).await.unwrap_err();
        assert_eq!(refused.code, Code::AttachmentNotOwned);
    }
    assert_eq!(world.found(&member, "marmot").await, 0, "a chat's upload is not in the library");
    assert_eq!(world.knowledge.open_file(&member, png, Some(1..4)).await.unwrap().length, 3);
    assert_eq!(world.knowledge.file_about(&member, png).await.unwrap().size, 29);
    assert_eq!(world.knowledge.open_file(&owner, png, None).await.err().unwrap().code, Code::FileNotFound);
    let shared = world.document(&owner, "s.txt", "shared").await;
    assert_eq!(world.knowledge.open_file(&member, shared.file.unwrap(), None).await.unwrap().length, 6);
    world.knowledge.delete_document(&owner, shared.id).await.unwrap();
    assert!(world.knowledge.open_file(&member, shared.file.unwrap(), None).await.is_err());
}

#[tokio::test]
async fn an_upload_that_has_not_arrived_is_still_processing() {
    let world = world().await;
    let member = world.person("acme", Role::Member).await;
    let slot = world
        .knowledge
        .create_upload(&member, NewUpload { purpose: Purpose::Chat, ..wish("a.txt", Some(3)) })
        .await
        .unwrap();
    assert_eq!(world.knowledge.attachment(&member, slot.file_id).await.unwrap().state, AttachmentState::Processing);
}
