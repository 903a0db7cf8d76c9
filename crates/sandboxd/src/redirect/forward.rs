//! The redirector: takes what the rules lead to it, and asks the egress proxy for the rest of the way.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as StdListener, UdpSocket as StdUdp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::ip_original_dst;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::name::{self, Said};
use crate::{fetch, log};

/// Connections at a time. The proxy has a bound of its own for every session.
const CONNECTIONS: usize = 512;
/// Questions of DNS at a time, their length, and the longest wait for an answer.
const QUESTIONS: usize = 64;
const QUESTION: usize = 4_096;
const ANSWER: Duration = Duration::from_secs(5);
/// How much of what a client says first is looked at, and for how long.
const FIRST: usize = 16 << 10;
const FIRST_WORDS: Duration = Duration::from_secs(3);
/// Connecting to the proxy, and its answer: it tries several addresses, 20 s in all, after their name.
const CONNECT: Duration = Duration::from_secs(5);
const VERDICT: Duration = Duration::from_secs(40);
/// Longest head of that answer, and most of a refusal that is passed on.
const HEAD: usize = 8 << 10;
const REFUSAL: u64 = 64 << 10;
/// How long the proxy's address counts.
const KNOWN: Duration = Duration::from_secs(30);
/// Pause when there is no room for another socket.
const EXHAUSTED: Duration = Duration::from_millis(20);

const HTTP: u16 = 80;
const HTTPS: u16 = 443;
const DNS: u16 = 53;

/// The fatal alert "access denied" of TLS: clients say so, instead of that the connection broke.
const ACCESS_DENIED: &[u8] = &[21, 3, 1, 0, 2, 2, 49];

/// The egress proxy.
#[derive(Debug)]
pub struct Proxy {
    host: String,
    port: u16,
    known: Mutex<Option<(IpAddr, Instant)>>,
}

impl Proxy {
    /// `host:port`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port, known: Mutex::default() })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<(IpAddr, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn address(&self) -> io::Result<IpAddr> {
        if let Some((address, _)) = self.known().filter(|(_, since)| since.elapsed() < KNOWN) {
            return Ok(address);
        }
        let found = fetch::resolve(&self.host).await?.into_iter().next();
        let address = found.ok_or_else(|| io::Error::other("the proxy's name is not known"))?;
        *self.known() = Some((address, Instant::now()));
        Ok(address)
    }

    async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let to = SocketAddr::new(self.address().await?, port);
        let stream = match timeout(CONNECT, TcpStream::connect(to)).await {
            Ok(Ok(stream)) => stream,
            failed => {
                // A proxy that was started anew may have another address.
                *self.known() = None;
                return Err(
                    failed.map_or_else(|_| io::ErrorKind::TimedOut.into(), |_| io::ErrorKind::ConnectionRefused.into())
                );
            }
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Serves both doors until one breaks.
///
/// # Errors
/// What broke.
pub async fn serve(listener: StdListener, questions: StdUdp, proxy: Proxy) -> io::Result<()> {
    // Two sockets a connection are more than the session's programs usually get.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
    listener.set_nonblocking(true)?;
    questions.set_nonblocking(true)?;
    let (listener, questions) = (TcpListener::from_std(listener)?, Arc::new(UdpSocket::from_std(questions)?));
    let proxy = Arc::new(proxy);
    tokio::try_join!(take_connections(listener, Arc::clone(&proxy)), take_questions(questions, proxy)).map(|_| ())
}

async fn take_connections(listener: TcpListener, proxy: Arc<Proxy>) -> io::Result<()> {
    let own = listener.local_addr()?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                sleep(EXHAUSTED).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        // Whoever came to the door itself wanted nothing else.
        let Some(to) = ip_original_dst(&stream).ok().filter(|to| SocketAddr::V4(*to) != own) else { continue };
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move {
            // Errors are ends of connections.
            let _ = lead(stream, SocketAddr::V4(to), &proxy).await;
            drop(place);
        });
    }
}

async fn lead(mut client: TcpStream, to: SocketAddr, proxy: &Proxy) -> io::Result<()> {
    client.set_nodelay(true)?;
    if to.port() == DNS {
        let mut service = proxy.connect(DNS).await?;
        return copy_bidirectional(&mut client, &mut service).await.map(|_| ());
    }
    let (host, first) = match to.port() {
        HTTPS => first_words(&mut client, name::tls).await?,
        HTTP => first_words(&mut client, name::http).await?,
        _ => (None, Vec::new()),
    };
    let host = host.unwrap_or_else(|| to.ip().to_string());
    let mut upstream = match proxy.connect(proxy.port).await {
        Ok(upstream) => upstream,
        Err(error) => {
            log::line(&format!("{host}:{} is out of reach, the proxy does not answer: {error}", to.port()));
            return refuse(client, to.port(), &first, unanswered()).await;
        }
    };
    let target = format!("{host}:{}", to.port());
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nTale-Redirected: 1\r\n\r\n");
    upstream.write_all(request.as_bytes()).await?;
    let answer =
        timeout(VERDICT, read_head(&mut upstream)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let (answer, end) = match answer {
        Ok(answer) => answer,
        Err(_) => return refuse(client, to.port(), &first, unanswered()).await,
    };
    if answer.starts_with(b"HTTP/1.1 200 ") {
        upstream.write_all(&first).await?;
        client.write_all(&answer[end..]).await?;
        drop((first, answer));
        return copy_bidirectional(&mut client, &mut upstream).await.map(|_| ());
    }
    log::line(&format!("{target} is refused by the proxy"));
    let refusal = io::Cursor::new(answer).chain(upstream).take(REFUSAL);
    refuse(client, to.port(), &first, refusal).await
}

fn unanswered() -> &'static [u8] {
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain; charset=utf-8\r\nX-Tale-Egress: connect_failed\r\n\
      Content-Length: 44\r\nConnection: close\r\n\r\nThe way out of the sandbox does not answer.\n"
}

/// Says no in the client's own language, if it has begun to speak one.
async fn refuse(
    mut client: TcpStream,
    port: u16,
    first: &[u8],
    mut refusal: impl tokio::io::AsyncRead + Unpin,
) -> io::Result<()> {
    match (port, first.first()) {
        (HTTP, Some(byte)) if byte.is_ascii_alphabetic() => {
            copy(&mut refusal, &mut client).await?;
        }
        (HTTPS, Some(22)) => client.write_all(ACCESS_DENIED).await?,
        _ => {}
    }
    client.shutdown().await
}

/// What a client says first, and the name in it. A client that waits for the other side says nothing.
async fn first_words(client: &mut TcpStream, read: fn(&[u8]) -> Said) -> io::Result<(Option<String>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let name = timeout(FIRST_WORDS, async {
        while bytes.len() < FIRST {
            if (&mut *client).take((FIRST - bytes.len()) as u64).read_buf(&mut bytes).await? == 0 {
                break;
            }
            match read(&bytes) {
                Said::More => {}
                Said::Nothing => break,
                Said::Name(name) => return Ok(Some(name)),
            }
        }
        io::Result::Ok(None)
    });
    let name = name.await.unwrap_or(Ok(None))?;
    Ok((name, bytes))
}

/// The head of an answer with what came behind it, and where it ends.
async fn read_head(upstream: &mut TcpStream) -> io::Result<(Vec<u8>, usize)> {
    let mut bytes = Vec::with_capacity(512);
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok((bytes, at + 4));
        }
        if bytes.len() >= HEAD || upstream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

async fn take_questions(door: Arc<UdpSocket>, proxy: Arc<Proxy>) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(QUESTIONS));
    let mut bytes = vec![0; QUESTION];
    loop {
        // An error is about an answer that nobody took.
        let Ok((length, client)) = door.recv_from(&mut bytes).await else { continue };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (question, door, proxy) = (bytes[..length].to_vec(), Arc::clone(&door), Arc::clone(&proxy));
        tokio::spawn(async move {
            let answer = match timeout(ANSWER, ask(&question, &proxy)).await {
                Ok(Ok(answer)) => Some(answer),
                // Who gets no answer waits, and asks again.
                _ => failed(question),
            };
            if let Some(answer) = answer {
                let _ = door.send_to(&answer, client).await;
            }
            drop(place);
        });
    }
}

async fn ask(question: &[u8], proxy: &Proxy) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(SocketAddr::new(proxy.address().await?, DNS)).await?;
    socket.send(question).await?;
    let mut answer = vec![0; QUESTION];
    let length = socket.recv(&mut answer).await?;
    answer.truncate(length);
    Ok(answer)
}

/// The answer that there is none at present (`SERVFAIL`); nothing to what is no question.
fn failed(mut question: Vec<u8>) -> Option<Vec<u8>> {
    const ANSWER: u8 = 0x80;
    const FAILED: u8 = 2;
    let [_, _, flags, code, ..] = question.get_mut(..12)? else { return None };
    if *flags & ANSWER != 0 {
        return None;
    }
    *flags |= ANSWER;
    *code = FAILED;
    Some(question)
}
