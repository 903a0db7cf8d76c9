//! Reaching a Postgres server whose address a user named.
//!
//! The driver resolves a host by itself and has one setting for both the address it connects to and the
//! name that a certificate must carry, so an address that was judged could not be handed to it without
//! losing that name. It takes a Unix socket beside the name, though. A [`Relay`] is such a socket: each
//! connection to it resolves the host anew, judges every address, connects to a judged one and passes
//! bytes on, whatever they are. Encryption goes from the driver to the server, through it.
//!
//! The socket has no file (it lives in the abstract namespace) and serves this process only.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use tale_core::crypto::random_hex;
use tale_core::net::{HostPolicy, HostRefused, ResolveError, resolve_judged};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// How long a server may take to accept a connection, its name included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent server is asked for a sign of life after this time, and then as often.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Signs of life that may stay away before the connection is over.
const KEEPALIVE_TRIES: u32 = 3;
/// How long sent bytes may stay without confirmation, in milliseconds.
const UNCONFIRMED_MS: u32 = 45_000;

/// What a server may send on one connection while it is being looked at, in bytes; a look makes five.
/// An honest one sends a few thousand, its certificates included.
const LOOK_BYTES: u64 = 192 * 1024;

/// How long the driver may take to close a connection that the server has closed.
const GOODBYE: Duration = Duration::from_secs(30);

/// Why a connection did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelayFailure {
    /// The host may not be called.
    #[error(transparent)]
    Refused(HostRefused),
    /// The name has no address.
    #[error("{0}")]
    Unresolved(String),
    /// None of the addresses accepts connections.
    #[error("{0}")]
    Unreachable(String),
    /// The server sent more than it may while it is being looked at.
    #[error("it sent more than {} KiB before it had shown to be a database", LOOK_BYTES / 1024)]
    TooMuch,
}

/// Where to connect to.
#[derive(Debug, Clone)]
struct Target {
    host: String,
    port: u16,
    policy: HostPolicy,
}

/// A way to one server. Its connections end when it is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    folder: String,
    failure: Failure,
    trusted: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// Why the latest connection did not come about, or ended early.
type Failure = Arc<Mutex<Option<RelayFailure>>>;

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    /// Opens the socket; nothing is sent to the server yet. Until the server is [trusted](Relay::trust), it
    /// may send little.
    pub(crate) fn start(host: &str, port: u16, policy: HostPolicy) -> std::io::Result<Self> {
        let folder = format!("\0tale-{}", random_hex(16));
        // the name that the driver makes of a folder and a port
        let listener = UnixListener::bind(format!("{folder}/.s.PGSQL.{port}"))?;
        let failure = Arc::new(Mutex::new(None));
        let target = Target { host: host.to_owned(), port, policy };
        let trusted = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(serve(listener, target, Arc::clone(&failure), Arc::clone(&trusted)));
        Ok(Self { folder, failure, trusted, task })
    }

    /// Lets connections from now on carry any amount: the server was looked at and is a database.
    pub(crate) fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }

    /// What the driver takes for the folder of a server's socket.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Why the latest connection did not come about or ended early, if so.
    pub(crate) fn failure(&self) -> Option<RelayFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: UnixListener, target: Target, failure: Failure, trusted: Arc<AtomicBool>) {
    let mut connections = JoinSet::new();
    let own = i32::try_from(std::process::id()).ok();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((client, _)) if client.peer_cred().is_ok_and(|peer| peer.pid() == own) => {
                    let (target, failure) = (target.clone(), Arc::clone(&failure));
                    let most = if trusted.load(Ordering::Relaxed) { u64::MAX } else { LOOK_BYTES };
                    connections.spawn(async move {
                        let reached = reach(&target).await;
                        note(&failure, reached.as_ref().err().cloned());
                        if let Ok(server) = reached {
                            pass_on(client, server, most, || note(&failure, Some(RelayFailure::TooMuch))).await;
                        }
                    });
                }
                Ok(_) => {}
                // no file descriptors are left; the driver asks again
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

fn note(failure: &Failure, outcome: Option<RelayFailure>) {
    *failure.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
}

async fn reach(target: &Target) -> Result<TcpStream, RelayFailure> {
    let connecting = async {
        let addresses =
            resolve_judged(&target.host, target.port, target.policy).await.map_err(|error| match error {
                ResolveError::Refused(refused) => RelayFailure::Refused(refused),
                ResolveError::Unknown(error) => RelayFailure::Unresolved(error.to_string()),
            })?;
        connect(&addresses).await.map_err(|error| RelayFailure::Unreachable(error.to_string()))
    };
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| {
        Err(RelayFailure::Unreachable(format!("no answer within {} seconds", CONNECT_TIMEOUT.as_secs())))
    })
}

async fn connect(addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses).await?;
    stream.set_nodelay(true)?;
    // a server that vanished must not hold a question for as long as the system is patient
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(&stream, KEEPALIVE)?;
    sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_TRIES)?;
    sockopt::set_tcp_user_timeout(&stream, UNCONFIRMED_MS)?;
    Ok(stream)
}

/// Until one side ends: what it sent before has been passed on then. A driver that says goodbye to a server
/// that has left already is heard, because it takes a broken pipe for a failure. A server that sends `most`
/// bytes ends the connection: `too_much` is called before the driver sees it end.
async fn pass_on(mut client: UnixStream, mut server: TcpStream, most: u64, too_much: impl FnOnce()) {
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut from_server = from_server.take(most);
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => return,
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
    if from_server.limit() == 0 {
        too_much();
    }
    let _ = to_client.shutdown().await;
    let _ = tokio::time::timeout(GOODBYE, tokio::io::copy(&mut from_client, &mut tokio::io::sink())).await;
}
