//! How turns end: stop, failure, two at once, a lost process, idempotency.

use futures::StreamExt;
use tale_chat::{Generation, IdempotencyKey, LostTurns, SendTo, TurnEvent};
use tale_core::Code;
use tale_testkit::upstream::{Reply, Step};

use crate::world::{code, person, request, text_of, within, world};

#[tokio::test]
async fn stopping_keeps_what_arrived_and_hangs_up_on_the_model() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::never_stops("more and "));
    let accepted = world.send(SendTo::Thread(thread), "Talk").await.unwrap();
    world.streamed(thread, "more and more").await;
    assert_eq!(world.chat.stop(&world.owner, thread).await.unwrap(), accepted.message_id);
    let reply = world.settled(&accepted).await;
    assert_eq!((reply.status.as_str(), reply.finish_reason.as_deref()), ("cancelled", Some("cancelled")));
    assert!(text_of(&reply.parts).starts_with("more and more"));
    within(world.upstream.wait_for_disconnects(1)).await;
    assert_eq!(code(world.chat.stop(&world.owner, thread).await), Code::ChatTurnNotRunning);
    // Send → stop → send makes no second turn of the first message.
    world.upstream.push(Reply::text("fine"));
    assert_eq!(text_of(&world.ask(thread, "Again").await.parts), "fine");
}

#[tokio::test]
async fn a_stop_before_the_first_word_settles_at_once() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::hang());
    let accepted = world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    world.chat.stop(&world.owner, thread).await.unwrap();
    let reply = world.settled(&accepted).await;
    assert_eq!((reply.status.as_str(), reply.parts.len()), ("cancelled", 0));
}

#[tokio::test]
async fn of_two_sends_at_once_exactly_one_runs() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.otherwise(Reply::hang());
    let (one, two) = tokio::join!(world.send(SendTo::Thread(thread), "one"), world.send(SendTo::Thread(thread), "two"));
    let refused = match (one, two) {
        (Ok(_), Err(problem)) | (Err(problem), Ok(_)) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused.code, Code::ChatTurnInProgress);
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 2, "the loser left nothing behind");
    assert_eq!(code(world.chat.delete_thread(&world.owner, thread).await), Code::ChatTurnInProgress);
    world.chat.stop(&world.owner, thread).await.unwrap();
}

#[tokio::test]
async fn every_way_a_provider_fails_has_its_code_and_keeps_partial_text() {
    let world = world().await;
    let cases: Vec<(Reply, &str, &str)> = vec![
        (Reply::refusal(401, "invalid_api_key", "Incorrect API key provided"), "auth_error", ""),
        (Reply::refusal(402, "insufficient_quota", "You have no credit"), "credit_exhausted", ""),
        (Reply::refusal(404, "model_not_found", "The model does not exist"), "model_not_found", ""),
        (Reply::refusal(429, "rate_limit_exceeded", "Slow down"), "rate_limited", ""),
        (Reply::refusal(500, "server_error", "Oops"), "provider_error", ""),
        (Reply::html(200), "generic", ""),
        (
            Reply::text("half ").then(Step::Error { code: "server_error".into(), message: "overloaded".into() }),
            "provider_error",
            "half ",
        ),
        (Reply::text("half ").then(Step::Drop), "provider_error", "half "),
    ];
    for (reply, code, text) in cases {
        let thread = world.titled().await;
        world.upstream.push(reply);
        let message = world.ask(thread, "Hello").await;
        assert_eq!(
            (message.status.as_str(), message.error_code.as_deref()),
            ("failed", Some(code)),
            "{:?}",
            message.error
        );
        assert!(!message.interrupted);
        // A broken connection may take unread bytes with it.
        assert!(
            text_of(&message.parts) == text || (text == "half " && message.parts.is_empty()),
            "{:?}",
            message.parts
        );
        assert!(!message.error.unwrap().contains("sk-test-0123456789"));
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_named_as_such() {
    let world = world().await;
    let thread = world.titled().await;
    let (owner, chat) = (world.owner.clone(), world.chat.clone());
    drop(world.upstream);
    let accepted = chat.send(&owner, SendTo::Thread(thread), request("Hello")).await.unwrap();
    within(async {
        let mut turn = Box::pin(chat.follow(owner.org, thread));
        while turn.next().await.is_some() {}
    })
    .await;
    let message = chat.message(&owner, thread, accepted.message_id).await.unwrap();
    assert_eq!((message.status.as_str(), message.error_code.as_deref()), ("failed", Some("provider_unreachable")));
}

#[tokio::test]
async fn a_turn_whose_process_died_is_settled_with_its_text() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Half an answer ").then(Step::Hang));
    let accepted = world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    world.streamed(thread, "Half an answer").await;
    world.chat.beat().await.unwrap();
    // The process falls silent: its last sign of life is a minute old.
    sqlx::query("UPDATE app.generations SET heartbeat_at = heartbeat_at - interval '60 seconds'")
        .execute(&world.db.app)
        .await
        .unwrap();
    let survivor = world.other_process();
    let mut suspects = LostTurns::default();
    assert_eq!(survivor.settle_lost_turns(&mut suspects).await.unwrap(), 0, "one look is not enough");
    assert_eq!(survivor.settle_lost_turns(&mut suspects).await.unwrap(), 1);
    let message = survivor.message(&world.owner, thread, accepted.message_id).await.unwrap();
    assert_eq!((message.status.as_str(), message.error_code.as_deref()), ("failed", Some("provider_error")));
    assert!(message.interrupted, "the provider is not to blame");
    assert_eq!(text_of(&message.parts), "Half an answer ");
    assert!(matches!(survivor.generation(&world.owner, thread).await.unwrap(), Generation::Idle { .. }));
    // The lost process comes back to itself: it must not overwrite what was settled.
    world.chat.drain(std::time::Duration::ZERO).await;
    let after = survivor.message(&world.owner, thread, accepted.message_id).await.unwrap();
    assert_eq!(after.status, "failed");
}

#[tokio::test]
async fn a_turn_that_a_stop_cuts_is_settled_as_cut_by_us() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Half an answer ").then(Step::Hang));
    let accepted = world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    world.streamed(thread, "Half an answer").await;
    world.chat.drain(std::time::Duration::ZERO).await;
    let message = world.chat.message(&world.owner, thread, accepted.message_id).await.unwrap();
    assert_eq!((message.status.as_str(), message.error_code.as_deref()), ("failed", Some("provider_error")));
    assert!(message.interrupted && message.error.unwrap().contains("restarted"));
    assert_eq!(text_of(&message.parts), "Half an answer ");
}

#[tokio::test]
async fn the_only_process_of_an_installation_settles_at_its_start_what_the_last_one_left() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Half an answer ").then(Step::Hang));
    let accepted = world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    world.streamed(thread, "Half an answer").await;
    world.chat.beat().await.unwrap();
    let next = world.other_process();
    assert_eq!(next.settle_abandoned_turns().await.unwrap(), 1);
    let message = next.message(&world.owner, thread, accepted.message_id).await.unwrap();
    assert_eq!((message.status.as_str(), text_of(&message.parts).as_str()), ("failed", "Half an answer "));
    assert_eq!(next.settle_abandoned_turns().await.unwrap(), 0);
}

#[tokio::test]
async fn a_turn_of_our_own_is_never_lost_while_it_runs() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::hang());
    world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    // The database was away for a minute: no beat could be written.
    sqlx::query("UPDATE app.generations SET heartbeat_at = heartbeat_at - interval '60 seconds'")
        .execute(&world.db.app)
        .await
        .unwrap();
    let mut suspects = LostTurns::default();
    for _ in 0..3 {
        assert_eq!(world.chat.settle_lost_turns(&mut suspects).await.unwrap(), 0);
    }
    world.chat.stop(&world.owner, thread).await.unwrap();
}

#[tokio::test]
async fn a_turn_that_shows_signs_of_life_again_is_left_alone() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::hang());
    world.send(SendTo::Thread(thread), "Hello").await.unwrap();
    sqlx::query("UPDATE app.generations SET heartbeat_at = heartbeat_at - interval '60 seconds'")
        .execute(&world.db.app)
        .await
        .unwrap();
    let other = world.other_process();
    let mut suspects = LostTurns::default();
    other.settle_lost_turns(&mut suspects).await.unwrap();
    world.chat.beat().await.unwrap();
    assert_eq!(other.settle_lost_turns(&mut suspects).await.unwrap(), 0);
    world.chat.stop(&world.owner, thread).await.unwrap();
}

#[tokio::test]
async fn another_process_can_follow_and_stop_a_turn() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::never_stops("and on "));
    let accepted = world.send(SendTo::Thread(thread), "Talk").await.unwrap();
    world.streamed(thread, "and on and on").await;
    world.chat.beat().await.unwrap();
    let other = world.other_process();
    let mut turn = Box::pin(other.follow(world.owner.org, thread));
    let first = within(turn.next()).await.unwrap();
    assert!(matches!(first, TurnEvent::Snapshot { ref parts, .. } if text_of(parts).contains("and on")));
    assert_eq!(other.stop(&world.owner, thread).await.unwrap(), accepted.message_id);
    world.chat.beat().await.unwrap();
    assert_eq!(world.settled(&accepted).await.status, "cancelled");
}

#[tokio::test]
async fn the_same_key_sends_once() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.otherwise(Reply::text("ok"));
    let key = IdempotencyKey { key: "k1".into(), body_hash: [1; 32] };
    let (first, duplicate) = world.chat.send_once(&world.owner, thread, request("Hello"), &key).await.unwrap();
    assert!(!duplicate);
    world.settled(&first).await;
    let (again, duplicate) = world.chat.send_once(&world.owner, thread, request("Hello"), &key).await.unwrap();
    assert!(duplicate);
    assert_eq!(first, again);
    assert_eq!(world.chat.messages(&world.owner, thread).await.unwrap().len(), 2);
    let other = IdempotencyKey { body_hash: [2; 32], ..key };
    assert_eq!(
        code(world.chat.send_once(&world.owner, thread, request("Other"), &other).await),
        Code::IdempotencyKeyReused
    );
}

#[tokio::test]
async fn refusals_write_nothing() {
    let world = world().await;
    let thread = world.titled().await;
    let send = |request| world.chat.send(&world.owner, SendTo::Thread(thread), request);
    assert_eq!(code(send(request(" \u{200b} ")).await), Code::InvalidBody);
    assert_eq!(code(send(request(&"x".repeat(100_001))).await), Code::InvalidBody);
    let mut unknown = request("Hello");
    unknown.model = tale_chat::ModelChoice::Named { model: "nope".into(), provider: None };
    assert_eq!(code(send(unknown).await), Code::ChatModelUnknown);
    let mut capped = request("Hello");
    capped.max_output_tokens = Some(0);
    assert_eq!(code(send(capped).await), Code::InvalidBody);
    let stranger = person(&world.db, "other").await;
    assert_eq!(code(world.chat.send(&stranger, SendTo::Thread(thread), request("Hello")).await), Code::ThreadNotFound);
    assert!(world.chat.messages(&world.owner, thread).await.unwrap().is_empty());
    world.chat.drain(std::time::Duration::ZERO).await;
    assert_eq!(code(world.send(SendTo::Thread(thread), "Hello").await), Code::Draining);
}
