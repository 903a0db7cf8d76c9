//! The gateway's interfaces that the model endpoints do not have: responses, counted prompts, Anthropic's list.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tale_testkit::upstream::{Reply, Step};
use uuid::Uuid;

use crate::agents::with_models;
use crate::llm_gateway::admin;
use crate::roles::{Browser, Deployment, PATIENCE, PAUSE, Process, client};

const MODELS: [&str; 3] = ["open/able", "items/able", "claude/able"];

async fn post(gateway: &Process, key: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let answer = client().post(format!("{}/{path}", gateway.address())).bearer_auth(key).json(body).send();
    let answer = answer.await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

fn ask(model: &str, stream: bool) -> Value {
    json!({ "model": model, "input": "Go", "max_output_tokens": 100, "stream": stream, "tools": [{ "type": "function", "name": "f" }] })
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_reach_every_model_streamed_or_not_at_the_same_cost() {
    let deployment = Deployment::new().await;
    let api = deployment.backend("api", "api", &[]);
    let ada = Browser::owner(&api).await;
    with_models(&ada, &api, &deployment, |_| None).await;
    let gateway = deployment.gateway("gateway", &[]);
    let models: Vec<_> =
        ["open", "items", "claude"].map(|provider| json!({ "provider": provider, "model": "able" })).into();
    let path = format!("organizations/{}/keys/{}", ada.org, Uuid::now_v7());
    let order = json!({ "models": models, "capCents": 10_000, "agent": "coder" });
    let (status, minted) = admin(&gateway, Method::PUT, &path, Some(order)).await;
    assert_eq!(status, 200, "{minted} {}", gateway.log());
    let key = minted["key"].as_str().unwrap();

    let steps = vec![
        Step::Reasoning("hm".into()),
        Step::Text("Grüße 🦀".into()),
        Step::ToolCall { id: "call_a".into(), name: "f".into(), arguments: "{\"q\":\"ä\"}".into(), pieces: 99 },
        Step::Usage { input: 20, output: 10 },
    ];
    deployment.upstream.otherwise(Reply::steps(steps).in_pieces_of(1));
    for model in MODELS {
        for path in ["openai/v1/responses", "openai/responses"] {
            let (status, whole) = post(&gateway, key, path, &ask(model, false)).await;
            assert_eq!(status, 200, "{whole}");
            let whole = parsed(&whole);
            let kinds: Vec<&str> =
                whole["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
            assert_eq!((kinds, &whole["model"]), (vec!["reasoning", "message", "function_call"], &json!(model)));
            assert_eq!(whole["output"][1]["content"][0]["text"], "Grüße 🦀");
            assert_eq!(whole["output"][2]["arguments"], "{\"q\":\"ä\"}");
            assert_eq!((&whole["status"], &whole["usage"]["total_tokens"]), (&json!("completed"), &json!(30)));
        }
        let (_, stream) = post(&gateway, key, "openai/v1/responses", &ask(model, true)).await;
        assert!(
            stream.starts_with("event: response.created\n") && stream.contains("event: response.output_text.delta"),
            "{stream}"
        );
        let last = parsed(stream.trim_end().rsplit("data: ").next().unwrap());
        assert_eq!((&last["type"], &last["response"]["model"]), (&json!("response.completed"), &json!(model)));
    }
    for request in deployment.upstream.chat_requests().iter().filter(|request| request.path == "/v1/responses") {
        assert_eq!((&request.body["model"], &request.body["store"]), (&json!("able"), &json!(false)));
    }

    // A stream that breaks ends with its failure.
    for model in MODELS {
        deployment.upstream.push(Reply::steps(vec![
            Step::Text("abcdefgh".into()),
            Step::Error { code: "overloaded".into(), message: "Overloaded".into() },
        ]));
        let (_, stream) = post(&gateway, key, "openai/v1/responses", &ask(model, true)).await;
        let last = parsed(stream.trim_end().rsplit("data: ").next().unwrap());
        assert_eq!(
            (&last["type"], &last["response"]["error"]["code"]),
            (&json!("response.failed"), &json!("MODEL_API_UPSTREAM_ERROR"))
        );
        assert!(last["response"]["error"]["message"].as_str().unwrap().contains("Overloaded"), "{last}");
    }

    // Counting asks for nothing that costs.
    let asked = deployment.upstream.chat_requests().len();
    let prompt = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "How many tokens are these?" }] });
    let count = async |model: &str| {
        parsed(&post(&gateway, key, "anthropic/v1/messages/count_tokens?beta=true", &prompt(model)).await.1)
    };
    assert_eq!(count("claude/able").await, json!({ "input_tokens": 42 }));
    assert!(count("open/able").await["input_tokens"].as_u64().unwrap() > 10);
    assert_eq!(deployment.upstream.chat_requests().len(), asked);

    // What is refused, in the shape of the interface.
    for (path, body, status, code) in [
        (
            "openai/v1/responses",
            json!({ "model": "open/able", "input": "Go", "previous_response_id": "resp_1" }),
            400,
            "INVALID_BODY",
        ),
        ("openai/v1/responses", json!({ "model": "open/other", "input": "Go" }), 403, "MODEL_API_MODEL_FORBIDDEN"),
        (
            "openai/v1/responses",
            json!({ "model": "open/able", "input": "Go", "tools": [{ "type": "code_interpreter" }] }),
            400,
            "MODEL_API_VENDOR_TOOL_UNSUPPORTED",
        ),
        (
            "openai/v1/chat/completions",
            json!({ "model": "items/able", "messages": [] }),
            404,
            "MODEL_API_MODEL_UNKNOWN",
        ),
        ("anthropic/v1/messages/count_tokens", prompt("open/other"), 403, "MODEL_API_MODEL_FORBIDDEN"),
    ] {
        let (got, text) = post(&gateway, key, path, &body).await;
        assert_eq!((got.as_u16(), &parsed(&text)["error"]["code"]), (status, &json!(code)), "{text}");
    }
    for path in ["openai/v1/responses", "anthropic/v1/messages/count_tokens"] {
        assert_eq!(post(&gateway, "tale_gw_nobody", path, &prompt("open/able")).await.0, 401);
    }
    // The model endpoints do not have them (MOD-105).
    assert_eq!(post(&api, &ada.key, "api/v1/openai/responses", &ask("open/able", false)).await.0, 404);
    assert_eq!(post(&api, &ada.key, "api/v1/anthropic/v1/messages/count_tokens", &prompt("claude/able")).await.0, 404);

    // Both lists name the models of the key.
    let list = async |path: &str| {
        let answer =
            client().get(format!("{}/{path}", gateway.address())).header("x-api-key", key).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    let ids = |list: &Value| -> Vec<String> {
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    let (openai, anthropic) = (list("openai/v1/models").await, list("anthropic/v1/models").await);
    assert_eq!((ids(&openai), ids(&anthropic)), (MODELS.map(str::to_owned).into(), MODELS.map(str::to_owned).into()));
    assert_eq!((&anthropic["data"][0]["type"], &anthropic["has_more"]), (&json!("model"), &json!(false)));

    // Nine calls that are known, three that broke off, and nothing else.
    let booked = async {
        loop {
            let state = admin(&gateway, Method::GET, &path, None).await.1;
            if state["running"] == 0 && state["spentRequests"] == 12 {
                break state;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let state = tokio::time::timeout(PATIENCE, booked).await.expect("the calls are booked");
    assert!(state["spentTokens"].as_u64().unwrap() >= 9 * 30, "{state}");
}
