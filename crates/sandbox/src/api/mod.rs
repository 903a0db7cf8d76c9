//! The signed interface of the spawner (section 4 of the specification). It is of this room and not of the room of
//! doors: it has no person, no database and no organization's session, only a shared key, and is as much the spawner's
//! as the proxy's protocol is the proxy's. Bodies and answers are those of [`tale_sandbox_wire::spawner`].

mod answer;
mod capacity;
mod exec;
mod organization;
mod route;
mod sessions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use hyper::{Method, StatusCode};
use tale_core::clock::SharedClock;
use tale_sandbox_wire::limits::BODY_TIMEOUT;
use tale_sandbox_wire::sign::{Headers, Key, NONCE_HEADER, Refusal, SIGNATURE_HEADER, TIMESTAMP_HEADER, Verifier};
use tale_sandbox_wire::spawner::{ErrorAnswer, ErrorCode};
use tokio::sync::Semaphore;

use self::answer::Refused;
use self::capacity::Observations;
use self::route::{Call, Route};
use crate::daemon::DaemonClient;
use crate::docker::DockerBackend;
use crate::host::LinuxHost;
use crate::spawner::Spawner;

/// Requests whose body is being read, before anybody knows who sends them.
const READERS: usize = 64;

/// Most of a body that is too large which is read to keep its connection.
const DRAINED: usize = 64 << 20;

/// What an operator can set about requests.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// Largest body, in bytes.
    pub max_body: usize,
    /// Deadline of a command that names none.
    pub exec_timeout: Duration,
    /// Longest such deadline.
    pub max_exec_timeout: Duration,
    /// Collected standard output of a result, in bytes.
    pub max_stdout: usize,
    /// Collected standard error, in bytes.
    pub max_stderr: usize,
}

/// What the interface is made from.
pub struct ApiParts {
    /// Decides.
    pub spawner: Spawner,
    /// Speaks with daemons.
    pub daemons: DaemonClient,
    /// Says what the engine knows.
    pub docker: Arc<DockerBackend>,
    /// Says what the host knows.
    pub host: Arc<LinuxHost>,
    /// The shared key.
    pub key: Key,
    /// The one before, which callers may still have.
    pub previous_key: Option<Key>,
    /// The time.
    pub clock: SharedClock,
    /// Bounds.
    pub config: ApiConfig,
}

/// The interface. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Api(Arc<Inner>);

pub(crate) struct Inner {
    pub spawner: Spawner,
    pub daemons: DaemonClient,
    pub docker: Arc<DockerBackend>,
    pub host: Arc<LinuxHost>,
    pub clock: SharedClock,
    pub config: ApiConfig,
    pub observations: Observations,
    verifier: Mutex<Verifier>,
    readers: Semaphore,
}

impl std::ops::Deref for Api {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// The routes.
pub fn router(parts: ApiParts) -> Router {
    let ApiParts { spawner, daemons, docker, host, key, previous_key, clock, config } = parts;
    let inner = Inner {
        spawner,
        daemons,
        docker,
        host,
        clock,
        config,
        observations: Observations::default(),
        verifier: Mutex::new(Verifier::new(key, previous_key)),
        readers: Semaphore::new(READERS),
    };
    Router::new().fallback(handle).with_state(Api(Arc::new(inner)))
}

async fn handle(State(api): State<Api>, request: Request) -> Response {
    api.answer(request).await.unwrap_or_else(Refused::into_response)
}

impl Api {
    async fn answer(&self, request: Request) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        let path_and_query = head.uri.path_and_query().map_or("/", |both| both.as_str()).to_owned();
        // Whoever has no key learns which paths there are, as the contract has it, and nothing else.
        let found = route::find(head.uri.path())?;
        if found.route == Route::Health {
            return if head.method == Method::GET { self.health().await } else { Err(Refused::method()) };
        }
        let body = self.read(body).await?;
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let headers = Headers {
            timestamp: header(TIMESTAMP_HEADER),
            nonce: header(NONCE_HEADER),
            signature: header(SIGNATURE_HEADER),
        };
        let now_ms = u64::try_from(self.clock.now_ms()).unwrap_or(0);
        let verified = {
            let mut verifier = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
            verifier.verify(headers, head.method.as_str(), &path_and_query, &body, now_ms)
        };
        verified.map_err(unauthorized)?;
        let call = Call::new(found, head.method, head.uri.query().unwrap_or_default(), body);
        self.dispatch(call).await
    }

    /// Reads the whole body, or enough of it to answer on the same connection.
    async fn read(&self, body: Body) -> Result<Bytes, Refused> {
        let Ok(_reader) = self.readers.try_acquire() else {
            return Err(
                Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, "too many requests arrive").retry(1)
            );
        };
        let limit = self.config.max_body;
        let reading = async {
            let mut stream = body.into_data_stream();
            let (mut bytes, mut total) = (Vec::new(), 0_usize);
            while let Some(part) = stream.next().await {
                let part = part.map_err(|_| Refused::bad("the body could not be read"))?;
                total = total.saturating_add(part.len());
                if total <= limit {
                    bytes.extend_from_slice(&part);
                } else {
                    bytes = Vec::new();
                    if total > DRAINED {
                        break;
                    }
                }
            }
            if total > limit {
                let sentence = format!("the body is larger than {limit} bytes");
                return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::PayloadTooLarge, sentence));
            }
            Ok(Bytes::from(bytes))
        };
        let late = |_| Refused::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::RequestTimeout, "the body came too slowly");
        tokio::time::timeout(BODY_TIMEOUT, reading).await.map_err(late)?
    }

    async fn dispatch(&self, call: Call) -> Result<Response, Refused> {
        match (call.route, call.method.as_str()) {
            (Route::Limits, "GET") => Ok(self.limits(&call)),
            (Route::Capacity, "GET") => self.capacity(&call).await,
            (Route::Workspaces, "GET") => self.workspaces().await,
            (Route::Devices, "GET") => Ok(self.devices()),
            (Route::Disconnect, "POST") => Ok(self.disconnect()),
            (Route::Organization, "DELETE") => self.tear_down(&call).await,
            (Route::Drain, "POST") => Ok(self.drain()),
            (Route::DrainStatus, "GET") => Ok(self.drain_status()),
            (Route::Sessions, "POST") => self.create(&call).await,
            (Route::Sessions, "GET") => self.list(&call),
            (Route::Session, "GET") => self.session(&call).await,
            (Route::Session, "DELETE") => self.destroy(&call).await,
            (Route::Acquire, "POST") => self.acquire(&call).await,
            (Route::Release, "GET") => self.ticket(&call).await,
            (Route::Release, "POST") => self.release(&call).await,
            (Route::Pin, "PATCH") => self.pin(&call).await,
            (Route::Execs, "POST") => self.exec(&call).await,
            (Route::Attach, "GET") => self.attach(&call).await,
            (Route::Exec, "GET")
            | (Route::Cancel | Route::Stdin | Route::Stage | Route::Delete, "POST")
            | (Route::Checkpoint, "GET" | "PUT")
            | (Route::Env, "PATCH")
            | (Route::Files | Route::Content, "GET") => self.relay(&call).await,
            _ => Err(Refused::method()),
        }
    }
}

fn unauthorized(refusal: Refusal) -> Refused {
    if matches!(refusal, Refusal::Full) {
        let sentence = "too many requests arrive";
        return Refused::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, sentence).retry(1);
    }
    let mut body = ErrorAnswer::new(ErrorCode::Unauthorized, "the request is not signed as agreed");
    body.reason = Some(refusal.reason());
    Refused::of(StatusCode::UNAUTHORIZED, body)
}
