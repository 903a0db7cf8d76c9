//! Run code: a person's own programs in a sandbox of their own.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tale_core::ids::CodeRunId;
use tale_core::{Code, Problem};
use tale_identity::{Caller, Capability, Via};
use tale_workshop::Workshop;
use tale_workshop::runs::{self, Owner, Run, RunEvent, RunState};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::events::{draining, ticks, unbuffered};
use crate::body::Body;
use crate::caller::Member;
use crate::documents::disposition;
use crate::problem::HttpProblem;
use crate::query::Query;
use crate::state::App;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_code_runs, run_code))
        .routes(routes!(read_code_run))
        .routes(routes!(stop_code_run))
        .routes(routes!(follow_code_run))
        .routes(routes!(list_code_files))
        .routes(routes!(read_code_file))
}

/// What a program is written in.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CodeLanguage {
    Python,
    Shell,
}

impl From<CodeLanguage> for runs::Language {
    fn from(language: CodeLanguage) -> Self {
        match language {
            CodeLanguage::Python => Self::Python,
            CodeLanguage::Shell => Self::Shell,
        }
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CodeRunState {
    /// In line for a place.
    Waiting,
    /// The sandbox is being woken.
    Starting,
    Running,
    /// Ended with exit code 0.
    Completed,
    /// Ended otherwise; `reason` and `exitCode` say how.
    Failed,
    /// Stopped.
    Cancelled,
}

/// A program that was run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CodeRun)]
struct CodeRunView {
    id: CodeRunId,
    language: CodeLanguage,
    code: String,
    state: CodeRunState,
    /// Why it waits (`session_quota`, `host_memory`, `host_cpu`, `host_disk`, `runtime_image`, `unreachable`, …; without
    /// one it waits for a place of the organization) or ended (`TIME_LIMIT`, `OUTPUT_LIMIT`, `OOM_KILLED`,
    /// `SANDBOX_LOST`, …; without one by its own exit code).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    /// What the sandbox said about it, in English.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
    /// Place in the organization's line, from 1, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    position: Option<u64>,
    /// Place in the host's line, while it waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    host_position: Option<u32>,
    /// Epoch milliseconds.
    queued_at: i64,
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    started_at: Option<i64>,
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ended_at: Option<i64>,
    /// Whether somebody asked for its end.
    stopping: bool,
    /// 128 + the signal where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    exit_code: Option<i32>,
    /// How long the program ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    duration_ms: Option<u64>,
    /// How many bytes it printed.
    output_bytes: u64,
    /// Whether all that it printed is there, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    output_complete: Option<bool>,
}

impl From<Run> for CodeRunView {
    fn from(run: Run) -> Self {
        Self {
            id: run.id,
            language: match run.language {
                runs::Language::Python => CodeLanguage::Python,
                runs::Language::Shell => CodeLanguage::Shell,
            },
            code: run.code,
            state: match run.state {
                RunState::Waiting => CodeRunState::Waiting,
                RunState::Starting => CodeRunState::Starting,
                RunState::Running => CodeRunState::Running,
                RunState::Completed => CodeRunState::Completed,
                RunState::Failed => CodeRunState::Failed,
                RunState::Cancelled => CodeRunState::Cancelled,
            },
            reason: run.reason,
            message: run.message,
            position: run.position,
            host_position: run.host_position,
            queued_at: run.queued_at.timestamp_millis(),
            started_at: run.started_at.map(|at| at.timestamp_millis()),
            ended_at: run.ended_at.map(|at| at.timestamp_millis()),
            stopping: run.stopping,
            exit_code: run.exit_code,
            duration_ms: run.duration.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            output_bytes: run.output_bytes,
            output_complete: run.output_complete,
        }
    }
}

/// What one program may use at most.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CodeLimits {
    /// Bytes of the program.
    code_bytes: usize,
    /// Bytes that it may print; it is ended at that point.
    output_bytes: usize,
    /// Seconds that it may run.
    seconds: u64,
    /// Runs of one person that wait or go on at the same time.
    open: i64,
    /// Ended runs that are kept.
    kept: i64,
}

/// One's own runs, the newest first.
#[derive(Serialize, ToSchema)]
struct CodeRunPage {
    page: Vec<CodeRunView>,
    /// For the next page; `null` at the end.
    #[schema(required)]
    cursor: Option<String>,
    limits: CodeLimits,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    cursor: Option<String>,
    /// 1 to 50; 20 when absent.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
}

/// A program to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunCodeRequest {
    language: CodeLanguage,
    /// At most 65,536 bytes.
    code: String,
}

/// Who may run code, and where they do.
fn allowed<'a>(app: &'a App, caller: &Caller) -> Result<(&'a Workshop, Owner), Problem> {
    caller.require_read(Capability::SandboxesManage)?;
    let workshop = app.workshop()?;
    let user = caller.user.ok_or_else(|| Problem::internal("a browser's call without a person"))?;
    Ok((workshop, Owner { org: caller.org, user }))
}

fn run_id(text: &str) -> Result<CodeRunId, Problem> {
    text.parse().map_err(|_| {
        Problem::new(Code::CodeRunNotFound, "There is no such run, or it is older than those that are kept.")
    })
}

/// One's own runs, the newest first, each with the first 400 characters of its program.
#[utoipa::path(get, path = "/api/app/code/runs", tag = "app: code", params(("orgId" = Option<String>, Query), RunsQuery), responses((status = 200, body = CodeRunPage)), extensions(("x-tale-pagination" = json!({ "style": "keyset", "rows": "page", "default": 20, "max": 50 }))))]
async fn list_code_runs(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<RunsQuery>, HttpProblem>,
) -> Result<Json<CodeRunPage>, HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    let Query(query) = query?;
    let limit = query.limit.unwrap_or(20);
    if !(1..=50).contains(&limit) {
        return Err(Problem::new(Code::InvalidLimit, "`limit` must be a whole number from 1 to 50.").into());
    }
    let page = workshop.code_runs(owner, &app.cursors, query.cursor.as_deref(), limit).await?;
    let limits = CodeLimits {
        code_bytes: runs::MAX_CODE,
        output_bytes: runs::MAX_OUTPUT,
        seconds: runs::TIME_LIMIT.as_secs(),
        open: runs::MAX_OPEN,
        kept: runs::KEPT,
    };
    Ok(Json(CodeRunPage { page: page.rows.into_iter().map(Into::into).collect(), cursor: page.next, limits }))
}

/// Runs a program in one's own sandbox: at once, or as soon as there is room.
#[utoipa::path(post, path = "/api/app/code/runs", tag = "app: code", params(("orgId" = Option<String>, Query)), request_body = RunCodeRequest, responses((status = 202, body = CodeRunView)))]
async fn run_code(
    State(app): State<App>,
    Member(caller): Member,
    body: Body<RunCodeRequest>,
) -> Result<(StatusCode, Json<CodeRunView>), HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    let form = body.read()?;
    let run = workshop.run(owner, &caller.actor(), form.language.into(), &form.code).await?;
    Ok((StatusCode::ACCEPTED, Json(run.into())))
}

/// A run of one's own.
#[utoipa::path(get, path = "/api/app/code/runs/{id}", tag = "app: code", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = CodeRunView)))]
async fn read_code_run(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<CodeRunView>, HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    Ok(Json(workshop.code_run(owner, run_id(&id)?).await?.into()))
}

/// Stops a run with everything it started; one that waits is taken out of the line.
#[utoipa::path(post, path = "/api/app/code/runs/{id}/stop", tag = "app: code", params(("id" = String, Path), ("orgId" = Option<String>, Query)), responses((status = 200, body = CodeRunView)))]
async fn stop_code_run(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
) -> Result<Json<CodeRunView>, HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    Ok(Json(workshop.stop_run(owner, &caller.actor(), run_id(&id)?).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SinceQuery {
    /// Number of the last output event that is known; everything when absent.
    since: Option<u64>,
}

/// Follows a run: events `state` (a run), `output` (`{seq, stream, b64}`) in the order of `seq`, which is also the
/// event's id, and `end` (a run) after the last output. Read on with `since` where a connection was lost.
#[utoipa::path(get, path = "/api/app/code/runs/{id}/events", tag = "app: code", params(("id" = String, Path), ("orgId" = Option<String>, Query), SinceQuery), responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn follow_code_run(
    State(app): State<App>,
    Member(caller): Member,
    Path(id): Path<String>,
    headers: axum::http::HeaderMap,
    query: Result<Query<SinceQuery>, HttpProblem>,
) -> Result<Response, HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    let Query(query) = query?;
    if app.stopping.is_cancelled() {
        return Err(draining().into());
    }
    let Via::Session(session) = caller.via else {
        return Err(Problem::internal("a browser's call without a session").into());
    };
    // A browser that connects again by itself says where it was.
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let since = seen.or(query.since).unwrap_or(0);
    let followed = workshop.follow_run(owner, run_id(&id)?, since).await?;
    let place = app.listeners().enter(&app.identity, session, owner.org);
    let events = async_stream::stream! {
        let mut followed = Box::pin(followed);
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                next = followed.next() => match next {
                    Some(event) => yield Ok::<_, Infallible>(event_of(event)),
                    None => return,
                },
                () = app.stopping.cancelled() => return,
                () = place.ended() => return,
                _ = ticks.tick() => yield Ok(Event::default().comment("ping")),
            }
        }
    };
    Ok(unbuffered(Sse::new(events).into_response()))
}

fn event_of(event: RunEvent) -> Event {
    let run = |name: &'static str, run: Run| {
        let data = serde_json::to_string(&CodeRunView::from(run)).unwrap_or_default();
        Event::default().event(name).data(data)
    };
    match event {
        RunEvent::State(one) => run("state", *one),
        RunEvent::End(one) => run("end", *one),
        RunEvent::Output { seq, stream, bytes } => {
            let data = json!({ "seq": seq, "stream": stream, "b64": STANDARD.encode(bytes) });
            Event::default().event("output").id(seq.to_string()).data(data.to_string())
        }
    }
}

/// What an entry of a directory is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CodeFileKind {
    File,
    Directory,
    Symlink,
    Other,
}

/// An entry of a directory.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CodeFile {
    name: String,
    kind: CodeFileKind,
    /// Bytes of a file, else 0.
    size: u64,
    /// Epoch milliseconds.
    modified_at: u64,
}

/// A directory of one's sandbox.
#[derive(Serialize, ToSchema)]
struct CodeFiles {
    entries: Vec<CodeFile>,
    /// Whether there are more than are listed.
    truncated: bool,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PathQuery {
    /// Below the directory in which programs start.
    path: Option<String>,
}

/// The files of one's own sandbox, while it is awake.
#[utoipa::path(get, path = "/api/app/code/files", tag = "app: code", params(("orgId" = Option<String>, Query), PathQuery), responses((status = 200, body = CodeFiles)))]
async fn list_code_files(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<PathQuery>, HttpProblem>,
) -> Result<Json<CodeFiles>, HttpProblem> {
    use tale_sandbox_wire::files::EntryKind;
    let (workshop, owner) = allowed(&app, &caller)?;
    let Query(query) = query?;
    let listed = workshop.list_files(owner, query.path.as_deref().unwrap_or_default()).await?;
    let entries = listed.entries.into_iter().map(|entry| CodeFile {
        name: entry.name,
        kind: match entry.kind {
            EntryKind::File => CodeFileKind::File,
            EntryKind::Directory => CodeFileKind::Directory,
            EntryKind::Symlink => CodeFileKind::Symlink,
            EntryKind::Other => CodeFileKind::Other,
        },
        size: entry.size,
        modified_at: entry.modified_at_ms,
    });
    Ok(Json(CodeFiles { entries: entries.collect(), truncated: listed.truncated }))
}

/// A file of one's own sandbox, of at most 20 MiB, while it is awake.
#[utoipa::path(get, path = "/api/app/code/files/content", tag = "app: code", params(("orgId" = Option<String>, Query), PathQuery), responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>)))]
async fn read_code_file(
    State(app): State<App>,
    Member(caller): Member,
    query: Result<Query<PathQuery>, HttpProblem>,
) -> Result<Response, HttpProblem> {
    let (workshop, owner) = allowed(&app, &caller)?;
    let Query(query) = query?;
    let path = query.path.ok_or_else(|| Problem::invalid_query("path", "must name a file"))?;
    let content = workshop.read_file(owner, &caller.actor(), &path).await?;
    let mut response = Response::new(Bytes::from_stream(content.bytes));
    let headers = response.headers_mut();
    // Whatever a program wrote is saved, never shown.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    if let Ok(named) = HeaderValue::from_str(&disposition(&content.name, true)) {
        headers.insert(header::CONTENT_DISPOSITION, named);
    }
    if let Some(length) = content.length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Ok(response)
}
