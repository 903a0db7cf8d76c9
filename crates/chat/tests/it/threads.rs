//! Chats: privacy, order, versions, forks, trash, search, export.

use tale_chat::{Part, Rating, SendTo, ThreadPatch, ThreadQuery};
use tale_core::Code;
use tale_testkit::upstream::Reply;

use crate::world::{code, person, request, text_of, world};

#[tokio::test]
async fn what_belongs_to_somebody_else_does_not_exist() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("secret"));
    let reply = world.ask(thread, "Hello").await;
    let stranger = person(&world.db, "other").await;
    let chat = &world.chat;
    assert_eq!(code(chat.thread(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.messages(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.message(&stranger, thread, reply.id).await), Code::ThreadNotFound);
    assert_eq!(code(chat.generation(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.stop(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.change_thread(&stranger, thread, &ThreadPatch::default()).await), Code::ThreadNotFound);
    assert_eq!(code(chat.delete_thread(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.restore_thread(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.edit(&stranger, thread, reply.id, request("x")).await), Code::ThreadNotFound);
    assert_eq!(code(chat.fork(&stranger, thread, reply.id).await), Code::ThreadNotFound);
    assert_eq!(code(chat.switch_version(&stranger, thread, reply.id).await), Code::ThreadNotFound);
    assert_eq!(code(chat.rate(&stranger, thread, reply.id, Some(Rating::Up), None).await), Code::MessageNotFound);
    assert_eq!(code(chat.export_markdown(&stranger, thread, &[]).await), Code::ThreadNotFound);
    assert!(chat.search(&stranger, "secret", 10).await.unwrap().is_empty());
    assert!(
        chat.threads(&stranger, &ThreadQuery { limit: 10, ..ThreadQuery::default() }).await.unwrap().rows.is_empty()
    );
}

#[tokio::test]
async fn retry_then_edit_gives_three_versions_and_the_first_can_be_shown_again() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("first"));
    let first = world.ask(thread, "Question").await;
    world.upstream.push(Reply::text("second"));
    let model = tale_chat::ModelChoice::Auto;
    let retried = world.chat.retry(&world.owner, thread, first.id, model, None, None).await.unwrap();
    world.settled(&retried).await;
    world.upstream.push(Reply::text("third"));
    let edited =
        world.chat.edit(&world.owner, thread, retried.user_message_id, request("Other question")).await.unwrap();
    world.settled(&edited).await;

    let shown = world.chat.messages(&world.owner, thread).await.unwrap();
    assert_eq!(shown.iter().map(|message| text_of(&message.parts)).collect::<Vec<_>>(), ["Other question", "third"]);
    let versions = shown[0].versions.clone().unwrap();
    assert_eq!((versions.index, versions.ids.len()), (2, 3));

    world.chat.switch_version(&world.owner, thread, versions.ids[0]).await.unwrap();
    let shown = world.chat.messages(&world.owner, thread).await.unwrap();
    assert_eq!(shown.iter().map(|message| text_of(&message.parts)).collect::<Vec<_>>(), ["Question", "first"]);
    // Later messages belong to the version they are written under.
    world.upstream.push(Reply::text("later"));
    world.ask(thread, "Go on").await;
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 4);
    world.chat.switch_version(&world.owner, thread, versions.ids[2]).await.unwrap();
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 2);
    world.chat.switch_version(&world.owner, thread, versions.ids[0]).await.unwrap();
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 4, "the newest end of that version");
    // Hidden versions are found, once.
    let found = world.chat.search(&world.owner, "third", 10).await.unwrap();
    assert_eq!(found.iter().map(|hit| hit.id).collect::<Vec<_>>(), [thread]);
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("one"));
    let reply = world.ask(thread, "First").await;
    world.upstream.push(Reply::text("two"));
    world.ask(thread, "Second").await;
    let fork = world.chat.fork(&world.owner, thread, reply.id).await.unwrap();
    assert_eq!(fork.title.as_deref(), Some("Fork of Test"));
    world.upstream.push(Reply::text("three"));
    world.ask(fork.id, "Third").await;
    let texts =
        |messages: Vec<tale_chat::Message>| messages.iter().map(|message| text_of(&message.parts)).collect::<Vec<_>>();
    assert_eq!(texts(world.chat.messages(&world.owner, fork.id).await.unwrap()), ["First", "one", "Third", "three"]);
    assert_eq!(texts(world.chat.messages(&world.owner, thread).await.unwrap()), ["First", "one", "Second", "two"]);
    let body = world.upstream.chat_requests().pop().unwrap().body.to_string();
    assert!(body.contains("First") && !body.contains("Second"));
}

#[tokio::test]
async fn archiving_closes_a_chat_and_does_not_move_it() {
    let world = world().await;
    let thread = world.titled().await;
    let before = world.chat.thread(&world.owner, thread).await.unwrap();
    let patch = ThreadPatch { archived: Some(true), ..ThreadPatch::default() };
    let archived = world.chat.change_thread(&world.owner, thread, &patch).await.unwrap();
    assert!(archived.archived_at.is_some());
    assert_eq!(archived.updated_at, before.updated_at);
    assert_eq!(code(world.send(SendTo::Thread(thread), "Hello").await), Code::ChatThreadArchived);
    let list = |archived| ThreadQuery { archived, limit: 10, ..ThreadQuery::default() };
    assert!(world.chat.threads(&world.owner, &list(false)).await.unwrap().rows.is_empty());
    assert_eq!(world.chat.threads(&world.owner, &list(true)).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_deleted_chat_is_gone_until_it_is_restored_and_then_for_good() {
    let world = world().await;
    let thread = world.titled().await;
    world.chat.delete_thread(&world.owner, thread).await.unwrap();
    assert_eq!(code(world.chat.thread(&world.owner, thread).await), Code::ThreadNotFound);
    assert_eq!(code(world.send(SendTo::Thread(thread), "Hello").await), Code::ThreadNotFound);
    world.chat.restore_thread(&world.owner, thread).await.unwrap();
    assert!(world.chat.thread(&world.owner, thread).await.is_ok());
    world.chat.delete_thread(&world.owner, thread).await.unwrap();
    assert_eq!(world.chat.sweep().await.unwrap(), 0, "still within its days");
    sqlx::query("UPDATE app.threads SET trashed_at = trashed_at - interval '31 days'")
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(world.chat.sweep().await.unwrap(), 1);
    assert_eq!(code(world.chat.restore_thread(&world.owner, thread).await), Code::ThreadNotFound);
}

#[tokio::test]
async fn pages_follow_each_other_and_cursors_stay_in_their_list() {
    let world = world().await;
    for _ in 0..5 {
        world.titled().await;
    }
    let mut query = ThreadQuery { limit: 2, ..ThreadQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = world.chat.threads(&world.owner, &query).await.unwrap();
        seen.extend(page.rows.iter().map(|thread| thread.id));
        match page.next {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let stranger = person(&world.db, "other").await;
    let foreign = ThreadQuery { archived: true, ..query.clone() };
    assert_eq!(code(world.chat.threads(&world.owner, &foreign).await), Code::InvalidCursor);
    assert_eq!(code(world.chat.threads(&stranger, &query).await), Code::InvalidCursor);
}

#[tokio::test]
async fn titles_ratings_and_exports_are_checked() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("An answer"));
    let reply = world.ask(thread, "Hello").await;
    let rename = |title: &str| ThreadPatch { title: Some(title.to_owned()), ..ThreadPatch::default() };
    assert_eq!(code(world.chat.change_thread(&world.owner, thread, &rename(" ")).await), Code::InvalidBody);
    assert_eq!(
        code(world.chat.change_thread(&world.owner, thread, &rename(&"x".repeat(121))).await),
        Code::InvalidBody
    );
    world.chat.rate(&world.owner, thread, reply.id, Some(Rating::Down), Some("wrong")).await.unwrap();
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap()[1].feedback.as_deref(), Some("down"));
    world.chat.rate(&world.owner, thread, reply.id, None, None).await.unwrap();
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap()[1].feedback, None);
    let text = world.chat.export_markdown(&world.owner, thread, &[]).await.unwrap();
    assert!(text.starts_with("# Test\n") && text.contains("An answer"), "{text}");
    assert!(matches!(reply.parts[0], Part::Text { .. }));
}

#[tokio::test]
async fn acts_on_all_chats_leave_running_ones_alone() {
    let world = world().await;
    world.titled().await;
    let busy = world.titled().await;
    world.upstream.push(Reply::hang());
    world.send(SendTo::Thread(busy), "Hello").await.unwrap();
    let archived = world.chat.archive_all(&world.owner).await.unwrap();
    assert_eq!((archived.changed, archived.skipped), (1, 1));
    let deleted = world.chat.delete_all(&world.owner).await.unwrap();
    assert_eq!((deleted.changed, deleted.skipped), (1, 1));
    assert!(world.chat.thread(&world.owner, busy).await.is_ok());
    world.chat.stop(&world.owner, busy).await.unwrap();
}

#[tokio::test]
async fn a_comment_belongs_to_its_rating_and_is_not_read_back() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("answer"));
    let reply = world.ask(thread, "Question").await;
    let rated = async |rating, comment| {
        world.chat.rate(&world.owner, thread, reply.id, rating, comment).await.unwrap();
        let message = world.chat.messages(&world.owner, thread).await.unwrap().pop().unwrap();
        (message.feedback, message.commented)
    };
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(rated(Some(Rating::Up), None).await, (word("up"), false));
    assert_eq!(rated(Some(Rating::Up), Some("  Exactly right. ")).await, (word("up"), true));
    let stored: String = sqlx::query_scalar("SELECT comment FROM app.message_feedback WHERE message_id = $1")
        .bind(reply.id)
        .fetch_one(&world.db.app)
        .await
        .unwrap();
    assert_eq!(stored, "Exactly right.");
    assert_eq!(rated(Some(Rating::Up), Some("  ")).await, (word("up"), false), "a blank comment is none");
    assert_eq!(rated(Some(Rating::Down), Some("No.")).await, (word("down"), true));
    assert_eq!(rated(Some(Rating::Up), None).await, (word("up"), false), "the other verdict starts without a comment");
    assert_eq!(rated(None, Some("kept?")).await, (None, false));
}
