//! A client of the proxy, and hosts on the internet.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::thread::JoinHandle;

use crate::world::{PATIENCE, PROXY, SESSION, World};

/// A connection to the proxy from the session's network.
pub fn dial(world: &World) -> TcpStream {
    dial_from(world, SESSION)
}

/// As [`dial`], from one of the session network's addresses.
pub fn dial_from(world: &World, from: Ipv4Addr) -> TcpStream {
    let stream = world.session.run(move || {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrV4::new(from, 0)).unwrap();
        connect(&socket, &SocketAddrV4::new(PROXY, 3128)).unwrap();
        TcpStream::from(socket)
    });
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// An answer of the proxy, or of a host through it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The proxy's own reason.
    pub fn reason(&self) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix("X-Tale-Egress: "))
    }

    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }
}

/// Sends `bytes` over a new connection and reads until it ends.
pub fn say(world: &World, bytes: &[u8]) -> Answer {
    let mut stream = dial(world);
    stream.write_all(bytes).unwrap();
    Answer::of(&read_all(&mut stream))
}

pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Whoever refuses may also reset, when something was left unread.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

pub fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// An open tunnel.
pub fn tunnel(world: &World, to: &str) -> TcpStream {
    let mut stream = dial(world);
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
    let head = read_head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream
}

/// What CONNECT is answered.
pub fn connect(world: &World, to: &str) -> Answer {
    let mut stream = dial(world);
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
    let head = read_head(&mut stream);
    let mut answer = Answer::of(head.as_bytes());
    if answer.status != 200 {
        answer.body = String::from_utf8(read_all(&mut stream)).unwrap();
    }
    answer
}

/// Serves each connection of a host with `serve`.
pub fn host(
    world: &World,
    address: Ipv4Addr,
    port: u16,
    serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static,
) -> JoinHandle<()> {
    let listener: TcpListener = world.outside.listen(address, port);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    })
}

/// Gives back what it gets, and ends when the other side does.
pub fn echo(mut stream: TcpStream) {
    let mut other = stream.try_clone().unwrap();
    let _ = std::io::copy(&mut stream, &mut other);
    let _ = other.shutdown(Shutdown::Write);
}
