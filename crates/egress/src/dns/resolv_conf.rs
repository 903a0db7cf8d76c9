//! The file that says which servers resolve names.
//!
//! Each of them becomes a hole in the packet filter, so the file is read strictly: what cannot be
//! understood stops the start.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Largest file, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Most servers.
const MAX_SERVERS: usize = 64;

/// Longest text of an address of IPv6.
const MAX_V6_TEXT: usize = 45;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadResolvConf {
    /// It is not there or not readable.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is larger than any such file.
    #[error("it is larger than 64 KiB")]
    TooLarge,
    /// It is no text.
    #[error("it is no text")]
    NoText,
    /// A line does not name one address.
    #[error("line {0} must be `nameserver` and one address, without a zone, a prefix or leading zeros")]
    Line(usize),
    /// No server, or too many.
    #[error("it names {0} servers; it must name 1 to 64")]
    Servers(usize),
}

/// The resolver that container engines put into a container's own network.
const ENGINE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 11));

/// How an engine says, in a comment, whom its resolver asks.
const ENGINE_ASKS: &str = "# ExtServers: [";

/// Who resolves names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolvers {
    /// The servers of the file, each once.
    pub servers: Vec<IpAddr>,
    /// Whom an engine's resolver asks from within the container's network. Its packets pass the container's
    /// packet filter, though the container itself asks the engine only.
    pub behind: Vec<IpAddr>,
}

/// Reads a file.
///
/// # Errors
/// [`BadResolvConf`].
pub fn read(path: &Path) -> Result<Resolvers, BadResolvConf> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Resolvers, BadResolvConf> {
    if bytes.len() as u64 > MAX_FILE {
        return Err(BadResolvConf::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| BadResolvConf::NoText)?;
    let (mut servers, mut behind) = (Vec::new(), Vec::new());
    for (n, line) in text.lines().enumerate() {
        if let Some(list) = line.strip_prefix(ENGINE_ASKS).and_then(|rest| rest.strip_suffix(']')) {
            // `host(…)` is asked from the machine's network.
            behind = list.split(' ').filter_map(address).take(MAX_SERVERS).collect();
        }
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let (Some(word), None) = (words.next(), words.next()) else { return Err(BadResolvConf::Line(n + 1)) };
        let address = address(word).ok_or(BadResolvConf::Line(n + 1))?;
        if !servers.contains(&address) {
            servers.push(address);
        }
    }
    if servers.is_empty() || servers.len() > MAX_SERVERS {
        return Err(BadResolvConf::Servers(servers.len()));
    }
    if !servers.contains(&ENGINE) {
        behind.clear();
    }
    Ok(Resolvers { servers, behind })
}

fn address(word: &str) -> Option<IpAddr> {
    if word.contains(':') {
        return word.parse::<Ipv6Addr>().ok().filter(|_| word.len() <= MAX_V6_TEXT).map(IpAddr::V6);
    }
    // Exactly four decimal numbers without leading zeros.
    word.parse().ok().map(IpAddr::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_once_each_and_comments_are_not() {
        let text = "# nameserver 1.1.1.1\nsearch a.example\nnameserver 10.96.0.10 # here\nnameserver fd00::53\n\
                    nameserver\t10.96.0.10\noptions ndots:5\n;nameserver 9.9.9.9\n";
        let expected: Vec<IpAddr> = vec!["10.96.0.10".parse().unwrap(), "fd00::53".parse().unwrap()];
        assert_eq!(parse(text.as_bytes()).unwrap(), Resolvers { servers: expected, behind: Vec::new() });
    }

    #[test]
    fn whom_an_engine_asks_from_within_is_told_in_its_comment() {
        let text = "nameserver 127.0.0.11\noptions ndots:0\n\n# ExtServers: [192.168.1.1 host(127.0.0.53) x]\n# Overrides: []\n";
        let found = parse(text.as_bytes()).unwrap();
        assert_eq!((found.servers, found.behind), (vec![ENGINE], vec!["192.168.1.1".parse().unwrap()]));
        // The comment of nobody in particular opens nothing.
        let other = parse(b"nameserver 1.1.1.1\n# ExtServers: [192.168.1.1]\n").unwrap();
        assert_eq!(other.behind, Vec::<IpAddr>::new());
    }

    #[test]
    fn what_is_no_address_stops_the_start() {
        for line in [
            "nameserver dns.example",
            "nameserver",
            "nameserver 1.1.1.1 1.0.0.1",
            "nameserver 10.0.0.01",
            "nameserver 10.0.0.256",
            "nameserver 10.1",
            "nameserver 10.0.0.1/32",
            "nameserver fe80::1%eth0",
            "nameserver 0x7f.0.0.1",
        ] {
            let text = format!("nameserver 1.1.1.1\n{line}\n");
            assert!(matches!(parse(text.as_bytes()), Err(BadResolvConf::Line(2))), "{line}");
        }
        let many: String = (0..65).map(|n| format!("nameserver 10.0.0.{n}\n")).collect();
        assert!(matches!(parse(many.as_bytes()), Err(BadResolvConf::Servers(65))));
        assert!(matches!(parse(b"search a\n"), Err(BadResolvConf::Servers(0))));
        assert!(matches!(parse(&vec![b'#'; 65 << 10]), Err(BadResolvConf::TooLarge)));
        assert!(matches!(parse(b"\xff"), Err(BadResolvConf::NoText)));
        assert!(matches!(read(Path::new("/nonexistent")), Err(BadResolvConf::Unreadable(_))));
    }
}
