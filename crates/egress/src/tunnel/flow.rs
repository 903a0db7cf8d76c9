//! One direction of a tunnel.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::pipe::Pipe;
use super::would_block;

/// Size of the buffer that the tunnels of a thread share.
const SHARED: usize = 64 << 10;

/// What all tunnels together may keep before each of them reads less at a time.
const KEPT_BEFORE_CARE: usize = 32 << 20;

/// What a tunnel reads at a time then.
const CAREFUL: usize = 4 << 10;

/// Reads in a row that fill the buffer, before a pipe is worth its while.
const FULL_READS: u8 = 2;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SHARED].into_boxed_slice());
}

/// What all tunnels keep, in bytes.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// What was read and not yet written.
#[derive(Debug)]
enum Kept {
    Nothing,
    Bytes { bytes: Box<[u8]>, from: usize },
    Pipe(Pipe),
}

/// Bytes on their way from one connection to another.
#[derive(Debug)]
pub(super) struct Flow {
    kept: Kept,
    passed: u64,
    /// Reads in a row that filled the buffer.
    full_reads: u8,
    /// No more comes.
    ended: bool,
    /// The far end knows that no more comes.
    closed: bool,
}

impl Flow {
    /// `early` goes first.
    pub(super) fn new(early: Vec<u8>) -> Self {
        let mut flow = Self { kept: Kept::Nothing, passed: 0, full_reads: 0, ended: false, closed: false };
        if !early.is_empty() {
            flow.keep(early.into_boxed_slice());
        }
        flow
    }

    /// Bytes that were written.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Moves what can be moved. Ready when the end of the stream was passed on.
    pub(super) fn poll(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.poll_write_kept(to, cx))?;
            if self.ended {
                ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                self.closed = true;
                return Poll::Ready(Ok(()));
            }
            if self.full_reads >= FULL_READS {
                ready!(self.poll_through_pipe(from, cx))?;
            } else {
                ready!(self.poll_through_buffer(from, to, cx))?;
            }
        }
    }

    /// Fills a pipe, which is held only until it is empty again.
    fn poll_through_pipe(&mut self, from: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(from.poll_read_ready(cx))?;
        let Some(mut pipe) = Pipe::take() else {
            self.full_reads = 0;
            return Poll::Ready(Ok(()));
        };
        match pipe.poll_fill(from, cx) {
            Poll::Ready(Ok(filled)) => {
                self.ended = filled == 0;
                // A stream that has become thin goes back to the buffer.
                if filled < CAREFUL {
                    self.full_reads = 0;
                }
                self.kept = Kept::Pipe(pipe);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                pipe.give_back();
                Poll::Pending
            }
        }
    }

    fn poll_through_buffer(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        BUFFER.with_borrow_mut(|buffer| {
            let room = if KEPT.load(Ordering::Relaxed) > KEPT_BEFORE_CARE { CAREFUL } else { SHARED };
            let mut read = ReadBuf::new(&mut buffer[..room]);
            ready!(Pin::new(from).poll_read(cx, &mut read))?;
            let bytes = read.filled();
            self.ended = bytes.is_empty();
            self.full_reads = if bytes.len() == SHARED { self.full_reads.saturating_add(1) } else { 0 };
            let written = match Pin::new(to).poll_write(cx, bytes) {
                Poll::Ready(written) if !self.ended => written?,
                _ => 0,
            };
            self.passed += written as u64;
            if written < bytes.len() {
                self.keep(bytes[written..].into());
            }
            Poll::Ready(Ok(()))
        })
    }

    fn poll_write_kept(&mut self, to: &mut TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.kept {
                Kept::Nothing => return Poll::Ready(Ok(())),
                Kept::Bytes { bytes, from } => {
                    let written = ready!(Pin::new(&mut *to).poll_write(cx, &bytes[*from..]))?;
                    if written == 0 {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    *from += written;
                    self.passed += written as u64;
                    if *from == bytes.len() {
                        self.release();
                    }
                }
                Kept::Pipe(pipe) if pipe.is_empty() => self.release(),
                Kept::Pipe(pipe) => self.passed += ready!(pipe.poll_drain(to, cx))?,
            }
        }
    }

    fn keep(&mut self, bytes: Box<[u8]>) {
        KEPT.fetch_add(bytes.len(), Ordering::Relaxed);
        self.kept = Kept::Bytes { bytes, from: 0 };
    }

    fn release(&mut self) {
        match std::mem::replace(&mut self.kept, Kept::Nothing) {
            Kept::Nothing => {}
            Kept::Bytes { bytes, .. } => {
                KEPT.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
            Kept::Pipe(pipe) => pipe.give_back(),
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.release();
    }
}

/// Runs a system call on a socket when the socket is ready for it.
pub(super) fn poll_socket<T>(
    socket: &TcpStream,
    interest: Interest,
    cx: &mut Context<'_>,
    mut call: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        if interest.is_readable() {
            ready!(socket.poll_read_ready(cx))?;
        } else {
            ready!(socket.poll_write_ready(cx))?;
        }
        match socket.try_io(interest, &mut call) {
            Err(error) if would_block(&error) => {}
            done => return Poll::Ready(done),
        }
    }
}
