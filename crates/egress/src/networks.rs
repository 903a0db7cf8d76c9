//! The networks that this process is attached to, as the kernel tells them.
//!
//! They say two things: who may ask the proxy, and which destinations are refused even though their
//! addresses look public. Networks come and go while the process runs, so they are read again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tale_core::reach::{Range4, Range6, Reach, contains_v4, contains_v6, reach};
use tokio::time::Instant;

/// Pause between two looks that clients from unknown networks cause.
const PAUSE: Duration = Duration::from_millis(200);

/// Addresses and networks of this process at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attached {
    own: Vec<IpAddr>,
    v4: Vec<Range4>,
    v6: Vec<Range6>,
    /// Whether nothing tells which networks are attached: every address stands alone, as in the Pods of
    /// many clusters.
    alone: bool,
}

/// [`Attached`], kept up to date.
#[derive(Debug)]
pub(crate) struct Networks {
    /// Where the kernel tells about the network of this process.
    from: PathBuf,
    now: RwLock<(Arc<Attached>, Instant)>,
}

impl Networks {
    /// Looks for the first time.
    pub(crate) fn read() -> std::io::Result<Self> {
        // Of the thread: tests move threads into networks of their own.
        let from = PathBuf::from("/proc/thread-self/net").canonicalize()?;
        let attached = Attached::read(&from)?;
        Ok(Self { from, now: RwLock::new((Arc::new(attached), Instant::now())) })
    }

    fn now(&self) -> Arc<Attached> {
        match self.now.read() {
            Ok(now) => Arc::clone(&now.0),
            Err(poisoned) => Arc::clone(&poisoned.into_inner().0),
        }
    }

    /// Looks again. What was known stays when that fails.
    pub(crate) fn refresh(&self) {
        match Attached::read(&self.from) {
            Ok(attached) => {
                let mut now = self.now.write().unwrap_or_else(std::sync::PoisonError::into_inner);
                *now = (Arc::new(attached), Instant::now());
            }
            Err(error) => {
                tracing::warn!(event = "egress.networks_unread", %error, "the attached networks could not be read again");
            }
        }
    }

    /// Whether a client at this address is served: loopback, and private networks that are attached.
    pub(crate) fn serves(&self, client: IpAddr) -> bool {
        if client.is_loopback() || self.now().serves(client) {
            return true;
        }
        let due = self.now.read().is_ok_and(|now| now.1.elapsed() >= PAUSE);
        if due && reach(client) == Reach::Private {
            // Its network may have been attached a moment ago.
            self.refresh();
            return self.now().serves(client);
        }
        false
    }

    /// Whether `address` may be connected to.
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        reach(address) == Reach::Public && !self.now().is_near(address)
    }

    /// Whether there is an address of IPv6 that reaches further than the link.
    pub(crate) fn has_v6(&self) -> bool {
        self.now()
            .own
            .iter()
            .any(|own| matches!(own, IpAddr::V6(v6) if !v6.is_loopback() && !v6.is_unicast_link_local()))
    }
}

impl Attached {
    fn read(from: &Path) -> std::io::Result<Self> {
        let routes = std::fs::read_to_string(from.join("route"))?;
        let tree = std::fs::read_to_string(from.join("fib_trie"))?;
        // Not there in a kernel without IPv6.
        let v6 = std::fs::read_to_string(from.join("if_inet6")).unwrap_or_default();
        Ok(Self::parse(&routes, &tree, &v6))
    }

    fn parse(routes: &str, tree: &str, inet6: &str) -> Self {
        let mut attached = Self::default();
        for line in routes.lines().skip(1) {
            let mut words = line.split_ascii_whitespace();
            let (interface, network, gateway) = (words.next(), words.next(), words.next());
            let mask = words.nth(4);
            let (Some(interface), Some(network), Some(gateway), Some(mask)) = (
                interface,
                network.and_then(little_endian),
                gateway.and_then(little_endian),
                mask.and_then(little_endian),
            ) else {
                continue;
            };
            let prefix = u8::try_from(mask.to_bits().leading_ones()).unwrap_or(32);
            // A route without a gateway leads to an attached network; one to a single address does not tell one.
            if interface != "lo" && gateway.is_unspecified() && (1..32).contains(&prefix) {
                attached.v4.push((network, prefix));
            }
        }
        // An address stands two lines above the words that it is local.
        let mut last = None;
        for line in tree.lines() {
            let line = line.trim_start_matches([' ', '|', '-', '+']);
            if let Ok(address) = line.parse::<Ipv4Addr>() {
                last = Some(address);
            } else if line.starts_with("/32 host LOCAL")
                && let Some(address) = last
                && !attached.own.contains(&address.into())
            {
                attached.own.push(address.into());
            }
        }
        attached.alone = attached.v4.is_empty() && attached.own.iter().any(|own| !own.is_loopback());
        for line in inet6.lines() {
            let mut words = line.split_ascii_whitespace();
            let address =
                words.next().and_then(|digits| u128::from_str_radix(digits, 16).ok()).map(Ipv6Addr::from_bits);
            let prefix = words.nth(1).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            if let (Some(address), Some(prefix)) = (address, prefix) {
                attached.own.push(address.into());
                if !address.is_loopback() && prefix > 0 {
                    attached.v6.push((address, prefix));
                }
            }
        }
        attached
    }

    /// Whether the address is one of this process or in an attached network.
    fn is_near(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
            || match address {
                IpAddr::V4(v4) => self.v4.iter().any(|range| contains_v4(*range, v4)),
                IpAddr::V6(v6) => self.v6.iter().any(|range| contains_v6(*range, v6)),
            }
    }

    fn serves(&self, client: IpAddr) -> bool {
        reach(client) == Reach::Private && (self.alone || self.is_near(client))
    }
}

/// An address as the table of routes writes it.
fn little_endian(digits: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(digits, 16).ok().map(|bits| Ipv4Addr::from_bits(bits.swap_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
        eth1\t00640B0B\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const TREE: &str = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\nLocal:\n  +-- 127.0.0.0/8 2 0 2\n     \
        |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 172.17.0.2\n        /32 host LOCAL\n     |-- 172.17.255.255\n        /32 link BROADCAST\n     \
        |-- 203.1.2.3\n        /32 host LOCAL\n";
    const INET6: &str = "00000000000000000000000000000001 01 80 10 80       lo\n\
        fe800000000000000042acfffe110002 04 40 20 80     eth0\n";

    fn networks() -> Networks {
        let attached = Arc::new(Attached::parse(ROUTES, TREE, INET6));
        Networks { from: PathBuf::from("/nonexistent"), now: RwLock::new((attached, Instant::now())) }
    }

    #[test]
    fn attached_private_networks_are_served_and_nobody_else() {
        let networks = networks();
        for client in ["127.0.0.1", "172.17.9.9"] {
            assert!(networks.serves(client.parse().unwrap()), "{client}");
        }
        // Another private network, a public one, and an attached one with public addresses.
        for client in ["172.18.0.1", "10.0.0.1", "8.8.8.8", "11.11.100.9"] {
            assert!(!networks.serves(client.parse().unwrap()), "{client}");
        }
    }

    #[test]
    fn own_addresses_and_attached_networks_are_no_destinations_whatever_their_range() {
        let networks = networks();
        for address in ["203.1.2.3", "11.11.100.7", "172.17.0.2", "::ffff:203.1.2.3"] {
            assert!(!networks.admits(address.parse().unwrap()), "{address}");
        }
        assert!(networks.admits("203.1.2.4".parse().unwrap()) && networks.admits("11.11.101.7".parse().unwrap()));
        assert!(!networks.has_v6());
    }

    #[test]
    fn an_address_that_stands_alone_tells_no_network() {
        let tree = "     |-- 10.4.0.7\n        /32 host LOCAL\n";
        let attached = Attached::parse("Iface\n", tree, "");
        assert!(attached.serves("10.9.9.9".parse().unwrap()) && !attached.serves("8.8.8.8".parse().unwrap()));
    }
}
