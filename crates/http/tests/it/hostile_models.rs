//! Providers that answer what no provider should: every call ends, in words, and is charged at most by
//! what came.

use serde_json::{Value, json};
use tale_testkit::upstream::{Reply, Step};

use crate::model_endpoints::{ANTHROPIC, OPENAI, ask, booked, code, stage, text, with};

/// An answer of the other wire than `anthropic` says.
fn of_the_other_wire(anthropic: bool) -> Reply {
    let event = if anthropic {
        json!({ "id": "c", "choices": [{ "index": 0, "delta": { "content": "hi" }, "finish_reason": "stop" }] })
    } else {
        json!({ "type": "message_start", "message": { "id": "m", "content": [], "usage": { "input_tokens": 1 } } })
    };
    Reply::whole(200, "text/event-stream", format!("data: {event}\n\n"))
}

#[tokio::test]
async fn what_no_provider_should_send_ends_the_call_in_words() {
    let mut stage = stage().await;
    let endless = vec![b'x'; 3 << 20];
    for (path, model) in
        [(OPENAI, "open/able"), (ANTHROPIC, "open/able"), (OPENAI, "claude/able"), (ANTHROPIC, "claude/able")]
    {
        let anthropic = model.starts_with("claude");
        let replies = [
            ("a line without an end", Reply::whole(200, "text/event-stream", endless.clone())),
            ("a large answer", Reply::whole(200, "application/json", vec![b' '; (32 << 20) + 1])),
            ("another wire", of_the_other_wire(anthropic)),
            ("no text", Reply::whole(200, "application/json", vec![0xff, 0xfe])),
            ("nothing", Reply::whole(200, "text/event-stream", "")),
            ("a page", Reply::html(200)),
            ("a redirect", Reply::whole(302, "text/plain", "").header("location", "http://169.254.169.254/latest/")),
            (
                "a redirect that keeps the body",
                Reply::whole(307, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            ),
            ("a break", Reply::steps(vec![Step::Drop])),
        ];
        for (what, reply) in replies {
            for stream in [true, false] {
                stage.upstream.push(reply.clone());
                let answer = stage.key.post(path, with(ask(model), json!({ "stream": stream }))).await;
                if answer.header("content-type").starts_with("text/event-stream") {
                    let said = text(&answer);
                    assert!(said.contains("MODEL_API_UPSTREAM_ERROR"), "{what} {model}: {said}");
                    assert!(!said.contains("[DONE]") && !said.contains("message_stop"), "{what} {model}: {said}");
                } else {
                    assert_eq!(code(&answer), (502, "MODEL_API_UPSTREAM_ERROR".into()), "{what} {model}");
                }
                assert_eq!(stage.upstream.open_answers(), 0, "{what} {model}");
            }
        }
    }
    let [_, _, output] = booked(&mut stage).await;
    assert_eq!(output, 0, "no word came");
}

#[tokio::test]
async fn an_answer_whose_provider_counts_no_tokens_of_it_is_charged_by_its_length() {
    let mut stage = stage().await;
    for (model, usage) in [
        ("open/able", json!({ "prompt_tokens": 20 })),
        ("open/able", json!({ "prompt_tokens": 20, "completion_tokens": 0 })),
    ] {
        let chunk = |choices: Value, usage: &Value| {
            format!("data: {}\n\n", json!({ "id": "c", "choices": choices, "usage": usage }))
        };
        let words = json!([{ "index": 0, "delta": { "content": "abcdefghijklmnop" }, "finish_reason": "stop" }]);
        let body = format!("{}{}data: [DONE]\n\n", chunk(words, &Value::Null), chunk(json!([]), &usage));
        for path in [OPENAI, ANTHROPIC] {
            stage.upstream.push(Reply::whole(200, "text/event-stream", body.clone()));
            assert_eq!(stage.key.post(path, with(ask(model), json!({ "stream": true }))).await.status, 200);
        }
    }
    assert_eq!(booked(&mut stage).await, [4, 80, 16], "16 characters are four tokens");
}
