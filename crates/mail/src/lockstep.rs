//! A connection that never reads ahead while it speaks in the clear.
//!
//! A reader that takes whatever has arrived would keep what somebody on the way wrote behind the server's consent to
//! STARTTLS, and take it for an answer that came encrypted. This one hands on a byte at a time until the first record
//! of TLS is sent, so that anything besides the consent meets the handshake, which refuses it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How a TLS handshake begins; no command does.
const HANDSHAKE: u8 = 0x16;

/// A TCP connection before and during TLS.
#[derive(Debug)]
pub(crate) struct Lockstep {
    stream: TcpStream,
    encrypted: bool,
}

impl Lockstep {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, encrypted: false }
    }
}

impl AsyncTokioStream for Lockstep {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for Lockstep {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.encrypted || buf.remaining() == 0 {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut one))?;
        buf.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lockstep {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.encrypted |= bytes.first() == Some(&HANDSHAKE);
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
