//! The daemon's connection to one supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::Pid;
use tale_sandbox_wire::event::{Event, read as read_event};
use tale_sandbox_wire::lines::{BadLine, Lines};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use super::{CALL_PATIENCE, Ended, Exec, Execs};
use crate::control::{self, Order, Report};
use crate::{log, supervisor};

/// Starts a supervisor that waits for its command.
///
/// # Errors
/// When the kernel has no process for it.
pub(super) fn spawn() -> io::Result<(StdStream, Option<u32>)> {
    let (ours, theirs) = StdStream::pair()?;
    let mut child = tokio::process::Command::new("/proc/self/exe")
        .arg0("tale-sandboxd")
        .arg(supervisor::WORD)
        .env_clear()
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()?;
    let pid = child.id();
    tokio::spawn(async move { child.wait().await });
    Ok((ours, pid))
}

/// The code in the line of an end.
pub(super) fn exit_code(line: &[u8]) -> Option<i32> {
    match read_event(line.strip_suffix(b"\n").unwrap_or(line)).ok()?.event {
        Event::Exit(exit) => Some(exit.exit_code),
        _ => None,
    }
}

/// Speaks with the supervisor until it is gone.
pub(super) async fn run(
    all: Arc<Execs>,
    exec: Arc<Exec>,
    stream: StdStream,
    mut orders: mpsc::Receiver<Order>,
    mut followers: watch::Receiver<usize>,
) {
    // One that has said how the command ended may go while an order is on its way.
    if let Err(error) = speak(&all, &exec, stream, &mut orders, &mut followers).await
        && exec.is_live()
    {
        log::line(&format!("the supervisor of exec {} does not answer: {error}", exec.id));
    }
    exec.inner().supervised = false;
    exec.inner().questions.clear();
    orders.close();
    if exec.is_live() {
        exec.lose();
        all.ended(&exec).await;
    }
}

async fn speak(
    all: &Arc<Execs>,
    exec: &Arc<Exec>,
    stream: StdStream,
    orders: &mut mpsc::Receiver<Order>,
    followers: &mut watch::Receiver<usize>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let other = stream.peer_cred().ok().and_then(|peer| Pid::from_raw(peer.pid()?));
    if other != Some(rustix::process::getpid()) {
        // Not a pair of sockets that this daemon made: the other end is the supervisor that was found.
        exec.inner().supervisor = other;
    }
    let (input, mut output) = stream.into_split();
    let mut lines = Lines::new(control::MAX_LINE);
    let mut buffer = vec![0; 4096];
    let mut followed = false;
    let mut listens = true;
    loop {
        let order = tokio::select! {
            biased;
            ready = input.readable() => {
                ready?;
                match input.try_read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => {
                        let mut ended = false;
                        lines.push::<BadLine>(&buffer[..count], |line| {
                            ended |= take(exec, line);
                            Ok(())
                        }).map_err(io::Error::other)?;
                        if ended {
                            let (all, exec) = (Arc::clone(all), Arc::clone(exec));
                            tokio::spawn(async move { all.ended(&exec).await });
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            order = orders.recv() => match order {
                Some(order) => order,
                None => return Ok(()),
            },
            changed = followers.changed() => {
                let now = changed.is_ok() && *followers.borrow_and_update() > 0;
                if now == followed {
                    continue;
                }
                followed = now;
                Order::Followed(now)
            }
        };
        // A supervisor that is done does not listen, but what it said last is still to be read.
        if listens {
            let written = tokio::time::timeout(CALL_PATIENCE, output.write_all(&control::line(&order))).await;
            listens = matches!(written, Ok(Ok(())));
        }
    }
}

/// Takes one report; says whether it was the end.
fn take(exec: &Exec, line: &[u8]) -> bool {
    match serde_json::from_slice(line) {
        Ok(Report::Reach(reach)) => {
            let mut inner = exec.inner();
            if let Some(found) = inner.found.take() {
                inner.removed = reach.stored.saturating_sub(found);
            }
            drop(inner);
            exec.progress.send_modify(|progress| progress.reach = reach);
        }
        Ok(Report::Ended(end)) => {
            exec.finish(Ended { exit_code: end.exit_code, unwritten: end.unwritten });
            return true;
        }
        Ok(Report::Stdin { id, refusal }) => {
            if let Some(question) = exec.inner().questions.remove(&id) {
                let _ = question.send(refusal);
            }
        }
        Err(_) => log::line("a supervisor said something unknown"),
    }
    false
}
