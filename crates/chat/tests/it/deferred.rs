//! Messages that wait for their attachments: when they go, in which order, and when they do not.

use serde_json::json;
use tale_chat::{Chat, DeferredSend, DeferredState, MAX_WAITING_ATTACHMENTS, ModelChoice, Part, SendRequest, SendTo};
use tale_core::Code;
use tale_core::ids::{DeferredSendId, FileId, ThreadId};
use tale_governance::policies::Key;
use tale_knowledge::files::{AttachmentState, Purpose};
use tale_testkit::upstream::{Reply, Step};

use crate::world::{World, code, person, request, text_of, within, world};

fn with(content: &str, attachments: &[FileId]) -> SendRequest {
    SendRequest { attachments: attachments.to_vec(), ..request(content) }
}

impl World {
    /// An upload whose bytes have arrived and that nobody has read yet.
    async fn unread(&self, text: &str) -> FileId {
        let file = self.upload("note.txt", text.as_bytes(), Purpose::Chat).await;
        self.knowledge.prepare_attachments(&self.owner.caller, &[file]).await.unwrap();
        file
    }

    async fn read(&self, file: FileId) {
        self.knowledge.index_file(self.owner.org, file, || async { Ok(()) }).await.unwrap();
    }

    async fn park(&self, thread: ThreadId, content: &str, attachments: &[FileId]) -> DeferredSend {
        self.chat.park(&self.owner, SendTo::Thread(thread), with(content, attachments)).await.unwrap()
    }

    async fn queue(&self, thread: ThreadId) -> Vec<(String, DeferredState)> {
        let parked = self.chat.parked(&self.owner, thread).await.unwrap();
        parked.into_iter().map(|parked| (parked.content, parked.state)).collect()
    }

    /// What the person said in a chat, oldest first.
    async fn said(&self, thread: ThreadId) -> Vec<String> {
        let messages = self.chat.messages(&self.owner, thread).await.unwrap();
        messages.iter().filter(|message| message.role == "user").map(|message| text_of(&message.parts)).collect()
    }

    /// Waits for the end of the turn that runs.
    async fn quiet(&self, thread: ThreadId) {
        use futures::StreamExt;
        within(async {
            let mut turn = Box::pin(self.chat.follow(self.owner.org, thread));
            while turn.next().await.is_some() {}
        })
        .await;
    }

    /// Lets the time of the next look come.
    async fn later(&self) {
        sqlx::query("UPDATE app.deferred_sends SET due_at = now()").execute(&self.db.app).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_goes_by_itself_once_its_file_was_read() {
    let world = world().await;
    let thread = world.titled().await;
    let file = world.unread("The code word is heron.").await;
    let direct = world.chat.send(&world.owner, SendTo::Thread(thread), with("Code word?", &[file])).await;
    assert_eq!(code(direct), Code::AttachmentNotReady, "no turn starts with a file that was not read");

    let parked = world.park(thread, "Code word?", &[file]).await;
    assert_eq!(
        (parked.state, parked.position, parked.waiting_for.as_slice()),
        (DeferredState::Waiting, 1, &[file][..])
    );
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    assert!(world.said(thread).await.is_empty());
    assert_eq!(
        world.chat.parked(&world.owner, thread).await.unwrap()[0].attachments[0].state,
        AttachmentState::Processing
    );

    world.upstream.push(Reply::text("heron"));
    world.read(file).await;
    // The reading itself announced it: no time has to pass.
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    assert!(world.queue(thread).await.is_empty(), "the row leaves when the reply starts");
    assert_eq!(world.said(thread).await, ["Code word?"]);
    world.quiet(thread).await;
    let body = world.upstream.chat_requests()[0].body.to_string();
    assert!(body.contains("The code word is heron."), "{body}");
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0, "once");
}

#[tokio::test]
async fn files_of_a_waiting_message_are_found_by_no_other_turn() {
    let world = world().await;
    let thread = world.titled().await;
    let file = world.unread("The code word is heron.").await;
    world.read(file).await;
    world.park(thread, "What is the code word?", &[file]).await;
    let held = world.knowledge.searcher().uploads_of(world.owner.org, &[thread]).await.unwrap();
    assert_eq!(held, [file], "the chat holds it already");

    let search = serde_json::json!({ "action": "search", "query": "heron code word" });
    world.upstream.push(Reply::tool_call("call-1", "rag_search", &search));
    world.upstream.push(Reply::text("nothing"));
    world.send(SendTo::Thread(thread), "Search for it").await.unwrap();
    world.quiet(thread).await;
    let before = world.upstream.chat_requests().last().unwrap().body.to_string();
    assert!(!before.contains("The code word is heron."), "{before}");

    world.upstream.push(Reply::tool_call("call-2", "rag_search", &search));
    world.upstream.push(Reply::text("heron"));
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    world.quiet(thread).await;
    let after = world.upstream.chat_requests().last().unwrap().body.to_string();
    assert!(after.contains("The code word is heron."), "{after}");
}

#[tokio::test]
async fn waiting_messages_go_in_order_one_turn_at_a_time() {
    let world = world().await;
    world.upstream.otherwise(Reply::text("ok"));
    let thread = world.titled().await;
    let (slow, quick) = (world.unread("slow").await, world.unread("quick").await);
    world.park(thread, "one", &[slow]).await;
    world.park(thread, "two", &[quick]).await;
    world.park(thread, "three", &[]).await;
    world.read(quick).await;
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0, "the first is not ready");
    world.read(slow).await;
    for expected in 1..=3 {
        assert_eq!(world.chat.send_parked().await.unwrap(), 1);
        world.later().await;
        assert!(world.said(thread).await.len() <= expected);
        world.quiet(thread).await;
    }
    assert_eq!(world.said(thread).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn the_end_of_a_turn_lets_the_next_one_go() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::hang());
    world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    world.park(thread, "and then", &[]).await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    world.upstream.push(Reply::text("ok"));
    world.chat.stop(&world.owner, thread).await.unwrap();
    world.quiet(thread).await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    world.quiet(thread).await;
    assert_eq!(world.said(thread).await, ["Hello", "and then"]);
}

#[tokio::test]
async fn whatever_the_order_of_events_messages_keep_theirs_and_go_once() {
    #[derive(Clone, Copy, Debug)]
    enum Event {
        ReadFirst,
        ReadSecond,
        AbandonSecond,
        Look,
    }
    let world = world().await;
    world.upstream.otherwise(Reply::text("ok"));
    let events = [Event::ReadFirst, Event::ReadSecond, Event::AbandonSecond, Event::Look];
    for seed in 0..24_usize {
        let mut left = events.to_vec();
        let order: Vec<Event> = (1..=4)
            .rev()
            .scan(seed, |rest, n| {
                let at = *rest % n;
                *rest /= n;
                Some(left.remove(at))
            })
            .collect();
        let thread = world.titled().await;
        let (first, second) = (world.unread("first file").await, world.unread("second file").await);
        world.park(thread, "first", &[first]).await;
        let two = world.park(thread, "second", &[second]).await.id;
        world.park(thread, "third", &[]).await;
        let mut abandoned = false;
        for event in &order {
            match event {
                Event::ReadFirst => world.read(first).await,
                Event::ReadSecond => world.read(second).await,
                Event::AbandonSecond => {
                    abandoned = world.chat.abandon(&world.owner, thread, two).await.is_ok();
                }
                Event::Look => {
                    world.chat.send_parked().await.unwrap();
                    world.quiet(thread).await;
                }
            }
        }
        for _ in 0..4 {
            world.later().await;
            world.chat.send_parked().await.unwrap();
            world.quiet(thread).await;
        }
        let expected: &[&str] = if abandoned { &["first", "third"] } else { &["first", "second", "third"] };
        assert_eq!(world.said(thread).await, expected, "{order:?}");
        assert!(world.queue(thread).await.is_empty());
    }
    for sent in world.upstream.chat_requests() {
        assert!(!sent.body.to_string().contains("still being read"), "a turn started with an unread file");
    }
}

#[tokio::test]
async fn two_processes_that_look_at_once_send_once() {
    let world = world().await;
    world.upstream.otherwise(Reply::text("ok"));
    let other = world.other_process();
    for round in 0..5 {
        let thread = world.titled().await;
        world.park(thread, "once", &[]).await;
        let look = |chat: Chat| async move { chat.send_parked().await.unwrap() };
        let (a, b) = tokio::join!(look(world.chat.clone()), look(other.clone()));
        assert_eq!(a + b, 1, "round {round}");
        world.quiet(thread).await;
        assert_eq!(world.said(thread).await, ["once"]);
    }
}

#[tokio::test]
async fn a_process_that_dies_sends_a_message_once_or_leaves_it_to_the_next() {
    let world = world().await;
    let thread = world.titled().await;
    // It died between taking the look and sending: the row is as it was, its next look a little later.
    world.park(thread, "one", &[]).await;
    sqlx::query("UPDATE app.deferred_sends SET due_at = now() + interval '30 seconds'")
        .execute(&world.db.app)
        .await
        .unwrap();
    let next = world.other_process();
    assert_eq!(next.send_parked().await.unwrap(), 0);
    world.later().await;
    world.upstream.push(Reply::text("Half an answer ").then(Step::Hang));
    world.park(thread, "two", &[]).await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    world.streamed(thread, "Half an answer").await;
    world.chat.beat().await.unwrap();
    // It died in the middle of the reply: the message was sent, and is not sent again.
    assert_eq!(next.settle_abandoned_turns().await.unwrap(), 1);
    assert_eq!(world.said(thread).await, ["one"]);
    assert_eq!(world.queue(thread).await, [("two".to_owned(), DeferredState::Waiting)]);
    world.upstream.push(Reply::text("ok"));
    assert_eq!(next.send_parked().await.unwrap(), 1, "the end of the lost turn lets the next one go");
    assert_eq!(world.said(thread).await, ["one", "two"]);
    // The lost process comes back to itself: nothing changes.
    world.chat.drain(std::time::Duration::ZERO).await;
    assert_eq!(world.said(thread).await, ["one", "two"]);
}

#[tokio::test]
async fn giving_a_message_up_returns_its_words_and_files() {
    let world = world().await;
    let thread = world.titled().await;
    let file = world.unread("text").await;
    let parked = world.park(thread, "words", &[file]).await;
    let back = world.chat.abandon(&world.owner, thread, parked.id).await.unwrap();
    assert_eq!((back.content.as_str(), back.attachments.len(), back.thread_deleted), ("words", 1, false));
    assert_eq!(code(world.chat.abandon(&world.owner, thread, parked.id).await), Code::DeferredSendNotFound);
    world.read(file).await;
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    // The file is free: another chat may carry it.
    world.upstream.push(Reply::text("ok"));
    let other = world.titled().await;
    world.chat.send(&world.owner, SendTo::Thread(other), with("words", &[file])).await.unwrap();
    world.quiet(other).await;
}

#[tokio::test]
async fn a_chat_made_for_a_parked_message_goes_with_it_unless_it_holds_more() {
    let world = world().await;
    let file = world.unread("text").await;
    let parked = world.chat.park(&world.owner, SendTo::New, with("first", &[file])).await.unwrap();
    let second = world.park(parked.thread, "second", &[]).await;
    assert!(!world.chat.abandon(&world.owner, parked.thread, parked.id).await.unwrap().thread_deleted);
    let back = world.chat.abandon(&world.owner, parked.thread, second.id).await.unwrap();
    assert!(back.thread_deleted);
    assert_eq!(code(world.chat.thread(&world.owner, parked.thread).await), Code::ThreadNotFound);

    world.upstream.otherwise(Reply::text("ok"));
    let parked = world.chat.park(&world.owner, SendTo::New, with("first", &[file])).await.unwrap();
    world.read(file).await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    world.quiet(parked.thread).await;
    assert_eq!(world.said(parked.thread).await, ["first"]);
    let next = world.park(parked.thread, "next", &[]).await;
    assert!(!world.chat.abandon(&world.owner, parked.thread, next.id).await.unwrap().thread_deleted);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_holds_its_message_and_no_other() {
    let world = world().await;
    world.upstream.otherwise(Reply::text("ok"));
    let thread = world.titled().await;
    let (bad, good) = (world.unread("bad").await, world.unread("good").await);
    let held = world.park(thread, "held", &[bad, good]).await;
    world.park(thread, "next", &[]).await;
    world.read(good).await;
    sqlx::query("UPDATE app.files SET index_status = 'failed', index_error = 'broken' WHERE id = $1")
        .bind(bad)
        .execute(&world.db.app)
        .await
        .unwrap();
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    world.quiet(thread).await;
    assert_eq!(world.said(thread).await, ["next"]);
    let row = &world.chat.parked(&world.owner, thread).await.unwrap()[0];
    assert_eq!((row.state, row.waiting_for.as_slice()), (DeferredState::Held, &[bad][..]));
    assert_eq!((row.attachments[0].error.as_deref(), row.attachments[0].can_retry), (Some("broken"), true));

    world.chat.retry_attachment(&world.owner, thread, held.id, bad).await.unwrap();
    assert_eq!(world.queue(thread).await, [("held".to_owned(), DeferredState::Waiting)]);
    assert_eq!(world.chat.send_parked().await.unwrap(), 0, "it is being read again");
    let stranger = world.unread("x").await;
    assert_eq!(code(world.chat.drop_attachment(&world.owner, thread, held.id, stranger).await), Code::FileNotFound);
    world.chat.drop_attachment(&world.owner, thread, held.id, bad).await.unwrap();
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    let messages = world.chat.messages(&world.owner, thread).await.unwrap();
    let files: Vec<_> = messages[2].parts.iter().filter(|part| matches!(part, Part::Attachment { .. })).collect();
    assert!(matches!(files[..], [Part::Attachment { file_id, .. }] if *file_id == good));
    world.quiet(thread).await;
}

#[tokio::test]
async fn a_message_without_words_keeps_its_last_file() {
    let world = world().await;
    let thread = world.titled().await;
    let file = world.unread("text").await;
    let parked = world.park(thread, "", &[file]).await;
    assert_eq!(code(world.chat.drop_attachment(&world.owner, thread, parked.id, file).await), Code::InvalidBody);
}

#[tokio::test]
async fn a_message_that_is_refused_at_its_turn_keeps_its_words_and_lets_the_next_go() {
    let world = world().await;
    world.provider("second", true).await;
    world.upstream.otherwise(Reply::text("ok"));
    let thread = world.titled().await;
    world.park(thread, "refused", &[]).await;
    let mut other = request("next");
    other.model = tale_chat::ModelChoice::Named { model: crate::world::MODEL.into(), provider: Some("second".into()) };
    world.chat.park(&world.owner, SendTo::Thread(thread), other).await.unwrap();
    sqlx::query("UPDATE app.deferred_sends SET model = 'gone' WHERE content = 'refused'")
        .execute(&world.db.app)
        .await
        .unwrap();
    assert_eq!(world.chat.send_parked().await.unwrap(), 1);
    let row = &world.chat.parked(&world.owner, thread).await.unwrap()[0];
    assert_eq!((row.state, row.content.as_str()), (DeferredState::Refused, "refused"));
    assert!(
        row.refusal.as_ref().is_some_and(|(code, sentence)| code.starts_with("CHAT_MODEL") && !sentence.is_empty())
    );
    world.quiet(thread).await;
    assert_eq!(world.said(thread).await, ["next"]);
}

#[tokio::test]
async fn queues_and_their_messages_are_bounded() {
    let world = world().await;
    let thread = world.titled().await;
    let many: Vec<FileId> = (0..=MAX_WAITING_ATTACHMENTS).map(|_| FileId::new()).collect();
    let refused = world.chat.park(&world.owner, SendTo::Thread(thread), with("x", &many)).await;
    assert_eq!(code(refused), Code::TooManyAttachments);
    for n in 0..10 {
        world.park(thread, &n.to_string(), &[]).await;
    }
    let refused = world.chat.park(&world.owner, SendTo::Thread(thread), request("11")).await;
    assert_eq!(code(refused), Code::QueueFull);
    assert_eq!(world.queue(thread).await.len(), 10);
    assert_eq!(code(world.chat.park(&world.owner, SendTo::Thread(thread), request(" ")).await), Code::InvalidBody);
}

#[tokio::test]
async fn a_queue_is_its_owners_alone() {
    let world = world().await;
    let thread = world.titled().await;
    let file = world.unread("text").await;
    let parked = world.park(thread, "mine", &[file]).await;
    let stranger = person(&world.db, "other").await;
    let chat = &world.chat;
    assert_eq!(code(chat.parked(&stranger, thread).await), Code::ThreadNotFound);
    assert_eq!(code(chat.park(&stranger, SendTo::Thread(thread), request("x")).await), Code::ThreadNotFound);
    assert_eq!(code(chat.abandon(&stranger, thread, parked.id).await), Code::ThreadNotFound);
    assert_eq!(code(chat.drop_attachment(&stranger, thread, parked.id, file).await), Code::ThreadNotFound);
    assert_eq!(code(chat.retry_attachment(&stranger, thread, parked.id, file).await), Code::ThreadNotFound);
    let theirs = chat.create_thread(&stranger, None).await.unwrap().id;
    assert_eq!(code(chat.abandon(&stranger, theirs, parked.id).await), Code::DeferredSendNotFound);
    assert_eq!(code(chat.abandon(&world.owner, thread, DeferredSendId::new()).await), Code::DeferredSendNotFound);
    assert!(chat.park(&stranger, SendTo::Thread(theirs), with("x", &[file])).await.is_err(), "nor is the file");
    assert_eq!(world.queue(thread).await.len(), 1);
}

#[tokio::test]
async fn nothing_goes_into_a_chat_that_is_put_away() {
    let world = world().await;
    world.upstream.otherwise(Reply::text("ok"));
    let (archived, trashed) = (world.titled().await, world.titled().await);
    world.park(archived, "later", &[]).await;
    world.park(trashed, "never", &[]).await;
    let put = |away| tale_chat::ThreadPatch { archived: Some(away), ..Default::default() };
    world.chat.change_thread(&world.owner, archived, &put(true)).await.unwrap();
    world.chat.delete_thread(&world.owner, trashed).await.unwrap();
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    assert_eq!(
        code(world.chat.park(&world.owner, SendTo::Thread(archived), request("x")).await),
        Code::ChatThreadArchived
    );

    world.chat.restore_thread(&world.owner, trashed).await.unwrap();
    world.chat.change_thread(&world.owner, archived, &put(false)).await.unwrap();
    assert_eq!(world.chat.send_parked().await.unwrap(), 1, "what is brought back goes at once");
    world.quiet(archived).await;
    assert_eq!(world.said(archived).await, ["later"]);
    world.later().await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    assert!(world.said(trashed).await.is_empty() && world.queue(trashed).await.is_empty(), "deleting is for good");
}

#[tokio::test]
async fn nothing_goes_for_a_person_who_lost_access() {
    let world = world().await;
    for change in ["UPDATE app.memberships SET role = 'disabled'", "DELETE FROM app.memberships"] {
        let thread = world.titled().await;
        world.park(thread, "too late", &[]).await;
        sqlx::query(change).execute(&world.db.app).await.unwrap();
        assert_eq!(world.chat.send_parked().await.unwrap(), 0);
        sqlx::query(
            "INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, 'owner', now())
             ON CONFLICT (org_id, user_id) DO UPDATE SET role = 'owner'",
        )
        .bind(world.owner.org)
        .bind(world.owner.user)
        .execute(&world.db.app)
        .await
        .unwrap();
        world.later().await;
        assert_eq!(world.chat.send_parked().await.unwrap(), 0, "{change}");
        assert!(world.said(thread).await.is_empty() && world.queue(thread).await.is_empty());
    }
}

#[tokio::test]
async fn a_process_that_drains_leaves_messages_to_the_next() {
    let world = world().await;
    let thread = world.titled().await;
    world.park(thread, "patient", &[]).await;
    world.chat.drain(std::time::Duration::ZERO).await;
    assert_eq!(world.chat.send_parked().await.unwrap(), 0);
    assert_eq!(code(world.chat.park(&world.owner, SendTo::Thread(thread), request("x")).await), Code::Draining);
    world.upstream.push(Reply::text("ok"));
    let next = world.other_process();
    assert_eq!(next.send_parked().await.unwrap(), 1);
    assert_eq!(world.said(thread).await, ["patient"]);
}

#[tokio::test]
async fn a_model_that_was_taken_away_answers_through_no_door() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Before"));
    let before = world.send(SendTo::Thread(thread), "Hi").await.unwrap();
    world.settled(&before).await;
    let chat = &world.chat;
    let owner = &world.owner;
    let file = world.unread("a fact").await;
    let parked = world.park(thread, "Later", &[file]).await;

    let access = json!({ "enabled": true, "rules": [{ "scope": "default", "blockedModels": ["fake/test-model"] }] });
    world.policies.set(owner.org, &owner.actor, Key::ModelAccess, access, None).await.unwrap();
    let retried = chat.retry(owner, thread, before.message_id, request("").model, None, None).await;
    let auto = SendRequest { model: ModelChoice::Auto, ..request("Hi") };
    for refused in [
        world.send(SendTo::Thread(thread), "Hi").await,
        world.send(SendTo::New, "Hi").await,
        chat.send(owner, SendTo::Thread(thread), auto).await,
        chat.edit(owner, thread, before.user_message_id, request("Hi")).await,
        retried,
    ] {
        assert_eq!(code(refused), Code::ChatModelForbidden);
    }
    assert_eq!(code(chat.park(owner, SendTo::Thread(thread), request("Hi")).await), Code::ChatModelForbidden);
    // What was parked before is judged when it is its turn.
    world.read(file).await;
    assert_eq!(chat.send_parked().await.unwrap(), 0);
    let refused = chat.parked(owner, thread).await.unwrap();
    assert_eq!(refused[0].id, parked.id);
    assert_eq!(refused[0].refusal.as_ref().map(|(code, _)| code.as_str()), Some("CHAT_MODEL_FORBIDDEN"));
    assert_eq!(world.upstream.chat_requests().len(), 1);
}
