//! What a person can do: run a program, look at it, follow what it prints, stop it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use tale_core::ids::{CodeRunId, OrgId, UserId};
use tale_core::page::{CursorSigner, Page};
use tale_core::{Actor, Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_governance::audit::{self, AuditEntry};

use crate::service::{Workshop, session_of};
use crate::store::{self, places, runs};

/// Largest program, in bytes.
pub const MAX_CODE: usize = 65_536;
/// Most bytes that a program may print before it is ended.
pub const MAX_OUTPUT: usize = 2_000_000;
/// Longest time that a program may run.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Runs of one person that wait or go on at the same time.
pub const MAX_OPEN: i64 = 10;
/// Ended runs that a person keeps.
pub const KEPT: i64 = 50;

/// What a program is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Python 3.
    Python,
    /// Bash.
    Shell,
}

impl Language {
    /// The stored word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Shell => "shell",
        }
    }

    /// Program and arguments that run `code`.
    pub(crate) fn command(self, code: &str) -> Vec<String> {
        let words: [&str; 3] = match self {
            Self::Python => ["python3", "-u", "-c"],
            Self::Shell => ["bash", "--noprofile", "-c"],
        };
        words.iter().map(|word| (*word).to_owned()).chain([code.to_owned()]).collect()
    }

    pub(crate) fn parse(text: &str) -> Self {
        if text == "shell" { Self::Shell } else { Self::Python }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// In line.
    Waiting,
    /// Its sandbox is being woken.
    Starting,
    /// The program runs.
    Running,
    /// It ended with exit code 0.
    Completed,
    /// It ended otherwise.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

impl RunState {
    /// The stored word.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing happens to it any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    fn parse(text: &str) -> Self {
        let all = [Self::Waiting, Self::Starting, Self::Running, Self::Completed, Self::Failed];
        all.into_iter().find(|state| state.text() == text).unwrap_or(Self::Cancelled)
    }
}

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its id.
    pub id: CodeRunId,
    /// What it is written in.
    pub language: Language,
    /// The program.
    pub code: String,
    /// Where it stands.
    pub state: RunState,
    /// Why it waits or ended as it did, as a stable word: a refusal of the host (`session_quota`, `host_memory`, …,
    /// `unreachable`) or an end (`TIME_LIMIT`, `OUTPUT_LIMIT`, `OOM_KILLED`, `SANDBOX_LOST`, …). `None` = the
    /// organization's own turn, or the program's own exit code.
    pub reason: Option<String>,
    /// What the sandbox said about it.
    pub message: Option<String>,
    /// Its place in the organization's line from 1, while it waits.
    pub position: Option<u64>,
    /// The place in the host's line, as said last.
    pub host_position: Option<u32>,
    /// When it was asked for.
    pub queued_at: DateTime<Utc>,
    /// When the program was started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether somebody asked for its end.
    pub stopping: bool,
    /// 128 + the signal where a signal ended it.
    pub exit_code: Option<i32>,
    /// How long the program ran.
    pub duration: Option<Duration>,
    /// Number of the last stored event of its output.
    pub last_seq: u64,
    /// How much it printed.
    pub output_bytes: u64,
    /// Whether all that it printed is there, once it is over.
    pub output_complete: Option<bool>,
}

impl From<runs::Row> for Run {
    fn from(row: runs::Row) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            id: row.id,
            language: Language::parse(&row.language),
            code: row.code,
            state: RunState::parse(&row.state),
            reason: row.reason,
            message: row.message,
            position: row.before.map(|before| count(before) + 1),
            host_position: row.host_position.and_then(|place| u32::try_from(place).ok()),
            queued_at: row.queued_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            stopping: row.cancel_requested && row.ended_at.is_none(),
            exit_code: row.exit_code,
            duration: row.duration_ms.map(|ms| Duration::from_millis(count(ms))),
            last_seq: count(row.last_seq),
            output_bytes: count(row.output_bytes),
            output_complete: row.output_complete,
        }
    }
}

/// One event of a followed run.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The run changed, or is as it was when following began.
    State(Box<Run>),
    /// It printed something.
    Output {
        /// The number from which following goes on.
        seq: u64,
        /// `stdout` or `stderr`.
        stream: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All of its output has been said, and this is how it ended.
    End(Box<Run>),
}

/// Whose runs: a person in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The organization.
    pub org: OrgId,
    /// The person.
    pub user: UserId,
}

/// The answer for absent and foreign runs.
pub(crate) fn not_found() -> Problem {
    Problem::new(Code::CodeRunNotFound, "There is no such run, or it is older than those that are kept.")
}

impl Workshop {
    /// Puts a program in line. It starts as soon as the organization and the host have room.
    ///
    /// # Errors
    /// `INVALID_BODY`, `QUEUE_FULL`, `BUSY` while the files of an earlier sandbox are being deleted.
    pub async fn run(&self, owner: Owner, actor: &Actor, language: Language, code: &str) -> Result<Run, Problem> {
        if code.trim().is_empty() {
            return Err(Problem::invalid_field("code", "must not be blank"));
        }
        if code.len() > MAX_CODE {
            return Err(Problem::invalid_field("code", "must have at most 65536 bytes"));
        }
        if code.contains('\0') {
            return Err(Problem::invalid_field("code", "must not contain a NUL character"));
        }
        let session = session_of(owner.org, owner.user)?;
        let id = CodeRunId::new();
        let mut tx = self.0.db.begin().await?;
        places::lock(&mut tx, owner.org).await?;
        if !places::ensure(&mut tx, owner.org, owner.user, session.as_str(), self.0.profile.as_str()).await? {
            return Err(Problem::new(
                Code::Busy,
                "The files of your sandbox are being deleted. Try again in a moment.",
            )
            .retry_after(Duration::from_secs(5)));
        }
        if runs::open_of(&mut tx, owner.org, owner.user).await? >= MAX_OPEN {
            return Err(Problem::new(
                Code::QueueFull,
                format!("{MAX_OPEN} of your runs wait or go on already. Let one end, or stop one, then run this."),
            )
            .with_data(json!({ "limit": MAX_OPEN })));
        }
        runs::forget(&mut tx, owner.org, owner.user, KEPT).await?;
        let new = runs::New {
            id,
            org: owner.org,
            user: owner.user,
            session: session.as_str(),
            language: language.text(),
            code,
        };
        runs::insert(&mut tx, &new).await?;
        let details = json!({ "language": language.text(), "bytes": code.len(), "sha256": digest(code) });
        self.record(&mut tx, owner.org, actor, "code_run.requested", id, details).await?;
        announce(&mut tx, owner, id).await?;
        store::announce(&mut tx, "").await?;
        let row = runs::find(&mut *tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(row.into())
    }

    /// A run of one's own.
    ///
    /// # Errors
    /// `CODE_RUN_NOT_FOUND`.
    pub async fn code_run(&self, owner: Owner, id: CodeRunId) -> Result<Run, Problem> {
        Ok(runs::find(&self.0.db, owner.org, owner.user, id).await?.ok_or_else(not_found)?.into())
    }

    /// One's own runs, the newest first, each with the first 400 characters of its program.
    ///
    /// # Errors
    /// `INVALID_CURSOR`.
    pub async fn code_runs(
        &self,
        owner: Owner,
        cursors: &CursorSigner,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<Run>, Problem> {
        let scope = format!("code-runs/{}/{}", owner.org, owner.user);
        let before: Option<CodeRunId> = cursor.map(|cursor| cursors.open(&scope, cursor)).transpose()?;
        let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut rows: Vec<Run> =
            runs::list(&self.0.db, owner.org, owner.user, before, most).await?.into_iter().map(Run::from).collect();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|last| cursors.sign(&scope, &last.id));
        Ok(Page { rows, next })
    }

    /// Has a run end; one that waits has ended with it. Stopping twice is fine.
    ///
    /// # Errors
    /// `CODE_RUN_NOT_FOUND`.
    pub async fn stop_run(&self, owner: Owner, actor: &Actor, id: CodeRunId) -> Result<Run, Problem> {
        let mut tx = self.0.db.begin().await?;
        if runs::cancel(&mut tx, owner.org, owner.user, id).await?.is_some() {
            self.record(&mut tx, owner.org, actor, "code_run.stopped", id, json!({})).await?;
            announce(&mut tx, owner, id).await?;
            store::announce(&mut tx, &id.to_string()).await?;
        }
        let row = runs::find(&mut *tx, owner.org, owner.user, id).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        self.wake(id);
        self.tell(id);
        Ok(row.into())
    }

    pub(crate) async fn record(
        &self,
        conn: &mut sqlx::PgConnection,
        org: OrgId,
        actor: &Actor,
        action: &'static str,
        id: CodeRunId,
        details: serde_json::Value,
    ) -> Result<(), Problem> {
        let entry = AuditEntry {
            org: Some(org),
            actor: actor.clone(),
            action,
            category: "data",
            resource_type: "code_run",
            resource_id: Some(id.to_string()),
            details,
            at: self.0.clock.now(),
        };
        Ok(audit::record(conn, &entry).await?)
    }
}

/// Tells open pages, when the transaction commits.
pub(crate) async fn announce(conn: &mut sqlx::PgConnection, owner: Owner, id: CodeRunId) -> Result<(), Problem> {
    let own = Hint::new(owner.org, Topic::CodeRuns).id(id.0).user(owner.user);
    hints::notify_all(conn, &[own, Hint::new(owner.org, Topic::Sandboxes)]).await?;
    Ok(())
}

/// SHA-256 in hexadecimal: says in the log which program it was, without its text.
fn digest(code: &str) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    sha2::Sha256::digest(code.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
