use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use secrecy::SecretString;
use serde_json::json;
use tale_core::net::HostPolicy;
use tale_models::wire::{
    ApiFormat, ChatMessage, ChatRequest, Effort, FinishReason, ModelError, ModelErrorCode, ModelFacts, ReasoningBlock,
    StreamEvent, Target, ToolCall, ToolChoice, ToolSpec, WireClient, WireDialect, WireLimits,
};
use tale_testkit::upstream::{FakeUpstream, Reply, Step};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-test-0123456789";

fn client(limits: WireLimits) -> WireClient {
    WireClient::new(HostPolicy::PrivateAllowed, None, limits).unwrap()
}

fn target(upstream: &FakeUpstream, format: ApiFormat) -> Target {
    let base = match format {
        ApiFormat::OpenAi => upstream.openai_base(),
        ApiFormat::Anthropic => upstream.anthropic_base(),
    };
    Target {
        format,
        dialect: WireDialect::Classic,
        base: base.parse().unwrap(),
        secret: Some(SecretString::from(KEY)),
        demo: false,
    }
}

fn facts() -> ModelFacts {
    ModelFacts { id: "fake-chat".into(), max_output_tokens: Some(8_000), reasoning: true, ..ModelFacts::default() }
}

fn question() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage::user("Where is it?")],
        tools: vec![ToolSpec {
            name: "rag_search".into(),
            description: "Searches.".into(),
            parameters: Arc::new(json!({ "type": "object" })),
        }],
        ..ChatRequest::default()
    }
}

async fn ask(client: &WireClient, target: &Target, request: &ChatRequest) -> (Vec<StreamEvent>, Option<ModelError>) {
    ask_as(client, target, &facts(), request).await
}

async fn ask_as(
    client: &WireClient,
    target: &Target,
    facts: &ModelFacts,
    request: &ChatRequest,
) -> (Vec<StreamEvent>, Option<ModelError>) {
    let mut stream = match client.chat(target, facts, request, CancellationToken::new()).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

fn text(events: &[StreamEvent]) -> String {
    events
        .iter()
        .filter_map(|event| if let StreamEvent::Text(text) = event { Some(text.as_str()) } else { None })
        .collect()
}

fn calls(events: &[StreamEvent]) -> Vec<ToolCall> {
    events
        .iter()
        .filter_map(|event| if let StreamEvent::ToolCall(call) = event { Some(call.clone()) } else { None })
        .collect()
}

const FORMATS: [ApiFormat; 2] = [ApiFormat::OpenAi, ApiFormat::Anthropic];

#[tokio::test]
async fn both_formats_stream_text_usage_and_the_end() {
    let upstream = FakeUpstream::start().await;
    let client = client(WireLimits::default());
    for format in FORMATS {
        upstream.push(Reply::text("Grüße aus 東京 🦀 und Ende.").in_pieces_of(1));
        let (events, error) = ask(&client, &target(&upstream, format), &question()).await;
        assert_eq!(error, None, "{format:?}");
        assert_eq!(text(&events), "Grüße aus 東京 🦀 und Ende.");
        assert!(
            matches!(events.iter().rev().find(|e| matches!(e, StreamEvent::Usage(_))), Some(StreamEvent::Usage(usage)) if usage.input_tokens == 11)
        );
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::Stop)));
    }
    let requests = upstream.chat_requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].key.as_deref(), Some("Bearer sk-test-0123456789"));
    assert_eq!(requests[1].path, "/v1/messages");
    assert_eq!(requests[1].key.as_deref(), Some(KEY));
    assert_eq!(requests[1].headers["anthropic-version"], "2023-06-01");
    assert_eq!(requests[1].tool_names(), ["rag_search"]);
}

#[tokio::test]
async fn a_tool_loop_goes_around_in_both_formats() {
    let upstream = FakeUpstream::start().await;
    let client = client(WireLimits::default());
    for format in FORMATS {
        upstream.push(Reply::steps(vec![
            Step::Reasoning("I should look".into()),
            Step::Signature("sig-1".into()),
            Step::Text("One moment.".into()),
            Step::ToolCall {
                id: "c1".into(),
                name: "rag_search".into(),
                arguments: json!({ "query": "it" }).to_string(),
                pieces: 4,
            },
            Step::ToolCall { id: "c2".into(), name: "rag_search".into(), arguments: "{not json".into(), pieces: 2 },
        ]));
        let mut request = ChatRequest { effort: Some(Effort::Low), ..question() };
        let (events, error) = ask(&client, &target(&upstream, format), &request).await;
        assert_eq!(error, None);
        assert_eq!(
            calls(&events),
            [ToolCall::new("c1", "rag_search", "{\"query\":\"it\"}"), ToolCall::new("c2", "rag_search", "{not json")]
        );
        assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::ToolCalls)));
        let reasoning: Vec<ReasoningBlock> = events
            .iter()
            .filter_map(|e| if let StreamEvent::ReasoningBlock(block) = e { Some(block.clone()) } else { None })
            .collect();
        request.messages.push(ChatMessage::Assistant { text: text(&events), reasoning, tool_calls: calls(&events) });
        for id in ["c1", "c2"] {
            request.messages.push(ChatMessage::ToolResult {
                id: id.into(),
                name: "rag_search".into(),
                content: "row".into(),
                is_error: id == "c2",
            });
        }
        request.tool_choice = ToolChoice::None;
        upstream.push(Reply::text("Here."));
        let (events, error) = ask(&client, &target(&upstream, format), &request).await;
        assert_eq!((text(&events).as_str(), error), ("Here.", None));
    }
    let requests = upstream.chat_requests();
    assert_eq!(requests[0].body["reasoning_effort"], "low");
    assert!(requests[1].body.get("tools").is_none());
    assert_eq!(requests[1].body["messages"][1]["reasoning_content"], "I should look");
    assert_eq!(requests[2].body["thinking"]["budget_tokens"], 2_048);
    assert_eq!(
        requests[3].body["messages"][1]["content"][0],
        json!({ "type": "thinking", "thinking": "I should look", "signature": "sig-1" })
    );
    assert_eq!(requests[3].body["tool_choice"]["type"], "none");
}

#[tokio::test]
async fn refusals_carry_code_status_and_the_vendors_words_without_the_key() {
    let upstream = FakeUpstream::start().await;
    let client = client(WireLimits::default());
    let cases = [
        (
            Reply::refusal(401, "invalid_api_key", &format!("Incorrect API key provided: {KEY}.")),
            ModelErrorCode::AuthError,
            Some(401),
        ),
        (Reply::refusal(402, "payment_required", "Pay first"), ModelErrorCode::CreditExhausted, Some(402)),
        (Reply::refusal(404, "model_not_found", "no such model"), ModelErrorCode::ModelNotFound, Some(404)),
        (
            Reply::refusal(429, "rate_limit_exceeded", "slow down").header("retry-after", "3"),
            ModelErrorCode::RateLimited,
            Some(429),
        ),
        (Reply::refusal(500, "server_error", "oops"), ModelErrorCode::ProviderError, Some(500)),
        (Reply::html(200), ModelErrorCode::Generic, Some(200)),
        (
            Reply::whole(302, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            ModelErrorCode::Generic,
            Some(302),
        ),
        (
            Reply::status(200, &json!({ "error": { "message": "no credit", "code": "insufficient_quota" } })),
            ModelErrorCode::CreditExhausted,
            None,
        ),
        (
            Reply::text("so far ").then(Step::Error { code: "overloaded_error".into(), message: "Overloaded".into() }),
            ModelErrorCode::ProviderError,
            None,
        ),
        (Reply::text("so far ").then(Step::Drop), ModelErrorCode::ProviderError, None),
        (Reply::text("so far ").then(Step::Raw(b"data: {oops\n\n".to_vec())), ModelErrorCode::ProviderError, None),
    ];
    for format in FORMATS {
        for (reply, code, status) in &cases {
            upstream.push(reply.clone());
            let (events, error) = ask(&client, &target(&upstream, format), &question()).await;
            let error = error.unwrap_or_else(|| panic!("{format:?} {reply:?} gave {events:?}"));
            assert_eq!((error.code, error.status), (*code, *status), "{format:?} {reply:?}: {error}");
            assert!(!error.message.contains(KEY) && !error.message.is_empty());
            assert!(!events.iter().any(|event| matches!(event, StreamEvent::Finish(_))));
            if *status == Some(429) {
                assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
            }
        }
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_the_provider() {
    let upstream = FakeUpstream::start().await;
    let client = client(WireLimits::default());
    for (round, format) in FORMATS.into_iter().enumerate() {
        upstream.push(Reply::text("first ").then(Step::Hang));
        let cancel = CancellationToken::new();
        let mut stream = client.chat(&target(&upstream, format), &facts(), &question(), cancel.clone()).await.unwrap();
        while !matches!(stream.next().await.unwrap().unwrap(), StreamEvent::Text(_)) {}
        cancel.cancel();
        assert!(stream.next().await.is_none());
        upstream.wait_for_disconnects(round + 1).await;
    }
    // Before the first byte, and by dropping the stream.
    upstream.push(Reply::hang());
    let cancel = CancellationToken::new();
    let (target, question) = (target(&upstream, ApiFormat::OpenAi), question());
    let held = facts();
    let started = client.chat(&target, &held, &question, cancel.clone());
    let cancelled = async {
        while upstream.open_answers() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (stream, ()) = tokio::join!(started, cancelled);
    assert!(stream.unwrap().next().await.is_none());
    upstream.wait_for_disconnects(3).await;
    upstream.push(Reply::never_stops("again "));
    let mut stream = client.chat(&target, &held, &question, CancellationToken::new()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    upstream.wait_for_disconnects(4).await;
}

#[tokio::test]
async fn a_silent_provider_and_one_that_never_stops_are_given_up() {
    let silent = FakeUpstream::start().await;
    let short = client(WireLimits { idle: Duration::from_millis(50), ..WireLimits::default() });
    // On a busy machine the limit may pass before the request has left at all.
    while silent.chat_requests().is_empty() {
        silent.push(Reply::hang());
        let (_, error) = ask(&short, &target(&silent, ApiFormat::OpenAi), &question()).await;
        assert_eq!(error.unwrap().code, ModelErrorCode::ProviderError);
    }
    silent.wait_for_disconnects(1).await;
    let upstream = FakeUpstream::start().await;
    let small = client(WireLimits { stream_bytes: 50_000, ..WireLimits::default() });
    for format in FORMATS {
        upstream.push(Reply::never_stops("again "));
        let (events, error) = ask(&small, &target(&upstream, format), &question()).await;
        assert!(!events.is_empty());
        assert!(error.unwrap().message.contains("broken off"));
    }
    upstream.wait_for_disconnects(2).await;
}

#[tokio::test]
async fn private_hosts_are_refused_without_the_flag_and_the_demo_only_at_its_exact_address() {
    let upstream = FakeUpstream::start().await;
    let demo = upstream.openai_base().parse().unwrap();
    let closed = WireClient::new(HostPolicy::PublicOnly, Some(demo), WireLimits::default()).unwrap();
    let mut target = target(&upstream, ApiFormat::OpenAi);
    let (_, error) = ask(&closed, &target, &question()).await;
    let error = error.unwrap();
    assert_eq!(error.code, ModelErrorCode::ProviderUnreachable);
    assert!(error.message.contains("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS"), "{}", error.message);
    target.demo = true;
    assert_eq!(ask(&closed, &target, &question()).await.1, None);
    target.base = "http://127.0.0.1:9/v1".parse().unwrap();
    assert_eq!(ask(&closed, &target, &question()).await.1.unwrap().code, ModelErrorCode::ProviderUnreachable);
    // A name is judged by its addresses when the request is made.
    target.demo = false;
    target.base = "https://localhost.localdomain:9/v1".parse().unwrap();
    assert_eq!(ask(&closed, &target, &question()).await.1.unwrap().code, ModelErrorCode::ProviderUnreachable);
}

#[tokio::test]
async fn nobody_listening_is_said_as_such() {
    let client = client(WireLimits::default());
    let target = Target {
        format: ApiFormat::OpenAi,
        dialect: WireDialect::Classic,
        base: "http://127.0.0.1:9/v1".parse().unwrap(),
        secret: None,
        demo: false,
    };
    let (_, error) = ask(&client, &target, &question()).await;
    let error = error.unwrap();
    assert_eq!(error.code, ModelErrorCode::ProviderUnreachable);
    assert!(error.message.starts_with("Could not connect to the provider: "), "{}", error.message);
    assert!(!error.message.contains("127.0.0.1"), "{}", error.message);
}

#[tokio::test]
async fn a_server_without_stream_options_is_asked_again_without_them() {
    let upstream = FakeUpstream::start().await;
    upstream.push(Reply::status(
        422,
        &json!({ "detail": [{ "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted" }] }),
    ));
    let (events, error) = ask(&client(WireLimits::default()), &target(&upstream, ApiFormat::OpenAi), &question()).await;
    assert_eq!((text(&events).as_str(), error), ("Hello from the fake model.", None));
    assert!(upstream.chat_requests()[1].body.get("stream_options").is_none());
}

#[tokio::test]
async fn the_list_of_models_is_read() {
    let upstream = FakeUpstream::start().await;
    let models = client(WireLimits::default()).list_models(&target(&upstream, ApiFormat::OpenAi), None).await.unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["fake-chat", "fake-embedding"]);
}
