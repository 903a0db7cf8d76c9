//! A service that writes down what it is asked, for what the product sends outside.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tokio_util::sync::CancellationToken;

/// Most bytes kept of a body.
const MAX_BODY: usize = 4 << 20;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, if there was one.
    pub query: Option<String>,
    /// Every header.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Recorded {
    /// A header as text; empty when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Default)]
struct Script {
    requests: Vec<Recorded>,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The running service. It stops when dropped.
pub struct Recorder {
    address: SocketAddr,
    held: Arc<Mutex<Script>>,
    stop: CancellationToken,
}

impl Recorder {
    /// Starts on a free loopback port and answers 200 until told otherwise.
    ///
    /// # Panics
    /// When no loopback port can be opened.
    #[expect(clippy::expect_used, reason = "a test without its service cannot go on")]
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let address = listener.local_addr().expect("the port's address");
        let held = Arc::new(Mutex::new(Script { status: 200, ..Script::default() }));
        let app = Router::new().fallback(record).with_state(Arc::clone(&held));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                _ = async { axum::serve(listener, app).await } => {}
            }
        });
        Self { address, held, stop }
    }

    /// Host and port.
    #[must_use]
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// What it answers from now on, with an empty body.
    pub fn answer(&self, status: u16, headers: &[(&str, &str)]) {
        self.answer_with(status, headers, "");
    }

    /// What it answers from now on.
    pub fn answer_with(&self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut held = lock(&self.held);
        held.status = status;
        held.headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        held.body = body.as_bytes().to_vec();
    }

    /// Everything that was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.held).requests.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn lock(held: &Mutex<Script>) -> MutexGuard<'_, Script> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn record(State(held): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, MAX_BODY).await.unwrap_or_default().to_vec();
    let mut held = lock(&held);
    held.requests.push(Recorded {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        body,
    });
    let mut response = Response::builder().status(StatusCode::from_u16(held.status).unwrap_or(StatusCode::OK));
    for (name, value) in &held.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(held.body.clone())).unwrap_or_default()
}
