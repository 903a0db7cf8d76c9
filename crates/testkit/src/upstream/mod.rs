//! A scripted model provider that speaks the real wires on a real socket: OpenAI chat
//! completions, responses, embeddings and transcriptions, Anthropic messages, and the list of models.
//!
//! A test queues [`Reply`]s (or answers by request with [`FakeUpstream::respond_with`]), points a
//! provider at [`FakeUpstream::openai_base`] or [`FakeUpstream::anthropic_base`], and reads what
//! arrived with [`FakeUpstream::requests`]. A client that hangs up in the middle of an answer is
//! counted: [`FakeUpstream::wait_for_disconnects`].

mod reply;
mod responses;
mod transcriptions;
mod vectors;
mod whole;
mod wire;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use reply::{Reply, Step};
pub use vectors::hash_vector;

use reply::Form;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// The `Authorization` or `x-api-key` header, as sent.
    pub key: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
    /// The JSON body; null for GET. Of a multipart body its fields, the file as `fileName`,
    /// `fileType` and `fileText`.
    pub body: Value,
}

impl ReceivedRequest {
    /// The text of the last user message, in any format.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        let last = self.conversation().and_then(|list| {
            list.iter()
                .rev()
                .filter(|message| message.get("role").and_then(Value::as_str) == Some("user"))
                .map(|message| text_of(&message["content"]))
                .find(|text| !text.is_empty())
        });
        last.unwrap_or_default()
    }

    /// Whether the conversation ends with tool results.
    #[must_use]
    pub fn ends_with_tool_results(&self) -> bool {
        let last = self.conversation().and_then(|list| list.last());
        last.is_some_and(|message| {
            message["type"] == "function_call_output"
                || message.get("role").and_then(Value::as_str) == Some("tool")
                || message["content"]
                    .as_array()
                    .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"))
        })
    }

    fn conversation(&self) -> Option<&Vec<Value>> {
        ["messages", "input"].iter().find_map(|key| self.body.get(*key).and_then(Value::as_array))
    }

    /// Names of the tools on offer, in any format.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let tools = self.body.get("tools").and_then(Value::as_array);
        let name = |tool: &Value| {
            tool.pointer("/function/name").or_else(|| tool.get("name")).and_then(Value::as_str).map(str::to_owned)
        };
        tools.map(|list| list.iter().filter_map(name).collect()).unwrap_or_default()
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

type Responder = dyn Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync;

struct Script {
    queue: VecDeque<Reply>,
    otherwise: Reply,
    responder: Option<Arc<Responder>>,
    embedding_queue: VecDeque<Reply>,
    embedding_width: usize,
    embedding_cap: Option<usize>,
    transcription_queue: VecDeque<Reply>,
    models: Vec<Value>,
    requests: Vec<ReceivedRequest>,
}

struct Shared {
    script: Mutex<Script>,
    disconnects: watch::Sender<usize>,
    open: AtomicUsize,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running server. It stops when dropped.
pub struct FakeUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

impl FakeUpstream {
    /// Starts on a free loopback port and answers every chat with `Hello from the fake model.`
    /// until told otherwise.
    ///
    /// # Panics
    /// When no loopback port can be opened.
    pub async fn start() -> Self {
        Self::on("127.0.0.1:0").await
    }

    /// Like [`FakeUpstream::start`] on a chosen address.
    ///
    /// # Panics
    /// When the address cannot be opened.
    #[expect(clippy::expect_used, reason = "a test without its upstream cannot go on")]
    pub async fn on(address: &str) -> Self {
        let listener = tokio::net::TcpListener::bind(address).await.expect("a loopback port");
        let address = listener.local_addr().expect("the port's address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Script {
                queue: VecDeque::new(),
                otherwise: Reply::text("Hello from the fake model."),
                responder: None,
                embedding_queue: VecDeque::new(),
                embedding_width: 8,
                embedding_cap: None,
                transcription_queue: VecDeque::new(),
                models: vec![
                    json!({ "id": "fake-chat", "object": "model" }),
                    json!({ "id": "fake-embedding", "object": "model", "type": "embedding" }),
                ],
                requests: Vec::new(),
            }),
            disconnects: watch::Sender::new(0),
            open: AtomicUsize::new(0),
        });
        let app = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/responses", post(responses_api))
            .route("/v1/messages", post(messages))
            .route("/v1/messages/count_tokens", post(count_tokens))
            .route("/v1/embeddings", post(embeddings))
            .route("/v1/audio/transcriptions", post(transcriptions::answer_recording))
            .route("/v1/models", get(models))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                _ = async { axum::serve(listener, app).await } => {}
            }
        });
        Self { address, shared, stop }
    }

    /// Base URL of an `openai` provider.
    #[must_use]
    pub fn openai_base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Base URL of an `anthropic` provider.
    #[must_use]
    pub fn anthropic_base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues the answer to the next chat call.
    pub fn push(&self, reply: Reply) {
        self.shared.script().queue.push_back(reply);
    }

    /// Sets the answer for when nothing is queued.
    pub fn otherwise(&self, reply: Reply) {
        self.shared.script().otherwise = reply;
    }

    /// Decides answers by request. Asked before the queue; `None` leaves it to the queue.
    pub fn respond_with(&self, responder: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static) {
        self.shared.script().responder = Some(Arc::new(responder));
    }

    /// Queues a refusal (or other raw reply) for the next embeddings call.
    pub fn push_embedding(&self, reply: Reply) {
        self.shared.script().embedding_queue.push_back(reply);
    }

    /// Queues the answer to the next recording. Without one, the text is `I heard <bytes> bytes.`
    pub fn push_transcription(&self, reply: Reply) {
        self.shared.script().transcription_queue.push_back(reply);
    }

    /// Sets the width of the vectors (8 at first).
    pub fn set_embedding_width(&self, width: usize) {
        self.shared.script().embedding_width = width;
    }

    /// Refuses embeddings calls with more than `cap` texts, naming the cap.
    pub fn set_embedding_cap(&self, cap: Option<usize>) {
        self.shared.script().embedding_cap = cap;
    }

    /// Sets the entries of `GET /v1/models`.
    pub fn set_models(&self, models: Vec<Value>) {
        self.shared.script().models = models;
    }

    /// Every request so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.script().requests.clone()
    }

    /// The chat requests so far, oldest first.
    #[must_use]
    pub fn chat_requests(&self) -> Vec<ReceivedRequest> {
        self.requests()
            .into_iter()
            .filter(|request| {
                ["/chat/completions", "/responses", "/messages"].iter().any(|path| request.path.ends_with(path))
            })
            .collect()
    }

    /// Answers being streamed or held open at this moment.
    #[must_use]
    pub fn open_answers(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// How many clients have hung up in the middle of an answer.
    #[must_use]
    pub fn disconnects(&self) -> usize {
        *self.shared.disconnects.borrow()
    }

    /// Waits until at least `count` clients have hung up in the middle of an answer.
    ///
    /// # Panics
    /// When that has not happened after a minute.
    pub async fn wait_for_disconnects(&self, count: usize) {
        let mut seen = self.shared.disconnects.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(60), seen.wait_for(|seen| *seen >= count)).await;
        assert!(matches!(waited, Ok(Ok(_))), "{} of {count} clients hung up within a minute", self.disconnects());
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Counts an answer as open, and as hung up on when it is dropped before its end.
struct Watched {
    shared: Arc<Shared>,
    complete: bool,
}

impl Watched {
    fn new(shared: Arc<Shared>) -> Self {
        shared.open.fetch_add(1, Ordering::SeqCst);
        Self { shared, complete: false }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::SeqCst);
        if !self.complete {
            self.shared.disconnects.send_modify(|count| *count += 1);
        }
    }
}

fn receive(shared: &Shared, uri: &Uri, headers: HeaderMap, body: &Bytes) -> ReceivedRequest {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let request = ReceivedRequest {
        path: uri.path().to_owned(),
        key: header("authorization").or_else(|| header("x-api-key")),
        body: serde_json::from_slice(body).unwrap_or_default(),
        headers,
    };
    shared.script().requests.push(request.clone());
    request
}

async fn chat_completions(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request = receive(&shared, &uri, headers, &body);
    chat(shared, &request, wire::Format::OpenAi).await
}

async fn responses_api(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request = receive(&shared, &uri, headers, &body);
    chat(shared, &request, wire::Format::Responses).await
}

async fn messages(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request = receive(&shared, &uri, headers, &body);
    chat(shared, &request, wire::Format::Anthropic).await
}

/// Every prompt has 42 tokens.
async fn count_tokens(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    receive(&shared, &uri, headers, &body);
    response(200, "application/json", Body::from(json!({ "input_tokens": 42 }).to_string()))
}

async fn chat(shared: Arc<Shared>, request: &ReceivedRequest, format: wire::Format) -> Response {
    let responder = shared.script().responder.clone();
    let decided = responder.and_then(|responder| responder(request));
    let reply = decided.unwrap_or_else(|| {
        let mut script = shared.script();
        let queued = script.queue.pop_front();
        queued.unwrap_or_else(|| script.otherwise.clone())
    });
    if request.body["stream"] != json!(true)
        && let Form::Stream { steps, .. } = &reply.form
        && let Some(document) = whole::document(format, &wire::with_ending(steps.clone()), &request.body["model"])
    {
        return response(200, "application/json", Body::from(document.to_string()));
    }
    answer(shared, reply, format).await
}

async fn answer(shared: Arc<Shared>, reply: Reply, format: wire::Format) -> Response {
    match reply.form {
        Form::Whole { status, content_type, headers, body } => {
            let mut response = response(status, &content_type, Body::from(body));
            for (name, value) in headers {
                if let (Ok(name), Ok(value)) = (name.parse::<header::HeaderName>(), value.parse()) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Form::Hang => {
            let _watched = Watched::new(shared);
            std::future::pending::<Response>().await
        }
        Form::Stream { steps, pace, split } => {
            let watched = Watched::new(shared);
            let body = async_stream::stream! {
                // Moved in whole: its drop is what notices a client that hung up.
                let mut watched = watched;
                let mut writer = wire::Writer::new(format);
                for step in wire::with_ending(steps) {
                    match step {
                        Step::Wait(pause) => tokio::time::sleep(pause).await,
                        Step::Hang => std::future::pending::<()>().await,
                        Step::Drop => {
                            watched.complete = true;
                            yield Err(std::io::Error::other("dropped on purpose"));
                            return;
                        }
                        Step::Forever(text) => loop {
                            if let Some(pace) = pace { tokio::time::sleep(pace).await } else { tokio::task::yield_now().await }
                            yield Ok(Bytes::from(writer.write(&Step::Text(text.clone()))));
                        },
                        step => {
                            if let (Some(pace), Step::Text(_) | Step::Reasoning(_)) = (pace, &step) {
                                tokio::time::sleep(pace).await;
                            }
                            let bytes = writer.write(&step);
                            for piece in bytes.chunks(split.unwrap_or(usize::MAX)) {
                                yield Ok(Bytes::copy_from_slice(piece));
                                if split.is_some() {
                                    tokio::task::yield_now().await;
                                }
                            }
                        }
                    }
                }
                watched.complete = true;
            };
            response(200, "text/event-stream", Body::from_stream(body))
        }
    }
}

fn response(status: u16, content_type: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = content_type.parse() {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

async fn embeddings(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request = receive(&shared, &uri, headers, &body);
    let (queued, width, cap) = {
        let mut script = shared.script();
        (script.embedding_queue.pop_front(), script.embedding_width, script.embedding_cap)
    };
    if let Some(reply) = queued {
        return answer(shared, reply, wire::Format::OpenAi).await;
    }
    let texts: Vec<String> = match &request.body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect(),
        _ => Vec::new(),
    };
    if let Some(cap) = cap.filter(|cap| texts.len() > *cap) {
        let refusal = json!({ "error": { "message": format!("batch size is invalid, it should not be larger than {cap}"), "type": "invalid_request_error" } });
        return response(400, "application/json", Body::from(refusal.to_string()));
    }
    let width = request.body["dimensions"].as_u64().and_then(|width| usize::try_from(width).ok()).unwrap_or(width);
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "object": "embedding", "index": index, "embedding": hash_vector(text, width) }))
        .collect();
    let answer = json!({ "object": "list", "data": data, "model": request.body["model"], "usage": { "prompt_tokens": texts.len(), "total_tokens": texts.len() } });
    response(200, "application/json", Body::from(answer.to_string()))
}

async fn models(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    receive(&shared, &uri, headers, &Bytes::new());
    let models = shared.script().models.clone();
    response(200, "application/json", Body::from(json!({ "object": "list", "data": models }).to_string()))
}
