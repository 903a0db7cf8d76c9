//! A spawner without an engine: the signed interface with its bodies and streams, and commands that are scripts.
//!
//! A script has a step per line: `print TEXT`, `wait GATE` until the test opens it, `exit CODE`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tale_sandbox_wire::event::{Stream, Truncated};
use tale_sandbox_wire::exec::ExecRequest;
use tale_sandbox_wire::sign::{Headers, Key, NONCE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, Verifier};
use tale_sandbox_wire::spawner::CreateRequest;
use tale_sandbox_wire::sse::{self, ErrorCode, ExecResult, Phase, ResultStatus, SpawnerEvent};
use tokio::sync::watch;

pub const TOKEN: &str = "a token of the tests";

#[derive(Clone)]
pub struct FakeSpawner {
    held: Arc<Mutex<Held>>,
    /// Moves whenever anything happens.
    news: watch::Sender<u64>,
    pub address: std::net::SocketAddr,
}

struct Held {
    verifier: Verifier,
    capacity: usize,
    /// Sessions that run, with the hold they have; `None` = released.
    sessions: BTreeMap<String, Option<u64>>,
    generations: u64,
    /// By exec id.
    execs: BTreeMap<String, Exec>,
    gates: BTreeSet<String>,
    /// Streams that began before the last cut end.
    cuts: u64,
    most_held: usize,
    destroyed: Vec<String>,
    /// What there is, as it is said.
    workspaces: Vec<Value>,
    /// Whether nothing can be deleted.
    stuck: bool,
    /// How often the end of an organization was asked for: the first time nothing can be said, then files take their
    /// time.
    teardowns: usize,
}

#[derive(Default)]
struct Exec {
    events: Vec<SpawnerEvent>,
    cancelled: bool,
    begun: usize,
}

impl FakeSpawner {
    pub async fn start(capacity: usize) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let held = Held {
            verifier: Verifier::new(Key::new(TOKEN).unwrap(), None),
            capacity,
            sessions: BTreeMap::new(),
            generations: 0,
            execs: BTreeMap::new(),
            gates: BTreeSet::new(),
            cuts: 0,
            most_held: 0,
            destroyed: Vec::new(),
            workspaces: Vec::new(),
            stuck: false,
            teardowns: 0,
        };
        let spawner = Self {
            held: Arc::new(Mutex::new(held)),
            news: watch::Sender::new(0),
            address: listener.local_addr().unwrap(),
        };
        let router = Router::new().fallback(answer).with_state(spawner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        spawner
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let changed = change(&mut self.held());
        self.news.send_modify(|number| *number += 1);
        changed
    }

    pub fn open(&self, gate: &str) {
        self.change(|held| held.gates.insert(gate.to_owned()));
    }

    pub fn set_capacity(&self, capacity: usize) {
        self.change(|held| held.capacity = capacity);
    }

    /// Ends every stream that is open, without an end of its command.
    pub fn cut(&self) {
        self.change(|held| held.cuts += 1);
    }

    pub fn most_held(&self) -> usize {
        self.held().most_held
    }

    pub fn destroyed(&self) -> Vec<String> {
        self.held().destroyed.clone()
    }

    /// Says that there is a workspace.
    pub fn keep(&self, session: &str, of: Option<&str>, active: bool, pinned: bool) {
        let mut workspace = json!({ "sessionId": session, "touchedAtMs": 1, "active": active, "pinned": pinned });
        if let Some(org) = of {
            workspace["organizationId"] = json!(org);
        }
        self.change(|held| held.workspaces.push(workspace));
    }

    /// Says that there is no workspace.
    pub fn forget(&self) {
        self.change(|held| held.workspaces.clear());
    }

    pub fn set_stuck(&self, stuck: bool) {
        self.change(|held| held.stuck = stuck);
    }

    /// Has a session run, without anybody of the platform.
    pub fn run_by_itself(&self, session: &str) {
        self.change(|held| held.hold(session));
    }

    /// How often commands were started, which is once each.
    pub fn begun(&self) -> Vec<usize> {
        self.held().execs.values().map(|exec| exec.begun).collect()
    }

    /// Waits until nothing is held.
    pub async fn all_released(&self) {
        self.until(|held| held.sessions.values().all(Option::is_none)).await;
    }

    /// Waits until a session was destroyed.
    pub async fn one_destroyed(&self) {
        self.until(|held| !held.destroyed.is_empty()).await;
    }

    /// Waits until the end of an organization was asked for so often.
    pub async fn torn_down(&self, times: usize) {
        self.until(|held| held.teardowns >= times).await;
    }

    async fn until(&self, mut holds: impl FnMut(&Held) -> bool) {
        let mut news = self.news.subscribe();
        while !holds(&self.held()) {
            news.changed().await.unwrap();
        }
    }

    fn create(&self, request: &CreateRequest) -> Response {
        let name = request.session_id.as_str().to_owned();
        self.change(|held| {
            if held.sessions.contains_key(&name) {
                return refuse(StatusCode::CONFLICT, "duplicate");
            }
            if held.sessions.values().filter(|hold| hold.is_some()).count() >= held.capacity {
                let body = json!({ "error": "session_quota", "message": "full", "queue": { "position": 1, "waiting": 1 } });
                return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], axum::Json(body)).into_response();
            }
            held.hold(&name);
            let info = json!({
                "sessionId": name, "organizationId": request.organization_id, "profile": request.profile,
                "state": "ready", "backend": "docker", "createdAtMs": 1, "expiresAtMs": 2, "idleTimeoutMs": 3, "pinned": false,
            });
            (StatusCode::CREATED, axum::Json(json!({ "session": info }))).into_response()
        })
    }

    fn begin(&self, request: &ExecRequest) {
        let id = request.exec_id.as_str().to_owned();
        let script = request.command.as_ref().unwrap().last().unwrap().clone();
        self.change(|held| held.execs.entry(id.clone()).or_default().begun += 1);
        let spawner = self.clone();
        tokio::spawn(async move { spawner.play(&id, &script).await });
    }

    async fn play(&self, id: &str, script: &str) {
        let mut status = (ResultStatus::Completed, Some(0), None);
        for line in script.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("print", text) => self.print(id, text),
                ("wait", gate) => {
                    self.until(|held| held.gates.contains(gate) || held.execs[id].cancelled).await;
                    if self.held().execs[id].cancelled {
                        status = (ResultStatus::Cancelled, Some(137), Some(ErrorCode::Cancelled));
                        break;
                    }
                }
                ("exit", "0") | ("", _) => {}
                ("exit", code) => status = (ResultStatus::Failed, Some(code.parse().unwrap()), None),
                other => panic!("{other:?} is no step"),
            }
        }
        let result = ExecResult {
            status: status.0,
            exit_code: status.1,
            duration_ms: 1,
            stdout_base64: String::new(),
            stderr_base64: String::new(),
            truncated: Truncated::default(),
            error_code: status.2,
            error_message: None,
        };
        self.change(|held| held.execs.get_mut(id).unwrap().events.push(SpawnerEvent::Result(Box::new(result))));
    }

    fn print(&self, id: &str, text: &str) {
        self.change(|held| {
            let events = &mut held.execs.get_mut(id).unwrap().events;
            // The start of a command is the first event of its journal.
            let seq = events.len() as u64 + 2;
            events.push(SpawnerEvent::Output { stream: Stream::Stdout, seq, bytes: format!("{text}\n").into_bytes() });
        });
    }

    fn stream(&self, id: String, since: u64) -> Response {
        let (spawner, mut news) = (self.clone(), self.news.subscribe());
        let cuts = self.held().cuts;
        let body = async_stream::stream! {
            let mut out = Vec::new();
            sse::write(&mut out, &SpawnerEvent::Phase(Phase::Running));
            yield Ok::<_, std::convert::Infallible>(out);
            let mut at = 0;
            loop {
                let fresh: Option<Vec<SpawnerEvent>> = {
                    let held = spawner.held();
                    (held.cuts == cuts).then(|| held.execs[&id].events[at..].to_vec())
                };
                let Some(fresh) = fresh else { return };
                at += fresh.len();
                let mut out = Vec::new();
                let mut ended = false;
                for event in fresh {
                    ended |= matches!(event, SpawnerEvent::Result(_));
                    if !matches!(event, SpawnerEvent::Output { seq, .. } if seq <= since) {
                        sse::write(&mut out, &event);
                    }
                }
                if !out.is_empty() {
                    yield Ok(out);
                }
                if ended || news.changed().await.is_err() {
                    return;
                }
            }
        };
        ([("content-type", "text/event-stream")], Body::from_stream(body)).into_response()
    }
}

impl Held {
    fn hold(&mut self, name: &str) -> u64 {
        self.generations += 1;
        self.sessions.insert(name.to_owned(), Some(self.generations));
        self.most_held = self.most_held.max(self.sessions.values().filter(|hold| hold.is_some()).count());
        self.generations
    }
}

fn refuse(status: StatusCode, code: &str) -> Response {
    (status, axum::Json(json!({ "error": code }))).into_response()
}

async fn answer(State(spawner): State<FakeSpawner>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 8 << 20).await.unwrap();
    let path_and_query = head.uri.path_and_query().unwrap().as_str();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let headers = Headers {
        timestamp: header(TIMESTAMP_HEADER),
        nonce: header(NONCE_HEADER),
        signature: header(SIGNATURE_HEADER),
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let verified = spawner.held().verifier.verify(
        headers,
        head.method.as_str(),
        path_and_query,
        &body,
        u64::try_from(now).unwrap(),
    );
    if let Err(refusal) = verified {
        return (StatusCode::UNAUTHORIZED, axum::Json(json!({ "error": "unauthorized", "reason": refusal.reason() })))
            .into_response();
    }
    let ok = |value: Value| axum::Json(value).into_response();
    let parts: Vec<&str> = head.uri.path().trim_matches('/').split('/').collect();
    match (&head.method, parts.as_slice()) {
        (&Method::GET, ["v1", "limits"]) => ok(json!({ "maxSessions": spawner.held().capacity })),
        (&Method::POST, ["v1", "sessions"]) => spawner.create(&serde_json::from_slice(&body).unwrap()),
        (&Method::GET, ["v1", "workspaces"]) => {
            ok(json!({ "backend": "docker", "workspaces": spawner.held().workspaces, "organizations": [] }))
        }
        (&Method::GET, ["v1", "capacity"]) => {
            let sessions = json!({
                "running": 0, "starting": 0, "limit": 8, "organizationRunning": 0, "organizationStarting": 0,
                "organizationLimit": 8,
            });
            ok(json!({
                "status": "available", "observedAt": 1, "backend": "docker", "scope": "host", "sessions": sessions,
                "resources": {
                    "cpu": { "totalCores": null, "usedCores": null }, "memory": { "totalBytes": null, "usedBytes": null },
                },
                "runtimeSessions": [],
            }))
        }
        (&Method::DELETE, ["v1", "sessions", _]) if spawner.held().stuck => {
            refuse(StatusCode::BAD_GATEWAY, "destroy_failed")
        }
        (&Method::DELETE, ["v1", "sessions", name])
            if path_and_query.ends_with("&if_idle=1&if_stopped=1") && spawner.held().sessions.contains_key(*name) =>
        {
            ok(json!({ "busy": true }))
        }
        (&Method::DELETE, ["v1", "sessions", name]) => spawner.change(|held| {
            let before = held.workspaces.len();
            held.workspaces.retain(|one| one["sessionId"] != *name);
            let destroyed = held.sessions.remove(*name).is_some() || held.workspaces.len() < before;
            held.destroyed.push((*name).to_owned());
            ok(json!({ "destroyed": destroyed, "deletion": "done" }))
        }),
        (&Method::DELETE, ["v1", "organizations", _]) => spawner.change(|held| {
            held.teardowns += 1;
            if held.teardowns == 1 {
                return refuse(StatusCode::SERVICE_UNAVAILABLE, "inventory_unavailable");
            }
            let sessions = held.sessions.len();
            held.sessions.clear();
            ok(json!({ "sessions": sessions, "deletion": if held.teardowns == 2 { "pending" } else { "done" } }))
        }),
        (_, ["v1", "sessions", name, ..]) if !spawner.held().sessions.contains_key(*name) => {
            refuse(StatusCode::NOT_FOUND, "not_found")
        }
        (&Method::POST, ["v1", "sessions", name, "acquire"]) => {
            let generation = spawner.change(|held| held.hold(name));
            ok(json!({ "generation": generation.to_string() }))
        }
        (&Method::GET, ["v1", "sessions", name, "release"]) => {
            let held = spawner.held().sessions[*name].unwrap_or(0);
            ok(json!({ "generation": held.to_string() }))
        }
        (&Method::POST, ["v1", "sessions", name, "release"]) => {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let released = spawner.change(|held| {
                let present = held.sessions.get_mut(*name).unwrap();
                let same = present.map(|number| number.to_string()).as_deref() == body["generation"].as_str();
                if same {
                    *present = None;
                }
                same
            });
            ok(json!({ "released": released }))
        }
        (&Method::POST, ["v1", "sessions", _, "exec"]) => {
            let request: ExecRequest = serde_json::from_slice(&body).unwrap();
            spawner.begin(&request);
            spawner.stream(request.exec_id.to_string(), 0)
        }
        (_, ["v1", "sessions", _, "exec", id, ..]) if !spawner.held().execs.contains_key(*id) => {
            refuse(StatusCode::NOT_FOUND, "gone")
        }
        (&Method::GET, ["v1", "sessions", _, "exec", id]) => {
            ok(json!({ "state": "running", "execId": id, "startedAtMs": 1 }))
        }
        (&Method::GET, ["v1", "sessions", _, "exec", id, "attach"]) => {
            let since = path_and_query.split("sinceSeq=").nth(1).unwrap().parse().unwrap();
            spawner.stream((*id).to_owned(), since)
        }
        (&Method::POST, ["v1", "sessions", _, "exec", id, "cancel"]) => {
            spawner.change(|held| held.execs.get_mut(*id).unwrap().cancelled = true);
            ok(json!({ "killed": true }))
        }
        other => panic!("{other:?} is not played"),
    }
}
