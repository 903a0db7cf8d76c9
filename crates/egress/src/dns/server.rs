//! The one DNS service of sandboxes.
//!
//! Names that the allowlist does not admit do not exist here and are asked of nobody, so that names
//! cannot carry anything out. A name without a dot is one of the deployment.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::message::{
    A, BadQuery, MAX_UDP, Query, Question, Reply, code, read_answer, read_query, refuse, write_query,
};
use super::resolver::Unresolved;
use crate::host::Host;
use crate::metrics;
use crate::server::Shared;

/// A name that is answered without asking anybody, for health checks.
pub(crate) const HEALTH_NAME: &str = "sandbox-egress-health.invalid";

/// Questions of one client in a second, and at once.
const RATE: f64 = 200.0;
const BURST: f64 = 1_000.0;

/// Clients that are told apart.
const MAX_CLIENTS: usize = 4_096;

/// Questions that wait for an answer at the same time.
const WAITING: usize = 1_024;

/// Connections at the same time, and how long one may say nothing.
const CONNECTIONS: usize = 256;
const SILENCE: Duration = Duration::from_secs(10);

/// Longest wait for the answer about our own health.
const HEALTH_PATIENCE: Duration = Duration::from_secs(1);

/// Answers over UDP until the socket breaks.
pub(crate) async fn serve_udp(shared: Arc<Shared>, socket: UdpSocket) -> io::Error {
    let socket = Arc::new(socket);
    let waiting = Arc::new(Semaphore::new(WAITING));
    let mut rates = Rates::default();
    let mut bytes = [0; MAX_UDP];
    loop {
        let (length, client) = match socket.recv_from(&mut bytes).await {
            Ok(received) => received,
            // An earlier answer could not be delivered.
            Err(error) if is_passing(&error) => continue,
            Err(error) => return error,
        };
        if !shared.networks.serves(client.ip()) || !rates.admit(client.ip(), Instant::now()) {
            continue;
        }
        match quick(&shared, &bytes[..length]) {
            Quick::Silence => {}
            Quick::Answer(answer) => {
                let _ = socket.try_send_to(&answer, client);
            }
            Quick::Ask(query) => {
                let Ok(permit) = Arc::clone(&waiting).try_acquire_owned() else { continue };
                let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
                tokio::spawn(async move {
                    let answer = ask(&shared, &query, query.room).await;
                    let _ = socket.send_to(&answer, client).await;
                    drop(permit);
                });
            }
        }
    }
}

/// Answers over TCP until the socket breaks.
pub(crate) async fn serve_tcp(shared: Arc<Shared>, listener: TcpListener) -> io::Error {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            Err(error) => return error,
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
        if shared.networks.serves(client.ip()) {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let _ = converse(&shared, stream).await;
                drop(permit);
            });
        }
    }
}

/// Questions and answers of one connection.
async fn converse(shared: &Arc<Shared>, mut stream: TcpStream) -> io::Result<()> {
    // A connection has as many questions as a second; then it has to be opened anew.
    for _ in 0..200 {
        let mut bytes = [0; MAX_UDP];
        let query = timeout(SILENCE, async {
            let length = usize::from(stream.read_u16().await?);
            let room = bytes.get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
            stream.read_exact(room).await.map(|_| length)
        });
        let length = query.await??;
        let answer = match quick(shared, &bytes[..length]) {
            Quick::Silence => return Ok(()),
            Quick::Answer(answer) => answer,
            Quick::Ask(query) => ask(shared, &query, usize::from(u16::MAX)).await,
        };
        let mut framed = u16::try_from(answer.len()).unwrap_or(0).to_be_bytes().to_vec();
        framed.extend_from_slice(&answer);
        timeout(SILENCE, stream.write_all(&framed)).await??;
    }
    Ok(())
}

/// What can be done without asking anybody.
enum Quick {
    Silence,
    Answer(Vec<u8>),
    Ask(Query),
}

fn quick(shared: &Shared, bytes: &[u8]) -> Quick {
    let query = match read_query(bytes) {
        Ok(query) => query,
        Err(BadQuery::Ignore) => return Quick::Silence,
        Err(BadQuery::Code { id, code }) => return Quick::Answer(refuse(id, code)),
    };
    let say = |reply: &Reply| Quick::Answer(reply.write(&query, 0, MAX_UDP));
    let question = &query.question;
    if &*question.name == HEALTH_NAME {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let shown = if question.kind == A { &[here][..] } else { &[] };
        return say(&Reply::of_addresses(Vec::new(), shown, 0));
    }
    if question.is_hint() {
        return say(&Reply::empty(code::OK));
    }
    if !question.is_ordinary() {
        return say(&Reply::empty(code::REFUSED));
    }
    if !admits(shared, question) {
        metrics::DNS_REFUSED.increment();
        return say(&Reply::empty(code::NO_NAME));
    }
    match shared.resolver.kept(question) {
        Some(kept) if query.room == MAX_UDP => {
            Quick::Answer(kept.reply.write(&query, kept.age(Instant::now()), query.room))
        }
        _ => Quick::Ask(query),
    }
}

/// Whether the name may be asked for.
fn admits(shared: &Shared, question: &Question) -> bool {
    if !question.name.contains('.') {
        // One of the deployment, or none: such a name says too little to carry anything out.
        return !shared.policy.is_allowlist() || question.wants_addresses();
    }
    match Host::parse(&question.name) {
        Ok(host @ Host::Name(_)) => shared.policy.admits(&host),
        _ => false,
    }
}

async fn ask(shared: &Shared, query: &Query, room: usize) -> Vec<u8> {
    match shared.resolver.ask(&query.question).await {
        Ok(kept) => kept.reply.write(query, kept.age(Instant::now()), room),
        Err(Unresolved::Failed | Unresolved::Busy) => Reply::empty(code::FAILED).write(query, 0, room),
    }
}

/// Asks the service at `address` for [`HEALTH_NAME`].
pub(crate) async fn answers(address: SocketAddr) -> bool {
    let asked = Question { name: HEALTH_NAME.into(), kind: A };
    let ask = async {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect((Ipv4Addr::LOCALHOST, address.port())).await?;
        socket.send(&write_query(1, &asked)).await?;
        let mut bytes = [0; MAX_UDP];
        let length = socket.recv(&mut bytes).await?;
        io::Result::Ok(read_answer(&bytes[..length], 1, &asked, |_| true).is_some())
    };
    matches!(timeout(HEALTH_PATIENCE, ask).await, Ok(Ok(true)))
}

/// Whether a socket goes on after this error.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkUnreachable,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable | Interrupted | NetworkUnreachable
    ) || is_exhausted(error)
}

/// Whether the process has no room for another socket at present.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].iter().any(|errno| number == Some(errno.raw_os_error()))
}

/// How much each client asks.
#[derive(Debug, Default)]
struct Rates(HashMap<IpAddr, Bucket>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn fill(&mut self, now: Instant) {
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * RATE).min(BURST);
        self.at = now;
    }
}

impl Rates {
    fn admit(&mut self, client: IpAddr, now: Instant) -> bool {
        if self.0.len() >= MAX_CLIENTS && !self.0.contains_key(&client) {
            self.0.retain(|_, bucket| {
                bucket.fill(now);
                bucket.left < BURST
            });
            if self.0.len() >= MAX_CLIENTS {
                return false;
            }
        }
        let bucket = self.0.entry(client).or_insert(Bucket { left: BURST, at: now });
        bucket.fill(now);
        let admitted = bucket.left >= 1.0;
        if admitted {
            bucket.left -= 1.0;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_too_much_takes_nothing_from_others() {
        let (noisy, quiet) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut rates = Rates::default();
        let burst = (0..1_500).filter(|_| rates.admit(noisy, Instant::now())).count();
        assert_eq!(burst, 1_000);
        assert!(rates.admit(quiet, Instant::now()));
        tokio::time::advance(Duration::from_millis(500)).await;
        let after = (0..1_500).filter(|_| rates.admit(noisy, Instant::now())).count();
        assert_eq!(after, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_beyond_what_is_remembered_wait_until_others_are_quiet() {
        let mut rates = Rates::default();
        for n in 0..4_096_u32 {
            assert!(rates.admit(IpAddr::V4(Ipv4Addr::from_bits(n)), Instant::now()));
        }
        let other = IpAddr::from([10, 0, 0, 1]);
        assert!(!rates.admit(other, Instant::now()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(rates.admit(other, Instant::now()));
    }
}
