//! A session under test and a client for it.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tale_sandbox_wire::event::{BadStream, Event, Exit, Numbered, Reader, Stream};
use tokio::net::TcpStream;

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tale-sandboxd");

pub struct Session {
    init: Child,
    log: BufReader<ChildStderr>,
    dir: tempfile::TempDir,
    pub address: SocketAddr,
}

/// How a session is started.
pub struct How {
    pub before: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl Session {
    pub fn start() -> Self {
        Self::start_as(How { before: Vec::new(), env: Vec::new() })
    }

    pub fn with(env: &[(&str, &str)]) -> Self {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::start_as(How { before: Vec::new(), env })
    }

    /// Behind another program, such as `unshare`.
    pub fn behind(before: &[&str]) -> Self {
        Self::start_as(How { before: before.iter().map(|word| (*word).to_owned()).collect(), env: Vec::new() })
    }

    pub fn start_as(how: How) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Other users may have to enter it.
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut words = how.before.clone();
        words.extend([PROGRAM.to_owned(), "daemon".to_owned()]);
        let mut init = Command::new(&words[0])
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("TALE_RUNNERD_TOKEN", TOKEN)
            .env("TALE_RUNNERD_INCARNATION", "life-1")
            .env("TALE_RUNNERD_LISTEN", address.to_string())
            .env("TALE_RUNNERD_ROOT", dir.path())
            .envs(how.env)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(init.stderr.take().unwrap());
        let mut session = Self { init, log, dir, address };
        session.wait_for("listening on");
        session
    }

    /// Reads the log up to a line with `text`.
    pub fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the log ended before: {text}");
            if line.contains(text) {
                return;
            }
        }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn init_pid(&self) -> u32 {
        self.init.id()
    }

    pub fn init(&mut self) -> &mut Child {
        &mut self.init
    }

    /// The daemon, which is the only child of the first process with its word.
    pub fn daemon_pid(&self) -> i32 {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let address = format!("TALE_RUNNERD_LISTEN={}", self.address).into_bytes();
        pids.filter(|pid| command_line(*pid).contains("internal-serve"))
            .find(|pid| {
                let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                env.split(|byte| *byte == 0).any(|variable| variable == address)
            })
            .unwrap()
    }

    pub async fn send(&self, method: Method, path: &str, token: Option<&str>, body: Bytes) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "x");
        if let Some(token) = token {
            request = request.header("x-tale-runnerd-token", token);
        }
        sender.send_request(request.body(Full::new(body)).unwrap()).await.unwrap()
    }

    async fn json(&self, method: Method, path: &str, body: Bytes) -> (u16, Value) {
        let response = self.send(method, path, Some(TOKEN), body).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.json(Method::GET, path, Bytes::new()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.json(Method::POST, path, body.to_string().into()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.json(Method::PUT, path, body.to_string().into()).await
    }

    pub async fn exec(&self, body: Value) -> Output {
        let response = self.send(Method::POST, "/execs", Some(TOKEN), body.to_string().into()).await;
        assert_eq!(response.status().as_u16(), 200);
        Output::new(response, 0)
    }

    pub async fn shell(&self, id: &str, script: &str) -> Output {
        self.exec(json!({"execId": id, "shell": script})).await
    }

    /// Runs a script to its end: standard output, standard error, end.
    pub async fn run(&self, id: &str, script: &str) -> (String, String, Event) {
        self.shell(id, script).await.finish().await
    }

    pub async fn attach(&self, id: &str, since: u64) -> Output {
        let path = format!("/execs/{id}/attach?sinceSeq={since}");
        let response = self.send(Method::GET, &path, Some(TOKEN), Bytes::new()).await;
        assert_eq!(response.status().as_u16(), 200);
        Output::new(response, since)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let own = self.init.id().cast_signed();
        // Whatever stands before it may keep the signal to itself.
        let inside = tale_sandboxd::procs::below(own).into_iter().map(|process| process.pid);
        for pid in std::iter::once(own).chain(inside).filter(|pid| command_line(*pid).contains("tale-sandboxd daemon "))
        {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.init.wait();
    }
}

pub fn command_line(pid: i32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// Waits until a process is gone, without asking again and again.
pub async fn gone(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let Ok(held) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return };
    #[expect(deprecated, reason = "an owned descriptor is what it is sound for")]
    let held = tokio::io::unix::AsyncFd::with_interest(held, tokio::io::Interest::READABLE).unwrap();
    drop(held.readable().await.unwrap());
}

pub fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A stream of output. Whatever is not exactly the continuation ends the test.
pub struct Output {
    body: Incoming,
    reader: Reader,
    ready: std::collections::VecDeque<Numbered>,
}

impl Output {
    fn new(response: Response<Incoming>, since: u64) -> Self {
        Self { body: response.into_body(), reader: Reader::new(since), ready: std::collections::VecDeque::new() }
    }

    pub async fn next(&mut self) -> Option<Numbered> {
        self.try_next().await.unwrap()
    }

    /// The next event; an error of the connection counts as its end.
    pub async fn try_next(&mut self) -> Result<Option<Numbered>, BadStream> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let ready = &mut self.ready;
                    self.reader.push(frame.data_ref().unwrap(), |event| ready.push_back(event))?;
                }
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    /// Reads up to a piece of standard output with `text`; returns its event's number.
    pub async fn until(&mut self, text: &str) -> u64 {
        let mut all = String::new();
        loop {
            let numbered = self.next().await.expect("the stream ended");
            if let Event::Output { stream: Stream::Stdout, bytes } = &numbered.event {
                all.push_str(&String::from_utf8_lossy(bytes));
                if all.contains(text) {
                    return numbered.seq.unwrap();
                }
            }
            assert!(!numbered.event.is_end(), "ended before {text}: {numbered:?}, {all}");
        }
    }

    /// Reads to the end.
    pub async fn finish(mut self) -> (String, String, Event) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut end = None;
        while let Some(numbered) = self.next().await {
            match numbered.event {
                Event::Output { stream: Stream::Stdout, bytes } => out.extend(bytes),
                Event::Output { stream: Stream::Stderr, bytes } => err.extend(bytes),
                event if event.is_end() => end = Some(event),
                _ => {}
            }
        }
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(err), end.expect("no end came"))
    }
}

pub fn exit(event: &Event) -> &Exit {
    match event {
        Event::Exit(exit) => exit,
        other => panic!("not an exit: {other:?}"),
    }
}
