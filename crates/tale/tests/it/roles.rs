//! The roles as processes of their own, on one database: the real program, real signals.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tale_blobs::embedded::{self, Running};
use tale_testkit::TestDb;
use tale_testkit::upstream::{FakeUpstream, Reply, Step};

/// A bound on waiting, not a measure of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
const SITE: &str = "http://localhost:3005";
const PASSWORD: &str = "Blue-Kettle-42";

/// What the processes of a deployment share.
pub(crate) struct Deployment {
    pub(crate) db: TestDb,
    pub(crate) store: Running,
    pub(crate) upstream: FakeUpstream,
    pub(crate) folder: tempfile::TempDir,
}

impl Deployment {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let service = embedded::service(&folder.path().join("objects"), "tale", &"secret".into()).unwrap();
        std::fs::create_dir(folder.path().join("web")).unwrap();
        std::fs::write(folder.path().join("web/index.html"), "<!doctype html><title>app</title>").unwrap();
        Self {
            db: TestDb::new().await,
            store: Running::start(service).await.unwrap(),
            upstream: FakeUpstream::start().await,
            folder,
        }
    }

    pub(crate) fn backend(&self, role: &str, name: &str, more: &[(&str, &str)]) -> Process {
        let key = "ab".repeat(32);
        let data = self.folder.path().join(name);
        let mut pairs = vec![
            ("ROLE", role.to_owned()),
            ("BETTER_AUTH_SECRET", "0123456789abcdef0123".to_owned()),
            ("ENCRYPTION_SECRET_HEX", key.clone()),
            ("INSTANCE_SECRET", "cd".repeat(32)),
            ("DATABASE_URL", self.db.app_url()),
            ("KNOWLEDGE_DATABASE_URL", self.db.knowledge_url()),
            ("OBJECT_STORE_ENDPOINT", self.store.endpoint.to_string()),
            ("OBJECT_STORE_ACCESS_KEY", "tale".to_owned()),
            ("OBJECT_STORE_SECRET_KEY", "secret".to_owned()),
            ("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS", "1".to_owned()),
            ("TALE_DATA_DIR", data.display().to_string()),
        ];
        pairs.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Process::start(&self.folder.path().join(format!("{name}.log")), &pairs)
    }

    /// The web tier, which gets no secret and no database.
    fn platform(&self, backend: &Process, name: &str) -> Process {
        let web = self.folder.path().join("web");
        let pairs = [
            ("ROLE", "platform".to_owned()),
            ("TALE_BACKEND_URL", backend.address()),
            ("TALE_WEB_DIR", web.display().to_string()),
        ];
        Process::start(&self.folder.path().join(format!("{name}.log")), &pairs)
    }
}

/// A running `tale serve`, killed with this value.
pub(crate) struct Process {
    child: Child,
    pub(crate) port: u16,
    /// The line it printed when it was ready.
    pub(crate) said: String,
    log: std::path::PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    pub(crate) fn start(log: &std::path::Path, pairs: &[(&str, String)]) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tale"))
            .arg("serve")
            .env_clear()
            .env("SITE_URL", SITE)
            .env("PORT", port.to_string())
            .envs(pairs.contains(&("ROLE", "llm-gateway".to_owned())).then(|| ("LLM_GATEWAY_PORT", port.to_string())))
            .envs(pairs.iter().map(|(name, value)| (*name, value.as_str())))
            .stdout(Stdio::piped())
            .stderr(File::create(log).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let process = Self { child, port, said: said.trim().to_owned(), log: log.to_owned() };
        assert!(process.said.starts_with("ready"), "{}", process.log());
        process
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn signal(&self) {
        self.send(rustix::process::Signal::TERM);
    }

    /// As power that is cut.
    pub(crate) fn kill(&self) {
        self.send(rustix::process::Signal::KILL);
    }

    fn send(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) async fn code(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(PATIENCE, async {
            loop {
                match self.child.try_wait().unwrap() {
                    Some(status) => return status.code(),
                    None => tokio::time::sleep(PAUSE).await,
                }
            }
        });
        ended.await.unwrap_or_else(|_| panic!("it does not end:\n{}", std::fs::read_to_string(&self.log).unwrap()))
    }

    pub(crate) async fn status(&self, path: &str) -> Option<StatusCode> {
        client().get(format!("{}{path}", self.address())).send().await.ok().map(|answer| answer.status())
    }
}

pub(crate) fn client() -> reqwest::Client {
    tale_core::net::install_tls_provider();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// A browser that may talk to any replica: its cookie is good at all of them.
pub(crate) struct Browser {
    client: reqwest::Client,
    cookie: String,
    pub(crate) org: String,
    pub(crate) key: String,
}

impl Browser {
    /// The owner of a new deployment, set up at `process`.
    pub(crate) async fn owner(process: &Process) -> Self {
        let form = json!({ "name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme" });
        let answer = client()
            .post(format!("{}/api/app/setup", process.address()))
            .header("origin", SITE)
            .header("host", "localhost:3005")
            .json(&form)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{}", process.log());
        let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let org = answer.json::<Value>().await.unwrap()["organization"]["id"].as_str().unwrap().to_owned();
        let mut browser = Self { client: client(), cookie, org, key: String::new() };
        let key = browser.post(process, "/api/app/api-keys", json!({ "name": "test", "expiresInDays": 30 })).await;
        browser.key = key["key"].as_str().unwrap().to_owned();
        browser
    }

    /// A call of the other door, with the person's key.
    pub(crate) async fn v1(
        &self,
        method: reqwest::Method,
        process: &Process,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let request =
            self.client.request(method, format!("{}/api/v1/{path}", process.address())).bearer_auth(&self.key);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Uploads a text straight to the store and makes it a document; its id.
    pub(crate) async fn upload(&self, process: &Process, name: &str, content: &str) -> String {
        let slot = json!({ "fileName": name, "contentType": "text/plain", "size": content.len() });
        let slot = self.post(process, "/api/app/uploads", slot).await;
        let mut put = self.client.put(slot["url"].as_str().unwrap()).body(content.to_owned());
        for (name, value) in slot["headers"].as_object().unwrap() {
            put = put.header(name, value.as_str().unwrap());
        }
        assert_eq!(put.send().await.unwrap().status(), 200);
        let document = json!({ "fileId": slot["fileId"] });
        let made = self.v1(reqwest::Method::POST, process, "documents", Some(document)).await;
        made["id"].as_str().unwrap().to_owned()
    }

    fn request(&self, method: reqwest::Method, process: &Process, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}?orgId={}", process.address(), self.org))
            .header("origin", SITE)
            .header("host", "localhost:3005")
            .header("cookie", &self.cookie)
    }

    pub(crate) async fn get(&self, process: &Process, path: &str) -> Value {
        let answer = self.request(reqwest::Method::GET, process, path).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}: {}", process.log());
        answer.json().await.unwrap()
    }

    pub(crate) async fn post(&self, process: &Process, path: &str, body: Value) -> Value {
        let answer = self.request(reqwest::Method::POST, process, path).json(&body).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn put(&self, process: &Process, path: &str, body: Value) {
        let answer = self.request(reqwest::Method::PUT, process, path).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
    }

    pub(crate) async fn connect_model(&self, process: &Process, upstream: &FakeUpstream) {
        let provider = json!({
            "name": "local", "displayName": "Local", "apiFormat": "openai", "baseUrl": upstream.openai_base(), "apiKey": "sk-local-0123456789",
            "models": [{ "id": "fake-chat", "contextWindow": 32000, "maxOutputTokens": 2000, "purposes": ["chat"], "capabilities": { "tools": false, "vision": false, "reasoning": false } }],
        });
        self.post(process, "/api/app/providers", provider).await;
    }

    async fn events(&self, process: &Process) -> reqwest::Response {
        self.request(reqwest::Method::GET, process, "/events").send().await.unwrap()
    }
}

/// Reads a live stream until it says `words`.
async fn until(stream: &mut reqwest::Response, words: &str) {
    let mut heard = String::new();
    let read = tokio::time::timeout(PATIENCE, async {
        while !heard.contains(words) {
            let Some(chunk) = stream.chunk().await.unwrap() else { panic!("the stream ended after {heard}") };
            heard.push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    read.await.unwrap_or_else(|_| panic!("the stream never said {words}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_a_worker_and_a_web_tier_are_one_deployment() {
    let deployment = Deployment::new().await;
    let one = deployment.backend("backend-api", "one", &[]);
    let two = deployment.backend("api", "two", &[]);
    let ada = Browser::owner(&one).await;
    let mut live = ada.events(&two).await;
    until(&mut live, "event: hello").await;

    // Accepted by one replica, read by the worker, told and found at the other.
    let document = ada.upload(&one, "kettles.txt", "The violet kettle sings at dawn.").await;
    let path = format!("documents/{document}");
    let worker = deployment.backend("worker", "worker", &[]);
    assert_eq!(worker.said, "ready backend-worker");
    assert!(worker.status("/ping").await.is_none(), "the worker listens on nothing");
    until(&mut live, "\"topic\":\"documents\"").await;
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if ada.v1(reqwest::Method::GET, &two, &path, None).await["indexing"]["status"] == "completed" {
                let query = json!({ "query": "violet kettle" });
                let answer = ada.v1(reqwest::Method::POST, &two, "knowledge/search", Some(query)).await;
                if answer["hits"].as_array().is_some_and(|hits| !hits.is_empty()) {
                    return answer;
                }
            }
            // A key may ask only so often.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let answer = found.await.unwrap_or_else(|_| panic!("it is not found:\n{}", worker.log()));
    assert!(answer["hits"].to_string().contains("sings at dawn"), "{answer}");
    for api in [&one, &two] {
        assert!(!api.log().contains("worker started"), "the doors run no jobs");
    }

    // A turn runs where it was accepted, and is followed at the other replica.
    ada.connect_model(&one, &deployment.upstream).await;
    let sent =
        ada.post(&one, "/api/app/chat/threads/new/messages", json!({ "content": "Go", "model": "fake-chat" })).await;
    let thread = format!("/api/app/chat/threads/{}/messages", sent["threadId"].as_str().unwrap());
    let settled = tokio::time::timeout(PATIENCE, async {
        loop {
            let messages = ada.get(&two, &thread).await;
            if messages.to_string().contains("Hello from the fake model.") {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    settled.await.unwrap_or_else(|_| panic!("no answer:\n{}", one.log()));

    // The doors serve no pages, the web tier no doors.
    for path in ["/", "/chat/1", "/status", "/api/health"] {
        assert_eq!(one.status(path).await.unwrap(), 404, "{path}");
    }
    let web = deployment.platform(&one, "web");
    for (path, status) in
        [("/", 200), ("/chat/1", 200), ("/api/health", 200), ("/api/app/session", 404), ("/events", 404)]
    {
        assert_eq!(web.status(path).await.unwrap(), status, "{path}");
    }
    let report = |process: &Process| {
        let request = ada.client.get(format!("{}/status.json", process.address())).send();
        async move { request.await.unwrap() }
    };
    let up = report(&web).await;
    assert_eq!(up.headers()["cache-control"], "public, max-age=5");
    assert_eq!(up.json::<Value>().await.unwrap()["status"], "operational", "{}", web.log());

    // With the backend gone the web tier still answers, and says so.
    let away = deployment.platform(&two, "away");
    drop(two);
    let down = report(&away).await;
    assert_eq!(down.status(), 200);
    let down: Value = down.json().await.unwrap();
    assert_eq!((&down["status"], &down["components"][0]["status"]), (&json!("outage"), &json!("outage")));
    let page = ada.client.get(format!("{}/status", away.address())).header("accept-language", "de-CH, en;q=0.5");
    let page = page.send().await.unwrap();
    assert_eq!(page.headers()["content-language"], "de");
    let page = page.text().await.unwrap();
    assert!(page.contains("Ausgefallen.") && !page.contains("<script"), "{page}");

    for (role, process) in [("backend-api", &one), ("platform", &web)] {
        assert_eq!(healthcheck(&[role, "--port", &process.port.to_string()]), Some(0), "{role}");
    }
}

/// The exit code of `tale healthcheck`.
pub(crate) fn healthcheck(arguments: &[&str]) -> Option<i32> {
    Command::new(env!("CARGO_BIN_EXE_tale")).arg("healthcheck").args(arguments).env_clear().status().unwrap().code()
}

/// A model that says something and then nothing more.
fn unfinished() -> Reply {
    Reply::steps(vec![Step::Text("So far. ".to_owned()), Step::Hang])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_replica_says_so_finishes_within_its_budget_and_loses_nothing() {
    let deployment = Deployment::new().await;
    deployment.upstream.otherwise(unfinished());
    let mut one = deployment.backend("api", "one", &[("SHUTDOWN_DRAIN_MS", "10000")]);
    let two = deployment.backend("api", "two", &[]);
    let ada = Browser::owner(&one).await;
    ada.connect_model(&one, &deployment.upstream).await;
    let mut live = ada.events(&one).await;
    until(&mut live, "event: hello").await;
    let question = json!({ "content": "Go", "model": "fake-chat" });
    let sent = ada.post(&one, "/api/app/chat/threads/new/messages", question.clone()).await;
    let thread = sent["threadId"].as_str().unwrap().to_owned();
    tokio::time::timeout(PATIENCE, async {
        while deployment.upstream.open_answers() == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await
    .expect("the turn runs");

    one.signal();
    // The stream of hints ends, and with that the drain has begun.
    tokio::time::timeout(PATIENCE, async { while live.chunk().await.unwrap().is_some() {} })
        .await
        .expect("the stream ends");
    assert_eq!(one.status("/ready").await.unwrap(), 503);
    assert_eq!(one.status("/ping").await.unwrap(), 200);
    assert_eq!(ada.events(&one).await.status(), 503, "no new stream");
    let refused = ada.request(reqwest::Method::POST, &one, "/api/app/chat/threads/new/messages").json(&question);
    let refused = refused.send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), refused.json::<Value>().await.unwrap()["code"].clone()),
        (503, json!("DRAINING"))
    );
    assert_eq!(two.status("/ready").await.unwrap(), 200, "the other replica goes on");

    assert_eq!(one.code().await, Some(0), "{}", one.log());
    let messages = ada.get(&two, &format!("/api/app/chat/threads/{thread}/messages")).await;
    let reply = &messages["messages"][1];
    assert_eq!((&reply["status"], &reply["interrupted"]), (&json!("failed"), &json!(true)));
    assert!(reply.to_string().contains("So far."), "what had arrived is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_at_once() {
    let deployment = Deployment::new().await;
    deployment.upstream.otherwise(unfinished());
    let mut one = deployment.backend("api", "one", &[("SHUTDOWN_DRAIN_MS", "600000")]);
    let ada = Browser::owner(&one).await;
    ada.connect_model(&one, &deployment.upstream).await;
    let mut live = ada.events(&one).await;
    until(&mut live, "event: hello").await;
    ada.post(&one, "/api/app/chat/threads/new/messages", json!({ "content": "Go", "model": "fake-chat" })).await;
    one.signal();
    tokio::time::timeout(PATIENCE, async { while live.chunk().await.unwrap().is_some() {} })
        .await
        .expect("the stream ends");
    one.signal();
    assert_eq!(one.code().await, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_and_an_idle_web_tier_stop_at_the_first_signal() {
    let deployment = Deployment::new().await;
    let mut worker = deployment.backend("backend-worker", "worker", &[]);
    let mut web = deployment.platform(&worker, "web");
    worker.signal();
    web.signal();
    assert_eq!((worker.code().await, web.code().await), (Some(0), Some(0)));
}
