//! The spawner's signed interface, as its only client uses it.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tale_core::clock::SharedClock;
use tale_core::ids::OrgId;
use tale_core::{Code, Problem};
use tale_sandbox_wire::daemon::{GenerationAnswer, ReleaseAnswer, ReleaseRequest};
use tale_sandbox_wire::exec::{CancelAnswer, ExecRequest, ExecStatus};
use tale_sandbox_wire::files::ListAnswer;
use tale_sandbox_wire::names::{ExecId, Generation, SessionId};
use tale_sandbox_wire::sign::{Key, NONCE_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER};
use tale_sandbox_wire::spawner::{
    CapacityAnswer, CreateRequest, DestroyAnswer, ErrorAnswer, ErrorCode, LimitsAnswer, Queue, TeardownAnswer,
    WorkspacesAnswer,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

/// Longest wait for an answer that needs no work.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest wait for the start of a session; the spawner has a shorter budget of its own.
const CREATE_PATIENCE: Duration = Duration::from_secs(600);
/// Longest wait for a destroy (SBX-89).
const DESTROY_PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the end of an organization, session by session.
const TEARDOWN_PATIENCE: Duration = Duration::from_secs(300);
/// Longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer that is read whole.
const LARGEST_ANSWER: usize = 8 << 20;
/// Pause after a refusal that names none.
const PAUSE: Duration = Duration::from_secs(5);
/// Calls of one process at the same time, streams of output apart.
const CALLS: usize = 32;

/// Why the spawner did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SpawnerError {
    /// Nothing came back in time.
    #[error("the spawner of sandboxes cannot be reached: {0}")]
    Unreachable(String),
    /// It said no.
    #[error("the spawner of sandboxes refused: {}", sentence(.0))]
    Refused(Box<Refusal>),
    /// What came back is not its interface.
    #[error("what answers at SANDBOX_URL is no spawner of sandboxes: {0}")]
    Nonsense(String),
}

/// A refusal of the spawner.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The stable code.
    pub code: ErrorCode,
    /// For people.
    pub message: Option<String>,
    /// The place in the host's line.
    pub queue: Option<Queue>,
    /// When it may be asked again.
    pub retry_after: Option<Duration>,
}

fn sentence(refusal: &Refusal) -> String {
    let code = serde_json::to_value(refusal.code).ok().and_then(|code| code.as_str().map(str::to_owned));
    match (&refusal.message, code) {
        (Some(message), _) => message.clone(),
        (None, Some(code)) => code,
        (None, None) => refusal.status.to_string(),
    }
}

impl SpawnerError {
    /// The code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Unreachable(_) | Self::Nonsense(_) => None,
        }
    }

    /// When asking again makes sense.
    #[must_use]
    pub fn pause(&self) -> Duration {
        match self {
            Self::Refused(refusal) => refusal.retry_after.unwrap_or(PAUSE),
            Self::Unreachable(_) | Self::Nonsense(_) => PAUSE,
        }
    }

    /// Whether the same request may succeed later without anybody changing it: the host has no room, something else
    /// goes on, or the spawner is away.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Nonsense(_) => false,
            Self::Refused(refusal) => matches!(refusal.status, 429 | 503),
        }
    }

    /// The word under which a waiting run names it.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.code().and_then(|code| serde_json::to_value(code).ok()) {
            Some(serde_json::Value::String(code)) => code,
            _ => "unreachable".to_owned(),
        }
    }
}

impl From<SpawnerError> for Problem {
    fn from(error: SpawnerError) -> Self {
        let pause = error.pause();
        Self::new(
            Code::SandboxUnavailable,
            "The service that runs sandboxes does not answer as it should. Try again in a moment; if it goes on, an operator finds the reason in the log.",
        )
        .retry_after(pause)
        .because(error)
    }
}

/// The client. It keeps its connections; every call has a time limit.
#[derive(Debug)]
pub struct Spawner {
    http: reqwest::Client,
    base: String,
    key: Key,
    clock: SharedClock,
    calls: Semaphore,
}

impl Spawner {
    /// A client of the spawner at `url` with the shared key.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(url: &Url, key: Key, clock: SharedClock) -> Result<Self, reqwest::Error> {
        tale_core::net::install_tls_provider();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_PATIENCE)
            .build()?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, base, key, clock, calls: Semaphore::new(CALLS) })
    }

    /// How many sessions the deployment holds, asked anew.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn limits(&self) -> Result<LimitsAnswer, SpawnerError> {
        self.ask(Method::GET, "/v1/limits", Vec::new(), PATIENCE).await
    }

    /// What runs and what the host measures.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn capacity(&self, org: OrgId) -> Result<CapacityAnswer, SpawnerError> {
        self.ask(Method::GET, &format!("/v1/capacity?organizationId={org}"), Vec::new(), PATIENCE).await
    }

    /// Starts a session, or its compute anew. Dropping this ends the start.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn create(&self, request: &CreateRequest) -> Result<(), SpawnerError> {
        let body = json(request)?;
        let answer: Result<serde_json::Value, _> = self.ask(Method::POST, "/v1/sessions", body, CREATE_PATIENCE).await;
        answer.map(drop)
    }

    /// Announces work in a session.
    ///
    /// # Errors
    /// [`SpawnerError`]; `not_found` when it does not run.
    pub async fn acquire(&self, session: &SessionId) -> Result<Generation, SpawnerError> {
        let path = format!("/v1/sessions/{session}/acquire");
        // An acquire may wait for a create of another caller.
        let answer: GenerationAnswer = self.ask(Method::POST, &path, Vec::new(), CREATE_PATIENCE).await?;
        Ok(answer.generation)
    }

    /// The present hold.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn ticket(&self, session: &SessionId) -> Result<Generation, SpawnerError> {
        let path = format!("/v1/sessions/{session}/release");
        let answer: GenerationAnswer = self.ask(Method::GET, &path, Vec::new(), PATIENCE).await?;
        Ok(answer.generation)
    }

    /// Ends a hold, unless another one began since.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn release(&self, session: &SessionId, generation: Generation) -> Result<bool, SpawnerError> {
        let path = format!("/v1/sessions/{session}/release");
        let answer: ReleaseAnswer =
            self.ask(Method::POST, &path, json(&ReleaseRequest { generation })?, PATIENCE).await?;
        Ok(answer.released)
    }

    /// Every workspace that the spawner keeps, whoever's.
    ///
    /// # Errors
    /// [`SpawnerError`]; never an answer that leaves something out.
    pub async fn workspaces(&self) -> Result<WorkspacesAnswer, SpawnerError> {
        self.ask(Method::GET, "/v1/workspaces", Vec::new(), PATIENCE).await
    }

    /// Deletes a session with its workspace; `only_unused`: not while anything runs in it or is about to (SBX-88).
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn destroy(&self, session: &SessionId, only_unused: bool) -> Result<DestroyAnswer, SpawnerError> {
        let unused = if only_unused { "&if_idle=1&if_stopped=1" } else { "" };
        let path = format!("/v1/sessions/{session}?await_deletion=1{unused}");
        self.ask(Method::DELETE, &path, Vec::new(), DESTROY_PATIENCE).await
    }

    /// Deletes every session and workspace of an organization, and its caches. Whoever asks again goes on.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn tear_down(&self, org: OrgId) -> Result<TeardownAnswer, SpawnerError> {
        self.ask(Method::DELETE, &format!("/v1/organizations/{org}"), Vec::new(), TEARDOWN_PATIENCE).await
    }

    /// Starts a command and streams what it prints.
    ///
    /// # Errors
    /// [`SpawnerError`]; the command was not started then.
    pub async fn exec(&self, session: &SessionId, request: &ExecRequest) -> Result<Response, SpawnerError> {
        let path = format!("/v1/sessions/{session}/exec");
        self.open(Method::POST, &path, json(request)?, PATIENCE).await
    }

    /// What became of a command; `None` when the session knows none of that name.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn exec_status(&self, session: &SessionId, exec: &ExecId) -> Result<Option<ExecStatus>, SpawnerError> {
        let path = format!("/v1/sessions/{session}/exec/{exec}");
        match self.ask(Method::GET, &path, Vec::new(), PATIENCE).await {
            Err(error) if error.code() == Some(ErrorCode::Gone) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Streams what a command printed after the event `since`, and what it prints.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn attach(&self, session: &SessionId, exec: &ExecId, since: u64) -> Result<Response, SpawnerError> {
        let path = format!("/v1/sessions/{session}/exec/{exec}/attach?sinceSeq={since}");
        self.open(Method::GET, &path, Vec::new(), PATIENCE).await
    }

    /// Ends a command and everything it started.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn cancel(&self, session: &SessionId, exec: &ExecId) -> Result<bool, SpawnerError> {
        let path = format!("/v1/sessions/{session}/exec/{exec}/cancel");
        let answer: CancelAnswer = self.ask(Method::POST, &path, Vec::new(), PATIENCE).await?;
        Ok(answer.killed)
    }

    /// A directory of a workspace.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn list(&self, session: &SessionId, path: &str) -> Result<ListAnswer, SpawnerError> {
        let path = format!("/v1/sessions/{session}/files?{}", query(path));
        self.ask(Method::GET, &path, Vec::new(), PATIENCE).await
    }

    /// The bytes of a file of a workspace.
    ///
    /// # Errors
    /// [`SpawnerError`].
    pub async fn read(&self, session: &SessionId, path: &str) -> Result<Response, SpawnerError> {
        let path = format!("/v1/sessions/{session}/files/content?{}", query(path));
        self.open(Method::GET, &path, Vec::new(), PATIENCE).await
    }

    /// A call whose answer is read whole.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<T, SpawnerError> {
        let whole = async {
            // Never closed, so a permit always comes; how long that may take is the call's own limit.
            let _place = self.calls.acquire().await;
            let answer = self.open(method, path, body, patience).await?;
            let bytes = bounded(answer, LARGEST_ANSWER).await?;
            serde_json::from_slice(&bytes).map_err(|error| SpawnerError::Nonsense(error.to_string()))
        };
        timeout(patience, whole).await.unwrap_or_else(|_| Err(late(patience)))
    }

    /// A call whose answer's head came in time and is a success.
    async fn open(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<Response, SpawnerError> {
        let timestamp = self.clock.now_ms().to_string();
        let nonce = format!("{:032x}", rand::random::<u128>());
        let signed =
            Signed { method: method.as_str(), path_and_query: path, timestamp: &timestamp, nonce: &nonce, body: &body };
        let signature = signed.sign(&self.key);
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header(TIMESTAMP_HEADER, timestamp)
            .header(NONCE_HEADER, nonce)
            .header(SIGNATURE_HEADER, signature)
            .body(body)
            .send();
        let answer = match timeout(patience, request).await {
            Err(_) => return Err(late(patience)),
            Ok(Err(error)) => return Err(SpawnerError::Unreachable(root_cause(&error))),
            Ok(Ok(answer)) => answer,
        };
        if answer.status().is_success() { Ok(answer) } else { Err(refusal(answer).await) }
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, SpawnerError> {
    serde_json::to_vec(value).map_err(|error| SpawnerError::Nonsense(error.to_string()))
}

fn query(path: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("path", path).finish()
}

fn late(patience: Duration) -> SpawnerError {
    SpawnerError::Unreachable(format!("no answer within {} s", patience.as_secs()))
}

/// The innermost cause, which is what says something.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

async fn refusal(answer: Response) -> SpawnerError {
    let status = answer.status();
    let pause = answer.headers().get(reqwest::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = match timeout(PATIENCE, bounded(answer, 64 << 10)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return error,
        Err(_) => return late(PATIENCE),
    };
    match serde_json::from_slice::<ErrorAnswer>(&body) {
        Ok(answer) => SpawnerError::Refused(Box::new(Refusal {
            status: status.as_u16(),
            code: answer.error,
            message: answer.message.or(answer.reason),
            queue: answer.queue,
            retry_after: pause.map(Duration::from_secs),
        })),
        Err(_) if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE) => {
            SpawnerError::Unreachable(format!("something before it answers {status}"))
        }
        Err(_) => SpawnerError::Nonsense(format!("it answers {status}")),
    }
}

async fn bounded(mut answer: Response, most: usize) -> Result<Bytes, SpawnerError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| SpawnerError::Unreachable(root_cause(&error)))? {
        if bytes.len() + chunk.len() > most {
            return Err(SpawnerError::Nonsense("the answer is too large".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}
