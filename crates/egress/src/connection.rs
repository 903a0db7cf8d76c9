//! One client connection, from its first byte to its last.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::dial::dial;
use crate::dns;
use crate::http::forward::{After, NoHead, Outgoing, exchange, read_head};
use crate::http::head::{Length, Malformed, Request};
use crate::http::refusal::Refusal;
use crate::http::target::{Destination, absolute, authority};
use crate::journal::Visit;
use crate::metrics;
use crate::server::Shared;
use crate::tunnel::{Early, Tunnel};

/// Longest time for a head to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// How long, and for how many bytes, a refused client may go on sending: closing on unread bytes would
/// take the refusal away from it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 256 << 10;

/// The port of plain HTTP.
const HTTP: u16 = 80;

/// The header by which the redirector of a session marks tunnels of connections that knew of no proxy.
/// It admits port 80, to which plain requests may go in any case.
pub(crate) const REDIRECTED: &str = "Tale-Redirected";

/// Serves a client.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, client: SocketAddr) {
    // On the heap, and gone when the tunnel begins: a tunnel that waits must not carry it along.
    if let Some(open) = Box::pin(converse(&shared, stream, client.ip().to_canonical())).await {
        let Open { tunnel, client, method, to, since, up, down } = open;
        let totals = tunnel.await;
        metrics::BYTES_UP.add(totals.up);
        metrics::BYTES_DOWN.add(totals.down);
        let visit = Visit { client, method, to: Some(&to), since };
        shared.journal.passed(&visit, totals.end.word(), up + totals.up, down + totals.down);
    }
}

/// A tunnel that is about to begin.
struct Open {
    tunnel: Tunnel,
    client: IpAddr,
    method: &'static str,
    to: Destination,
    since: Instant,
    /// What went through before.
    up: u64,
    down: u64,
}

/// Requests and answers, until there are no more, or a tunnel begins.
async fn converse(shared: &Arc<Shared>, mut stream: TcpStream, client: IpAddr) -> Option<Open> {
    let mut buffer = Vec::new();
    let mut deadline = Instant::now() + HEAD;
    loop {
        let mut visit = Visit { client, method: "none", to: None, since: Instant::now() };
        let end = match timeout_at(deadline, read_head(&mut stream, &mut buffer)).await {
            Ok(Ok(end)) => end,
            Ok(Err(NoHead::Nothing | NoHead::Broken)) => return None,
            Err(_) if buffer.is_empty() => return None,
            Err(_) => return refuse(shared, stream, &visit, Refusal::HeadTooSlow).await,
            Ok(Err(NoHead::TooLarge)) => return refuse(shared, stream, &visit, Refusal::HeadTooLarge).await,
            Ok(Err(NoHead::Malformed(why))) => {
                return refuse(shared, stream, &visit, Refusal::BadRequest(why)).await;
            }
        };
        let head: Vec<u8> = buffer.drain(..end).collect();
        let asked =
            Request::parse(&head).and_then(|request| Asked::read(&request, client).map(|asked| (request, asked)));
        let (request, asked) = match asked {
            Ok(asked) => asked,
            Err(Malformed::TooManyFields) => return refuse(shared, stream, &visit, Refusal::HeadTooLarge).await,
            Err(why) => return refuse(shared, stream, &visit, Refusal::BadRequest(why)).await,
        };
        match asked {
            Asked::Tunnel { to, redirected } => {
                visit = Visit { method: "CONNECT", to: Some(&to), ..visit };
                let ports = &shared.config.connect_ports;
                let upstream = match judge(shared, &to, ports.contains(&to.port) || (redirected && to.port == HTTP)) {
                    Ok(()) => dial(shared, &to).await,
                    Err(refusal) => Err(refusal),
                };
                let upstream = match upstream {
                    Ok(upstream) => upstream,
                    Err(refusal) => return refuse(shared, stream, &visit, refusal).await,
                };
                if stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
                    return None;
                }
                let early = Early { from_client: buffer, from_upstream: Vec::new() };
                let tunnel = Tunnel::new(stream, upstream, early, shared.config.idle);
                let since = visit.since;
                return Some(Open { tunnel, client, method: "CONNECT", to, since, up: 0, down: 0 });
            }
            Asked::Page { to, path, length } => {
                visit = Visit { method: "HTTP", to: Some(&to), ..visit };
                let port = to.port == HTTP || shared.config.connect_ports.contains(&to.port);
                let upstream = match judge(shared, &to, port) {
                    Ok(()) => dial(shared, &to).await,
                    Err(refusal) => Err(refusal),
                };
                let mut upstream = match upstream {
                    Ok(upstream) => upstream,
                    Err(refusal) => return refuse(shared, stream, &visit, refusal).await,
                };
                let outgoing = Outgoing { request: &request, to: &to, path: &path, length };
                let done = exchange(&mut stream, &mut buffer, &mut upstream, &outgoing, shared.config.idle).await;
                metrics::BYTES_UP.add(done.up);
                metrics::BYTES_DOWN.add(done.down);
                match done.after {
                    After::Refuse(refusal) => return refuse(shared, stream, &visit, refusal).await,
                    After::Tunnel(early) => {
                        let tunnel = Tunnel::new(stream, upstream, early, shared.config.idle);
                        let since = visit.since;
                        return Some(Open { tunnel, client, method: "HTTP", to, since, up: done.up, down: done.down });
                    }
                    After::Next => shared.journal.passed(&visit, "answered", done.up, done.down),
                    After::Close => {
                        shared.journal.passed(&visit, "closed", done.up, done.down);
                        let _ = stream.shutdown().await;
                        return None;
                    }
                }
            }
            Asked::Own(page) => {
                let answer = own_page(shared, page).await;
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                return None;
            }
        }
        if buffer.is_empty() {
            buffer = Vec::new();
            // Without a buffer, and not for longer than any connection may be silent.
            let next = timeout(shared.config.idle, stream.readable());
            match shared.draining.run_until_cancelled(next).await {
                Some(Ok(Ok(()))) => {}
                _ => return None,
            }
        }
        deadline = Instant::now() + HEAD;
    }
}

/// What a request asks for.
enum Asked {
    Tunnel { to: Destination, redirected: bool },
    Page { to: Destination, path: String, length: Length },
    Own(OwnPage),
}

/// What the proxy tells about itself, to its own machine.
#[derive(Clone, Copy)]
enum OwnPage {
    Health,
    Metrics,
}

impl Asked {
    fn read(request: &Request<'_>, client: IpAddr) -> Result<Self, Malformed> {
        let length = request.length()?;
        if request.method == "CONNECT" {
            // What follows belongs to the tunnel, whatever a length would say.
            if length != Length::Untold {
                return Err(Malformed::Framing);
            }
            let redirected = request.fields.all(REDIRECTED).next().is_some();
            return Ok(Self::Tunnel { to: authority(request.target)?, redirected });
        }
        if request.method == "GET" && client.is_loopback() {
            match request.target {
                "/health" => return Ok(Self::Own(OwnPage::Health)),
                "/metrics" => return Ok(Self::Own(OwnPage::Metrics)),
                _ => {}
            }
        }
        let (to, path) = absolute(request.target)?;
        Ok(Self::Page { to, path, length })
    }
}

fn judge(shared: &Shared, to: &Destination, port: bool) -> Result<(), Refusal> {
    if !port {
        Err(Refusal::PortNotAllowed)
    } else if shared.policy.admits(&to.host) {
        Ok(())
    } else {
        Err(Refusal::HostNotAllowed)
    }
}

/// Says no, and waits until the client has it.
async fn refuse(shared: &Shared, mut stream: TcpStream, visit: &Visit<'_>, refusal: Refusal) -> Option<Open> {
    shared.journal.refused(visit, refusal);
    if stream.write_all(refusal.answer().as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut rest = stream.take(LINGER_BYTES);
        let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    }
    None
}

async fn own_page(shared: &Shared, page: OwnPage) -> Vec<u8> {
    let held = shared.limits.held();
    let (status, kind, body) = match page {
        OwnPage::Metrics => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics::page(held)),
        OwnPage::Health => {
            let answers = match shared.dns {
                Some(address) => dns::server::answers(address).await,
                None => true,
            };
            let state = match (shared.is_walled(), answers) {
                (false, _) => "wall_gone",
                (true, false) => "dns_silent",
                (true, true) => "ok",
            };
            let body = serde_json::json!({
                "status": state,
                "mode": if shared.policy.is_allowlist() { "allowlist" } else { "open" },
                "connections": held.connections,
                "maxConnections": shared.config.max_clients,
                "clients": held.clients,
            });
            (if state == "ok" { "200 OK" } else { "503 Service Unavailable" }, "application/json", body.to_string())
        }
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}
