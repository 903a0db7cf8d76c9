//! One request and its answer, over a connection that was opened for it and is not used again.
//!
//! Both heads are written anew from what was understood, and both bodies are framed anew: nothing that two
//! readers could take for different things goes on. With a connection for each request, an answer can
//! never be taken for that of another one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::body::Pieces;
use super::head::{Answer, Length, MAX_HEAD, Malformed, Request, Scan, Version, scan};
use super::refusal::Refusal;
use super::target::Destination;
use crate::tunnel::Early;

/// What is read of a body at a time.
const STEP: usize = 32 << 10;

/// Answers before the real one (100 Continue) that are passed on.
const MAX_INTERIM: usize = 16;

/// Why there is no head.
#[derive(Debug)]
pub(crate) enum NoHead {
    /// The stream ended before its first byte.
    Nothing,
    /// It ended or broke within.
    Broken,
    TooLarge,
    Malformed(Malformed),
}

/// Reads until `buffer` begins with a complete head; where that ends.
pub(crate) async fn read_head(from: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<usize, NoHead> {
    let mut looked = 0;
    loop {
        match scan(buffer, looked).map_err(NoHead::Malformed)? {
            Scan::Complete(end) if end > MAX_HEAD => return Err(NoHead::TooLarge),
            Scan::Complete(end) => return Ok(end),
            Scan::Partial(_) if buffer.len() >= MAX_HEAD => return Err(NoHead::TooLarge),
            Scan::Partial(next) => looked = next,
        }
        buffer.reserve(2 << 10);
        match from.read_buf(buffer).await {
            Ok(0) if buffer.is_empty() => return Err(NoHead::Nothing),
            Ok(0) | Err(_) => return Err(NoHead::Broken),
            Ok(_) => {}
        }
    }
}

/// How an exchange ended.
#[derive(Debug)]
pub(crate) enum After {
    /// The client may ask again over the same connection.
    Next,
    /// Its connection ends.
    Close,
    /// Both sides speak something else from here on.
    Tunnel(Early),
    /// Nothing was answered yet; this is.
    Refuse(Refusal),
}

/// What went through, and what comes next.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub up: u64,
    pub down: u64,
    pub after: After,
}

/// A request that is about to be passed on.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub request: &'a Request<'a>,
    pub to: &'a Destination,
    pub path: &'a str,
    pub length: Length,
}

impl Outgoing<'_> {
    /// Whether the client wants to speak WebSocket, the one protocol that may be upgraded to.
    fn upgrades(&self) -> bool {
        let fields = &self.request.fields;
        self.request.version == Version::Http11
            && fields.has_word("connection", "upgrade")
            && fields.all("upgrade").all(|value| value.eq_ignore_ascii_case(b"websocket"))
            && fields.all("upgrade").count() == 1
            && matches!(self.length, Length::Untold | Length::Exact(0))
    }

    fn keeps_alive(&self) -> bool {
        let fields = &self.request.fields;
        self.request.version == Version::Http11
            && !fields.has_word("connection", "close")
            && !fields.has_word("proxy-connection", "close")
    }

    fn head(&self) -> Vec<u8> {
        let version = match self.request.version {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        };
        let (method, path, host) = (self.request.method, self.path, self.to.host_field());
        let mut head = format!("{method} {path} {version}\r\nHost: {host}\r\n").into_bytes();
        put_fields(self.request.fields.end_to_end(), &mut head);
        put_length(self.length, &mut head);
        let last: &[u8] = if self.upgrades() {
            b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        } else {
            b"Connection: close\r\n\r\n"
        };
        head.extend_from_slice(last);
        head
    }
}

fn put_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>, into: &mut Vec<u8>) {
    for (name, value) in fields {
        into.extend_from_slice(name.as_bytes());
        into.extend_from_slice(b": ");
        into.extend_from_slice(value);
        into.extend_from_slice(b"\r\n");
    }
}

fn put_length(length: Length, into: &mut Vec<u8>) {
    match length {
        Length::Exact(bytes) => into.extend_from_slice(format!("Content-Length: {bytes}\r\n").as_bytes()),
        Length::Chunked => into.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Length::Untold => {}
    }
}

/// When something last moved, and how much has.
#[derive(Debug)]
struct Moving {
    since: Instant,
    /// Milliseconds after `since`.
    last: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

impl Moving {
    fn new() -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0), up: AtomicU64::new(0), down: AtomicU64::new(0) }
    }

    /// Ends when nothing has moved for `idle`.
    async fn stalled(&self, idle: Duration) {
        loop {
            let due = self.since + Duration::from_millis(self.last.load(Relaxed)) + idle;
            if Instant::now() >= due {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn touch(&self) {
        self.last.store(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    fn count(&self, which: &AtomicU64, bytes: usize) {
        which.fetch_add(bytes as u64, Relaxed);
        self.touch();
    }
}

/// Why a body does not get through.
#[derive(Debug)]
enum Stopped {
    /// Where it comes from broke, or sent what cannot be passed on.
    Source(Option<Malformed>),
    /// Where it goes to broke.
    Sink,
}

/// Passes `outgoing` to `upstream` and its answer to `client`. `buffer` holds what the client has sent
/// behind the head, and what it has sent behind the body afterwards.
pub(crate) async fn exchange(
    client: &mut TcpStream,
    buffer: &mut Vec<u8>,
    upstream: &mut TcpStream,
    outgoing: &Outgoing<'_>,
    idle: Duration,
) -> Exchange {
    let moving = Moving::new();
    let (mut client_read, mut client_write) = client.split();
    let (mut upstream_read, mut upstream_write) = upstream.split();
    let has_body = !matches!(outgoing.length, Length::Untold | Length::Exact(0));
    let (received, whole) = {
        let send = async {
            let head = outgoing.head();
            upstream_write.write_all(&head).await.map_err(|_| Stopped::Sink)?;
            moving.count(&moving.up, head.len());
            if has_body {
                let to = outgoing.length == Length::Chunked;
                pass_body(&mut client_read, buffer, &mut upstream_write, outgoing.length, to, &moving, &moving.up)
                    .await?;
            }
            Ok(())
        };
        let receive = pass_answer(&mut upstream_read, &mut client_write, outgoing, &moving);
        tokio::pin!(send, receive);
        let mut sent = None;
        let received = loop {
            tokio::select! {
                biased;
                received = &mut receive => break Some(received),
                done = &mut send, if sent.is_none() => match done {
                    // The far end may have answered before it stopped to listen.
                    Ok(()) | Err(Stopped::Sink) => sent = Some(done.is_ok()),
                    Err(Stopped::Source(why)) => break why.map(|why| Received::refused(Refusal::BadRequest(why), &moving)),
                },
                () = moving.stalled(idle) => break Some(Received::refused(Refusal::ConnectTimeout, &moving)),
            }
        };
        (received, sent.unwrap_or(!has_body))
    };
    let after = match received {
        None | Some(Received::Cut) => After::Close,
        Some(Received::Refused(refusal)) => After::Refuse(refusal),
        Some(Received::Answered { delimited: true }) if whole && outgoing.keeps_alive() => After::Next,
        Some(Received::Answered { .. }) => After::Close,
        Some(Received::Upgraded(from_upstream)) => {
            After::Tunnel(Early { from_client: std::mem::take(buffer), from_upstream })
        }
    };
    Exchange { up: moving.up.load(Relaxed), down: moving.down.load(Relaxed), after }
}

/// What came of the answer.
#[derive(Debug)]
enum Received {
    Answered {
        /// Whether its end can be told without the end of the connection.
        delimited: bool,
    },
    Upgraded(Vec<u8>),
    /// Nothing reached the client.
    Refused(Refusal),
    /// The client has the beginning.
    Cut,
}

impl Received {
    /// A refusal, unless the client has a part of an answer already.
    fn refused(refusal: Refusal, moving: &Moving) -> Self {
        if moving.down.load(Relaxed) == 0 { Self::Refused(refusal) } else { Self::Cut }
    }
}

async fn pass_answer(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    outgoing: &Outgoing<'_>,
    moving: &Moving,
) -> Received {
    let mut buffer = Vec::new();
    let bad = |why| Received::refused(Refusal::BadAnswer(why), moving);
    for _ in 0..MAX_INTERIM {
        let end = match read_head(from, &mut buffer).await {
            Ok(end) => end,
            Err(NoHead::Malformed(why)) => return bad(why),
            Err(NoHead::TooLarge) => return bad(Malformed::TooManyFields),
            Err(NoHead::Nothing | NoHead::Broken) => return Received::refused(Refusal::ConnectFailed, moving),
        };
        let bytes: Vec<u8> = buffer.drain(..end).collect();
        let answer = match Answer::parse(&bytes) {
            Ok(answer) => answer,
            Err(why) => return bad(why),
        };
        let written = match answer.code {
            101 if outgoing.upgrades() && answer.fields.has_word("upgrade", "websocket") => {
                let head = interim(&answer, b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
                return match put(to, &head, moving).await {
                    Ok(()) => Received::Upgraded(buffer),
                    Err(_) => Received::Cut,
                };
            }
            101 => return bad(Malformed::StatusLine),
            100..=199 if outgoing.request.version == Version::Http10 => Ok(()),
            100..=199 => put(to, &interim(&answer, b""), moving).await,
            _ => {
                let length = match answer.fields.length() {
                    Ok(length) => length,
                    Err(why) => return bad(why),
                };
                return pass_final(from, to, &answer, length, buffer, outgoing, moving).await;
            }
        };
        if written.is_err() {
            return Received::Cut;
        }
    }
    bad(Malformed::StatusLine)
}

async fn pass_final(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    answer: &Answer<'_>,
    length: Length,
    mut buffer: Vec<u8>,
    outgoing: &Outgoing<'_>,
    moving: &Moving,
) -> Received {
    let bodiless = outgoing.request.method == "HEAD" || matches!(answer.code, 204 | 304);
    // A client of HTTP/1.0 gets a body without pieces, which ends with the connection.
    let pieces = length == Length::Chunked && outgoing.request.version == Version::Http11;
    let delimited = bodiless || pieces || matches!(length, Length::Exact(_));
    let mut head = first_line(answer);
    put_fields(answer.fields.end_to_end(), &mut head);
    match length {
        Length::Exact(_) if answer.code == 204 => {}
        Length::Chunked if bodiless || !pieces => {}
        length => put_length(length, &mut head),
    }
    if !(delimited && outgoing.keeps_alive()) {
        head.extend_from_slice(b"Connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    if put(to, &head, moving).await.is_err() {
        return Received::Cut;
    }
    if !bodiless && pass_body(from, &mut buffer, to, length, pieces, moving, &moving.down).await.is_err() {
        return Received::Cut;
    }
    Received::Answered { delimited }
}

fn first_line(answer: &Answer<'_>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} ", answer.code).into_bytes();
    head.extend_from_slice(answer.reason);
    head.extend_from_slice(b"\r\n");
    head
}

fn interim(answer: &Answer<'_>, last: &[u8]) -> Vec<u8> {
    let mut head = first_line(answer);
    put_fields(answer.fields.end_to_end(), &mut head);
    head.extend_from_slice(last);
    head.extend_from_slice(b"\r\n");
    head
}

async fn put(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8], moving: &Moving) -> io::Result<()> {
    to.write_all(bytes).await?;
    moving.count(&moving.down, bytes.len());
    Ok(())
}

/// Passes a body on, in pieces of our own when `pieces`. `buffer` holds what was read already, and what was
/// read behind the body afterwards.
async fn pass_body(
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    to: &mut (impl AsyncWrite + Unpin),
    length: Length,
    pieces: bool,
    moving: &Moving,
    count: &AtomicU64,
) -> Result<(), Stopped> {
    let mut reader = Pieces::new();
    let mut left = match length {
        Length::Exact(bytes) => bytes,
        Length::Chunked | Length::Untold => u64::MAX,
    };
    let mut out = Vec::new();
    loop {
        let mut at = 0;
        while at < buffer.len() && left > 0 && !reader.is_done() {
            let rest = &buffer[at..];
            let (used, data) = if length == Length::Chunked {
                let fed = reader.feed(rest).map_err(|why| Stopped::Source(Some(why)))?;
                (fed.used, fed.data)
            } else {
                let used = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                if length != Length::Untold {
                    left -= used as u64;
                }
                (used, &rest[..used])
            };
            let bytes = if pieces && !data.is_empty() {
                out.clear();
                out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                out.extend_from_slice(data);
                out.extend_from_slice(b"\r\n");
                &out[..]
            } else {
                data
            };
            to.write_all(bytes).await.map_err(|_| Stopped::Sink)?;
            moving.count(count, bytes.len());
            at += used;
        }
        buffer.drain(..at);
        if left == 0 || reader.is_done() {
            if pieces {
                to.write_all(b"0\r\n\r\n").await.map_err(|_| Stopped::Sink)?;
                moving.count(count, 5);
            }
            return Ok(());
        }
        buffer.reserve(STEP);
        match from.read_buf(buffer).await {
            Ok(0) if length == Length::Untold => return Ok(()),
            Ok(0) | Err(_) => return Err(Stopped::Source(None)),
            Ok(_) => moving.touch(),
        }
    }
}
