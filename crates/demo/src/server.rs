//! The HTTP side: the OpenAI wire on a loopback socket.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, answer};

/// The demo model's id.
pub const MODEL_ID: &str = "tale-demo";
/// Largest request: a full history of a long chat.
const MAX_REQUEST_BYTES: usize = 32 << 20;
/// Pause between two words, so that the answer is seen to stream.
const WORD_PAUSE: Duration = Duration::from_millis(12);

/// Serves the demo model on `listener` until `cancel`. Bind to a loopback address: the demo asks
/// for no key. The base URL of the provider is `http://<address>/v1`.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, cancel: CancellationToken) -> io::Result<()> {
    let app = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat_completions))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES));
    axum::serve(listener, app).with_graceful_shutdown(cancel.cancelled_owned()).await
}

async fn models() -> Json<Value> {
    Json(
        json!({ "object": "list", "data": [{ "id": MODEL_ID, "object": "model", "created": 0, "owned_by": "tale", "context_window": 32_000 }] }),
    )
}

async fn chat_completions(Json(request): Json<Value>) -> Response {
    let reply = answer(&request);
    let input = request.get("messages").map_or(0, |messages| messages.to_string().split_whitespace().count());
    if request.get("stream").and_then(Value::as_bool) == Some(true) {
        let usage_wanted = request.pointer("/stream_options/include_usage").and_then(Value::as_bool) == Some(true);
        return streamed(reply, input, usage_wanted);
    }
    let output = size_of(&reply);
    let (message, reason) = match reply {
        Answer::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Answer::ToolCall { name, arguments } => (
            json!({ "role": "assistant", "content": null, "tool_calls": [tool_call(&name, &arguments)] }),
            "tool_calls",
        ),
    };
    Json(json!({
        "id": "chatcmpl-demo", "object": "chat.completion", "created": 0, "model": MODEL_ID,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": usage(input, output),
    }))
    .into_response()
}

fn tool_call(name: &str, arguments: &Value) -> Value {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let id = format!("call_demo_{}", CALLS.fetch_add(1, Ordering::Relaxed));
    json!({ "index": 0, "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
}

fn size_of(reply: &Answer) -> usize {
    match reply {
        Answer::Text(text) => text.split_whitespace().count(),
        Answer::ToolCall { arguments, .. } => arguments.to_string().split_whitespace().count(),
    }
}

/// The demo has no tokens; it counts words.
fn usage(input: usize, output: usize) -> Value {
    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
}

fn streamed(reply: Answer, input: usize, usage_wanted: bool) -> Response {
    let output = size_of(&reply);
    let stream = async_stream::stream! {
        yield line(&json!([{ "index": 0, "delta": { "role": "assistant", "content": "" }, "finish_reason": null }]), &Value::Null);
        let reason = match reply {
            Answer::Text(text) => {
                for word in text.split_inclusive(' ') {
                    tokio::time::sleep(WORD_PAUSE).await;
                    yield line(&json!([{ "index": 0, "delta": { "content": word }, "finish_reason": null }]), &Value::Null);
                }
                "stop"
            }
            Answer::ToolCall { name, arguments } => {
                yield line(&json!([{ "index": 0, "delta": { "tool_calls": [tool_call(&name, &arguments)] }, "finish_reason": null }]), &Value::Null);
                "tool_calls"
            }
        };
        yield line(&json!([{ "index": 0, "delta": {}, "finish_reason": reason }]), &Value::Null);
        if usage_wanted {
            yield line(&json!([]), &usage(input, output));
        }
        yield Ok::<Bytes, Infallible>(Bytes::from_static(b"data: [DONE]\n\n"));
    };
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

fn line(choices: &Value, usage: &Value) -> Result<Bytes, Infallible> {
    let chunk = json!({ "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": MODEL_ID, "choices": choices, "usage": usage });
    Ok(Bytes::from(format!("data: {chunk}\n\n")))
}
