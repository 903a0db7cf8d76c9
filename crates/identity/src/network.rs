//! Where a call comes from: the client's address behind trusted proxies (LCK-7), and the network
//! prefix under which it is counted and stored. Whole addresses are never stored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of the client of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The client behind `peer`, the other end of the TCP connection. Walks `X-Forwarded-For`
    /// from right to left over the trusted hops and stops at the first other entry; an entry that
    /// is no address ends the walk at the last good hop. The header of a peer that is not trusted
    /// itself is ignored.
    #[must_use]
    pub fn resolve(peer: IpAddr, forwarded_for: Option<&str>, trusted: &TrustedProxies) -> Self {
        let mut client = peer.to_canonical();
        for entry in forwarded_for.unwrap_or_default().rsplit(',') {
            if !trusted.contains(client) {
                break;
            }
            let Some(hop) = parse_hop(entry.trim()) else { break };
            client = hop;
        }
        Self(client)
    }

    /// Whether the client runs on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.0.to_canonical().is_loopback()
    }

    /// The client's network: the /24 of an IPv4 address, the /64 of an IPv6 address.
    #[must_use]
    pub fn network(&self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                format!("{}/24", Ipv4Addr::new(a, b, c, 0))
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }
}

/// The way of a request: the other end of its connection, and the hops before that as `X-Forwarded-For` tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hops {
    /// The TCP peer.
    pub peer: IpAddr,
    /// The header, as it came.
    pub forwarded_for: String,
}

impl Hops {
    /// The client behind the hops that are trusted.
    #[must_use]
    pub fn client(&self, trusted: &TrustedProxies) -> ClientAddress {
        ClientAddress::resolve(self.peer, Some(&self.forwarded_for), trusted)
    }
}

/// An address, also with a port or in brackets, as proxies write it.
fn parse_hop(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(entry, |(inside, _)| inside);
    bare.parse::<IpAddr>()
        .ok()
        .or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()))
        .map(|address| address.to_canonical())
}

/// The hops whose `X-Forwarded-For` is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxies(Vec<(IpAddr, u8)>);

/// An entry that is neither an address, a range nor a known word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an IP address, a range such as 10.0.0.0/8, or one of loopback, linklocal, uniquelocal")]
pub struct BadProxyEntry(pub String);

impl Default for TrustedProxies {
    /// Loopback and private ranges.
    fn default() -> Self {
        let mut ranges = Vec::new();
        ranges.extend_from_slice(LOOPBACK);
        ranges.extend_from_slice(UNIQUE_LOCAL);
        Self(ranges)
    }
}

const LOOPBACK: &[(IpAddr, u8)] =
    &[(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];
const LINK_LOCAL: &[(IpAddr, u8)] =
    &[(IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16), (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10)];
const UNIQUE_LOCAL: &[(IpAddr, u8)] = &[
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

impl TrustedProxies {
    /// Reads addresses, CIDR ranges and the words `loopback`, `linklocal`, `uniquelocal`.
    ///
    /// # Errors
    /// The first entry that is none of these.
    pub fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, BadProxyEntry> {
        let mut ranges = Vec::new();
        for entry in entries {
            match entry.as_ref().trim() {
                "loopback" => ranges.extend_from_slice(LOOPBACK),
                "linklocal" => ranges.extend_from_slice(LINK_LOCAL),
                "uniquelocal" => ranges.extend_from_slice(UNIQUE_LOCAL),
                text => ranges.push(parse_range(text).ok_or_else(|| BadProxyEntry(text.to_owned()))?),
            }
        }
        Ok(Self(ranges))
    }

    /// Whether `address` is one of the trusted hops.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(base, bits)| same_prefix(*base, address.to_canonical(), *bits))
    }
}

fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address.parse::<IpAddr>().ok()?, Some(bits.parse::<u8>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let widest = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(widest);
    (bits <= widest).then_some((address, bits))
}

fn same_prefix(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, header: &str) -> String {
        ClientAddress::resolve(peer.parse().unwrap(), Some(header), &TrustedProxies::default()).0.to_string()
    }

    #[test]
    fn the_walk_stops_at_the_first_hop_that_is_not_ours() {
        assert_eq!(client("127.0.0.1", "1.2.3.4, 203.0.113.9, 10.0.0.5"), "203.0.113.9");
        assert_eq!(client("198.51.100.7", "1.2.3.4, 203.0.113.9, 10.0.0.5"), "198.51.100.7");
        assert_eq!(client("127.0.0.1", ""), "127.0.0.1");
        assert_eq!(client("::ffff:127.0.0.1", "203.0.113.9"), "203.0.113.9");
        assert_eq!(client("127.0.0.1", "10.0.0.9, 10.0.0.5"), "10.0.0.9");
    }

    #[test]
    fn garbage_ends_the_walk_at_the_last_good_hop() {
        assert_eq!(client("127.0.0.1", "203.0.113.9, unknown, 10.0.0.5"), "10.0.0.5");
        assert_eq!(client("127.0.0.1", "203.0.113.9,"), "127.0.0.1");
        assert_eq!(client("127.0.0.1", "203.0.113.9:4711"), "203.0.113.9");
        assert_eq!(client("127.0.0.1", "[2001:db8::1]:4711"), "2001:db8::1");
    }

    #[test]
    fn only_the_network_is_told() {
        assert_eq!(ClientAddress("203.0.113.9".parse().unwrap()).network(), "203.0.113.0/24");
        assert_eq!(ClientAddress("2001:db8:1:2:3::4".parse().unwrap()).network(), "2001:db8:1:2::/64");
        assert_eq!(ClientAddress("::ffff:203.0.113.9".parse().unwrap()).network(), "203.0.113.0/24");
    }

    #[test]
    fn ranges_and_words_are_read() {
        let proxies = TrustedProxies::parse(["192.0.2.0/25", "linklocal", "2001:db8::/32", "198.51.100.1"]).unwrap();
        for (address, inside) in [
            ("192.0.2.127", true),
            ("192.0.2.128", false),
            ("169.254.1.1", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::1", false),
            ("198.51.100.1", true),
            ("198.51.100.2", false),
        ] {
            assert_eq!(proxies.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!(TrustedProxies::parse(["0.0.0.0/0"]).unwrap().contains("8.8.8.8".parse().unwrap()));
        for bad in ["10.0.0.0/33", "", "proxy.example.com", "::/129"] {
            assert_eq!(TrustedProxies::parse([bad]), Err(BadProxyEntry(bad.to_owned())));
        }
    }
}
