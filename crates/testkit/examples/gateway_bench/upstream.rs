//! The provider: OpenAI's chat completions, answered at once, in a process of its own.
//!
//! A stream has as many tokens as `tokens=N;` in its prompt says, 20 a second, each of them the time at
//! which it was written.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use serde_json::{Value, json};

/// Between two tokens of a stream.
const PACE: Duration = Duration::from_millis(50);

/// Nanoseconds of the clock that both processes read.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Serves until the process is killed; says its port first.
pub(crate) async fn serve() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| stream.set_nodelay(true).unwrap());
    let app = Router::new()
        .route("/v1/chat/completions", post(complete))
        .layer(axum::extract::DefaultBodyLimit::max(1 << 20));
    axum::serve(listener, app).await.unwrap();
}

fn usage() -> Value {
    json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12 })
}

fn event(delta: Value, finish: Option<&str>) -> Bytes {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
    Bytes::from(format!("data: {chunk}\n\n"))
}

async fn complete(body: Bytes) -> Response {
    let Some(tokens) = tokens_wanted(&body) else {
        let choice = json!({ "index": 0, "message": { "role": "assistant", "content": "Hello there." }, "finish_reason": "stop" });
        let answer = json!({ "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage() });
        return Response::builder()
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(answer.to_string()))
            .unwrap();
    };
    let stream = async_stream::stream! {
        yield Ok::<_, Infallible>(event(json!({ "role": "assistant", "content": "" }), None));
        let mut ticks = tokio::time::interval(PACE);
        for _ in 0..tokens {
            ticks.tick().await;
            yield Ok(event(json!({ "content": format!("t{} ", now()) }), None));
        }
        yield Ok(event(json!({}), Some("stop")));
        yield Ok(Bytes::from(format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage() }))));
    };
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(Body::from_stream(stream)).unwrap()
}

/// `None` for a call that is not streamed. Looks at the end of the body only, where the bench writes it.
fn tokens_wanted(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).unwrap();
    let (_, rest) = text.rsplit_once("tokens=")?;
    rest.split_once(';')?.0.parse().ok()
}
