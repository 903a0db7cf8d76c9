//! The model endpoints: checks in their order, both interfaces in front of both wires, the charge.

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tale_identity::Role;
use tale_testkit::upstream::{Reply, Step};

use crate::client::Answer;
use crate::stage::{Stage, within};

pub(crate) const OPENAI: &str = "/api/v1/openai/chat/completions";
pub(crate) const ANTHROPIC: &str = "/api/v1/anthropic/v1/messages";

/// A bound on waiting, not a measure of speed.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Lets the head of an answer out before what follows.
const PAUSE: Step = Step::Wait(std::time::Duration::from_millis(50));

/// A stage with a model behind each wire, and the endpoints on.
pub(crate) async fn stage() -> Stage {
    let mut stage = Stage::new().await;
    for (name, format, base) in
        [("open", "openai", stage.upstream.openai_base()), ("claude", "anthropic", stage.upstream.anthropic_base())]
    {
        let model = |id: &str, able: bool| {
            json!({
                "id": id, "contextWindow": 32_000, "maxOutputTokens": 1_000, "purposes": ["chat"],
                "capabilities": { "tools": able, "vision": able, "reasoning": able },
                "pricing": { "input": 1_000.0, "output": 2_000.0 },
            })
        };
        let provider = json!({
            "name": name, "displayName": name, "apiFormat": format, "baseUrl": base, "apiKey": "sk-secret-0123456789",
            "models": [model("able", true), model("plain", false)],
        });
        stage.post("providers", provider).await.expect(201);
    }
    put_policy(&mut stage, "model_access", json!({ "modelApi": { "enabled": true } })).await;
    stage
}

async fn put_policy(stage: &mut Stage, key: &str, value: Value) {
    let path = stage.app(&format!("governance/policies/{key}"));
    stage.owner.put(&path, json!({ "value": value })).await.expect(200);
}

pub(crate) fn ask(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 100, "messages": [{ "role": "user", "content": "hi" }] })
}

pub(crate) fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The code of an error in either shape, with its status.
pub(crate) fn code(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string(), "{body}");
    (answer.status.as_u16(), body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.bytes.clone()).unwrap()
}

/// What the ledger holds of the organization: requests, input and output tokens.
pub(crate) async fn booked(stage: &mut Stage) -> [u64; 3] {
    stage.world.app.gateway.settled().await;
    let bookings = "SELECT count(*), coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint
        FROM app.usage_bookings WHERE source = '__direct_api__' AND user_id IS NOT NULL AND api_key_id IS NOT NULL";
    let (requests, input, output): (i64, i64, i64) =
        sqlx::query_as(bookings).fetch_one(&stage.world.app.database).await.unwrap();
    [requests, input, output].map(|sum| u64::try_from(sum).unwrap())
}

#[tokio::test]
async fn the_endpoints_are_off_until_they_are_switched_on_and_say_why_in_their_shape() {
    let mut stage = Stage::new().await;
    for (path, anthropic) in [(OPENAI, false), (ANTHROPIC, true)] {
        let refused = stage.key.post(path, ask("open/able")).await;
        assert_eq!(code(&refused), (403, "MODEL_API_DISABLED".into()));
        assert_eq!(refused.json()["type"] == "error", anthropic);
        let unsigned = stage.key.clone().without("authorization").post(path, ask("open/able")).await;
        assert_eq!(code(&unsigned), (401, "UNAUTHORIZED".into()));
        assert_eq!(unsigned.header("www-authenticate"), "Bearer");
        assert!(!unsigned.header("x-request-id").is_empty());
        let key = stage.key.clone().with("x-api-key", "tale_x").post(path, ask("open/able")).await;
        assert_eq!(code(&key), (401, "UNAUTHORIZED".into()));
    }
    let me = stage.key.get("/api/v1/me").await.expect(200);
    assert_eq!(me["capabilities"]["modelApi"], false);

    put_policy(&mut stage, "model_access", json!({ "modelApi": { "enabled": true } })).await;
    let me = stage.key.get("/api/v1/me").await.expect(200);
    assert_eq!(me["capabilities"]["modelApi"], true);
    assert_eq!(code(&stage.key.post(OPENAI, ask("open/able")).await), (404, "MODEL_API_MODEL_UNKNOWN".into()));
    for path in ["/api/v1/openai/embeddings", "/api/v1/openai/responses", "/api/v1/anthropic/v1/messages/count_tokens"]
    {
        assert_eq!(code(&stage.key.post(path, json!({})).await), (404, "NOT_FOUND".into()), "{path}");
    }
    assert_eq!(code(&stage.key.get(OPENAI).await), (405, "METHOD_NOT_ALLOWED".into()));
    assert_eq!(stage.key.post("/api/v1/chat/completions", json!({})).await.refusal(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn each_check_refuses_and_books_nothing() {
    let mut stage = stage().await;
    let image = json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }] }] });
    let tools = json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] });
    for (body, expected) in [
        (ask("open/nothing"), (404, "MODEL_API_MODEL_UNKNOWN")),
        (ask("able"), (404, "MODEL_API_MODEL_UNKNOWN")),
        (with(ask("open/plain"), image), (400, "MODEL_API_VISION_UNSUPPORTED")),
        (with(ask("open/plain"), tools.clone()), (400, "MODEL_API_TOOLS_UNSUPPORTED")),
        (with(ask("open/able"), json!({ "web_search_options": {} })), (400, "MODEL_API_VENDOR_TOOL_UNSUPPORTED")),
        (with(ask("open/able"), json!({ "n": 9 })), (400, "INVALID_BODY")),
        (with(ask("claude/able"), json!({ "n": 2 })), (400, "INVALID_BODY")),
    ] {
        let refused = stage.key.post(OPENAI, body.clone()).await;
        assert_eq!(code(&refused), (expected.0, expected.1.to_owned()), "{body}");
    }
    let large = stage.key.clone().with("content-length", "33554433").raw("POST", OPENAI, Body::empty()).await;
    assert_eq!(code(&large), (413, "BODY_TOO_LARGE".into()));
    assert_eq!(code(&stage.key.raw("POST", ANTHROPIC, "{\"model\"").await), (400, "INVALID_BODY".into()));

    // What the policy blocks, for this person; another organization's models are unknown.
    let rules = json!({ "enabled": true, "mode": "blocklist", "rules": [{ "scope": "default", "blockedModels": ["open/able"] }], "modelApi": { "enabled": true } });
    put_policy(&mut stage, "model_access", rules).await;
    assert_eq!(code(&stage.key.post(OPENAI, ask("open/able")).await), (403, "MODEL_API_MODEL_FORBIDDEN".into()));
    let listed = stage.key.get("/api/v1/openai/models").await.expect(200);
    let ids: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["claude/able", "claude/plain", "open/plain"]);
    assert_eq!(
        listed["data"][0],
        json!({ "id": "claude/able", "object": "model", "created": 0, "owned_by": "claude" })
    );
    let (mut eve, other, mut key) = stage.outsider().await;
    assert_eq!(code(&key.post(OPENAI, ask("open/plain")).await), (403, "MODEL_API_DISABLED".into()));
    eve.put(
        &within(&other, "governance/policies/model_access"),
        json!({ "value": { "modelApi": { "enabled": true } } }),
    )
    .await
    .expect(200);
    assert_eq!(code(&key.post(OPENAI, ask("open/plain")).await), (404, "MODEL_API_MODEL_UNKNOWN".into()));
    assert_eq!(key.get("/api/v1/openai/models").await.expect(200)["data"], json!([]));

    assert!(stage.upstream.chat_requests().is_empty());
    assert_eq!(booked(&mut stage).await, [0, 0, 0]);
}

#[tokio::test]
async fn a_role_counts_as_it_is_at_the_call() {
    let mut stage = stage().await;
    let mut developer = stage.member(Role::Developer).await;
    let keys = stage.app("api-keys");
    let made = developer.post(&keys, json!({ "name": "k", "expiresInDays": 1 })).await.expect(201);
    let mut key = stage.world.key(made["key"].as_str().unwrap());
    key.post(OPENAI, ask("open/able")).await.expect(200);
    let members = stage.get("members").await.expect(200);
    let user = members["members"].as_array().unwrap().iter().find(|member| member["role"] == "developer").unwrap();
    let path = stage.app(&format!("members/{}", user["userId"].as_str().unwrap()));
    stage.owner.patch(&path, json!({ "role": "editor" })).await.expect(200);
    assert_eq!(code(&key.post(OPENAI, ask("open/able")).await), (403, "MODEL_API_FORBIDDEN".into()));
    assert_eq!(code(&key.get("/api/v1/openai/models").await), (403, "MODEL_API_FORBIDDEN".into()));
    stage.owner.patch(&path, json!({ "role": "disabled" })).await.expect(200);
    assert_eq!(code(&key.post(OPENAI, ask("open/able")).await), (403, "MODEL_API_FORBIDDEN".into()));
    assert_eq!(key.get("/api/v1/models").await.status.as_u16(), 403, "nowhere else is a disabled seat a caller");
}

#[tokio::test]
async fn a_key_that_was_good_a_moment_ago_is_asked_for_with_the_hold_and_decides_before_the_provider() {
    let mut stage = stage().await;
    let database = stage.world.app.database.clone();
    let holds =
        async || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM app.usage_holds").fetch_one(&database).await;
    let reach = async |wanted: i64| {
        let reached = async {
            while holds().await.unwrap() != wanted {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect("the holds are as they should be");
    };
    stage.key.post(OPENAI, ask("open/able")).await.expect(200);
    reach(0).await;
    let asked = stage.upstream.requests().len();

    // Nobody can be asked who a key acts for: the call has its hold, and waits.
    for (revoked, status) in [(false, 200), (true, 401)] {
        let mut locked = database.begin().await.unwrap();
        sqlx::query("LOCK TABLE app.memberships IN ACCESS EXCLUSIVE MODE").execute(&mut *locked).await.unwrap();
        let mut key = stage.key.clone();
        let call = tokio::spawn(async move { key.post(OPENAI, ask("open/able")).await });
        reach(1).await;
        assert_eq!(stage.upstream.requests().len(), asked + usize::from(revoked));
        if revoked {
            sqlx::query("UPDATE app.api_keys SET revoked_at = now()").execute(&mut *locked).await.unwrap();
        }
        locked.commit().await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, call).await.expect("an answer").unwrap();
        assert_eq!(answer.status.as_u16(), status, "{answer:?}");
        reach(0).await;
    }
    assert_eq!(stage.upstream.requests().len(), asked + 1, "nothing of a void key reaches the provider");
    assert_eq!(booked(&mut stage).await[0], 2);
    for body in [ask("open/able"), json!({}), ask("no/model")] {
        let refused = stage.key.post(OPENAI, body).await;
        assert_eq!(code(&refused), (401, "UNAUTHORIZED".into()), "before any other check");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn both_interfaces_reach_both_wires_streamed_or_not_at_the_same_cost() {
    let mut stage = stage().await;
    let steps = vec![
        Step::Reasoning("hm".into()),
        Step::Text("Grüße 🦀".into()),
        Step::ToolCall { id: "call_a".into(), name: "f".into(), arguments: "{\"q\":\"ä\"}".into(), pieces: 99 },
        Step::ToolCall { id: "call_b".into(), name: "g".into(), arguments: "{}".into(), pieces: 1 },
        Step::Usage { input: 20, output: 10 },
    ];
    stage.upstream.otherwise(Reply::steps(steps).in_pieces_of(1));
    for model in ["open/able", "claude/able"] {
        let whole = stage.key.post(OPENAI, ask(model)).await.expect(200);
        let message = &whole["choices"][0]["message"];
        assert_eq!((&whole["model"], &message["content"]), (&json!(model), &json!("Grüße 🦀")));
        assert_eq!(message["tool_calls"][0]["function"], json!({ "name": "f", "arguments": "{\"q\":\"ä\"}" }));
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!((&whole["usage"]["prompt_tokens"], &whole["usage"]["completion_tokens"]), (&json!(20), &json!(10)));

        let streamed = stage.key.post(OPENAI, with(ask(model), json!({ "stream": true }))).await;
        assert!(streamed.header("content-type").starts_with("text/event-stream"));
        let stream = text(&streamed);
        assert!(stream.ends_with("data: [DONE]\n\n") && !stream.contains("\"prompt_tokens\""), "{stream}");
        let asked = with(ask(model), json!({ "stream": true, "stream_options": { "include_usage": true } }));
        assert!(text(&stage.key.post(OPENAI, asked).await).contains("\"prompt_tokens\":20"));

        let whole = stage.key.post(ANTHROPIC, ask(model)).await.expect(200);
        let kinds: Vec<&str> =
            whole["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!((kinds, &whole["model"]), (vec!["thinking", "text", "tool_use", "tool_use"], &json!(model)));
        assert_eq!((&whole["content"][2]["input"], &whole["stop_reason"]), (&json!({ "q": "ä" }), &json!("tool_use")));
        assert_eq!(whole["usage"]["output_tokens"], 10);
        let stream = text(&stage.key.post(ANTHROPIC, with(ask(model), json!({ "stream": true }))).await);
        assert!(
            stream.starts_with("event: message_start") && stream.ends_with("data: {\"type\":\"message_stop\"}\n\n"),
            "{stream}"
        );
    }
    assert_eq!(booked(&mut stage).await, [10, 200, 100]);
    // The provider's key went to the provider and the model's own name with it.
    for request in stage.upstream.chat_requests() {
        assert!(request.key.unwrap().ends_with("sk-secret-0123456789"));
        assert_eq!(request.body["model"], "able");
        assert_eq!(request.body["max_tokens"], 100);
    }
}

#[tokio::test]
async fn a_refusal_of_the_provider_keeps_its_words_and_costs_nothing() {
    let mut stage = stage().await;
    for (status, expected) in
        [(400, 400), (413, 413), (422, 422), (429, 429), (503, 503), (529, 529), (401, 502), (404, 502), (500, 502)]
    {
        stage
            .upstream
            .push(Reply::refusal(status, "some_code", "No, because sk-secret-0123456789.").header("retry-after", "7"));
        let refused = stage.key.post(ANTHROPIC, ask("open/able")).await;
        assert_eq!(code(&refused), (expected, "MODEL_API_UPSTREAM_ERROR".into()), "{status}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("No, because") && !message.contains("sk-secret"), "{message}");
        assert_eq!(refused.header("retry-after"), "7");
    }
    stage.upstream.push(Reply::html(200));
    assert_eq!(stage.key.post(OPENAI, ask("open/able")).await.status, 502);
    assert_eq!(booked(&mut stage).await, [0, 0, 0]);
}

#[tokio::test]
async fn what_breaks_off_ends_with_an_error_event_and_is_charged_by_what_came() {
    let mut stage = stage().await;
    for (path, model, event) in [
        (OPENAI, "open/able", "data: {\"error\""),
        (ANTHROPIC, "open/able", "event: error"),
        (OPENAI, "claude/able", "data: {\"error\""),
    ] {
        stage.upstream.push(Reply::steps(vec![Step::Text("abcdefghijklmnop".into()), PAUSE, Step::Drop]));
        let stream = text(&stage.key.post(path, with(ask(model), json!({ "stream": true }))).await);
        let (before, error) = stream.split_once(event).unwrap_or_else(|| panic!("{stream}"));
        assert!(before.contains("abcdefghijklmnop") && error.contains("MODEL_API_UPSTREAM_ERROR"), "{stream}");
        assert!(!stream.contains("[DONE]") && !stream.contains("message_stop"));
        stage.upstream.push(Reply::steps(vec![
            Step::Text("a".into()),
            PAUSE,
            Step::Error { code: "overloaded".into(), message: "Overloaded".into() },
        ]));
        assert!(text(&stage.key.post(path, with(ask(model), json!({ "stream": true }))).await).contains("Overloaded"));
    }
    let [requests, input, output] = booked(&mut stage).await;
    assert_eq!(requests, 6);
    assert!(input >= 6 * 11 && output >= 3 * 4, "{input} {output}");
}

#[tokio::test]
async fn an_answer_that_does_not_keep_to_its_limit_is_ended() {
    let mut stage = stage().await;
    for (path, model) in [(OPENAI, "open/able"), (ANTHROPIC, "claude/able"), (OPENAI, "claude/able")] {
        stage.upstream.push(Reply::never_stops("words that never end "));
        let stream = text(&stage.key.post(path, with(ask(model), json!({ "stream": true }))).await);
        assert!(stream.contains("far more than the call's limit"), "{model}");
    }
    stage.upstream.wait_for_disconnects(3).await;
    let [requests, _, output] = booked(&mut stage).await;
    // 100 tokens were asked for each time
    assert!(requests == 3 && (3 * 400..3 * 2_000).contains(&output), "{requests} {output}");
}

#[tokio::test]
async fn a_call_goes_to_no_other_model_than_it_names() {
    let mut stage = stage().await;
    let answer = stage.key.post(OPENAI, with(ask("open/able"), json!({ "models": ["other"] }))).await;
    assert_eq!(code(&answer), (400, "INVALID_BODY".into()));
    assert_eq!(booked(&mut stage).await, [0; 3]);
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_call_and_pays_for_what_it_got() {
    let mut stage = stage().await;
    stage.upstream.push(Reply::steps(vec![Step::Text("abcdefghijklmnop".into()), Step::Hang]));
    let body = with(ask("claude/able"), json!({ "stream": true })).to_string();
    let mut body = stage.key.open("POST", OPENAI, Body::from(body)).await.into_body();
    loop {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        if String::from_utf8_lossy(&frame).contains("abcdefghijklmnop") {
            break;
        }
    }
    drop(body);
    stage.upstream.wait_for_disconnects(1).await;
    let [requests, input, output] = booked(&mut stage).await;
    assert_eq!((requests, input), (1, 11));
    assert!(output >= 4);
}

#[tokio::test]
async fn the_ninth_call_at_once_is_refused_and_the_eight_finish() {
    let mut stage = stage().await;
    stage.upstream.otherwise(Reply::steps(vec![Step::Text("a".into()), Step::Hang]));
    let mut running = Vec::new();
    for _ in 0..8 {
        let body = with(ask("open/able"), json!({ "stream": true })).to_string();
        running.push(stage.key.open("POST", OPENAI, Body::from(body)).await);
    }
    let ninth = stage.key.post(OPENAI, ask("open/able")).await;
    assert_eq!(code(&ninth), (429, "MODEL_API_CONCURRENCY_EXCEEDED".into()));
    assert_eq!(ninth.header("retry-after"), "2");
    assert!(running.iter().all(|response| response.status() == 200));
    running.pop();
    stage.upstream.otherwise(Reply::text("b"));
    stage.key.post(OPENAI, ask("open/able")).await.expect(200);
}

#[tokio::test]
async fn a_call_fits_a_budget_whole_or_is_told_what_would_fit() {
    let mut stage = stage().await;
    // 30 cents; a call of 100 tokens is worth 20 cents and its prompt.
    put_policy(
        &mut stage,
        "budgets",
        json!({ "rules": [{ "scope": "default", "period": "monthly", "maxCostCents": 30 }] }),
    )
    .await;
    let wanted = with(ask("open/able"), json!({ "max_tokens": 500 }));
    for (path, field) in [(OPENAI, "max_completion_tokens"), (ANTHROPIC, "max_tokens")] {
        let refused = stage.key.post(path, wanted.clone()).await;
        assert_eq!(code(&refused), (429, "BUDGET_EXCEEDED".into()));
        assert_eq!(refused.header("x-should-retry"), "false");
        assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        let (_, rest) = message.split_once(&format!("`{field}` of at most ")).unwrap_or_else(|| panic!("{message}"));
        let fits: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(fits < 500);
        stage.key.post(path, with(wanted.clone(), json!({ "max_tokens": fits + 1 }))).await.expect(429);
        // What would fit does fit, and gives back what it did not use.
        stage.key.post(path, with(wanted.clone(), json!({ "max_tokens": fits }))).await.expect(200);
        stage.world.app.gateway.settled().await;
    }
}

#[tokio::test]
async fn a_switch_stops_the_next_call_and_a_running_stream_finishes() {
    let mut stage = stage().await;
    stage.upstream.push(Reply::steps(vec![Step::Text("a".into()), PAUSE, Step::Text("b".into())]));
    let body = with(ask("open/able"), json!({ "stream": true })).to_string();
    let running = stage.key.open("POST", OPENAI, Body::from(body)).await;
    put_policy(&mut stage, "model_access", json!({ "modelApi": { "enabled": false } })).await;
    assert_eq!(code(&stage.key.post(OPENAI, ask("open/able")).await), (403, "MODEL_API_DISABLED".into()));
    let rest = running.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&rest).ends_with("data: [DONE]\n\n"));
}
