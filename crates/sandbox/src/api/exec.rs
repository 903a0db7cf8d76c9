//! Commands and files: relayed to the daemon. Streams are turned from the daemon's lines into the platform's events,
//! pulled by whoever reads: one chunk is in hand at a time, and dropping the answer drops the daemon's stream with it.

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::unfold;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use tale_sandbox_wire::daemon::{DaemonError as WireError, Refusal};
use tale_sandbox_wire::event::{self, Event, Exit, FailCode, Numbered, Stream, Truncated};
use tale_sandbox_wire::exec::{ExecRequest, check_env_name};
use tale_sandbox_wire::spawner::ErrorCode as Code;
use tale_sandbox_wire::sse::{
    self, ErrorCode, ExecResult, KEEP_ALIVE, KEEP_ALIVE_EVERY, Phase, ResultStatus, SpawnerEvent,
};

use super::Api;
use super::answer::{Refused, with_head};
use super::route::{Call, Route};
use super::sessions::refused_hold;
use crate::backend::ComputeState;
use crate::daemon::{Answer, DaemonError, Target};
use crate::spawner::{Followed, Spawner};

/// Largest refusal that is read from a daemon.
const LARGEST_REFUSAL: usize = 64 << 10;

impl Api {
    /// Starts a command before it answers: a refusal is an answer of its own, never a failed run (SBX-195).
    pub(super) async fn exec(&self, call: &Call) -> Result<Response, Refused> {
        let mut request: ExecRequest = call.json()?;
        request.argv().map_err(|error| Refused::bad(error.to_string()))?;
        request.stdin().map_err(|error| Refused::bad(error.to_string()))?;
        request
            .env
            .keys()
            .try_for_each(|name| check_env_name(name))
            .map_err(|error| Refused::bad(error.to_string()))?;
        let timeout = request.timeout(self.config.exec_timeout, self.config.max_exec_timeout);
        request.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let collect = request.collect_output;
        let target = self.spawner.target(&call.session()?).await?;
        // Work that no acquire announced is admitted as one.
        self.spawner.admit_warm(&target).await.map_err(refused_hold)?;
        let body = serde_json::to_vec(&request).map_err(|error| Refused::bad(error.to_string()))?;
        let followed = self.spawner.follow(&target);
        let answer = self.ask(&target, Method::POST, "/execs", body.into()).await?;
        let limits = if collect { (self.config.max_stdout, self.config.max_stderr) } else { (0, 0) };
        Ok(self.stream(answer, &target, followed, Collected::new(limits), 0))
    }

    /// Replays from an event on, then follows.
    pub(super) async fn attach(&self, call: &Call) -> Result<Response, Refused> {
        let exec = call.exec()?;
        let since = match call.parameter("sinceSeq") {
            None => 0,
            Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse::<u64>().map_err(|_| Refused::bad("sinceSeq is too large"))?
            }
            Some(_) => return Err(Refused::bad("sinceSeq is not a whole number")),
        };
        let target = self.spawner.target(&call.session()?).await?;
        let followed = self.spawner.follow(&target);
        let path = format!("/execs/{exec}/attach?sinceSeq={since}");
        let answer = self.ask(&target, Method::GET, &path, Bytes::new()).await?;
        Ok(self.stream(answer, &target, followed, Collected::new((0, 0)), since))
    }

    /// Everything that the daemon answers as it is.
    pub(super) async fn relay(&self, call: &Call) -> Result<Response, Refused> {
        let path = match call.route {
            Route::Env => "/env".to_owned(),
            Route::Stage => "/files/stage".to_owned(),
            Route::Delete => "/files/delete".to_owned(),
            Route::Files | Route::Content => {
                let at = if call.route == Route::Files { "/fs/list" } else { "/fs/read" };
                let path = call.parameter("path").unwrap_or_else(|| ".".to_owned());
                let query: String =
                    url::form_urlencoded::Serializer::new(String::new()).append_pair("path", &path).finish();
                format!("{at}?{query}")
            }
            Route::Cancel => {
                let keep = match call.parameter("leftovers").as_deref() {
                    None => "",
                    Some("keep") => "?leftovers=keep",
                    Some(_) => return Err(Refused::bad("leftovers can only be keep")),
                };
                format!("/execs/{}/cancel{keep}", call.exec()?)
            }
            Route::Stdin => format!("/execs/{}/stdin", call.exec()?),
            Route::Checkpoint => format!("/execs/{}/checkpoint", call.exec()?),
            _ => format!("/execs/{}", call.exec()?),
        };
        // The daemon's own route of the environment has another method.
        let method = if call.route == Route::Env { Method::POST } else { call.method.clone() };
        let target = self.spawner.target(&call.session()?).await?;
        let answer = self.ask(&target, method, &path, call.body.clone()).await?;
        let headers: Vec<_> = [CONTENT_TYPE, CONTENT_LENGTH]
            .into_iter()
            .filter_map(|name| answer.headers().get(&name).cloned().map(|value| (name, value)))
            .collect();
        Ok(with_head(answer.status(), Body::new(answer.into_body()), &headers))
    }

    /// Sends a request, and turns what the daemon refuses for reasons of its own life into what callers know.
    async fn ask(&self, target: &Target, method: Method, path: &str, body: Bytes) -> Result<Answer, Refused> {
        let answer = match self.daemons.work(target, method, path, body).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.spawner.judge(target, &error).await.into()),
        };
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = http_body_util::Limited::new(answer.into_body(), LARGEST_REFUSAL).collect().await;
        let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
            return Err(self.spawner.after_silence(target).await.into());
        };
        match serde_json::from_slice::<Refusal>(&body).ok().map(|refusal| (refusal.error, refusal)) {
            Some((WireError::Reclaiming, _)) => Err(self.spawner.judge(target, &DaemonError::Reclaiming).await.into()),
            Some((WireError::IncarnationMismatch | WireError::Unauthorized, _)) => {
                Err(self.spawner.after_silence(target).await.into())
            }
            Some((error, refusal)) => {
                let code = serde_json::to_value(error).ok().and_then(|name| serde_json::from_value::<Code>(name).ok());
                let refused = Refused::new(status, code.unwrap_or(Code::RuntimeFailed), refusal.message);
                let refused = refused.with(|body| body.code = refusal.code);
                let pause = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                Err(match pause {
                    Some(seconds) => refused.retry(seconds),
                    None => refused,
                })
            }
            // `{state: "gone"}`: no such command.
            None if status == StatusCode::NOT_FOUND => {
                Err(Refused::new(status, Code::Gone, "the session knows no such command"))
            }
            None => Err(Refused::new(
                StatusCode::BAD_GATEWAY,
                Code::RuntimeFailed,
                "the session's daemon answered nonsense",
            )),
        }
    }

    fn stream(
        &self,
        answer: Answer,
        target: &Target,
        followed: Option<Followed>,
        collected: Collected,
        since: u64,
    ) -> Response {
        let relay = Relay {
            body: answer.into_body(),
            reader: event::Reader::new(since),
            out: Vec::new(),
            collected,
            ended: false,
            spawner: self.spawner.clone(),
            target: target.clone(),
            _followed: followed,
        };
        let stream = unfold(relay, |mut relay| async move {
            relay.next().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), relay))
        });
        let head = [(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
        with_head(StatusCode::OK, Body::from_stream(stream), &head)
    }
}

/// The beginning of both outputs.
#[derive(Debug, Default)]
struct Collected {
    limits: (usize, usize),
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: Truncated,
}

impl Collected {
    fn new(limits: (usize, usize)) -> Self {
        Self { limits, ..Self::default() }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let (kept, limit, truncated) = match stream {
            Stream::Stdout => (&mut self.stdout, self.limits.0, &mut self.truncated.stdout),
            Stream::Stderr => (&mut self.stderr, self.limits.1, &mut self.truncated.stderr),
        };
        // Nothing was asked for: nothing is missing.
        if limit == 0 {
            return;
        }
        let fits = bytes.len().min(limit.saturating_sub(kept.len()));
        *truncated |= fits < bytes.len();
        kept.extend_from_slice(&bytes[..fits]);
    }
}

/// A stream on its way.
struct Relay {
    body: Incoming,
    reader: event::Reader,
    out: Vec<u8>,
    collected: Collected,
    ended: bool,
    spawner: Spawner,
    target: Target,
    _followed: Option<Followed>,
}

impl Relay {
    /// The next bytes; `None` after the end.
    async fn next(&mut self) -> Option<Bytes> {
        while self.out.is_empty() {
            if self.ended {
                return None;
            }
            match tokio::time::timeout(KEEP_ALIVE_EVERY, self.body.frame()).await {
                Err(_) => self.out.extend_from_slice(KEEP_ALIVE),
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.push(&bytes);
                    }
                }
                Ok(None | Some(Err(_))) => self.lose().await,
            }
        }
        Some(std::mem::take(&mut self.out).into())
    }

    fn push(&mut self, bytes: &[u8]) {
        let Self { reader, out, collected, ended, .. } = self;
        let read = reader.push(bytes, |numbered| {
            if !*ended {
                *ended = apply(numbered, out, collected);
            }
        });
        if let Err(error) = read
            && !self.ended
        {
            let result = failed(self.collected.result(), code_of(error.code()), error.to_string());
            self.end(result);
        }
    }

    /// The daemon's stream ended without an end of the command.
    async fn lose(&mut self) {
        let found = self.spawner.backend().find(&self.target.session).await;
        let out_of_memory = matches!(&found, Ok(Some(compute))
            if compute.created_at_ms == self.target.incarnation
                && compute.state == ComputeState::Ended { out_of_memory: true });
        let result = self.collected.result();
        let result = if out_of_memory {
            failed(result, ErrorCode::SessionOom, "the session used up its memory and was ended by the kernel")
        } else {
            failed(result, ErrorCode::SessionLost, "the connection to the session was lost; the command may still run")
        };
        self.end(result);
    }

    fn end(&mut self, result: ExecResult) {
        sse::write(&mut self.out, &SpawnerEvent::Result(Box::new(result)));
        self.ended = true;
    }
}

/// Appends what an event becomes. Answers whether nothing follows.
fn apply(numbered: Numbered, out: &mut Vec<u8>, collected: &mut Collected) -> bool {
    let event = match numbered.event {
        Event::Start { .. } => SpawnerEvent::Phase(Phase::Running),
        Event::Output { stream, bytes } => {
            collected.take(stream, &bytes);
            sse::write_output(out, stream, numbered.seq.unwrap_or(0), &bytes);
            return false;
        }
        Event::ReplayStart => SpawnerEvent::ReplayStart,
        Event::ReplayComplete { through_seq } => SpawnerEvent::ReplayComplete { through_seq },
        Event::Gap { from_seq, to_seq } => SpawnerEvent::Gap { from_seq, to_seq },
        Event::Exit(exit) => SpawnerEvent::Result(Box::new(exited(collected.result(), &exit))),
        Event::Fail { code, message } => {
            SpawnerEvent::Result(Box::new(failed(collected.result(), code_of(code), message)))
        }
    };
    sse::write(out, &event);
    matches!(event, SpawnerEvent::Result(_))
}

impl Collected {
    fn result(&mut self) -> ExecResult {
        let encode = |bytes: &mut Vec<u8>| STANDARD.encode(std::mem::take(bytes));
        ExecResult {
            status: ResultStatus::Failed,
            exit_code: None,
            duration_ms: 0,
            stdout_base64: encode(&mut self.stdout),
            stderr_base64: encode(&mut self.stderr),
            truncated: self.truncated,
            error_code: None,
            error_message: None,
        }
    }
}

fn failed(result: ExecResult, code: ErrorCode, message: impl Into<String>) -> ExecResult {
    ExecResult { error_code: Some(code), error_message: Some(message.into()), ..result }
}

fn exited(result: ExecResult, exit: &Exit) -> ExecResult {
    let truncated = Truncated {
        stdout: result.truncated.stdout || exit.truncated.stdout,
        stderr: result.truncated.stderr || exit.truncated.stderr,
    };
    let result = ExecResult { exit_code: Some(exit.exit_code), duration_ms: exit.duration_ms, truncated, ..result };
    if exit.failure.is_some() {
        let sentence = "the command printed nothing and did nothing for too long";
        return failed(result, ErrorCode::ExecStalled, sentence);
    }
    if exit.timed_out {
        return failed(result, ErrorCode::Timeout, "nobody followed the command for its whole time limit");
    }
    if exit.cancelled {
        let result = failed(result, ErrorCode::Cancelled, "the command was cancelled");
        return ExecResult { status: ResultStatus::Cancelled, ..result };
    }
    if exit.oom_killed {
        return failed(
            result,
            ErrorCode::OomKilled,
            "the kernel ended the command because the session's memory was used up",
        );
    }
    if exit.exit_code == 0 { ExecResult { status: ResultStatus::Completed, ..result } } else { result }
}

fn code_of(code: FailCode) -> ErrorCode {
    match code {
        FailCode::InvalidCwd => ErrorCode::InvalidCwd,
        FailCode::ExecLimit => ErrorCode::ExecLimit,
        FailCode::OutputLimit => ErrorCode::OutputLimit,
        FailCode::ReplayUnavailable => ErrorCode::ReplayUnavailable,
        FailCode::OutputGap => ErrorCode::OutputGap,
        FailCode::ReplayDiskFull => ErrorCode::ReplayDiskFull,
        FailCode::DuplicateExec | FailCode::BadRequest | FailCode::RuntimeError => ErrorCode::RuntimeError,
    }
}
