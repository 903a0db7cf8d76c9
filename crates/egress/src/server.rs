//! Starting and stopping.
//!
//! The start fails closed. Before anything listens the settings were judged, the packet filter and the
//! guard against forwarding are in place and were read back, the holes for the resolvers are exactly those
//! of the file, and IPv6 is filtered or off. Then the ports are bound and the rights that all of this took
//! are given up, while the process still has one thread.
//!
//! Connections are served by threads that share nothing but counters: each has an event loop and a
//! listener of its own on the same port, among which the kernel divides clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener as StdListener, UdpSocket as StdUdp};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::connection;
use crate::dns::resolv_conf::{self, BadResolvConf, Resolvers};
use crate::dns::resolver::Resolver;
use crate::dns::server::{is_exhausted, serve_tcp, serve_udp};
use crate::journal::Journal;
use crate::limits::{Full, Limits};
use crate::metrics;
use crate::networks::Networks;
use crate::policy::HostPolicy;
use crate::wall::{self, Wall, WallError, Watch};
use crate::{open_files, privileges};

/// How long open connections may go on after the stop.
const DRAIN: Duration = Duration::from_secs(8);

/// Pause between two looks at the attached networks and at repeated refusals.
const UPKEEP: Duration = Duration::from_secs(2);

/// Pause when there is no room for another socket.
const EXHAUSTED: Duration = Duration::from_millis(20);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4_096;

/// Most threads that serve connections.
const MAX_THREADS: usize = 8;

/// What the proxy is built from.
#[derive(Debug, Clone)]
pub struct Config {
    /// Hosts that may be reached.
    pub policy: HostPolicy,
    /// Connections of all clients at the same time.
    pub max_clients: usize,
    /// Connections of one client at the same time; `None` = any number.
    pub per_client: Option<u32>,
    /// Ports of tunnels.
    pub connect_ports: Vec<u16>,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// Where the proxy listens.
    pub listen: SocketAddrV4,
    /// Where the DNS service listens.
    pub dns: SocketAddrV4,
    /// Whether there is no packet filter, as during development.
    pub skip_wall: bool,
    /// The file that names the resolvers.
    pub resolv_conf: PathBuf,
}

/// Why the proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The resolvers are not known.
    #[error("{path}: {why}. Correct the file, or the DNS settings of the container")]
    ResolvConf {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: BadResolvConf,
    },
    /// The kernel does not tell about the network.
    #[error("the networks of this process cannot be read from /proc: {0}")]
    Networks(io::Error),
    /// The packet filter is not in place.
    #[error(transparent)]
    Wall(#[from] WallError),
    /// A port cannot be used.
    #[error("{address} ({what}) cannot be listened on: {why}")]
    Bind {
        /// Where.
        address: SocketAddrV4,
        /// For what.
        what: &'static str,
        /// Why not.
        why: io::Error,
    },
    /// Rights could not be given up.
    #[error("the process cannot give up its rights: {0}")]
    Privileges(io::Error),
}

/// Why the proxy stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The DNS service ended, and the proxy does not go on without it.
    #[error("the DNS service stopped: {0}")]
    Dns(io::Error),
    /// A thread that serves connections ended.
    #[error("a thread that serves connections stopped: {0}")]
    Proxy(String),
    /// Something took the rules of the packet filter away, and the proxy does not go on without them.
    #[error(
        "the packet filter is gone: something removed or changed the rules of this network. Find out what, and start the way \
         out again, which puts them back"
    )]
    Wall,
    /// The event loop could not be built.
    #[error("the event loop cannot be built: {0}")]
    Runtime(io::Error),
}

/// What everything that serves shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: Config,
    pub policy: HostPolicy,
    pub networks: Arc<Networks>,
    pub resolver: Resolver,
    pub limits: Arc<Limits>,
    pub journal: Journal,
    /// Looks at the packet filter, when there is one.
    pub wall: Option<Watch>,
    /// Where the DNS service answers, when there is one.
    pub dns: Option<SocketAddr>,
    /// Cancelled when no new request is taken.
    pub draining: CancellationToken,
}

impl Shared {
    /// Whether the packet filter stands, or there was to be none.
    pub(crate) fn is_walled(&self) -> bool {
        self.wall.as_ref().is_none_or(Watch::stands)
    }
}

/// A proxy that is ready to serve: its walls stand, its ports are bound, its rights are gone.
#[derive(Debug)]
pub struct Prepared {
    shared: Arc<Shared>,
    listeners: Vec<StdListener>,
    dns: Option<(StdUdp, StdListener)>,
}

/// Does everything that must be done before the first connection, in the order that fails closed.
///
/// The process must have one thread only.
///
/// # Errors
/// [`StartError`]; nothing listens then.
pub fn prepare(config: Config) -> Result<Prepared, StartError> {
    let Resolvers { servers, behind } = resolv_conf::read(&config.resolv_conf)
        .map_err(|why| StartError::ResolvConf { path: config.resolv_conf.clone(), why })?;
    let networks = Arc::new(Networks::read().map_err(StartError::Networks)?);
    let wall = if config.skip_wall {
        tracing::warn!(
            event = "egress.wall_skipped",
            "TALE_SKIP_SSRF_FIREWALL=1: there is no packet filter and no guard against forwarding; this is for development only"
        );
        None
    } else {
        let resolvers = servers.iter().chain(&behind).copied().collect();
        Some(wall::build(&Wall { resolvers, proxy: config.listen.port(), dns: config.dns.port() })?)
    };
    open_files::make_room(config.max_clients);
    let dns = bind_dns(&config)?;
    let listeners = bind_proxy(&config)?;
    privileges::give_up().map_err(StartError::Privileges)?;

    let patterns = config.policy.to_string();
    tracing::info!(
        event = "egress.prepared",
        mode = if config.policy.is_allowlist() { "allowlist" } else { "open" },
        hosts = patterns,
        max_connections = config.max_clients,
        max_connections_per_session = config.per_client.unwrap_or(0),
        ipv6 = wall.as_ref().map_or("unguarded", |wall| wall.ipv6.word()),
        resolvers = servers.len(),
        "egress: {} mode, at most {} connections, {}",
        if config.policy.is_allowlist() { "allowlist" } else { "open" },
        config.max_clients,
        match config.per_client {
            Some(most) => format!("{most} per session"),
            None => "no cap per session".to_owned(),
        }
    );
    for pattern in config.policy.unanchored() {
        tracing::warn!(
            event = "egress.pattern_unanchored",
            pattern,
            "the pattern does not end with $, so it also admits hosts such as {pattern}.attacker.test"
        );
    }
    let shared = Shared {
        policy: config.policy.clone(),
        resolver: Resolver::new(&servers, Arc::clone(&networks)),
        networks,
        limits: Limits::new(config.max_clients, config.per_client),
        journal: Journal::default(),
        wall: wall.map(|wall| wall.watch),
        dns: dns.as_ref().map(|_| SocketAddr::V4(config.dns)),
        draining: CancellationToken::new(),
        config,
    };
    Ok(Prepared { shared: Arc::new(shared), listeners, dns })
}

fn bind_dns(config: &Config) -> Result<Option<(StdUdp, StdListener)>, StartError> {
    let bound = StdUdp::bind(config.dns).and_then(|udp| Ok((udp, StdListener::bind(config.dns)?)));
    let bound = bound.and_then(|(udp, tcp)| {
        udp.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        Ok((udp, tcp))
    });
    match bound {
        Ok(bound) => Ok(Some(bound)),
        Err(why) if config.skip_wall => {
            tracing::warn!(
                event = "egress.dns_unbound", address = %config.dns, error = %why,
                "without a packet filter the DNS service may be missing, too: its port cannot be used"
            );
            Ok(None)
        }
        Err(why) => Err(StartError::Bind { address: config.dns, what: "DNS", why }),
    }
}

/// A listener for each thread, all on the same port.
fn bind_proxy(config: &Config) -> Result<Vec<StdListener>, StartError> {
    let failed = |why| StartError::Bind { address: config.listen, what: "proxy", why };
    // Sockets that share a port would also share it with another proxy of the same user: this one would not.
    drop(StdListener::bind(config.listen).map_err(failed)?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut at = config.listen;
    (0..threads)
        .map(|_| {
            let listener = listen_shared(at).map_err(|errno| failed(errno.into()))?;
            if let Ok(SocketAddr::V4(bound)) = listener.local_addr() {
                at = bound;
            }
            Ok(listener)
        })
        .collect()
}

fn listen_shared(address: SocketAddrV4) -> rustix::io::Result<StdListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl Prepared {
    /// Where the proxy listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.first().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop`, then lets open connections go on for a while. Runs on an event loop of one
    /// thread, which the DNS service shares.
    ///
    /// # Errors
    /// [`Stopped`] when a part ended by itself: everything has ended then.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Stopped> {
        let shared = self.shared;
        let close = CancellationToken::new();
        // Whatever ends this function ends the threads.
        let _closing = close.clone().drop_guard();
        let (failures, mut failed) = tokio::sync::mpsc::channel(1);
        for (n, listener) in self.listeners.into_iter().enumerate() {
            let (shared, close, failures) = (Arc::clone(&shared), close.clone(), failures.clone());
            let (ready, started) = oneshot::channel();
            let thread = std::thread::Builder::new().name(format!("egress-{n}"));
            let work = move || {
                let ended = serve_thread(&shared, listener, ready, &close);
                let _ = failures.try_send(ended.map_or_else(|error| error.to_string(), |()| "it ended".to_owned()));
            };
            thread.spawn(work).map_err(Stopped::Runtime)?;
            started.await.map_err(|_| Stopped::Proxy("it did not start".to_owned()))?;
        }
        drop(failures);
        let dns = serve_dns(Arc::clone(&shared), self.dns);
        let upkeep = upkeep(&shared);
        tokio::select! {
            () = stop.cancelled() => {}
            error = dns => return Err(Stopped::Dns(error)),
            why = failed.recv() => return Err(Stopped::Proxy(why.unwrap_or_else(|| "it panicked".to_owned()))),
            stopped = upkeep => {
                tracing::error!(event = "egress.wall_gone", "the packet filter does not stand any more; everything is closed");
                return Err(stopped);
            }
        }
        shared.draining.cancel();
        let open = shared.limits.held().connections;
        tracing::info!(event = "egress.draining", connections = open, "no new connections; open ones may finish");
        let ended = tokio::time::timeout(DRAIN, shared.limits.emptied()).await;
        shared.journal.settle();
        if ended.is_err() {
            let cut = shared.limits.held().connections;
            tracing::info!(event = "egress.cut", connections = cut, "connections that did not finish are closed");
        }
        Ok(())
    }
}

async fn serve_dns(shared: Arc<Shared>, sockets: Option<(StdUdp, StdListener)>) -> io::Error {
    let Some((udp, tcp)) = sockets else { return std::future::pending().await };
    let sockets = UdpSocket::from_std(udp).and_then(|udp| Ok((udp, TcpListener::from_std(tcp)?)));
    let (udp, tcp) = match sockets {
        Ok(sockets) => sockets,
        Err(error) => return error,
    };
    // As tasks of their own, so that a panic ends one and with it the process, not silently a part.
    let mut udp = tokio::spawn(serve_udp(Arc::clone(&shared), udp));
    let mut tcp = tokio::spawn(serve_tcp(shared, tcp));
    tokio::select! {
        ended = &mut udp => ended.unwrap_or_else(io::Error::other),
        ended = &mut tcp => ended.unwrap_or_else(io::Error::other),
    }
}

/// Ends when the wall does not stand any more.
async fn upkeep(shared: &Shared) -> Stopped {
    let mut ticks = tokio::time::interval(UPKEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !shared.is_walled() {
            return Stopped::Wall;
        }
        shared.networks.refresh();
        shared.journal.settle();
    }
}

/// Accepts and serves connections until `close`; takes no more when the proxy drains.
fn serve_thread(
    shared: &Arc<Shared>,
    listener: StdListener,
    ready: oneshot::Sender<()>,
    close: &CancellationToken,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let _ = ready.send(());
        let accepting = async {
            let ended = shared.draining.run_until_cancelled(accept(shared, &listener)).await;
            drop(listener);
            match ended {
                Some(error) => Err(error),
                None => std::future::pending().await,
            }
        };
        close.run_until_cancelled(accepting).await.unwrap_or(Ok(()))
    })
}

async fn accept(shared: &Arc<Shared>, listener: &TcpListener) -> io::Error {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => take(shared, stream, client),
            // The client has gone again.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) if is_exhausted(&error) => {
                tracing::warn!(event = "egress.exhausted", %error, "a connection waits, because there is no room for its socket");
                tokio::time::sleep(EXHAUSTED).await;
            }
            Err(error) => return error,
        }
    }
}

fn take(shared: &Arc<Shared>, stream: TcpStream, client: SocketAddr) {
    let address: IpAddr = client.ip().to_canonical();
    if !shared.networks.serves(address) {
        return;
    }
    match shared.limits.admit(address) {
        Ok(place) => {
            let _ = stream.set_nodelay(true);
            let served = connection::serve(Arc::clone(shared), stream, client);
            tokio::spawn(async move {
                let _place = place;
                served.await;
            });
        }
        Err(full) => {
            let (counter, reason) = match full {
                Full::Everybody => (&metrics::REFUSED_BY_LIMIT, "limit"),
                Full::Client => (&metrics::REFUSED_BY_CLIENT_LIMIT, "client_limit"),
            };
            counter.increment();
            shared.journal.full(address, reason);
            // Closed with a reset, at once and without a state that lingers.
            let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    }
}

impl Config {
    /// The address and port of the proxy that sandboxes know.
    pub const PORT: u16 = 3128;

    /// Every address of IPv4, at `port`.
    #[must_use]
    pub fn everywhere(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn without_its_dns_service_the_proxy_does_not_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let resolv_conf = folder.path().join("resolv.conf");
        std::fs::write(&resolv_conf, "nameserver 192.0.2.1\n").unwrap();
        let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut prepared = prepare(Config {
            policy: HostPolicy::Open,
            max_clients: 10,
            per_client: None,
            connect_ports: vec![443],
            idle: Duration::from_secs(600),
            listen: here,
            dns: here,
            skip_wall: true,
            resolv_conf,
        })
        .unwrap();
        let address = prepared.address().unwrap();
        // What a service has that lost its socket: one on which nobody can be accepted.
        let broken = StdUdp::bind(here).unwrap();
        broken.send_to(b"x", broken.local_addr().unwrap()).unwrap();
        let broken = StdListener::from(OwnedFd::from(broken));
        broken.set_nonblocking(true).unwrap();
        let (udp, _) = prepared.dns.take().unwrap();
        prepared.dns = Some((udp, broken));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(prepared.run(CancellationToken::new()));
        assert!(matches!(ended, Err(Stopped::Dns(_))), "{ended:?}");
        while std::net::TcpStream::connect(address).is_ok() {
            std::thread::yield_now();
        }
    }
}
