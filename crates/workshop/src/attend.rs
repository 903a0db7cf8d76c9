//! One run from its place to its end: the sandbox is woken, the program started, what it prints stored, its end
//! written down.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tale_core::{Actor, Problem};
use tale_sandbox_wire::event::Stream;
use tale_sandbox_wire::exec::ExecRequest;
use tale_sandbox_wire::names::{ExecId, OrganizationId, Profile, SessionId, Workload};
use tale_sandbox_wire::spawner::{CreateRequest, ErrorCode};
use tale_sandbox_wire::sse::{self, ErrorCode as EndCode, ExecResult, ResultStatus, SpawnerEvent};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::SpawnerError;
use crate::runs::{Language, MAX_OUTPUT, Owner, RunState, TIME_LIMIT, announce};
use crate::service::Workshop;
use crate::store::output::Piece;
use crate::store::{self, output, places, runs};

/// Time between two words of a process about a run that it attends to.
pub const BEAT: Duration = Duration::from_secs(3);
/// How long such a word is believed.
pub const LEASE: Duration = Duration::from_secs(30);
/// After so long without being heard a process stops by itself, before another one takes over.
const LAST_WORD: Duration = Duration::from_secs(24);
/// How long what a program printed may wait to be stored together with more.
const GATHER: Duration = Duration::from_millis(100);
/// Output that is stored at once.
const GATHERED: usize = 128 << 10;
/// A stream that says nothing for so long has lost its other end: it has a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a run whose sandbox cannot be reached is believed to go on.
const UNREACHABLE: Duration = Duration::from_secs(300);
/// How long a program that was told to end may take until it counts as ended.
const LAST_OUTPUT: Duration = Duration::from_secs(20);
/// Longest line of the spawner's stream: nothing is collected, so the output of one event and its envelope.
const LONGEST_LINE: usize = tale_sandbox_wire::limits::MAX_EVENT_LINE;
/// How long a program may go on while no process follows it.
const ORPHANED: Duration = Duration::from_secs(900);
/// Rounds of waking a session that is stopped at the same moment.
const WAKES: usize = 5;

/// How a run ended.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub state: RunState,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub exit_code: Option<i32>,
    pub complete: bool,
}

impl Outcome {
    fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self {
            state: RunState::Failed,
            reason: Some(reason.to_owned()),
            message: Some(message.into()),
            exit_code: None,
            complete: false,
        }
    }

    fn cancelled(complete: bool) -> Self {
        Self { state: RunState::Cancelled, reason: None, message: None, exit_code: None, complete }
    }
}

/// Why a run waits again.
#[derive(Debug, Clone)]
pub(crate) struct Deferral {
    pub reason: String,
    pub position: Option<i32>,
    pub pause: Duration,
}

impl Deferral {
    fn of(error: &SpawnerError) -> Self {
        let queue = match error {
            SpawnerError::Refused(refusal) => refusal.queue,
            SpawnerError::Unreachable(_) | SpawnerError::Nonsense(_) => None,
        };
        Self {
            reason: error.reason(),
            position: queue.and_then(|queue| i32::try_from(queue.position).ok()),
            pause: error.pause(),
        }
    }
}

/// What the work on a run came to.
enum Leave {
    /// It ended.
    Over(Outcome),
    /// It waits again.
    Later(Deferral),
    /// Another process attends to it.
    Lost,
}

/// Why somebody wants a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    TimeLimit,
    OutputLimit,
}

impl Workshop {
    /// Attends to `run` until it is over, waits again or is another process's; on `stop` it is handed back.
    pub(crate) async fn attend(&self, run: runs::Held, stop: CancellationToken) {
        let attended = self.attend_to(run.id);
        let ends = Ends::default();
        let work = Work { workshop: self, run: &run, ends: &ends };
        let left = tokio::select! {
            left = work.go() => left,
            () = work.beat(&attended.wake) => Leave::Lost,
            () = stop.cancelled() => {
                if let Err(error) = runs::hand_back(&self.0.db, run.org_id, run.id, self.0.me).await {
                    tracing::warn!(run = %run.id, %error, "a run could not be handed back; it is taken over when this process has been silent");
                }
                return;
            }
        };
        let mut pause = Duration::from_millis(200);
        loop {
            let done = match &left {
                Leave::Lost => return,
                Leave::Over(outcome) => work.settle(outcome).await,
                Leave::Later(why) => work.defer(why).await,
            };
            let Err(problem) = done else { break };
            tracing::warn!(run = %run.id, %problem, "the end of a run could not be written down yet");
            // Until another process takes over, which finds the same.
            if pause > LAST_WORD || stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
            pause *= 2;
        }
        self.tell(run.id);
    }
}

/// Who wants the program ended, as soon as anybody does.
#[derive(Default)]
struct Ends {
    wish: std::sync::Mutex<Option<End>>,
    token: CancellationToken,
}

impl Ends {
    fn wish(&self, end: End) {
        let mut wish = self.wish.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wish.get_or_insert(end);
        drop(wish);
        self.token.cancel();
    }

    fn why(&self) -> Option<End> {
        *self.wish.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

struct Work<'a> {
    workshop: &'a Workshop,
    run: &'a runs::Held,
    ends: &'a Ends,
}

impl Work<'_> {
    /// Says again and again that this process attends to the run, and hears whether it should end. Returns when it
    /// does so no longer.
    async fn beat(&self, wake: &Notify) {
        let (db, me, run) = (&self.workshop.0.db, self.workshop.0.me, self.run);
        let mut heard = Instant::now();
        loop {
            let said = timeout(BEAT, runs::beat(db, run.org_id, run.id, me, LEASE.as_secs_f64())).await;
            match said {
                Ok(Ok(None)) => return,
                Ok(Ok(Some(beat))) => {
                    heard = Instant::now();
                    if beat.cancel_requested {
                        self.ends.wish(End::Stopped);
                    } else if beat.running_for.is_some_and(|seconds| seconds >= TIME_LIMIT.as_secs_f64()) {
                        self.ends.wish(End::TimeLimit);
                    }
                }
                Ok(Err(_)) | Err(_) if heard.elapsed() > LAST_WORD => return,
                Ok(Err(_)) | Err(_) => {}
            }
            tokio::select! {
                () = sleep(BEAT) => {}
                () = wake.notified() => {}
            }
        }
    }

    async fn go(&self) -> Leave {
        let (session, exec) = match self.names() {
            Ok(names) => names,
            Err(problem) => return Leave::Over(Outcome::failed("RUNTIME_ERROR", problem.to_string())),
        };
        if self.run.state == "running" {
            return self.follow(&session, &exec, None).await;
        }
        let woken = tokio::select! {
            woken = self.wake(&session) => woken,
            () = self.ends.token.cancelled() => return Leave::Over(Outcome::cancelled(true)),
        };
        if let Err(leave) = woken {
            return leave;
        }
        // What an earlier try or another process began is never begun twice.
        match self.workshop.0.spawner.exec_status(&session, &exec).await {
            Ok(None) => {}
            Ok(Some(_)) => return self.follow(&session, &exec, None).await,
            Err(error) => return self.refused(&error),
        }
        let code = Language::parse(&self.run.language).command(&self.run.code);
        let request = ExecRequest {
            collect_output: false,
            timeout_ms: u64::try_from(ORPHANED.as_millis()).ok(),
            ..ExecRequest::command(exec.clone(), code)
        };
        let answer = match self.workshop.0.spawner.exec(&session, &request).await {
            Ok(answer) => answer,
            Err(error) if error.code() == Some(ErrorCode::BadRequest) => {
                return Leave::Over(Outcome::failed("RUNTIME_ERROR", error.to_string()));
            }
            // Whether it was started is known at the next try.
            Err(error) => return self.refused(&error),
        };
        match self.started().await {
            Ok(true) => self.follow(&session, &exec, Some(answer)).await,
            Ok(false) => Leave::Lost,
            Err(problem) => {
                tracing::warn!(run = %self.run.id, %problem, "a start could not be written down");
                Leave::Lost
            }
        }
    }

    fn names(&self) -> Result<(SessionId, ExecId), Problem> {
        let session = SessionId::new(self.run.session_id.clone()).map_err(Problem::internal)?;
        let exec = ExecId::new(self.run.id.to_string()).map_err(Problem::internal)?;
        Ok((session, exec))
    }

    /// Has the session run and held.
    async fn wake(&self, session: &SessionId) -> Result<(), Leave> {
        let spawner = &self.workshop.0.spawner;
        for _ in 0..WAKES {
            let generation = match spawner.acquire(session).await {
                Ok(generation) => generation,
                Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                    match spawner.create(&self.order(session)?).await {
                        Ok(()) => match spawner.ticket(session).await {
                            Ok(generation) => generation,
                            Err(error) => return Err(self.refused(&error)),
                        },
                        // Somebody else was faster.
                        Err(error) if error.code() == Some(ErrorCode::Duplicate) => continue,
                        Err(error) => return Err(self.refused(&error)),
                    }
                }
                Err(error) => return Err(self.refused(&error)),
            };
            return match self.held(generation.as_str()).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(Leave::Lost),
                Err(problem) => {
                    tracing::warn!(run = %self.run.id, %problem, "a hold could not be written down");
                    Err(Leave::Lost)
                }
            };
        }
        Err(Leave::Later(Deferral { reason: "busy".to_owned(), position: None, pause: Duration::from_secs(5) }))
    }

    fn order(&self, session: &SessionId) -> Result<CreateRequest, Leave> {
        let wrong = |error: &dyn std::fmt::Display| Leave::Over(Outcome::failed("RUNTIME_ERROR", error.to_string()));
        let org = OrganizationId::new(self.run.org_id.to_string()).map_err(|error| wrong(&error))?;
        let profile = match self.run.profile.as_str() {
            "agent" => Profile::Agent,
            "agent-light" => Profile::AgentLight,
            _ => Profile::Default,
        };
        let order = CreateRequest::new(session.clone(), org, profile);
        // Programs of people need no engine inside.
        Ok(CreateRequest { workload: Some(Workload::Project), docker: Some(false), ..order })
    }

    /// What a refusal of a session means for the run.
    fn refused(&self, error: &SpawnerError) -> Leave {
        if error.passes() {
            tracing::debug!(run = %self.run.id, %error, "a run waits");
            return Leave::Later(Deferral::of(error));
        }
        tracing::warn!(event = "code_run.no_sandbox", run = %self.run.id, %error, "a sandbox could not be started");
        Leave::Over(Outcome::failed("SANDBOX_START_FAILED", error.to_string()))
    }

    async fn held(&self, generation: &str) -> Result<bool, Problem> {
        let (run, me) = (self.run, self.workshop.0.me);
        let mut tx = self.workshop.0.db.begin().await?;
        let ours = runs::note_hold(&mut tx, run.org_id, run.id, me, generation).await?;
        places::activate(&mut tx, run.org_id, &run.session_id).await?;
        tx.commit().await?;
        Ok(ours)
    }

    async fn started(&self) -> Result<bool, Problem> {
        let run = self.run;
        let mut tx = self.workshop.0.db.begin().await?;
        let ours = runs::started(&mut tx, run.org_id, run.id, self.workshop.0.me).await?;
        announce(&mut tx, self.owner(), run.id).await?;
        tx.commit().await?;
        self.workshop.tell(run.id);
        Ok(ours)
    }

    fn owner(&self) -> Owner {
        Owner { org: self.run.org_id, user: self.run.user_id }
    }

    /// Reads the program's output to its end, over as many connections as it takes.
    async fn follow(&self, session: &SessionId, exec: &ExecId, first: Option<reqwest::Response>) -> Leave {
        if first.is_none()
            && let Ok(false) = self.started().await
        {
            return Leave::Lost;
        }
        let mut intake = Intake {
            work: self,
            seq: u64::try_from(self.run.last_seq).unwrap_or(0),
            saved: u64::try_from(self.run.last_seq).unwrap_or(0),
            stored: usize::try_from(self.run.output_bytes).unwrap_or(0),
            pending: Vec::new(),
            since: None,
        };
        let mut reading = pin!(self.read(session, exec, first, &mut intake));
        tokio::select! {
            left = &mut reading => {
                let Leave::Over(outcome) = left else { return left };
                if !outcome.complete {
                    // What nobody can follow any more must not go on unseen.
                    let _ = self.workshop.0.spawner.cancel(session, exec).await;
                }
                return Leave::Over(self.ended(outcome));
            }
            () = self.ends.token.cancelled() => {}
        }
        let told = self.workshop.0.spawner.cancel(session, exec).await;
        if let Err(error) = told {
            tracing::debug!(run = %self.run.id, %error, "a program could not be told to end");
        }
        match timeout(LAST_OUTPUT, reading).await {
            Ok(Leave::Over(outcome)) => Leave::Over(self.ended(outcome)),
            Ok(left) => left,
            Err(_) => Leave::Over(self.ended(Outcome::cancelled(false))),
        }
    }

    /// The outcome of a program that somebody wanted ended.
    fn ended(&self, outcome: Outcome) -> Outcome {
        let limit =
            |reason: &str, message: &str| Outcome { complete: outcome.complete, ..Outcome::failed(reason, message) };
        match (outcome.state, self.ends.why()) {
            // It was over before it heard.
            (RunState::Completed, Some(End::Stopped | End::TimeLimit)) => outcome,
            (_, Some(End::TimeLimit)) => limit("TIME_LIMIT", "the program ran for as long as one may"),
            (_, Some(End::OutputLimit)) => {
                Outcome { complete: false, ..limit("OUTPUT_LIMIT", "the program printed as much as one may") }
            }
            (_, Some(End::Stopped)) => Outcome { state: RunState::Cancelled, reason: None, message: None, ..outcome },
            (_, None) => outcome,
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        exec: &ExecId,
        mut first: Option<reqwest::Response>,
        intake: &mut Intake<'_>,
    ) -> Leave {
        let (mut reached, mut pause) = (Instant::now(), Duration::from_millis(500));
        loop {
            let answer = match first.take() {
                Some(answer) => Ok(answer),
                None => self.workshop.0.spawner.attach(session, exec, intake.seq).await,
            };
            match answer {
                Ok(answer) => {
                    let before = intake.seq;
                    match intake.drain(answer).await {
                        Drained::Over(outcome) => return Leave::Over(outcome),
                        Drained::Lost => return Leave::Lost,
                        Drained::Cut if intake.seq > before => {
                            (reached, pause) = (Instant::now(), Duration::from_millis(500));
                        }
                        Drained::Cut => {}
                    }
                }
                Err(error) if matches!(error.code(), Some(ErrorCode::NotFound | ErrorCode::Gone)) => {
                    return Leave::Over(lost());
                }
                Err(error) => tracing::debug!(run = %self.run.id, %error, "a run cannot be followed now"),
            }
            if reached.elapsed() > UNREACHABLE {
                return Leave::Over(Outcome::failed(
                    "SANDBOX_UNREACHABLE",
                    "the sandbox could not be reached for five minutes",
                ));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
    }

    async fn settle(&self, outcome: &Outcome) -> Result<(), Problem> {
        let (run, me) = (self.run, self.workshop.0.me);
        let generation = self.present_hold().await?;
        let mut tx = self.workshop.0.db.begin().await?;
        let Some(ms) = runs::settle(&mut tx, run.org_id, run.id, me, outcome).await? else { return Ok(()) };
        places::give_back(&mut tx, run.org_id, &run.session_id, generation.as_deref()).await?;
        places::meter(&mut tx, run.org_id, run.user_id, "project", ms).await?;
        let details = json!({
            "state": outcome.state.text(), "reason": outcome.reason, "exitCode": outcome.exit_code,
            "milliseconds": ms, "person": run.user_id,
        });
        self.workshop.record(&mut tx, run.org_id, &Actor::System, "code_run.ended", run.id, details).await?;
        announce(&mut tx, self.owner(), run.id).await?;
        store::announce(&mut tx, "").await?;
        tx.commit().await?;
        Ok(())
    }

    async fn defer(&self, why: &Deferral) -> Result<(), Problem> {
        let (run, me) = (self.run, self.workshop.0.me);
        let generation = self.present_hold().await?;
        let mut tx = self.workshop.0.db.begin().await?;
        if runs::defer(&mut tx, run.org_id, run.id, me, why).await?.is_none() {
            return Ok(());
        }
        places::give_back(&mut tx, run.org_id, &run.session_id, generation.as_deref()).await?;
        announce(&mut tx, self.owner(), run.id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The hold that ends with the run: as it was written down, or as a session has it whose start was cut short.
    async fn present_hold(&self) -> Result<Option<String>, Problem> {
        let written = runs::generation(&self.workshop.0.db, self.run.org_id, self.run.id).await?;
        if written.is_some() {
            return Ok(written);
        }
        let (session, _) = self.names()?;
        let asked = timeout(BEAT, self.workshop.0.spawner.ticket(&session)).await;
        Ok(asked.ok().and_then(Result::ok).map(String::from))
    }
}

fn lost() -> Outcome {
    Outcome::failed("SANDBOX_LOST", "the sandbox ended before the program did")
}

/// How the reading of one connection ended.
enum Drained {
    /// The program is over.
    Over(Outcome),
    /// The connection is; the program may go on.
    Cut,
    /// Another process reads.
    Lost,
}

/// What was read and is to be stored.
struct Intake<'a> {
    work: &'a Work<'a>,
    /// The last event that was read.
    seq: u64,
    /// The last event whose output is stored.
    saved: u64,
    /// Bytes that are stored or pending.
    stored: usize,
    pending: Vec<Piece>,
    /// When the oldest pending piece came.
    since: Option<Instant>,
}

impl Intake<'_> {
    async fn drain(&mut self, answer: reqwest::Response) -> Drained {
        let mut reader = sse::Reader::new(LONGEST_LINE);
        let mut body = answer.bytes_stream();
        loop {
            let due = self.since.map(|since| since + GATHER);
            let chunk = tokio::select! {
                biased;
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    match self.store().await {
                        Ok(true) => continue,
                        Ok(false) => return Drained::Lost,
                        Err(problem) => return self.unstored(&problem),
                    }
                }
                chunk = timeout(SILENCE, body.next()) => chunk,
            };
            let mut end = None;
            let failed = match chunk {
                Ok(Some(Ok(bytes))) => {
                    let mut events = Vec::new();
                    let failed = reader.push(&bytes, |event| events.push(event)).is_err();
                    for event in events {
                        end = end.or(self.take(event));
                    }
                    failed
                }
                Ok(None | Some(Err(_))) | Err(_) => true,
            };
            let full = self.pending.iter().map(|piece| piece.bytes.len()).sum::<usize>() >= GATHERED;
            if end.is_some() || failed || full {
                match self.store().await {
                    Ok(true) => {}
                    Ok(false) => return Drained::Lost,
                    Err(problem) => return self.unstored(&problem),
                }
            }
            match end {
                Some(Some(outcome)) => return Drained::Over(outcome),
                Some(None) => return Drained::Cut,
                None if failed => return Drained::Cut,
                None => {}
            }
        }
    }

    /// What could not be stored is read again from the journal.
    fn unstored(&mut self, problem: &Problem) -> Drained {
        tracing::warn!(run = %self.work.run.id, %problem, "output of a run could not be stored yet");
        for piece in std::mem::take(&mut self.pending) {
            self.stored -= piece.bytes.len();
        }
        self.seq = self.saved;
        self.since = None;
        Drained::Cut
    }

    /// Takes an event. `Some(Some(_))` = the program is over, `Some(None)` = this connection has nothing more to say.
    fn take(&mut self, event: SpawnerEvent) -> Option<Option<Outcome>> {
        match event {
            SpawnerEvent::Output { stream, seq, bytes } => {
                // History that is known already.
                if seq <= self.seq {
                    return None;
                }
                let room = MAX_OUTPUT.saturating_sub(self.stored);
                if bytes.len() > room {
                    self.work.ends.wish(End::OutputLimit);
                }
                self.seq = seq;
                let kept = &bytes[..bytes.len().min(room)];
                self.stored += kept.len();
                if kept.is_empty() {
                    return None;
                }
                let stream = match stream {
                    Stream::Stdout => "stdout",
                    Stream::Stderr => "stderr",
                };
                let seq = i64::try_from(seq).unwrap_or(i64::MAX);
                self.since.get_or_insert_with(Instant::now);
                match self.pending.last_mut() {
                    Some(last) if last.stream == stream && last.bytes.len() < GATHERED / 2 => {
                        last.bytes.extend_from_slice(kept);
                        last.seq = seq;
                    }
                    _ => self.pending.push(Piece { seq, stream: stream.to_owned(), bytes: kept.to_vec() }),
                }
                None
            }
            SpawnerEvent::Gap { .. } => Some(Some(Outcome::failed("OUTPUT_GAP", "a part of the output was lost"))),
            SpawnerEvent::Result(result) => Some(outcome(&result)),
            SpawnerEvent::Error { .. } => Some(None),
            SpawnerEvent::Phase(_) | SpawnerEvent::ReplayStart | SpawnerEvent::ReplayComplete { .. } => None,
        }
    }

    /// Stores what is pending; `false` when another process attends to the run.
    async fn store(&mut self) -> Result<bool, Problem> {
        if self.pending.is_empty() {
            return Ok(true);
        }
        let (run, me) = (self.work.run, self.work.workshop.0.me);
        let bytes: usize = self.pending.iter().map(|piece| piece.bytes.len()).sum();
        let seq = i64::try_from(self.seq).unwrap_or(i64::MAX);
        let mut tx = self.work.workshop.0.db.begin().await?;
        if !runs::advance(&mut tx, run.org_id, run.id, me, seq, i64::try_from(bytes).unwrap_or(0)).await? {
            return Ok(false);
        }
        output::append(&mut tx, run.org_id, run.id, &self.pending).await?;
        tx.commit().await?;
        self.pending.clear();
        self.saved = self.seq;
        self.since = None;
        self.work.workshop.tell(run.id);
        Ok(true)
    }
}

/// What a result means; `None` when the program may go on.
fn outcome(result: &ExecResult) -> Option<Outcome> {
    let word = |code: EndCode| serde_json::to_value(code).ok().and_then(|word| word.as_str().map(str::to_owned));
    let broken = matches!(
        result.error_code,
        Some(
            EndCode::OutputLimit
                | EndCode::ReplayDiskFull
                | EndCode::ReplayUnavailable
                | EndCode::OutputGap
                | EndCode::SessionOom
        )
    );
    let end = |state, reason| Outcome {
        state,
        reason,
        message: result.error_message.clone(),
        exit_code: result.exit_code,
        complete: !broken,
    };
    match (result.status, result.error_code) {
        (ResultStatus::Completed, _) => Some(end(RunState::Completed, None)),
        (ResultStatus::Cancelled, _) => Some(Outcome { message: None, ..end(RunState::Cancelled, None) }),
        (ResultStatus::Failed, Some(EndCode::SessionLost)) => None,
        (ResultStatus::Failed, code) => Some(end(RunState::Failed, code.and_then(word))),
    }
}
