//! Share links: what they publish, to whom, and for how long.

use serde_json::json;
use tale_chat::{Owner, SendTo, Share, SharedChat, SharedPart};
use tale_core::Code;
use tale_core::ids::{ThreadId, UserId};
use tale_identity::{Caller, Role};
use tale_knowledge::files::Purpose;
use tale_testkit::upstream::{Reply, Step};

use crate::world::{World, code, person, request, within, world};

/// Another member of the owner's organization.
async fn colleague(world: &World) -> Owner {
    let user = UserId::new();
    sqlx::query("INSERT INTO app.users (id, email, name, created_at) VALUES ($1, $2, 'Ben', now())")
        .bind(user)
        .bind(format!("{user}@example.com"))
        .execute(&world.db.app)
        .await
        .unwrap();
    let caller = Caller { user: Some(user), role: Role::Member, ..world.owner.caller.clone() };
    Owner::of(&caller).unwrap()
}

async fn ask(world: &World, thread: ThreadId, question: &str, answer: &str) -> tale_chat::Message {
    world.upstream.push(Reply::text(answer));
    world.ask(thread, question).await
}

/// What a reader reads.
fn words(chat: &SharedChat) -> Vec<String> {
    let text = |part: &SharedPart| match part {
        SharedPart::Text { text } => Some(text.clone()),
        _ => None,
    };
    chat.messages.iter().map(|message| message.parts.iter().filter_map(text).collect()).collect()
}

async fn read(world: &World, reader: &Owner, share: &Share) -> Vec<String> {
    words(&world.chat.shared(&reader.caller, &share.token).await.unwrap())
}

/// Chat acts of the organization that were recorded, oldest first.
async fn audit(world: &World) -> Vec<(String, String)> {
    sqlx::query_as(
        "SELECT action, details::text FROM app.audit_entries WHERE org_id = $1 AND category = 'data' ORDER BY id",
    )
    .bind(world.owner.org)
    .fetch_all(&world.db.app)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_snapshot_stays_until_newer_messages_are_included() {
    let world = world().await;
    let (chat, owner, ben) = (&world.chat, &world.owner, colleague(&world).await);
    let thread = world.titled().await;
    ask(&world, thread, "First", "one").await;
    assert_eq!(chat.share(owner, thread).await.unwrap(), None);
    let share = chat.publish(owner, thread).await.unwrap();
    assert!(share.token.len() >= 43 && !share.newer);
    let shared = chat.shared(&ben.caller, &share.token).await.unwrap();
    assert_eq!((shared.title.as_deref(), shared.shared_by.as_str()), (Some("Test"), "Ada"));

    ask(&world, thread, "Second", "two").await;
    let patch = tale_chat::ThreadPatch { title: Some("Renamed".into()), ..Default::default() };
    chat.change_thread(owner, thread, &patch).await.unwrap();
    assert_eq!(read(&world, &ben, &share).await, ["First", "one"]);
    assert_eq!(chat.shared(&ben.caller, &share.token).await.unwrap().title.as_deref(), Some("Test"));
    assert!(chat.share(owner, thread).await.unwrap().unwrap().newer);
    let again = chat.publish(owner, thread).await.unwrap();
    assert_eq!(
        (&again.token, again.taken_at.timestamp_micros()),
        (&share.token, share.taken_at.timestamp_micros()),
        "sharing twice publishes nothing more"
    );
    assert_eq!(read(&world, &ben, &share).await, ["First", "one"]);

    let retaken = chat.include_newer(owner, thread).await.unwrap();
    assert_eq!(retaken.token, share.token);
    assert!(retaken.taken_at > share.taken_at);
    assert_eq!(read(&world, &ben, &share).await, ["First", "one", "Second", "two"]);
    assert!(!chat.share(owner, thread).await.unwrap().unwrap().newer);
}

#[tokio::test]
async fn a_link_shows_the_version_on_screen_and_no_other() {
    let world = world().await;
    let (chat, owner) = (&world.chat, &world.owner);
    let thread = world.titled().await;
    let first = ask(&world, thread, "Draft question", "draft answer").await;
    let messages = chat.messages(owner, thread).await.unwrap();
    world.upstream.push(Reply::text("final answer"));
    let edited = chat.edit(owner, thread, messages[0].id, request("Final question")).await.unwrap();
    world.settled(&edited).await;
    let share = chat.publish(owner, thread).await.unwrap();
    assert_eq!(read(&world, owner, &share).await, ["Final question", "final answer"]);

    chat.switch_version(owner, thread, messages[0].id).await.unwrap();
    assert_eq!(read(&world, owner, &share).await, ["Final question", "final answer"], "switching publishes nothing");
    assert!(chat.share(owner, thread).await.unwrap().unwrap().newer);
    chat.include_newer(owner, thread).await.unwrap();
    assert_eq!(read(&world, owner, &share).await, ["Draft question", "draft answer"]);

    let fork = chat.fork(owner, thread, first.id).await.unwrap();
    assert!(!fork.shared && chat.share(owner, fork.id).await.unwrap().is_none());
    assert!(chat.thread(owner, thread).await.unwrap().shared);
}

#[tokio::test]
async fn a_turn_in_flight_stays_out() {
    let world = world().await;
    let (chat, owner) = (&world.chat, &world.owner);
    let thread = world.titled().await;
    assert_eq!(code(chat.publish(owner, thread).await), Code::ChatNothingToShare);
    world.upstream.push(Reply::steps(vec![Step::Text("Half".into()), Step::Hang]));
    let first = world.send(SendTo::Thread(thread), "First").await.unwrap();
    world.streamed(thread, "Half").await;
    assert_eq!(code(chat.publish(owner, thread).await), Code::ChatNothingToShare);
    chat.stop(owner, thread).await.unwrap();
    world.settled(&first).await;

    world.upstream.push(Reply::steps(vec![Step::Text("More".into()), Step::Hang]));
    let second = world.send(SendTo::Thread(thread), "Second").await.unwrap();
    world.streamed(thread, "More").await;
    let share = chat.publish(owner, thread).await.unwrap();
    assert!(!share.newer);
    assert_eq!(read(&world, owner, &share).await, ["First", "Half"]);
    chat.stop(owner, thread).await.unwrap();
    world.settled(&second).await;
    assert_eq!(read(&world, owner, &share).await, ["First", "Half"]);
    assert!(chat.share(owner, thread).await.unwrap().unwrap().newer);
}

#[tokio::test]
async fn a_link_opens_for_members_only_and_belongs_to_its_owner() {
    let world = world().await;
    let (chat, owner, ben) = (&world.chat, &world.owner, colleague(&world).await);
    let stranger = person(&world.db, "other").await;
    let thread = world.titled().await;
    ask(&world, thread, "First", "one").await;
    let share = chat.publish(owner, thread).await.unwrap();
    assert_eq!(code(chat.shared(&stranger.caller, &share.token).await), Code::ShareNotFound);
    let other = "A".repeat(43);
    for token in ["", "x", &other, &share.token[1..], &share.token.to_lowercase(), &format!("{}%", &share.token[1..])] {
        assert_eq!(code(chat.shared(&ben.caller, token).await), Code::ShareNotFound, "{token:?}");
    }
    for person in [&ben, &stranger] {
        assert_eq!(code(chat.share(person, thread).await), Code::ThreadNotFound);
        assert_eq!(code(chat.publish(person, thread).await), Code::ThreadNotFound);
        assert_eq!(code(chat.include_newer(person, thread).await), Code::ThreadNotFound);
        assert_eq!(code(chat.unshare(person, thread).await), Code::ThreadNotFound);
        assert_eq!(code(chat.messages(person, thread).await), Code::ThreadNotFound, "a link is not the chat");
    }
    assert_eq!(read(&world, &ben, &share).await, ["First", "one"]);
}

#[tokio::test]
async fn a_stopped_link_is_dark_for_ever() {
    let world = world().await;
    let (chat, owner, ben) = (&world.chat, &world.owner, colleague(&world).await);
    let thread = world.titled().await;
    ask(&world, thread, "First", "one").await;
    assert_eq!(code(chat.include_newer(owner, thread).await), Code::ShareNotFound, "nothing is shared unasked");
    let old = chat.publish(owner, thread).await.unwrap();
    chat.include_newer(owner, thread).await.unwrap();
    assert!(chat.unshare(owner, thread).await.unwrap());
    assert!(!chat.unshare(owner, thread).await.unwrap());
    assert_eq!(code(chat.shared(&ben.caller, &old.token).await), Code::ShareNotFound);
    assert_eq!(code(chat.shared(&owner.caller, &old.token).await), Code::ShareNotFound);
    assert!(!chat.thread(owner, thread).await.unwrap().shared);
    let new = chat.publish(owner, thread).await.unwrap();
    assert_ne!(new.token, old.token);
    assert_eq!(code(chat.shared(&ben.caller, &old.token).await), Code::ShareNotFound);
    assert_eq!(read(&world, &ben, &new).await, ["First", "one"]);

    let entries = audit(&world).await;
    let actions: Vec<&str> = entries.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(actions, ["chat.shared", "chat.share_updated", "chat.unshared", "chat.shared"]);
    assert!(entries.iter().all(|(_, details)| !details.contains(&old.token) && !details.contains(&new.token)));
    assert!(!format!("{new:?}").contains(&new.token), "a link that is debugged does not tell its token");
}

#[tokio::test]
async fn a_chat_in_the_trash_is_dark_and_can_still_be_unshared() {
    let world = world().await;
    let (chat, owner, ben) = (&world.chat, &world.owner, colleague(&world).await);
    let thread = world.titled().await;
    ask(&world, thread, "First", "one").await;
    let share = chat.publish(owner, thread).await.unwrap();
    chat.delete_thread(owner, thread).await.unwrap();
    assert_eq!(code(chat.shared(&ben.caller, &share.token).await), Code::ShareNotFound);
    assert_eq!(code(chat.share(owner, thread).await), Code::ThreadNotFound);
    chat.restore_thread(owner, thread).await.unwrap();
    assert_eq!(read(&world, &ben, &share).await, ["First", "one"]);

    chat.delete_all(owner).await.unwrap();
    assert_eq!(code(chat.shared(&ben.caller, &share.token).await), Code::ShareNotFound);
    assert_eq!(code(chat.unshare(&ben, thread).await), Code::ThreadNotFound);
    assert!(chat.unshare(owner, thread).await.unwrap());
    chat.restore_thread(owner, thread).await.unwrap();
    assert_eq!(code(chat.shared(&ben.caller, &share.token).await), Code::ShareNotFound);
}

#[tokio::test]
async fn words_are_published_and_sources_are_not() {
    let world = world().await;
    let (chat, owner, ben) = (&world.chat, &world.owner, colleague(&world).await);
    let document = world.document("travel.md", "# Hotels\n\nA hotel may cost 140 euros a night.\n").await;
    let file = world.upload("notes.txt", b"The kettle is blue.", Purpose::Chat).await;
    world.knowledge.prepare_attachments(&owner.caller, &[file]).await.unwrap();
    world.knowledge.index_file(owner.org, file, || async { Ok(()) }).await.unwrap();
    let thread = world.titled().await;
    let search = json!({ "action": "search", "query": "hotel cost" });
    world.upstream.push(Reply::tool_call("call-1", "rag_search", &search));
    world.upstream.push(Reply::text("Up to 140 euros [1]."));
    let mut question = request("What may a hotel cost?");
    question.attachments = vec![file];
    let accepted = within(chat.send(owner, SendTo::Thread(thread), question)).await.unwrap();
    world.settled(&accepted).await;
    let share = chat.publish(owner, thread).await.unwrap();

    let shared = chat.shared(&ben.caller, &share.token).await.unwrap();
    assert!(shared.messages[0].parts.contains(&SharedPart::Attachment { name: "notes.txt".into() }));
    let [SharedPart::Text { .. }, SharedPart::Citation { number: 1, title, source: Some(source), .. }] =
        &shared.messages[1].parts[..]
    else {
        panic!("neither the calls nor their results are published: {:?}", shared.messages[1].parts)
    };
    assert_eq!((title.as_str(), source.document), ("travel", document));
    assert!(source.passage.contains("140 euros a night"));
    assert!(
        world.knowledge.open_content(&ben.caller, document, None).await.is_ok(),
        "every member may read the library"
    );

    world.knowledge.delete_document(&owner.caller, document).await.unwrap();
    let shared = chat.shared(&ben.caller, &share.token).await.unwrap();
    let Some(SharedPart::Citation { title, source: None, .. }) = shared.messages[1].parts.last() else {
        panic!("a source that cannot be opened is not quoted: {:?}", shared.messages[1].parts)
    };
    assert_eq!(title, "travel", "the text still names it");
    let disabled = Caller { role: Role::Disabled, ..ben.caller.clone() };
    world.knowledge.restore_document(&owner.caller, document).await.unwrap();
    let shared = chat.shared(&disabled, &share.token).await.unwrap();
    assert!(matches!(shared.messages[1].parts.last(), Some(SharedPart::Citation { source: None, .. })));
}
