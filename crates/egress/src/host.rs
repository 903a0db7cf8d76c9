//! The host that a client wants to reach, as it is written in a request.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest host name.
const MAX_NAME: usize = 253;

/// Longest part of a host name between dots.
const MAX_LABEL: usize = 63;

/// A name in lower case without a dot at its end, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Has to be resolved.
    Name(Box<str>),
    /// Written as an address. One of IPv4 inside IPv6 stands here as what it is.
    Address(IpAddr),
}

/// Why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// Longer than names can be, or empty, or with an empty or too long part.
    #[error("the host name is empty or too long")]
    Length,
    /// Something else than letters, digits, hyphens, underscores and dots.
    #[error("the host name has a character that host names do not have; international names must come in ASCII form")]
    Character,
    /// A number that only some resolvers take for an address, such as `0x7f.1`.
    #[error("the host is a number that is no address in dotted form")]
    Number,
    /// In brackets, and no address of IPv6.
    #[error("what stands in brackets is no IPv6 address")]
    Brackets,
}

impl Host {
    /// Reads a host as it stands in a URL or in the target of CONNECT.
    ///
    /// # Errors
    /// [`BadHost`].
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(inner) = text.strip_prefix('[') {
            // A zone (`%eth0`) is no part of an address on the internet, and `parse` refuses it.
            let address: Ipv6Addr =
                inner.strip_suffix(']').and_then(|inner| inner.parse().ok()).ok_or(BadHost::Brackets)?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
            return Err(BadHost::Character);
        }
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(BadHost::Length);
        }
        if name.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL) {
            return Err(BadHost::Length);
        }
        // Rust reads exactly four decimal numbers without leading zeros.
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(BadHost::Number);
        }
        Ok(Self::Name(name.to_ascii_lowercase().into()))
    }
}

/// Whether resolvers of some systems take the last part of a name for a number.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_an_address_in_one_form_only() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "256.1.1.1",
            "example.0x",
            "1.2.3.0xa",
        ] {
            assert_eq!(Host::parse(text), Err(BadHost::Number), "{text}");
        }
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("[::1]", "::1"),
        ] {
            assert_eq!(Host::parse(text), Ok(Host::Address(address.parse().unwrap())), "{text}");
        }
        for text in ["[fe80::1%eth0]", "[::1", "[127.0.0.1]", "[]"] {
            assert_eq!(Host::parse(text), Err(BadHost::Brackets), "{text}");
        }
    }

    #[test]
    fn a_name_is_told_in_one_form() {
        assert_eq!(Host::parse("Example.COM."), Ok(Host::Name("example.com".into())));
        assert_eq!(Host::parse("_dmarc.a-b.example"), Ok(Host::Name("_dmarc.a-b.example".into())));
        for text in ["exam%70le.com", "user@example.com", "a b", "exämple.com", "a/b", "a:b", "::1", "a\0b", "a\r\nb"]
        {
            assert_eq!(Host::parse(text), Err(BadHost::Character), "{text:?}");
        }
        let long = [&"a".repeat(64), "com"].join(".");
        let longer = vec!["a".repeat(60); 5].join(".");
        for text in ["", ".", "..", "a..b", ".a", "a..", &long, &longer] {
            assert_eq!(Host::parse(text), Err(BadHost::Length), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_told_in_a_form_that_reads_the_same(text in "\\PC{0,40}|[a-zA-Z0-9._\\[\\]:x-]{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                let told = match &host {
                    Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
                    host => host.to_string(),
                };
                prop_assert_eq!(Host::parse(&told), Ok(host));
            }
        }

        /// No resolver is ever asked for what it could read as a number.
        #[test]
        fn a_name_never_ends_in_a_number(text in "[0-9a-fx.]{1,24}") {
            if let Ok(Host::Name(name)) = Host::parse(&text) {
                let last = name.rsplit('.').next().unwrap();
                prop_assert!(last.parse::<u64>().is_err());
                let hex = last.strip_prefix("0x");
                prop_assert!(hex.is_none_or(|digits| digits.bytes().any(|byte| !byte.is_ascii_hexdigit())));
            }
        }
    }
}
