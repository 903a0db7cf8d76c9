//! The Responses wire (MOD-75) and extra fields of a body (MOD-76), against the fake provider.

use std::sync::Arc;

use futures::StreamExt;
use secrecy::SecretString;
use serde_json::json;
use tale_core::net::HostPolicy;
use tale_core::problem::Code;
use tale_governance::policies::ModelRules;
use tale_models::wire::{
    ChatMessage, ChatRequest, Effort, FinishReason, ModelError, ModelErrorCode, ModelFacts, StreamEvent, Target,
    ToolApi, ToolCall, ToolSpec, WireClient, WireDialect, WireLimits,
};
use tale_models::{ApiFormat, Capabilities, ExtraBody, ModelSpec, NewProvider, ProviderChange};
use tale_testkit::upstream::{FakeUpstream, Reply, Step};
use tokio_util::sync::CancellationToken;

use crate::support::{Room, chat_model, new_provider};

fn client() -> WireClient {
    WireClient::new(HostPolicy::PrivateAllowed, None, WireLimits::default()).unwrap()
}

fn target(upstream: &FakeUpstream) -> Target {
    Target {
        format: ApiFormat::OpenAi,
        dialect: WireDialect::OpenAiModern,
        base: upstream.openai_base().parse().unwrap(),
        secret: Some(SecretString::from("sk-test-0123456789")),
        demo: false,
    }
}

fn facts() -> ModelFacts {
    ModelFacts { id: "gpt-r".into(), reasoning: true, tool_api: ToolApi::Responses, ..ModelFacts::default() }
}

fn question() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage::user("Where is it?")],
        tools: vec![ToolSpec {
            name: "rag_search".into(),
            description: "Searches.".into(),
            parameters: Arc::new(json!({ "type": "object" })),
        }],
        effort: Some(Effort::Low),
        ..ChatRequest::default()
    }
}

async fn ask(upstream: &FakeUpstream, request: &ChatRequest) -> Result<Vec<StreamEvent>, ModelError> {
    let mut stream = client().chat(&target(upstream), &facts(), request, CancellationToken::new()).await?;
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        events.push(item?);
    }
    Ok(events)
}

fn text(events: &[StreamEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn a_tool_loop_goes_around_with_its_sealed_reasoning() {
    let upstream = FakeUpstream::start().await;
    upstream.push(
        Reply::steps(vec![
            Step::Reasoning("I should ".into()),
            Step::Reasoning("look".into()),
            Step::Signature("sealed".into()),
            Step::Text("Ein Moment für 東京.".into()),
            Step::ToolCall {
                id: "c1".into(),
                name: "rag_search".into(),
                arguments: "{\"query\":\"it\"}".into(),
                pieces: 4,
            },
            Step::ToolCall { id: "c2".into(), name: "rag_search".into(), arguments: String::new(), pieces: 1 },
        ])
        .in_pieces_of(3),
    );
    let mut request = question();
    let events = ask(&upstream, &request).await.unwrap();
    assert_eq!(text(&events), "Ein Moment für 東京.");
    let calls = [ToolCall::new("c1", "rag_search", "{\"query\":\"it\"}"), ToolCall::new("c2", "rag_search", "{}")];
    let made: Vec<ToolCall> = events
        .iter()
        .filter_map(|event| if let StreamEvent::ToolCall(call) = event { Some(call.clone()) } else { None })
        .collect();
    assert_eq!(made, calls);
    assert!(events.iter().any(|event| matches!(event, StreamEvent::Usage(usage) if usage.input_tokens == 11)));
    assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::ToolCalls)));
    let reasoning = events
        .iter()
        .filter_map(|event| if let StreamEvent::ReasoningBlock(block) = event { Some(block.clone()) } else { None })
        .collect();
    request.messages.push(ChatMessage::Assistant { text: text(&events), reasoning, tool_calls: made });
    for id in ["c1", "c2"] {
        request.messages.push(ChatMessage::ToolResult {
            id: id.into(),
            name: "rag_search".into(),
            content: "row".into(),
            is_error: false,
        });
    }
    upstream.push(Reply::text("Here."));
    let events = ask(&upstream, &request).await.unwrap();
    assert_eq!(text(&events), "Here.");
    assert_eq!(events.last(), Some(&StreamEvent::Finish(FinishReason::Stop)));

    let requests = upstream.chat_requests();
    assert!(requests.iter().all(|request| request.path == "/v1/responses"));
    assert_eq!(requests[0].key.as_deref(), Some("Bearer sk-test-0123456789"));
    assert_eq!(requests[0].body["reasoning"]["effort"], "low");
    assert_eq!(requests[0].tool_names(), ["rag_search"]);
    assert_eq!(
        requests[1].body["input"][1],
        json!({ "type": "reasoning", "id": "rs_fake", "summary": [{ "type": "summary_text", "text": "I should look" }], "encrypted_content": "sealed" })
    );
    assert!(requests[1].ends_with_tool_results());
}

#[tokio::test]
async fn ends_refusals_and_errors_within_the_stream_are_told_apart() {
    let upstream = FakeUpstream::start().await;
    upstream.push(Reply::text("Cut").then(Step::Finish("length")).then(Step::Usage { input: 3, output: 1 }));
    assert_eq!(ask(&upstream, &question()).await.unwrap().last(), Some(&StreamEvent::Finish(FinishReason::Length)));
    upstream.push(Reply::text("No").then(Step::Finish("content_filter")).then(Step::Usage { input: 3, output: 1 }));
    assert_eq!(
        ask(&upstream, &question()).await.unwrap().last(),
        Some(&StreamEvent::Finish(FinishReason::ContentFilter))
    );
    upstream.push(Reply::refusal(429, "insufficient_quota", "You exceeded your quota, sk-test-0123456789"));
    let error = ask(&upstream, &question()).await.unwrap_err();
    assert_eq!((error.code, error.status), (ModelErrorCode::CreditExhausted, Some(429)));
    assert!(!error.message.contains("sk-test"));
    let broken = Step::Error { code: "server_error".into(), message: "The model broke.".into() };
    upstream.push(Reply::text("Half ").then(broken));
    let error = ask(&upstream, &question()).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ModelErrorCode::ProviderError, "The model broke."));
    upstream.push(Reply::text("Half ").then(Step::Drop));
    assert_eq!(ask(&upstream, &question()).await.unwrap_err().code, ModelErrorCode::ProviderError);
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_the_provider() {
    let upstream = FakeUpstream::start().await;
    upstream.push(Reply::never_stops("on and "));
    let cancel = CancellationToken::new();
    let mut stream = client().chat(&target(&upstream), &facts(), &question(), cancel.clone()).await.unwrap();
    assert!(stream.next().await.is_some());
    cancel.cancel();
    assert!(stream.next().await.is_none());
    upstream.wait_for_disconnects(1).await;
}

#[tokio::test]
async fn an_account_without_readable_reasoning_still_gets_its_answer() {
    let upstream = FakeUpstream::start().await;
    upstream.push(Reply::refusal(
        400,
        "unsupported_value",
        "Your organization must be verified to generate reasoning summaries.",
    ));
    upstream.push(Reply::text("Here."));
    assert_eq!(text(&ask(&upstream, &question()).await.unwrap()), "Here.");
    let requests = upstream.chat_requests();
    assert_eq!(requests[0].body["reasoning"]["summary"], "auto");
    assert_eq!(requests[1].body["reasoning"], json!({ "effort": "low" }));
}

fn extra(value: serde_json::Value) -> ExtraBody {
    ExtraBody::new(value.as_object().unwrap().clone())
}

#[tokio::test]
async fn facts_and_extra_fields_of_a_definition_reach_the_wire_and_the_picker() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let reasoning = Capabilities { tools: true, vision: false, reasoning: true };
    let models = vec![
        ModelSpec { tool_api: ToolApi::Responses, capabilities: reasoning, ..chat_model("astra") },
        ModelSpec {
            tools_require_no_reasoning: true,
            capabilities: reasoning,
            extra_body: extra(json!({ "service_tier": "priority" })),
            ..chat_model("luna")
        },
    ];
    let new = NewProvider {
        extra_body: extra(json!({ "service_tier": "flex", "provider": { "order": ["eu"] } })),
        ..new_provider("own", &upstream.openai_base(), models)
    };
    room.models.create_provider(room.org, &room.actor, new).await.unwrap();

    let offered = room.models.chat_models(room.org, &ModelRules::none()).await.unwrap();
    let reasons = |id: &str| offered.iter().find(|entry| entry.id == id).unwrap().capabilities.reasoning;
    assert!(reasons("astra"));
    assert!(!reasons("luna"), "no effort levels where tools need reasoning off");

    for id in ["astra", "luna"] {
        let model = room.models.resolve_chat(room.org, &ModelRules::none(), id, None).await.unwrap();
        let mut stream = room.models.stream(&model, question(), CancellationToken::new()).await.unwrap();
        while let Some(event) = stream.next().await {
            event.unwrap();
        }
    }
    let requests = upstream.chat_requests();
    assert_eq!(requests[0].path, "/v1/responses");
    assert_eq!(requests[0].body["service_tier"], "flex");
    assert_eq!(requests[1].path, "/v1/chat/completions");
    assert_eq!(requests[1].body["reasoning_effort"], "none");
    assert_eq!(requests[1].body["service_tier"], "priority");
    assert_eq!(requests[1].body["provider"], json!({ "order": ["eu"] }));
}

#[tokio::test]
async fn a_field_of_the_request_itself_is_refused_by_name_and_nothing_is_saved() {
    let room = Room::new().await;
    let new = NewProvider {
        extra_body: extra(json!({ "temperature": 2 })),
        ..new_provider("own", "https://llm.example.com/v1", vec![chat_model("m")])
    };
    let problem = room.models.create_provider(room.org, &room.actor, new).await.unwrap_err();
    assert_eq!(problem.code, Code::ExtraBodyKeyForbidden);
    assert_eq!(problem.data.unwrap()["key"], "temperature");

    let new = new_provider("own", "https://llm.example.com/v1", vec![chat_model("m")]);
    let held = room.models.create_provider(room.org, &room.actor, new).await.unwrap();
    let change = ProviderChange {
        version: held.provider.version,
        models: Some(vec![ModelSpec { extra_body: extra(json!({ "messages": [] })), ..chat_model("m") }]),
        ..ProviderChange::default()
    };
    let problem = room.models.change_provider(room.org, &room.actor, "own", change).await.unwrap_err();
    assert_eq!(problem.code, Code::ExtraBodyKeyForbidden);
    let change = ProviderChange {
        version: held.provider.version,
        extra_body: Some(extra(json!({ "service_tier": "flex" }))),
        ..ProviderChange::default()
    };
    let after = room.models.change_provider(room.org, &room.actor, "own", change).await.unwrap();
    assert_eq!(after.provider.extra_body, extra(json!({ "service_tier": "flex" })));
    assert_eq!(room.models.provider(room.org, "own").await.unwrap().provider.extra_body, after.provider.extra_body);
}
