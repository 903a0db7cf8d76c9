//! What each route does. See [`tale_sandbox_wire::daemon`] for the table.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use tale_sandbox_wire::daemon::{
    Activity, DaemonError, EnvAnswer, EnvPatch, GenerationAnswer, Health, PinAnswer, PinRequest, ReclaimAnswer,
    ReclaimRequest, ReleaseAnswer, ReleaseRequest,
};
use tale_sandbox_wire::event::{self, Event};
use tale_sandbox_wire::exec::{
    CancelAnswer, Checkpoint, CheckpointAnswer, ExecRequest, ExecStatus, StdinAnswer, StdinRequest,
};
use tale_sandbox_wire::files::{DeleteRequest, StageRequest, WorkspacePath};
use tale_sandbox_wire::limits::MAX_CHECKPOINT_BYTES;
use tale_sandbox_wire::names::Generation;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::execs::{CALL_PATIENCE, CheckpointError, Exec};
use crate::follow::{self, Reader};
use crate::http::{Answer, App, Ask, Operation};
use crate::{files, log, memory, now_ms, random_token};

type Answered = Result<Answer, Answer>;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The daemon answers.
    Live,
    /// It may be given work.
    Ready,
    /// Everything about its health.
    Health,
    /// New work holds the session.
    Acquire,
    /// The work is over.
    Release,
    /// The session is to be stopped.
    Reclaim,
    /// It is to be protected.
    Pin,
    /// A command.
    Execs,
    /// One command.
    Exec,
    /// One command ends.
    Cancel,
    /// One command's output.
    Attach,
    /// One command's standard input.
    Stdin,
    /// One command's checkpoint.
    Checkpoint,
    /// The environment.
    Env,
    /// Files come.
    Stage,
    /// Files go.
    Delete,
    /// A directory.
    List,
    /// A file.
    Read,
}

/// The route at a path.
#[must_use]
pub fn find(parts: &[&str]) -> Option<Route> {
    Some(match parts {
        ["livez"] => Route::Live,
        ["readyz"] => Route::Ready,
        ["healthz"] => Route::Health,
        ["acquire"] => Route::Acquire,
        ["release"] => Route::Release,
        ["reclaim"] => Route::Reclaim,
        ["pin"] => Route::Pin,
        ["execs"] => Route::Execs,
        ["execs", _] => Route::Exec,
        ["execs", _, "cancel"] => Route::Cancel,
        ["execs", _, "attach"] => Route::Attach,
        ["execs", _, "stdin"] => Route::Stdin,
        ["execs", _, "checkpoint"] => Route::Checkpoint,
        ["env"] => Route::Env,
        ["files", "stage"] => Route::Stage,
        ["files", "delete"] => Route::Delete,
        ["fs", "list"] => Route::List,
        ["fs", "read"] => Route::Read,
        _ => return None,
    })
}

impl Route {
    /// Whether it needs no token; it tells nothing of the session then.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Live | Self::Ready)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The refusal.
    pub async fn answer(self, app: &Arc<App>, method: &Method, ask: Ask) -> Answered {
        match (self, method.as_str()) {
            (Self::Live | Self::Ready, "GET") => Ok(Answer::ok(&serde_json::json!({"ok": true}))),
            (Self::Health, "GET") => Ok(health(app)),
            (Self::Acquire, "POST") => acquire(app, &ask),
            (Self::Release, "GET") => Ok(Answer::ok(&generation(app))),
            (Self::Release, "POST") => release(app, ask).await,
            (Self::Reclaim, "POST") => reclaim(app, ask).await,
            (Self::Pin, "POST") => pin(app, ask).await,
            (Self::Execs, "POST") => start(app, ask).await,
            (Self::Exec, "GET") => status(app, &ask),
            (Self::Cancel, "POST") => cancel(app, &ask).await,
            (Self::Attach, "GET") => attach(app, &ask),
            (Self::Stdin, "POST") => stdin(app, ask).await,
            (Self::Checkpoint, "GET") => get_checkpoint(app, &ask).await,
            (Self::Checkpoint, "PUT") => put_checkpoint(app, ask).await,
            (Self::Env, "POST") => env(app, ask).await,
            (Self::Stage, "POST") => stage(app, ask).await,
            (Self::Delete, "POST") => delete(app, ask).await,
            (Self::List, "GET") => list(app, &ask).await,
            (Self::Read, "GET") => read(app, &ask).await,
            _ => Err(Answer::refuse(DaemonError::MethodNotAllowed, "this route has another method")),
        }
    }
}

fn incarnation(app: &App) -> Option<String> {
    app.settings.incarnation.clone()
}

fn health(app: &App) -> Answer {
    let memory = app.counters.as_ref().map(memory::Counters::read).unwrap_or_default();
    let live_execs = app.execs.live();
    let mut gate = app.gate();
    gate.touch(app.execs.last_end_ms());
    let held = gate.held();
    Answer::ok(&Health {
        ok: true,
        booted_at_ms: held.booted_at_ms,
        last_activity_at_ms: held.last_activity_at_ms,
        live_execs,
        activity: Activity {
            generation: held.generation.clone(),
            active_operations: gate.operations(),
            released: held.released,
            pinned: held.pinned,
            reclaiming: held.claim.is_some(),
            idle_reclaim: true,
        },
        docker_ready: None,
        docker_recovery_required: None,
        docker: None,
        dependencies: app.settings.redirects.map(|redirects| {
            let egress = match redirects.trouble() {
                None => serde_json::json!({"ok": true}),
                Some(reason) => serde_json::json!({"ok": false, "reason": reason}),
            };
            serde_json::json!({ "egress": egress })
        }),
        memory,
        incarnation: incarnation(app),
    })
}

fn generation(app: &App) -> GenerationAnswer {
    GenerationAnswer { generation: app.gate().held().generation.clone(), incarnation: incarnation(app) }
}

/// A name for a new hold.
///
/// # Errors
/// `internal`, when the kernel gives no random bytes.
pub fn new_generation() -> Result<Generation, Answer> {
    let token = random_token().map_err(|_| Answer::refuse(DaemonError::Internal, "no random bytes"))?;
    Generation::new(token).map_err(|_| Answer::refuse(DaemonError::Internal, "no random bytes"))
}

fn acquire(app: &App, ask: &Ask) -> Answered {
    ask.check_incarnation(app)?;
    let next = new_generation()?;
    app.gate().acquire(next, now_ms())?;
    app.keep()?;
    Ok(Answer::ok(&generation(app)))
}

async fn release(app: &App, ask: Ask) -> Answered {
    ask.check_incarnation(app)?;
    let request: ReleaseRequest = ask.json().await?;
    let released = app.gate().release(&request.generation);
    app.keep()?;
    Ok(Answer::ok(&ReleaseAnswer { released, incarnation: incarnation(app) }))
}

async fn reclaim(app: &App, ask: Ask) -> Answered {
    ask.check_incarnation(app)?;
    let request: ReclaimRequest = ask.json().await?;
    // One thread runs all handlers: nothing starts between the count and the claim.
    let live = app.execs.live();
    app.gate().touch(app.execs.last_end_ms());
    let claimed = app.gate().claim(request.claim_id, &request.generation, request.idle_before_ms, live);
    app.keep()?;
    Ok(Answer::ok(&ReclaimAnswer { claimed, incarnation: incarnation(app) }))
}

async fn pin(app: &App, ask: Ask) -> Answered {
    ask.check_incarnation(app)?;
    let request: PinRequest = ask.json().await?;
    app.gate().pin(request.pinned)?;
    app.keep()?;
    Ok(Answer::ok(&PinAnswer { pinned: request.pinned, incarnation: incarnation(app) }))
}

/// What a reader holds while it reads.
#[derive(Debug)]
struct Reading {
    _operation: Operation,
    _place: OwnedSemaphorePermit,
}

fn reading(app: &Arc<App>) -> Result<Reading, Answer> {
    let place = Arc::clone(&app.execs.consumers)
        .try_acquire_owned()
        .map_err(|_| Answer::refuse(DaemonError::Busy, "too many readers follow the commands of this session"))?;
    Ok(Reading { _operation: app.operation(true)?, _place: place })
}

const LINES: &str = "application/x-ndjson";

async fn start(app: &Arc<App>, ask: Ask) -> Answered {
    let reading = reading(app)?;
    let request: ExecRequest = ask.json().await?;
    request.argv()?;
    request.stdin()?;
    let memory = app.counters.as_ref().map(memory::Counters::read).unwrap_or_default();
    if memory::is_short(&memory, app.settings.memory_percent) {
        return Err(Answer::refuse(DaemonError::SessionMemoryBusy, "the memory of this session is nearly used up"));
    }
    let env = app.env().clone();
    match app.execs.start(&request, &env).await {
        Ok(exec) => Ok(follow_with(exec, Reader::Starter, reading)),
        Err(refused) => {
            let mut line = Vec::new();
            event::write(&mut line, None, &Event::Fail { code: refused.code, message: refused.message });
            let (out, lines) = mpsc::channel(1);
            let _ = out.try_send(line.into());
            Ok(Answer::stream(LINES, lines))
        }
    }
}

fn follow_with(exec: Arc<Exec>, reader: Reader, reading: Reading) -> Answer {
    let (out, lines) = mpsc::channel(1);
    tokio::spawn(async move {
        follow::run(exec, reader, out).await;
        drop(reading);
    });
    Answer::stream(LINES, lines)
}

fn exec(app: &App, ask: &Ask) -> Result<Arc<Exec>, Answer> {
    let id = ask.parts.get(1).map(String::as_str).unwrap_or_default();
    app.execs.get(id).ok_or_else(|| Answer::json(StatusCode::NOT_FOUND, &ExecStatus::Gone))
}

fn status(app: &Arc<App>, ask: &Ask) -> Answered {
    Ok(Answer::ok(&exec(app, ask)?.status()))
}

fn attach(app: &Arc<App>, ask: &Ask) -> Answered {
    let exec = exec(app, ask)?;
    let bad = |why: &str| Answer::refuse(DaemonError::BadRequest, format!("sinceSeq {why}"));
    let since = match ask.parameter("sinceSeq") {
        None => 0,
        Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| bad("is too large"))?
        }
        Some(_) => return Err(bad("is not a whole number")),
    };
    if since > exec.progress().borrow().reach.seq {
        return Err(bad("is in the future"));
    }
    let reading = reading(app)?;
    Ok(follow_with(exec, Reader::Attached { since }, reading))
}

async fn cancel(app: &Arc<App>, ask: &Ask) -> Answered {
    let keep = match ask.parameter("leftovers") {
        None => false,
        Some("keep") => true,
        Some(_) => return Err(Answer::refuse(DaemonError::BadRequest, "leftovers can only be keep")),
    };
    let exec = exec(app, ask)?;
    let killed = app.execs.cancel(&exec, keep).await;
    app.gate().touch(now_ms());
    Ok(Answer::ok(&CancelAnswer { killed }))
}

async fn stdin(app: &Arc<App>, ask: Ask) -> Answered {
    let _operation = app.operation(true)?;
    let Ok(exec) = exec(app, &ask) else {
        return Ok(Answer::ok(&StdinAnswer::from(Err(tale_sandbox_wire::exec::StdinRefusal::NotFound))));
    };
    let request: StdinRequest = ask.json().await?;
    Ok(Answer::ok(&StdinAnswer::from(exec.stdin(&request).await)))
}

/// Runs what waits for the disk on another thread, for as long as a call may take.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Answer> {
    match tokio::time::timeout(CALL_PATIENCE, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err(Answer::refuse(DaemonError::Internal, "the request failed")),
        Err(_) => Err(Answer::refuse(DaemonError::Internal, "the disk does not answer")),
    }
}

async fn get_checkpoint(app: &Arc<App>, ask: &Ask) -> Answered {
    let exec = exec(app, ask)?;
    let _operation = app.operation(false)?;
    match on_disk(move || exec.checkpoint()).await? {
        Ok(checkpoint) => Ok(Answer::ok(&CheckpointAnswer { checkpoint })),
        Err(error) => {
            log::line(&format!("a checkpoint cannot be read: {error}"));
            Err(Answer::refuse(DaemonError::Internal, "the checkpoint cannot be read"))
        }
    }
}

async fn put_checkpoint(app: &Arc<App>, ask: Ask) -> Answered {
    let exec = exec(app, &ask)?;
    // A consumer that saves its place is not working in the session; the command is.
    let _operation = app.operation(false)?;
    let bytes = ask.bytes(MAX_CHECKPOINT_BYTES).await?;
    let bad = |_| Answer::refuse(DaemonError::BadRequest, "the body is not {seq, state}");
    let checkpoint: Checkpoint = serde_json::from_slice(&bytes).map_err(bad)?;
    let seq = checkpoint.seq;
    let stored = {
        let exec = Arc::clone(&exec);
        on_disk(move || exec.put_checkpoint(&checkpoint)).await?
    };
    match stored {
        Ok(()) => {
            exec.acknowledge(seq).await;
            Ok(Answer::ok(&serde_json::json!({"ok": true, "seq": seq})))
        }
        Err(error @ CheckpointError::Future) => Err(Answer::refuse(DaemonError::BadRequest, error.to_string())),
        Err(error @ CheckpointError::Stale) => Err(Answer::refuse(DaemonError::Stale, error.to_string())),
        Err(error) => {
            log::line(&format!("exec {}: {error}", exec.id));
            Err(Answer::refuse(DaemonError::ReplayDiskFull, "the checkpoint could not be stored"))
        }
    }
}

async fn env(app: &Arc<App>, ask: Ask) -> Answered {
    let _operation = app.operation(true)?;
    let patch: EnvPatch = ask.json().await?;
    let denied = patch.apply(&mut app.env())?;
    app.keep()?;
    Ok(Answer::ok(&EnvAnswer { ok: true, denied }))
}

async fn stage(app: &Arc<App>, ask: Ask) -> Answered {
    let place =
        app.stage.enter().ok_or_else(|| Answer::refuse(DaemonError::StagingBusy, "files are being staged already"))?;
    let _operation = app.operation(true)?;
    let request: StageRequest = ask.json().await?;
    request.check()?;
    let answer = app.stage.run(request).await?;
    drop(place);
    Ok(Answer::ok(&answer))
}

async fn delete(app: &Arc<App>, ask: Ask) -> Answered {
    let _operation = app.operation(true)?;
    let request: DeleteRequest = ask.json().await?;
    let paths = request.check()?;
    let root = Arc::clone(&app.root);
    let deleted = tokio::task::spawn_blocking(move || files::delete(&root, &paths)).await;
    deleted.map(|answer| Answer::ok(&answer)).map_err(|_| Answer::refuse(DaemonError::Internal, "the request failed"))
}

fn path(ask: &Ask) -> Result<WorkspacePath, Answer> {
    Ok(WorkspacePath::new(ask.parameter("path").unwrap_or("."))?)
}

fn absent() -> Answer {
    Answer::refuse(DaemonError::NotFound, "nothing that can be read is there")
}

async fn list(app: &Arc<App>, ask: &Ask) -> Answered {
    let _operation = app.operation(false)?;
    let (path, root) = (path(ask)?, Arc::clone(&app.root));
    let listed = on_disk(move || files::list(&root, &path)).await?;
    listed.map(|answer| Answer::ok(&answer)).map_err(|_| absent())
}

async fn read(app: &Arc<App>, ask: &Ask) -> Answered {
    let operation = app.operation(false)?;
    let (path, root) = (path(ask)?, Arc::clone(&app.root));
    let (file, length) = on_disk(move || files::open(&root, &path)).await?.map_err(|_| absent())?;
    let (out, bytes) = mpsc::channel(1);
    tokio::spawn(async move {
        files::send(file, length, out).await;
        drop(operation);
    });
    Ok(Answer::stream("application/octet-stream", bytes).with_length(length))
}
