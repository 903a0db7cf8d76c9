//! Three network namespaces: `session` ── `proxy` ── `outside`. Addresses outside are public; its resolver
//! has a private one, as resolvers of clusters do.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tale_egress::{Config, HostPolicy, StartError, Stopped};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Addresses on the internet of these tests.
pub const SITE: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
pub const OTHER_SITE: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 35);
/// The router outside, which the proxy's network is attached to.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 53);
/// The proxy, as sessions see it.
pub const PROXY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
pub const SESSION: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 5);
pub const OTHER_SESSION: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 6);

/// Longest that anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// A network of its own.
#[derive(Debug, Clone)]
pub struct Network(pub String);

impl Network {
    /// Runs `work` inside. Sockets that it makes stay inside.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(work).join().unwrap()
    }

    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.0);
        std::thread::spawn(move || {
            let space = std::fs::File::open(path).unwrap();
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    pub fn listen(&self, address: Ipv4Addr, port: u16) -> TcpListener {
        self.run(move || TcpListener::bind((address, port)).unwrap())
    }

    /// A command that is run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }
}

pub struct World {
    pub session: Network,
    pub proxy: Network,
    pub outside: Network,
    pub resolver: Resolver,
    pub folder: TempDir,
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl World {
    /// Nothing when this machine does not let us make networks; the test says so and ends.
    pub fn new() -> Option<Self> {
        if !rustix::process::getuid().is_root()
            || !Command::new("nft").arg("--version").output().is_ok_and(|o| o.status.success())
        {
            eprintln!("skipped: needs root, iproute2 and nftables");
            return None;
        }
        let name = |what: &str| {
            Network(format!("tale-{}-{}-{what}", std::process::id(), WORLDS.fetch_add(1, Ordering::Relaxed)))
        };
        let (session, proxy, outside) = (name("session"), name("proxy"), name("outside"));
        for Network(name) in [&session, &proxy, &outside] {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        let (s, p, o) = (&session.0, &proxy.0, &outside.0);
        for line in [
            format!("ip link add s0 netns {s} type veth peer name s1 netns {p}"),
            format!("ip link add o0 netns {p} type veth peer name o1 netns {o}"),
            format!("ip -n {s} address add {SESSION}/24 dev s0"),
            format!("ip -n {s} address add {OTHER_SESSION}/24 dev s0"),
            format!("ip -n {p} address add {PROXY}/24 dev s1"),
            format!("ip -n {p} address add 10.77.0.2/24 dev o0"),
            format!("ip -n {o} address add {ROUTER}/24 dev o1"),
            format!("ip -n {o} address add {RESOLVER}/24 dev o1"),
            format!("ip -n {o} address add {SITE}/32 dev lo"),
            format!("ip -n {o} address add {OTHER_SITE}/32 dev lo"),
            format!("ip -n {s} link set s0 up"),
            format!("ip -n {p} link set s1 up"),
            format!("ip -n {p} link set o0 up"),
            format!("ip -n {o} link set o1 up"),
            format!("ip -n {p} route add default via {ROUTER}"),
        ] {
            run(&line);
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("resolv.conf"), format!("nameserver {RESOLVER}\n")).unwrap();
        let resolver = Resolver::start(&outside);
        Some(Self { session, proxy, outside, resolver, folder })
    }

    pub fn config(&self) -> Config {
        Config {
            policy: HostPolicy::Open,
            max_clients: 2_000,
            per_client: Some(256),
            connect_ports: vec![443],
            idle: Duration::from_secs(600),
            listen: Config::everywhere(Config::PORT),
            dns: Config::everywhere(53),
            skip_wall: false,
            resolv_conf: self.folder.path().join("resolv.conf"),
        }
    }

    /// A running proxy.
    pub fn start(&self, change: impl FnOnce(&mut Config)) -> Proxy {
        self.try_start(change).unwrap()
    }

    pub fn try_start(&self, change: impl FnOnce(&mut Config)) -> Result<Proxy, StartError> {
        let mut config = self.config();
        change(&mut config);
        let stop = CancellationToken::new();
        let (started, prepared) = mpsc::channel();
        let token = stop.clone();
        let thread = self.proxy.spawn(move || {
            let prepared = match tale_egress::prepare(config) {
                Ok(prepared) => prepared,
                Err(error) => {
                    started.send(Err(error)).unwrap();
                    return Ok(());
                }
            };
            started.send(Ok(())).unwrap();
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(prepared.run(token))
        });
        prepared.recv().unwrap().map(|()| Proxy { stop, thread })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for Network(name) in [&self.session, &self.proxy, &self.outside] {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

pub struct Proxy {
    pub stop: CancellationToken,
    pub thread: JoinHandle<Result<(), Stopped>>,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Names {
    /// These addresses, each time.
    Always(Vec<Ipv4Addr>),
    /// One set after the other, and so on.
    Alternating(Vec<Vec<Ipv4Addr>>),
}

/// A resolver that says what it is told to, and remembers what it was asked.
#[derive(Debug, Clone)]
pub struct Resolver {
    names: Arc<Mutex<HashMap<String, Names>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Resolver {
    fn start(outside: &Network) -> Self {
        let socket = outside.run(|| UdpSocket::bind((RESOLVER, 53)).unwrap());
        let resolver = Self { names: Arc::default(), asked: Arc::default() };
        let own = resolver.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut bytes) {
                if let Some(answer) = own.answer(&bytes[..length]) {
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        resolver
    }

    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) {
        self.names.lock().unwrap().insert(name.to_owned(), Names::Always(addresses.to_vec()));
    }

    pub fn alternate(&self, name: &str, sets: &[&[Ipv4Addr]]) {
        let sets = sets.iter().map(|set| set.to_vec()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), Names::Alternating(sets));
    }

    /// How often `name` was asked for.
    pub fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == name).count()
    }

    pub fn asked_anything(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let (name, kind, end) = question(query)?;
        self.asked.lock().unwrap().push(name.clone());
        let count = self.asked(&name);
        let found = match self.names.lock().unwrap().get(&name) {
            Some(Names::Always(addresses)) => Some(addresses.clone()),
            Some(Names::Alternating(sets)) => Some(sets[(count - 1) % sets.len()].clone()),
            None => None,
        };
        let mut answer = query[..2].to_vec();
        answer.extend_from_slice(&[0x81, if found.is_some() { 0x80 } else { 0x83 }, 0, 1]);
        let addresses = if kind == 1 { found.unwrap_or_default() } else { Vec::new() };
        answer.extend_from_slice(&[0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
        answer.extend_from_slice(&query[12..end]);
        for address in addresses {
            // Nothing is kept, as names that change their answers want it.
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend_from_slice(&address.octets());
        }
        Some(answer)
    }
}

/// Name, type and end of the question of a message.
pub fn question(message: &[u8]) -> Option<(String, u16, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8(message.get(at..at + length)?.to_vec()).ok()?);
        at += length;
    }
    let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
    Some((labels.join("."), kind, at + 4))
}

/// A question as a client writes it.
pub fn query(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.write_all(label.as_bytes()).unwrap();
    }
    bytes.push(0);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0, 1]);
    bytes
}

/// The addresses of IPv4 at the end of an answer, and its result code.
pub fn answer_of(message: &[u8]) -> (u8, Vec<IpAddr>) {
    let count = usize::from(message[7]);
    let end = question(message).unwrap().2;
    let records = message[end..].chunks(16).take(count);
    (message[3] & 0x0f, records.map(|record| IpAddr::from([record[12], record[13], record[14], record[15]])).collect())
}

/// Asks the proxy's DNS service from the session's network; nothing when it stays silent.
pub fn ask(world: &World, bytes: Vec<u8>) -> Option<Vec<u8>> {
    world.session.run(move || {
        let socket = UdpSocket::bind((SESSION, 0)).unwrap();
        socket.connect(SocketAddrV4::new(PROXY, 53)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send(&bytes).unwrap();
        let mut answer = [0; 1500];
        socket.recv(&mut answer).ok().map(|length| answer[..length].to_vec())
    })
}
