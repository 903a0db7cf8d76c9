//! `tale healthcheck`: the question of a container's health check, without a shell or curl.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use tale_env::{EnvProblem, Environment, Role, registry, role_of};

use crate::environment;

/// Longest wait for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where the proxy answers for itself, inside its container only.
pub(crate) const PROXY_PORT: u16 = 2020;

/// Why the process does not count as healthy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unhealthy {
    #[error("{0}")]
    Settings(EnvProblem),
    #[error("a worker listens on nothing unless TALE_WORKER_PORT says where; set it, or leave the health check out")]
    NothingListens,
    #[error("{address} does not answer: {source}")]
    Silent { address: SocketAddr, source: std::io::Error },
    #[error("{address}{path} answered {answer:?}")]
    Answered { address: SocketAddr, path: String, answer: String },
}

impl Unhealthy {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => environment::CONFIGURATION,
            Self::NothingListens => 2,
            Self::Silent { .. } | Self::Answered { .. } => 1,
        }
    }
}

/// Asks the process of `role` on this machine whether it lives.
pub(crate) fn check(env: &Environment, role: Option<Role>, port: Option<u16>) -> Result<(), Unhealthy> {
    let role = role.map_or_else(|| role_of(env), Ok).map_err(Unhealthy::Settings)?;
    let base = env.raw(registry::BASE_PATH.name).unwrap_or_default();
    let base = base.trim().trim_end_matches('/');
    let (path, variable, usual) = match role {
        Role::BackendWorker => ("/ping".to_owned(), Some(&registry::TALE_WORKER_PORT), None),
        Role::Platform => (format!("{base}/api/health"), Some(&registry::PORT), Some(3000)),
        Role::Proxy => ("/health".to_owned(), None, Some(PROXY_PORT)),
        // It lives for storing: a full disk counts.
        Role::ObjectStore => ("/ready".to_owned(), Some(&registry::PORT), Some(9000)),
        Role::LlmGateway => ("/health".to_owned(), Some(&registry::LLM_GATEWAY_PORT), Some(8080)),
        Role::SandboxEgress => ("/health".to_owned(), None, Some(tale_egress::Config::PORT)),
        Role::Sandbox => ("/health".to_owned(), Some(&registry::SANDBOX_PORT), Some(8003)),
        _ => ("/ping".to_owned(), Some(&registry::PORT), Some(3005)),
    };
    let set = variable.and_then(|variable| env.raw(variable.name)).and_then(|text| text.trim().parse().ok());
    let port = port.or(set).or(usual).ok_or(Unhealthy::NothingListens)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let answer = ask(address, &path).map_err(|source| Unhealthy::Silent { address, source })?;
    match answer.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(Unhealthy::Answered { address, path, answer }),
    }
}

/// The first line of the answer.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut head = [0; 64];
    let mut filled = 0;
    while filled < head.len() && !head[..filled].contains(&b'\n') {
        match stream.read(&mut head[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    let text = String::from_utf8_lossy(&head[..filled]);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
