//! Questions to the resolvers of the deployment, and nobody else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::cache::{Cache, Kept};
use super::message::{A, AAAA, MAX_UDP, Question, Reply, Said, code, read_answer, write_query};
use crate::metrics;
use crate::networks::Networks;

/// Longest wait for one answer of one server.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the servers are asked in turn.
const ROUNDS: usize = 2;

/// Most servers that one question is sent to, in a round.
const SERVERS: usize = 3;

/// Questions under way at the same time.
const QUESTIONS: usize = 1_024;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// No server gives a usable answer.
    Failed,
    /// Too many questions are under way.
    Busy,
}

/// Asks, and keeps what was answered.
#[derive(Debug)]
pub(crate) struct Resolver {
    servers: Vec<SocketAddr>,
    cache: Mutex<Cache>,
    permits: Semaphore,
    networks: Arc<Networks>,
}

impl Resolver {
    pub(crate) fn new(servers: &[IpAddr], networks: Arc<Networks>) -> Self {
        let servers = servers.iter().map(|server| SocketAddr::new(*server, 53)).collect();
        Self { servers, cache: Mutex::default(), permits: Semaphore::new(QUESTIONS), networks }
    }

    /// The addresses of a name, judged by nobody; none when the name does not exist.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let ask = async |kind| {
            let answer = self.ask(&Question { name: name.into(), kind }).await?;
            match answer.reply.code {
                code::OK | code::NO_NAME => Ok(answer.reply.addresses.clone()),
                _ => Err(Unresolved::Failed),
            }
        };
        if !self.networks.has_v6() {
            return ask(A).await;
        }
        let (v4, v6) = tokio::join!(ask(A), ask(AAAA));
        match (v4, v6) {
            (Ok(mut v4), Ok(v6)) => {
                v4.extend(v6);
                Ok(v4)
            }
            (Ok(some), Err(_)) | (Err(_), Ok(some)) if !some.is_empty() => Ok(some),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// What is kept about `question`.
    pub(crate) fn kept(&self, question: &Question) -> Option<Kept> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(question, Instant::now())
    }

    /// The answer to `question`, a kept one if there is one.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Kept, Unresolved> {
        if let Some(kept) = self.kept(question) {
            return Ok(kept);
        }
        let _permit = self.permits.try_acquire().map_err(|_| Unresolved::Busy)?;
        metrics::DNS_QUERIES.increment();
        let Some(reply) = self.ask_servers(question).await else {
            metrics::DNS_FAILURES.increment();
            return Err(Unresolved::Failed);
        };
        let (reply, at) = (Arc::new(reply), Instant::now());
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(question.clone(), Arc::clone(&reply), at);
        Ok(Kept { reply, at })
    }

    async fn ask_servers(&self, question: &Question) -> Option<Reply> {
        let mut refusal = None;
        for _ in 0..ROUNDS {
            for server in self.servers.iter().take(SERVERS) {
                match timeout(PATIENCE, self.ask_server(*server, question)).await {
                    Ok(Ok(reply)) if matches!(reply.code, code::OK | code::NO_NAME) => return Some(reply),
                    Ok(Ok(reply)) => refusal = Some(reply),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            if refusal.is_some() {
                break;
            }
        }
        refusal
    }

    async fn ask_server(&self, server: SocketAddr, question: &Question) -> std::io::Result<Reply> {
        let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // A new port each time, beside the number: both have to be guessed to forge an answer.
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        let id: u16 = rand::random();
        let query = write_query(id, question);
        socket.send(&query).await?;
        let mut bytes = [0; MAX_UDP];
        loop {
            let length = socket.recv(&mut bytes).await?;
            match self.read(&bytes[..length], id, question) {
                Some(Said::Reply(reply)) => return Ok(reply),
                Some(Said::Truncated) => return self.ask_over_tcp(server, question).await,
                // Not what was asked: whoever sent it, the answer may still come.
                None => {}
            }
        }
    }

    async fn ask_over_tcp(&self, server: SocketAddr, question: &Question) -> std::io::Result<Reply> {
        let mut stream = TcpStream::connect(server).await?;
        let id: u16 = rand::random();
        let query = write_query(id, question);
        let mut framed = u16::try_from(query.len()).unwrap_or(0).to_be_bytes().to_vec();
        framed.extend_from_slice(&query);
        stream.write_all(&framed).await?;
        let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut bytes).await?;
        match self.read(&bytes, id, question) {
            Some(Said::Reply(reply)) => Ok(reply),
            _ => Err(std::io::ErrorKind::InvalidData.into()),
        }
    }

    fn read(&self, bytes: &[u8], id: u16, question: &Question) -> Option<Said> {
        // A name without a dot belongs to the deployment: its services have private addresses.
        let own = !question.name.contains('.');
        read_answer(bytes, id, question, |address| own || self.networks.admits(address))
    }
}
