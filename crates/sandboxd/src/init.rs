//! Process 1: starts the daemon, reaps everything, passes the signal to stop on, and starts the daemon
//! again when it dies. Commands go on meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::time::Instant;

use crate::{log, procs, serve, state};

/// What the daemon ends with when it can never start; starting it again would not help.
pub const CANNOT_START: u8 = 78;
/// A daemon that lived shorter than this is started again after a pause.
const SHORT_LIFE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

/// Runs as process 1, or as the first process of a test.
#[must_use]
pub fn main() -> ExitCode {
    let run = || -> io::Result<u8> {
        harden()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let memory = state::Store::create()?;
        crate::runtime(0)?.block_on(run(memory))
    };
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            log::line(&format!("cannot start: {error}"));
            ExitCode::from(CANNOT_START)
        }
    }
}

/// Keeps other processes of the same user from reading this one's memory, environment and descriptors.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn harden() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

struct Signals {
    child: Stream,
    stop: Stream,
    interrupt: Stream,
}

async fn run(memory: File) -> io::Result<u8> {
    let mut signals = Signals {
        child: signal(SignalKind::child())?,
        stop: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    };
    let mut first = true;
    loop {
        let born = Instant::now();
        let daemon = start(&memory, first)?;
        first = false;
        let (code, stopping) = watch(daemon, &mut signals).await?;
        if stopping || code == i32::from(CANNOT_START) {
            // As process 1 the kernel does this anyway.
            procs::kill_below(own_pid(), |_| true);
            reap(None)?;
            return Ok(u8::try_from(code).unwrap_or(1));
        }
        log::line(&format!("the daemon ended with {code} and is started again"));
        if born.elapsed() < SHORT_LIFE {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = signals.stop.recv() => return Ok(0),
            }
        }
    }
}

fn start(memory: &File, first: bool) -> io::Result<Pid> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tale-sandboxd").arg(serve::WORD);
    if first {
        command.arg(serve::FIRST);
    }
    let child = command.stdin(Stdio::from(OwnedFd::from(memory.try_clone()?))).stdout(Stdio::null()).spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("a process without a number"))
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Waits for the daemon to end. Says its code and whether it was told to stop.
async fn watch(daemon: Pid, signals: &mut Signals) -> io::Result<(i32, bool)> {
    let mut stopping = false;
    loop {
        if let Some(code) = reap(Some(daemon))? {
            return Ok((code, stopping));
        }
        tokio::select! {
            _ = signals.child.recv() => {}
            _ = signals.stop.recv() => {
                stopping = true;
                let _ = rustix::process::kill_process(daemon, Signal::TERM);
            }
            _ = signals.interrupt.recv() => {
                stopping = true;
                let _ = rustix::process::kill_process(daemon, Signal::TERM);
            }
        }
    }
}

/// Takes every process that ended; the code of `awaited` if it is among them.
fn reap(awaited: Option<Pid>) -> io::Result<Option<i32>> {
    let mut found = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == awaited => {
                found = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(found),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
