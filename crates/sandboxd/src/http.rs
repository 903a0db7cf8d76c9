//! The HTTP server: who may ask, how much and how long, and what a refusal looks like. What the routes do
//! is in [`crate::routes`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;
use tale_sandbox_wire::daemon::{DaemonError, INCARNATION_HEADER, Refusal, TOKEN_HEADER};
use tale_sandbox_wire::exec::Env;
use tale_sandbox_wire::limits::{BODY_TIMEOUT, HEAD_TIMEOUT, MAX_BODY_BYTES};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::execs::Execs;
use crate::gate::{Gate, Reclaiming};
use crate::memory::Counters;
use crate::path::Root;
use crate::settings::Settings;
use crate::stage::Stage;
use crate::state::{State, Store};
use crate::{log, now_ms, routes};

/// Body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Connections at a time; more wait in the kernel.
const MAX_CONNECTIONS: usize = 256;
/// Connections of one address. Commands and neighbours can open some too; they must not take all.
const MAX_PER_ADDRESS: usize = 96;
/// Buffer of a connection, and so the longest head.
const CONNECTION_BUFFER: usize = 64 << 10;

/// Everything a request may need.
#[derive(Debug)]
pub struct App {
    /// What the daemon was told.
    pub settings: Settings,
    /// The commands.
    pub execs: Arc<Execs>,
    /// The workspace.
    pub root: Arc<Root>,
    /// Files that are being put into it.
    pub stage: Stage,
    /// The session's memory, where it is counted.
    pub counters: Option<Counters>,
    gate: Mutex<Gate>,
    env: Mutex<Env>,
    store: Mutex<Store>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(settings: Settings, execs: Arc<Execs>, root: Arc<Root>, store: Store, state: State) -> Self {
        Self {
            settings,
            execs,
            stage: Stage::new(Arc::clone(&root)),
            root,
            counters: Counters::find(),
            gate: Mutex::new(Gate::new(state.held)),
            env: Mutex::new(state.env),
            store: Mutex::new(store),
        }
    }

    /// What holds the session.
    pub fn gate(&self) -> MutexGuard<'_, Gate> {
        lock(&self.gate)
    }

    /// The session's environment.
    pub fn env(&self) -> MutexGuard<'_, Env> {
        lock(&self.env)
    }

    /// Keeps the present state for a daemon after this one.
    ///
    /// # Errors
    /// `internal`, when it could not be kept.
    pub fn keep(&self) -> Result<(), Answer> {
        let state = State { held: self.gate().held().clone(), env: self.env().clone() };
        lock(&self.store).write(&state).map_err(|error| {
            log::line(&format!("the state cannot be kept: {error}"));
            Answer::refuse(DaemonError::Internal, "the state could not be kept")
        })
    }

    /// Counts a request until the guard is dropped.
    ///
    /// # Errors
    /// `reclaiming`, for work.
    pub fn operation(self: &Arc<Self>, work: bool) -> Result<Operation, Answer> {
        self.gate().begin(work, now_ms())?;
        Ok(Operation { app: Arc::clone(self), work })
    }
}

/// Counts a request.
#[derive(Debug)]
pub struct Operation {
    app: Arc<App>,
    work: bool,
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.app.gate().end(self.work, now_ms());
    }
}

/// An answer before it is HTTP.
#[derive(Debug)]
pub struct Answer(Response<Body>);

impl Answer {
    /// A body of JSON.
    #[must_use]
    pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_default();
        Self::new(status, "application/json", Full::new(Bytes::from(body)).boxed_unsync())
    }

    /// 200 with JSON.
    #[must_use]
    pub fn ok<T: Serialize>(value: &T) -> Self {
        Self::json(StatusCode::OK, value)
    }

    /// A refusal with its status.
    #[must_use]
    pub fn refuse(error: DaemonError, message: impl Into<String>) -> Self {
        let status = match error {
            DaemonError::Unauthorized => StatusCode::UNAUTHORIZED,
            DaemonError::NotFound => StatusCode::NOT_FOUND,
            DaemonError::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            DaemonError::BadRequest => StatusCode::BAD_REQUEST,
            DaemonError::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            DaemonError::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            DaemonError::IncarnationMismatch | DaemonError::Stale => StatusCode::CONFLICT,
            DaemonError::Reclaiming | DaemonError::Busy | DaemonError::StagingBusy => StatusCode::SERVICE_UNAVAILABLE,
            DaemonError::SessionMemoryBusy => StatusCode::TOO_MANY_REQUESTS,
            DaemonError::ReplayDiskFull => StatusCode::INSUFFICIENT_STORAGE,
            DaemonError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let code = (error == DaemonError::SessionMemoryBusy).then(|| "SESSION_MEMORY_BUSY".to_owned());
        let mut answer = Self::json(status, &Refusal { error, message: message.into(), code });
        let retry = match error {
            DaemonError::SessionMemoryBusy => Some("5"),
            DaemonError::Busy | DaemonError::StagingBusy => Some("1"),
            _ => None,
        };
        if let Some(seconds) = retry {
            answer.0.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        answer
    }

    /// 200 with what the channel brings; ends with it.
    #[must_use]
    pub fn stream(kind: &'static str, from: tokio::sync::mpsc::Receiver<Bytes>) -> Self {
        let frames = ReceiverStream::new(from).map(|bytes| Ok(Frame::data(bytes)));
        Self::new(StatusCode::OK, kind, StreamBody::new(frames).boxed_unsync())
    }

    fn new(status: StatusCode, kind: &'static str, body: Body) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self(response)
    }

    /// Adds the body's length, so that the other side can tell a whole one.
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.0.headers_mut().insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(length));
        self
    }
}

impl From<Reclaiming> for Answer {
    fn from(_: Reclaiming) -> Self {
        Self::refuse(DaemonError::Reclaiming, "the session is about to be stopped")
    }
}

impl From<tale_sandbox_wire::exec::BadRequest> for Answer {
    fn from(bad: tale_sandbox_wire::exec::BadRequest) -> Self {
        Self::refuse(DaemonError::BadRequest, bad.0)
    }
}

/// A request whose head was read.
#[derive(Debug)]
pub struct Ask {
    /// The path's parts, decoded.
    pub parts: Vec<String>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Incoming,
}

impl Ask {
    /// The first value of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body, whole.
    ///
    /// # Errors
    /// Too large, or too slow.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, Answer> {
        let body = Limited::new(self.body, limit).collect();
        match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Answer::refuse(DaemonError::PayloadTooLarge, format!("the body has more than {limit} bytes")))
            }
            Ok(Err(_)) => Err(Answer::refuse(DaemonError::BadRequest, "the body was cut off")),
            Err(_) => Err(Answer::refuse(DaemonError::RequestTimeout, "the body did not arrive in time")),
        }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// As [`Ask::bytes`], and what is wrong with it.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Answer> {
        let bytes = self.bytes(MAX_BODY_BYTES).await?;
        // An array would be taken for a struct's fields in order.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(Answer::refuse(DaemonError::BadRequest, "the body is not a JSON object"));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            // The message names fields and places, and may quote a value; only the place is kept.
            let place = format!("the body is wrong at line {}, column {}", error.line(), error.column());
            Answer::refuse(DaemonError::BadRequest, place)
        })
    }

    /// Refuses a request that is meant for another life of the session.
    ///
    /// # Errors
    /// `incarnation_mismatch`.
    pub fn check_incarnation(&self, app: &App) -> Result<(), Answer> {
        let meant = self.headers.get(INCARNATION_HEADER).map(HeaderValue::as_bytes);
        match (meant, &app.settings.incarnation) {
            (Some(meant), Some(own)) if meant != own.as_bytes() => Err(Answer::refuse(
                DaemonError::IncarnationMismatch,
                "the request is meant for another life of the session",
            )),
            _ => Ok(()),
        }
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

async fn answer(app: Arc<App>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let parts: Vec<String> = head.uri.path().trim_start_matches('/').split('/').map(decode).collect();
    let names: Vec<&str> = parts.iter().map(String::as_str).collect();
    let Some(route) = routes::find(&names) else {
        return Ok(Answer::refuse(DaemonError::NotFound, "there is no such route").0);
    };
    if !route.is_open() {
        let shown = head.headers.get(TOKEN_HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
        if !bool::from(app.settings.token.as_bytes().ct_eq(shown)) {
            return Ok(Answer::refuse(DaemonError::Unauthorized, "the token is missing or another one").0);
        }
    }
    let query = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = query
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(&name.replace('+', " ")), decode(&value.replace('+', " "))))
        .collect();
    let ask = Ask { parts, query, headers: head.headers, body };
    Ok(route.answer(&app, &head.method, ask).await.unwrap_or_else(|refusal| refusal).0)
}

/// Serves until the future is dropped.
///
/// # Errors
/// When connections cannot be accepted at all.
pub async fn serve(app: Arc<App>, listener: TcpListener) -> std::io::Result<()> {
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    let addresses: Arc<Mutex<HashMap<IpAddr, usize>>> = Arc::default();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((stream, from)) => {
                let Some(counted) = Counted::new(&addresses, from.ip()) else { continue };
                let app = Arc::clone(&app);
                tokio::spawn(async move {
                    connection(app, stream).await;
                    drop((place, counted));
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: the next round waits for some to be given back.
                log::line(&format!("a connection was not accepted: {error}"));
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

/// A connection of an address.
struct Counted {
    all: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Counted {
    fn new(all: &Arc<Mutex<HashMap<IpAddr, usize>>>, address: IpAddr) -> Option<Self> {
        let mut counts = lock(all);
        let count = counts.entry(address).or_default();
        (*count < MAX_PER_ADDRESS).then(|| {
            *count += 1;
            Self { all: Arc::clone(all), address }
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = lock(&self.all);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

async fn connection(app: Arc<App>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| {
        let app = Arc::clone(&app);
        async move {
            // A handler that fails ends its own request, not the daemon.
            match tokio::spawn(answer(app, request)).await {
                Ok(answer) => answer,
                Err(_) => Ok(Answer::refuse(DaemonError::Internal, "the request failed").0),
            }
        }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(64).max_buf_size(CONNECTION_BUFFER);
    // The other side's mistakes are its own.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
