//! Pipes through which the kernel moves what it would otherwise copy twice.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::flow::poll_socket;

/// Most pipes of the process. Streams beyond go through the buffer.
pub(crate) const MAX_PIPES: usize = 64;

/// What one pipe holds.
const CAPACITY: usize = 256 << 10;

/// Pipes that nobody uses.
static FREE: Mutex<Vec<Ends>> = Mutex::new(Vec::new());

/// Pipes that there are.
static MADE: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe of one flow.
#[derive(Debug)]
pub(super) struct Pipe {
    ends: Option<Ends>,
    held: usize,
}

impl Pipe {
    /// A pipe, unless all of them are in use.
    pub(super) fn take() -> Option<Self> {
        let free = FREE.lock().ok()?.pop();
        let ends = match free {
            Some(ends) => ends,
            None => {
                if MADE.fetch_add(1, Ordering::Relaxed) >= MAX_PIPES {
                    MADE.fetch_sub(1, Ordering::Relaxed);
                    return None;
                }
                let Ok((read, write)) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else {
                    MADE.fetch_sub(1, Ordering::Relaxed);
                    return None;
                };
                // A user's share of large pipes may be used up; small ones do as well.
                let _ = fcntl_setpipe_size(&write, CAPACITY);
                Ends { read, write }
            }
        };
        Some(Self { ends: Some(ends), held: 0 })
    }

    /// Leaves the pipe to others. One that holds something is closed.
    pub(super) fn give_back(mut self) {
        if self.held == 0
            && let Some(ends) = self.ends.take()
            && let Ok(mut free) = FREE.lock()
        {
            free.push(ends);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Fills the empty pipe; 0 at the end of the stream.
    pub(super) fn poll_fill(&mut self, from: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else { return Poll::Ready(Ok(0)) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        self.held = ready!(poll_socket(from, Interest::READABLE, cx, || {
            Ok(splice(from, None, &ends.write, None, CAPACITY, flags)?)
        }))?;
        Poll::Ready(Ok(self.held))
    }

    /// Writes what the pipe holds, or a part of it; how much that was.
    pub(super) fn poll_drain(&mut self, to: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let Some(ends) = &self.ends else { return Poll::Ready(Ok(0)) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let held = self.held;
        let written = ready!(poll_socket(to, Interest::WRITABLE, cx, || {
            Ok(splice(&ends.read, None, to, None, held, flags)?)
        }))?;
        self.held -= written;
        Poll::Ready(Ok(written as u64))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.ends.take().is_some() {
            MADE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
