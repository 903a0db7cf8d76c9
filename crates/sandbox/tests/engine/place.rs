//! A spawner process on an engine of this machine, and a caller that signs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tale_core::SystemClock;
use tale_core::clock::Clock;
use tale_sandbox::api::ApiConfig;
use tale_sandbox::docker::{CacheNames, DockerConfig};
use tale_sandbox::host::{Floor, Floors};
use tale_sandbox::profile::Limits;
use tale_sandbox::role::{RoleConfig, SpawnerRole};
use tale_sandbox_wire::event::Stream;
use tale_sandbox_wire::names::Instance;
use tale_sandbox_wire::sign::{Key, NONCE_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER};
use tale_sandbox_wire::sse::{ExecResult, Reader, SpawnerEvent};
use tokio_util::sync::{CancellationToken, DropGuard};

const TOKEN: &str = "a token of the tests";
pub const IMAGE: &str = "tale-sandbox-runtime:latest";

/// An engine, and a name that nobody else uses on it.
pub struct Place {
    pub docker_host: String,
    pub docker: PathBuf,
    pub instance: String,
    pub root: tempfile::TempDir,
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Place {
    /// `None`, with a word, where there is no engine or no image.
    pub fn find(name: &str) -> Option<Self> {
        let script = workspace().join("scripts/docker-engine");
        let started = Command::new(script).arg("start").output().unwrap();
        if !started.status.success() {
            eprintln!("skipped: no Docker engine. {}", String::from_utf8_lossy(&started.stderr).trim());
            return None;
        }
        let env = std::fs::read_to_string(workspace().join("target/docker-engine/env")).unwrap();
        let field = |name: &str| env.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let docker_host = field("DOCKER_HOST=").unwrap();
        let path = field("PATH=").unwrap_or_else(|| "/usr/bin:/usr/local/bin".to_owned());
        let docker = path.split(':').map(|folder| Path::new(folder).join("docker")).find(|file| file.exists()).unwrap();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let instance = format!("t{}-{number}-{name}", std::process::id());
        let root = tempfile::tempdir().unwrap();
        let place = Self { docker_host, docker, instance, root };
        let image = place.docker(&["image", "inspect", "--format", "{{.Id}}", IMAGE]);
        if !image.status.success() {
            eprintln!("skipped: the engine has no {IMAGE}; `scripts/sandbox-images runtime` builds it");
            return None;
        }
        Some(place)
    }

    pub fn docker(&self, arguments: &[&str]) -> std::process::Output {
        Command::new(&self.docker).env("DOCKER_HOST", &self.docker_host).args(arguments).output().unwrap()
    }

    pub fn said(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.docker(arguments).stdout).trim().to_owned()
    }

    /// Containers of this place.
    pub fn containers(&self) -> Vec<String> {
        let filter = format!("label=tale.sandbox-instance={}", self.instance);
        self.said(&["ps", "-a", "-q", "--no-trunc", "--filter", &filter]).lines().map(str::to_owned).collect()
    }

    /// Starts a spawner process.
    pub async fn spawner(&self) -> Running {
        self.spawner_with(|_| {}).await
    }

    pub async fn spawner_with(&self, change: impl FnOnce(&mut RoleConfig)) -> Running {
        let mut config = self.config();
        change(&mut config);
        // The lock of a process ends with it; that of a killed one in these tests with the last of its tasks.
        let mut opened = SpawnerRole::open(config.clone(), Arc::new(SystemClock));
        for _ in 0..200 {
            if opened.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
            opened = SpawnerRole::open(config.clone(), Arc::new(SystemClock));
        }
        let role = Arc::new(opened.unwrap_or_else(|error| panic!("{error}")));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn({
            let (router, stop) = (role.router(), stop.clone());
            async move { axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await }
        });
        let runs = tokio::spawn({
            let stop = stop.clone();
            async move { role.run(stop).await }
        });
        let caller = Caller::new(format!("http://{address}"), format!("{}-", self.instance));
        let running =
            Running { caller, tasks: vec![served.abort_handle(), runs.abort_handle()], _stop: stop.drop_guard() };
        for _ in 0..200 {
            let health = running.caller.unsigned("/health").await;
            if health.1["runtimeImage"]["state"] == "ready" {
                return running;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the spawner did not become healthy: {:?}", running.caller.unsigned("/health").await);
    }

    fn config(&self) -> RoleConfig {
        let names = |kind: &str| format!("{}-{kind}", self.instance);
        RoleConfig {
            docker_host: self.docker_host.clone(),
            image: IMAGE.to_owned(),
            pulls_image: false,
            session_root: self.root.path().join("sessions"),
            docker_data: None,
            floors: Floors { floor: Floor::Fixed(0), critical: Floor::Fixed(0) },
            capacity: Some(8),
            memory_reserve: None,
            pressure_limit: None,
            max_lifetime: Duration::from_secs(86_400),
            max_idle: Duration::from_secs(1_800),
            released_idle: Duration::from_secs(300),
            create_timeout: Duration::from_secs(60),
            max_linger: Duration::from_secs(1_800),
            previous_key: None,
            docker: DockerConfig {
                instance: Instance::new(&self.instance).unwrap(),
                runtime: None,
                network: self.instance.clone(),
                proxy: "http://sandbox-egress:3128".parse().unwrap(),
                redirects: true,
                direct_hosts: Vec::new(),
                agent_limits: Limits { memory: 256 << 20, pids: 128, ..Limits::of_agent() },
                stall: Duration::ZERO,
                key: Key::new(TOKEN).unwrap(),
                caches: CacheNames { pip: names("pip"), npm: names("npm"), bun: names("bun") },
                cache_retention: None,
            },
            api: ApiConfig {
                max_body: 8 << 20,
                exec_timeout: Duration::from_secs(60),
                max_exec_timeout: Duration::from_secs(600),
                max_stdout: 5 << 20,
                max_stderr: 5 << 20,
            },
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for container in self.containers() {
            self.docker(&["rm", "-f", "-v", &container]);
        }
        self.docker(&["network", "rm", &self.instance]);
        let volumes = self.said(&["volume", "ls", "-q", "--filter", &format!("name={}", self.instance)]);
        for volume in volumes.lines() {
            self.docker(&["volume", "rm", volume]);
        }
    }
}

/// A spawner process. Dropping it kills it: nothing it was doing goes on.
pub struct Running {
    pub caller: Caller,
    tasks: Vec<tokio::task::AbortHandle>,
    _stop: DropGuard,
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Whoever has the key.
#[derive(Clone)]
pub struct Caller {
    base: String,
    /// Begins every session's name.
    pub prefix: String,
    pub token: &'static str,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Caller {
    fn new(base: String, prefix: String) -> Self {
        Self { base, prefix, token: TOKEN, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// The session's whole name.
    pub fn id(&self, session: &str) -> String {
        format!("{}{session}", self.prefix)
    }

    pub fn signed(&self, method: &Method, path: &str, body: &[u8], nonce: &str, skew_ms: i64) -> Request<Full<Bytes>> {
        let path = &path.replace("/v1/sessions/", &format!("/v1/sessions/{}", self.prefix));
        let timestamp = (SystemClock.now_ms() + skew_ms).to_string();
        let signed = Signed { method: method.as_str(), path_and_query: path, timestamp: &timestamp, nonce, body };
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(TIMESTAMP_HEADER, &timestamp)
            .header(NONCE_HEADER, nonce)
            .header(SIGNATURE_HEADER, signed.sign(&Key::new(self.token).unwrap()))
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap()
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
        let answer = self.client.request(request).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let value =
            serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into()));
        (status, value)
    }

    pub async fn unsigned(&self, path: &str) -> (StatusCode, Value) {
        let request = Request::get(format!("{}{path}", self.base)).body(Full::default()).unwrap();
        self.send(request).await
    }

    pub async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
        self.send(self.signed(&method, path, &bytes, &nonce(), 0)).await
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.call(Method::GET, path, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, body).await
    }

    pub async fn create(&self, session: &str) -> (StatusCode, Value) {
        let body = json!({"sessionId": self.id(session), "organizationId": "acme", "profile": "agent", "env": {"GREETING": "hi"}});
        self.post("/v1/sessions", body).await
    }

    pub async fn release(&self, session: &str) {
        let ticket = self.get(&format!("/v1/sessions/{session}/release")).await.1;
        let released =
            self.post(&format!("/v1/sessions/{session}/release"), json!({"generation": ticket["generation"]})).await;
        assert_eq!(released.1["released"], true, "{released:?}");
    }

    /// Opens a stream.
    pub async fn stream(&self, method: Method, path: &str, body: Value) -> Following {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
        let mut answer = self.client.request(self.signed(&method, path, &bytes, &nonce(), 0)).await.unwrap();
        // "Cannot be told now, ask again": a busy engine is slow.
        for _ in 0..10 {
            if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            answer = self.client.request(self.signed(&method, path, &bytes, &nonce(), 0)).await.unwrap();
        }
        let status = answer.status();
        let body = answer.into_body();
        if status != StatusCode::OK {
            panic!("{status}: {:?}", body.collect().await.unwrap().to_bytes());
        }
        Following { body, reader: Reader::new(32 << 20), events: Vec::new() }
    }

    pub async fn exec(&self, session: &str, exec: &str, shell: &str) -> Following {
        let body = json!({"execId": exec, "shell": shell});
        self.stream(Method::POST, &format!("/v1/sessions/{session}/exec"), body).await
    }

    /// Runs a script to its end and answers what it printed, both outputs after one another.
    pub async fn run(&self, session: &str, shell: &str) -> (ExecResult, String) {
        self.run_with(session, shell, json!({})).await
    }

    /// The same with variables of its own.
    pub async fn run_with(&self, session: &str, shell: &str, env: Value) -> (ExecResult, String) {
        let body = json!({"execId": format!("run-{}", nonce()), "shell": shell, "env": env});
        self.stream(Method::POST, &format!("/v1/sessions/{session}/exec"), body).await.end().await
    }
}

pub fn nonce() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// A stream that is read.
pub struct Following {
    body: hyper::body::Incoming,
    reader: Reader,
    events: Vec<SpawnerEvent>,
}

impl Following {
    /// The next events.
    pub async fn more(&mut self) -> Option<Vec<SpawnerEvent>> {
        loop {
            if !self.events.is_empty() {
                return Some(std::mem::take(&mut self.events));
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                let events = &mut self.events;
                self.reader.push(&bytes, |event| events.push(event)).unwrap();
            }
        }
    }

    /// Reads until `text` was printed; answers the number of its event.
    pub async fn until(&mut self, text: &str) -> u64 {
        loop {
            for event in self.more().await.expect("the stream ended early") {
                if let SpawnerEvent::Output { seq, bytes, .. } = &event
                    && String::from_utf8_lossy(bytes).contains(text)
                {
                    return *seq;
                }
            }
        }
    }

    /// Reads to the end: the result, and what was streamed.
    pub async fn end(mut self) -> (ExecResult, String) {
        let mut text = [String::new(), String::new()];
        while let Some(events) = self.more().await {
            for event in events {
                match event {
                    SpawnerEvent::Output { stream, bytes, .. } => {
                        text[usize::from(stream == Stream::Stderr)].push_str(&String::from_utf8_lossy(&bytes));
                    }
                    SpawnerEvent::Result(result) => return (*result, text.concat()),
                    _ => {}
                }
            }
        }
        panic!("the stream had no result");
    }
}

pub fn decoded(base64: &str) -> String {
    String::from_utf8(STANDARD.decode(base64).unwrap()).unwrap()
}
