//! What a turn does: streaming, tools, citations, context, attachments.

use futures::StreamExt;
use serde_json::json;
use tale_chat::{DeltaKind, Part, SendRequest, SendTo, TurnEvent};
use tale_core::Code;
use tale_identity::preferences::Preferences;
use tale_knowledge::files::Purpose;
use tale_testkit::upstream::{Reply, Step};

use crate::world::{code, person, request, text_of, within, world};

#[tokio::test]
async fn an_answer_streams_and_is_stored_as_it_was_streamed() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Hello from the model").then(Step::Usage { input: 7, output: 4 }));
    let accepted = world.send(SendTo::Thread(thread), "Hi").await.unwrap();
    let mut seen = String::new();
    let mut turn = Box::pin(world.chat.follow(world.owner.org, thread));
    within(async {
        while let Some(event) = turn.next().await {
            match event {
                TurnEvent::Snapshot { parts, .. } => seen = text_of(&parts),
                TurnEvent::Delta { kind: DeltaKind::Text, text, .. } => seen.push_str(&text),
                _ => {}
            }
        }
    })
    .await;
    let reply = world.settled(&accepted).await;
    assert_eq!(seen, "Hello from the model");
    assert_eq!(text_of(&reply.parts), seen);
    assert_eq!((reply.status.as_str(), reply.finish_reason.as_deref()), ("complete", Some("stop")));
    assert_eq!(reply.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((7, 4)));
    assert!(reply.first_token_at.is_some() && reply.done_at.is_some());
}

#[tokio::test]
async fn a_reader_that_is_behind_when_the_turn_ends_still_gets_all_of_it() {
    let world = world().await;
    let thread = world.titled().await;
    let answer = "0123456789".repeat(60);
    let pieces = answer.as_bytes().chunks(2).map(|piece| Step::Text(String::from_utf8_lossy(piece).into_owned()));
    world.upstream.push(Reply::steps(pieces.collect()));
    let accepted = world.send(SendTo::Thread(thread), "Hi").await.unwrap();
    let mut turn = Box::pin(world.chat.follow(world.owner.org, thread));
    // reads nothing but how it begins until everything is said
    let mut seen = match within(turn.next()).await {
        Some(TurnEvent::Snapshot { parts, .. }) => text_of(&parts),
        other => panic!("{other:?}"),
    };
    world.settled(&accepted).await;
    let mut settled = false;
    within(async {
        while let Some(event) = turn.next().await {
            assert!(!settled, "nothing comes after the end");
            match event {
                TurnEvent::Snapshot { parts, .. } => seen = text_of(&parts),
                TurnEvent::Delta { text, .. } => seen.push_str(&text),
                TurnEvent::Settled { message, .. } => settled = message == accepted.message_id,
                TurnEvent::Part { .. } => {}
            }
        }
    })
    .await;
    assert_eq!(seen, answer);
    assert!(settled);
}

#[tokio::test]
async fn the_model_reads_what_a_person_wants_of_every_answer_while_it_is_switched_on() {
    let world = world().await;
    let thread = world.titled().await;
    for on in [true, false] {
        let wanted = Preferences {
            instructions_enabled: Some(on),
            instructions: "Answer in rhymes.".into(),
            ..Preferences::default()
        };
        world.identity.set_preferences(&world.owner.caller, &wanted).await.unwrap();
        world.upstream.push(Reply::text("ok"));
        world.ask(thread, "Hi").await;
        let told = world.upstream.chat_requests().last().unwrap().body.to_string();
        assert_eq!(told.contains("Answer in rhymes."), on);
    }
}

#[tokio::test]
async fn an_answer_cites_the_passage_that_was_found() {
    let world = world().await;
    let document =
        world.document("travel.md", "# Hotels\n\nA hotel may cost 140 euros a night in large cities.\n").await;
    let thread = world.titled().await;
    world.upstream.push(Reply::tool_call(
        "call-1",
        "rag_search",
        &json!({ "action": "search", "query": "hotel cost" }),
    ));
    world.upstream.push(Reply::text("Up to 140 euros a night [1]. [7] is no source."));
    let reply = world.ask(thread, "What may a hotel cost?").await;

    let Some(Part::ToolResult { output, is_error: false, .. }) =
        reply.parts.iter().find(|part| matches!(part, Part::ToolResult { .. }))
    else {
        panic!("no result in {:?}", reply.parts)
    };
    assert_eq!(output["rows"][0]["cite"], 1);
    assert_eq!(output["rows"][0]["documentId"], json!(document));
    assert_eq!(output["dense"], false, "without an embedding model the coverage says so");
    let citations: Vec<_> = reply.parts.iter().filter(|part| matches!(part, Part::Citation { .. })).collect();
    let [Part::Citation { number: 1, document_id, passage, .. }] = citations[..] else { panic!("{citations:?}") };
    assert_eq!(*document_id, Some(document));
    assert!(passage.contains("140 euros"));

    let sent = world.upstream.chat_requests();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].ends_with_tool_results());
    assert!(sent[1].body.to_string().contains("untrusted-content"), "what documents say is marked");
}

#[tokio::test]
async fn tools_that_do_not_exist_and_broken_arguments_are_answered_not_fatal() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::steps(vec![
        Step::ToolCall { id: "a".into(), name: "launch_rocket".into(), arguments: "{}".into(), pieces: 1 },
        Step::ToolCall { id: "b".into(), name: "rag_search".into(), arguments: "{\"action\":".into(), pieces: 1 },
        Step::ToolCall {
            id: "c".into(),
            name: "rag_search".into(),
            arguments: "{\"action\":\"search\",\"query\":\"x\",\"extra\":1}".into(),
            pieces: 1,
        },
        Step::ToolCall {
            id: "d".into(),
            name: "web_fetch".into(),
            arguments: "{\"url\":\"https://169.254.169.254/\"}".into(),
            pieces: 1,
        },
    ]));
    world.upstream.push(Reply::text("Sorry."));
    let reply = world.ask(thread, "Go").await;
    assert_eq!(reply.status, "complete");
    let results: Vec<_> = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult { id, is_error, output, .. } => {
                Some((id.as_str(), *is_error, output["error"].as_str().unwrap_or_default().to_owned()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        results.iter().map(|(id, failed, _)| (*id, *failed)).collect::<Vec<_>>(),
        [("a", true), ("b", true), ("c", true), ("d", true)]
    );
    assert!(results[0].2.contains("launch_rocket"));
    assert!(results[1].2.contains("{\"action\":"), "the raw text comes back: {}", results[1].2);
    assert!(results[3].2.contains("cannot be read"), "{}", results[3].2);
}

#[tokio::test]
async fn the_fifth_round_has_no_tools_and_ends_the_turn() {
    let world = world().await;
    let thread = world.titled().await;
    for round in 0..4 {
        world.upstream.push(Reply::tool_call(
            &format!("c{round}"),
            "rag_search",
            &json!({ "action": "search", "query": "x" }),
        ));
    }
    world.upstream.push(Reply::steps(vec![Step::Finish("stop")]));
    let reply = world.ask(thread, "Loop").await;
    let sent = world.upstream.chat_requests();
    assert_eq!(sent.len(), 5);
    assert!(!sent[3].tool_names().is_empty());
    assert!(
        sent[4].tool_names().is_empty() || sent[4].body["tool_choice"] == "none",
        "{}",
        sent[4].body["tool_choice"]
    );
    assert!(reply.step_limit_hit);
}

#[tokio::test]
async fn history_goes_along_and_the_oldest_goes_first_when_it_is_too_long() {
    let world = world().await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("First answer"));
    world.ask(thread, "First question").await;
    world.upstream.push(Reply::text("Second answer"));
    let reply = world.ask(thread, "Second question").await;
    assert_eq!(reply.context_dropped_count, 0);
    let body = world.upstream.chat_requests()[1].body.to_string();
    for text in ["First question", "First answer", "Second question"] {
        assert!(body.contains(text), "{text}");
    }
    // The model's window is 128,000 tokens: these messages do not all fit.
    for _ in 0..4 {
        world.upstream.push(Reply::text("ok"));
        world.ask(thread, &"long words ".repeat(9_000)).await;
    }
    world.upstream.push(Reply::text("last"));
    let reply = world.ask(thread, "And now?").await;
    assert!(reply.context_dropped_count > 0);
    let last = world.upstream.chat_requests().pop().unwrap();
    assert_eq!(last.last_user_text(), "And now?");
}

#[tokio::test]
async fn attachments_are_read_whole_or_shown_and_belong_to_their_chat() {
    let world = world().await;
    let thread = world.titled().await;
    let note = world.upload("note.txt", b"The code word is heron.", Purpose::Chat).await;
    // The smallest PNG there is: one pixel.
    let png: &[u8] = &[
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 31, 21,
        196, 137, 0, 0, 0, 13, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 240, 31, 0, 5, 0, 1, 255, 137, 153, 61, 29,
        0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
    ];
    let picture = world.upload("dot.png", png, Purpose::Chat).await;
    world.chat.thread(&world.owner, thread).await.unwrap();
    let prepared = world.knowledge.prepare_attachments(&world.owner.caller, &[note, picture]).await.unwrap();
    assert_eq!(prepared.len(), 2);
    world.knowledge.index_file(world.owner.org, note, || async { Ok(()) }).await.unwrap();
    world.upstream.push(Reply::text("heron"));
    let sent = SendRequest { attachments: vec![note, picture], ..request("What is the code word?") };
    let accepted = world.chat.send(&world.owner, SendTo::Thread(thread), sent).await.unwrap();
    assert_eq!(world.settled(&accepted).await.status, "complete");
    let body = world.upstream.chat_requests()[0].body.to_string();
    assert!(body.contains("The code word is heron."));
    assert!(body.contains("image_url"), "a vision model gets the pixels");

    // Another person cannot attach them, and neither can another chat.
    let stranger = person(&world.db, "other").await;
    let theirs = world.chat.create_thread(&stranger, None).await.unwrap().id;
    let stolen = SendRequest { attachments: vec![note], ..request("Read it") };
    assert!(world.chat.send(&stranger, SendTo::Thread(theirs), stolen.clone()).await.is_err());
    let second = world.titled().await;
    assert_eq!(code(world.chat.send(&world.owner, SendTo::Thread(second), stolen).await), Code::AttachmentNotOwned);
    assert_eq!(world.upstream.chat_requests().len(), 1, "no refused send calls a model");
}

#[tokio::test]
async fn a_first_message_names_the_chat_unless_the_person_did() {
    let world = world().await;
    world.upstream.push(Reply::text("Answer"));
    world.upstream.push(Reply::text("\"Hotel costs\"\n"));
    let accepted = world.send(SendTo::New, "What may a hotel cost?").await.unwrap();
    world.settled(&accepted).await;
    within(async {
        loop {
            if let Some(title) = world.chat.thread(&world.owner, accepted.thread_id).await.unwrap().title {
                assert_eq!(title, "Hotel costs");
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let thread = world.titled().await;
    world.upstream.push(Reply::text("Answer"));
    world.ask(thread, "More").await;
    assert_eq!(world.chat.thread(&world.owner, thread).await.unwrap().title.as_deref(), Some("Test"));
}
