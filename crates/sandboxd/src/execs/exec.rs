//! One command of the session, as the daemon knows it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::process::{Pid, Signal};
use tale_sandbox_wire::event::FailCode;
use tale_sandbox_wire::exec::{Checkpoint, ExecStatus, StdinRefusal, StdinRequest};
use tale_sandbox_wire::names::ExecId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::control::{Order, Reach};
use crate::{journal, log, procs};

/// A call to a supervisor, or to the disk, takes no longer.
pub const CALL_PATIENCE: Duration = Duration::from_secs(5);
const CHECKPOINT: &str = "checkpoint";

/// How far a command has come.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// How far its journal goes.
    pub reach: Reach,
    /// How it ended.
    pub end: Option<Ended>,
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// `None` when it never ran, or its end is not known.
    pub exit_code: Option<i32>,
    /// An end that the journal does not have.
    pub unwritten: Option<(FailCode, String)>,
}

/// One command.
#[derive(Debug)]
pub struct Exec {
    /// Its name.
    pub id: ExecId,
    /// When it was accepted, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Its directory.
    pub dir: OwnedFd,
    pub(super) serial: u64,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) followers: watch::Sender<usize>,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Everything up to here is covered by the stored checkpoint.
    pub(super) checkpoint: Option<u64>,
    pub(super) checkpoint_bytes: u64,
    /// Bytes on disk that were removed again.
    pub(super) removed: u64,
    /// Bytes on disk when this daemon found the command, until its supervisor says how many it wrote.
    pub(super) found: Option<u64>,
    pub(super) questions: HashMap<u64, oneshot::Sender<Option<StdinRefusal>>>,
    pub(super) next_question: u64,
    /// Its supervisor still runs.
    pub(super) supervised: bool,
    pub(super) supervisor: Option<Pid>,
    /// What it left behind waits for the next command.
    pub(super) kept: bool,
}

impl Exec {
    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it has come, now and later.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.progress.borrow().end.is_none()
    }

    /// The last event that a checkpoint covers.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.inner().checkpoint.unwrap_or(0)
    }

    pub(super) fn is_followed(&self) -> bool {
        *self.followers.borrow() > 0
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> ExecStatus {
        let (exec_id, started_at_ms) = (self.id.clone(), self.started_at_ms);
        match &self.progress.borrow().end {
            None => ExecStatus::Running { exec_id, started_at_ms },
            Some(end) => ExecStatus::Exited { exec_id, started_at_ms, exit_code: end.exit_code },
        }
    }

    pub(super) async fn order(&self, order: Order) -> bool {
        // A command may have stopped its supervisor; one that was not takes no notice.
        if let Some(pid) = self.inner().supervisor {
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        }
        matches!(tokio::time::timeout(CALL_PATIENCE, self.orders.send(order)).await, Ok(Ok(())))
    }

    /// Counts a follower until the guard is dropped. The command's deadline rests meanwhile.
    #[must_use]
    pub fn follow(self: &Arc<Self>) -> Following {
        self.followers.send_modify(|count| *count += 1);
        Following(Arc::clone(self))
    }

    /// Appends a line to the standard input.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn stdin(&self, request: &StdinRequest) -> Result<(), StdinRefusal> {
        let line = request.line()?;
        if !self.is_live() {
            return Err(StdinRefusal::NotFound);
        }
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut inner = self.inner();
            inner.next_question += 1;
            let id = inner.next_question;
            inner.questions.insert(id, answer);
            id
        };
        let asked = self.order(Order::Stdin { id, b64: STANDARD.encode(line), eof: request.eof }).await;
        let answer = if asked {
            tokio::time::timeout(CALL_PATIENCE, answered).await
        } else {
            Ok(Ok(Some(StdinRefusal::WriteFailed)))
        };
        self.inner().questions.remove(&id);
        match answer {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(refusal))) => Err(refusal),
            _ => Err(StdinRefusal::WriteFailed),
        }
    }

    pub(super) fn stored(&self) -> u64 {
        let inner = self.inner();
        self.progress.borrow().reach.stored.saturating_sub(inner.removed) + inner.checkpoint_bytes
    }

    /// Removes the segments whose events are all up to `through`, never the last one.
    pub(super) fn prune(&self, through: u64) -> io::Result<()> {
        let all = journal::segments(&self.dir)?;
        for pair in all.windows(2).take_while(|pair| pair[1] <= through + 1) {
            let bytes = journal::segment_bytes(&self.dir, pair[0])?;
            journal::remove_segment(&self.dir, pair[0])?;
            self.inner().removed += bytes;
        }
        Ok(())
    }

    /// The stored checkpoint.
    ///
    /// # Errors
    /// What the file system says.
    pub fn checkpoint(&self) -> io::Result<Option<Checkpoint>> {
        if self.inner().checkpoint.is_none() {
            return Ok(None);
        }
        let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = std::fs::File::from(rustix::fs::openat(&self.dir, CHECKPOINT, how, Mode::empty())?);
        Ok(Some(serde_json::from_reader(io::BufReader::new(file))?))
    }

    /// Stores a checkpoint, and only then removes what it covers.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn put_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        if checkpoint.seq > self.progress.borrow().reach.seq {
            return Err(CheckpointError::Future);
        }
        if self.inner().checkpoint.is_some_and(|stored| stored > checkpoint.seq) {
            return Err(CheckpointError::Stale);
        }
        let body = serde_json::to_vec(checkpoint).map_err(io::Error::other)?;
        write_whole(&self.dir, CHECKPOINT, &body)?;
        {
            let mut inner = self.inner();
            inner.checkpoint = Some(checkpoint.seq);
            inner.checkpoint_bytes = body.len() as u64;
        }
        Ok(self.prune(checkpoint.seq)?)
    }

    /// Tells the supervisor what a checkpoint covers.
    pub async fn acknowledge(&self, seq: u64) {
        self.order(Order::Acknowledged(seq)).await;
    }
}

/// Why a checkpoint was not stored.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It covers events that have not happened.
    #[error("the checkpoint covers events that have not happened")]
    Future,
    /// A newer one is stored.
    #[error("a newer checkpoint is stored")]
    Stale,
    /// The disk did not take it.
    #[error("the checkpoint could not be stored: {0}")]
    Io(#[from] io::Error),
}

/// Counts a follower.
#[derive(Debug)]
pub struct Following(Arc<Exec>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.followers.send_modify(|count| *count -= 1);
    }
}

/// Writes a file beside its place and moves it there.
pub(super) fn write_whole(dir: &OwnedFd, name: &str, body: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let part = format!("{name}.part");
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = std::fs::File::from(rustix::fs::openat(dir, &part, how, Mode::RUSR | Mode::WUSR)?);
    if let Err(error) = file.write_all(body) {
        let _ = rustix::fs::unlinkat(dir, &part, AtFlags::empty());
        return Err(error);
    }
    Ok(rustix::fs::renameat(dir, &part, dir, name)?)
}

impl Exec {
    pub(super) fn finish(&self, end: Ended) {
        self.progress.send_modify(|progress| progress.end = Some(end));
    }

    /// Its supervisor is gone without having said how it ended.
    pub(super) fn lose(&self) {
        log::line(&format!("the supervisor of exec {} is gone; its output ends there", self.id));
        let message = "how the command ended is not known: the process that followed it is gone".to_owned();
        self.finish(Ended { exit_code: None, unwritten: Some((FailCode::ReplayUnavailable, message)) });
        // What it ran went to the next process above that takes orphans.
        let id = self.id.clone();
        tokio::task::spawn_blocking(move || {
            let above = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get());
            for process in procs::carrying(above, id.as_str()) {
                process.signal(Signal::KILL);
            }
        });
    }

    pub(super) fn take_over_checkpoint(&self) {
        self.inner().checkpoint = Some(0);
        let stored = self.checkpoint().ok().flatten();
        let mut inner = self.inner();
        inner.checkpoint = stored.as_ref().map(|checkpoint| checkpoint.seq);
    }
}
