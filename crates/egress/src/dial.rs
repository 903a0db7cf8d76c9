//! Connections to the far end: to an address that was judged, and to nothing else.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tale_core::net::{HostPolicy, judge_host};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::host::Host;
use crate::http::refusal::Refusal;
use crate::http::target::Destination;
use crate::server::Shared;

/// Longest wait over all addresses of a name.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;

/// Opens a connection to `to`, whose host and port were admitted.
pub(crate) async fn dial(shared: &Shared, to: &Destination) -> Result<TcpStream, Refusal> {
    let found = match &to.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            // Names that stand for a metadata service or for this machine are asked of nobody.
            judge_host(name, HostPolicy::PublicOnly).map_err(|_| Refusal::PrivateAddress)?;
            shared.resolver.addresses(name).await.map_err(|_| Refusal::DnsFailed)?
        }
    };
    if found.is_empty() {
        return Err(Refusal::DnsFailed);
    }
    let judged: Vec<IpAddr> =
        found.into_iter().filter(|address| shared.networks.admits(*address)).take(MAX_ADDRESSES).collect();
    connect(&judged, to.port).await
}

async fn connect(judged: &[IpAddr], port: u16) -> Result<TcpStream, Refusal> {
    let end = Instant::now() + PATIENCE;
    let mut refusal = Refusal::PrivateAddress;
    for (n, address) in judged.iter().enumerate() {
        // An address that does not answer leaves time for those behind it.
        let share = (judged.len() - n).try_into().unwrap_or(1);
        let patience = end.saturating_duration_since(Instant::now()) / share;
        match timeout(patience, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(_)) => refusal = Refusal::ConnectFailed,
            Err(_) => refusal = Refusal::ConnectTimeout,
        }
    }
    Err(refusal)
}
