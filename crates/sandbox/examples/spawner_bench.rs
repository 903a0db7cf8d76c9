//! The figures of `bench/sandbox.md`: `cargo run --release --package tale-sandbox --example spawner_bench -- PROGRAM [SESSIONS]`.
//!
//! Starts `PROGRAM serve sandbox` on the engine at `DOCKER_HOST` and speaks its signed interface. Beside each figure
//! stands what `docker run`, `docker exec` or fork and exec take, in turn with it in the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails ends")]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::future::Future;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tale_core::SystemClock;
use tale_core::clock::Clock as _;
use tale_sandbox_wire::sign::{Key, NONCE_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER};
use tale_sandbox_wire::sse::{Reader, ResultStatus, SpawnerEvent};

const IMAGE: &str = "tale-sandbox-runtime:latest";
const NETWORK: &str = "tale-bench-net";
const TOKEN: &str = "a token of a measurement";
const BIG: usize = 1 << 30;

/// A spawner in a process of its own, and whoever calls it.
struct Spawner {
    process: Child,
    root: tempfile::TempDir,
    base: String,
    client: Client<HttpConnector, Full<Bytes>>,
    count: AtomicU64,
}

impl Spawner {
    async fn start(program: &str) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = tempfile::tempdir_in(std::env::current_dir().unwrap().join("target")).unwrap();
        let process = Command::new(program)
            .args(["serve", "sandbox"])
            .env_clear()
            .env("DOCKER_HOST", std::env::var("DOCKER_HOST").expect("DOCKER_HOST names an engine"))
            .env("SANDBOX_TOKEN", TOKEN)
            .env("SANDBOX_PORT", port.to_string())
            .env("SANDBOX_HOST_SESSION_ROOT", root.path().join("sessions"))
            .env("SANDBOX_INSTANCE", "bench")
            .env("SANDBOX_EGRESS_NETWORK", NETWORK)
            .env("SANDBOX_MAX_SESSIONS", "200")
            .env("SANDBOX_CPU_PRESSURE_PERCENT", "0")
            .env("SANDBOX_MIN_FREE_DISK", "0")
            .env("SANDBOX_SKIP_IMAGE_WARMUP", "1")
            .env("TALE_LOG", "warn")
            .spawn()
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let spawner =
            Self { process, root, base: format!("http://127.0.0.1:{port}"), client, count: AtomicU64::default() };
        for _ in 0..200 {
            let asked = Request::get(format!("{}/health", spawner.base)).body(Full::default()).unwrap();
            if spawner.client.request(asked).await.is_ok_and(|answer| answer.status().is_success()) {
                return spawner;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the spawner does not answer");
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Response<Incoming> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let timestamp = SystemClock.now_ms().to_string();
        let nonce = format!("n{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        let signed =
            Signed { method: method.as_str(), path_and_query: path, timestamp: &timestamp, nonce: &nonce, body: &body };
        let request = Request::builder()
            .method(&method)
            .uri(format!("{}{path}", self.base))
            .header(TIMESTAMP_HEADER, &timestamp)
            .header(NONCE_HEADER, &nonce)
            .header(SIGNATURE_HEADER, signed.sign(&Key::new(TOKEN).unwrap()))
            .body(Full::new(body.into()))
            .unwrap();
        self.client.request(request).await.unwrap()
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send(method, path, &body).await;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    }

    async fn create(&self, session: &str) {
        let body = json!({"sessionId": session, "organizationId": "bench", "profile": "agent"});
        self.call(Method::POST, "/v1/sessions", body).await;
    }

    async fn destroy(&self, session: &str) {
        self.call(Method::DELETE, &format!("/v1/sessions/{session}"), Value::Null).await;
    }

    async fn release(&self, session: &str) {
        let path = format!("/v1/sessions/{session}/release");
        let ticket = self.call(Method::GET, &path, Value::Null).await;
        self.call(Method::POST, &path, json!({"generation": ticket["generation"]})).await;
    }

    async fn acquire(&self, session: &str) {
        self.call(Method::POST, &format!("/v1/sessions/{session}/acquire"), Value::Null).await;
    }

    /// Runs a command to its end; `each` hears how many bytes came, and of which event they are.
    async fn exec(&self, session: &str, mut body: Value, mut each: impl FnMut(usize, u64)) {
        body["execId"] = format!("e{}", self.count.fetch_add(1, Ordering::Relaxed)).into();
        body["collectOutput"] = false.into();
        let answer = self.send(Method::POST, &format!("/v1/sessions/{session}/exec"), &body).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let (mut body, mut reader) = (answer.into_body(), Reader::new(32 << 20));
        while let Some(frame) = body.frame().await {
            let frame = frame.unwrap();
            let Some(bytes) = frame.data_ref() else { continue };
            reader
                .push(bytes, |event| match event {
                    SpawnerEvent::Output { seq, bytes, .. } => each(bytes.len(), seq),
                    SpawnerEvent::Result(result) => assert_eq!(result.status, ResultStatus::Completed, "{result:?}"),
                    _ => {}
                })
                .unwrap();
        }
    }

    /// Runs `echo`; answers when its line was there, and when everything was.
    async fn echo(&self, session: &str) -> (Instant, Instant) {
        let mut first = None;
        self.exec(session, json!({"command": ["/bin/echo", "hi"]}), |_, _| {
            first.get_or_insert_with(Instant::now);
        })
        .await;
        (first.expect("no output"), Instant::now())
    }

    /// Resident memory, and what of it is no file, in KiB.
    fn memory(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        (field("VmRSS:"), field("RssAnon:"))
    }

    /// Processor time, in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let mut fields = text.rsplit_once(')').unwrap().1.split_ascii_whitespace().skip(11);
        fields.next().unwrap().parse::<u64>().unwrap() + fields.next().unwrap().parse::<u64>().unwrap()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.process.id().cast_signed()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.process.wait();
        let found = docker(&["ps", "-aq", "--filter", "label=tale.sandbox-instance=bench"]);
        for container in found.split_ascii_whitespace() {
            docker(&["rm", "-f", "-v", container]);
        }
        docker(&["network", "rm", NETWORK]);
    }
}

fn docker(arguments: &[&str]) -> String {
    String::from_utf8_lossy(&Command::new("docker").args(arguments).output().unwrap().stdout).trim().to_owned()
}

/// Until a command has printed its first line.
fn first_line(arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let mut child =
        Command::new(arguments[0]).args(&arguments[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let took = begun.elapsed();
    assert_eq!(line, "hi\n", "{arguments:?}");
    child.wait().unwrap();
    took
}

/// Measurements of one kind.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    fn quantile(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        self.0[((self.0.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0
    }

    fn row(&mut self, name: &str) -> f64 {
        let (middle, late) = (self.quantile(0.5), self.quantile(0.95));
        println!("| {name} | {middle:.2} | {late:.2} |");
        middle
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let begun = Instant::now();
    let value = work.await;
    (begun.elapsed(), value)
}

async fn starts(spawner: &Spawner) {
    const ROUNDS: usize = 25;
    let (mut theirs, mut ours, mut created) = (Times::default(), Times::default(), Times::default());
    for round in 0..=ROUNDS {
        let name = format!("tale-bench-{round}");
        let run = first_line(&[
            "docker",
            "run",
            "--name",
            &name,
            "--network",
            NETWORK,
            "--entrypoint",
            "/bin/echo",
            IMAGE,
            "hi",
        ]);
        docker(&["rm", "-f", &name]);
        let begun = Instant::now();
        let session = format!("start{round}");
        spawner.create(&session).await;
        let ready = begun.elapsed();
        let (first, _) = spawner.echo(&session).await;
        spawner.destroy(&session).await;
        // The first of each warms up.
        if round > 0 {
            theirs.0.push(run);
            created.0.push(ready);
            ours.0.push(first - begun);
        }
    }
    println!("| start, {ROUNDS} times in turn | p50 ms | p95 ms |\n|---|---|---|");
    let run = theirs.row("`docker run` to its line");
    created.row("create, to its answer");
    let whole = ours.row("create and exec, to the first output");
    println!("\nCreate to first output: {:.2} x docker run.\n", whole / run);
}

async fn warm(spawner: &Spawner) {
    const ROUNDS: usize = 100;
    let container = docker(&["ps", "-q", "--filter", "label=tale.session=warm"]);
    let [mut plain, mut execs, mut acquires, mut firsts, mut lives] = std::array::from_fn(|_| Times::default());
    for round in 0..ROUNDS + 5 {
        let exec = first_line(&["docker", "exec", &container, "/bin/echo", "hi"]);
        let fork = first_line(&["/bin/echo", "hi"]);
        spawner.release("warm").await;
        let begun = Instant::now();
        spawner.acquire("warm").await;
        let acquired = begun.elapsed();
        let (first, _) = spawner.echo("warm").await;
        let (live, _) = timed(spawner.echo("warm")).await;
        if round >= 5 {
            plain.0.push(fork);
            execs.0.push(exec);
            acquires.0.push(acquired);
            firsts.0.push(first - begun);
            lives.0.push(live);
        }
    }
    println!("| a warm session, {ROUNDS} times in turn | p50 ms | p95 ms |\n|---|---|---|");
    let exec = execs.row("`docker exec` to its line");
    acquires.row("acquire of a released session");
    let first = firsts.row("acquire and exec, to the first output");
    let fork = plain.row("fork and exec, to its line");
    let live = lives.row("exec in a live session, to its result");
    println!(
        "\nAcquire to first output: {:.2} x docker exec. Exec over fork and exec: {:.2} ms.\n",
        first / exec,
        live - fork
    );
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64() / 1e6
}

async fn output(spawner: &Arc<Spawner>) {
    let exec = Arc::new(format!("e{}", spawner.count.load(Ordering::Relaxed)));
    let (marks, mut marked) = tokio::sync::mpsc::unbounded_channel::<u64>();
    let saver = tokio::spawn({
        let (spawner, exec) = (Arc::clone(spawner), Arc::clone(&exec));
        async move {
            while let Some(seq) = marked.recv().await {
                let path = format!("/v1/sessions/warm/exec/{exec}/checkpoint");
                spawner.call(Method::PUT, &path, json!({"seq": seq, "state": null})).await;
            }
        }
    });
    let before = spawner.ticks();
    let (mut total, mut last) = (0, 0);
    let body = json!({"shell": format!("head -c {BIG} /dev/zero")});
    let run = spawner.exec("warm", body, |count, seq| {
        total += count;
        if total - last >= 8 << 20 {
            last = total;
            marks.send(seq).unwrap();
        }
    });
    let (took, ()) = timed(run).await;
    drop(marks);
    saver.await.unwrap();
    assert_eq!(total, BIG);
    println!("1 GiB of output, through journal, daemon and spawner, decoded: {:.0} MB/s;", rate(BIG, took));
    println!("{} ms of processor time in the spawner.\n", (spawner.ticks() - before) * 10);
}

async fn many(spawner: &Arc<Spawner>, sessions: usize) {
    let (before, _) = spawner.memory();
    for number in 1..sessions {
        spawner.create(&format!("many{number}")).await;
    }
    let (after, own) = spawner.memory();
    println!("Spawner, resident: {before} KiB with 1 session, {after} KiB with {sessions}, {own} KiB of it no file.");
    for number in 1..sessions {
        spawner.destroy(&format!("many{number}")).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().expect("the path of the program `tale`");
    let sessions = arguments.next().map_or(100, |number| number.parse().expect("a number of sessions"));
    assert!(Path::new(&program).exists(), "there is no {program}");
    let spawner = Arc::new(Spawner::start(&program).await);
    spawner.create("warm").await;
    starts(&spawner).await;
    many(&spawner, sessions).await;
    warm(&spawner).await;
    output(&spawner).await;
    spawner.destroy("warm").await;
    spawner.call(Method::DELETE, "/v1/organizations/bench", Value::Null).await;
    let _ = &spawner.root;
}
