//! Measures chats under load against a running binary: see `bench/chat.md`.
//!
//! Starts `tale dev` on a fresh data directory and a model upstream of its own whose every token is
//! the time at which it was sent, then
//! 1. sends messages one after the other and measures our share of the time to the first token,
//! 2. lets CHATS chats stream RATE tokens a second each for SECONDS, every one of them followed over
//!    its own live stream, and measures delivery, delay, memory and processor time.
//!
//! `cargo run --release -p tale-testkit --example chat_load -- target/release/tale POSTGRES_DIR`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a measuring program")]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt;

const CHATS: usize = 300;
const RATE: u64 = 50;
const SECONDS: u64 = 20;
const SINGLE: usize = 200;
/// Messages before those that are measured: until then connections are opened and statements planned.
const WARM_UP: usize = 50;

/// Shared with the upstream.
struct Upstream {
    epoch: Instant,
    /// When the last request arrived, in nanoseconds since `epoch`.
    arrived: AtomicU64,
    tokens: AtomicUsize,
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let binary = args.next().expect("path of the binary");
    let postgres = args.next().expect("directory of Postgres");
    let upstream =
        Arc::new(Upstream { epoch: Instant::now(), arrived: AtomicU64::new(0), tokens: AtomicUsize::new(10) });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/v1/chat/completions", post(complete)).with_state(upstream.clone());
    // Without a pause for small segments, as providers run theirs.
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| stream.set_nodelay(true).unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });

    let data = tempfile::tempdir().unwrap();
    let mut tale = start(&binary, &postgres, data.path());
    let site = ready(&mut tale).await;
    let client = Tale::sign_up(&site, &base).await;

    single(&client, &upstream).await;
    let idle_kib = rss_kib(tale.id());
    load(&client, &upstream, tale.id(), idle_kib).await;
    let _ = Command::new("kill").arg(tale.id().to_string()).status();
    let _ = tale.wait();
}

fn start(binary: &str, postgres: &str, data: &std::path::Path) -> Child {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Command::new(binary)
        .args(["dev", "--port", &port.to_string(), "--data-dir"])
        .arg(data.join("data"))
        .env("TALE_EMBEDDED_POSTGRES_DIR", postgres)
        .env("TALE_ALLOW_PRIVATE_PROVIDER_HOSTS", "1")
        .env("TALE_LOG", "warn")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

async fn ready(tale: &mut Child) -> String {
    let stdout = tokio::process::ChildStdout::from_std(tale.stdout.take().unwrap()).unwrap();
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(site) = line.strip_prefix("ready ") {
            return site.to_owned();
        }
    }
    panic!("the binary ended without a ready line");
}

/// The upstream: each token is the time of its sending.
async fn complete(State(upstream): State<Arc<Upstream>>) -> Response {
    upstream.arrived.store(upstream.epoch.elapsed().as_nanos() as u64, Ordering::SeqCst);
    let tokens = upstream.tokens.load(Ordering::SeqCst);
    let stream = async_stream::stream! {
        let mut ticks = tokio::time::interval(Duration::from_millis(1000 / RATE));
        for _ in 0..tokens {
            ticks.tick().await;
            let text = format!("{} ", upstream.epoch.elapsed().as_nanos());
            let event = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
            yield Ok::<_, std::convert::Infallible>(Bytes::from(format!("data: {event}\n\n")));
        }
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }], "usage": { "prompt_tokens": 1, "completion_tokens": tokens } });
        yield Ok(Bytes::from(format!("data: {end}\n\ndata: [DONE]\n\n")));
    };
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(Body::from_stream(stream)).unwrap()
}

struct Tale {
    http: reqwest::Client,
    site: String,
    org: String,
    cookie: String,
}

impl Tale {
    async fn sign_up(site: &str, base: &str) -> Self {
        tale_core::net::install_tls_provider();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut tale = Self { http, site: site.to_owned(), org: String::new(), cookie: String::new() };
        let person = json!({ "name": "Ada", "email": "ada@example.org", "password": "Correct-Horse-9" });
        let answer = tale
            .http
            .post(format!("{site}/api/auth/sign-up/email"))
            .header("origin", site)
            .body(person.to_string())
            .send()
            .await
            .unwrap();
        let cookie = answer
            .headers()
            .get("set-cookie")
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.split(';').next());
        tale.cookie = cookie.expect("sign-up sets a cookie").to_owned();
        tale.org =
            tale.post("/api/app/organizations", json!({ "name": "Bench" })).await["id"].as_str().unwrap().to_owned();
        let model = json!({ "id": "m", "contextWindow": 128000, "maxOutputTokens": 4096, "purposes": ["chat"],
                            "capabilities": { "tools": false, "vision": false, "reasoning": false } });
        tale.post(
            "/api/app/providers",
            json!({ "name": "bench", "displayName": "Bench", "apiFormat": "openai", "baseUrl": base, "models": [model], "apiKey": "sk-bench-000000" }),
        )
        .await;
        tale
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let url = format!("{}{path}?orgId={}", self.site, self.org).replace("?orgId=&", "?");
        let url = url.trim_end_matches("?orgId=").to_owned();
        let answer = self
            .http
            .post(url)
            .header("origin", &self.site)
            .header("cookie", &self.cookie)
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn thread(&self) -> String {
        self.post("/api/app/chat/threads", json!({ "title": "Bench" })).await["id"].as_str().unwrap().to_owned()
    }

    async fn send(&self, thread: &str) {
        self.post(
            &format!("/api/app/chat/threads/{thread}/messages"),
            json!({ "content": "Go", "model": "m", "providerSlug": "bench" }),
        )
        .await;
    }

    /// Follows a chat until its turn is settled; returns the delays of its tokens in nanoseconds and
    /// when the first one came.
    async fn follow(&self, thread: &str, upstream: &Upstream) -> (Vec<u64>, Option<u64>) {
        let url = format!("{}/events?orgId={}&threadId={thread}", self.site, self.org);
        let mut body = self.http.get(url).header("cookie", &self.cookie).send().await.unwrap().bytes_stream();
        let (mut delays, mut first, mut seen, mut buffer) = (Vec::new(), None, 0usize, String::new());
        while let Some(Ok(piece)) = body.next().await {
            let now = upstream.epoch.elapsed().as_nanos() as u64;
            buffer.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some(end) = buffer.find("\n\n") {
                let block: String = buffer.drain(..end + 2).collect();
                let name = block.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default();
                let data: Value = block
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .and_then(|text| serde_json::from_str(text).ok())
                    .unwrap_or_default();
                let text = match name {
                    "settled" => return (delays, first),
                    "delta" => data["text"].as_str().unwrap_or_default().to_owned(),
                    "turn" => {
                        // A snapshot tells everything so far again.
                        let whole = data["parts"]
                            .as_array()
                            .and_then(|parts| parts.last())
                            .and_then(|part| part["text"].as_str())
                            .unwrap_or_default();
                        whole.split_whitespace().skip(seen).collect::<Vec<_>>().join(" ")
                    }
                    _ => continue,
                };
                for token in text.split_whitespace() {
                    seen += 1;
                    first.get_or_insert(now);
                    if let Ok(sent) = token.parse::<u64>() {
                        delays.push(now.saturating_sub(sent));
                    }
                }
            }
        }
        (delays, first)
    }
}

async fn single(tale: &Tale, upstream: &Upstream) {
    let mut shares = Vec::new();
    for number in 0..WARM_UP + SINGLE {
        let thread = tale.thread().await;
        let (follow, sent) = tokio::join!(tale.follow(&thread, upstream), async {
            // The stream is open first, as a browser's is.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let sent = upstream.epoch.elapsed().as_nanos() as u64;
            tale.send(&thread).await;
            sent
        });
        let arrived = upstream.arrived.load(Ordering::SeqCst);
        let (delays, _) = follow;
        if number >= WARM_UP {
            shares.push((arrived - sent) + delays.first().copied().unwrap_or_default());
        }
    }
    report("own share of the time to the first token", &mut shares);
}

async fn load(tale: &Tale, upstream: &Arc<Upstream>, pid: u32, idle_kib: u64) {
    upstream.tokens.store((RATE * SECONDS) as usize, Ordering::SeqCst);
    let mut threads = Vec::new();
    for _ in 0..CHATS {
        threads.push(tale.thread().await);
    }
    let cpu_before = cpu_ms(pid);
    let peak = Arc::new(AtomicU64::new(0));
    let watch = tokio::spawn({
        let peak = peak.clone();
        async move {
            loop {
                peak.fetch_max(rss_kib(pid), Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    let all = futures::future::join_all(threads.iter().map(|thread| async {
        let (followed, ()) = tokio::join!(tale.follow(thread, upstream), async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            tale.send(thread).await;
        });
        followed.0
    }))
    .await;
    watch.abort();
    let expected = CHATS * (RATE * SECONDS) as usize;
    let mut delays: Vec<u64> = all.into_iter().flatten().collect();
    println!("tokens delivered: {} of {expected}", delays.len());
    report("added delay of a token", &mut delays);
    let turns_kib = peak.load(Ordering::SeqCst).saturating_sub(idle_kib);
    println!(
        "memory: {} KiB idle, {} KiB at the peak, {} KiB a running turn with its reader",
        idle_kib,
        idle_kib + turns_kib,
        turns_kib / CHATS as u64
    );
    println!(
        "processor time: {:.1} ms an answer of {} tokens, {:.2} ms per 100 tokens",
        (cpu_ms(pid) - cpu_before) / CHATS as f64,
        RATE * SECONDS,
        (cpu_ms(pid) - cpu_before) / (expected as f64 / 100.0)
    );
}

fn report(name: &str, nanos: &mut [u64]) {
    nanos.sort_unstable();
    let at =
        |share: f64| nanos.get(((nanos.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default() as f64 / 1e6;
    println!(
        "{name}: p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, max {:.2} ms ({} samples)",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0),
        nanos.len()
    );
}

fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or_default()
}

/// User and system time of the process in milliseconds.
fn cpu_ms(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    // Fields 14 and 15 of stat(5), in hundredths of a second.
    (ticks(11) + ticks(12)) * 10.0
}
