//! Fetching a file that is to be staged, over plain HTTP from the deployment's own network. There is no
//! TLS here: what lies outside is fetched by the platform and offered at its blob door.
//!
//! Names are looked up here too, in `/etc/hosts` and by one question over UDP, because a static program
//! cannot load the system's resolver.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tale_sandbox_wire::files::StageStatus;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::stage::NotStaged;

const CONNECT: Duration = Duration::from_secs(5);
const NAME: Duration = Duration::from_secs(2);

/// A file on its way.
#[derive(Debug)]
pub struct Fetch {
    body: Incoming,
    _connection: tokio::task::JoinHandle<()>,
}

fn failed(why: impl Into<String>) -> NotStaged {
    NotStaged::new(StageStatus::FetchFailed, why)
}

impl Fetch {
    /// Asks for the file.
    ///
    /// # Errors
    /// Anything but 200.
    pub async fn start(url: &str) -> Result<Self, NotStaged> {
        let uri: hyper::Uri = url.parse().map_err(|_| failed("the address is none"))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let (Some("http"), Some(authority)) = (uri.scheme_str(), authority) else {
            return Err(failed("the address is not plain http without a name and a password"));
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(80);
        let stream = connect(host, port).await.map_err(|error| failed(format!("no connection: {error}")))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|_| failed("the other side does not speak HTTP"))?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        let path = uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        let request = Request::get(path)
            .header(hyper::header::HOST, authority.as_str())
            .header(hyper::header::USER_AGENT, "tale-sandboxd")
            .body(Empty::<Bytes>::new())
            .map_err(|_| failed("the address is none"))?;
        let response = sender.send_request(request).await.map_err(|_| failed("no answer"))?;
        if response.status() != hyper::StatusCode::OK {
            return Err(failed(format!("the answer is {}", response.status().as_u16())));
        }
        Ok(Self { body: response.into_body(), _connection: connection })
    }

    /// The next bytes; `None` after the last ones.
    ///
    /// # Errors
    /// When the other side stops before the end it announced.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NotStaged> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(_)) => return Err(failed("the file was cut off")),
            }
        }
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name is not known");
    for address in resolve(host).await? {
        match timeout(CONNECT, TcpStream::connect(SocketAddr::new(address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "it took too long"),
        }
    }
    Err(last)
}

/// The addresses of a name.
///
/// # Errors
/// When the system gives no socket.
pub(crate) async fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let listed = in_hosts(&hosts, host);
    if !listed.is_empty() {
        return Ok(listed);
    }
    let config = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let (servers, search) = resolvers(&config);
    let with_search = search.iter().map(|suffix| format!("{host}.{suffix}"));
    let names: Vec<String> = if host.contains('.') {
        std::iter::once(host.to_owned()).chain(with_search).collect()
    } else {
        with_search.chain(std::iter::once(host.to_owned())).collect()
    };
    for name in names {
        for server in &servers {
            if let Ok(Ok(found)) = timeout(NAME, ask(*server, &name)).await
                && !found.is_empty()
            {
                return Ok(found);
            }
        }
    }
    Ok(Vec::new())
}

fn in_hosts(text: &str, host: &str) -> Vec<IpAddr> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().split_ascii_whitespace());
    lines
        .filter_map(|mut words| {
            let address = words.next()?.parse().ok()?;
            words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
        })
        .collect()
}

fn resolvers(text: &str) -> (Vec<SocketAddr>, Vec<String>) {
    let mut servers = Vec::new();
    let mut search = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("nameserver") => {
                servers
                    .extend(words.next().and_then(|text| text.parse().ok()).map(|ip: IpAddr| SocketAddr::new(ip, 53)));
            }
            Some("search") => search = words.take(6).map(str::to_owned).collect(),
            _ => {}
        }
    }
    servers.truncate(3);
    (servers, search)
}

async fn ask(server: SocketAddr, name: &str) -> io::Result<Vec<IpAddr>> {
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    // Only that server's answers arrive on a connected socket.
    socket.connect(server).await?;
    let mut id = [0; 2];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut id)?;
    let question = question(id, name).ok_or_else(|| io::Error::other("the name is none"))?;
    socket.send(&question).await?;
    let mut buffer = [0; 1500];
    loop {
        let count = socket.recv(&mut buffer).await?;
        if let Some(found) = addresses(&buffer[..count], &question) {
            return Ok(found);
        }
    }
}

/// The question for the addresses of `name`.
fn question(id: [u8; 2], name: &str) -> Option<Vec<u8>> {
    let mut out = vec![id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        out.push(length);
        out.extend_from_slice(label.as_bytes());
    }
    out.extend_from_slice(&[0, 0, 1, 0, 1]);
    (out.len() <= 12 + 255 + 4).then_some(out)
}

/// The addresses in an answer to `question`; `None` when it answers something else.
fn addresses(answer: &[u8], question: &[u8]) -> Option<Vec<IpAddr>> {
    let echoed = answer.get(12..question.len())?;
    if answer[..2] != question[..2] || answer[2] & 0x80 == 0 || !echoed.eq_ignore_ascii_case(&question[12..]) {
        return None;
    }
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    let mut rest = &answer[question.len()..];
    let mut found = Vec::new();
    for _ in 0..count {
        // The record's name: labels, or a pointer.
        let Some(end) = skip_name(rest) else { break };
        let Some((head, after)) = rest[end..].split_at_checked(10) else { break };
        let length = usize::from(u16::from_be_bytes([head[8], head[9]]));
        let Some((data, after)) = after.split_at_checked(length) else { break };
        if head[..4] == [0, 1, 0, 1]
            && let Ok(bytes) = <[u8; 4]>::try_from(data)
        {
            found.push(IpAddr::V4(Ipv4Addr::from(bytes)));
        }
        rest = after;
    }
    Some(found)
}

fn skip_name(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return bytes.get(at + 1).map(|_| at + 2),
            length => at += usize::from(length) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_the_question_counts() {
        let asked = question([7, 8], "backend-api").unwrap();
        let mut answer = asked.clone();
        answer[2] = 0x81;
        answer[7] = 2;
        answer.extend_from_slice(&[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, 2, 0xc0, 12]);
        answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 10, 0, 0, 9]);
        assert_eq!(addresses(&answer, &asked), Some(vec![IpAddr::from([10, 0, 0, 9])]));
        for cut in 0..answer.len() {
            addresses(&answer[..cut], &asked);
        }
        let mut other = answer.clone();
        other[0] = 9;
        assert_eq!(addresses(&other, &asked), None);
        assert_eq!(addresses(&asked, &asked), None, "a question is no answer");
        assert!(question([0, 0], &"x".repeat(64)).is_none() && question([0, 0], "a..b").is_none());
    }

    #[test]
    fn the_files_of_the_system_are_read() {
        let hosts = "127.0.0.1 localhost # x\n10.0.0.1\tbackend-api  B\n::1 backend-api\n";
        assert_eq!(in_hosts(hosts, "BACKEND-api").len(), 2);
        assert!(in_hosts(hosts, "x").is_empty());
        let (servers, search) = resolvers("nameserver 127.0.0.11\nsearch a.b c.d\noptions ndots:0\nnameserver x\n");
        assert_eq!(servers, [SocketAddr::from(([127, 0, 0, 11], 53))]);
        assert_eq!(search, ["a.b", "c.d"]);
    }
}
