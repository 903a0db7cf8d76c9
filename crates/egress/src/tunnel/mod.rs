//! Two connections that are one: every byte of each goes to the other.
//!
//! While nothing moves, a tunnel is two sockets and their registrations. Bytes pass through a buffer
//! that all tunnels of a thread share; what the far end does not take at once is kept by the tunnel
//! until it does, and nothing more is read. A stream that keeps the buffer full goes through a pipe
//! instead, where the kernel moves pages without copying them.

mod flow;
mod pipe;

pub(crate) use self::pipe::MAX_PIPES;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use self::flow::Flow;

/// How a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Both ends had said that no more comes.
    Closed,
    /// One end broke off.
    Broken,
    /// Nothing moved for too long.
    Idle,
}

impl End {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Broken => "broken",
            Self::Idle => "idle",
        }
    }
}

/// What went through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    /// Bytes of the client that the far end has.
    pub up: u64,
    /// Bytes of the far end that the client has.
    pub down: u64,
    pub end: End,
}

/// A tunnel; it ends as [`End`] says.
#[derive(Debug)]
pub(crate) struct Tunnel {
    client: TcpStream,
    upstream: TcpStream,
    up: Flow,
    down: Flow,
    idle: Duration,
    last_moved: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Tunnel {
    /// Connects two connections. `early` are bytes that came before.
    pub(crate) fn new(client: TcpStream, upstream: TcpStream, early: Early, idle: Duration) -> Self {
        Self {
            client,
            upstream,
            up: Flow::new(early.from_client),
            down: Flow::new(early.from_upstream),
            idle,
            last_moved: Instant::now(),
            timer: Box::pin(sleep(idle)),
        }
    }

    fn totals(&self, end: End) -> Totals {
        Totals { up: self.up.passed(), down: self.down.passed(), end }
    }
}

/// Bytes that were read before the tunnel began and have to go first.
#[derive(Debug, Default)]
pub(crate) struct Early {
    pub from_client: Vec<u8>,
    pub from_upstream: Vec<u8>,
}

impl Future for Tunnel {
    type Output = Totals;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Totals> {
        let this = &mut *self;
        let before = this.up.passed() + this.down.passed();
        let up = this.up.poll(&mut this.client, &mut this.upstream, cx);
        let down = this.down.poll(&mut this.upstream, &mut this.client, cx);
        let moved = this.up.passed() + this.down.passed() - before;
        match (up, down) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(this.totals(End::Closed)),
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => return Poll::Ready(this.totals(End::Broken)),
            _ => {}
        }
        if moved > 0 {
            this.last_moved = Instant::now();
        }
        // The timer is set anew only when it fires: a tunnel that moves costs nothing here.
        while this.timer.as_mut().poll(cx).is_ready() {
            let due = this.last_moved + this.idle;
            if due <= Instant::now() {
                return Poll::Ready(this.totals(End::Idle));
            }
            this.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}

/// Whether an error only says that there is nothing to do at present.
fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
