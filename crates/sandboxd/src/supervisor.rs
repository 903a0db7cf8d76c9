//! The process around one command: starts it, writes what it writes, and ends what it leaves behind.
//!
//! It is a subreaper, so every process the command starts stays below it; it exits when nothing is below
//! it any more. It goes on without a daemon: output reaches the journal, the deadline runs, and a daemon
//! that was started anew finds it through its socket.

mod child;
mod link;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Signal, WaitOptions, WaitStatus};
use tale_sandbox_wire::event::{Event, Exit, FailCode, Failure, Stream, Truncated};
use tale_sandbox_wire::exec::StdinRefusal;
use tale_sandbox_wire::limits::{KILL_GRACE, MAX_UNACKNOWLEDGED_BYTES, STOP_BUDGET};
use tale_sandbox_wire::names::ExecId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use self::child::{Child, Output};
use self::link::Link;
use crate::control::{End, Launch, Order, Reach, Report};
use crate::journal::Writer;
use crate::memory::Counters;
use crate::watch::StallWatch;
use crate::{init, log, procs};

/// The word that starts it.
pub const WORD: &str = "internal-exec";

/// What one read of both outputs may add, encoded.
const BATCH_ROOM: u64 = 512 << 10;
/// How long a command may wait for an acknowledgement of output beyond the budget.
const ACKNOWLEDGE_PATIENCE: Duration = Duration::from_secs(10);
/// How long leftovers wait for a daemon that is away.
const DAEMON_PATIENCE: Duration = Duration::from_secs(60);
/// The kernel's preference for ending this process and what it starts; the daemon's is 500.
const OOM_SCORE: &str = "900";
/// How long a start waits for a process that it may have.
const START_PATIENCE: Duration = KILL_GRACE.saturating_mul(2);
/// How often killing is repeated while something is left.
const KILL_AGAIN: Duration = Duration::from_millis(50);

/// Runs one command.
#[must_use]
pub fn main() -> ExitCode {
    let run = || -> io::Result<()> {
        // Commands inherit it, so the kernel ends one of them for memory before the daemon. Who is hardened
        // may not write there any more.
        let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
        init::harden()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        crate::runtime(0)?.block_on(run())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(&format!("the supervisor of a command failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Why the command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Cancelled,
    TimedOut,
    Stalled,
    OutputLimit,
    DiskFull,
    JournalLost,
}

impl Reason {
    fn of_journal(error: &io::Error) -> Self {
        match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG) => Self::DiskFull,
            _ => Self::JournalLost,
        }
    }

    /// The end that takes the place of an exit, where output is missing.
    fn failure(self) -> Option<(FailCode, &'static str)> {
        match self {
            Self::OutputLimit => {
                Some((FailCode::OutputLimit, "the command wrote more than 64 MiB that no checkpoint covers"))
            }
            Self::DiskFull => {
                Some((FailCode::ReplayDiskFull, "the disk of the session is full, so the output could not be kept"))
            }
            Self::JournalLost => {
                Some((FailCode::ReplayUnavailable, "the journal of the command was removed or cannot be written"))
            }
            Self::Cancelled | Self::TimedOut | Self::Stalled => None,
        }
    }
}

/// Whom the next kill is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// The command's own process group.
    Group,
    /// Everything below this process.
    All,
}

struct Supervisor {
    own: i32,
    link: Link,
    writer: Writer,
    child: Child,
    born: Instant,
    counters: Option<Counters>,
    kills_before: Option<u64>,
    reason: Option<Reason>,
    /// When what did not end by itself is killed.
    kill: Option<(Instant, Whom)>,
    /// Since when the deadline runs.
    unfollowed: Option<Instant>,
    timeout: Duration,
    stall: Option<StallWatch>,
    next_look: Instant,
    /// Encoded bytes that checkpoints cover, and where in the journal earlier bytes end.
    acknowledged: u64,
    marks: std::collections::VecDeque<(u64, u64)>,
    over_budget: Option<Instant>,
    status: Option<WaitStatus>,
    ended: Option<End>,
    alone_since: Option<Instant>,
}

async fn run() -> io::Result<()> {
    // Handlers, so that a stray signal does not end it; they do not pass to the command.
    let _kept = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?];
    let mut reaped = signal(SignalKind::child())?;
    let (mut link, launch) = Link::first().await?;
    let id = ExecId::new(launch.exec_id.clone()).map_err(io::Error::other)?;
    let mut writer = match link::open_dir(&launch.dir).and_then(Writer::create) {
        Ok(writer) => writer,
        Err(error) => {
            let failure = Reason::of_journal(&error).failure();
            let unwritten = failure.map(|(code, message)| (code, message.to_owned()));
            link.report(&Report::Ended(End { exit_code: None, unwritten }));
            return link.flush().await;
        }
    };
    let counters = Counters::find();
    let kills_before = counters.as_ref().and_then(Counters::kills);
    let born = Instant::now();
    let child = match start(&launch).await {
        Ok(child) => child,
        Err(error) => {
            let message = format!("the command could not be started: {}", reason(&error));
            writer.event(&Event::Fail { code: FailCode::RuntimeError, message })?;
            link.end(writer.reach(), End { exit_code: None, unwritten: None });
            return link.flush().await;
        }
    };
    let begun = writer.event(&Event::Start { exec_id: id, started_at_ms: launch.started_at_ms });
    let mut supervisor = Supervisor {
        own: rustix::process::getpid().as_raw_nonzero().get(),
        link,
        writer,
        child,
        born,
        counters,
        kills_before,
        reason: None,
        kill: None,
        unfollowed: Some(born),
        timeout: Duration::from_millis(launch.timeout_ms),
        stall: (launch.stall_ms > 0).then(|| StallWatch::new(Duration::from_millis(launch.stall_ms), Duration::ZERO)),
        next_look: born,
        acknowledged: 0,
        marks: std::collections::VecDeque::new(),
        over_budget: None,
        status: None,
        ended: None,
        alone_since: None,
    };
    supervisor.written(begun);
    if let Err(error) = supervisor.link.listen(&launch.dir, launch.key) {
        // It goes on without: only a daemon after this one would have come this way.
        log::line(&format!("no later daemon will find exec {}: {error}", launch.exec_id));
    }
    supervisor.drive(&mut reaped).await
}

/// Why a command was not started.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => "the session has as many processes as it may have".to_owned(),
        _ => error.to_string(),
    }
}

/// Starts the command. What another one left behind may hold every process that the session may have, and is on
/// its way out.
async fn start(launch: &Launch) -> io::Result<Child> {
    let begun = Instant::now();
    loop {
        match Child::start(launch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < START_PATIENCE => {
                tokio::time::sleep(KILL_AGAIN).await;
            }
            started => return started,
        }
    }
}

impl Supervisor {
    async fn drive(&mut self, reaped: &mut tokio::signal::unix::Signal) -> io::Result<()> {
        loop {
            if self.reap() && self.ended.is_some() {
                return self.link.flush().await;
            }
            self.tick();
            let wake = self.next_wake();
            let reading = self.over_budget.is_none();
            tokio::select! {
                _ = reaped.recv() => {}
                order = self.link.next() => match order {
                    Some(order) => self.obey(order),
                    None => self.unfollowed = self.unfollowed.or(Some(Instant::now())),
                },
                () = self.child.stdin.writable() => self.child.stdin.write(),
                stream = self.child.readable(), if reading => self.read(stream),
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Takes what ended; says whether nothing is below this process any more.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child.pid => {
                    self.status = Some(status);
                    self.end();
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Reads what the command wrote and appends it to the journal.
    fn read(&mut self, stream: Stream) {
        let Output { bytes, last, .. } = self.child.read(stream);
        if self.ended.is_some() {
            self.child.hold(stream, 0);
            return;
        }
        if let Some(watch) = &mut self.stall
            && !bytes.is_empty()
        {
            watch.output(self.born.elapsed());
            self.next_look = Instant::now() + watch.step();
        }
        let taken = self.writer.output(stream, bytes, last);
        let held = *taken.as_ref().unwrap_or(&0);
        self.child.hold(stream, held);
        self.written(taken.map(drop));
    }

    /// After the journal took something, or did not.
    fn written(&mut self, taken: io::Result<()>) {
        if let Err(error) = taken {
            log::line(&format!("a journal cannot be written: {error}"));
            self.finish(Reason::of_journal(&error));
        }
        let reach = self.writer.reach();
        // One mark for every 64 KiB is fine enough for what checkpoints give back.
        if self.mark_before().is_some_and(|before| reach.encoded - before < (64 << 10)) {
            self.marks.pop_back();
        }
        self.marks.push_back((reach.seq, reach.encoded));
        self.budget(reach);
        self.link.report(&Report::Reach(reach));
    }

    /// Where the mark before the last one ends; `None` when there is no mark.
    fn mark_before(&self) -> Option<u64> {
        match self.marks.len() {
            0 => None,
            1 => Some(self.acknowledged),
            length => self.marks.get(length - 2).map(|(_, encoded)| *encoded),
        }
    }

    fn budget(&mut self, reach: Reach) {
        let over = reach.encoded - self.acknowledged > MAX_UNACKNOWLEDGED_BYTES - BATCH_ROOM;
        self.over_budget = match (over, self.over_budget) {
            (false, _) => None,
            (true, since) => since.or(Some(Instant::now())),
        };
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(_) => {}
            Order::Stdin { id, b64, eof } => {
                let refusal = match STANDARD.decode(b64) {
                    Err(_) => Some(StdinRefusal::BadLine),
                    Ok(_) if self.ended.is_some() => Some(StdinRefusal::NotFound),
                    Ok(bytes) => self.child.stdin.append(&bytes, eof).err(),
                };
                self.child.stdin.write();
                self.link.report(&Report::Stdin { id, refusal });
            }
            Order::Cancel { keep: false } if self.ended.is_none() => self.finish(Reason::Cancelled),
            Order::Cancel { keep: true } if self.ended.is_none() => {
                self.reason = self.reason.or(Some(Reason::Cancelled));
                self.signal_group(Signal::TERM);
                self.kill = Some((Instant::now() + KILL_GRACE, Whom::Group));
            }
            Order::Cancel { .. } => {}
            Order::Followed(true) => self.unfollowed = None,
            Order::Followed(false) => self.unfollowed = Some(Instant::now()),
            Order::Acknowledged(seq) => {
                while let Some((through, encoded)) = self.marks.front().copied()
                    && through <= seq
                {
                    self.acknowledged = encoded;
                    self.marks.pop_front();
                }
                self.budget(self.writer.reach());
            }
            Order::Sweep { now: true } => self.terminate(Duration::ZERO),
            Order::Sweep { now: false } => {
                if self.kill.is_none_or(|(_, whom)| whom == Whom::Group) {
                    self.terminate(KILL_GRACE);
                }
            }
            Order::Stop => {
                self.reason = self.reason.or(Some(Reason::Cancelled));
                self.terminate(STOP_BUDGET / 2);
            }
        }
    }

    /// Ends the command with everything it started.
    fn finish(&mut self, reason: Reason) {
        if self.reason.is_none() {
            self.reason = Some(reason);
        }
        self.terminate(KILL_GRACE);
    }

    /// Asks everything to end, and sets the time from which it is killed. The group is asked as a whole,
    /// what left it one by one.
    fn terminate(&mut self, grace: Duration) {
        self.signal_group(Signal::TERM);
        let group = self.child.pid.as_raw_nonzero().get();
        let strays = procs::below(self.own).into_iter().filter(|process| process.group != group);
        strays.for_each(|process| {
            process.signal(Signal::TERM);
        });
        let at = Instant::now() + grace;
        self.kill =
            Some((self.kill.filter(|(_, whom)| *whom == Whom::All).map_or(at, |(old, _)| old.min(at)), Whom::All));
    }

    fn signal_group(&self, signal: Signal) {
        // The number stays taken while the command was not waited for or a process is in the group.
        let group = self.child.pid.as_raw_nonzero().get();
        let alive = self.status.is_none() || procs::below(self.own).iter().any(|process| process.group == group);
        if alive {
            let _ = rustix::process::kill_process_group(self.child.pid, signal);
        }
    }

    /// Does what is due by time.
    fn tick(&mut self) {
        let now = Instant::now();
        if let Some((at, whom)) = self.kill
            && at <= now
        {
            let group = self.child.pid.as_raw_nonzero().get();
            procs::kill_below(self.own, |process| whom == Whom::All || process.group == group);
            let more = whom == Whom::All || self.status.is_none();
            self.kill = more.then_some((now + KILL_AGAIN, whom));
        }
        if self.ended.is_some() {
            // Nobody will say when to sweep.
            self.alone_since = if self.link.is_connected() { None } else { self.alone_since.or(Some(now)) };
            if self.alone_since.is_some_and(|since| now - since >= DAEMON_PATIENCE) && self.kill.is_none() {
                self.terminate(KILL_GRACE);
            }
            return;
        }
        if self.reason.is_some() {
            return;
        }
        if self.unfollowed.is_some_and(|since| now - since >= self.timeout) {
            self.finish(Reason::TimedOut);
        } else if self.over_budget.is_some_and(|since| now - since >= ACKNOWLEDGE_PATIENCE) {
            self.finish(Reason::OutputLimit);
        } else if let Some(watch) = &mut self.stall
            && self.next_look <= now
        {
            self.next_look = now + watch.step();
            if watch.look(self.born.elapsed(), procs::ticks_below(self.own)) {
                self.finish(Reason::Stalled);
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let idle = Instant::now() + Duration::from_secs(60);
        let running = self.ended.is_none() && self.reason.is_none();
        [
            self.kill.map(|(at, _)| at),
            self.unfollowed.filter(|_| running).map(|since| since + self.timeout),
            self.over_budget.filter(|_| running).map(|since| since + ACKNOWLEDGE_PATIENCE),
            self.stall.as_ref().filter(|_| running).map(|_| self.next_look),
            self.alone_since.filter(|_| self.kill.is_none()).map(|since| since + DAEMON_PATIENCE),
        ]
        .into_iter()
        .flatten()
        .fold(idle, Instant::min)
    }

    /// The command ended: takes what is left in its pipes and writes the end.
    fn end(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Err(error) = self.drain(stream) {
                log::line(&format!("the end of an output cannot be written: {error}"));
                self.reason = Some(Reason::of_journal(&error));
            }
        }
        self.child.stdin.close();
        let code = self
            .status
            .and_then(|status| status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)));
        let failure = self.reason.and_then(Reason::failure);
        let event = match failure {
            Some((code, message)) => Event::Fail { code, message: message.to_owned() },
            None => Event::Exit(self.exit(code.unwrap_or(0))),
        };
        let mut end = End { exit_code: code, unwritten: None };
        if let Err(error) = self.writer.event(&event) {
            let failure = failure.or_else(|| Reason::of_journal(&error).failure());
            end.unwritten = failure.map(|(code, message)| (code, message.to_owned()));
        }
        self.link.end(self.writer.reach(), end.clone());
        self.ended = Some(end);
        self.over_budget = None;
        if matches!(self.kill, Some((_, Whom::Group))) {
            self.kill = None;
        }
    }

    fn exit(&self, exit_code: i32) -> Exit {
        let killed = self.status.and_then(WaitStatus::terminating_signal) == Some(Signal::KILL.as_raw());
        let kills = self.counters.as_ref().and_then(Counters::kills);
        let rose = matches!((self.kills_before, kills), (Some(before), Some(now)) if now > before);
        Exit {
            exit_code,
            // 0 means "not measured".
            duration_ms: u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX).max(1),
            truncated: Truncated::default(),
            timed_out: self.reason == Some(Reason::TimedOut),
            cancelled: self.reason == Some(Reason::Cancelled),
            failure: (self.reason == Some(Reason::Stalled)).then_some(Failure::ExecStalled),
            // A kill of ours is none of the kernel's.
            oom_killed: self.reason.is_none() && rose && (killed || exit_code == 137),
            memory_peak_bytes: self.counters.as_ref().and_then(Counters::peak),
        }
    }

    /// Takes what stands in a pipe now. Whoever still writes into it was left behind, and what they write
    /// from now on is read and dropped.
    fn drain(&mut self, stream: Stream) -> io::Result<()> {
        let mut budget = child::PIPE_BYTES * 2;
        loop {
            let Output { bytes, fresh, last } = self.child.read_now(stream);
            let over = last || fresh == 0 || budget == 0;
            let held = self.writer.output(stream, bytes, over)?;
            self.child.hold(stream, held);
            if over {
                return Ok(());
            }
            budget = budget.saturating_sub(fresh);
        }
    }
}
