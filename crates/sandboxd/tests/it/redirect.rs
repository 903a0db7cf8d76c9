//! Connections of programs that know of no proxy. Two networks of their own: `session` ── `proxy`, and a proxy that
//! says what it was asked. That the real one decides is in its own tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::session::{PROGRAM, TOKEN};

const SITE: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
const PATIENCE: Duration = Duration::from_secs(30);
const USER: u32 = 10_001;

fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `work` in a network.
fn within<T: Send + 'static>(network: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let path = format!("/run/netns/{network}");
    let inside = move || {
        let space = std::fs::File::open(path).unwrap();
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::spawn(inside).join().unwrap()
}

struct World {
    session: String,
    proxy: String,
    init: Option<Child>,
    root: tempfile::TempDir,
}

impl World {
    /// Nothing when this machine does not let us make networks.
    fn new(name: &str) -> Option<Self> {
        let able = Command::new("ip").arg("-V").output().is_ok_and(|output| output.status.success());
        if !rustix::process::getuid().is_root() || !able {
            eprintln!("skipped: needs root and iproute2");
            return None;
        }
        let [session, proxy] = ["s", "p"].map(|end| format!("tale-{}-{name}-{end}", std::process::id()));
        for line in [
            format!("ip netns add {session}"),
            format!("ip netns add {proxy}"),
            format!("ip -n {session} link set lo up"),
            format!("ip link add s0 netns {session} type veth peer name s1 netns {proxy}"),
            format!("ip -n {session} address add 10.88.0.5/24 dev s0"),
            format!("ip -n {proxy} address add {PROXY}/24 dev s1"),
            format!("ip -n {session} link set s0 up"),
            format!("ip -n {proxy} link set s1 up"),
        ] {
            run(&line);
        }
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(root.path(), Some(USER), Some(USER)).unwrap();
        Some(Self { session, proxy, init: None, root })
    }

    fn start(&mut self) {
        let mut init = Command::new("ip")
            .args(["netns", "exec", &self.session, PROGRAM, "daemon", "redirected"])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("TALE_RUNNERD_TOKEN", TOKEN)
            .env("TALE_RUNNERD_ROOT", self.root.path())
            .env("TALE_RUNNERD_USER", format!("{USER}:{USER}"))
            .env("TALE_RUNNERD_PROXY", format!("{PROXY}:3128"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(init.stderr.take().unwrap()).lines().map_while(Result::ok);
        self.init = Some(init);
        assert!(log.any(|line| line.contains("listening on")), "it does not start");
        // Whoever writes must not find the pipe closed.
        std::thread::spawn(move || log.for_each(drop));
    }

    fn proxy(&self) -> Asked {
        let listener = within(&self.proxy, || TcpListener::bind((PROXY, 3128)).unwrap());
        let (asked, told) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let asked = asked.clone();
                std::thread::spawn(move || answer(stream.unwrap(), |head| asked.send(head).unwrap()));
            }
        });
        Asked(told)
    }

    /// Says `first` to an address and reads to the end.
    fn say(&self, to: (Ipv4Addr, u16), first: &[u8]) -> String {
        let first = first.to_vec();
        let said = within(&self.session, move || {
            let mut stream = TcpStream::connect(to)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(&first)?;
            let mut answer = Vec::new();
            // An end that is a reset is an end.
            let ended = stream.read_to_end(&mut answer);
            assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it never ended");
            std::io::Result::Ok(answer)
        });
        String::from_utf8_lossy(&said.unwrap()).into_owned()
    }

    /// Asks a resolver; its answer, and whose it is.
    fn ask(&self, resolver: Ipv4Addr, question: &'static [u8]) -> (Vec<u8>, SocketAddr) {
        within(&self.session, move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.send_to(question, (resolver, 53)).unwrap();
            let mut bytes = [0; 99];
            let (length, from) = socket.recv_from(&mut bytes).unwrap();
            (bytes[..length].to_vec(), from)
        })
    }

    fn health(&self) -> String {
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Tale-Runnerd-Token: {TOKEN}\r\nConnection: close\r\n\r\n");
        self.say((Ipv4Addr::LOCALHOST, 8200), request.as_bytes())
    }

    /// The processes of the session with this word, and what the kernel says about each.
    fn processes(&self, word: &str) -> Vec<(i32, String)> {
        let pids = Command::new("ip").args(["netns", "pids", &self.session]).output().unwrap().stdout;
        let pids = String::from_utf8(pids).unwrap();
        let pids = pids.lines().map(|line| line.parse::<i32>().unwrap());
        let with_word = pids.filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
        });
        with_word.filter_map(|pid| Some((pid, std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?))).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(init) = &mut self.init {
            let _ = init.kill();
            let _ = init.wait();
        }
        for network in [&self.session, &self.proxy] {
            let pids = Command::new("ip").args(["netns", "pids", network]).output().unwrap().stdout;
            for pid in String::from_utf8_lossy(&pids).lines() {
                let _ = Command::new("kill").args(["-9", pid]).output();
            }
            let _ = Command::new("ip").args(["netns", "del", network]).output();
        }
    }
}

/// What the proxy was asked.
struct Asked(Receiver<String>);

impl Asked {
    fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap()
    }
}

/// The proxy of these tests: nothing but ports 80 and 443, and no host that is called forbidden.
fn answer(mut stream: TcpStream, ask: impl FnOnce(String)) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap().to_owned();
    ask(head);
    if target.starts_with("forbidden") || !(target.ends_with(":80") || target.ends_with(":443")) {
        let _ =
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\nX-Tale-Egress: host_not_allowed\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    // The site speaks as soon as it is reached, then repeats the first thing that it is told.
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello ").unwrap();
    let mut first = [0; 999];
    let length = stream.read(&mut first).unwrap();
    stream.write_all(&first[..length]).unwrap();
}

/// A greeting of TLS.
fn greeting(name: &str) -> Vec<u8> {
    let counted = |width: usize, bytes: &[u8]| [&bytes.len().to_be_bytes()[8 - width..], bytes].concat();
    let names = counted(2, &[&[0], &*counted(2, name.as_bytes())].concat());
    let extensions = [&[0, 0][..], &counted(2, &names)].concat();
    let body = [&[3, 3][..], &[7; 32], &[0], &counted(2, &[0x13, 1]), &[1, 0], &counted(2, &extensions)].concat();
    [&[22, 3, 1][..], &counted(2, &[&[1][..], &counted(3, &body)].concat())].concat()
}

#[test]
fn a_program_that_knows_of_no_proxy_gets_out_through_it() {
    let Some(mut world) = World::new("out") else { return };
    let asked = world.proxy();
    world.start();
    assert!(world.health().contains(r#""egress":{"ok":true}"#));

    // By the name that it says, whatever address it took.
    let said = world.say((SITE, 443), &greeting("example.com"));
    assert!(said.starts_with("hello \u{16}\u{3}\u{1}"), "{said:?}");
    let head = asked.next();
    assert!(
        head.starts_with("CONNECT example.com:443 HTTP/1.1\r\n") && head.contains("\r\nTale-Redirected: "),
        "{head}"
    );
    let page = "GET /page HTTP/1.1\r\nHost: pages.example\r\n\r\n";
    assert_eq!(world.say((SITE, 80), page.as_bytes()), format!("hello {page}"));
    assert!(asked.next().starts_with("CONNECT pages.example:80 "));
    // By the address when there is no name.
    assert!(world.say((SITE, 443), b"SSH-2.0-x\r\n").starts_with("hello SSH"));
    assert!(asked.next().starts_with("CONNECT 93.184.216.34:443 "));

    // What the proxy refuses is refused: in words, in TLS, at once.
    let refused = world.say((SITE, 80), b"GET / HTTP/1.1\r\nHost: forbidden.example\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("X-Tale-Egress: host_not_allowed"), "{refused}");
    assert!(world.say((SITE, 443), &greeting("forbidden.example")).starts_with('\u{15}'));
    assert_eq!(world.say((SITE, 22), b""), "");
    let targets: Vec<String> = (0..3).map(|_| asked.next().split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(targets, ["forbidden.example:80", "forbidden.example:443", "93.184.216.34:22"]);

    // What is not public is refused without asking anybody.
    for private in [[10, 1, 2, 3], [169, 254, 169, 254], [172, 31, 0, 1], [192, 168, 1, 1], [100, 100, 100, 200]] {
        let refused = within(&world.session, move || TcpStream::connect((Ipv4Addr::from(private), 80)).unwrap_err());
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{private:?}");
    }
    // Its own network stays as it was, and nothing but TCP gets out.
    let neighbour = within(&world.proxy, || TcpListener::bind((PROXY, 443)).unwrap());
    let direct = within(&world.session, || TcpStream::connect((PROXY, 443)).unwrap().local_addr().unwrap());
    assert_eq!(neighbour.accept().unwrap().1, direct);
    let other = within(&world.session, || UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"x", (SITE, 443)));
    assert!(other.is_err());
}

#[test]
fn names_are_asked_of_the_proxy_alone() {
    let Some(mut world) = World::new("dns") else { return };
    let service = within(&world.proxy, || UdpSocket::bind((PROXY, 53)).unwrap());
    std::thread::spawn(move || {
        let mut bytes = [0; 99];
        while let Ok((length, client)) = service.recv_from(&mut bytes) {
            bytes[0] = b'A';
            service.send_to(&bytes[..length], client).unwrap();
        }
    });
    world.start();
    for resolver in [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(9, 9, 9, 9)] {
        let (answer, from) = world.ask(resolver, b"Question");
        assert_eq!((answer.as_slice(), from), (&b"Auestion"[..], SocketAddr::from((resolver, 53))));
    }
}

#[test]
fn the_session_keeps_no_right_and_cannot_touch_the_redirector() {
    let Some(mut world) = World::new("rights") else { return };
    let asked = world.proxy();
    world.start();
    let session = ["daemon", "internal-serve"];
    for word in ["internal-redirect-keeper", "internal-redirect"].into_iter().chain(session) {
        let found = world.processes(word);
        assert_eq!(found.len(), 1, "{word}");
        let status = &found[0].1;
        let uid = if word.starts_with("internal-redirect") { 64_100 } else { USER };
        assert!(status.contains(&format!("\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{word}: {status}");
        let possible = session.contains(&word).then_some("CapBnd");
        for rights in ["CapInh", "CapPrm", "CapEff", "CapAmb"].into_iter().chain(possible) {
            assert!(status.contains(&format!("\n{rights}:\t0000000000000000\n")), "{word}: {status}");
        }
        assert!(status.contains("\nGroups:\t \n"), "{word}: {status}");
    }
    // When it ends it is started again; a connection made in between waits for it.
    let (redirector, _) = world.processes("internal-redirect")[0];
    run(&format!("kill -9 {redirector}"));
    assert!(world.say((SITE, 443), &greeting("example.com")).starts_with("hello "));
    assert!(asked.next().starts_with("CONNECT example.com:443 "));
}

#[test]
fn without_its_keeper_nothing_gets_out_and_that_is_said() {
    let Some(mut world) = World::new("keeper") else { return };
    let asked = world.proxy();
    world.start();
    assert!(world.say((SITE, 443), &greeting("example.com")).starts_with("hello "));
    asked.next();
    assert!(world.health().contains(r#""egress":{"ok":true}"#));
    let (keeper, _) = world.processes("internal-redirect-keeper")[0];
    run(&format!("kill -9 {keeper}"));
    // With it ends the redirector, and process 1 has nothing to start it again with.
    while !world.processes("internal-redirect").is_empty() {
        std::thread::yield_now();
    }
    assert!(world.health().contains(r#""egress":{"ok":false,"reason":"redirector_stopped"}"#), "{}", world.health());
    let refused = within(&world.session, || TcpStream::connect((SITE, 443)).unwrap_err());
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // The commands of the session are none the worse for it.
    assert!(world.health().starts_with("HTTP/1.1 200 "));
}

#[test]
fn without_the_proxy_there_is_no_way_out() {
    let Some(mut world) = World::new("closed") else { return };
    world.start();
    let said = world.say((SITE, 80), b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 502 ") && said.ends_with("does not answer.\n"), "{said}");
    assert!(world.say((SITE, 443), &greeting("example.com")).starts_with('\u{15}'));
    let answer = world.ask(Ipv4Addr::new(127, 0, 0, 11), b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01").0;
    assert_eq!(answer[..4], [0x12, 0x34, 0x81, 2], "a failure, at once");
}

#[test]
fn a_network_with_a_way_of_its_own_is_left_alone_and_said() {
    let Some(mut world) = World::new("open") else { return };
    run(&format!("ip -n {} route add default via {PROXY}", world.session));
    world.start();
    assert!(world.health().contains(r#""egress":{"ok":false,"reason":"not_set_up"}"#));
}
