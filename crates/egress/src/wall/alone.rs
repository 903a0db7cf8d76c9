//! Whether a network is this process's own.
//!
//! The rules hold for every program in the network. On a machine, and in a container that shares its
//! machine's network, they would cut databases and everything else on loopback off from each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Where a container's engine answers questions for names, in the container's own network.
const ENGINE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 11));

/// What the kernel calls a socket that waits for connections.
const LISTENING: &str = "0A";

/// Where some other program listens in the network of this thread. To be asked before this one does.
pub(super) fn somebody_else() -> std::io::Result<Option<SocketAddr>> {
    let net = Path::new("/proc/thread-self/net");
    // A kernel without IPv6 has no second table.
    let v6 = std::fs::read_to_string(net.join("tcp6")).unwrap_or_default();
    Ok(listener(&std::fs::read_to_string(net.join("tcp"))?).or_else(|| listener(&v6)))
}

/// The first listener in a table of sockets.
fn listener(table: &str) -> Option<SocketAddr> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        let (digits, port) = local.split_once(':')?;
        let at = SocketAddr::new(address(digits)?, u16::from_str_radix(port, 16).ok()?);
        (state == LISTENING && at.ip() != ENGINE).then_some(at)
    })
}

/// An address as the tables write it: words of four bytes in the order of the machine.
fn address(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    #[test]
    fn a_listener_is_found_among_connections_and_the_engine_is_none() {
        let engine = "   0: 0B00007F:B2C5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n";
        let connection =
            "   1: 0100007F:1538 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n";
        let database =
            "   2: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000    70        0 3 1\n";
        assert_eq!(listener(&format!("{HEAD}{engine}{connection}")), None);
        assert_eq!(listener(&format!("{HEAD}{engine}{connection}{database}")), "127.0.0.1:5432".parse().ok());
    }

    #[test]
    fn addresses_of_both_kinds_are_read() {
        let line = "   0: 00000000000000000000000001000000:0CEA 00000000000000000000000000000000:0000 0A 0 0 0 0 0 0\n";
        assert_eq!(listener(&format!("{HEAD}{line}")), "[::1]:3306".parse().ok());
        assert_eq!(listener(&format!("{HEAD}nonsense\n   0: 0:0 0:0 0A\n")), None);
    }
}
