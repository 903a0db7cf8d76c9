//! The figures of `bench/sandboxd.md`: `cargo run --release --example bench -p tale-sandboxd -- PROGRAM`.
//!
//! Each figure stands beside what the same machine does without a daemon in the same run: plain fork and
//! exec, a plain pipe.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails ends")]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tale_sandbox_wire::event::{Event, Reader};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Session {
    init: Child,
    address: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Session {
    fn start(program: &str) -> Self {
        let dir = tempfile::tempdir_in("target").unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut init = Command::new(program)
            .arg("daemon")
            .env("TALE_RUNNERD_TOKEN", TOKEN)
            .env("TALE_RUNNERD_LISTEN", address.to_string())
            .env("TALE_RUNNERD_ROOT", dir.path().canonicalize().unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(init.stderr.take().unwrap()).lines();
        assert!(log.any(|line| line.unwrap().contains("listening")));
        std::thread::spawn(move || log.for_each(drop));
        Self { init, address, _dir: dir }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Resident and proportional memory of process 1 and the daemon, in KiB.
    fn memory(&self) -> (u64, u64) {
        let own = self.init.id().cast_signed();
        let mut total = (0, 0);
        for pid in std::iter::once(own).chain(tale_sandboxd::procs::below(own).into_iter().map(|process| process.pid)) {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
            let field = |name: &str| {
                let line = text.lines().find(|line| line.starts_with(name)).unwrap();
                line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
            };
            total = (total.0 + field("Rss:"), total.1 + field("Pss:"));
        }
        total
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.init.id().cast_signed()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.init.wait();
    }
}

fn request(method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path).header("host", "x").header("x-tale-runnerd-token", TOKEN);
    request.body(Full::new(body.to_string().into())).unwrap()
}

/// Runs a command; `each` hears how many bytes came, and of which event the last ones are.
async fn exec(sender: &mut SendRequest<Full<Bytes>>, body: Value, mut each: impl FnMut(usize, u64)) {
    sender.ready().await.unwrap();
    let response = sender.send_request(request(Method::POST, "/execs", &body)).await.unwrap();
    let mut body = response.into_body();
    let mut reader = Reader::new(0);
    while let Some(frame) = body.frame().await {
        let frame = frame.unwrap();
        reader
            .push(frame.data_ref().unwrap(), |numbered| match numbered.event {
                Event::Output { bytes, .. } => each(bytes.len(), numbered.seq.unwrap()),
                Event::Fail { code, message } => panic!("{code:?} {message}"),
                _ => {}
            })
            .unwrap();
    }
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let at = ((times.len() - 1) as f64 * part) as usize;
    times[at].as_secs_f64() * 1000.0
}

async fn latency(program: &str) {
    const ROUNDS: usize = 300;
    let session = Session::start(program);
    let mut sender = session.connect().await;
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 20 {
        let begun = Instant::now();
        let output = Command::new("/bin/echo").arg("hi").stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.stdout, b"hi\n");
        let plain_took = begun.elapsed();
        let begun = Instant::now();
        let mut bytes = 0;
        let body = json!({"execId": format!("e{round}"), "command": ["/bin/echo", "hi"]});
        exec(&mut sender, body, |count, _| bytes += count).await;
        assert_eq!(bytes, 3);
        if round >= 20 {
            plain.push(plain_took);
            ours.push(begun.elapsed());
        }
    }
    println!("| one line from /bin/echo, {ROUNDS} times | p50 ms | p95 ms |\n|---|---|---|");
    for (name, times) in [("fork, exec, read, wait", &mut plain), ("exec in a live session, to its end", &mut ours)] {
        println!("| {name} | {:.2} | {:.2} |", quantile(times, 0.5), quantile(times, 0.95));
    }
    let (rss, pss) = session.memory();
    println!("\nIdle after these: {rss} KiB resident, {pss} KiB proportional, process 1 and daemon together.\n");
}

async fn throughput(program: &str) {
    const BYTES: usize = 1 << 30;
    let script = format!("head -c {BYTES} /dev/zero");
    let begun = Instant::now();
    let mut child = Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut buffer = vec![0; 128 << 10];
    let mut total = 0;
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        total += count;
    }
    child.wait().unwrap();
    assert_eq!(total, BYTES);
    let plain = begun.elapsed().as_secs_f64();
    let session = Session::start(program);
    let mut sender = session.connect().await;
    let mut control = session.connect().await;
    let (marks, mut marked) = tokio::sync::mpsc::unbounded_channel::<u64>();
    let saver = tokio::spawn(async move {
        while let Some(seq) = marked.recv().await {
            control.ready().await.unwrap();
            let put = request(Method::PUT, "/execs/e/checkpoint", &json!({"seq": seq, "state": null}));
            let answer = control.send_request(put).await.unwrap();
            assert!(answer.status().is_success());
            drop(answer.into_body().collect().await.unwrap());
        }
    });
    let ticks = || tale_sandboxd::procs::ticks_below(session.init.id().cast_signed()).unwrap();
    let before = ticks();
    let begun = Instant::now();
    let (mut total, mut last) = (0, 0);
    exec(&mut sender, json!({"execId": "e", "shell": script}), |count, seq| {
        total += count;
        if total - last >= 8 << 20 {
            last = total;
            marks.send(seq).unwrap();
        }
    })
    .await;
    let ours = begun.elapsed().as_secs_f64();
    let processor = (ticks() - before) * 10;
    drop(marks);
    saver.await.unwrap();
    assert_eq!(total, BYTES);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = |seconds: f64| BYTES as f64 / seconds / 1e6;
    println!("| 1 GiB of output | MB/s |\n|---|---|\n| plain pipe, read in 128 KiB | {:.0} |", rate(plain));
    println!("| exec, journal on disk, decoded and acknowledged every 8 MiB | {:.0} |", rate(ours));
    println!("| processor time of command, supervisor and daemon together | {processor} ms |\n");
}

/// 25 sessions with four commands each write for two seconds; what share did each get?
async fn fairness(program: &str) {
    const SESSIONS: usize = 25;
    let sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::start(program)).collect();
    let counts: std::sync::Arc<Vec<std::sync::atomic::AtomicUsize>> =
        std::sync::Arc::new((0..SESSIONS * 4).map(|_| std::sync::atomic::AtomicUsize::new(0)).collect());
    let mut tasks = tokio::task::JoinSet::new();
    for (number, session) in sessions.iter().enumerate() {
        for exec_number in 0..4 {
            let mut sender = session.connect().await;
            let counts = std::sync::Arc::clone(&counts);
            let at = number * 4 + exec_number;
            tasks.spawn(async move {
                // Below the budget, so that nobody has to acknowledge.
                let body = json!({"execId": format!("e{exec_number}"), "shell": "head -c 12000000 /dev/zero"});
                exec(&mut sender, body, |count, _| {
                    counts[at].fetch_add(count, std::sync::atomic::Ordering::Relaxed);
                })
                .await;
            });
        }
    }
    let begun = Instant::now();
    // When the first is done, nobody was alone yet.
    tasks.join_next().await.unwrap().unwrap();
    let took = begun.elapsed().as_secs_f64();
    let mut shares: Vec<usize> = counts.iter().map(|count| count.load(std::sync::atomic::Ordering::Relaxed)).collect();
    shares.sort_unstable();
    let total: usize = shares.iter().sum();
    let mean = total / shares.len();
    tasks.abort_all();
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let (rate, low, median) =
        (total as f64 / took / 1e6, shares[5] as f64 / mean as f64, shares[50] as f64 / mean as f64);
    println!("| 100 commands at once, in 25 sessions, until the first has its 12 MB | |\n|---|---|");
    println!(
        "| all together, MB/s | {rate:.0} |\n| median share of the mean | {median:.2} |\n| share of the sixth from below | {low:.2} |"
    );
}

fn main() {
    let program = std::env::args().nth(1).expect("the program's path");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        latency(&program).await;
        throughput(&program).await;
        fairness(&program).await;
    });
}
