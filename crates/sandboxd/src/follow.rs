//! A reader of output: history from the journal, then what comes, as lines of the stream.
//!
//! Nothing is buffered for a reader but one batch. One that takes nothing for
//! [`READER_PATIENCE`] is disconnected when it attached, and when it started the command once it is
//! [`MAX_PENDING_BYTES`] behind; the command does not notice either way.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tale_sandbox_wire::event::{self, Event, FailCode, Stream};
use tale_sandbox_wire::limits::{MAX_PENDING_BYTES, READER_PATIENCE};
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

use crate::control::Reach;
use crate::execs::{CALL_PATIENCE, Exec, Progress};
use crate::journal::{Cursor, Kind, ReadError, Record};
use crate::log;

/// Bytes of the journal read at a time.
const BATCH: usize = 256 << 10;
/// So much is read without going to another thread: it was just written, so the page cache has it.
const AT_ONCE: u64 = 64 << 10;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The one who started the command.
    Starter,
    /// One who came later and has seen everything up to here.
    Attached {
        /// The last event it has.
        since: u64,
    },
}

/// Sends lines until the end, or until the reader is gone.
pub async fn run(exec: Arc<Exec>, reader: Reader, out: Sender<Bytes>) {
    let _counted = exec.follow();
    let mut follower = Follower {
        progress: exec.progress(),
        cursor: None,
        seen: match reader {
            Reader::Starter => 0,
            Reader::Attached { since } => since,
        },
        sent: 0,
        buffer: Vec::new(),
        exec,
        reader,
        out,
    };
    if let Err(Gone) = follower.run().await {
        log::line(&format!("a reader of exec {} left or was disconnected", follower.exec.id));
    }
}

struct Gone;

struct Follower {
    exec: Arc<Exec>,
    reader: Reader,
    out: Sender<Bytes>,
    progress: watch::Receiver<Progress>,
    cursor: Option<Cursor>,
    seen: u64,
    /// Bytes of the journal that were sent, about.
    sent: u64,
    buffer: Vec<u8>,
}

impl Follower {
    async fn run(&mut self) -> Result<(), Gone> {
        let now = self.progress.borrow_and_update().clone();
        self.sent = 0;
        if let Reader::Attached { .. } = self.reader {
            self.event(&Event::ReplayStart).await?;
            let finished = self.catch_up(&now.reach).await?;
            if finished == Step::Broken {
                return Ok(());
            }
            self.event(&Event::ReplayComplete { through_seq: now.reach.seq.max(self.seen) }).await?;
        }
        loop {
            let now = self.progress.borrow_and_update().clone();
            if self.catch_up(&now.reach).await? == Step::Broken {
                return Ok(());
            }
            if let Some(end) = now.end {
                if let Some((code, message)) = end.unwritten {
                    self.event(&Event::Fail { code, message }).await?;
                }
                return Ok(());
            }
            tokio::select! {
                changed = self.progress.changed() => if changed.is_err() { return Ok(()) },
                () = self.out.closed() => return Err(Gone),
            }
        }
    }

    /// Sends everything up to `reach`.
    async fn catch_up(&mut self, reach: &Reach) -> Result<Step, Gone> {
        while self.seen < reach.seq {
            let (batch, problem) = self.batch(*reach).await;
            if !batch.is_empty() {
                self.send(batch).await?;
            }
            match problem {
                None => {}
                Some(ReadError::Pruned(through)) if through <= self.exec.covered() => {
                    self.event(&Event::Gap { from_seq: self.seen + 1, to_seq: through }).await?;
                    self.seen = through;
                    self.cursor = None;
                }
                Some(problem) => {
                    log::line(&format!("exec {}: {problem}", self.exec.id));
                    self.event(&Event::Fail { code: FailCode::ReplayUnavailable, message: problem.to_string() })
                        .await?;
                    return Ok(Step::Broken);
                }
            }
        }
        Ok(Step::Done)
    }

    /// The lines of the next events, and why there are no more.
    async fn batch(&mut self, reach: Reach) -> (Vec<u8>, Option<ReadError>) {
        let cursor = self.cursor.take();
        let next = self.seen + 1;
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            buffer = vec![0; BATCH];
        }
        let exec = Arc::clone(&self.exec);
        let read = move || {
            let mut lines = Vec::new();
            let answer = cursor.map_or_else(|| Cursor::seek(&exec.dir, next), Ok).and_then(|mut cursor| {
                cursor.read(&exec.dir, &reach, &mut buffer, |record| write(&mut lines, record))?;
                Ok(cursor)
            });
            (lines, answer, buffer)
        };
        let near = reach.stored.saturating_sub(self.sent) <= AT_ONCE;
        let done = if near {
            Some(read())
        } else {
            // A disk that hangs is not waited for: the thread comes back when it does.
            match tokio::time::timeout(CALL_PATIENCE, tokio::task::spawn_blocking(read)).await {
                Ok(Ok(done)) => Some(done),
                _ => None,
            }
        };
        let Some((lines, answer, buffer)) = done else {
            return (Vec::new(), Some(io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer").into()));
        };
        self.buffer = buffer;
        match answer {
            Ok(cursor) => {
                self.seen = cursor.next() - 1;
                self.sent += lines.len() as u64 / 4 * 3;
                if self.seen >= reach.seq {
                    self.sent = reach.stored;
                }
                self.cursor = Some(cursor);
                (lines, None)
            }
            Err(problem) => (lines, Some(problem)),
        }
    }

    async fn event(&mut self, event: &Event) -> Result<(), Gone> {
        let mut line = Vec::new();
        event::write(&mut line, None, event);
        self.send(line).await
    }

    async fn send(&mut self, lines: Vec<u8>) -> Result<(), Gone> {
        let mut lines = Some(Bytes::from(lines));
        loop {
            let Ok(permit) = tokio::time::timeout(READER_PATIENCE, self.out.reserve()).await else {
                let behind = self.progress.borrow().reach.encoded.saturating_sub(self.sent / 3 * 4);
                if matches!(self.reader, Reader::Attached { .. }) || behind > MAX_PENDING_BYTES {
                    return Err(Gone);
                }
                continue;
            };
            let permit = permit.map_err(|_| Gone)?;
            if let Some(lines) = lines.take() {
                permit.send(lines);
            }
            return Ok(());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Done,
    Broken,
}

fn write(out: &mut Vec<u8>, record: &Record<'_>) {
    match record.kind {
        Kind::Stdout => event::write_output(out, Some(record.seq), Stream::Stdout, record.payload),
        Kind::Stderr => event::write_output(out, Some(record.seq), Stream::Stderr, record.payload),
        Kind::Line | Kind::End => out.extend_from_slice(record.payload),
    }
}
